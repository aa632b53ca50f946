/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_MEMIF_GUARD_H
#define UR_DPDK_MEMIF_GUARD_H

/*
 * When its peer has left, DPDK's memif driver unmaps the shared rings on the EAL's interrupt
 * thread, even if a worker is in the middle of a burst (seen in DPDK 22.11: a crash when both ends
 * leave at the same time). Before that, the driver marks itself as unconnected, so that later
 * bursts do nothing. It is therefore enough to wait for the bursts in progress.
 *
 * The same holds for the interrupt descriptors of the rings, which it closes first: a burst in progress may be about to wake
 * its peer, and would write to another file that has got the number (memif_wake.h).
 *
 * The driver has no hook for that, so its munmap() and close() are replaced (driver_call.h). On the interrupt
 * thread the replacements first wait for the workers; on any other thread they are simply libc's.
 */

/* Called after a memif port has been opened; determines the interrupt thread. */
void ur_memif_guard_start(void);

struct ur_worker;
/*
 * Registers and unregisters a worker that uses a memif port. At most RTE_MAX_LCORE can be
 * registered; the guard does not wait for others.
 */
void ur_memif_guard_add(struct ur_worker *w);
void ur_memif_guard_remove(struct ur_worker *w);

#endif
