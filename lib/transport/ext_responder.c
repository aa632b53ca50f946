/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>

#include "transport/admission.h"
#include "transport/ext.h"
#include "transport/ordered_copy.h"
#include "transport/reorder.h"
#include "transport/responder_priv.h"
#include "transport/sgl.h"
#include "wire/assert.h"

/*
 * The responder of extended mode. Each packet says where its payload goes, so it is placed when it
 * comes; what must happen in order is reduced to a note and happens in its turn, when ePSN is
 * there. A packet at ePSN has its turn at once, by the same functions.
 */

static uint32_t add24(uint32_t a, uint32_t b)
{
	return (a + b) & UR_PSN_MASK;
}

static bool is_read(uint32_t op)
{
	return op & UR_OP_READ_REQ;
}

/* Takes a receive when it ends; all SENDs do. */
static bool needs_receive(uint32_t op)
{
	return op & (UR_OP_SEND | UR_OP_IMM);
}

/* Bytes of the message up to the end of this packet. */
static uint64_t end_of(const struct ur_qp *qp, uint32_t offset, uint32_t payload_len)
{
	return ((uint64_t)offset << qp->mtu_shift) + payload_len;
}

static struct ur_ooo_note note_of(const struct ur_packet *p)
{
	return (struct ur_ooo_note){
		.opcode = p->bth.opcode,
		.flags = (uint8_t)((p->xth.flags & ~(unsigned)UR_NOTE_SOLICITED) |
				   (p->bth.solicited ? UR_NOTE_SOLICITED : 0u)),
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

static struct ur_ooo_held hold_of(const struct ur_packet *p, uint64_t now_ns)
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
static struct verdict check_form(const struct ur_qp *qp, const struct ur_packet *p)
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
static bool is_whole_part(const struct ur_qp *qp, const struct ur_packet *p)
{
	return p->xth.flags & UR_XTH_LAST_READ ||
	       (p->reth.length && !(p->reth.length & ((1u << qp->mtu_shift) - 1)));
}

static struct verdict check_held(const struct ur_qp *qp, uint32_t op, const struct ur_ooo_held *h)
{
	return is_read(op) ? ur_responder_check_reth(qp, op, &h->reth)
			   : ur_responder_check_atomic(qp, &h->atomic);
}

/* Where the message of a WRITE begins; NULL when the key does not grant all of it. */
static uint8_t *written_at(const struct ur_qp *qp, const struct ur_reth *reth)
{
	return ur_mem_check(qp->core->mem, reth->rkey, qp->pd, reth->va, reth->length,
			    IBV_ACCESS_REMOTE_WRITE);
}

/*
 * EXT-RESP-RECV-02. Where the payload of a SEND or WRITE goes: at most UR_FRAGS_MAX pieces of host
 * memory, *cnt of them. The key must grant the whole message, as in standard mode. `rwqe`: the
 * receive of a SEND.
 */
static struct verdict locate(const struct ur_qp *qp, const struct ur_packet *p,
			     const struct ur_rwqe *rwqe, struct ur_frag *frag, unsigned *cnt)
{
	uint64_t off = end_of(qp, p->xth.offset, 0);
	const uint8_t *base;
	int n;

	*cnt = 0;
	if (p->op & UR_OP_SEND) {
		if (off + p->payload_len > rwqe->length)
			return NAK_RECV(INV_REQ, RECV_BUFFER, IBV_WC_LOC_LEN_ERR);
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
static bool is_strict_end(const struct ur_qp *qp, uint32_t op)
{
	return __builtin_expect(qp->strict, 0) && op & UR_OP_WRITE && op & UR_OP_LAST;
}

/* For those who poll on the end of a WRITE: its last bytes after all others. len > 0 */
static void put_end(const struct ur_ooo *o, struct ur_psn psn, uint8_t *dst, const uint8_t *src,
		    uint32_t len)
{
	uint32_t head = len - ur_ordered_tail((uintptr_t)dst + len, len);

	if (!o || !ur_ooo_write(o, psn, dst, src, head))
		memcpy(dst, src, head);
	atomic_thread_fence(memory_order_release);
	if (!o || !ur_ooo_write(o, psn, dst + head, src + head, len - head))
		ur_ordered_copy(dst + head, src + head, len - head);
}

/* EXT-RESP-PLACE-01: nothing is overwritten that a younger packet wrote. len > 0 */
static void put(const struct ur_qp *qp, struct ur_psn psn, uint32_t op, uint8_t *dst,
		const uint8_t *src, uint32_t len)
{
	const struct ur_ooo *o = qp->xrsp.ooo;

	if (is_strict_end(qp, op))
		put_end(o, psn, dst, src, len);
	else if (__builtin_expect(!o, 1) || !ur_ooo_write(o, psn, dst, src, len))
		memcpy(dst, src, len);
}

static void place(struct ur_qp *qp, const struct ur_packet *p, const struct ur_frag *frag,
		  unsigned cnt)
{
	const uint8_t *src = p->payload;

	for (unsigned i = 0; i < cnt; i++) {
		put(qp, p->bth.psn, p->op, (uint8_t *)(uintptr_t)frag[i].base, src, frag[i].length);
		src += frag[i].length;
	}
	qp->core->cnt.rx_write_requests += !!(p->op & UR_OP_WRITE);
}

/* ---- receives ---- */

/*
 * The receive for the message that is `ahead` such messages beyond the last that completed; NULL
 * when it is not posted. Takes nothing.
 */
static const struct ur_rwqe *receive_at(const struct ur_qp *qp, uint32_t ahead)
{
	const struct ur_wq *rq = qp->srq ? &qp->srq->rq : &qp->rq;
	struct ur_ooo *o = qp->xrsp.ooo;
	uint32_t head = ur_wq_head(rq), posted = ur_wq_tail(rq) - head;

	if (qp->srq) {
		if (qp->rsp.wqe && ahead-- == 0)
			return qp->rsp.wqe;
		if (ahead >= UR_OOO_BOUND || rq->stride > o->bound_stride)
			return NULL;
		if (ahead < o->bound_cnt)
			return ur_ooo_bound(o, ahead);
		ahead -= o->bound_cnt;
	}
	return ahead < posted ? ur_rq_at(rq, head + ahead) : NULL;
}

static void take_from_srq(struct ur_qp *qp, struct ur_rwqe *to)
{
	bool ok = ur_responder_take_srq(qp, to);

	UR_ASSERT(ok);
}

/* EXT-RESP-RECV-01. Takes receives from the SRQ until the context holds that of receive_at(ahead).
 */
static void bind_up_to(struct ur_qp *qp, uint32_t ahead, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	if (!qp->srq)
		return;
	for (uint32_t need = ahead + !qp->rsp.wqe; o->bound_cnt < need; o->bound_cnt++) {
		if (qp->admission & UR_ADM_TELLS) {
			bool ok = ur_admission_admit(qp, UR_ADM_NONE, now_ns);

			UR_ASSERT(ok);
		}
		take_from_srq(qp, ur_ooo_bound(o, o->bound_cnt));
	}
}

/* ADM-EARLY-01. Binding up to receive_at(ahead) takes no more than the pool gives away. */
static bool may_bind_up_to(const struct ur_qp *qp, uint32_t ahead)
{
	uint32_t need = ahead + !qp->rsp.wqe, have = qp->xrsp.ooo->bound_cnt;

	return !(qp->admission & UR_ADM_TELLS) || need <= have ||
	       need - have <= ur_admission_early(qp);
}

/* Binds the receive whose turn it is, for a packet with the `flags` of an XTH. */
static bool bind_turn(struct ur_qp *qp, uint8_t flags, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	if (qp->rsp.wqe)
		return true;
	if (!o || !o->bound_cnt)
		return (!(qp->admission & UR_ADM_TELLS) ||
			ur_admission_admit(qp, (flags & UR_XTH_CLAIM) >> UR_XTH_CLAIM_SHIFT,
					   now_ns)) &&
		       ur_responder_bind(qp);
	qp->rsp.wqe = memcpy(qp->rsp.srq_wqe, ur_ooo_bound(o, 0), qp->srq->rq.stride);
	o->bound_head = (o->bound_head + 1) & (UR_OOO_BOUND - 1);
	o->bound_cnt--;
	return true;
}

/* ---- a packet in its turn ---- */

/* EXT-RESP-SEQ-01: the packet continues the message under way, or starts the next. */
static struct verdict check_turn(const struct ur_qp *qp, const struct ur_ooo_note *n)
{
	const struct ur_ext_responder *x = &qp->xrsp;
	uint32_t op = ur_op_flags(n->opcode);
	uint8_t kind = op & UR_OP_FIRST ? UR_MSG_NONE : ur_responder_kind_of(op);

	return qp->rsp.kind == kind && n->ssn == add24(qp->rsp.msn, 1) && n->offset == x->offset &&
			       (!(n->flags & UR_XTH_RECV) || n->rwqen == x->rwqen)
		       ? CONTINUE
		       : NAK(INV_REQ, OP_SEQUENCE);
}

static struct verdict check_turn_resources(struct ur_qp *qp, const struct ur_ooo_note *n,
					   uint64_t now_ns)
{
	uint32_t op = ur_op_flags(n->opcode);

	if (op & (UR_OP_READ_REQ | UR_OP_ATOMIC))
		return ur_ext_response_room(qp, false) ? CONTINUE : NAK(INV_REQ, RESOURCES);
	if (needs_receive(op) && !bind_turn(qp, n->flags, now_ns))
		return (struct verdict){.kind = V_RNR};
	return CONTINUE;
}

static struct ur_ext_answer answer_of(const struct ur_ooo_note *n, const struct ur_ooo_held *h,
				      struct ur_psn psn)
{
	return (struct ur_ext_answer){
		.arrival_ns = h->arrival_ns,
		.stamp = h->stamp,
		.ssn = n->ssn,
		.offset = n->offset,
		.psn = psn,
		.path = h->path,
	};
}

static void take_turn_read(struct ur_qp *qp, const struct ur_ooo_note *n,
			   const struct ur_ooo_held *h)
{
	struct ur_ext_answer a = answer_of(n, h, qp->rsp.epsn);

	a.va = h->reth.va;
	a.rkey = h->reth.rkey;
	a.length = h->reth.length;
	qp->core->cnt.rx_read_requests++;
	if (n->flags & UR_XTH_LAST_READ) {
		qp->rsp.msn++;
		qp->xrsp.offset = 0;
	} else {
		qp->xrsp.offset += ur_responder_read_psns(qp, h->reth.length);
	}
	ur_ext_response_queue(qp, &a);
}

/* EXT-RESP-ATOMIC-01: executed once; the value is remembered for who asks once more. */
static struct verdict take_turn_atomic(struct ur_qp *qp, const struct ur_ooo_note *n,
				       const struct ur_ooo_held *h)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_ext_answer a = answer_of(n, h, rsp->epsn);
	struct ur_rd_res *res;
	struct verdict v =
		ur_responder_atomic(qp, n->opcode == UR_EXT_FETCH_ADD, &h->atomic, &a.va);

	if (v.kind)
		return v;
	res = ur_responder_remember(qp, rsp->epsn, 1);
	res->atomic = true;
	res->rkey = h->atomic.rkey;
	res->va = h->atomic.va;
	res->original = a.va;
	rsp->msn++;
	a.atomic = true;
	ur_ext_response_queue(qp, &a);
	return CONTINUE;
}

/* EXT-RESP-STRICT-01. The end of a WRITE that was kept is placed now. */
static struct verdict place_kept(struct ur_qp *qp, const struct ur_ooo_note *n,
				 const struct ur_ooo_held *h)
{
	uint8_t *base;

	if (!n->payload_len)
		return CONTINUE;
	base = written_at(qp, &h->reth);
	if (!base)
		return NAK(REM_ACCESS, ACCESS);
	put(qp, qp->rsp.epsn, ur_op_flags(n->opcode), base + end_of(qp, n->offset, 0),
	    h->slot->payload, n->payload_len);
	return CONTINUE;
}

static struct verdict take_turn_data(struct ur_qp *qp, const struct ur_ooo_note *n,
				     const struct ur_ooo_held *h)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_message_end end = {
		.op = ur_op_flags(n->opcode),
		.imm_inv = n->arg,
		.byte_len = (uint32_t)end_of(qp, n->offset, n->payload_len),
		.solicited = n->flags & UR_NOTE_SOLICITED,
	};
	struct verdict v;

	if (h && (v = place_kept(qp, n, h)).kind)
		return v;
	rsp->kind = ur_responder_kind_of(end.op);
	qp->xrsp.offset++;
	if (!(end.op & UR_OP_LAST))
		return CONTINUE;
	v = ur_responder_finish(qp, &end);
	if (v.kind)
		return v;
	qp->xrsp.offset = 0;
	if (needs_receive(end.op))
		qp->xrsp.rwqen = add24(qp->xrsp.rwqen, 1);
	return CONTINUE;
}

/* What is left to be done of a packet that was checked and placed. `h`: it waited whole. */
static struct verdict take_turn(struct ur_qp *qp, const struct ur_ooo_note *n,
				const struct ur_ooo_held *h)
{
	struct ur_responder *rsp = &qp->rsp;
	uint32_t op = ur_op_flags(n->opcode);
	struct verdict v = CONTINUE;

	if (is_read(op))
		take_turn_read(qp, n, h);
	else if (op & UR_OP_ATOMIC)
		v = take_turn_atomic(qp, n, h);
	else
		v = take_turn_data(qp, n, h);
	if (v.kind)
		return v;
	rsp->epsn = ur_psn_add(rsp->epsn, 1);
	qp->xrsp.starved = false;
	if (__builtin_expect(rsp->nak_sent, 0)) {
		rsp->nak_sent = false;
		if (rsp->ack == UR_NAK_OWED)
			rsp->ack = UR_ACK_OWED;
	}
	return CONTINUE;
}

static struct verdict check_in_turn(struct ur_qp *qp, const struct ur_packet *p,
				    const struct ur_ooo_note *n, uint64_t now_ns)
{
	struct verdict v;

	if ((v = check_turn(qp, n)).kind || (v = ur_responder_check_rights(qp, p->op)).kind ||
	    (v = check_form(qp, p)).kind)
		return v;
	if (is_read(p->op) && !is_whole_part(qp, p))
		return NAK(INV_REQ, MSG_LENGTH);
	return check_turn_resources(qp, n, now_ns);
}

static struct verdict execute(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ooo_note n = note_of(p);
	struct verdict v = check_in_turn(qp, p, &n, now_ns);

	if (v.kind)
		return v;
	if (p->op & (UR_OP_READ_REQ | UR_OP_ATOMIC)) {
		struct ur_ooo_held h = hold_of(p, now_ns);

		v = check_held(qp, p->op, &h);
		return v.kind ? v : take_turn(qp, &n, &h);
	} else {
		struct ur_frag frag[UR_FRAGS_MAX];
		unsigned cnt;

		v = locate(qp, p, qp->rsp.wqe, frag, &cnt);
		if (v.kind)
			return v;
		place(qp, p, frag, cnt);
		return take_turn(qp, &n, NULL);
	}
}

static void release(struct ur_qp *qp, uint16_t held)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	if (o->held[held].slot)
		ur_reorder_slot_give(&qp->core->reorder, o->held[held].slot);
	ur_ooo_release(o, held);
}

static void give_context(struct ur_qp *qp)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	for (unsigned i = 0; o->held_cnt && i < UR_OOO_HELD; i++)
		if (o->held_used[i >> 6] >> (i & 63) & 1)
			release(qp, (uint16_t)i);
	ur_ooo_give(&qp->core->ooo, o);
	qp->xrsp.ooo = NULL;
}

