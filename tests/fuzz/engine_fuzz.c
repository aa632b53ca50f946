/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include "engine_world.h"
#include "fuzz.h"
#include "wire/bytes.h"
#include "wire/delay.h"
#include "wire/icrc.h"

/*
 * A hostile peer and an active application: an engine with live QPs of every kind. The input is a
 * sequence of steps. Packets are well-formed (the edge guarantees that) and addressed to live QPs,
 * with PSNs near the expected ones and keys that are often valid, so that they pass the first
 * checks. The invariants of every QP are asserted after each step; ASan watches the memory outside
 * the regions.
 *
 * A step is a byte for its kind, followed by its arguments; bytes beyond the end are 0. STEP_RAW is a packet of which
 * any byte may be changed before it arrives. Every frame meets header prediction first. Steps from
 * STEP_FLIGHT on bring a queue pair with loss recovery into states from which the recovery can be
 * reached: requests in flight, and answers to these requests, in any order.
 */
#define TX_CAP	  4
#define STEPS_MAX 200

enum step {
	STEP_PACKET,
	STEP_TIME,
	STEP_SEND,
	STEP_RECV,
	STEP_OUTPUT,
	STEP_MODIFY,
	STEP_INVALIDATE,
	STEP_POLL,
	STEP_CNT,
	STEP_MAD = 0xf0,    /* to 0xf3: a management datagram */
	STEP_RAW = 0xf4,    /* to 0xf7 */
	STEP_FLIGHT = 0xf8, /* to 0xfb */
	STEP_ANSWER = 0xfc, /* to 0xff */
};

struct input {
	const uint8_t *at, *end;
};

