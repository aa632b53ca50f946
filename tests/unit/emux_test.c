/* SPDX-License-Identifier: BSD-3-Clause */
#include "emux_table.h"

TestSuite(emux, .init = start);

/* ---- states ---- */

Test(emux, starts_without_a_ready_queue)
{
	ur_emux_validate(&x);
	cr_assert_eq(x.ready_lanes, 0);
	cr_assert_eq(x.ready_cnt + x.held_cnt, 0);
	cr_assert_eq(turn(0), NO_QUEUE);
	cr_assert_eq(x.turns, 0);
	for (unsigned i = 0; i < 8; i++)
		expect(i, UR_EMUX_IDLE);
}

/* SCHED-READY-01 */
Test(emux, active_queue_is_ready_unless_its_gate_is_closed_or_its_lane_is_not_served)
{
	static const struct {
		bool closed;
		uint8_t sl;
		enum ur_emux_state state;
	} cases[] = {
		{false, 0, UR_EMUX_READY},     {true, 0, UR_EMUX_HELD},
		{false, 14, UR_EMUX_UNSERVED}, {true, 14, UR_EMUX_UNSERVED},
		{false, 15, UR_EMUX_UNSERVED}, {true, 15, UR_EMUX_UNSERVED},
		{false, 13, UR_EMUX_READY},    {true, 13, UR_EMUX_HELD},
	};

	behind(0, &pace);
	for (unsigned i = 0; i < 8; i++) {
		bool ready = cases[i].state == UR_EMUX_READY, held = cases[i].state == UR_EMUX_HELD;

		pace.closed = cases[i].closed;
		ur_emux_set_sl(&x, &q[0], cases[i].sl);
		expect(0, UR_EMUX_IDLE);
		wake("0");
		expect(0, cases[i].state);
		cr_assert_eq(x.ready_cnt, ready);
		cr_assert_eq(x.held_cnt, held);
		cr_assert_eq(x.ready_lanes, ready ? 1 << cases[i].sl : 0);
		cr_assert_eq(q[0].node.ready, ready || held);
		sleeps(0);
		expect(0, UR_EMUX_IDLE);
		cr_assert_eq(x.ready_lanes, 0);
		cr_assert_eq(x.ready_cnt + x.held_cnt, 0);
		cr_assert_not(q[0].node.ready);
	}
}

Test(emux, setting_a_state_twice_changes_nothing)
{
	wake("01");
	wake("0");
	expect_turns(0, "0101");
	sleeps(0);
	sleeps(0);
	expect_turns(0, "11");
	cr_assert_eq(x.ready_cnt, 1);
}

Test(emux, lane_has_its_bit_while_one_of_its_queues_is_ready)
{
	ur_emux_set_sl(&x, &q[1], 3);
	ur_emux_set_sl(&x, &q[2], 3);
	wake("012");
	cr_assert_eq(x.ready_lanes, 0x9);
	cr_assert_eq(x.ready_cnt, 3);
	sleeps(1);
	cr_assert_eq(x.ready_lanes, 0x9);
	sleeps(2);
	cr_assert_eq(x.ready_lanes, 0x1);
	sleeps(0);
	cr_assert_eq(x.ready_lanes, 0);
}

/* ---- turns ---- */

/* SCHED-TURN-01 */
Test(emux, turn_is_over_after_8_requests_or_16_kilobytes)
{
	wake("0");
	cr_assert_eq(packets_in_turn(64, 1), 8);
	cr_assert_eq(packets_in_turn(64, 4), 2);
	cr_assert_eq(packets_in_turn(64, 3), 3, "9 requests, not 6");
	cr_assert_eq(packets_in_turn(64, 8), 1);
	cr_assert_eq(packets_in_turn(4096, 0), 4);
	cr_assert_eq(packets_in_turn(4095, 0), 5);
	cr_assert_eq(packets_in_turn(16384, 0), 1);
	cr_assert_eq(packets_in_turn(100000, 1), 1);
	cr_assert_eq(packets_in_turn(1, 0), 16384);
	cr_assert_eq(x.turns, 9);
}

/* SCHED-TURN-01 */
Test(emux, length_of_turns_can_be_set)
{
	ur_emux_init(&x, &(struct ur_emux_attr){UR_EMUX_RR, 1, 1 << 24}, &vl);
	wake("0");
	cr_assert_eq(packets_in_turn(4096, 1), 1);
	cr_assert_eq(packets_in_turn(4096, 0), 4096);
	ur_emux_change(&x, &(struct ur_emux_attr){UR_EMUX_RR, 100, 1});
	cr_assert_eq(packets_in_turn(64, 1), 1);
	cr_assert_eq(packets_in_turn(0, 1), 100);
}

