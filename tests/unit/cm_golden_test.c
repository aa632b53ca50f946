/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "cm/cm.h"
#include "golden.h"

/*
 * Captured messages of another connection manager. First, every message must encode to the same
 * bytes. Then uroce takes the part of each side in turn: it receives the messages of the peer and
 * must send those of the captured CM, except for the ids that each side chooses. PSNs are checked
 * against the data packets: the PSN that our queue pair expects must result in the message that was
 * sent, and the initial PSN that it gives its queue pair must be that of the captured one.
 */
#define MADS_MAX 32
#define QPS_MAX	 16

#define FAILOVER_AT (UR_MAD_HDR_BYTES + 26) /* in a REP, bits 1 and 2 */

struct said {
	struct ur_gid from, to;
	uint8_t mad[UR_MAD_BYTES];
};

/* The first request that a queue pair received. */
struct begun {
	struct ur_gid to;
	struct ur_qpn qpn;
	struct ur_psn psn;
};

struct talk {
	struct said said[MADS_MAX];
	size_t cnt;
	struct begun begun[QPS_MAX];
	size_t begun_cnt;
};

static const struct begun *begun_find(const struct talk *talk, const struct ur_gid *to,
				      struct ur_qpn qpn)
{
	for (size_t i = 0; i < talk->begun_cnt; i++)
		if (ur_gid_eq(&talk->begun[i].to, to) && talk->begun[i].qpn.v == qpn.v)
			return &talk->begun[i];
	return NULL;
}

static void begun_add(struct talk *talk, const struct ur_packet *p)
{
	if (!(ur_op_flags(p->bth.opcode) & UR_OP_REQUEST) ||
	    begun_find(talk, &p->ip.dst, p->bth.dqpn))
		return;
	cr_assert_lt(talk->begun_cnt, QPS_MAX);
	talk->begun[talk->begun_cnt++] = (struct begun){p->ip.dst, p->bth.dqpn, p->bth.psn};
}

static struct talk talk_load(const char *name)
{
	struct golden_file file = golden_load(name);
	struct talk talk = {.cnt = 0};

	for (size_t i = 0; i < file.cnt; i++) {
		struct ur_packet p;

		if (ur_packet_decode(file.packets[i].b, file.packets[i].len, &p) != UR_DROP_NONE)
			continue;
		if (p.bth.dqpn.v != UR_GSI_QPN) {
			begun_add(&talk, &p);
			continue;
		}
		cr_assert_lt(talk.cnt, MADS_MAX);
		cr_assert_eq(p.payload_len, UR_MAD_BYTES);
		cr_assert_eq(p.deth.qkey, UR_GSI_QKEY);
		talk.said[talk.cnt].from = p.ip.src;
		talk.said[talk.cnt].to = p.ip.dst;
		memcpy(talk.said[talk.cnt++].mad, p.payload, UR_MAD_BYTES);
	}
	golden_free(&file);
	return talk;
}

static uint16_t attr_of(const uint8_t mad[UR_MAD_BYTES])
{
	return (uint16_t)(mad[16] << 8 | mad[17]);
}

#define AGAIN(name, type)                                                                          \
	{                                                                                          \
		type m;                                                                            \
		ur_get_cm_##name(&in, &m);                                                         \
		ur_put_cm_##name(&out, &m);                                                        \
		break;                                                                             \
	}

