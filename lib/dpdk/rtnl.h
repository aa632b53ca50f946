/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_RTNL_H
#define UR_DPDK_RTNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

struct nlmsghdr;

/*
 * The kernel's links, addresses, routes and neighbours, by rtnetlink(7) and libmnl.
 * ur_rtnl_parse() and ur_rtnl_walk() are pure and trust no length in a message. The others
 * query the kernel: each request opens a socket of its own, waits for the answer (tens of
 * microseconds; a second at most) and closes it.
 *
 * IPv4 addresses are IPv4-mapped GIDs. Functions return 0 or a negative errno unless their comment says
 * otherwise. Thread class: any thread except workers.
 */

enum ur_rtnl_kind {
	UR_RTNL_OTHER, /* of another family or kind, or malformed */
	UR_RTNL_LINK,
	UR_RTNL_ADDR,
	UR_RTNL_ROUTE,
	UR_RTNL_NEIGH
};

struct ur_rtnl_link {
	unsigned ifindex;
	bool up;       /* administratively, and its carrier */
	bool ethernet; /* has a MAC address of six bytes */
	uint8_t mac[6];
	uint32_t mtu;	 /* bytes; 0: unknown */
	uint32_t xdp_id; /* of the XDP program on it; 0: none */
	uint32_t downs;	 /* times that its carrier was lost */
};

struct ur_rtnl_addr {
	unsigned ifindex;
	struct ur_gid gid;
	uint8_t prefix_len; /* in the family's own bits */
	bool usable;	    /* IPv6: duplicate address detection has passed */
	bool secondary;	    /* IPv4: an address of the same subnet came before */
};

enum ur_rtnl_route_type {
	UR_RTNL_UNICAST,
	UR_RTNL_LOCAL,
	UR_RTNL_BROADCAST,
	UR_RTNL_MULTICAST,
	UR_RTNL_UNREACHABLE /* and prohibit, blackhole, throw */
};

struct ur_rtnl_route {
	enum ur_rtnl_route_type type;
	unsigned oif;	       /* outgoing interface */
	bool has_gateway;      /* else the destination is on the link */
	struct ur_gid gateway; /* may be IPv6 for an IPv4 destination (RFC 5549) */
	bool has_src;
	struct ur_gid src; /* that the kernel prefers */
};

struct ur_rtnl_neigh {
	unsigned ifindex;
	struct ur_gid gid;
	bool has_mac; /* and it may be used: reachable, stale, being confirmed, or permanent */
	bool failed;  /* did not answer */
	bool stale;   /* to be confirmed when it is used */
	uint8_t mac[6];
};

struct ur_rtnl_msg {
	enum ur_rtnl_kind kind;
	bool gone; /* RTM_DEL...: what follows is no more */
	union {
		struct ur_rtnl_link link;
		struct ur_rtnl_addr addr;
		struct ur_rtnl_route route;
		struct ur_rtnl_neigh neigh;
	};
};

/* One message whose header has been checked (mnl_nlmsg_ok()). Returns the kind, also in *out. */
enum ur_rtnl_kind ur_rtnl_parse(const struct nlmsghdr *nlh, struct ur_rtnl_msg *out);

typedef void (*ur_rtnl_fn)(void *arg, const struct ur_rtnl_msg *msg);

/* Calls fn for every message of [buf, buf + len) that is not UR_RTNL_OTHER; returns how many. */
unsigned ur_rtnl_walk(const void *buf, size_t len, ur_rtnl_fn fn, void *arg);

/* ---- requests ---- */

int ur_rtnl_get_link(unsigned ifindex, struct ur_rtnl_link *out);

/*
 * Addresses of an interface, the kernel's order, at most `cap`. Returns how many there are, which
 * may be more than were written.
 */
int ur_rtnl_get_addrs(unsigned ifindex, struct ur_rtnl_addr *out, unsigned cap);

/*
 * Returns the kernel's route to dst out of an interface, from src (NULL: the kernel chooses).
 * -ENETUNREACH, -EHOSTUNREACH, -EACCES: the kernel has none.
 */
int ur_rtnl_get_route(unsigned ifindex, const struct ur_gid *src, const struct ur_gid *dst,
		      struct ur_rtnl_route *out);

/* The neighbour's entry; -ENOENT: there is none. */
int ur_rtnl_get_neigh(unsigned ifindex, const struct ur_gid *gid, struct ur_rtnl_neigh *out);

/*
 * Makes the kernel resolve or confirm a neighbour as if it had a packet for it. Does not wait.
 * -EPERM: this process lacks CAP_NET_ADMIN.
 */
int ur_rtnl_use_neigh(unsigned ifindex, const struct ur_gid *gid);

/* ---- changes ---- */

/* Opens a non-blocking descriptor that reports every change of this network namespace. */
int ur_rtnl_monitor_open(void);

/* The same, but for links only. */
int ur_rtnl_monitor_links_open(void);

/*
 * Calls fn for the changes since the last call, at most `max` datagrams. Returns the number of datagrams;
 * -ENOBUFS: some were lost, and those that were not are discarded, so everything has to be read again.
 */
int ur_rtnl_monitor_read(int fd, unsigned max, ur_rtnl_fn fn, void *arg);

#endif
