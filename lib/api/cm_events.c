/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "api/cm_priv.h"
#include "api/wait.h"
#include "api/word.h"
#include "thread/cancelled.h"

#define LOOKS 500 /* without work, before a thread that waits sleeps */

/* An event and the data that it points to, in one allocation. */
struct event_buf {
	struct uroce_cm_event ev; /* first: the application's handle */
	uint8_t private_data[UR_CM_REP_PRIVATE];
};

static void fill_event(struct event_buf *t, enum uroce_cm_event_type type, struct ur_api_cm_id *id,
		       const struct ur_cm_note *note)
{
	t->ev = (struct uroce_cm_event){.type = type, .id = &id->base, .status = note->status};
	memcpy(t->private_data, note->private_data, note->private_len);
	t->ev.param.private_data = note->private_len ? t->private_data : NULL;
	t->ev.param.private_data_len = note->private_len;
}

/* ---- requests ---- */

struct adopt_call {
	struct ur_api_cm_id *id;
	int rc;
};

static void adopt_on_worker(void *arg, uint64_t now_ns)
{
	struct adopt_call *a = arg;

	a->rc = ur_cm_set_ctx(ur_cm_api_core(a->id->dev), a->id->handle, &a->id->owner);
}

static void fill_child(struct ur_api_cm_id *id, const struct ur_cm_note *note)
{
	struct ur_device *dev = id->dev;
	int source = ur_device_gid_index(dev, &note->local);

	id->request = *note;
	id->handle = note->handle;
	id->sidr = note->type == UR_CM_EV_SIDR_REQ_RCVD;
	id->phase = UR_CM_REQUESTED;
	id->rq_psn = ur_cm_api_random_psn();
	id->ah = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	id->ah.grh.hop_limit = 64;
	memcpy(id->ah.grh.dgid.raw, note->peer.b, 16);
	if (!id->sidr) {
		/* CM-SL-01: the peer's SL and DSCP, with our ECN bits. */
		id->ah.sl = note->sl;
		id->ah.grh.traffic_class = ur_cm_api_tclass(dev, note->tclass);
	}
	if (source >= 0)
		id->ah.grh.sgid_index = (uint8_t)source;
	ur_cm_api_sockaddr(&id->base.local, &note->local, note->id->port);
	ur_cm_api_sockaddr(&id->base.peer, &note->peer, note->peer_port);
}

/* Makes a request a child of the listener. False: the peer has withdrawn it. */
static bool serve_request(struct ur_cm_api *cm, struct ur_cm_note *note, struct event_buf *t,
			  struct ur_api_cm_id *child)
{
	struct ur_api_cm_id *listener = note->id;
	struct adopt_call a = {.id = child};

	fill_child(child, note);
	ur_worker_call(cm->dev->workers[0], adopt_on_worker, &a);
	/* Not earlier: until the call above, the core's context pointed to the note. */
	ur_cm_api_give(cm, note);
	if (a.rc)
		return false;
	child->base.user = listener->base.user;
	fill_event(t, child->sidr ? UROCE_CM_SIDR_REQUEST : UROCE_CM_CONNECT_REQUEST, child,
		   &child->request);
	t->ev.listen_id = &listener->base;
	t->ev.qpn = child->request.qpn.v;
	t->ev.param.responder_resources = child->request.responder_resources;
	t->ev.param.initiator_depth = child->request.initiator_depth;
	t->ev.param.retry_count = child->request.retry_cnt;
	t->ev.param.rnr_retry_count = child->request.rnr_retry;
	t->ev.param.timeout = child->request.ack_timeout;
	t->ev.param.srq = child->request.srq;
	if (!child->sidr)
		t->ev.param.path_mtu = (uint16_t)(1u << (7 + child->request.pmtu));
	return true;
}

/* ---- answers and ends ---- */

static void rtu_on_worker(void *arg, uint64_t now_ns)
{
	struct adopt_call *a = arg;

	a->rc = ur_cm_rtu(ur_cm_api_core(a->id->dev), a->id->handle, NULL, 0, now_ns);
}

struct refuse_call {
	struct ur_api_cm_id *id;
	enum ur_cm_rej_reason reason;
};

static void refuse_on_worker(void *arg, uint64_t now_ns)
{
	struct refuse_call *r = arg;

	ur_cm_reject(ur_cm_api_core(r->id->dev), r->id->handle, r->reason, NULL, 0, now_ns);
	r->id->handle.v = 0;
}

