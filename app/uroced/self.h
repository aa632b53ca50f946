/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_SELF_H
#define UROCED_SELF_H

#include "cm/cm.h"
#include "device.h"
#include "edge/neigh.h"
#include "kernel.h"

/*
 * The daemon's own end of the address that its clients share: a device of the switch that answers ARP, neighbour discovery and
 * ping, and connection requests that are no client's (UROCED-SELF-01). It never connects. Thread class: the daemon's one
 * thread.
 */
struct self_attr {
	uint8_t mac[6];
	uint32_t address;      /* host byte order */
	uint8_t prefix;	       /* of its network */
	struct kernel *kernel; /* has the address too, and answers for it; NULL: the daemon does */
	struct rte_mempool *pool;
	const struct ur_clock *clock;
	uint32_t max_frame;
};

/* NULL: no memory. */
struct device *self_new(const struct self_attr *attr);

/* Whether its link is up: if anything else is. */
void self_set_link(struct device *d, bool up);

#endif
