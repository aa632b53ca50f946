/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss_memory.h"
#include "ext_completer.h"
#include "transport/dest.h"

/* ---- ACKs ---- */

/* EXT-COMP-ORDER-01 */
Test(ext_completer, epsn_completes_everything_before_it)
{
	uint32_t stamp[3];
	struct end *e = end_with_sends(3, stamp);

	cr_assert_eq(xend_ack(e, 1002, 0x1f, 2, stamp[1]), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	cr_assert_eq(e->qp->xreq.psn.una.v, 1002);
	cr_assert_eq(end_counters(e)->acks_received, 1);
	xend_free(e);
}

/* EXT-COMP-ORDER-01 */
Test(ext_completer, what_arrived_early_completes_in_its_turn)
{
	uint32_t stamp[3];
	struct end *e = end_with_sends(3, stamp);

	cr_assert_eq(xend_sack(e, 1000, 3, stamp[2]), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_eq(xend_ack(e, 1003, 0x1f, 3, stamp[0]), UR_DROP_NONE);
	for (unsigned i = 1; i <= 3; i++)
		end_expect_wc(e, i, IBV_WC_SUCCESS);
	cr_assert_eq(ur_ext_deadline(e->qp), UR_NEVER);
	xend_free(e);
}

/* EXT-COMP-EPSN-01 */
Test(ext_completer, epsn_of_what_was_never_sent_is_stale)
{
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);

	cr_assert_eq(xend_ack(e, 1003, 0x1f, 1, stamp[0]), UR_DROP_PSN_STALE);
	cr_assert_eq(xend_ack(e, 1000 - (1 << 22) - 1, 0x1f, 1, stamp[0]), UR_DROP_PSN_STALE);
	cr_assert_eq(xend_ack(e, 1003, 0x61, 1, stamp[0]), UR_DROP_PSN_STALE);
	end_expect_no_wc(e);
	/* An old ACK has no effect. */
	cr_assert_eq(xend_ack(e, 900, 0x1f, 1, stamp[0]), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	xend_free(e);
}

/* ---- round trips ---- */

/* Answers every packet of `cnt` SENDs 1 us after it was sent: a round trip of 63 stamps. */
static void answer_at_once(struct end *e, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		end_send(e, i, IBV_WR_SEND, 4);
		cr_assert_not_null(xend_out(e));
		cr_assert_eq(
			xend_ack(e, e->out.bth.psn.v + 1, 0x1f, e->out.xth.ssn, e->out.xth.stamp),
			UR_DROP_NONE);
		end_expect_wc(e, i, IBV_WC_SUCCESS);
	}
}

static void expect_short_trips(const struct end *e)
{
	const struct ur_rtt *rtt = &e->qp->xreq.rtt;

	cr_assert(rtt->srtt >= 62 && rtt->srtt <= 63, "%u", rtt->srtt);
	cr_assert_leq(rtt->rttvar, 31);
	cr_assert_eq(ur_rtt_rto_ns(rtt, 0), 1000000);
}

/* EXT-SEL-RTT-02 */
Test(ext_completer, answers_that_come_again_are_no_round_trips)
{
	struct end *e = XEND();
	uint32_t first, last;

	answer_at_once(e, 1);
	first = e->out.xth.stamp;
	answer_at_once(e, 7);
	last = e->out.xth.stamp;
	for (unsigned i = 0; i < 100; i++) {
		e->now_ns += 400000;
		cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, first), UR_DROP_NONE);
		cr_assert_eq(xend_ack(e, 1008, 0x1f, 8, last), UR_DROP_NONE);
	}
	expect_short_trips(e);
	/* With a packet in flight, whose own answer counts. */
	end_send(e, 8, IBV_WR_SEND, 4);
	cr_assert_not_null(xend_out(e));
	e->now_ns += 800000;
	cr_assert_eq(xend_ack(e, 1008, 0x1f, 8, last), UR_DROP_NONE);
	expect_short_trips(e);
	cr_assert_eq(xend_ack(e, 1009, 0x1f, 9, e->out.xth.stamp), UR_DROP_NONE);
	cr_assert_gt(e->qp->xreq.rtt.srtt, 800000 / 16 / 8);
	xend_free(e);
}

