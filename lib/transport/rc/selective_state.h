/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_SELECTIVE_STATE_H
#define UR_TRANSPORT_RC_SELECTIVE_STATE_H

#include "transport/qp.h"
#include "transport/rc/ext.h"
#include "transport/loss/selective.h"
#include "transport/send_queue.h"

/*
 * How an extended queue pair's WQEs map to its two sequences of numbers: PSNs of requests (xreq.psn) and
 * numbers of response packets (xreq.rsp). Requester and completer share this.
 *
 * Thread class: the QP's worker.
 */

/* What selective.h needs beside a sequence; `kind` says which sequence and what it holds. */
static inline struct ur_selective_env ur_ext_env(struct ur_qp *qp)
{
	return (struct ur_selective_env){.pool = &qp->core->rtx,
					 .rtt = &qp->xreq.rtt,
					 .tx_times = &qp->xreq.tx_times,
					 .retry = &qp->retry,
					 .idle = !ur_emux_is_active(&qp->sq_queue)};
}

/* For the sequence of requests. */
static inline struct ur_selective_env ur_ext_psn_env(struct ur_qp *qp)
{
	struct ur_selective_env env = ur_ext_env(qp);

	if (ur_psn_le(qp->xreq.reads_from, qp->xreq.psn.una))
		env.kind = UR_SELECTIVE_READS;
	env.own = ur_ext_own(qp)->requests;
	return env;
}

/* For the sequence of responses. */
static inline struct ur_selective_env ur_ext_rsp_env(struct ur_qp *qp)
{
	struct ur_selective_env env = ur_ext_env(qp);

	env.kind = UR_SELECTIVE_RESPONSES;
	env.own = ur_ext_own(qp)->responses;
	return env;
}

/*
 * selective.h counts both sequences as PSNs. These are the borders: outside of it a response number is one.
 */
static inline struct ur_rspn ur_rspn_of(struct ur_psn nr)
{
	return (struct ur_rspn){nr.v};
}

static inline struct ur_psn ur_rspn_to(struct ur_rspn nr)
{
	return (struct ur_psn){nr.v};
}

/* Responses [una, max) are awaited. */
static inline struct ur_rspn ur_ext_rsp_una(const struct ur_ext_requester *x)
{
	return ur_rspn_of(x->rsp.una);
}

static inline struct ur_rspn ur_ext_rsp_max(const struct ur_ext_requester *x)
{
	return ur_rspn_of(x->rsp.max);
}

/* Response packets that the WQE asks for: at least 1 for a READ or atomic, else 0. */
static inline uint32_t ur_ext_responses(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	return class_of(wqe) & (OP_READ | OP_ATOMIC) ? ur_send_queue_packets(qp, wqe) : 0;
}

/* PSNs that the WQE takes, at least 1 (a local operation takes none and is not asked about). */
static inline uint32_t ur_ext_psns(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	uint32_t n = ur_send_queue_packets(qp, wqe);

	if (class_of(wqe) & OP_READ)
		n = (n + qp->req.read_psns - 1) >> __builtin_ctz(qp->req.read_psns);
	return n;
}

/*
 * WQEs [head, head + this) have packets in flight or wait for completion, all of them with a PSN:
 * local operations run when they are the oldest and are complete at once. What comes behind a WQE
 * that is to fail does not count any more.
 */
static inline uint32_t ur_ext_begun(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	bool cur = !req->local_err && req->cur != ur_wq_tail(&qp->sq) &&
		   (ur_sq_at(&qp->sq, req->cur)->flags & UR_WQE_BEGUN);

	return req->cur - req->head + cur;
}

/* Whether every request and response has come through. */
static inline bool ur_ext_idle(const struct ur_ext_requester *x)
{
	return ur_psn_eq(x->psn.una, x->psn.max) && ur_psn_eq(x->rsp.una, x->rsp.max);
}

/*
 * Number of the first response that the request `psn` of [psn.una, psn.max] or a later one asks for.
 */
struct ur_rspn ur_ext_response_of(const struct ur_qp *qp, struct ur_psn psn);
/* Tells recovery.h what is outstanding. */
void ur_ext_follow(struct ur_qp *qp, uint64_t now_ns);
/*
 * WQE `idx` fails with `status` as soon as those before it are complete (ur_send_queue_advance());
 * nothing of it or behind it is sent or taken in any more.
 */
void ur_ext_requester_fail(struct ur_qp *qp, uint32_t idx, enum ibv_wc_status status);

#endif
