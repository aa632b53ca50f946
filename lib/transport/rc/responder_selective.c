/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission.h"
#include "transport/rc/ext_early.h"
#include "transport/rc/ext_place.h"
#include "transport/repath.h"
#include "wire/assert.h"
#include "wire/predict.h"

/*
 * The responder of mode extended: each packet says to which message it belongs and where its payload goes, so it is
 * placed when it comes (rc/arrival.h). What must happen in order is deferred until its turn.
 */
#define RESPONDER(name) ur_ext_responder_##name
#define RESPONSE(name)	ur_ext_response_##name
#define ANSWER		ur_ext_answer

static inline bool arrival_is_foreign(const struct ur_packet *p)
{
	return !(p->op & UR_OP_XTH);
}

/*
 * EXT-REQ-TWICE-01: each of two requests has the same stamp, and one may say that it is the second. A copy that the network made
 * has it as well.
 */
static inline bool arrival_is_twin(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_stamp before = qp->xrsp.again_stamp, stamp = ur_stamp_of(p->xth.stamp);

	qp->xrsp.again_stamp = stamp;
	return (p->xth.flags & UR_XTH_TWICE) || ur_stamp_eq(stamp, before);
}

static inline struct ur_repeats *arrival_repeats(struct ur_qp *qp)
{
	return &qp->xrsp.repeats;
}

static inline bool arrival_is_consumed(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (__builtin_expect(qp->admission & UR_ADM_RECEIVER, 0) && qp->adm.refusal.queue_class)
		ur_admission_refresh(qp, now_ns);
	if (__builtin_expect(!(p->op & UR_OP_PROBE), 1))
		return false;
	/* REPATH-RSP-02: what answered the last one may have been lost. */
	if ((p->xth.flags & UR_XTH_RETRY) && !arrival_is_twin(qp, p))
		ur_repath_answers(qp);
	ur_ext_response_probe(qp, p, now_ns);
	return true;
}

/* ---- in its turn ---- */

/*
 * EXT-RESP-SEQ-01: the packet continues the message under way, or starts the next. All parts of a READ but the last
 * are whole packets, or what follows would not fit behind.
 */
static inline struct verdict arrival_check_sequence(const struct ur_qp *qp,
						    const struct ur_packet *p)
{
	const struct ur_ext_responder *x = &qp->xrsp;
	uint8_t kind = p->op & UR_OP_FIRST ? UR_MSG_NONE : ur_responder_kind_of(p->op);

	if (qp->rsp.kind != kind || p->xth.ssn != ur_msn_add(qp->rsp.msn, 1).v ||
	    p->xth.offset != x->offset || (p->xth.flags & UR_XTH_RECV && p->xth.rwqen != x->rwqen))
		return NAK(INV_REQ, OP_SEQUENCE);
	return is_read(p->op) && !is_whole_part(qp, p) ? NAK(INV_REQ, MSG_LENGTH) : CONTINUE;
}

static inline bool arrival_has_room(const struct ur_qp *qp)
{
	return ur_ext_response_room(qp, false);
}

/* The oldest receive that the context has taken from the SRQ. */
static void take_bound(struct ur_qp *qp)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	qp->rsp.wqe = memcpy(qp->rsp.srq_wqe, ur_ooo_bound(o, 0), qp->srq->rq.stride);
	ur_ooo_unbind(o);
}

static inline bool arrival_bind(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (__builtin_expect(qp->xrsp.has_gap && qp->xrsp.ooo->bound_cnt, 0)) {
		take_bound(qp);
		return true;
	}
	return (!(qp->admission & UR_ADM_RECEIVER) ||
		ur_admission_admit(qp, (p->xth.flags & UR_XTH_CLAIM) >> UR_XTH_CLAIM_SHIFT,
				   now_ns)) &&
	       ur_responder_bind(qp);
}

static inline struct ur_ext_answer *arrival_new_answer(struct ur_qp *qp, const struct ur_packet *p,
						       bool repeat, uint64_t arrival_ns)
{
	struct ur_ext_answer *a = ur_ext_response_next_free(qp, repeat);

	/* Member by member, see ur_cq_fill(). */
	a->original = 0;
	a->arrival_ns = arrival_ns;
	a->stamp = ur_stamp_of(p->xth.stamp);
	a->rkey = a->from = a->to = 0;
	a->ssn = ur_msn(p->xth.ssn);
	a->offset = p->xth.offset;
	a->psn = p->bth.psn;
	a->path = p->xth.path;
	a->atomic = false;
	a->repeat = repeat;
	return a;
}

