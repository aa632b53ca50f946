/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/cm.h"

/* What the kernel reports as the length of private data is that of the message's field (IBTA chapter 12.6). */
#define REQ_PRIVATE	 56
#define REP_PRIVATE	 196
#define REJ_PRIVATE	 148
#define SIDR_REQ_PRIVATE 180
#define SIDR_REP_PRIVATE 136

/* IBTA chapter 12.6.7.2, 12.11.2 */
#define REJECT_SERVICE	 8
#define SIDR_UNSUPPORTED 1

static void copy_data(struct ur_cm_event *to, const struct uroce_cm_event *from)
{
	if (from->param.private_data_len)
		memcpy(to->data, from->param.private_data, from->param.private_data_len);
}

static void fill_conn(struct ur_cm_event *to, const struct uroce_cm_event *from, uint8_t len)
{
	copy_data(to, from);
	to->ev.param.conn = (struct rdma_conn_param){
		.private_data = to->data,
		.private_data_len = len,
		/* What the peer may have in flight is what this end is to serve: rdma_get_cm_event(3). */
		.responder_resources = from->param.initiator_depth,
		.initiator_depth = from->param.responder_resources,
		.retry_count = from->param.retry_count,
		.rnr_retry_count = from->param.rnr_retry_count,
		.srq = from->param.srq,
		.qp_num = from->qpn,
	};
}

static void fill_ud(struct ur_cm_event *to, const struct uroce_cm_event *from, uint8_t len)
{
	const struct ur_cm_id *id = ur_cm_id(to->ev.id);
	struct rdma_ud_param *ud = &to->ev.param.ud;
	int index = 0;

	copy_data(to, from);
	ud->private_data = to->data;
	ud->private_data_len = len;
	ud->qp_num = from->qpn;
	ud->qkey = from->qkey;
	ud->ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	ud->ah_attr.grh.dgid = ur_cm_gid(&id->id.route.addr.dst_addr);
	ud->ah_attr.grh.hop_limit = 64;
	ud->ah_attr.grh.traffic_class = id->tos;
	if (ur_cm_device_of(&id->id.route.addr.src_addr, &index))
		ud->ah_attr.grh.sgid_index = (uint8_t)index;
}

/* A new id for a request that a listener got. */
static struct ur_cm_id *make_child(struct ur_cm_id *listener, struct uroce_cm_id *cm)
{
	struct ur_cm_id *id =
		ur_cm_new_id(listener->id.channel, listener->id.context, listener->id.ps);
	struct ur_cm_device *d;
	unsigned cnt;

	if (!id)
		return NULL;
	d = ur_cm_devices(&cnt);
	while (d->verbs != cm->context)
		d++;
	cm->user = id;
	id->cm = cm;
	id->state = UR_CM_REQUESTED;
	id->tos = listener->tos;
	id->ack_timeout = listener->ack_timeout;
	id->id.route.addr.src_storage = cm->local;
	id->id.route.addr.dst_storage = cm->peer;
	ur_cm_use_device(id, d);
	return id;
}

static void fill_request(struct ur_cm_event *to, const struct uroce_cm_event *from,
			 struct ur_cm_id *listener)
{
	to->owner = listener;
	to->ev.listen_id = &listener->id;
	to->ev.event = RDMA_CM_EVENT_CONNECT_REQUEST;
	to->ev.id->event = NULL;
	if (from->type == UROCE_CM_SIDR_REQUEST)
		fill_ud(to, from, SIDR_REQ_PRIVATE);
	else
		fill_conn(to, from, REQ_PRIVATE);
}

