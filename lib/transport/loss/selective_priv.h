/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SELECTIVE_PRIV_H
#define UR_TRANSPORT_SELECTIVE_PRIV_H

#include "transport/loss/selective.h"

/*
 * Between selective.c (what happens in order, and when), selective_rtx.c (what happens while a
 * context is held), selective_timer.c (what happens when nothing arrives) and selective_limit.c (how much may be in flight).
 * Nothing else includes this.
 *
 * Thread class: the QP's worker.
 */
/* ur_selective.flags */
enum {
	PROBED = 7, /* so many probes were asked for, no answer arrived since; after a timeout 1 */
	PROBED_MOST = 4, /* it counts no further */
	ASKING = 1 << 3, /* the deadline is for the oldest number; nothing was sent since */
	HELD = 1 << 4,	 /* rtx is not NULL */
	/* No context is held: */
	UNA_LOST = 1 << 5,   /* lost_cnt is 1 */
	UNA_RESENT = 1 << 6, /* una was sent again at una_stamp */
	TRAIN = 1 << 7,	     /* it has one of the places for trains of probes; PROBED is not 0 */
};

static inline uint32_t outstanding(const struct ur_selective *s)
{
	return (uint32_t)ur_psn_diff(s->max, s->una);
}

/* How many of them the context tracks, which is held. */
static inline uint32_t tracked(const struct ur_selective *s)
{
	uint32_t sent = outstanding(s);

	return sent < s->rtx->span ? sent : s->rtx->span;
}

static inline bool is_tracked(const struct ur_selective *s, struct ur_psn nr)
{
	return (uint32_t)ur_psn_diff(nr, s->una) < s->rtx->span;
}

static inline unsigned words_of(const struct ur_rtx *rtx)
{
	return (rtx->span + 63) >> 6;
}

/* Consecutive numbers that share a word of the bitmaps. */
struct run {
	struct ur_psn first;
	unsigned word, off, cnt; /* bits [off, off + cnt) of the word */
	uint64_t mask;
};

static inline unsigned index_of(const struct ur_rtx *rtx, struct ur_psn nr)
{
	return nr.v & (rtx->span - 1);
}

/* The first of `cnt` numbers from nr on that share a word; cnt >= 1. */
static inline struct run run_of(const struct ur_rtx *rtx, struct ur_psn nr, uint32_t cnt)
{
	unsigned idx = index_of(rtx, nr), off = idx & 63;
	unsigned end = rtx->span < 64 ? rtx->span : 64, len = end - off < cnt ? end - off : cnt;

	return (struct run){nr, idx >> 6, off, len, (~UINT64_C(0) >> (64 - len)) << off};
}

static inline uint64_t mask_of(const struct ur_rtx *rtx, struct ur_psn nr)
{
	return UINT64_C(1) << (index_of(rtx, nr) & 63);
}

static inline bool bit_of(const struct ur_rtx *rtx, const uint64_t *map, struct ur_psn nr)
{
	return map[index_of(rtx, nr) >> 6] & mask_of(rtx, nr);
}

static inline bool una_was_resent(const struct ur_selective *s)
{
	return s->rtx ? bit_of(s->rtx, s->rtx->resent, s->una) : (s->flags & UNA_RESENT) != 0;
}

/* Number nr had left when sample m was young; both are among the last 2^15. */
static inline bool is_before_sample(const struct ur_tx_times *tx_times, unsigned m, unsigned seq,
				    struct ur_psn nr)
{
	return (int16_t)(uint16_t)(nr.v - tx_times->sample[m].nr[seq]) < 0;
}

/* ---- how much may be in flight (selective_limit.c) ---- */

/* Sets limit and plain_flight by what they depend on: window, most, agreed, bdp, quiet. */
void ur_selective_set_limit(struct ur_selective *s);
/* Learns from a round that took `length`, > 0, how many numbers are delivered in the time of the least round trip. */
void ur_selective_measure_bdp(struct ur_selective *s, const struct ur_rtt *rtt, uint32_t length);

/* ---- when to wake up ---- */

/* Two round trips, and what they vary. */
static inline uint64_t silence_ns(const struct ur_rtt *rtt)
{
	uint64_t ns = (uint64_t)(2 * rtt->srtt + 4 * rtt->rttvar + rtt->kept) << UR_STAMP_SHIFT;

	if (rtt->srtt == 0)
		return UR_PTO_INITIAL_NS + ns;
	if (ns < UR_PTO_MIN_NS)
		return UR_PTO_MIN_NS;
	return ns < UR_RTO_MAX_NS ? ns : UR_RTO_MAX_NS;
}

/*
 * EXT-SEL-PROBE-03. Everything may stand still until una, which was sent again, has arrived: asked
 * about after two round trips, whatever they vary. If it was early, it cost a probe.
 */
static inline uint64_t probe_timeout_ns(const struct ur_selective *s, const struct ur_rtt *rtt)
{
	uint64_t ns = (uint64_t)(2 * rtt->srtt) << UR_STAMP_SHIFT;

	return rtt->srtt && ns > UR_PTO_MIN_NS && una_was_resent(s) ? ns : silence_ns(rtt);
}

/* When a transmission would have `stamp`. */
static inline uint64_t time_of(struct ur_stamp stamp, uint64_t now_ns)
{
	int64_t ahead = ur_stamp_diff(stamp, ur_stamp(now_ns));

	return now_ns + (uint64_t)(ahead * (1 << UR_STAMP_SHIFT));
}

