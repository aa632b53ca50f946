/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_TIER_H
#define UR_TRANSPORT_TIER_H

#include "mem/slabs.h"
#include "transport/loss/selective.h"

/*
 * The tiers of contexts of extended mode (docs/design/loss.md): a context of a tier spans four times as many
 * numbers as one of the tier below it, at most `most`, which is the window. When memory runs short, larger tiers leave what is
 * left to the first one.
 *
 * Thread class: the worker.
 */
static inline uint32_t ur_tier_above(uint32_t span, uint32_t most)
{
	return 4 * span < most ? 4 * span : most;
}

/* 0: there is none. */
static inline uint32_t ur_tier_below(uint32_t span)
{
	uint32_t below = UR_TIER_LEAST;

	if (span <= below)
		return 0;
	while (4 * below < span)
		below *= 4;
	return below;
}

/* The tier for `cnt` numbers, not below `first`; cnt is at most `most`. */
static inline uint32_t ur_tier_of(uint32_t cnt, uint32_t first, uint32_t most)
{
	while (first < cnt)
		first = ur_tier_above(first, most);
	return first;
}

/* LOSS-TIER-03. Takes memory for a context, `large` if its tier is above the first. */
static inline void *ur_tier_take(struct ur_slabs *slabs, size_t bytes, bool large)
{
	return ur_slabs_take(slabs, bytes, large ? slabs->cnt / 4 : 0);
}

#endif
