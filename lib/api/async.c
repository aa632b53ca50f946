/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <unistd.h>

#include "api/device.h"
#include "api/wait.h"
#include "api/word.h"
#include "thread/cancelled.h"
#include "wire/assert.h"

/* ---- the engine's sink: called on workers ---- */

static void on_completion(void *ctx, struct ur_cq *cq)
{
	struct ur_device *dev = ctx;

	ur_worker_event_raised(dev->workers[ur_engine_cq_worker(cq)]);
	ur_api_cq_notify(ur_engine_cq_user(cq));
}

static bool is_of_port(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE ||
	       type == IBV_EVENT_GID_CHANGE;
}

static unsigned port_event(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ERR:
		return UR_PORT_EVENT_ERR;
	case IBV_EVENT_PORT_ACTIVE:
		return UR_PORT_EVENT_ACTIVE;
	default:
		return UR_PORT_EVENT_GID;
	}
}

/* The pending events of an object, and its context. */
struct raised {
	struct ur_api_async *async;
	struct ibv_context *ctx;
};

static struct raised raised_by(enum ibv_event_type type, void *object)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return (struct raised){&UR_API(cq, object)->async,
				       ((struct ibv_cq *)object)->context};
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return (struct raised){&UR_API(srq, object)->async,
				       ((struct ibv_srq *)object)->context};
	default: /* events of devices are never raised */
		return (struct raised){&UR_API(qp, object)->async,
				       ((struct ibv_qp *)object)->context};
	}
}

/* The async_lock is held. */
static void raise_in(struct ur_context *c, struct ur_api_async *a, enum ibv_event_type type,
		     void *object)
{
	if (a->pending >> type & 1)
		return;
	if (!a->pending)
		TAILQ_INSERT_TAIL(&c->asyncs, a, link);
	a->object = object;
	a->pending |= 1u << type;
	/* Under the lock, because a purge takes as many counts as events. */
	ur_device_add_counts(c->v.context.async_fd, 1);
}

/* ASYNC-KEEP-01: each object has room for each of its events, so that none is lost. */
void ur_async_raise(struct ur_device *dev, enum ibv_event_type type, void *object)
{
	struct ur_context *c;

	pthread_mutex_lock(&dev->async_lock);
	if (is_of_port(type)) {
		LIST_FOREACH(c, &dev->contexts, link)
		raise_in(c, &c->port_events[port_event(type)], type, NULL);
	} else {
		struct raised r = raised_by(type, object);

		raise_in(ur_context(r.ctx), r.async, type, object);
	}
	pthread_mutex_unlock(&dev->async_lock);
}

static void on_async(void *ctx, enum ibv_event_type type, void *user)
{
	struct ur_api_qp *qp;

	switch (type) {
	case IBV_EVENT_CQ_ERR: /* CQs and SRQs begin with their verbs structs */
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ur_async_raise(ctx, type, user);
		break;
	default:
		qp = (void *)((char *)user - offsetof(struct ur_api_qp, qp));
		ur_async_raise(ctx, type, &qp->base);
		break;
	}
}

static void on_cross_worker(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct ur_device *dev = ctx;
	struct ur_api_cq *to = ur_engine_cq_user(cq);

	/* CQ-OVERFLOW-01, also between workers: after the first lost CQE, no later one is passed. */
	if (atomic_load_explicit(&to->cross_cqe_lost, memory_order_relaxed) ||
	    ur_worker_push_cqe(dev->workers[ur_engine_cq_worker(cq)], cq, wc, solicited))
		return;
	if (!atomic_exchange(&to->cross_cqe_lost, true))
		ur_async_raise(dev, IBV_EVENT_CQ_ERR, &to->base);
}

struct ur_sink ur_device_sink(struct ur_device *dev)
{
	return (struct ur_sink){.ctx = dev,
				.completion = on_completion,
				.async = on_async,
				.cross_worker = on_cross_worker};
}

/* ---- the application's side ---- */

