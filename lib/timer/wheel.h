/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TIMER_WHEEL_H
#define UR_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "wire/assert.h"

/*
 * A hierarchical timing wheel. Setting, cancelling and expiring a timer take constant time for any
 * number of timers. A timer never fires before its deadline, and at most one tick after it if
 * ur_wheel_expire() is called in time. Time is in nanoseconds and never goes back.
 *
 * Most timers of a worker are deadlines some round trips ahead, set in the order in which they expire, and cancelled before. So
 * what is set for no earlier than the last of those waits in a list, in order, and not in a slot.
 *
 * Timers are embedded in the caller's objects; `kind` and container_of() lead from an expired timer
 * to its object. An armed timer must be cancelled before its object is freed. Nothing is allocated.
 *
 * Thread class: one thread (the worker that owns the wheel).
 */
#define UR_WHEEL_TICK_SHIFT 10 /* one tick is 1.024 us */
#define UR_WHEEL_SLOT_BITS  6  /* 64 slots per level, one bitmap word */
#define UR_WHEEL_LEVELS	    6 /* range 2^(10 + 6 * 6) ns, about 19 hours; see wheel.c for later ones */
#define UR_WHEEL_NEAR_NS    (UINT64_C(1) << 20) /* what is further ahead waits in a slot */
#define UR_NEVER	    UINT64_MAX

struct ur_timer {
	uint64_t deadline_ns;
	bool armed;
	uint8_t kind;	     /* for the owner's use: says what expired */
	uint8_t level, slot; /* position in the wheel; valid while armed */
	union {
		LIST_ENTRY(ur_timer) link;
		TAILQ_ENTRY(ur_timer) in_order;
	};
};

LIST_HEAD(ur_timer_list, ur_timer);
TAILQ_HEAD(ur_timer_queue, ur_timer);

struct ur_wheel {
	uint64_t tick;			/* all timers of earlier ticks have fired */
	uint64_t idle_until;		/* before this tick there is nothing to do */
	uint64_t slots_until;		/* before this tick no occupied slot begins */
	uint64_t used[UR_WHEEL_LEVELS]; /* bit s: slot s of the level is not empty */
	struct ur_timer_list slots[UR_WHEEL_LEVELS][1 << UR_WHEEL_SLOT_BITS];
	struct ur_timer_queue near; /* by deadline */
	struct ur_timer_list due;   /* expired, but not yet returned by ur_wheel_expire() */
	uint32_t armed_cnt;
};

void ur_wheel_init(struct ur_wheel *w, uint64_t now_ns);

/*
 * Arms a timer, or changes the deadline of an armed one. With a deadline in the past it fires at
 * the next ur_wheel_expire().
 */
void ur_timer_set(struct ur_wheel *w, struct ur_timer *t, uint64_t deadline_ns);

/* Disarms a timer. No effect if it is not armed. */
void ur_timer_cancel(struct ur_wheel *w, struct ur_timer *t);

/* The same as ur_wheel_expire(). */
struct ur_timer *ur_wheel_look(struct ur_wheel *w, uint64_t now_ns);

/*
 * Returns an expired timer, disarmed, or NULL if there is none. A timer expires at its deadline,
 * rounded up to a tick. Call this until it returns NULL; timers may be set and cancelled in
 * between. The order of the timers is unspecified.
 */
static inline struct ur_timer *ur_wheel_expire(struct ur_wheel *w, uint64_t now_ns)
{
	uint64_t now = now_ns >> UR_WHEEL_TICK_SHIFT;

	UR_ASSERT(now >= w->tick);
	if (now >= w->idle_until)
		return ur_wheel_look(w, now_ns);
	w->tick = now;
	return NULL;
}

/* The time of the last ur_wheel_expire(), rounded down to a tick. */
static inline uint64_t ur_wheel_time(const struct ur_wheel *w)
{
	return w->tick << UR_WHEEL_TICK_SHIFT;
}

/*
 * The time, in nanoseconds, before which ur_wheel_expire() has nothing to do: a tick at which a
 * timer fires, or at which a slot of a higher level must be opened. In the latter case
 * ur_wheel_expire() may return NULL, and the next time is later. The result is less than one tick
 * after the earliest deadline, and in the past if a timer is due already. UR_NEVER: no timer is
 * armed.
 */
uint64_t ur_wheel_next(const struct ur_wheel *w);

#endif