/* The packet noted at ePSN has its turn. */
static struct verdict take_turn_noted(struct ur_qp *qp, const struct ur_ooo_note *n,
				      uint64_t now_ns)
{
	uint32_t op = ur_op_flags(n->opcode);
	const struct ur_ooo_held *h = NULL;
	struct verdict v;

	if ((v = check_turn(qp, n)).kind || (v = check_turn_resources(qp, n, now_ns)).kind)
		return v;
	if (n->held != UR_OOO_NOT_HELD) {
		h = &qp->xrsp.ooo->held[n->held];
		/* Rights and region may have gone while it waited. */
		if ((v = ur_responder_check_rights(qp, op)).kind ||
		    (!h->slot && (v = check_held(qp, op, h)).kind))
			return v;
	}
	return take_turn(qp, n, h);
}

/* EXT-RESP-TURN-01. The hole at ePSN is filled: finishes what was noted behind it. */
static struct verdict advance(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	while (ur_ooo_noted(o, qp->rsp.epsn)) {
		struct ur_psn psn = qp->rsp.epsn;
		const struct ur_ooo_note *n = ur_ooo_note_at(o, psn);
		struct verdict v = take_turn_noted(qp, n, now_ns);

		if (v.kind)
			return v;
		if (n->held != UR_OOO_NOT_HELD)
			release(qp, n->held);
		ur_ooo_forget(o, psn);
	}
	/* Receives are bound for packets that are noted, and their messages have begun by now. */
	if (!o->noted_cnt) {
		UR_ASSERT(!o->bound_cnt);
		give_context(qp);
	}
	return CONTINUE;
}

