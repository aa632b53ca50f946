/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/ooo.h"

#include <string.h>

#include "transport/loss/tier.h"
#include "wire/assert.h"
#include "wire/bits.h"

#define INDEX(o, psn) ((psn).v & ((o)->span - 1))
#define LEAST	      4 /* elements of a list at first; it grows to four times as many */
#define NEAR	      4
#define SWEEP_EVERY   256 /* PSNs */
#define HELD_WORDS    (UR_OOO_HELD / 64)

_Static_assert(UR_SACK_BITS == UR_EXT_WINDOW,
	       "an old peer takes no bitmap in parts, and has no larger window");
_Static_assert(sizeof(struct ur_ooo) <= 96, "a first tier of 64 takes 1408 bytes of a slab");
_Static_assert(sizeof(struct ur_ooo_deferred) == 20, "one for each PSN");

/* ---- the pool ---- */

static unsigned words_of(uint32_t span)
{
	return (span + 63) / 64;
}

/* Where a bitmap may be told in parts, the lowest part and another one may be in packets that leave together. */
static size_t sack_bytes(uint32_t span)
{
	size_t bytes = words_of(span) * sizeof(uint64_t);

	return bytes <= UR_SACK_BYTES ? bytes : 2 * UR_SACK_BYTES;
}

size_t ur_ooo_bytes(uint32_t span)
{
	return sizeof(struct ur_ooo) + sizeof(uint64_t) * words_of(span) + sack_bytes(span) +
	       span * sizeof(struct ur_ooo_deferred);
}

void ur_ooo_pool_init(struct ur_ooo_pool *p, struct ur_slabs *slabs, uint32_t first, uint32_t most,
		      uint32_t max_sge)
{
	*p = (struct ur_ooo_pool){
		.slabs = slabs,
		.first = first,
		.most = most,
		.bound_stride =
			(uint32_t)(sizeof(struct ur_rwqe) + max_sge * sizeof(struct ur_sge)),
	};
}

static void lay_out(struct ur_ooo *o, uint32_t span)
{
	unsigned words = words_of(span);

	o->span = span;
	o->deferred = o->words;
	o->sack = (uint8_t *)(o->deferred + words);
	o->desc = (struct ur_ooo_deferred *)(void *)(o->sack + sack_bytes(span));
	memset(o->deferred, 0, words * sizeof(uint64_t));
}

/* EXT-RESP-CONTEXT-01, LOSS-TIER-01 */
struct ur_ooo *ur_ooo_take(struct ur_ooo_pool *p, void *own, struct ur_psn epsn, uint32_t ahead)
{
	struct ur_ooo *o = NULL;
	uint32_t span;

	for (span = ur_tier_of(ahead + 1, p->first, p->most); span > ahead;
	     span = ur_tier_below(span)) {
		o = ur_tier_take(p->slabs, ur_ooo_bytes(span), span > p->first);
		if (o)
			break;
	}
	own = o ? NULL : own;
	/* LOSS-OWN-01 */
	if (own && ahead < UR_OWN_SPAN) {
		UR_ASSERT(ur_ooo_bytes(UR_OWN_SPAN) + UR_SLABS_HEADER <= UR_OOO_OWN_BYTES);
		o = ur_slabs_own(own);
		span = UR_OWN_SPAN;
	}
	if (!o)
		return NULL;
	*o = (struct ur_ooo){
		.bound_stride = p->bound_stride, .top = epsn, .swept = epsn, .told = epsn};
	if (own) {
		o->range = ur_slabs_own((uint8_t *)own + UR_OOO_OWN_BYTES);
		o->range_cap = UR_OWN_RANGES;
	}
	lay_out(o, span);
	p->held_cnt++;
	return o;
}

static void give_list(struct ur_ooo_pool *p, void *list)
{
	if (list)
		ur_slabs_give(p->slabs, list);
}

void ur_ooo_give(struct ur_ooo_pool *p, struct ur_ooo *o)
{
	give_list(p, o->range);
	give_list(p, o->held_used);
	give_list(p, o->bound);
	ur_slabs_give(p->slabs, o);
	p->held_cnt--;
}

