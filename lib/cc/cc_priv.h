/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_CC_PRIV_H
#define UR_CC_CC_PRIV_H

#include "cc/cc.h"

/* What cc.c offers to the algorithms. */

#define X(NAME, name, summary) extern const struct ur_cc_ops ur_cc_##name;
UROCE_PACING_MODES(X)
#undef X

/* An algorithm keeps this of a destination: one line after the struct. */
#define UR_CC_STATE(type)                                                                          \
	_Static_assert(sizeof(struct type) <= UR_CC_STATE_BYTES, "raise UR_CC_STATE_BYTES");       \
	static inline struct type *state_of(struct ur_cc_dest *d)                                  \
	{                                                                                          \
		return (struct type *)(void *)d->state;                                            \
	}

/* The one place where throttling begins: from now on on_send is called. No gap yet, no window. */
void ur_cc_throttle(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns);
/* And where it ends, with gap, cost and window; harmless when it has not begun. */
void ur_cc_open(struct ur_cc *t, struct ur_cc_dest *d);

/*
 * PACE-RATE-01. A packet that takes gap_ns left: open_ns goes on from where it was, so that a
 * sender that looks late keeps the rate. It may catch up two packets.
 */
void ur_cc_spend(struct ur_cc_dest *d, uint64_t gap_ns, uint64_t now_ns);

/* A delay that was too long, or a path learned anew: counted for the destination and the table. */
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

/* What a byte costs at `rate`, in [1, 2^30]: fixed point as in cc.h. A division. */
static inline uint32_t ur_cc_cost(uint32_t rate)
{
	return (uint32_t)((UINT64_C(1) << (UR_CC_RATE_SHIFT + UR_CC_COST_SHIFT)) / rate);
}

/* PACE-RATE-02: a rate in [link / 1024, link], and at least 1 Mb/s. */
static inline uint32_t ur_cc_bounded(const struct ur_cc *t, uint64_t rate)
{
	uint32_t least = t->link >> 10;

	least = least > 131 ? least : 131;
	if (rate < least)
		return least;
	return rate < t->link ? (uint32_t)rate : t->link;
}

#endif