static uint8_t get8(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static uint16_t get16(struct input *in)
{
	uint16_t hi = get8(in);

	return (uint16_t)(hi << 8 | get8(in));
}

/* ---- steps ---- */

static uint32_t pick_key(uint8_t how)
{
	switch (how & 7) {
	case 0:
		return readonly_key;
	case 1:
		return key ^ 0x10000;
	case 2:
		return 0;
	default:
		return key;
	}
}

/* An opcode of the QP's own transport most of the time. */
static uint8_t pick_opcode(const struct ur_qp *qp, uint8_t how)
{
	static const uint8_t transport[] = {[IBV_QPT_RC] = UR_TRANSPORT_RC,
					    [IBV_QPT_UC] = UR_TRANSPORT_UC,
					    [IBV_QPT_UD] = UR_TRANSPORT_UD};

	if (how >= 0xf0)
		return (uint8_t)(how << 4);
	if (qp->ops->type == IBV_QPT_UD)
		return how & 1 ? UR_UD_SEND_ONLY : UR_UD_SEND_ONLY_IMM;
	if (qp->ops->mode == UR_MODE_EXTENDED && how >= 0xfc)
		return how & 1 ? UR_EXT_ACKNOWLEDGE_STATUS_PART : UR_EXT_ACKNOWLEDGE_PART;
	if (qp->ops->mode == UR_MODE_EXTENDED && how >= 0xec)
		return how & 1 ? UR_EXT_ACKNOWLEDGE_STATUS_DELAY : UR_EXT_ACKNOWLEDGE_DELAY;
	if (qp->ops->mode == UR_MODE_EXTENDED && how >= 0xe0)
		return how & 1 ? UR_EXT_NOTIFY : UR_EXT_ACKNOWLEDGE_STATUS;
	if (qp->ops->mode == UR_MODE_EXTENDED)
		return (uint8_t)((how % 0x19) | UR_TRANSPORT_EXT);
	return (uint8_t)((how % 0x18) | transport[qp->ops->type]);
}

/* A number near `v`, usually one of the next. */
static uint32_t near(uint32_t v, uint8_t how)
{
	return v + (how < 0xc0 ? how & 7u : (uint32_t)(int32_t)(int8_t)how);
}

/*
 * The headers of extended mode. Only its packets consume these bytes, so that older inputs keep
 * their meaning.
 */
static void fill_extended(struct ur_packet *p, const struct ur_qp *qp, uint8_t *bitmap,
			  struct input *in)
{
	uint32_t now = ur_stamp(now_ns).v;

	if (p->op & UR_OP_XTH) {
		uint8_t flags = get8(in);

		p->xth = (struct ur_xth){.stamp = now - get8(in),
					 .path = get8(in),
					 .ssn = near(qp->rsp.msn.v, get8(in)),
					 .flags = flags,
					 .offset = get8(in),
					 .rwqen = near(qp->xrsp.rwqen, get8(in))};
		if (p->op & UR_OP_WRITE && !(flags & 0x80)) {
			/* A packet that agrees with its RETH. */
			p->reth.va = 0x1000;
			p->reth.length = p->xth.offset * 256 + p->payload_len +
					 (p->op & UR_OP_LAST ? 0 : 256);
		}
	}
	if (p->op & UR_OP_XAETH)
		p->xaeth = (struct ur_xaeth){.echo = now - get8(in),
					     .residence = get8(in),
					     .path = get8(in),
					     .epsn = ur_psn(near(qp->xreq.psn.una.v, get8(in)))};
	if (p->op & UR_OP_XRTH)
		p->xrth = (struct ur_xrth){.ssn = qp->req.ssn.v - get8(in) % 4, .offset = get8(in)};
	if (p->op & UR_OP_ASTH) {
		uint8_t how = get8(in);

		p->asth = (struct ur_asth){.status = how & 3,
					   .queue_class = how >> 2 & 3,
					   .granted = how & 0x10,
					   .room = how >> 5,
					   .generation = get8(in)};
		p->pool = how == 0xff ? POOL + 2 : POOL + (how >> 7);
	}
	if (p->op & UR_OP_NDTH)
		p->ndth = (struct ur_ndth){.hops = get8(in) >> 3,
					   .delay = (uint16_t)(get8(in) << 8 | get8(in))};
	if (p->op & UR_OP_BPTH)
		p->bpth = (struct ur_bpth){.flags = get8(in) & 3,
					   .offset = get8(in) << (get8(in) & 15)};
	if (p->op & UR_OP_PROBE && p->xth.flags & 0x40) {
		p->bth.resv6 = UR_DELAY_ASK | (p->xth.path & UR_DELAY_HOPS);
		p->udp_csum = (uint16_t)p->xth.offset;
	}
	if (p->op & UR_OP_XAETH && !(p->op & UR_OP_XRTH))
		for (unsigned i = 0; i < p->payload_len && i < 4; i++)
			bitmap[i] = get8(in);
}

static void fill_ext(struct ur_packet *p, struct input *in)
{
	uint8_t how = get8(in);
	uint64_t va = 0x1000 + get16(in) % (MR_BYTES + 64);
	uint32_t length = get16(in);

	if (how & 0x40)
		length = how & 0x80 ? 0xffffffff : 1u << 31;
	p->reth = (struct ur_reth){.va = va, .rkey = pick_key(how), .length = length};
	p->atomiceth = (struct ur_atomiceth){.va = how & 0x20 ? va : va & ~7ull,
					     .rkey = pick_key(how),
					     .swap_add = length,
					     .compare = how};
	p->aeth = (struct ur_aeth){.syndrome = get8(in), .msn = get8(in)};
	p->deth = (struct ur_deth){.qkey = how & 0x10 ? 0 : QKEY, .sqpn = ur_qpn(PEER_QPN)};
	p->imm = how;
	p->ieth = pick_key(how >> 3);
	p->atomic_ack = length;
}

#define FRAME_MAX (UR_HDR_MAX + 2048)

/* The sums of the IPv4 header and of the frame. */
static void fix_sums(uint8_t *frame, size_t len)
{
	unsigned sum = 0;

	ur_store16(frame + UR_ETH_BYTES + 10, 0);
	for (unsigned i = 0; i < UR_IPV4_BYTES; i += 2)
		sum += ur_load16(frame + UR_ETH_BYTES + i);
	sum = (sum & 0xffff) + (sum >> 16);
	ur_store16(frame + UR_ETH_BYTES + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
	ur_icrc_append(frame + UR_ETH_BYTES, len - UR_ETH_BYTES - UR_ICRC_BYTES, false);
}

/* The frame of the packet, with consistent headers; returns its length. */
static size_t make_frame(struct ur_packet *p, uint8_t frame[FRAME_MAX])
{
	unsigned body;
	size_t len;

	p->bth.pad = (uint8_t)(-p->payload_len & 3);
	body = UR_BTH_BYTES + ur_opcodes[p->bth.opcode].ext_bytes + p->payload_len + p->bth.pad +
	       UR_ICRC_BYTES;
	p->udp_len = (uint16_t)(UR_UDP_BYTES + body);
	p->ip.len = (uint16_t)(UR_IPV4_BYTES + p->udp_len);
	len = ur_packet_encode(p, frame, FRAME_MAX);
	FUZZ_CHECK(len);
	fix_sums(frame, len);
	return len;
}

/* Passes the frame in, in memory that ends where it ends. */
static void pass_in(const uint8_t *frame, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1);

	FUZZ_CHECK(exact);
	memcpy(exact, frame, len);
	FUZZ_CHECK(ur_engine_input_frame(engine, exact, len, now_ns) < UR_DROP_CNT);
	free(exact);
}

static void deliver(struct ur_packet *p)
{
	static uint8_t frame[FRAME_MAX];
	size_t len = make_frame(p, frame);

	FUZZ_CHECK(ur_packet_decode(frame, len, p) == UR_DROP_NONE && ur_icrc_ok(frame, p));
	pass_in(frame, len);
}

/* Up to three bytes of the headers are changed, and the end is cut off; the sums may be right nevertheless. */
static void deliver_changed(struct ur_packet *p, struct input *in)
{
	static uint8_t frame[FRAME_MAX];
	size_t len = make_frame(p, frame);
	uint8_t how = get8(in);

	for (unsigned i = 0; i < (how & 3); i++)
		frame[get8(in) % (len < UR_HDR_MAX ? len : UR_HDR_MAX)] ^= get8(in);
	if (how & 4)
		len -= get8(in) % len;
	if (how & 8 &&
	    len >= UR_ETH_BYTES + UR_IPV4_BYTES + UR_UDP_BYTES + UR_BTH_BYTES + UR_ICRC_BYTES)
		fix_sums(frame, len);
	pass_in(frame, len);
}

static struct ur_packet packet_of(const uint8_t *payload)
{
	return (struct ur_packet){.l3_off = UR_ETH_BYTES,
				  .ip = {.ttl = 64,
					 .src = ur_gid_from_ipv4(0x0a000002),
					 .dst = ur_gid_from_ipv4(0x0a000001)},
				  .sport = 0xc001,
				  .dport = UR_ROCE_UDP_PORT,
				  .payload = payload};
}

static void step_packet(struct input *in, bool raw)
{
	static uint8_t payload[1100];
	const struct ur_qp *qp = qps[get8(in) % QPS];
	struct ur_packet p = packet_of(payload);
	uint8_t flags, lens;
	struct ur_psn base;

	p.bth.opcode = pick_opcode(qp, get8(in));
	p.op = ur_op_flags(p.bth.opcode);
	if (!p.op || p.op & UR_OP_CNP)
		return;
	flags = get8(in);
	base = !(p.op & (UR_OP_RESPONSE | UR_OP_NOTIFY)) ? qp->rsp.epsn
	       : qp->ops->mode == UR_MODE_EXTENDED	 ? qp->xreq.psn.una
							 : qp->gbn.rec.una;
	p.bth.psn = ur_psn(base.v + (uint32_t)(int32_t)(int8_t)get8(in) / (flags & 1 ? 1 : 16));
	p.bth.ackreq = flags & 2;
	p.bth.solicited = flags & 4;
	p.bth.pkey = flags & 8 && flags & 16 ? 0x7ffe : 0xffff;
	p.bth.dqpn = qp->qpn;
	p.ip.tos = flags >> 6;
	lens = get8(in);
	if (p.op & UR_OP_PAYLOAD)
		p.payload_len = lens & 0x80 ? 256 : lens & 0x40 ? lens * 8u : lens;
	p.bth.pad = (uint8_t)(-p.payload_len & 3);
	fill_ext(&p, in);
	fill_extended(&p, qp, payload, in);
	if (raw)
		deliver_changed(&p, in);
	else
		deliver(&p);
}

static void step_output(unsigned cap)
{
	static uint8_t hdr[TX_CAP][UR_HDR_MAX];
	static uint8_t out[TX_CAP][UR_HDR_MAX + 5000];
	struct ur_tx tx[TX_CAP];
	unsigned n;

	for (unsigned i = 0; i < TX_CAP; i++)
		tx[i].hdr = hdr[i];
	n = ur_engine_output(engine, tx, cap, now_ns);
	FUZZ_CHECK(n <= cap);
	for (unsigned i = 0; i < n; i++) {
		size_t len = ur_tx_write(&tx[i], out[i]);
		struct ur_packet p;

		FUZZ_CHECK(len == ur_tx_bytes(&tx[i]));
		FUZZ_CHECK(ur_packet_decode(out[i], len, &p) == UR_DROP_NONE);
	}
}

static void step_send(struct input *in)
{
	struct ur_qp *qp = qps[get8(in) % QPS];
	uint8_t how = get8(in);
	struct ibv_sge sge[2] = {
		{.addr = 0x1000 + get8(in), .length = get16(in) % 2000, .lkey = pick_key(how)},
		{.addr = 0x1800, .length = how & 64 ? 7 : 0, .lkey = key},
	};
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = how & 64 ? 2 : 1,
				 .opcode = (enum ibv_wr_opcode)(get8(in) % 12),
				 .send_flags = get8(in) & 15u};
	enum ibv_qp_state state = (enum ibv_qp_state)atomic_load(&qp->posted_state);

	if (wr.send_flags & IBV_SEND_INLINE) {
		sge[0].addr = (uintptr_t)region;
		sge[1].addr = (uintptr_t)region;
	}
	if (qp->ops->type == IBV_QPT_UD) {
		wr.wr.ud.ah = (struct ibv_ah *)(void *)&ah;
		wr.wr.ud.remote_qpn = PEER_QPN;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge[0].length = 8;
		wr.num_sge = 1;
		wr.wr.atomic.remote_addr = 0x1000;
		wr.wr.atomic.rkey = key;
	} else if (wr.opcode == IBV_WR_LOCAL_INV || wr.opcode == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = pick_key(how >> 3);
	} else {
		wr.wr.rdma.remote_addr = 0x1000;
		wr.wr.rdma.rkey = key;
	}
	if (ur_sq_post(&qp->sq, state, &wr, qp->sig_all) == 0)
		ur_engine_doorbell(engine, qp, now_ns);
}

