/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SELECTIVE_H
#define UR_TRANSPORT_SELECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/slabs.h"
#include "timer/wheel.h"
#include "transport/loss/probe_train.h"
#include "transport/loss/retry.h"
#include "transport/loss/rtt.h"
#include "wire/psn.h"

/*
 * Selective retransmission of extended mode is decided here, and only here: what is deemed lost,
 * when to probe, how much may be in flight (docs/design/loss.md; RACK-TLP, RFC 8985). It knows
 * numbers and times, nothing of WQEs or packets. A queue pair has two: one over its PSNs, one over
 * the numbers of the response packets that its READs and atomics ask for.
 *
 * In order there is no bitmap and no time per number: the context (ur_rtx) is taken at the first gap
 * and given back when the gap is closed. It tracks the first `span` outstanding numbers, and grows
 * with them (docs/design/loss.md, Tiers).
 *
 * What is deemed lost follows from stamps of what has arrived, never from a clock alone: a stalled
 * peer, or a stalled sender, is no loss. Where nothing younger is on its way, a probe is sent to
 * have such a stamp. Number n is lost when its age, that is the newest stamp that has arrived minus
 * the stamp of n, is
 *
 *   >= W, and as many numbers beyond n have arrived as reordering may put there: half as many again
 *         as has been seen lately, at least UR_REO_PLACES (UR_REO_READS: such requests follow
 *         each other no faster than their responses do);
 *   >= W, n left before a probe that has arrived (or something sent after it), and as many numbers
 *         beyond n have arrived as reordering was seen to put there. A probe is called for by
 *         silence, or by a gap that nothing else in flight can show to be a loss;
 *   >= the short window, and n was sent again already;
 *   >= the long window, whatever else.
 *
 * W, the reordering window, is one SRTT (half of it for READ requests and for responses), or 5/4 of
 * the longest that reordering was seen lately to take, at most the long window, which is 4 SRTT and
 * at least UR_REO_LONG_NS. The short one is a quarter of the least round trip, for requests also
 * what SRTT exceeds that by, or that 5/4 if it is longer: nothing is sent again unless something is
 * lost. What was seen of reordering fades after UR_REO_ROUNDS round trips without any. Only the
 * timeout deems a number lost (una, and no other) without anything having arrived.
 *
 * Thread class: the QP's worker. No division, no loop over the window on the path in order; one
 * division a round trip.
 */
#define UR_EXT_WINDOW	  2048	/* numbers in [una, max) at most, unless both ends agree on more */
#define UR_EXT_WINDOW_MAX 65536 /* the most that they agree on; powers of two */

/*
 * EXT-WINDOW-01. Numbers in [una, max) at most with so many packets in flight, a power of two: a number that is lost is
 * acknowledged three round trips after it was sent, one that is lost twice after four and a quarter.
 */
static inline uint32_t ur_ext_window(uint32_t in_flight)
{
	if (in_flight >= UR_EXT_WINDOW_MAX / 4)
		return UR_EXT_WINDOW_MAX;
	return 4 * in_flight > UR_EXT_WINDOW ? 4 * in_flight : UR_EXT_WINDOW;
}

#define UR_TIER_LEAST 16 /* span of the smallest context, of either end */
#define UR_OWN_SPAN   64 /* span of the context that a queue pair has memory of its own for */

#define UR_REO_PLACES	  96 /* numbers that may overtake one before that is suspicious */
#define UR_REO_READS	  4  /* the same of READ requests, many responses apart */
#define UR_REO_LONG_NS	  UINT64_C(1000000) /* least long reordering window */
#define UR_REO_ROUNDS	  16 /* round trips without reordering before it fades by a quarter */
#define UR_PTO_MIN_NS	  UINT64_C(10000) /* least silence before a probe: software peers jitter */
#define UR_PTO_INITIAL_NS UINT64_C(1000000) /* the same before the first round trip is known */

