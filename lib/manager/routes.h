/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_ROUTES_H
#define UR_MANAGER_ROUTES_H

#include "manager/topology.h"

/*
 * LIDs, and the linear forwarding tables of all switches, computed from the graph (docs/design/management.md).
 *
 *   shortest  each switch forwards by a shortest path. In a fabric with cycles, traffic with link-level credits can
 *             deadlock.
 *   updown    each path goes up toward the roots and then down, and never up again: no deadlock. In a fat tree these are
 *             the shortest paths.
 *
 * Where several ports are as good, the one with the fewest destinations so far is taken. With an LMC each port of an endpoint
 * has several LIDs, and paths to it: where several ports are as good, they take them in turn (MGR-LID-03).
 *
 * Thread class: one thread.
 */
#define UR_ROUTES_LID_MAX 0xbfff /* unicast (IBA 4.1.3) */
#define UR_ROUTES_LMC_MAX 7	 /* IBA 4.1.3 */
#define UR_ROUTES_TABLES_BYTES                                                                     \
	(4u << 20)	    /* larger tables keep no LID that makes them larger than necessary */
#define UR_ROUTES_NONE 0xff /* no port: the switch drops it */

enum ur_routes_mode { UR_ROUTES_SHORTEST, UR_ROUTES_UPDOWN };

struct ur_routes {
	const struct ur_topo *topo;
	enum ur_routes_mode mode;
	uint8_t lmc; /* each port of an endpoint has 2^lmc LIDs, switches have one */
	uint32_t switches, assigned; /* LIDs that ports have */
	uint32_t lids;		     /* the highest of them: the others below it are free */
	uint32_t
		unreachable; /* entries without a port, except from a switch without endpoints to a switch */
	uint32_t *switch_node; /* [switches]: the node */
	uint32_t *number;      /* [nodes]: which switch; UR_TOPO_NONE: none */
	uint32_t
		*lid_port; /* [lids + 1]: the port of the graph that has the LID, or UR_TOPO_NONE */
	uint16_t *lid;	   /* [ports]: its LID, the first of them, 0: none */
	uint8_t *lft;	   /* [switches][row] */
	uint8_t *edge;	   /* [switches]: 1: it has an endpoint */
	uint32_t row;	   /* lids + 1, rounded up to 64 */
	uint32_t *rank, *dist, *down; /* [switches]: of the computation */
	uint32_t *queue, *order;      /* [switches] */
	uint32_t *load;		      /* [ports] */
};

/* Bytes for the routes of a graph that is complete; 0: it needs more LIDs than there are. */
size_t ur_routes_size(const struct ur_topo *t, uint8_t lmc);
/*
 * `memory`: that many bytes, aligned to 8. Assigns LIDs: ports keep theirs if no other has it, and with an LMC if it is a
 * multiple of 2^lmc. lmc is at most UR_ROUTES_LMC_MAX.
 */
void ur_routes_init(struct ur_routes *r, void *memory, const struct ur_topo *t,
		    enum ur_routes_mode mode, uint8_t lmc);
/* Computes the tables. */
void ur_routes_compute(struct ur_routes *r);

/* The port of the graph that has the node's LID: port 0 of a switch, the first linked port of an endpoint. */
uint32_t ur_routes_lid_port(const struct ur_topo *t, uint32_t node);

/* True if going from switch `a` to its neighbour `b` (numbers of switches) is upward. */
bool ur_routes_is_up(const struct ur_routes *r, uint32_t a, uint32_t b);

#endif