static void step_recv(struct input *in)
{
	struct ur_qp *qp = qps[get8(in) % QPS];
	uint8_t how = get8(in);
	struct ibv_sge sge = {
		.addr = 0x1000 + how, .length = get16(in) % 4000, .lkey = pick_key(how)};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	if (ur_rq_post(qp->srq ? &srq.rq : &qp->rq, &wr) == 0 && qp->state == IBV_QPS_ERR)
		ur_engine_doorbell(engine, qp, now_ns);
}

static void step_modify(struct input *in)
{
	unsigned i = get8(in) % QPS;
	struct ibv_qp_attr a = {.qp_state = (enum ibv_qp_state)(get8(in) % 8)};

	if (a.qp_state == 7) {
		ur_engine_destroy_qp(engine, qps[i], now_ns);
		now_ns += 2000; /* time-wait */
		make_qp(i);
		return;
	}
	(void)ur_engine_modify_qp(engine, qps[i], &a, IBV_QP_STATE, NULL, now_ns);
	if (qps[i]->state == IBV_QPS_RESET)
		connect_qp(qps[i]);
}

/* ---- loss recovery ---- */

static uint32_t packets_of(const struct ur_wqe *wqe)
{
	return wqe->length ? (wqe->length + 255) / 256 : 1;
}

