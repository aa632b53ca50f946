/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_PLACE_H
#define UR_TRANSPORT_EXT_PLACE_H

#include <stdatomic.h>
#include <string.h>

#include "transport/rc/ext.h"
#include "transport/rc/ordered_copy.h"
#include "transport/rc/responder_priv.h"
#include "transport/sgl.h"

/*
 * What the responder of extended mode does with any packet, in order (ext_responder.c) or not
 * (ext_early.c): is it well formed, where does its payload go, and putting it there. Nothing else
 * includes this; inline, since a packet in order pays for it.
 */

static inline uint32_t add24(uint32_t a, uint32_t b)
{
	return (a + b) & UR_PSN_MASK;
}

static inline bool is_read(uint32_t op)
{
	return op & UR_OP_READ_REQ;
}

/* Takes a receive when it ends; all SENDs do. */
static inline bool needs_receive(uint32_t op)
{
	return op & (UR_OP_SEND | UR_OP_IMM);
}

/* Bytes of the message up to the end of this packet. */
static inline uint64_t end_of(const struct ur_qp *qp, uint32_t offset, uint32_t payload_len)
{
	return ((uint64_t)offset << qp->mtu_shift) + payload_len;
}

static inline struct ur_ooo_deferred describe(const struct ur_packet *p)
{
	return (struct ur_ooo_deferred){
		.opcode = p->bth.opcode,
		.flags = (uint8_t)((p->xth.flags & ~(unsigned)UR_DEFERRED_SOLICITED) |
				   (p->bth.solicited ? UR_DEFERRED_SOLICITED : 0u)),
		.payload_len = p->payload_len,
		.ssn = p->xth.ssn,
		.offset = p->xth.offset,
		.rwqen = p->xth.rwqen,
		.arg = p->op & UR_OP_IMM    ? p->imm
		       : p->op & UR_OP_IETH ? p->ieth
					    : 0,
		.held = UR_OOO_NOT_HELD,
	};
}

static inline struct ur_ooo_held hold_of(const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ooo_held h = {.arrival_ns = now_ns, .stamp = p->xth.stamp, .path = p->xth.path};

	if (p->op & UR_OP_ATOMIC)
		h.atomic = p->atomiceth;
	else if (p->op & UR_OP_RETH)
		h.reth = p->reth;
	return h;
}

/* ---- checks that need no order ---- */

/*
 * EXT-RESP-FORM-01. What a packet says of itself must fit together: First has offset 0 and nothing
 * else has; First and Middle carry a PMTU; Last ends the message, the others do not.
 */
static inline struct verdict check_form(const struct ur_qp *qp, const struct ur_packet *p)
{
	const struct ur_xth *x = &p->xth;
	uint32_t mtu = 1u << qp->mtu_shift;
	bool first = p->op & UR_OP_FIRST, last = p->op & UR_OP_LAST, recv = x->flags & UR_XTH_RECV;
	uint64_t end = end_of(qp, x->offset, p->payload_len);

	if (is_read(p->op))
		return p->reth.length <= 1u << 31 &&
				       ur_responder_read_psns(qp, p->reth.length) <=
					       UR_EXT_WINDOW &&
				       x->offset + ur_responder_read_psns(qp, p->reth.length) <=
					       UR_PSN_MASK + 1 &&
				       !recv
			       ? CONTINUE
			       : NAK(INV_REQ, MSG_LENGTH);
	if (p->op & UR_OP_ATOMIC)
		return p->atomiceth.va & 7 || x->offset || recv ? NAK(INV_REQ, MSG_LENGTH)
								: CONTINUE;
	if (first != (x->offset == 0) || (p->op & UR_OP_SEND && !recv) ||
	    (p->op & UR_OP_WRITE && last && recv != !!(p->op & UR_OP_IMM)))
		return NAK(INV_REQ, OP_SEQUENCE);
	if ((last ? p->payload_len > mtu || (!first && !p->payload_len) : p->payload_len != mtu) ||
	    end > 1u << 31)
		return NAK(INV_REQ, MSG_LENGTH);
	if (p->op & UR_OP_WRITE &&
	    (p->reth.length > 1u << 31 || (last ? end != p->reth.length : end >= p->reth.length)))
		return NAK(INV_REQ, MSG_LENGTH);
	return CONTINUE;
}

/* All parts of a READ but the last are whole packets, or what follows would not fit behind. */
static inline bool is_whole_part(const struct ur_qp *qp, const struct ur_packet *p)
{
	return p->xth.flags & UR_XTH_LAST_READ ||
	       (p->reth.length && !(p->reth.length & ((1u << qp->mtu_shift) - 1)));
}

