/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SELECTIVE_H
#define UR_TRANSPORT_SELECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "transport/rtt.h"
#include "wire/psn.h"

/*
 * Selective retransmission of extended mode is decided here, and only here: what is deemed lost, when
 * to probe, how much may be in flight (docs/design/loss.md; RACK-TLP, RFC 8985). It knows numbers and
 * times, nothing of WQEs or packets. A queue pair has two: one over its PSNs, one over the numbers
 * of the response packets that its READs and atomics ask for.
 *
 * In order there is no bitmap and no time per number: the context (ur_rtx) is taken from the worker's
 * pool at the first gap and given back when the gap is closed.
 *
 * Thread class: the QP's worker. No division, no loop over the window on the path in order.
 */
#define UR_EXT_WINDOW 2048 /* numbers in [una, max) at most, a power of two; ur_sack fits it */

/* The recovery context of one gap. */
struct ur_rtx {
	SLIST_ENTRY(ur_rtx) link; /* in the pool */
	uint64_t acked[UR_EXT_WINDOW / 64];
	uint64_t lost[UR_EXT_WINDOW / 64];    /* deemed lost, not sent again yet */
	uint64_t resent[UR_EXT_WINDOW / 64];  /* sent more than once */
	uint32_t stamp[UR_EXT_WINDOW];	      /* of the last transmission */
	uint8_t path[UR_EXT_WINDOW];	      /* which it took */
};

/* Bounded pool of contexts; one a worker. */
struct ur_rtx_pool {
	SLIST_HEAD(, ur_rtx) free;
	uint32_t free_cnt, cnt;
};

/* Bytes for `cnt` contexts, 64-byte aligned. */
size_t ur_rtx_pool_size(uint32_t cnt);
void ur_rtx_pool_init(struct ur_rtx_pool *p, void *memory, uint32_t cnt);

#define UR_MARKS 4

struct ur_selective {
	struct ur_psn una; /* every number before it is acknowledged */
	struct ur_psn max; /* [una, max) sent at least once, max - una <= UR_EXT_WINDOW */
	struct ur_rtx *rtx;
	/* The newest transmission known to have arrived: by stamp, then number (RACK). */
	uint32_t rack_stamp;
	struct ur_psn rack_nr;
	uint16_t acked_cnt, lost_cnt; /* of [una, max), while rtx is held */
	uint16_t window;	      /* in flight at most, whatever BDP says */
	uint16_t bdp;		      /* learned, numbers */
	uint8_t reo_steps;	      /* the reordering window: quarters of SRTT */
	uint8_t backoff;	      /* RTOs in a row */
	bool probed;		      /* the tail probe went out; nothing was heard since */
	uint8_t mark_next;
	struct {
		struct ur_psn nr;
		uint32_t stamp;
	} mark[UR_MARKS]; /* when some of [una, max) left */
	uint64_t deadline_ns; /* reordering window, probe or RTO, whichever is first; UR_NEVER */
};
/*
 * The fields beyond una, max and rtx may be changed by whoever implements this; keep the struct small
 * (it is hot state of every QP, and there are two) and this comment true.
 */

/* What an extended ACK, NAK or response tells. */
struct ur_selective_news {
	struct ur_psn una;   /* every number before it has arrived */
	const uint8_t *sack; /* bit i: una + 1 + i has arrived (wire/ext.h) */
	uint32_t sack_bits;
	uint32_t echo;	     /* stamp of the transmission that caused it */
};

enum ur_selective_verdict {
	UR_SELECTIVE_NOTHING,
	UR_SELECTIVE_RESEND, /* something is lost: ur_selective_next_lost() */
	UR_SELECTIVE_PROBE,  /* send a probe: nothing was heard for too long */
};

struct ur_selective_env { /* shared by the QPs of a worker / the two of a QP */
	struct ur_rtx_pool *pool;
	struct ur_rtt *rtt;
};

void ur_selective_init(struct ur_selective *s, struct ur_psn first, uint16_t window);
/* Gives the context back; nothing is outstanding any more. */
void ur_selective_stop(struct ur_selective *s, const struct ur_selective_env *env);

/* Numbers that may be sent anew now, 0 when the flight or the window is full. */
uint32_t ur_selective_credit(const struct ur_selective *s);

static inline uint32_t ur_selective_in_flight(const struct ur_selective *s)
{
	return (uint32_t)ur_psn_diff(s->max, s->una) - s->acked_cnt - s->lost_cnt;
}

/* The numbers [max, max + n) were sent for the first time, by `path`. n <= UR_EXT_WINDOW - (max - una). */
void ur_selective_sent(struct ur_selective *s, const struct ur_selective_env *env, uint32_t n,
		       uint8_t path, uint64_t now_ns);

/* The lowest number deemed lost and not sent again yet; false when there is none. */
bool ur_selective_next_lost(const struct ur_selective *s, struct ur_psn *nr);
/* It was sent again. */
void ur_selective_resent(struct ur_selective *s, const struct ur_selective_env *env,
			 struct ur_psn nr, uint8_t path, uint64_t now_ns);

/*
 * Takes in the news (una may be old or new, but lies in [una - 2^22, max]; bits beyond max are ignored).
 * Returns how many numbers became acknowledged; *una of the struct may have moved, lost numbers may be
 * there to be sent again.
 */
uint32_t ur_selective_news(struct ur_selective *s, const struct ur_selective_env *env,
			   const struct ur_selective_news *news, uint64_t now_ns);

/*
 * Number `nr` of [una, max) arrived (responses). False when it had arrived before. Moves una over what
 * has arrived.
 */
bool ur_selective_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			  struct ur_psn nr, uint32_t echo, uint64_t now_ns);
/* Whether `nr` of [una, max) has arrived already. */
bool ur_selective_has(const struct ur_selective *s, struct ur_psn nr);

/* Everything stamped `echo` or earlier has arrived by now, or is lost: a probe came back (responses). */
void ur_selective_overtaken(struct ur_selective *s, const struct ur_selective_env *env,
			    uint32_t echo, uint64_t now_ns);

/* una is deemed lost at once (RNR wait over, a peer without a context). */
void ur_selective_lose_una(struct ur_selective *s, const struct ur_selective_env *env);

enum ur_selective_verdict ur_selective_expired(struct ur_selective *s,
					       const struct ur_selective_env *env, uint64_t now_ns);

void ur_selective_validate(const struct ur_selective *s);

#endif
