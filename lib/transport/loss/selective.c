/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/selective_priv.h"

#include <string.h>

#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/ext.h"

#define SEARCH_EVERY 8 /* responses of the same request */

/* ---- tx_time samples: when numbers left that have no stamp of their own ---- */

/* The next sample begins where the youngest ends; the oldest gives way. */
static void open_sample(struct ur_tx_times *tx_times)
{
	unsigned at = tx_times->youngest;

	if (at + 1 < UR_TX_TIMES) {
		tx_times->sample[at + 1] = tx_times->sample[at];
		tx_times->youngest++;
		return;
	}
	memmove(tx_times->sample, tx_times->sample + 1, at * sizeof(tx_times->sample[0]));
}

/* A sample grows for a quarter of a round trip, so that all of them reach back about one. */
static bool is_over(const struct ur_tx_times *tx_times, const struct ur_rtt *rtt,
		    struct ur_stamp stamp)
{
	unsigned at = tx_times->youngest;

	return !at || ur_stamp_since(stamp, tx_times->sample[at - 1].stamp) > rtt->srtt >> 2;
}

static inline void sample_tx_time(const struct ur_selective *s, const struct ur_rtt *rtt,
				  struct ur_tx_times *tx_times, struct ur_stamp stamp)
{
	unsigned at = tx_times->youngest;
	uint32_t from = at ? tx_times->sample[at - 1].nr[s->seq] : s->una.v;
	uint16_t span = (uint16_t)(s->max.v - from);
	bool same_call = ur_stamp_eq(stamp, tx_times->sample[at].stamp);

	/* What leaves in one call has one stamp; EXT-WINDOW-04: READs in a batch take several samples of it. */
	if (same_call ? span > UR_TX_TIME_BATCH
		      : span > UR_TX_TIME_SPAN || is_over(tx_times, rtt, stamp))
		open_sample(tx_times);
	at = tx_times->youngest;
	tx_times->sample[at].nr[s->seq] = (uint16_t)s->max.v;
	tx_times->sample[at].stamp = stamp;
}

/* The same of the first numbers of a flight: no other sample is of use any more. */
static inline void start_samples(const struct ur_selective *s, struct ur_tx_times *tx_times,
				 struct ur_stamp stamp)
{
	if (tx_times->youngest)
		tx_times->sample[0] = tx_times->sample[tx_times->youngest];
	tx_times->youngest = 0;
	tx_times->sample[0].nr[s->seq] = (uint16_t)s->max.v;
	tx_times->sample[0].stamp = stamp;
}

/* When nr of [una, max) left at the latest, if it was sent once. */
static struct ur_stamp tx_time_of(const struct ur_selective *s, const struct ur_tx_times *tx_times,
				  struct ur_psn nr)
{
	unsigned m = 0;

	while (m < tx_times->youngest && !is_before_sample(tx_times, m, s->seq, nr))
		m++;
	return tx_times->sample[m].stamp;
}

/* When the last of them was sent for the first time. */
struct ur_stamp ur_selective_last_sent(const struct ur_selective *s,
				       const struct ur_tx_times *tx_times)
{
	return tx_time_of(s, tx_times, ur_psn_add(s->max, UR_PSN_MASK));
}

void ur_selective_init(struct ur_selective *s, struct ur_tx_times *tx_times, unsigned seq,
		       struct ur_psn first, uint16_t window, uint16_t most)
{
	UR_ASSERT(window >= 1 && window <= most && most >= UR_EXT_WINDOW);
	*s = (struct ur_selective){
		.una = first,
		.max = first,
		.window = window,
		.most = most,
		.agreed = most,
		.deadline_ns = UR_NEVER,
		.quiet = UR_REO_ROUNDS,
		.seq = (uint8_t)seq,
	};
	ur_selective_set_limit(s);
	tx_times->youngest = 0;
	tx_times->sample[0].nr[seq] = (uint16_t)first.v;
}

/* ---- trains of probes ---- */

void ur_selective_leave_train(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	if (s->flags & TRAIN)
		ur_probe_train_find(&pool->trains, s)->of = NULL;
	s->flags &= (uint8_t)~TRAIN;
}

/* Nothing is outstanding. */
static void go_idle(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	if (s->rtx)
		ur_rtx_give_back(s, pool);
	ur_selective_leave_train(s, pool);
	s->acked_cnt = s->lost_cnt = 0;
	s->flags = 0;
	s->backoff = 0;
	s->deadline_ns = UR_NEVER;
}

