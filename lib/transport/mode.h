/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_MODE_H
#define UR_TRANSPORT_MODE_H

#include "transport/ext.h"
#include "transport/qp.h"

/*
 * The one place that branches on a queue pair's mode (docs/design/loss.md): engine and qp.c call
 * these. UC and UD queue pairs are always UR_MODE_GBN.
 */

static inline bool ur_mode_is_ext(const struct ur_qp *qp)
{
	return __builtin_expect(qp->mode == UR_MODE_EXTENDED, 0);
}

static inline bool ur_mode_requester_ready(const struct ur_qp *qp)
{
	return ur_mode_is_ext(qp) ? ur_ext_requester_ready(qp) : ur_requester_ready(qp);
}

/* When the QP timer has something to do for the requester. */
static inline uint64_t ur_mode_deadline(const struct ur_qp *qp)
{
	return ur_mode_is_ext(qp) ? ur_ext_deadline(qp) : ur_recovery_deadline(&qp->req.rec);
}

static inline bool ur_mode_requester_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns,
					  unsigned *wqes)
{
	return ur_mode_is_ext(qp) ? ur_ext_requester_next(qp, tx, now_ns, wqes)
				  : ur_requester_next(qp, tx, now_ns, wqes);
}

static inline enum ur_drop ur_mode_input(struct ur_qp *qp, const struct ur_packet *p,
					 uint64_t now_ns)
{
	bool response = p->op & UR_OP_RESPONSE;

	if (ur_mode_is_ext(qp))
		return response ? ur_ext_completer_input(qp, p, now_ns)
				: ur_ext_responder_input(qp, p, now_ns);
	return response ? ur_completer_input(qp, p, now_ns) : ur_responder_input(qp, p, now_ns);
}

static inline bool ur_mode_response_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	return ur_mode_is_ext(qp) ? ur_ext_response_next(qp, tx, now_ns) : ur_response_next(qp, tx);
}

static inline bool ur_mode_response_next_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	return ur_mode_is_ext(qp) ? ur_ext_response_next_ack(qp, tx, now_ns)
				  : ur_response_next_ack(qp, tx);
}

static inline void ur_mode_drain(struct ur_qp *qp)
{
	if (ur_mode_is_ext(qp))
		ur_ext_requester_drain(qp);
	else
		ur_requester_drain(qp);
}

/* Answers are queued or READs and atomics are being executed. */
static inline bool ur_mode_is_answering(const struct ur_qp *qp)
{
	return qp->rsp.q_cnt || qp->xrsp.ans_cnt;
}

#endif
