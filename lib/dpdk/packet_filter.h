/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_PACKET_FILTER_H
#define UR_DPDK_PACKET_FILTER_H

/*
 * An AF_PACKET socket is given a copy of everything that its interface receives and sends. Beside
 * the kernel's own traffic that would fill the ring that the endpoint reads. DPDK's driver keeps
 * its sockets to itself and sets no filter, so they are found by what they are: packet sockets of
 * the interface that were not there before the device was made.
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
 * Sockets of the interface that are not among `before` take only what matches the pcap-filter(7)
 * expression, and nothing that this host sends. Returns how many sockets that are, or a negative
 * errno.
 */
int ur_packet_filter(unsigned ifindex, const struct ur_packet_sockets *before, const char *filter);

#endif
