/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "rdmacm/cm.h"
#include "thread/thread.h"

#define REJECT_CONSUMER 28 /* IBTA chapter 12.6.7.2 */
#define SIDR_REFUSED	2  /* IBTA chapter 12.11.2 */
#define RETRIES_MAX	7
/* qperf and perftest tell their client to connect before they listen. */
#define PATIENCE 2

static bool is_datagram(const struct ur_cm_id *id)
{
	return id->id.ps == RDMA_PS_UDP;
}

/* ---- connect ---- */

/* The device's limits are applied by liburoce. */
static int take_param(const struct ur_cm_id *id, const struct rdma_conn_param *p,
		      struct uroce_conn_param *to)
{
	struct ibv_device_attr limits;

	*to = (struct uroce_conn_param){
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = RETRIES_MAX,
		.rnr_retry_count = RETRIES_MAX,
		.timeout = id->ack_timeout,
		.min_rnr_timer = 12, /* 0.64 ms */
		.srq = id->id.srq != NULL,
	};
	if (!p)
		return 0;
	to->private_data = p->private_data;
	to->private_data_len = p->private_data_len;
	/* CM-RETRY-01 */
	to->retry_count = p->retry_count < RETRIES_MAX ? p->retry_count : RETRIES_MAX;
	to->rnr_retry_count = p->rnr_retry_count < RETRIES_MAX ? p->rnr_retry_count : RETRIES_MAX;
	to->responder_resources = p->responder_resources;
	to->initiator_depth = p->initiator_depth;
	/* More than the device has is an error, but the greatest number asks for what there is. */
	if (ibv_query_device(id->id.verbs, &limits))
		return EINVAL;
	if ((p->responder_resources != RDMA_MAX_RESP_RES &&
	     p->responder_resources > limits.max_qp_rd_atom) ||
	    (p->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	     p->initiator_depth > limits.max_qp_init_rd_atom))
		return EINVAL;
	return 0;
}

/* A queue pair of which only the number is given. Other types than RC have no port space here. */
static struct uroce_cm_qp number_of(const struct rdma_conn_param *p)
{
	return (struct uroce_cm_qp){p ? p->qp_num : 0, IBV_QPT_RC, p && p->srq};
}

/* Puts the id in another state, unless an event has changed it meanwhile. */
static bool advance(struct ur_cm_id *id, enum ur_cm_state from, enum ur_cm_state to)
{
	int state = ur_cm_enter();
	bool ok = id->state == from;

	if (ok)
		id->state = to;
	ur_cm_leave(state);
	return ok;
}

static int send_request(struct ur_cm_id *id, const struct rdma_conn_param *p)
{
	const struct sockaddr *peer = &id->id.route.addr.dst_addr;
	uint16_t port = ntohs(id->id.route.addr.dst_sin.sin_port);
	struct uroce_cm_qp qp = number_of(p);
	struct uroce_conn_param param;

	if (is_datagram(id))
		return uroce_cm_sidr_resolve(id->cm, peer, port, p ? p->private_data : NULL,
					     p ? p->private_data_len : 0);
	if (take_param(id, p, &param))
		return EINVAL;
	return id->id.qp ? uroce_cm_connect(id->cm, peer, id->id.qp, &param)
			 : uroce_cm_connect_qpn(id->cm, peer, &qp, &param);
}

static int start_connecting(struct ur_cm_id *id, const struct rdma_conn_param *p)
{
	int rc = id->cm ? 0 : uroce_cm_create_id(id->dev->channel, id, &id->cm);

	if (!rc)
		rc = uroce_cm_set_source(id->cm, &id->id.route.addr.src_addr);
	if (!rc)
		uroce_cm_set_patience(id->cm, PATIENCE);
	if (!rc && id->tos)
		rc = uroce_cm_set_service(id->cm, 0, id->tos);
	return rc ? rc : send_request(id, p);
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *p)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int rc, state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	/* Before the answer can arrive. */
	if (!advance(id, UR_CM_ROUTE_RESOLVED, UR_CM_CONNECTING))
		return ur_cm_fail(EINVAL);
	id->active = true;
	id->responded = false;
	state = ur_cancel_off();
	rc = start_connecting(id, p);
	ur_cancel_restore(state);
	if (rc) {
		advance(id, UR_CM_CONNECTING, UR_CM_ROUTE_RESOLVED);
		return ur_cm_fail(rc);
	}
	return ur_cm_complete(id);
}

/* For queue pairs that the program moves itself. No event follows. */
int rdma_establish(struct rdma_cm_id *base)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int rc, state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (base->qp || !id->responded || !advance(id, UR_CM_CONNECTING, UR_CM_CONNECTED))
		return ur_cm_fail(EINVAL);
	id->responded = false;
	state = ur_cancel_off();
	rc = uroce_cm_establish(id->cm);
	ur_cancel_restore(state);
	return ur_cm_fail(rc);
}

