/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/gbn.h"

#include "wire/assert.h"

/* ---- life ---- */

void ur_gbn_init(struct ur_qp *qp)
{
	qp->gbn = (struct ur_gbn_requester){0};
	ur_recovery_init(&qp->gbn.rec, ur_psn(0), qp->window);
	ur_reo_window_init(&qp->gbn.reo_window);
	qp->gbn_rsp = (struct ur_gbn_responder){0};
	ur_reorder_qp_init(&qp->gbn_rsp.reorder);
}

void ur_gbn_release(struct ur_qp *qp)
{
	ur_reorder_stop(qp);
	ur_completer_give_gap(qp);
}

void ur_gbn_set_first_psn(struct ur_qp *qp, struct ur_psn first)
{
	ur_recovery_init(&qp->gbn.rec, first, qp->window);
	qp->gbn.executed = first;
}

void ur_reorder_set_first_psn(struct ur_qp *qp, struct ur_psn first)
{
	ur_gbn_set_first_psn(qp, first);
	ur_recovery_select(&qp->gbn.rec);
}

/* No SEND or WRITE was executed yet: an ACK names the PSN before ePSN. */
void ur_gbn_set_epsn(struct ur_qp *qp)
{
	qp->gbn_rsp.data = ur_psn_add(qp->rsp.epsn, UR_PSN_MASK);
}

void ur_gbn_set_limits(struct ur_qp *qp)
{
	const struct ur_qp_attr *a = &qp->attr;

	ur_recovery_limits(&qp->gbn.rec, a->retry_cnt, a->rnr_retry, a->timeout);
}

void ur_gbn_resize(struct ur_qp *qp, uint8_t cnt)
{
	ur_responder_resize(qp, cnt);
	qp->rsp.q_head = 0;
}

void ur_gbn_stop_sending(struct ur_qp *qp)
{
	struct ur_recovery *rec = &qp->gbn.rec;

	rec->retry.ack_deadline_ns = UR_NEVER;
	rec->retry.is_waiting = false;
	rec->una = rec->nxt = rec->max;
	rec->rto_deadline_ns = UR_NEVER;
	rec->repeat = rec->probing = rec->hold = rec->timing = false;
	ur_completer_give_gap(qp);
	qp->gbn.rd_out = 0;
}

void ur_gbn_stop_responding(struct ur_qp *qp)
{
	ur_reorder_stop(qp);
	ur_response_stop(qp);
}

void ur_gbn_validate(const struct ur_qp *qp)
{
	const struct ur_recovery *rec = &qp->gbn.rec;
	const struct ur_responder *rsp = &qp->rsp;

	UR_ASSERT(ur_psn_le(rec->una, rec->nxt) && ur_psn_le(rec->nxt, rec->max));
	UR_ASSERT(qp->gbn.rd_out <= qp->req.max_rd_atomic);
	UR_ASSERT(rsp->q_cnt <= rsp->res_cnt);
	UR_ASSERT(ur_emux_is_active(&qp->rsp_queue) == (rsp->q_cnt > 0));
	UR_ASSERT(qp->ack_node.ready == ur_response_ack_due(qp));
	ur_reorder_validate(qp);
	UR_ASSERT(!(rsp->ack & UR_ACK_OWED) || !qp->gbn_rsp.data_old);
	UR_ASSERT(!(rsp->ack & UR_NAK_OWED) || qp->state == IBV_QPS_ERR ||
		  (rsp->nak_sent && ur_psn_eq(rsp->nak_psn, rsp->epsn)));
}

/* ---- what is in flight ---- */

bool ur_gbn_is_idle(const struct ur_qp *qp)
{
	return !ur_recovery_in_flight(&qp->gbn.rec);
}

uint32_t ur_gbn_in_flight(const struct ur_qp *qp)
{
	const struct ur_recovery *rec = &qp->gbn.rec;

	return rec->retry.is_waiting ? 0 : (uint32_t)ur_psn_diff(rec->nxt, rec->una);
}

uint32_t ur_gbn_acked(const struct ur_qp *qp)
{
	return qp->gbn.rec.una.v;
}

/* ---- time ---- */

uint64_t ur_gbn_deadline(const struct ur_qp *qp)
{
	return ur_recovery_deadline(&qp->gbn.rec);
}

/* A missing response or request may count as lost then. */
uint64_t ur_gbn_reorder_deadline(const struct ur_qp *qp)
{
	uint64_t deadline = ur_recovery_deadline(&qp->gbn.rec);

	if (__builtin_expect(qp->gbn.gap != NULL, 0) && qp->gbn.gap->deadline_ns < deadline)
		deadline = qp->gbn.gap->deadline_ns;
	if (__builtin_expect(qp->gbn_rsp.reorder.ctx != NULL, 0)) {
		uint64_t hole = ur_reorder_deadline(&qp->gbn_rsp.reorder);

		deadline = hole < deadline ? hole : deadline;
	}
	return deadline;
}

void ur_gbn_expire(struct ur_qp *qp, uint64_t now_ns)
{
	ur_reorder_timer(qp, now_ns);
	ur_completer_timer(qp, now_ns);
}

void ur_gbn_rearm(struct ur_qp *qp, bool held, uint64_t now_ns)
{
	(void)held;
	if (qp->retry.ack_deadline_ns <= now_ns)
		ur_retry_restart(&qp->retry, true, now_ns);
}

/* ---- answers and queries ---- */

bool ur_gbn_is_answering(const struct ur_qp *qp)
{
	return qp->rsp.q_cnt;
}

struct ur_qp_numbers ur_gbn_numbers(const struct ur_qp *qp)
{
	const struct ur_recovery *rec = &qp->gbn.rec;

	return (struct ur_qp_numbers){.una = rec->una,
				      .nxt = rec->nxt,
				      .max = rec->max,
				      .retries = ur_retry_left(&rec->retry)};
}