#define UR_RTX_LOSSES 3 /* more than mistaken reordering makes of a gap: packets are being lost */

/* EXT-REQ-TWICE-01. The request for the responses [first, first + cnt) is to leave once more; cnt is 0: none is. */
struct ur_rtx_twice {
	struct ur_psn first;
	uint16_t cnt;
	bool is_new; /* it had not been executed, as far as was known when it left */
};

/*
 * The recovery context of one gap. Number n has bit and element n % span. It tracks the numbers
 * [una, una + span) as far as they were sent; what arrives beyond them is not recorded.
 */
struct ur_rtx {
	uint32_t span; /* a power of two, [UR_TIER_LEAST, most of the pool] */
	uint16_t
		beyond; /* numbers known to have arrived that are not tracked, as of the last news */
	bool refused;	/* memory for the next tier was refused; counted once */
	uint8_t losses;	   /* numbers deemed lost since the context was taken, [0, UR_RTX_LOSSES] */
	struct ur_psn top; /* from here on none is acked */
	struct ur_psn open;	  /* each before it is acked, lost or resent */
	struct ur_psn first_lost; /* none before it is lost */
	struct ur_rtx_twice twice;
	/* Clear beyond what is tracked. */
	uint64_t *acked;  /* arrived */
	uint64_t *lost;	  /* deemed lost, not sent again yet; none is acked */
	uint64_t *resent; /* sent more than once */
	/* Valid for what is tracked. */
	struct ur_stamp *stamp; /* of the last transmission; never older than the true one */
	uint64_t words[];
};

/* Recovery contexts of a worker. The counters only grow. */
struct ur_rtx_pool {
	struct ur_slabs *slabs;
	uint32_t first;	   /* span of the first tier, */
	uint32_t most;	   /* and of the last */
	uint32_t held_cnt; /* contexts that are held */
	struct ur_probe_trains trains;
	/* EXT-SEL-PROBE-05. The longest that peers took lately to answer, residence included, and half as much again; stamps. */
	uint32_t slow;
	uint64_t slow_until_ns; /* then it is forgotten */
	/* Which sequence lost numbers by what arrived; NULL: congestion control knows of it. */
	const struct ur_selective *lost_by;
	uint64_t taken_cnt;	/* contexts taken */
	uint64_t grown_cnt;	/* contexts that moved to a larger tier */
	uint64_t short_cnt;	/* gaps that were refused the tier that they needed */
	uint64_t exhausted_cnt; /* gaps for which no context was left */
	uint64_t lost_cnt;	/* numbers deemed lost */
	uint64_t reordered_cnt; /* arrived after a younger number, sent only once by then */
	uint64_t late_cnt;	/* deemed lost, arrived before they were sent again */
	uint64_t spurious_cnt;	/* sent again in vain: the earlier transmission arrived */
};

/* Takes contexts from `slabs`, which outlives it. `first` and `most` are powers of two, UR_TIER_LEAST <= first <= most. */
void ur_rtx_pool_init(struct ur_rtx_pool *p, struct ur_slabs *slabs, uint32_t first, uint32_t most);
/* Bytes of a context. */
size_t ur_rtx_bytes(uint32_t span);
#define UR_OWN_RTX_BYTES                                                                           \
	UR_SLABS_OWN_BYTES(sizeof(struct ur_rtx) + 3 * UR_OWN_SPAN / 8 +                           \
			   UR_OWN_SPAN * sizeof(struct ur_stamp))

#define UR_SLOW	    UINT32_C(6250)    /* stamps, 100 us: what takes longer is worth noting */
#define UR_SLOW_ACK UINT32_C(1250000) /* stamps, 20 ms: what an ACK counts as at most */

