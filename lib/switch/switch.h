/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_SWITCH_H
#define UR_SWITCH_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "switch/attr.h"
#include "switch/counters.h"
#include "switch/frame.h"
#include "wire/packet.h"

/*
 * A switch: frames in, frames out (docs/design/switch.md). It holds references to frames, never their
 * bytes. Port 0 is the switch's own: what it "sends" goes to its management agent.
 *
 *	n = ur_switch_input(sw, port, &frame, now)	the frame has n references in queues;
 *							0: it was dropped, and is the caller's
 *	n = ur_switch_output(sw, port, tx, cap, now)	passes one reference for each tx to the caller
 *	n = ur_switch_reap(sw, tx, cap)			the same for references dropped in queues
 *
 * The bytes of a frame must stay as they are while it has references. The caller counts them: when the last
 * one was sent or reaped, the frame can be freed.
 *
 * Pure: no system call, no allocation; time is an argument, in nanoseconds, and does not go back.
 * Thread class: one thread. Memory: limits, size, init; the caller owns it.
 */
struct ur_switch;

struct ur_switch_frame {
	uint8_t *data; /* the Ethernet header */
	void *handle;  /* the caller's own */
	uint32_t len;  /* without FCS */
};

/* A frame to send: head[0, head_len), then frame.data[skip, frame.len). */
struct ur_switch_tx {
	struct ur_switch_frame frame; /* as it was received */
	uint64_t in_ns;		      /* when */
	uint8_t in_port, vl;
	uint8_t skip, head_len; /* 0, 0: send the frame as it is */
	bool held;		/* has waited for a receive pool: its delay is not the network's */
	uint8_t head[UR_SWITCH_HEAD_MAX];
};

size_t ur_switch_size(const struct ur_switch_attr *attr);

/*
 * `mem` has ur_switch_size() bytes and is aligned to 64. `attr` has passed the check and is copied.
 * All ports have the default attributes and are down; port 0 is up.
 */
struct ur_switch *ur_switch_init(void *mem, const struct ur_switch_attr *attr);

/*
 * Sets the attributes of a port, which have passed the check, at any time. Frames that wait in a lane without
 * service from now on are dropped.
 */
void ur_switch_set_port(struct ur_switch *sw, uint8_t port, const struct ur_switch_port_attr *attr,
			uint64_t now_ns);
const struct ur_switch_port_attr *ur_switch_port(const struct ur_switch *sw, uint8_t port);

/*
 * Says whether a port's link is up. When it goes down, its queues are dropped and its addresses
 * forgotten.
 */
void ur_switch_set_link(struct ur_switch *sw, uint8_t port, bool up, uint64_t now_ns);
/* The same by the administrator: a port is up if its link is up and it is enabled, as at first. */
void ur_switch_set_enabled(struct ur_switch *sw, uint8_t port, bool enabled);
bool ur_switch_enabled(const struct ur_switch *sw, uint8_t port);
/* Whether the port is up. */
bool ur_switch_link(const struct ur_switch *sw, uint8_t port);

/*
 * A host with one address on several ports: what decides for a frame, ahead of everything that was learned. `ports` returns
 * the ports that get it (bit p), perhaps that on which it came, or UR_SWITCH_NOT_STEERED; 0: it is dropped. Its own MAC address
 * is not learned.
 */
#define UR_SWITCH_NOT_STEERED UINT64_MAX
struct ur_switch_steer {
	uint64_t (*ports)(void *arg, uint8_t in, const struct ur_switch_frame *frame,
			  const struct ur_switch_headers *h); /* NULL: none */
	void *arg;					      /* outlives the switch */
	uint8_t mac[6];
};
void ur_switch_set_steer(struct ur_switch *sw, const struct ur_switch_steer *steer);

/* The LID whose packets are the agent's, whatever the forwarding table says; 0: none. */
void ur_switch_set_lid(struct ur_switch *sw, uint16_t lid);

/* Forwards a frame that `port` has received; 0: the agent. Returns the references taken. */
unsigned ur_switch_input(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
			 uint64_t now_ns);

/*
 * Queues a management packet of the agent on a port's VL15. False: it was dropped, and is the
 * caller's.
 */
bool ur_switch_send_mgmt(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
			 uint64_t now_ns);
/* The same, on the port that the forwarding table has for `lid`. */
bool ur_switch_route_mgmt(struct ur_switch *sw, uint16_t lid, const struct ur_switch_frame *frame,
			  uint64_t now_ns);

/*
 * What a port sends next: VL15, then the lanes as arbitrated, as far as its rate allows. Every tx counts as sent;
 * the caller keeps what the device does not take and offers it again before the next call. A port with a rate, which is
 * late and catches up, sends at most two frames or UR_SWITCH_AHEAD_BYTES in a call, so that VL15 is no later than that.
 */
#define UR_SWITCH_AHEAD_BYTES 16384
unsigned ur_switch_output(struct ur_switch *sw, uint8_t port, struct ur_switch_tx *tx, unsigned cap,
			  uint64_t now_ns);

/*
 * Ports with a packet in VL15 (bit 0: for the agent), and the same as ur_switch_output() from VL15 alone: for a caller that
 * does not let management wait until it has received at all ports (SWITCH-VL15-02).
 */
uint64_t ur_switch_mgmt_ports(const struct ur_switch *sw);
unsigned ur_switch_output_mgmt(struct ur_switch *sw, uint8_t port, struct ur_switch_tx *tx,
			       unsigned cap, uint64_t now_ns);

/*
 * Link credits: whether a message to the port's neighbour is due. It is UR_CREDIT_BYTES long, and is sent ahead of what
 * the next ur_switch_output() returns, and behind all before it.
 */
bool ur_switch_wants_message(const struct ur_switch *sw, uint8_t port, uint64_t now_ns);
void ur_switch_message(struct ur_switch *sw, uint8_t port, uint8_t *frame, const uint8_t mac[6],
		       uint64_t now_ns);

/* References that were dropped after they had been queued: the link went down, or a lane lost its service. */
unsigned ur_switch_reap(struct ur_switch *sw, struct ur_switch_tx *tx, unsigned cap);

/*
 * When the next frame may leave by one of `ports` (bit p: port p; leave out those whose device takes nothing): `now_ns` or
 * later; UINT64_MAX: nothing is queued there.
 */
uint64_t ur_switch_next_deadline(const struct ur_switch *sw, uint64_t ports, uint64_t now_ns);

/* The linear forwarding table: port of a LID in [1, UR_SWITCH_LIDS), UR_SWITCH_NO_PORT for none. */
uint8_t ur_switch_lft(const struct ur_switch *sw, uint16_t lid);
void ur_switch_set_lft(struct ur_switch *sw, uint16_t lid, uint8_t port);

/* LIDs of an IP address, as ur_switch_routes_set(). */
bool ur_switch_set_route(struct ur_switch *sw, const struct ur_gid *addr, uint16_t lid,
			 uint8_t lmc);

/* Copies. Messages about credits are no frames and count apart. Addresses learned are counted by walking the table. */
void ur_switch_counters(const struct ur_switch *sw, uint8_t port, struct ur_switch_counters *out);
uint32_t ur_switch_queued_bytes(const struct ur_switch *sw, uint8_t port, uint8_t vl);
uint32_t ur_switch_queued(const struct ur_switch *sw); /* references, those to reap not counted */
uint32_t ur_switch_macs(const struct ur_switch *sw, uint64_t now_ns);
uint16_t ur_switch_ports(const struct ur_switch *sw); /* port 0 included */

/* For tests: asserts the invariants of queues and counts. */
void ur_switch_validate(const struct ur_switch *sw);

#endif
