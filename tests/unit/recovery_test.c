/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "timer/wheel.h"
#include "transport/loss/recovery.h"

#define TIMEOUT	   14
#define TIMEOUT_NS UINT64_C(67108864) /* 4.096 us * 2^14 */
#define RNR_NS	   UINT64_C(640000)

static struct ur_recovery r;
static bool timeout;

static void start(uint32_t first, uint8_t retry_cnt, uint8_t rnr_retry)
{
	ur_recovery_init(&r, ur_psn(first), 16);
	ur_recovery_limits(&r, retry_cnt, rnr_retry, TIMEOUT);
}

static void send(unsigned packets, uint64_t now_ns)
{
	while (packets--)
		ur_recovery_on_send(&r, 1, now_ns);
}

static void expect(uint32_t una, uint32_t nxt, uint32_t max)
{
	cr_expect_eq(r.una.v, una, "una %#x, not %#x", r.una.v, una);
	cr_expect_eq(r.nxt.v, nxt, "nxt %#x, not %#x", r.nxt.v, nxt);
	cr_expect_eq(r.max.v, max, "max %#x, not %#x", r.max.v, max);
}

/* Lets the current deadline expire. */
static enum ur_recovery_verdict expire(void)
{
	return ur_recovery_on_timer(&r, ur_recovery_deadline(&r), &timeout);
}

Test(recovery, begins_with_nothing_in_flight_and_no_timer)
{
	start(0xfffffe, 7, 7);
	expect(0xfffffe, 0xfffffe, 0xfffffe);
	cr_assert_eq(ur_recovery_in_flight(&r), 0);
	cr_assert_eq(ur_recovery_credit(&r), 16);
	cr_assert_not(ur_recovery_is_resend(&r));
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
	cr_assert_eq(ur_recovery_on_timer(&r, 1000, &timeout), UR_RECOVERY_IGNORE);
}

Test(recovery, counts_across_the_wrap)
{
	start(0xfffffe, 7, 7);
	send(4, 0);
	expect(0xfffffe, 0x000002, 0x000002);
	cr_assert_eq(ur_recovery_in_flight(&r), 4);
	cr_assert_eq(ur_recovery_credit(&r), 12);
	cr_assert_not(ur_recovery_on_ack(&r, ur_psn(0x000001), 10));
	expect(0x000001, 0x000002, 0x000002);
	cr_assert_not(ur_recovery_on_ack(&r, ur_psn(0x000002), 20));
	cr_assert_eq(ur_recovery_in_flight(&r), 0);
}

Test(recovery, a_read_request_takes_the_psns_of_its_responses)
{
	start(0xfffffc, 7, 7);
	ur_recovery_on_send(&r, 8, 0);
	expect(0xfffffc, 0x000004, 0x000004);
	cr_assert_eq(ur_recovery_in_flight(&r), 8);
	cr_assert_eq(ur_recovery_credit(&r), 8);
}

Test(recovery, a_partly_answered_read_is_asked_for_from_the_missing_response)
{
	start(0xfffffc, 7, 7);
	ur_recovery_on_send(&r, 8, 0);
	cr_assert_not(ur_recovery_on_ack(&r, ur_psn(0xffffff), 1));
	cr_assert_eq(ur_recovery_gap(&r, 2), UR_RECOVERY_REWIND);
	expect(0xffffff, 0xffffff, 0x000004);
	ur_recovery_on_send(&r, 5, 3);
	expect(0xffffff, 0x000004, 0x000004);
	cr_assert_not(ur_recovery_is_resend(&r));
}

Test(recovery, a_full_window_gives_no_credit)
{
	start(0xfffff8, 7, 7);
	send(16, 0);
	cr_assert_eq(ur_recovery_credit(&r), 0);
	ur_recovery_on_ack(&r, ur_psn(0xfffff9), 1);
	cr_assert_eq(ur_recovery_credit(&r), 1);
}

/* RC-RETRY-GAP-01 */
Test(recovery, a_gap_goes_back_to_the_oldest_unacknowledged)
{
	start(0xfffffe, 7, 7);
	send(6, 0);
	ur_recovery_on_ack(&r, ur_psn(0xffffff), 10);
	cr_assert_eq(ur_recovery_gap(&r, 10), UR_RECOVERY_REWIND);
	expect(0xffffff, 0xffffff, 0x000004);
	cr_assert(ur_recovery_is_resend(&r));
	cr_assert_eq(ur_recovery_credit(&r), 16);
	send(5, 20);
	expect(0xffffff, 0x000004, 0x000004);
	cr_assert_not(ur_recovery_is_resend(&r));
}

