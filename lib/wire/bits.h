/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_BITS_H
#define UR_WIRE_BITS_H

#include <stdint.h>

/* How many bits of x are set. The builtin would call a library where the CPU may lack it. */
static inline uint32_t ur_popcount(uint64_t x)
{
	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)(x * UINT64_C(0x0101010101010101) >> 56);
}

#endif
