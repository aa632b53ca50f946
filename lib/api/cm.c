/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cm_priv.h"
#include "api/lease.h"
#include "api/follow.h"
#include "edge/random.h"
#include "wire/assert.h"

#define TIME_WAIT_NS UINT64_C(1000000000)

/* ---- queues; cm->lock is held ---- */

static void push(struct uroce_event_channel *ch, struct ur_cm_note *note)
{
	uint64_t one = 1;

	TAILQ_INSERT_TAIL(&ch->queue, note, link);
	note->queued = true;
	/* Never blocks: the queue is far too short for the counter to overflow. */
	if (write(ch->fd, &one, sizeof(one)) < 0)
		UR_ASSERT(errno == EAGAIN);
}

static void pull(struct uroce_event_channel *ch, struct ur_cm_note *note)
{
	uint64_t one;

	TAILQ_REMOVE(&ch->queue, note, link);
	note->queued = false;
	if (read(ch->fd, &one, sizeof(one)) < 0)
		UR_ASSERT(errno == EAGAIN);
}

struct ur_cm_note *ur_cm_api_pop(struct uroce_event_channel *ch, bool requests, bool *empty)
{
	struct ur_cm_api *cm = ch->dev->cm;
	struct ur_cm_note *note;

	pthread_mutex_lock(&cm->lock);
	note = TAILQ_FIRST(&ch->queue);
	*empty = !note;
	if (note && note->owner == UR_CM_OWNER_REQUEST && !requests)
		note = NULL;
	if (note)
		pull(ch, note);
	pthread_mutex_unlock(&cm->lock);
	return note;
}

void ur_cm_api_give(struct ur_cm_api *cm, struct ur_cm_note *note)
{
	pthread_mutex_lock(&cm->lock);
	TAILQ_INSERT_HEAD(&cm->spare, note, link);
	pthread_mutex_unlock(&cm->lock);
}

void ur_cm_api_purge(struct ur_cm_api *cm, struct ur_api_cm_id *id)
{
	pthread_mutex_lock(&cm->lock);
	for (unsigned i = 0; i < id->note_cnt; i++)
		if (id->notes[i].queued)
			pull(id->base.channel, &id->notes[i]);
	id->note_cnt = 0;
	pthread_mutex_unlock(&cm->lock);
}

static struct ur_cm_note *pull_request(struct ur_cm_api *cm, const struct ur_api_cm_id *listener)
{
	struct uroce_event_channel *ch = listener->base.channel;
	struct ur_cm_note *note;

	pthread_mutex_lock(&cm->lock);
	TAILQ_FOREACH(note, &ch->queue, link)
	if (note->owner == UR_CM_OWNER_REQUEST && note->id == listener)
		break;
	if (note)
		pull(ch, note);
	pthread_mutex_unlock(&cm->lock);
	return note;
}

void ur_cm_api_refuse(struct ur_cm_api *cm, const struct ur_api_cm_id *listener, uint64_t now_ns)
{
	struct ur_cm_note *note;

	while ((note = pull_request(cm, listener))) {
		ur_cm_destroy(ur_cm_api_core(cm->dev), note->handle, now_ns);
		ur_cm_api_give(cm, note);
	}
}

void ur_cm_api_call(struct ur_device *dev, void (*fn)(void *arg, uint64_t now_ns), void *arg)
{
	ur_worker_call(dev->workers[0], fn, arg);
	ur_device_progress(dev);
}

/* ---- events of the core, on worker 0 ---- */

static void take_offer(struct ur_cm_note *note, const struct ur_offer *offer)
{
	if (!offer)
		return;
	note->offer = *offer;
	note->extended = offer->flags & UR_OFFER_EXTENDED;
}

static void take_private(struct ur_cm_note *note, const struct ur_cm_event *ev)
{
	size_t n = ev->private_len;

	if (n > sizeof(note->private_data))
		n = sizeof(note->private_data);
	note->private_len = (uint8_t)n;
	memcpy(note->private_data, ev->private_data, n);
}

