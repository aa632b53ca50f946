/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/selective.h"

#include <string.h>

#include "timer/wheel.h"
#include "wire/assert.h"
#include "wire/ext.h"

#define WORDS (UR_EXT_WINDOW / 64)

#define STALE (1 << 22) /* news of a una that far back are no news */

#define REO_LONG    ((uint32_t)(UR_REO_LONG_NS >> UR_STAMP_SHIFT))
#define INITIAL_RTT ((uint32_t)(UR_PTO_INITIAL_NS >> UR_STAMP_SHIFT))

enum {
	PROBED = 1 << 0,     /* a probe was asked for, nothing was heard since */
	UNA_RESENT = 1 << 1, /* una was sent again at una_stamp; no context is held */
	ASKING = 1 << 2,     /* the deadline is for the oldest number; nothing was sent since */
};

/* ---- the pool ---- */

static size_t rtx_stride(void)
{
	return (sizeof(struct ur_rtx) + 63) & ~(size_t)63;
}

size_t ur_rtx_pool_size(uint32_t cnt)
{
	return cnt * rtx_stride();
}

static void rtx_clear(struct ur_rtx *rtx)
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

		rtx_clear(rtx);
		SLIST_INSERT_HEAD(&p->free, rtx, link);
	}
}

/* ---- runs of numbers within a word of the bitmaps ---- */

struct run {
	unsigned word, off, cnt; /* bits [off, off + cnt) of the word */
	uint64_t mask;
};

static inline unsigned index_of(struct ur_psn nr)
{
	return nr.v & (UR_EXT_WINDOW - 1);
}

/* The first of `cnt` numbers from nr on that share a word; cnt >= 1. */
static inline struct run run_of(struct ur_psn nr, uint32_t cnt)
{
	unsigned idx = index_of(nr), off = idx & 63, len = 64 - off < cnt ? 64 - off : cnt;

	return (struct run){idx >> 6, off, len, (~UINT64_C(0) >> (64 - len)) << off};
}

static inline bool bit_of(const uint64_t *map, struct ur_psn nr)
{
	return map[index_of(nr) >> 6] >> (nr.v & 63) & 1;
}

static inline uint64_t mask_of(struct ur_psn nr)
{
	return UINT64_C(1) << (nr.v & 63);
}

static inline uint32_t outstanding(const struct ur_selective *s)
{
	return (uint32_t)ur_psn_diff(s->max, s->una);
}

/* ---- marks: when numbers left that have no stamp of their own ---- */

/* A mark grows for a quarter of a round trip, so that all of them reach back about one. */
static inline void mark(struct ur_selective *s, const struct ur_rtt *rtt, uint32_t stamp)
{
	uint8_t before = (uint8_t)(s->mark_next - 1) % UR_MARKS;

	if (stamp - s->mark[before].stamp > rtt->srtt >> 2)
		s->mark_next = (s->mark_next + 1) % UR_MARKS;
	s->mark[s->mark_next].nr = s->max;
	s->mark[s->mark_next].stamp = stamp;
}

/* When nr of [una, max) left at the latest, if it was sent once. */
static uint32_t marked(const struct ur_selective *s, struct ur_psn nr)
{
	for (unsigned i = 1; i < UR_MARKS; i++) {
		unsigned m = (s->mark_next + i) % UR_MARKS;

		if (ur_psn_lt(nr, s->mark[m].nr))
			return s->mark[m].stamp;
	}
	return s->mark[s->mark_next].stamp;
}

/* ---- life of a context ---- */

static void fill_stamps(const struct ur_selective *s, struct ur_rtx *rtx)
{
	struct ur_psn nr = s->una;

	for (unsigned i = 1; i <= UR_MARKS; i++) {
		unsigned m = (s->mark_next + i) % UR_MARKS;

		for (; !ur_psn_eq(nr, s->max) && ur_psn_lt(nr, s->mark[m].nr);
		     nr = ur_psn_add(nr, 1)) {
			rtx->stamp[index_of(nr)] = s->mark[m].stamp;
			rtx->path[index_of(nr)] = UR_PATH_UNKNOWN;
		}
	}
	UR_ASSERT(ur_psn_eq(nr, s->max));
}

