/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "admission/sst.h"

#define LIFE UINT64_C(1000000)

static const uint8_t peer_a[16] = {0xfe, 0x80, [15] = 1}, peer_b[16] = {0xfe, 0x80, [15] = 2};

static struct ur_sst table;

static void set_up(uint32_t cnt)
{
	ur_sst_init(&table, malloc(ur_sst_size(cnt)), cnt, LIFE, 12345);
}

static struct ur_sst_entry *new_entry(void)
{
	set_up(1);
	return ur_sst_get(&table, peer_a, 7);
}

Test(admission_sst, one_entry_for_each_peer_and_pool)
{
	struct ur_sst_entry *e, *f, *g;

	set_up(3);
	e = ur_sst_get(&table, peer_a, 7);
	f = ur_sst_get(&table, peer_b, 7);
	g = ur_sst_get(&table, peer_a, 8);
	cr_assert(e && f && g && e != f && e != g && f != g);
	cr_assert_eq(ur_sst_get(&table, peer_a, 7), e);
	cr_assert_null(ur_sst_get(&table, peer_b, 8));
	ur_sst_put(&table, e);
	cr_assert_null(ur_sst_get(&table, peer_b, 8)); /* one reference is left */
	ur_sst_update(e, UR_ADM_A, 5, 0);
	ur_sst_put(&table, e);
	cr_assert_eq(table.used, 2);
	cr_assert_eq(ur_sst_get(&table, peer_b, 8), e);
	cr_assert(ur_sst_may_send(e, UR_ADM_NONE, 0), "of the former one nothing is known");
	cr_assert_eq(ur_sst_get(&table, peer_b, 7), f);
}

Test(admission_sst, many_entries_are_found_again)
{
	struct ur_sst_entry *e[500];

	set_up(500);
	for (uint32_t i = 0; i < 500; i++) {
		uint8_t key[16] = {[3] = (uint8_t)(i / 5), [12] = (uint8_t)(i / 5 * 7)};

		e[i] = ur_sst_get(&table, key, i % 5);
		cr_assert_not_null(e[i]);
	}
	for (uint32_t i = 0; i < 500; i++) {
		uint8_t key[16] = {[3] = (uint8_t)(i / 5), [12] = (uint8_t)(i / 5 * 7)};

		cr_assert_eq(ur_sst_get(&table, key, i % 5), e[i]);
		ur_sst_put(&table, e[i]);
		ur_sst_put(&table, e[i]);
	}
	cr_assert_eq(table.used, 0);
}

/* ADM-SST-02 */
Test(admission_sst, holds_back_exactly_what_would_be_refused)
{
	static const bool may[4][3] = {
		[UR_ADM_NA] = {true, true, true},
		[UR_ADM_A] = {false, true, false},
		[UR_ADM_NB] = {true, true, true},
		[UR_ADM_B] = {false, false, true},
	};
	struct ur_sst_entry *e = new_entry();

	for (uint8_t queue_class = 0; queue_class < 3; queue_class++)
		cr_assert(ur_sst_may_send(e, queue_class, 0), "nothing is known");
	for (uint8_t status = 0; status < 4; status++) {
		cr_assert(ur_sst_update(e, status, status, 0));
		for (uint8_t queue_class = 0; queue_class < 3; queue_class++)
			cr_assert_eq(ur_sst_may_send(e, queue_class, 0), may[status][queue_class],
				     "status %u, class %u", status, queue_class);
	}
}

/* ADM-SST-01 */
Test(admission_sst, older_statuses_are_ignored_around_the_wrap)
{
	static const uint16_t start[] = {0, 1, 32767, 32768, 65535};

	for (unsigned i = 0; i < 5; i++) {
		uint16_t g = start[i];
		struct ur_sst_entry *e = new_entry();

		cr_assert(ur_sst_update(e, UR_ADM_A, g, 0));
		cr_assert(!ur_sst_update(e, UR_ADM_NA, (uint16_t)(g - 1), 10));
		cr_assert(!ur_sst_update(e, UR_ADM_NA, (uint16_t)(g - 32767), 10));
		cr_assert_eq(e->updated_ns, 0);
		cr_assert(!ur_sst_update(e, UR_ADM_NA, g, 20),
			  "the same generation is the same status");
		cr_assert_eq(e->updated_ns, 20);
		cr_assert_eq(e->status, UR_ADM_A);
		cr_assert(ur_sst_update(e, UR_ADM_NB, (uint16_t)(g + 1), 30));
		cr_assert_eq(e->status, UR_ADM_NB);
		cr_assert(ur_sst_update(e, UR_ADM_B, (uint16_t)(g + 32000), 30));
		cr_assert_eq(e->status, UR_ADM_B);
	}
}

