/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PACING_PACING_H
#define UR_PACING_PACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "pacing/attr.h"

/*
 * Pacing by destination: when the next packet may go to a place, from the delays of those that went
 * there before (docs/design/pacing.md). It knows nothing of queue pairs or packets: they share the
 * entry of their destination, tell it what they sent and what came back, and ask when they may go
 * on.
 *
 * An entry that is not throttled costs one load and compare to ask and one addition a packet.
 *
 * Memory is the caller's: ur_pacing_size() bytes. Time never goes back; delays and gaps in
 * nanoseconds. Thread class: the one that owns the table.
 */
/* Fixed point: rates in bytes a nanosecond, costs in nanoseconds a byte. */
#define UR_PACING_RATE_SHIFT 20
#define UR_PACING_COST_SHIFT 16

/* ---- what the modes remember of a destination ---- */

/* The average is sum / cnt. */
struct ur_pacing_cmdpd {
	uint64_t sum_ns;   /* All_delay */
	uint32_t cnt;	   /* Packet_num, 0: no sample yet */
	uint32_t outliers; /* in a row */
	uint64_t since_ns; /* when the first of them came */
};

#define UR_PACING_MARKS 8

struct ur_pacing_mark {
	uint64_t ns, bytes;
};

struct ur_pacing_auto {
	uint32_t least_ns;	/* delay of this interval and the one before; UINT32_MAX: none */
	uint32_t least_next_ns; /* of this interval */
	uint64_t interval_ns;	/* when it ends */
	uint32_t delay_ns, before_ns; /* the last two; 0: none */
	uint64_t late_ns;  /* since when all were longer than enter_ns; 0: they are not */
	uint32_t jitter16; /* how far delays jump to and fro, 1/16 ns */
	uint32_t rate;	   /* meaningful while throttled */
	uint32_t unit;	   /* largest of the last packets, with what a READ asks for */
	uint32_t capacity; /* what was delivered, as a rate */
	uint64_t enter_ns; /* longer delays throttle */
	uint64_t round_ns, round_bytes; /* when the round began, and what had been delivered */
	uint64_t last_ns, last_bytes;	/* the same of the round before */
	/* Is the queue a queue? While throttled. */
	uint64_t ref_bytes;    /* most that a round delivered, */
	uint32_t ref_queue_ns; /* with this queue */
	uint8_t proofs;	       /* rounds in a row with much less, and the same queue */
	bool draining;	       /* it was too long and is to go away */
	uint16_t rounds;       /* since the last probe */
	uint32_t probe_ns;     /* delay before the probe; 0: it has changed since */
	uint32_t way_ns;       /* delay that the last probe did not change; 0: it did */
	uint32_t held;	       /* capacity before the probe */
	uint8_t marks;	       /* [1, UR_PACING_MARKS] */
	struct ur_pacing_mark mark[UR_PACING_MARKS]; /* bytes sent before a time, oldest first */
};

struct ur_pacing_dcqcn {
	uint32_t rate, target;	   /* RC, RT; meaningful while throttled */
	uint32_t alpha;		   /* 1/65536, [0, 65536] */
	uint32_t bytes;		   /* since the last increase by bytes */
	uint8_t by_time, by_bytes; /* increases since the last CNP, up to 255 */
	uint64_t timer_ns;	   /* when the last increase by time was due */
	uint64_t cnp_ns;	   /* when the last CNP came */
};

/* Reference-counted entry of one destination. Fields are the table's; read them through the view.
 */
struct ur_pacing_dest {
	uint64_t open_ns; /* 0: not throttled */
	uint64_t bytes;	  /* sent */
	uint32_t gap_ns;  /* CMDPD: between two packets */
	uint32_t cost;	  /* AUTO, DCQCN: of a byte */
	bool throttled;
	uint32_t users; /* 0: free */
	union {
		struct ur_pacing_cmdpd cmdpd;
		struct ur_pacing_auto rate;
		struct ur_pacing_dcqcn dcqcn;
	};
	uint64_t samples, outliers, reseeds, throttles, cnps;
	uint32_t last_ns, least_ns; /* delays; least ever, UINT32_MAX: no sample */
	uint64_t avg8_ns;	    /* eight times the moving average */
	uint8_t key[UR_PACING_KEY];
	SLIST_ENTRY(ur_pacing_dest) link; /* in a bucket or among the free */
};

