/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_FABRIC_FABRIC_H
#define UR_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/mad.h"

/*
 * A fabric in one process, under virtual time: switches and endpoints, each with a real agent (mgmt/nma.h), and links
 * that carry the 256 bytes of a MAD. For tests, benchmarks and uroce-ctl --fabric-model. Nothing but MADs travels here.
 *
 * Nodes are numbers from 0 on, in the order in which they were added. Memory is allocated; when there is none, the
 * program ends. Thread class: one thread.
 */
struct ur_fabric;

struct ur_fabric_attr {
	uint64_t
		hop_ns; /* from a node to the next: one way, whatever the node does to pass the MAD on */
	uint64_t mad_ns;     /* a link direction is busy that long with each MAD */
	uint64_t process_ns; /* an agent is busy that long with each request */
	uint64_t
		data_ns; /* every link is full of data packets, each of which lasts that long; 0: idle */
	uint64_t seed;
};

struct ur_fabric *ur_fabric_new(const struct ur_fabric_attr *attr);
void ur_fabric_free(struct ur_fabric *f);

struct ur_fabric_node_attr {
	bool is_switch;
	uint8_t ports; /* physical, 1 to 254 */
	uint64_t guid; /* of the node; not 0 */
	char name[65]; /* its NodeDescription */
};

/* Adds a node, and returns its number. */
uint32_t ur_fabric_add(struct ur_fabric *f, const struct ur_fabric_node_attr *attr);
/* Links two ports, or a port with itself. False: there is no such port, or it is linked. */
bool ur_fabric_link(struct ur_fabric *f, uint32_t a, uint8_t port_a, uint32_t b, uint8_t port_b);
/* Makes the agents; no node or link can be added from here on. The links come up. */
void ur_fabric_start(struct ur_fabric *f);

/* ---- the truth, to compare with ---- */

uint32_t ur_fabric_nodes(const struct ur_fabric *f);
const struct ur_fabric_node_attr *ur_fabric_node(const struct ur_fabric *f, uint32_t node);
/* The other end of a port's link. False: it has none, or the link is down. */
bool ur_fabric_peer(const struct ur_fabric *f, uint32_t node, uint8_t port, uint32_t *peer,
		    uint8_t *peer_port);

/* ---- defects ---- */

/* The link of that port goes up or down; both ends notice. */
void ur_fabric_set_link(struct ur_fabric *f, uint32_t node, uint8_t port, bool up);
/* Of 65536 MADs that leave by that port, that many are lost. Nothing notices. */
void ur_fabric_set_loss(struct ur_fabric *f, uint32_t node, uint8_t port, uint32_t in_65536);
/* The node takes no MAD any more. Its links stay up. */
void ur_fabric_kill(struct ur_fabric *f, uint32_t node);
/* Every response of the node's agent is that much later. */
void ur_fabric_delay(struct ur_fabric *f, uint32_t node, uint64_t ns);
/* Called with every response that an agent makes, before it is sent; can change it. */
void ur_fabric_set_tamper(struct ur_fabric *f,
			  void (*tamper)(void *ctx, uint32_t node, uint8_t mad[UR_MAD_BYTES]),
			  void *ctx);
/* Adds receive errors to the counters of a port. */
void ur_fabric_count_errors(struct ur_fabric *f, uint32_t node, uint8_t port, uint64_t errors);

/* ---- a client on a node ---- */

/* From now on the node has a client: what the agent does not take itself goes to it. */
void ur_fabric_attach(struct ur_fabric *f, uint32_t node);
/* Sends a MAD; `lid` 0: directed route, or the neighbour. */
void ur_fabric_send(struct ur_fabric *f, uint32_t node, uint16_t lid,
		    const uint8_t mad[UR_MAD_BYTES]);
/* Takes the next MAD that arrived for the client. False: there is none. */
bool ur_fabric_receive(struct ur_fabric *f, uint32_t node, uint16_t *lid,
		       uint8_t mad[UR_MAD_BYTES]);

/* ---- time ---- */

uint64_t ur_fabric_now(const struct ur_fabric *f);
/*
 * Runs until a client has something to receive, at most until `until_ns`, at which time it then is if that is later than now. UINT64_MAX: until
 * nothing more happens. Returns true in the first case.
 */
bool ur_fabric_run(struct ur_fabric *f, uint64_t until_ns);

/* What the links carried. */
struct ur_fabric_load {
	uint64_t mads;	/* over all links */
	uint64_t lost;	/* by defects */
	uint64_t first; /* over the link of the attached client's node, both directions */
};
void ur_fabric_load(const struct ur_fabric *f, struct ur_fabric_load *load);

#endif
