/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "end.h"
#include "transport/dest.h"

/*
 * Several queue pairs of one engine and the order of their packets. The PSNs of queue pair i begin
 * at 1000 * i; queue pair 1 is that of struct end, with SL 0. MTU 256.
 */
#define OUT_MAX 256

static struct {
	uint8_t opcode;
	uint32_t dqpn, psn;
} out[OUT_MAX];

static struct ur_qp *qps[4]; /* [1, 3] */

static struct ur_emux *emux(struct end *e)
{
	return &ur_engine_core(e->engine)->emux;
}

static const struct ur_lane_counters *lane(struct end *e, unsigned vl)
{
	return &ur_engine_core(e->engine)->lane[vl];
}

static void validate(struct ur_qp *qp, void *ctx)
{
	(void)ctx;
	ur_qp_validate(qp);
}

static void check(struct end *e)
{
	ur_emux_validate(emux(e));
	ur_engine_for_each_qp(e->engine, validate, NULL);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
}

static void modify(struct end *e, struct ur_qp *qp, struct ibv_qp_attr attr, int mask)
{
	struct ur_path_attr to = {.src = ur_gid_from_ipv4(0x0a000002),
				  .dst = ur_gid_from_ipv4(0x0a000001),
				  .sport = END_SPORT};

	cr_assert_eq(ur_engine_modify_qp(e->engine, qp, &attr, mask | IBV_QP_STATE,
					 mask & IBV_QP_AV ? &to : NULL, e->now_ns),
		     0);
}

