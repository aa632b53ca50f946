/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"
#include "transport/dest.h"

/*
 * Pacing in an engine, with PMTU 256. CMDPD, init0 8 and init1 16: a delay of more than 16 averages
 * throttles the destination to one packet in that time, and a delay of less than 8 averages ends
 * this.
 */
#define US	   1000
#define CNP_EVERY  50000
#define WRITE_1000 1000 /* bytes: four packets */

static const struct ur_cc_attr cmdpd = {.mode = UR_CC_CMDPD};
static const struct ur_cc_attr dcqcn = {
	.mode = UR_CC_DCQCN, .link_bps = UINT64_C(1000000000), /* 125 bytes a microsecond */
};

static const struct ur_cc_attr swift = {.mode = UR_CC_SWIFT};

static struct ur_dest *dest_of(struct end *e)
{
	return ur_dest_of(&e->qp->sq_queue);
}

static struct ur_core *core_of(struct end *e)
{
	return ur_engine_core(e->engine);
}

/* A WRITE that is acknowledged after `ns`; mode gbn measures this time. */
static void round_trip(struct end *e, uint32_t *psn, uint64_t ns)
{
	end_send(e, *psn, IBV_WR_RDMA_WRITE, 4);
	end_expect(e, UR_RC_WRITE_ONLY, *psn);
	e->now_ns += ns;
	cr_assert_eq(end_ack(e, *psn, 0x1f, 0), UR_DROP_NONE);
	end_expect_wc(e, *psn, IBV_WC_SUCCESS);
	(*psn)++;
}

/* PACE-DEST-01 */
Test(dest, queue_pair_has_the_destination_of_its_address_from_rtr_to_reset)
{
	struct end *e = END(.pacing = &cmdpd);
	struct ur_dest *d = dest_of(e);

	cr_assert_not_null(d);
	cr_assert_eq(d->cc->users, 1u);
	cr_assert_eq(core_of(e)->cc.used, 1u);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_null(dest_of(e));
	cr_assert_eq(core_of(e)->cc.used, 0u);
	end_free(e);
	e = END(.type = IBV_QPT_UD, .pacing = &cmdpd);
	cr_assert_null(dest_of(e), "datagrams are not paced");
	end_free(e);
	e = END();
	cr_assert_null(dest_of(e));
	end_free(e);
}

/* PACE-RTT-01, PACE-GATE-01, PACE-GATE-02 */
Test(dest, late_answer_throttles_and_one_packet_goes_in_a_gap)
{
	struct end *e = END(.pacing = &cmdpd);
	uint32_t psn = END_SQ_PSN;
	struct ur_cc_view v;

	for (unsigned i = 0; i < 8; i++)
		round_trip(e, &psn, 10 * US);
	ur_cc_view(&core_of(e)->cc, dest_of(e)->cc, &v);
	cr_assert_eq(v.samples, 8);
	cr_assert_eq(v.average_ns, 10 * US);
	cr_assert_not(v.throttled);
	round_trip(e, &psn, 200 * US);
	ur_cc_view(&core_of(e)->cc, dest_of(e)->cc, &v);
	cr_assert(v.throttled);
	cr_assert_eq(v.average_ns, 10 * US, "an outlier spoils nothing");

	end_send(e, 1, IBV_WR_RDMA_WRITE, WRITE_1000);
	e->now_ns += 200 * US;
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_not_null(end_out(e));
		cr_assert(dest_of(e)->gate.closed);
		end_expect_silence(e);
		end_sleep(e, 190 * US);
		end_expect_silence(e);
		end_sleep(e, 12 * US);
	}
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* PACE-GATE-02 */
Test(dest, queue_that_is_let_go_on_and_has_gone_does_not_keep_the_others_waiting)
{
	struct end *e = END(.pacing = &cmdpd);
	uint32_t psn = END_SQ_PSN;
	struct ur_emux *x = &core_of(e)->emux;
	struct ur_emux_queue other;

	for (unsigned i = 0; i < 8; i++)
		round_trip(e, &psn, 10 * US);
	round_trip(e, &psn, 200 * US);
	ur_emux_queue_init(x, &other, 0, 0);
	other.gate = &dest_of(e)->gate;
	end_send(e, 1, IBV_WR_RDMA_WRITE, WRITE_1000);
	cr_assert_not_null(end_out(e));
	ur_emux_activate(x, &other);
	cr_assert_eq(x->held_cnt, 2u);
	end_sleep(e, 202 * US);
	/* The first queue that waited is woken; it leaves without a packet. */
	cr_assert_eq(x->held_cnt, 1u);
	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	/* The next one is woken a gap later. */
	end_sleep(e, 194 * US);
	cr_assert_eq(other.state, UR_EMUX_HELD);
	end_sleep(e, 8 * US);
	cr_assert_eq(other.state, UR_EMUX_READY);
	ur_emux_deactivate(x, &other);
	end_free(e);
}

