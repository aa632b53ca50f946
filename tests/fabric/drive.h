/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FABRIC_DRIVE_H
#define TESTS_FABRIC_DRIVE_H

#include "fabric/fabric.h"
#include "fabric/shape.h"
#include "manager/discover.h"

/* A manager on node 0 of a fabric in this process, and what its discovery must find. */

#define TIMEOUT_NS 1000000

struct drive {
	struct ur_fabric *fabric;
	struct ur_topo topo;
	struct ur_requests requests;
	struct ur_discover discover;
	void *topo_memory, *requests_memory;
	void (*each_mad)(struct drive *d); /* NULL, or called for each MAD that arrives */
	uint64_t arrived;
};

struct drive_attr {
	uint32_t window, per_node, retries, nodes, ports;
};

/* A window of 64, 4 requests a node, 3 retries, room for 30 000 nodes */
extern const struct drive_attr drive_usual;

/* Starts the fabric if it is new; the shape's with the paper's times if `fabric` is NULL. */
void drive_start(struct drive *d, const char *shape, const struct drive_attr *attr);
void drive_start_on(struct drive *d, struct ur_fabric *fabric, const struct drive_attr *attr);
/* Runs discovery to its end; checks the invariants often. */
void drive_run(struct drive *d);
void drive_end(struct drive *d);

/*
 * Asserts that the graph is what can be reached in the fabric: the same nodes, and on each of their ports the same link.
 * `is_blocked`, if not NULL, says which links carry nothing, and which nodes do not answer: (node, 0).
 */
void drive_compare(struct drive *d,
		   bool (*is_blocked)(struct drive *d, uint32_t node, uint8_t port));

#endif
