/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm/cm.h"

/*
 * Ports, and the ids that get requests. liburoce listens on a port of a device, at all of its addresses. Several ids may
 * listen there, each at an address of its own; a request goes to the one at its address, or to the one at all
 * addresses.
 */

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_CNT	28232 /* up to 60999, as in Linux */
#define EPHEMERAL_TRIES 16
#define BACKLOG_MAX	1024 /* as in Linux; also if the program names none */

static LIST_HEAD(, ur_cm_port) ports = LIST_HEAD_INITIALIZER(ports);
static uint16_t next_port;

static struct sockaddr *source_of(const struct ur_cm_id *id)
{
	return (struct sockaddr *)(uintptr_t)&id->id.route.addr.src_addr;
}

/* ---- bind ---- */

struct claim {
	const struct ur_cm_id *id;
	struct sockaddr *addr;
	bool reuse;
	uint8_t *taken; /* of ephemeral ports, a bit each */
};

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	union ibv_gid x = ur_cm_gid(a), y = ur_cm_gid(b);

	return !memcmp(&x, &y, sizeof(x));
}

/* A wildcard of IPv6 stands for addresses of IPv4 too, unless the id is for one family only. */
static bool covers(const struct ur_cm_id *id, const struct sockaddr *any,
		   const struct sockaddr *addr)
{
	return ur_cm_is_any(any) &&
	       (any->sa_family == addr->sa_family || (any->sa_family == AF_INET6 && !id->afonly));
}

/* Whether the two may not have one port. A request has its listener's port. */
static bool conflicts(const struct ur_cm_id *o, const struct claim *c)
{
	struct sockaddr *a = source_of(o);

	if (o == c->id || o->state == UR_CM_ENDED || o->id.ps != c->id->id.ps ||
	    (o->cm && !o->active) || !a->sa_family ||
	    (o->reuse && c->reuse && o->state != UR_CM_LISTENING))
		return false;
	return covers(o, a, c->addr) || covers(c->id, c->addr, a) || same_address(a, c->addr);
}

static bool has_claimed(const struct ur_cm_id *o, const void *arg)
{
	const struct claim *c = arg;

	return *ur_cm_port(source_of(o)) == *ur_cm_port(c->addr) && conflicts(o, c);
}

static bool is_taken(const struct ur_cm_id *id, struct sockaddr *addr, bool reuse)
{
	struct claim c = {id, addr, reuse, NULL};

	return ur_cm_find_id(has_claimed, &c);
}

/* Processes that share the device's address share its ports. */
static int hold_port(struct ur_cm_id *id, const struct ur_cm_device *dev, uint16_t *number)
{
	unsigned cnt;
	struct ur_cm_device *all = ur_cm_devices(&cnt);
	int rc = 0;

	if (id->held_port && id->held_port == *number)
		return 0;
	ur_cm_unhold_port(id);
	for (unsigned i = 0; i < cnt && !rc; i++) {
		if (dev && dev != &all[i])
			continue;
		rc = uroce_cm_bind_port(all[i].verbs, id->id.ps == RDMA_PS_UDP, number);
		if (rc || !*number)
			continue;
		id->held_port = *number;
		id->held_devices |= 1u << i;
	}
	if (rc)
		ur_cm_unhold_port(id);
	return rc;
}

void ur_cm_unhold_port(struct ur_cm_id *id)
{
	unsigned cnt;
	struct ur_cm_device *all = ur_cm_devices(&cnt);

	for (unsigned i = 0; i < cnt; i++)
		if (id->held_devices >> i & 1)
			uroce_cm_release_port(all[i].verbs, id->id.ps == RDMA_PS_UDP,
					      id->held_port);
	id->held_devices = 0;
	id->held_port = 0;
}

static bool mark_ephemeral(const struct ur_cm_id *o, const void *arg)
{
	const struct claim *c = arg;
	unsigned i = ntohs(*ur_cm_port(source_of(o))) - EPHEMERAL_FIRST;

	if (i < EPHEMERAL_CNT && conflicts(o, c))
		c->taken[i / 8] |= (uint8_t)(1 << i % 8);
	return false;
}

