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

/* What AUTO remembers of a destination. */
struct ur_cc_auto {
	uint32_t least_ns;	/* delay of this interval and the one before; UINT32_MAX: none */
	uint32_t least_next_ns; /* of this interval */
	uint64_t interval_ns;	/* when it ends */
	uint32_t delay_ns, before_ns; /* the last two; 0: none */
	uint64_t late_ns;  /* since when all were longer than enter_ns; 0: they are not */
	uint32_t jitter16; /* how far delays jump to and fro, 1/16 ns */
	uint32_t rate;	   /* meaningful while throttled */
	uint32_t unit;	   /* largest of the last packets, with what a READ asks for */
	uint32_t capacity; /* what was delivered, as a rate */
	uint64_t enter_ns; /* longer delays throttle */
	uint64_t round_ns, round_bytes; /* when the round began, and what had been delivered */
	uint64_t last_ns, last_bytes;	/* the same of the round before */
	/* Is the queue a queue? While throttled. */
	uint64_t ref_bytes;    /* most that a round delivered, */
	uint32_t ref_queue_ns; /* with this queue */
	uint8_t proofs;	       /* rounds in a row with much less, and the same queue */
	bool draining;	       /* it was too long and is to go away */
	uint16_t rounds;       /* since the last probe */
	uint32_t probe_ns;     /* delay before the probe; 0: it has changed since */
	uint32_t way_ns;       /* delay that the last probe did not change; 0: it did */
	uint32_t held;	       /* capacity before the probe */
	uint8_t sent_cnt;      /* [1, UR_CC_SENTS] */
	struct ur_cc_sent sent[UR_CC_SENTS]; /* oldest first */
};

#endif
