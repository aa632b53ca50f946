/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_AGENT_H
#define UR_SWITCH_AGENT_H

#include "mgmt/attr.h"
#include "switch/switch.h"

/*
 * The management agent of a switch (lib/mgmt) between frames and MADs: it takes what the switch forwards to
 * port 0, and sends by the switch's VL15. Its requests read and write the switch's own tables: links,
 * counters, VL tables, linear forwarding table, LID.
 *
 *	for each tx of ur_switch_output(sw, 0, ...)	ur_switch_agent_input(agent, &tx->frame, tx->in_port, now)
 *	while (ur_switch_agent_wants_output(agent))	ur_switch_agent_output(agent, &frame, now)
 *	ur_switch_agent_expire(agent, now)		at ur_switch_agent_next_deadline()
 *
 * Pure. Thread class: the switch's. Memory belongs to the caller, and outlives the agent.
 */
struct ur_switch_agent;

#define UR_SWITCH_MAD_FRAME 342 /* bytes of a frame with a MAD: Ethernet to ICRC, untagged */

struct ur_switch_agent_attr {
	struct ur_nma_config config;
	uint64_t guid; /* of the switch */
	uint64_t seed;
	char description[65];
	uint8_t *eeprom; /* UR_EEPROM_BYTES of the caller's, which outlive the agent; NULL: none */
	uint8_t mac[UR_SWITCH_PORTS_MAX][6]; /* of each port, from 1 on */
};

/* Counters. X(name, help) */
#define UR_SWITCH_AGENT_COUNTERS(X)                                                                \
	X(received, "frames taken")                                                                \
	X(rejected, "of these: not a valid management packet")                                     \
	X(sent, "frames sent")                                                                     \
	X(dropped, "frames that could not be queued")

struct ur_switch_agent_counters {
#define X(name, help) uint64_t name;
	UR_SWITCH_AGENT_COUNTERS(X)
#undef X
};

/* `ports`: ur_switch_limits.ports. The memory is aligned to 64. */
size_t ur_switch_agent_size(uint16_t ports);
struct ur_switch_agent *ur_switch_agent_init(void *memory, struct ur_switch *sw,
					     const struct ur_switch_agent_attr *attr,
					     uint64_t now_ns);

/* Takes a frame that `port` has received; it can be freed afterwards. False: it was rejected. */
bool ur_switch_agent_input(struct ur_switch_agent *a, const struct ur_switch_frame *frame,
			   uint8_t port, uint64_t now_ns);

bool ur_switch_agent_wants_output(const struct ur_switch_agent *a);

/*
 * Writes the next frame into frame->data, which has UR_SWITCH_MAD_FRAME bytes, sets frame->len and queues it.
 * False: there was none, or it was dropped, and the frame is the caller's again.
 */
bool ur_switch_agent_output(struct ur_switch_agent *a, struct ur_switch_frame *frame,
			    uint64_t now_ns);

/* Also tells the agent of links that have changed: to be called after ur_switch_set_link(), too. */
void ur_switch_agent_expire(struct ur_switch_agent *a, uint64_t now_ns);
uint64_t ur_switch_agent_next_deadline(const struct ur_switch_agent *a);

/* What the device of a port counts itself. X(name, help) */
#define UR_SWITCH_DEVICE_COUNTERS(X)                                                               \
	X(device_damaged, "frames that the device has received damaged")                           \
	X(device_overruns, "frames that the device has dropped for want of a buffer")              \
	X(device_unsent, "frames that the device has failed to send")

struct ur_switch_device_counters {
#define X(name, help) uint64_t name;
	UR_SWITCH_DEVICE_COUNTERS(X)
#undef X
};

/* As last read, for the agent's counters; at first all are 0. */
void ur_switch_agent_set_device(struct ur_switch_agent *a, uint8_t port,
				const struct ur_switch_device_counters *c);

/* Share of time that the process works, 1/1000, for the agent's gauges. */
void ur_switch_agent_set_load(struct ur_switch_agent *a, uint32_t load);

void ur_switch_agent_counters(const struct ur_switch_agent *a, struct ur_switch_agent_counters *out,
			      struct ur_nma_stats *stats);
uint16_t ur_switch_agent_lid(const struct ur_switch_agent *a); /* 0: none yet */

/*
 * Grows with each request that changes what should survive a restart: forwarding table, VL tables, LID,
 * disabled ports, E2PROM.
 */
uint64_t ur_switch_agent_changes(const struct ur_switch_agent *a);
/* Gives the switch a LID, as a subnet manager does; for a restart. False: it is refused. */
bool ur_switch_agent_set_lid(struct ur_switch_agent *a, uint16_t lid, uint64_t now_ns);

#endif