/* EXT-SEL-RTT-02 */
Test(ext_completer, answer_that_was_overtaken_is_no_round_trip)
{
	uint32_t stamp[3];
	struct end *e = end_with_sends(3, stamp);
	struct ur_rtt before;

	cr_assert_eq(xend_ack(e, 1002, 0x1f, 2, stamp[1]), UR_DROP_NONE);
	before = e->qp->xreq.rtt;
	cr_assert_neq(before.srtt, 0);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, stamp[0]), UR_DROP_NONE);
	cr_assert_eq(e->qp->xreq.rtt.srtt, before.srtt);
	cr_assert_eq(e->qp->xreq.rtt.rttvar, before.rttvar);
	cr_assert_eq(xend_ack(e, 1003, 0x1f, 3, stamp[2]), UR_DROP_NONE);
	cr_assert_neq(e->qp->xreq.rtt.rttvar, before.rttvar);
	xend_free(e);
}

/* EXT-SEL-RTT-02 */
Test(ext_completer, responses_that_come_again_are_no_round_trips)
{
	struct end *e = XEND(.rd_atomic = 4);
	uint8_t payload[256] = {0};
	struct ur_packet p;

	end_send(e, 1, IBV_WR_RDMA_READ, 512);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	p = xend_packet(e, UR_EXT_READ_RESPONSE_FIRST, 1000, 1001, e->out.xth.stamp, payload, 256);
	p.xrth = (struct ur_xrth){.ssn = 1};
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
	expect_short_trips(e);
	for (unsigned i = 0; i < 100; i++) {
		e->now_ns += 400000;
		cr_assert_eq(xend_in(e, p), UR_DROP_PSN_STALE);
	}
	expect_short_trips(e);
	xend_free(e);
}

/* EXT-SEL-RTT-02 */
Test(ext_completer, round_trips_are_measured_across_the_wrap_of_stamps_and_after_any_pause)
{
	static const uint64_t pause_ns[] = {34000000000, 35000000000,  60000000000,
					    69000000000, 104000000000, 1000000000000};
	struct end *e = XEND();

	/* The packet is sent 13 stamps before the wrap, and the answer arrives 50 after it. */
	e->now_ns = ((UINT64_C(2) << 32) - 75) << 4;
	answer_at_once(e, 1);
	cr_assert_eq(e->out.xth.stamp, 0xfffffff3u);
	expect_short_trips(e);
	for (unsigned i = 0; i < sizeof(pause_ns) / sizeof(pause_ns[0]); i++) {
		uint32_t last = e->out.xth.stamp;

		e->now_ns += pause_ns[i];
		ur_rtt_init(&e->qp->xreq.rtt);
		xend_ack(e, e->qp->xreq.psn.una.v, 0x1f, i + 1, last);
		cr_assert_eq(e->qp->xreq.rtt.srtt, 0, "pause %u: an old one counts", i);
		answer_at_once(e, 1);
		expect_short_trips(e);
	}
	xend_free(e);
}

/* EXT-SEL-RTT-02: after a pause, old stamps look newer than the newest one. */
Test(ext_completer, answers_from_before_a_pause_are_no_round_trips)
{
	struct end *e = XEND();
	uint32_t old;

	answer_at_once(e, 1);
	old = e->out.xth.stamp - 625000000; /* 10 s */
	e->now_ns += 60000000000;
	end_send(e, 2, IBV_WR_SEND, 4);
	cr_assert_not_null(xend_out(e));
	e->now_ns += 1000;
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, old), UR_DROP_NONE);
	expect_short_trips(e);
	cr_assert_eq(xend_ack(e, 1002, 0x1f, 2, e->out.xth.stamp), UR_DROP_NONE);
	cr_assert_leq(e->qp->xreq.rtt.srtt, 100);
	xend_free(e);
}

/* EXT-SEL-RTT-02: an impossible sample also consumes its stamp. */
Test(ext_completer, answer_that_was_kept_longer_than_it_was_away_counts_never)
{
	struct end *e = XEND();
	struct ur_packet p;

	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_not_null(xend_out(e));
	e->now_ns += 1000;
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1001, 1001, e->out.xth.stamp, NULL, 0);
	p.aeth.syndrome = 0x1f;
	p.xaeth.residence = 10000;
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
	e->now_ns += 1000000000;
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
	cr_assert_eq(e->qp->xreq.rtt.srtt, 0);
	xend_free(e);
}

