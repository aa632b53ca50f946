/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TIMER_WHEEL_H
#define UR_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

/*
 * A hierarchical timing wheel: set, cancel and expire in constant time, whatever the number of
 * timers. A timer never fires before its deadline and at most one tick after it (given that expire
 * is called). Time is in nanoseconds and never goes back.
 *
 * Thread class: one thread (the worker that owns it). No allocation: timers are embedded in their
 * owners, who find themselves again by container_of and `kind`.
 */
#define UR_WHEEL_TICK_SHIFT 10 /* one tick is 1.024 us */
#define UR_WHEEL_SLOT_BITS  6  /* 64 slots a level: one bitmap word tells which are in use */
#define UR_WHEEL_LEVELS	    6  /* 2^(10 + 6 * 6) ns, about 19 hours; later ones wait in the last */
#define UR_NEVER	    UINT64_MAX

struct ur_timer {
	uint64_t deadline_ns;
	bool armed;
	uint8_t kind;	     /* the owner's: tells what expired */
	uint8_t level, slot; /* where it waits; valid while armed */
	LIST_ENTRY(ur_timer) link;
};

LIST_HEAD(ur_timer_list, ur_timer);

struct ur_wheel {
	uint64_t tick;			/* every timer of ticks before this one has fired */
	uint64_t used[UR_WHEEL_LEVELS]; /* bit s: slot s of the level is not empty */
	struct ur_timer_list slots[UR_WHEEL_LEVELS][1 << UR_WHEEL_SLOT_BITS];
	struct ur_timer_list due; /* found expired, not handed out yet */
	uint32_t armed_cnt;
};

void ur_wheel_init(struct ur_wheel *w, uint64_t now_ns);

/* Arms the timer, or moves one that is armed. A deadline in the past fires at the next expire. */
void ur_timer_set(struct ur_wheel *w, struct ur_timer *t, uint64_t deadline_ns);

/* Disarms; harmless when it is not armed. */
void ur_timer_cancel(struct ur_wheel *w, struct ur_timer *t);

/*
 * The next timer that fires at or before now_ns, disarmed, or NULL when there is none; a timer
 * fires at its deadline rounded up to a tick. Timers of one call come in no particular order. Call
 * it until NULL; the owner may set and cancel timers in between.
 */
struct ur_timer *ur_wheel_expire(struct ur_wheel *w, uint64_t now_ns);

/*
 * The time before which expire has nothing to do: a multiple of a tick at which a timer fires, or a
 * slot of a higher level is to be opened (then an expire at that time may return NULL, but the
 * next time is a later one). Not after any deadline by a tick or more; in the past when something
 * is due already; UR_NEVER when no timer is armed.
 */
uint64_t ur_wheel_next(const struct ur_wheel *w);

#endif
