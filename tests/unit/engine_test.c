/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"

/* ---- checks before a packet reaches a QP: RC-IN-01 ---- */

/* RC-IN-01 */
Test(engine, packet_for_an_unknown_queue_pair_is_dropped)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);

	for (unsigned bit = 0; bit < 24; bit++) {
		p.bth.dqpn = ur_qpn(e->qp->qpn.v ^ 1u << bit);
		cr_assert_eq(end_in(e, p), UR_DROP_QPN);
	}
	cr_assert_eq(end_counters(e)->drops[UR_DROP_QPN], 24);
	cr_assert_eq(end_counters(e)->rx_packets, 0);
	end_free(e);
}

/* RC-IN-01 */
Test(engine, opcode_of_another_transport_is_dropped)
{
	static const uint8_t of_rc[] = {UR_UC_WRITE_ONLY, UR_UD_SEND_ONLY};
	struct end *e = END(), *uc = END(.type = IBV_QPT_UC), *ud = END(.type = IBV_QPT_UD);

	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(end_recv(e, of_rc[i], 100, 4), UR_DROP_QP_TYPE);
	cr_assert_eq(end_recv(uc, UR_RC_ACKNOWLEDGE, 100, 0), UR_DROP_QP_TYPE);
	cr_assert_eq(end_recv(ud, UR_RC_SEND_ONLY, 100, 4), UR_DROP_QP_TYPE);
	end_free(e);
	end_free(uc);
	end_free(ud);
}

/* Every RC packet of standard mode, or of extended mode, must be dropped without an effect. */
static void expect_blind(struct end *e, uint8_t transport)
{
	unsigned char before[sizeof(struct ur_qp)], bytes[256];
	uint64_t rx = end_counters(e)->rx_packets;
	unsigned dropped = 0;

	end_post_recv(e, 1, 0, 256);
	end_send(e, 2, IBV_WR_RDMA_READ, 512);
	end_drain(e);
	memcpy(before, e->qp, sizeof(before));
	memcpy(bytes, e->buf, sizeof(bytes));
	for (unsigned op = transport; op < transport + 32u; op++) {
		uint32_t flags = ur_op_flags((uint8_t)op);
		/* A packet that would have an effect: the next request, or an answer to ours. */
		uint32_t psn = flags & UR_OP_RESPONSE ? END_SQ_PSN : END_RQ_PSN;
		struct ur_packet p;

		if (!(flags & UR_OP_KNOWN))
			continue;
		p = end_packet(e, (uint8_t)op, psn, flags & UR_OP_PAYLOAD ? 256 : 0);
		p.xth = (struct ur_xth){.ssn = 1};
		p.xaeth = (struct ur_xaeth){.epsn = ur_psn(END_SQ_PSN + 1)};
		p.xrth = (struct ur_xrth){.ssn = 1};
		cr_assert_eq(end_in(e, p), UR_DROP_MODE, "%s", ur_opcodes[op].name);
		cr_assert_eq(memcmp(before, e->qp, sizeof(before)), 0, "%s", ur_opcodes[op].name);
		dropped++;
	}
	cr_assert_gt(dropped, 15);
	cr_assert_eq(end_counters(e)->drops[UR_DROP_MODE], dropped);
	cr_assert_eq(end_counters(e)->rx_packets, rx);
	cr_assert_eq(memcmp(bytes, e->buf, sizeof(bytes)), 0);
	end_expect_no_wc(e);
	end_expect_silence(e);
}

/* EXT-MODE-01 */
Test(engine, packets_of_the_other_mode_change_nothing)
{
	static const enum ur_mode standard[] = {UR_MODE_GBN, UR_MODE_REORDER};
	struct end *e = END(.mode = UR_MODE_EXTENDED);

	expect_blind(e, UR_TRANSPORT_RC);
	end_free(e);
	for (unsigned i = 0; i < 2; i++) {
		e = END(.mode = standard[i]);
		expect_blind(e, UR_TRANSPORT_EXT);
		end_free(e);
	}
}

/* RC-IN-01 */
Test(engine, source_that_is_not_the_peer_is_dropped)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);

	p.ip.src = ur_gid_from_ipv4(0x0a000003);
	cr_assert_eq(end_in(e, p), UR_DROP_PEER);
	cr_assert_eq(e->qp->rsp.epsn.v, 100);
	end_free(e);
}

