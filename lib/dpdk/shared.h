/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_SHARED_H
#define UR_DPDK_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

struct ur_emit;

/*
 * A kernel interface whose own addresses an endpoint uses ([port] dev). The kernel keeps ARP,
 * neighbour discovery, ping and everything else; the endpoint takes UDP port 4791. It reads the
 * interface's addresses, routes with their gateways, and neighbours by rtnetlink.
 * docs/design/shared-address.md has states and failure cases.
 *
 * Next hops that were looked up are kept, and follow later changes in the kernel. The table
 * is bounded: the destination that was used longest ago is replaced.
 *
 * Thread class: all functions may be called from any thread except workers, at any time between open
 * and close. Those that query the kernel take tens of microseconds.
 */

#define UR_SHARED_ADDRS_MAX   16
#define UR_SHARED_ENTRIES_MAX 4096

struct ur_shared;

/* The interface's addresses, each at the same index as long as it exists; zero: a free entry. */
struct ur_shared_addrs {
	struct ur_gid gid[UR_SHARED_ADDRS_MAX];
	unsigned cnt; /* [0, cnt) have been used */
};

/*
 * Reads link and addresses, and listens for changes. NULL, with a sentence in `err` that has the
 * remedy, and errno: ENODEV (no such interface, or not Ethernet), EADDRNOTAVAIL (it has no address),
 * or another.
 */
struct ur_shared *ur_shared_open(const char *ifname, char *err, size_t cap);
void ur_shared_close(struct ur_shared *s);

/*
 * Holds the interface's UDP port 4791 until `s` is closed, so that the kernel does not answer RoCEv2
 * packets with ICMP errors. With `copies` (af_packet: the endpoint gets copies of packets that the kernel handles as
 * well) the kernel drops its own as early as it can (ingress_drop.h). 0, or a negative errno with a sentence:
 * -EADDRINUSE if another program or the kernel's own RoCE has the port.
 */
int ur_shared_hold(struct ur_shared *s, bool copies, char *err, size_t cap);

void ur_shared_addrs(struct ur_shared *s, struct ur_shared_addrs *out);

/*
 * Makes the kernel join a multicast group on the interface, until the descriptor that is returned is closed: it sends IGMP
 * or MLD and opens the NIC's filter. Or a negative errno. Any thread.
 */
int ur_shared_join(const struct ur_shared *s, const struct ur_gid *group);

/* Whether the link is up and there is an address. */
bool ur_shared_is_up(struct ur_shared *s);

/*
 * Returns the MAC address for packets from src to dst out of this interface, by the kernel's
 * routes and neighbours; multicast, broadcast and own addresses by mapping.
 *   0             mac is written
 *   -EAGAIN       not known yet; the kernel has been asked to resolve it: call this again later
 *   -EHOSTUNREACH the neighbour (or the gateway) does not answer
 *   -ENETUNREACH  there is no route
 *   or another negative errno of the kernel
 */
int ur_shared_resolve(struct ur_shared *s, const struct ur_gid *src, const struct ur_gid *dst,
		      uint8_t mac[6], uint64_t now_ns);

/*
 * Records the MAC address that a connection request of dst came from; used until the kernel has an
 * entry.
 */
void ur_shared_learn(struct ur_shared *s, const struct ur_gid *src, const struct ur_gid *dst,
		     const uint8_t mac[6]);

/* Returns the kernel's source address for dst. 0, -ENETUNREACH or another negative errno. */
int ur_shared_source(struct ur_shared *s, const struct ur_gid *dst, struct ur_gid *src);

/*
 * Returns the MAC address of dst from memory, without a query: false if it is not known, or is mapped.
 * Any thread, also while workers pause.
 */
bool ur_shared_lookup(struct ur_shared *s, const struct ur_gid *dst, uint8_t mac[6]);

/* Changes whenever the MAC address of a destination does; any thread, without a lock. */
uint32_t ur_shared_generation(const struct ur_shared *s);

/*
 * Applies changes since the last call, and asks the kernel to resolve lost neighbours again. Cheap if
 * nothing has happened: one system call. Returns whether addresses or link have changed.
 */
bool ur_shared_poll(struct ur_shared *s, uint64_t now_ns);

/* X(name, unit, help): docs/design/counters.md */
#define UR_SHARED_COUNTERS(X)                                                                      \
	X(asked, "times", "times that the kernel was asked to find a neighbour")                   \
	X(asked_by_udp, "times",                                                                   \
	  "times that a datagram made the kernel find a neighbour, for lack of CAP_NET_ADMIN")     \
	X(moved, "destinations", "destinations whose known MAC address changed")                   \
	X(evicted, "destinations", "destinations discarded to make room for another")              \
	X(copies_dropped, "packets", "RoCEv2 packets whose copy the kernel dropped before IP")     \
	X(refreshed, "times", "times that route and neighbour of a destination were read again")   \
	X(resynced, "times",                                                                       \
	  "times that everything was read again because messages of the kernel were lost")

struct ur_shared_counters {
#define X(name, unit, help) uint64_t name;
	UR_SHARED_COUNTERS(X)
#undef X
};

/* Any thread. */
void ur_shared_read_counters(struct ur_shared *s, struct ur_shared_counters *out);

/* Emits the counters, and the number of known destinations. */
void ur_shared_emit(struct ur_shared *s, struct ur_emit *e);

/*
 * Updates the table to the `n` current addresses: those that stay keep their index, others
 * take the first free one. Addresses that do not fit are left out. Returns whether anything changed. Pure.
 */
bool ur_shared_place(struct ur_shared_addrs *table, const struct ur_gid *have, unsigned n);

#endif
