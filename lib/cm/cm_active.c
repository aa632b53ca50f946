/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

static bool connect_attr_ok(const struct ur_cm_connect_attr *a)
{
	return (a->transport == UR_CM_TRANSPORT_RC || a->transport == UR_CM_TRANSPORT_UC) &&
	       cm_qpn_ok(a->qpn) && a->pmtu >= 1 && a->pmtu <= 5 && a->retry_cnt <= 7 &&
	       a->rnr_retry <= 7 && a->ack_timeout <= 31 && a->remote_resp_timeout <= 31 &&
	       a->local_resp_timeout <= 31 && a->max_cm_retries <= 15 && a->sl <= 15 &&
	       a->flow_label < 1u << 20 &&
	       cm_private_fits(a->offer, a->private_len, UR_CM_REQ_PRIVATE);
}

static void build_req(const struct ur_cm *cm, struct cm_id *id, const struct ur_cm_connect_attr *a)
{
	struct ur_cursor c = cm_msg(id->last, UR_CM_REQ, cm_tid(cm, id));
	struct ur_cm_req req = {
		.local_comm_id = cm_comm_id(cm, id),
		.service_id = a->service_id,
		.ca_guid = cm->attr.ca_guid,
		.qpn = a->qpn,
		.responder_resources = a->responder_resources,
		.initiator_depth = a->initiator_depth,
		.remote_resp_timeout = a->remote_resp_timeout,
		.transport = a->transport,
		.flow_ctrl = a->flow_ctrl,
		.psn = a->rq_psn,
		.local_resp_timeout = a->local_resp_timeout,
		.retry_cnt = a->retry_cnt,
		.pkey = a->pkey,
		.pmtu = a->pmtu,
		.rnr_retry = a->rnr_retry,
		.max_cm_retries = a->max_cm_retries,
		.srq = a->srq,
		.primary = {.local_lid = 0xffff,
			    .remote_lid = 0xffff,
			    .local_gid = a->sgid,
			    .remote_gid = a->dgid,
			    .flow_label = a->flow_label,
			    .tclass = a->tclass,
			    .hop_limit = a->hop_limit,
			    .sl = a->sl,
			    .ack_timeout = a->ack_timeout},
	};

	cm_private(req.private_data, sizeof(req.private_data), a->private_data, a->private_len);
	if (a->offer)
		ur_offer_put(req.private_data, sizeof(req.private_data), a->offer);
	ur_put_cm_req(&c, &req);
}

int ur_cm_connect(struct ur_cm *cm, void *ctx, const struct ur_cm_connect_attr *attr, uint64_t now,
		  struct ur_cm_id *handle)
{
	struct cm_id *id;

	if (!connect_attr_ok(attr))
		return -EINVAL;
	id = cm_id_alloc(cm);
	if (!id)
		return -ENOSPC;
	id->ctx = ctx;
	id->active = true;
	id->path = attr->path;
	id->service = attr->service;
	id->has_service = true;
	id->peer_gid = attr->dgid;
	id->lqpn = attr->qpn;
	id->service_id = attr->service_id;
	id->resources = attr->responder_resources;
	id->depth = attr->initiator_depth;
	id->max_retries = attr->max_cm_retries;
	id->patience = attr->patience;
	id->timeout_ns = cm_exp_ns(attr->remote_resp_timeout, CM_EXP_MIN, CM_EXP_MAX);
	cm_set_state(cm, id, UR_CM_ST_REQ_SENT);
	build_req(cm, id, attr);
	cm_tx_repeat(cm, id, now);
	handle->v = id->handle;
	return 0;
}

static enum ur_drop rep_again(struct ur_cm *cm, const struct cm_rx *rx, struct cm_id *id,
			      const struct ur_cm_rep *rep)
{
	if (!id->remote_known || id->remote_comm_id != rep->local_comm_id)
		return cm_unexpected(cm);
	switch (id->state) {
	case UR_CM_ST_REP_RCVD:
		if (id->has_last)
			cm_tx_again(cm, id);
		else
			cm_tx_mra(cm, id, CM_MRA_AUTO);
		return cm_duplicate(cm);
	case UR_CM_ST_ESTABLISHED: /* the RTU */
	case UR_CM_ST_LINGER:	   /* the REJ */
		cm_tx_again(cm, id);
		return cm_duplicate(cm);
	case UR_CM_ST_TIMEWAIT:
		cm_tx_rej(cm, rx, UR_CM_ABOUT_REP, cm_comm_id(cm, id), rep->local_comm_id,
			  UR_CM_REJ_STALE_CONN);
		return cm_unexpected(cm);
	default: /* DREQ_SENT: the DREQ supersedes the RTU */
		return cm_duplicate(cm);
	}
}

static uint8_t min8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

