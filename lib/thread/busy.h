/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_THREAD_BUSY_H
#define UR_THREAD_BUSY_H

#include <stdint.h>

/*
 * EDGE-BUSY-01. How long a thread that waits looks for what it waits for before it sleeps. Looking saves the time of a wake-up, but what it waits for
 * may need this CPU. As long as its waits are short it looks for the whole time that it may; each one that is long halves the time, down to nothing.
 * A wait that is not much longer than that, although the thread slept, brings all of it back.
 */
struct ur_busy {
	uint64_t ns; /* if it is less than what the thread may; UINT64_MAX at first */
};

/* How long, in ns; `most_ns`: what the thread may. */
static inline uint64_t ur_busy_for(const struct ur_busy *b, uint64_t most_ns)
{
	return b->ns < most_ns ? b->ns : most_ns;
}

/* The wait is over, and took so long. */
static inline void ur_busy_after(struct ur_busy *b, uint64_t most_ns, uint64_t waited_ns)
{
	b->ns = waited_ns <= 2 * most_ns ? most_ns : ur_busy_for(b, most_ns) / 2;
}

#endif