/* EXT-RESP-ATOMIC-01: an atomic is executed once; the value is remembered for a repeated request. */
static inline void arrival_pass_request(struct ur_qp *qp, const struct ur_packet *p,
					const struct ur_ext_answer *a)
{
	struct ur_responder *rsp = &qp->rsp;

	if (a->atomic) {
		struct ur_rd_res *res = ur_responder_remember(qp, p->bth.psn, 1);

		res->atomic = true;
		res->rkey = p->atomiceth.rkey;
		res->va = p->atomiceth.va;
		res->original = a->original;
	}
	if (a->atomic || p->xth.flags & UR_XTH_LAST_READ) {
		rsp->msn = ur_msn_add(rsp->msn, 1);
		qp->xrsp.offset = 0;
	} else {
		qp->xrsp.offset += ur_responder_read_psns(qp, p->reth.length);
	}
	rsp->epsn = ur_psn_add(rsp->epsn, 1);
	qp->xrsp.starved = false;
}

static inline void arrival_pass_data(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_ext_responder *x = &qp->xrsp;

	x->offset = p->op & UR_OP_LAST ? 0 : x->offset + 1;
	if (p->op & UR_OP_LAST && needs_receive(p->op))
		x->rwqen = add24(x->rwqen, 1);
	x->starved = false;
}

/* While something waits beyond ePSN, arrival_finish_turns() does that. */
static inline void arrival_acknowledge(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (p->bth.ackreq)
		ur_ext_response_ack(qp, p, now_ns);
}

static inline void arrival_close_hole(struct ur_qp *qp)
{
	qp->rsp.nak_sent = false;
	if (qp->rsp.ack & UR_NAK_OWED)
		qp->rsp.ack = UR_ACK_OWED;
}

static inline void arrival_record_echo(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	ur_ext_response_ack(qp, p, now_ns);
}

static inline uint8_t arrival_rnr_timer(struct ur_qp *qp)
{
	return qp->adm.refusal.queue_class ? ur_admission_rnr_timer(qp) : qp->rsp.min_rnr_timer;
}

/* ---- beyond ePSN ---- */

static inline enum ur_drop arrival_take_early(struct ur_qp *qp, const struct ur_packet *p,
					      uint32_t ahead, uint64_t now_ns)
{
	return ur_ext_early_input(qp, p, ahead, now_ns);
}

static inline bool arrival_is_waiting(const struct ur_qp *qp)
{
	return qp->xrsp.has_gap;
}

static inline bool arrival_next(struct ur_qp *qp, struct turn *turn)
{
	return ur_ext_early_next(qp, turn);
}

/* What failed ends the connection, and the context with it. */
static inline void arrival_release(struct ur_qp *qp, const struct turn *turn, enum ur_drop drop)
{
	if (!drop)
		ur_ext_early_forget(qp, turn->p.bth.psn);
}

/* The peer goes on, or tries to and finds no receive. */
static void arrival_finish_turns(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	qp->xrsp.gap_ns = now_ns;
	ur_ext_response_ack(qp, p, now_ns);
	if (o->deferred_cnt)
		return;
	/* Receives are bound for deferred packets, and their messages have begun by now. */
	UR_ASSERT(!o->bound_cnt);
	ur_ext_early_give(qp);
}

/* ---- before ePSN ---- */

static inline uint32_t arrival_part(const struct ur_packet *p)
{
	return p->xth.offset;
}

static void arrival_acknowledge_again(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	ur_ext_response_ack(qp, p, now_ns);
}

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
static bool arrival_answer_again(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	const struct ur_rd_res *res = NULL;
	struct ur_ext_answer *a;

	/* EXT-RESP-DUP-06: its twin was executed. */
	if (is_read(p->op) && (p->xth.flags & UR_XTH_TWICE))
		return true;
	if (!ur_ext_response_room(qp, true) || ur_responder_check_rights(qp, p->op).kind ||
	    check_length(qp, p).kind)
		return false;
	if (is_read(p->op) ? ur_responder_check_access(qp, p).kind
			   : !(res = find_atomic(&qp->rsp, p)))
		return false;
	if (is_pending(qp, p))
		return true;
	a = arrival_new_answer(qp, p, true, now_ns);
	if (res) {
		a->atomic = true;
		a->original = res->original;
	} else {
		a->va = p->reth.va;
		a->rkey = p->reth.rkey;
		a->to = p->reth.length;
	}
	if (!ur_ext_response_repeats(qp, a))
		ur_ext_response_queue(qp, a);
	return true;
}

