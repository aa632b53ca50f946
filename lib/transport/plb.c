/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/plb.h"

static void begin_round(struct ur_plb *p, const struct ur_rtt *rtt, struct ur_stamp now)
{
	p->seen = UR_PLB_LONG;
	p->round_end = ur_stamp_add(now, rtt->srtt < UR_PLB_PAUSE ? rtt->srtt : UR_PLB_PAUSE);
}

/* True: the queue pair is to move. */
static bool end_round(struct ur_plb *p)
{
	/* PLB-LEVEL-01 */
	p->calm = p->seen == UR_PLB_SHORT ? p->calm + 1 : 0;
	if (p->calm == UR_PLB_CALM) {
		p->calm = 0;
		p->level -= p->level > 0;
	}
	p->congested = p->seen == UR_PLB_LONG ? p->congested + 1 : 0;
	if (p->congested < UR_PLB_ROUNDS)
		return false;
	/* PLB-MOVE-01 */
	p->congested = 0;
	p->level += p->level < UR_PLB_LEVEL_MAX;
	return true;
}

bool ur_plb_on_rtt(struct ur_plb *p, const struct ur_rtt *rtt, uint32_t sample, struct ur_stamp now)
{
	uint64_t usual = (uint64_t)rtt->min << p->level;
	uint8_t seen = (uint8_t)(UR_PLB_LONG + (sample <= 2 * usual) + (sample <= usual));
	bool moves;

	if (!ur_plb_is_on(p)) {
		if (ur_plb_begins(rtt, sample))
			begin_round(p, rtt, now);
		return false;
	}
	if (seen > p->seen)
		p->seen = seen;
	/* A round that seems to end later than UR_PLB_PAUSE from now ended long ago: stamps wrap. */
	if (ur_stamp_since(p->round_end, now) - 1 < UR_PLB_PAUSE)
		return false;
	moves = end_round(p);
	if (p->congested || p->level)
		begin_round(p, rtt, now);
	else
		p->seen = UR_PLB_NOTHING;
	return moves;
}
