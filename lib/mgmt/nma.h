/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MGMT_NMA_H
#define UR_MGMT_NMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mgmt/attr.h"
#include "vl/attr.h"
#include "wire/drop.h"
#include "wire/mad.h"
#include "wire/mad_path.h"
#include "wire/path.h"
#include "wire/smp.h"
#include "wire/vendor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The network management agent of one node, an endpoint or a switch (docs/design/management.md). A pure
 * state machine: the owner passes in the MADs that QP0 and QP1 receive, except those of the connection
 * manager, and fetches MADs to send.
 *
 *	ur_nma_input(nma, mad, &from, now)	received from a port, or from a client on this node
 *	while (ur_nma_output(nma, &out, now))	send it as out.to says
 *		...
 *	ur_nma_next_deadline(nma)		when ur_nma_expire() has something to do
 *
 * Directed-route SMPs that only pass through the node take the same way: input at one port, output at another.
 * LID-routed packets for other nodes do not: a switch forwards them by its own table, and passes only those
 * with its own LID to the agent.
 *
 * A *client* is a manager on this node (uroce-ctl, libibumad). It sends with from.way UR_MAD_LOCAL: MADs for
 * other nodes, and for the agent itself (directed route with hop count 0, or the node's own LID). What
 * comes for it (responses, traps, and requests that the agent does not serve) leaves with out.to.way
 * UR_MAD_LOCAL.
 *
 * Ports are numbered as in the IBA: physical ports from 1 on; port 0 of a switch is the switch itself. A CA
 * has ports from 1 on.
 *
 * `now_ns` never goes back. Thread class: one thread at a time.
 */
struct ur_nma;

/* A port's link, as the node sees it. */
struct ur_nma_link {
	bool up;
	uint8_t mtu;	     /* largest, 1 to 5: 256 to 4096 bytes */
	uint64_t bps;	     /* speed of the link; 0: unknown */
	uint64_t gid_subnet; /* prefix of the GIDs; 0: fe80::/64 */
};

/* What a port has counted; never reset by the agent. X(name, help) */
#define UR_NMA_COUNTERS(X)                                                                         \
	X(tx_bytes, "bytes sent")                                                                  \
	X(rx_bytes, "bytes received")                                                              \
	X(tx_packets, "packets sent")                                                              \
	X(rx_packets, "packets received")                                                          \
	X(tx_multicast, "packets sent to a group")                                                 \
	X(rx_multicast, "packets received for a group")                                            \
	X(tx_discards, "packets not sent")                                                         \
	X(tx_wait, "times at which a packet had to wait")                                          \
	X(rx_errors, "packets received with an error, without symbol_errors")                      \
	X(rx_relay_errors, "packets that a switch could not forward")                              \
	X(rx_constraint, "packets refused by a rule")                                              \
	X(symbol_errors, "packets that the device found to be damaged")                            \
	X(overruns, "packets lost for want of a buffer")                                           \
	X(flow_control, "times that the other end of the link fell silent about credits")          \
	X(vl15_dropped, "management packets dropped")                                              \
	X(link_downed, "times that the link went down")                                            \
	X(retransmitted, "packets sent again")                                                     \
	X(timeouts, "timeouts of the transport")                                                   \
	X(handshakes, "connections made")

struct ur_nma_counters {
#define X(name, help) uint64_t name;
	UR_NMA_COUNTERS(X)
#undef X
};

/* Gauges of the process. X(name, help) */
#define UR_NMA_GAUGES(X)                                                                           \
	X(load, "time spent working, 1/1000")                                                      \
	X(mempool, "packet buffers in use, 1/1000")                                                \
	X(ring, "fill of the fullest ring, 1/1000")

struct ur_nma_gauges {
#define X(name, help) uint64_t name;
	UR_NMA_GAUGES(X)
#undef X
};

/*
 * The node's callbacks, a constant table. NULL: the node does not have the function, and requests for it get a
 * status that says so. `port` is in range. They are called from ur_nma_output() and ur_nma_expire() and must
 * not call the agent. `int` results: 0, or a negative errno for "refused" (status VALUE).
 */
struct ur_nma_ops {
	/* Required. For port 0 of a switch: the switch's own, always up. */
	void (*get_link)(void *ctx, uint8_t port, struct ur_nma_link *link);
	void (*get_counters)(void *ctx, uint8_t port, struct ur_nma_counters *counters);
	void (*get_gauges)(void *ctx, struct ur_nma_gauges *gauges);
	/* VL arbitration, SL to VL, limit of high priority. `vl` passed ur_vl_attr_check(). */
	void (*get_vl)(void *ctx, uint8_t port, struct ur_vl_attr *vl);
	int (*set_vl)(void *ctx, uint8_t port, const struct ur_vl_attr *vl);
	/*
	 * The linear forwarding table: 64 entries from LID 64 * block on; 255: no port. `block` is below
	 * attr.lft_lids / 64.
	 */
	void (*get_lft)(void *ctx, uint16_t block, uint8_t ports[64]);
	int (*set_lft)(void *ctx, uint16_t block, const uint8_t ports[64]);
	/* Fills in the response's fields for the address and the source port of `route`. */
	void (*get_route)(void *ctx, struct ur_route *route);
	/* The port got a LID, or lost it (0): of a CA port, or of port 0 for the switch. */
	void (*set_lid)(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc);
	/* The port's administrative state; false: the link is to go down. */
	void (*set_enabled)(void *ctx, uint8_t port, bool enabled);
	/*
	 * One byte of the E2PROM. The agent makes the caller wait as a chip would; the functions return
	 * at once. Writes are made durable by the node, later.
	 */
	uint8_t (*eeprom_load)(void *ctx, uint16_t address);
	void (*eeprom_store)(void *ctx, uint16_t address, uint8_t value);
};

struct ur_nma_attr {
	struct ur_nma_limits limits;
	struct ur_nma_config config;
	enum ur_node_type type; /* UR_NODE_CA or UR_NODE_SWITCH */
	uint64_t node_guid;
	uint64_t port_guid; /* of port 1 of a CA (ports after it count up), of port 0 of a switch */
	uint64_t system_guid; /* 0: node_guid */
	uint16_t lft_lids;    /* entries of a switch's forwarding table, a multiple of 64 */
	uint32_t vendor_id;   /* 24 bits */
	uint16_t device_id;
	uint32_t revision;
	uint64_t seed; /* random: TransactionIDs of the agent's own requests, hashes */
	char description[UR_SMP_DATA_BYTES + 1];
	const struct ur_nma_ops *ops;
	void *ctx; /* for the callbacks */
};

/* Bytes of memory for an agent, 16-byte aligned; 0 if a limit is out of range. */
size_t ur_nma_size(const struct ur_nma_limits *limits);
/*
 * `memory` has ur_nma_size() bytes, belongs to the caller and outlives the agent. `attr` is copied, but ops
 * is not. Registers get their defaults, then those in the E2PROM.
 */
struct ur_nma *ur_nma_init(void *memory, const struct ur_nma_attr *attr, uint64_t now_ns);

/* Where a MAD came from. */
struct ur_nma_from {
	enum ur_mad_way way;
	uint8_t port; /* at which it arrived; UR_MAD_LOCAL: 0 */
	uint8_t qpn;  /* at which it arrived: 0 or 1 */
	uint16_t slid,
		dlid;  /* UR_MAD_LID; a client's destination (UR_MAD_LOCAL, LID-routed) is dlid */
	uint32_t sqpn; /* source QPN in the DETH */
	struct ur_path path; /* UR_MAD_IP: the path back */
};

/* How a MAD leaves. */
struct ur_nma_to {
	enum ur_mad_way way;
	/*
	 * The port to leave by. UR_MAD_LID on a switch: 0, and the switch looks the port up in its table, where
	 * its own LID and an unknown one are dropped.
	 */
	uint8_t port;
	uint32_t sqpn, dqpn;
	uint16_t slid, dlid; /* UR_MAD_LID; UR_MAD_LOCAL: those of the packet that arrived */
	struct ur_path path; /* UR_MAD_IP */
};

struct ur_nma_out {
	struct ur_nma_to to;
	uint8_t mad[UR_MAD_BYTES];
};

/*
 * Takes a MAD. Returns
 *
 * - UR_DROP_NONE: it was queued, or was answered before and will be answered again from memory
 * - UR_DROP_MAD: malformed, a wrong version, or a directed route that cannot be (discarded, as the IBA asks)
 * - UR_DROP_RESOURCES: the queue is full
 * - UR_DROP_UNEXPECTED: nothing on this node is interested: a response without a client
 */
enum ur_drop ur_nma_input(struct ur_nma *nma, const uint8_t mad[UR_MAD_BYTES],
			  const struct ur_nma_from *from, uint64_t now_ns);

/*
 * Fetches the next MAD to send; false: there is none. Order: SMPs that pass through, responses, the
 * agent's own requests, traps and fault reports. Requests are executed here.
 */
bool ur_nma_output(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns);
bool ur_nma_wants_output(const struct ur_nma *nma);

/*
 * When ur_nma_expire() has something to do; UINT64_MAX: no timer runs. What is due to be sent already waits for
 * ur_nma_output(): ur_nma_wants_output() says so.
 */
uint64_t ur_nma_next_deadline(const struct ur_nma *nma);
void ur_nma_expire(struct ur_nma *nma, uint64_t now_ns);

/*
 * The link of a physical port went up or down: get_link() has the new state. Sets the port's state (Init, or
 * Down), asks the neighbour for its GUID and port if config.ask_neighbours, and makes a trap and fault reports.
 */
void ur_nma_link_event(struct ur_nma *nma, uint8_t port, uint64_t now_ns);
/* A fault that the node has found itself. It is reported if the fault registers say so. */
void ur_nma_fault(struct ur_nma *nma, enum ur_fault_cause cause, uint8_t port, uint64_t value,
		  uint64_t limit, uint64_t now_ns);

/* Sends a trap, LINK_STATE to FLOW_CONTROL, to the subnet manager until it is repressed. */
void ur_nma_trap(struct ur_nma *nma, enum ur_trap trap, uint8_t port);

/*
 * Reads an attribute of subnet management as the node itself, without a MAD and without a key: for what a program on the
 * node wants to know. `data` has UR_SMP_DATA_BYTES. False: it has no such attribute.
 */
bool ur_nma_query(struct ur_nma *nma, enum ur_smp_attr attr, uint32_t attr_mod, uint8_t *data);

/* Whether agents serve the class of a MAD, in its version. */
bool ur_nma_serves(const uint8_t mad[UR_MAD_BYTES]);

/* Whether there is a client, and whether it is a subnet manager (PortInfo says so). At first there is none. */
void ur_nma_set_client(struct ur_nma *nma, bool present, bool is_sm);

/* The LID of a port (the switch's: of port 0), 0 if it has none, and the number of low bits that do not count. */
uint16_t ur_nma_lid(const struct ur_nma *nma, uint8_t port, uint8_t *lmc);
/* State of a port as its PortInfo has it. */
enum ur_port_state ur_nma_port_state(const struct ur_nma *nma, uint8_t port);

const struct ur_nma_stats *ur_nma_stats(const struct ur_nma *nma);

/* Asserts the agent's invariants; for tests. */
void ur_nma_validate(const struct ur_nma *nma);

#ifdef __cplusplus
}
#endif

#endif
