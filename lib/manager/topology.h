/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_TOPOLOGY_H
#define UR_MANAGER_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A fabric as a graph: nodes, their ports, and what each port is linked to. Plain data of bounded size that discovery
 * (discover.h) fills in and that everything else of the manager reads. Nodes and ports are numbers, in order of discovery;
 * node 0 is the one at which discovery started.
 *
 * Thread class: one thread.
 */
#define UR_TOPO_NONE	 UINT32_MAX
#define UR_TOPO_PATH_MAX 63 /* hops of a directed route (IBA 14.2.2) */
#define UR_TOPO_NO_PATH	 255

/* What a port is linked to, X(NAME, name, meaning). The first four are the cases of the paper. */
#define UR_TOPO_LINKS(X)                                                                           \
	X(ENDPOINT, endpoint, "an endpoint or router")                                             \
	X(NEW_SWITCH, new_switch, "a switch that was reached by this port first")                  \
	X(KNOWN_SWITCH, known_switch, "a switch that was known already")                           \
	X(DOWN, down, "nothing: the link is down")                                                 \
	X(SILENT, silent, "the link is up, but nothing answers")                                   \
	X(REFUSED, refused, "what answers contradicts itself or what is known")                    \
	X(BEYOND, beyond, "not asked: too many hops, or a limit is reached")                       \
	X(UNKNOWN, unknown, "not asked: the port's node does not say")

enum ur_topo_link {
#define X(NAME, name, meaning) UR_TOPO_LINK_##NAME,
	UR_TOPO_LINKS(X)
#undef X
};

enum ur_topo_type {
	UR_TOPO_ENDPOINT = 1, /* NodeType of NodeInfo (IBA 14.2.5.3) */
	UR_TOPO_SWITCH = 2,
	UR_TOPO_ROUTER = 3,
};

struct ur_topo_port {
	uint64_t guid;	   /* 0: unknown */
	uint64_t far_guid; /* what its link's other end said it is: node GUID, 0 for nothing, ... */
	uint8_t far_port;  /* ... and port */
	uint8_t link;	   /* enum ur_topo_link */
	bool asked;	   /* what it is linked to was asked, or need not be */
	bool told;	   /* PortInfo was answered: state and so on are valid */
	bool untold;	   /* PortInfo was not answered */
	bool probed;	   /* discovery has asked beyond it */
	bool verify;	   /* said to be down, but something was reached through it */
	bool one_way;	   /* the link answers requests from the other end only */
	uint8_t state, phys_state;
	uint8_t width, speed; /* active; codes of PortInfo */
	uint8_t mtu, lmc;
	uint16_t lid;
	uint32_t peer_node; /* UR_TOPO_NONE: none that is known */
	uint8_t peer_port;
	uint32_t node; /* its own */
	uint32_t
		first_waits; /* discovery: ports whose far end is known as soon as this one was asked */
	uint32_t next_waits;
};

/* What is wrong with a node, X(bit, NAME, name, meaning) */
#define UR_TOPO_FAULTS(X)                                                                          \
	X(0, DUPLICATE, duplicate, "another node has the same GUID")                               \
	X(1, DEAD, dead, "stopped answering while it was asked")                                   \
	X(2, MUTE, mute, "left some requests unanswered")                                          \
	X(3, WRONG, wrong, "gave an answer that cannot be true")

enum ur_topo_fault {
#define X(bit, NAME, name, meaning) UR_TOPO_##NAME = 1 << bit,
	UR_TOPO_FAULTS(X)
#undef X
};

struct ur_topo_node {
	uint64_t guid, system_guid;
	uint32_t first_port; /* its ports are [first_port, first_port + ports], port 0 first */
	uint8_t ports;	     /* physical ones, 1 to 254 */
	uint8_t type;	     /* enum ur_topo_type */
	uint8_t faults;	     /* enum ur_topo_fault */
	uint8_t hops;	     /* from node 0; UR_TOPO_NO_PATH after ur_topo_reroute() only */
	uint32_t parent;     /* the node before it on its path; UR_TOPO_NONE for node 0 */
	uint8_t parent_port; /* of the parent, toward this node */
	uint8_t entry_port;  /* of this node, toward the parent */
	uint16_t device_id, lft_top, lft_cap;
	uint32_t vendor_id, revision;
	uint32_t next_same; /* next node in the bucket of the hash table */
	char description[65];
	/* for discovery */
	uint32_t next_turn;
	uint16_t step, probe;
	uint8_t open, timeouts;
	bool in_turn;
};

struct ur_topo_limits {
	uint32_t nodes; /* 1 to 2^24 */
	uint32_t ports; /* of all nodes together, port 0 of each included; 2 to 2^28 */
	uint64_t seed;	/* secret, so that a liar cannot invent GUIDs that share a bucket; or 0 */
};

struct ur_topo {
	struct ur_topo_limits limits;
	uint32_t nodes_cnt, ports_cnt;
	bool full; /* a node was left out: the limits are reached */
	struct ur_topo_node *node;
	struct ur_topo_port *port;
	uint32_t buckets, *bucket;
};

size_t ur_topo_size(const struct ur_topo_limits *limits);
/* `memory`: ur_topo_size(limits) bytes, aligned to 8, in use until the end. */
void ur_topo_init(struct ur_topo *t, void *memory, const struct ur_topo_limits *limits);

/*
 * Adds a node and its ports, all of them UNKNOWN. Returns its number; UR_TOPO_NONE, and t->full is set: the limits are
 * reached. Several nodes may have the same GUID.
 */
uint32_t ur_topo_add(struct ur_topo *t, uint64_t guid, uint8_t type, uint8_t ports);

/* The first node with that GUID, and the next one after `node`. UR_TOPO_NONE: there is none. */
uint32_t ur_topo_find(const struct ur_topo *t, uint64_t guid);
uint32_t ur_topo_find_next(const struct ur_topo *t, uint32_t node);

/* The number of port `port` of the node; port <= its number of ports. */
static inline uint32_t ur_topo_port_of(const struct ur_topo *t, uint32_t node, uint8_t port)
{
	return t->node[node].first_port + port;
}

/* The inverse: which port of its node. */
static inline uint8_t ur_topo_port_nr(const struct ur_topo *t, uint32_t port)
{
	return (uint8_t)(port - t->node[t->port[port].node].first_port);
}

/*
 * Writes the directed route from node 0 to the node: path[1] to path[n] are the ports through which it leaves each
 * node on its way (IBA 14.2.2.2). Returns n, the number of hops.
 */
uint8_t ur_topo_path(const struct ur_topo *t, uint32_t node, uint8_t path[UR_TOPO_PATH_MAX + 1]);

/*
 * Gives each node the shortest path through ports and nodes that are not closed, or UR_TOPO_NO_PATH as its hops. A node that is closed can still be the end of a path. `closed_ports` and `closed_nodes` are by number.
 * `queue`: room for limits.nodes numbers. Returns how many nodes have a path through what is open. MGR-TOPO-02
 */
uint32_t ur_topo_reroute(struct ur_topo *t, const bool *closed_ports, const bool *closed_nodes,
			 uint32_t *queue);

const char *ur_topo_link_name(uint8_t link);

#endif