/* A QP that keeps early packets or responses, or retransmits selectively. */
static struct ur_qp *pick_recovering(struct input *in)
{
	return qps[5 + get8(in) % 3];
}

/* Posts a request and sends as much of it as possible. */
static void step_flight(struct input *in)
{
	static const enum ibv_wr_opcode opcode[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						    IBV_WR_SEND, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ur_qp *qp = pick_recovering(in);
	uint8_t how = get8(in);
	struct ibv_sge sge = {.addr = 0x1000, .length = 1 + (how >> 2) * 32, .lkey = key};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode[how & 3],
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = 0x1000, .rkey = key}};

	if ((how & 3) == 3) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = 0x1000;
		wr.wr.atomic.rkey = key;
	}
	if (ur_sq_post(&qp->sq, qp->state, &wr, false) == 0)
		ur_engine_doorbell(engine, qp, now_ns);
	for (unsigned i = 0; i < 3; i++) {
		now_ns += 160;
		step_output(TX_CAP);
	}
}

/* An extended ACK with an ePSN in flight, and a bitmap of packets beyond it. */
static void answer_selectively(struct ur_qp *qp, struct input *in)
{
	static uint8_t bitmap[4];
	struct ur_packet p = packet_of(bitmap);
	uint32_t sent = (uint32_t)ur_psn_diff(qp->xreq.psn.max, qp->xreq.psn.una);
	uint32_t ahead = get8(in) % (sent + 1);
	uint8_t syndrome = get8(in);

	bitmap[0] = (uint8_t)(get8(in) & ((1u << (sent - ahead)) - 1) >> 1);
	p.payload_len = bitmap[0] ? 4 : 0;
	p.bth.opcode = UR_EXT_ACKNOWLEDGE;
	p.xaeth.epsn = ur_psn(qp->xreq.psn.una.v + ahead);
	p.bth.psn = ur_psn(p.xaeth.epsn.v - 1);
	p.aeth.syndrome = bitmap[0] ? 0x60 : 0x1f;
	if (syndrome > 0xf0) {
		p.bth.psn = p.xaeth.epsn;
		p.aeth.syndrome = syndrome & 8 ? 0x61 : 0x21; /* refused, or no receive */
	}
	p.aeth.msn = qp->req.ssn.v;
	p.xaeth.echo = ur_stamp(now_ns).v - get8(in);
	p.xaeth.path = syndrome & 1;
	p.op = ur_op_flags(p.bth.opcode);
	p.bth.pkey = 0xffff;
	p.bth.dqpn = qp->qpn;
	deliver(&p);
}