/* LOSS-TIER-02: what the small context has noted moves to the large one. */
static void move(struct ur_ooo *to, const struct ur_ooo *from, uint32_t span, struct ur_psn epsn)
{
	*to = *from;
	lay_out(to, span);
	to->refused = false;
	for (uint32_t i = 1; i < from->span; i++) {
		struct ur_psn psn = ur_psn_add(epsn, i);

		if (!ur_ooo_is_deferred(from, psn))
			continue;
		to->deferred[INDEX(to, psn) >> 6] |= UINT64_C(1) << (INDEX(to, psn) & 63);
		to->desc[INDEX(to, psn)] = from->desc[INDEX(from, psn)];
	}
}

bool ur_ooo_reach(struct ur_ooo_pool *p, struct ur_ooo **o, struct ur_psn epsn, uint32_t ahead)
{
	struct ur_ooo *from = *o, *to;
	uint32_t span;

	if (__builtin_expect(ahead < from->span, 1))
		return true;
	span = ur_tier_of(ahead + 1, from->span, p->most);
	to = ur_tier_take(p->slabs, ur_ooo_bytes(span), span > p->first);
	if (!to) {
		p->short_cnt += !from->refused;
		from->refused = true;
		return false;
	}
	move(to, from, span, epsn);
	ur_slabs_give(p->slabs, from);
	p->grown_cnt++;
	*o = to;
	return true;
}

/*
 * LOSS-TIER-05. Memory for a list of `cnt` elements of `each` bytes at most, four times as many as before until they
 * suffice, at most `most`. Sets *cap. NULL: it is refused.
 */
static void *larger_list(struct ur_ooo_pool *p, unsigned cnt, unsigned most, size_t each,
			 size_t header, unsigned *cap)
{
	unsigned n = *cap ? *cap : LEAST / 4;
	void *list;

	if (cnt > most)
		return NULL;
	do
		n = 4 * n < most ? 4 * n : most;
	while (n < cnt);
	list = ur_tier_take(p->slabs, header + n * each, n > LEAST);
	if (list)
		*cap = n;
	return list;
}

/* ---- notes ---- */

static void sweep(struct ur_ooo *o, struct ur_psn epsn);

void ur_ooo_defer(struct ur_ooo *o, struct ur_psn psn, const struct ur_ooo_deferred *note)
{
	UR_ASSERT(!ur_ooo_is_deferred(o, psn));
	if (!o->deferred_cnt++ || ur_psn_lt(o->top, psn))
		o->top = psn;
	o->deferred[INDEX(o, psn) >> 6] |= UINT64_C(1) << (INDEX(o, psn) & 63);
	*ur_ooo_deferred_at(o, psn) = *note;
	/* A range whose PSNs are far behind would seem to be ahead. */
	if (__builtin_expect(ur_psn_diff(psn, o->swept) > 4 * UR_EXT_WINDOW_MAX, 0))
		sweep(o, ur_psn_add(psn, UR_PSN_MASK + 1 - UR_EXT_WINDOW_MAX));
}

void ur_ooo_forget(struct ur_ooo *o, struct ur_psn psn)
{
	UR_ASSERT(ur_ooo_is_deferred(o, psn));
	o->deferred[INDEX(o, psn) >> 6] &= ~(UINT64_C(1) << (INDEX(o, psn) & 63));
	o->deferred_cnt--;
}

/* 64 bits of the bitmap, or all of a smaller one, from bit `at` + 64 i on. */
static uint64_t bits_at(const struct ur_ooo *o, uint32_t at, uint32_t i)
{
	unsigned shift = at & 63, words = words_of(o->span), w = ((at >> 6) + i) % words;
	unsigned width = o->span < 64 ? o->span : 64;
	uint64_t v = o->deferred[w] >> shift;

	if (shift)
		v |= o->deferred[(w + 1) % words] << (width - shift);
	return v & (~UINT64_C(0) >> (64 - width));
}

