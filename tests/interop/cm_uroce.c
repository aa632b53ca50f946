/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroce/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

struct cm {
	struct uroce_event_channel *channel;
	struct uroce_cm_id *listener, *id;
};

bool cm_open(struct session *s)
{
	s->cm = calloc(1, sizeof(*s->cm));
	s->cm->channel = uroce_create_event_channel(s->dev->ctx);
	return s->cm->channel != NULL || failed(s, "create_event_channel: %s", strerror(errno));
}

static struct uroce_conn_param param_of(const struct session *s)
{
	return (struct uroce_conn_param){
		.responder_resources = (uint8_t)s->spec.rd,
		.initiator_depth = (uint8_t)s->spec.rd,
		.retry_count = (uint8_t)s->spec.retry,
		.rnr_retry_count = (uint8_t)s->spec.rnr_retry,
		.timeout = (uint8_t)s->spec.timeout,
		.min_rnr_timer = (uint8_t)s->spec.rnr_timer,
		.path_mtu = (uint16_t)s->spec.mtu,
	};
}

/* The next event, which must have this type. The caller acknowledges it. */
static struct uroce_cm_event *next(struct session *s, enum uroce_cm_event_type type)
{
	struct uroce_cm_event *event;
	int rc;

	do {
		rc = uroce_get_cm_event(s->cm->channel, (int)s->spec.stall * 1000, &event);
		if (rc != 0) {
			failed(s, "no event '%s': %s", uroce_cm_event_str(type), strerror(rc));
			return NULL;
		}
		if (event->type != UROCE_CM_TIMEWAIT_EXIT || type == UROCE_CM_TIMEWAIT_EXIT)
			break;
		uroce_ack_cm_event(event); /* of an earlier connection */
	} while (true);
	if (event->type == type)
		return event;
	failed(s, "event '%s' with status %d, not '%s'", uroce_cm_event_str(event->type),
	       event->status, uroce_cm_event_str(type));
	uroce_ack_cm_event(event);
	return NULL;
}

static bool await(struct session *s, enum uroce_cm_event_type type)
{
	struct uroce_cm_event *event = next(s, type);

	if (event == NULL)
		return false;
	uroce_ack_cm_event(event);
	return true;
}

static bool make_qp(struct session *s)
{
	struct ibv_qp_init_attr init = session_qp_attr(s);

	s->qp = uroce_create_qp(s->pd, &init);
	if (s->qp == NULL)
		return failed(s, "create_qp: %s", strerror(errno));
	return session_set_mode(s, s->qp);
}

bool cm_listen(struct session *s)
{
	int rc = uroce_cm_create_id(s->cm->channel, NULL, &s->cm->listener);

	if (rc == 0)
		rc = uroce_cm_listen(s->cm->listener, CM_PORT);
	return rc == 0 || failed(s, "cm_listen: %s", strerror(rc));
}

bool cm_accept(struct session *s)
{
	struct uroce_conn_param param = param_of(s);
	struct uroce_cm_event *event = next(s, UROCE_CM_CONNECT_REQUEST);
	int rc;

	if (event == NULL)
		return false;
	s->cm->id = event->id;
	uroce_ack_cm_event(event);
	if (!make_qp(s))
		return false;
	rc = uroce_cm_accept(s->cm->id, s->qp, &param);
	return rc == 0 ? await(s, UROCE_CM_ESTABLISHED) : failed(s, "cm_accept: %s", strerror(rc));
}

bool cm_refuse(struct session *s)
{
	struct uroce_cm_event *event = next(s, UROCE_CM_CONNECT_REQUEST);
	struct uroce_cm_id *id;
	int rc;

	if (event == NULL)
		return false;
	id = event->id;
	uroce_ack_cm_event(event);
	rc = uroce_cm_reject(id, 28, CM_REFUSAL, sizeof(CM_REFUSAL));
	if (rc == 0)
		rc = uroce_cm_destroy_id(id);
	return rc == 0 || failed(s, "cm_reject: %s", strerror(rc));
}

static bool start_connect(struct session *s, uint16_t port)
{
	struct uroce_conn_param param = param_of(s);
	struct sockaddr_storage peer = cm_peer(s, port);
	int rc = uroce_cm_create_id(s->cm->channel, NULL, &s->cm->id);

	if (rc != 0)
		return failed(s, "cm_create_id: %s", strerror(rc));
	if (!make_qp(s))
		return false;
	rc = uroce_cm_connect(s->cm->id, (struct sockaddr *)&peer, s->qp, &param);
	return rc == 0 || failed(s, "cm_connect: %s", strerror(rc));
}

bool cm_connect(struct session *s)
{
	return start_connect(s, CM_PORT) && await(s, UROCE_CM_ESTABLISHED);
}

/* Destroys the queue pair and the id of a connection that has ended. */
static bool drop(struct session *s)
{
	int rc = uroce_destroy_qp(s->qp);

	s->qp = NULL;
	if (rc == 0)
		rc = uroce_cm_destroy_id(s->cm->id);
	s->cm->id = NULL;
	return rc == 0 || failed(s, "cannot destroy the queue pair and the id: %s", strerror(rc));
}

bool cm_expect_refusal(struct session *s, bool no_listener)
{
	struct uroce_cm_event *event;
	bool ok;

	if (!start_connect(s, no_listener ? CM_PORT_UNUSED : CM_PORT))
		return false;
	event = next(s, UROCE_CM_REJECTED);
	if (event == NULL)
		return false;
	ok = event->status == (no_listener ? 8 : 28);
	if (!ok)
		failed(s, "refused with reason %d", event->status);
	if (ok && !no_listener &&
	    (event->param.private_data_len < sizeof(CM_REFUSAL) ||
	     memcmp(event->param.private_data, CM_REFUSAL, sizeof(CM_REFUSAL)) != 0))
		ok = failed(s, "the refusal does not say '" CM_REFUSAL "'");
	uroce_ack_cm_event(event);
	return drop(s) && ok;
}

bool cm_disconnect(struct session *s, bool by_us)
{
	int rc = by_us ? uroce_cm_disconnect(s->cm->id) : 0;

	if (rc != 0)
		return failed(s, "cm_disconnect: %s", strerror(rc));
	return await(s, UROCE_CM_DISCONNECTED) && drop(s);
}

void cm_close(struct session *s)
{
	struct uroce_cm_event *event;

	if (s->cm == NULL)
		return;
	if (s->cm->id != NULL)
		uroce_cm_destroy_id(s->cm->id);
	if (s->cm->listener != NULL)
		uroce_cm_destroy_id(s->cm->listener);
	while (s->cm->channel != NULL && uroce_get_cm_event(s->cm->channel, 0, &event) == 0)
		uroce_ack_cm_event(event);
	if (s->cm->channel != NULL && uroce_destroy_event_channel(s->cm->channel) != 0)
		failed(s, "cannot destroy the event channel");
	free(s->cm);
	s->cm = NULL;
}