void ur_selective_stop(struct ur_selective *s, const struct ur_selective_env *env)
{
	s->una = s->max;
	go_idle(s, env->pool);
}

/* A stamp that is to come is hostile; the unsigned distance from now tells it from the others. */
static inline struct ur_stamp newer(struct ur_stamp echo, struct ur_stamp than, struct ur_stamp now)
{
	return ur_stamp_since(now, echo) < ur_stamp_since(now, than) ? echo : than;
}

static inline void rack(struct ur_selective *s, struct ur_stamp echo, struct ur_stamp now)
{
	s->rack_stamp = newer(echo, s->rack_stamp, now);
}

/* A round trip is over. What was seen of reordering fades. */
static __attribute__((noinline)) void end_round(struct ur_selective *s, const struct ur_rtt *rtt,
						const struct ur_tx_times *tx_times,
						struct ur_stamp now)
{
	uint32_t length = ur_stamp_since(now, s->round_stamp);

	if (rtt->srtt == 0 || length == 0)
		return;
	/* A round is at least the least round trip, so half a window does not raise the limit. */
	if (!s->plain_flight || s->delivered > s->plain_flight)
		ur_selective_measure_bdp(s, rtt, length);
	s->round_stamp = now;
	s->delivered = 0;
	/*
	 * Responses in order leave it alone else; a context knows times that samples have forgotten, and the first of
	 * the next flight sets it.
	 */
	if (!(s->flags & HELD) && !ur_psn_eq(s->una, s->max))
		rack(s, tx_time_of(s, tx_times, ur_psn_add(s->una, UR_PSN_MASK)), now);
	if (s->plain_flight || s->quiet == UR_REO_ROUNDS || ++s->quiet < UR_REO_ROUNDS)
		return;
	s->reo_places -= (s->reo_places + 3) >> 2;
	s->reo_time -= (s->reo_time + 3) >> 2;
	if (s->reo_places || s->reo_time)
		s->quiet = 0;
	ur_selective_set_limit(s);
}

static inline void delivered(struct ur_selective *s, const struct ur_rtt *rtt,
			     const struct ur_tx_times *tx_times, uint32_t n, struct ur_stamp now)
{
	s->delivered += n;
	if (ur_stamp_since(now, s->round_stamp) >= rtt->srtt)
		end_round(s, rtt, tx_times, now);
}

/* ---- what is lost (the rules are in the header) ---- */

/* Without a context only una is looked at; `later` numbers beyond it are known to have arrived. */
static void lose_first(struct ur_selective *s, const struct ur_selective_env *env,
		       const struct reo_window *p, uint32_t later)
{
	bool resent = s->flags & UNA_RESENT;

	if (s->lost_cnt ||
	    !is_lost(s, p, resent ? s->una_stamp : tx_time_of(s, env->tx_times, s->una), later,
		     resent))
		return;
	/* With arrivals beyond it a context was asked for in vain already. EXT-SEL-POOL-01 */
	if (later || !ur_rtx_hold(s, env))
		ur_rtx_lose_una(s, env->pool);
}

/* ---- when to wake up ---- */

static inline void expect_answer(struct ur_selective *s, const struct ur_rtt *rtt, uint64_t now_ns)
{
	if (!(s->flags & PROBED))
		s->deadline_ns = now_ns + probe_timeout_ns(s, rtt);
}

/*
 * EXT-SEL-TAIL-01. The gap is in the tail of what there is to send: everything in flight together is too little to
 * show that its oldest number is lost. Only a probe will.
 */
static bool is_in_tail(const struct ur_selective *s, const struct ur_selective_env *env,
		       const struct reo_window *p, const struct oldest *o)
{
	return env->idle && o->later >= s->reo_places &&
	       o->later + ur_selective_in_flight(s) <= p->places;
}

/* The oldest number tells when a probe would be of use, sooner or later than after silence. */
static void ask_about(struct ur_selective *s, const struct ur_selective_env *env,
		      const struct reo_window *p, const struct oldest *o, uint64_t now_ns)
{
	struct ur_stamp due = ur_stamp_add(o->stamp, p->window);
	bool in_tail = is_in_tail(s, env, p, o);
	uint64_t at;

	s->flags &= (uint8_t)~ASKING;
	if (in_tail || o->later >= p->places) {
		/* Only its age is missing; what will show that may be on its way. */
		if ((!in_tail && ur_stamp_le(due, ur_selective_last_sent(s, env->tx_times))) ||
		    ur_stamp_le(due, s->probe_stamp))
			return;
		at = time_of(due, now_ns);
		if (at < s->deadline_ns) {
			s->deadline_ns = at;
			s->flags |= ASKING;
		}
	} else if (o->later < s->reo_places) {
		at = time_of(ur_stamp_add(o->stamp, p->longest), now_ns);
		if (at > s->deadline_ns)
			s->deadline_ns = at;
	}
}

