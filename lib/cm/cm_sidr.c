/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

int ur_cm_sidr_req(struct ur_cm *cm, void *ctx, const struct ur_cm_sidr_attr *a, uint64_t now,
		   struct ur_cm_id *handle)
{
	struct ur_cm_sidr_req req = {.pkey = a->pkey, .service_id = a->service_id};
	struct ur_cursor c;
	struct cm_id *id;

	if (a->resp_timeout > 31 || a->max_cm_retries > 15 ||
	    a->private_len > UR_CM_SIDR_REQ_PRIVATE)
		return -EINVAL;
	id = cm_id_alloc(cm);
	if (!id)
		return -ENOSPC;
	id->ctx = ctx;
	id->active = true;
	id->sidr = true;
	id->path = a->path;
	id->service = a->service;
	id->has_service = true;
	id->peer_gid = a->dgid;
	id->service_id = a->service_id;
	id->max_retries = a->max_cm_retries;
	id->patience = a->patience;
	id->timeout_ns = cm_exp_ns(a->resp_timeout, CM_EXP_MIN, CM_EXP_MAX);
	cm_set_state(cm, id, UR_CM_ST_SIDR_REQ_SENT);
	req.request_id = cm_comm_id(cm, id);
	cm_private(req.private_data, sizeof(req.private_data), a->private_data, a->private_len);
	c = cm_msg(id->last, UR_CM_SIDR_REQ, cm_tid(cm, id));
	ur_put_cm_sidr_req(&c, &req);
	cm_tx_repeat(cm, id, now);
	handle->v = id->handle;
	return 0;
}

/* Sends an answer without an id. */
static enum ur_drop refuse(struct ur_cm *cm, const struct cm_rx *rx,
			   const struct ur_cm_sidr_req *req, enum ur_cm_sidr_status status,
			   enum ur_drop drop)
{
	struct ur_cm_sidr_rep rep = {
		.request_id = req->request_id,
		.status = status,
		.service_id = req->service_id,
	};
	uint8_t mad[UR_MAD_BYTES];
	struct ur_cursor c = cm_msg(mad, UR_CM_SIDR_REP, rx->hdr.tid);

	ur_put_cm_sidr_rep(&c, &rep);
	cm_tx_to(cm, &rx->src->path, rx->src->sqpn, mad);
	return drop;
}

static enum ur_drop sidr_again(struct ur_cm *cm, struct cm_id *id)
{
	if (id->state == UR_CM_ST_LINGER && id->has_last)
		cm_tx_again(cm, id);
	return cm_duplicate(cm);
}

enum ur_drop cm_rx_sidr_req(struct ur_cm *cm, const struct cm_rx *rx,
			    const struct ur_cm_sidr_req *req)
{
	struct cm_id *id = cm_peer_find_sidr(cm, &rx->src->sgid, req->request_id);
	const struct cm_listener *listener;
	bool has_ip = ur_is_rdma_ip_service(req->service_id);
	struct ur_cursor c = ur_cursor_ro(req->private_data, UR_CM_SIDR_REQ_PRIVATE);
	struct ur_cm_event ev;
	struct ur_rdma_ip ip;

	if (id)
		return sidr_again(cm, id);
	listener = cm_listener_find(cm, UR_CM_KIND_SIDR, req->service_id);
	if (!listener) {
		cm->counters.no_service++;
		return refuse(cm, rx, req, UR_CM_SIDR_UNSUPPORTED, UR_DROP_UNEXPECTED);
	}
	if (has_ip && !ur_get_rdma_ip(&c, &ip)) {
		cm->counters.malformed++;
		return refuse(cm, rx, req, UR_CM_SIDR_VERSION, UR_DROP_MAD);
	}
	if (cm_has_room(cm, UR_CM_KIND_SIDR, &rx->src->sgid))
		id = cm_id_alloc(cm);
	if (!id) {
		cm->counters.no_resources++;
		return refuse(cm, rx, req, UR_CM_SIDR_REJECT, UR_DROP_RESOURCES);
	}
	id->ctx = listener->ctx;
	id->sidr = true;
	id->path = rx->src->path;
	id->cm_qpn = rx->src->sqpn;
	id->peer_gid = rx->src->sgid;
	id->remote_known = true;
	id->remote_comm_id = req->request_id;
	id->service_id = req->service_id;
	id->tid = rx->hdr.tid;
	cm_peer_insert(cm, id);
	cm_set_state(cm, id, UR_CM_ST_SIDR_REQ_RCVD);
	cm_timer_set(cm, id, rx->now + CM_REQUEST_LIFE_NS);
	ev = cm_request_event(id, UR_CM_EV_SIDR_REQ_RCVD, rx, has_ip ? &ip : NULL,
			      req->private_data, UR_CM_SIDR_REQ_PRIVATE);
	ev.sidr_req = req;
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}

int ur_cm_sidr_rep(struct ur_cm *cm, struct ur_cm_id handle, enum ur_cm_sidr_status status,
		   struct ur_qpn qpn, uint32_t qkey, const void *private_data, uint8_t private_len,
		   uint64_t now)
{
	struct cm_id *id = cm_id_get(cm, handle);
	struct ur_cm_sidr_rep rep = {.status = status, .qpn = qpn, .qkey = qkey};
	struct ur_cursor c;

	if (!id || id->state != UR_CM_ST_SIDR_REQ_RCVD || private_len > UR_CM_SIDR_REP_PRIVATE)
		return -EINVAL;
	rep.request_id = id->remote_comm_id;
	rep.service_id = id->service_id;
	cm_private(rep.private_data, sizeof(rep.private_data), private_data, private_len);
	c = cm_msg(id->last, UR_CM_SIDR_REP, id->tid);
	ur_put_cm_sidr_rep(&c, &rep);
	id->has_last = true;
	cm_tx_last(cm, id);
	cm_enter_linger(cm, id, now);
	return 0;
}

enum ur_drop cm_rx_sidr_rep(struct ur_cm *cm, const struct cm_rx *rx,
			    const struct ur_cm_sidr_rep *rep)
{
	struct cm_id *id = cm_id_by_comm(cm, rep->request_id);
	struct ur_cm_event ev;

	if (!id || id->state != UR_CM_ST_SIDR_REQ_SENT || id->service_id != rep->service_id)
		return cm_unexpected(cm);
	if (!cm_from_peer(cm, rx, id))
		return UR_DROP_PEER;
	/* CM-PATIENCE-01 */
	if (rep->status == UR_CM_SIDR_UNSUPPORTED && id->patience) {
		id->patience--;
		return UR_DROP_NONE;
	}
	if (rep->status == UR_CM_SIDR_OK && !cm_qpn_ok(rep->qpn)) {
		cm->counters.malformed++;
		return UR_DROP_MAD;
	}
	ev = cm_event(id, UR_CM_EV_SIDR_REP_RCVD);
	ev.final = true;
	ev.sidr_rep = rep;
	ev.private_data = rep->private_data;
	ev.private_len = sizeof(rep->private_data);
	cm_set_state(cm, id, UR_CM_ST_FREE);
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}
