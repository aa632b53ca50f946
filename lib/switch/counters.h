/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_COUNTERS_H
#define UR_SWITCH_COUNTERS_H

#include <stdint.h>

#include "switch/attr.h"
#include "wire/credit.h"

/*
 * What a switch counts. Every reference to a frame ends in exactly one of these, so that at any time
 *
 *	sum of rx_packets + sum of copies = sum of tx_packets + sum of drops + references queued
 *
 * A drop counts at the port where it is decided: the receiving one before the destination is known, then
 * the sending one. Its lane is 0 while the lane is not known.
 */

/* X(name, help): counters of a port */
#define UR_SWITCH_PORT_COUNTERS(X)                                                                 \
	X(rx_packets, "frames received")                                                           \
	X(rx_bytes, "bytes received, without FCS")                                                 \
	X(rx_group_packets, "of these, multicast and broadcast")                                   \
	X(tx_packets, "frames sent")                                                               \
	X(tx_bytes, "bytes sent, without FCS")                                                     \
	X(tx_group_packets, "of these, multicast and broadcast")                                   \
	X(copies, "further references to frames of this port that are flooded")                    \
	X(flooded, "frames of this port sent to all others")                                       \
	X(routed, "frames of this port forwarded by address and LID")                              \
	X(ce_marked, "frames marked CE (congestion experienced) for this port")                    \
	X(wait_ns, "time during which a frame waited for the port's rate")                         \
	X(learned, "addresses learned on this port")                                               \
	X(moved, "addresses that moved to this port from another one")                             \
	X(not_learned, "addresses for which the table had no room")                                \
	X(link_downs, "times that the link has gone down")                                         \
	X(held, "frames of this port that waited for a receive pool")                              \
	X(held_late, "times that a queue pair's were let go because they had waited too long")     \
	X(notify_ignored, "statuses of receive pools from a port that does not lead to them")      \
	UR_CREDIT_COUNTERS(X)

/* X(NAME, name, text): why a reference is dropped */
#define UR_SWITCH_DROPS(X)                                                                         \
	X(LINK_DOWN, link_down, "the port is down")                                                \
	X(TRUNCATED, truncated, "shorter than its Ethernet header")                                \
	X(SOURCE, source, "its source is a group address")                                         \
	X(RESERVED, reserved, "meant for the next device only, and not management")                \
	X(VLAN, vlan, "of a VLAN that the port is not a member of")                                \
	X(SAME_PORT, same_port, "its destination is where it came from")                           \
	X(NO_MEMBER, no_member, "no other port is up and in its VLAN")                             \
	X(NO_ROUTE, no_route, "its LID has no port that is up")                                    \
	X(FLOOD, flood, "over the port's limit of flooded frames")                                 \
	X(MGMT, mgmt, "over the port's limit of management packets")                               \
	X(NO_SERVICE, no_service, "its service level has no lane")                                 \
	X(TOO_LONG, too_long, "longer than the port can send")                                     \
	X(QUEUE_FULL, queue_full, "the queue of its lane is full")                                 \
	X(NO_BUFFER, no_buffer, "the receiving port has its share of buffers in queues")           \
	X(NO_CREDIT, no_credit, "its lane has had no credit for too long")                         \
	X(NO_ENDPOINT, no_endpoint,                                                                \
	  "for the host that shares its address, but for none of its endpoints")

enum ur_switch_drop {
#define X(NAME, name, text) UR_SWITCH_DROP_##NAME,
	UR_SWITCH_DROPS(X)
#undef X
		UR_SWITCH_DROP_CNT
};

struct ur_switch_lane_counters {
	uint64_t tx_packets, tx_bytes;
	uint64_t drops[UR_SWITCH_DROP_CNT];
};

struct ur_switch_counters {
#define X(name, help) uint64_t name;
	UR_SWITCH_PORT_COUNTERS(X)
#undef X
	struct ur_switch_lane_counters lane[UR_SWITCH_LANES];
};

/* "queue_full" and "the queue of its lane is full". Static. */
const char *ur_switch_drop_name(enum ur_switch_drop reason);
const char *ur_switch_drop_text(enum ur_switch_drop reason);

#endif
