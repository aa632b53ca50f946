/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_NAP_H
#define UR_EDGE_NAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A sleep of one thread that others can end. Zeroed at first. */
struct ur_nap {
	_Atomic uint32_t calls;
	_Atomic bool asleep;
};

/*
 * Sleeps for `ns` nanoseconds, less than a second, or until it is called. A call since the last sleep ends it at once. Returns whether
 * it was called. `*seen`, 0 at first, is the thread's.
 *
 * Thread class: the one thread that sleeps.
 */
bool ur_nap(struct ur_nap *nap, uint32_t *seen, uint64_t ns);

/* Ends the sleep, or the next one. A system call only if the thread sleeps. Thread class: any. */
void ur_nap_call(struct ur_nap *nap);

#endif
