/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_MEMIF_GUARD_H
#define UR_EDGE_MEMIF_GUARD_H

/*
 * DPDK's memif driver unmaps the rings that it shares with its peer on the EAL's interrupt thread,
 * as soon as the peer has left, and a worker may be in the midst of a burst (seen in DPDK 22.11:
 * a crash when both ends leave together). By then the driver has marked itself unconnected, so that
 * a burst that begins later does nothing: it is enough to wait for those under way.
 *
 * The driver offers no place to wait in. So its munmap() is replaced (driver_call.h): on the interrupt
 * thread it waits for the workers, and then it is libc's, as it is at once on any other thread.
 */

/* A memif port was opened: learns which thread is the interrupt thread. */
void ur_memif_guard_start(void);

struct ur_worker;
/* The worker uses a memif port, or does not any more. At most RTE_MAX_LCORE do; others are not
 * waited for. */
void ur_memif_guard_add(struct ur_worker *w);
void ur_memif_guard_remove(struct ur_worker *w);

#endif
