/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_DISCOVER_H
#define UR_MANAGER_DISCOVER_H

#include "manager/requests.h"
#include "manager/topology.h"

/*
 * Discovery: finds all nodes and links of a fabric, breadth first, by directed-route SMPs from the manager's own node
 * (docs/design/management.md). Each node is asked for its description, each switch for SwitchInfo, each port for PortInfo,
 * and what each port that is up is linked to for NodeInfo. Requests overlap as far as the window of the table of requests
 * and `per_node` allow.
 *
 * The caller sends what ur_discover_output() writes, and hands over what arrives and the time, until
 * ur_discover_done(). The graph can be read at any time. While discovery runs, no other requests may be posted to the same
 * table.
 *
 * Thread class: one thread.
 */
#define UR_DISCOVER_DUPLICATES_MAX 64

struct ur_discover_attr {
	uint32_t per_node; /* requests to one node at the same time, 1 to 255 */
};

struct ur_discover {
	struct ur_discover_attr attr;
	struct ur_topo *topo;
	struct ur_requests *requests;
	uint32_t first_turn, last_turn; /* nodes that have something to ask */
	uint32_t duplicates;		/* nodes with a GUID that was known; bounded */
	bool root_asked;
};

/* Both are empty, and are the caller's until the end. */
void ur_discover_init(struct ur_discover *d, const struct ur_discover_attr *attr,
		      struct ur_topo *topo, struct ur_requests *requests);

/* Writes the next MAD to send. False: there is none now. */
bool ur_discover_output(struct ur_discover *d, uint64_t now_ns, struct ur_mgr_mad *out);
void ur_discover_input(struct ur_discover *d, const struct ur_mgr_mad *mad, uint64_t now_ns);
/* When to call ur_discover_expire(); 0: discovery is done, nothing is to be waited for. */
uint64_t ur_discover_next_deadline(const struct ur_discover *d);
void ur_discover_expire(struct ur_discover *d, uint64_t now_ns);

/* True: all that can be reached was asked. If topo->nodes_cnt is 0, the manager's own node does not answer. */
bool ur_discover_done(const struct ur_discover *d);

/* Asserts what must always hold. For tests. */
void ur_discover_validate(const struct ur_discover *d);

#endif