static void take_req(struct ur_cm_note *note, const struct ur_cm_event *ev)
{
	const struct ur_cm_req *req = ev->req;

	note->qpn = req->qpn;
	note->sq_psn = ev->sq_psn;
	note->transport = req->transport;
	note->pmtu = req->pmtu;
	note->ack_timeout = req->primary.ack_timeout;
	note->sl = req->primary.sl;
	note->tclass = req->primary.tclass;
	note->retry_cnt = req->retry_cnt;
	note->rnr_retry = req->rnr_retry;
	note->responder_resources = req->responder_resources;
	note->initiator_depth = req->initiator_depth;
	note->srq = req->srq;
}

static void take_rep(struct ur_cm_note *note, const struct ur_cm_event *ev)
{
	const struct ur_cm_rep *rep = ev->rep;

	note->qpn = rep->qpn;
	note->sq_psn = ev->sq_psn;
	note->rnr_retry = rep->rnr_retry;
	note->responder_resources = rep->responder_resources;
	note->initiator_depth = rep->initiator_depth;
	note->srq = rep->srq;
}

/* The reason to refuse a REQ without asking the application; 0: none. */
static enum ur_cm_rej_reason check_req(const struct ur_cm_api *cm, const struct ur_cm_event *ev)
{
	if (ev->req->pmtu + 7u > cm->dev->mtu_shift)
		return UR_CM_REJ_INV_MTU;
	if (!ur_device_serves(cm->dev, ev->req->primary.sl))
		return UR_CM_REJ_INV_SL;
	return 0;
}

uint8_t ur_cm_api_tclass(const struct ur_device *dev, uint8_t named)
{
	return named >> 2 ? (uint8_t)((named & 0xfc) | ur_dscp_map_ecn(dev)) : 0;
}

/* CM-SL-01: answers have the traffic class of the future connection. */
static void set_service(const struct ur_cm_api *cm, const struct ur_cm_event *ev)
{
	const struct ur_cm_path *path = &ev->req->primary;
	struct ur_cm_service service = {path->sl, ur_cm_api_tclass(cm->dev, path->tclass)};

	ur_cm_set_service(ur_cm_api_core(cm->dev), ev->id, &service);
}

static void set_dscp(void *ctx, const struct ur_cm_service *service, struct ur_path *path)
{
	const struct ur_cm_api *cm = ctx;
	struct ibv_ah_attr av = {.sl = service->sl, .grh.traffic_class = service->tclass};

	ur_dscp_map_update_path(cm->dev, &av, path);
	ur_follow_path(cm->dev, path);
}

/* NULL if all are in use. Under cm->lock. */
static struct ur_cm_note *take_spare(struct ur_cm_api *cm)
{
	struct ur_cm_note *note = TAILQ_FIRST(&cm->spare);

	if (note)
		TAILQ_REMOVE(&cm->spare, note, link);
	else if (cm->begun < UR_CM_API_BACKLOG)
		note = &cm->backlog[cm->begun++];
	return note;
}

static void on_request(struct ur_cm_api *cm, const struct ur_cm_event *ev, uint64_t now_ns)
{
	struct ur_api_cm_id *listener =
		(void *)((uint8_t *)ev->ctx - offsetof(struct ur_api_cm_id, owner));
	struct ur_cm *core = ur_cm_api_core(cm->dev);
	bool sidr = ev->type == UR_CM_EV_SIDR_REQ_RCVD;
	enum ur_cm_rej_reason reason = sidr ? 0 : check_req(cm, ev);
	struct ur_cm_note *note = NULL;

	pthread_mutex_lock(&cm->lock);
	if (!reason)
		note = take_spare(cm);
	pthread_mutex_unlock(&cm->lock);
	if (!note) {
		if (sidr)
			ur_cm_destroy(core, ev->id, now_ns);
		else
			ur_cm_reject(core, ev->id, reason ? reason : UR_CM_REJ_NO_RESOURCES, NULL,
				     0, now_ns);
		return;
	}
	*note = (struct ur_cm_note){.owner = UR_CM_OWNER_REQUEST,
				    .id = listener,
				    .handle = ev->id,
				    .type = ev->type,
				    .peer = ev->src->sgid,
				    .local = ev->src->dgid,
				    .peer_port = ev->ip ? ev->ip->sport : 0};
	note->has_mac = true;
	memcpy(note->mac, ev->src->path.hdr, sizeof(note->mac));
	if (!sidr) {
		take_req(note, ev);
		set_service(cm, ev);
	}
	take_offer(note, ev->offer);
	take_private(note, ev);
	ur_cm_set_ctx(core, ev->id, &note->owner);
	pthread_mutex_lock(&cm->lock);
	push(listener->base.channel, note);
	pthread_mutex_unlock(&cm->lock);
}

