/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/rtt.h"

#include "wire/ext.h"

void ur_rtt_init(struct ur_rtt *r)
{
	*r = (struct ur_rtt){.min = UINT32_MAX, .min_next = UINT32_MAX};
}

static void note_least(struct ur_rtt *r, uint32_t rtt, struct ur_stamp now)
{
	if (r->srtt == 0) {
		r->min_at = ur_stamp_add(now, UR_RTT_MIN_INTERVAL);
	} else if (ur_stamp_le(r->min_at, now)) {
		r->min = r->min_next;
		r->min_next = UINT32_MAX;
		r->min_at = ur_stamp_add(now, UR_RTT_MIN_INTERVAL);
	}
	if (rtt < r->min)
		r->min = rtt;
	if (rtt < r->min_next)
		r->min_next = rtt;
}

uint32_t ur_rtt_sample(struct ur_rtt *r, struct ur_stamp stamp, uint32_t residence,
		       struct ur_stamp now)
{
	uint32_t away = ur_stamp_since(now, stamp), rtt, dev;
	int32_t err;

	/* EXT-SEL-RTT-01 */
	if (away > INT32_MAX || residence > away)
		return 0;
	rtt = away - residence;
	if (rtt == 0)
		rtt = 1;
	if (rtt > UR_RTT_MAX)
		rtt = UR_RTT_MAX;
	/* EXT-SEL-RTT-03: an answer takes as long, though that says nothing of the network. */
	if (residence > UR_RTT_MAX)
		residence = UR_RTT_MAX;
	r->kept = residence > r->kept ? residence : r->kept - (r->kept - residence) / 16;
	note_least(r, rtt, now);
	if (r->srtt == 0) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
		return rtt;
	}
	err = (int32_t)(rtt - r->srtt);
	dev = err < 0 ? -(uint32_t)err : (uint32_t)err;
	r->srtt += (uint32_t)(err / 8);
	if (dev > r->rttvar)
		r->rttvar += (dev - r->rttvar) / 4;
	else
		r->rttvar -= (r->rttvar - dev) / 16;
	return rtt;
}
