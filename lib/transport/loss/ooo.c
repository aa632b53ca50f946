/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/ooo.h"

#include <string.h>

#include "wire/assert.h"
#include "wire/bits.h"

#define SLOT(psn) ((psn).v & (UR_EXT_WINDOW - 1))

_Static_assert(UR_SACK_BYTES * 8 == UR_EXT_WINDOW, "the bitmap spans the window");
_Static_assert(sizeof(struct ur_ooo) % 16 == 0, "receives behind it are aligned");

/* ---- pool ---- */

static size_t stride_of(uint32_t max_sge)
{
	return sizeof(struct ur_rwqe) + max_sge * sizeof(struct ur_sge);
}

static size_t context_bytes(uint32_t max_sge)
{
	return ur_align64(sizeof(struct ur_ooo) + UR_OOO_BOUND * stride_of(max_sge));
}

size_t ur_ooo_pool_size(uint32_t cnt, uint32_t max_sge)
{
	return cnt * context_bytes(max_sge);
}

void ur_ooo_pool_init(struct ur_ooo_pool *p, void *memory, uint32_t cnt, uint32_t max_sge)
{
	UR_ASSERT(((uintptr_t)memory & 63) == 0);
	SLIST_INIT(&p->free);
	p->free_cnt = p->cnt = cnt;
	for (uint32_t i = cnt; i-- > 0;) {
		struct ur_ooo *o = (void *)((uint8_t *)memory + (size_t)i * context_bytes(max_sge));

		o->bound_stride = (uint32_t)stride_of(max_sge);
		SLIST_INSERT_HEAD(&p->free, o, link);
	}
}

struct ur_ooo *ur_ooo_take(struct ur_ooo_pool *p)
{
	struct ur_ooo *o;

	if (!p->free_cnt)
		return NULL;
	o = SLIST_FIRST(&p->free);
	SLIST_REMOVE_HEAD(&p->free, link);
	p->free_cnt--;
	o->deferred_cnt = o->held_cnt = o->slot_cnt = o->range_cnt = o->recent = 0;
	o->bound_head = o->bound_cnt = 0;
	o->top = ur_psn(0);
	memset(o->deferred, 0, sizeof(o->deferred));
	memset(o->held_used, 0, sizeof(o->held_used));
	return o;
}

void ur_ooo_give(struct ur_ooo_pool *p, struct ur_ooo *o)
{
	UR_ASSERT(p->free_cnt < p->cnt);
	SLIST_INSERT_HEAD(&p->free, o, link);
	p->free_cnt++;
}

/* ---- notes ---- */

void ur_ooo_defer(struct ur_ooo *o, struct ur_psn psn, const struct ur_ooo_deferred *note)
{
	UR_ASSERT(!ur_ooo_is_deferred(o, psn));
	if (!o->deferred_cnt++ || ur_psn_lt(o->top, psn))
		o->top = psn;
	o->deferred[SLOT(psn) >> 6] |= UINT64_C(1) << (SLOT(psn) & 63);
	*ur_ooo_deferred_at(o, psn) = *note;
}

void ur_ooo_forget(struct ur_ooo *o, struct ur_psn psn)
{
	UR_ASSERT(ur_ooo_is_deferred(o, psn));
	o->deferred[SLOT(psn) >> 6] &= ~(UINT64_C(1) << (SLOT(psn) & 63));
	o->deferred_cnt--;
}

/* EXT-OOO-SACK-01 */
uint32_t ur_ooo_sack(struct ur_ooo *o, struct ur_psn epsn)
{
	uint32_t bits = o->deferred_cnt ? (uint32_t)ur_psn_diff(o->top, epsn) : 0;
	uint32_t at = SLOT(ur_psn_add(epsn, 1));
	unsigned shift = at & 63, words = UR_EXT_WINDOW / 64;

	for (uint32_t i = 0; i * 64 < bits; i++) {
		unsigned w = ((at >> 6) + i) % words;
		uint64_t v = o->deferred[w] >> shift;

		if (shift)
			v |= o->deferred[(w + 1) % words] << (64 - shift);
		for (unsigned b = 0; b < 8; b++)
			o->sack[i * 8 + b] = (uint8_t)(v >> (8 * b));
	}
	return (bits + 31) / 32 * 4;
}

