/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "transport/loss/selective_priv.h"
#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/ext.h"

#define REO_LONG    ((uint32_t)(UR_REO_LONG_NS >> UR_STAMP_SHIFT))
#define INITIAL_RTT ((uint32_t)(UR_PTO_INITIAL_NS >> UR_STAMP_SHIFT))

/* ---- the pool ---- */

static size_t rtx_stride(void)
{
	return ur_align64(sizeof(struct ur_rtx));
}

size_t ur_rtx_pool_size(uint32_t cnt)
{
	return cnt * rtx_stride();
}

void ur_rtx_clear(struct ur_rtx *rtx)
{
	memset(rtx->acked, 0, sizeof(rtx->acked));
	memset(rtx->lost, 0, sizeof(rtx->lost));
	memset(rtx->resent, 0, sizeof(rtx->resent));
}

void ur_rtx_pool_init(struct ur_rtx_pool *p, void *memory, uint32_t cnt)
{
	*p = (struct ur_rtx_pool){.free_cnt = cnt, .cnt = cnt};
	SLIST_INIT(&p->free);
	while (cnt--) {
		struct ur_rtx *rtx = (struct ur_rtx *)((char *)memory + cnt * rtx_stride());

		ur_rtx_clear(rtx);
		SLIST_INSERT_HEAD(&p->free, rtx, link);
	}
}

/* ---- life of a context ---- */

static void fill_stamps(const struct ur_selective *s, const struct ur_tx_times *tx_times,
			struct ur_rtx *rtx)
{
	struct ur_psn nr = s->una;

	for (unsigned i = 1; i <= UR_TX_TIMES; i++) {
		unsigned m = (tx_times->youngest + i) % UR_TX_TIMES;

		for (; !ur_psn_eq(nr, s->max) && is_before_sample(tx_times, m, s->seq, nr);
		     nr = ur_psn_add(nr, 1)) {
			rtx->stamp[index_of(nr)] = tx_times->sample[m].stamp;
		}
	}
	UR_ASSERT(ur_psn_eq(nr, s->max));
}

/* EXT-SEL-CTX-01: the first gap takes a context, if there is one. */
bool ur_rtx_hold(struct ur_selective *s, const struct ur_selective_env *env)
{
	struct ur_rtx_pool *pool = env->pool;
	struct ur_rtx *rtx = SLIST_FIRST(&pool->free);

	if (s->rtx)
		return true;
	if (!rtx) {
		pool->exhausted_cnt++;
		return false;
	}
	SLIST_REMOVE_HEAD(&pool->free, link);
	pool->free_cnt--;
	pool->taken_cnt++;
	fill_stamps(s, env->tx_times, rtx);
	s->again_stamp = s->rack_stamp;
	if (s->lost_cnt)
		rtx->lost[index_of(s->una) >> 6] |= mask_of(s->una);
	if (s->flags & UNA_RESENT) {
		rtx->resent[index_of(s->una) >> 6] |= mask_of(s->una);
		rtx->stamp[index_of(s->una)] = s->una_stamp;
	}
	s->flags &= (uint8_t) ~(UNA_LOST | UNA_RESENT);
	s->flags |= HELD;
	s->rtx = rtx;
	return true;
}

void ur_rtx_give_back(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	SLIST_INSERT_HEAD(&pool->free, s->rtx, link);
	pool->free_cnt++;
	s->rtx = NULL;
	s->flags &= (uint8_t)~HELD;
}

bool ur_rtx_gap_closed(const struct ur_selective *s)
{
	if (s->acked_cnt || s->lost_cnt)
		return false;
	for (unsigned w = 0; w < WORDS; w++)
		if (s->rtx->resent[w])
			return false;
	return true;
}

/* ---- what is lost ---- */

/* EXT-SEL-READS-01 */
struct reo_window ur_rtx_reo_window(const struct ur_selective *s,
				    const struct ur_selective_env *env)
{
	uint32_t srtt = env->rtt->srtt ? env->rtt->srtt : INITIAL_RTT;
	uint32_t least = env->kind == UR_SELECTIVE_MIXED ? srtt : srtt / 2;
	uint32_t least_places = env->kind == UR_SELECTIVE_READS ? UR_REO_READS : UR_REO_PLACES;
	uint32_t seen = s->reo_time + (s->reo_time >> 2);
	uint32_t places = s->reo_places + (s->reo_places >> 1);
	struct reo_window p;

	p.longest = 4 * srtt > REO_LONG ? 4 * srtt : REO_LONG;
	p.window = seen > least ? seen : least;
	if (p.window > p.longest)
		p.window = p.longest;
	p.places = places > least_places ? places : least_places;
	return p;
}

static void lose(struct ur_selective *s, struct ur_rtx_pool *pool, unsigned word, uint64_t bit)
{
	s->rtx->lost[word] |= bit;
	s->lost_cnt++;
	pool->lost_cnt++;
}

void ur_rtx_lose_una(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	if (!s->rtx) {
		pool->lost_cnt += !s->lost_cnt;
		s->lost_cnt = 1;
		s->flags |= UNA_LOST;
	} else if (!bit_of(s->rtx->lost, s->una)) {
		lose(s, pool, index_of(s->una) >> 6, mask_of(s->una));
	}
}

/*
 * Numbers sent once: the stamps grow with the numbers and the arrivals beyond them become fewer, so
 * the first that is not lost ends the search.
 */
