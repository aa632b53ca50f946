/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"

/*
 * What the bytes of a message are, and what the n-th message of a queue pair is: both ends compute
 * them from (seed, queue pair, generation, direction, n), so that nothing is exchanged.
 *
 * The 64-bit words of a message count up from a base that is a hash of all of these, by an odd
 * step that changes every byte; so a word that is shifted, stale, or of another message differs.
 * All functions are pure.
 */
#define PERF_PATTERN_STEP 0x9e3779b97f4a7c15ull

/* A bijection on 64 bits whose output looks random. */
static inline uint64_t perf_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* dir: 0 what the client sends, 1 what the server sends, 2 and 3 their memory for READs. */
static inline uint64_t perf_key(uint64_t seed, uint32_t qp, uint32_t gen, uint32_t dir)
{
	return perf_mix64(perf_mix64(seed + PERF_PATTERN_STEP) ^
			  ((uint64_t)gen << 34 | (uint64_t)dir << 32 | qp));
}

static inline uint64_t perf_base(uint64_t key, uint64_t n)
{
	return perf_mix64(key + n * PERF_PATTERN_STEP);
}

void perf_pattern_fill(void *buf, size_t bytes, uint64_t base);

/* The offset of the first byte that differs; `bytes` when none does. */
size_t perf_pattern_check(const void *buf, size_t bytes, uint64_t base);

/* The expected byte at an offset. */
uint8_t perf_pattern_byte(uint64_t base, size_t offset);

/*
 * Finds by its first 8 bytes which message of [from, from + range) this is; UINT64_MAX if none.
 * For datagrams without immediate data.
 */
uint64_t perf_pattern_find(const void *buf, uint64_t key, uint64_t from, uint64_t range);

/* The values a compare-and-swap chain passes through; the first is 0. */
static inline uint64_t perf_cas_value(uint64_t key, uint64_t n)
{
	return n == 0 ? 0 : perf_base(key ^ 0xca5ca5ca5ca5ca5ull, n);
}

/*
 * The schedule of a queue pair. `window` (a power of two) is how often a schedule with plain
 * WRITEs has at least one message that the receiver sees, so that it can check the slots in time.
 */
struct perf_planner {
	enum perf_op op;
	uint32_t window;
	uint64_t size; /* of every message; the largest one when mixed */
	bool notify;   /* the receiver checks: the window rule holds */
	bool lossy;    /* UC: every WRITE carries its number */
};

struct perf_plan {
	enum perf_op op; /* never MIXED */
	uint64_t size;
};

struct perf_plan perf_plan(const struct perf_planner *p, uint64_t key, uint64_t n);

#endif