/* When the last number was sent for the first time (selective.c). */
struct ur_stamp ur_selective_last_sent(const struct ur_selective *s,
				       const struct ur_tx_times *tx_times);
/* It gives back its place among the trains of probes, if it has one (selective.c). */
void ur_selective_leave_train(struct ur_selective *s, struct ur_rtx_pool *pool);

/* ---- the context (selective_rtx.c) ---- */

/*
 * Takes a context, with what the samples tell, unless one is held, and lets it track all that is outstanding if
 * memory allows. False: none is held, because none is left; counted.
 */
bool ur_rtx_hold(struct ur_selective *s, const struct ur_selective_env *env);
/* Lets the context, which is held, track `cnt` numbers, or as many as memory allows. */
void ur_rtx_grow(struct ur_selective *s, const struct ur_selective_env *env, uint32_t cnt);
void ur_rtx_give_back(struct ur_selective *s, struct ur_rtx_pool *pool);
/* Nothing that is tracked is acknowledged, lost, or sent again. */
bool ur_rtx_gap_closed(const struct ur_selective *s);

/* ---- what is lost ---- */

struct reo_window {
	uint32_t window, longest; /* 16 ns */
	uint32_t again;		  /* window of what was sent again */
	uint32_t places;	  /* that many beyond it: more than reordering does */
};

struct reo_window ur_rtx_reo_window(const struct ur_selective *s,
				    const struct ur_selective_env *env);

/* A probe for silence, or what left after it, has arrived; what is stamped `stamp` left before. */
static inline bool outlived_probe(const struct ur_selective *s, struct ur_stamp stamp)
{
	return ur_stamp_le(s->probe_stamp, s->rack_stamp) && ur_stamp_lt(stamp, s->probe_stamp);
}

/* The newest stamp that tells of numbers sent again, or else of the others. */
static inline struct ur_stamp newest_stamp(const struct ur_selective *s, bool resent)
{
	return resent && ur_stamp_lt(s->rack_stamp, s->again_stamp) ? s->again_stamp
								    : s->rack_stamp;
}

/* EXT-SEL-LOSS-01, EXT-SEL-REO-01: `later` numbers beyond it have arrived. */
static inline bool is_lost(const struct ur_selective *s, const struct reo_window *p,
			   struct ur_stamp stamp, uint32_t later, bool resent)
{
	int32_t age = ur_stamp_diff(newest_stamp(s, resent), stamp);

	if (age < (int32_t)(resent ? p->again : p->window))
		return false;
	return resent || later >= p->places || age >= (int32_t)p->longest ||
	       (later >= s->reo_places && outlived_probe(s, stamp));
}

/* The oldest number that was sent once and is neither acknowledged nor lost. */
struct oldest {
	bool is;
	struct ur_stamp stamp;
	uint32_t later;
};

/* Of the numbers [from, from + cnt) it was said just now whether they have arrived. */
struct told {
	struct ur_psn from;
	uint32_t cnt;
};

/* What the peer has told just now. */
enum heard {
	HEARD_NOTHING, /* nothing, or nothing new */
	HEARD_NUMBER, /* one more has arrived, and no stamp is newer: nothing new is known of what was sent again */
	HEARD_TIME, /* a stamp may be newer */
};

/*
 * EXT-SEL-PART-01. Deems lost what the rules of selective.h say, with a context: numbers that have not arrived by what the
 * peer says, not those of which it says nothing.
 */
struct oldest ur_rtx_lose(struct ur_selective *s, struct ur_rtx_pool *pool,
			  const struct reo_window *p, struct told told, enum heard heard);
/* una is lost, with a context or without. */
void ur_rtx_lose_una(struct ur_selective *s, struct ur_rtx_pool *pool);

/* ---- what has arrived ---- */

/* One call's ack, while they are taken in. */
struct arrival {
	struct ur_stamp now;
	struct ur_stamp newest; /* rack_stamp before them */
	struct ur_stamp echo;	/* valid unless partial */
	bool partial;
	bool in_parts;	  /* of the bitmap a part is told: what is new may have arrived long ago */
	uint32_t later;	  /* numbers acknowledged before them, from here on */
	uint32_t new_cnt; /* newly acknowledged */
};

/* What was sent again at `stamp` has arrived by an earlier transmission. */
bool ur_rtx_in_vain(const struct ur_rtt *rtt, const struct arrival *a, struct ur_stamp stamp);

/* Where the bitmap meets [una, max). */
struct sack_part {
	struct ur_psn nr; /* of the bit at off */
	uint32_t off, cnt;
};

struct sack_part ur_rtx_sack_part(const struct ur_selective *s, const struct ur_ack_info *ack);
/* How many bits of it are set. */
uint32_t ur_rtx_sack_count(const uint8_t *sack, struct sack_part part);

/*
 * The numbers [una, una + cnt) arrived, and those of the bitmap, as far as they are tracked. A context is held. una
 * moves if more can be tracked then; otherwise ur_rtx_advance() moves it.
 */
void ur_rtx_arrived(struct ur_selective *s, const struct ur_selective_env *env, struct arrival *a,
		    uint32_t cnt, const uint8_t *sack, struct sack_part part);
/* The number, which is tracked, arrived. */
void ur_rtx_one_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			struct arrival *a, struct ur_psn nr);
/* Moves una over what is acknowledged, and tracks more numbers behind. */
void ur_rtx_advance(struct ur_selective *s, const struct ur_selective_env *env);

#endif