static void encode_again(const uint8_t mad[UR_MAD_BYTES], uint8_t again[UR_MAD_BYTES])
{
	struct ur_cursor in = ur_cursor_ro(mad, UR_MAD_BYTES);
	struct ur_cursor out = ur_cursor(again, UR_MAD_BYTES);
	struct ur_mad hdr;

	ur_get_mad(&in, &hdr);
	ur_put_mad(&out, &hdr);
	switch (hdr.attr_id) {
	case UR_CM_REQ:
		AGAIN(req, struct ur_cm_req)
	case UR_CM_REJ:
		AGAIN(rej, struct ur_cm_rej)
	case UR_CM_REP:
		AGAIN(rep, struct ur_cm_rep)
	case UR_CM_RTU:
	case UR_CM_DREP:
		AGAIN(pair, struct ur_cm_pair)
	case UR_CM_DREQ:
		AGAIN(dreq, struct ur_cm_dreq)
	case UR_CM_SIDR_REQ:
		AGAIN(sidr_req, struct ur_cm_sidr_req)
	case UR_CM_SIDR_REP:
		AGAIN(sidr_rep, struct ur_cm_sidr_rep)
	default:
		cr_assert_fail("attribute %#x", hdr.attr_id);
	}
	cr_assert(!in.bad && !out.bad && ur_cursor_left(&out) == 0);
}

static void expect_same_bytes(const char *name, size_t cnt)
{
	struct talk talk = talk_load(name);

	cr_assert_eq(talk.cnt, cnt, "%s: %zu MADs", name, talk.cnt);
	for (size_t i = 0; i < talk.cnt; i++) {
		uint8_t again[UR_MAD_BYTES] = {0};

		encode_again(talk.said[i].mad, again);
		for (size_t b = 0; b < UR_MAD_BYTES; b++)
			cr_expect_eq(again[b], talk.said[i].mad[b], "%s MAD %zu byte %zu", name, i,
				     b);
	}
}

Test(cm_golden, every_message_encodes_to_its_own_bytes)
{
	expect_same_bytes("cm_rping_v4.pcap", 7);
	expect_same_bytes("cm_send_bw_rc_v4.pcap", 14);
	expect_same_bytes("cm_reject_v4.pcap", 2);
}

Test(cm_golden, the_request_of_rping_is_read_by_name)
{
	struct talk talk = talk_load("cm_rping_v4.pcap");
	struct ur_cursor c = ur_cursor_ro(talk.said[0].mad, UR_MAD_BYTES), data;
	struct ur_cm_req req;
	struct ur_rdma_ip ip;
	struct ur_mad hdr;

	ur_get_mad(&c, &hdr);
	cr_expect(hdr.base_version == 1 && hdr.mgmt_class == 7 && hdr.class_version == 2);
	cr_expect(hdr.method == 3 && hdr.attr_id == UR_CM_REQ);
	ur_get_cm_req(&c, &req);
	cr_expect_eq(req.local_comm_id, 0x1e4954c8);
	cr_expect_eq(req.service_id, ur_rdma_ip_service(UR_RDMA_IP_TCP, 7174));
	cr_expect_eq(req.ca_guid, 0x505400fffe990001ull);
	cr_expect(req.qpn.v == 0x11 && req.psn.v == 0x2422f2);
	cr_expect(req.responder_resources == 1 && req.initiator_depth == 1);
	cr_expect(req.remote_resp_timeout == 20 && req.local_resp_timeout == 20);
	cr_expect(req.transport == UR_CM_TRANSPORT_RC && !req.flow_ctrl && !req.srq);
	cr_expect(req.retry_cnt == 7 && req.rnr_retry == 7 && req.max_cm_retries == 15);
	cr_expect(req.pkey == 0xffff && req.pmtu == 5);
	cr_expect(ur_gid_eq(&req.primary.local_gid, &talk.said[0].from));
	cr_expect(ur_gid_eq(&req.primary.remote_gid, &talk.said[0].to));
	cr_expect(req.primary.flow_label == 0x8b733 && req.primary.hop_limit == 64);
	cr_expect_eq(req.primary.ack_timeout, 19);
	data = ur_cursor_ro(req.private_data, sizeof(req.private_data));
	cr_assert(ur_get_rdma_ip(&data, &ip));
	cr_expect(ip.sport == 0xcb33 && ip.ip_version == 4);
	cr_expect(ur_gid_eq(&ip.src, &talk.said[0].from));
	cr_expect(ur_gid_eq(&ip.dst, &talk.said[0].to));
}

