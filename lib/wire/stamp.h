/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_STAMP_H
#define UR_WIRE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Stamps: times as the headers of extended mode carry them (ext.h), 32-bit counts of 16 ns. They wrap after
 * 68.7 s, so two of them are ordered if they are less than 34.4 s apart. A distance between two stamps is a
 * plain number of 16 ns, and no stamp; all arithmetic that makes one of the other is here.
 *
 * Thread class: pure functions.
 */
#define UR_STAMP_SHIFT 4

struct ur_stamp {
	uint32_t v;
};

/* The stamp with this value. */
static inline struct ur_stamp ur_stamp_of(uint32_t v)
{
	return (struct ur_stamp){v};
}

/* The stamp of a time. */
static inline struct ur_stamp ur_stamp(uint64_t now_ns)
{
	return (struct ur_stamp){(uint32_t)(now_ns >> UR_STAMP_SHIFT)};
}

static inline struct ur_stamp ur_stamp_add(struct ur_stamp a, uint32_t n)
{
	return (struct ur_stamp){a.v + n};
}

/* a - b in [-2^31, 2^31). */
static inline int32_t ur_stamp_diff(struct ur_stamp a, struct ur_stamp b)
{
	return (int32_t)(a.v - b.v);
}

/* How long ago, at `now`, `past` was, which is not to come; [0, 2^32). */
static inline uint32_t ur_stamp_since(struct ur_stamp now, struct ur_stamp past)
{
	return now.v - past.v;
}

static inline bool ur_stamp_eq(struct ur_stamp a, struct ur_stamp b)
{
	return a.v == b.v;
}

/* True if a is older than b. */
static inline bool ur_stamp_lt(struct ur_stamp a, struct ur_stamp b)
{
	return ur_stamp_diff(a, b) < 0;
}

static inline bool ur_stamp_le(struct ur_stamp a, struct ur_stamp b)
{
	return ur_stamp_diff(b, a) >= 0;
}

#endif
