/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_RNG_H
#define UR_SIM_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Random numbers of the simulator: a 64-bit mixing function of a counter. The same seed gives the
 * same stream on every machine.
 */
struct sim_rng {
	uint64_t state;
};

static inline uint64_t sim_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static inline uint64_t sim_rand(struct sim_rng *r)
{
	r->state += 0x9e3779b97f4a7c15u;
	return sim_mix(r->state);
}

/* A random number in [0, n); 0 if n is 0. */
static inline uint32_t sim_below(struct sim_rng *r, uint32_t n)
{
	return (uint32_t)((sim_rand(r) >> 32) * n >> 32);
}

/* A random number in [lo, hi]. */
static inline uint32_t sim_between(struct sim_rng *r, uint32_t lo, uint32_t hi)
{
	return lo + sim_below(r, hi - lo + 1);
}

/* True in `in_65536` of 65536 cases. */
static inline bool sim_chance(struct sim_rng *r, uint32_t in_65536)
{
	return in_65536 && (sim_rand(r) & 0xffff) < in_65536;
}

/* Writes the first `len` bytes of the pattern generated from `seed`. */
static inline void sim_pattern(uint8_t *dst, size_t len, uint64_t seed)
{
	uint64_t word;
	size_t at = 0;

	for (; at + sizeof(word) <= len; at += sizeof(word)) {
		word = sim_mix(seed + at);
		memcpy(dst + at, &word, sizeof(word));
	}
	word = sim_mix(seed + at);
	memcpy(dst + at, &word, len - at);
}

#endif