/* A peer took so long to answer, in stamps. */
static inline void ur_rtx_note_answer(struct ur_rtx_pool *p, uint32_t took, uint64_t now_ns)
{
	if (__builtin_expect(took < UR_SLOW, 1))
		return;
	took = took < UR_RTT_MAX / 2 ? took + took / 2 : UR_RTT_MAX;
	if (took > p->slow || now_ns > p->slow_until_ns)
		p->slow = took;
	/* What takes much less does not keep the longest in mind. */
	else if (took < p->slow / 2)
		return;
	p->slow_until_ns = now_ns + ((uint64_t)p->slow << (UR_STAMP_SHIFT + 2));
}

/*
 * The same of an ACK that a peer says it has kept for so long. What one peer claims makes all others wait, so it counts as little
 * more than what thousands of queue pairs cause.
 */
static inline void ur_rtx_note_kept_ack(struct ur_rtx_pool *p, uint32_t kept, uint64_t now_ns)
{
	ur_rtx_note_answer(p, kept < UR_SLOW_ACK ? kept : UR_SLOW_ACK, now_ns);
}

#define UR_TX_TIMES	6
#define UR_TX_TIME_SPAN 1024 /* numbers after which a sample grows no further, */
/*
 * or of those that leave at once. With the few dozen that ur_selective_on_send_too() may add, six do not span 2^15.
 */
#define UR_TX_TIME_BATCH 4096

/*
 * When numbers left that have no stamp of their own, of both sequences of a queue pair. Together the samples span less than 2^15
 * numbers. What leaves while nothing is in flight begins them afresh.
 */
struct ur_tx_times {
	uint8_t youngest; /* samples [0, youngest] count, the oldest first */
	/*
	 * All before nr had left at `stamp`, when those from the sample before on left; the first sample: all in flight
	 * before nr.
	 */
	struct {
		uint16_t nr[2]; /* of either sequence, low bits */
		struct ur_stamp stamp;
	} sample[UR_TX_TIMES];
};

/* una, max, flags, deadline_ns, backoff and rtx are for all to read, the rest is private to selective*.[ch]. */
struct ur_selective {
	/* What numbers in order touch. */
	struct ur_psn una; /* every number before it is acknowledged */
	struct ur_psn max; /* [una, max) sent at least once, max - una <= agreed */
	uint8_t flags;	   /* 0: in order, no context is held and nothing is lost */
	uint8_t seq;	   /* 0 or 1: which of the samples' numbers are its own */
	uint16_t limit;	   /* in flight at most: window, or what the path holds; at most `most` */
	uint16_t plain_flight; /* a flight of so many numbers teaches nothing; 0: any flight may */
	uint8_t quiet; /* round trips since reordering was last seen; UR_REO_ROUNDS: reo_* are 0 */
	uint8_t backoff;      /* timeouts in a row */
	uint64_t deadline_ns; /* when to call expired(); UR_NEVER: nothing is in flight */
	struct ur_stamp
		rack_stamp; /* the newest stamp known to have arrived since una was last max */
	struct ur_stamp probe_stamp; /* of the last probe for silence; before it: nothing to tell */
	struct ur_stamp round_stamp; /* when this round trip began */
	uint32_t delivered;	     /* numbers acknowledged in this round trip */

	struct ur_rtx *rtx; /* NULL: in order, or none was left */
	struct ur_stamp
		again_stamp; /* as rack_stamp, of numbers sent again (responses); older tells nothing */
	struct ur_stamp una_stamp; /* una was sent again then, without a context (UNA_RESENT) */
	uint32_t reo_time;	   /* longest that reordering took lately, in stamps */
	uint16_t reo_places;	   /* most numbers that overtook one lately; 0: no reordering */
	/* Of [una, max), while rtx is held; without it lost_cnt = 1 says that una is lost. */
	uint16_t acked_cnt, lost_cnt;
	uint16_t window; /* in flight at least, before limit stops it */
	uint16_t bdp;	 /* learned, numbers, [0, agreed] */
	uint16_t
		most; /* numbers in [una, max) at most, before more are sent: `agreed`, fewer where memory is short */
	uint16_t agreed; /* and as many as both ends agree on */
};

