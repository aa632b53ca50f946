/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_NEIGH_ATTR_H
#define UR_EDGE_NEIGH_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* The identity of an endpoint on its link: MAC address, VLAN, own addresses, gateways. Plain data; see neigh.h. */

#define UR_NEIGH_ADDRS_MAX 8

struct ur_neigh_addr {
	struct ur_gid gid;
	uint8_t prefix_len; /* of the subnet: 0..32 for IPv4, 0..128 for IPv6 */
};

struct ur_neigh_attr {
	uint8_t mac[6];
	bool has_vlan; /* our frames carry vlan_tci, and only its VLAN is ours */
	uint16_t vlan_tci;
	struct ur_neigh_addr addr[UR_NEIGH_ADDRS_MAX]; /* ours, IPv4-mapped and IPv6 */
	unsigned addr_cnt;
	bool has_gateway4, has_gateway6; /* for destinations in none of our subnets */
	struct ur_gid gateway4, gateway6;
};

#endif
