/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "transport/loss/selective_priv.h"
#include "transport/loss/tier.h"
#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/ext.h"

#define REO_LONG    ((uint32_t)(UR_REO_LONG_NS >> UR_STAMP_SHIFT))
#define INITIAL_RTT ((uint32_t)(UR_PTO_INITIAL_NS >> UR_STAMP_SHIFT))

/* ---- the pool ---- */

size_t ur_rtx_bytes(uint32_t span)
{
	return sizeof(struct ur_rtx) + 3 * sizeof(uint64_t) * ((span + 63) / 64) +
	       span * sizeof(struct ur_stamp);
}

void ur_rtx_pool_init(struct ur_rtx_pool *p, struct ur_slabs *slabs, uint32_t first, uint32_t most)
{
	*p = (struct ur_rtx_pool){.slabs = slabs, .first = first, .most = most};
}

static struct ur_rtx *lay_out(struct ur_rtx *rtx, uint32_t span)
{
	unsigned words = (span + 63) / 64;

	memset(rtx, 0, sizeof(*rtx) + 3 * words * sizeof(uint64_t));
	rtx->span = span;
	rtx->acked = rtx->words;
	rtx->lost = rtx->acked + words;
	rtx->resent = rtx->lost + words;
	rtx->stamp = (struct ur_stamp *)(rtx->resent + words);
	return rtx;
}

/* LOSS-TIER-04. A context of the tier `span`, or of the largest below it, down to `least`, for which there is memory. */
static struct ur_rtx *take(struct ur_rtx_pool *pool, uint32_t span, uint32_t least)
{
	for (; span >= least; span = ur_tier_below(span)) {
		struct ur_rtx *rtx =
			ur_tier_take(pool->slabs, ur_rtx_bytes(span), span > pool->first);

		if (rtx)
			return lay_out(rtx, span);
	}
	return NULL;
}

/*
 * LOSS-OWN-01, LOSS-OWN-02. The first one of a gap: where memory is short, of its own if that tracks more than what slabs
 * have left. *is_short: no more are to be sent than it tracks.
 */
static struct ur_rtx *take_first(const struct ur_selective_env *env, uint32_t span, bool *is_short)
{
	struct ur_rtx_pool *pool = env->pool;
	bool wide = env->own && span > UR_OWN_SPAN;
	struct ur_rtx *rtx = take(pool, span, wide ? 2 * UR_OWN_SPAN : UR_TIER_LEAST);

	*is_short = !rtx || rtx->span < span;
	if (rtx || !env->own)
		return rtx;
	UR_ASSERT(ur_rtx_bytes(UR_OWN_SPAN) + UR_SLABS_HEADER <= UR_OWN_RTX_BYTES);
	return lay_out(ur_slabs_own(env->own), UR_OWN_SPAN);
}

/* ---- life of a context ---- */

/* The numbers [nr, to), none before una, were sent once. */
static void fill_stamps(const struct ur_selective *s, const struct ur_tx_times *tx_times,
			struct ur_psn nr, struct ur_psn to)
{
	struct ur_rtx *rtx = s->rtx;

	for (unsigned m = 0; m <= tx_times->youngest && !ur_psn_eq(nr, to); m++) {
		for (; !ur_psn_eq(nr, to) && is_before_sample(tx_times, m, s->seq, nr);
		     nr = ur_psn_add(nr, 1)) {
			rtx->stamp[index_of(rtx, nr)] = tx_times->sample[m].stamp;
		}
	}
	UR_ASSERT(ur_psn_eq(nr, to));
}

static struct ur_psn tracked_end(const struct ur_selective *s)
{
	return ur_psn_add(s->una, tracked(s));
}

static void copy_bit(struct ur_rtx *to, uint64_t *map, const struct ur_rtx *from,
		     const uint64_t *old, struct ur_psn nr)
{
	if (bit_of(from, old, nr))
		map[index_of(to, nr) >> 6] |= mask_of(to, nr);
}

