/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_RATE_H
#define UR_WIRE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A simulated slower link before the port ([port] rate_gbps). It says when the next packet may be
 * passed to the port. The port holds the packet that is being sent and the next one, never more, so
 * that the choice of the following packet is made as late as on a real link.
 *
 * A worker that is late may catch up by at most UR_RATE_LATE_NS. Time without a packet to send is
 * lost, as on a real link.
 *
 * Thread class: the worker. Times are of its clock.
 */
#define UR_RATE_SHIFT	20
#define UR_RATE_LATE_NS 4000000 /* a time slice of another process on the CPU */
#define UR_RATE_EXTRA	24 /* bytes on the wire besides the frame: preamble, FCS, inter-packet gap */

/* A link that carries one packet at a time, for as long as its bytes take. */
struct ur_link {
	uint64_t ns_per_byte; /* << UR_RATE_SHIFT; 0: no limit */
	uint64_t free_ns;     /* time at which all packets passed so far have left, */
	uint32_t free_frac;   /* and a fraction of a nanosecond, << UR_RATE_SHIFT */
};

/* `gbps` is in [0.0001, 8000], or 0: no limit. */
static inline void ur_link_init(struct ur_link *l, double gbps)
{
	*l = (struct ur_link){
		.ns_per_byte = gbps > 0 ? (uint64_t)(8 / gbps * (1 << UR_RATE_SHIFT) + 0.5) : 0};
}

/* Time that `bytes` take on the link, in whole nanoseconds. */
static inline uint64_t ur_link_ns(const struct ur_link *l, uint32_t bytes)
{
	return bytes * l->ns_per_byte >> UR_RATE_SHIFT;
}

/* Adds `bytes` after the bytes that are on the link already. */
static inline void ur_link_carry(struct ur_link *l, uint32_t bytes)
{
	uint64_t cost = bytes * l->ns_per_byte + l->free_frac;

	l->free_ns += cost >> UR_RATE_SHIFT;
	l->free_frac = (uint32_t)(cost & ((1 << UR_RATE_SHIFT) - 1));
}

struct ur_rate {
	struct ur_link link;
	uint64_t next_ns; /* time at which the last packet passed begins to leave */
	bool behind;	  /* a packet waits for next_ns */
};

/* As ur_link_init(). */
static inline void ur_rate_init(struct ur_rate *r, double gbps)
{
	*r = (struct ur_rate){0};
	ur_link_init(&r->link, gbps);
}

/*
 * RATE-LINK-02: changes the speed for packets passed from now on. Earlier packets keep their time,
 * unless the limit is removed.
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

/* True if a packet may be passed to the port. */
static inline bool ur_rate_lets(const struct ur_rate *r, uint64_t now_ns)
{
	return r->next_ns <= now_ns;
}

/* RATE-LINK-01. Accounts for a frame of `bytes`, without FCS, passed to the port. */
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