Test(emux, turn_continues_when_other_queues_become_ready)
{
	wake("0");
	cr_assert_eq(turn(0), 0);
	cr_assert(sends(0, 64, 1));
	wake("12");
	for (unsigned i = 1; i < 7; i++) {
		cr_assert_eq(turn(0), 0);
		cr_assert(sends(0, 64, 1));
	}
	cr_assert_eq(turn(0), 0);
	cr_assert_not(sends(0, 64, 1));
	ends(0);
	expect_turns(0, "120");
	cr_assert_eq(x.turns, 4);
	cr_assert_eq(x.blind_visits, 0);
}

/* SCHED-TURN-01 */
Test(emux, each_lane_has_one_open_turn)
{
	ur_emux_set_sl(&x, &q[2], 5);
	ur_emux_set_sl(&x, &q[3], 5);
	wake("0123");
	cr_assert_eq(turn(0), 0);
	cr_assert_eq(turn(5), 2);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert(sends(0, 4096, 0));
		cr_assert(sends(5, 64, 2));
		cr_assert_eq(turn(0), 0);
		cr_assert_eq(turn(5), 2);
	}
	cr_assert_not(sends(5, 64, 2));
	ends(5);
	cr_assert_eq(turn(5), 3);
	cr_assert_eq(turn(0), 0);
	cr_assert_not(sends(0, 4096, 0));
	ends(0);
	cr_assert_eq(turn(0), 1);
	cr_assert_eq(x.turns, 4);
}

/* SCHED-PREFETCH-02 */
Test(emux, the_next_queue_is_known_while_a_turn_is_open)
{
	cr_assert_null(ur_emux_peek_next(&x, 0));
	wake("0");
	cr_assert_null(ur_emux_peek_next(&x, 0));
	cr_assert_eq(turn(0), 0);
	cr_assert_null(ur_emux_peek_next(&x, 0));
	wake("12");
	cr_assert_eq(ur_emux_peek_next(&x, 0), &q[1]);
	cr_assert_null(ur_emux_peek_next(&x, 1));
	ends(0);
	cr_assert_null(ur_emux_peek_next(&x, 0));
}

/* SCHED-BLIND-01 */
Test(emux, turn_without_a_packet_is_counted)
{
	wake("01");
	cr_assert_eq(turn(0), 0);
	ends(0);
	cr_assert_eq(x.blind_visits, 1);
	cr_assert_eq(turn(0), 1);
	sends(0, 64, 1);
	ends(0);
	cr_assert_eq(x.blind_visits, 1);
	/* Also if the queue turned out to have nothing to send. */
	cr_assert_eq(turn(0), 0);
	sleeps(0);
	ends(0);
	cr_assert_eq(x.blind_visits, 2);
	/* Packets of one turn do not count for the next. */
	cr_assert_eq(turn(0), 1);
	ends(0);
	cr_assert_eq(x.blind_visits, 3);
	cr_assert_eq(x.turns, 4);
}

/* ---- policies ---- */

/* SCHED-POLICY-01 */
Test(emux, round_robin_knows_neither_weight_nor_priority)
{
	ur_emux_set_share(&x, &q[0], 0, 255);
	ur_emux_set_share(&x, &q[1], 7, 1);
	wake("01");
	expect_turns(0, "0101");
	cr_assert_eq(packets_in_turn(64, 1), 8);
	cr_assert_eq(packets_in_turn(64, 1), 8);
}

/* SCHED-POLICY-01 */
Test(emux, weighted_turn_is_weight_times_as_long)
{
	start_with(UR_EMUX_WRR);
	ur_emux_set_share(&x, &q[0], 0, 3);
	ur_emux_set_share(&x, &q[1], 7, 1);
	ur_emux_set_share(&x, &q[2], 0, 255);
	wake("012");
	cr_assert_eq(packets_in_turn(64, 1), 24);
	cr_assert_eq(packets_in_turn(64, 1), 8);
	cr_assert_eq(packets_in_turn(64, 1), 2040);
	cr_assert_eq(packets_in_turn(4096, 0), 12);
	cr_assert_eq(packets_in_turn(4096, 0), 4);
	cr_assert_eq(packets_in_turn(4096, 0), 1020);
	expect_turns(0, "012");
}