/* EXT-SEL-CTX-01: the first gap takes a context, if there is one. */
static bool hold(struct ur_selective *s, struct ur_rtx_pool *pool)
{
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
	fill_stamps(s, rtx);
	if (s->lost_cnt)
		rtx->lost[index_of(s->una) >> 6] |= mask_of(s->una);
	if (s->flags & UNA_RESENT) {
		rtx->resent[index_of(s->una) >> 6] |= mask_of(s->una);
		rtx->stamp[index_of(s->una)] = s->una_stamp;
		s->flags &= (uint8_t)~UNA_RESENT;
	}
	s->rtx = rtx;
	return true;
}

static void give_back(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	SLIST_INSERT_HEAD(&pool->free, s->rtx, link);
	pool->free_cnt++;
	s->rtx = NULL;
}

/* Everything was sent once and nothing beyond una has arrived: the marks tell as much. */
static bool gap_closed(const struct ur_selective *s)
{
	if (s->acked_cnt || s->lost_cnt)
		return false;
	for (unsigned w = 0; w < WORDS; w++)
		if (s->rtx->resent[w])
			return false;
	return true;
}

void ur_selective_init(struct ur_selective *s, struct ur_psn first, uint16_t window)
{
	UR_ASSERT(window >= 1 && window <= UR_EXT_WINDOW);
	*s = (struct ur_selective){
		.una = first,
		.max = first,
		.window = window,
		.limit = window,
		.deadline_ns = UR_NEVER,
	};
	for (unsigned m = 0; m < UR_MARKS; m++)
		s->mark[m].nr = first;
}

/* Nothing is outstanding. */
static void rest(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	if (s->rtx)
		give_back(s, pool);
	s->acked_cnt = s->lost_cnt = 0;
	s->flags = 0;
	s->backoff = 0;
	s->deadline_ns = UR_NEVER;
}

void ur_selective_stop(struct ur_selective *s, const struct ur_selective_env *env)
{
	if (s->rtx)
		rtx_clear(s->rtx);
	s->una = s->max;
	rest(s, env->pool);
}

/* ---- how much may be in flight ---- */

uint32_t ur_selective_credit(const struct ur_selective *s)
{
	uint32_t room = UR_EXT_WINDOW - outstanding(s), flight = ur_selective_in_flight(s);

	/* EXT-SEL-FLIGHT-01 */
	if (flight >= s->limit)
		return 0;
	return s->limit - flight < room ? s->limit - flight : room;
}

static void set_limit(struct ur_selective *s)
{
	/* A quarter above what was delivered: else the rate could never be seen to grow. */
	uint32_t limit = s->bdp + (s->bdp >> 2);

	if (limit > UR_EXT_WINDOW / 2)
		limit = UR_EXT_WINDOW / 2;
	s->limit = limit > s->window ? (uint16_t)limit : s->window;
}

/* Numbers delivered in the time of the least round trip; what was seen of reordering fades. */
static __attribute__((noinline)) void end_round(struct ur_selective *s, const struct ur_rtt *rtt,
						uint32_t now)
{
	uint32_t length = now - s->round_stamp;
	uint64_t bdp;

	if (rtt->srtt == 0 || length == 0)
		return;
	bdp = (uint64_t)s->delivered * rtt->min / length;
	if (bdp >= s->bdp)
		s->bdp = bdp < UR_EXT_WINDOW ? (uint16_t)bdp : UR_EXT_WINDOW;
	else
		s->bdp -= (uint16_t)(s->bdp - bdp + 7) >> 3;
	set_limit(s);
	s->round_stamp = now;
	s->delivered = 0;
	if (!s->reo_places && !s->reo_time)
		return;
	if (++s->quiet < UR_REO_ROUNDS)
		return;
	s->quiet = 0;
	s->reo_places -= (s->reo_places + 3) >> 2;
	s->reo_time -= (s->reo_time + 3) >> 2;
}