/* RC-IN-01 */
Test(engine, partition_matches_in_15_bits_with_one_full_member)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);

	p.bth.pkey = 0x7fff;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	p.bth.psn = ur_psn(101);
	p.bth.pkey = 0xfffe;
	cr_assert_eq(end_in(e, p), UR_DROP_PKEY);
	end_free(e);
}

/* RC-IN-01 */
Test(engine, queue_pair_that_is_reset_or_failed_takes_nothing)
{
	struct end *e = END();

	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 4), UR_DROP_QP_STATE);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 4), UR_DROP_QP_STATE);
	end_expect_silence(e);
	end_free(e);
}

/* WIRE-CNP-01 */
Test(engine, congestion_notification_is_counted_and_changes_nothing)
{
	struct end *e = END();
	static const uint8_t reserved[16];
	struct ur_packet p = frame_packet(UR_CNP, false, reserved, 16);

	p.bth.dqpn = e->qp->qpn;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	p.bth.dqpn = ur_qpn(e->qp->qpn.v + 64);
	cr_assert_eq(end_in(e, p), UR_DROP_QPN);
	cr_assert_eq(end_counters(e)->rp_cnp_ignored, 1);
	end_free(e);
}

Test(engine, congestion_mark_is_counted)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);

	p.ip.tos |= 3;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(end_counters(e)->np_ecn_marked_roce_packets, 1);
	end_free(e);
}

Test(engine, management_is_worker_0s)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_UD_SEND_ONLY, 0, 256);

	p.bth.dqpn = ur_qpn(1);
	p.deth.qkey = 0x80010000;
	cr_assert_eq(end_in(e, p), UR_DROP_QPN);
	cr_assert_eq(ur_qpn_worker(ur_qpn(0), 8), 0);
	cr_assert_eq(ur_qpn_worker(ur_qpn(1), 8), 0);
	cr_assert_eq(ur_qpn_worker(ur_qpn(0xfffff6), 8), 6);
	end_free(e);
}

static struct ur_packet mad(struct end *e)
{
	struct ur_packet p = end_packet(e, UR_UD_SEND_ONLY, 0, 256);

	p.bth.dqpn = ur_qpn(1);
	p.deth.qkey = 0x80010000;
	return p;
}

Test(engine, management_datagram_must_look_like_one)
{
	struct end *e = END(.cm = true);
	struct ur_packet p = mad(e);

	cr_assert_eq(end_in(e, p), UR_DROP_MAD, "no MAD, but it got that far");
	p.bth.pkey = 0x1234;
	cr_assert_eq(end_in(e, p), UR_DROP_PKEY);
	p = mad(e);
	p.deth.qkey = END_QKEY;
	cr_assert_eq(end_in(e, p), UR_DROP_QKEY);
	p = mad(e);
	p.payload_len = 252;
	cr_assert_eq(end_in(e, p), UR_DROP_MAD);
	p = end_packet(e, UR_RC_SEND_ONLY, 0, 256);
	p.bth.dqpn = ur_qpn(1);
	cr_assert_eq(end_in(e, p), UR_DROP_QP_TYPE);
	end_expect_silence(e);
	end_free(e);
}

/* IN-ADDR-01 */
Test(engine, ipv6_header_does_not_speak_for_ipv4_addresses)
{
	struct end *e = END(.cm = true);
	struct ur_packet p = mad(e), six = frame_packet(UR_UD_SEND_ONLY, true, p.payload, 256);

	six.bth = p.bth;
	six.deth = p.deth;
	cr_assert_eq(end_in(e, six), UR_DROP_MAD);
	six.ip.src = ur_gid_from_ipv4(0x0a000001);
	cr_assert_eq(end_in(e, six), UR_DROP_PEER);
	six = frame_packet(UR_RC_WRITE_ONLY, true, p.payload, 4);
	p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);
	six.bth = p.bth;
	six.reth = p.reth;
	six.ip.src = ur_gid_from_ipv4(0x0a000001);
	cr_assert_eq(end_in(e, six), UR_DROP_PEER);
	cr_assert_eq(e->qp->rsp.epsn.v, 100);
	end_free(e);
}

static void expect_group(struct end *e, struct ur_packet p)
{
	cr_assert_eq(end_in(e, p), UR_DROP_GROUP);
	end_expect_silence(e);
}

