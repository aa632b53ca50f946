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

/* A link that carries one packet after the other, each for the time of its bytes. */
struct ur_link {
	uint64_t ns_per_byte; /* << UR_RATE_SHIFT; 0: no limit */
	uint64_t free_ns;     /* when all that was handed over has left, */
	uint32_t free_frac;   /* and a fraction of a nanosecond, << UR_RATE_SHIFT */
};

/* `gbps` in [0.0001, 8000], 0: no limit. */
static inline void ur_link_init(struct ur_link *l, double gbps)
{
	*l = (struct ur_link){
		.ns_per_byte = gbps > 0 ? (uint64_t)(8 / gbps * (1 << UR_RATE_SHIFT) + 0.5) : 0};
}

/* How long so many bytes take, in whole nanoseconds. */
static inline uint64_t ur_link_ns(const struct ur_link *l, uint32_t bytes)
{
	return bytes * l->ns_per_byte >> UR_RATE_SHIFT;
}

/* So many bytes follow what is on it. */
static inline void ur_link_carry(struct ur_link *l, uint32_t bytes)
{
	uint64_t cost = bytes * l->ns_per_byte + l->free_frac;

	l->free_ns += cost >> UR_RATE_SHIFT;
	l->free_frac = (uint32_t)(cost & ((1 << UR_RATE_SHIFT) - 1));
}

struct ur_rate {
	struct ur_link link;
	uint64_t next_ns; /* when the last packet handed over begins to leave */
	bool behind;	  /* something waits for next_ns */
};

/* As ur_link_init(). */
static inline void ur_rate_init(struct ur_rate *r, double gbps)
{
	*r = (struct ur_rate){0};
	ur_link_init(&r->link, gbps);
}

/*
 * RATE-LINK-02: another speed for what is handed over from now on. What was before takes its time,
 * but not when there is no limit any more.
 */
static inline void ur_rate_change(struct ur_rate *r, double gbps)
{
	struct ur_rate old = *r;

	ur_rate_init(r, gbps);
	if (!r->link.ns_per_byte)
		return;
	r->link.free_ns = old.link.free_ns;
	r->link.free_frac = old.link.free_frac;
	r->next_ns = old.next_ns;
	r->behind = old.behind;
}

static inline bool ur_rate_limits(const struct ur_rate *r)
{
	return r->link.ns_per_byte != 0;
}

/* A packet may be handed over. */
static inline bool ur_rate_lets(const struct ur_rate *r, uint64_t now_ns)
{
	return r->next_ns <= now_ns;
}

/* A frame of so many bytes, FCS not counted, is handed over. RATE-LINK-01 */
static inline void ur_rate_sent(struct ur_rate *r, uint32_t bytes, uint64_t now_ns)
{
	struct ur_link *l = &r->link;
	uint64_t late = r->behind ? UR_RATE_LATE_NS : 0;

	if (l->free_ns + late < now_ns) {
		l->free_ns = now_ns - late;
		l->free_frac = 0;
	}
	r->next_ns = l->free_ns;
	ur_link_carry(l, bytes + UR_RATE_EXTRA);
}

#endif
