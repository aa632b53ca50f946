/* SPDX-License-Identifier: BSD-3-Clause */
#include "ext_completer.h"

/* ---- NAKs ---- */

/* EXT-COMP-NAK-01 */
Test(ext_completer, nak_fails_its_request_and_completes_those_before)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} cases[] = {
		{0x61, IBV_WC_REM_INV_REQ_ERR},
		{0x62, IBV_WC_REM_ACCESS_ERR},
		{0x63, IBV_WC_REM_OP_ERR},
		{0x64, IBV_WC_REM_INV_RD_REQ_ERR},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t stamp[3];
		struct end *e = end_with_sends(3, stamp);

		cr_assert_eq(xend_ack(e, 1001, cases[i].syndrome, 1, stamp[1]), UR_DROP_NONE);
		end_expect_wc(e, 1, IBV_WC_SUCCESS);
		end_expect_wc(e, 2, cases[i].status);
		end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
		cr_assert_eq(e->qp->state, IBV_QPS_ERR);
		xend_expect_silence(e);
		xend_free(e);
	}
}

/* EXT-COMP-NAK-01 */
Test(ext_completer, nak_of_what_was_executed_or_never_sent_is_dropped)
{
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);
	struct ur_packet p;

	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, stamp[0]), UR_DROP_NONE);
	cr_assert_eq(xend_ack(e, 1000, 0x62, 1, stamp[0]), UR_DROP_PSN_STALE);
	cr_assert_eq(xend_ack(e, 1002, 0x62, 1, stamp[0]), UR_DROP_UNEXPECTED);
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1001, 1000, stamp[0], NULL, 0);
	p.aeth.syndrome = 0x62;
	cr_assert_eq(xend_in(e, p), UR_DROP_UNEXPECTED);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	xend_free(e);
}

/* EXT-COMP-NAK-01: the memory of a READ was deregistered while it was being answered. */
Test(ext_completer, nak_of_a_read_that_was_accepted_fails_the_read)
{
	struct end *e = XEND();
	struct ur_packet p;

	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 600);
	end_send(e, 3, IBV_WR_RDMA_WRITE, 4);
	cr_assert_eq(xend_drain(e), 3);
	cr_assert_eq(xend_read(e, 2, 0, 1001, 256, e->out.xth.stamp), UR_DROP_NONE);
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1001, 1003, e->out.xth.stamp, NULL, 0);
	p.aeth.syndrome = 0x62;
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_REM_ACCESS_ERR);
	end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	xend_free(e);
}

/* EXT-COMP-NAK-01 */
Test(ext_completer, nak_waits_for_the_answers_before_it)
{
	struct end *e = XEND();
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_send(e, 2, IBV_WR_RDMA_WRITE, 4);
	end_send(e, 3, IBV_WR_RDMA_WRITE, 4);
	cr_assert_eq(xend_drain(e), 3);
	stamp = e->out.xth.stamp;
	cr_assert_eq(xend_ack(e, 1001, 0x62, 1, stamp), UR_DROP_NONE);
	end_expect_no_wc(e);
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 4, stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_REM_ACCESS_ERR);
	end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
	xend_free(e);
}

/* EXT-COMP-NAK-01 */
Test(ext_completer, nak_does_not_wait_for_ever_for_answers_that_were_lost)
{
	struct end *e = XEND(.no_timeout = true);

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_send(e, 2, IBV_WR_RDMA_WRITE, 4);
	cr_assert_eq(xend_drain(e), 2);
	cr_assert_eq(xend_ack(e, 1001, 0x62, 1, e->out.xth.stamp), UR_DROP_NONE);
	for (unsigned i = 0; i < 10 && e->qp->state == IBV_QPS_RTS; i++) {
		xend_wait(e);
		xend_drain(e);
	}
	end_expect_wc(e, 1, IBV_WC_REM_ACCESS_ERR);
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	xend_free(e);
}

