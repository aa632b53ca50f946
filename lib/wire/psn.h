/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_PSN_H
#define UR_WIRE_PSN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * PSNs and QPNs are distinct types, so that the compiler rejects a mix-up. All PSN arithmetic is
 * here. PSNs count modulo 2^24; two PSNs are ordered if they are less than 2^23 apart (IBA 9.7.2).
 * WIRE-PSN-01
 *
 * Thread class: pure functions.
 */
struct ur_psn {
	uint32_t v; /* [0, 2^24) */
};

struct ur_qpn {
	uint32_t v; /* [0, 2^24) */
};

#define UR_PSN_MASK   0xffffffu
#define UR_PSN_WINDOW (1 << 23) /* unacknowledged PSNs stay below this */

static inline struct ur_psn ur_psn(uint32_t v)
{
	return (struct ur_psn){v & UR_PSN_MASK};
}

static inline struct ur_qpn ur_qpn(uint32_t v)
{
	return (struct ur_qpn){v & UR_PSN_MASK};
}

static inline struct ur_psn ur_psn_add(struct ur_psn a, uint32_t n)
{
	return ur_psn(a.v + n);
}

/* a - b as a signed distance in [-2^23, 2^23). */
static inline int32_t ur_psn_diff(struct ur_psn a, struct ur_psn b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool ur_psn_eq(struct ur_psn a, struct ur_psn b)
{
	return a.v == b.v;
}

/* True if a is older than b. */
static inline bool ur_psn_lt(struct ur_psn a, struct ur_psn b)
{
	return ur_psn_diff(a, b) < 0;
}

static inline bool ur_psn_le(struct ur_psn a, struct ur_psn b)
{
	return ur_psn_diff(a, b) <= 0;
}

/* True if p is in the half-open interval [lo, hi), which must be shorter than 2^23. */
static inline bool ur_psn_in(struct ur_psn p, struct ur_psn lo, struct ur_psn hi)
{
	return ur_psn_le(lo, p) && ur_psn_lt(p, hi);
}

#endif
