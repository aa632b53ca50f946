/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/cm.h"

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_CNT	28232 /* up to 60999, as in Linux */

/* All ids of the process, with their ports. Under the lock. */
static LIST_HEAD(, ur_cm_id) ids = LIST_HEAD_INITIALIZER(ids);
static uint16_t next_port;

/* ---- create and destroy ---- */

struct ur_cm_id *ur_cm_new_id(struct rdma_event_channel *channel, void *context,
			      enum rdma_port_space ps)
{
	struct ur_cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
	LIST_INSERT_HEAD(&ids, id, link);
	return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **base, void *context,
		   enum rdma_port_space ps)
{
	bool sync = !channel;
	struct ur_cm_id *id;

	if (!ur_cm_open_devices())
		return -1;
	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP)
		return ur_cm_fail(ENODEV);
	if (sync && !(channel = rdma_create_event_channel()))
		return -1;
	pthread_mutex_lock(&ur_cm_lock);
	id = ur_cm_new_id(channel, context, ps);
	pthread_mutex_unlock(&ur_cm_lock);
	if (!id) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return ur_cm_fail(ENOMEM);
	}
	id->sync = sync;
	*base = &id->id;
	return 0;
}

void ur_cm_drop_id(struct ur_cm_id *id)
{
	LIST_REMOVE(id, link);
	/* First: then no event of them is queued any more. */
	for (unsigned i = 0; i < UR_CM_DEVICES_MAX; i++)
		if (id->listeners[i])
			uroce_cm_destroy_id(id->listeners[i]);
	if (id->cm)
		uroce_cm_destroy_id(id->cm);
	ur_cm_purge(id);
	free(id);
}

void ur_cm_use_device(struct ur_cm_id *id, struct ur_cm_device *dev)
{
	id->dev = dev;
	id->id.verbs = dev->verbs;
	id->id.pd = dev->pd;
	id->id.port_num = 1;
}

/* ---- bind ---- */

/* Whether another id has the port, on the same address or on all. */
static bool is_taken(const struct ur_cm_id *id, const struct sockaddr *addr, __be16 port)
{
	const struct ur_cm_id *o;

	LIST_FOREACH(o, &ids, link)
	{
		struct sockaddr_storage has = o->id.route.addr.src_storage;
		struct sockaddr *a = (struct sockaddr *)&has;
		union ibv_gid theirs, ours;

		/* A request has its listener's port. */
		if (o == id || o->id.ps != id->id.ps || (o->cm && !o->active) || !has.ss_family ||
		    *ur_cm_port(a) != port || (o->reuse && id->reuse))
			continue;
		theirs = ur_cm_gid(a);
		ours = ur_cm_gid(addr);
		if (ur_cm_is_any(a) || ur_cm_is_any(addr) || !memcmp(&theirs, &ours, sizeof(ours)))
			return true;
	}
	return false;
}

/* Under the lock. */
static int take_port(struct ur_cm_id *id, struct sockaddr *addr)
{
	__be16 *port = ur_cm_port(addr);

	if (*port)
		return is_taken(id, addr, *port) ? EADDRINUSE : 0;
	if (!next_port)
		next_port = (uint16_t)(arc4random() % EPHEMERAL_CNT);
	for (unsigned i = 0; i < EPHEMERAL_CNT; i++) {
		*port = htons((uint16_t)(EPHEMERAL_FIRST + next_port++ % EPHEMERAL_CNT));
		if (!is_taken(id, addr, *port))
			return 0;
	}
	return EADDRNOTAVAIL;
}

static int check_family(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET || addr->sa_family == AF_INET6 ? 0 : EAFNOSUPPORT;
}

/* Binds to the address of a device, with the port of `addr`. */
static int bind_to(struct ur_cm_id *id, const struct sockaddr *addr, struct ur_cm_device *dev,
		   int gid_index)
{
	struct sockaddr_storage local = {0};
	int rc;

	if (dev)
		ur_cm_address(dev, gid_index, &local);
	else
		memcpy(&local, addr,
		       addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						  : sizeof(struct sockaddr_in6));
	*ur_cm_port((struct sockaddr *)&local) = *ur_cm_port((struct sockaddr *)(uintptr_t)addr);
	pthread_mutex_lock(&ur_cm_lock);
	rc = take_port(id, (struct sockaddr *)&local);
	if (!rc) {
		id->id.route.addr.src_storage = local;
		id->state = UR_CM_BOUND;
		if (dev)
			ur_cm_use_device(id, dev);
	}
	pthread_mutex_unlock(&ur_cm_lock);
	return rc;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct ur_cm_device *dev = NULL;
	int index = 0, rc = check_family(addr);

	if (rc)
		return ur_cm_fail(rc);
	if (id->state != UR_CM_IDLE)
		return ur_cm_fail(EINVAL);
	if (!ur_cm_is_any(addr) && !(dev = ur_cm_device_of(addr, &index)))
		return ur_cm_fail(ENODEV);
	return ur_cm_fail(bind_to(id, addr, dev, index));
}

/* ---- resolve ---- */

/* Whether the peer answers. It waits for that, as liburoce does. */
static int find_peer(struct ur_cm_id *id, int gid_index)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	attr.grh.dgid = ur_cm_gid(&id->id.route.addr.dst_addr);
	attr.grh.sgid_index = (uint8_t)gid_index;
	attr.grh.hop_limit = 64;
	ah = ibv_create_ah(id->dev->pd, &attr);
	if (!ah)
		return errno;
	ibv_destroy_ah(ah);
	return 0;
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
	return bind_to(id, (struct sockaddr *)&any, dev, *index);
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int index = 0, rc = check_family(dst);

	if (rc)
		return ur_cm_fail(rc);
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
	rc = find_peer(id, index);
	if (!rc)
		id->state = UR_CM_ADDR_RESOLVED;
	rc = ur_cm_raise(id, rc ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -rc);
	return rc ? ur_cm_fail(rc) : ur_cm_complete(id);
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct ibv_port_attr port;
	int rc;

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
	id->state = UR_CM_ROUTE_RESOLVED;
	rc = ur_cm_raise(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return rc ? ur_cm_fail(rc) : ur_cm_complete(id);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id->route.addr.dst_sin.sin_port;
}

/* ---- options ---- */

int rdma_set_option(struct rdma_cm_id *base, int level, int optname, void *optval, size_t optlen)
{
	struct ur_cm_id *id = ur_cm_id(base);

	if (level != RDMA_OPTION_ID)
		return ur_cm_fail(ENOSYS);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		if (optlen != 1)
			return ur_cm_fail(EINVAL);
		id->tos = *(uint8_t *)optval;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (optlen != sizeof(int))
			return ur_cm_fail(EINVAL);
		id->reuse = *(int *)optval != 0;
		return 0;
	case RDMA_OPTION_ID_AFONLY: /* the families are separate here */
		return ur_cm_fail(optlen == sizeof(int) ? 0 : EINVAL);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (optlen != 1 || *(uint8_t *)optval > 31)
			return ur_cm_fail(EINVAL);
		id->ack_timeout = *(uint8_t *)optval;
		return 0;
	default:
		return ur_cm_fail(ENOSYS);
	}
}