/* Feeds `p` with each of the addresses that are not addresses of a host. */
static void expect_no_group(struct end *e, struct ur_packet p)
{
	static const uint32_t not_hosts[] = {0xffffffff, 0xe0000001, 0xf0000001, 0x7f000001, 0};
	static const uint8_t groups[][6] = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
					    {0x01, 0x00, 0x5e, 0, 0, 1},
					    {0x33, 0x33, 0, 0, 0, 1}};
	struct ur_packet q;

	for (unsigned i = 0; i < 3; i++) {
		q = p;
		memcpy(q.dmac, groups[i], 6);
		expect_group(e, q);
		q = p;
		memcpy(q.smac, groups[i], 6);
		expect_group(e, q);
	}
	for (unsigned i = 0; i < 5; i++) {
		q = p;
		q.ip.src = ur_gid_from_ipv4(not_hosts[i]);
		expect_group(e, q);
	}
}

/* IN-ADDR-02 */
Test(engine, packets_from_or_to_a_group_are_not_answered)
{
	struct end *e = END(.cm = true);
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);
	struct ur_packet six = frame_packet(UR_UD_SEND_ONLY, true, p.payload, 256);

	p.bth.ackreq = true;
	expect_no_group(e, p);
	cr_assert_eq(e->qp->rsp.epsn.v, 100);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_ack(e, 100);
	p = mad(e);
	expect_no_group(e, p);
	six.bth = p.bth;
	six.deth = p.deth;
	cr_assert_eq(end_in(e, six), UR_DROP_MAD);
	six.ip.src = (struct ur_gid){{0xff, 2, [15] = 1}};
	expect_group(e, six);
	six.ip.src = (struct ur_gid){{[15] = 1}};
	expect_group(e, six);
	six.ip.src = (struct ur_gid){{0}};
	expect_group(e, six);
	end_free(e);
}

/* MCAST-ADDR-01, as the round passes it in. */
Test(engine, a_packet_to_a_group_has_its_mac_address_and_its_version_of_ip)
{
	static const uint8_t macs[][6] = {{0x01, 0x00, 0x5e, 1, 2, 3},
					  {0x33, 0x33, 0, 0, 0, 9},
					  {0x01, 0x00, 0x5e, 1, 2, 4},
					  {0x33, 0x33, 239, 1, 2, 3},
					  {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	const struct ur_gid groups[2] = {ur_gid_from_ipv4(0xef010203), {{0xff, 0x15, [15] = 9}}};
	struct end *e = END(.type = IBV_QPT_UD, .recv_wr = 4);
	struct ur_packet p = end_packet(e, UR_UD_SEND_ONLY, 0, 4);

	for (unsigned v6 = 0; v6 < 2; v6++) {
		if (v6)
			p.ip = frame_packet(UR_UD_SEND_ONLY, true, p.payload, 4).ip;
		cr_assert_eq(ur_engine_attach(e->engine, &groups[v6], e->qp->qpn, false), 0);
		p.bth.dqpn = ur_qpn(UR_GROUP_QPN);
		p.ip.dst = groups[v6];
		end_post_recv(e, v6, 0, 256);
		for (unsigned i = 0; i < 5; i++) {
			memcpy(p.dmac, macs[i], 6);
			cr_expect_eq(ur_engine_input_group(e->engine, &p, false, e->now_ns),
				     i == v6 ? UR_DROP_NONE : UR_DROP_GROUP, "group %u, MAC %u", v6,
				     i);
		}
	}
	memcpy(p.dmac, macs[0], 6);
	p.ip.dst = groups[0];
	cr_expect_eq(ur_engine_input_group(e->engine, &p, false, e->now_ns), UR_DROP_GROUP);
	memcpy(p.dmac, macs[1], 6);
	p.ip.dst = groups[1];
	p.ip.src = ur_gid_from_ipv4(0x0a000001);
	cr_expect_eq(ur_engine_input_group(e->engine, &p, false, e->now_ns), UR_DROP_GROUP);
	for (unsigned v6 = 0; v6 < 2; v6++)
		cr_assert_eq(ur_engine_detach(e->engine, &groups[v6], e->qp->qpn), 0);
	end_free(e);
}

/* ---- output ---- */

/* RC-RESP-ACK-01 */
Test(engine, acks_go_before_requests)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 4);

	p.bth.ackreq = true;
	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_ack(e, 100);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	end_free(e);
}

