/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <bsd/string.h>

#define SLOTS 64 /* of each direction, a power of two */

struct ring_link;

struct ring_device {
	struct device dev;
	struct rte_mempool *pool;
	struct ring_link *link;
	struct ring_device *peer; /* NULL: not opened yet, or closed */
	/* Sent by the peer, not yet received: [head, tail). */
	struct rte_mbuf *slot[SLOTS];
	unsigned head, tail;
};

struct ring_link {
	LIST_ENTRY(ring_link) entry;
	char name[UR_CONFIG_TEXT];
	struct ring_device *end[2]; /* NULL: not opened yet, or closed */
	unsigned opened;
};

static LIST_HEAD(, ring_link) links = LIST_HEAD_INITIALIZER(links);

static unsigned ring_rx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct ring_device *r = (struct ring_device *)d;
	unsigned got = 0;

	while (got < n && r->head != r->tail)
		m[got++] = r->slot[r->head++ % SLOTS];
	return got;
}

/* SWITCH-RING-01. False: the other end has no room. */
static bool hand_over(struct ring_device *to, const struct rte_mbuf *m)
{
	struct rte_mbuf *copy = to->tail - to->head < SLOTS ? rte_pktmbuf_alloc(to->pool) : NULL;
	uint16_t len = m->data_len <= to->dev.max_frame ? m->data_len : 0;

	if (!copy)
		return false;
	memcpy(rte_pktmbuf_append(copy, len), rte_pktmbuf_mtod(m, void *), len);
	to->slot[to->tail++ % SLOTS] = copy;
	return true;
}

static unsigned ring_tx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct ring_device *r = (struct ring_device *)d;
	unsigned i = 0;

	while (i < n && r->peer && hand_over(r->peer, m[i]))
		rte_pktmbuf_free(m[i++]);
	return i;
}

static bool ring_link(struct device *d)
{
	return ((struct ring_device *)d)->peer != NULL;
}

static void ring_close(struct device *d)
{
	struct ring_device *r = (struct ring_device *)d;
	struct ring_link *l = r->link;

	while (r->head != r->tail)
		rte_pktmbuf_free(r->slot[r->head++ % SLOTS]);
	if (r->peer)
		r->peer->peer = NULL;
	l->end[l->end[1] == r] = NULL;
	if (!l->end[0] && !l->end[1]) {
		LIST_REMOVE(l, entry);
		free(l);
	}
	free(r);
}

/* Nobody sends while the thread sleeps. */
static bool ring_interrupts(struct device *d, bool on)
{
	return true;
}

static const struct device_ops ring_ops = {.rx = ring_rx,
					   .tx = ring_tx,
					   .link = ring_link,
					   .close = ring_close,
					   .interrupts = ring_interrupts};

static struct ring_link *find(const char *name)
{
	struct ring_link *l;

	LIST_FOREACH(l, &links, entry)
	if (strcmp(l->name, name) == 0)
		return l;
	return NULL;
}

static void join(struct ring_link *l, struct ring_device *r)
{
	r->link = l;
	r->peer = l->opened ? l->end[0] : NULL;
	if (r->peer)
		r->peer->peer = r;
	l->end[l->opened++] = r;
}

struct device *ring_open(const struct switch_spec *spec, uint32_t max_frame,
			 struct rte_mempool *pool, char *err, size_t cap)
{
	struct ring_link *l = find(spec->name);
	struct ring_device *r;

	if (l && l->opened == 2) {
		snprintf(err, cap, "ring=%s: this name has two ports already", spec->name);
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (!l && (l = calloc(1, sizeof(*l))) != NULL) {
		strlcpy(l->name, spec->name, sizeof(l->name));
		LIST_INSERT_HEAD(&links, l, entry);
	}
	if (!r || !l)
		abort();
	r->dev.ops = &ring_ops;
	r->dev.max_frame = max_frame;
	snprintf(r->dev.name, sizeof(r->dev.name), "ring=%s", spec->name);
	r->pool = pool;
	join(l, r);
	return &r->dev;
}

bool ring_check(char *err, size_t cap)
{
	const struct ring_link *l;

	LIST_FOREACH(l, &links, entry)
	if (l->opened == 1) {
		snprintf(err, cap,
			 "ring=%s: a ring joins two ports, and no other port has this name",
			 l->name);
		return false;
	}
	return true;
}