/* LOSS-TIER-02: what the small context tracks moves to the large one. */
static void move(struct ur_selective *s, const struct ur_selective_env *env, struct ur_rtx *to)
{
	struct ur_rtx *from = s->rtx;
	struct ur_psn end = tracked_end(s), nr;

	for (nr = s->una; !ur_psn_eq(nr, end); nr = ur_psn_add(nr, 1)) {
		copy_bit(to, to->acked, from, from->acked, nr);
		copy_bit(to, to->lost, from, from->lost, nr);
		copy_bit(to, to->resent, from, from->resent, nr);
		to->stamp[index_of(to, nr)] = from->stamp[index_of(from, nr)];
	}
	s->rtx = to;
	to->beyond = 0;
	to->losses = from->losses;
	to->top = from->top;
	to->open = from->open;
	to->first_lost = from->first_lost;
	fill_stamps(s, env->tx_times, end, tracked_end(s));
	ur_slabs_give(env->pool->slabs, from);
}

void ur_rtx_grow(struct ur_selective *s, const struct ur_selective_env *env, uint32_t cnt)
{
	struct ur_rtx_pool *pool = env->pool;
	struct ur_rtx *rtx;
	uint32_t span;

	if (cnt <= s->rtx->span)
		return;
	span = ur_tier_of(cnt, s->rtx->span, pool->most);
	rtx = take(pool, span, ur_tier_above(s->rtx->span, pool->most));
	if (rtx) {
		move(s, env, rtx);
		pool->grown_cnt++;
	}
	if (s->rtx->span < span) {
		pool->short_cnt += !s->rtx->refused;
		s->rtx->refused = true;
		ur_selective_narrow(s, s->rtx->span);
	}
}

/* EXT-SEL-CTX-01, LOSS-TIER-01: the first gap takes a context, if there is one. */
bool ur_rtx_hold(struct ur_selective *s, const struct ur_selective_env *env)
{
	struct ur_rtx_pool *pool = env->pool;
	uint32_t span = ur_tier_of(outstanding(s), pool->first, pool->most);
	struct ur_rtx *rtx;
	bool is_short;

	if (s->rtx) {
		ur_rtx_grow(s, env, outstanding(s));
		return true;
	}
	rtx = take_first(env, span, &is_short);
	if (!rtx) {
		pool->exhausted_cnt++;
		return false;
	}
	rtx->refused = rtx->span < span;
	pool->short_cnt += rtx->refused;
	ur_selective_narrow(s, is_short ? rtx->span : s->agreed);
	pool->taken_cnt++;
	pool->held_cnt++;
	s->rtx = rtx;
	rtx->top = rtx->open = rtx->first_lost = s->una;
	fill_stamps(s, env->tx_times, s->una, tracked_end(s));
	s->again_stamp = s->rack_stamp;
	if (s->lost_cnt)
		rtx->lost[index_of(rtx, s->una) >> 6] |= mask_of(rtx, s->una);
	if (s->flags & UNA_RESENT) {
		rtx->resent[index_of(rtx, s->una) >> 6] |= mask_of(rtx, s->una);
		rtx->stamp[index_of(rtx, s->una)] = s->una_stamp;
	}
	s->flags &= (uint8_t) ~(UNA_LOST | UNA_RESENT);
	s->flags |= HELD;
	return true;
}

void ur_rtx_give_back(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	ur_slabs_give(pool->slabs, s->rtx);
	pool->held_cnt--;
	s->rtx = NULL;
	s->flags &= (uint8_t)~HELD;
}

bool ur_rtx_gap_closed(const struct ur_selective *s)
{
	if (s->acked_cnt || s->lost_cnt)
		return false;
	for (unsigned w = 0; w < words_of(s->rtx); w++)
		if (s->rtx->resent[w])
			return false;
	return true;
}

/* ---- what is lost ---- */

