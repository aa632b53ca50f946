/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_CC_H
#define UR_CC_CC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "cc/attr.h"

/*
 * Congestion control by destination (docs/design/pacing.md): when the next packet may go to an
 * address, and how many bytes may be in flight toward it. It knows nothing of queue pairs or
 * packets. Queue pairs share the entry of their destination; the transport reports what happened to
 * their packets (ur_cc_on_*) and asks when to go on (ur_cc_open_ns, ur_cc_has_room).
 *
 * An algorithm is a struct ur_cc_ops in a file of its own and a row in <uroce/pacing_modes.h>;
 * docs/adding.md shows how to add one. What an algorithm decides is in the entry: a time before
 * which nothing is sent (a gap per packet, or a rate), and a window.
 *
 * Memory is the caller's: ur_cc_size() bytes. Time never goes back; delays and gaps are in
 * nanoseconds. Thread class: the one that owns the table.
 */

/* Fixed point: rates in bytes a nanosecond, costs in nanoseconds a byte. */
#define UR_CC_RATE_SHIFT 20
#define UR_CC_COST_SHIFT 16

#define UR_CC_NO_WINDOW	  UINT64_MAX
#define UR_CC_STATE_BYTES 256 /* of an algorithm, for each destination */

/* Reference-counted entry of one destination. Written by the table and its algorithm only, but for
 * in_flight and acked; read it through the view. */
struct ur_cc_dest {
	uint64_t bytes;	    /* sent so far */
	uint64_t open_ns;   /* nothing is sent before; 0: no gap */
	uint64_t window;    /* bytes that may be in flight; UR_CC_NO_WINDOW: any number */
	uint64_t in_flight; /* bytes; the caller's, who keeps it if the algorithm has a window */
	uint64_t acked;	    /* the same: bytes acknowledged since the last ur_cc_on_ack() */
	uint32_t gap_ns;    /* between two packets; 0: cost says, or there is none */
	uint32_t cost;	    /* of a byte; 0: not throttled by a rate */
	uint32_t packet;    /* bytes of the largest packet that its users send, a power of two */
	bool throttled;	    /* the algorithm holds back what is sent */
	bool watched;	    /* throttled, or its bytes in flight are counted */
	bool ce;	    /* a CNP came since the last ur_cc_on_ack() */
	uint32_t users;	    /* 0: free */
	uint64_t samples, outliers, reseeds, throttles, cnps, losses, timeouts;
	uint32_t last_ns, least_ns; /* delays; least ever, UINT32_MAX: no sample */
	uint64_t avg8_ns;	    /* eight times the moving average */
	uint8_t key[UR_CC_KEY];
	SLIST_ENTRY(ur_cc_dest) link;		      /* in a bucket or among the free */
	_Alignas(8) uint8_t state[UR_CC_STATE_BYTES]; /* the algorithm's; zero at init */
};

SLIST_HEAD(ur_cc_list, ur_cc_dest);

struct ur_cc;

/* What an acknowledgement says. */
struct ur_cc_ack {
	uint32_t rtt_ns; /* there and back without the time that the peer kept the packet; 0: not
			    measured, because packets were sent twice; algorithms with a window */
	uint64_t bytes;	 /* acknowledged since the last one; 0 for algorithms without a window */
	bool ce;	 /* a CNP came since the last one: RoCEv2's echo of a CE mark */
};

/*
 * An algorithm. A function that is NULL is not called. Each of the others is called with an entry
 * of the table in use; it may throttle or open the destination (cc_priv.h), and set open_ns,
 * gap_ns, cost and window while it is throttled.
 */
struct ur_cc_ops {
	bool link;   /* goes by the speed of the port: attr.link_bps is valid */
	bool window; /* sets a window: in_flight and acked are kept */
	bool ecn;    /* packets leave ECN-capable */

	/* The entry is new; its state is zero. */
	void (*init)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* A packet of `bytes` left while throttled: sets open_ns for the next one. */
	void (*on_send)(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns);
	void (*on_ack)(struct ur_cc *t, struct ur_cc_dest *d, const struct ur_cc_ack *ack,
		       uint64_t now_ns);
	/* Packets were found lost by what came after them. */
	void (*on_loss)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* Nothing was heard of what a queue pair had in flight. */
	void (*on_timeout)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* A congestion notification packet came. */
	void (*on_cnp)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* The link has another speed (ops.link). */
	void (*on_link)(struct ur_cc *t, struct ur_cc_dest *d);
	/* The average that the view shows; NULL: a moving average over eight delays. */
	uint64_t (*average_ns)(const struct ur_cc_dest *d);
};

struct ur_cc {
	struct ur_cc_attr attr; /* defaults filled in */
	const struct ur_cc_ops *ops;
	uint32_t link, rai, rhai; /* as rates */
	uint32_t dests, used;
	uint32_t throttled; /* destinations now */
	uint64_t dry_ns;    /* when nothing was there to receive; what comes now came later. 0: not
			       known. The owner's, before it tells of delays. */
	uint32_t mask;	    /* of the hash */
	struct ur_cc_list *buckets, free;
	struct ur_cc_dest unpaced; /* stands for all that have no entry */
	struct ur_cc_counters cnt;
};

