/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include "api/adaptive.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "api/device.h"
#include "api/lease.h"
#include "api/wait.h"
#include "thread/thread.h"

#define LOOK_ROUNDS  16	  /* without a packet, between two looks at a waiter's descriptors */
#define FUTILE_WAKES 3	  /* in a row: then it does not sleep at the port */
#define POLLS_NS     5000 /* after its last round, a thread may be about to make the next one */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool ur_adaptive_may_spin(void)
{
	cpu_set_t cpus;

	ur_eal_cpus(&cpus);
	return CPU_COUNT(&cpus) > 1;
}

void ur_adaptive_init(struct ur_adaptive *a, struct ur_device *dev)
{
	*a = (struct ur_adaptive){.dev = dev,
				  .wake = dev->wake,
				  .due_ns = UINT64_MAX,
				  .cancel = PTHREAD_CANCEL_DISABLE};
	ur_rest_init(&a->rest, !ur_adaptive_may_spin());
}

/* What the thread has done so far was the application's, which is absent from now on. */
void ur_adaptive_init_waiter(struct ur_adaptive *a, struct ur_device *dev)
{
	ur_adaptive_init(a, dev);
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_rest_leave(&a->seen[i], ur_worker_last_ns(dev->workers[i]));
}

/* ---- rounds ---- */

/*
 * Makes a round of each worker that the application leaves alone, at a look that was due at `due_ns`. Returns which: bit i: worker i. EDGE-REST-06: ACKs wait only for an
 * application that was here.
 */
static uint32_t serve(struct ur_adaptive *a, uint64_t due_ns, unsigned *packets)
{
	uint32_t served = 0;

	*packets = 0;
	a->in_doubt = a->in_way = false;
	for (unsigned i = 0; i < a->dev->worker_cnt; i++) {
		struct ur_worker *w = a->dev->workers[i];
		bool in_way;

		/* What has woken a waiter is for it, unless another thread polls: that has it by now. */
		if (a->called || (a->claims && due_ns > ur_worker_last_ns(w) + POLLS_NS))
			ur_rest_leave(&a->seen[i], ur_worker_last_ns(w));
		if (!ur_rest_is_left_alone(&a->seen[i], due_ns, ur_worker_last_ns(w),
					   ur_worker_take_contended(w))) {
			a->in_doubt |= a->seen[i].in_doubt;
			continue;
		}
		served |= UINT32_C(1) << i;
		*packets +=
			ur_worker_serve(w, ur_rest_may_be_answered(&a->seen[i], due_ns), &in_way);
		a->in_way |= in_way && !a->own;
		ur_rest_made_round(&a->seen[i], ur_worker_last_ns(w));
	}
	a->claims = false;
	return served;
}

/* What the last poll() has found at a waiter's descriptors. */
static void note_ready(struct ur_adaptive *a)
{
	unsigned last = a->own_cnt - 1;

	if (!a->own)
		return;
	for (unsigned i = 0; i < last; i++)
		a->ready |= a->own[i].revents != 0;
	if (a->own[last].revents && ur_device_take_counts(a->own[last].fd, 1))
		a->called = true;
}

/* A waiter can be cancelled or interrupted here, and in wait_at_port(). */
static void wait_aside(struct ur_adaptive *a, uint64_t ns)
{
	const struct timespec most = {.tv_nsec = (long)ns};
	int rc;

	ur_cancel_restore(a->cancel);
	rc = ppoll(a->own, a->own_cnt, &most, a->mask);
	ur_cancel_off();
	if (rc > 0)
		note_ready(a);
	a->interrupted |= rc < 0 && errno == EINTR;
}

/* A system call: not after each round that has found nothing. */
static bool is_over(struct ur_adaptive *a, unsigned packets)
{
	if (!a->own || (!packets && ++a->quiet < LOOK_ROUNDS))
		return false;
	a->quiet = 0;
	wait_aside(a, 0);
	return a->ready || a->interrupted;
}

/* ---- sleeping ---- */

static bool wait_at_port(struct ur_adaptive *a, uint64_t ns)
{
	int rc;

	ur_cancel_restore(a->cancel);
	rc = ur_wake_wait(&a->wake, a->own, a->own_cnt, ns, a->mask);
	ur_cancel_off();
	if (rc == -EINTR)
		a->interrupted = true;
	else if (rc < 0) /* more descriptors than the process may have */
		wait_aside(a, least(ns, UR_WAIT_SLEEP_NS));
	else
		note_ready(a);
	a->claims = a->own && rc > 0;
	return rc > 0;
}