/* The peer gave up before its request was fetched, so the application gets no event. */
static void withdraw(struct ur_cm_api *cm, struct ur_cm_note *note)
{
	pthread_mutex_lock(&cm->lock);
	/* Otherwise another thread is fetching it, and will find that the handle is stale. */
	if (note->queued) {
		pull(note->id->base.channel, note);
		TAILQ_INSERT_HEAD(&cm->spare, note, link);
	}
	pthread_mutex_unlock(&cm->lock);
}

static void on_id(struct ur_cm_api *cm, struct ur_api_cm_id *id, const struct ur_cm_event *ev)
{
	struct ur_cm_note *note;

	pthread_mutex_lock(&cm->lock);
	UR_ASSERT(id->note_cnt < UR_CM_API_NOTES);
	note = &id->notes[id->note_cnt++];
	*note = (struct ur_cm_note){.owner = UR_CM_OWNER_ID,
				    .id = id,
				    .handle = ev->id,
				    .type = ev->type,
				    .final = ev->final};
	switch (ev->type) {
	case UR_CM_EV_REP_RCVD:
		take_rep(note, ev);
		break;
	case UR_CM_EV_REJ_RCVD:
		note->status = ev->rej->reason;
		break;
	case UR_CM_EV_UNREACHABLE:
		note->status = ETIMEDOUT;
		break;
	case UR_CM_EV_SIDR_REP_RCVD:
		note->status = ev->sidr_rep->status;
		note->qpn = ev->sidr_rep->qpn;
		note->qkey = ev->sidr_rep->qkey;
		break;
	default:
		break;
	}
	take_offer(note, ev->offer);
	if (ev->private_len)
		take_private(note, ev);
	push(id->base.channel, note);
	pthread_mutex_unlock(&cm->lock);
}

void ur_cm_api_sink(void *ctx, const struct ur_cm_event *ev)
{
	struct ur_cm_api *cm = ctx;
	enum ur_cm_owner *owner = ev->ctx;

	switch (ev->type) {
	case UR_CM_EV_REQ_RCVD:
	case UR_CM_EV_SIDR_REQ_RCVD:
		/* The event has no time. That of the last round is not later than the core's. */
		on_request(cm, ev, ur_worker_last_ns(cm->dev->workers[0]));
		break;
	case UR_CM_EV_MRA_RCVD: /* the core itself extends its timeout */
		break;
	default:
		if (*owner == UR_CM_OWNER_REQUEST)
			withdraw(cm, (struct ur_cm_note *)owner);
		else
			on_id(cm, (void *)((uint8_t *)owner - offsetof(struct ur_api_cm_id, owner)),
			      ev);
		break;
	}
}

/* ---- life ---- */

int ur_cm_api_new(struct ur_device *dev)
{
	struct ur_cm_api *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return ENOMEM;
	cm->dev = dev;
	pthread_mutex_init(&cm->serve, NULL);
	pthread_mutex_init(&cm->lock, NULL);
	TAILQ_INIT(&cm->spare);
	dev->cm = cm;
	return 0;
}

struct ur_cm_attr ur_cm_api_attr(struct ur_device *dev)
{
	return (struct ur_cm_attr){
		.ca_guid = ur_device_guid(dev),
		.seed = ur_random64(),
		.id_key = ur_random64(),
		.prefix = ur_lease_prefix_of(dev),
		.timewait_ns = TIME_WAIT_NS,
		.sink = ur_cm_api_sink,
		.sink_ctx = dev->cm,
		.set_dscp = set_dscp,
	};
}

void ur_cm_api_free(struct ur_device *dev)
{
	if (!dev->cm)
		return;
	pthread_mutex_destroy(&dev->cm->serve);
	pthread_mutex_destroy(&dev->cm->lock);
	free(dev->cm);
	dev->cm = NULL;
}
