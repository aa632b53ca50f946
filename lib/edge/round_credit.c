/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/round_credit.h"

void ur_round_credit_received(struct ur_credit *c, const struct ur_pkt *pkts, unsigned n,
			      uint64_t now_ns)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t vl;

		if (ur_credit_is_message(pkts[i].data, pkts[i].len)) {
			ur_credit_input(c, pkts[i].data, pkts[i].len, now_ns);
			continue;
		}
		vl = ur_credit_lane_of(&c->peer_map, pkts[i].data, pkts[i].len);
		if (vl == UR_CREDIT_NONE)
			continue;
		ur_credit_received(c, vl);
		ur_credit_settle(c, vl);
	}
}

void ur_round_credit_sent(struct ur_credit *c, const struct ur_pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ur_credit_sent(c, ur_credit_lane_of(&c->map, pkts[i].data, pkts[i].len));
}

/* CREDIT-LIFE-01: a stalled lane sends without credit, so that its queue pairs notice. */
static int32_t left(const struct ur_credit *c, unsigned vl)
{
	return c->stalled >> vl & 1 ? INT32_MAX : ur_credit_left(c, vl);
}

unsigned ur_round_credit_gate(struct ur_credit *c, struct ur_engine *e, unsigned cap,
			      uint64_t now_ns)
{
	uint16_t acks = 0;

	for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++) {
		uint16_t bit = (uint16_t)(1u << vl);
		int32_t n = left(c, vl);

		acks |= n > 0 ? bit : 0;
		if (n > c->spare)
			n -= c->spare;
		if (n > 0 && (uint32_t)n < cap)
			cap = (unsigned)n;
	}
	if (c->closed)
		ur_credit_wait(c, ur_engine_ready_lanes(e), now_ns);
	ur_engine_open_lanes(e, (uint16_t)~c->closed | c->stalled, acks);
	return cap;
}