/* EXT-COMP-RNR-01 */
Test(ext_completer, rnr_nak_stops_sending_for_its_time)
{
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);
	uint64_t start;

	cr_assert_eq(xend_ack(e, 1000, 0x20 | 12, 0, stamp[0]), UR_DROP_NONE); /* 0.64 ms */
	start = e->now_ns;
	end_send(e, 3, IBV_WR_SEND, 4);
	xend_expect_silence(e);
	cr_assert_eq(ur_ext_deadline(e->qp), start + 640000);
	/* The same RNR NAK again uses no other retry. */
	cr_assert_eq(xend_ack(e, 1000, 0x20 | 12, 0, stamp[0]), UR_DROP_NONE);
	cr_assert_eq(ur_ext_deadline(e->qp), start + 640000);
	xend_wait(e);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert(e->out.xth.flags & UR_XTH_RETRY);
	xend_expect(e, UR_EXT_SEND_ONLY, 1002);
	xend_expect_silence(e);
	/* 1001 was dropped as well, which only later answers will show. */
	cr_assert_eq(end_counters(e)->rnr_nak_retry_err, 2);
	xend_free(e);
}

/* EXT-COMP-RNR-01 */
Test(ext_completer, receive_that_was_ready_after_all_ends_the_wait)
{
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);

	cr_assert_eq(xend_ack(e, 1000, 0x20 | 12, 0, stamp[0]), UR_DROP_NONE);
	end_send(e, 3, IBV_WR_SEND, 4);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, stamp[0]), UR_DROP_NONE);
	xend_expect(e, UR_EXT_SEND_ONLY, 1002);
	/* The RNR NAK comes a second time, too late. */
	cr_assert_eq(xend_ack(e, 1000, 0x20 | 12, 0, stamp[0]), UR_DROP_NONE);
	cr_assert(!e->qp->retry.is_waiting);
	xend_free(e);
}

/* EXT-COMP-RNR-01 */
Test(ext_completer, third_rnr_nak_is_one_too_many)
{
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(xend_ack(e, 1000, 0x21, 0, stamp[0]), UR_DROP_NONE);
		xend_wait(e);
		xend_expect(e, UR_EXT_SEND_ONLY, 1000);
		stamp[0] = e->out.xth.stamp;
	}
	end_expect_no_wc(e);
	cr_assert_eq(xend_ack(e, 1000, 0x21, 0, stamp[0]), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(end_counters(e)->rnr_retry_exceeded_err, 1);
	xend_free(e);
}

/* ---- time ---- */

/* EXT-COMP-TIMEOUT-01 */
Test(ext_completer, silence_ends_after_as_many_timeouts_as_asked_for_and_one)
{
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);
	uint64_t start = e->now_ns;

	while (e->qp->state == IBV_QPS_RTS) {
		xend_wait(e);
		xend_drain(e);
		cr_assert_lt(e->now_ns, start + 5 * END_TIMEOUT_NS);
	}
	end_expect_wc(e, 1, IBV_WC_RETRY_EXC_ERR);
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	cr_assert_geq(e->now_ns, start + 4 * END_TIMEOUT_NS - 10 * XEND_STEP_NS);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 4);
	cr_assert_eq(end_counters(e)->retry_exceeded_err, 1);
	xend_free(e);
}

/* EXT-COMP-TIMEOUT-01 */
Test(ext_completer, sent_again_and_probed_for_ever_costs_no_retry)
{
	struct end *e = XEND(.no_timeout = true);

	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_eq(xend_drain(e), 1);
	for (unsigned i = 0; i < 200; i++) {
		xend_wait(e);
		xend_drain(e);
	}
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 0);
	cr_assert_gt(end_counters(e)->rto, 20);
	cr_assert_gt(end_counters(e)->retransmitted_packets, 20);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	xend_free(e);
}

/* EXT-SEL-RTO-02 */
Test(ext_completer, silent_peer_is_asked_eight_times_before_the_first_timeout)
{
	struct end *e = XEND(.timeout = 16);
	unsigned asked = 0;

	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_eq(xend_drain(e), 1);
	while (!end_counters(e)->local_ack_timeout_err) {
		xend_wait(e);
		asked += xend_drain(e);
	}
	cr_assert_geq(asked, 8, "%u", asked);
	cr_assert_leq(asked, 16, "%u", asked);
	xend_free(e);
}

/* EXT-SEL-PROBE-04 */
Test(ext_completer, a_probe_that_waits_for_its_turn_is_no_timeout)
{
	struct end *e = XEND(.timeout = 31);

	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_eq(xend_drain(e), 1);
	/* Other queue pairs have the line. */
	for (unsigned i = 0; i < 50; i++)
		xend_wait(e);
	cr_assert_eq(end_counters(e)->rto, 0);
	cr_assert_eq(xend_drain(e), 1);
	cr_assert(e->out.op & UR_OP_PROBE);
	cr_assert_eq(end_counters(e)->retransmitted_packets, 0);
	xend_free(e);
}

