/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PACING_PACING_PRIV_H
#define UR_PACING_PACING_PRIV_H

#include "pacing/pacing.h"

/* What pacing.c and the modes share. */

void ur_pacing_cmdpd_delay(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t delay_ns,
			   uint64_t now_ns);

void ur_pacing_auto_init(struct ur_pacing_dest *d, uint64_t now_ns);
void ur_pacing_auto_delay(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t delay_ns,
			  uint64_t now_ns);
/* A packet left while throttled. Whether it still is: not if too long ago something came back. */
bool ur_pacing_auto_sent(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t bytes,
			 uint64_t now_ns);

/* The link has changed. */
void ur_pacing_auto_bound(struct ur_pacing *t, struct ur_pacing_dest *d);

void ur_pacing_dcqcn_cnp(struct ur_pacing *t, struct ur_pacing_dest *d, uint64_t now_ns);
/* While throttled: time has passed and bytes were sent. It may be open afterwards. */
void ur_pacing_dcqcn_advance(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t bytes,
			     uint64_t now_ns);
/* What `bytes` take from now on, with the increases by time that will be due meanwhile. */
uint64_t ur_pacing_dcqcn_gap_ns(const struct ur_pacing *t, const struct ur_pacing_dest *d,
				uint32_t bytes, uint64_t now_ns);

/* The link has changed. It may be open afterwards. */
void ur_pacing_dcqcn_bound(struct ur_pacing *t, struct ur_pacing_dest *d);

/* The one place where throttling begins; the mode sets what a packet costs. */
void ur_pacing_throttle(struct ur_pacing *t, struct ur_pacing_dest *d, uint64_t now_ns);
/* And where it ends; harmless when it has not begun. */
void ur_pacing_open(struct ur_pacing *t, struct ur_pacing_dest *d);

/* What a byte costs at `rate`, in [1, 2^30]: fixed point as in pacing.h. A division. */
static inline uint32_t ur_pacing_cost(uint32_t rate)
{
	return (uint32_t)((UINT64_C(1) << (UR_PACING_RATE_SHIFT + UR_PACING_COST_SHIFT)) / rate);
}

/* PACE-RATE-02: a rate in [link / 1024, link], and at least 1 Mb/s. */
static inline uint32_t ur_pacing_bounded(const struct ur_pacing *t, uint64_t rate)
{
	uint32_t least = t->link >> 10;

	least = least > 131 ? least : 131;
	if (rate < least)
		return least;
	return rate < t->link ? (uint32_t)rate : t->link;
}

#endif