/* EXT-SEL-READS-01, EXT-SEL-REO-02 */
struct reo_window ur_rtx_reo_window(const struct ur_selective *s,
				    const struct ur_selective_env *env)
{
	uint32_t srtt = env->rtt->srtt ? env->rtt->srtt : INITIAL_RTT;
	uint32_t least = env->kind == UR_SELECTIVE_MIXED ? srtt : srtt / 2;
	uint32_t least_places = env->kind == UR_SELECTIVE_READS ? UR_REO_READS : UR_REO_PLACES;
	uint32_t seen = s->reo_time + (s->reo_time >> 2);
	uint32_t places = s->reo_places + (s->reo_places >> 1);
	uint32_t path = env->rtt->min < srtt ? env->rtt->min : srtt, again;
	struct reo_window p;

	p.longest = 4 * srtt > REO_LONG ? 4 * srtt : REO_LONG;
	seen = seen < p.longest ? seen : p.longest;
	p.window = seen > least ? seen : least;
	/* Requests that meet a queue are given what it adds: lost again, they are lost to congestion. */
	again = path / 4 + (env->kind == UR_SELECTIVE_RESPONSES ? 0 : srtt - path);
	p.again = seen > again ? seen : again;
	p.places = places > least_places ? places : least_places;
	return p;
}

static void lose(struct ur_selective *s, struct ur_rtx_pool *pool, const struct run *run,
		 uint64_t bit)
{
	struct ur_psn nr = ur_psn_add(run->first, (unsigned)__builtin_ctzll(bit) - run->off);

	s->rtx->lost[run->word] |= bit;
	if (!s->lost_cnt || ur_psn_lt(nr, s->rtx->first_lost))
		s->rtx->first_lost = nr;
	s->rtx->losses += s->rtx->losses < UR_RTX_LOSSES;
	s->lost_cnt++;
	pool->lost_cnt++;
}

void ur_rtx_lose_una(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	if (!s->rtx) {
		pool->lost_cnt += !s->lost_cnt;
		s->lost_cnt = 1;
		s->flags |= UNA_LOST;
	} else if (!bit_of(s->rtx, s->rtx->lost, s->una)) {
		struct run run = run_of(s->rtx, s->una, 1);

		lose(s, pool, &run, run.mask);
	}
}

/* Of the numbers [at, at + cnt), at not before una, how many are tracked and acknowledged. */
static uint32_t acked_among(const struct ur_selective *s, struct ur_psn at, uint32_t cnt)
{
	uint32_t left = tracked(s) - (uint32_t)ur_psn_diff(at, s->una), acked = 0;

	for (left = left < cnt ? left : cnt; left;) {
		struct run run = run_of(s->rtx, at, left);

		acked += ur_popcount(s->rtx->acked[run.word] & run.mask);
		at = ur_psn_add(at, run.cnt);
		left -= run.cnt;
	}
	return acked;
}

/* How many from nr on, not before una, are. */
static uint32_t acked_from(const struct ur_selective *s, struct ur_psn nr)
{
	return ur_psn_lt(nr, s->rtx->top)
		       ? acked_among(s, nr, (uint32_t)ur_psn_diff(s->rtx->top, nr))
		       : 0;
}

/*
 * Numbers sent once: the stamps grow with the numbers and the arrivals beyond them become fewer, so
 * the first that is not lost ends the search.
 */
