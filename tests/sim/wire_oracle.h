/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_WIRE_ORACLE_H
#define UR_SIM_WIRE_ORACLE_H

#include "transport/qp.h"
#include "wire/packet.h"

/*
 * Watches the wire: every packet as it leaves an endpoint, and every packet as it reaches one. It
 * knows what a sniffer that saw the connections being made would know, and nothing of the engine,
 * so that two ends that agree on the same mistake do not deceive it. docs/design/simulator.md lists
 * its rules.
 */
struct sim_wire;

/* One end of a connection, as a responder. */
struct sim_wire_end {
	unsigned ep, peer_ep;
	struct ur_qpn qpn, peer_qpn;
	enum ibv_qp_type type; /* RC and UC; others are not watched */
	enum ur_mode mode;
	struct ur_psn first; /* of the peer's first request */
	unsigned mtu_shift;
};

struct sim_wire *sim_wire_new(void);
void sim_wire_free(struct sim_wire *w);

/* A connection is made, or made anew: nothing has come over it. */
void sim_wire_connect(struct sim_wire *w, const struct sim_wire_end *end);

/* The packet has reached endpoint `ep`, which is about to see it. */
void sim_wire_arrived(struct sim_wire *w, unsigned ep, const struct ur_packet *p);

/* The packet leaves endpoint `from` for endpoint `to`. NULL, or the rule that it breaks. */
const char *sim_wire_sent(struct sim_wire *w, unsigned from, unsigned to,
			  const struct ur_packet *p);

/* Answers (ACKs, NAKs, responses) that were looked at. */
uint64_t sim_wire_watched(const struct sim_wire *w);

#endif