static inline void delivered(struct ur_selective *s, const struct ur_rtt *rtt, uint32_t n,
			     uint32_t now)
{
	s->delivered += n;
	if (now - s->round_stamp >= rtt->srtt)
		end_round(s, rtt, now);
}

/* ---- what is lost (the rules are in the header) ---- */

struct patience {
	uint32_t window, longest; /* stamps */
	uint32_t places;	  /* that many beyond it: more than reordering does */
};

static struct patience patience(const struct ur_selective *s, const struct ur_rtt *rtt)
{
	uint32_t srtt = rtt->srtt ? rtt->srtt : INITIAL_RTT;
	uint32_t seen = s->reo_time + (s->reo_time >> 2);
	uint32_t places = s->reo_places + (s->reo_places >> 1);
	struct patience p;

	p.longest = 4 * srtt > REO_LONG ? 4 * srtt : REO_LONG;
	p.window = seen > srtt ? seen : srtt;
	if (p.window > p.longest)
		p.window = p.longest;
	p.places = places > UR_REO_PLACES ? places : UR_REO_PLACES;
	return p;
}

/* A probe for silence, or what left after it, has arrived; what is stamped `stamp` left before. */
static inline bool outlived_probe(const struct ur_selective *s, uint32_t stamp)
{
	return (int32_t)(s->rack_stamp - s->probe_stamp) >= 0 &&
	       (int32_t)(stamp - s->probe_stamp) < 0;
}

/* EXT-SEL-LOSS-01, EXT-SEL-REO-01: `later` numbers beyond it have arrived. */
static inline bool is_lost(const struct ur_selective *s, const struct patience *p, uint32_t stamp,
			   uint32_t later, bool resent)
{
	int32_t age = (int32_t)(s->rack_stamp - stamp);

	if (age < (int32_t)p->window)
		return false;
	return resent || later >= p->places || age >= (int32_t)p->longest ||
	       (later >= s->reo_places && outlived_probe(s, stamp));
}

static void lose(struct ur_selective *s, struct ur_rtx_pool *pool, unsigned word, uint64_t bit)
{
	s->rtx->lost[word] |= bit;
	s->lost_cnt++;
	pool->lost_cnt++;
}

static void lose_una(struct ur_selective *s, struct ur_rtx_pool *pool)
{
	if (!s->rtx) {
		pool->lost_cnt += !s->lost_cnt;
		s->lost_cnt = 1;
	} else if (!bit_of(s->rtx->lost, s->una)) {
		lose(s, pool, index_of(s->una) >> 6, mask_of(s->una));
	}
}

/* The oldest number that was sent once and is neither acknowledged nor lost. */
struct oldest {
	bool is;
	uint32_t stamp, later;
};

/*
 * Numbers sent once: the stamps grow with the numbers and the arrivals beyond them become fewer, so
 * the first that is not lost ends the search.
 */
static struct oldest lose_sent_once(struct ur_selective *s, struct ur_rtx_pool *pool,
				    const struct patience *p)
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
			uint32_t stamp =
				rtx->stamp[run.word << 6 | (unsigned)__builtin_ctzll(open)];
			uint32_t beyond = later - (uint32_t)__builtin_popcountll(acked & (bit - 1));

			if (!is_lost(s, p, stamp, beyond, false))
				return (struct oldest){true, stamp, beyond};
			lose(s, pool, run.word, bit);
		}
		later -= (uint32_t)__builtin_popcountll(acked);
		nr = ur_psn_add(nr, run.cnt);
		left -= run.cnt;
	}
	return (struct oldest){0};
}

/* Retransmissions that were lost as well. */
static void lose_resent(struct ur_selective *s, struct ur_rtx_pool *pool, const struct patience *p)
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

