/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/ext_early.h"

#include "transport/admission.h"
#include "transport/rc/ext_place.h"
#include "transport/rc/reorder.h"
#include "wire/assert.h"

/* ---- the context ---- */

/* EXT-RESP-CONTEXT-01 */
static bool have_context(struct ur_qp *qp, uint32_t ahead, uint64_t now_ns)
{
	struct ur_ext_responder *x = &qp->xrsp;
	struct ur_core *core = qp->core;

	if (x->ooo)
		return ur_ooo_reach(&core->ooo, &x->ooo, qp->rsp.epsn, ahead);
	x->ooo = ur_ooo_take(&core->ooo, ur_ext_own(qp)->early, qp->rsp.epsn, ahead);
	x->gap_ns = now_ns;
	if (x->ooo) {
		x->has_gap = true;
		qp->rearm = true;
		return true;
	}
	core->cnt.ooo_exhausted += !x->starved;
	x->starved = true;
	return false;
}

static void release(struct ur_qp *qp, uint16_t held)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	if (o->held[held].slot)
		ur_reorder_slot_give(&qp->core->reorder, o->held[held].slot);
	ur_ooo_release(o, held);
}

void ur_ext_early_give(struct ur_qp *qp)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	for (unsigned i = 0; o->held_cnt && i < o->held_cap; i++)
		if (o->held_used[i >> 6] >> (i & 63) & 1)
			release(qp, (uint16_t)i);
	ur_ooo_give(&qp->core->ooo, o);
	qp->xrsp.ooo = NULL;
	qp->xrsp.has_gap = false;
	qp->rearm = true;
}

/* ---- what has to wait ---- */

static struct ur_ooo_deferred describe(const struct ur_packet *p)
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

static struct ur_ooo_held hold_of(const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ooo_held h = {
		.arrival_ns = now_ns, .stamp = ur_stamp_of(p->xth.stamp), .path = p->xth.path};

	if (p->op & UR_OP_ATOMIC)
		h.atomic = p->atomiceth;
	else if (p->op & UR_OP_RETH)
		h.reth = p->reth;
	return h;
}

void ur_ext_early_forget(struct ur_qp *qp, struct ur_psn psn)
{
	struct ur_ooo *o = qp->xrsp.ooo;
	uint16_t held = ur_ooo_deferred_at(o, psn)->held;

	if (held != UR_OOO_NOT_HELD)
		release(qp, held);
	ur_ooo_forget(o, psn);
}

bool ur_ext_early_next(struct ur_qp *qp, struct turn *turn)
{
	struct ur_ooo *o = qp->xrsp.ooo;
	struct ur_psn psn = qp->rsp.epsn;
	const struct ur_ooo_deferred *n = ur_ooo_deferred_at(o, psn);
	const struct ur_ooo_held *h;

	if (!ur_ooo_is_deferred(o, psn))
		return false;
	turn->placed = n->held == UR_OOO_NOT_HELD;
	turn->p.op = ur_op_flags(n->opcode);
	turn->p.bth = (struct ur_bth){
		.opcode = n->opcode, .psn = psn, .solicited = n->flags & UR_DEFERRED_SOLICITED};
	turn->p.xth = (struct ur_xth){.flags = n->flags & (uint8_t)~UR_DEFERRED_SOLICITED,
				      .ssn = n->ssn,
				      .offset = n->offset,
				      .rwqen = n->rwqen};
	turn->p.imm = turn->p.ieth = n->arg;
	turn->p.payload_len = n->payload_len;
	turn->p.payload = NULL;
	if (turn->placed)
		return true;
	/* Rights and region may have gone while it waited: it is checked again. */
	h = &o->held[n->held];
	turn->arrival_ns = h->arrival_ns;
	turn->p.xth.stamp = h->stamp.v;
	turn->p.xth.path = h->path;
	if (turn->p.op & UR_OP_ATOMIC)
		turn->p.atomiceth = h->atomic;
	else
		turn->p.reth = h->reth;
	if (h->slot)
		turn->p.payload = h->slot->payload;
	return true;
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
		if (qp->admission & UR_ADM_RECEIVER) {
			bool ok = ur_admission_admit(qp, UR_ADM_NONE, now_ns);

			UR_ASSERT(ok);
		}
		take_from_srq(qp, ur_ooo_bound(o, o->bound_cnt));
	}
}

