/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_HASH_H
#define UR_SWITCH_HASH_H

#include <stdint.h>

/*
 * A 64-bit mixer (the finalizer of splitmix64) with a seed, so that keys that collide in one switch
 * need not collide in another. Thread class: a pure function.
 */
static inline uint64_t ur_switch_hash(uint64_t key, uint64_t seed)
{
	uint64_t x = key ^ seed;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#endif
