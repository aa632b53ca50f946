/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_PLACE_H
#define UR_TRANSPORT_RC_PLACE_H

#include <stdatomic.h>
#include <string.h>

#include "mem/window.h"
#include "transport/rc/arrival.h"
#include "transport/rc/ordered_copy.h"
#include "transport/sgl.h"

/*
 * What a responder of RC or UC does with a packet whatever its turn: is it well formed, where does its payload go,
 * and putting it there. Asks the loss engine for the first part of rc/arrival.h. Inline, since a packet in order pays
 * for it.
 */

/*
 * RC-RESP-LEN-01, RC-RESP-ATOMIC-01, EXT-RESP-FORM-01: First and Middle carry a PMTU, Last 1..PMTU, Only 0..PMTU; a
 * WRITE adds up.
 */
static inline struct verdict check_length(const struct ur_qp *qp, const struct ur_packet *p)
{
	uint32_t mtu = 1u << qp->mtu_shift;
	bool first = p->op & UR_OP_FIRST, last = p->op & UR_OP_LAST;
	struct verdict v = arrival_check_form(qp, p);

	if (v.kind)
		return v;
	if (is_read(p->op))
		return p->reth.length <= 1u << 31 && ur_responder_read_psns(qp, p->reth.length) <=
							     ARRIVAL_READ_PSNS
			       ? CONTINUE
			       : NAK(INV_REQ, MSG_LENGTH);
	if (p->op & UR_OP_ATOMIC)
		return p->atomiceth.va & 7 ? NAK(INV_REQ, MSG_LENGTH) : CONTINUE;
	if (last ? p->payload_len > mtu || (!first && !p->payload_len) : p->payload_len != mtu)
		return NAK(INV_REQ, MSG_LENGTH);
	if (p->op & UR_OP_WRITE) {
		uint64_t end = arrival_offset(qp, p) + p->payload_len;
		uint32_t length = arrival_reth(qp, p)->length;

		if (length > 1u << 31 || (last ? end != length : end >= length))
			return NAK(INV_REQ, MSG_LENGTH);
	}
	return CONTINUE;
}

/* Host memory [base, base + length); at most UR_FRAGS_MAX pieces. */
struct pieces {
	struct ur_frag frag[UR_FRAGS_MAX];
	unsigned cnt;
};

/* The payload goes behind what the message has placed so far. */
static inline struct verdict locate_send(const struct ur_qp *qp, const struct ur_packet *p,
					 const struct ur_rwqe *rwqe, struct pieces *at)
{
	const struct ur_sge *sge = rwqe->sge;
	uint64_t off = arrival_offset(qp, p);
	int n;

	if (off + p->payload_len > rwqe->length)
		return NAK_RECV(INV_REQ, RECV_BUFFER, IBV_WC_LOC_LEN_ERR);
	if (!p->payload_len)
		return CONTINUE;
	if (ur_sgl_in_first(sge, rwqe->num_sge, (uint32_t)off, p->payload_len)) {
		const uint8_t *base =
			ur_mem_check(qp->core->mem, sge->lkey, qp->pd, sge->addr + off,
				     p->payload_len, IBV_ACCESS_LOCAL_WRITE);

		if (!base)
			return NAK_RECV(REM_OP, RECV_BUFFER, IBV_WC_LOC_PROT_ERR);
		at->frag[0] = (struct ur_frag){base, p->payload_len};
		at->cnt = 1;
		return CONTINUE;
	}
	n = ur_sgl_resolve(qp->core->mem, qp->pd, sge, rwqe->num_sge, (uint32_t)off, p->payload_len,
			   IBV_ACCESS_LOCAL_WRITE, at->frag, UR_FRAGS_MAX);
	if (n < 0)
		return NAK_RECV(REM_OP, RECV_BUFFER, IBV_WC_LOC_PROT_ERR);
	at->cnt = (unsigned)n;
	return CONTINUE;
}

/*
 * RC-RESP-ACC-01, EXT-RESP-RECV-02. Where the payload of a SEND or WRITE goes, before memory is touched. The key of a
 * WRITE must grant the whole message, with each packet: the region may go in between. `rwqe`: the receive of a SEND.
 */
static inline struct verdict locate(const struct ur_qp *qp, const struct ur_packet *p,
				    const struct ur_rwqe *rwqe, struct pieces *at)
{
	const struct ur_reth *reth;
	const uint8_t *base;

	at->cnt = 0;
	if (p->op & UR_OP_SEND)
		return locate_send(qp, p, rwqe, at);
	if (!p->payload_len)
		return CONTINUE;
	reth = arrival_reth(qp, p);
	base = ur_mem_check_remote(qp->core->mem, reth->rkey, qp->pd, qp->qpn.v, reth->va,
				   reth->length, IBV_ACCESS_REMOTE_WRITE);
	if (!base)
		return NAK(REM_ACCESS, ACCESS);
	at->frag[0] = (struct ur_frag){base + arrival_offset(qp, p), p->payload_len};
	at->cnt = 1;
	return CONTINUE;
}

/* The end of a WRITE that may not be seen before what comes before it. */
static inline bool is_strict_end(const struct ur_qp *qp, uint32_t op)
{
	return __builtin_expect(qp->strict, 0) && op & UR_OP_WRITE && op & UR_OP_LAST;
}

/* For applications that poll on the end of a WRITE: its last bytes after all others. len > 0 */
static inline void copy_end(const struct ur_qp *qp, struct ur_psn psn, uint8_t *dst,
			    const uint8_t *src, uint32_t len)
{
	uint32_t head = len - ur_ordered_tail((uintptr_t)dst + len, len);

	if (!arrival_clip(qp, psn, dst, src, head))
		memcpy(dst, src, head);
	atomic_thread_fence(memory_order_release);
	if (!arrival_clip(qp, psn, dst + head, src + head, len - head))
		ur_ordered_copy(dst + head, src + head, len - head);
}

/* EXT-RESP-PLACE-01: nothing is overwritten that a younger packet wrote. */
static inline void place(struct ur_qp *qp, const struct ur_packet *p, const struct pieces *at)
{
	const uint8_t *src = p->payload;

	qp->core->cnt.rx_write_requests += !!(p->op & UR_OP_WRITE);
	for (unsigned i = 0; i < at->cnt; i++) {
		uint8_t *dst = (uint8_t *)(uintptr_t)at->frag[i].base;
		uint32_t len = at->frag[i].length;

		if (is_strict_end(qp, p->op))
			copy_end(qp, p->bth.psn, dst, src, len);
		else if (!arrival_clip(qp, p->bth.psn, dst, src, len))
			memcpy(dst, src, len);
		src += len;
	}
}

#endif