/* Without a context only una is looked at; `later` numbers beyond it are known to have arrived. */
static void lose_first(struct ur_selective *s, struct ur_rtx_pool *pool, const struct patience *p,
		       uint32_t later)
{
	bool resent = s->flags & UNA_RESENT;

	if (s->lost_cnt || !is_lost(s, p, resent ? s->una_stamp : marked(s, s->una), later, resent))
		return;
	/* With arrivals beyond it a context was asked for in vain already. EXT-SEL-POOL-01 */
	if (later || !hold(s, pool))
		lose_una(s, pool);
}

/* ---- when to wake up ---- */

/* Two round trips, and what they vary. */
static inline uint64_t silence_ns(const struct ur_rtt *rtt)
{
	uint64_t ns = (uint64_t)(2 * rtt->srtt + 4 * rtt->rttvar) << UR_STAMP_SHIFT;

	if (rtt->srtt == 0)
		return UR_PTO_INITIAL_NS;
	if (ns < UR_PTO_MIN_NS)
		return UR_PTO_MIN_NS;
	return ns < UR_RTO_MAX_NS ? ns : UR_RTO_MAX_NS;
}

static inline void expect_answer(struct ur_selective *s, const struct ur_rtt *rtt, uint64_t now_ns)
{
	if (!(s->flags & PROBED))
		s->deadline_ns = now_ns + silence_ns(rtt);
}

/* When a transmission would have `stamp`. */
static uint64_t time_of(uint32_t stamp, uint64_t now_ns)
{
	return now_ns +
	       (uint64_t)((int64_t)(int32_t)(stamp - ur_stamp(now_ns)) * (1 << UR_STAMP_SHIFT));
}

/* The oldest number tells when a probe would be of use, sooner or later than after silence. */
static void ask_about(struct ur_selective *s, const struct patience *p, const struct oldest *o,
		      uint64_t now_ns)
{
	uint32_t due = o->stamp + p->window;
	uint64_t at;

	s->flags &= (uint8_t)~ASKING;
	if (o->later >= p->places) {
		/* Only its age is missing; what will show that may be on its way. */
		if ((int32_t)(s->mark[s->mark_next].stamp - due) >= 0 ||
		    (int32_t)(s->probe_stamp - due) >= 0)
			return;
		at = time_of(due, now_ns);
		if (at < s->deadline_ns) {
			s->deadline_ns = at;
			s->flags |= ASKING;
		}
	} else if (o->later < s->reo_places) {
		at = time_of(o->stamp + p->longest, now_ns);
		if (at > s->deadline_ns)
			s->deadline_ns = at;
	}
}

/* ---- what has arrived ---- */

/* A stamp that is to come is hostile; the unsigned distance from now tells it from the others. */
static inline void rack(struct ur_selective *s, uint32_t echo, uint32_t now)
{
	if (now - echo < now - s->rack_stamp)
		s->rack_stamp = echo;
}

static inline void heard(struct ur_selective *s)
{
	s->flags &= (uint8_t) ~(PROBED | ASKING);
	s->backoff = 0;
}

struct arrival {
	uint32_t now;
	uint32_t newest; /* rack_stamp before it */
	uint32_t echo;	 /* valid unless partial */
	bool partial;
	uint32_t later;	  /* acknowledged before it, from the run on */
	uint32_t new_cnt; /* newly acknowledged */
};

/* It overtook nothing, but was overtaken by `places` numbers for `time` stamps. */
static void learn_reordering(struct ur_selective *s, uint32_t places, int32_t time)
{
	if (places > s->reo_places)
		s->reo_places = (uint16_t)places;
	if (time > 0 && (uint32_t)time > s->reo_time)
		s->reo_time = (uint32_t)time < UR_RTT_MAX ? (uint32_t)time : UR_RTT_MAX;
	s->quiet = 0;
}

/* What was sent again at `stamp` has arrived by an earlier transmission. */
static bool in_vain(const struct ur_rtt *rtt, const struct arrival *a, uint32_t stamp)
{
	if (rtt->srtt && a->now - stamp < rtt->min)
		return true;
	return !a->partial && (int32_t)(a->echo - stamp) < 0;
}

