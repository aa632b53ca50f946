/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

static enum ur_drop refuse(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_req *req,
			   enum ur_cm_rej_reason reason, enum ur_drop drop)
{
	cm_tx_rej(cm, rx, UR_CM_ABOUT_REQ, 0, req->local_comm_id, reason);
	return drop;
}

static bool same_req(const struct cm_id *id, const struct cm_rx *rx, const struct ur_cm_req *req)
{
	return id->rqpn.v == req->qpn.v && ur_psn_eq(id->rpsn, req->psn) &&
	       id->service_id == req->service_id && id->tid == rx->hdr.tid;
}

static enum ur_drop req_again(struct ur_cm *cm, const struct cm_rx *rx, struct cm_id *id,
			      const struct ur_cm_req *req)
{
	if (id->state == UR_CM_ST_TIMEWAIT)
		return refuse(cm, rx, req, UR_CM_REJ_STALE_CONN, UR_DROP_UNEXPECTED);
	/* CM-STALE-01: the peer restarted and chose the same id, or another host forged the REQ. */
	if (!same_req(id, rx, req))
		return refuse(cm, rx, req, UR_CM_REJ_DUP_COMM_ID, UR_DROP_UNEXPECTED);
	switch (id->state) {
	case UR_CM_ST_REQ_RCVD:
		if (!id->has_last) {
			cm_tx_mra(cm, id, CM_MRA_AUTO);
			break;
		}
		/* fall through */
	case UR_CM_ST_REP_SENT:
		cm_tx_again(cm, id);
		break;
	case UR_CM_ST_LINGER:
		if (id->has_last)
			cm_tx_again(cm, id);
		break;
	default: /* the peer has our REP already */
		break;
	}
	return cm_duplicate(cm);
}

/* The reason to refuse a REQ with invalid fields; 0 if they are valid. */
static enum ur_cm_rej_reason check_req(const struct cm_rx *rx, const struct ur_cm_req *req)
{
	if (req->transport != UR_CM_TRANSPORT_RC && req->transport != UR_CM_TRANSPORT_UC)
		return UR_CM_REJ_INV_TRANSPORT;
	if (!cm_qpn_ok(req->qpn))
		return UR_CM_REJ_NO_QP;
	if (!ur_gid_eq(&req->primary.local_gid, &rx->src->sgid))
		return UR_CM_REJ_INV_GID;
	if (req->pmtu < 1 || req->pmtu > 5)
		return UR_CM_REJ_INV_MTU;
	return 0;
}

static void child_init(struct cm_id *id, const struct cm_rx *rx, const struct ur_cm_req *req,
		       void *ctx)
{
	id->ctx = ctx;
	id->path = rx->src->path;
	id->cm_qpn = rx->src->sqpn;
	id->peer_gid = rx->src->sgid;
	id->peer_guid = req->ca_guid;
	id->remote_known = true;
	id->remote_comm_id = req->local_comm_id;
	id->rqpn = req->qpn;
	id->rpsn = req->psn;
	id->service_id = req->service_id;
	id->tid = rx->hdr.tid;
	id->resources = req->responder_resources;
	id->depth = req->initiator_depth;
	id->max_retries = req->max_cm_retries;
	id->timeout_ns = cm_exp_ns(req->local_resp_timeout, CM_EXP_MIN, CM_EXP_MAX);
}

static void emit_req(struct ur_cm *cm, const struct cm_rx *rx, const struct cm_id *id,
		     struct ur_cm_req *req, const struct ur_rdma_ip *ip)
{
	struct ur_cm_event ev = cm_request_event(id, UR_CM_EV_REQ_RCVD, rx, ip, req->private_data,
						 UR_CM_REQ_PRIVATE);
	struct ur_offer offer;

	ev.req = req;
	ev.sq_psn = req->psn;
	if (ur_offer_take(req->private_data, UR_CM_REQ_PRIVATE, &offer))
		ev.offer = &offer;
	cm_emit(cm, &ev);
}

/*
 * CM-STALE-01: the peer has forgotten any other live connection with the same QP of its own. A
 * request alone does not prove this, because anyone can forge one. A message that shows that the
 * peer has our answer does.
 */
void cm_prove(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	struct cm_id *old;

	if (id->proven)
		return;
	id->proven = true;
	id->retries = id->max_retries;
	old = cm_qpn_twin(cm, id);
	if (!old)
		return;
	cm->counters.stale++;
	cm_forget(cm, old, now);
}

enum ur_drop cm_rx_req(struct ur_cm *cm, const struct cm_rx *rx, struct ur_cm_req *req)
{
	struct cm_id *id = cm_peer_find(cm, &rx->src->sgid, req->ca_guid, req->local_comm_id);
	const struct cm_listener *listener;
	enum ur_cm_rej_reason flaw;
	struct ur_rdma_ip ip;
	bool has_ip = ur_is_rdma_ip_service(req->service_id);
	struct ur_cursor c = ur_cursor_ro(req->private_data, UR_CM_REQ_PRIVATE);

