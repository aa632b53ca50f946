/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "transport/loss/retry.h"

#define TIMEOUT	   14
#define TIMEOUT_NS UINT64_C(67108864) /* 4.096 us * 2^14 */

static struct ur_retry t;
static bool timeout;

static void start(uint8_t retry_cnt, uint8_t rnr_retry)
{
	ur_retry_init(&t);
	ur_retry_limits(&t, retry_cnt, rnr_retry, TIMEOUT);
}

/* RC-TIMER-ACK-01 */
Test(retry, the_timer_runs_while_something_is_outstanding)
{
	start(7, 7);
	ur_retry_follow(&t, false, 10);
	cr_assert_eq(t.ack_deadline_ns, UR_NEVER);
	ur_retry_follow(&t, true, 10);
	cr_assert_eq(t.ack_deadline_ns, 10 + TIMEOUT_NS);
	ur_retry_follow(&t, true, 500);
	cr_assert_eq(t.ack_deadline_ns, 10 + TIMEOUT_NS, "it keeps its deadline");
	ur_retry_progress(&t, true, false, 900);
	cr_assert_eq(t.ack_deadline_ns, 900 + TIMEOUT_NS);
	ur_retry_follow(&t, false, 1000);
	cr_assert_eq(t.ack_deadline_ns, UR_NEVER);
}

/* RC-RETRY-LIMIT-01, RC-TIMER-ACK-02 */
Test(retry, a_dead_peer_costs_one_timeout_more_than_retry_cnt)
{
	uint64_t now = 0;

	start(2, 0);
	ur_retry_follow(&t, true, now);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ur_retry_on_timer(&t, true, now + TIMEOUT_NS - 1, &timeout),
			     UR_RECOVERY_IGNORE);
		cr_assert_not(timeout);
		now += TIMEOUT_NS;
		cr_assert_eq(ur_retry_on_timer(&t, true, now, &timeout), UR_RECOVERY_REWIND);
		cr_assert(timeout);
	}
	cr_assert_eq(ur_retry_on_timer(&t, true, now + TIMEOUT_NS, &timeout), UR_RECOVERY_FAILED);
	cr_assert_eq(t.ack_deadline_ns, UR_NEVER);
}

Test(retry, progress_refills_what_it_proves)
{
	start(1, 1);
	ur_retry_follow(&t, true, 0);
	cr_assert_eq(ur_retry_on_timer(&t, true, TIMEOUT_NS, &timeout), UR_RECOVERY_REWIND);
	cr_assert(ur_retry_spend_rnr(&t));
	cr_assert_eq(ur_retry_left(&t), 0);
	ur_retry_progress(&t, true, false, TIMEOUT_NS);
	cr_assert_eq(ur_retry_left(&t), 1);
	cr_assert_eq(t.rnr_retries_spent, 1, "what it was not ready for is not executed yet");
	ur_retry_progress(&t, true, true, TIMEOUT_NS);
	cr_assert_eq(t.rnr_retries_spent, 0);
}

/* RC-RNR-LIMIT-01 */
Test(retry, rnr_naks_are_bounded_but_for_7)
{
	start(3, 2);
	cr_assert(ur_retry_spend_rnr(&t));
	cr_assert(ur_retry_spend_rnr(&t));
	cr_assert_not(ur_retry_spend_rnr(&t));
	start(3, 7);
	for (unsigned i = 0; i < 1000; i++)
		cr_assert(ur_retry_spend_rnr(&t));
}

Test(retry, an_rnr_wait_stands_before_the_timeout)
{
	start(3, 7);
	ur_retry_follow(&t, true, 0);
	t.retries_spent = 2;
	cr_assert(ur_retry_spend_rnr(&t));
	ur_retry_wait(&t, 4 * TIMEOUT_NS, 0);
	cr_assert_eq(ur_retry_left(&t), 3, "a peer that answers lives");
	ur_retry_follow(&t, true, 0);
	cr_assert_not(ur_retry_is_due(&t, 2 * TIMEOUT_NS));
	cr_assert_eq(ur_retry_on_timer(&t, true, 4 * TIMEOUT_NS, &timeout), UR_RECOVERY_REWIND);
	cr_assert_not(timeout);
	cr_assert(!t.is_waiting);
	cr_assert_eq(t.ack_deadline_ns, 5 * TIMEOUT_NS);
}

/* 0 means "not waiting". */
Test(retry, a_wait_of_no_time_at_time_0_is_a_wait)
{
	start(3, 7);
	ur_retry_wait(&t, 0, 0);
	cr_assert(t.is_waiting);
}

/* RC-RETRY-RTO-03 */
Test(retry, doubling_ends_at_an_eighth_of_the_timeout)
{
	start(3, 7);
	cr_assert_eq(ur_retry_silence_ns(&t, 1000), TIMEOUT_NS / 8);
	cr_assert_eq(ur_retry_silence_ns(&t, TIMEOUT_NS), TIMEOUT_NS);
	ur_retry_limits(&t, 3, 7, 0);
	cr_assert_eq(ur_retry_silence_ns(&t, 1000), UR_NEVER);
}

Test(retry, a_timeout_of_0_never_expires)
{
	start(3, 7);
	ur_retry_limits(&t, 3, 7, 0);
	ur_retry_follow(&t, true, 0);
	cr_assert_eq(t.ack_deadline_ns, UR_NEVER);
	cr_assert_eq(ur_retry_on_timer(&t, true, UINT64_C(1) << 62, &timeout), UR_RECOVERY_IGNORE);
}