/* EXT-OOO-SACK-01. Writes the bits [from, to) of the bitmap, as bytes. */
static void write_bits(const struct ur_ooo *o, struct ur_psn epsn, uint32_t from, uint32_t to,
		       uint8_t *sack)
{
	uint32_t at = INDEX(o, ur_psn_add(epsn, 1 + from));

	for (uint32_t i = 0; i * 64 < to - from; i++) {
		uint64_t v = bits_at(o, at, i);

		for (unsigned b = 0; b < 8; b++)
			sack[i * 8 + b] = (uint8_t)(v >> (8 * b));
	}
}

/* Where the part begins that is told next, of a bitmap of more than UR_SACK_BITS. */
static __attribute__((noinline)) uint32_t next_part(struct ur_ooo *o, struct ur_psn epsn,
						    uint32_t bits)
{
	uint32_t newest = bits - UR_SACK_BITS;
	int32_t from = ur_psn_diff(o->told, ur_psn_add(epsn, 1));

	o->newest_told = !o->newest_told;
	if (o->newest_told)
		return newest;
	if (from < 0 || (uint32_t)from >= newest)
		from = 0;
	o->told = ur_psn_add(epsn, 1 + (uint32_t)from + UR_SACK_BITS);
	return (uint32_t)from;
}

struct ur_ooo_part ur_ooo_sack(struct ur_ooo *o, struct ur_psn epsn, bool lowest)
{
	uint32_t bits = o->deferred_cnt ? (uint32_t)ur_psn_diff(o->top, epsn) : 0, from = 0,
		 to = bits;
	uint8_t *sack = o->sack;

	if (__builtin_expect(bits > UR_SACK_BITS, 0)) {
		from = lowest ? 0 : next_part(o, epsn, bits);
		to = from + UR_SACK_BITS;
		if (lowest)
			sack += UR_SACK_BYTES;
	}
	write_bits(o, epsn, from, to, sack);
	return (struct ur_ooo_part){sack, (to - from + 31) / 32 * 4, from, to < bits};
}

bool ur_ooo_hold_room(struct ur_ooo_pool *p, struct ur_ooo *o)
{
	const size_t used = HELD_WORDS * sizeof(uint64_t);
	unsigned cap = o->held_cap;
	uint64_t *list;

	if (o->held_cnt < o->held_cap)
		return true;
	list = larger_list(p, o->held_cnt + 1u, UR_OOO_HELD, sizeof(*o->held), used, &cap);
	if (!list)
		return false;
	if (o->held_used) {
		memcpy(list, o->held_used, used + o->held_cap * sizeof(*o->held));
		ur_slabs_give(p->slabs, o->held_used);
	} else {
		memset(list, 0, used);
	}
	o->held_used = list;
	o->held = (struct ur_ooo_held *)(void *)(list + HELD_WORDS);
	o->held_cap = (uint16_t)cap;
	return true;
}

uint16_t ur_ooo_hold(struct ur_ooo *o, const struct ur_ooo_held *h)
{
	unsigned w = 0, i;

	UR_ASSERT(o->held_cnt < o->held_cap);
	while (!~o->held_used[w])
		w++;
	i = (unsigned)__builtin_ctzll(~o->held_used[w]);
	o->held_used[w] |= UINT64_C(1) << i;
	o->held_cnt++;
	o->slot_cnt += h->slot != NULL;
	o->held[w * 64 + i] = *h;
	return (uint16_t)(w * 64 + i);
}

void ur_ooo_release(struct ur_ooo *o, uint16_t held)
{
	o->slot_cnt -= o->held[held].slot != NULL;
	o->held_used[held >> 6] &= ~(UINT64_C(1) << (held & 63));
	o->held_cnt--;
}

/* ---- memory ---- */

/* The first range that starts at `lo` or later. It has no branches, because they could not be predicted. */
static unsigned range_from(const struct ur_ooo *o, uintptr_t lo)
{
	const struct ur_ooo_range *r = o->range;
	unsigned cnt = o->range_cnt, half;

	if (!cnt)
		return 0;
	for (; (half = cnt / 2); cnt -= half)
		r += (r[half - 1].lo < lo) * half;
	return (unsigned)(r - o->range) + (r->lo < lo);
}

