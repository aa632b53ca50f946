/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_PACKET_FILTER_H
#define UR_DPDK_PACKET_FILTER_H

/*
 * An AF_PACKET socket gets a copy of everything that its interface receives and sends. On an interface
 * with other traffic that would fill the ring that the endpoint reads. DPDK's driver neither exposes
 * its sockets nor sets a filter. So they are found as the packet sockets of the interface that were not
 * there before the device was made.
 *
 * Thread class: the thread that makes the device; no other may make packet sockets meanwhile.
 */

#define UR_PACKET_SOCKETS_MAX 64

struct ur_packet_sockets {
	int fd[UR_PACKET_SOCKETS_MAX];
	unsigned cnt;
};

/* The process's packet sockets of an interface. */
void ur_packet_sockets_find(unsigned ifindex, struct ur_packet_sockets *out);

/*
 * Makes the sockets of the interface that are not in `before` receive only packets that match the
 * pcap-filter(7) expression, and none that this host sends. Returns the number of these sockets, or a
 * negative errno.
 */
int ur_packet_filter(unsigned ifindex, const struct ur_packet_sockets *before, const char *filter);

#endif