static void number_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			   const struct arrival *a, unsigned word, uint64_t bit, uint32_t later)
{
	struct ur_rtx *rtx = s->rtx;
	uint32_t stamp = rtx->stamp[word << 6 | (unsigned)__builtin_ctzll(bit)];
	int32_t age = (int32_t)(a->newest - stamp);

	if (rtx->lost[word] & bit) {
		rtx->lost[word] &= ~bit;
		s->lost_cnt--;
		env->pool->late_cnt++;
		learn_reordering(s, later, age);
	} else if (rtx->resent[word] & bit) {
		if (!in_vain(env->rtt, a, stamp))
			return;
		/* The stamp of the transmission that arrived is gone; be more patient by a round
		 * trip. */
		env->pool->spurious_cnt++;
		learn_reordering(s, later,
				 (int32_t)(patience(s, env->rtt).window + env->rtt->srtt));
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
			       a->later - (uint32_t)__builtin_popcountll(known & (bit - 1)));
	}
	a->later -= (uint32_t)__builtin_popcountll(known);
	*acked |= fresh;
	s->acked_cnt += (uint16_t)__builtin_popcountll(fresh);
	a->new_cnt += (uint32_t)__builtin_popcountll(fresh);
}

/* Moves una over what is acknowledged. */
static void advance(struct ur_selective *s)
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

/* Without a context `cnt` numbers from una on arrived. */
static void first_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			  struct arrival *a, uint32_t cnt)
{
	env->pool->late_cnt += s->lost_cnt;
	if (!s->lost_cnt && (s->flags & UNA_RESENT) && in_vain(env->rtt, a, s->una_stamp))
		env->pool->spurious_cnt++;
	s->lost_cnt = 0;
	s->flags &= (uint8_t)~UNA_RESENT;
	s->una = ur_psn_add(s->una, cnt);
	a->new_cnt += cnt;
}

/*
 * After anything but arrival in order: what is lost now, is the gap closed, when to wake up.
 * Without a context, `later` numbers beyond una are known to have arrived.
 */
static void settle(struct ur_selective *s, const struct ur_selective_env *env, uint32_t later,
		   uint64_t now_ns)
{
	struct oldest oldest = {0};
	struct patience p;

	if (s->rtx)
		advance(s);
	if (ur_psn_eq(s->una, s->max)) {
		rest(s, env->pool);
		return;
	}
	p = patience(s, env->rtt);
	if (!s->rtx)
		lose_first(s, env->pool, &p, later);
	if (s->rtx) {
		oldest = lose_sent_once(s, env->pool, &p);
		lose_resent(s, env->pool, &p);
		if (gap_closed(s))
			give_back(s, env->pool);
	}
	expect_answer(s, env->rtt, now_ns);
	if (oldest.is && !(s->flags & PROBED))
		ask_about(s, &p, &oldest, now_ns);
}

/* `cnt` numbers from una on arrived in order. */
static inline void in_order(struct ur_selective *s, const struct ur_selective_env *env,
			    uint32_t cnt, uint32_t echo, uint64_t now_ns)
{
	uint32_t now = ur_stamp(now_ns);

	s->una = ur_psn_add(s->una, cnt);
	rack(s, echo, now);
	s->deadline_ns = ur_psn_eq(s->una, s->max) ? UR_NEVER : now_ns + silence_ns(env->rtt);
	delivered(s, env->rtt, cnt, now);
}

