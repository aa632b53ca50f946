/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_FANOUT_H
#define UR_EDGE_FANOUT_H

/*
 * DPDK's af_packet driver joins its sockets to a fanout group even when there is one, and names the
 * group by 16 bits of the process id and the interface's index: two processes of a network
 * namespace get the same name by chance, and the second one fails with EINVAL. So setsockopt(),
 * which this file replaces, joins no group for one queue and lets the kernel choose the name for
 * several.
 *
 * Thread class: begin, end: the thread that makes the device, for which alone this happens.
 */

void ur_fanout_begin(unsigned queue_cnt);
void ur_fanout_end(void);

#endif
