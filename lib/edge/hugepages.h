/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_HUGEPAGES_H
#define UR_EDGE_HUGEPAGES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What there is of hugepages, for an EAL that is to be started: it asks for all its memory at once,
 * and when it does not get that, no other can be started in the process. So it must not try in
 * vain.
 */

/* Whether a mapping of that many MiB of hugepages can be had and touched now. */
bool ur_hugepages_map(uint32_t mb);

/*
 * Between a look and the EAL's start no other endpoint of this machine is to take what was seen.
 * Returns a descriptor that holds the lock until it is closed; -1 when it cannot be had for some
 * seconds: then the look may turn out wrong, and nothing else.
 */
int ur_hugepages_lock(void);

#endif
