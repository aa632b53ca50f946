/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "api/cm_priv.h"

/* Connections whose queue pair the application moves itself. */

static bool is_sound(const struct uroce_cm_qp *qp)
{
	return qp->qpn >= 2 && qp->qpn < 1u << 24 &&
	       (qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC);
}

int uroce_cm_connect_qpn(struct uroce_cm_id *base, const struct sockaddr *peer,
			 const struct uroce_cm_qp *qp, const struct uroce_conn_param *param)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct ur_cm_api_connect c = {.id = id};
	int rc = is_sound(qp) ? ur_cm_api_prepare(&c, peer, param) : EINVAL;

	if (rc)
		return rc;
	ur_cm_api_fill_req(&c, qp);
	ur_cm_api_attach(id, NULL);
	id->by_number = true;
	id->type = qp->type;
	return ur_cm_api_start(&c);
}

int uroce_cm_accept_qpn(struct uroce_cm_id *base, const struct uroce_cm_qp *qp,
			const struct uroce_conn_param *param)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct ur_cm_accept_attr rep;
	int rc = is_sound(qp) ? ur_cm_api_take_accept(id, qp, param, &rep) : EINVAL;

	if (rc)
		return rc;
	id->by_number = true;
	id->type = qp->type;
	return ur_cm_api_send_rep(id, &rep);
}

/* ---- establish ---- */

struct establish_call {
	struct ur_api_cm_id *id;
	int rc;
};

static void rtu_on_worker(void *arg, uint64_t now_ns)
{
	struct establish_call *e = arg;

	e->rc = ur_cm_rtu(ur_cm_api_core(e->id->dev), e->id->handle, NULL, 0, now_ns);
}

/* The event is the one that the RTU would have caused. */
static void establish_on_worker(void *arg, uint64_t now_ns)
{
	struct establish_call *e = arg;
	struct ur_cm *core = ur_cm_api_core(e->id->dev);
	struct ur_cm_event ev = {
		.type = UR_CM_EV_ESTABLISHED, .id = e->id->handle, .ctx = &e->id->owner};
	bool waits = ur_cm_state(core, e->id->handle) == UR_CM_ST_REP_SENT;

	(void)now_ns;
	e->rc = ur_cm_establish(core, e->id->handle);
	if (!e->rc && waits)
		ur_cm_api_sink(e->id->dev->cm, &ev);
}

int uroce_cm_establish(struct uroce_cm_id *base)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct establish_call e = {.id = id};

	if (id->responded && id->phase == UR_CM_CONNECTING) {
		/* Before the peer can end it. */
		id->phase = UR_CM_CONNECTED;
		id->responded = false;
		ur_cm_api_call(id->dev, rtu_on_worker, &e);
		return e.rc ? ECONNABORTED : 0;
	}
	if (!id->handle.v)
		return EINVAL;
	ur_cm_api_call(id->dev, establish_on_worker, &e);
	return -e.rc;
}

/* ---- attributes ---- */

static void attr_init(const struct ur_api_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->port_num = 1;
	attr->pkey_index = 0;
	attr->qp_access_flags = 0;
	if (id->phase != UR_CM_IDLE)
		attr->qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static uint8_t limit(const struct ur_api_cm_id *id, uint8_t value)
{
	uint32_t max = id->dev->cfg.transport.max_rd_atomic;

	return value < max ? value : (uint8_t)max;
}

/* Before the application accepts, the request's values hold. */
static struct uroce_conn_param agreed(const struct ur_api_cm_id *id)
{
	const struct ur_cm_note *req = &id->request;

	if (id->accepted)
		return id->param;
	return (struct uroce_conn_param){
		.responder_resources = limit(id, req->initiator_depth),
		.initiator_depth = limit(id, req->responder_resources),
		.retry_count = req->retry_cnt,
		.rnr_retry_count = req->rnr_retry,
		.timeout = req->ack_timeout,
		.min_rnr_timer = (uint8_t)id->dev->cfg.transport.min_rnr_timer,
	};
}

static bool is_uc(const struct ur_api_cm_id *id)
{
	return id->by_number ? id->type == IBV_QPT_UC : id->request.transport == UR_CM_TRANSPORT_UC;
}

static void attr_rtr(const struct ur_api_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct uroce_conn_param p = agreed(id);

	attr->ah_attr = id->ah;
	attr->path_mtu = (enum ibv_mtu)(id->pmtu ? id->pmtu : id->request.pmtu);
	attr->dest_qp_num = id->request.qpn.v;
	attr->rq_psn = id->rq_psn.v;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (is_uc(id))
		return;
	attr->max_dest_rd_atomic = p.responder_resources;
	attr->min_rnr_timer = p.min_rnr_timer;
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void attr_rts(const struct ur_api_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct uroce_conn_param p = agreed(id);

	attr->sq_psn = id->request.sq_psn.v;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (is_uc(id))
		return;
	attr->timeout = p.timeout;
	attr->retry_cnt = p.retry_count;
	attr->rnr_retry = p.rnr_retry_count;
	attr->max_rd_atomic = p.initiator_depth;
	*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

int uroce_cm_init_qp_attr(struct uroce_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
	const struct ur_api_cm_id *id = ur_api_cm_id(base);

	if (attr->qp_state == IBV_QPS_INIT) {
		attr_init(id, attr, mask);
		return 0;
	}
	/* Only a peer's REQ or REP has these. */
	if (id->sidr || !id->request.qpn.v)
		return EINVAL;
	if (attr->qp_state == IBV_QPS_RTR)
		attr_rtr(id, attr, mask);
	else if (attr->qp_state == IBV_QPS_RTS)
		attr_rts(id, attr, mask);
	else
		return EINVAL;
	return 0;
}