/* Posts a SEND. Its ACK arrives `away` stamps later; the peer says that it kept it for `residence` stamps. */
static void answer_after(struct end *e, uint32_t away, uint32_t residence)
{
	struct ur_packet p;

	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_not_null(xend_out(e));
	e->now_ns += (uint64_t)away << UR_STAMP_SHIFT;
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, e->qp->xreq.psn.una.v, e->qp->xreq.psn.una.v + 1,
			e->out.xth.stamp, NULL, 0);
	p.aeth.syndrome = 0x1f;
	p.xaeth.residence = residence;
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
}

/* EXT-SEL-PROBE-05: the others of the worker wait for it too, but not for the network. */
Test(ext_completer, what_the_peer_kept_an_ack_counts_for_all)
{
	struct end *e = XEND();

	answer_after(e, 10 * UR_SLOW, UR_SLOW - 1);
	cr_assert_eq(e->qp->core->rtx.slow, 0);
	answer_after(e, 10 * UR_SLOW, 2 * UR_SLOW);
	cr_assert_eq(e->qp->core->rtx.slow, 3 * UR_SLOW);
	xend_free(e);
}

/* EXT-SEL-RTT-02 */
Test(ext_completer, answers_of_the_last_connection_are_no_round_trips)
{
	struct end *e = XEND();
	uint32_t stamp;

	answer_at_once(e, 1);
	stamp = e->out.xth.stamp;
	/* RESET and RTS again. */
	ur_ext_requester_init(e->qp, ur_psn(1001));
	cr_assert_eq(e->qp->xreq.rtt.srtt, 0);
	e->now_ns += 40000000;
	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_not_null(xend_out(e));
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 0, stamp), UR_DROP_NONE);
	cr_assert_eq(e->qp->xreq.rtt.srtt, 0);
	cr_assert_eq(xend_ack(e, 1002, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	cr_assert_eq(e->qp->xreq.rtt.srtt, 125);
	xend_free(e);
}

/* EXT-COMP-FORM-01 */
Test(ext_completer, malformed_acknowledgements_are_dropped)
{
	static const uint8_t syndrome[] = {0x40, 0x5f, 0x65, 0x7f, 0x80, 0xff};
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);
	uint8_t map[UR_SACK_BYTES + 4] = {0};
	struct ur_packet p;

	for (unsigned i = 0; i < sizeof(syndrome); i++) {
		p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1001, 1001, stamp[0], NULL, 0);
		p.aeth.syndrome = syndrome[i];
		cr_assert_eq(xend_in(e, p), UR_DROP_UNEXPECTED);
	}
	for (uint16_t len = 1; len < 4; len++) {
		p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1000, 1000, stamp[0], map, len);
		p.aeth.syndrome = 0x60;
		cr_assert_eq(xend_in(e, p), UR_DROP_MSG_LENGTH);
	}
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1000, 1000, stamp[0], map, sizeof(map));
	p.aeth.syndrome = 0x60;
	cr_assert_eq(xend_in(e, p), UR_DROP_MSG_LENGTH);
	p = xend_packet(e, UR_RC_ACKNOWLEDGE, 1000, 1001, stamp[0], NULL, 0);
	cr_assert_eq(xend_in(e, p), UR_DROP_MODE);
	end_expect_no_wc(e);
	cr_assert_eq(e->qp->xreq.psn.una.v, 1000);
	xend_free(e);
}

/* EXT-COMP-FORM-01 */
Test(ext_completer, bits_of_what_was_never_sent_mean_nothing)
{
	uint32_t stamp[2];
	struct end *e = end_with_sends(2, stamp);
	uint8_t map[UR_SACK_BYTES];
	struct ur_packet p;

	memset(map, 0xff, sizeof(map));
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1000, 1000, stamp[1], map, sizeof(map));
	p.aeth.syndrome = 0x60;
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_eq(e->qp->xreq.psn.una.v, 1000);
	cr_assert_eq(e->qp->xreq.psn.max.v, 1002);
	xend_free(e);
}