/* --- playing one side --- */

struct conn {
	uint32_t theirs, ours; /* the captured CM's id, our CM's id in this run */
	struct ur_cm_id id;
};

struct part {
	const struct talk *talk;
	struct ur_gid me, peer;
	unsigned psns; /* number of PSNs compared with data packets */
	struct ur_cm *cm;
	void *mem;
	uint64_t now;
	struct conn conns[8];
	size_t conn_cnt;
	struct ur_cm_id child; /* of the last REQ */
	unsigned n[UR_CM_EV_CNT];
};

/* CM-PSN-01: our queue pair begins with the PSN of the captured one. */
static void expect_begun(struct part *part, struct ur_qpn peer_qpn, struct ur_psn sq_psn)
{
	const struct begun *begun = begun_find(part->talk, &part->peer, peer_qpn);

	if (!begun)
		return;
	cr_expect_eq(sq_psn.v, begun->psn.v, "begins with %u, the captured one with %u", sq_psn.v,
		     begun->psn.v);
	part->psns++;
}

/*
 * CM-PSN-01: the PSN that our queue pair must expect so that the right message results: the one
 * with which the peer began or, if the peer sent no data, the one in the message.
 */
static struct ur_psn expected_psn(struct part *part, struct ur_qpn qpn, struct ur_psn said)
{
	const struct begun *begun = begun_find(part->talk, &part->me, qpn);

	if (!begun)
		return said;
	part->psns++;
	return begun->psn;
}

static void part_sink(void *arg, const struct ur_cm_event *ev)
{
	struct part *part = arg;

	part->n[ev->type]++;
	if (ev->type == UR_CM_EV_REQ_RCVD) {
		part->child = ev->id;
		expect_begun(part, ev->req->qpn, ev->sq_psn);
	}
	if (ev->type == UR_CM_EV_REP_RCVD)
		expect_begun(part, ev->rep->qpn, ev->sq_psn);
}

static uint32_t get32(const uint8_t *p)
{
	struct ur_cursor c = ur_cursor_ro(p, 4);

	return ur_get32(&c);
}

static void put32(uint8_t *p, uint32_t v)
{
	struct ur_cursor c = ur_cursor(p, 4);

	ur_put32(&c, v);
}

static struct conn *conn_by_theirs(struct part *part, uint32_t theirs)
{
	for (size_t i = 0; i < part->conn_cnt; i++)
		if (part->conns[i].theirs == theirs)
			return &part->conns[i];
	return NULL;
}

static struct conn *conn_add(struct part *part, uint32_t theirs, struct ur_cm_id id)
{
	struct conn *conn = &part->conns[part->conn_cnt++];

	*conn = (struct conn){.theirs = theirs, .id = id};
	return conn;
}

static void do_connect(struct part *part, const struct said *said, struct ur_cursor *c)
{
	struct ur_cm_req m;
	struct ur_cm_connect_attr attr;
	struct ur_cm_id id;

	ur_get_cm_req(c, &m);
	attr = (struct ur_cm_connect_attr){
		.path = {.len = UR_PATH_MIN_BYTES},
		.sgid = said->from,
		.dgid = said->to,
		.service_id = m.service_id,
		.transport = m.transport,
		.qpn = m.qpn,
		.rq_psn = expected_psn(part, m.qpn, m.psn),
		.pkey = m.pkey,
		.pmtu = m.pmtu,
		.responder_resources = m.responder_resources,
		.initiator_depth = m.initiator_depth,
		.retry_cnt = m.retry_cnt,
		.rnr_retry = m.rnr_retry,
		.ack_timeout = m.primary.ack_timeout,
		.flow_label = m.primary.flow_label,
		.hop_limit = m.primary.hop_limit,
		.remote_resp_timeout = m.remote_resp_timeout,
		.local_resp_timeout = m.local_resp_timeout,
		.max_cm_retries = m.max_cm_retries,
		.private_data = m.private_data,
		.private_len = sizeof(m.private_data),
	};
	cr_assert_eq(ur_cm_connect(part->cm, NULL, &attr, part->now, &id), 0);
	conn_add(part, m.local_comm_id, id);
}

