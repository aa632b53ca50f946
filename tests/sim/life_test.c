/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "bench.h"
#include "modes.h"

/*
 * The life cycle of QPs, CQs and SRQs: drain, flush, reset, destruction with packets in flight,
 * reuse of QPNs, events.
 */
#define LIMIT_NS SIM_MS(1000)

static void post(struct bench *b, struct ibv_send_wr wr, uint64_t wr_id)
{
	wr.wr_id = wr_id;
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
}

/* ---- states ---- */

EACH_MODE(life, sqd_finishes_what_was_begun_and_reports_when_drained)
{
	struct bench *b = bench_new(mode, "sqd", NULL);
	struct ibv_qp_attr attr = {.en_sqd_async_notify = 1};

	post(b, bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 8000), 1);
	sim_sleep(b->s, SIM_US(3)); /* it has been sent, but its ACK has not arrived */
	cr_assert_eq(sim_qp_modify(&b->qp[0], IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, &attr), 0);
	post(b, bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 100), 2);
	cr_assert_eq(sim_async_count(&b->s->ep[0], IBV_EVENT_SQ_DRAINED, &b->qp[0]), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, LIMIT_NS);
	sim_sleep(b->s, SIM_MS(10));
	cr_assert_eq(sim_async_count(&b->s->ep[0], IBV_EVENT_SQ_DRAINED, &b->qp[0]), 1);
	sim_expect_none(b->s, &b->cq[0]);
	cr_assert_eq(sim_qp_modify(&b->qp[0], IBV_QPS_RTS, 0, NULL), 0);
	sim_expect(b->s, &b->cq[0], 2, IBV_WC_SUCCESS, LIMIT_NS);
	bench_free(b);
}

EACH_MODE(life, a_qp_moved_to_error_flushes_both_queues_in_order)
{
	struct bench *b = bench_new(mode, "flush", NULL);

	for (unsigned i = 0; i < 5; i++)
		post(b, bench_send(b, 0, 3000), i);
	for (unsigned i = 0; i < 3; i++)
		bench_recv(b, 10 + i, 100);
	cr_assert_eq(sim_qp_modify(&b->qp[0], IBV_QPS_ERR, 0, NULL), 0);
	cr_assert_eq(sim_qp_modify(&b->qp[1], IBV_QPS_ERR, 0, NULL), 0);
	for (unsigned i = 0; i < 5; i++)
		sim_expect(b->s, &b->cq[0], i, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	for (unsigned i = 0; i < 3; i++)
		sim_expect(b->s, &b->cq[1], 10 + i, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	/* Requests posted from now on are flushed as well. */
	post(b, bench_send(b, 0, 10), 20);
	bench_recv(b, 21, 100);
	sim_expect(b->s, &b->cq[0], 20, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	sim_expect(b->s, &b->cq[1], 21, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	bench_free(b);
}

EACH_MODE(life, a_reset_qp_is_as_new)
{
	struct bench *b = bench_new(mode, "reset", NULL);

	post(b, bench_send(b, 0, 3000), 1);
	bench_recv(b, 10, 8000);
	sim_sleep(b->s, SIM_US(7)); /* in the middle of it */
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(sim_qp_modify(&b->qp[i], IBV_QPS_RESET, 0, NULL), 0);
	sim_sleep(b->s, SIM_MS(1));
	sim_expect_none(b->s, &b->cq[0]);
	sim_expect_none(b->s, &b->cq[1]);
	b->qp[0].attr.psn = 0xabcdef;
	sim_qp_connect(&b->qp[0], &b->qp[1]);
	sim_pattern(b->mr[0].p, 3000, 1);
	bench_recv(b, 11, 8000);
	post(b, bench_send(b, 0, 3000), 2);
	sim_expect(b->s, &b->cq[1], 11, IBV_WC_SUCCESS, LIMIT_NS);
	sim_expect(b->s, &b->cq[0], 2, IBV_WC_SUCCESS, LIMIT_NS);
	cr_assert_eq(memcmp(b->mr[0].p, b->mr[1].p, 3000), 0);
	bench_free(b);
}

EACH_MODE(life, the_first_packet_in_rtr_establishes_the_communication)
{
	struct bench_attr attr = {.unconnected = true};
	struct bench *b = bench_new(mode, "comm_est", &attr);

	b->qp[0].peer = &b->qp[1];
	b->qp[1].peer = &b->qp[0];
	for (unsigned i = 0; i < 2; i++) {
		sim_qp_to_init(&b->qp[i]);
		sim_qp_to_rtr(&b->qp[i], b->qp[i].peer);
	}
	sim_qp_to_rts(&b->qp[0]);
	post(b, bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 3000), 1);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, LIMIT_NS);
	cr_assert_eq(sim_async_count(&b->s->ep[1], IBV_EVENT_COMM_EST, &b->qp[1]), 1);
	bench_free(b);
}

EACH_MODE(life, a_qp_in_init_receives_nothing)
{
	struct bench_attr attr = {.unconnected = true};
	struct bench *b = bench_new(mode, "deaf", &attr);

	b->qp[0].attr.timeout = 8;
	b->qp[0].attr.retry_cnt = 1;
	sim_qp_to_init(&b->qp[0]);
	sim_qp_to_init(&b->qp[1]);
	sim_qp_to_rtr(&b->qp[0], &b->qp[1]);
	sim_qp_to_rts(&b->qp[0]);
	post(b, bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 3000), 1);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_RETRY_EXC_ERR, LIMIT_NS);
	cr_assert_gt(sim_counters(&b->s->ep[1])->drops[UR_DROP_QP_STATE], 0);
	bench_free(b);
}

