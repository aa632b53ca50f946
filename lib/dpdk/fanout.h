/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_FANOUT_H
#define UR_DPDK_FANOUT_H

/*
 * DPDK's af_packet driver joins its sockets to a fanout group even if there is only one socket. The
 * number of the group is computed from 16 bits of the process id and the interface's index, so two
 * processes in a network namespace may get the same number, and the second one fails with EINVAL.
 * The setsockopt() that replaces the driver's (driver_call.h) joins no group for one queue, and
 * lets the kernel choose the number for several.
 *
 * The driver also clears promiscuous mode of the interface at every start, which needs
 * CAP_NET_ADMIN and should be left to the system. The replaced ioctl() clears no flags.
 *
 * Thread class: start: once, after the EAL has loaded its drivers. begin and end: the thread that
 * creates the device; only its fanout group is affected.
 */

void ur_fanout_start(void);
void ur_fanout_begin(unsigned queue_cnt);
void ur_fanout_end(void);

#endif