Test(recovery, a_burst_of_stale_responses_rewinds_once)
{
	start(0xfffffe, 7, 7);
	send(6, 0);
	cr_assert_eq(ur_recovery_gap(&r, 10), UR_RECOVERY_REWIND);
	cr_assert_eq(ur_recovery_gap(&r, 11), UR_RECOVERY_IGNORE);
	send(3, 12);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(ur_recovery_gap(&r, 13 + i), UR_RECOVERY_IGNORE);
	expect(0xfffffe, 0x000001, 0x000004);
	cr_assert_eq(ur_retry_left(&r.retry), 7, "a peer that sends NAKs is alive");
}

Test(recovery, a_second_loss_after_progress_rewinds_again)
{
	start(0xfffffe, 1, 7);
	send(6, 0);
	cr_assert_eq(ur_recovery_gap(&r, 10), UR_RECOVERY_REWIND);
	send(6, 11);
	ur_recovery_on_ack(&r, ur_psn(0x000001), 12);
	cr_assert_eq(ur_recovery_gap(&r, 12), UR_RECOVERY_REWIND);
	expect(0x000001, 0x000001, 0x000004);
}

Test(recovery, a_gap_without_anything_in_flight_is_ignored)
{
	start(5, 7, 7);
	cr_assert_eq(ur_recovery_gap(&r, 1), UR_RECOVERY_IGNORE);
	send(1, 2);
	ur_recovery_on_ack(&r, ur_psn(6), 3);
	cr_assert_eq(ur_recovery_gap(&r, 4), UR_RECOVERY_IGNORE);
	cr_assert_eq(ur_retry_left(&r.retry), 7);
}

Test(recovery, a_gap_costs_nothing_when_the_missing_packet_is_next_anyway)
{
	start(5, 0, 7);
	send(3, 0);
	ur_recovery_rnr(&r, RNR_NS, 1);
	expire();
	cr_assert_eq(ur_recovery_gap(&r, 2 * RNR_NS), UR_RECOVERY_IGNORE);
	expect(5, 5, 8);
}

Test(recovery, a_gap_without_retries_fails)
{
	start(5, 0, 7);
	send(3, 0);
	cr_assert_eq(ur_recovery_gap(&r, 1), UR_RECOVERY_FAILED);
}

Test(recovery, an_ack_beyond_the_place_of_resending_moves_it)
{
	start(0xfffffe, 7, 7);
	send(6, 0);
	ur_recovery_gap(&r, 10);
	send(1, 11);
	expect(0xfffffe, 0xffffff, 0x000004);
	cr_assert(ur_recovery_on_ack(&r, ur_psn(0x000002), 12));
	expect(0x000002, 0x000002, 0x000004);
	cr_assert(ur_recovery_is_resend(&r));
}

Test(recovery, an_ack_up_to_the_place_of_resending_leaves_it)
{
	start(0xfffffe, 7, 7);
	send(6, 0);
	ur_recovery_gap(&r, 10);
	send(2, 11);
	cr_assert_not(ur_recovery_on_ack(&r, ur_psn(0x000000), 12));
	expect(0x000000, 0x000000, 0x000004);
}

