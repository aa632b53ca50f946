/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission.h"
#include "transport/rc/ext.h"
#include "transport/rc/ext_early.h"
#include "transport/rc/ext_place.h"
#include "wire/assert.h"

/*
 * The responder of extended mode. Each packet says where its payload goes, so it is placed when it
 * comes; what must happen in order is reduced to a note and happens in its turn, when ePSN is
 * there. A packet at ePSN has its turn at once, by the same functions.
 */

/* Binds the receive whose turn it is, for a packet with the `flags` of an XTH. */
static bool bind_turn(struct ur_qp *qp, uint8_t flags, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	if (qp->rsp.wqe)
		return true;
	if (!o || !o->bound_cnt)
		return (!(qp->admission & UR_ADM_RECEIVER) ||
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
static inline struct verdict check_turn(const struct ur_qp *qp, uint32_t op,
					const struct ur_ooo_deferred *n)
{
	const struct ur_ext_responder *x = &qp->xrsp;
	uint8_t kind = op & UR_OP_FIRST ? UR_MSG_NONE : ur_responder_kind_of(op);

	return qp->rsp.kind == kind && n->ssn == add24(qp->rsp.msn, 1) && n->offset == x->offset &&
			       (!(n->flags & UR_XTH_RECV) || n->rwqen == x->rwqen)
		       ? CONTINUE
		       : NAK(INV_REQ, OP_SEQUENCE);
}

static inline struct verdict check_turn_resources(struct ur_qp *qp, uint32_t op,
						  const struct ur_ooo_deferred *n, uint64_t now_ns)
{
	if (op & (UR_OP_READ_REQ | UR_OP_ATOMIC))
		return ur_ext_response_room(qp, false) ? CONTINUE : NAK(INV_REQ, RESOURCES);
	if (needs_receive(op) && !bind_turn(qp, n->flags, now_ns))
		return (struct verdict){.kind = V_RNR};
	return CONTINUE;
}

static struct ur_ext_answer answer_of(const struct ur_ooo_deferred *n, const struct ur_ooo_held *h,
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

static void take_turn_read(struct ur_qp *qp, const struct ur_ooo_deferred *n,
			   const struct ur_ooo_held *h)
{
	struct ur_ext_answer a = answer_of(n, h, qp->rsp.epsn);

	a.va = h->reth.va;
	a.rkey = h->reth.rkey;
	a.to = h->reth.length;
	qp->core->cnt.rx_read_requests++;
	if (n->flags & UR_XTH_LAST_READ) {
		qp->rsp.msn++;
		qp->xrsp.offset = 0;
	} else {
		qp->xrsp.offset += ur_responder_read_psns(qp, h->reth.length);
	}
	ur_ext_response_queue(qp, &a);
}

/* EXT-RESP-ATOMIC-01: executed once; the value is remembered for a repeated request. */
static struct verdict take_turn_atomic(struct ur_qp *qp, const struct ur_ooo_deferred *n,
				       const struct ur_ooo_held *h)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_ext_answer a = answer_of(n, h, rsp->epsn);
	struct ur_rd_res *res;
	struct verdict v =
		ur_responder_atomic(qp, n->opcode == UR_EXT_FETCH_ADD, &h->atomic, &a.original);

	if (v.kind)
		return v;
	res = ur_responder_remember(qp, rsp->epsn, 1);
	res->atomic = true;
	res->rkey = h->atomic.rkey;
	res->va = h->atomic.va;
	res->original = a.original;
	rsp->msn++;
	a.atomic = true;
	ur_ext_response_queue(qp, &a);
	return CONTINUE;
}

/* EXT-RESP-STRICT-01. The end of a WRITE that was kept is placed now. */
static __attribute__((noinline)) struct verdict place_kept(struct ur_qp *qp, uint32_t op,
							   const struct ur_ooo_deferred *n,
							   const struct ur_ooo_held *h)
{
	uint8_t *base;

	if (!n->payload_len)
		return CONTINUE;
	base = written_at(qp, &h->reth);
	if (!base)
		return NAK(REM_ACCESS, ACCESS);
	put(qp, qp->rsp.epsn, op, base + end_of(qp, n->offset, 0), h->slot->payload,
	    n->payload_len);
	return CONTINUE;
}

static inline struct verdict take_turn_data(struct ur_qp *qp, uint32_t op,
					    const struct ur_ooo_deferred *n,
					    const struct ur_ooo_held *h)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_message_end end = {
		.op = op,
		.imm_inv = n->arg,
		.byte_len = (uint32_t)end_of(qp, n->offset, n->payload_len),
		.solicited = n->flags & UR_DEFERRED_SOLICITED,
	};
	struct verdict v;

	if (h && (v = place_kept(qp, op, n, h)).kind)
		return v;
	rsp->kind = ur_responder_kind_of(op);
	qp->xrsp.offset++;
	if (!(op & UR_OP_LAST))
		return CONTINUE;
	v = ur_responder_finish(qp, &end);
	if (v.kind)
		return v;
	qp->xrsp.offset = 0;
	if (needs_receive(op))
		qp->xrsp.rwqen = add24(qp->xrsp.rwqen, 1);
	return CONTINUE;
}

/* What is left to be done of a packet that was checked and placed. `h`: it waited whole. */
static inline struct verdict take_turn(struct ur_qp *qp, uint32_t op,
				       const struct ur_ooo_deferred *n, const struct ur_ooo_held *h)
{
	struct ur_responder *rsp = &qp->rsp;
	struct verdict v = CONTINUE;

	if (is_read(op))
		take_turn_read(qp, n, h);
	else if (op & UR_OP_ATOMIC)
		v = take_turn_atomic(qp, n, h);
	else
		v = take_turn_data(qp, op, n, h);
	if (v.kind)
		return v;
	rsp->epsn = ur_psn_add(rsp->epsn, 1);
	qp->xrsp.starved = false;
	if (__builtin_expect(rsp->nak_sent, 0)) {
		rsp->nak_sent = false;
		if (rsp->ack & UR_NAK_OWED)
			rsp->ack = UR_ACK_OWED;
	}
	return CONTINUE;
}

static inline struct verdict check_in_turn(struct ur_qp *qp, const struct ur_packet *p,
					   const struct ur_ooo_deferred *n, uint64_t now_ns)
{
	struct verdict v;

	if ((v = check_turn(qp, p->op, n)).kind ||
	    (v = ur_responder_check_rights(qp, p->op)).kind || (v = check_form(qp, p)).kind)
		return v;
	if (is_read(p->op) && !is_whole_part(qp, p))
		return NAK(INV_REQ, MSG_LENGTH);
	return check_turn_resources(qp, p->op, n, now_ns);
}

static inline struct verdict execute(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ooo_deferred n = describe(p);
	struct verdict v = check_in_turn(qp, p, &n, now_ns);

	if (v.kind)
		return v;
	if (p->op & (UR_OP_READ_REQ | UR_OP_ATOMIC)) {
		struct ur_ooo_held h = hold_of(p, now_ns);

		v = check_held(qp, p->op, &h);
		return v.kind ? v : take_turn(qp, p->op, &n, &h);
	} else {
		struct ur_frag frag[UR_FRAGS_MAX];
		unsigned cnt;

		v = locate(qp, p, qp->rsp.wqe, frag, &cnt);
		if (v.kind)
			return v;
		place(qp, p, frag, cnt);
		return take_turn(qp, p->op, &n, NULL);
	}
}

/* The packet noted at ePSN has its turn. */
static struct verdict take_turn_deferred(struct ur_qp *qp, const struct ur_ooo_deferred *n,
					 uint64_t now_ns)
{
	uint32_t op = ur_op_flags(n->opcode);
	const struct ur_ooo_held *h = NULL;
	struct verdict v;

	if ((v = check_turn(qp, op, n)).kind || (v = check_turn_resources(qp, op, n, now_ns)).kind)
		return v;
	if (n->held != UR_OOO_NOT_HELD) {
		h = &qp->xrsp.ooo->held[n->held];
		/* Rights and region may have gone while it waited. */
		if ((v = ur_responder_check_rights(qp, op)).kind ||
		    (!h->slot && (v = check_held(qp, op, h)).kind))
			return v;
	}
	return take_turn(qp, op, n, h);
}

/* EXT-RESP-TURN-01. The hole at ePSN is filled: finishes what was noted behind it. */
static struct verdict advance(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	while (ur_ooo_is_deferred(o, qp->rsp.epsn)) {
		struct ur_psn psn = qp->rsp.epsn;
		const struct ur_ooo_deferred *n = ur_ooo_deferred_at(o, psn);
		struct verdict v = take_turn_deferred(qp, n, now_ns);

		if (v.kind)
			return v;
		if (n->held != UR_OOO_NOT_HELD)
			ur_ext_early_release(qp, n->held);
		ur_ooo_forget(o, psn);
	}
	/* Receives are bound for packets that are noted, and their messages have begun by now. */
	if (!o->deferred_cnt) {
		UR_ASSERT(!o->bound_cnt);
		ur_ext_early_give(qp);
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
				    UR_SYNDROME_RNR_NAK | (qp->adm.refusal.queue_class
								   ? ur_admission_rnr_timer(qp)
								   : rsp->min_rnr_timer),
				    now_ns);
		return UR_DROP_RNR;
	}
	ur_ext_response_ack(qp, p, now_ns); /* for the echo in the NAK */
	return ur_ext_response_refuse(qp, rsp->epsn, v);
}