#include "transport/rc/responder_template.h"

/* ---- a predicted request ---- */

#define PREDICTED_EXT UR_XTH_BYTES

static inline bool predicted_is_quiet(const struct ur_qp *qp)
{
	return !qp->xrsp.has_gap;
}

static inline bool predicted_is_between(const struct ur_qp *qp)
{
	return !(qp->rsp.kind | qp->xrsp.offset);
}

/* What arrival_check_form() and arrival_check_sequence() ask of a packet without immediate data. */
_Static_assert(UR_XTH_RECV == 1, "predicted_fits() shifts a bool");
_Static_assert(UR_MSG_NONE == 0, "predicted_is_between() compares with 0");

static inline bool predicted_fits(const struct ur_qp *qp, const uint8_t *xth,
				  const struct candidate *c)
{
	/* SSN; the flag RECV, PSN_OFFSET. Other flags, and the path, do not matter. */
	uint64_t mask = (uint64_t)UR_PSN_MASK << 32 | UR_XTH_RECV << 24 | UR_PSN_MASK;
	uint64_t next = (uint64_t)ur_msn_add(qp->rsp.msn, 1).v << 32 | (uint32_t)c->send << 24 |
			(c->first ? 0 : qp->xrsp.offset);

	if ((ur_load64(xth + 4) & mask) != next)
		return false;
	return !c->send || (ur_load32(xth + 12) & UR_PSN_MASK) == qp->xrsp.rwqen;
}

static inline struct ur_reth predicted_reth(const struct ur_qp *qp, const uint8_t *xth,
					    const struct candidate *c)
{
	return ur_predict_reth(xth + UR_XTH_BYTES);
}

static inline uint32_t predicted_offset(const struct ur_qp *qp)
{
	return qp->xrsp.offset << qp->mtu_shift;
}

static inline void predicted_pass(struct ur_qp *qp, const struct candidate *c)
{
	struct ur_ext_responder *x = &qp->xrsp;

	if (!c->first || !c->last)
		x->offset = c->last ? 0 : x->offset + 1;
	x->rwqen = add24(x->rwqen, c->send && c->last);
	x->starved = false;
}

static inline __attribute__((always_inline)) void
predicted_acknowledge(struct ur_qp *qp, const uint8_t *xth, bool ackreq, uint64_t now_ns)
{
	if (ackreq)
		ur_ext_response_ack_stamp(qp, ur_stamp_of(ur_load32(xth)), &xth[UR_XTH_PATH],
					  now_ns);
}

/* A READ ends with its first part; predicted_fits() has compared SSN and PSN_OFFSET. */
static inline bool predicted_read(const struct ur_qp *qp, const uint8_t *xth, struct ur_packet *p)
{
	p->xth = (struct ur_xth){
		.stamp = ur_load32(xth),
		.path = xth[UR_XTH_PATH],
		.ssn = ur_msn_add(qp->rsp.msn, 1).v,
		.flags = xth[UR_XTH_FLAGS],
	};
	return p->xth.flags & UR_XTH_LAST_READ;
}

#include "transport/rc/predicted.h"

/* flatten: messages of one packet pay for no call of what longer ones need as well. */
__attribute__((flatten)) bool ur_ext_responder_predicted(struct ur_qp *qp, const uint8_t *frame,
							 uint32_t bytes, uint64_t now_ns)
{
	return predicted_request(qp, frame, bytes, UR_TRANSPORT_EXT, now_ns);
}

/* ---- a queue pair's life ---- */

void ur_ext_responder_release(struct ur_qp *qp)
{
	if (qp->xrsp.has_gap)
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
	qp->rsp.msn = ur_msn_add(ur_first_ssn(qp->rsp.epsn), UR_PSN_MASK);
	qp->xrsp.credits_msn = qp->rsp.msn;
}

/* EXT-RESP-FLUSH-01 */
void ur_ext_responder_stop(struct ur_qp *qp, enum ibv_wc_status status)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	ur_responder_abort(qp, status);
	if (!qp->xrsp.has_gap)
		return;
	while (o->bound_cnt) {
		take_bound(qp);
		ur_responder_abort(qp, IBV_WC_WR_FLUSH_ERR);
	}
	ur_ext_early_give(qp);
}

void ur_ext_responder_validate(const struct ur_qp *qp)
{
	const struct ur_ext_responder *x = &qp->xrsp;

	UR_ASSERT(x->has_gap == (x->ooo != NULL));
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
