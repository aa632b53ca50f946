/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_PATIENCE_H
#define UR_TRANSPORT_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How long a hole in a sequence may be mere reordering: until so many later packets have come, or
 * so much time has passed. Grows when a hole that was given up turns out to have been late only,
 * shrinks slowly when holes are losses (REORDER-PATIENCE-01).
 */
struct ur_patience {
	uint16_t packets; /* [UR_PATIENCE_PACKETS, UR_PATIENCE_PACKETS_MAX] */
	uint16_t us;	  /* [UR_PATIENCE_US, UR_PATIENCE_US_MAX] */
	uint8_t losses;	  /* since it grew or shrank last */
};

#define UR_PATIENCE_PACKETS	3
#define UR_PATIENCE_PACKETS_MAX 128
#define UR_PATIENCE_US		100
#define UR_PATIENCE_US_MAX	1000
#define UR_PATIENCE_LOSSES	32 /* losses after which it shrinks by an eighth */

static inline void ur_patience_init(struct ur_patience *p)
{
	*p = (struct ur_patience){.packets = UR_PATIENCE_PACKETS, .us = UR_PATIENCE_US};
}

static inline bool ur_patience_over(const struct ur_patience *p, uint32_t later)
{
	return later >= p->packets;
}

static inline uint64_t ur_patience_ns(const struct ur_patience *p)
{
	return (uint64_t)p->us * 1000;
}

/* A hole was filled late, but before it was given up: `later` packets had passed it in `open_ns`.
 */
static inline void ur_patience_late(struct ur_patience *p, uint32_t later, uint64_t open_ns)
{
	uint32_t packets =
		later < UR_PATIENCE_PACKETS_MAX / 2 ? 2 * later : UR_PATIENCE_PACKETS_MAX;
	uint32_t us = open_ns < UR_PATIENCE_US_MAX * UINT64_C(500) ? (uint32_t)open_ns / 500
								   : UR_PATIENCE_US_MAX;

	p->packets = (uint16_t)(packets > p->packets ? packets : p->packets);
	p->us = (uint16_t)(us > p->us ? us : p->us);
	p->losses = 0;
}

/* A packet was sent again needlessly. */
static inline void ur_patience_needless(struct ur_patience *p)
{
	p->packets =
		p->packets < UR_PATIENCE_PACKETS_MAX / 2 ? 2 * p->packets : UR_PATIENCE_PACKETS_MAX;
	p->us = p->us < UR_PATIENCE_US_MAX / 2 ? 2 * p->us : UR_PATIENCE_US_MAX;
	p->losses = 0;
}

/* A hole was a loss. */
static inline void ur_patience_lost(struct ur_patience *p)
{
	if (++p->losses < UR_PATIENCE_LOSSES)
		return;
	p->losses = 0;
	p->packets -= (p->packets - UR_PATIENCE_PACKETS + 7) >> 3;
	p->us -= (p->us - UR_PATIENCE_US + 7) >> 3;
}

#endif