static struct oldest lose_sent_once(struct ur_selective *s, struct ur_rtx_pool *pool,
				    const struct reo_window *p, struct told told)
{
	struct ur_rtx *rtx = s->rtx;
	struct ur_psn nr = told.from, end = ur_psn_add(nr, told.cnt);
	bool first = ur_psn_eq(nr, s->una), from_open;
	uint32_t later;

	if (ur_psn_lt(rtx->open, s->una))
		rtx->open = s->una;
	from_open = ur_psn_le(nr, rtx->open);
	if (from_open)
		nr = rtx->open;
	later = acked_from(s, nr) + rtx->beyond;
	while (ur_psn_lt(nr, end)) {
		struct run run = run_of(rtx, nr, (uint32_t)ur_psn_diff(end, nr));
		uint64_t acked = rtx->acked[run.word] & run.mask;
		uint64_t open = run.mask & ~(acked | rtx->lost[run.word] | rtx->resent[run.word]);

		for (; open; open &= open - 1) {
			uint64_t bit = open & -open;
			struct ur_stamp stamp =
				rtx->stamp[run.word << 6 | (unsigned)__builtin_ctzll(open)];
			uint32_t beyond = later - ur_popcount(acked & (bit - 1));

			if (!is_lost(s, p, stamp, beyond, false))
				return (struct oldest){first, stamp, beyond};
			lose(s, pool, &run, bit);
		}
		later -= ur_popcount(acked);
		nr = ur_psn_add(nr, run.cnt);
		if (from_open)
			rtx->open = nr;
	}
	return (struct oldest){0};
}

/* Retransmissions that were lost as well. */
static void lose_resent(struct ur_selective *s, struct ur_rtx_pool *pool,
			const struct reo_window *p, struct told told)
{
	struct ur_rtx *rtx = s->rtx;

	while (told.cnt) {
		struct run run = run_of(rtx, told.from, told.cnt);
		unsigned w = run.word;
		uint64_t open = rtx->resent[w] & ~(rtx->acked[w] | rtx->lost[w]) & run.mask;

		for (; open; open &= open - 1)
			if (is_lost(s, p, rtx->stamp[w << 6 | (unsigned)__builtin_ctzll(open)], 0,
				    true))
				lose(s, pool, &run, open & -open);
		told.from = ur_psn_add(told.from, run.cnt);
		told.cnt -= run.cnt;
	}
}

/* What of it lies in [una, una + tracked). */
static struct told clip(const struct ur_selective *s, struct told told)
{
	struct ur_psn to = ur_psn_add(told.from, told.cnt), end = tracked_end(s);

	if (ur_psn_lt(told.from, s->una))
		told.from = s->una;
	if (ur_psn_lt(end, to))
		to = end;
	told.cnt = ur_psn_lt(told.from, to) ? (uint32_t)ur_psn_diff(to, told.from) : 0;
	if (!told.cnt)
		told.from = s->una;
	return told;
}

struct oldest ur_rtx_lose(struct ur_selective *s, struct ur_rtx_pool *pool,
			  const struct reo_window *p, struct told told, enum heard heard)
{
	struct oldest oldest;

	told = clip(s, told);
	oldest = lose_sent_once(s, pool, p, told);
	if (heard != HEARD_NUMBER)
		lose_resent(s, pool, p, told);
	return oldest;
}

/* ---- what has arrived ---- */

/* It overtook nothing, but was overtaken by `places` numbers for `time` stamps. */
static void learn_reordering(struct ur_selective *s, uint32_t places, int32_t time)
{
	if (places > s->reo_places)
		s->reo_places = (uint16_t)places;
	if (time > 0 && (uint32_t)time > s->reo_time)
		s->reo_time = (uint32_t)time < UR_RTT_MAX ? (uint32_t)time : UR_RTT_MAX;
	s->quiet = 0;
	s->plain_flight = 0;
}

bool ur_rtx_in_vain(const struct ur_rtt *rtt, const struct arrival *a, struct ur_stamp stamp)
{
	if (rtt->srtt && ur_stamp_since(a->now, stamp) < rtt->min)
		return true;
	return !a->partial && ur_stamp_lt(a->echo, stamp);
}

