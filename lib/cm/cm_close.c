/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

void cm_enter_timewait(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	cm_set_state(cm, id, UR_CM_ST_TIMEWAIT);
	cm_timer_set(cm, id, now + cm->attr.timewait_ns);
}

void cm_enter_linger(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	id->muted = true;
	cm_set_state(cm, id, UR_CM_ST_LINGER);
	cm_timer_set(cm, id, now + cm->attr.timewait_ns);
}

void cm_start_disconnect(struct ur_cm *cm, struct cm_id *id, const void *private_data,
			 uint8_t private_len, uint64_t now)
{
	struct ur_cursor c = cm_msg(id->last, UR_CM_DREQ, cm_tid(cm, id));
	struct ur_cm_dreq dreq = {
		.local_comm_id = cm_comm_id(cm, id),
		.remote_comm_id = id->remote_comm_id,
		.remote_qpn = id->rqpn,
	};

	cm_private(dreq.private_data, sizeof(dreq.private_data), private_data, private_len);
	ur_put_cm_dreq(&c, &dreq);
	cm_set_state(cm, id, UR_CM_ST_DREQ_SENT);
	cm_tx_repeat(cm, id, now);
}

void cm_forget(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	if (id->state == UR_CM_ST_ESTABLISHED || id->state == UR_CM_ST_REP_SENT)
		cm_start_disconnect(cm, id, NULL, 0, now);
}

int ur_cm_disconnect(struct ur_cm *cm, struct ur_cm_id handle, const void *private_data,
		     uint8_t private_len, uint64_t now)
{
	struct cm_id *id = cm_id_get(cm, handle);

	if (!id || private_len > UR_CM_DREQ_PRIVATE ||
	    (id->state != UR_CM_ST_ESTABLISHED && id->state != UR_CM_ST_REP_SENT))
		return -EINVAL;
	cm_start_disconnect(cm, id, private_data, private_len, now);
	return 0;
}

int ur_cm_reject(struct ur_cm *cm, struct ur_cm_id handle, enum ur_cm_rej_reason reason,
		 const void *private_data, uint8_t private_len, uint64_t now)
{
	struct cm_id *id = cm_id_get(cm, handle);

	if (!id || private_len > UR_CM_REJ_PRIVATE ||
	    (id->state != UR_CM_ST_REQ_RCVD && id->state != UR_CM_ST_REP_RCVD))
		return -EINVAL;
	cm_tx_id_rej(cm, id, id->active ? UR_CM_ABOUT_REP : UR_CM_ABOUT_REQ, reason, private_data,
		     private_len);
	cm_enter_linger(cm, id, now);
	return 0;
}

/* CM-BACKLOG-01 */
int ur_cm_ignore(struct ur_cm *cm, struct ur_cm_id handle)
{
	struct cm_id *id = cm_id_get(cm, handle);

	if (!id || (id->state != UR_CM_ST_REQ_RCVD && id->state != UR_CM_ST_SIDR_REQ_RCVD))
		return -EINVAL;
	cm->counters.ignored++;
	cm_set_state(cm, id, UR_CM_ST_FREE);
	return 0;
}

int ur_cm_destroy(struct ur_cm *cm, struct ur_cm_id handle, uint64_t now)
{
	struct cm_id *id = cm_id_get(cm, handle);

	if (!id)
		return -EINVAL;
	switch (id->state) {
	case UR_CM_ST_REQ_SENT:
		cm_tx_id_rej(cm, id, UR_CM_ABOUT_OTHER, UR_CM_REJ_TIMEOUT, NULL, 0);
		cm_set_state(cm, id, UR_CM_ST_FREE);
		return 0;
	case UR_CM_ST_SIDR_REQ_SENT:
		cm_set_state(cm, id, UR_CM_ST_FREE);
		return 0;
	case UR_CM_ST_SIDR_REQ_RCVD:
		return ur_cm_sidr_rep(cm, handle, UR_CM_SIDR_REJECT, ur_qpn(0), 0, NULL, 0, now);
	case UR_CM_ST_REQ_RCVD:
	case UR_CM_ST_REP_RCVD:
		return ur_cm_reject(cm, handle, UR_CM_REJ_CONSUMER, NULL, 0, now);
	case UR_CM_ST_REP_SENT:
		cm_tx_id_rej(cm, id, UR_CM_ABOUT_OTHER, UR_CM_REJ_CONSUMER, NULL, 0);
		cm_enter_timewait(cm, id, now);
		break;
	case UR_CM_ST_ESTABLISHED:
		cm_start_disconnect(cm, id, NULL, 0, now);
		break;
	default: /* ending already */
		break;
	}
	id->muted = true;
	return 0;
}

/*
 * CM-COMMID-02: a peer that gives up before it has our answer can name only its own REQ. Its fields
 * are easy to guess, except for the transaction id, which must therefore match.
 */