/* EXT-COMP-TIMEOUT-01 */
Test(ext_completer, any_progress_starts_the_retries_afresh)
{
	struct end *e = XEND();
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 8);
	cr_assert_eq(xend_drain(e), 1);
	stamp = e->out.xth.stamp;
	for (uint32_t at = 0; at < 8; at++) {
		uint64_t until = e->now_ns + 3 * END_TIMEOUT_NS;

		while (ur_ext_deadline(e->qp) < until) {
			xend_wait(e);
			xend_drain(e);
		}
		cr_assert_eq(e->qp->state, IBV_QPS_RTS);
		cr_assert_eq(xend_read(e, 1, at, 1000, 256, stamp), UR_DROP_NONE);
	}
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	xend_free(e);
}

/* EXT-COMP-TIMEOUT-01 */
Test(ext_completer, missing_responses_alone_run_into_the_timeout_too)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 1);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	while (e->qp->state == IBV_QPS_RTS) {
		xend_wait(e);
		xend_drain(e);
		cr_assert_lt(e->now_ns, 6 * END_TIMEOUT_NS);
	}
	end_expect_wc(e, 1, IBV_WC_RETRY_EXC_ERR);
	cr_assert_gt(end_counters(e)->retransmitted_packets, 0);
	xend_free(e);
}

/* EXT-COMP-PROBE-01 */
Test(ext_completer, probe_that_shares_its_stamp_says_nothing_of_responses)
{
	struct end *e = XEND();
	struct ur_tx tx = {.hdr = e->out_frame.b};
	unsigned wqes = 0;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 1);
	while (!e->qp->xreq.probe)
		xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1001);
	cr_assert(e->qp->xreq.probed);
	end_send(e, 2, IBV_WR_SEND, 4);
	cr_assert(ur_ext_requester_next(e->qp, &tx, e->now_ns, &wqes));
	cr_assert(!e->qp->xreq.probed);
	cr_assert_eq(xend_ack(e, 1002, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect_silence(e);
	xend_free(e);
}

/* EXT-SEL-TRAIN-01 */
Test(ext_completer, any_answer_to_a_train_of_probes_tells_of_responses)
{
	struct end *e = XEND();
	uint32_t first;

	e->qp->core->rtx.trains.lossy_until_ns = UR_NEVER;
	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 1);
	while (!e->qp->xreq.probe)
		xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1001);
	first = e->out.xth.stamp;
	while (!e->qp->xreq.probe)
		xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1001);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 0, first), UR_DROP_NONE);
	cr_assert(xend_out(e));
	cr_assert(e->out.op & UR_OP_READ_REQ);
	cr_assert(e->out.xth.flags & UR_XTH_RETRY);
	xend_free(e);
}

/* ---- numbers that wrap ---- */

/* EXT-COMP-ORDER-01 */
Test(ext_completer, everything_completes_where_psn_and_ssn_wrap)
{
	struct end *e = XEND(.window = 16, .rd_atomic = 4, .sq_psn = UR_PSN_MASK - 1);
	uint32_t psn = UR_PSN_MASK - 1, stamp;

	e->qp->req.ssn = ur_msn(UR_PSN_MASK);
	end_send(e, 1, IBV_WR_SEND, 300);	   /* psn, + 1; SSN 0xffffff */
	end_send(e, 2, IBV_WR_RDMA_READ, 256 * 6); /* + 2, + 3; SSN 0 */
	end_send(e, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	cr_assert_eq(xend_drain(e), 5);
	cr_assert_eq(e->out.bth.psn.v, 2);
	cr_assert_eq(e->out.xth.ssn, 1);
	stamp = e->out.xth.stamp;
	cr_assert_eq(xend_sack(e, psn, 1, stamp), UR_DROP_NONE);
	cr_assert_eq(xend_atomic(e, 1, 2, stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	for (uint32_t at = 6; at-- > 0;)
		cr_assert_eq(xend_read(e, 0, at, at / 4, 256, stamp), UR_DROP_NONE);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_wc(e, 3, IBV_WC_SUCCESS);
	cr_assert_eq(ur_ext_deadline(e->qp), UR_NEVER);
	xend_free(e);
}