/* ADM-SST-01: only two bits of a hostile status count */
Test(admission_sst, a_status_out_of_range_is_one_in_range)
{
	struct ur_sst_entry *e = new_entry();

	cr_assert(ur_sst_update(e, 0xfd, 1, 0));
	cr_assert_eq(e->status, UR_ADM_A);
}

/* ADM-SST-03 */
Test(admission_sst, a_dead_receiver_blocks_no_sender_for_ever)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w = {0}, *out[1];

	cr_assert_eq(ur_sst_deadline(e), UINT64_MAX);
	ur_sst_update(e, UR_ADM_A, 100, 5000);
	ur_sst_wait(e, &w, UR_ADM_NONE);
	cr_assert_eq(ur_sst_deadline(e), 5000 + LIFE);
	cr_assert(!ur_sst_may_send(e, UR_ADM_NONE, 4999 + LIFE));
	cr_assert_eq(ur_sst_wake(e, out, 1, 4999 + LIFE), 0);
	cr_assert(ur_sst_may_send(e, UR_ADM_NONE, 5000 + LIFE));
	cr_assert_eq(ur_sst_wake(e, out, 1, 5000 + LIFE), 1);
	cr_assert_eq(out[0], &w);
	cr_assert_eq(ur_sst_deadline(e), UINT64_MAX);
	/* The peer has restarted and counts from the beginning. */
	cr_assert(ur_sst_update(e, UR_ADM_B, 1, 6000 + LIFE));
	cr_assert(!ur_sst_may_send(e, UR_ADM_CLASS_A, 6000 + LIFE));
}

/* ADM-SST-04 */
Test(admission_sst, a_change_wakes_waiters_in_order_up_to_the_limit)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w[6] = {0}, *out[6];
	static const uint8_t queue_class[6] = {UR_ADM_NONE,    UR_ADM_CLASS_B, UR_ADM_NONE,
					       UR_ADM_CLASS_A, UR_ADM_CLASS_B, UR_ADM_NONE};

	ur_sst_update(e, UR_ADM_A, 0, 0);
	for (unsigned i = 0; i < 6; i++)
		ur_sst_wait(e, &w[i], queue_class[i]);
	cr_assert_eq(ur_sst_wake(e, out, 6, 0), 1); /* in A: those with class A */
	cr_assert_eq(out[0], &w[3]);
	ur_sst_cancel_wait(e, &w[2]);
	ur_sst_cancel_wait(e, &w[2]);
	ur_sst_update(e, UR_ADM_NB, 1, 0);
	cr_assert_eq(ur_sst_wake(e, out, 0, 0), 0);
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 2);
	cr_assert(out[0] == &w[0] && out[1] == &w[1]);
	cr_assert(!w[0].waits && !w[1].waits && w[4].waits);
	ur_sst_wait(e, &w[0], UR_ADM_NONE); /* at the end of the list */
	cr_assert_eq(ur_sst_wake(e, out, 6, 0), 3);
	cr_assert(out[0] == &w[4] && out[1] == &w[5] && out[2] == &w[0]);
	cr_assert_eq(ur_sst_wake(e, out, 6, 0), 0);
}

/* ADM-SST-04 */
Test(admission_sst, waiting_twice_keeps_the_place_unless_the_class_is_new)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w[2] = {0}, *out[2];

	ur_sst_update(e, UR_ADM_A, 0, 0);
	ur_sst_wait(e, &w[0], UR_ADM_NONE);
	ur_sst_wait(e, &w[1], UR_ADM_NONE);
	ur_sst_wait(e, &w[0], UR_ADM_NONE);
	ur_sst_update(e, UR_ADM_NB, 1, 0);
	cr_assert_eq(ur_sst_wake(e, out, 1, 0), 1);
	cr_assert_eq(out[0], &w[0]);
	ur_sst_update(e, UR_ADM_B, 2, 0);
	ur_sst_wait(e, &w[0], UR_ADM_CLASS_A);
	ur_sst_wait(e, &w[1], UR_ADM_CLASS_A);
	ur_sst_update(e, UR_ADM_NA, 3, 0);
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 2);
	cr_assert(out[0] == &w[0] && out[1] == &w[1]);
}

/* ADM-SST-05 */
Test(admission_sst, no_waiter_waits_through_a_whole_cycle)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w[2] = {0}, *out[2];

	ur_sst_update(e, UR_ADM_A, 65534, 0);
	ur_sst_wait(e, &w[0], UR_ADM_NONE);
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 0);
	ur_sst_update(e, UR_ADM_B, 0, 0); /* NB has passed unnoticed */
	ur_sst_wait(e, &w[1], UR_ADM_NONE);
	cr_assert(!ur_sst_may_send(e, UR_ADM_NONE, 0));
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 1);
	cr_assert_eq(out[0], &w[0]);
	ur_sst_update(e, UR_ADM_A, 2, 0);
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 1);
	cr_assert_eq(out[0], &w[1]);
}