uint32_t ur_async_purge(struct ibv_context *ctx, struct ur_api_async *a)
{
	struct ur_device *dev = ur_device(ctx);
	uint32_t given;

	pthread_mutex_lock(&dev->async_lock);
	/* The descriptor must not be readable without an event. */
	ur_device_take_counts(ctx->async_fd, (unsigned)__builtin_popcount(a->pending));
	if (a->pending)
		TAILQ_REMOVE(&ur_context(ctx)->asyncs, a, link);
	a->pending = 0;
	given = a->got;
	pthread_mutex_unlock(&dev->async_lock);
	return given;
}

/* The counter of acknowledged events of an event's object. */
struct ack {
	pthread_mutex_t *lock;
	pthread_cond_t *cond;
	uint32_t *acked;
};

static struct ack ack_of(const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		return (struct ack){&ev->element.cq->mutex, &ev->element.cq->cond,
				    &ev->element.cq->async_events_completed};
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return (struct ack){&ev->element.srq->mutex, &ev->element.srq->cond,
				    &ev->element.srq->events_completed};
	default:
		return (struct ack){&ev->element.qp->mutex, &ev->element.qp->cond,
				    &ev->element.qp->events_completed};
	}
}

/* Takes the first event of the first object in the list; objects take turns. False: none. */
static bool take_event(struct ur_context *c, struct ibv_async_event *event)
{
	struct ur_api_async *a;

	pthread_mutex_lock(&c->dev->async_lock);
	a = TAILQ_FIRST(&c->asyncs);
	if (a) {
		event->event_type = (enum ibv_event_type)__builtin_ctz(a->pending);
		if (is_of_port(event->event_type))
			event->element.port_num = 1;
		else
			event->element.qp = a->object;
		a->pending &= a->pending - 1;
		a->got++;
		TAILQ_REMOVE(&c->asyncs, a, link);
		if (a->pending)
			TAILQ_INSERT_TAIL(&c->asyncs, a, link);
	}
	pthread_mutex_unlock(&c->dev->async_lock);
	return a;
}

static void leave(void *context)
{
	struct ur_context *c = context;

	ur_cancelled();
	ur_device_waiter_leave(&c->waiters, &c->dev->async_lock);
}

/* Without an event, its object was destroyed meanwhile. Not in the frame of the clean-up handler. */
static __attribute__((noinline)) int wait_for_event(struct ur_context *c,
						    struct ibv_async_event *event)
{
	int rc;

	do
		rc = ur_device_sleep_count(c->dev, c->v.context.async_fd);
	while (!rc && !take_event(c, event) && !(rc = atomic_load(&c->waiters.closing)));
	return rc;
}

/* ASYNC-END-01 */
int uroce_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct ur_context *c = ur_context(ctx);
	int rc;

	if (!ur_device_waiter_enter(&c->waiters, &c->dev->async_lock)) {
		errno = ECANCELED;
		return -1;
	}
	pthread_cleanup_push(leave, c);
	rc = wait_for_event(c, event);
	pthread_cleanup_pop(0);
	if (ur_device_waiter_leave(&c->waiters, &c->dev->async_lock) && rc)
		errno = ECANCELED;
	return rc ? -1 : 0;
}

void uroce_ack_async_event(struct ibv_async_event *event)
{
	struct ack a;

	/* A port is never destroyed, so nothing waits for these. */
	if (is_of_port(event->event_type))
		return;
	a = ack_of(event);
	pthread_mutex_lock(a.lock);
	++*a.acked;
	pthread_cond_broadcast(a.cond);
	pthread_mutex_unlock(a.lock);
}

const char *uroce_event_type_str(enum ibv_event_type type)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_GID_CHANGE] = "GID table change",
	};

	return UR_WORD(names, type, "unknown event");
}

const char *uroce_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "work request flushed",
		[IBV_WC_MW_BIND_ERR] = "invalidate or bind error",
		[IBV_WC_BAD_RESP_ERR] = "bad response",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_GENERAL_ERR] = "general error",
	};

	return UR_WORD(names, status, "unknown status");
}