static enum ur_drop act(struct ur_qp *qp, const struct ur_packet *p, struct verdict v,
			uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;

	if (v.kind == V_RNR) { /* EXT-RESP-RNR-01 */
		rsp->nak_sent = true;
		qp->core->cnt.rnr_nak_sent++;
		ur_ext_response_nak(qp, p,
				    UR_SYNDROME_RNR_NAK | (qp->adm.mark.letter
								   ? ur_admission_rnr_timer(qp)
								   : rsp->min_rnr_timer),
				    now_ns);
		return UR_DROP_RNR;
	}
	ur_ext_response_ack(qp, p, false, now_ns); /* for the echo in the NAK */
	ur_responder_refuse(qp, rsp->epsn, v);
	ur_ext_responder_stop(qp, IBV_WC_WR_FLUSH_ERR);
	ur_ext_response_stop(qp);
	return v.drop;
}

static enum ur_drop in_order(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct verdict v = execute(qp, p, now_ns);

	if (__builtin_expect(v.kind, 0))
		return act(qp, p, v, now_ns);
	if (p->bth.ackreq || qp->xrsp.ooo)
		ur_ext_response_ack(qp, p, false, now_ns);
	if (__builtin_expect(qp->xrsp.ooo != NULL, 0)) {
		v = advance(qp, now_ns);
		if (v.kind)
			act(qp, p, v, now_ns);
	}
	return UR_DROP_NONE;
}

