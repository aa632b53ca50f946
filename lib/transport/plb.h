/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_PLB_H
#define UR_TRANSPORT_PLB_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/loss/rtt.h"

/*
 * Protective load balancing (Qureshi et al., SIGCOMM 2022; Linux, tcp_plb.c): when a queue pair of mode extended is to leave a
 * congested path (docs/design/plb.md). repath.h changes the port.
 *
 * A round lasts one smoothed round trip. A round trip is long if it is more than 2^(level + 1) times the least. A round without a shorter one
 * is congested, and after UR_PLB_ROUNDS of them in a row the queue pair moves, and its level rises by one: it moves again only if the next
 * path is as bad, and by then "long" means twice as much. The level falls by one after UR_PLB_CALM rounds in a row with a round trip of at
 * most 2^level times the least. So it comes to what is usual in the network, and only paths that are worse than that are left.
 *
 * Thread class: the QP's worker.
 */
#define UR_PLB_ROUNDS	 3
#define UR_PLB_LEVEL_MAX 10
#define UR_PLB_CALM	 8
#define UR_PLB_PAUSE	 UINT32_C(62500000) /* 1 s, in stamps */

struct ur_plb {
	struct ur_stamp round_end; /* within UR_PLB_PAUSE from when it was set */
	uint8_t congested;	   /* rounds in a row, < UR_PLB_ROUNDS */
	uint8_t level;		   /* <= UR_PLB_LEVEL_MAX */
	uint8_t seen;		   /* enum ur_plb_seen */
	uint8_t calm;		   /* rounds in a row with UR_PLB_SHORT, < UR_PLB_CALM */
};

/* The least round trip of this round. */
enum ur_plb_seen {
	UR_PLB_NOTHING, /* there is no round: nothing is congested, nor was lately */
	UR_PLB_LONG,	/* or none */
	UR_PLB_USUAL,	/* > 2^level times the least of all */
	UR_PLB_SHORT,
};

/* A round trip that begins a round where there is none. */
static inline bool ur_plb_begins(const struct ur_rtt *rtt, uint32_t sample)
{
	return sample - rtt->min > rtt->min;
}

/* There is a round, and every round trip counts. If not, only one that begins a round does. */
static inline bool ur_plb_is_on(const struct ur_plb *p)
{
	return p->seen != UR_PLB_NOTHING;
}

/*
 * PLB-ROUND-01. `sample` is a round trip that ur_rtt_sample() has just taken in: [rtt->min, UR_RTT_MAX]. True: the queue
 * pair is to move.
 */
bool ur_plb_on_rtt(struct ur_plb *p, const struct ur_rtt *rtt, uint32_t sample,
		   struct ur_stamp now);

/* PLB-PAUSE-01. Silence has made the queue pair move, as from a dead link: it is not to return there soon. */
static inline void ur_plb_on_silence(struct ur_plb *p, struct ur_stamp now)
{
	*p = (struct ur_plb){.round_end = ur_stamp_add(now, UR_PLB_PAUSE), .seen = UR_PLB_USUAL};
}

#endif
