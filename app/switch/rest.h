/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_REST_H
#define SWITCH_REST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * SWITCH-REST-01: when the thread that forwards gives up its CPU (docs/design/switch.md). Pure: it decides, the caller acts.
 *
 * Two states. Alone on its CPU, as far as is known: it polls, then yields, then sleeps. Shared: a yield took long, or the thread, busy,
 * got no CPU for a while, so another process must have run. For a second it is assumed to want this CPU. Then the thread sleeps almost
 * as soon as there is nothing to do, and is to be urgent, so that a frame interrupts the other process. It lingers for what follows a frame at once, as the ACK of the message before: that would
 * interrupt once more, and two processes that answer each other get both together. It pays for the time that it is
 * urgent with time asleep, so whatever comes, the other process has a twentieth of the CPU; without credit it competes as others do.
 *
 * Times are in ns and do not go back. Thread class: one thread.
 */
#define REST_POLL	   16	   /* rounds without a frame, alone, before it yields */
#define REST_YIELD_NS	   300000  /* time without a frame, alone, before it sleeps */
#define REST_LONG_YIELD_NS 200000  /* a yield that takes longer: the CPU is shared */
#define REST_SPAN_NS	   1000000 /* of rounds with frames, after which the CPU time is looked at */
#define REST_LOST_NS	   500000  /* without the CPU in that: likewise */
#define REST_LINGER_NS	   1500	   /* time without a frame, shared, before it sleeps */
#define REST_SHARED_NS	   1000000000 /* for how long that is assumed */
#define REST_CREDIT_RATIO  19	      /* ns that it may be urgent for each ns asleep */
#define REST_CREDIT_MAX_NS 1000000    /* the most that it saves for a burst */
#define REST_CREDIT_MIN_NS 100000     /* that it needs to become urgent */

enum rest_what {
	REST_NOT, /* another round follows at once */
	REST_YIELD,
	REST_SLEEP
};

struct rest {
	bool polls;	     /* never rests */
	bool urgent;	     /* is to have a real-time priority now */
	unsigned idle;	     /* rounds without a frame */
	uint64_t busy_ns;    /* time of the last one with a frame */
	uint64_t shared_ns;  /* until then the CPU is taken to be shared */
	uint64_t credit_ns;  /* for which it may be urgent, <= REST_CREDIT_MAX_NS */
	uint64_t charged_ns; /* until then the credit has been charged */
};

void rest_begin(struct rest *r, bool polls, uint64_t now_ns);
/* After a round that moved frames. */
void rest_busy(struct rest *r, uint64_t now_ns);
/*
 * After rounds with frames, without a yield or a sleep, that took `took_ns`, of which the thread had the CPU for `cpu_ns`. One that always
 * has frames never yields.
 */
void rest_ran(struct rest *r, uint64_t took_ns, uint64_t cpu_ns, uint64_t now_ns);
/* After one that did not. */
enum rest_what rest_idle(struct rest *r, uint64_t now_ns);
/* After a yield that began at `from_ns`. */
void rest_yielded(struct rest *r, uint64_t from_ns, uint64_t now_ns);
/* After a sleep, which was from `from_ns` on. */
void rest_slept(struct rest *r, uint64_t from_ns, uint64_t now_ns);

#endif
