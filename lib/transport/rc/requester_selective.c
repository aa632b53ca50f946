/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/ext.h"
#include "transport/rc/codec_ext.h"
#include "transport/rc/loss_selective.h"

/* The requester of extended mode. */
#define LOSS_BURSTS
#define REQUESTER(name) ur_ext_requester_##name
#include "transport/rc/requester_template.h"

bool ur_ext_requester_asks(const struct ur_qp *qp)
{
	return may_send(qp) && has_wqe(qp) && may_go_on(qp) && begins_receive(qp);
}

void ur_ext_requester_drain(struct ur_qp *qp)
{
	loss_ask_for_ack(qp);
}

struct ur_rspn ur_ext_response_of(const struct ur_qp *qp, struct ur_psn psn)
{
	const struct ur_wqe *wqe;
	uint32_t at;

	if (!ur_ext_begun(qp) || ur_psn_eq(psn, qp->xreq.psn.max))
		return ur_ext_rsp_max(&qp->xreq);
	wqe = ur_sq_at(&qp->sq, loss_find(qp, psn));
	at = (uint32_t)ur_psn_diff(psn, wqe->first_psn);
	/* It belongs to a WQE that fails, or lies behind it. */
	if (at >= ur_ext_psns(qp, wqe))
		return ur_ext_rsp_max(&qp->xreq);
	if (!(class_of(wqe) & OP_READ))
		return wqe->first_rsp;
	return ur_rspn_add(wqe->first_rsp, at << __builtin_ctz(qp->req.read_psns));
}

void ur_ext_follow(struct ur_qp *qp, uint64_t now_ns)
{
	ur_retry_follow(&qp->retry, !ur_ext_idle(&qp->xreq), now_ns);
}

void ur_ext_requester_stop(struct ur_qp *qp)
{
	struct ur_selective_env env = ur_ext_env(qp);
	struct ur_ext_requester *x = &qp->xreq;

	ur_selective_stop(&x->psn, &env);
	ur_selective_stop(&x->rsp, &env);
	x->probe = x->probed = 0;
	x->atomic_cnt = 0;
	if (qp->sprays) {
		ur_spray_give(&qp->core->spray, x->spray);
		x->plb = (struct ur_plb){0};
		x->plb_is_on = false;
	}
	qp->sprays = false;
	qp->spray_path = 0;
}

/* EXT-WINDOW-02. Counts of what is outstanding have 16 bits. */
static uint32_t agreed_window(const struct ur_qp *qp)
{
	uint32_t most = ur_ext_agreed_window(qp, qp->core->rtx.most);

	return most < UR_EXT_WINDOW_MAX ? most : UR_EXT_WINDOW_MAX - 1;
}

void ur_ext_requester_init(struct ur_qp *qp, struct ur_psn first)
{
	uint32_t most = agreed_window(qp), window = qp->window < most ? qp->window : most;
	struct ur_ext_requester *x = &qp->xreq;

	ur_ext_requester_stop(qp);
	/* EXT-SEL-RTT-02: what was sent before is no business of the next connection. */
	*x = (struct ur_ext_requester){.echoed = qp->req.last_stamp};
	/* ADM-TAG-01 */
	if (qp->admission & UR_ADM_HOLDER)
		x->rwqen = (uint32_t)ur_pool_tag(qp->agreed.pool) << 24;
	ur_retry_init(&x->retry);
	ur_rtt_init(&x->rtt);
	ur_selective_init(&x->psn, &x->tx_times, 0, first, (uint16_t)window, (uint16_t)most);
	x->reads_from = first;
	qp->req.ssn = ur_first_ssn(first);
	ur_selective_init(&x->rsp, &x->tx_times, 1, ur_psn(0), (uint16_t)window, (uint16_t)most);
	/* LOSS-OWN-02 */
	if (!qp->core->loss.cnt) {
		ur_selective_narrow(&x->psn, UR_OWN_SPAN);
		ur_selective_narrow(&x->rsp, UR_OWN_SPAN);
	}
	/* RC-REQ-PART-02. Sixteen requests fill a wide window as well. */
	if (window > UR_EXT_WINDOW)
		qp->req.read_psns = (uint16_t)(window / 16);
	/* SPRAY-POOL-01. One in RESET may stay there, or be destroyed next. */
	if (qp->paths > 1 && qp->state != IBV_QPS_RESET) {
		x->spray = ur_spray_take(&qp->core->spray, qp->paths, qp->req.last_stamp);
		qp->sprays = x->spray != NULL;
	}
}