static inline bool is_in_order(const struct ur_selective *s)
{
	return !s->rtx && !s->flags && !s->lost_cnt;
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

/* Where the bitmap meets [una, max). */
struct sack_part {
	struct ur_psn nr; /* of the bit at off */
	uint32_t off, cnt;
};

static struct sack_part sack_part(const struct ur_selective *s,
				  const struct ur_selective_news *news)
{
	struct ur_psn first = ur_psn_add(news->una, 1);
	int32_t off = ur_psn_diff(s->una, first), room;

	if (off < 0)
		off = 0;
	room = ur_psn_diff(s->max, first) - off;
	if ((uint32_t)off >= news->sack_bits || room <= 0)
		return (struct sack_part){0};
	if ((uint32_t)room > news->sack_bits - (uint32_t)off)
		room = (int32_t)(news->sack_bits - (uint32_t)off);
	return (struct sack_part){ur_psn_add(first, (uint32_t)off), (uint32_t)off, (uint32_t)room};
}

static uint32_t sack_count(const uint8_t *sack, struct sack_part part)
{
	uint32_t cnt = 0;

	while (part.cnt) {
		uint32_t n = part.cnt < 64 ? part.cnt : 64;

		cnt += (uint32_t)__builtin_popcountll(sack_bits(sack, part.off, n));
		part.off += n;
		part.cnt -= n;
	}
	return cnt;
}

/* The numbers [una, una + cnt) arrived, and those of the bitmap. A context is held. */
static void take_in(struct ur_selective *s, const struct ur_selective_env *env, struct arrival *a,
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
	/* news->una itself has not arrived, says the peer; whatever was said before, it counts. */
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

static __attribute__((noinline)) uint32_t out_of_order(struct ur_selective *s,
						       const struct ur_selective_env *env,
						       const struct ur_selective_news *news,
						       uint32_t ahead, uint64_t now_ns)
{
	struct arrival a = {
		.now = ur_stamp(now_ns),
		.newest = s->rack_stamp,
		.echo = news->echo,
		.partial = news->partial,
	};
	struct sack_part part;
	uint32_t later;

	heard(s);
	if (!news->partial)
		rack(s, news->echo, a.now);
	if (!s->rtx && ahead) {
		first_arrived(s, env, &a, ahead);
		ahead = 0;
	}
	part = sack_part(s, news);
	later = sack_count(news->sack, part);
	if (s->rtx || (later && hold(s, env->pool)))
		take_in(s, env, &a, ahead, news->sack, part);
	settle(s, env, later, now_ns);
	delivered(s, env->rtt, a.new_cnt, a.now);
	return a.new_cnt;
}

uint32_t ur_selective_news(struct ur_selective *s, const struct ur_selective_env *env,
			   const struct ur_selective_news *news, uint64_t now_ns)
{
	int32_t ahead = ur_psn_diff(news->una, s->una);
	uint32_t sent = outstanding(s);

	if (__builtin_expect((uint32_t)ahead - 1 < sent && news->sack_bits == 0 && is_in_order(s),
			     1)) {
		in_order(s, env, (uint32_t)ahead, news->echo, now_ns);
		return (uint32_t)ahead;
	}
	if (ahead > (int32_t)sent || ahead < -STALE || sent == 0)
		return 0;
	return out_of_order(s, env, news, ahead > 0 ? (uint32_t)ahead : 0, now_ns);
}

bool ur_selective_has(const struct ur_selective *s, struct ur_psn nr)
{
	return s->rtx && bit_of(s->rtx->acked, nr);
}

static uint32_t acked_before(const struct ur_selective *s, struct ur_psn nr)
{
	struct ur_psn at = s->una;
	uint32_t left = (uint32_t)ur_psn_diff(nr, at), cnt = 0;

	while (left) {
		struct run run = run_of(at, left);

		cnt += (uint32_t)__builtin_popcountll(s->rtx->acked[run.word] & run.mask);
		at = ur_psn_add(at, run.cnt);
		left -= run.cnt;
	}
	return cnt;
}

static __attribute__((noinline)) bool arrived_early(struct ur_selective *s,
						    const struct ur_selective_env *env,
						    struct ur_psn nr, uint32_t echo,
						    uint64_t now_ns)
{
	struct arrival a = {.now = ur_stamp(now_ns), .newest = s->rack_stamp, .echo = echo};
	uint32_t ahead = (uint32_t)ur_psn_diff(nr, s->una);
	struct run run = run_of(nr, 1);

	heard(s);
	rack(s, echo, a.now);
	if (!s->rtx && ahead == 0) {
		first_arrived(s, env, &a, 1);
	} else if (hold(s, env->pool)) {
		a.later = s->acked_cnt - acked_before(s, nr);
		run_arrived(s, env, &a, &run, run.mask);
	}
	settle(s, env, ahead, now_ns);
	delivered(s, env->rtt, a.new_cnt, a.now);
	return a.new_cnt;
}

bool ur_selective_arrived(struct ur_selective *s, const struct ur_selective_env *env,
			  struct ur_psn nr, uint32_t echo, uint64_t now_ns)
{
	UR_ASSERT(ur_psn_in(nr, s->una, s->max));
	if (__builtin_expect(ur_psn_eq(nr, s->una) && is_in_order(s), 1)) {
		in_order(s, env, 1, echo, now_ns);
		return true;
	}
	return arrived_early(s, env, nr, echo, now_ns);
}

void ur_selective_overtaken(struct ur_selective *s, const struct ur_selective_env *env,
			    uint32_t echo, uint64_t now_ns)
{
	uint32_t now = ur_stamp(now_ns);

	if (ur_psn_eq(s->una, s->max) || (int32_t)(now - echo) < 0)
		return;
	heard(s);
	rack(s, echo, now);
	/* Whoever asked for the probe: this sequence had been waited for as well. */
	if ((int32_t)(echo - s->probe_stamp) > 0)
		s->probe_stamp = echo;
	settle(s, env, 0, now_ns);
}

/* ---- what was sent ---- */

void ur_selective_sent(struct ur_selective *s, const struct ur_selective_env *env, uint32_t n,
		       uint8_t path, uint64_t now_ns)
{
	uint32_t stamp = ur_stamp(now_ns);

	UR_ASSERT(n >= 1 && outstanding(s) + n <= UR_EXT_WINDOW);
	if (ur_psn_eq(s->una, s->max)) {
		/* Stamps of long ago could seem to be of the future. */
		s->rack_stamp = s->probe_stamp = s->round_stamp = stamp;
		s->delivered = 0;
	}
	if (s->rtx)
		for (uint32_t i = 0; i < n; i++) {
			unsigned idx = index_of(ur_psn_add(s->max, i));

			s->rtx->stamp[idx] = stamp;
			s->rtx->path[idx] = path;
		}
	s->max = ur_psn_add(s->max, n);
	mark(s, env->rtt, stamp);
	/* While it runs it need not be moved: the youngest mark tells when something was sent. */
	s->flags &= (uint8_t)~ASKING;
	if (s->deadline_ns == UR_NEVER)
		expect_answer(s, env->rtt, now_ns);
}

bool ur_selective_next_lost(const struct ur_selective *s, struct ur_psn *nr)
{
	struct ur_psn at = s->una;
	uint32_t left = outstanding(s);

	if (s->lost_cnt == 0)
		return false;
	while (s->rtx) {
		struct run run = run_of(at, left);
		uint64_t lost = s->rtx->lost[run.word] & run.mask;

		if (lost) {
			at = ur_psn_add(at, (unsigned)__builtin_ctzll(lost) - run.off);
			break;
		}
		at = ur_psn_add(at, run.cnt);
		left -= run.cnt;
	}
	*nr = at;
	return true;
}

void ur_selective_resent(struct ur_selective *s, const struct ur_selective_env *env,
			 struct ur_psn nr, uint8_t path, uint64_t now_ns)
{
	struct ur_rtx *rtx = s->rtx;
	unsigned word = index_of(nr) >> 6;
	uint64_t bit = mask_of(nr);

	UR_ASSERT(ur_psn_in(nr, s->una, s->max));
	expect_answer(s, env->rtt, now_ns);
	if (!rtx) {
		UR_ASSERT(ur_psn_eq(nr, s->una));
		s->lost_cnt = 0;
		s->flags |= UNA_RESENT;
		s->una_stamp = ur_stamp(now_ns);
		return;
	}
	if (rtx->lost[word] & bit) {
		rtx->lost[word] &= ~bit;
		s->lost_cnt--;
	}
	rtx->resent[word] |= bit;
	rtx->stamp[index_of(nr)] = ur_stamp(now_ns);
	rtx->path[index_of(nr)] = path;
}

/* ---- without news ---- */

void ur_selective_lose_una(struct ur_selective *s, const struct ur_selective_env *env)
{
	if (!ur_psn_eq(s->una, s->max))
		lose_una(s, env->pool);
}

enum ur_selective_verdict ur_selective_expired(struct ur_selective *s,
					       const struct ur_selective_env *env, uint64_t now_ns)
{
	if (now_ns < s->deadline_ns || ur_psn_eq(s->una, s->max))
		return UR_SELECTIVE_NOTHING;
	if (s->lost_cnt) {
		s->deadline_ns = now_ns + ur_rtt_rto_ns(env->rtt, s->backoff);
		return UR_SELECTIVE_RESEND;
	}
	/* EXT-SEL-PROBE-01 */
	if (!(s->flags & PROBED)) {
		uint64_t sent_ns = time_of(s->mark[s->mark_next].stamp, now_ns);

		if (!(s->flags & ASKING) && now_ns < sent_ns + silence_ns(env->rtt)) {
			s->deadline_ns = sent_ns + silence_ns(env->rtt);
			return UR_SELECTIVE_NOTHING;
		}
		s->flags |= PROBED;
		s->flags &= (uint8_t)~ASKING;
		s->probe_stamp = ur_stamp(now_ns);
		s->deadline_ns = now_ns + ur_rtt_rto_ns(env->rtt, s->backoff);
		return UR_SELECTIVE_PROBE;
	}
	/* EXT-SEL-RTO-01 */
	if (s->backoff < UINT8_MAX)
		s->backoff++;
	s->deadline_ns = now_ns + ur_rtt_rto_ns(env->rtt, s->backoff);
	lose_una(s, env->pool);
	return UR_SELECTIVE_RESEND;
}

/* ---- for tests ---- */

static uint32_t count_bits(const uint64_t *map)
{
	uint32_t cnt = 0;

	for (unsigned w = 0; w < WORDS; w++)
		cnt += (uint32_t)__builtin_popcountll(map[w]);
	return cnt;
}

static void validate_context(const struct ur_selective *s)
{
	const struct ur_rtx *rtx = s->rtx;

	UR_ASSERT(count_bits(rtx->acked) == s->acked_cnt);
	UR_ASSERT(count_bits(rtx->lost) == s->lost_cnt);
	UR_ASSERT(!bit_of(rtx->acked, s->una));
	UR_ASSERT(!gap_closed(s));
	for (unsigned w = 0; w < WORDS; w++)
		UR_ASSERT(!(rtx->acked[w] & rtx->lost[w]));
	for (uint32_t i = outstanding(s); i < UR_EXT_WINDOW; i++) {
		struct ur_psn nr = ur_psn_add(s->una, i);

		UR_ASSERT(!bit_of(rtx->acked, nr) && !bit_of(rtx->lost, nr) &&
			  !bit_of(rtx->resent, nr));
	}
}

void ur_selective_validate(const struct ur_selective *s)
{
	bool idle = ur_psn_eq(s->una, s->max);

	UR_ASSERT(outstanding(s) <= UR_EXT_WINDOW);
	UR_ASSERT((uint32_t)s->acked_cnt + s->lost_cnt <= outstanding(s));
	UR_ASSERT(idle == (s->deadline_ns == UR_NEVER));
	UR_ASSERT(!idle || is_in_order(s));
	UR_ASSERT(s->bdp <= UR_EXT_WINDOW && s->reo_time <= UR_RTT_MAX);
	if (s->rtx) {
		UR_ASSERT(!(s->flags & UNA_RESENT));
		validate_context(s);
	} else {
		UR_ASSERT(s->acked_cnt == 0 && s->lost_cnt <= 1);
	}
}