/* PACE-TIMER-01: the local ACK timeout is 67 ms, four packets take three gaps of 40 ms. */
Test(dest, waiting_for_the_gap_is_not_a_timeout)
{
	struct end *e = END(.pacing = &cmdpd);
	uint32_t psn = END_SQ_PSN;

	for (unsigned i = 0; i < 8; i++)
		round_trip(e, &psn, 10 * US);
	round_trip(e, &psn, 40000 * US);
	end_send(e, 1, IBV_WR_RDMA_WRITE, WRITE_1000);
	e->now_ns += 40000 * US;
	end_expect(e, UR_RC_WRITE_FIRST, psn);
	end_sleep(e, 40010 * US);
	end_expect(e, UR_RC_WRITE_MIDDLE, psn + 1);
	end_sleep(e, 40010 * US);
	end_expect(e, UR_RC_WRITE_MIDDLE, psn + 2);
	end_sleep(e, 40010 * US);
	end_expect(e, UR_RC_WRITE_LAST, psn + 3);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 0);
	/* Now the peer has to answer. */
	end_sleep(e, 70000 * US);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 1);
	end_free(e);
}

/* PACE-READ-01 */
Test(dest, read_is_charged_the_bytes_that_it_requests)
{
	struct end *e = END(.pacing = &dcqcn);
	struct ur_dest *d = dest_of(e);
	uint64_t before = d->cc->bytes;

	end_send(e, 1, IBV_WR_RDMA_READ, 2048);
	end_expect(e, UR_RC_READ_REQUEST, END_SQ_PSN);
	/* Ethernet, IPv4, UDP, BTH, RETH, ICRC */
	cr_assert_eq(d->cc->bytes - before, 14u + 20 + 8 + 12 + 16 + 4 + 2048);
	end_free(e);
}

/* ---- window ---- */

/* Bytes that the queue pair has in flight, in packets of 256. */
static uint64_t in_flight(struct end *e)
{
	cr_assert_eq(dest_of(e)->cc->in_flight, (uint64_t)ur_dest_flight(e->qp)->psns << 8);
	return dest_of(e)->cc->in_flight >> 8;
}

/* CC-WINDOW-02, in mode gbn */
Test(dest, bytes_in_flight_are_those_that_are_not_acknowledged)
{
	struct end *e = END(.pacing = &swift);

	end_send(e, 1, IBV_WR_RDMA_WRITE, WRITE_1000);
	for (unsigned i = 1; i <= 4; i++) {
		cr_assert_not_null(end_out(e));
		cr_assert_eq(in_flight(e), i);
	}
	cr_assert_eq(end_ack(e, END_SQ_PSN + 2, 0x1f, 0), UR_DROP_NONE);
	cr_assert_eq(in_flight(e), 1);
	end_send(e, 2, IBV_WR_RDMA_READ, 2048);
	end_expect(e, UR_RC_READ_REQUEST, END_SQ_PSN + 4);
	cr_assert_eq(in_flight(e), 9, "a READ counts as what it asks for");
	/* A sequence NAK: everything from there on is sent again. */
	cr_assert_eq(end_ack(e, END_SQ_PSN + 3, 0x60, 0), UR_DROP_NONE);
	cr_assert_eq(in_flight(e), 0);
	cr_assert_eq(dest_of(e)->cc->losses, 1);
	cr_assert_eq(end_drain(e), 2);
	cr_assert_eq(in_flight(e), 9);
	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(in_flight(e), 0);
	end_free(e);
}