/* Packet `at` of the answer to the READ or atomic. */
static void answer_read(struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t at, struct input *in)
{
	static const uint8_t payload[256];
	struct ur_packet p = packet_of(payload);
	bool ext = qp->ops->mode == UR_MODE_EXTENDED, read = wqe->opcode == IBV_WR_RDMA_READ;
	uint32_t left = wqe->length - at * 256, part = qp->req.read_psns, n = packets_of(wqe);
	uint8_t how = get8(in);
	bool first = how & 1 ? !at || (ext && at % part == 0) : how & 2;
	bool last = how & 1 ? at + 1 == n || (ext && (at + 1) % part == 0) : how & 4;

	if (read) {
		p.bth.opcode = first  ? last ? UR_RC_READ_RESPONSE_ONLY : UR_RC_READ_RESPONSE_FIRST
			       : last ? UR_RC_READ_RESPONSE_LAST
				      : UR_RC_READ_RESPONSE_MIDDLE;
		p.payload_len = (uint16_t)(left < 256 ? left : 256);
	} else {
		p.bth.opcode = UR_RC_ATOMIC_ACKNOWLEDGE;
	}
	p.bth.psn = ur_psn(wqe->first_psn.v + (ext && read ? at / part : at));
	if (ext) {
		p.bth.opcode |= UR_TRANSPORT_EXT;
		p.xaeth.epsn = ur_psn(p.bth.psn.v + 1);
		if (ur_psn_lt(p.xaeth.epsn, qp->xreq.psn.una))
			p.xaeth.epsn = qp->xreq.psn.una;
		p.xaeth.echo = ur_stamp(now_ns).v - get8(in);
		p.xrth = (struct ur_xrth){.ssn = wqe->ssn.v, .offset = read ? at : 0};
	}
	p.aeth = (struct ur_aeth){.syndrome = 0x1f, .msn = wqe->ssn.v};
	p.op = ur_op_flags(p.bth.opcode);
	p.bth.pkey = 0xffff;
	p.bth.dqpn = qp->qpn;
	deliver(&p);
}

/* An ACK of standard mode, possibly beyond missing responses. */
static void answer_in_order(struct ur_qp *qp, struct input *in)
{
	struct ur_packet p = packet_of(NULL);
	uint8_t how = get8(in);

	p.bth.opcode = UR_RC_ACKNOWLEDGE;
	p.op = ur_op_flags(p.bth.opcode);
	p.bth.psn = ur_psn(qp->gbn.rec.una.v + (how & 7));
	p.bth.pkey = 0xffff;
	p.bth.dqpn = qp->qpn;
	p.aeth = (struct ur_aeth){.syndrome = how & 0x80 ? 0x60 : 0x1f, .msn = qp->req.ssn.v};
	deliver(&p);
}

