/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_LOSS_REO_WINDOW_H
#define UR_TRANSPORT_LOSS_REO_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How long a hole in a sequence may be mere reordering: until so many later packets have come, or
 * so much time has passed. Grows when a hole that was given up turns out to have been late only,
 * shrinks slowly when holes are losses (REORDER-WINDOW-01).
 */
struct ur_reo_window {
	uint16_t packets; /* [UR_REO_WINDOW_PACKETS, UR_REO_WINDOW_PACKETS_MAX] */
	uint16_t us;	  /* [UR_REO_WINDOW_US, UR_REO_WINDOW_US_MAX] */
	uint8_t losses;	  /* since it grew or shrank last */
};

#define UR_REO_WINDOW_PACKETS	  3
#define UR_REO_WINDOW_PACKETS_MAX 128
#define UR_REO_WINDOW_US	  100
#define UR_REO_WINDOW_US_MAX	  1000
#define UR_REO_WINDOW_LOSSES	  32 /* losses after which it shrinks by an eighth */

static inline void ur_reo_window_init(struct ur_reo_window *p)
{
	*p = (struct ur_reo_window){.packets = UR_REO_WINDOW_PACKETS, .us = UR_REO_WINDOW_US};
}

static inline bool ur_reo_window_is_over(const struct ur_reo_window *p, uint32_t later)
{
	return later >= p->packets;
}

static inline uint64_t ur_reo_window_ns(const struct ur_reo_window *p)
{
	return (uint64_t)p->us * 1000;
}

/* A hole was filled late, but before it was given up: `later` packets had passed it in `open_ns`.
 */
static inline void ur_reo_window_widen(struct ur_reo_window *p, uint32_t later, uint64_t open_ns)
{
	uint32_t packets =
		later < UR_REO_WINDOW_PACKETS_MAX / 2 ? 2 * later : UR_REO_WINDOW_PACKETS_MAX;
	uint32_t us = open_ns < UR_REO_WINDOW_US_MAX * UINT64_C(500) ? (uint32_t)open_ns / 500
								     : UR_REO_WINDOW_US_MAX;

	p->packets = (uint16_t)(packets > p->packets ? packets : p->packets);
	p->us = (uint16_t)(us > p->us ? us : p->us);
	p->losses = 0;
}

/* A packet was sent again needlessly. */
static inline void ur_reo_window_double(struct ur_reo_window *p)
{
	p->packets = p->packets < UR_REO_WINDOW_PACKETS_MAX / 2 ? 2 * p->packets
								: UR_REO_WINDOW_PACKETS_MAX;
	p->us = p->us < UR_REO_WINDOW_US_MAX / 2 ? 2 * p->us : UR_REO_WINDOW_US_MAX;
	p->losses = 0;
}

/* A hole was a loss. */
static inline void ur_reo_window_narrow(struct ur_reo_window *p)
{
	if (++p->losses < UR_REO_WINDOW_LOSSES)
		return;
	p->losses = 0;
	p->packets -= (p->packets - UR_REO_WINDOW_PACKETS + 7) >> 3;
	p->us -= (p->us - UR_REO_WINDOW_US + 7) >> 3;
}

#endif