/* What an extended ACK, NAK or response tells. */
struct ur_ack_info {
	struct ur_psn una;   /* every number before it has arrived */
	const uint8_t *sack; /* bit i: una + 1 + sack_at + i has arrived (wire/ext.h) */
	uint32_t sack_at;    /* nothing is said of what lies between; <= UR_EXT_WINDOW_MAX */
	uint32_t sack_bits;  /* what lies behind them has not arrived, */
	bool more;	     /* or else nothing is said of it */
	struct ur_stamp
		echo; /* stamp of the transmission that caused it; ignored if it is to come */
	bool partial; /* a response: says nothing of numbers beyond una, nor does its echo */
};

enum ur_selective_verdict {
	UR_SELECTIVE_NOTHING,
	UR_SELECTIVE_RESEND, /* something is lost: ur_selective_next_lost() */
	UR_SELECTIVE_PROBE,  /* send a probe: silence, or a gap old enough to ask about */
};

/* What the outstanding numbers are. */
enum ur_selective_kind {
	UR_SELECTIVE_MIXED,	/* requests of any kind */
	UR_SELECTIVE_READS,	/* READ requests, and nothing else */
	UR_SELECTIVE_RESPONSES, /* what was asked for; it waits in a queue of the peer */
};

struct ur_selective_env {
	struct ur_rtx_pool *pool; /* shared by the QPs of a worker; */
	struct ur_rtt *rtt;	  /* these by the two of a QP */
	struct ur_tx_times *tx_times;
	const struct ur_retry *retry; /* bounds the timeout (EXT-SEL-RTO-02); NULL: nothing does */
	enum ur_selective_kind kind;
	bool idle; /* nothing can be sent for the first time, unless something arrives or is posted */
	/* LOSS-OWN-01. UR_OWN_RTX_BYTES for the sequence alone, aligned to 16, which are taken where slabs have none; or NULL. */
	void *own;
};

/*
 * Up to `most` numbers in [una, max), in [UR_EXT_WINDOW, UR_EXT_WINDOW_MAX), no more than the pool's contexts span; window is in
 * [1, most]. seq is 0 or 1, the other sequence that shares `tx_times` has the other.
 */
void ur_selective_init(struct ur_selective *s, struct ur_tx_times *tx_times, unsigned seq,
		       struct ur_psn first, uint16_t window, uint16_t most);
/* LOSS-OWN-02. No more than `span` numbers are tracked: that many are outstanding at most, until a context suffices. */
void ur_selective_narrow(struct ur_selective *s, uint32_t span);
/* Gives the context back; nothing is outstanding any more. */
void ur_selective_stop(struct ur_selective *s, const struct ur_selective_env *env);

static inline uint32_t ur_selective_in_flight(const struct ur_selective *s)
{
	uint32_t sent = (uint32_t)ur_psn_diff(s->max, s->una);

	return __builtin_expect(s->flags != 0, 0) ? sent - s->acked_cnt - s->lost_cnt : sent;
}

/* EXT-SEL-FLIGHT-01. Numbers that may be sent anew now, 0 when the flight or the window is full. */
static inline uint32_t ur_selective_credit(const struct ur_selective *s)
{
	uint32_t sent = (uint32_t)ur_psn_diff(s->max, s->una);

	if (__builtin_expect(s->flags != 0, 0)) {
		uint32_t flight = sent - s->acked_cnt - s->lost_cnt;

		if (flight >= s->limit || sent >= s->most)
			return 0;
		return s->limit - flight < s->most - sent ? s->limit - flight : s->most - sent;
	}
	return sent < s->limit ? s->limit - sent : 0;
}

/*
 * The numbers [max, max + n) were sent for the first time, stamped ur_stamp(now_ns).
 * n is in [1, most - (max - una)], at most UR_TX_TIME_BATCH.
 */