static void do_accept(struct part *part, struct ur_cursor *c)
{
	struct ur_cm_rep m;
	struct ur_cm_accept_attr attr;

	ur_get_cm_rep(c, &m);
	attr = (struct ur_cm_accept_attr){
		.qpn = m.qpn,
		.rq_psn = expected_psn(part, m.qpn, m.psn),
		.responder_resources = 255,
		.initiator_depth = 255,
		.target_ack_delay = m.target_ack_delay,
		.rnr_retry = m.rnr_retry,
		.private_data = m.private_data,
		.private_len = sizeof(m.private_data),
	};
	cr_assert_eq(ur_cm_accept(part->cm, part->child, &attr, part->now), 0);
	conn_add(part, m.local_comm_id, part->child);
}

static void do_sidr_req(struct part *part, const struct said *said, struct ur_cursor *c)
{
	struct ur_cm_sidr_req m;
	struct ur_cm_sidr_attr attr;
	struct ur_cm_id id;

	ur_get_cm_sidr_req(c, &m);
	attr = (struct ur_cm_sidr_attr){
		.path = {.len = UR_PATH_MIN_BYTES},
		.dgid = said->to,
		.service_id = m.service_id,
		.pkey = m.pkey,
		.resp_timeout = 20,
		.max_cm_retries = 15,
		.private_data = m.private_data,
		.private_len = sizeof(m.private_data),
	};
	cr_assert_eq(ur_cm_sidr_req(part->cm, NULL, &attr, part->now, &id), 0);
	conn_add(part, m.request_id, id);
}

/* Issues the command, if necessary, that makes our CM send the message of the captured one. */
static void act(struct part *part, const struct said *said)
{
	struct ur_cursor c = ur_cursor_ro(said->mad, UR_MAD_BYTES);
	struct conn *conn = conn_by_theirs(part, get32(said->mad + UR_MAD_HDR_BYTES));
	struct ur_mad hdr;

	ur_get_mad(&c, &hdr);
	switch (hdr.attr_id) {
	case UR_CM_REQ:
		do_connect(part, said, &c);
		break;
	case UR_CM_REP:
		do_accept(part, &c);
		break;
	case UR_CM_SIDR_REQ:
		do_sidr_req(part, said, &c);
		break;
	case UR_CM_RTU:
		cr_assert_eq(ur_cm_rtu(part->cm, conn->id, NULL, 0, part->now), 0);
		break;
	case UR_CM_DREQ:
		cr_assert_eq(ur_cm_disconnect(part->cm, conn->id, NULL, 0, part->now), 0);
		break;
	default: /* REJ, DREP, SIDR_REP: sent without a command */
		break;
	}
}

static bool starts_transaction(uint16_t attr_id)
{
	return attr_id == UR_CM_REQ || attr_id == UR_CM_DREQ || attr_id == UR_CM_SIDR_REQ;
}