static void number_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			   const struct arrival *a, unsigned word, uint64_t bit, uint32_t later)
{
	struct ur_rtx *rtx = s->rtx;
	struct ur_stamp stamp = rtx->stamp[word << 6 | (unsigned)__builtin_ctzll(bit)];
	int32_t age = ur_stamp_diff(a->newest, stamp);

	if (rtx->lost[word] & bit) {
		rtx->lost[word] &= ~bit;
		s->lost_cnt--;
		env->pool->late_cnt++;
		learn_reordering(s, later, age);
	} else if (rtx->resent[word] & bit) {
		if (!ur_rtx_in_vain(env->rtt, a, stamp))
			return;
		/* When that one left is forgotten: wait a round trip longer from now on. */
		env->pool->spurious_cnt++;
		learn_reordering(s, later,
				 (int32_t)(ur_rtx_reo_window(s, env).window + env->rtt->srtt));
	} else if (later && !a->in_parts) {
		env->pool->reordered_cnt++;
		learn_reordering(s, later, age);
	}
}

/* Sent once, and nothing beyond the first of them is known to have arrived: number_arrived() has nothing to do for any. */
static bool is_plain(const struct ur_selective *s, const struct arrival *a, const struct run *run,
		     uint64_t known, uint64_t fresh)
{
	uint64_t before = (fresh & -fresh) - 1;

	return !(fresh & (s->rtx->lost[run->word] | s->rtx->resent[run->word])) &&
	       a->later == ur_popcount(known & before);
}

/* The `cnt` numbers `fresh` of the run, which were not acked, are now. cnt > 0 */
static inline void mark_acked(struct ur_selective *s, struct arrival *a, const struct run *run,
			      uint64_t fresh, uint32_t cnt)
{
	unsigned end = 64 - (unsigned)__builtin_clzll(fresh);
	struct ur_psn beyond = ur_psn_add(run->first, end - run->off);

	s->rtx->acked[run->word] |= fresh;
	s->acked_cnt += (uint16_t)cnt;
	a->new_cnt += cnt;
	if (ur_psn_lt(s->rtx->top, beyond))
		s->rtx->top = beyond;
}

/* The numbers `bits` of the run arrived; runs come in ascending order. */
static void run_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			struct arrival *a, const struct run *run, uint64_t bits)
{
	uint64_t known = s->rtx->acked[run->word] & run->mask, fresh = bits & ~known;
	uint32_t cnt = ur_popcount(fresh);

	if (!is_plain(s, a, run, known, fresh)) {
		for (uint64_t b = fresh; b; b &= b - 1) {
			uint64_t bit = b & -b;

			number_arrived(s, env, a, run->word, bit,
				       a->later - ur_popcount(known & (bit - 1)));
		}
	}
	a->later -= ur_popcount(known);
	if (cnt)
		mark_acked(s, a, run, fresh, cnt);
}

static void advance_over_acked(struct ur_selective *s)
{
	struct ur_rtx *rtx = s->rtx;

	while (s->acked_cnt) {
		struct run run = run_of(rtx, s->una, tracked(s));
		uint64_t open = ~(rtx->acked[run.word] >> run.off);
		unsigned cnt = open ? (unsigned)__builtin_ctzll(open) : 64;
		uint64_t mask;

		if (cnt == 0)
			return;
		if (cnt > run.cnt)
			cnt = run.cnt;
		mask = run_of(rtx, s->una, cnt).mask;
		rtx->acked[run.word] &= ~mask;
		rtx->resent[run.word] &= ~mask;
		s->acked_cnt -= (uint16_t)cnt;
		s->una = ur_psn_add(s->una, cnt);
	}
}

void ur_rtx_advance(struct ur_selective *s, const struct ur_selective_env *env)
{
	struct ur_psn end = tracked_end(s);

	if (!bit_of(s->rtx, s->rtx->acked, s->una))
		return;
	advance_over_acked(s);
	if (__builtin_expect(ur_psn_eq(end, s->max), 1))
		return;
	s->rtx->beyond = 0;
	fill_stamps(s, env->tx_times, end, tracked_end(s));
}

