/* SPDX-License-Identifier: BSD-3-Clause */
#include "emux_table.h"

/* SCHED-SPARSE-01: a queue that has had less than its share goes before those with a backlog. */

static void start_leading(enum ur_emux_policy policy)
{
	start_with(policy);
	for (unsigned i = 0; i < 8; i++)
		q[i].may_lead = true;
}

/* Queues 0, 1, ... use up one turn each, so that they have a backlog. */
static void backlog(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ur_emux_set(&x, &q[i], true);
		cr_assert_eq(turn(0), i);
		ends(0);
	}
}

/* The turn of queue `i`, which is next, and in which it sends all it has. */
static void sends_all(unsigned i)
{
	cr_assert_eq(turn(0), i);
	cr_assert(sends(0, 100, 1));
	sleeps(i);
}

/* Queue 4 becomes ready so often, goes first, and sends all it has. */
static void comes_and_goes(unsigned times, uint32_t bytes)
{
	while (times--) {
		wake("4");
		cr_assert_eq(turn(0), 4);
		cr_assert(sends(0, bytes, 1));
		sleeps(4);
	}
}

Test(emux_sparse, goes_before_the_backlog_and_after_others_like_it)
{
	start_leading(UR_EMUX_RR);
	backlog(3);
	expect_turns(0, "012");
	wake("43");
	sends_all(4);
	sends_all(3);
	expect_turns(0, "012012");
}

Test(emux_sparse, waits_for_the_end_of_a_turn)
{
	start_leading(UR_EMUX_RR);
	backlog(2);
	cr_assert_eq(turn(0), 0);
	cr_assert(sends(0, 100, 1));
	wake("3");
	cr_assert_eq(turn(0), 0);
	ends(0);
	sends_all(3);
	expect_turns(0, "1");
}

Test(emux_sparse, what_does_not_fit_into_one_turn_is_a_backlog)
{
	start_leading(UR_EMUX_RR);
	backlog(2);
	wake("3");
	expect_turns(0, "3013013");
	/* And is taken for one the next time, but not the time after that. */
	sleeps(3);
	expect_turns(0, "0101");
	wake("3");
	expect_turns(0, "01");
	sends_all(3);
	expect_turns(0, "01");
	wake("3");
	sends_all(3);
}

/* It may come back while its share lasts, which is as much as a queue with a backlog has in each round. */
Test(emux_sparse, goes_first_until_its_share_of_the_round_is_spent)
{
	start_leading(UR_EMUX_RR);
	backlog(3);
	expect_turns(0, "012");
	comes_and_goes(4, 4096);
	wake("4");
	expect_turns(0, "012");
	sends_all(4);
	/* That was a turn of the backlog; a new share begins with it. */
	wake("4");
	sends_all(4);
	expect_turns(0, "012");
}

/* Each message, however short, costs a 256th of a turn at least. */
Test(emux_sparse, a_share_is_of_256_messages_at_most)
{
	start_leading(UR_EMUX_RR);
	backlog(2);
	comes_and_goes(256, 1);
	wake("4");
	expect_turns(0, "01");
	sends_all(4);
}

Test(emux_sparse, without_a_backlog_queues_are_served_as_they_come)
{
	start_leading(UR_EMUX_RR);
	wake("210");
	sends_all(2);
	wake("2");
	sends_all(1);
	wake("1");
	sends_all(0);
	sends_all(2);
	sends_all(1);
	cr_assert_eq(x.ready_lanes, 0);
}

Test(emux_sparse, first_turn_comes_first_whenever_the_queue_was_created)
{
	start_leading(UR_EMUX_RR);
	backlog(2);
	for (unsigned i = 0; i < 40000; i++)
		expect_turns(0, "01");
	ur_emux_queue_init(&x, &q[5], 0, 0);
	q[5].may_lead = true;
	wake("5");
	sends_all(5);
}

Test(emux_sparse, weighted_turns_do_so_too)
{
	start_leading(UR_EMUX_WRR);
	ur_emux_set_share(&x, &q[3], 0, 3);
	backlog(2);
	wake("3");
	cr_assert_eq(packets_in_turn(64, 1), 24);
	expect_turns(0, "013");
}

Test(emux_sparse, priorities_do_not)
{
	start_leading(UR_EMUX_STRICT);
	wake("012");
	expect_turns(0, "01");
	wake("3");
	expect_turns(0, "20132013");
}

Test(emux_sparse, nor_do_queues_that_may_not_or_lanes_that_are_in_turn)
{
	start_leading(UR_EMUX_RR);
	q[3].may_lead = false;
	backlog(2);
	wake("34");
	sends_all(4);
	expect_turns(0, "01");
	sends_all(3);
	ur_emux_change(&x, &(struct ur_emux_attr){UR_EMUX_RR, UR_EMUX_WQES, UR_EMUX_BURST, true});
	for (unsigned i = 0; i < 8; i++)
		ur_emux_remap(&x, &q[i]);
	wake("4");
	expect_turns(0, "014");
}

/* A paced queue sends one packet each time that its gate opens: it needs no longer turn. */
Test(emux_sparse, turn_that_a_gate_ends_was_not_too_short)
{
	start_leading(UR_EMUX_RR);
	backlog(2);
	behind(3, &pace);
	wake("3");
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(turn(0), 3);
		cr_assert(sends(0, 4096, 0));
		pace.closed = true;
		ends(0);
		expect(3, UR_EMUX_HELD);
		open_for(&pace, 1);
	}
	/* Its share is spent. */
	expect_turns(0, "01");
	sends_all(3);
	wake("3");
	sends_all(3);
}

Test(emux_sparse, queue_at_a_gate_leads_when_it_opens)
{
	start_leading(UR_EMUX_RR);
	backlog(2);
	behind(3, &pace);
	pace.closed = true;
	wake("3");
	expect_turns(0, "01");
	open_for(&pace, 1);
	sends_all(3);
	expect_turns(0, "01");
}