/* ---- what has arrived ---- */

static inline void reset_probes(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	ur_selective_leave_train(s, pool);
	s->flags &= (uint8_t) ~(PROBED | ASKING);
	s->backoff = 0;
}

/* Without a context `cnt` numbers from una on arrived. */
static void first_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			  struct arrival *a, uint32_t cnt)
{
	env->pool->late_cnt += s->lost_cnt;
	if (!s->lost_cnt && (s->flags & UNA_RESENT) && ur_rtx_in_vain(env->rtt, a, s->una_stamp))
		env->pool->spurious_cnt++;
	s->lost_cnt = 0;
	s->flags &= (uint8_t) ~(UNA_LOST | UNA_RESENT);
	s->una = ur_psn_add(s->una, cnt);
	a->new_cnt += cnt;
}

/* Moves una over what has arrived. True: nothing is outstanding any more. */
static bool advance(struct ur_selective *s, const struct ur_selective_env *env)
{
	if (s->rtx)
		ur_rtx_advance(s, env);
	if (!ur_psn_eq(s->una, s->max))
		return false;
	go_idle(s, env->pool);
	return true;
}

/*
 * After anything but arrival in order: what is lost now, is the gap closed, and, if the peer was
 * heard of, when to wake up. Without a context, `later` numbers beyond una are known to have
 * arrived.
 */
static void detect_losses(struct ur_selective *s, const struct ur_selective_env *env,
			  struct told told, uint32_t later, enum heard heard, uint64_t now_ns)
{
	uint64_t lost_cnt = env->pool->lost_cnt;
	struct oldest oldest = {0};
	struct reo_window p;

	if (advance(s, env))
		return;
	p = ur_rtx_reo_window(s, env);
	if (!s->rtx)
		lose_first(s, env, &p, later);
	if (s->rtx) {
		oldest = ur_rtx_lose(s, env->pool, &p, told, heard);
		if (ur_rtx_gap_closed(s))
			ur_rtx_give_back(s, env->pool);
	}
	if (env->pool->lost_cnt != lost_cnt) {
		env->pool->lost_by = s;
		ur_probe_train_note_loss(&env->pool->trains, now_ns);
	}
	if (heard == HEARD_NOTHING)
		return;
	expect_answer(s, env->rtt, now_ns);
	if (oldest.is && !(s->flags & PROBED))
		ask_about(s, env, &p, &oldest, now_ns);
}

/* `cnt` numbers from una on arrived in order. */
static inline void in_order(struct ur_selective *s, const struct ur_rtt *rtt,
			    const struct ur_tx_times *tx_times, uint32_t cnt, uint64_t now_ns)
{
	s->una = ur_psn_add(s->una, cnt);
	s->deadline_ns = ur_psn_eq(s->una, s->max) ? UR_NEVER : now_ns + silence_ns(rtt);
	delivered(s, rtt, tx_times, cnt, ur_stamp(now_ns));
}

void ur_selective_in_order(struct ur_selective *s, const struct ur_rtt *rtt,
			   const struct ur_tx_times *tx_times, struct ur_psn una,
			   struct ur_stamp echo, uint64_t now_ns)
{
	rack(s, echo, ur_stamp(now_ns));
	in_order(s, rtt, tx_times, (uint32_t)ur_psn_diff(una, s->una), now_ns);
}

static inline bool is_in_order(const struct ur_selective *s)
{
	return !s->flags;
}

/* All of them; of responses this end knows which have arrived. */
static struct told all(const struct ur_selective *s)
{
	return (struct told){.from = s->una, .cnt = outstanding(s)};
}

/* An answer without a bitmap adds nothing to what a whole one has said, and nothing is known where the last was a part. */
static struct told told_by(const struct ur_selective *s, const struct ur_ack_info *ack)
{
	struct ur_psn first = ur_psn_add(ack->una, 1 + ack->sack_at), end;