static void step_answer(struct input *in)
{
	struct ur_qp *qp = pick_recovering(in);
	uint8_t how = get8(in);
	uint32_t out = qp->req.cur - qp->req.head + (qp->req.cur_off != 0);
	const struct ur_wqe *wqe = NULL;

	now_ns += (uint64_t)(how >> 4) << 8;
	if (how & 1 && out)
		wqe = ur_sq_at(&qp->sq, qp->req.head + (how >> 1 & 3) % out);
	if (wqe && (wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD))
		answer_read(qp, wqe, get8(in) % packets_of(wqe), in);
	else if (qp->ops->mode == UR_MODE_EXTENDED)
		answer_selectively(qp, in);
	else
		answer_in_order(qp, in);
}

/* A manager reads, and sets what an endpoint has, its lanes under way too: there is no M_Key. */
static void step_mad(struct input *in)
{
	static const uint8_t attrs[] = {0x11, 0x15, 0x16, 0x17, 0x18, 0x10, 0x12, 0x1d};
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	uint8_t how = get8(in), mad[UR_MAD_BYTES] = {1}, frame[512];
	bool gmp = how & 8;
	struct ur_path path;
	unsigned len;

	mad[1] = gmp ? how & 16 ? UR_MAD_CLASS_VENDOR : UR_MAD_CLASS_PERF : UR_MAD_CLASS_SMP_DR;
	mad[2] = 1;
	mad[3] = how & 32 ? UR_MAD_METHOD_SET : UR_MAD_METHOD_GET;
	mad[15] = get8(in);
	mad[17] = attrs[how & 7];
	mad[21] = get8(in) & 7;
	if (!gmp) {
		mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = 1;
		memset(mad + UR_SMP_DR_SLID, 0xff, 4);
	}
	if (mad[1] == UR_MAD_CLASS_VENDOR)
		ur_store24(mad + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
	for (unsigned i = 0; i < 16; i++)
		mad[(mad[1] == UR_MAD_CLASS_VENDOR ? UR_VENDOR_BODY : UR_SMP_DATA) + i] = get8(in);
	ur_mad_hop_path(&path, mac);
	if (how >> 6 == 3)
		ur_mad_lid_path(&path, 1, get8(in));
	len = ur_mad_frame(frame, &path, ur_qpn(gmp), ur_qpn(gmp), ur_psn(0), mad);
	pass_in(frame, len);
}

static void step(struct input *in)
{
	struct ibv_wc wc[4];
	uint8_t what = get8(in);

	if (what >= STEP_MAD && what < STEP_RAW) {
		step_mad(in);
		return;
	}
	if (what >= STEP_RAW) {
		if (what < STEP_FLIGHT)
			step_packet(in, true);
		else if (what < STEP_ANSWER)
			step_flight(in);
		else
			step_answer(in);
		return;
	}
	switch ((enum step)(what % STEP_CNT)) {
	case STEP_PACKET:
		step_packet(in, false);
		break;
	case STEP_TIME:
		now_ns += (uint64_t)get16(in) << 6;
		ur_engine_expire(engine, now_ns);
		/* All due work is done. 0 means that sent packets wait for completion. */
		FUZZ_CHECK(ur_engine_next_deadline(engine) > now_ns - 1024);
		break;
	case STEP_SEND:
		step_send(in);
		break;
	case STEP_RECV:
		step_recv(in);
		break;
	case STEP_OUTPUT:
		step_output(get8(in) % (TX_CAP + 1));
		break;
	case STEP_MODIFY:
		step_modify(in);
		break;
	case STEP_INVALIDATE:
		(void)ur_mem_invalidate(mem, pick_key(get8(in)), PD, get8(in) & 1);
		break;
	case STEP_POLL:
		FUZZ_CHECK(ur_cq_poll(&cq, 4, wc) <= 4);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};

	make_world();
	for (unsigned i = 0; i < STEPS_MAX && in.at < in.end; i++) {
		step(&in);
		for (unsigned k = 0; k < QPS; k++)
			ur_qp_validate(qps[k]);
		if (srq.qp_cnt)
			ur_adm_pool_validate(&srq.adm);
	}
	/* This region grants no right to write. */
	for (unsigned i = 0; i < MR_BYTES; i++)
		FUZZ_CHECK(region[MR_BYTES + i] == 0x5a);
	free(region);
	return 0;
}
