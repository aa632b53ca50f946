/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_SERVER_H
#define UROCED_SERVER_H

#include "client.h"
#include "lease.h"
#include "steer.h"

/*
 * The sockets of the daemon: that of leases, and that of memif beside it. Group of the devices of its clients. Thread class: the
 * daemon's one thread.
 */
struct server;

struct server_attr {
	const char *path; /* of the leases' socket */
	const char *file; /* what is kept for a daemon that is started again; NULL: nothing */
	uint32_t mode;	  /* permissions of the sockets, */
	gid_t group;	  /* and their group, or LISTENER_SAME_GROUP */
	struct lease_attr lease; /* has passed lease_attr_check() */
	double rate_gbps;	 /* of each client; 0: no limit */
	bool manage;		 /* clients may manage the switch */
	bool direct;		 /* and pass by it, by direct rings */
	/*
	 * Clients share an address, attr.lease.host: this and self are told of leases. `first_port`: of the switch, the first
	 * client's.
	 */
	struct steer *steer;
	uint8_t first_port;
	struct kernel *kernel; /* has the address as well; NULL: it does not */
	const struct ur_clock *clock;
};

/* `attr` outlives it. Makes attr->lease.clients devices at devs; with attr->steer, one more: self.h. NULL: a sentence in `err`. */
struct device_group *server_open(const struct server_attr *attr, uint32_t max_frame,
				 struct rte_mempool *pool, struct device **devs, char *err,
				 size_t cap);

/* What clients are told: the largest IP packet, [576, 9600]. Before the first serve. */
void server_set_mtu(struct device_group *g, uint32_t mtu);

#endif