/* Not at the port. */
static void rest(struct ur_adaptive *a, uint64_t ns)
{
	if (a->own || a->in_way)
		wait_aside(a, ns);
	else
		a->called = ur_nap(&a->dev->progress_nap, &a->calls, ns);
}

static void set_lease_sleep(struct ur_adaptive *a, bool sleeps)
{
	a->lease_sleeps = sleeps;
	ur_lease_set_sleep(a->dev, sleeps);
}

/*
 * Sleeps at the port until a packet for one of these workers comes. Returns whether one has. A memif port has to be
 * armed first; a packet that came before that woke no thread.
 */
static bool sleep_at_port(struct ur_adaptive *a, uint64_t sleep_ns, uint32_t workers)
{
	struct ur_device *dev = a->dev;
	uint64_t now_ns;
	unsigned packets;
	bool woken = true;

	if (!ur_wake_arm(&a->wake, workers, ur_lease_wake_fd_of(dev)))
		return wait_at_port(a, sleep_ns);
	set_lease_sleep(a, true);
	now_ns = ur_clock_ns(&dev->clock);
	serve(a, now_ns, &packets);
	if (packets) {
		ur_wake_disarm(&a->wake);
		ur_rest_after(&a->rest, now_ns, packets);
		if (a->in_way)
			wait_aside(a, UR_REST_STEP_NS);
	} else
		woken = wait_at_port(a, sleep_ns);
	set_lease_sleep(a, false);
	return woken;
}

void ur_adaptive_end_sleep(struct ur_adaptive *a)
{
	ur_wake_disarm(&a->wake);
	if (a->lease_sleeps)
		set_lease_sleep(a, false);
}

/*
 * While the application works, its packets are no concern of this thread (`served` is 0). What wakes the thread and does not come
 * in its round might wake it without end; the first times, another thread may have received it. Returns when the sleep was to end, or UINT64_MAX if a packet could end it.
 */
static uint64_t sleep_for(struct ur_adaptive *a, uint64_t sleep_ns, uint32_t served,
			  unsigned packets)
{
	bool can_wake = ur_wake_is_possible(&a->wake);
	uint64_t due_ns;

	a->futile = a->woken && !packets ? a->futile + 1 : 0;
	if (served && a->futile < FUTILE_WAKES && can_wake) {
		a->woken = sleep_at_port(a, sleep_ns, served);
		return UINT64_MAX;
	}
	if (a->own && served)
		sleep_ns = least(sleep_ns, UR_WAIT_SLEEP_NS);
	a->woken = false;
	due_ns = ur_clock_ns(&a->dev->clock) + sleep_ns;
	rest(a, sleep_ns);
	return a->called || a->ready ? UINT64_MAX : due_ns;
}

/* ---- a step ---- */

void ur_adaptive_step(struct ur_adaptive *a, uint64_t most_ns)
{
	uint64_t now_ns = ur_clock_ns(&a->dev->clock), sleep_ns;
	unsigned packets;
	uint32_t served = serve(a, a->due_ns < now_ns ? a->due_ns : now_ns, &packets);

	if (a->called)
		ur_rest_again(&a->rest);
	a->called = false;
	a->due_ns = UINT64_MAX;
	if (is_over(a, packets))
		return;
	if (served)
		sleep_ns = ur_rest_after(&a->rest, now_ns, packets);
	else
		sleep_ns = ur_rest_stand_back(&a->rest);
	if (a->in_doubt)
		sleep_ns = ur_rest_in_doubt(sleep_ns);
	/* The next packet must not wake this thread before the application has had its CPU. */
	if (a->in_way) {
		sleep_ns = UR_REST_STEP_NS;
		served = 0;
	}
	sleep_ns = least(sleep_ns, most_ns);
	if (sleep_ns)
		a->due_ns = sleep_for(a, sleep_ns, served, packets);
}

/* EDGE-WAIT-03. The thread that has taken over may not get a CPU, or be in a signal handler. */
void ur_adaptive_stand_aside(struct ur_adaptive *a)
{
	uint64_t now_ns = ur_clock_ns(&a->dev->clock);

	for (unsigned i = 0; i < a->dev->worker_cnt; i++)
		if (now_ns > ur_worker_last_ns(a->dev->workers[i]) + 2 * UR_REST_MAX_NS)
			ur_worker_serve(a->dev->workers[i], false, NULL);
	a->in_way = a->woken = false;
	a->due_ns = UINT64_MAX;
	rest(a, UR_REST_MAX_NS);
}
