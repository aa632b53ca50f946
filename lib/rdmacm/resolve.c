/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rdmacm/cm.h"
#include "thread/thread.h"

/*
 * A peer's answer is waited for in threads of the library, which end when nothing is left to resolve. Many peers that
 * do not answer delay others only when there are more of them than threads.
 */

#define THREADS_MAX 16

struct ur_cm_resolve {
	TAILQ_ENTRY(ur_cm_resolve) link;
	struct ur_cm_id *id; /* NULL: gone meanwhile */
	bool running;
	struct ibv_pd *pd;
	struct ibv_ah_attr attr;
	uint64_t until_ms;
};

/* Under the lock. */
static TAILQ_HEAD(, ur_cm_resolve) waiting = TAILQ_HEAD_INITIALIZER(waiting);
static unsigned threads;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* liburoce gives up on a neighbour earlier than most programs; it asks again until their time is over. */
static int ask(struct ur_cm_resolve *r)
{
	struct ibv_ah *ah;

	do {
		ah = ibv_create_ah(r->pd, &r->attr);
		if (ah) {
			ibv_destroy_ah(ah);
			return 0;
		}
	} while (errno == EHOSTUNREACH && now_ms() < r->until_ms);
	return errno == EHOSTUNREACH ? ETIMEDOUT : errno;
}

/* Under the lock. */
static void finish(struct ur_cm_resolve *r, int rc)
{
	struct ur_cm_id *id = r->id;

	if (id) {
		id->resolve = NULL;
		id->state = rc ? UR_CM_BOUND : UR_CM_ADDR_RESOLVED;
		ur_cm_raise(id, rc ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -rc);
	}
	free(r);
}

static void *work(void *arg)
{
	struct ur_cm_resolve *r;
	int state = ur_cm_enter(), rc;

	while ((r = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, r, link);
		r->running = true;
		ur_cm_leave(state);
		rc = ask(r);
		state = ur_cm_enter();
		finish(r, rc);
	}
	threads--;
	ur_cm_leave(state);
	return arg;
}

static int start_thread(void)
{
	int rc = ur_thread_start_detached(work, NULL);

	if (!rc)
		threads++;
	return rc;
}

void ur_cm_cancel_resolve(struct ur_cm_id *id)
{
	struct ur_cm_resolve *r = id->resolve;

	id->resolve = NULL;
	if (!r)
		return;
	r->id = NULL;
	if (r->running)
		return;
	TAILQ_REMOVE(&waiting, r, link);
	free(r);
}

static int start_resolving(struct ur_cm_id *id, int gid_index, int timeout_ms)
{
	struct ur_cm_resolve *r = calloc(1, sizeof(*r));
	int state, rc = 0;

	if (!r)
		return ENOMEM;
	r->id = id;
	r->pd = id->dev->pd;
	r->attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	r->attr.grh.dgid = ur_cm_gid(&id->id.route.addr.dst_addr);
	r->attr.grh.sgid_index = (uint8_t)gid_index;
	r->attr.grh.hop_limit = 64;
	r->until_ms = now_ms() + (timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
	state = ur_cm_enter();
	if (threads < THREADS_MAX)
		rc = start_thread();
	if (!rc || threads) {
		rc = 0;
		id->resolve = r;
		id->state = UR_CM_RESOLVING;
		TAILQ_INSERT_TAIL(&waiting, r, link);
	}
	ur_cm_leave(state);
	if (rc)
		free(r);
	return rc;
}

/* The source: what the id is bound to, or the device's address that is closest. */
static int choose_source(struct ur_cm_id *id, struct sockaddr *src, const struct sockaddr *dst,
			 int *index)
{
	struct ur_cm_device *dev;
	struct sockaddr_storage any = {.ss_family = dst->sa_family};

	if (id->state == UR_CM_IDLE && src && src->sa_family && rdma_bind_addr(&id->id, src))
		return errno;
	if (id->dev)
		return ur_cm_device_of(&id->id.route.addr.src_addr, index) ? 0 : ENODEV;
	dev = ur_cm_device_towards(dst, index);
	if (!dev)
		return ENODEV;
	if (id->state == UR_CM_BOUND)
		*ur_cm_port((struct sockaddr *)&any) = id->id.route.addr.src_sin.sin_port;
	return ur_cm_bind(id, (struct sockaddr *)&any, dev, *index);
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int index = 0, rc;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (!dst)
		return ur_cm_fail(EINVAL);
	if (dst->sa_family != AF_INET && dst->sa_family != AF_INET6)
		return ur_cm_fail(EAFNOSUPPORT);
	if (id->state != UR_CM_IDLE && id->state != UR_CM_BOUND)
		return ur_cm_fail(EINVAL);
	rc = choose_source(id, src, dst, &index);
	if (rc)
		return ur_cm_fail(rc);
	/* The host itself, by the address that it has in the fabric. */
	if (ur_cm_is_loopback(dst))
		ur_cm_address(id->dev, index, &base->route.addr.dst_storage);
	else
		memcpy(&base->route.addr.dst_storage, dst,
		       dst->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						 : sizeof(struct sockaddr_in6));
	*ur_cm_port(&base->route.addr.dst_addr) = *ur_cm_port(dst);
	rc = start_resolving(id, index, timeout_ms);
	return rc ? ur_cm_fail(rc) : ur_cm_complete(id);
}

/* There is nothing to ask: the route is the neighbour's address, which is known. */
int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct ibv_port_attr port;
	int rc, state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (id->state != UR_CM_ADDR_RESOLVED)
		return ur_cm_fail(EINVAL);
	rc = ibv_query_port(base->verbs, 1, &port);
	if (rc)
		return ur_cm_fail(rc);
	id->path = (struct ibv_sa_path_rec){
		.dgid = ur_cm_gid(&base->route.addr.dst_addr),
		.sgid = ur_cm_gid(&base->route.addr.src_addr),
		.hop_limit = 64,
		.traffic_class = id->tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = 0xffff,
		.mtu_selector = 2, /* exactly */
		.mtu = (uint8_t)port.active_mtu,
	};
	base->route.path_rec = &id->path;
	base->route.num_paths = 1;
	state = ur_cm_enter();
	id->state = UR_CM_ROUTE_RESOLVED;
	ur_cm_raise(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ur_cm_leave(state);
	return ur_cm_complete(id);
}
