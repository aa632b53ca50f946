/* SPDX-License-Identifier: BSD-3-Clause */
#include "timer/wheel.h"

#include "wire/assert.h"

#define SLOT_CNT  (1u << UR_WHEEL_SLOT_BITS)
#define SLOT_MASK (SLOT_CNT - 1)
#define TOP	  (UR_WHEEL_LEVELS - 1)
#define DUE	  UR_WHEEL_LEVELS /* the "levels" of what is in no slot */
#define NEAR	  (UR_WHEEL_LEVELS + 1)

/* A tick has 54 bits, so this value is never reached. */
#define NO_TICK UINT64_MAX

/*
 * Placement of timers. A tick is a number of 6-bit digits; level 0 is the lowest digit. A timer is
 * at the level of the highest digit in which its tick differs from w->tick, in the slot of that
 * digit. Below the top level, every occupied slot is therefore ahead of the digit of w->tick, and
 * the lowest level in use holds the earliest timers. The top level is circular: its slots are 1 to
 * 63 ahead. Timers beyond that range are in the last slot and are placed again when it opens.
 */
static unsigned int level_shift(unsigned int level)
{
	return level * UR_WHEEL_SLOT_BITS;
}

/* TIMER-FIRE-01. Rounded up, so that a timer that fires at the start of the tick is not early. */
static uint64_t fire_tick(const struct ur_timer *t)
{
	uint64_t part = t->deadline_ns & ((1u << UR_WHEEL_TICK_SHIFT) - 1);

	return (t->deadline_ns >> UR_WHEEL_TICK_SHIFT) + (part != 0);
}

static void look_at(struct ur_wheel *w, uint64_t tick)
{
	if (tick < w->idle_until)
		w->idle_until = tick;
}

static void look_at_slots(struct ur_wheel *w, uint64_t tick)
{
	if (tick < w->slots_until)
		w->slots_until = tick;
	look_at(w, tick);
}

static void place(struct ur_wheel *w, struct ur_timer *t)
{
	uint64_t at = fire_tick(t), digit;
	unsigned int level, slot;

	/* TIMER-FIRE-02 */
	if (at <= w->tick) {
		LIST_INSERT_HEAD(&w->due, t, link);
		t->level = DUE;
		w->idle_until = 0;
		return;
	}
	level = (63 - (unsigned int)__builtin_clzll(at ^ w->tick)) / UR_WHEEL_SLOT_BITS;
	if (level > TOP)
		level = TOP;
	digit = at >> level_shift(level);
	if (level == TOP) {
		uint64_t here = w->tick >> level_shift(TOP);

		/* TIMER-FIRE-03 */
		if (digit - here > SLOT_MASK)
			digit = here + SLOT_MASK;
	}
	slot = digit & SLOT_MASK;
	t->level = (uint8_t)level;
	t->slot = (uint8_t)slot;
	LIST_INSERT_HEAD(&w->slots[level][slot], t, link);
	w->used[level] |= UINT64_C(1) << slot;
	look_at_slots(w, digit << level_shift(level));
}

/* TIMER-ORDER-01. False: it is far ahead, or one that is to expire later waits there. */
static bool append(struct ur_wheel *w, struct ur_timer *t)
{
	const struct ur_timer *last = TAILQ_LAST(&w->near, ur_timer_queue);

	if (t->deadline_ns - ur_wheel_time(w) >= UR_WHEEL_NEAR_NS ||
	    (last && t->deadline_ns < last->deadline_ns))
		return false;
	TAILQ_INSERT_TAIL(&w->near, t, in_order);
	t->level = NEAR;
	if (!last)
		look_at(w, fire_tick(t));
	return true;
}

static void unplace(struct ur_wheel *w, struct ur_timer *t)
{
	if (t->level == NEAR) {
		TAILQ_REMOVE(&w->near, t, in_order);
		return;
	}
	LIST_REMOVE(t, link);
	if (t->level != DUE && LIST_EMPTY(&w->slots[t->level][t->slot]))
		w->used[t->level] &= ~(UINT64_C(1) << t->slot);
}

