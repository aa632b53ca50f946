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
 * packets. Queue pairs share the entry of their destination. The transport reports what happens to
 * their packets (ur_cc_on_*), and asks when the next one may be sent (ur_cc_open_ns, ur_cc_has_room).
 *
 * An algorithm is a struct ur_cc_ops in a file of its own and a row in <uroce/pacing_modes.h>;
 * docs/adding.md shows how to add one. An algorithm writes its decisions into the entry: a time
 * before which nothing is sent (from a gap between packets, or from a rate), and a window.
 *
 * Memory is the caller's: ur_cc_size() bytes. Time never goes back; delays and gaps are in
 * nanoseconds. Thread class: the thread that owns the table.
 */

/* Fixed point: rates in bytes per nanosecond, costs in nanoseconds per byte. */
#define UR_CC_RATE_SHIFT 20
#define UR_CC_COST_SHIFT 16

#define UR_CC_NO_WINDOW	  UINT64_MAX
#define UR_CC_STATE_BYTES 256 /* of an algorithm, for each destination */

/* Reference-counted entry of one destination. Only the table and its algorithm write to it, except
 * in_flight and acked, which the caller keeps; read it through the view. */
struct ur_cc_dest {
	uint64_t bytes;	    /* sent so far */
	uint64_t open_ns;   /* nothing is sent before this time; 0: no gap */
	uint64_t window;    /* bytes that may be in flight; UR_CC_NO_WINDOW: any number */
	uint64_t in_flight; /* bytes in flight; kept by the caller if the algorithm has a window */
	uint64_t acked;	    /* bytes acknowledged since the last ur_cc_on_ack(); kept likewise */
	uint32_t gap_ns;    /* between two packets; 0: by cost, or no gap */
	uint32_t cost;	    /* of a byte; 0: not throttled by a rate */
	uint32_t packet;    /* bytes of the largest packet that its users send, a power of two */
	bool throttled;	    /* the algorithm limits what is sent */
	bool watched;	    /* throttled, or its bytes in flight are counted */
	bool ce;	    /* a CNP has arrived since the last ur_cc_on_ack() */
	uint32_t users;	    /* references; 0: free */
	uint64_t samples, outliers, reseeds, throttles, cnps, losses, timeouts;
	uint32_t last_ns, least_ns; /* delays; least ever, UINT32_MAX: no sample */
	uint64_t avg8_ns;	    /* eight times the moving average */
	uint8_t key[UR_CC_KEY];
	SLIST_ENTRY(ur_cc_dest) link;		      /* in a bucket or in the free list */
	_Alignas(8) uint8_t state[UR_CC_STATE_BYTES]; /* the algorithm's; zero at init */
};

SLIST_HEAD(ur_cc_list, ur_cc_dest);

struct ur_cc;

/* The information in an acknowledgement. */
struct ur_cc_ack {
	uint32_t rtt_ns; /* round trip without the residence at the peer; 0: not measured because
			    packets were sent twice (only algorithms with a window see this) */
	/* The same without queues on the way back where switches say so, at most rtt_ns; else rtt_ns. What throttles. */
	uint32_t delay_ns;
	uint64_t bytes; /* acknowledged since the last call; 0 for algorithms without a window */
	bool ce;	/* a CNP has arrived since the last call: RoCEv2's echo of CE */
};

/*
 * An algorithm. A function that is NULL is not called. The others are called with an entry of the
 * table that is in use. They may throttle or open the destination (cc_priv.h), and set open_ns,
 * gap_ns, cost and window while it is throttled.
 */
struct ur_cc_ops {
	bool link;   /* uses the speed of the port: attr.link_bps is valid */
	bool window; /* sets a window: in_flight and acked are kept */
	bool ecn;    /* packets are sent ECN-capable */

