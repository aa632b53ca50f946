/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_EAL_RING_H
#define UR_DPDK_EAL_RING_H

#include <stddef.h>
#include <stdint.h>

/*
 * driver = ring: two ethdevs of one process, connected crosswise by two rte_rings for each queue pair.
 * The first endpoint that names a link gets side A, the second side B, a third is refused. Both sides have
 * as many queue pairs as the first one requested. Called by eal.c under its lock.
 */

/*
 * Makes one side of the link `name` (at most 16 characters) and stores its ethdev in *id and the
 * name of its EAL device in `device`. `slots` is a power of two, used by the first side.
 * Returns 0; -EBUSY: the link has both sides; -EINVAL: the sides differ in queue_cnt; -ENOSPC: too
 * many links; -ENOMEM or what DPDK says.
 */
int ur_eal_ring_add(const char *name, uint16_t queue_cnt, unsigned slots, uint16_t *id,
		    char *device, size_t cap);

/* Removes the side whose EAL device is `device`; with the second one the link is removed. */
void ur_eal_ring_remove(const char *device);

#endif