/* CC-WINDOW-02: the peer drops what comes before it has a receive. */
Test(dest, nothing_is_in_flight_while_the_peer_has_no_receive)
{
	struct end *e = END(.pacing = &swift);

	end_send(e, 1, IBV_WR_SEND, WRITE_1000);
	cr_assert_eq(end_drain(e), 4);
	cr_assert_eq(in_flight(e), 4);
	cr_assert_eq(end_ack(e, END_SQ_PSN, 0x20 | 1, 0), UR_DROP_NONE);
	cr_assert_eq(in_flight(e), 0);
	cr_assert_eq(dest_of(e)->cc->losses, 0, "that is no loss");
	end_free(e);
}

/* A window of one packet: half of what was in flight when an answer came far too late. */
static struct end *with_window_of_one(uint32_t *psn)
{
	struct end *e = END(.pacing = &swift, .ackreq_every = 64);

	*psn = END_SQ_PSN;
	for (unsigned i = 0; i < 8; i++)
		round_trip(e, psn, 10 * US);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 512);
	cr_assert_eq(end_drain(e), 2);
	e->now_ns += 500 * US;
	cr_assert_eq(end_ack(e, *psn + 1, 0x1f, 0), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	*psn += 2;
	cr_assert(dest_of(e)->cc->throttled);
	cr_assert_eq(dest_of(e)->cc->window, 256);
	cr_assert_eq(ur_cc_open_ns(dest_of(e)->cc), 0, "no gap");
	cr_assert_eq(in_flight(e), 0);
	return e;
}

