/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_AUTO_H
#define UR_CC_AUTO_H

#include <stdbool.h>
#include <stdint.h>

#define UR_CC_SENTS 8

/* A delivery sample: the bytes that had been sent before a time. */
struct ur_cc_sent {
	uint64_t ns, bytes;
};

/* The state of AUTO for a destination. */
struct ur_cc_auto {
	uint32_t least_ns;	/* least delay of this interval and the last; UINT32_MAX: none */
	uint32_t least_next_ns; /* least delay of this interval */
	uint64_t interval_ns;	/* end of the interval */
	uint32_t delay_ns, before_ns;	/* the last two delays; 0: none */
	uint64_t late_ns;		/* since when all delays exceed enter_ns; 0: they do not */
	uint32_t jitter16;		/* mean reversal of delays, in 1/16 ns */
	uint32_t rate;			/* valid while throttled */
	uint32_t back_ns;		/* of the last round trip, queues on the way back */
	uint32_t unit;			/* largest recent packet, with what a READ requests */
	uint32_t capacity;		/* delivery rate */
	uint64_t enter_ns;		/* longer delays throttle */
	uint64_t round_ns, round_bytes; /* start of the round, and bytes delivered by then */
	uint64_t last_ns, last_bytes;	/* the same of the last round */
	/* While throttled: does the delay come from a queue, or from a longer path? */
	uint64_t ref_bytes;    /* the most bytes that a round delivered, */
	uint32_t ref_queue_ns; /* and the queueing delay of that round */
	uint8_t proofs;	       /* rounds in a row with far fewer bytes and the same delay */
	bool draining;	       /* the queue was too long and has to be drained */
	uint16_t rounds;       /* since the last probe */
	uint32_t probe_ns;     /* delay before the probe; 0: it has changed since */
	uint32_t path_ns;      /* delay that the last probe did not change; 0: it did */
	uint32_t held;	       /* capacity before the probe */
	uint8_t sent_cnt;      /* [1, UR_CC_SENTS] */
	struct ur_cc_sent sent[UR_CC_SENTS]; /* oldest first */
};

#endif
