/* SPDX-License-Identifier: BSD-3-Clause */
#include "emux_table.h"

TestSuite(emux_gate, .init = start);

/* ---- gates ---- */

/* SCHED-BLIND-01 */
Test(emux_gate, closing_moves_a_queue_once_when_its_list_comes_to_it)
{
	for (unsigned i = 1; i < 4; i++)
		behind(i, &pace);
	wake("01234");
	pace.closed = true;
	cr_assert_eq(x.ready_cnt, 5);
	cr_assert_eq(x.sifted, 0);
	expect_turns(0, "0");
	cr_assert_eq(x.sifted, 0);
	expect_turns(0, "4");
	cr_assert_eq(x.sifted, 3);
	expect_waiting(&pace, "123");
	expect_turns(0, "0404");
	cr_assert_eq(x.sifted, 3);
	cr_assert_eq(x.held_cnt, 3);
	cr_assert_eq(x.ready_cnt, 2);
	cr_assert_eq(x.turns, 6);
	cr_assert_eq(x.blind_visits, 0);
}

Test(emux_gate, gate_that_opens_in_time_moves_no_queue)
{
	behind(1, &pace);
	wake("01");
	pace.closed = true;
	expect_turns(0, "0");
	open_for(&pace, 8);
	expect_turns(0, "1010");
	cr_assert_eq(x.sifted, 0);
	cr_assert_eq(x.woken, 0);
}

/* SCHED-BLIND-01 */
Test(emux_gate, lane_whose_gates_are_all_closed_is_ready_no_more)
{
	behind(0, &pace);
	behind(1, &other);
	wake("01");
	pace.closed = other.closed = true;
	cr_assert_eq(x.ready_lanes, 1);
	cr_assert_eq(turn(0), NO_QUEUE);
	cr_assert_eq(x.ready_lanes, 0);
	cr_assert_eq(x.sifted, 2);
	cr_assert_eq(x.turns, 0);
	expect_waiting(&pace, "0");
	expect_waiting(&other, "1");
}

/* SCHED-BLIND-01 */
Test(emux_gate, gate_that_closes_within_a_turn_ends_it)
{
	behind(0, &pace);
	wake("01");
	cr_assert_eq(turn(0), 0);
	cr_assert(sends(0, 64, 1));
	pace.closed = true;
	cr_assert_eq(turn(0), 1);
	expect(0, UR_EMUX_HELD);
	expect_waiting(&pace, "0");
	cr_assert_eq(x.blind_visits, 0);
	open_for(&pace, 1);
	sends(0, 64, 1);
	ends(0);
	/* It gets a new turn of full length. */
	cr_assert_eq(packets_in_turn(64, 1), 8);
	cr_assert_eq(x.turns, 3);
}

/* SCHED-BLIND-01 */
Test(emux_gate, gate_that_closes_under_the_turn_of_a_lower_priority_leaves_it_to_the_list)
{
	start_with(UR_EMUX_STRICT);
	ur_emux_set_share(&x, &q[1], 7, 1);
	behind(0, &pace);
	wake("0");
	cr_assert_eq(turn(0), 0);
	sends(0, 64, 1);
	wake("1");
	pace.closed = true;
	cr_assert_eq(turn(0), 1);
	expect(0, UR_EMUX_READY);
	sends(0, 64, 1);
	sleeps(1);
	cr_assert_eq(turn(0), NO_QUEUE);
	expect_waiting(&pace, "0");
	cr_assert_eq(x.sifted, 1);
}

Test(emux_gate, turn_that_ends_behind_a_closed_gate_leads_to_the_gate)
{
	behind(0, &pace);
	wake("01");
	cr_assert_eq(turn(0), 0);
	sends(0, 64, 1);
	pace.closed = true;
	ends(0);
	expect(0, UR_EMUX_HELD);
	expect_waiting(&pace, "0");
	expect_turns(0, "11");
	cr_assert_eq(x.sifted, 0);
}

/* SCHED-WAKE-01 */
Test(emux_gate, gate_that_opens_for_n_lets_those_go_that_waited_longest)
{
	pace.closed = true;
	for (unsigned i = 0; i < 6; i++)
		behind(i, &pace);
	wake("304125");
	sleeps(4);
	expect_waiting(&pace, "30125");
	open_for(&pace, 0);
	cr_assert_eq(x.ready_cnt, 0);
	open_for(&pace, 2);
	expect_waiting(&pace, "125");
	cr_assert_eq(x.ready_cnt, 2);
	cr_assert_eq(x.held_cnt, 3);
	expect_turns(0, "3030");
	open_for(&pace, 1);
	expect_waiting(&pace, "25");
	pace.closed = true;
	wake("4");
	cr_assert_eq(turn(0), NO_QUEUE);
	expect_waiting(&pace, "254301");
	open_for(&pace, UINT32_MAX);
	expect_waiting(&pace, "");
	expect_turns(0, "254301");
	cr_assert_eq(x.woken, 9);
	cr_assert_eq(x.held_cnt, 0);
	open_for(&pace, 100);
	cr_assert_eq(x.woken, 9);
}

