/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_MODE_H
#define UR_TRANSPORT_MODE_H

#include "transport/rc/ext.h"
#include "transport/qp.h"

/*
 * The one place that branches on a queue pair's mode (docs/design/loss.md): engine, qp.c and what
 * the modes share call these. UC and UD queue pairs are always UR_MODE_GBN.
 */

static inline bool ur_mode_requester_ready(const struct ur_qp *qp)
{
	return ur_qp_is_ext(qp) ? ur_ext_requester_ready(qp) : ur_requester_ready(qp);
}

/* When the QP timer has something to do. */
static inline uint64_t ur_mode_deadline(const struct ur_qp *qp)
{
	uint64_t deadline;

	if (ur_qp_is_ext(qp)) {
		deadline = ur_ext_deadline(qp);
		if (__builtin_expect(qp->xrsp.ooo != NULL, 0)) {
			uint64_t gap = ur_ext_gap_deadline(qp);

			deadline = gap < deadline ? gap : deadline;
		}
		return deadline;
	}
	deadline = ur_recovery_deadline(&qp->gbn.rec);
	if (__builtin_expect(qp->gbn.gap != NULL, 0) && qp->gbn.gap->deadline_ns < deadline)
		deadline = qp->gbn.gap->deadline_ns;
	if (__builtin_expect(qp->gbn_rsp.reorder.ctx != NULL, 0)) {
		uint64_t hole = ur_reorder_deadline(&qp->gbn_rsp.reorder);

		deadline = hole < deadline ? hole : deadline;
	}
	return deadline;
}

/* No request is in flight. */
static inline bool ur_mode_is_idle(const struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;

	if (ur_qp_is_ext(qp))
		return ur_psn_eq(x->psn.una, x->psn.max) && ur_psn_eq(x->rsp.una, x->rsp.max);
	return !ur_recovery_in_flight(&qp->gbn.rec);
}

/* PSNs [una, max) are in flight, nxt is sent next. */
static inline void ur_mode_psns(const struct ur_qp *qp, struct ur_psn *una, struct ur_psn *nxt,
				struct ur_psn *max)
{
	bool ext = ur_qp_is_ext(qp);

	*una = ext ? qp->xreq.psn.una : qp->gbn.rec.una;
	*nxt = ext ? qp->xreq.psn.max : qp->gbn.rec.nxt;
	*max = ext ? qp->xreq.psn.max : qp->gbn.rec.max;
}

static inline bool ur_mode_requester_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns,
					  unsigned *wqes)
{
	bool made = ur_qp_is_ext(qp) ? ur_ext_requester_next(qp, tx, now_ns, wqes)
				     : ur_requester_next(qp, tx, now_ns, wqes);

	if (__builtin_expect(!made, 0))
		ur_qp_act(qp);
	return made;
}

/* Requests are kept whose hole the QP timer watches. */
static inline bool ur_mode_holds_early(const struct ur_qp *qp)
{
	return qp->mode == UR_MODE_REORDER && qp->gbn_rsp.reorder.ctx;
}

/* A packet of an extended queue pair; *gap: a gap has opened or closed, which the QP timer watches. */
static inline enum ur_drop ur_mode_ext_input(struct ur_qp *qp, const struct ur_packet *p,
					     bool response, bool *gap, uint64_t now_ns)
{
	const struct ur_ooo *ooo = qp->xrsp.ooo;
	enum ur_drop drop = response ? ur_ext_completer_input(qp, p, now_ns)
				     : ur_ext_responder_input(qp, p, now_ns);

	*gap = qp->xrsp.ooo != ooo;
	return drop;
}

/* Takes in a packet of RC or UC and re-evaluates what can be sent. */
static inline enum ur_drop ur_mode_input(struct ur_qp *qp, const struct ur_packet *p,
					 uint64_t now_ns)
{
	bool response = p->op & (UR_OP_RESPONSE | UR_OP_NOTIFY), gap = false;
	enum ur_drop drop;

	if (ur_qp_is_ext(qp))
		drop = ur_mode_ext_input(qp, p, response, &gap, now_ns);
	else if (response)
		drop = ur_completer_input(qp, p, now_ns);
	else
		drop = qp->type == IBV_QPT_RC ? ur_responder_input(qp, p, now_ns)
					      : ur_uc_responder_input(qp, p, now_ns);
	/* A request tells the sending side nothing: what it keeps need not be looked at. */
	if (response) {
		if (ur_qp_must_act(qp))
			ur_qp_act(qp);
		ur_qp_update(qp);
	} else if (__builtin_expect(gap || qp->fail_send || ur_mode_holds_early(qp), 0)) {
		ur_qp_act(qp);
		ur_qp_update(qp);
	}
	return drop;
}

static inline enum ur_drop ur_mode_ud_input(struct ur_qp *qp, const struct ur_packet *p,
					    const uint8_t *frame)
{
	enum ur_drop drop = ur_ud_input(qp, p, frame);

	if (__builtin_expect(qp->fail_send, 0))
		ur_qp_act(qp);
	return drop;
}

static inline bool ur_mode_response_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	bool made = ur_qp_is_ext(qp) ? ur_ext_response_next(qp, tx, now_ns)
				     : ur_response_next(qp, tx, now_ns);

	if (__builtin_expect(!made, 0))
		ur_qp_act(qp);
	return made;
}

static inline bool ur_mode_response_next_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	return ur_qp_is_ext(qp) ? ur_ext_response_next_ack(qp, tx, now_ns)
				: ur_response_next_ack(qp, tx, now_ns);
}

static inline void ur_mode_drain(struct ur_qp *qp)
{
	if (ur_qp_is_ext(qp))
		ur_ext_requester_drain(qp);
	else
		ur_requester_drain(qp);
}

/* Answers are queued or READs and atomics are being executed. */
static inline bool ur_mode_is_answering(const struct ur_qp *qp)
{
	return ur_qp_is_ext(qp) ? ur_ext_response_queued(qp) : qp->rsp.q_cnt;
}

#endif
