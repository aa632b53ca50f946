/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_ZONES_H
#define UR_MANAGER_ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "manager/topology.h"

/*
 * Zones: which nodes of a fabric which managers manage (docs/design/managers.md). They are given as a text, which all
 * managers have. Thread class: pure functions.
 *
 *	zone NAME
 *	key NUMBER			what the zone's managers and commands to them prove to know; not 0
 *	lease SECONDS			of the master's M_Key (5)
 *	seat GUID...			nodes that decide which manager is master; without it those that the zone's rules name
 *	node GUID...			these nodes
 *	within HOPS of GUID		nodes that are at most so many links away from that one
 *	route GUID PORT,PORT,...	nodes whose shortest path from that one begins with these ports
 *	nearest GUID...			nodes that are nearer to one of these than to those of other zones
 *
 * A node belongs to the first zone with a rule for it. Where several nodes have a GUID, a rule is about each of them.
 * '#' begins a comment.
 */
#define UR_ZONES_MAX	   16
#define UR_ZONE_RULES_MAX  256
#define UR_ZONE_SEATS_MAX  15
#define UR_ZONE_ROUTE_MAX  16
#define UR_ZONE_NAME_BYTES 32
#define UR_ZONE_NONE	   255

enum ur_zone_what { UR_ZONE_NODE, UR_ZONE_WITHIN, UR_ZONE_ROUTE, UR_ZONE_NEAREST };

struct ur_zone_rule {
	enum ur_zone_what what;
	uint64_t guid;
	uint8_t hops;			  /* WITHIN; ROUTE: length of the route */
	uint8_t route[UR_ZONE_ROUTE_MAX]; /* ports */
};

struct ur_zone {
	char name[UR_ZONE_NAME_BYTES];
	uint64_t key;
	uint16_t lease_s;
	uint32_t rules_cnt, seats_cnt;
	uint64_t seat[UR_ZONE_SEATS_MAX];
	struct ur_zone_rule rule[UR_ZONE_RULES_MAX];
};

struct ur_zones {
	uint32_t cnt;
	struct ur_zone zone[UR_ZONES_MAX];
};

/* Reads the text. False: err holds a sentence that names the line. */
bool ur_zones_parse(struct ur_zones *z, const char *text, size_t bytes, char *err,
		    size_t err_bytes);
/* NULL: there is none of that name. */
const struct ur_zone *ur_zones_find(const struct ur_zones *z, const char *name);

/* Numbers that stand for a zone's name and for all that the text says, as managers tell each other. */
uint64_t ur_zone_number(const char *name);
uint64_t ur_zones_number(const struct ur_zones *z);

/*
 * Writes the zone of each node into zone[nodes_cnt]: its place in the list, or UR_ZONE_NONE. `dist` and `queue` are memory
 * for two numbers and one for each node. MGR-ZONE-04
 */
void ur_zones_assign(const struct ur_zones *z, const struct ur_topo *t, uint8_t *zone,
		     uint32_t *dist, uint32_t *queue);

/*
 * The node of a seat. UR_TOPO_NONE: no node has the GUID, or several have: which of them is found first depends on where the
 * manager is, and two managers that each picked a different one might both be master. MGR-ZONE-07
 */
uint32_t ur_zones_seat(const struct ur_topo *t, uint64_t guid);

#endif
