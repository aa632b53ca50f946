/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_NUMBER_H
#define UR_WIRE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Numbers that count modulo 2^24, each sequence of them a type of its own: the compiler rejects what adds a
 * message number to a PSN. Two numbers of a sequence are ordered if they are less than 2^23 apart (IBA 9.7.2).
 * The arithmetic is here and nowhere else. WIRE-PSN-01
 *
 * UR_NUMBER(T) defines struct T with the member v in [0, 2^24), and
 *
 *   T(v)              the number v modulo 2^24
 *   T_add(a, n)       n further on; to go back n, add the two's complement
 *   T_diff(a, b)      a - b as a signed distance in [-2^23, 2^23)
 *   T_eq(a, b)        they are the same
 *   T_lt(a, b)        a is older than b
 *   T_le(a, b)        it is older, or the same
 *   T_in(n, lo, hi)   n is in the half-open interval [lo, hi); what is 2^23 away is neither older nor newer
 *
 * Thread class: pure functions.
 */
#define UR_NUMBER_MASK 0xffffffu

/* clang-format off */
#define UR_NUMBER(T)                                                                               \
	struct T {                                                                                 \
		uint32_t v;                                                                        \
	};                                                                                         \
                                                                                                   \
	static inline struct T T(uint32_t v)                                                       \
	{                                                                                          \
		return (struct T){v & UR_NUMBER_MASK};                                             \
	}                                                                                          \
                                                                                                   \
	static inline struct T T##_add(struct T a, uint32_t n)                                     \
	{                                                                                          \
		return T(a.v + n);                                                                 \
	}                                                                                          \
                                                                                                   \
	static inline int32_t T##_diff(struct T a, struct T b)                                     \
	{                                                                                          \
		return (int32_t)((a.v - b.v) << 8) >> 8;                                           \
	}                                                                                          \
                                                                                                   \
	static inline bool T##_eq(struct T a, struct T b)                                          \
	{                                                                                          \
		return a.v == b.v;                                                                 \
	}                                                                                          \
                                                                                                   \
	static inline bool T##_lt(struct T a, struct T b)                                          \
	{                                                                                          \
		return T##_diff(a, b) < 0;                                                         \
	}                                                                                          \
                                                                                                   \
	static inline bool T##_le(struct T a, struct T b)                                          \
	{                                                                                          \
		return T##_diff(a, b) <= 0;                                                        \
	}                                                                                          \
                                                                                                   \
	static inline bool T##_in(struct T n, struct T lo, struct T hi)                            \
	{                                                                                          \
		return ((n.v - lo.v) & UR_NUMBER_MASK) < ((hi.v - lo.v) & UR_NUMBER_MASK);         \
	}                                                                                          \
	struct T
/* clang-format on */

#endif