/* Our CM's next message must equal the captured one, except for ids. */
static void expect_said(struct part *part, const struct said *said, const char *name, size_t i)
{
	uint8_t *ids = NULL;
	struct ur_cm_out out;
	struct conn *conn;
	uint32_t theirs = get32(said->mad + UR_MAD_HDR_BYTES);

	cr_assert_eq(ur_cm_output(part->cm, &out, 1, part->now), 1, "%s MAD %zu unsaid", name, i);
	cr_assert_eq(out.dest_qpn.v, UR_GSI_QPN);
	ids = out.mad + UR_MAD_HDR_BYTES;
	conn = conn_by_theirs(part, theirs);
	if (conn && !conn->ours)
		conn->ours = get32(ids);
	if (conn) {
		cr_expect_eq(get32(ids), conn->ours, "%s MAD %zu names another id", name, i);
		put32(ids, theirs);
	}
	if (starts_transaction(attr_of(said->mad)))
		memcpy(out.mad + 8, said->mad + 8, 8); /* transaction id */
	if (attr_of(said->mad) == UR_CM_REP) {
		/* CM-FAILOVER-01: Linux accepts an alternate path although none was offered. */
		cr_expect_eq(out.mad[FAILOVER_AT] & 6, UR_CM_NO_FAILOVER << 1);
		out.mad[FAILOVER_AT] &= 0xf9;
	}
	for (size_t b = 0; b < UR_MAD_BYTES; b++)
		cr_expect_eq(out.mad[b], said->mad[b], "%s MAD %zu byte %zu", name, i, b);
}

static enum ur_drop hear(struct part *part, const struct said *said)
{
	struct ur_cm_src src = {.sgid = said->from,
				.dgid = said->to,
				.sqpn = {UR_GSI_QPN},
				.path = {.len = UR_PATH_MIN_BYTES}};
	uint16_t attr_id = attr_of(said->mad);
	uint8_t mad[UR_MAD_BYTES];
	size_t at = attr_id == UR_CM_SIDR_REP ? UR_MAD_HDR_BYTES : UR_MAD_HDR_BYTES + 4;
	enum ur_drop drop;
	struct conn *conn;

	memcpy(mad, said->mad, sizeof(mad));
	conn = conn_by_theirs(part, get32(mad + at));
	if (conn && attr_id != UR_CM_REQ && attr_id != UR_CM_SIDR_REQ)
		put32(mad + at, conn->ours);
	drop = ur_cm_input(part->cm, mad, &src, part->now);
	ur_cm_validate(part->cm);
	return drop;
}

static struct part *part_new(uint64_t ca_guid, uint64_t service_id)
{
	struct ur_cm_limits limits = {
		.max_ids = 8, .max_listeners = 1, .max_pending = 8, .max_tx = 8};
	struct part *part = calloc(1, sizeof(*part));
	struct ur_cm_attr attr = {.ca_guid = ca_guid,
				  .seed = 42,
				  .timewait_ns = 1000000000,
				  .sink = part_sink,
				  .sink_ctx = part};

	part->mem = aligned_alloc(16, (ur_cm_size(&limits) + 15) / 16 * 16);
	part->cm = ur_cm_init(part->mem, &limits, &attr);
	if (service_id)
		cr_assert_eq(ur_cm_listen(part->cm, UR_CM_KIND_CONN, service_id, NULL), 0);
	return part;
}

/* Plays the side with address `me` through MADs order[0..cnt). */
static void play(struct part *part, const struct talk *talk, const struct ur_gid *me,
		 const char *name, const uint8_t *order, size_t cnt)
{
	struct ur_cm_out out;
	const struct said *first = &talk->said[order ? order[0] : 0];

	part->talk = talk;
	part->me = *me;
	part->peer = ur_gid_eq(&first->from, me) ? first->to : first->from;
	for (size_t k = 0; k < cnt; k++) {
		size_t i = order ? order[k] : k;
		const struct said *said = &talk->said[i];

		part->now += 1000000;
		if (ur_gid_eq(&said->from, me)) {
			act(part, said);
			expect_said(part, said, name, i);
		} else {
			hear(part, said);
		}
	}
	cr_expect_eq(ur_cm_output(part->cm, &out, 1, part->now), 0, "%s: said too much", name);
	ur_cm_expire(part->cm, part->now + 2000000000);
	cr_expect_eq(ur_cm_ids_in_use(part->cm), 0, "%s: ids left", name);
}

static void part_free(struct part *part)
{
	free(part->mem);
	free(part);
}

