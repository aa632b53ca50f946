/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_HUGEPAGES_H
#define UR_DPDK_HUGEPAGES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Checks for available hugepages before the EAL is started. The EAL requests all its memory at
 * once. If this fails, no other EAL can be started in the process, so the check must come first.
 */

/* True if `mb` MiB of hugepages can be mapped and touched now. */
bool ur_hugepages_map(uint32_t mb);

/*
 * Takes a lock between the check and the start of the EAL, so that no other endpoint of this
 * machine uses the pages meanwhile. Returns a descriptor, which the caller closes to release the
 * lock; -1 if the lock cannot be had for several seconds. Without the lock the only risk is that
 * the check becomes wrong.
 */
int ur_hugepages_lock(void);

#endif
