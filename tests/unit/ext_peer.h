/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_EXT_PEER_H
#define UR_TEST_EXT_PEER_H

#include <stdlib.h>
#include <string.h>

#include "end.h"
#include "transport/rc/ext.h"

/*
 * The peer of an extended responder. It makes the packets of messages in order and passes them
 * directly to the responder, in any order. Packets of the responder are returned decoded. Messages
 * are numbered from 1, whatever the first PSN is. The invariants are asserted after each step.
 */
#define PEER_ANSWERS 8
#define PEER_MTU     END_MTU
#define PEER_BYTES   (1u << 20) /* total payload of a test */
#define PEER_PACKETS 4096

struct peer {
	struct end *e;
	struct ur_qp *qp;
	uint32_t psn, ssn, rwqen; /* number of the next packet, message, receive */
	uint32_t stamp;
	/* The packets of all messages, by PSN from the first. */
	uint32_t first;
	struct ur_packet p[PEER_PACKETS];
	unsigned cnt;
	uint8_t *bytes; /* PEER_BYTES, of which `used` are in use */
	uint32_t used;
	uint8_t seed;
	_Alignas(16) struct ur_ext_answer ans[PEER_ANSWERS];
	struct ur_ext_own own; /* behind the answers, as ur_ext_own() expects it */
};

static inline struct peer *peer_new(struct end_attr attr)
{
	struct peer *x = calloc(1, sizeof(*x));

	attr.mode = UR_MODE_EXTENDED;
	x->e = end_new(attr);
	x->qp = x->e->qp;
	x->psn = x->first = attr.rq_psn ? attr.rq_psn : END_RQ_PSN;
	x->ssn = 1;
	x->qp->rsp.msn = x->qp->xrsp.credits_msn = ur_msn(0);
	x->bytes = malloc(PEER_BYTES);
	x->qp->rsp.ans = x->ans;
	x->qp->rsp.ans_cap = PEER_ANSWERS;
	return x;
}
#define PEER(...) peer_new((struct end_attr){__VA_ARGS__})

static inline void peer_free(struct peer *x)
{
	end_free(x->e);
	free(x->bytes);
	free(x);
}

/* ---- making messages ---- */

static inline struct ur_packet *peer_add(struct peer *x, uint8_t opcode, uint32_t len,
					 uint32_t offset)
{
	struct ur_packet *p = &x->p[x->cnt++];

	cr_assert_leq(x->cnt, PEER_PACKETS);
	cr_assert_leq(x->used + len, PEER_BYTES);
	*p = (struct ur_packet){.op = ur_op_flags(opcode)};
	p->bth.opcode = opcode;
	p->bth.psn = ur_psn(x->psn);
	p->bth.dqpn = x->qp->qpn;
	p->xth.ssn = x->ssn;
	p->xth.offset = offset;
	p->payload = x->bytes + x->used;
	p->payload_len = (uint16_t)len;
	for (uint32_t i = 0; i < len; i++)
		x->bytes[x->used + i] = (uint8_t)(x->seed * 37u + i * 3u + offset * 11u + 1u);
	x->used += len;
	x->psn = (x->psn + 1) & UR_PSN_MASK;
	return p;
}

enum { FIRST, MIDDLE, LAST, ONLY };

/* Opcodes of SENDs and WRITEs by the kind of their last packet. */
enum end_kind { PLAIN, IMM, INV };

static inline uint8_t data_opcode(bool send, unsigned where, enum end_kind end)
{
	static const uint8_t plain[2][4] = {
		{UR_EXT_WRITE_FIRST, UR_EXT_WRITE_MIDDLE, UR_EXT_WRITE_LAST, UR_EXT_WRITE_ONLY},
		{UR_EXT_SEND_FIRST, UR_EXT_SEND_MIDDLE, UR_EXT_SEND_LAST, UR_EXT_SEND_ONLY}};
	static const uint8_t told[2][3][2] = {
		{{0, 0}, {UR_EXT_WRITE_LAST_IMM, UR_EXT_WRITE_ONLY_IMM}, {0, 0}},
		{{0, 0},
		 {UR_EXT_SEND_LAST_IMM, UR_EXT_SEND_ONLY_IMM},
		 {UR_EXT_SEND_LAST_INV, UR_EXT_SEND_ONLY_INV}}};

	return end == PLAIN || where < LAST ? plain[send][where] : told[send][end][where - LAST];
}