/*
 * EXT-RESP-SHARE-01. Beyond the message whose turn it is, a queue pair may bind as many receives of
 * an SRQ as it leaves there: a gap that does not close keeps others from half of them at most. A
 * pool that tells its status has a rule of its own, see below.
 */
static bool leaves_enough(const struct ur_qp *qp, uint32_t ahead)
{
	uint32_t have = qp->xrsp.ooo->bound_cnt, need = ahead + !qp->rsp.wqe;

	return !qp->srq || (qp->admission & UR_ADM_RECEIVER) || need <= have || need <= 1 ||
	       need - 1 <= ur_wq_cnt(&qp->srq->rq) - (need - have);
}

/* ADM-EARLY-01. Binding up to receive_at(ahead) takes no more than the pool gives away. */
static bool may_bind_up_to(const struct ur_qp *qp, uint32_t ahead)
{
	uint32_t need = ahead + !qp->rsp.wqe, have = qp->xrsp.ooo->bound_cnt;

	return !(qp->admission & UR_ADM_RECEIVER) || need <= have ||
	       need - have <= ur_admission_early_room(qp);
}

/* ---- packets ---- */

/*
 * EXT-RESP-NUMBERS-01. SSN and PSN_OFFSET fit what lies between ePSN and the packet: each message
 * there takes a PSN at least, and each part of the packet's own message. *later: messages from the
 * one at ePSN to its own. A forger that has seen no packet has to guess both numbers.
 */
static bool fits_numbers(const struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
			 uint32_t *later)
{
	const struct ur_responder *rsp = &qp->rsp;
	bool data = !is_answered(p->op);
	uint32_t offset = p->xth.offset, own = data ? offset : offset > 0;

	*later = add24(p->xth.ssn, 0u - rsp->msn.v - 1);
	if (*later)
		return *later <= ahead && own <= ahead - *later;
	if (data)
		return offset == qp->xrsp.offset + ahead &&
		       (rsp->kind == UR_MSG_NONE || rsp->kind == ur_responder_kind_of(p->op));
	return is_read(p->op) && rsp->kind == UR_MSG_NONE && offset >= qp->xrsp.offset + ahead;
}

/* READs and atomics wait whole. */
static enum ur_drop hold_early(struct ur_qp *qp, const struct ur_packet *p,
			       struct ur_ooo_deferred *n, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;
	struct ur_ooo_held h = hold_of(p, now_ns);

	if ((is_read(p->op) && !is_whole_part(qp, p)) || ur_responder_check_access(qp, p).kind)
		return UR_DROP_EARLY;
	/* EXT-RESP-HELD-01 */
	if (o->held_cnt - o->slot_cnt >= qp->rsp.res_cnt || !ur_ooo_hold_room(&qp->core->ooo, o))
		return UR_DROP_RESOURCES;
	n->held = ur_ooo_hold(o, &h);
	return UR_DROP_NONE;
}

/* EXT-RESP-STRICT-01. The end of a WRITE is kept until its turn. */
static bool keep_early(struct ur_qp *qp, const struct ur_packet *p, struct ur_ooo_deferred *n,
		       uint64_t now_ns)
{
	struct ur_reorder_pool *pool = &qp->core->reorder;
	struct ur_ooo_held h = hold_of(p, now_ns);

	if (p->payload_len > pool->slot_bytes || !ur_ooo_hold_room(&qp->core->ooo, qp->xrsp.ooo))
		return false;
	h.slot = ur_reorder_slot_take(pool, qp->xrsp.ooo->slot_cnt);
	if (!h.slot)
		return false;
	memcpy(h.slot->payload, p->payload, p->payload_len);
	n->held = ur_ooo_hold(qp->xrsp.ooo, &h);
	return true;
}