/* ---- a packet beyond ePSN ---- */

/* READs and atomics wait whole. */
static enum ur_drop hold_early(struct ur_qp *qp, const struct ur_packet *p, struct ur_ooo_note *n,
			       uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;
	struct ur_ooo_held h = hold_of(p, now_ns);

	if ((is_read(p->op) && !is_whole_part(qp, p)) || check_held(qp, p->op, &h).kind)
		return UR_DROP_EARLY;
	/* EXT-RESP-HELD-01 */
	if (o->held_cnt - o->slot_cnt >= qp->rsp.res_cnt || o->held_cnt == UR_OOO_HELD)
		return UR_DROP_RESOURCES;
	n->held = ur_ooo_hold(o, &h);
	return UR_DROP_NONE;
}

/* EXT-RESP-STRICT-01. The end of a WRITE is kept until its turn. */
static bool keep_early(struct ur_qp *qp, const struct ur_packet *p, struct ur_ooo_note *n,
		       uint64_t now_ns)
{
	struct ur_reorder_pool *pool = &qp->core->reorder;
	struct ur_ooo_held h = hold_of(p, now_ns);

	if (qp->xrsp.ooo->held_cnt == UR_OOO_HELD || p->payload_len > pool->slot_bytes)
		return false;
	h.slot = ur_reorder_slot_take(pool);
	if (!h.slot)
		return false;
	memcpy(h.slot->payload, p->payload, p->payload_len);
	n->held = ur_ooo_hold(qp->xrsp.ooo, &h);
	return true;
}