static void fill_rep(struct event_buf *t, const struct ur_cm_note *note)
{
	t->ev.param.responder_resources = note->responder_resources;
	t->ev.param.initiator_depth = note->initiator_depth;
	t->ev.param.rnr_retry_count = note->rnr_retry;
	t->ev.param.srq = note->srq;
	t->ev.qpn = note->qpn.v;
}

/* Our REQ was accepted: moves the QP to RTS, then sends the RTU. */
static bool serve_rep(struct ur_api_cm_id *id, struct ur_cm_note *note, struct event_buf *t)
{
	struct adopt_call a = {.id = id};
	struct refuse_call r = {id, UR_CM_REJ_CONSUMER};
	int rc = ENOENT;

	id->param.responder_resources = note->initiator_depth;
	id->param.initiator_depth = note->responder_resources;
	/* Each side sends how often the other is to retry after an RNR NAK. */
	id->param.rnr_retry_count = note->rnr_retry;
	if (id->by_number) {
		id->request = *note;
		id->responded = id->accepted = true;
		fill_event(t, UROCE_CM_RESPONSE, id, note);
		fill_rep(t, note);
		return true;
	}
	if (id->base.qp)
		rc = ur_cm_api_start_qp(id, id->base.qp, note);
	if (rc) {
		ur_cm_api_stop_qp(id);
		id->phase = UR_CM_CLOSED;
		/* CM-EXT-06: extended mode is required here, but the peer does not agree. */
		if (rc == EPROTONOSUPPORT)
			r.reason = UR_CM_REJ_UNSUPPORTED;
		ur_cm_api_call(id->dev, refuse_on_worker, &r);
		note->status = rc;
		fill_event(t, UROCE_CM_UNREACHABLE, id, note);
		return true;
	}
	id->phase = UR_CM_CONNECTED;
	/* This fails if the peer has ended the connection meanwhile; the next event says so. */
	ur_cm_api_call(id->dev, rtu_on_worker, &a);
	fill_event(t, UROCE_CM_ESTABLISHED, id, note);
	fill_rep(t, note);
	return true;
}

/* The end of an attempt or of a connection, by either side. */
static bool serve_end(struct ur_api_cm_id *id, const struct ur_cm_note *note,
		      enum uroce_cm_event_type type, struct event_buf *t)
{
	enum ur_cm_phase before = id->phase;

	if (note->final)
		id->handle.v = 0;
	if (before == UR_CM_CLOSED)
		return false;
	id->phase = UR_CM_CLOSED;
	ur_cm_api_stop_qp(id);
	/* A REJ can also end an established connection. */
	fill_event(t, before == UR_CM_CONNECTED ? UROCE_CM_DISCONNECTED : type, id, note);
	return true;
}

static bool serve_note(struct ur_cm_note *note, struct event_buf *t)
{
	struct ur_api_cm_id *id = note->id;

	switch (note->type) {
	case UR_CM_EV_REP_RCVD:
		return serve_rep(id, note, t);
	case UR_CM_EV_ESTABLISHED:
		id->phase = UR_CM_CONNECTED;
		fill_event(t, UROCE_CM_ESTABLISHED, id, note);
		return true;
	case UR_CM_EV_REJ_RCVD:
		return serve_end(id, note, UROCE_CM_REJECTED, t);
	case UR_CM_EV_UNREACHABLE:
		return serve_end(id, note, UROCE_CM_UNREACHABLE, t);
	case UR_CM_EV_DREQ_RCVD:
	case UR_CM_EV_DISCONNECTED:
		return serve_end(id, note, UROCE_CM_DISCONNECTED, t);
	case UR_CM_EV_TIMEWAIT_EXIT:
		id->handle.v = 0;
		fill_event(t, UROCE_CM_TIMEWAIT_EXIT, id, note);
		return true;
	case UR_CM_EV_SIDR_REP_RCVD:
		id->handle.v = 0;
		id->phase = UR_CM_CLOSED;
		fill_event(t, UROCE_CM_SIDR_RESOLVED, id, note);
		t->ev.qpn = note->qpn.v;
		t->ev.qkey = note->qkey;
		return true;
	default:
		return false;
	}
}

/* ---- the application's calls ---- */

/* Memory that a note may need, allocated before the note is taken, so that no note is lost. */
struct supply {
	struct event_buf *t;
	struct ur_api_cm_id *child;
};

