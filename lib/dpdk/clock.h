/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_CLOCK_H
#define UR_DPDK_CLOCK_H

#include <stdint.h>

#include <rte_cycles.h>

/*
 * The engine's time: nanoseconds since the start of the clock, computed from the TSC with one
 * multiplication. Any thread.
 */
struct ur_clock {
	uint64_t base;	  /* TSC at time 0 */
	uint64_t mult;	  /* nanoseconds per cycle, as a fraction of 2^32 */
	int64_t epoch_ns; /* Unix time at time 0 */
};

void ur_clock_start(struct ur_clock *c);

static inline uint64_t ur_clock_ns(const struct ur_clock *c)
{
	int64_t cycles = (int64_t)(rte_rdtsc() - c->base);

	/* The TSC of another core may be slightly behind; without this the time would wrap around.
	 */
	if (__builtin_expect(cycles < 0, 0))
		cycles = 0;
	return (uint64_t)(((unsigned __int128)(uint64_t)cycles * c->mult) >> 32);
}

#endif