	if (id)
		return req_again(cm, rx, id, req);
	listener = cm_listener_find(cm, UR_CM_KIND_CONN, req->service_id);
	if (!listener) {
		cm->counters.no_service++;
		return refuse(cm, rx, req, UR_CM_REJ_INV_SERVICE_ID, UR_DROP_UNEXPECTED);
	}
	flaw = check_req(rx, req);
	if (!flaw && has_ip && !ur_get_rdma_ip(&c, &ip))
		flaw = UR_CM_REJ_UNSUPPORTED;
	if (flaw) {
		cm->counters.malformed++;
		return refuse(cm, rx, req, flaw, UR_DROP_MAD);
	}
	if (cm_has_room(cm, UR_CM_KIND_CONN, &rx->src->sgid))
		id = cm_id_alloc(cm);
	if (!id) {
		cm->counters.no_resources++;
		return refuse(cm, rx, req, UR_CM_REJ_NO_RESOURCES, UR_DROP_RESOURCES);
	}
	child_init(id, rx, req, listener->ctx);
	cm_peer_insert(cm, id);
	cm_set_state(cm, id, UR_CM_ST_REQ_RCVD);
	cm_timer_set(cm, id, rx->now + CM_REQUEST_LIFE_NS);
	emit_req(cm, rx, id, req, has_ip ? &ip : NULL);
	return UR_DROP_NONE;
}

int ur_cm_accept(struct ur_cm *cm, struct ur_cm_id handle, const struct ur_cm_accept_attr *a,
		 uint64_t now)
{
	struct cm_id *id = cm_id_get(cm, handle);
	struct ur_cm_rep rep;
	struct ur_cursor c;

	if (!id || id->state != UR_CM_ST_REQ_RCVD || !cm_qpn_ok(a->qpn) ||
	    a->target_ack_delay > 31 || a->rnr_retry > 7 ||
	    !cm_private_fits(a->offer, a->private_len, UR_CM_REP_PRIVATE))
		return -EINVAL;
	rep = (struct ur_cm_rep){
		.local_comm_id = cm_comm_id(cm, id),
		.remote_comm_id = id->remote_comm_id,
		.qkey = a->qkey,
		.qpn = a->qpn,
		.psn = a->rq_psn,
		.responder_resources =
			a->responder_resources < id->depth ? a->responder_resources : id->depth,
		.initiator_depth =
			a->initiator_depth < id->resources ? a->initiator_depth : id->resources,
		.target_ack_delay = a->target_ack_delay,
		.failover = UR_CM_NO_FAILOVER, /* CM-FAILOVER-01 */
		.flow_ctrl = a->flow_ctrl,
		.rnr_retry = a->rnr_retry,
		.srq = a->srq,
		.ca_guid = cm->attr.ca_guid,
	};
	cm_private(rep.private_data, sizeof(rep.private_data), a->private_data, a->private_len);
	if (a->offer)
		ur_offer_put(rep.private_data, sizeof(rep.private_data), a->offer);
	c = cm_msg(id->last, UR_CM_REP, id->tid);
	ur_put_cm_rep(&c, &rep);
	id->lqpn = a->qpn;
	cm_qpn_insert(cm, id);
	cm_set_state(cm, id, UR_CM_ST_REP_SENT);
	cm_tx_repeat(cm, id, now);
	return 0;
}

enum ur_drop cm_rx_rtu(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_pair *rtu)
{
	enum ur_drop drop;
	struct cm_id *id = cm_match(cm, rx, rtu->remote_comm_id, rtu->local_comm_id, &drop);
	struct ur_cm_event ev;

	if (!id)
		return drop;
	if (id->active)
		return cm_unexpected(cm);
	cm_prove(cm, id, rx->now);
	if (id->state == UR_CM_ST_ESTABLISHED)
		return cm_duplicate(cm);
	if (id->state != UR_CM_ST_REP_SENT)
		return cm_unexpected(cm);
	cm_set_state(cm, id, UR_CM_ST_ESTABLISHED);
	ev = cm_event(id, UR_CM_EV_ESTABLISHED);
	ev.private_data = rtu->private_data;
	ev.private_len = sizeof(rtu->private_data);
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}

int ur_cm_establish(struct ur_cm *cm, struct ur_cm_id handle)
{
	struct cm_id *id = cm_id_get(cm, handle);

	if (!id || (id->state != UR_CM_ST_REP_SENT && id->state != UR_CM_ST_ESTABLISHED))
		return -EINVAL;
	if (id->state == UR_CM_ST_REP_SENT)
		cm_set_state(cm, id, UR_CM_ST_ESTABLISHED);
	return 0;
}