/* The tick at which the first occupied slot begins, and its position; NO_TICK if all are empty. */
static uint64_t first_slot(const struct ur_wheel *w, unsigned int *level, unsigned int *slot)
{
	for (unsigned int l = 0; l < UR_WHEEL_LEVELS; l++) {
		uint64_t here = w->tick >> level_shift(l), used = w->used[l];
		unsigned int from = here & SLOT_MASK, ahead;

		if (!used)
			continue;
		if (from)
			used = used >> from | used << (SLOT_CNT - from);
		ahead = (unsigned int)__builtin_ctzll(used);
		*level = l;
		*slot = (from + ahead) & SLOT_MASK;
		return (here + ahead) << level_shift(l);
	}
	return NO_TICK;
}

/* Moves the timers of a slot that begins now to lower levels or to the list of due timers. */
static void open_slot(struct ur_wheel *w, unsigned int level, unsigned int slot)
{
	struct ur_timer_list *list = &w->slots[level][slot];
	struct ur_timer *t;

	w->used[level] &= ~(UINT64_C(1) << slot);
	while ((t = LIST_FIRST(list))) {
		LIST_REMOVE(t, link);
		place(w, t);
	}
}

/* Opens the first occupied slot if it has begun by now. */
static __attribute__((noinline)) void open_first_slot(struct ur_wheel *w, uint64_t now)
{
	unsigned int level, slot;
	uint64_t begin = first_slot(w, &level, &slot);

	if (begin > now) {
		w->slots_until = begin;
		return;
	}
	w->tick = begin;
	open_slot(w, level, slot);
}

void ur_wheel_init(struct ur_wheel *w, uint64_t now_ns)
{
	w->tick = now_ns >> UR_WHEEL_TICK_SHIFT;
	w->armed_cnt = 0;
	w->idle_until = w->slots_until = NO_TICK;
	LIST_INIT(&w->due);
	TAILQ_INIT(&w->near);
	for (unsigned int l = 0; l < UR_WHEEL_LEVELS; l++) {
		w->used[l] = 0;
		for (unsigned int s = 0; s < SLOT_CNT; s++)
			LIST_INIT(&w->slots[l][s]);
	}
}

void ur_timer_set(struct ur_wheel *w, struct ur_timer *t, uint64_t deadline_ns)
{
	if (t->armed) {
		unplace(w, t);
	} else {
		t->armed = true;
		w->armed_cnt++;
	}
	t->deadline_ns = deadline_ns;
	if (!append(w, t))
		place(w, t);
}

/* TIMER-CANCEL-01 */
void ur_timer_cancel(struct ur_wheel *w, struct ur_timer *t)
{
	if (!t->armed)
		return;
	unplace(w, t);
	t->armed = false;
	w->armed_cnt--;
}

/* The tick at which the first of `near` fires. */
static uint64_t first_near(const struct ur_wheel *w)
{
	const struct ur_timer *t = TAILQ_FIRST(&w->near);

	return t ? fire_tick(t) : NO_TICK;
}

/* The first timer that has expired, which stays where it is. */
static struct ur_timer *find_expired(struct ur_wheel *w, uint64_t now)
{
	struct ur_timer *t;
	uint64_t near;

	while (!(t = LIST_FIRST(&w->due)) && now >= w->slots_until)
		open_first_slot(w, now);
	if (t)
		return t;
	w->tick = now;
	near = first_near(w);
	if (near <= now)
		return TAILQ_FIRST(&w->near);
	w->idle_until = near < w->slots_until ? near : w->slots_until;
	return NULL;
}

struct ur_timer *ur_wheel_look(struct ur_wheel *w, uint64_t now_ns)
{
	struct ur_timer *t = find_expired(w, now_ns >> UR_WHEEL_TICK_SHIFT);

	if (t)
		ur_timer_cancel(w, t);
	return t;
}

/* TIMER-NEXT-01 */
uint64_t ur_wheel_next(const struct ur_wheel *w)
{
	uint64_t tick = w->tick, near = first_near(w);
	unsigned int level, slot;

	if (LIST_EMPTY(&w->due))
		tick = first_slot(w, &level, &slot);
	tick = near < tick ? near : tick;
	return tick > UR_NEVER >> UR_WHEEL_TICK_SHIFT ? UR_NEVER : tick << UR_WHEEL_TICK_SHIFT;
}