/* CC-WINDOW-01, CC-WINDOW-03: it grows by a packet with each window that is acknowledged. */
Test(dest, full_window_holds_back_until_an_ack_arrives)
{
	uint32_t psn, sent = 0, acked = 0, total = 16;
	struct end *e = with_window_of_one(&psn);

	end_send(e, 2, IBV_WR_RDMA_WRITE, total * 256);
	while (acked < total) {
		uint64_t window = dest_of(e)->cc->window >> 8;
		const struct ur_packet *p;

		while ((p = end_out(e)) != NULL)
			cr_assert(p->bth.ackreq || !sent++, "packet %u asks for no ACK", sent);
		sent = e->qp->gbn.rec.nxt.v - psn;
		cr_assert_eq(sent - acked, window < total - acked ? window : total - acked);
		end_sleep(e, 20 * US);
		end_expect_silence(e);
		acked = sent;
		cr_assert_eq(end_ack(e, psn + acked - 1, 0x1f, 0), UR_DROP_NONE);
		end_sleep(e, 2 * US);
	}
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	cr_assert_eq(in_flight(e), 0);
	cr_assert_eq(end_counters(e)->retransmitted_packets, 0);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* CC-WINDOW-04: a queue pair that has lost no packets continues if nothing else makes progress. */
Test(dest, full_window_does_not_stop_others_for_ever)
{
	uint32_t psn;
	struct end *e = with_window_of_one(&psn);
	struct ur_emux *x = &core_of(e)->emux;
	struct ur_emux_queue other;

	ur_emux_queue_init(x, &other, 0, 0);
	other.gate = &dest_of(e)->gate;
	end_send(e, 2, IBV_WR_RDMA_WRITE, 4);
	cr_assert_not_null(end_out(e));
	ur_emux_activate(x, &other);
	cr_assert_eq(other.state, UR_EMUX_HELD);
	end_sleep(e, 900 * US);
	cr_assert_eq(other.state, UR_EMUX_HELD);
	end_sleep(e, 200 * US);
	cr_assert_eq(other.state, UR_EMUX_READY);
	ur_emux_deactivate(x, &other);
	end_free(e);
}

/* CC-LOSS-02, CC-WINDOW-05: what a timeout has written off leaves room for others. */
Test(dest, timeout_empties_the_window)
{
	struct end *e = END(.pacing = &swift);
	uint32_t psn = END_SQ_PSN;

	for (unsigned i = 0; i < 8; i++)
		round_trip(e, &psn, 10 * US);
	end_send(e, 1, IBV_WR_RDMA_WRITE, WRITE_1000);
	cr_assert_eq(end_drain(e), 4);
	cr_assert_eq(in_flight(e), 4);
	for (unsigned i = 0; i < 100 && !dest_of(e)->cc->timeouts; i++) {
		end_sleep(e, 1000 * US);
		end_drain(e);
	}
	cr_assert_eq(dest_of(e)->cc->timeouts, 1);
	cr_assert(dest_of(e)->cc->throttled);
	cr_assert_leq(in_flight(e), 1);
	/* The answer comes after all. */
	cr_assert_eq(end_ack(e, psn + 3, 0x1f, 0), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(in_flight(e), 0);
	cr_assert_eq(ur_dest_flight(e->qp)->written_off, 0);
	end_free(e);
}

/* ---- congestion notification ---- */

static struct ur_packet marked(struct end *e, uint32_t psn)
{
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, psn, 4);

	p.ip.tos |= 3;
	return p;
}

/* CNP-SEND-01 */
Test(dest, marked_packet_is_answered_by_a_notification_once_in_50_us)
{
	struct end *e = END();
	const struct ur_packet *cnp;

	cr_assert_eq(end_in(e, marked(e, 100)), UR_DROP_NONE);
	cr_assert_eq(end_in(e, marked(e, 101)), UR_DROP_NONE);
	cnp = end_expect(e, UR_CNP, 0);
	cr_assert_eq(cnp->bth.dqpn.v, END_PEER_QPN);
	/* BECN is set, and the 16 bytes after the header are zero. */
	cr_assert_eq(e->out_frame.b[14 + 20 + 8 + 4], 0x40);
	for (unsigned i = 0; i < 16; i++)
		cr_assert_eq(e->out_frame.b[14 + 20 + 8 + 12 + i], 0);
	cr_assert_eq(end_counters(e)->np_cnp_sent, 1);
	end_sleep(e, CNP_EVERY - 1);
	cr_assert_eq(end_in(e, marked(e, 102)), UR_DROP_NONE);
	end_expect_silence(e);
	end_sleep(e, 1);
	cr_assert_eq(end_in(e, marked(e, 103)), UR_DROP_NONE);
	end_expect(e, UR_CNP, 0);
	end_free(e);
}

/* CNP-SEND-02 */
Test(dest, marked_packet_that_is_dropped_calls_for_no_notification)
{
	struct end *e = END();

	cr_assert_eq(end_in(e, marked(e, 99)), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(end_drain(e), 1, "the ACK of the duplicate");
	cr_assert_eq(end_counters(e)->np_cnp_sent, 0);
	cr_assert_eq(end_counters(e)->np_ecn_marked_roce_packets, 1);
	end_free(e);
}

static enum ur_drop notify(struct end *e, bool stranger)
{
	static const uint8_t reserved[16];
	struct ur_packet p = frame_packet(UR_CNP, false, reserved, 16);

	p.bth.dqpn = e->qp->qpn;
	if (stranger)
		p.ip.src.b[15] ^= 1;
	return end_in(e, p);
}

/* CNP-RECV-01 */
Test(dest, notification_slows_the_destination_down)
{
	struct end *e = END(.pacing = &dcqcn);

	cr_assert_eq(notify(e, true), UR_DROP_PEER);
	cr_assert_not(dest_of(e)->cc->throttled);
	cr_assert_eq(notify(e, false), UR_DROP_NONE);
	cr_assert_eq(end_counters(e)->rp_cnp_handled, 1);
	cr_assert(dest_of(e)->cc->throttled);
	end_send(e, 1, IBV_WR_RDMA_WRITE, WRITE_1000);
	cr_assert_lt(end_drain(e), 4u);
	end_sleep(e, 1000 * US);
	cr_assert_gt(end_drain(e), 0u);
	end_free(e);
	e = END(.pacing = &cmdpd);
	cr_assert_eq(notify(e, false), UR_DROP_NONE);
	cr_assert_eq(end_counters(e)->rp_cnp_ignored, 1);
	cr_assert_not(dest_of(e)->cc->throttled);
	end_free(e);
}

/* ---- silence ---- */

/* SCHED-SILENCE-01 */
static void expect_persist(enum ur_mode mode)
{
	struct end *e = END(.mode = mode);
	struct ur_engine_qos qos;

	end_send(e, 1, IBV_WR_RDMA_WRITE, WRITE_1000);
	cr_assert_not(end_out(e)->bth.ackreq);
	ur_engine_qos_default(&qos);
	qos.vl.sl2vl[0] = 15; /* it loses its lane */
	ur_engine_set_qos(e->engine, &qos);
	end_expect_silence(e);
	for (unsigned i = 0; i < 10; i++)
		end_sleep(e, END_TIMEOUT_NS);
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 0);
	cr_assert_eq(end_counters(e)->rto, 0);
	qos.vl.sl2vl[0] = 0;
	ur_engine_set_qos(e->engine, &qos);
	cr_assert(end_out(e)->bth.ackreq, "the next packet asks");
	cr_assert_eq(end_drain(e), 2);
	/* Now an answer is outstanding. */
	end_sleep(e, 2 * END_TIMEOUT_NS);
	cr_assert_gt(end_drain(e), 0u);
	end_free(e);
}

Test(dest, silence_while_it_waits_for_its_turn_is_no_loss)
{
	expect_persist(UR_MODE_GBN);
	expect_persist(UR_MODE_REORDER);
	expect_persist(UR_MODE_EXTENDED);
}

/* EXT-COMP-TIMEOUT-02 */
Test(dest, what_asks_and_waits_for_its_turn_is_no_local_ack_timeout)
{
	struct end *e = END(.mode = UR_MODE_EXTENDED);
	struct ur_engine_qos qos;

	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	cr_assert(end_out(e)->bth.ackreq);
	ur_engine_qos_default(&qos);
	qos.vl.sl2vl[0] = 15;
	ur_engine_set_qos(e->engine, &qos);
	/* The probe is due before the timeout. Other queues have turns meanwhile. */
	for (unsigned i = 0; i < 20; i++) {
		core_of(e)->cnt.sched_turns++;
		end_sleep(e, END_TIMEOUT_NS / 2);
	}
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 0);
	qos.vl.sl2vl[0] = 0;
	ur_engine_set_qos(e->engine, &qos);
	cr_assert(end_out(e)->op & UR_OP_PROBE);
	/* It was asked: turns that take longer than the timeout do not save a dead peer. */
	for (unsigned i = 0; i < 20 && e->qp->state == IBV_QPS_RTS; i++) {
		end_sleep(e, 3 * END_TIMEOUT_NS / 2);
		end_drain(e);
	}
	end_expect_wc(e, 1, IBV_WC_RETRY_EXC_ERR);
	end_free(e);
}

/* EXT-COMP-TIMEOUT-02 */
Test(dest, a_port_that_takes_nothing_hides_no_dead_peer)
{
	struct end *e = END(.mode = UR_MODE_EXTENDED);

	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	cr_assert(end_out(e)->bth.ackreq);
	/* No output is asked for. */
	for (unsigned i = 0; i < 40 && e->qp->state == IBV_QPS_RTS; i++)
		end_sleep(e, END_TIMEOUT_NS);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_expect_wc(e, 1, IBV_WC_RETRY_EXC_ERR);
	end_free(e);
}