/* Range i has changed, or another was there: those behind it reach as far as before, or not. */
static void set_reach(struct ur_ooo *o, unsigned i)
{
	for (unsigned first = i; i < o->range_cnt; i++) {
		struct ur_ooo_range *r = &o->range[i];
		uintptr_t reach = i && r[-1].reach > r->hi ? r[-1].reach : r->hi;

		if (i > first && r->reach == reach)
			return;
		r->reach = reach;
	}
}

/* Sets the bits [from, to), from < to. */
static void set_bits(uint64_t *map, uint32_t from, uint32_t to)
{
	uint32_t w = from >> 6, last = (to - 1) >> 6;
	uint64_t head = ~UINT64_C(0) << (from & 63), tail = ~UINT64_C(0) >> (63 - ((to - 1) & 63));

	if (w == last) {
		map[w] |= head & tail;
		return;
	}
	map[w++] |= head;
	while (w < last)
		map[w++] = ~UINT64_C(0);
	map[last] |= tail;
}

/* The first bit of [from, len) that is `value`; len when there is none. */
static uint32_t find_bit(const uint64_t *map, uint32_t from, uint32_t len, bool value)
{
	while (from < len) {
		uint64_t v = (value ? map[from >> 6] : ~map[from >> 6]) >> (from & 63);

		if (v) {
			from += (uint32_t)__builtin_ctzll(v);
			return from < len ? from : len;
		}
		from = (from | 63) + 1;
	}
	return len;
}

/*
 * EXT-OOO-CLIP-01. The bytes that younger packets wrote are marked in a map of the packet, one bit
 * a byte, so that the work is bounded however many ranges a hostile peer lays into one packet.
 */
bool ur_ooo_write(const struct ur_ooo *o, struct ur_psn psn, uint8_t *dst, const uint8_t *src,
		  uint32_t len)
{
	uint64_t taken[UR_OOO_WRITE_MAX / 64];
	uintptr_t lo = (uintptr_t)dst, hi = lo + len;
	bool any = false;

	UR_ASSERT(len <= UR_OOO_WRITE_MAX);
	if (!len || !o->deferred_cnt || ur_psn_lt(o->top, psn))
		return false;
	for (unsigned i = range_from(o, hi); i > 0 && o->range[i - 1].reach > lo; i--) {
		const struct ur_ooo_range *r = &o->range[i - 1];

		if (r->hi <= lo || !ur_psn_lt(psn, r->first))
			continue;
		if (!any)
			memset(taken, 0, (len + 63) / 64 * 8);
		any = true;
		set_bits(taken, r->lo > lo ? (uint32_t)(r->lo - lo) : 0,
			 r->hi < hi ? (uint32_t)(r->hi - lo) : len);
	}
	if (!any)
		return false;
	for (uint32_t at = find_bit(taken, 0, len, false); at < len;) {
		uint32_t end = find_bit(taken, at, len, true);

		memcpy(dst + at, src + at, end - at);
		at = find_bit(taken, end, len, false);
	}
	return true;
}

/* Forgets the ranges that lie before ePSN. */
static void sweep(struct ur_ooo *o, struct ur_psn epsn)
{
	unsigned n = 0, recent = 0;
	uintptr_t reach = 0;

	for (unsigned i = 0; i < o->range_cnt; i++) {
		struct ur_ooo_range r = o->range[i];

		if (ur_psn_lt(r.last, epsn))
			continue;
		if (i == o->recent)
			recent = n;
		if (ur_psn_lt(r.first, epsn))
			r.first = epsn;
		reach = r.hi > reach ? r.hi : reach;
		r.reach = reach;
		o->range[n++] = r;
	}
	o->range_cnt = (uint16_t)n;
	o->recent = (uint16_t)recent;
	o->swept = epsn;
}