/* ADM-PAPER-02, ADM-PAPER-03 */
Test(admission_sst, of_a_pool_in_mode_paper_what_was_released_is_held_back_again)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w[4] = {0}, *out[4];

	e->paper = true;
	ur_sst_update(e, UR_ADM_A, 1, 0);
	ur_sst_wait(e, &w[0], UR_ADM_NONE);
	ur_sst_wait(e, &w[1], UR_ADM_CLASS_B);
	ur_sst_wait(e, &w[2], UR_ADM_NONE);
	cr_assert_null(ur_sst_next_refused(e));
	ur_sst_update(e, UR_ADM_NB, 2, 0);
	cr_assert_null(ur_sst_next_refused(e));
	cr_assert_eq(ur_sst_wake(e, out, 4, 0), 3, "all of them");
	cr_assert(w[0].released && !w[1].released && w[2].released, "a class is served next");
	ur_sst_release(e, &w[3]); /* did not have to wait */
	cr_assert_null(ur_sst_next_refused(e));
	ur_sst_update(e, UR_ADM_B, 3, 0);
	cr_assert_eq(ur_sst_next_refused(e), &w[0]);
	cr_assert(ur_sst_recall(e, &w[0]));
	cr_assert_eq(ur_sst_next_refused(e), &w[2]); /* was sent */
	cr_assert(!w[2].waits && !w[2].released);
	cr_assert_eq(ur_sst_next_refused(e), &w[3]);
	cr_assert(ur_sst_recall(e, &w[3]));
	cr_assert_null(ur_sst_next_refused(e));
	cr_assert_eq(ur_sst_wake(e, out, 4, 0), 0);
	ur_sst_update(e, UR_ADM_NA, 4, 0);
	cr_assert_eq(ur_sst_wake(e, out, 4, 0), 2);
	cr_assert(out[0] == &w[0] && out[1] == &w[3]);
	ur_sst_cancel_wait(e, &w[0]);
	ur_sst_cancel_wait(e, &w[3]);
	ur_sst_put(&table, e);
}

/* ADM-PAPER-04 */
Test(admission_sst, in_mode_paper_a_request_is_held_back_for_one_cycle_at_most)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w = {0}, x = {0}, *out[2];

	e->paper = true;
	ur_sst_update(e, UR_ADM_A, 65535, 0);
	ur_sst_wait(e, &w, UR_ADM_NONE);
	ur_sst_update(e, UR_ADM_B, 1, 0); /* NB was not heard of */
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 0, "not yet");
	ur_sst_wait(e, &x, UR_ADM_NONE);
	ur_sst_update(e, UR_ADM_NA, 2, 0);
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 2);
	ur_sst_update(e, UR_ADM_A, 3, 0);
	cr_assert_eq(ur_sst_next_refused(e), &w);
	cr_assert(!ur_sst_recall(e, &w), "a whole cycle: it goes");
	cr_assert_eq(ur_sst_next_refused(e), &x);
	cr_assert(ur_sst_recall(e, &x));
	ur_sst_update(e, UR_ADM_A, 7, 0); /* a whole cycle was not heard of */
	cr_assert_eq(ur_sst_wake(e, out, 2, 0), 1);
	cr_assert_eq(out[0], &x);
}

/* ADM-SST-03, ADM-PAPER-03, ADM-PAPER-04: generations from before an expiry do not count. */
Test(admission_sst, in_mode_paper_what_an_expired_status_releases_goes)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w = {0}, x = {0}, *out[2];

	e->paper = true;
	ur_sst_release(e, &x); /* nothing is known */
	ur_sst_update(e, UR_ADM_A, 5000, 0);
	cr_assert_eq(ur_sst_next_refused(e), &x);
	cr_assert(ur_sst_recall(e, &x), "it was not held back for 5000 changes");
	ur_sst_wait(e, &w, UR_ADM_NONE);
	cr_assert_eq(ur_sst_wake(e, out, 1, LIFE), 1);
	cr_assert(out[0] == &x && !x.released);
	ur_sst_update(e, UR_ADM_B, 9003, LIFE);
	cr_assert_null(ur_sst_next_refused(e));
	cr_assert_eq(ur_sst_wake(e, out, 2, LIFE), 0, "w does wait");
	cr_assert(w.waits);
}

Test(admission_sst, an_entry_with_a_waiter_is_not_reused, .signal = SIGABRT)
{
	struct ur_sst_entry *e = new_entry();
	struct ur_sst_waiter w = {0};

	ur_sst_update(e, UR_ADM_A, 0, 0);
	ur_sst_wait(e, &w, UR_ADM_NONE);
	ur_sst_put(&table, e);
}
