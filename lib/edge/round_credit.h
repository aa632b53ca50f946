/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_ROUND_CREDIT_H
#define UR_EDGE_ROUND_CREDIT_H

#include "edge/source.h"
#include "engine/engine.h"
#include "wire/credit.h"

/*
 * Link credits in a round (docs/design/credits.md): what arrives is counted and given back at once, and the engine makes
 * only packets for which there is credit. Internal to round.c.
 *
 * Thread class: the round's.
 */
#define UR_ROUND_CREDIT_SPARE 8 /* credits of a lane that only ACKs and the like may take */

/* Frames as they have arrived, in order; messages take effect at their place. */
void ur_round_credit_received(struct ur_credit *c, const struct ur_pkt *pkts, unsigned n,
			      uint64_t now_ns);
/* Frames to send, in order. */
void ur_round_credit_sent(struct ur_credit *c, const struct ur_pkt *pkts, unsigned n);

/*
 * CREDIT-GATE-02: tells the engine which lanes it may serve, and returns how many packets it may make at once, at most
 * `cap`; 0: none.
 */
unsigned ur_round_credit_gate(struct ur_credit *c, struct ur_engine *e, unsigned cap,
			      uint64_t now_ns);

#endif