SLIST_HEAD(ur_pacing_list, ur_pacing_dest);

struct ur_pacing {
	struct ur_pacing_attr attr; /* defaults filled in */
	uint32_t link, rai, rhai;   /* as rates */
	uint32_t dests, used;
	uint32_t throttled; /* destinations now */
	uint64_t dry_ns;    /* when nothing was there to receive; what comes now came later. 0: not
			       known. The owner's, before it tells of delays. */
	uint32_t mask;	    /* of the hash */
	struct ur_pacing_list *buckets, free;
	struct ur_pacing_dest unpaced; /* stands for all that have no entry */
	struct ur_pacing_counters cnt;
};

/* ---- the table ---- */

/* Bytes, 8-aligned, for a table of dests destinations, dests in [1, 2^20]. */
size_t ur_pacing_size(uint32_t dests);
/* *t is at no other place later; memory stays the caller's and in use. */
void ur_pacing_init(struct ur_pacing *t, void *memory, uint32_t dests,
		    const struct ur_pacing_attr *attr);

/*
 * The link is of another speed from now on: rates are bounded by it at once, and grow up to it.
 * Goes through all destinations. Nothing in modes NONE and CMDPD, which know no link.
 */
void ur_pacing_set_link(struct ur_pacing *t, uint64_t link_bps);
/* The speed that the mode goes by; 0 in modes NONE and CMDPD. */
uint64_t ur_pacing_link_bps(const struct ur_pacing *t);

/*
 * One more reference to the entry of `key`. Never NULL: in mode NONE and when the table is full
 * (counted) it is an entry that is never throttled and learns nothing. PACE-TABLE-02
 */
struct ur_pacing_dest *ur_pacing_get(struct ur_pacing *t, const uint8_t key[UR_PACING_KEY],
				     uint64_t now_ns);
/* Its place in the table, [0, dests); UINT32_MAX: it stands for all that have no entry. */
uint32_t ur_pacing_index(const struct ur_pacing *t, const struct ur_pacing_dest *d);
/* Gives the reference back; with the last one what was learned is forgotten. */
void ur_pacing_put(struct ur_pacing *t, struct ur_pacing_dest *d);

/* ---- what happens ---- */

/*
 * A packet took delay_ns there and back, without the time that the peer kept it. It is not counted
 * when more than half of it may be time in which nobody here looked, by dry_ns.
 */
void ur_pacing_delay(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t delay_ns,
		     uint64_t now_ns);
/* A congestion notification packet came. */
void ur_pacing_cnp(struct ur_pacing *t, struct ur_pacing_dest *d, uint64_t now_ns);

void ur_pacing_sent_throttled(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t bytes,
			      uint64_t now_ns);

/* A packet of `bytes`, in [1, 2^31) with those that a READ asks for, left. */
static inline void ur_pacing_sent(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t bytes,
				  uint64_t now_ns)
{
	d->bytes += bytes;
	if (__builtin_expect(d->throttled, 0))
		ur_pacing_sent_throttled(t, d, bytes, now_ns);
}

/* When the next packet may go: now, if not later than now; 0 while not throttled. */
static inline uint64_t ur_pacing_open_ns(const struct ur_pacing_dest *d)
{
	return d->open_ns;
}

/* Between packets of 4096 bytes; 0: not throttled. */
static inline uint64_t ur_pacing_gap_ns(const struct ur_pacing_dest *d)
{
	return d->cost ? ((uint64_t)4096 * d->cost) >> UR_PACING_COST_SHIFT : d->gap_ns;
}

/* ---- what it looks like ---- */

void ur_pacing_view(const struct ur_pacing *t, const struct ur_pacing_dest *d,
		    struct ur_pacing_view *v);
/* Every destination in use, in no order: start with *at = 0, until NULL. */
const struct ur_pacing_dest *ur_pacing_next(const struct ur_pacing *t, uint32_t *at);

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