/* EXT-COMP-ORDER-01 */
Test(ext_completer, state_that_does_not_send_takes_no_answers)
{
	uint32_t stamp[1];
	struct end *e = end_with_sends(1, stamp);

	e->qp->state = IBV_QPS_RTR;
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, stamp[0]), UR_DROP_QP_STATE);
	end_expect_no_wc(e);
	xend_free(e);
}

/* EXT-COMP-CREDIT-01 */
Test(ext_completer, credits_count_from_the_last_message_complete)
{
	uint32_t stamp[1];
	struct end *e = end_with_sends(1, stamp);

	cr_assert_eq(xend_ack(e, 1001, 2, 1, stamp[0]), UR_DROP_NONE);
	cr_assert(e->qp->req.flow_control);
	cr_assert_eq(e->qp->req.lsn.v, 3);
	/* An ACK that was overtaken takes no credit back, */
	cr_assert_eq(xend_ack(e, 1000, 1, 0, stamp[0]), UR_DROP_NONE);
	cr_assert_eq(e->qp->req.lsn.v, 3);
	/* and gives none; credits still count. EXT-COMP-CREDIT-02 */
	cr_assert_eq(xend_ack(e, 1000, 30, 0, stamp[0]), UR_DROP_NONE);
	cr_assert_eq(xend_ack(e, 1001 - (1 << 22), 30, 0, stamp[0]), UR_DROP_NONE);
	cr_assert_eq(e->qp->req.lsn.v, 3);
	cr_assert_eq(xend_ack(e, 1000, 0x1f, 0, stamp[0]), UR_DROP_NONE);
	cr_assert(e->qp->req.flow_control);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, stamp[0]), UR_DROP_NONE);
	cr_assert(!e->qp->req.flow_control);
	xend_free(e);
}

/* ---- responses ---- */

/* EXT-COMP-RSP-02 */
Test(ext_completer, responses_land_where_they_belong_in_any_order)
{
	static const uint8_t order[] = {3, 8, 0, 9, 2, 1, 7, 4, 6, 5};
	struct end *e = XEND(.window = 16, .rd_atomic = 4);
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 9 + 7);
	end_send(e, 2, IBV_WR_SEND, 4);
	cr_assert_eq(xend_drain(e), 4);
	stamp = e->out.xth.stamp;
	for (unsigned i = 0; i < 10; i++) {
		uint32_t at = order[i];

		end_expect_no_wc(e);
		cr_assert_eq(xend_read(e, 1, at, 1000 + at / 4, at < 9 ? 256 : 7, stamp),
			     UR_DROP_NONE);
	}
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 256 * 9 + 7; i++)
		cr_assert_eq(e->buf[i], i / 256 + 1);
	cr_assert_eq(e->buf[256 * 9 + 7], 0);
	cr_assert_eq(ur_ext_reads_out(&e->qp->xreq), 0);
	cr_assert_gt(end_counters(e)->early_responses, 5);
	cr_assert_eq(ur_ext_deadline(e->qp), UR_NEVER);
	xend_free(e);
}

/* EXT-COMP-RSP-02 */
Test(ext_completer, response_is_scattered_over_the_segments_of_its_request)
{
	struct end *e = XEND();
	struct ibv_sge sge[3] = {{(uintptr_t)e->buf + 5000, 100, e->key},
				 {(uintptr_t)e->buf + 6000, 300, e->key},
				 {(uintptr_t)e->buf + 7000, 200, e->key}};
	struct ibv_send_wr wr = end_wr(e, 1, IBV_WR_RDMA_READ);

	wr.sg_list = sge;
	wr.num_sge = 3;
	cr_assert_eq(ur_sq_post(&e->qp->sq, IBV_QPS_RTS, &wr, false), 0);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	cr_assert_eq(xend_read(e, 1, 1, 1000, 256, e->out.xth.stamp), UR_DROP_NONE);
	cr_assert_eq(e->buf[6155], 0);
	cr_assert_eq(e->buf[6156], 2);
	cr_assert_eq(e->buf[6299], 2);
	cr_assert_eq(e->buf[7000], 2);
	cr_assert_eq(e->buf[7111], 2);
	cr_assert_eq(e->buf[7112], 0);
	xend_free(e);
}