	if (ack->partial && outstanding(s) > UR_SACK_BITS)
		return (struct told){.from = s->una};
	if (!ack->sack_at)
		first = s->una;
	if (!ack->more)
		return (struct told){.from = first, .cnt = UR_EXT_WINDOW_MAX};
	end = ur_psn_add(ack->una, 1 + ack->sack_at + ack->sack_bits);
	return (struct told){.from = first, .cnt = (uint32_t)ur_psn_diff(end, first)};
}

static __attribute__((noinline)) uint32_t out_of_order(struct ur_selective *s,
						       const struct ur_selective_env *env,
						       const struct ur_ack_info *ack,
						       uint32_t ahead, uint64_t now_ns)
{
	struct arrival a = {
		.now = ur_stamp(now_ns),
		.newest = s->rack_stamp,
		.echo = ack->echo,
		.partial = ack->partial,
		.in_parts = ack->more || ack->sack_at,
	};
	struct sack_part part;
	uint32_t later;
	bool is_heard;

	if (!ack->partial)
		rack(s, a.echo, a.now);
	if (!s->rtx && ahead) {
		first_arrived(s, env, &a, ahead);
		ahead = 0;
	}
	part = ur_rtx_sack_part(s, ack);
	later = ur_rtx_sack_count(ack->sack, part);
	if (s->rtx || (later && ur_rtx_hold(s, env)))
		ur_rtx_arrived(s, env, &a, ahead, ack->sack, part);
	/* EXT-SEL-REPEAT-01 */
	is_heard = a.new_cnt || !ur_stamp_eq(s->rack_stamp, a.newest);
	if (is_heard)
		reset_probes(s, env->pool);
	detect_losses(s, env, told_by(s, ack), later, is_heard ? HEARD_TIME : HEARD_NOTHING,
		      now_ns);
	delivered(s, env->rtt, env->tx_times, a.new_cnt, a.now);
	return a.new_cnt;
}

uint32_t ur_selective_on_ack(struct ur_selective *s, const struct ur_selective_env *env,
			     const struct ur_ack_info *ack, uint64_t now_ns)
{
	int32_t ahead = ur_psn_diff(ack->una, s->una);
	uint32_t sent = outstanding(s);

	if (__builtin_expect((uint32_t)ahead - 1 < sent && ack->sack_bits == 0 && is_in_order(s),
			     1)) {
		rack(s, ack->echo, ur_stamp(now_ns));
		in_order(s, env->rtt, env->tx_times, (uint32_t)ahead, now_ns);
		return (uint32_t)ahead;
	}
	if (ahead > (int32_t)sent || ahead < -UR_ACK_PAST || sent == 0)
		return 0;
	return out_of_order(s, env, ack, ahead > 0 ? (uint32_t)ahead : 0, now_ns);
}

bool ur_selective_has(const struct ur_selective *s, struct ur_psn nr)
{
	return (s->flags & HELD) && is_tracked(s, nr) && bit_of(s->rtx, s->rtx->acked, nr);
}

/* EXT-SEL-AGAIN-01 */
static void rack_response(struct ur_selective *s, const struct ur_tx_times *tx_times,
			  struct ur_psn nr, struct ur_stamp echo, struct ur_stamp now)
{
	const struct ur_rtx *rtx = s->rtx && is_tracked(s, nr) ? s->rtx : NULL;
	bool resent = rtx ? bit_of(rtx, rtx->resent, nr)
			  : (s->flags & UNA_RESENT) && ur_psn_eq(nr, s->una);
	struct ur_stamp stamp = rtx	 ? rtx->stamp[index_of(rtx, nr)]
				: resent ? s->una_stamp
					 : tx_time_of(s, tx_times, nr);

	if (!resent)
		rack(s, stamp, now);
	else if (ur_stamp_le(stamp, echo))
		s->again_stamp = newer(echo, s->again_stamp, now);
}

/*
 * EXT-SEL-SEARCH-01. Responses of one request share its stamp: with one more of them only the
 * number of those beyond a hole has grown, by one. Looked at now and then, and when no more are to
 * come.
 */
static bool is_searched_at(const struct ur_selective *s, struct ur_psn nr)
{
	return nr.v % SEARCH_EVERY == 0 || ur_psn_eq(ur_psn_add(nr, 1), s->max);
}

