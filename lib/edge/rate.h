/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_RATE_H
#define UR_EDGE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A slower link in front of the port ([port] rate_gbps): says when the next packet may be handed
 * over. The port holds the packet that is leaving and the one behind it, never more, so that
 * whatever is sent next is decided as late as on a real link.
 *
 * A worker that comes too late for a packet makes up for it, at most UR_RATE_LATE_NS; time in which
 * there was nothing to send is lost, as on a real link.
 *
 * Thread class: the worker. Times are of its clock.
 */
#define UR_RATE_SHIFT	20
#define UR_RATE_LATE_NS 4000000 /* another process had the CPU for a slice */
#define UR_RATE_EXTRA	24	/* bytes on the wire beside the frame: preamble, FCS, gap */

struct ur_rate {
	uint64_t ns_per_byte; /* << UR_RATE_SHIFT; 0: no limit */
	uint64_t free_ns;     /* when all that was handed over has left, */
	uint32_t free_frac;   /* and a fraction of a nanosecond, << UR_RATE_SHIFT */
	uint64_t next_ns;     /* when the last packet handed over begins to leave */
	bool behind;	      /* something waits for next_ns */
};

/* `gbps` in [0.0001, 8000], 0: no limit. */
static inline void ur_rate_init(struct ur_rate *r, double gbps)
{
	*r = (struct ur_rate){
		.ns_per_byte = gbps > 0 ? (uint64_t)(8 / gbps * (1 << UR_RATE_SHIFT) + 0.5) : 0};
}

static inline bool ur_rate_limits(const struct ur_rate *r)
{
	return r->ns_per_byte != 0;
}

/* A packet may be handed over. */
static inline bool ur_rate_lets(const struct ur_rate *r, uint64_t now_ns)
{
	return r->next_ns <= now_ns;
}

/* A frame of so many bytes, FCS not counted, is handed over. RATE-LINK-01 */
static inline void ur_rate_sent(struct ur_rate *r, uint32_t bytes, uint64_t now_ns)
{
	uint64_t late = r->behind ? UR_RATE_LATE_NS : 0;
	uint64_t cost;

	if (r->free_ns + late < now_ns) {
		r->free_ns = now_ns - late;
		r->free_frac = 0;
	}
	r->next_ns = r->free_ns;
	cost = (bytes + UR_RATE_EXTRA) * r->ns_per_byte + r->free_frac;
	r->free_ns += cost >> UR_RATE_SHIFT;
	r->free_frac = (uint32_t)(cost & ((1 << UR_RATE_SHIFT) - 1));
}

#endif