enum ur_drop cm_rx_rep(struct ur_cm *cm, const struct cm_rx *rx, struct ur_cm_rep *rep)
{
	struct cm_id *id = cm_id_by_comm(cm, rep->remote_comm_id);
	struct ur_cm_event ev;
	struct ur_offer offer;
	struct cm_id *old;

	if (!id || id->sidr || !id->active) {
		cm_tx_rej(cm, rx, UR_CM_ABOUT_REP, rep->remote_comm_id, rep->local_comm_id,
			  UR_CM_REJ_INV_COMM_ID);
		return cm_unexpected(cm);
	}
	if (!cm_from_peer(cm, rx, id))
		return UR_DROP_PEER;
	if (id->state != UR_CM_ST_REQ_SENT)
		return rep_again(cm, rx, id, rep);
	if (!cm_qpn_ok(rep->qpn)) {
		cm->counters.malformed++;
		return UR_DROP_MAD;
	}
	old = cm_qpn_find(cm, &id->peer_gid, rep->ca_guid, rep->qpn);
	if (old)
		cm_forget(cm, old, rx->now);
	rep->responder_resources = min8(rep->responder_resources, id->depth);
	rep->initiator_depth = min8(rep->initiator_depth, id->resources);
	id->remote_known = true;
	id->remote_comm_id = rep->local_comm_id;
	id->peer_guid = rep->ca_guid;
	id->rqpn = rep->qpn;
	id->rpsn = rep->psn;
	id->tid = rx->hdr.tid;
	id->cm_qpn = rx->src->sqpn;
	id->has_last = false;
	cm_qpn_insert(cm, id);
	cm_set_state(cm, id, UR_CM_ST_REP_RCVD);
	ev = cm_event(id, UR_CM_EV_REP_RCVD);
	ev.rep = rep;
	ev.sq_psn = rep->psn;
	ev.private_data = rep->private_data;
	ev.private_len = sizeof(rep->private_data);
	/* CM-EXT-04: a REP names the version in use; we support only one. */
	if (ur_offer_take(rep->private_data, sizeof(rep->private_data), &offer) &&
	    offer.version == UR_OFFER_VERSION)
		ev.offer = &offer;
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}

int ur_cm_rtu(struct ur_cm *cm, struct ur_cm_id handle, const void *private_data,
	      uint8_t private_len, uint64_t now)
{
	struct cm_id *id = cm_id_get(cm, handle);
	struct ur_cm_pair rtu;
	struct ur_cursor c;

	(void)now;
	if (!id || id->state != UR_CM_ST_REP_RCVD || private_len > UR_CM_PAIR_PRIVATE)
		return -EINVAL;
	rtu.local_comm_id = cm_comm_id(cm, id);
	rtu.remote_comm_id = id->remote_comm_id;
	cm_private(rtu.private_data, sizeof(rtu.private_data), private_data, private_len);
	c = cm_msg(id->last, UR_CM_RTU, id->tid);
	ur_put_cm_pair(&c, &rtu);
	id->has_last = true;
	cm_set_state(cm, id, UR_CM_ST_ESTABLISHED);
	cm_tx_last(cm, id);
	return 0;
}

int ur_cm_mra(struct ur_cm *cm, struct ur_cm_id handle, uint8_t service_timeout, uint64_t now)
{
	struct cm_id *id = cm_id_get(cm, handle);

	(void)now;
	if (!id || service_timeout > 31 ||
	    (id->state != UR_CM_ST_REQ_RCVD && id->state != UR_CM_ST_REP_RCVD))
		return -EINVAL;
	cm_tx_mra(cm, id, service_timeout);
	return 0;
}

enum ur_drop cm_rx_mra(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_mra *mra)
{
	struct cm_id *id = cm_id_by_comm(cm, mra->remote_comm_id);
	struct ur_cm_event ev;

	if (!id || id->sidr)
		return cm_unexpected(cm);
	if (!cm_from_peer(cm, rx, id))
		return UR_DROP_PEER;
	if (!(id->state == UR_CM_ST_REQ_SENT && mra->about == UR_CM_ABOUT_REQ) &&
	    !(id->state == UR_CM_ST_REP_SENT && mra->about == UR_CM_ABOUT_REP &&
	      id->remote_comm_id == mra->local_comm_id))
		return cm_unexpected(cm);
	if (id->state == UR_CM_ST_REP_SENT)
		cm_prove(cm, id, rx->now);
	if (id->mra_cnt == CM_MRA_MAX)
		return cm_unexpected(cm);
	cm_timer_set(cm, id,
		     rx->now + id->timeout_ns + cm_exp_ns(mra->service_timeout, 0, CM_MRA_EXP_MAX));
	if (id->mra_cnt++)
		return cm_duplicate(cm);
	ev = cm_event(id, UR_CM_EV_MRA_RCVD);
	ev.mra = mra;
	ev.private_data = mra->private_data;
	ev.private_len = sizeof(mra->private_data);
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}