#define GUID_A 0x505400fffe990001ull
#define GUID_B 0x505400fffe990002ull

Test(cm_golden, uroce_connects_as_rping_did)
{
	struct talk talk = talk_load("cm_rping_v4.pcap");
	struct part *part = part_new(GUID_A, 0);

	play(part, &talk, &talk.said[0].from, "rping client", NULL, 5);
	cr_expect(part->n[UR_CM_EV_REP_RCVD] == 1 && part->n[UR_CM_EV_DISCONNECTED] == 1);
	cr_expect_eq(part->psns, 2, "both directions");
	play(part, &talk, &talk.said[5].from, "rping client, IPv6", (uint8_t[]){5, 6}, 2);
	cr_expect_eq(part->n[UR_CM_EV_REJ_RCVD], 1);
	part_free(part);
}

Test(cm_golden, uroce_answers_as_rpings_server_did)
{
	struct talk talk = talk_load("cm_rping_v4.pcap");
	struct part *part = part_new(GUID_B, ur_rdma_ip_service(UR_RDMA_IP_TCP, 7174));

	play(part, &talk, &talk.said[0].to, "rping server", NULL, 5);
	cr_expect(part->n[UR_CM_EV_ESTABLISHED] == 1 && part->n[UR_CM_EV_DREQ_RCVD] == 1);
	cr_expect_eq(part->psns, 2, "both directions");
	cr_assert_eq(
		ur_cm_unlisten(part->cm, UR_CM_KIND_CONN, ur_rdma_ip_service(UR_RDMA_IP_TCP, 7174)),
		0);
	play(part, &talk, &talk.said[5].to, "rping server, IPv6", (uint8_t[]){5, 6}, 2);
	part_free(part);
}

/* MADs 8 and 9 are DREQs that crossed: each side sends its own before it receives the other's. */
Test(cm_golden, uroce_connects_as_ib_send_bw_did)
{
	static const uint8_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 11, 10, 12, 13};
	struct talk talk = talk_load("cm_send_bw_rc_v4.pcap");
	struct part *part = part_new(GUID_A, 0);

	play(part, &talk, &talk.said[0].from, "ib_send_bw client", order, sizeof(order));
	cr_expect(part->n[UR_CM_EV_REP_RCVD] == 2 && part->n[UR_CM_EV_DISCONNECTED] == 2);
	cr_expect_eq(part->n[UR_CM_EV_SIDR_REP_RCVD], 1);
	cr_expect_eq(part->n[UR_CM_EV_TIMEWAIT_EXIT], 2);
	cr_expect_eq(part->psns, 3, "in the second connection one side only receives");
	part_free(part);
}

Test(cm_golden, uroce_answers_as_ib_send_bws_server_did)
{
	struct talk talk = talk_load("cm_send_bw_rc_v4.pcap");
	struct part *part = part_new(GUID_B, 0x0000000001064853ull);

	play(part, &talk, &talk.said[0].to, "ib_send_bw server", NULL, talk.cnt);
	cr_expect_eq(part->n[UR_CM_EV_ESTABLISHED], 2);
	cr_expect_eq(part->psns, 3, "in the second connection one side only receives");
	cr_expect(part->n[UR_CM_EV_DREQ_RCVD] == 1 && part->n[UR_CM_EV_DISCONNECTED] == 1);
	part_free(part);
}

Test(cm_golden, uroce_refuses_and_is_refused_as_in_the_capture)
{
	struct talk talk = talk_load("cm_reject_v4.pcap");
	struct part *a = part_new(GUID_A, 0), *b = part_new(GUID_B, 0);

	play(a, &talk, &talk.said[0].from, "refused", NULL, 2);
	cr_expect_eq(a->n[UR_CM_EV_REJ_RCVD], 1);
	play(b, &talk, &talk.said[0].to, "refuses", NULL, 2);
	part_free(a);
	part_free(b);
}
