/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_CONTEXT_H
#define UR_API_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>
#include <infiniband/verbs.h>

struct ur_device;

/*
 * A context: one opening of an endpoint, with objects and asynchronous events of its own. All contexts
 * of an endpoint share its port, its workers and its limits (uroce_share(), CONTEXT-SHARE-01). The struct around
 * ibv_context is the one that programs look for through abi_compat: the inline functions of verbs.h
 * call its members, and return EOPNOTSUPP, or do without, where one is NULL (CONTEXT-LAYOUT-01).
 */

/* Asynchronous events of a CQ, an SRQ, a queue pair or the port. Protected by the async_lock. */
struct ur_api_async {
	TAILQ_ENTRY(ur_api_async) link; /* in the context's list while an event is pending */
	void *object;
	uint32_t pending; /* bit i: an event of type i has not been fetched yet */
	uint32_t got;	  /* number of events that the application has fetched */
};

/* Events of the port. Each has its own object, so that events keep their order. */
enum { UR_PORT_EVENT_ERR, UR_PORT_EVENT_ACTIVE, UR_PORT_EVENT_GID, UR_PORT_EVENT_CNT };

/* The threads that wait for an object which may be destroyed. Protected by the object's lock. */
struct ur_waiters {
	unsigned cnt;
	_Atomic bool closing; /* waiters must leave, and no new ones may enter */
	pthread_cond_t left;
};

struct ur_context {
	LIST_ENTRY(ur_context) link; /* in the device's; under its async_lock */
	uint32_t objects;	     /* that live; under the device's lock */
	LIST_HEAD(, ur_api_mr) mrs;  /* this and the next two: under the device's lock */
	LIST_HEAD(, ur_api_mw) mws;
	LIST_HEAD(, ur_api_qp) qps;
	/* Under the device's async_lock: */
	struct ur_waiters waiters;	   /* in uroce_get_async_event() */
	TAILQ_HEAD(, ur_api_async) asyncs; /* objects with asynchronous events, oldest first */
	struct ur_api_async port_events[UR_PORT_EVENT_CNT];
	struct ur_device *dev;
	/* Last, as in every library of verbs; v.context is the application's handle. */
	struct verbs_context v;
};

static inline struct ur_context *ur_context(const struct ibv_context *ctx)
{
	return (struct ur_context *)(uintptr_t)((const char *)ctx -
						offsetof(struct ur_context, v.context));
}

static inline struct ur_device *ur_device(const struct ibv_context *ctx)
{
	return ur_context(ctx)->dev;
}

/*
 * A new context of the device, which the caller must free before the device. NULL and errno: ENOMEM, or
 * that of eventfd(). Thread class: control.
 */
struct ur_context *ur_context_new(struct ur_device *dev);
/* Frees a context without objects. Returns true if the device has no other. */
bool ur_context_free(struct ur_context *ctx);

/*
 * Changes `count`, one of the device's counts of live objects, and the context's by `by`. The second
 * takes the device's lock; the first is for callers that hold it.
 */
void ur_context_count_locked(struct ibv_context *ctx, uint32_t *count, int by);
void ur_context_count(struct ibv_context *ctx, uint32_t *count, int by);

#endif