/* Bits [off, off + cnt) of the bitmap, which has them; cnt is in [1, 64]. */
static uint64_t sack_bits(const uint8_t *sack, uint32_t off, uint32_t cnt)
{
	const uint8_t *p = sack + (off >> 3);
	unsigned shift = off & 7, bytes = (shift + cnt + 7) >> 3;
	uint64_t v = 0;

	memcpy(&v, p, bytes < 8 ? bytes : 8);
	v >>= shift;
	if (bytes > 8)
		v |= (uint64_t)p[8] << (64 - shift);
	return v & (~UINT64_C(0) >> (64 - cnt));
}

struct sack_part ur_rtx_sack_part(const struct ur_selective *s, const struct ur_ack_info *ack)
{
	struct ur_psn first = ur_psn_add(ack->una, 1 + ack->sack_at);
	int32_t off = ur_psn_diff(s->una, first), room;

	if (off < 0)
		off = 0;
	room = ur_psn_diff(s->max, first) - off;
	if ((uint32_t)off >= ack->sack_bits || room <= 0)
		return (struct sack_part){0};
	if ((uint32_t)room > ack->sack_bits - (uint32_t)off)
		room = (int32_t)(ack->sack_bits - (uint32_t)off);
	return (struct sack_part){ur_psn_add(first, (uint32_t)off), (uint32_t)off, (uint32_t)room};
}

uint32_t ur_rtx_sack_count(const uint8_t *sack, struct sack_part part)
{
	uint32_t cnt = 0;

	while (part.cnt) {
		uint32_t n = part.cnt < 64 ? part.cnt : 64;

		cnt += ur_popcount(sack_bits(sack, part.off, n));
		part.off += n;
		part.cnt -= n;
	}
	return cnt;
}

/* All that is tracked has arrived, and `cnt` numbers beyond it. */
static void pass_untracked(struct ur_selective *s, const struct ur_selective_env *env,
			   struct arrival *a, uint32_t cnt)
{
	advance_over_acked(s);
	s->una = ur_psn_add(s->una, cnt);
	a->new_cnt += cnt;
	s->rtx->beyond = 0;
	fill_stamps(s, env->tx_times, s->una, tracked_end(s));
}

/* The numbers of the bitmap that are tracked; una may move, and then others are. */
static void bitmap_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			   struct arrival *a, const uint8_t *sack, struct sack_part part)
{
	struct ur_psn end;

	do {
		uint32_t at = (uint32_t)ur_psn_diff(part.nr, s->una);
		uint32_t cnt = at < tracked(s) ? tracked(s) - at : 0;

		for (cnt = cnt < part.cnt ? cnt : part.cnt; cnt;) {
			struct run run = run_of(s->rtx, part.nr, cnt);

			run_arrived(s, env, a, &run, sack_bits(sack, part.off, run.cnt) << run.off);
			part.nr = ur_psn_add(part.nr, run.cnt);
			part.off += run.cnt;
			part.cnt -= run.cnt;
			cnt -= run.cnt;
		}
		end = tracked_end(s);
		if (part.cnt)
			ur_rtx_advance(s, env);
	} while (!ur_psn_eq(end, tracked_end(s)));
	s->rtx->beyond = (uint16_t)ur_rtx_sack_count(sack, part);
}

void ur_rtx_arrived(struct ur_selective *s, const struct ur_selective_env *env, struct arrival *a,
		    uint32_t cnt, const uint8_t *sack, struct sack_part part)
{
	uint32_t known = tracked(s) < cnt ? tracked(s) : cnt, left = known;
	struct ur_psn nr = s->una;

	a->later = s->acked_cnt;
	while (left) {
		struct run run = run_of(s->rtx, nr, left);

		run_arrived(s, env, a, &run, run.mask);
		nr = ur_psn_add(nr, run.cnt);
		left -= run.cnt;
	}
	if (cnt > known) {
		pass_untracked(s, env, a, cnt - known);
		nr = s->una;
	}
	if (!part.cnt)
		return;
	/* What is said of these, that ack->una has not arrived or nothing, changes nothing: what was said before counts. */
	known = (uint32_t)ur_psn_diff(part.nr, nr);
	a->later -= acked_among(s, nr, known);
	bitmap_arrived(s, env, a, sack, part);
}