/* Its signs are the kernel's: the peer's reasons are positive, errors of this host negative. */
static void fill_end(struct ur_cm_event *to, const struct uroce_cm_event *from, struct ur_cm_id *id)
{
	id->state = UR_CM_ENDED;
	switch (from->type) {
	case UROCE_CM_REJECTED:
		to->ev.event = RDMA_CM_EVENT_REJECTED;
		to->ev.status = from->status;
		fill_conn(to, from, REJ_PRIVATE);
		break;
	case UROCE_CM_UNREACHABLE:
		to->ev.event = RDMA_CM_EVENT_UNREACHABLE;
		to->ev.status = -from->status;
		break;
	case UROCE_CM_SIDR_RESOLVED:
		to->ev.event = RDMA_CM_EVENT_UNREACHABLE;
		to->ev.status = from->status;
		fill_ud(to, from, SIDR_REP_PRIVATE);
		break;
	case UROCE_CM_DISCONNECTED:
		to->ev.event = RDMA_CM_EVENT_DISCONNECTED;
		break;
	default:
		to->ev.event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
		break;
	}
}

static void fill_answer(struct ur_cm_event *to, const struct uroce_cm_event *from,
			struct ur_cm_id *id)
{
	bool resolved = from->type == UROCE_CM_SIDR_RESOLVED && !from->status;

	to->owner = id;
	to->ev.id = &id->id;
	if (from->type == UROCE_CM_RESPONSE) {
		id->responded = true;
		to->ev.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
		fill_conn(to, from, REP_PRIVATE);
		return;
	}
	if (from->type != UROCE_CM_ESTABLISHED && !resolved) {
		fill_end(to, from, id);
		return;
	}
	id->state = UR_CM_CONNECTED;
	to->ev.event = RDMA_CM_EVENT_ESTABLISHED;
	if (resolved)
		fill_ud(to, from, SIDR_REP_PRIVATE);
	else
		fill_conn(to, from, id->active ? REP_PRIVATE : 0);
}

static void refuse(struct uroce_cm_id *cm, bool sidr)
{
	if (sidr)
		uroce_cm_sidr_reply(cm, NULL, 0, SIDR_UNSUPPORTED);
	else
		uroce_cm_reject(cm, REJECT_SERVICE, NULL, 0);
	uroce_cm_destroy_id(cm);
}

/* False: no id listens at that address, or the listener has no room. */
static bool fill_new(struct ur_cm_event *to, const struct uroce_cm_event *from)
{
	struct ur_cm_id *listener =
		ur_cm_listener(from->listen_id->user, (struct sockaddr *)&from->id->local);
	struct ur_cm_id *child;

	if (!listener) {
		refuse(from->id, from->type == UROCE_CM_SIDR_REQUEST);
		return false;
	}
	child = listener->pending < listener->backlog ? make_child(listener, from->id) : NULL;
	/* CM-BACKLOG-01: as the kernel does, so that the peer asks again. */
	if (!child) {
		uroce_cm_ignore(from->id);
		return false;
	}
	to->ev.id = &child->id;
	fill_request(to, from, listener);
	return true;
}

struct ur_cm_event *ur_cm_translate(const struct uroce_cm_event *from)
{
	bool request =
		from->type == UROCE_CM_CONNECT_REQUEST || from->type == UROCE_CM_SIDR_REQUEST;
	struct ur_cm_event *to = calloc(1, sizeof(*to));

	if (!to) {
		if (request)
			uroce_cm_ignore(from->id);
		return NULL;
	}
	if (!request) {
		fill_answer(to, from, from->id->user);
		return to;
	}
	if (fill_new(to, from))
		return to;
	free(to);
	return NULL;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg)
{
	struct ur_cm_event *e;
	int state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if ((int)event != UR_CM_EVENT_USER)
		return ur_cm_fail(EINVAL);
	e = calloc(1, sizeof(*e));
	if (!e)
		return -1;
	e->owner = ur_cm_id(id);
	e->ev.id = id;
	e->ev.event = event;
	e->ev.status = status;
	memcpy(&e->ev.param, &arg, sizeof(arg)); /* param.arg */
	state = ur_cm_enter();
	ur_cm_put(e);
	ur_cm_leave(state);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const name[] = {
#define NAME(e) [e] = #e
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
		NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),
		NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),
		NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
		NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),
		NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
#undef NAME
		[UR_CM_EVENT_USER] = "RDMA_CM_EVENT_USER",
	};

	return (size_t)event < sizeof(name) / sizeof(name[0]) && name[event] ? name[event]
									     : "UNKNOWN EVENT";
}