Test(emux_gate, queue_that_wakes_up_at_an_open_gate_does_not_wait)
{
	behind(0, &pace);
	wake("0");
	expect_turns(0, "0");
}

/* ---- changes in every state ---- */

Test(emux_gate, queue_sleeps_in_every_state)
{
	for (unsigned i = 0; i < 4; i++)
		behind(i, &pace);
	pace.closed = true;
	wake("012");
	sleeps(1);
	expect_waiting(&pace, "02");
	sleeps(0);
	open_for(&pace, 9);
	wake("13");
	cr_assert_eq(turn(0), 2);
	sleeps(1);
	cr_assert_eq(turn(0), 2);
	sleeps(2);
	cr_assert_eq(turn(0), 3, "not in the rest of a turn of another");
	cr_assert_eq(packets_in_turn(64, 1), 8);
	sleeps(3);
	cr_assert_eq(turn(0), NO_QUEUE);
	ur_emux_set_sl(&x, &q[5], 14);
	wake("5");
	sleeps(5);
	expect(5, UR_EMUX_IDLE);
	cr_assert_eq(x.ready_cnt + x.held_cnt, 0);
}

Test(emux_gate, gate_changes_in_every_state)
{
	other.closed = pace.closed = true;
	behind(0, &pace); /* idle */
	expect(0, UR_EMUX_IDLE);
	wake("012");
	behind(0, &other); /* held: at another gate */
	expect_waiting(&other, "0");
	expect_waiting(&pace, "");
	behind(0, &other);
	behind(0, NULL); /* held: free */
	expect_waiting(&other, "");
	expect_turns(0, "120");
	behind(2, &other); /* ready: held at once */
	expect_waiting(&other, "2");
	cr_assert_eq(turn(0), 1);
	sends(0, 64, 1);
	behind(1, &pace); /* in its turn */
	expect_waiting(&pace, "1");
	expect_turns(0, "00");
	ur_emux_set_sl(&x, &q[3], 14); /* not served */
	wake("3");
	behind(3, &pace);
	expect(3, UR_EMUX_UNSERVED);
	expect_waiting(&pace, "1");
	cr_assert_eq(x.sifted, 0);
}

Test(emux_gate, service_level_changes_in_every_state)
{
	ur_emux_set_sl(&x, &q[0], 2); /* idle */
	cr_assert_eq(q[0].vl, 2);
	wake("01");
	cr_assert_eq(x.ready_lanes, 5);
	ur_emux_set_sl(&x, &q[1], 2); /* ready */
	cr_assert_eq(x.ready_lanes, 4);
	expect_turns(2, "01");
	cr_assert_eq(turn(2), 0);
	sends(2, 64, 1);
	ur_emux_set_sl(&x, &q[0], 2); /* the same: the turn continues */
	cr_assert_eq(turn(2), 0);
	ur_emux_set_sl(&x, &q[0], 7); /* in its turn */
	expect_turns(2, "11");
	expect_turns(7, "00");
	behind(1, &pace);
	pace.closed = true;
	cr_assert_eq(turn(2), NO_QUEUE);
	ur_emux_set_sl(&x, &q[1], 9); /* held */
	expect_waiting(&pace, "1");
	open_for(&pace, 1);
	expect_turns(9, "1");
	ur_emux_set_sl(&x, &q[1], 15); /* to none */
	expect(1, UR_EMUX_UNSERVED);
	cr_assert_eq(x.ready_lanes, 0x80);
	ur_emux_set_sl(&x, &q[1], 0);
	expect_turns(0, "1");
}

Test(emux_gate, share_changes_in_every_state)
{
	start_with(UR_EMUX_STRICT);
	behind(2, &pace);
	pace.closed = true;
	wake("012");
	ur_emux_set_share(&x, &q[1], 1, 1); /* ready */
	expect_turns(0, "11");
	cr_assert_eq(turn(0), 1);
	sends(0, 64, 1);
	ur_emux_set_share(&x, &q[1], 0, 1); /* in its turn */
	expect_turns(0, "0101");
	ur_emux_set_share(&x, &q[2], 7, 1); /* held */
	expect_waiting(&pace, "2");
	ur_emux_set_share(&x, &q[3], 6, 1); /* idle */
	wake("3");
	expect_turns(0, "3");
	open_for(&pace, 1);
	expect_turns(0, "22");
}
