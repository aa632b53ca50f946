/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/ext.h"

#include "transport/admission.h"
#include "transport/rc/selective_state.h"
#include "wire/assert.h"

/* ---- life ---- */

void ur_ext_init(struct ur_qp *qp)
{
	qp->xreq = (struct ur_ext_requester){0};
	qp->adm = (struct ur_adm_qp){0};
	ur_ext_requester_init(qp, ur_psn(0));
	qp->xrsp = (struct ur_ext_responder){0};
}

void ur_ext_release(struct ur_qp *qp)
{
	ur_ext_requester_stop(qp);
	ur_ext_responder_release(qp);
}

void ur_ext_set_limits(struct ur_qp *qp)
{
	const struct ur_qp_attr *a = &qp->attr;

	ur_retry_limits(&qp->retry, a->retry_cnt, a->rnr_retry, a->timeout);
}

void ur_ext_stop_sending(struct ur_qp *qp)
{
	qp->retry.ack_deadline_ns = UR_NEVER;
	qp->retry.is_waiting = false;
	ur_ext_requester_stop(qp);
}

void ur_ext_validate(const struct ur_qp *qp)
{
	UR_ASSERT(ur_ext_reads_out(&qp->xreq) <= qp->req.max_rd_atomic);
	UR_ASSERT(!qp->sprays || qp->xreq.spray);
	ur_ext_responder_validate(qp);
	ur_admission_validate(qp);
}

/* ---- what is in flight ---- */

bool ur_ext_is_idle(const struct ur_qp *qp)
{
	return ur_ext_idle(&qp->xreq);
}

uint32_t ur_ext_in_flight(const struct ur_qp *qp)
{
	if (qp->retry.is_waiting)
		return 0;
	return ur_selective_in_flight(&qp->xreq.psn) + ur_selective_in_flight(&qp->xreq.rsp);
}

uint32_t ur_ext_acked(const struct ur_qp *qp)
{
	return qp->xreq.psn.una.v + qp->xreq.rsp.una.v;
}

/* ---- time ---- */

uint64_t ur_ext_deadline(const struct ur_qp *qp)
{
	uint64_t deadline = ur_ext_requester_deadline(qp), gap;

	if (__builtin_expect(!qp->xrsp.has_gap, 1))
		return deadline;
	gap = ur_ext_gap_deadline(qp);
	return gap < deadline ? gap : deadline;
}

void ur_ext_expire(struct ur_qp *qp, uint64_t now_ns)
{
	ur_ext_completer_timer(qp, now_ns);
	if (!qp->fail_send)
		ur_ext_responder_timer(qp, now_ns);
}

/*
 * Responses are asked for by requests. If those could be sent, the responses that are missing are late for
 * other reasons.
 */
void ur_ext_rearm(struct ur_qp *qp, bool held, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;

	if (qp->retry.ack_deadline_ns <= now_ns)
		ur_retry_restart(&qp->retry, true, now_ns);
	ur_selective_rearm(&x->psn, &x->rtt, now_ns);
	if (held)
		ur_selective_rearm(&x->rsp, &x->rtt, now_ns);
}

/* ---- answers and queries ---- */

bool ur_ext_is_answering(const struct ur_qp *qp)
{
	return ur_ext_response_queued(qp);
}

/* What is sent again does not move nxt. */
struct ur_qp_numbers ur_ext_numbers(const struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;

	return (struct ur_qp_numbers){.una = x->psn.una,
				      .nxt = x->psn.max,
				      .max = x->psn.max,
				      .retries = ur_retry_left(&x->retry)};
}

const struct ur_spray_qp *ur_ext_paths(const struct ur_qp *qp)
{
	return qp->sprays ? qp->xreq.spray : NULL;
}
