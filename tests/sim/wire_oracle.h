/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_WIRE_ORACLE_H
#define UR_SIM_WIRE_ORACLE_H

#include "transport/qp.h"
#include "wire/packet.h"

/*
 * Checks the packets on the wire, both when they leave an endpoint and when they reach one. It
 * has the information of a sniffer that saw the connections being set up, and none from the engine.
 * So it also detects a mistake on which both ends agree. docs/design/simulator.md lists its rules.
 */
struct sim_wire;

/* One end of a connection, as a responder. */
struct sim_wire_end {
	unsigned ep, peer_ep;
	struct ur_qpn qpn, peer_qpn;
	enum ibv_qp_type type; /* RC and UC; other types are not checked */
	enum ur_mode mode;
	struct ur_psn first; /* PSN of the peer's first request */
	unsigned mtu_shift;
};

struct sim_wire *sim_wire_new(void);
void sim_wire_free(struct sim_wire *w);

/* Reports that a connection has been set up, possibly again, and has not carried a packet yet. */
void sim_wire_connect(struct sim_wire *w, const struct sim_wire_end *end);

/* Reports that a packet has reached endpoint `ep`, before the endpoint processes it. */
void sim_wire_arrived(struct sim_wire *w, unsigned ep, const struct ur_packet *p);

/* Checks a packet from endpoint `from` to endpoint `to`. Returns NULL or the rule that it breaks. */
const char *sim_wire_sent(struct sim_wire *w, unsigned from, unsigned to,
			  const struct ur_packet *p);

/* Number of answers (ACKs, NAKs, responses) checked. */
uint64_t sim_wire_watched(const struct sim_wire *w);

#endif