/* EDGE-FORK-03: arc4random() of libbsd waits for ever in a child, if another thread of its parent was inside. */
static uint32_t random_number(void)
{
	uint32_t r = 0;

	(void)getentropy(&r, sizeof(r));
	return r;
}

/* An ephemeral port that no other id has; 0: there is none. Looks at each id once. */
static uint16_t free_ephemeral(const struct ur_cm_id *id, struct sockaddr *addr)
{
	uint8_t taken[EPHEMERAL_CNT / 8 + 1] = {0};
	struct claim c = {id, addr, false, taken};

	ur_cm_find_id(mark_ephemeral, &c);
	if (!next_port)
		next_port = (uint16_t)(random_number() % EPHEMERAL_CNT);
	for (unsigned i = 0; i < EPHEMERAL_CNT; i++) {
		unsigned at = next_port++ % EPHEMERAL_CNT;

		if (!(taken[at / 8] >> at % 8 & 1))
			return (uint16_t)(EPHEMERAL_FIRST + at);
	}
	return 0;
}

/*
 * Under the lock. What a daemon gives as an ephemeral port may be taken on another device, or by an id of this process on another
 * device: then there is another attempt.
 */
static int take_port(struct ur_cm_id *id, struct sockaddr *addr, const struct ur_cm_device *dev)
{
	__be16 *port = ur_cm_port(addr);
	uint16_t asked = ntohs(*port), number;
	int rc, tries = asked ? 1 : EPHEMERAL_TRIES;

	if (asked && is_taken(id, addr, id->reuse))
		return EADDRINUSE;
	do {
		number = asked;
		rc = hold_port(id, dev, &number);
		if (!rc && !number)
			number = free_ephemeral(id, addr);
		*port = htons(number);
		if (!rc && !asked && number && is_taken(id, addr, false))
			rc = EADDRINUSE;
	} while (rc == EADDRINUSE && --tries);
	if (rc)
		ur_cm_unhold_port(id);
	return rc || number ? rc : EADDRNOTAVAIL;
}

int ur_cm_bind(struct ur_cm_id *id, const struct sockaddr *addr, struct ur_cm_device *dev,
	       int gid_index)
{
	struct sockaddr_storage local = {0};
	int rc, state;

	if (dev)
		ur_cm_address(dev, gid_index, &local);
	else
		memcpy(&local, addr,
		       addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						  : sizeof(struct sockaddr_in6));
	*ur_cm_port((struct sockaddr *)&local) = *ur_cm_port((struct sockaddr *)(uintptr_t)addr);
	state = ur_cm_enter();
	rc = take_port(id, (struct sockaddr *)&local, dev);
	if (!rc) {
		id->id.route.addr.src_storage = local;
		id->state = UR_CM_BOUND;
		if (dev)
			ur_cm_use_device(id, dev);
	}
	ur_cm_leave(state);
	return rc;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct ur_cm_device *dev = NULL;
	int index = 0;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (!addr) /* rdma_create_ep() with an rdma_addrinfo that has none */
		return ur_cm_fail(EINVAL);
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return ur_cm_fail(EAFNOSUPPORT);
	if (id->state != UR_CM_IDLE)
		return ur_cm_fail(EINVAL);
	if (!ur_cm_is_any(addr) && !(dev = ur_cm_device_of(addr, &index)))
		return ur_cm_fail(ENODEV);
	return ur_cm_fail(ur_cm_bind(id, addr, dev, index));
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id->route.addr.dst_sin.sin_port;
}

/* ---- listen ---- */

static struct ur_cm_port *find_port(const struct ur_cm_device *dev, enum rdma_port_space ps,
				    uint16_t number)
{
	struct ur_cm_port *p;

	LIST_FOREACH(p, &ports, link)
	if (p->dev == dev && p->ps == ps && p->number == number)
		return p;
	return NULL;
}