static enum ur_drop in_order(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct verdict v = execute(qp, p, now_ns);

	/* The peer goes on, or tries to and finds no receive. */
	if (__builtin_expect(qp->xrsp.ooo != NULL, 0))
		qp->xrsp.gap_ns = now_ns;
	if (__builtin_expect(v.kind, 0))
		return act(qp, p, v, now_ns);
	if (p->bth.ackreq || qp->xrsp.ooo)
		ur_ext_response_ack(qp, p, now_ns);
	if (__builtin_expect(qp->xrsp.ooo != NULL, 0)) {
		v = advance(qp, now_ns);
		if (v.kind)
			act(qp, p, v, now_ns);
	}
	return UR_DROP_NONE;
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
	struct ur_ooo_deferred n = describe(p);
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
		a.to = h.reth.length;
	} else {
		res = find_atomic(&qp->rsp, p);
		if (!res)
			return false;
		a.atomic = true;
		a.original = res->original;
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
	ur_ext_response_ack(qp, p, now_ns);
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
	if (__builtin_expect(qp->admission & UR_ADM_RECEIVER, 0) && qp->adm.refusal.queue_class)
		ur_admission_refresh(qp, now_ns);
	if (__builtin_expect(p->op & UR_OP_PROBE, 0)) {
		ur_ext_response_probe(qp, p, now_ns);
		return UR_DROP_NONE;
	}
	if (__builtin_expect(diff == 0, 1))
		return in_order(qp, p, now_ns);
	return diff < 0 ? duplicate(qp, p, now_ns)
			: ur_ext_early_input(qp, p, (uint32_t)diff, now_ns);
}