	/* The entry is new; its state is zero. */
	void (*init)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* A packet of `bytes` was sent while throttled: set open_ns for the next one. */
	void (*on_send)(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns);
	/* An acknowledgement has arrived. */
	void (*on_ack)(struct ur_cc *t, struct ur_cc_dest *d, const struct ur_cc_ack *ack,
		       uint64_t now_ns);
	/* Later arrivals have shown that packets are lost. */
	void (*on_loss)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* Packets of a queue pair got no answer in time. */
	void (*on_timeout)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* A congestion notification packet has arrived. */
	void (*on_cnp)(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
	/* The speed of the link has changed (ops.link). */
	void (*on_link)(struct ur_cc *t, struct ur_cc_dest *d);
	/*
	 * Whether delays have come near to what throttles, while the destination is open: then it is worth asking switches for
	 * theirs. NULL: always.
	 */
	bool (*is_wary)(const struct ur_cc_dest *d);
	/* The average that the view shows; NULL: a moving average over eight delays. */
	uint64_t (*average_ns)(const struct ur_cc_dest *d);
};

struct ur_cc {
	struct ur_cc_attr attr; /* defaults filled in */
	const struct ur_cc_ops *ops;
	uint32_t link, rai, rhai; /* as rates */
	uint32_t dests, used;	  /* entries; those in use */
	uint32_t throttled;	  /* destinations that are throttled now */
	/* When the port was last found empty: packets received since have arrived later. 0: not
	 * known. The owner sets it before it reports delays. */
	uint64_t dry_ns;
	uint32_t mask; /* of the hash */
	struct ur_cc_list *buckets, free;
	struct ur_cc_dest unpaced; /* shared by all destinations without an entry */
	struct ur_cc_counters cnt;
};

/* ---- algorithms ---- */

/* The algorithm of a mode; never NULL. */
const struct ur_cc_ops *ur_cc_ops_of(enum ur_cc_mode mode);

/* ---- the table ---- */

/* Bytes, 8-aligned, for a table of dests destinations, dests in [1, 2^20]. */
size_t ur_cc_size(uint32_t dests);
/* Initializes *t, which must not be moved. `memory` stays the caller's and in use. */
void ur_cc_init(struct ur_cc *t, void *memory, uint32_t dests, const struct ur_cc_attr *attr);

/*
 * Changes the speed of the link: rates are bounded by it at once, and grow up to it. Goes through all
 * destinations. Does nothing for algorithms that do not use the speed of the link.
 */
void ur_cc_set_link(struct ur_cc *t, uint64_t link_bps);
/* The speed that the algorithm uses; 0: it uses none. */
uint64_t ur_cc_link_bps(const struct ur_cc *t);

/*
 * Takes a reference to the entry of `key`, for a user whose packets have up to `packet` bytes of
 * payload, a power of two. Never NULL: in mode NONE and when the table is full (counted) it returns
 * an entry that is never throttled and learns nothing. PACE-TABLE-02
 */
struct ur_cc_dest *ur_cc_get(struct ur_cc *t, const uint8_t key[UR_CC_KEY], uint32_t packet,
			     uint64_t now_ns);
/* Index of the entry in the table, [0, dests); UINT32_MAX: the shared one without state. */
uint32_t ur_cc_index(const struct ur_cc *t, const struct ur_cc_dest *d);
/* Releases a reference; with the last one the state of the destination is discarded. */
void ur_cc_put(struct ur_cc *t, struct ur_cc_dest *d);

/* ---- events ---- */

void ur_cc_on_send_throttled(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes,
			     uint64_t now_ns);

/* A packet was sent. `bytes`, in [1, 2^31), includes those that a READ requests. */
static inline void ur_cc_on_send(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes,
				 uint64_t now_ns)
{
	d->bytes += bytes;
	if (__builtin_expect(d->throttled, 0))
		ur_cc_on_send_throttled(t, d, bytes, now_ns);
}

/*
 * A round trip of rtt_ns was measured, without the residence at the peer, and d->acked bytes were
 * acknowledged. The delay is ignored if more than half of it may be time in which nothing was
 * received here (dry_ns); the bytes are then kept for the next call.
 */
void ur_cc_on_ack(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint64_t now_ns);
/* The same; but delay_ns, in [1, rtt_ns], is what is left of rtt_ns without queues that are known to be on the way back. */
void ur_cc_on_estimate(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint32_t delay_ns,
		       uint64_t now_ns);
/*
 * PACE-NET-01. The same; but switches have told how much of rtt_ns was queues on the way there, or on both ways while data
 * is read, and delay_ns, in [1, rtt_ns], is what it would have been without any other. Pauses of ours are none of it.
 */
void ur_cc_on_delay(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint32_t delay_ns,
		    uint64_t now_ns);
/* d->acked bytes were acknowledged, and no round trip was measured. No effect without a window. */
void ur_cc_on_unmeasured_ack(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* Packets were found lost; called once for all packets that one acknowledgement shows to be lost. */
void ur_cc_on_loss(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* A retransmission timeout of a queue pair has expired. */
void ur_cc_on_timeout(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* A congestion notification packet has arrived. Returns whether the algorithm uses CNPs. */
bool ur_cc_on_cnp(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);

/* ---- decisions ---- */

/* The time from which the next packet may be sent; 0: no gap. */
static inline uint64_t ur_cc_open_ns(const struct ur_cc_dest *d)
{
	return d->open_ns;
}

/*
 * CC-WINDOW-01. Whether one more packet of the largest size fits into the window. One always does
 * when nothing is in flight: below one packet the gap limits the rate.
 */
static inline bool ur_cc_has_room(const struct ur_cc_dest *d)
{
	return !d->in_flight || d->in_flight + d->packet <= d->window;
}

/* Whether delays matter to it now: they throttle, or have come near to that. */
static inline bool ur_cc_is_wary(const struct ur_cc *t, const struct ur_cc_dest *d)
{
	return d->throttled || !t->ops->is_wary || t->ops->is_wary(d);
}

/* The gap after a packet of 4096 bytes; 0: not throttled by a gap or a rate. */
static inline uint64_t ur_cc_gap_ns(const struct ur_cc_dest *d)
{
	return d->cost ? ((uint64_t)4096 * d->cost) >> UR_CC_COST_SHIFT : d->gap_ns;
}

/* ---- queries ---- */

void ur_cc_view(const struct ur_cc *t, const struct ur_cc_dest *d, struct ur_cc_view *v);
/* Iterates over the destinations in use, in no particular order: start with *at = 0, until NULL. */
const struct ur_cc_dest *ur_cc_next(const struct ur_cc *t, uint32_t *at);

/* ---- notification point of DCQCN ---- */

#define UR_CNP_INTERVAL_NS 50000

/*
 * Whether to answer a packet that is marked CE with a CNP: at most one in UR_CNP_INTERVAL_NS for each
 * flow. *last_ns belongs to the flow; it is 0 at first, and set to now_ns + 1 when the result is true.
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
