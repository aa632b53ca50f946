/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_UDP_HOLD_H
#define UR_DPDK_UDP_HOLD_H

#include "wire/packet.h"

/*
 * The kernel's UDP sockets on port 4791 of an interface. Where an endpoint shares the kernel's
 * address, the kernel gets a copy of each RoCEv2 packet as well: without a socket on the port it
 * would answer with ICMP "port unreachable". These sockets get the copies and a filter drops them
 * at once. They are bound to the interface, so they cover every address that it has or gets,
 * and they keep the kernel's own RoCE driver, rdma_rxe, off the port.
 *
 * Thread class: any, one at a time.
 */

#define UR_ROCE_UDP_PORT 4791

struct ur_udp_hold {
	int fd4, fd6; /* -1: there is none (the kernel has no IPv6) */
};

/*
 * Opens the sockets. 0, or a negative errno: -EADDRINUSE if another socket has the port. Nothing is held
 * then.
 */
int ur_udp_hold_open(struct ur_udp_hold *h, const char *ifname);
void ur_udp_hold_close(struct ur_udp_hold *h);

/*
 * Sends an empty datagram from the port to the same port of dst, so that the kernel resolves the
 * next hop. For a process without the right to use ur_rtnl_use_neigh(). Returns 0 or a
 * negative errno; the kernel may send it later.
 */
int ur_udp_hold_poke(const struct ur_udp_hold *h, unsigned ifindex, const struct ur_gid *dst);

#endif