Test(recovery, an_ack_of_everything_while_resending_ends_the_resend)
{
	start(0xfffffe, 7, 7);
	send(6, 0);
	ur_recovery_gap(&r, 10);
	cr_assert(ur_recovery_on_ack(&r, ur_psn(0x000004), 12));
	expect(0x000004, 0x000004, 0x000004);
	cr_assert_not(ur_recovery_is_resend(&r));
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

/* RC-TIMER-ACK-01 */
Test(recovery, the_timer_runs_from_the_oldest_send_and_restarts_with_progress)
{
	start(0xfffffe, 7, 7);
	send(1, 1000);
	cr_assert_eq(ur_recovery_deadline(&r), 1000 + TIMEOUT_NS);
	send(3, 2000);
	cr_assert_eq(ur_recovery_deadline(&r), 1000 + TIMEOUT_NS);
	ur_recovery_on_ack(&r, ur_psn(0x000000), 3000);
	cr_assert_eq(ur_recovery_deadline(&r), 3000 + TIMEOUT_NS);
	ur_recovery_on_ack(&r, ur_psn(0x000002), 4000);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

Test(recovery, a_timeout_field_of_31_does_not_overflow)
{
	ur_recovery_init(&r, ur_psn(0), 16);
	ur_recovery_limits(&r, 7, 7, 31);
	send(1, 5);
	cr_assert_eq(ur_recovery_deadline(&r), UINT64_C(8796093022208) + 5);
}

Test(recovery, a_timeout_field_of_0_never_expires)
{
	ur_recovery_init(&r, ur_psn(0), 16);
	ur_recovery_limits(&r, 7, 7, 0);
	send(4, 5);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
	ur_recovery_on_ack(&r, ur_psn(1), 6);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

Test(recovery, switching_the_timeout_off_stops_the_timer)
{
	start(0, 7, 7);
	send(1, 5);
	ur_recovery_limits(&r, 7, 7, 0);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

Test(recovery, before_its_deadline_nothing_expires)
{
	start(0, 7, 7);
	send(2, 100);
	cr_assert_eq(ur_recovery_on_timer(&r, 99 + TIMEOUT_NS, &timeout), UR_RECOVERY_IGNORE);
	cr_assert_not(timeout);
	expect(0, 2, 2);
}

/* RC-TIMER-ACK-02, RC-RETRY-LIMIT-01 */
Test(recovery, a_dead_peer_costs_one_timeout_more_than_retry_cnt)
{
	start(0xffffff, 3, 7);
	send(4, 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(expire(), UR_RECOVERY_REWIND);
		cr_assert(timeout);
		expect(0xffffff, 0xffffff, 0x000003);
		cr_assert_eq(ur_recovery_deadline(&r), (i + 2) * TIMEOUT_NS);
		send(4, (i + 1) * TIMEOUT_NS);
	}
	cr_assert_eq(expire(), UR_RECOVERY_FAILED);
	cr_assert(timeout);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

Test(recovery, retry_cnt_7_is_finite)
{
	unsigned timeouts = 0;

	start(0, 7, 7);
	send(1, 0);
	while (timeouts < 100 && expire() == UR_RECOVERY_REWIND)
		timeouts++;
	cr_assert_eq(timeouts, 7);
}

/* RC-RETRY-PROGRESS-01 */
Test(recovery, progress_refills_the_retries)
{
	start(0xfffffe, 1, 1);
	send(6, 0);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	send(6, TIMEOUT_NS);
	ur_recovery_on_ack(&r, ur_psn(0xffffff), TIMEOUT_NS + 1);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	cr_assert_eq(expire(), UR_RECOVERY_FAILED);
}

Test(recovery, a_timeout_permits_another_rewind)
{
	start(0xfffffe, 7, 7);
	send(6, 0);
	cr_assert_eq(ur_recovery_gap(&r, 1), UR_RECOVERY_REWIND);
	send(6, 2);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	send(3, TIMEOUT_NS + 2);
	cr_assert_eq(ur_recovery_gap(&r, TIMEOUT_NS + 3), UR_RECOVERY_REWIND);
	expect(0xfffffe, 0xfffffe, 0x000004);
	cr_assert_eq(ur_recovery_gap(&r, TIMEOUT_NS + 4), UR_RECOVERY_IGNORE);
}

Test(recovery, an_rnr_nak_waits_and_then_sends_again)
{
	start(0xfffffe, 7, 7);
	send(6, 0);
	cr_assert_eq(ur_recovery_rnr(&r, RNR_NS, 50), UR_RECOVERY_REWIND);
	expect(0xfffffe, 0xfffffe, 0x000004);
	cr_assert_eq(ur_recovery_deadline(&r), 50 + RNR_NS);
	cr_assert_eq(ur_recovery_on_timer(&r, 49 + RNR_NS, &timeout), UR_RECOVERY_IGNORE);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	cr_assert_not(timeout);
	cr_assert(!r.retry.is_waiting);
	cr_assert_eq(ur_recovery_deadline(&r), 50 + RNR_NS + TIMEOUT_NS);
}

Test(recovery, during_an_rnr_wait_the_ack_timer_stands_still)
{
	start(0, 7, 7);
	send(2, 0);
	ur_recovery_rnr(&r, 10 * TIMEOUT_NS, 0);
	cr_assert_eq(ur_recovery_on_timer(&r, 9 * TIMEOUT_NS, &timeout), UR_RECOVERY_IGNORE);
	cr_assert_not(timeout);
	cr_assert_eq(ur_retry_left(&r.retry), 7);
}

Test(recovery, a_wait_of_no_time_at_time_0_is_a_wait)
{
	start(0, 7, 7);
	send(1, 0);
	cr_assert_eq(ur_recovery_rnr(&r, 0, 0), UR_RECOVERY_REWIND);
	cr_assert(r.retry.is_waiting);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	cr_assert_not(timeout);
}

Test(recovery, naks_during_an_rnr_wait_are_ignored)
{
	start(0, 7, 2);
	send(3, 0);
	ur_recovery_rnr(&r, RNR_NS, 0);
	cr_assert_eq(ur_recovery_rnr(&r, 9 * RNR_NS, 1), UR_RECOVERY_IGNORE);
	cr_assert_eq(ur_recovery_gap(&r, 2), UR_RECOVERY_IGNORE);
	cr_assert_eq(ur_recovery_deadline(&r), RNR_NS);
	cr_assert_eq(r.retry.rnr_retries_spent, 1);
}

Test(recovery, an_rnr_nak_without_anything_in_flight_is_ignored)
{
	start(0, 7, 0);
	cr_assert_eq(ur_recovery_rnr(&r, RNR_NS, 0), UR_RECOVERY_IGNORE);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

/* RC-RNR-LIMIT-01 */
Test(recovery, rnr_retries_run_out)
{
	start(0, 7, 2);
	send(1, 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ur_recovery_rnr(&r, RNR_NS, 0), UR_RECOVERY_REWIND);
		cr_assert_eq(expire(), UR_RECOVERY_REWIND);
		send(1, RNR_NS);
	}
	cr_assert_eq(ur_recovery_rnr(&r, RNR_NS, 0), UR_RECOVERY_FAILED);
}

Test(recovery, rnr_retry_7_never_runs_out)
{
	start(0, 7, 7);
	send(1, 0);
	for (unsigned i = 0; i < 1000; i++) {
		cr_assert_eq(ur_recovery_rnr(&r, RNR_NS, 0), UR_RECOVERY_REWIND);
		cr_assert_eq(expire(), UR_RECOVERY_REWIND);
		send(1, RNR_NS);
	}
}

Test(recovery, progress_refills_the_rnr_retries)
{
	start(0, 7, 1);
	send(2, 0);
	ur_recovery_rnr(&r, RNR_NS, 0);
	expire();
	send(2, RNR_NS);
	ur_recovery_on_ack(&r, ur_psn(1), RNR_NS + 1);
	cr_assert_eq(ur_recovery_rnr(&r, RNR_NS, RNR_NS + 2), UR_RECOVERY_REWIND);
}

Test(recovery, a_peer_that_answers_rnr_is_not_dead)
{
	start(0, 1, 7);
	send(1, 0);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	send(1, TIMEOUT_NS);
	ur_recovery_rnr(&r, RNR_NS, TIMEOUT_NS + 1);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	send(1, 2 * TIMEOUT_NS);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	cr_assert_eq(expire(), UR_RECOVERY_FAILED);
}

Test(recovery, timeouts_do_not_refill_the_rnr_retries)
{
	start(0, 7, 1);
	send(1, 0);
	ur_recovery_rnr(&r, RNR_NS, 0);
	expire();
	send(1, RNR_NS);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	cr_assert(timeout);
	send(1, 2 * TIMEOUT_NS);
	cr_assert_eq(ur_recovery_rnr(&r, RNR_NS, 2 * TIMEOUT_NS), UR_RECOVERY_FAILED);
}

Test(recovery, an_ack_of_what_was_waited_for_ends_the_wait)
{
	start(0xffffff, 7, 7);
	send(3, 0);
	ur_recovery_rnr(&r, RNR_NS, 0);
	cr_assert(ur_recovery_on_ack(&r, ur_psn(0x000000), 10));
	expect(0x000000, 0x000000, 0x000002);
	cr_assert(!r.retry.is_waiting);
	cr_assert_eq(ur_recovery_deadline(&r), 10 + TIMEOUT_NS);
}

/* RC-REQ-ACK-02 */
Test(recovery, stepping_back_sends_the_newest_packet_again_and_nothing_else)
{
	start(0xffffff, 7, 7);
	send(2, 0);
	ur_recovery_step_back(&r);
	expect(0xffffff, 0, 1);
	cr_assert(ur_recovery_is_resend(&r));
	send(1, 0);
	expect(0xffffff, 1, 1);
	cr_assert_eq(ur_retry_left(&r.retry), 7);
}

/* ---- round trips and the timeout that follows from them ---- */

static void ask(uint64_t now_ns)
{
	send(1, now_ns);
	ur_recovery_on_ackreq(&r, false, now_ns);
}

/* REORDER-RTT-01 */
Test(recovery, a_round_trip_makes_a_timeout_of_at_least_1_ms)
{
	start(0, 7, 7);
	ask(0);
	cr_assert_eq(ur_recovery_deadline(&r), TIMEOUT_NS, "nothing is known yet");
	ur_recovery_on_ack(&r, ur_psn(1), 100000);
	cr_assert_eq(r.rtt.srtt, 100000 / 16);
	ask(200000);
	cr_assert_eq(ur_recovery_deadline(&r), 200000 + 1000000);
}

/* RC-RETRY-RTO-01, RC-RETRY-RTO-03, RC-RETRY-RTO-04 */
Test(recovery, the_measured_timeout_doubles_and_costs_no_retry)
{
	uint64_t wait = 1000000;
	unsigned asked = 0;

	start(0, 7, 7);
	ask(0);
	ur_recovery_on_ack(&r, ur_psn(1), 1000);
	ask(1000);
	for (uint64_t now = 1000 + wait; now < 1000 + TIMEOUT_NS; now += wait) {
		cr_assert_eq(ur_recovery_deadline(&r), now);
		cr_assert_eq(expire(), UR_RECOVERY_REPEAT);
		cr_assert_not(timeout);
		ur_recovery_on_repeat(&r, 1, now);
		expect(1, 2, 2);
		asked++;
		if (asked == 1 || asked > 4)
			wait = 2 * wait < TIMEOUT_NS / 8 ? 2 * wait : TIMEOUT_NS / 8;
	}
	cr_assert_eq(asked, 12, "%u: after 1, 3, 5, 7, 9, 13, 21, 29, 38, 46, 54 and 63 ms", asked);
	cr_assert_eq(ur_retry_left(&r.retry), 7);
	cr_assert_eq(ur_recovery_deadline(&r), 1000 + TIMEOUT_NS);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	cr_assert(timeout);
	cr_assert_eq(ur_retry_left(&r.retry), 6);
}

Test(recovery, the_measured_timeout_runs_only_while_an_answer_is_asked_for)
{
	start(0, 7, 7);
	ask(0);
	ur_recovery_on_ack(&r, ur_psn(1), 1000);
	send(3, 2000);
	cr_assert_eq(ur_recovery_deadline(&r), 2000 + TIMEOUT_NS);
	ask(3000);
	cr_assert_eq(ur_recovery_deadline(&r), 3000 + 1000000);
	ur_recovery_on_ack(&r, ur_psn(5), 4000);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

Test(recovery, what_was_sent_twice_is_no_sample)
{
	start(0, 7, 7);
	ask(0);
	cr_assert_eq(ur_recovery_gap(&r, 10), UR_RECOVERY_REWIND);
	send(1, 20);
	ur_recovery_on_ackreq(&r, true, 20);
	ur_recovery_on_ack(&r, ur_psn(1), 100000);
	cr_assert_eq(r.rtt.srtt, 0);
}

Test(recovery, without_retries_or_a_timeout_nothing_is_sent_again_for_the_measured_one)
{
	start(0, 0, 7);
	ask(0);
	ur_recovery_on_ack(&r, ur_psn(1), 1000);
	ask(1000);
	cr_assert_eq(ur_recovery_deadline(&r), 1000 + TIMEOUT_NS);
	ur_recovery_limits(&r, 7, 7, 0);
	cr_assert_eq(ur_recovery_deadline(&r), UR_NEVER);
}

/* ---- selective ---- */

static void start_selective(uint32_t first)
{
	start(first, 7, 7);
	ur_recovery_select(&r);
}

/* Sends una again because of a NAK. */
static void repeat(uint64_t now_ns)
{
	cr_assert_eq(ur_recovery_gap(&r, now_ns), UR_RECOVERY_REPEAT);
	ur_recovery_on_repeat(&r, 1, now_ns);
}

/* REORDER-PEER-02 */
Test(recovery, an_ack_beyond_the_probe_shows_a_peer_that_buffers)
{
	start_selective(0xfffffe);
	send(5, 0);
	repeat(10);
	cr_assert(r.hold);
	expect(0xfffffe, 0x000003, 0x000003);
	ur_recovery_on_ack(&r, ur_psn(0x000003), 20);
	cr_assert_eq(r.peer, UR_PEER_BUFFERS);
	cr_assert_not(r.hold || r.probing);
}

/* REORDER-PEER-03 */
Test(recovery, two_acks_of_just_the_probe_show_a_peer_that_goes_back_n)
{
	start_selective(0xfffffe);
	send(5, 0);
	repeat(10);
	ur_recovery_on_ack(&r, ur_psn(0xffffff), 20);
	cr_assert(ur_recovery_is_alone(&r, 20));
	repeat(20);
	cr_assert_eq(r.peer, UR_PEER_UNKNOWN);
	ur_recovery_on_ack(&r, ur_psn(0x000000), 30);
	cr_assert_eq(ur_recovery_gap(&r, 30), UR_RECOVERY_REWIND);
	cr_assert_eq(r.peer, UR_PEER_GBN);
	expect(0x000000, 0x000000, 0x000003);
}

Test(recovery, an_ack_of_a_probe_that_was_all_there_is_tells_nothing)
{
	start_selective(0);
	send(1, 0);
	repeat(10);
	cr_assert_not(r.hold);
	ur_recovery_on_ack(&r, ur_psn(1), 20);
	cr_assert_not(ur_recovery_is_alone(&r, 20));
	cr_assert_eq(r.peer, UR_PEER_UNKNOWN);
	cr_assert_not(r.probing);
}

Test(recovery, a_timeout_tells_nothing_about_the_peer)
{
	start_selective(0);
	send(3, 0);
	ur_recovery_on_ackreq(&r, false, 0);
	cr_assert_eq(ur_recovery_deadline(&r), UR_RTO_INITIAL_NS);
	cr_assert_eq(expire(), UR_RECOVERY_REPEAT);
	ur_recovery_on_repeat(&r, 1, UR_RTO_INITIAL_NS);
	cr_assert_not(r.hold);
	ur_recovery_on_ack(&r, ur_psn(3), UR_RTO_INITIAL_NS + 10);
	cr_assert_eq(r.peer, UR_PEER_UNKNOWN);
}

Test(recovery, a_timeout_of_una_only_moves_una_to_a_peer_that_buffers)
{
	start_selective(0);
	send(4, 0);
	repeat(10);
	ur_recovery_on_ack(&r, ur_psn(3), 20);
	while (!timeout)
		cr_assert_eq(expire(), UR_RECOVERY_REPEAT);
	expect(3, 4, 4);
	cr_assert_eq(ur_retry_left(&r.retry), 6);
}

/* RC-RETRY-GAP-02 */
Test(recovery, what_an_earlier_pass_caused_rewinds_nothing)
{
	start(0, 7, 7);
	ask(0);
	ur_recovery_on_ack(&r, ur_psn(1), 5000);
	send(8, 10000);
	cr_assert_eq(ur_recovery_gap(&r, 15000), UR_RECOVERY_REWIND);
	send(8, 15000);
	/* 1 was only late: the peer accepts it and reports 2, which has just been sent again. */
	ur_recovery_on_ack(&r, ur_psn(2), 15500);
	cr_assert_eq(ur_recovery_gap(&r, 15500), UR_RECOVERY_IGNORE);
	expect(2, 9, 9);
	cr_assert_eq(ur_recovery_gap(&r, 20000), UR_RECOVERY_REWIND,
		     "a round trip later it is news");
	expect(2, 2, 9);
}

/* RC-RETRY-GAP-02 */
Test(recovery, what_is_missing_and_was_sent_last_is_reported_by_an_earlier_pass)
{
	start(0, 7, 7);
	ask(0);
	ur_recovery_on_ack(&r, ur_psn(1), 5000);
	send(8, 10000);
	cr_assert_eq(ur_recovery_gap(&r, 15000), UR_RECOVERY_REWIND);
	send(2, 30000);
	ur_recovery_on_ack(&r, ur_psn(2), 31000);
	cr_assert_eq(ur_recovery_gap(&r, 31000), UR_RECOVERY_IGNORE);
	expect(2, 3, 9);
}

/* After `run` delivered packets, [una, max) is lost, detected and acknowledged. */
static void lose_after(uint32_t run, uint64_t *now_ns)
{
	uint32_t una = r.una.v;

	for (uint32_t i = 0; i < run; i++) {
		send(1, *now_ns);
		ur_recovery_on_ack(&r, ur_psn(una + i + 1), *now_ns += 10);
	}
	send(2, *now_ns += 10);
	cr_assert_eq(ur_recovery_gap(&r, *now_ns += 1000), UR_RECOVERY_REWIND);
	send(2, *now_ns += 10);
	ur_recovery_on_ack(&r, ur_psn(una + run + 2), *now_ns += 1000);
}

/* RC-REQ-FLIGHT-01 */
Test(recovery, the_more_is_lost_the_less_is_in_flight)
{
	uint64_t now = 0;

	ur_recovery_init(&r, ur_psn(0xffff00), 512);
	ur_recovery_limits(&r, 7, 7, TIMEOUT);
	cr_assert_eq(ur_recovery_flight_left(&r), UR_FLIGHT_FIRST);
	lose_after(1000, &now);
	cr_assert_geq(ur_recovery_flight_left(&r), 240, "one in a thousand costs little");
	for (unsigned i = 0; i < 20; i++)
		lose_after(88, &now);
	cr_assert_eq(ur_recovery_flight_left(&r), 4, "a twentieth of 90");
	for (unsigned i = 0; i < 20; i++)
		lose_after(10, &now);
	cr_assert_eq(ur_recovery_flight_left(&r), UR_FLIGHT_MIN);
	for (uint32_t i = 0; i < 5000; i++) {
		send(1, now);
		ur_recovery_on_ack(&r, ur_psn_add(r.una, 1), now += 10);
	}
	cr_assert_eq(ur_recovery_flight_left(&r), 512, "it is over");
}

/* RC-REQ-FLIGHT-01 */
Test(recovery, the_answers_of_a_read_are_not_in_flight)
{
	ur_recovery_init(&r, ur_psn(0), 512);
	ur_recovery_limits(&r, 7, 7, TIMEOUT);
	ur_recovery_on_send(&r, 32, 0);
	ur_recovery_on_read(&r, 32);
	cr_assert_eq(ur_recovery_flight_left(&r), UR_FLIGHT_FIRST);
	send(3, 0);
	cr_assert_eq(ur_recovery_flight_left(&r), UR_FLIGHT_FIRST - 3);
	ur_recovery_pass_read(&r, 32);
	ur_recovery_on_ack(&r, ur_psn(32), 10);
	cr_assert_eq(ur_recovery_flight_left(&r), UR_FLIGHT_FIRST + 32 - 3);
}

/* RC-RETRY-RTO-02 */
Test(recovery, a_peer_that_sends_other_responses_is_not_silent)
{
	uint64_t ack_deadline;

	start(0, 7, 7);
	ask(0);
	ur_recovery_on_ack(&r, ur_psn(1), 1000);
	ask(2000);
	ack_deadline = r.retry.ack_deadline_ns;
	ur_recovery_on_response(&r, 500000);
	cr_assert_eq(ur_recovery_deadline(&r), 1500000);
	cr_assert_eq(r.retry.ack_deadline_ns, ack_deadline);
}

/* RC-REQ-FLIGHT-01 */
Test(recovery, a_peer_that_stands_still_is_asked_with_a_few_packets)
{
	ur_recovery_init(&r, ur_psn(0), 512);
	ur_recovery_limits(&r, 7, 7, TIMEOUT);
	send(64, 0);
	cr_assert_eq(expire(), UR_RECOVERY_REWIND);
	cr_assert(timeout);
	cr_assert_eq(ur_recovery_flight_left(&r), UR_FLIGHT_MIN);
}
