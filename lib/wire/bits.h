/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_BITS_H
#define UR_WIRE_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Number of set bits. __builtin_popcountll() would become a call into libgcc on targets without the
 * instruction.
 */
static inline uint32_t ur_popcount(uint64_t x)
{
	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)(x * UINT64_C(0x0101010101010101) >> 56);
}

/* Rounds `n` up to a multiple of 64, the size of a cache line. */
static inline size_t ur_align64(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

/* The smallest power of two that is at least n; n <= 2^31. Returns 1 for 0. */
static inline uint32_t ur_pow2_at_least(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/* Hash of a 16-byte key, such as a GID. A random `seed` keeps a peer from choosing collisions. */
static inline uint64_t ur_hash16(const uint8_t key[16], uint64_t seed)
{
	uint64_t half[2], h = seed;

	memcpy(half, key, sizeof(half));
	for (unsigned i = 0; i < 2; i++) {
		h = (h ^ half[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	return h;
}

#endif