static __attribute__((noinline)) bool arrived_early(struct ur_selective *s,
						    const struct ur_selective_env *env,
						    struct ur_psn nr, struct ur_stamp echo,
						    uint64_t now_ns)
{
	struct arrival a = {.now = ur_stamp(now_ns), .newest = s->rack_stamp, .echo = echo};
	uint32_t ahead = (uint32_t)ur_psn_diff(nr, s->una);
	struct ur_stamp again = s->again_stamp;
	bool held = s->rtx;
	enum heard heard;

	reset_probes(s, env->pool);
	rack_response(s, env->tx_times, nr, echo, a.now);
	if (!s->rtx && ahead == 0) {
		first_arrived(s, env, &a, 1);
	} else if (ur_rtx_hold(s, env)) {
		if (is_tracked(s, nr))
			ur_rtx_one_arrived(s, env, &a, nr);
		else if (s->rtx->beyond < s->agreed)
			s->rtx->beyond++;
	}
	heard = held && ur_stamp_eq(s->rack_stamp, a.newest) && ur_stamp_eq(s->again_stamp, again)
			? HEARD_NUMBER
			: HEARD_TIME;
	if (heard == HEARD_NUMBER && !is_searched_at(s, nr) && !advance(s, env) && s->acked_cnt)
		expect_answer(s, env->rtt, now_ns);
	else
		detect_losses(s, env, all(s), ahead, heard, now_ns);
	delivered(s, env->rtt, env->tx_times, a.new_cnt, a.now);
	return a.new_cnt;
}

bool ur_selective_on_response(struct ur_selective *s, const struct ur_selective_env *env,
			      struct ur_psn nr, struct ur_stamp echo, uint64_t now_ns)
{
	UR_ASSERT(ur_psn_in(nr, s->una, s->max));
	if (__builtin_expect(ur_psn_eq(nr, s->una) && is_in_order(s), 1)) {
		in_order(s, env->rtt, env->tx_times, 1, now_ns);
		return true;
	}
	return arrived_early(s, env, nr, echo, now_ns);
}

void ur_selective_on_probe_answer(struct ur_selective *s, const struct ur_selective_env *env,
				  struct ur_stamp echo, uint64_t now_ns)
{
	struct ur_stamp now = ur_stamp(now_ns);

	if (ur_psn_eq(s->una, s->max) || ur_stamp_lt(now, echo))
		return;
	reset_probes(s, env->pool);
	rack(s, echo, now);
	/* Whichever sequence asked for the probe: this one was waited for as well. */
	if (ur_stamp_lt(s->probe_stamp, echo))
		s->probe_stamp = echo;
	detect_losses(s, env, all(s), 0, HEARD_TIME, now_ns);
}

/* ---- what was sent ---- */

/* The first of a flight leaves. */
static inline void depart(struct ur_selective *s, const struct ur_rtt *rtt, uint64_t now_ns)
{
	/* Stamps of long ago could seem to be of the future. */
	s->rack_stamp = s->probe_stamp = s->round_stamp = ur_stamp(now_ns);
	s->delivered = 0;
	s->deadline_ns = now_ns + silence_ns(rtt);
}

static __attribute__((noinline)) void note_stamps(struct ur_selective *s,
						  const struct ur_selective_env *env, uint32_t n,
						  struct ur_stamp stamp)
{
	uint32_t sent = outstanding(s);

	ur_rtx_grow(s, env, sent + n);
	for (uint32_t i = 0; i < n && sent + i < s->rtx->span; i++)
		s->rtx->stamp[index_of(s->rtx, ur_psn_add(s->max, i))] = stamp;
}

bool ur_selective_gap_note(struct ur_selective *s, struct ur_stamp stamp)
{
	s->flags &= (uint8_t)~ASKING;
	if (!(s->flags & HELD))
		return true;
	if (outstanding(s) >= s->rtx->span)
		return false;
	s->rtx->stamp[index_of(s->rtx, s->max)] = stamp;
	return true;
}

void ur_selective_on_send(struct ur_selective *s, const struct ur_selective_env *env, uint32_t n,
			  uint64_t now_ns)
{
	struct ur_stamp stamp = ur_stamp(now_ns);

	UR_ASSERT(n >= 1 && n <= UR_TX_TIME_BATCH);
	/* While the deadline runs it need not be moved: the samples tell when something was sent. */
	if (ur_psn_eq(s->una, s->max))
		depart(s, env->rtt, now_ns);
	if (__builtin_expect(s->flags, 0)) {
		UR_ASSERT(outstanding(s) + n <= s->agreed);
		s->flags &= (uint8_t)~ASKING;
		if (s->flags & HELD)
			note_stamps(s, env, n, stamp);
	}
	s->max = ur_psn_add(s->max, n);
	sample_tx_time(s, env->rtt, env->tx_times, stamp);
}