/* ---- answer ---- */

static int accept_datagrams(struct ur_cm_id *id, const struct rdma_conn_param *p)
{
	uint32_t qpn = id->id.qp ? id->id.qp->qp_num : p ? p->qp_num : 0;
	int rc = uroce_cm_sidr_reply_qpn(id->cm, qpn, RDMA_UDP_QKEY, 0, p ? p->private_data : NULL,
					 p ? p->private_data_len : 0);

	if (!rc)
		advance(id, UR_CM_REQUESTED, UR_CM_CONNECTED);
	return rc;
}

static int accept_connection(struct ur_cm_id *id, const struct rdma_conn_param *p)
{
	struct uroce_cm_qp qp = number_of(p);
	struct uroce_conn_param param;
	int rc;

	if (take_param(id, p, &param) || !advance(id, UR_CM_REQUESTED, UR_CM_CONNECTING))
		return EINVAL;
	rc = id->id.qp ? uroce_cm_accept(id->cm, id->id.qp, &param)
		       : uroce_cm_accept_qpn(id->cm, &qp, &param);
	if (rc)
		advance(id, UR_CM_CONNECTING, UR_CM_REQUESTED);
	return rc;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *p)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int rc, state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (id->state != UR_CM_REQUESTED)
		return ur_cm_fail(EINVAL);
	state = ur_cancel_off();
	rc = is_datagram(id) ? accept_datagrams(id, p) : accept_connection(id, p);
	ur_cancel_restore(state);
	if (rc)
		return ur_cm_fail(rc);
	return is_datagram(id) ? 0 : ur_cm_complete(id);
}

int rdma_reject(struct rdma_cm_id *base, const void *private_data, uint8_t private_data_len)
{
	struct ur_cm_id *id = ur_cm_id(base);
	bool response = id->state == UR_CM_CONNECTING && id->responded;
	int rc, state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (id->state != UR_CM_REQUESTED && !response)
		return ur_cm_fail(EINVAL);
	state = ur_cancel_off();
	rc = is_datagram(id)
		     ? uroce_cm_sidr_reply_qpn(id->cm, 0, 0, SIDR_REFUSED, private_data,
					       private_data_len)
		     : uroce_cm_reject(id->cm, REJECT_CONSUMER, private_data, private_data_len);
	ur_cancel_restore(state);
	if (!rc)
		advance(id, response ? UR_CM_CONNECTING : UR_CM_REQUESTED, UR_CM_ENDED);
	return ur_cm_fail(rc);
}

/* ---- disconnect ---- */

static void stop_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (qp)
		ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/*
 * As in the kernel, which succeeds whenever there was a connection, or an attempt at one: after the peer's DREQ it is the
 * program's answer.
 */
int rdma_disconnect(struct rdma_cm_id *base)
{
	struct ur_cm_id *id = ur_cm_id(base);
	bool waits;
	int rc, state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (!id->cm || is_datagram(id))
		return ur_cm_fail(EINVAL);
	state = ur_cancel_off();
	rc = uroce_cm_disconnect(id->cm);
	if (rc)
		stop_qp(base->qp);
	ur_cancel_restore(state);
	if (rc && rc != ENOTCONN)
		return ur_cm_fail(rc);
	state = ur_cm_enter();
	waits = !rc || ur_cm_has_event(id);
	ur_cm_leave(state);
	return waits ? ur_cm_complete(id) : 0;
}

/* A packet has arrived on a connection whose RTU has not. */
int rdma_notify(struct rdma_cm_id *base, enum ibv_event_type event)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (!id->cm || is_datagram(id) || event != IBV_EVENT_COMM_EST)
		return ur_cm_fail(EINVAL);
	state = ur_cancel_off();
	/* Otherwise it is established, or has ended. */
	if (id->state == UR_CM_CONNECTING && !id->active)
		uroce_cm_establish(id->cm);
	ur_cancel_restore(state);
	return 0;
}

/* ---- queue pairs that the program moves ---- */

static int init_datagrams(struct ibv_qp_attr *attr, int *mask)
{
	attr->port_num = 1;
	attr->pkey_index = 0;
	attr->qkey = RDMA_UDP_QKEY;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
	struct ur_cm_id *id = ur_cm_id(base);

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (!id->dev)
		return ur_cm_fail(EINVAL);
	if (is_datagram(id))
		return init_datagrams(attr, mask);
	if (id->cm)
		return ur_cm_fail(uroce_cm_init_qp_attr(id->cm, attr, mask));
	if (attr->qp_state != IBV_QPS_INIT)
		return ur_cm_fail(EINVAL);
	attr->port_num = 1;
	attr->pkey_index = 0;
	attr->qp_access_flags = 0;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	return 0;
}
