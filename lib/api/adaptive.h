/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_ADAPTIVE_H
#define UR_API_ADAPTIVE_H

#include <poll.h>
#include <signal.h>

#include "dpdk/wake.h"
#include "dpdk/worker.h"
#include "edge/rest.h"

struct ur_device;

#define UR_WAIT_SLEEP_NS                                                                           \
	50000 /* of a thread of the application that nothing wakes and that has to make rounds */

/*
 * The rounds of an inline endpoint that no call of the application makes, and the sleeps between them (edge/rest.h). The progress thread
 * makes them, or a thread of the application that waits in the library does so in its place (EDGE-WAIT-01, wait.h).
 *
 * Thread class: the thread that does this.
 */

/* What the thread knows. */
struct ur_adaptive {
	struct ur_device *dev;
	struct ur_wake wake; /* of the port */
	struct ur_rest rest;
	struct ur_rest_worker seen[UR_WORKERS_MAX];
	uint64_t
		due_ns; /* when the last sleep was to end; UINT64_MAX: something else could end it */
	bool woken;	/* the port has ended the last sleep */
	bool claims;	/* the same; a waiter has made no round since */
	unsigned futile; /* times in a row that it did, and there was no packet */
	bool in_doubt;	 /* EDGE-REST-07: one of the workers, at the last look */
	bool in_way;	 /* EDGE-REST-08: the same */
	bool called;	 /* EDGE-REST-09: the application has ended the last sleep */
	uint32_t calls;
	/* Of a thread that waits: its descriptors, the last one is call_fd, with room for UR_WAKE_FDS_MAX behind them. NULL: the progress thread. */
	struct pollfd *own;
	unsigned own_cnt;
	bool lease_sleeps; /* uroced is to wake it */
	unsigned quiet;	   /* rounds without a packet since it looked at them */
	bool ready;	   /* one of them is */
	bool interrupted;  /* by a signal */
	/* How the thread sleeps. In between it can neither be cancelled nor interrupted. */
	int cancel;
	const sigset_t *mask; /* NULL: as it is */
};

/* Of the progress thread. */
void ur_adaptive_init(struct ur_adaptive *a, struct ur_device *dev);
/* Of a thread that waits: then the caller sets what belongs to it. */
void ur_adaptive_init_waiter(struct ur_adaptive *a, struct ur_device *dev);

/* Makes the rounds that are due, and then sleeps, unless packets come; `most_ns` at most. A thread that waits comes back as soon as it is ready. */
void ur_adaptive_step(struct ur_adaptive *a, uint64_t most_ns);

/* The progress thread, in place of a step while a thread that waits makes the rounds. */
void ur_adaptive_stand_aside(struct ur_adaptive *a);

/* The waiter was cancelled in its sleep. */
void ur_adaptive_end_sleep(struct ur_adaptive *a);

/* Whether a thread that waits for a packet may spin, and not only sleep: not on a single CPU. */
bool ur_adaptive_may_spin(void);

#endif