/* SCHED-TURN-01 */
Test(engine, long_answer_and_long_request_take_turns)
{
	struct end *e = END(.window = 1024, .mtu = IBV_MTU_4096);
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);
	unsigned turns = 0, run = 0;
	bool response = false;

	p.reth.length = 64 * 4096;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 64 * 4096);
	for (unsigned i = 0; i < 128; i++) {
		bool is_response = end_out(e)->op & UR_OP_READ_RESP;

		if (i && is_response == response) {
			cr_assert_lt(++run, 4u, "more than 16 KB in a turn");
		} else {
			turns++;
			run = 0;
		}
		response = is_response;
	}
	cr_assert_geq(turns, 32);
	end_expect_silence(e);
	end_free(e);
}

Test(engine, idle_engine_visits_no_queue_and_has_no_deadline)
{
	struct end *e = END();

	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->sched_turns, 0);
	cr_assert_eq(ur_engine_next_deadline(e->engine), UR_NEVER);
	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_eq(end_drain(e), 1);
	cr_assert_eq(end_counters(e)->sched_turns, 1);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	/* RC-TIMER-ACK-01 */
	cr_assert_leq(ur_engine_next_deadline(e->engine), e->now_ns + END_TIMEOUT_NS + 1024);
	/* TIMER-IDLE-01 */
	cr_assert_eq(end_ack(e, 1000, 31, 1), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(ur_engine_next_deadline(e->engine), UR_NEVER);
	end_free(e);
}

/* TIMER-KEEP-01 */
Test(engine, timer_of_a_queue_pair_in_use_stays_until_it_fires_in_vain)
{
	struct end *e = END();
	uint64_t deadline;

	for (unsigned i = 0; i < 4; i++) {
		end_send(e, i, IBV_WR_SEND, 4);
		cr_assert_eq(end_drain(e), 1);
		deadline = ur_engine_next_deadline(e->engine);
		cr_assert_eq(end_ack(e, 1000 + i, 31, i + 1), UR_DROP_NONE);
		/* The first message does not tell that others follow. */
		cr_assert_eq(ur_engine_next_deadline(e->engine), i ? deadline : UR_NEVER);
	}
	e->now_ns = e->qp->timer.deadline_ns + 1024;
	ur_engine_expire(e->engine, e->now_ns);
	end_expect_silence(e);
	cr_assert_eq(ur_engine_next_deadline(e->engine), UR_NEVER);
	/* It was idle. */
	end_send(e, 4, IBV_WR_SEND, 4);
	cr_assert_eq(end_drain(e), 1);
	cr_assert_eq(end_ack(e, 1004, 31, 5), UR_DROP_NONE);
	cr_assert_eq(ur_engine_next_deadline(e->engine), UR_NEVER);
	end_free(e);
}

/* ---- life ---- */

/* QP-DESTROY-01 */
Test(engine, destroyed_queue_pair_leaves_nothing_to_be_done)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);
	struct ur_tx tx = {.hdr = e->out_frame.b};

	p.reth.length = 1024;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	end_send(e, 1, IBV_WR_SEND, 1024);
	end_post_recv(e, 2, 0, 64);
	p = end_packet(e, UR_RC_READ_REQUEST, 104, 0);
	p.reth.length = 4;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	ur_engine_destroy_qp(e->engine, e->qp, e->now_ns);
	cr_assert_eq(ur_engine_output(e->engine, &tx, 1, e->now_ns), 0);
	cr_assert_eq(ur_engine_next_deadline(e->engine), UR_NEVER);
	ur_engine_expire(e->engine, e->now_ns + 10 * END_TIMEOUT_NS);
	end_expect_no_wc(e);
	cr_assert_null(ur_engine_find_qp(e->engine, e->qp->qpn));
	cr_assert_eq(ur_engine_objects(e->engine, e->now_ns).qps, 0);
	cr_assert_eq(ur_engine_objects(e->engine, e->now_ns).time_wait, 1);
	cr_assert_eq(ur_engine_objects(e->engine, e->now_ns + 1000).time_wait, 0);
	end_free(e);
}

/* QP-DESTROY-01 */
Test(engine, destroyed_datagram_queue_pair_is_not_settled)
{
	struct end *e = END(.type = IBV_QPT_UC);

	end_send(e, 1, IBV_WR_SEND, 4);
	end_expect(e, UR_UC_SEND_ONLY, 1000);
	ur_engine_destroy_qp(e->engine, e->qp, e->now_ns);
	ur_engine_expire(e->engine, e->now_ns);
	end_expect_no_wc(e);
	end_free(e);
}