/* `ahead`: PSNs beyond ePSN. */
static enum ur_drop place_early(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
				struct ur_ooo_note *n, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;
	uint32_t receive = add24(p->xth.rwqen, 0u - qp->xrsp.rwqen);
	const struct ur_rwqe *rwqe = NULL;
	struct ur_frag frag[UR_FRAGS_MAX];
	unsigned cnt;

	if (needs_receive(p->op)) {
		/* Each message takes a PSN at least: who is further ahead would drain an SRQ. */
		if (receive > ahead)
			return UR_DROP_EARLY;
		rwqe = receive_at(qp, receive);
		if (!rwqe || !may_bind_up_to(qp, receive))
			return UR_DROP_RNR;
	}
	if (locate(qp, p, rwqe, frag, &cnt).kind)
		return UR_DROP_EARLY;
	if (is_strict_end(qp, p->op)) {
		if (!keep_early(qp, p, n, now_ns))
			return UR_DROP_NO_CONTEXT;
		cnt = 0;
	} else if (!ur_ooo_room(o, qp->rsp.epsn, cnt)) {
		return UR_DROP_NO_CONTEXT;
	}
	if (rwqe)
		bind_up_to(qp, receive, now_ns);
	place(qp, p, frag, cnt);
	for (unsigned i = 0; i < cnt; i++)
		ur_ooo_written(o, p->bth.psn, qp->rsp.epsn, frag[i].base, frag[i].length);
	return UR_DROP_NONE;
}

