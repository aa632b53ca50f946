/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_CC_PRIV_H
#define UR_CC_CC_PRIV_H

#include "cc/cc.h"
#include "wire/assert.h"

/* Functions of cc.c for the algorithms. */

#define X(NAME, name, summary) extern const struct ur_cc_ops ur_cc_##name;
UROCE_PACING_MODES(X)
#undef X

/* Declares `struct type` as an algorithm's state for each destination, and defines state_of(). */
#define UR_CC_STATE(type)                                                                          \
	_Static_assert(sizeof(struct type) <= UR_CC_STATE_BYTES, "raise UR_CC_STATE_BYTES");       \
	static inline struct type *state_of(struct ur_cc_dest *d)                                  \
	{                                                                                          \
		return (struct type *)(void *)d->state;                                            \
	}

/* Begins throttling: from now on on_send is called. There is no gap and no window yet. */
void ur_cc_throttle(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* Ends throttling, and with it gap, cost and window. No effect on an open destination. */
void ur_cc_open(struct ur_cc *t, struct ur_cc_dest *d);

/*
 * PACE-RATE-01. A packet was sent that takes gap_ns. open_ns advances from its previous value, so
 * that a sender that polls late keeps the rate. It may catch up by two packets.
 */
void ur_cc_spend(struct ur_cc_dest *d, uint64_t gap_ns, uint64_t now_ns);

/* Count, for the destination and the table, a delay that was too long and a path learned anew. */
static inline void ur_cc_count_outlier(struct ur_cc *t, struct ur_cc_dest *d)
{
	d->outliers++;
	t->cnt.outliers++;
}

static inline void ur_cc_count_reseed(struct ur_cc *t, struct ur_cc_dest *d)
{
	d->reseeds++;
	t->cnt.reseeds++;
}

/* The cost of a byte at `rate`, in [1, 2^30]; fixed point as in cc.h. Divides. */
static inline uint32_t ur_cc_cost(uint32_t rate)
{
	return (uint32_t)((UINT64_C(1) << (UR_CC_RATE_SHIFT + UR_CC_COST_SHIFT)) / rate);
}

/*
 * PACE-RATE-02. Clamps a rate to [link / 1024, link], and to at least 1 Mb/s; never 0. Only for algorithms that set
 * `link` in their operations: others do not have the port's speed.
 */
static inline uint32_t ur_cc_clamp_rate(const struct ur_cc *t, uint64_t rate)
{
	uint32_t least = t->link >> 10;

	UR_ASSERT(t->link);
	least = least > 131 ? least : 131;
	if (rate < least)
		return least;
	return rate < t->link ? (uint32_t)rate : t->link;
}

#endif