/* Makes a SEND, or a WRITE to buf + off, of `len` bytes; returns its first packet. */
static inline struct ur_packet *peer_data(struct peer *x, bool send, uint32_t off, uint32_t len,
					  enum end_kind end, uint32_t arg)
{
	uint32_t pkts = len ? (len + PEER_MTU - 1) / PEER_MTU : 1;
	struct ur_packet *first = &x->p[x->cnt];

	x->seed++;
	for (uint32_t i = 0; i < pkts; i++) {
		unsigned where = pkts == 1 ? ONLY : i == 0 ? FIRST : i + 1 < pkts ? MIDDLE : LAST;
		struct ur_packet *p = peer_add(x, data_opcode(send, where, end),
					       i + 1 < pkts ? PEER_MTU : len - i * PEER_MTU, i);

		p->reth = (struct ur_reth){(uintptr_t)x->e->buf + off, x->e->key, len};
		p->imm = p->ieth = arg;
		if (send || end == IMM) {
			p->xth.flags = UR_XTH_RECV;
			p->xth.rwqen = x->rwqen;
		}
	}
	x->rwqen += send || end == IMM;
	x->ssn++;
	return first;
}

static inline struct ur_packet *peer_write(struct peer *x, uint32_t off, uint32_t len)
{
	return peer_data(x, false, off, len, PLAIN, 0);
}

static inline struct ur_packet *peer_send(struct peer *x, uint32_t len)
{
	return peer_data(x, true, 0, len, PLAIN, 0);
}

static inline struct ur_packet *peer_fetch_add(struct peer *x, uint32_t off, uint64_t add)
{
	struct ur_packet *p = peer_add(x, UR_EXT_FETCH_ADD, 0, 0);

	p->atomiceth = (struct ur_atomiceth){(uintptr_t)x->e->buf + off, x->e->key, add, 0};
	x->ssn++;
	return p;
}

/* Makes one request of a READ; `last`: the last one of its message. */
static inline struct ur_packet *peer_read(struct peer *x, uint32_t off, uint32_t len,
					  uint32_t offset, bool last)
{
	struct ur_packet *p = peer_add(x, UR_EXT_READ_REQUEST, 0, offset);

	p->reth = (struct ur_reth){(uintptr_t)x->e->buf + off, x->e->key, len};
	if (last) {
		p->xth.flags = UR_XTH_LAST_READ;
		x->ssn++;
	}
	return p;
}

/* ---- exchanging packets ---- */

static inline void peer_validate(const struct peer *x)
{
	ur_ext_responder_validate(x->qp);
	/* A context is held while something is noted. */
	if (x->qp->xrsp.ooo)
		cr_assert_gt(x->qp->xrsp.ooo->deferred_cnt, 0);
}

static inline enum ur_drop peer_in(struct peer *x, struct ur_packet *p)
{
	enum ur_drop drop;

	p->xth.stamp = ++x->stamp;
	x->e->now_ns += 160;
	drop = ur_ext_responder_input(x->qp, p, x->e->now_ns);
	ur_qp_act(x->qp);
	peer_validate(x);
	return drop;
}