/* ---- destruction ---- */

EACH_MODE(life, packets_for_a_destroyed_qp_are_dropped)
{
	struct bench *b = bench_new(mode, "destroy", NULL);
	uint8_t before[BENCH_BYTES];

	post(b, bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 8000), 1);
	post(b, bench_rdma(b, IBV_WR_RDMA_READ, 0, 8000), 2);
	sim_sleep(b->s, SIM_US(2)); /* on the wire */
	sim_qp_destroy(&b->qp[1]);
	sim_qp_destroy(&b->qp[0]);
	memcpy(before, b->mr[1].p, BENCH_BYTES);
	sim_sleep(b->s, SIM_MS(100));
	cr_assert_gt(b->s->ep[1].rx_dropped, 0);
	cr_assert_eq(b->s->ep[1].last_drop, UR_DROP_QPN);
	cr_assert_eq(memcmp(before, b->mr[1].p, BENCH_BYTES), 0);
	sim_expect_none(b->s, &b->cq[0]);
	bench_free(b);
}

EACH_MODE(life, a_requester_destroyed_before_its_responses_come_is_gone)
{
	struct bench *b = bench_new(mode, "destroy_req", NULL);
	uint8_t before[BENCH_BYTES];

	memcpy(before, b->mr[0].p, BENCH_BYTES);
	post(b, bench_rdma(b, IBV_WR_RDMA_READ, 0, 8000), 1);
	sim_sleep(b->s, SIM_US(8)); /* the responses are in flight */
	sim_qp_destroy(&b->qp[0]);
	sim_sleep(b->s, SIM_MS(100));
	cr_assert_eq(b->s->ep[0].last_drop, UR_DROP_QPN);
	cr_assert_eq(memcmp(before, b->mr[0].p, BENCH_BYTES), 0);
	bench_free(b);
}

EACH_MODE(life, a_slot_is_reused_after_time_wait_under_another_number)
{
	struct bench_attr attr = {.max_qp = 1};
	struct bench *b = bench_new(mode, "time_wait", &attr);
	struct ur_engine *e = b->s->ep[0].engine;
	struct ur_qpn old = b->qp[0].qpn;
	struct sim_qp_attr qa = b->qp[0].attr;
	struct sim_qp again;
	struct ur_qp_create c = {.type = IBV_QPT_RC,
				 .pd = SIM_PD,
				 .send_cq = &b->cq[0].cq,
				 .recv_cq = &b->cq[0].cq,
				 .cap = qa.cap};
	struct ur_qp *qp;

	sim_qp_destroy(&b->qp[0]);
	cr_assert_eq(ur_engine_objects(e, b->s->now_ns).qps, 0);
	cr_assert_eq(ur_engine_objects(e, b->s->now_ns).time_wait, 1);
	c.rings = aligned_alloc(64, (ur_qp_rings_bytes(&c) + 63) / 64 * 64);
	cr_assert_eq(ur_engine_create_qp(e, &c, b->s->now_ns, &qp), -ENOMEM);
	free(c.rings);
	sim_sleep(b->s, b->s->attr.time_wait_ns + 1);
	cr_assert_eq(ur_engine_objects(e, b->s->now_ns).time_wait, 0);
	sim_qp_create(&again, &b->s->ep[0], &qa);
	cr_assert_neq(again.qpn.v, old.v);
	cr_assert_null(ur_engine_find_qp(e, old));
	sim_qp_destroy(&again);
	bench_free(b);
}

