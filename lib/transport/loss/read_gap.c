/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/read_gap.h"

#include <string.h>

#include "timer/wheel.h"
#include "wire/assert.h"
#include "wire/bits.h"

#define W UR_READ_GAP_WINDOW

static size_t stride(void)
{
	return ur_align64(sizeof(struct ur_read_gap));
}

size_t ur_read_gap_pool_size(uint32_t cnt)
{
	return cnt * stride();
}

void ur_read_gap_pool_init(struct ur_read_gap_pool *p, void *memory, uint32_t cnt)
{
	uint8_t *at = memory;

	*p = (struct ur_read_gap_pool){.free_cnt = cnt, .cnt = cnt};
	for (uint32_t i = 0; i < cnt; i++, at += stride())
		SLIST_INSERT_HEAD(&p->free, (struct ur_read_gap *)(void *)at, link);
}

struct ur_read_gap *ur_read_gap_take(struct ur_read_gap_pool *p, struct ur_psn una, uint64_t now_ns)
{
	struct ur_read_gap *g = SLIST_FIRST(&p->free);

	if (!g)
		return NULL;
	SLIST_REMOVE_HEAD(&p->free, link);
	p->free_cnt--;
	*g = (struct ur_read_gap){
		.una = una, .since_ns = now_ns, .deadline_ns = UR_NEVER, .sure = una, .run = una};
	return g;
}

void ur_read_gap_give(struct ur_read_gap_pool *p, struct ur_read_gap *g)
{
	SLIST_INSERT_HEAD(&p->free, g, link);
	p->free_cnt++;
}

static inline unsigned place_of(struct ur_psn psn)
{
	return psn.v & (W - 1);
}

bool ur_read_gap_has(const struct ur_read_gap *g, struct ur_psn psn)
{
	return g->arrived[place_of(psn) / 64] >> (place_of(psn) % 64) & 1;
}

void ur_read_gap_on_response(struct ur_read_gap *g, struct ur_psn psn)
{
	UR_ASSERT(ur_psn_in(psn, g->una, ur_psn_add(g->una, W)));
	g->arrived[place_of(psn) / 64] |= UINT64_C(1) << place_of(psn) % 64;
	g->cnt++;
}

bool ur_read_gap_believes(struct ur_read_gap *g, struct ur_psn psn, bool near_sure, bool near_run,
			  uint32_t many)
{
	struct ur_psn next = ur_psn_add(psn, 1);

	if (!near_sure) {
		g->run = next;
		g->run_cnt = near_run ? g->run_cnt + 1 : 1;
		if (g->run_cnt < many)
			return false;
	}
	if (ur_psn_lt(g->sure, next))
		g->sure = next;
	return true;
}

/* The first PSN of [from, end) whose bit, xored with `flip`, is set. */
static struct ur_psn find(const struct ur_read_gap *g, struct ur_psn from, struct ur_psn end,
			  uint64_t flip)
{
	while (ur_psn_lt(from, end)) {
		unsigned bit = place_of(from) % 64;
		uint64_t bits = (g->arrived[place_of(from) / 64] ^ flip) >> bit;

		if (bits) {
			from = ur_psn_add(from, (uint32_t)__builtin_ctzll(bits));
			break;
		}
		from = ur_psn_add(from, 64 - bit);
	}
	return ur_psn_lt(from, end) ? from : end;
}

struct ur_psn ur_read_gap_missing(const struct ur_read_gap *g, struct ur_psn from,
				  struct ur_psn end)
{
	return find(g, from, end, UINT64_MAX);
}

struct ur_psn ur_read_gap_present(const struct ur_read_gap *g, struct ur_psn from,
				  struct ur_psn end)
{
	return find(g, from, end, 0);
}

/* Clears the bits of [from, end), at most W of them. */
static void forget(struct ur_read_gap *g, struct ur_psn from, struct ur_psn end)
{
	while (g->cnt && ur_psn_lt((from = ur_read_gap_present(g, from, end)), end)) {
		g->arrived[place_of(from) / 64] &= ~(UINT64_C(1) << place_of(from) % 64);
		g->cnt--;
	}
}

void ur_read_gap_advance(struct ur_read_gap *g, struct ur_psn una, struct ur_reo_window *reo_window,
			 uint64_t now_ns)
{
	struct ur_psn end = ur_psn_diff(una, g->una) > W ? ur_psn_add(g->una, W) : una;

	forget(g, g->una, end);
	g->una = una;
	if (ur_psn_lt(g->sure, una))
		g->sure = una;
	/* What was asked for again comes piece by piece. */
	if (g->asked && ur_psn_lt(una, g->asked_end)) {
		g->later = 0;
		return;
	}
	if (g->asked)
		ur_reo_window_narrow(reo_window);
	else
		ur_reo_window_widen(reo_window, g->later, now_ns - g->since_ns);
	g->asked = false;
	g->later = g->cnt;
	g->since_ns = now_ns;
	g->deadline_ns = now_ns + ur_reo_window_ns(reo_window);
}

bool ur_read_gap_judge(struct ur_read_gap *g, struct ur_psn psn,
		       const struct ur_reo_window *reo_window, uint64_t again_ns, uint64_t now_ns)
{
	bool over;

	if (g->asked) {
		bool inside = !ur_psn_eq(psn, g->una) && ur_psn_lt(psn, g->asked_end);

		/* What the answer leaves out is missing, and the answer if what was asked later
		 * comes. */
		if (inside || ur_psn_le(g->asked_max, psn))
			g->later++;
		if (inside)
			g->deadline_ns = now_ns + again_ns;
		over = ur_reo_window_is_over(reo_window, g->later) || now_ns >= g->deadline_ns;
	} else {
		g->later++;
		g->deadline_ns = g->since_ns + ur_reo_window_ns(reo_window);
		over = ur_reo_window_is_over(reo_window, g->later) || now_ns >= g->deadline_ns;
	}
	if (over)
		g->deadline_ns = now_ns + again_ns;
	return over;
}

void ur_read_gap_on_reask(struct ur_read_gap *g, struct ur_psn end, struct ur_psn max,
			  uint64_t again_ns, uint64_t now_ns)
{
	g->asked = true;
	g->asked_end = end;
	g->asked_max = max;
	g->later = 0;
	g->deadline_ns = now_ns + again_ns;
}
