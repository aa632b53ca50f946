/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_ROUTES_H
#define UR_SWITCH_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "switch/attr.h"
#include "wire/packet.h"

/*
 * Forwarding by table: an IP address has a LID, a LID has a port. An address with an LMC has 2^LMC
 * LIDs, the first of which is a multiple of that; the UDP source port chooses one of them, and so one of
 * several equal paths (IBA 4.1.3; the linear forwarding table is that of IBA 14.2.5.10).
 *
 * Thread class: the switch's.
 */
#define UR_SWITCH_LMC_MAX 7

struct ur_switch_route {
	struct ur_gid addr;
	uint16_t lid; /* the first; 0: free */
	uint8_t lmc;
	bool used; /* a search goes on behind it */
};

struct ur_switch_routes {
	struct ur_switch_route *entry; /* [0, mask + 1): open addressing */
	uint32_t mask;
	uint32_t cnt, max; /* routes set, and the most */
	uint64_t seed;
	uint8_t port_of[UR_SWITCH_LIDS]; /* linear forwarding table */
};

size_t ur_switch_routes_size(uint32_t routes);
void ur_switch_routes_init(struct ur_switch_routes *r, void *mem, const struct ur_switch_attr *a);

/* Sets the LIDs of an address; lid 0 removes them. False: no room, or the LIDs are invalid. */
bool ur_switch_routes_set(struct ur_switch_routes *r, const struct ur_gid *addr, uint16_t lid,
			  uint8_t lmc);

/* The route of an address, or NULL. */
const struct ur_switch_route *ur_switch_routes_find(const struct ur_switch_routes *r,
						    const struct ur_gid *addr);

/*
 * The port for a packet with this UDP source port: that of one of the route's LIDs whose port is in
 * `up` (bit p: port p); UR_SWITCH_NO_PORT if there is none.
 */
uint8_t ur_switch_routes_port(const struct ur_switch_routes *r, const struct ur_switch_route *route,
			      uint16_t sport, uint64_t up);

#endif