EACH_MODE(life, stale_packets_do_not_reach_the_next_owner_of_a_slot)
{
	struct bench_attr attr = {.max_qp = 1};
	struct bench *b = bench_new(mode, "stale", &attr);
	struct sim_qp_attr qa = b->qp[1].attr;
	uint8_t before[BENCH_BYTES];

	memcpy(before, b->mr[1].p, BENCH_BYTES);
	b->s->ep[0].link[1].attr.delay_ns = SIM_MS(20); /* longer than time-wait */
	post(b, bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 8000), 1);
	sim_sleep(b->s, SIM_US(100));
	sim_qp_destroy(&b->qp[1]);
	sim_sleep(b->s, SIM_MS(12));
	sim_qp_create(&b->qp[1], &b->s->ep[1], &qa);
	b->qp[1].peer = &b->qp[0];
	sim_qp_to_init(&b->qp[1]);
	sim_qp_to_rtr(&b->qp[1], &b->qp[0]);
	sim_sleep(b->s, SIM_MS(10));
	cr_assert_eq(b->s->ep[1].last_drop, UR_DROP_QPN);
	cr_assert_eq(memcmp(before, b->mr[1].p, BENCH_BYTES), 0);
	bench_free(b);
}

EACH_MODE(life, thousands_of_qps_in_a_row_leak_nothing)
{
	struct bench_attr attr = {.max_qp = 3};
	struct bench *b = bench_new(mode, "churn", &attr);
	struct sim_qp_attr qa = b->qp[0].attr;

	for (unsigned i = 0; i < 5000; i++) {
		struct sim_qp qp;

		sim_qp_create(&qp, &b->s->ep[0], &qa);
		sim_qp_to_init(&qp);
		sim_qp_destroy(&qp);
		sim_sleep(b->s, b->s->attr.time_wait_ns / 2 + 1);
	}
	sim_sleep(b->s, b->s->attr.time_wait_ns);
	cr_assert_eq(ur_engine_objects(b->s->ep[0].engine, b->s->now_ns).qps, 1);
	cr_assert_eq(ur_engine_objects(b->s->ep[0].engine, b->s->now_ns).time_wait, 0);
	bench_free(b);
}

/* ---- completion queues ---- */

EACH_MODE(cq, an_overflow_is_reported_once_and_loses_the_rest)
{
	struct bench_attr attr = {.cqe = 2};
	struct bench *b = bench_new(mode, "overflow", &attr);

	for (unsigned i = 0; i < 5; i++)
		post(b, bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 10), i);
	sim_sleep(b->s, SIM_MS(10));
	cr_assert_eq(sim_async_count(&b->s->ep[0], IBV_EVENT_CQ_ERR, &b->cq[0]), 1);
	sim_expect(b->s, &b->cq[0], 0, IBV_WC_SUCCESS, 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, 0);
	sim_expect_none(b->s, &b->cq[0]);
	cr_assert_gt(sim_counters(&b->s->ep[0])->cq_overflow, 0);
	bench_free(b);
}

EACH_MODE(cq, a_solicited_arming_sleeps_through_ordinary_completions)
{
	struct bench *b = bench_new(mode, "solicited", NULL);
	struct ibv_send_wr wr;

	for (unsigned i = 0; i < 3; i++)
		bench_recv(b, 10 + i, 100);
	cr_assert_not(ur_cq_arm(&b->cq[1].cq, true));
	post(b, bench_send(b, 0, 10), 1);
	sim_sleep(b->s, SIM_MS(1));
	cr_assert_eq(b->cq[1].notified, 0);
	wr = bench_send(b, 0, 10);
	wr.send_flags |= IBV_SEND_SOLICITED;
	post(b, wr, 2);
	sim_sleep(b->s, SIM_MS(1));
	cr_assert_eq(b->cq[1].notified, 1);
	post(b, wr, 3); /* no longer armed */
	sim_sleep(b->s, SIM_MS(1));
	cr_assert_eq(b->cq[1].notified, 1);
	bench_free(b);
}

EACH_MODE(cq, an_error_wakes_a_solicited_arming)
{
	struct bench *b = bench_new(mode, "solicited_error", NULL);

	bench_recv(b, 10, 100);
	cr_assert_not(ur_cq_arm(&b->cq[1].cq, true));
	cr_assert_eq(sim_qp_modify(&b->qp[1], IBV_QPS_ERR, 0, NULL), 0);
	sim_sleep(b->s, SIM_MS(1));
	cr_assert_eq(b->cq[1].notified, 1);
	bench_free(b);
}