static bool serve_any(struct uroce_event_channel *ch, struct ur_cm_note *note, struct supply *s)
{
	struct ur_api_cm_id *child = s->child;

	if (note->owner != UR_CM_OWNER_REQUEST)
		return serve_note(note, s->t);
	s->child = NULL;
	if (serve_request(ch->dev->cm, note, s->t, child))
		return true;
	ur_cm_api_id_free(child);
	return false;
}

/* Returns 0 and an event, or EAGAIN if there is none. cm->serve is held. */
static int serve(struct uroce_event_channel *ch, struct supply *s)
{
	struct ur_cm_note *note;
	bool empty;

	s->t = malloc(sizeof(*s->t));
	if (!s->t)
		return ENOMEM;
	for (;;) {
		note = ur_cm_api_pop(ch, s->child != NULL, &empty);
		if (empty)
			return EAGAIN;
		if (note) {
			if (serve_any(ch, note, s))
				return 0;
			continue;
		}
		s->child = ur_cm_api_id_new(ch, NULL);
		if (!s->child)
			return ENOMEM;
	}
}

static bool is_empty(struct uroce_event_channel *ch)
{
	bool empty;

	pthread_mutex_lock(&ch->dev->cm->lock);
	empty = TAILQ_EMPTY(&ch->queue);
	pthread_mutex_unlock(&ch->dev->cm->lock);
	return empty;
}

static int try_event(struct uroce_event_channel *ch, struct uroce_cm_event **event)
{
	struct ur_cm_api *cm = ch->dev->cm;
	struct supply s = {0};
	int rc;

	/* If another thread is serving events, either it serves this one or we do next time. */
	if (is_empty(ch) || pthread_mutex_trylock(&cm->serve))
		return EAGAIN;
	rc = serve(ch, &s);
	if (s.child)
		ur_cm_api_id_free(s.child);
	pthread_mutex_unlock(&cm->serve);
	if (rc)
		free(s.t);
	else
		*event = &s.t->ev;
	return rc;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Waits until there may be an event, at most until the caller's deadline. */
static void wait_for_note(struct uroce_event_channel *ch, unsigned *idle, int left_ms)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	/* If the descriptor is readable, another thread is serving events. */
	if ((!ch->dev->dedicated && *idle < LOOKS) ||
	    ur_device_wait_fds(ch->dev, &p, 1, ur_wait_ns(left_ms)) > 0)
		ur_device_wait_a_bit(ch->dev, idle);
}

/* Not in the frame of the clean-up handler. */
static __attribute__((noinline)) int wait_for_event(struct uroce_event_channel *ch, int timeout_ms,
						    struct uroce_cm_event **event)
{
	uint64_t start = now_ms(), passed;
	unsigned idle = 0;
	int rc;

	/* Packets that arrived before the call count, even with a timeout of 0. */
	ur_device_progress(ch->dev);
	while ((rc = try_event(ch, event)) == EAGAIN) {
		if (atomic_load(&ch->waiters.closing))
			return ECANCELED;
		passed = now_ms() - start;
		if (timeout_ms >= 0 && passed >= (uint64_t)timeout_ms)
			return ETIMEDOUT;
		wait_for_note(ch, &idle, timeout_ms < 0 ? -1 : timeout_ms - (int)passed);
	}
	return rc;
}

static void leave(void *channel)
{
	struct uroce_event_channel *ch = channel;

	ur_cancelled();
	ur_device_waiter_leave(&ch->waiters, &ch->dev->cm->lock);
}

/* CHANNEL-END-01 */
int uroce_get_cm_event(struct uroce_event_channel *ch, int timeout_ms,
		       struct uroce_cm_event **event)
{
	pthread_mutex_t *lock = &ch->dev->cm->lock;
	int rc;

	if (!ur_device_waiter_enter(&ch->waiters, lock))
		return ECANCELED;
	pthread_cleanup_push(leave, ch);
	rc = wait_for_event(ch, timeout_ms, event);
	pthread_cleanup_pop(1);
	return rc;
}

void uroce_ack_cm_event(struct uroce_cm_event *event)
{
	free(event);
}

/* ---- names ---- */

const char *uroce_cm_event_str(enum uroce_cm_event_type type)
{
	static const char *const texts[] = {
#define X(name, text) [UROCE_CM_##name] = text,
		UROCE_CM_EVENTS(X)
#undef X
	};

	return UR_WORD(texts, type, "unknown event");
}

const char *uroce_cm_reject_str(int reason)
{
	return ur_cm_rej_text(reason >= 0 && reason <= UINT16_MAX ? (uint16_t)reason : 0);
}