/* EXT-COMP-RSP-02 */
Test(ext_completer, atomic_answer_lands_in_host_order)
{
	struct end *e = XEND();
	uint64_t got;

	end_send(e, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	xend_expect(e, UR_EXT_FETCH_ADD, 1000);
	cr_assert_eq(xend_atomic(e, 1, 1000, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	memcpy(&got, e->buf, 8);
	cr_assert_eq(got, 0x0123456789abcdef);
	xend_free(e);
}

/* EXT-COMP-ORDER-01 */
Test(ext_completer, response_acknowledges_what_was_sent_before_its_request)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_SEND, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 2);
	cr_assert_eq(xend_read(e, 2, 0, 1001, 4, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	cr_assert_eq(end_counters(e)->acks_received, 1);
	xend_free(e);
}

/* EXT-COMP-ORDER-01 */
Test(ext_completer, acknowledged_read_waits_for_its_responses)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_send(e, 2, IBV_WR_SEND, 4);
	cr_assert_eq(xend_drain(e), 2);
	cr_assert_eq(xend_ack(e, 1002, 0x1f, 2, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_neq(ur_ext_deadline(e->qp), UR_NEVER);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 4, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	xend_free(e);
}

/* EXT-COMP-RSP-01 */
Test(ext_completer, response_that_no_request_asked_for_writes_nothing)
{
	static const struct {
		uint8_t opcode;
		uint32_t ssn, offset, psn, epsn;
		uint16_t len;
	} hostile[] = {
		{UR_EXT_READ_RESPONSE_ONLY, 0, 0, 1001, 1006, 256}, /* no such message */
		{UR_EXT_READ_RESPONSE_ONLY, 5, 0, 1001, 1006, 256}, /* not begun */
		{UR_EXT_READ_RESPONSE_ONLY, 6, 0, 1001, 1006, 256}, /* not posted */
		{UR_EXT_READ_RESPONSE_ONLY, 0x800002, 0, 1001, 1006, 256},
		{UR_EXT_READ_RESPONSE_ONLY, 1, 0, 1000, 1006, 256},  /* a SEND */
		{UR_EXT_READ_RESPONSE_ONLY, 3, 0, 1004, 1006, 8},    /* an atomic */
		{UR_EXT_ATOMIC_ACKNOWLEDGE, 2, 0, 1001, 1006, 0},    /* a READ */
		{UR_EXT_ATOMIC_ACKNOWLEDGE, 3, 1, 1004, 1006, 0},    /* has one response */
		{UR_EXT_READ_RESPONSE_ONLY, 2, 10, 1003, 1006, 256}, /* beyond its length */
		{UR_EXT_READ_RESPONSE_ONLY, 2, 0xffffff, 1003, 1006, 256},
		{UR_EXT_READ_RESPONSE_ONLY, 4, 4, 1006, 1006, 256}, /* not requested yet */
		{UR_EXT_READ_RESPONSE_ONLY, 2, 4, 1001, 1006, 256}, /* of another part */
		{UR_EXT_READ_RESPONSE_ONLY, 2, 0, 1002, 1006, 256},
		{UR_EXT_READ_RESPONSE_ONLY, 2, 0, 1001, 1001, 256}, /* not executed */
		{UR_EXT_READ_RESPONSE_ONLY, 2, 0, 1001, 1000, 256},
	};
	static const uint8_t payload[256] = {[0 ... 255] = 0xaa};
	struct end *e = end_with_reads();

	for (unsigned i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		struct ur_packet p =
			xend_packet(e, hostile[i].opcode, hostile[i].psn, hostile[i].epsn,
				    e->out.xth.stamp, payload, hostile[i].len);
		enum ur_drop drop;

		p.xrth = (struct ur_xrth){.ssn = hostile[i].ssn, .offset = hostile[i].offset};
		drop = xend_in(e, p);
		cr_assert(drop == UR_DROP_UNEXPECTED || drop == UR_DROP_PSN_STALE, "packet %u: %s",
			  i, ur_drop_text(drop));
		cr_assert_eq(e->qp->state, IBV_QPS_RTS);
		cr_assert_eq(e->qp->xreq.rsp.una.v, 0);
		for (unsigned at = 0; at < 8192; at++)
			cr_assert_eq(e->buf[at], 0, "packet %u", i);
	}
	end_expect_no_wc(e);
	xend_free(e);
}

/* EXT-COMP-RSP-01 */
Test(ext_completer, response_that_says_nak_is_dropped)
{
	struct end *e = XEND();
	uint8_t payload[4] = {1, 2, 3, 4};
	struct ur_packet p;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	p = xend_packet(e, UR_EXT_READ_RESPONSE_ONLY, 1000, 1001, e->out.xth.stamp, payload, 4);
	p.xrth = (struct ur_xrth){.ssn = 1};
	p.aeth.syndrome = 0x61;
	cr_assert_eq(xend_in(e, p), UR_DROP_UNEXPECTED);
	cr_assert_eq(e->buf[0], 0);
	end_expect_no_wc(e);
	xend_free(e);
}

/* EXT-COMP-RSP-01 */
Test(ext_completer, response_that_came_before_writes_nothing)
{
	struct end *e = XEND();
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 600);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	stamp = e->out.xth.stamp;
	cr_assert_eq(xend_read(e, 1, 0, 1000, 256, stamp), UR_DROP_NONE);
	cr_assert_eq(xend_read(e, 1, 2, 1000, 88, stamp), UR_DROP_NONE);
	memset(e->buf, 0, 1024);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 256, stamp), UR_DROP_PSN_STALE);
	cr_assert_eq(xend_read(e, 1, 2, 1000, 88, stamp), UR_DROP_PSN_STALE);
	/* A response of another length has no effect either. */
	cr_assert_eq(xend_read(e, 1, 0, 1000, 255, stamp), UR_DROP_PSN_STALE);
	for (unsigned i = 0; i < 1024; i++)
		cr_assert_eq(e->buf[i], 0);
	cr_assert_eq(xend_read(e, 1, 1, 1000, 256, stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(xend_read(e, 1, 1, 1000, 256, stamp), UR_DROP_PSN_STALE);
	end_expect_no_wc(e);
	xend_free(e);
}

/* EXT-COMP-BAD-01 */
Test(ext_completer, response_of_another_length_is_a_bad_response)
{
	for (uint16_t len = 255; len <= 257; len += 2) {
		struct end *e = XEND();

		end_send(e, 1, IBV_WR_RDMA_READ, 300);
		xend_expect(e, UR_EXT_READ_REQUEST, 1000);
		cr_assert_eq(xend_read(e, 1, 0, 1000, len, e->out.xth.stamp), UR_DROP_MSG_LENGTH);
		end_expect_wc(e, 1, IBV_WC_BAD_RESP_ERR);
		cr_assert_eq(e->buf[0], 0);
		xend_free(e);
	}
}

/* EXT-COMP-BAD-01 */
Test(ext_completer, bad_response_is_the_fault_of_its_own_request)
{
	struct end *e = XEND();
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 4);
	end_send(e, 3, IBV_WR_SEND, 4);
	cr_assert_eq(xend_drain(e), 3);
	stamp = e->out.xth.stamp;
	cr_assert_eq(xend_read(e, 2, 0, 1001, 5, stamp), UR_DROP_MSG_LENGTH);
	end_expect_no_wc(e);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 4, stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_BAD_RESP_ERR);
	end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
	xend_free(e);
}

/* EXT-COMP-BAD-01 */
Test(ext_completer, answers_before_a_failure_are_taken_though_an_atomic_behind_it_is_not)
{
	struct end *e = XEND(.rd_atomic = 4);
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_send(e, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_send(e, 3, IBV_WR_RDMA_READ, 4);
	end_send(e, 4, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	cr_assert_eq(xend_drain(e), 4);
	stamp = e->out.xth.stamp;
	cr_assert_eq(xend_read(e, 3, 0, 1002, 5, stamp), UR_DROP_MSG_LENGTH);
	cr_assert_eq(xend_atomic(e, 4, 1003, stamp), UR_DROP_PSN_STALE);
	cr_assert_eq(xend_atomic(e, 2, 1001, stamp), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 4, stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_wc(e, 3, IBV_WC_BAD_RESP_ERR);
	end_expect_wc(e, 4, IBV_WC_WR_FLUSH_ERR);
	xend_free(e);
}

/* EXT-COMP-BAD-01 */
Test(ext_completer, read_whose_target_went_is_a_protection_error)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_SEND, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 2);
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	cr_assert_eq(xend_read(e, 2, 0, 1001, 4, e->out.xth.stamp), UR_DROP_RECV_BUFFER);
	cr_assert_eq(e->buf[0], 0);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_LOC_PROT_ERR);
	xend_free(e);
}

/* EXT-COMP-RSP-02, LOSS-OWN-01 */
Test(ext_completer, without_slabs_early_responses_are_kept_in_memory_of_its_own)
{
	struct end *e = XEND();
	struct ur_slabs *memory = &ur_engine_core(e->engine)->loss;
	void **all = hog(memory);
	uint32_t objects = memory->object_cnt, stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 600);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	stamp = e->out.xth.stamp;
	cr_assert_eq(xend_read(e, 1, 2, 1000, 88, stamp), UR_DROP_NONE);
	cr_assert_eq(memory->object_cnt, objects);
	cr_assert_eq(xend_read(e, 1, 2, 1000, 88, stamp), UR_DROP_PSN_STALE);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 256, stamp), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_eq(xend_read(e, 1, 1, 1000, 256, stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(ur_ext_reads_out(&e->qp->xreq), 0);
	give_all_back(memory, all);
	xend_free(e);
}

/* PACE-NET-07 */
Test(ext_completer, a_part_of_a_bitmap_answers_the_probe_that_asked_for_a_delay)
{
	static const struct {
		uint8_t opcode;
		bool echoes;
		uint32_t offset;
		bool answered;
	} cells[] = {{UR_EXT_ACKNOWLEDGE_PART, true, 0, true},
		     {UR_EXT_ACKNOWLEDGE_PART, false, 0, false},
		     {UR_EXT_ACKNOWLEDGE_PART, true, 2048, false},
		     {UR_EXT_ACKNOWLEDGE, true, 0, false}};
	static const struct ur_cc_attr cmdpd = {.mode = UR_CC_CMDPD};

	for (unsigned i = 0; i < 4; i++) {
		struct end *e = XEND(.pacing = &cmdpd, .agreed = {.delay = true, .wide = 5});
		struct ur_net_delay *net = &ur_dest_of(&e->qp->sq_queue)->net;
		uint8_t bitmap[UR_SACK_BYTES] = {0};
		struct ur_packet p;

		end_send(e, 1, IBV_WR_SEND, 4);
		xend_expect(e, UR_EXT_SEND_ONLY, 1000);
		net->open = true;
		net->ask_ns = e->now_ns;
		net->stamp = ur_stamp_of(e->out.xth.stamp + 1);
		e->qp->xreq.probed = UR_PROBE_DELAY;
		p = xend_packet(e, cells[i].opcode, 999, 1000, net->stamp.v - !cells[i].echoes,
				bitmap, sizeof(bitmap));
		p.bpth = (struct ur_bpth){UR_BPTH_MORE, cells[i].offset};
		xend_in(e, p);
		cr_assert_eq(net->open, !cells[i].answered, "%u", i);
		cr_assert_eq(e->qp->xreq.probed, cells[i].answered ? 0 : UR_PROBE_DELAY);
		xend_free(e);
	}
}

/* EXT-COMP-DUE-01 */
Test(ext_completer, answers_that_waited_for_a_lost_request_are_not_lost)
{
	struct end *e = XEND(.rd_atomic = 4);
	uint32_t stamp[3], again;

	for (unsigned i = 0; i < 3; i++) {
		end_send(e, i + 1, IBV_WR_RDMA_READ, 600);
		cr_assert_not_null(xend_out(e));
		stamp[i] = e->out.xth.stamp;
	}
	/* The first request is lost; a probe detects this. */
	while (!e->qp->xreq.probe)
		xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1003);
	cr_assert_eq(xend_sack(e, 1000, 3, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	again = e->out.xth.stamp;
	for (uint32_t i = 0; i < 9; i++) {
		cr_assert_eq(xend_read(e, 1 + i / 3, i % 3, 1000 + i / 3, i % 3 < 2 ? 256 : 88,
				       i < 3 ? again : stamp[i / 3]),
			     UR_DROP_NONE);
		xend_expect_silence(e);
	}
	for (unsigned i = 1; i <= 3; i++)
		end_expect_wc(e, i, IBV_WC_SUCCESS);
	cr_assert_eq(end_counters(e)->retransmitted_packets, 1);
	xend_free(e);
}