void ur_selective_begin_flight(struct ur_selective *s, const struct ur_rtt *rtt,
			       struct ur_tx_times *tx_times, bool alone, uint64_t now_ns)
{
	UR_ASSERT(ur_psn_eq(s->una, s->max));
	depart(s, rtt, now_ns);
	s->max = ur_psn_add(s->max, 1);
	if (alone)
		start_samples(s, tx_times, ur_stamp(now_ns));
	else
		sample_tx_time(s, rtt, tx_times, ur_stamp(now_ns));
}

void ur_selective_begin_flights(struct ur_selective *requests, struct ur_selective *responses,
				uint32_t n, const struct ur_rtt *rtt, struct ur_tx_times *tx_times,
				uint64_t now_ns)
{
	struct ur_stamp stamp = ur_stamp(now_ns);

	UR_ASSERT(n >= 1 && n <= UR_TX_TIME_BATCH && n <= responses->limit);
	UR_ASSERT(ur_psn_eq(requests->una, requests->max) &&
		  ur_psn_eq(responses->una, responses->max));
	requests->max = ur_psn_add(requests->max, 1);
	tx_times->sample[0].nr[requests->seq] = (uint16_t)requests->max.v;
	responses->max = ur_psn_add(responses->max, n);
	tx_times->sample[0].nr[responses->seq] = (uint16_t)responses->max.v;
	tx_times->sample[0].stamp = stamp;
	tx_times->youngest = 0;
	depart(requests, rtt, now_ns);
	responses->rack_stamp = responses->probe_stamp = responses->round_stamp = stamp;
	responses->delivered = 0;
	responses->deadline_ns = requests->deadline_ns;
}

bool ur_selective_next_lost(const struct ur_selective *s, struct ur_psn *nr)
{
	struct ur_rtx *rtx = s->rtx;
	struct ur_psn at;

	if (s->lost_cnt == 0)
		return false;
	*nr = s->una;
	if (!rtx)
		return true;
	at = ur_psn_lt(rtx->first_lost, s->una) ? s->una : rtx->first_lost;
	for (;;) {
		struct run run = run_of(rtx, at, 64);
		uint64_t lost = rtx->lost[run.word] & run.mask;

		UR_ASSERT(ur_psn_lt(at, s->max));
		if (lost) {
			*nr = rtx->first_lost =
				ur_psn_add(at, (unsigned)__builtin_ctzll(lost) - run.off);
			return true;
		}
		at = ur_psn_add(at, run.cnt);
	}
}

void ur_selective_on_resend(struct ur_selective *s, const struct ur_selective_env *env,
			    struct ur_psn nr, uint64_t now_ns)
{
	struct ur_rtx *rtx = s->rtx;

	UR_ASSERT(ur_psn_in(nr, s->una, s->max));
	if (!rtx) {
		UR_ASSERT(ur_psn_eq(nr, s->una));
		s->lost_cnt = 0;
		s->flags &= (uint8_t)~UNA_LOST;
		s->flags |= UNA_RESENT;
		s->una_stamp = ur_stamp(now_ns);
		s->again_stamp = s->rack_stamp;
	} else if (is_tracked(s, nr)) {
		unsigned word = index_of(rtx, nr) >> 6;
		uint64_t bit = mask_of(rtx, nr);

		if (rtx->lost[word] & bit) {
			rtx->lost[word] &= ~bit;
			s->lost_cnt--;
		}
		rtx->resent[word] |= bit;
		rtx->stamp[index_of(rtx, nr)] = ur_stamp(now_ns);
	}
	expect_answer(s, env->rtt, now_ns);
}

void ur_selective_unmark_lost(struct ur_selective *s, const struct ur_selective_env *env,
			      struct ur_psn nr, uint64_t now_ns)
{
	UR_ASSERT(ur_psn_in(nr, s->una, s->max));
	if (!s->rtx) {
		if (!ur_psn_eq(nr, s->una))
			return;
		s->lost_cnt = 0;
		s->flags &= (uint8_t)~UNA_LOST;
	} else if (is_tracked(s, nr) && bit_of(s->rtx, s->rtx->lost, nr)) {
		s->rtx->lost[index_of(s->rtx, nr) >> 6] &= ~mask_of(s->rtx, nr);
		s->lost_cnt--;
		if (ur_psn_lt(nr, s->rtx->open))
			s->rtx->open = nr;
		if (ur_rtx_gap_closed(s))
			ur_rtx_give_back(s, env->pool);
	} else {
		return;
	}
	expect_answer(s, env->rtt, now_ns);
}