/* ---- SRQ ---- */

EACH_MODE(srq, the_limit_is_reported_once)
{
	struct bench_attr attr = {.srq = true};
	struct bench *b = bench_new(mode, "srq_limit", &attr);

	b->srq.srq.limit = 3;
	for (unsigned i = 0; i < 5; i++)
		bench_recv(b, 10 + i, 100);
	for (unsigned i = 0; i < 5; i++) {
		post(b, bench_send(b, 0, 10), i);
		sim_expect(b->s, &b->cq[0], i, IBV_WC_SUCCESS, LIMIT_NS);
		/* The limit is three: the event comes with the third message, when two receives are left. */
		cr_assert_eq(sim_async_count(&b->s->ep[1], IBV_EVENT_SRQ_LIMIT_REACHED, &b->srq),
			     i >= 2);
	}
	bench_free(b);
}

EACH_MODE(srq, a_qp_in_error_takes_nothing_from_it)
{
	struct bench_attr attr = {.srq = true};
	struct bench *b = bench_new(mode, "srq_error", &attr);

	bench_recv(b, 10, 100);
	cr_assert_eq(sim_qp_modify(&b->qp[1], IBV_QPS_ERR, 0, NULL), 0);
	sim_sleep(b->s, SIM_MS(1));
	sim_expect_none(b->s, &b->cq[1]);
	cr_assert_eq(sim_async_count(&b->s->ep[1], IBV_EVENT_QP_LAST_WQE_REACHED, &b->qp[1]), 1);
	bench_free(b);
}

/* ---- datagrams ---- */

static void ud_send(struct bench *b, struct ur_ah *ah, uint32_t len, uint32_t qkey)
{
	struct ibv_send_wr wr = bench_send(b, 1, len);

	sim_ah_init(ah, &b->qp[0], &b->s->ep[1], b->qp[1].qpn);
	wr.wr.ud.ah = (struct ibv_ah *)(void *)ah;
	wr.wr.ud.remote_qpn = b->qp[1].qpn.v;
	wr.wr.ud.remote_qkey = qkey;
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, LIMIT_NS);
}

static void ud_arrives(bool v6)
{
	struct bench_attr attr = {.type = IBV_QPT_UD, .v6 = v6};
	struct bench *b = bench_new(UR_MODE_GBN, v6 ? "ud6" : "ud4", &attr);
	const uint8_t *grh = b->mr[1].p;
	struct ur_ah ah;
	struct ibv_wc wc;

	sim_pattern(b->mr[0].p, 100, 9);
	bench_recv(b, 10, 140);
	ud_send(b, &ah, 100, b->qp[1].attr.qkey);
	wc = sim_wait(b->s, &b->cq[1], LIMIT_NS);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, 140);
	cr_assert_eq(wc.src_qp, b->qp[0].qpn.v);
	cr_assert(wc.wc_flags & IBV_WC_GRH);
	cr_assert_eq(memcmp(grh + 40, b->mr[0].p, 100), 0);
	if (v6)
		cr_assert_eq(memcmp(grh + 8, b->s->ep[0].gid6.b, 16), 0);
	else /* the IPv4 header is in the last 20 bytes: version, protocol, source */
		cr_assert(grh[20] == 0x45 && grh[29] == 17 &&
			  memcmp(grh + 32, b->s->ep[0].gid4.b + 12, 4) == 0);
	bench_free(b);
}

Test(ud, a_datagram_over_ipv4_arrives_with_its_header)
{
	ud_arrives(false);
}

Test(ud, a_datagram_over_ipv6_arrives_with_its_header)
{
	ud_arrives(true);
}

Test(ud, a_wrong_qkey_is_dropped_silently)
{
	struct bench_attr attr = {.type = IBV_QPT_UD};
	struct bench *b = bench_new(UR_MODE_GBN, "ud_qkey", &attr);
	struct ur_ah ah;

	bench_recv(b, 10, 140);
	ud_send(b, &ah, 100, b->qp[1].attr.qkey + 1);
	sim_sleep(b->s, SIM_MS(1));
	sim_expect_none(b->s, &b->cq[1]);
	cr_assert_eq(b->s->ep[1].last_drop, UR_DROP_QKEY);
	bench_free(b);
}