/* EXT-RESP-EARLY-01: what fails here is not noted; it is judged in its turn. */
static enum ur_drop take_early(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
			       uint64_t now_ns)
{
	struct ur_ooo_note n = note_of(p);
	enum ur_drop drop;

	if (ur_responder_check_rights(qp, p->op).kind || check_form(qp, p).kind)
		return UR_DROP_EARLY;
	drop = p->op & (UR_OP_READ_REQ | UR_OP_ATOMIC) ? hold_early(qp, p, &n, now_ns)
						       : place_early(qp, p, ahead, &n, now_ns);
	if (drop == UR_DROP_NONE)
		ur_ooo_note(qp->xrsp.ooo, p->bth.psn, &n);
	return drop;
}

/* EXT-RESP-CONTEXT-01 */
static bool have_context(struct ur_qp *qp)
{
	struct ur_ext_responder *x = &qp->xrsp;
	struct ur_core *core = qp->core;

	if (x->ooo)
		return true;
	x->ooo = ur_ooo_take(&core->ooo);
	if (x->ooo)
		return true;
	core->cnt.ooo_exhausted += !x->starved;
	x->starved = true;
	return false;
}

static enum ur_drop early(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
			  uint64_t now_ns)
{
	struct ur_ext_responder *x = &qp->xrsp;
	struct ur_counters *cnt = &qp->core->cnt;
	bool gap = !x->ooo;
	/*
	 * EXT-RESP-ACK-03. What just follows the newest tells nothing new. READs and atomics are
	 * few, ask for no ACK, and nothing else tells of them before their turn.
	 */
	bool follows = !gap && x->ooo->noted_cnt && !(p->op & (UR_OP_READ_REQ | UR_OP_ATOMIC)) &&
		       ur_psn_eq(p->bth.psn, ur_psn_add(x->ooo->top, 1));
	enum ur_drop drop;

	cnt->out_of_sequence++;
	if (ahead >= UR_EXT_WINDOW) {
		cnt->early_dropped++;
		return UR_DROP_PSN_GAP;
	}
	if (!follows || p->bth.ackreq)
		ur_ext_response_ack(qp, p, false, now_ns);
	if (!have_context(qp)) {
		cnt->early_dropped++;
		return UR_DROP_NO_CONTEXT;
	}
	if (ur_ooo_noted(x->ooo, p->bth.psn)) {
		cnt->duplicate_request++;
		return UR_DROP_PSN_DUPLICATE;
	}
	drop = take_early(qp, p, ahead, now_ns);
	if (drop == UR_DROP_NONE) {
		cnt->early_packets++;
		cnt->ooo_contexts += gap;
	} else {
		/* The echo tells the peer at once what it has to send again. */
		ur_ext_response_ack(qp, p, false, now_ns);
		cnt->early_dropped++;
		if (!x->ooo->noted_cnt)
			give_context(qp);
	}
	return drop;
}

/* ---- a packet before ePSN ---- */

/* EXT-RESP-DUP-03. What was executed with that PSN must be what is asked for once more. */
static const struct ur_rd_res *find_atomic(struct ur_responder *rsp, const struct ur_packet *p)
{
	const struct ur_rd_res *res = ur_responder_find(rsp, p->bth.psn);

	return res && res->rkey == p->atomiceth.rkey && res->va == p->atomiceth.va ? res : NULL;
}

/*
 * EXT-RESP-DUP-04. A repeat would overtake the answer that is still to leave, and the peer, which
 * then had everything, ask for more than there is room for.
 */
