/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/selective_priv.h"

/* How much may be in flight. */

void ur_selective_set_limit(struct ur_selective *s)
{
	/* A quarter above what was delivered: else the rate could never be seen to grow. */
	uint32_t path = s->bdp + (s->bdp >> 2), limit;

	if (path > s->agreed / 2u)
		path = s->agreed / 2u;
	limit = path > s->window ? path : s->window;
	s->limit = limit < s->most ? (uint16_t)limit : s->most;
	s->plain_flight = path <= s->window && s->quiet == UR_REO_ROUNDS ? s->window / 2 : 0;
}

void ur_selective_measure_bdp(struct ur_selective *s, const struct ur_rtt *rtt, uint32_t length)
{
	uint64_t bdp = (uint64_t)s->delivered * rtt->min / length;

	if (bdp >= s->bdp)
		s->bdp = bdp < s->agreed ? (uint16_t)bdp : s->agreed;
	else
		s->bdp -= (uint16_t)(s->bdp - bdp + 7) >> 3;
	ur_selective_set_limit(s);
}

void ur_selective_narrow(struct ur_selective *s, uint32_t span)
{
	s->most = span < s->agreed ? (uint16_t)span : s->agreed;
	ur_selective_set_limit(s);
}