/* ---- algorithms ---- */

/* That of a mode; never NULL. */
const struct ur_cc_ops *ur_cc_ops_of(enum ur_cc_mode mode);

/* ---- the table ---- */

/* Bytes, 8-aligned, for a table of dests destinations, dests in [1, 2^20]. */
size_t ur_cc_size(uint32_t dests);
/* *t is at no other place later; memory stays the caller's and in use. */
void ur_cc_init(struct ur_cc *t, void *memory, uint32_t dests, const struct ur_cc_attr *attr);

/*
 * The link is of another speed from now on: rates are bounded by it at once, and grow up to it.
 * Goes through all destinations. Nothing for algorithms that do not go by the link.
 */
void ur_cc_set_link(struct ur_cc *t, uint64_t link_bps);
/* The speed that the algorithm goes by; 0 where it knows no link. */
uint64_t ur_cc_link_bps(const struct ur_cc *t);

/*
 * One more reference to the entry of `key`, from a user whose packets have up to `packet` bytes of
 * payload, a power of two. Never NULL: in mode NONE and when the table is full (counted) it is an
 * entry that is never throttled and learns nothing. PACE-TABLE-02
 */
struct ur_cc_dest *ur_cc_get(struct ur_cc *t, const uint8_t key[UR_CC_KEY], uint32_t packet,
			     uint64_t now_ns);
/* Its place in the table, [0, dests); UINT32_MAX: it stands for all that have no entry. */
uint32_t ur_cc_index(const struct ur_cc *t, const struct ur_cc_dest *d);
/* Gives the reference back; with the last one what was learned is forgotten. */
void ur_cc_put(struct ur_cc *t, struct ur_cc_dest *d);

/* ---- events ---- */

void ur_cc_on_send_throttled(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes,
			     uint64_t now_ns);

/* A packet of `bytes`, in [1, 2^31) with those that a READ asks for, left. */
static inline void ur_cc_on_send(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes,
				 uint64_t now_ns)
{
	d->bytes += bytes;
	if (__builtin_expect(d->throttled, 0))
		ur_cc_on_send_throttled(t, d, bytes, now_ns);
}

/*
 * A packet took rtt_ns there and back, without the time that the peer kept it; d->acked bytes were
 * acknowledged. The delay is not counted when more than half of it may be time in which nothing was
 * received here, by dry_ns; the bytes are kept for the next one then.
 */
void ur_cc_on_ack(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint64_t now_ns);
/* d->acked bytes were acknowledged without a round trip to measure. Nothing without a window. */
void ur_cc_on_acked(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* Packets were found lost; once for all that one acknowledgement shows. */
void ur_cc_on_loss(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* A retransmission timeout of a queue pair. */
void ur_cc_on_timeout(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* A congestion notification packet came; whether the algorithm obeys it. */
bool ur_cc_on_cnp(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);

/* ---- decisions ---- */

/* When the next packet may go: now, if not later than now; 0: no gap. */
static inline uint64_t ur_cc_open_ns(const struct ur_cc_dest *d)
{
	return d->open_ns;
}

/*
 * CC-WINDOW-01. Whether one more packet of the largest size fits into the window. One always does
 * when nothing is in flight: below one packet the gap holds back.
 */
static inline bool ur_cc_has_room(const struct ur_cc_dest *d)
{
	return !d->in_flight || d->in_flight + d->packet <= d->window;
}

/* Between packets of 4096 bytes; 0: not throttled by a gap or a rate. */
static inline uint64_t ur_cc_gap_ns(const struct ur_cc_dest *d)
{
	return d->cost ? ((uint64_t)4096 * d->cost) >> UR_CC_COST_SHIFT : d->gap_ns;
}

/* ---- what it looks like ---- */

void ur_cc_view(const struct ur_cc *t, const struct ur_cc_dest *d, struct ur_cc_view *v);
/* Every destination in use, in no order: start with *at = 0, until NULL. */
const struct ur_cc_dest *ur_cc_next(const struct ur_cc *t, uint32_t *at);

/* ---- notification point of DCQCN ---- */

#define UR_CNP_INTERVAL_NS 50000

/*
 * A packet marked congestion experienced came: whether a CNP goes back. At most one in
 * UR_CNP_INTERVAL_NS for a flow; *last_ns is the flow's, 0 at first, and now_ns + 1 when true.
 */
static inline bool ur_cnp_due(uint64_t *last_ns, uint64_t now_ns)
{
	/* PACE-CNP-01 */
	if (*last_ns && now_ns + 1 - *last_ns < UR_CNP_INTERVAL_NS)
		return false;
	*last_ns = now_ns + 1;
	return true;
}

#endif