static inline const struct ur_packet *peer_out(struct peer *x)
{
	struct end *e = x->e;
	struct ur_tx tx = {.hdr = e->out_frame.b};

	for (;;) {
		if (x->qp->ack_node.ready) {
			cr_assert(ur_ext_response_next_ack(x->qp, &tx, e->now_ns));
			break;
		}
		if (!ur_emux_is_active(&x->qp->rsp_queue))
			return NULL;
		bool made = ur_ext_response_next(x->qp, &tx, e->now_ns);

		ur_qp_act(x->qp);
		if (made)
			break;
	}
	peer_validate(x);
	e->out_frame.len = ur_tx_write(&tx, e->out_frame.b);
	cr_assert_eq(e->out_frame.len, ur_tx_bytes(&tx));
	cr_assert_eq(ur_packet_decode(e->out_frame.b, e->out_frame.len, &e->out), UR_DROP_NONE);
	cr_assert_eq(e->out.bth.dqpn.v, END_PEER_QPN);
	return &e->out;
}

static inline const struct ur_packet *peer_expect(struct peer *x, uint8_t opcode, uint32_t psn)
{
	const struct ur_packet *p = peer_out(x);

	cr_assert_not_null(p, "silence instead of %s", ur_opcodes[opcode].name);
	cr_assert_eq(p->bth.opcode, opcode, "%s instead of %s", ur_opcodes[p->bth.opcode].name,
		     ur_opcodes[opcode].name);
	cr_assert_eq(p->bth.psn.v, psn, "PSN %u instead of %u", p->bth.psn.v, psn);
	return p;
}

/* Expects an ACK of everything before `epsn`, or a sequence NAK with a bitmap, or another NAK. */
static inline const struct ur_packet *peer_expect_ack(struct peer *x, uint32_t epsn)
{
	const struct ur_packet *p = peer_expect(x, UR_EXT_ACKNOWLEDGE, (epsn - 1) & UR_PSN_MASK);

	cr_assert_eq(p->aeth.syndrome & UR_SYNDROME_KIND_MASK, UR_SYNDROME_ACK);
	cr_assert_eq(p->xaeth.epsn.v, epsn);
	cr_assert_eq(p->payload_len, 0);
	return p;
}

static inline const struct ur_packet *peer_expect_nak(struct peer *x, uint32_t psn,
						      uint8_t syndrome)
{
	const struct ur_packet *p = peer_expect(x, UR_EXT_ACKNOWLEDGE, psn);

	cr_assert_eq(p->aeth.syndrome, syndrome, "syndrome %#x instead of %#x", p->aeth.syndrome,
		     syndrome);
	return p;
}

static inline void peer_expect_silence(struct peer *x)
{
	const struct ur_packet *p = peer_out(x);

	cr_assert_null(p, "%s instead of silence", p ? ur_opcodes[p->bth.opcode].name : "");
}

static inline unsigned peer_drain(struct peer *x)
{
	unsigned n = 0;

	while (peer_out(x))
		n++;
	return n;
}

static inline unsigned peer_contexts(const struct peer *x)
{
	return x->qp->core->ooo.held_cnt;
}

/* True if the bytes of packet `p` are at buf + off. */
static inline bool peer_is_at(const struct peer *x, const struct ur_packet *p, uint32_t off)
{
	return memcmp(x->e->buf + off, p->payload, p->payload_len) == 0;
}

/* Steps through the permutations of idx[0, n) in order; false after the last. */
static inline bool next_permutation(unsigned *idx, unsigned n)
{
	unsigned i = n - 1, j = n - 1;

	while (i > 0 && idx[i - 1] >= idx[i])
		i--;
	if (i == 0)
		return false;
	while (idx[j] <= idx[i - 1])
		j--;
	for (unsigned t = idx[j];;) {
		idx[j] = idx[i - 1];
		idx[i - 1] = t;
		break;
	}
	for (j = n - 1; i < j; i++, j--) {
		unsigned t = idx[i];

		idx[i] = idx[j];
		idx[j] = t;
	}
	return true;
}

/* An SRQ whose ring the caller frees. */
static inline void srq_new(struct ur_srq *srq, uint32_t entries)
{
	ur_srq_init(srq, aligned_alloc(64, (ur_rq_ring_bytes(entries, 4) + 63) & ~63ul), entries, 4,
		    END_PD, NULL);
}

#endif