/* Creates queue pair i, with an address vector of that service level. */
static void another(struct end *e, unsigned i, uint8_t sl)
{
	struct ur_qp_create c = {
		.type = IBV_QPT_RC,
		.pd = END_PD,
		.send_cq = &e->cq,
		.recv_cq = &e->cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.max_dest_rd_atomic = 2,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = END_PEER_QPN,
		.rq_psn = END_RQ_PSN,
		.sq_psn = 1000 * i,
		.ah_attr.sl = sl,
		.max_dest_rd_atomic = 2,
		.max_rd_atomic = 2,
		.timeout = 10,
	};

	c.rings = end_take(e, ur_qp_rings_bytes(&c));
	cr_assert_eq(ur_engine_create_qp(e->engine, &c, e->now_ns, &qps[i]), 0);
	modify(e, qps[i], attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	modify(e, qps[i], attr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	modify(e, qps[i], attr,
	       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Queue pairs 1 to 3, the last two with these service levels. */
static struct end *three(uint8_t sl2, uint8_t sl3)
{
	struct end *e = END();

	qps[1] = e->qp;
	another(e, 2, sl2);
	another(e, 3, sl3);
	return e;
}

/* All lanes in the low table with this weight; lane `high` in the high table, without a limit. */
static void tables(struct end *e, uint8_t weight, int high)
{
	struct ur_engine_qos qos;

	ur_engine_qos_default(&qos);
	for (unsigned i = 0; i < UR_VL_CNT; i++)
		qos.vl.low[i].weight = weight;
	if (high >= 0) {
		qos.vl.high[0] = (struct ur_vl_entry){(uint8_t)high, 255};
		qos.vl.high_cnt = 1;
		qos.vl.high_limit = 255;
	}
	ur_engine_set_qos(e->engine, &qos);
	check(e);
}

static void post(struct end *e, unsigned i, uint64_t id, uint32_t len)
{
	e->qp = qps[i];
	end_send(e, id, IBV_WR_RDMA_WRITE, len);
}

static enum ur_drop receive(struct end *e, unsigned i, struct ur_packet p)
{
	p.bth.dqpn = qps[i]->qpn;
	e->qp = qps[i];
	return end_in(e, p);
}

/* Calls output once; the packets are in out[]. */
static unsigned output(struct end *e, unsigned cap)
{
	static uint8_t hdr[OUT_MAX][UR_HDR_MAX];
	static struct ur_tx tx[OUT_MAX];
	unsigned n;

	for (unsigned i = 0; i < cap; i++)
		tx[i].hdr = hdr[i];
	n = ur_engine_output(e->engine, tx, cap, e->now_ns);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *bth = hdr[i] + tx[i].l3_off + UR_IPV4_BYTES + UR_UDP_BYTES;

		out[i].opcode = bth[0];
		out[i].dqpn = (uint32_t)(bth[5] << 16 | bth[6] << 8 | bth[7]);
		out[i].psn = (uint32_t)(bth[9] << 16 | bth[10] << 8 | bth[11]);
	}
	check(e);
	return n;
}

/* A call for `cap` packets must return packets of the queue pairs given by the digits. */
static void expect(struct end *e, unsigned cap, const char *order)
{
	unsigned n = output(e, cap);

	cr_assert_eq(n, strlen(order), "%u packets instead of %s", n, order);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(out[i].psn / 1000, (unsigned)(order[i] - '0'),
			     "packet %u instead of %s has PSN %u", i, order, out[i].psn);
}

/* ---- which lane ---- */

/* SCHED-SL-01 */
Test(engine_lanes, requests_responses_and_acks_go_on_the_lane_of_the_address_vectors_level)
{
	struct end *e = three(5, 15);
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);

	post(e, 2, 1, 512);
	cr_assert_eq(output(e, 8), 2);
	cr_assert_eq(lane(e, 5)->packets, 2);
	p.reth.length = 768;
	cr_assert_eq(receive(e, 2, p), UR_DROP_NONE);
	cr_assert_eq(output(e, 8), 3);
	cr_assert_eq(lane(e, 5)->packets, 5);
	p = end_packet(e, UR_RC_WRITE_ONLY, 103, 4);
	p.bth.ackreq = true;
	cr_assert_eq(receive(e, 2, p), UR_DROP_NONE);
	cr_assert_eq(output(e, 8), 1);
	cr_assert_eq(out[0].opcode, UR_RC_ACKNOWLEDGE);
	cr_assert_eq(lane(e, 5)->packets, 6);
	post(e, 3, 2, 4);
	cr_assert_eq(output(e, 8), 1);
	cr_assert_eq(lane(e, 7)->packets, 1, "SL 15 has VL 7");
	/* Ethernet, IPv4, UDP, BTH, RETH, payload, ICRC. */
	cr_assert_eq(lane(e, 7)->bytes, 14 + 20 + 8 + 12 + 16 + 4 + 4);
	post(e, 1, 3, 4);
	cr_assert_eq(output(e, 8), 1);
	cr_assert_eq(lane(e, 0)->packets, 1);
	end_free(e);
}

/* SCHED-SL-01 */
Test(engine_lanes, queue_pair_that_is_reset_has_level_0_again)
{
	struct end *e = three(5, 5);

	post(e, 2, 1, 4);
	modify(e, qps[2], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
	check(e);
	cr_assert_eq(qps[2]->sq_queue.vl, 0);
	cr_assert_eq(qps[2]->rsp_queue.vl, 0);
	cr_assert_eq(output(e, 8), 0);
	end_free(e);
}

/* ---- choice of each packet ---- */

/* SCHED-PULL-01 */
Test(engine_lanes, lane_of_higher_priority_that_wakes_up_sends_the_next_packet)
{
	struct end *e = three(1, 2);

	tables(e, 1, 1);
	post(e, 1, 1, 2048);
	expect(e, 3, "111");
	post(e, 2, 2, 512);
	expect(e, 4, "2211");
	post(e, 2, 3, 256);
	expect(e, 8, "2111");
	/* The message of the lower lane was interrupted by two turns, and took one turn itself. */
	cr_assert_eq(end_counters(e)->sched_turns, 3);
	end_free(e);
}

/* SCHED-PULL-01 */
Test(engine_lanes, lanes_change_with_each_packet_if_the_tables_require_it)
{
	struct end *e = three(1, 2);

	tables(e, 1, -1);
	for (unsigned i = 1; i < 4; i++)
		post(e, i, i, 1024);
	expect(e, 5, "12312");
	expect(e, 1, "3");
	expect(e, 8, "123123");
	cr_assert_eq(end_counters(e)->sched_turns, 3);
	end_free(e);
}

/* SCHED-TURN-01 */
Test(engine_lanes, queue_pairs_of_one_lane_have_turns_of_8_requests)
{
	struct end *e = three(0, 0);

	for (unsigned k = 0; k < 10; k++)
		for (unsigned i = 1; i < 4; i++)
			post(e, i, k, 4);
	expect(e, 100, "111111112222222233333333112233");
	end_free(e);
}

/* ---- a single lane ---- */

/* SCHED-ALONE-01 */
Test(engine_lanes, lane_that_is_alone_pays_nothing_for_it_later)
{
	struct end *e = three(1, 0);
	struct ur_vl before;

	tables(e, 16, -1); /* 1024 bytes: 4 packets */
	before = ur_engine_core(e->engine)->vl;
	post(e, 1, 1, 8 * 256);
	post(e, 3, 2, 8 * 256);
	expect(e, 11, "11111111333");
	cr_assert_eq(memcmp(&before, &ur_engine_core(e->engine)->vl, sizeof(before)), 0);
	post(e, 2, 3, 8 * 256);
	expect(e, 100, "3333222232222");
	end_free(e);
}

/* ---- ahead of the lanes ---- */

static void ask_for_management(struct end *e)
{
	struct ur_path_attr to = {.src = ur_gid_from_ipv4(0x0a000002),
				  .dst = ur_gid_from_ipv4(0x0a000001),
				  .sport = END_SPORT};
	struct ur_cm_sidr_attr attr = {.dgid = ur_gid_from_ipv4(0x0a000001),
				       .service_id = 1,
				       .pkey = 0xffff,
				       .resp_timeout = 14};
	struct ur_cm_id id;

	ur_path_init(&attr.path, &to);
	cr_assert_eq(ur_cm_sidr_req(ur_engine_cm(e->engine), e, &attr, e->now_ns, &id), 0);
}

/* SCHED-AHEAD-01 */
Test(engine_lanes, management_goes_before_acks_and_acks_before_all_lanes)
{
	for (unsigned cap = 1; cap <= 8; cap += 7) {
		struct end *e = END(.cm = true);
		struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);
		unsigned n = 0;
		uint8_t seen[3];

		p.bth.ackreq = true;
		end_send(e, 1, IBV_WR_SEND, 4);
		cr_assert_eq(end_in(e, p), UR_DROP_NONE);
		ask_for_management(e);
		for (unsigned k; (k = output(e, cap)); n += k)
			for (unsigned i = 0; i < k; i++)
				seen[n + i] = out[i].opcode;
		cr_assert_eq(n, 3);
		cr_assert_eq(seen[0], UR_UD_SEND_ONLY);
		cr_assert_eq(seen[1], UR_RC_ACKNOWLEDGE);
		cr_assert_eq(seen[2], UR_RC_SEND_ONLY);
		cr_assert_eq(lane(e, 0)->packets, 2, "management has no lane");
		end_free(e);
	}
}

static void write_and_ask(struct end *e, unsigned i, uint32_t psn)
{
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, psn, 4);

	p.bth.ackreq = true;
	cr_assert_eq(receive(e, i, p), UR_DROP_NONE);
}

/* SCHED-AHEAD-01 */
Test(engine_lanes, ack_of_a_starved_lane_is_sent_and_charged_to_it)
{
	struct end *e = three(1, 2);
	const struct ur_vl *vl = &ur_engine_core(e->engine)->vl;

	tables(e, 1, 0);
	post(e, 1, 1, 64 * 256);
	expect(e, 4, "1111");
	for (unsigned k = 0; k < 3; k++) {
		write_and_ask(e, 2, 100 + k);
		cr_assert_eq(output(e, 2), 2);
		cr_assert_eq(out[0].opcode, UR_RC_ACKNOWLEDGE);
		cr_assert_eq(out[0].psn, 100 + k);
		cr_assert_eq(out[1].psn / 1000, 1);
		/* A packet counts at least 64 bytes. */
		cr_assert_eq(vl->debt[1], (int32_t)(64 * (k + 1)));
	}
	cr_assert_eq(vl->debt[0], 0);
	cr_assert_eq(vl->debt[2], 0);
	cr_assert_eq(lane(e, 1)->packets, 3);
	end_free(e);
}

/* SCHED-AHEAD-01 */
Test(engine_lanes, ack_of_a_level_without_a_lane_is_sent)
{
	struct end *e = three(1, 2);
	struct ur_engine_qos qos;

	ur_engine_qos_default(&qos);
	qos.vl.sl2vl[2] = 15;
	ur_engine_set_qos(e->engine, &qos);
	post(e, 3, 1, 4);
	write_and_ask(e, 3, 100);
	cr_assert_eq(output(e, 8), 1);
	cr_assert_eq(out[0].opcode, UR_RC_ACKNOWLEDGE);
	check(e);
	end_free(e);
}

/* ---- live changes ---- */

/* The k-th of several settings. If k is even, every service level has a lane. */
static struct ur_engine_qos setting(unsigned k)
{
	struct ur_engine_qos qos;

	ur_engine_qos_default(&qos);
	qos.sched.policy = (enum ur_emux_policy)(k % 3);
	qos.sched.wqes = 1 + k % 8;
	qos.sched.burst = 1 + k * 1000;
	qos.vl.mode = (enum ur_vl_mode)(k / 2 % 3);
	for (unsigned sl = 0; sl < 16; sl++)
		qos.vl.sl2vl[sl] = (uint8_t)((sl * 7 + k) % UR_VL_CNT);
	qos.vl.high[0] = (struct ur_vl_entry){(uint8_t)(k % UR_VL_CNT), 2};
	qos.vl.high_cnt = 1;
	if (k % 2)
		qos.vl.sl2vl[k % 3] = 15;
	return qos;
}

/* SCHED-LIVE-01 */
Test(engine_lanes, changes_while_packets_are_made_lose_and_repeat_nothing)
{
	struct end *e = three(1, 2);
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);
	uint32_t next[4] = {100, 1000, 2000, 3000}; /* [0]: responses of queue pair 2 */
	unsigned made = 0, n;

	p.reth.length = 32 * 256;
	cr_assert_eq(receive(e, 2, p), UR_DROP_NONE);
	for (unsigned i = 1; i < 4; i++)
		for (unsigned k = 0; k < 4; k++)
			post(e, i, 10 * i + k, 16 * 256);
	for (unsigned k = 0; k < 400 && made < 3 * 64 + 32; k++) {
		struct ur_engine_qos qos = setting(k);

		ur_engine_set_qos(e->engine, &qos);
		check(e);
		n = output(e, 1 + k % 3);
		for (unsigned i = 0; i < n; i++)
			cr_assert_eq(out[i].psn, next[out[i].psn / 1000]++);
		made += n;
	}
	cr_assert_eq(made, 3 * 64 + 32);
	cr_assert_eq(output(e, 8), 0);
	for (unsigned i = 1; i < 4; i++) {
		e->qp = qps[i];
		cr_assert_eq(end_ack(e, 1000 * i + 63, 0x1f, 4), UR_DROP_NONE);
		for (unsigned k = 0; k < 4; k++)
			end_expect_wc(e, 10 * i + k, IBV_WC_SUCCESS);
	}
	cr_assert_eq(end_counters(e)->retransmitted_packets, 0);
	end_free(e);
}