void ur_rtx_one_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			struct arrival *a, struct ur_psn nr)
{
	struct run run = run_of(s->rtx, nr, 1);
	struct ur_rtx *rtx = s->rtx;
	uint32_t later;

	if (rtx->acked[run.word] & run.mask)
		return;
	later = acked_from(s, nr);
	if (later || (rtx->lost[run.word] | rtx->resent[run.word]) & run.mask)
		number_arrived(s, env, a, run.word, run.mask, later);
	mark_acked(s, a, &run, run.mask, 1);
}

/* ---- for tests ---- */

static uint32_t count_bits(const struct ur_rtx *rtx, const uint64_t *map)
{
	uint32_t cnt = 0;

	for (unsigned w = 0; w < words_of(rtx); w++)
		cnt += ur_popcount(map[w]);
	return cnt;
}

static void validate_context(const struct ur_selective *s)
{
	const struct ur_rtx *rtx = s->rtx;

	UR_ASSERT(count_bits(rtx, rtx->acked) == s->acked_cnt);
	UR_ASSERT(count_bits(rtx, rtx->lost) == s->lost_cnt);
	UR_ASSERT(!bit_of(rtx, rtx->acked, s->una));
	UR_ASSERT(!ur_rtx_gap_closed(s));
	UR_ASSERT(acked_from(s, s->una) == s->acked_cnt);
	for (struct ur_psn nr = s->una; ur_psn_lt(nr, tracked_end(s)); nr = ur_psn_add(nr, 1))
		UR_ASSERT(!bit_of(rtx, rtx->lost, nr) || ur_psn_le(rtx->first_lost, nr));
	for (struct ur_psn nr = s->una; ur_psn_lt(nr, rtx->open); nr = ur_psn_add(nr, 1))
		UR_ASSERT(bit_of(rtx, rtx->acked, nr) || bit_of(rtx, rtx->lost, nr) ||
			  bit_of(rtx, rtx->resent, nr));
	for (unsigned w = 0; w < words_of(rtx); w++)
		UR_ASSERT(!(rtx->acked[w] & rtx->lost[w]));
	for (uint32_t i = tracked(s); i < rtx->span; i++) {
		struct ur_psn nr = ur_psn_add(s->una, i);

		UR_ASSERT(!bit_of(rtx, rtx->acked, nr) && !bit_of(rtx, rtx->lost, nr) &&
			  !bit_of(rtx, rtx->resent, nr));
	}
}

void ur_selective_validate(const struct ur_selective *s)
{
	bool idle = ur_psn_eq(s->una, s->max);

	UR_ASSERT(outstanding(s) <= s->agreed && s->most <= s->agreed && s->limit <= s->most);
	UR_ASSERT(!s->plain_flight || s->quiet == UR_REO_ROUNDS);
	UR_ASSERT((uint32_t)s->acked_cnt + s->lost_cnt <= outstanding(s));
	UR_ASSERT(idle == (s->deadline_ns == UR_NEVER));
	UR_ASSERT(!idle || !s->flags);
	UR_ASSERT(!!(s->flags & HELD) == (s->rtx != NULL));
	UR_ASSERT(!(s->flags & TRAIN) || s->flags & PROBED);
	UR_ASSERT(!!(s->flags & UNA_LOST) == (!s->rtx && s->lost_cnt));
	UR_ASSERT(s->bdp <= s->agreed && s->reo_time <= UR_RTT_MAX);
	UR_ASSERT(s->quiet < UR_REO_ROUNDS || !(s->reo_places | s->reo_time));
	if (s->rtx) {
		UR_ASSERT(!(s->flags & UNA_RESENT));
		validate_context(s);
	} else {
		UR_ASSERT(s->acked_cnt == 0 && s->lost_cnt <= 1);
	}
}