uint16_t ur_ooo_hold(struct ur_ooo *o, const struct ur_ooo_held *h)
{
	unsigned w = 0, i;

	UR_ASSERT(o->held_cnt < UR_OOO_HELD);
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
	for (unsigned i = 0; i < o->range_cnt; i++) {
		const struct ur_ooo_range *r = &o->range[i];

		if (r->lo >= hi || r->hi <= lo || !ur_psn_lt(psn, r->first))
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

static void remove_range(struct ur_ooo *o, unsigned i)
{
	o->range[i] = o->range[--o->range_cnt];
	o->recent = 0;
}

/* EXT-OOO-RANGE-02 */
bool ur_ooo_room(struct ur_ooo *o, struct ur_psn epsn, unsigned cnt)
{
	if (__builtin_expect(o->range_cnt + cnt <= UR_OOO_RANGES, 1))
		return true;
	for (unsigned i = 0; i < o->range_cnt;) {
		if (ur_psn_lt(o->range[i].last, epsn))
			remove_range(o, i);
		else
			i++;
	}
	return o->range_cnt + cnt <= UR_OOO_RANGES;
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

/*
 * EXT-OOO-RANGE-01. What comes in order behind a gap grows one range without a search. Everything
 * else searches, and sweeps out what lies before ePSN.
 */
void ur_ooo_written(struct ur_ooo *o, struct ur_psn psn, struct ur_psn epsn, const uint8_t *dst,
		    uint32_t len)
{
	uintptr_t lo = (uintptr_t)dst, hi = lo + len;
	unsigned before = UR_OOO_RANGES, after = UR_OOO_RANGES;
	struct ur_ooo_range *r = &o->range[o->recent];

	UR_ASSERT(len > 0);
	if (o->range_cnt && ur_psn_lt(o->top, psn) && follows(r, psn, lo)) {
		r->hi = hi;
		r->last = psn;
		return;
	}
	for (unsigned i = 0; i < o->range_cnt;) {
		r = &o->range[i];
		if (ur_psn_lt(r->last, epsn)) {
			remove_range(o, i);
			continue;
		}
		if (follows(r, psn, lo))
			before = i;
		else if (precedes(r, psn, hi))
			after = i;
		i++;
	}
	if (before != UR_OOO_RANGES) {
		r = &o->range[before];
		r->hi = hi;
		r->last = psn;
		o->recent = (uint16_t)before;
		if (after == UR_OOO_RANGES)
			return;
		r->hi = o->range[after].hi;
		r->last = o->range[after].last;
		remove_range(o, after);
	} else if (after != UR_OOO_RANGES) {
		r = &o->range[after];
		r->lo = lo;
		r->first = psn;
		o->recent = (uint16_t)after;
	} else {
		UR_ASSERT(o->range_cnt < UR_OOO_RANGES);
		o->recent = o->range_cnt++;
		o->range[o->recent] = (struct ur_ooo_range){lo, hi, psn, psn};
	}
}

void ur_ooo_validate(const struct ur_ooo *o, struct ur_psn epsn)
{
	unsigned noted = 0, held = 0;

	for (unsigned i = 0; i < UR_EXT_WINDOW / 64; i++)
		noted += ur_popcount(o->deferred[i]);
	for (unsigned i = 0; i < UR_OOO_HELD / 64; i++)
		held += ur_popcount(o->held_used[i]);
	UR_ASSERT(noted == o->deferred_cnt && held == o->held_cnt && o->slot_cnt <= held);
	UR_ASSERT(!noted || (ur_ooo_is_deferred(o, o->top) && ur_psn_lt(epsn, o->top) &&
			     ur_psn_diff(o->top, epsn) < UR_EXT_WINDOW));
	UR_ASSERT(!ur_ooo_is_deferred(o, epsn));
	UR_ASSERT(o->bound_cnt <= UR_OOO_BOUND && o->range_cnt <= UR_OOO_RANGES);
	UR_ASSERT(!o->recent || o->recent < o->range_cnt);
	for (unsigned i = 0; i < o->range_cnt; i++)
		UR_ASSERT(o->range[i].lo < o->range[i].hi &&
			  ur_psn_le(o->range[i].first, o->range[i].last));
}