static struct oldest lose_sent_once(struct ur_selective *s, struct ur_rtx_pool *pool,
				    const struct reo_window *p)
{
	struct ur_rtx *rtx = s->rtx;
	struct ur_psn nr = s->una;
	uint32_t left = outstanding(s), later = s->acked_cnt;

	while (left) {
		struct run run = run_of(nr, left);
		uint64_t acked = rtx->acked[run.word] & run.mask;
		uint64_t open = run.mask & ~(acked | rtx->lost[run.word] | rtx->resent[run.word]);

		for (; open; open &= open - 1) {
			uint64_t bit = open & -open;
			struct ur_stamp stamp =
				rtx->stamp[run.word << 6 | (unsigned)__builtin_ctzll(open)];
			uint32_t beyond = later - ur_popcount(acked & (bit - 1));

			if (!is_lost(s, p, stamp, beyond, false))
				return (struct oldest){true, stamp, beyond};
			lose(s, pool, run.word, bit);
		}
		later -= ur_popcount(acked);
		nr = ur_psn_add(nr, run.cnt);
		left -= run.cnt;
	}
	return (struct oldest){0};
}

/* Retransmissions that were lost as well. */
static void lose_resent(struct ur_selective *s, struct ur_rtx_pool *pool,
			const struct reo_window *p)
{
	struct ur_rtx *rtx = s->rtx;

	for (unsigned w = 0; w < WORDS; w++) {
		uint64_t open = rtx->resent[w] & ~(rtx->acked[w] | rtx->lost[w]);

		for (; open; open &= open - 1)
			if (is_lost(s, p, rtx->stamp[w << 6 | (unsigned)__builtin_ctzll(open)], 0,
				    true))
				lose(s, pool, w, open & -open);
	}
}

struct oldest ur_rtx_lose(struct ur_selective *s, struct ur_rtx_pool *pool,
			  const struct reo_window *p)
{
	struct oldest oldest = lose_sent_once(s, pool, p);

	lose_resent(s, pool, p);
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
	} else if (later) {
		env->pool->reordered_cnt++;
		learn_reordering(s, later, age);
	}
}

/* The numbers `bits` of the run arrived; runs come in ascending order. */
static void run_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			struct arrival *a, const struct run *run, uint64_t bits)
{
	uint64_t *acked = &s->rtx->acked[run->word];
	uint64_t known = *acked & run->mask, fresh = bits & ~known;

	for (uint64_t b = fresh; b; b &= b - 1) {
		uint64_t bit = b & -b;

		number_arrived(s, env, a, run->word, bit,
			       a->later - ur_popcount(known & (bit - 1)));
	}
	a->later -= ur_popcount(known);
	*acked |= fresh;
	s->acked_cnt += (uint16_t)ur_popcount(fresh);
	a->new_cnt += ur_popcount(fresh);
}

void ur_rtx_advance(struct ur_selective *s)
{
	struct ur_rtx *rtx = s->rtx;

	while (s->acked_cnt) {
		struct run run = run_of(s->una, outstanding(s));
		uint64_t open = ~(rtx->acked[run.word] >> run.off);
		unsigned cnt = open ? (unsigned)__builtin_ctzll(open) : 64;
		uint64_t mask;

		if (cnt == 0)
			return;
		if (cnt > run.cnt)
			cnt = run.cnt;
		mask = run_of(s->una, cnt).mask;
		rtx->acked[run.word] &= ~mask;
		rtx->resent[run.word] &= ~mask;
		s->acked_cnt -= (uint16_t)cnt;
		s->una = ur_psn_add(s->una, cnt);
	}
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
	struct ur_psn first = ur_psn_add(ack->una, 1);
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

void ur_rtx_arrived(struct ur_selective *s, const struct ur_selective_env *env, struct arrival *a,
		    uint32_t cnt, const uint8_t *sack, struct sack_part part)
{
	struct ur_psn nr = s->una;
	uint32_t gap;

	a->later = s->acked_cnt;
	while (cnt) {
		struct run run = run_of(nr, cnt);

		run_arrived(s, env, a, &run, run.mask);
		nr = ur_psn_add(nr, run.cnt);
		cnt -= run.cnt;
	}
	/* ack->una itself has not arrived, says the peer; whatever was said before, it counts. */
	gap = part.cnt ? (uint32_t)ur_psn_diff(part.nr, nr) : 0;
	if (gap)
		a->later -= bit_of(s->rtx->acked, nr);
	while (part.cnt) {
		struct run run = run_of(part.nr, part.cnt);

		run_arrived(s, env, a, &run, sack_bits(sack, part.off, run.cnt) << run.off);
		part.nr = ur_psn_add(part.nr, run.cnt);
		part.off += run.cnt;
		part.cnt -= run.cnt;
	}
}

static uint32_t acked_before(const struct ur_selective *s, struct ur_psn nr)
{
	struct ur_psn at = s->una;
	uint32_t left = (uint32_t)ur_psn_diff(nr, at), cnt = 0;

	while (left) {
		struct run run = run_of(at, left);

		cnt += ur_popcount(s->rtx->acked[run.word] & run.mask);
		at = ur_psn_add(at, run.cnt);
		left -= run.cnt;
	}
	return cnt;
}

void ur_rtx_one_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			struct arrival *a, struct ur_psn nr)
{
	struct run run = run_of(nr, 1);

	a->later = s->acked_cnt - acked_before(s, nr);
	run_arrived(s, env, a, &run, run.mask);
}