void ur_selective_on_send(struct ur_selective *s, const struct ur_selective_env *env, uint32_t n,
			  uint64_t now_ns);

/* ur_selective_on_send() of one number right after that of another, at the same time, in order. */
static inline void ur_selective_join(struct ur_selective *s, struct ur_tx_times *tx_times)
{
	s->max = ur_psn_add(s->max, 1);
	tx_times->sample[tx_times->youngest].nr[s->seq] = (uint16_t)s->max.v;
}

/* Not in order: notes that number max leaves with `stamp`. False: it takes ur_selective_on_send(). */
bool ur_selective_gap_note(struct ur_selective *s, struct ur_stamp stamp);

/*
 * ur_selective_on_send() of one number that leaves in the same call as the one before it. False: it takes that.
 */
static inline bool ur_selective_on_send_too(struct ur_selective *s, struct ur_tx_times *tx_times,
					    uint64_t now_ns)
{
	struct ur_stamp stamp = ur_stamp(now_ns);

	if (ur_psn_eq(s->una, s->max) ||
	    !ur_stamp_eq(tx_times->sample[tx_times->youngest].stamp, stamp))
		return false;
	if (__builtin_expect(s->flags, 0) && !ur_selective_gap_note(s, stamp))
		return false;
	ur_selective_join(s, tx_times);
	return true;
}

/*
 * ur_selective_on_send() of one number while no other is in flight. `alone`: nor is one of the other sequence of the queue
 * pair, so that no sample is of use any more.
 */
void ur_selective_begin_flight(struct ur_selective *s, const struct ur_rtt *rtt,
			       struct ur_tx_times *tx_times, bool alone, uint64_t now_ns);

/*
 * The same of both sequences of a queue pair at once, while nothing is in flight: a READ request of `n` responses, no more than
 * their limit.
 */
void ur_selective_begin_flights(struct ur_selective *requests, struct ur_selective *responses,
				uint32_t n, const struct ur_rtt *rtt, struct ur_tx_times *tx_times,
				uint64_t now_ns);

/* The lowest number deemed lost and not sent again yet; false when there is none. The context notes how far it looked. */
bool ur_selective_next_lost(const struct ur_selective *s, struct ur_psn *nr);
/* It was sent again, stamped ur_stamp(now_ns); it lies in [una, max). */
void ur_selective_on_resend(struct ur_selective *s, const struct ur_selective_env *env,
			    struct ur_psn nr, uint64_t now_ns);

#define UR_ACK_PAST (1 << 22) /* an ACK whose una lies that far back tells nothing */

/* Whether an ACK may name `una`: it was sent, and not too long ago. */
static inline bool ur_selective_may_ack(const struct ur_selective *s, struct ur_psn una)
{
	return ur_psn_le(una, s->max) && ur_psn_diff(una, s->una) >= -UR_ACK_PAST;
}

/*
 * Takes in an ACK (una may be old or new; if ur_selective_may_ack() does not hold, it is ignored;
 * so are bits beyond max). The round trip should have been sampled before. Returns how many numbers
 * became acknowledged; *una of the struct may have moved, lost numbers may be there to be sent
 * again, the deadline has moved.
 */
uint32_t ur_selective_on_ack(struct ur_selective *s, const struct ur_selective_env *env,
			     const struct ur_ack_info *ack, uint64_t now_ns);

/*
 * All before `una`, of (s->una, max], has arrived in order: flags are 0. As ur_selective_on_ack(); an echo that is no newer than
 * rack_stamp tells nothing.
 */
void ur_selective_in_order(struct ur_selective *s, const struct ur_rtt *rtt,
			   const struct ur_tx_times *tx_times, struct ur_psn una,
			   struct ur_stamp echo, uint64_t now_ns);

/*
 * The same if all in flight has arrived, and the flight was so small that it teaches nothing: what was noted of its times is of
 * no use to the next. False: nothing was done.
 */