static inline struct verdict check_held(const struct ur_qp *qp, uint32_t op,
					const struct ur_ooo_held *h)
{
	return is_read(op) ? ur_responder_check_reth(qp, op, &h->reth)
			   : ur_responder_check_atomic(qp, &h->atomic);
}

/* Where the message of a WRITE begins; NULL when the key does not grant all of it. */
static inline uint8_t *written_at(const struct ur_qp *qp, const struct ur_reth *reth)
{
	return ur_mem_check(qp->core->mem, reth->rkey, qp->pd, reth->va, reth->length,
			    IBV_ACCESS_REMOTE_WRITE);
}

/*
 * EXT-RESP-RECV-02. Where the payload of a SEND or WRITE goes: at most UR_FRAGS_MAX pieces of host
 * memory, *cnt of them. The key must grant the whole message, as in standard mode. `rwqe`: the
 * receive of a SEND.
 */
static inline struct verdict locate(const struct ur_qp *qp, const struct ur_packet *p,
				    const struct ur_rwqe *rwqe, struct ur_frag *frag, unsigned *cnt)
{
	uint64_t off = end_of(qp, p->xth.offset, 0);
	const uint8_t *base;
	int n;

	*cnt = 0;
	if (p->op & UR_OP_SEND) {
		const struct ur_sge *sge = rwqe->sge;

		if (off + p->payload_len > rwqe->length)
			return NAK_RECV(INV_REQ, RECV_BUFFER, IBV_WC_LOC_LEN_ERR);
		if (!p->payload_len)
			return CONTINUE;
		if (ur_sgl_in_first(sge, rwqe->num_sge, (uint32_t)off, p->payload_len)) {
			base = ur_mem_check(qp->core->mem, sge->lkey, qp->pd, sge->addr + off,
					    p->payload_len, IBV_ACCESS_LOCAL_WRITE);
			if (!base)
				return NAK_RECV(REM_OP, RECV_BUFFER, IBV_WC_LOC_PROT_ERR);
			frag[0] = (struct ur_frag){base, p->payload_len};
			*cnt = 1;
			return CONTINUE;
		}
		n = ur_sgl_resolve(qp->core->mem, qp->pd, rwqe->sge, rwqe->num_sge, (uint32_t)off,
				   p->payload_len, IBV_ACCESS_LOCAL_WRITE, frag, UR_FRAGS_MAX);
		if (n < 0)
			return NAK_RECV(REM_OP, RECV_BUFFER, IBV_WC_LOC_PROT_ERR);
		*cnt = (unsigned)n;
		return CONTINUE;
	}
	if (!p->payload_len)
		return CONTINUE;
	base = written_at(qp, &p->reth);
	if (!base)
		return NAK(REM_ACCESS, ACCESS);
	frag[0] = (struct ur_frag){base + off, p->payload_len};
	*cnt = 1;
	return CONTINUE;
}

/* The end of a WRITE that may not be seen before what comes before it. */
static inline bool is_strict_end(const struct ur_qp *qp, uint32_t op)
{
	return __builtin_expect(qp->strict, 0) && op & UR_OP_WRITE && op & UR_OP_LAST;
}

/* For applications that poll on the end of a WRITE: its last bytes after all others. len > 0 */
static inline void put_end(const struct ur_ooo *o, struct ur_psn psn, uint8_t *dst,
			   const uint8_t *src, uint32_t len)
{
	uint32_t head = len - ur_ordered_tail((uintptr_t)dst + len, len);

	if (!o || !ur_ooo_write(o, psn, dst, src, head))
		memcpy(dst, src, head);
	atomic_thread_fence(memory_order_release);
	if (!o || !ur_ooo_write(o, psn, dst + head, src + head, len - head))
		ur_ordered_copy(dst + head, src + head, len - head);
}

/* EXT-RESP-PLACE-01: nothing is overwritten that a younger packet wrote. len > 0 */
static inline void put(const struct ur_qp *qp, struct ur_psn psn, uint32_t op, uint8_t *dst,
		       const uint8_t *src, uint32_t len)
{
	const struct ur_ooo *o = qp->xrsp.ooo;

	if (is_strict_end(qp, op))
		put_end(o, psn, dst, src, len);
	else if (__builtin_expect(!o, 1) || !ur_ooo_write(o, psn, dst, src, len))
		memcpy(dst, src, len);
}

static inline void place(struct ur_qp *qp, const struct ur_packet *p, const struct ur_frag *frag,
			 unsigned cnt)
{
	const uint8_t *src = p->payload;

	for (unsigned i = 0; i < cnt; i++) {
		put(qp, p->bth.psn, p->op, (uint8_t *)(uintptr_t)frag[i].base, src, frag[i].length);
		src += frag[i].length;
	}
	qp->core->cnt.rx_write_requests += !!(p->op & UR_OP_WRITE);
}

#endif