/* EXT-OOO-RANGE-02 */
bool ur_ooo_room(struct ur_ooo_pool *p, struct ur_ooo *o, struct ur_psn epsn, unsigned cnt)
{
	struct ur_ooo_range *list;
	unsigned cap = o->range_cap;

	/* Ranges that ePSN has passed are in the way of searches, too. */
	if (__builtin_expect(o->range_cnt + cnt > cap, 0) ||
	    (uint32_t)ur_psn_diff(epsn, o->swept) >= SWEEP_EVERY)
		sweep(o, epsn);
	if (__builtin_expect(o->range_cnt + cnt <= cap, 1))
		return true;
	list = larger_list(p, o->range_cnt + cnt, UR_OOO_RANGES, sizeof(*list), 0, &cap);
	if (!list)
		return false;
	if (o->range) {
		memcpy(list, o->range, o->range_cnt * sizeof(*list));
		ur_slabs_give(p->slabs, o->range);
	}
	o->range = list;
	o->range_cap = (uint16_t)cap;
	return true;
}

/* The packet `psn` continues the range at its end / at its start. */
static bool follows(const struct ur_ooo_range *r, struct ur_psn psn, uintptr_t lo)
{
	return r->hi == lo && (ur_psn_eq(psn, r->last) || ur_psn_eq(psn, ur_psn_add(r->last, 1)));
}

static bool precedes(const struct ur_ooo_range *r, struct ur_psn psn, uintptr_t hi)
{
	return r->lo == hi && (ur_psn_eq(psn, r->first) || ur_psn_eq(ur_psn_add(psn, 1), r->first));
}

/* The range that [lo, ...) of the packet continues, or NULL; `to`: none from there on does. */
static struct ur_ooo_range *find_before(struct ur_ooo *o, struct ur_psn psn, uintptr_t lo,
					unsigned to)
{
	for (unsigned i = to; i > 0 && o->range[i - 1].reach >= lo; i--)
		if (follows(&o->range[i - 1], psn, lo))
			return &o->range[i - 1];
	return NULL;
}

/* The range that continues [..., hi) of the packet, or NULL; `from`: none before it does. */
static struct ur_ooo_range *find_after(struct ur_ooo *o, struct ur_psn psn, uintptr_t hi,
				       unsigned from)
{
	unsigned i = from;

	for (; i < o->range_cnt && o->range[i].lo < hi; i++)
		if (i == from + NEAR)
			i = range_from(o, hi) - 1;
	for (; i < o->range_cnt && o->range[i].lo == hi; i++)
		if (precedes(&o->range[i], psn, hi))
			return &o->range[i];
	return NULL;
}

static void remove_range(struct ur_ooo *o, struct ur_ooo_range *r)
{
	unsigned i = (unsigned)(r - o->range);

	memmove(r, r + 1, (--o->range_cnt - i) * sizeof(*r));
	o->recent -= o->recent > i;
	set_reach(o, i);
}

static void insert_range(struct ur_ooo *o, struct ur_ooo_range r, unsigned i)
{
	memmove(&o->range[i + 1], &o->range[i], (o->range_cnt++ - i) * sizeof(r));
	o->range[i] = r;
	o->recent += o->recent >= i && o->range_cnt > 1;
	set_reach(o, i);
}

/*
 * EXT-OOO-RANGE-03. Drops the ranges that begin within range `at`, end before `hi`, which it is about to reach, and have only older
 * packets: range `at` alone tells what may not be written there. So messages that are written to one place, one after the other,
 * leave one range. Looks at NEAR ranges; returns the next one.
 */
static inline unsigned drop_covered(struct ur_ooo *o, unsigned at, uintptr_t hi)
{
	struct ur_psn first = o->range[at].first;
	unsigned i = at + 1;

	for (unsigned n = 0; n < NEAR && i < o->range_cnt && o->range[i].lo < hi; n++) {
		struct ur_ooo_range *r = &o->range[i];

		if (r->hi <= hi && ur_psn_lt(r->last, first))
			remove_range(o, r);
		else
			i++;
	}
	return i;
}

/* The packet continues the range with the newest packets, and no other begins where it ends. */
static inline bool grow_recent(struct ur_ooo *o, struct ur_psn psn, uintptr_t lo, uintptr_t hi)
{
	struct ur_ooo_range *r;
	unsigned i;

	if (!o->range_cnt)
		return false;
	r = &o->range[o->recent];
	if (!follows(r, psn, lo))
		return false;
	i = drop_covered(o, o->recent, hi);
	if (i < o->range_cnt && o->range[i].lo <= hi)
		return false;
	r->hi = hi;
	r->last = psn;
	set_reach(o, o->recent);
	return true;
}

