/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rdmacm/cm.h"

#define REJECT_CONSUMER 28 /* IBTA chapter 12.6.7.2 */
#define SIDR_REFUSED	2  /* IBTA chapter 12.11.2 */
#define DEFAULT_RETRIES 7

static bool is_datagram(const struct ur_cm_id *id)
{
	return id->id.ps == RDMA_PS_UDP;
}

/* ---- listen ---- */

static int listen_on(struct ur_cm_id *id, struct ur_cm_device *dev, struct uroce_cm_id **to)
{
	uint16_t port = ntohs(id->id.route.addr.src_sin.sin_port);
	int rc = uroce_cm_create_id(dev->channel, id, to);

	if (rc)
		return rc;
	rc = is_datagram(id) ? uroce_cm_sidr_listen(*to, port) : uroce_cm_listen(*to, port);
	if (rc) {
		uroce_cm_destroy_id(*to);
		*to = NULL;
	} else if (secure_getenv("UROCE_LOG")) {
		fprintf(stderr, "uroce: %s: listens on port %u\n", dev->verbs->device->name, port);
	}
	return rc;
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct sockaddr_in any = {.sin_family = AF_INET};
	unsigned cnt;
	struct ur_cm_device *dev = ur_cm_devices(&cnt);
	int rc = 0;

	if (id->state == UR_CM_IDLE && rdma_bind_addr(base, (struct sockaddr *)&any))
		return -1;
	if (id->state != UR_CM_BOUND)
		return ur_cm_fail(EINVAL);
	for (unsigned i = 0; i < cnt && !rc; i++)
		if (!id->dev || id->dev == &dev[i])
			rc = listen_on(id, &dev[i], &id->listeners[i]);
	if (!rc)
		id->state = UR_CM_LISTENING;
	for (unsigned i = 0; i < cnt && rc; i++) {
		if (id->listeners[i])
			uroce_cm_destroy_id(id->listeners[i]);
		id->listeners[i] = NULL;
	}
	return ur_cm_fail(rc);
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
		.retry_count = DEFAULT_RETRIES,
		.rnr_retry_count = DEFAULT_RETRIES,
		.timeout = id->ack_timeout,
		.min_rnr_timer = 12, /* 0.64 ms */
		.srq = id->id.srq != NULL,
	};
	if (!p)
		return 0;
	to->private_data = p->private_data;
	to->private_data_len = p->private_data_len;
	to->retry_count = p->retry_count & 7;
	to->rnr_retry_count = p->rnr_retry_count & 7;
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

static int start_connecting(struct ur_cm_id *id, const struct rdma_conn_param *p)
{
	const struct sockaddr *peer = &id->id.route.addr.dst_addr;
	uint16_t port = ntohs(id->id.route.addr.dst_sin.sin_port);
	struct uroce_conn_param param;

	if (is_datagram(id))
		return uroce_cm_sidr_resolve(id->cm, peer, port, p ? p->private_data : NULL,
					     p ? p->private_data_len : 0);
	if (!id->id.qp)
		return EOPNOTSUPP;
	return take_param(id, p, &param) ? EINVAL
					 : uroce_cm_connect(id->cm, peer, id->id.qp, &param);
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *p)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int rc = 0;

	if (id->state != UR_CM_ROUTE_RESOLVED)
		return ur_cm_fail(EINVAL);
	if (!id->cm)
		rc = uroce_cm_create_id(id->dev->channel, id, &id->cm);
	if (!rc && id->tos)
		rc = uroce_cm_set_service(id->cm, 0, id->tos);
	if (rc)
		return ur_cm_fail(rc);
	/* Before the answer can arrive. */
	id->active = true;
	id->state = UR_CM_CONNECTING;
	rc = start_connecting(id, p);
	if (rc) {
		id->state = UR_CM_ROUTE_RESOLVED;
		return ur_cm_fail(rc);
	}
	base->route.addr.src_storage = id->cm->local;
	return ur_cm_complete(id);
}

/* ---- answer ---- */

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *p)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct uroce_conn_param param;
	int rc;

	if (id->state != UR_CM_REQUESTED)
		return ur_cm_fail(EINVAL);
	if (!base->qp)
		return ur_cm_fail(EOPNOTSUPP);
	if (is_datagram(id)) {
		rc = uroce_cm_sidr_reply(id->cm, base->qp, RDMA_UDP_QKEY, 0);
		if (!rc)
			id->state = UR_CM_CONNECTED;
		return ur_cm_fail(rc);
	}
	rc = take_param(id, p, &param);
	if (rc)
		return ur_cm_fail(rc);
	id->state = UR_CM_CONNECTING;
	rc = uroce_cm_accept(id->cm, base->qp, &param);
	if (rc) {
		id->state = UR_CM_REQUESTED;
		return ur_cm_fail(rc);
	}
	return ur_cm_complete(id);
}

int rdma_reject(struct rdma_cm_id *base, const void *private_data, uint8_t private_data_len)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int rc;

	if (id->state != UR_CM_REQUESTED)
		return ur_cm_fail(EINVAL);
	rc = is_datagram(id)
		     ? uroce_cm_sidr_reply(id->cm, NULL, 0, SIDR_REFUSED)
		     : uroce_cm_reject(id->cm, REJECT_CONSUMER, private_data, private_data_len);
	if (!rc)
		id->state = UR_CM_ENDED;
	return ur_cm_fail(rc);
}

int rdma_disconnect(struct rdma_cm_id *base)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int rc;

	if (!id->cm || is_datagram(id))
		return ur_cm_fail(EINVAL);
	rc = uroce_cm_disconnect(id->cm);
	if (rc)
		return ur_cm_fail(rc == ENOTCONN ? EINVAL : rc);
	return ur_cm_complete(id);
}

/* A packet on a connection that is not established yet: liburoce sees it itself. */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return 0;
}
