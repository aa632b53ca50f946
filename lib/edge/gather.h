/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_GATHER_H
#define UR_EDGE_GATHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "edge/config.h"

/*
 * EDGE-GATHER-01. The open burst of an inline worker: requests that were posted one after the other, to several queue pairs,
 * and leave together. A burst of one packet costs about as much as a burst of thirty: a buffer from the
 * pool, a call of the driver, and the index of a ring that the other core reads.
 *
 * A doorbell that joins the burst is followed by no output. The burst ends with the next round, the next
 * poll, a command, or the doorbell that makes it UR_GATHER_REQUESTS long. If the application does nothing of
 * this, the progress thread runs a round within about two milliseconds.
 *
 * Mode auto does not delay a request that is posted alone: only a doorbell that follows another one within
 * UR_GATHER_NS, with no round between them, joins, and one that comes UR_GATHER_MOST_NS after the first of the burst ends it. It ends for good when the application asks for
 * completion events, because it will sleep after its last post.
 *
 * Thread class: the thread that is the worker; ur_gather_open() and ur_gather_end_auto(): any thread.
 */
#define UR_GATHER_REQUESTS 32 /* UR_BURST */
/*
 * Between two doorbells of a series. With thousands of queue pairs in random order a post took two microseconds while each left
 * alone, because all that it touches is in memory.
 */
#define UR_GATHER_NS	  4000
#define UR_GATHER_MOST_NS 16000 /* from the first doorbell that joined: the burst is over */

struct ur_gather {
	_Atomic int mode;	   /* UR_TRISTATE_ value; yes: each doorbell joins */
	_Atomic unsigned in_burst; /* requests, below UR_GATHER_REQUESTS */
	uint64_t last_ns;	   /* time of the last doorbell; 0: a round has run since */
	uint64_t open_ns;	   /* in_burst > 0: time of the first that joined */
};

static inline void ur_gather_init(struct ur_gather *g, int mode)
{
	*g = (struct ur_gather){0};
	atomic_init(&g->mode, mode);
}

/* Whether requests wait for the end of a burst. */
static inline bool ur_gather_open(const struct ur_gather *g)
{
	return atomic_load_explicit(&g->in_burst, memory_order_relaxed) != 0;
}

/* A doorbell for `cnt` requests. True: they wait. False: the caller sends them and all that waits. */
static inline bool ur_gather_joins(struct ur_gather *g, uint64_t now_ns, unsigned cnt)
{
	int mode = atomic_load_explicit(&g->mode, memory_order_relaxed);
	unsigned waiting = atomic_load_explicit(&g->in_burst, memory_order_relaxed);
	bool soon = g->last_ns && now_ns - g->last_ns < UR_GATHER_NS;

	g->last_ns = now_ns;
	if (mode == UR_TRISTATE_NO || (mode == UR_TRISTATE_AUTO && !soon))
		return false;
	if (!waiting)
		g->open_ns = now_ns;
	cnt += waiting;
	if (cnt >= UR_GATHER_REQUESTS ||
	    (mode == UR_TRISTATE_AUTO && now_ns - g->open_ns >= UR_GATHER_MOST_NS))
		return false;
	atomic_store_explicit(&g->in_burst, cnt, memory_order_relaxed);
	return true;
}

/* What waited is sent. */
static inline void ur_gather_sent(struct ur_gather *g)
{
	atomic_store_explicit(&g->in_burst, 0, memory_order_relaxed);
}

/* A round runs: it sends what waits, and the next request is alone again. */
static inline void ur_gather_round(struct ur_gather *g)
{
	ur_gather_sent(g);
	g->last_ns = 0;
}

static inline void ur_gather_end_auto(struct ur_gather *g)
{
	int expected = UR_TRISTATE_AUTO;

	atomic_compare_exchange_strong(&g->mode, &expected, UR_TRISTATE_NO);
}

#endif