/* `later`: messages beyond the one at ePSN. */
static enum ur_drop place_early(struct ur_qp *qp, const struct ur_packet *p, uint32_t later,
				struct ur_ooo_deferred *n, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;
	uint32_t receive = add24(p->xth.rwqen, 0u - qp->xrsp.rwqen);
	const struct ur_rwqe *rwqe = NULL;
	struct pieces at;

	if (needs_receive(p->op)) {
		/* Each message takes one at most: a packet further ahead would drain an SRQ. */
		if (receive > later)
			return UR_DROP_EARLY;
		rwqe = receive_at(qp, receive);
		if (!rwqe || !may_bind_up_to(qp, receive) || !leaves_enough(qp, receive))
			return UR_DROP_RNR;
		if (qp->srq && !ur_ooo_bound_room(&qp->core->ooo, o, receive + !qp->rsp.wqe))
			return UR_DROP_NO_CONTEXT;
		rwqe = receive_at(qp, receive); /* it may have moved */
	}
	if (locate(qp, p, rwqe, &at).kind)
		return UR_DROP_EARLY;
	if (is_strict_end(qp, p->op)) {
		if (!keep_early(qp, p, n, now_ns))
			return UR_DROP_NO_CONTEXT;
	} else if (!ur_ooo_room(&qp->core->ooo, o, qp->rsp.epsn, at.cnt)) {
		return UR_DROP_NO_CONTEXT;
	}
	if (rwqe)
		bind_up_to(qp, receive, now_ns);
	if (n->held != UR_OOO_NOT_HELD)
		return UR_DROP_NONE;
	place(qp, p, &at);
	for (unsigned i = 0; i < at.cnt; i++)
		ur_ooo_written(o, p->bth.psn, at.frag[i].base, at.frag[i].length);
	return UR_DROP_NONE;
}

/* EXT-RESP-EARLY-01: what fails here is dropped, and judged in its turn when it comes again. */
static enum ur_drop take_early(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
			       uint64_t now_ns)
{
	struct ur_ooo_deferred n = describe(p);
	enum ur_drop drop;
	uint32_t later;

	if (ur_responder_check_rights(qp, p->op).kind || check_length(qp, p).kind ||
	    !fits_numbers(qp, p, ahead, &later))
		return UR_DROP_EARLY;
	drop = is_answered(p->op) ? hold_early(qp, p, &n, now_ns)
				  : place_early(qp, p, later, &n, now_ns);
	if (drop == UR_DROP_NONE)
		ur_ooo_defer(qp->xrsp.ooo, p->bth.psn, &n);
	return drop;
}

enum ur_drop ur_ext_early_input(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
				uint64_t now_ns)
{
	struct ur_ext_responder *x = &qp->xrsp;
	struct ur_counters *cnt = &qp->core->cnt;
	bool gap = !x->ooo;
	/*
	 * EXT-RESP-ACK-03. What just follows the newest tells nothing new. READs and atomics are
	 * few, ask for no ACK, and nothing else tells of them before their turn.
	 */
	bool follows = !gap && x->ooo->deferred_cnt && !is_answered(p->op) &&
		       ur_psn_eq(p->bth.psn, ur_psn_add(x->ooo->top, 1));
	enum ur_drop drop;

	/* EXT-WINDOW-03 */
	if (ahead >= ur_ext_agreed_window(qp, qp->core->ooo.most)) {
		cnt->early_dropped++;
		return UR_DROP_PSN_GAP;
	}
	if (!follows || p->bth.ackreq)
		ur_ext_response_ack(qp, p, now_ns);
	if (!have_context(qp, ahead, now_ns)) {
		cnt->early_dropped++;
		return UR_DROP_NO_CONTEXT;
	}
	if (ur_ooo_is_deferred(x->ooo, p->bth.psn)) {
		cnt->duplicate_request++;
		return UR_DROP_PSN_DUPLICATE;
	}
	drop = take_early(qp, p, ahead, now_ns);
	if (drop == UR_DROP_NONE) {
		cnt->early_packets++;
		cnt->ooo_contexts += gap;
	} else {
		/* The echo tells the peer at once what it has to send again. */
		ur_ext_response_ack(qp, p, now_ns);
		cnt->early_dropped++;
		if (!x->ooo->deferred_cnt)
			ur_ext_early_give(qp);
	}
	return drop;
}
