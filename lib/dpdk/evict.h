/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_EVICT_H
#define UR_DPDK_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edge/config.h"

/*
 * The decision whether workers evict received frames from the cache after use (edge/cache.h). Only
 * frames in memory that another process writes are candidates: those of a memif client with zero copy.
 * Eviction saves the sender the invalidation of each line and costs the receiver a write to memory and
 * the next read from there. Which of the two is dearer depends on the distance between the two CPUs.
 * The topology that a hypervisor reports says little about it, so it is measured.
 *
 * Thread class: any thread.
 */

/* X(NAME, text): what the decision is based on. */
#define UR_EVICT_REASONS(X)                                                                        \
	X(NOT_SHARED, "no other process writes to them")                                           \
	X(CONFIGURED, "as configured")                                                             \
	X(NO_CLFLUSHOPT, "the CPU has no CLFLUSHOPT")                                              \
	X(NO_OTHER_CPU, "there is no second CPU to measure with")                                  \
	X(NOT_MEASURED, "the CPUs were too busy to measure it")                                    \
	X(MEASURED, "measured")

enum ur_evict_reason {
#define X(NAME, text) UR_EVICT_##NAME,
	UR_EVICT_REASONS(X)
#undef X
};

/* The times are of frames of 4096 bytes that one CPU writes and another reads, when nothing else is done. */
struct ur_evict {
	bool on;
	bool mixed; /* MEASURED: with some CPUs eviction is faster, with others it is not */
	enum ur_evict_reason reason;
	/* MEASURED and NOT_MEASURED: */
	unsigned cpu;		    /* that received */
	unsigned cpu_cnt;	    /* other CPUs with which it was measured, one after the other */
	uint32_t keep_ns, evict_ns; /* of a frame, sums over these CPUs */
};

/*
 * EDGE-EVICT-01. Decides. `want`: a UR_TRISTATE_ value. `shared`: another process writes the memory.
 * `cpu`: the one that receives. Measures only if the others leave it open, on threads of its own, for
 * 300 ms with each of up to four other CPUs at most. The time of a frame is that of the slower side: the
 * median over batches of frames, waits not counted. Without a result frames stay in the cache.
 */
struct ur_evict ur_evict_decide(int want, bool shared, unsigned cpu);

/* Whether eviction saves at least an eighth. */
bool ur_evict_pays(uint32_t keep_ns, uint32_t evict_ns);

/* Writes one phrase, such as "received frames stay in the cache (measured: ...)". */
void ur_evict_describe(const struct ur_evict *e, char *text, size_t bytes);

#endif