/* SCHED-LIVE-01 */
Test(engine_lanes, request_of_a_level_without_a_lane_is_kept_until_it_has_one)
{
	struct end *e = three(1, 2);
	struct ur_engine_qos qos;

	ur_engine_qos_default(&qos);
	post(e, 2, 1, 1024);
	expect(e, 1, "2");
	qos.vl.sl2vl[1] = 15;
	ur_engine_set_qos(e->engine, &qos);
	post(e, 3, 2, 256);
	expect(e, 8, "3");
	expect(e, 8, "");
	qos.vl.sl2vl[1] = 2;
	ur_engine_set_qos(e->engine, &qos);
	expect(e, 8, "222");
	cr_assert_eq(lane(e, 2)->packets, 4);
	end_free(e);
}

/* ---- queue pairs that end ---- */

static void destroy(struct end *e, unsigned i)
{
	ur_engine_destroy_qp(e->engine, qps[i], e->now_ns);
}

static void fail(struct end *e, unsigned i)
{
	modify(e, qps[i], (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, 0);
}

/* Gives queue pair i a destination that is not paced, so that the test controls its gate. */
static void go_to(struct end *e, unsigned i, struct ur_dest *d)
{
	*d = (struct ur_dest){.cc = &ur_engine_core(e->engine)->cc.unpaced};
	ur_gate_init(&d->gate);
	ur_emux_set_gate(emux(e), &qps[i]->sq_queue, &d->gate);
}

static void (*const ways_to_go[])(struct end *e, unsigned i) = {destroy, fail};

/* QP-DESTROY-01 */
Test(engine_lanes, destroyed_queue_pair_leaves_its_list_its_gate_and_its_turn)
{
	for (unsigned way = 0; way < 2; way++) {
		struct end *e = three(0, 0);
		struct ur_dest dest;

		go_to(e, 3, &dest);
		dest.gate.closed = true;
		for (unsigned i = 1; i < 4; i++)
			post(e, i, i, 1024);
		cr_assert_eq(emux(e)->held_cnt, 1);
		ways_to_go[way](e, 3); /* held */
		check(e);
		cr_assert_eq(emux(e)->held_cnt, 0);
		cr_assert_eq(dest.gate.waiting.ready_cnt, 0);
		expect(e, 1, "1");
		ways_to_go[way](e, 1); /* in its turn */
		check(e);
		cr_assert_null(emux(e)->turn[0].queue);
		expect(e, 1, "2");
		ways_to_go[way](e, 2);
		expect(e, 8, "");
		cr_assert_eq(emux(e)->ready_lanes, 0);
		end_free(e);
	}
}

/* QP-DESTROY-01 */
Test(engine_lanes, queue_pair_destroyed_before_its_turn_has_none)
{
	for (unsigned way = 0; way < 2; way++) {
		struct end *e = three(0, 0);

		for (unsigned i = 1; i < 4; i++)
			post(e, i, i, 512);
		ways_to_go[way](e, 2);
		expect(e, 8, "1133");
		end_free(e);
	}
}

/* ---- a gate that closes while packets are made ---- */

static struct ur_dest closing;

static void close_gate(void *ctx, struct ur_cq *cq)
{
	(void)ctx, (void)cq;
	closing.gate.closed = true;
}

/* SCHED-READY-01, SCHED-BLIND-01 */
Test(engine_lanes, queue_whose_turn_ended_at_a_gate_does_not_wait_there_for_nothing)
{
	struct end *e = three(1, 2);
	struct ibv_send_wr wr = end_wr(e, 2, IBV_WR_LOCAL_INV);

	tables(e, 1, -1);
	go_to(e, 1, &closing);
	ur_engine_core(e->engine)->sink.completion = close_gate;
	ur_cq_arm(&e->cq, false);
	post(e, 1, 1, 4);
	wr.invalidate_rkey = e->unaligned_key;
	e->qp = qps[2];
	cr_assert_eq(end_post(e, wr, 0, 0), 0);
	expect(e, 8, "1");
	cr_assert(closing.gate.closed);
	cr_assert_eq(emux(e)->held_cnt, 0);
	ur_emux_gate_open(emux(e), &closing.gate, 1);
	expect(e, 8, "");
	end_free(e);
}

/* ---- link credits ---- */

/* CREDIT-GATE-02 */
Test(engine_lanes, lanes_without_credit_send_nothing_and_hold_up_no_other)
{
	struct end *e = three(1, 2);

	for (unsigned i = 1; i < 4; i++)
		post(e, i, i, 512);
	ur_engine_open_lanes(e->engine, 0x7fff & ~(1u << 1), 0x7fff);
	expect(e, 8, "1133");
	cr_assert_eq(ur_engine_ready_lanes(e->engine), 1u << 1);
	cr_assert(ur_engine_wants_output(e->engine));
	expect(e, 8, "");
	ur_engine_open_lanes(e->engine, 0x7fff, 0x7fff);
	expect(e, 8, "22");
	end_free(e);
}

/* CREDIT-GATE-02 */
Test(engine_lanes, acks_of_a_lane_without_credit_wait)
{
	struct end *e = three(1, 2);

	for (unsigned i = 1; i < 4; i++)
		write_and_ask(e, i, END_RQ_PSN);
	ur_engine_open_lanes(e->engine, 0, 0x7fff & ~(1u << 0));
	cr_assert_eq(output(e, 8), 2);
	cr_assert_eq(lane(e, 0)->packets, 0);
	write_and_ask(e, 1, END_RQ_PSN + 1);
	cr_assert_eq(output(e, 8), 0);
	ur_engine_open_lanes(e->engine, 0, 0x7fff);
	cr_assert_eq(output(e, 8), 1, "one for both");
	cr_assert_eq(out[0].psn, END_RQ_PSN + 1);
	end_free(e);
}
