/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_FANOUT_H
#define UR_EDGE_FANOUT_H

/*
 * DPDK's af_packet driver joins its sockets to a fanout group even when there is one, and names the
 * group by 16 bits of the process id and the interface's index: two processes of a network
 * namespace get the same name by chance, and the second one fails with EINVAL. So its setsockopt(),
 * which this file replaces (driver_call.h), joins no group for one queue and lets the kernel choose
 * the name for several.
 *
 * It also takes the interface out of promiscuous mode whenever it starts, which needs CAP_NET_ADMIN
 * and is none of its business. Its ioctl() takes no flag away.
 *
 * Thread class: start: once, when the EAL has loaded its drivers. begin, end: the thread that makes
 * the device, for which alone the fanout group is looked after.
 */

void ur_fanout_start(void);
void ur_fanout_begin(unsigned queue_cnt);
void ur_fanout_end(void);

#endif