/* QP-RESET-01 */
Test(engine, reset_queue_pair_starts_anew)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 1024);
	end_post_recv(e, 2, 0, 64);
	end_expect(e, UR_RC_SEND_FIRST, 1000);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	end_expect_silence(e);
	end_expect_no_wc(e);
	cr_assert_eq(ur_engine_next_deadline(e->engine), UR_NEVER);
	cr_assert_eq(end_post(e, end_wr(e, 3, IBV_WR_SEND), 0, 4), EINVAL);
	end_free(e);
}

/* QP-STATE-01 */
Test(engine, attribute_out_of_range_changes_nothing)
{
	static const struct {
		struct ibv_qp_attr attr;
		int mask;
	} cases[] = {
		{{.timeout = 32}, IBV_QP_TIMEOUT},
		{{.retry_cnt = 8}, IBV_QP_RETRY_CNT},
		{{.rnr_retry = 8}, IBV_QP_RNR_RETRY},
		{{.min_rnr_timer = 32}, IBV_QP_MIN_RNR_TIMER},
		{{.max_rd_atomic = 129}, IBV_QP_MAX_QP_RD_ATOMIC},
		{{.max_dest_rd_atomic = 5}, IBV_QP_MAX_DEST_RD_ATOMIC},
		{{.port_num = 2}, IBV_QP_PORT},
		{{.pkey_index = 1}, IBV_QP_PKEY_INDEX},
		{{.cur_qp_state = IBV_QPS_RTS}, IBV_QP_CUR_STATE},
		{{.path_mig_state = IBV_MIG_ARMED}, IBV_QP_PATH_MIG_STATE},
	};
	struct end *e = END();

	cr_assert_eq(end_modify(e, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(end_modify(e, IBV_QPS_SQD, cases[i].attr, cases[i].mask), -EINVAL,
			     "case %u", i);
	cr_assert_eq(e->qp->rsp.res_cnt, 2);
	cr_assert_eq(e->qp->rsp.min_rnr_timer, 12);
	end_free(e);
}

/* SCHED-PREFETCH-01 */
Test(engine, the_next_doorbell_is_predicted)
{
	struct end *e = END();
	struct ur_qp_create c = {
		.type = IBV_QPT_UC,
		.pd = END_PD,
		.send_cq = &e->cq,
		.recv_cq = &e->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.rings = aligned_alloc(64, 4096),
	};
	struct ur_qp *qp[3] = {e->qp};
	uint32_t slot = e->qp->qpn.v >> 1 & 7; /* two workers, 8 slots */

	cr_assert_leq(ur_qp_rings_bytes(&c), 4096);
	for (unsigned i = 1; i < 3; i++)
		cr_assert_eq(ur_engine_create_qp(e->engine, &c, e->now_ns, &qp[i]), 0);
	for (unsigned i = 0; i < 7; i++)
		ur_engine_doorbell(e->engine, qp[i % 3], e->now_ns);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(qp[i]->next_doorbell, slot + (qp[(i + 1) % 3] - qp[0]));
	/* The engine drops its reference to a destroyed QP with the next doorbell. */
	ur_engine_destroy_qp(e->engine, qp[1], e->now_ns);
	ur_engine_doorbell(e->engine, qp[2], e->now_ns);
	ur_engine_doorbell(e->engine, qp[0], e->now_ns);
	cr_assert_eq(qp[0]->next_doorbell, slot + (qp[2] - qp[0]));
	cr_assert_eq(qp[2]->next_doorbell, slot);
	end_expect_silence(e);
	free(c.rings);
	end_free(e);
}

/* QP-CREATE-01 */
Test(engine, queue_pair_of_an_unknown_kind_or_another_worker_is_refused)
{
	struct end *e = END();
	struct ur_cq other_worker = {.worker = 0};
	struct ur_srq stranger = {.pd = END_PD + 1};
	struct ur_qp_create c = {
		.type = IBV_QPT_RC,
		.pd = END_PD,
		.send_cq = &e->cq,
		.recv_cq = &e->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.rings = aligned_alloc(64, 4096),
	};
	struct ur_qp *qp;

	cr_assert_leq(ur_qp_rings_bytes(&c), 4096);
	c.type = IBV_QPT_RAW_PACKET;
	cr_assert_eq(ur_engine_create_qp(e->engine, &c, 0, &qp), -EINVAL);
	c.type = IBV_QPT_RC;
	c.recv_cq = &other_worker;
	cr_assert_eq(ur_engine_create_qp(e->engine, &c, 0, &qp), -EINVAL);
	c.recv_cq = &e->cq;
	c.max_dest_rd_atomic = UR_RD_ATOMIC_MAX + 1;
	cr_assert_eq(ur_engine_create_qp(e->engine, &c, 0, &qp), -EINVAL);
	c.max_dest_rd_atomic = 0;
	c.srq = &stranger;
	cr_assert_eq(ur_engine_create_qp(e->engine, &c, 0, &qp), -EINVAL);
	c.srq = NULL;
	for (unsigned i = 1; i < 4; i++)
		cr_assert_eq(ur_engine_create_qp(e->engine, &c, e->now_ns, &qp), 0);
	cr_assert_eq(ur_engine_create_qp(e->engine, &c, e->now_ns, &qp), -ENOMEM);
	free(c.rings);
	end_free(e);
}

/* Bytes of the queues of a queue pair, with as many READs and atomics to be remembered. */
static size_t rings_with_reads(enum ibv_qp_type type, uint8_t reads)
{
	struct ur_qp_create c = {
		.type = type,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.max_dest_rd_atomic = reads,
	};

	return ur_qp_rings_bytes(&c);
}

Test(engine, only_rc_takes_memory_for_reads_and_atomics)
{
	cr_expect_eq(rings_with_reads(IBV_QPT_UD, 16), rings_with_reads(IBV_QPT_UD, 0));
	cr_expect_eq(rings_with_reads(IBV_QPT_UC, 16), rings_with_reads(IBV_QPT_UC, 0));
	cr_expect_geq(rings_with_reads(IBV_QPT_RC, 16),
		      rings_with_reads(IBV_QPT_RC, 0) + 16 * sizeof(struct ur_rd_res));
	/* LOSS-OWN-01 */
	cr_expect_eq(rings_with_reads(IBV_QPT_RC, 0) - rings_with_reads(IBV_QPT_UD, 0),
		     (sizeof(struct ur_ext_own) + 63) / 64 * 64);
}

/* SCHED-BLIND-01 */
Test(engine, turn_in_which_a_request_fails_is_not_in_vain)
{
	static const enum ur_mode modes[] = {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED};

	for (unsigned i = 0; i < 3; i++) {
		struct end *e = END(.window = 128, .mode = modes[i]);
		unsigned n = 0;

		end_send(e, 1, IBV_WR_RDMA_WRITE, 100 * 256);
		while (end_counters(e)->sched_turns < 2 && end_out(e))
			n++;
		cr_assert_lt(n, 16384 / 256, "a turn, and one packet of the next");
		ur_emux_change(&ur_engine_core(e->engine)->emux,
			       &(struct ur_emux_attr){UR_EMUX_RR, UR_EMUX_WQES, UR_EMUX_BURST});
		cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
		end_expect_silence(e);
		end_expect_wc(e, 1, IBV_WC_LOC_PROT_ERR);
		cr_assert_gt(end_counters(e)->sched_turns, 2);
		cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
		end_free(e);
	}
}

/* SCHED-BLIND-01 */
Test(engine, turn_in_which_a_read_is_refused_is_not_in_vain)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);
	unsigned n = 0;

	p.reth.length = 100 * 256;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	while (end_counters(e)->sched_turns < 2 && end_out(e))
		n++;
	cr_assert_lt(n, 16384 / 256, "a turn, and one packet of the next");
	ur_emux_change(&ur_engine_core(e->engine)->emux,
		       &(struct ur_emux_attr){UR_EMUX_RR, UR_EMUX_WQES, UR_EMUX_BURST});
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	end_expect_nak(e, 100 + n, UR_SYNDROME_NAK | UR_NAK_REM_ACCESS);
	cr_assert_gt(end_counters(e)->sched_turns, 2);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* SCHED-BLIND-01, RC-RESP-READ-02 */
Test(engine, turn_in_which_a_repeated_read_is_dropped_is_not_in_vain)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);
	uint64_t turns;

	p.reth.length = 4 * 256;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 4);
	cr_assert_eq(end_in(e, p), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	turns = end_counters(e)->sched_turns;
	end_expect_silence(e);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	cr_assert_gt(end_counters(e)->sched_turns, turns);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}
