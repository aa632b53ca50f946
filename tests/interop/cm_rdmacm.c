/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

struct cm {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
};

bool cm_open(struct session *s)
{
	s->cm = calloc(1, sizeof(*s->cm));
	s->cm->channel = rdma_create_event_channel();
	return s->cm->channel != NULL ||
	       failed(s, "rdma_create_event_channel: %s", strerror(errno));
}

static struct rdma_conn_param param_of(const struct session *s)
{
	return (struct rdma_conn_param){
		.responder_resources = (uint8_t)s->spec.rd,
		.initiator_depth = (uint8_t)s->spec.rd,
		.retry_count = (uint8_t)s->spec.retry,
		.rnr_retry_count = (uint8_t)s->spec.rnr_retry,
	};
}

static struct rdma_cm_event *next(struct session *s, enum rdma_cm_event_type type)
{
	struct pollfd pfd = {.fd = s->cm->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	do {
		if (poll(&pfd, 1, (int)s->spec.stall * 1000) != 1 ||
		    rdma_get_cm_event(s->cm->channel, &event) != 0) {
			failed(s, "no event %s", rdma_event_str(type));
			return NULL;
		}
		if (event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			break;
		rdma_ack_cm_event(event); /* of an earlier connection */
	} while (true);
	if (event->event == type)
		return event;
	failed(s, "event %s with status %d, not %s", rdma_event_str(event->event), event->status,
	       rdma_event_str(type));
	rdma_ack_cm_event(event);
	return NULL;
}

static bool await(struct session *s, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next(s, type);

	return event != NULL && rdma_ack_cm_event(event) == 0;
}

static bool make_qp(struct session *s)
{
	struct ibv_qp_init_attr init = session_qp_attr(s);
	uint8_t timeout = (uint8_t)s->spec.timeout;

	rdma_set_option(s->cm->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			sizeof(timeout));
	if (rdma_create_qp(s->cm->id, s->pd, &init) != 0)
		return failed(s, "rdma_create_qp: %s", strerror(errno));
	s->qp = s->cm->id->qp;
	return true;
}

bool cm_listen(struct session *s)
{
	struct sockaddr_storage any = cm_peer(s, CM_PORT);

	if (any.ss_family == AF_INET)
		((struct sockaddr_in *)&any)->sin_addr.s_addr = INADDR_ANY;
	else
		((struct sockaddr_in6 *)&any)->sin6_addr = in6addr_any;
	if (rdma_create_id(s->cm->channel, &s->cm->listener, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(s->cm->listener, (struct sockaddr *)&any) != 0 ||
	    rdma_listen(s->cm->listener, 8) != 0)
		return failed(s, "rdma_listen: %s", strerror(errno));
	return true;
}

bool cm_accept(struct session *s)
{
	struct rdma_conn_param param = param_of(s);
	struct rdma_cm_event *event = next(s, RDMA_CM_EVENT_CONNECT_REQUEST);

	if (event == NULL)
		return false;
	s->cm->id = event->id;
	rdma_ack_cm_event(event);
	if (!make_qp(s))
		return false;
	if (rdma_accept(s->cm->id, &param) != 0)
		return failed(s, "rdma_accept: %s", strerror(errno));
	return await(s, RDMA_CM_EVENT_ESTABLISHED);
}

bool cm_refuse(struct session *s)
{
	struct rdma_cm_event *event = next(s, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id;

	if (event == NULL)
		return false;
	id = event->id;
	rdma_ack_cm_event(event);
	if (rdma_reject(id, CM_REFUSAL, sizeof(CM_REFUSAL)) != 0 || rdma_destroy_id(id) != 0)
		return failed(s, "rdma_reject: %s", strerror(errno));
	return true;
}

static bool start_connect(struct session *s, uint16_t port)
{
	struct rdma_conn_param param = param_of(s);
	struct sockaddr_storage peer = cm_peer(s, port);

	if (rdma_create_id(s->cm->channel, &s->cm->id, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_resolve_addr(s->cm->id, NULL, (struct sockaddr *)&peer, 5000) != 0)
		return failed(s, "rdma_resolve_addr: %s", strerror(errno));
	if (!await(s, RDMA_CM_EVENT_ADDR_RESOLVED))
		return false;
	if (rdma_resolve_route(s->cm->id, 5000) != 0)
		return failed(s, "rdma_resolve_route: %s", strerror(errno));
	if (!await(s, RDMA_CM_EVENT_ROUTE_RESOLVED) || !make_qp(s))
		return false;
	if (rdma_connect(s->cm->id, &param) != 0)
		return failed(s, "rdma_connect: %s", strerror(errno));
	return true;
}

bool cm_connect(struct session *s)
{
	return start_connect(s, CM_PORT) && await(s, RDMA_CM_EVENT_ESTABLISHED);
}

static bool drop(struct session *s)
{
	rdma_destroy_qp(s->cm->id);
	s->qp = NULL;
	if (rdma_destroy_id(s->cm->id) != 0)
		return failed(s, "rdma_destroy_id: %s", strerror(errno));
	s->cm->id = NULL;
	return true;
}

bool cm_expect_refusal(struct session *s, bool no_listener)
{
	struct rdma_cm_event *event;
	bool ok;

	if (!start_connect(s, no_listener ? CM_PORT_UNUSED : CM_PORT))
		return false;
	event = next(s, RDMA_CM_EVENT_REJECTED);
	if (event == NULL)
		return false;
	ok = event->status == (no_listener ? 8 : 28);
	if (!ok)
		failed(s, "refused with reason %d", event->status);
	if (ok && !no_listener &&
	    (event->param.conn.private_data_len < sizeof(CM_REFUSAL) ||
	     memcmp(event->param.conn.private_data, CM_REFUSAL, sizeof(CM_REFUSAL)) != 0))
		ok = failed(s, "the refusal does not say '" CM_REFUSAL "'");
	rdma_ack_cm_event(event);
	return drop(s) && ok;
}

bool cm_disconnect(struct session *s, bool by_us)
{
	if (by_us && rdma_disconnect(s->cm->id) != 0)
		return failed(s, "rdma_disconnect: %s", strerror(errno));
	if (!await(s, RDMA_CM_EVENT_DISCONNECTED))
		return false;
	if (!by_us)
		rdma_disconnect(s->cm->id); /* answers */
	return drop(s);
}

void cm_close(struct session *s)
{
	if (s->cm == NULL)
		return;
	if (s->qp != NULL && s->cm->id != NULL) {
		rdma_destroy_qp(s->cm->id);
		s->qp = NULL;
	}
	if (s->cm->id != NULL)
		rdma_destroy_id(s->cm->id);
	if (s->cm->listener != NULL)
		rdma_destroy_id(s->cm->listener);
	if (s->cm->channel != NULL)
		rdma_destroy_event_channel(s->cm->channel);
	free(s->cm);
	s->cm = NULL;
}