static inline bool ur_selective_end_flight(struct ur_selective *s, struct ur_psn una)
{
	uint32_t delivered = s->delivered + (uint32_t)ur_psn_diff(una, s->una);

	if (!ur_psn_eq(una, s->max) || delivered > s->plain_flight)
		return false;
	s->una = una;
	s->deadline_ns = UR_NEVER;
	return true;
}

/*
 * Number `nr` of [una, max) arrived (responses). False when it had arrived before, or when no
 * context tracks it: it will be deemed lost and asked for again. Moves una over what has
 * arrived.
 *
 * The peer sends responses in the order of their numbers, whenever their requests arrived; only
 * those asked for again go first, in the order in which they were asked for. So a number sent once
 * tells of the numbers that left before it, by the time when it was asked for first; one that was
 * sent again tells, by `echo`, of others sent again only.
 */
bool ur_selective_on_response(struct ur_selective *s, const struct ur_selective_env *env,
			      struct ur_psn nr, struct ur_stamp echo, uint64_t now_ns);
/* If `nr` of [una, max) is deemed lost, it is not: what it waits for was just sent (responses). */
void ur_selective_unmark_lost(struct ur_selective *s, const struct ur_selective_env *env,
			      struct ur_psn nr, uint64_t now_ns);
/* Whether `nr` of [una, max) has arrived already. */
bool ur_selective_has(const struct ur_selective *s, struct ur_psn nr);
/* The same of any number before max. */
static inline bool ur_selective_has_arrived(const struct ur_selective *s, struct ur_psn nr)
{
	return ur_psn_lt(nr, s->una) || ur_selective_has(s, nr);
}

/* Everything stamped `echo` or earlier has arrived by now, or is lost or overtaken: a probe came
 * back (responses). */
void ur_selective_on_probe_answer(struct ur_selective *s, const struct ur_selective_env *env,
				  struct ur_stamp echo, uint64_t now_ns);

/* una is deemed lost at once (RNR wait over, a peer without a context). */
void ur_selective_lose_una(struct ur_selective *s, const struct ur_selective_env *env);

/*
 * The deadline may have passed: late and early calls are harmless. PROBE is told once; then RESEND
 * after the timeout, unless an answer arrives.
 */
enum ur_selective_verdict
ur_selective_on_timer(struct ur_selective *s, const struct ur_selective_env *env, uint64_t now_ns);

/*
 * EXT-SEL-PROBE-04. The probe that on_timer() called for leaves only now: its answer takes a round trip from now on. Until
 * then the caller does not call on_timer(): a probe that waits for its turn is no reason to send anything again.
 */
void ur_selective_on_probe_sent(struct ur_selective *s, const struct ur_selective_env *env,
				uint64_t now_ns);

/* The next step is not later than most_ns from now. */
static inline void ur_selective_hasten(struct ur_selective *s, uint64_t most_ns, uint64_t now_ns)
{
	if (s->deadline_ns != UR_NEVER && s->deadline_ns - now_ns > most_ns)
		s->deadline_ns = now_ns + most_ns;
}

/*
 * REPATH-REQ-02. Of a probe that ur_selective_on_timer() has just asked for: it is to take another path, because those before it had
 * the time of two round trips and more to be answered. The probes of a train follow one another sooner than that, so they stay on a path
 * for twice that time. To be called once for each probe: true begins that time anew.
 */
bool ur_selective_asks_again(const struct ur_selective *s, const struct ur_selective_env *env,
			     uint64_t now_ns);

/* No answer can be expected before we send on: a deadline that has passed starts afresh. */
static inline void ur_selective_rearm(struct ur_selective *s, const struct ur_rtt *rtt,
				      uint64_t now_ns)
{
	if (s->deadline_ns <= now_ns)
		s->deadline_ns = now_ns + ur_rtt_rto_ns(rtt, s->backoff);
}

/* Asserts what is stated at the fields. */
void ur_selective_validate(const struct ur_selective *s);

#endif