/* EXT-OOO-RANGE-01. What comes in order behind a gap grows one range without a search. */
void ur_ooo_written(struct ur_ooo *o, struct ur_psn psn, const uint8_t *dst, uint32_t len)
{
	uintptr_t lo = (uintptr_t)dst, hi = lo + len;
	struct ur_ooo_range *before, *after, r = {lo, hi, hi, psn, psn};
	unsigned at;

	UR_ASSERT(len > 0 && o->range_cnt <= o->range_cap);
	if (__builtin_expect(grow_recent(o, psn, lo, hi), 1))
		return;
	at = range_from(o, lo);
	before = o->range_cnt && follows(&o->range[o->recent], psn, lo)
			 ? &o->range[o->recent]
			 : find_before(o, psn, lo, at);
	after = find_after(o, psn, hi, at);
	if (after) {
		r.hi = after->hi;
		r.last = after->last;
		remove_range(o, after);
	}
	if (before) {
		at = (unsigned)(before - o->range);
		before->hi = r.hi;
		before->last = r.last;
		set_reach(o, at);
	} else {
		UR_ASSERT(o->range_cnt < o->range_cap);
		insert_range(o, r, at);
	}
	/* A packet that fills a hole leaves `recent` at the range with the newest packets. */
	if (o->recent >= o->range_cnt || !ur_psn_lt(r.last, o->range[o->recent].last))
		o->recent = (uint16_t)at;
	drop_covered(o, at, o->range[at].hi);
}

/* ---- receives taken from an SRQ ---- */

bool ur_ooo_bound_room(struct ur_ooo_pool *p, struct ur_ooo *o, unsigned cnt)
{
	unsigned cap = o->bound_cap;
	uint8_t *list;

	if (cnt <= cap)
		return true;
	list = larger_list(p, cnt, UR_OOO_BOUND, o->bound_stride, 0, &cap);
	if (!list)
		return false;
	for (unsigned i = 0; i < o->bound_cnt; i++)
		memcpy(list + i * (size_t)o->bound_stride, ur_ooo_bound(o, i), o->bound_stride);
	give_list(p, o->bound);
	o->bound = list;
	o->bound_head = 0;
	o->bound_cap = (uint8_t)cap;
	return true;
}

static void validate_ranges(const struct ur_ooo *o)
{
	uintptr_t reach = 0;

	UR_ASSERT(o->range_cnt <= o->range_cap && o->range_cap <= UR_OOO_RANGES);
	UR_ASSERT(!o->recent || o->recent < o->range_cnt);
	for (unsigned i = 0; i < o->range_cnt; i++) {
		const struct ur_ooo_range *r = &o->range[i];

		reach = r->hi > reach ? r->hi : reach;
		UR_ASSERT(r->lo < r->hi && r->reach == reach && ur_psn_le(r->first, r->last));
		UR_ASSERT(!i || r[-1].lo <= r->lo);
	}
}

void ur_ooo_validate(const struct ur_ooo *o, struct ur_psn epsn)
{
	unsigned noted = 0, held = 0;

	for (unsigned i = 0; i < words_of(o->span); i++)
		noted += ur_popcount(o->deferred[i]);
	for (unsigned i = 0; o->held_cap && i < HELD_WORDS; i++)
		held += ur_popcount(o->held_used[i]);
	UR_ASSERT(noted == o->deferred_cnt && held == o->held_cnt && o->slot_cnt <= held);
	UR_ASSERT(held <= o->held_cap && o->held_cap <= UR_OOO_HELD);
	UR_ASSERT(!noted || (ur_ooo_is_deferred(o, o->top) && ur_psn_lt(epsn, o->top) &&
			     (uint32_t)ur_psn_diff(o->top, epsn) < o->span));
	UR_ASSERT(!ur_ooo_is_deferred(o, epsn));
	UR_ASSERT(o->bound_cnt <= o->bound_cap && o->bound_cap <= UR_OOO_BOUND);
	validate_ranges(o);
}