static struct cm_id *find_withdrawn_req(const struct ur_cm *cm, const struct cm_rx *rx,
					const struct ur_cm_rej *rej)
{
	struct ur_cursor info = ur_cursor_ro(rej->info, sizeof(rej->info));
	struct cm_id *id;

	if (rej->reason != UR_CM_REJ_TIMEOUT || rej->info_len < 8)
		return NULL;
	id = cm_peer_find(cm, &rx->src->sgid, ur_get64(&info), rej->local_comm_id);
	if (!id || id->tid != rx->hdr.tid)
		return NULL;
	return id->state == UR_CM_ST_REQ_RCVD || id->state == UR_CM_ST_REP_SENT ? id : NULL;
}

/* The id of a REJ: found by our communication id or, if the peer did not know it yet, by its own. */
static struct cm_id *rej_target(const struct ur_cm *cm, const struct cm_rx *rx,
				const struct ur_cm_rej *rej)
{
	struct cm_id *id = find_withdrawn_req(cm, rx, rej);

	if (!id)
		id = cm_id_by_comm(cm, rej->remote_comm_id);
	if (!id || id->sidr)
		return NULL;
	/* A peer that refuses our REQ may not have a communication id. */
	return !id->remote_known || id->remote_comm_id == rej->local_comm_id ? id : NULL;
}

/* True if a REJ of message `about` is valid in `state`. */
static bool rej_fits(uint8_t state, uint8_t about)
{
	switch (state) {
	case UR_CM_ST_REQ_SENT:
		return about == UR_CM_ABOUT_REQ || about == UR_CM_ABOUT_OTHER;
	case UR_CM_ST_REP_SENT:
		return about == UR_CM_ABOUT_REP || about == UR_CM_ABOUT_OTHER;
	case UR_CM_ST_REQ_RCVD:
	case UR_CM_ST_REP_RCVD:
	case UR_CM_ST_ESTABLISHED:
	case UR_CM_ST_DREQ_SENT:
		return about == UR_CM_ABOUT_OTHER;
	default:
		return false;
	}
}

enum ur_drop cm_rx_rej(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_rej *rej)
{
	struct cm_id *id = rej_target(cm, rx, rej);
	struct ur_cm_event ev;

	if (!id)
		return cm_unexpected(cm);
	if (!cm_from_peer(cm, rx, id))
		return UR_DROP_PEER;
	if (!rej_fits(id->state, rej->about))
		return cm_unexpected(cm);
	/* CM-PATIENCE-01 */
	if (id->state == UR_CM_ST_REQ_SENT && rej->reason == UR_CM_REJ_INV_SERVICE_ID &&
	    id->patience) {
		id->patience--;
		return UR_DROP_NONE;
	}
	ev = cm_event(id, UR_CM_EV_REJ_RCVD);
	ev.rej = rej;
	ev.private_data = rej->private_data;
	ev.private_len = sizeof(rej->private_data);
	if (id->state == UR_CM_ST_REQ_SENT) {
		ev.final = true;
		cm_set_state(cm, id, UR_CM_ST_FREE);
	} else if (id->state == UR_CM_ST_REQ_RCVD) {
		ev.final = true;
		id->has_last = false;
		cm_enter_linger(cm, id, rx->now);
	} else {
		cm_enter_timewait(cm, id, rx->now);
	}
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}

enum ur_drop cm_rx_dreq(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_dreq *dreq)
{
	enum ur_drop drop;
	struct cm_id *id = cm_match(cm, rx, dreq->remote_comm_id, dreq->local_comm_id, &drop);
	struct ur_cm_event ev;

	if (!id) {
		/* The connection no longer exists here, so confirm. Only a wrong peer gets no answer. */
		if (drop == UR_DROP_UNEXPECTED)
			cm_tx_drep(cm, rx, dreq);
		return drop;
	}
	switch (id->state) {
	case UR_CM_ST_TIMEWAIT:
	case UR_CM_ST_LINGER:
		cm_tx_drep(cm, rx, dreq);
		return cm_duplicate(cm);
	case UR_CM_ST_REQ_RCVD:
		return cm_unexpected(cm);
	default:
		break;
	}
	if (dreq->remote_qpn.v != id->lqpn.v) {
		cm->counters.malformed++;
		return UR_DROP_QPN;
	}
	ev = cm_event(id,
		      id->state == UR_CM_ST_DREQ_SENT ? UR_CM_EV_DISCONNECTED : UR_CM_EV_DREQ_RCVD);
	ev.private_data = dreq->private_data;
	ev.private_len = sizeof(dreq->private_data);
	cm_tx_drep(cm, rx, dreq);
	cm_enter_timewait(cm, id, rx->now);
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}

enum ur_drop cm_rx_drep(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_pair *drep)
{
	enum ur_drop drop;
	struct cm_id *id = cm_match(cm, rx, drep->remote_comm_id, drep->local_comm_id, &drop);
	struct ur_cm_event ev;

	if (!id)
		return drop;
	if (id->state != UR_CM_ST_DREQ_SENT)
		return cm_unexpected(cm);
	cm_enter_timewait(cm, id, rx->now);
	ev = cm_event(id, UR_CM_EV_DISCONNECTED);
	ev.private_data = drep->private_data;
	ev.private_len = sizeof(drep->private_data);
	cm_emit(cm, &ev);
	return UR_DROP_NONE;
}