/* SCHED-POLICY-01 */
Test(emux, weighted_turn_of_the_greatest_length_does_not_overflow)
{
	ur_emux_init(&x, &(struct ur_emux_attr){UR_EMUX_WRR, 1000, 1 << 24}, &vl);
	ur_emux_set_share(&x, &q[0], 0, 255);
	wake("0");
	cr_assert_eq(packets_in_turn(1 << 24, 0), 255);
	ur_emux_change(&x, &(struct ur_emux_attr){UR_EMUX_WRR, 1 << 24, 1});
	cr_assert_eq(packets_in_turn(0, 1 << 24), 255);
}

/* SCHED-POLICY-01 */
Test(emux, strict_priority_7_goes_before_6_and_within_one_by_turns)
{
	start_with(UR_EMUX_STRICT);
	for (unsigned i = 0; i < 4; i++)
		ur_emux_set_share(&x, &q[i], (uint8_t[]){0, 6, 7, 6}[i], 5);
	wake("0");
	expect_turns(0, "0");
	wake("1");
	expect_turns(0, "11");
	wake("32");
	expect_turns(0, "222");
	sleeps(2);
	expect_turns(0, "1313");
	cr_assert_eq(packets_in_turn(64, 1), 8);
	sleeps(1);
	expect_turns(0, "33");
	sleeps(3);
	expect_turns(0, "00");
}

/* SCHED-POLICY-01 */
Test(emux, queue_of_higher_priority_waits_for_the_end_of_a_turn)
{
	start_with(UR_EMUX_STRICT);
	ur_emux_set_share(&x, &q[1], 7, 1);
	wake("0");
	cr_assert_eq(turn(0), 0);
	cr_assert(sends(0, 64, 1));
	wake("1");
	cr_assert_eq(turn(0), 0);
	ends(0);
	expect_turns(0, "11");
}

/* SCHED-LIVE-01, SCHED-POLICY-01 */
Test(emux, policy_changes_while_queues_are_ready_and_held)
{
	ur_emux_set_share(&x, &q[1], 3, 2);
	ur_emux_set_share(&x, &q[3], 3, 2);
	behind(3, &pace);
	pace.closed = true;
	wake("0123");
	cr_assert_eq(turn(0), 0);
	sends(0, 64, 1);
	policy(UR_EMUX_STRICT);
	expect_turns(0, "11");
	open_for(&pace, 1);
	expect_turns(0, "1313");
	policy(UR_EMUX_WRR);
	cr_assert_eq(x.ready_cnt, 4);
	cr_assert_eq(packets_in_turn(64, 1), 8);
	cr_assert_eq(packets_in_turn(64, 1), 16);
	policy(UR_EMUX_RR);
	expect_turns(0, "01230123");
}

/* ---- the tables change ---- */

/* SCHED-LIVE-01 */
Test(emux, queue_of_a_level_that_lost_its_lane_waits_for_its_return)
{
	behind(1, &pace);
	pace.closed = true;
	wake("012");
	cr_assert_eq(turn(0), 0);
	sends(0, 64, 1);
	tables(0);
	policy(UR_EMUX_RR);
	for (unsigned i = 0; i < 3; i++)
		expect(i, UR_EMUX_UNSERVED);
	cr_assert_eq(x.ready_lanes, 0);
	cr_assert_eq(x.held_cnt, 0);
	expect_waiting(&pace, "");
	sleeps(2);
	wake("3");
	expect(3, UR_EMUX_UNSERVED);
	tables(14);
	policy(UR_EMUX_RR);
	expect_waiting(&pace, "1");
	expect(2, UR_EMUX_IDLE);
	expect_turns(0, "0303");
}

/* SCHED-LIVE-01 */
Test(emux, open_turn_ends_when_the_length_of_turns_changes)
{
	wake("01");
	cr_assert_eq(turn(0), 0);
	for (unsigned i = 0; i < 7; i++)
		cr_assert(sends(0, 64, 1));
	ur_emux_change(&x, &(struct ur_emux_attr){UR_EMUX_RR, UR_EMUX_WQES, UR_EMUX_BURST});
	ur_emux_validate(&x);
	cr_assert_null(x.turn[0].queue);
	cr_assert_eq(packets_in_turn(64, 1), 8);
}