void ur_ext_responder_release(struct ur_qp *qp)
{
	if (qp->xrsp.ooo)
		ur_ext_early_give(qp);
}

/* EXT-RESP-STALE-01 */
void ur_ext_responder_timer(struct ur_qp *qp, uint64_t now_ns)
{
	if (now_ns < ur_ext_gap_deadline(qp))
		return;
	/* ADM-GRANT-01: it waits for our word. */
	if (qp->adm.refusal.queue_class) {
		qp->xrsp.gap_ns = now_ns;
		return;
	}
	qp->core->cnt.stale_gap_err++;
	ur_ext_response_refuse(qp, qp->rsp.epsn, NAK(INV_REQ, OP_SEQUENCE));
}

/* EXT-SSN-01 */
void ur_ext_responder_begin(struct ur_qp *qp)
{
	qp->rsp.msn = add24(ur_first_ssn(qp->rsp.epsn), UR_PSN_MASK);
	qp->xrsp.credits_msn = qp->rsp.msn;
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
	ur_ext_early_give(qp);
}

void ur_ext_responder_validate(const struct ur_qp *qp)
{
	const struct ur_ext_responder *x = &qp->xrsp;

	if (x->ooo) {
		ur_ooo_validate(x->ooo, qp->rsp.epsn);
		UR_ASSERT(x->ooo->deferred_cnt);
	}
	UR_ASSERT(x->first.cnt <= qp->rsp.ans_cap / 2 && x->again.cnt <= qp->rsp.ans_cap / 2);
	UR_ASSERT(x->first.probe_after <= x->first.cnt && x->again.probe_after <= x->again.cnt);
	UR_ASSERT(ur_emux_is_active(&qp->rsp_queue) == ur_ext_response_queued(qp));
	UR_ASSERT(qp->ack_node.ready == ur_ext_response_ack_due(qp));
	UR_ASSERT(qp->rsp.kind != UR_MSG_SEND || qp->rsp.wqe || qp->state == IBV_QPS_ERR ||
		  qp->state == IBV_QPS_RESET);
}