static bool is_pending(const struct ur_qp *qp, const struct ur_packet *p)
{
	uint32_t cnt = is_read(p->op) ? ur_responder_read_psns(qp, p->reth.length) : 1;

	return ur_ext_response_pending(qp, p->bth.psn, p->xth.offset + cnt);
}

/* EXT-RESP-DUP-02: a READ is executed once more from what this packet says. */
static bool answer_again(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ooo_note n = note_of(p);
	struct ur_ooo_held h = hold_of(p, now_ns);
	struct ur_ext_answer a = answer_of(&n, &h, p->bth.psn);
	const struct ur_rd_res *res;

	if (!ur_ext_response_room(qp, true) || ur_responder_check_rights(qp, p->op).kind ||
	    check_form(qp, p).kind)
		return false;
	a.repeat = true;
	if (is_read(p->op)) {
		if (check_held(qp, p->op, &h).kind)
			return false;
		a.va = h.reth.va;
		a.rkey = h.reth.rkey;
		a.length = h.reth.length;
	} else {
		res = find_atomic(&qp->rsp, p);
		if (!res)
			return false;
		a.atomic = true;
		a.va = res->original;
	}
	if (!is_pending(qp, p))
		ur_ext_response_queue(qp, &a);
	return true;
}

/* EXT-RESP-DUP-01 */
static enum ur_drop duplicate(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	qp->core->cnt.duplicate_request++;
	if (p->op & (UR_OP_READ_REQ | UR_OP_ATOMIC))
		return answer_again(qp, p, now_ns) ? UR_DROP_PSN_DUPLICATE : UR_DROP_DUP_UNKNOWN;
	ur_ext_response_ack(qp, p, false, now_ns);
	return UR_DROP_PSN_DUPLICATE;
}

/* ---- */

enum ur_drop ur_ext_responder_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	int32_t diff = ur_psn_diff(p->bth.psn, qp->rsp.epsn);

	if (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return UR_DROP_QP_STATE;
	if (!(p->op & UR_OP_XTH))
		return UR_DROP_MODE;
	ur_responder_established(qp);
	if (__builtin_expect(qp->admission & UR_ADM_TELLS, 0) && qp->adm.mark.letter)
		ur_admission_heard(qp, now_ns);
	if (__builtin_expect(p->op & UR_OP_PROBE, 0)) {
		ur_ext_response_ack(qp, p, true, now_ns);
		return UR_DROP_NONE;
	}
	if (__builtin_expect(diff == 0, 1))
		return in_order(qp, p, now_ns);
	return diff < 0 ? duplicate(qp, p, now_ns) : early(qp, p, (uint32_t)diff, now_ns);
}

void ur_ext_responder_init(struct ur_qp *qp)
{
	struct ur_ext_responder *x = &qp->xrsp;

	if (x->ooo)
		give_context(qp);
	*x = (struct ur_ext_responder){.ans = x->ans, .ans_cap = x->ans_cap};
}

/* EXT-RESP-FLUSH-01 */
void ur_ext_responder_stop(struct ur_qp *qp, enum ibv_wc_status status)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	ur_responder_abort(qp, status);
	if (!o)
		return;
	while (o->bound_cnt && bind_turn(qp, 0, 0))
		ur_responder_abort(qp, IBV_WC_WR_FLUSH_ERR);
	give_context(qp);
}

void ur_ext_responder_validate(const struct ur_qp *qp)
{
	const struct ur_ext_responder *x = &qp->xrsp;

	if (x->ooo) {
		ur_ooo_validate(x->ooo, qp->rsp.epsn);
		UR_ASSERT(x->ooo->noted_cnt);
	}
	UR_ASSERT(x->first.cnt <= x->ans_cap / 2 && x->again.cnt <= x->ans_cap / 2);
	UR_ASSERT(x->first.probe_after <= x->first.cnt && x->again.probe_after <= x->again.cnt);
	UR_ASSERT(ur_emux_is_active(&qp->rsp_queue) == ur_ext_response_queued(qp));
	UR_ASSERT(qp->ack_node.ready == ur_ext_response_ack_due(qp));
	UR_ASSERT(qp->rsp.kind != UR_MSG_SEND || qp->rsp.wqe || qp->state == IBV_QPS_ERR ||
		  qp->state == IBV_QPS_RESET);
}