static int open_port(struct ur_cm_port *p)
{
	int rc = uroce_cm_create_id(p->dev->channel, p, &p->cm);

	if (rc)
		return rc;
	rc = p->ps == RDMA_PS_UDP ? uroce_cm_sidr_listen(p->cm, p->number)
				  : uroce_cm_listen(p->cm, p->number);
	if (rc)
		uroce_cm_destroy_id(p->cm);
	return rc;
}

static int use_port(struct ur_cm_id *id, struct ur_cm_device *dev, struct ur_cm_port **to)
{
	uint16_t number = ntohs(id->id.route.addr.src_sin.sin_port);
	struct ur_cm_port *p = find_port(dev, id->id.ps, number);
	int rc;

	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return ENOMEM;
		p->dev = dev;
		p->ps = id->id.ps;
		p->number = number;
		rc = open_port(p);
		if (rc) {
			free(p);
			return rc;
		}
		LIST_INSERT_HEAD(&ports, p, link);
	}
	p->refs++;
	*to = p;
	if (secure_getenv("UROCE_LOG"))
		fprintf(stderr, "uroce: %s: listens on port %u\n", dev->verbs->device->name,
			number);
	return 0;
}

void ur_cm_release_ports(struct ur_cm_id *id)
{
	for (unsigned i = 0; i < UR_CM_DEVICES_MAX; i++) {
		struct ur_cm_port *p = id->ports[i];

		id->ports[i] = NULL;
		if (!p || --p->refs)
			continue;
		LIST_REMOVE(p, link);
		uroce_cm_destroy_id(p->cm);
		free(p);
	}
}

/* Under the lock. */
static int start_listening(struct ur_cm_id *id)
{
	unsigned cnt;
	struct ur_cm_device *dev = ur_cm_devices(&cnt);
	int rc = 0;

	/* Ids that share a port cannot listen on it. */
	if (id->reuse && is_taken(id, source_of(id), false))
		return EADDRINUSE;
	for (unsigned i = 0; i < cnt && !rc; i++)
		if (!id->dev || id->dev == &dev[i])
			rc = use_port(id, &dev[i], &id->ports[i]);
	if (rc)
		ur_cm_release_ports(id);
	else
		id->state = UR_CM_LISTENING;
	return rc;
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct sockaddr_in any = {.sin_family = AF_INET};
	int rc, state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (id->state == UR_CM_IDLE && rdma_bind_addr(base, (struct sockaddr *)&any))
		return -1;
	if (id->state != UR_CM_BOUND)
		return ur_cm_fail(EINVAL);
	state = ur_cm_enter();
	id->backlog = backlog > 0 && backlog < BACKLOG_MAX ? (unsigned)backlog : BACKLOG_MAX;
	rc = start_listening(id);
	ur_cm_leave(state);
	return ur_cm_fail(rc);
}

/* ---- requests ---- */

struct call {
	const struct ur_cm_port *port;
	const struct sockaddr *local;
};

static bool listens_on(const struct ur_cm_id *id, const struct ur_cm_port *port)
{
	unsigned cnt;
	const struct ur_cm_device *first = ur_cm_devices(&cnt);

	return id->state == UR_CM_LISTENING && id->ports[port->dev - first] == port;
}

static bool is_at(const struct ur_cm_id *id, const void *arg)
{
	const struct call *c = arg;

	return listens_on(id, c->port) && same_address(source_of(id), c->local);
}

static bool is_everywhere(const struct ur_cm_id *id, const void *arg)
{
	const struct call *c = arg;

	return listens_on(id, c->port) && covers(id, source_of(id), c->local);
}

struct ur_cm_id *ur_cm_listener(const struct ur_cm_port *port, const struct sockaddr *local)
{
	struct call c = {port, local};
	struct ur_cm_id *id = ur_cm_find_id(is_at, &c);

	return id ? id : ur_cm_find_id(is_everywhere, &c);
}
