/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_timedjoin_np */
#endif
#include "api/progress.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "api/device.h"
#include "api/follow.h"
#include "api/lease.h"
#include "api/mgmt.h"
#include "api/share.h"
#include "dpdk/wake.h"
#include "edge/rest.h"
#include "thread/thread.h"

#define INLINE_PERIOD_NS    1000000
#define DEDICATED_PERIOD_NS 10000000 /* beside dedicated workers */
#define EXIT_WAIT_S	    1

static void nap(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static void run_workers(struct ur_device *dev, uint64_t now_ns)
{
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		if (ur_worker_last_ns(dev->workers[i]) + INLINE_PERIOD_NS < now_ns)
			ur_worker_serve(dev->workers[i], true, NULL);
}

static void do_chores(struct ur_device *dev, uint64_t now_ns)
{
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_worker_grow(dev->workers[i]);
	ur_share_follow(dev, now_ns);
	ur_lease_follow(dev, now_ns);
	ur_follow_neighbours(dev, now_ns);
	ur_mgmt_follow(dev, now_ns);
}

static void *run_ticks(void *arg)
{
	struct ur_device *dev = arg;
	uint64_t period_ns = dev->dedicated ? DEDICATED_PERIOD_NS : INLINE_PERIOD_NS;

	while (!atomic_load(&dev->progress_stop)) {
		uint64_t now_ns = ur_clock_ns(&dev->clock);

		if (!dev->dedicated)
			run_workers(dev, now_ns);
		do_chores(dev, now_ns);
		nap(period_ns);
	}
	return NULL;
}

/* What the adaptive thread knows. */
struct adaptive {
	struct ur_device *dev;
	struct ur_rest rest;
	struct ur_rest_worker seen[UR_WORKERS_MAX];
	bool woken;    /* the port has ended the last sleep */
	bool in_doubt; /* EDGE-REST-07: one of the workers, at the last look */
	bool in_way;   /* EDGE-REST-08: the same */
	bool called;   /* EDGE-REST-09: the application has ended the last sleep */
	uint32_t calls;
};

/*
 * Makes a round of each worker that the application leaves alone, at a look that was due at `due_ns`. Returns which: bit i: worker i. EDGE-REST-06: ACKs wait only for an
 * application that was here.
 */
static uint32_t serve(struct adaptive *a, uint64_t due_ns, unsigned *packets)
{
	uint32_t served = 0;

	*packets = 0;
	a->in_doubt = a->in_way = false;
	for (unsigned i = 0; i < a->dev->worker_cnt; i++) {
		struct ur_worker *w = a->dev->workers[i];
		bool in_way;

		if (a->called)
			ur_rest_leave(&a->seen[i], ur_worker_last_ns(w));
		if (!ur_rest_is_left_alone(&a->seen[i], due_ns, ur_worker_last_ns(w),
					   ur_worker_take_contended(w))) {
			a->in_doubt |= a->seen[i].in_doubt;
			continue;
		}
		served |= UINT32_C(1) << i;
		*packets +=
			ur_worker_serve(w, ur_rest_may_be_answered(&a->seen[i], due_ns), &in_way);
		a->in_way |= in_way;
		ur_rest_made_round(&a->seen[i], ur_worker_last_ns(w));
	}
	return served;
}

/*
 * Sleeps at the port until a packet for one of these workers comes. Returns whether one has. A memif port has to be
 * armed first; a packet that came before that woke no thread.
 */
static bool sleep_at_port(struct adaptive *a, uint64_t sleep_ns, uint32_t workers)
{
	struct ur_device *dev = a->dev;
	uint64_t now_ns;
	unsigned packets;
	bool woken = true;

	if (!ur_wake_arm(&dev->wake, workers, ur_lease_wake_fd_of(dev)))
		return ur_wake_wait(&dev->wake, sleep_ns);
	ur_lease_set_sleep(dev, true);
	now_ns = ur_clock_ns(&dev->clock);
	serve(a, now_ns, &packets);
	if (packets) {
		ur_wake_disarm(&dev->wake);
		ur_rest_after(&a->rest, now_ns, packets);
		if (a->in_way)
			nap(UR_REST_STEP_NS);
	} else
		woken = ur_wake_wait(&dev->wake, sleep_ns);
	ur_lease_set_sleep(dev, false);
	return woken;
}

/*
 * While the application works, its packets are no concern of this thread (`served` is 0). What woke the thread and did not come
 * in its round might wake it without end. Returns when the sleep was to end, or UINT64_MAX if a packet could end it.
 */
static uint64_t sleep_for(struct adaptive *a, uint64_t sleep_ns, uint32_t served, unsigned packets)
{
	uint64_t due_ns;

	if (served && !(a->woken && !packets) && ur_wake_is_possible(&a->dev->wake)) {
		a->woken = sleep_at_port(a, sleep_ns, served);
		return UINT64_MAX;
	}
	a->woken = false;
	due_ns = ur_clock_ns(&a->dev->clock) + sleep_ns;
	if (a->in_way)
		nap(sleep_ns);
	else
		a->called = ur_nap(&a->dev->progress_nap, &a->calls, sleep_ns);
	return a->called ? UINT64_MAX : due_ns;
}

/* EDGE-REST-01, EDGE-REST-03, EDGE-REST-04 */
static void *run_adaptive(void *arg)
{
	struct adaptive a = {.dev = arg};
	uint64_t chores_ns = 0, due_ns = UINT64_MAX;
	cpu_set_t cpus;

	ur_eal_cpus(&cpus);
	ur_rest_init(&a.rest, CPU_COUNT(&cpus) < 2);
	/* The default, 50 us, is longer than the shortest sleep. */
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	while (!atomic_load(&a.dev->progress_stop)) {
		uint64_t now_ns = ur_clock_ns(&a.dev->clock), sleep_ns;
		unsigned packets;
		uint32_t served = serve(&a, due_ns < now_ns ? due_ns : now_ns, &packets);

		if (a.called)
			ur_rest_again(&a.rest);
		a.called = false;
		if (served)
			sleep_ns = ur_rest_after(&a.rest, now_ns, packets);
		else
			sleep_ns = ur_rest_stand_back(&a.rest);
		if (a.in_doubt)
			sleep_ns = ur_rest_in_doubt(sleep_ns);
		/* The next packet must not wake this thread before the application has had its CPU. */
		if (a.in_way) {
			sleep_ns = UR_REST_STEP_NS;
			served = 0;
		}
		if (now_ns >= chores_ns) {
			do_chores(a.dev, now_ns);
			chores_ns = now_ns + INLINE_PERIOD_NS;
		}
		due_ns = sleep_ns ? sleep_for(&a, sleep_ns, served, packets) : UINT64_MAX;
	}
	return NULL;
}

static bool is_adaptive(const struct ur_device *dev)
{
	return !dev->dedicated && dev->cfg.worker.progress == UR_PROGRESS_ADAPTIVE;
}

void ur_progress_call(struct ur_device *dev)
{
	if (is_adaptive(dev))
		ur_nap_call(&dev->progress_nap);
}

int ur_progress_start(struct ur_device *dev)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	ur_eal_cpus(&cpus);
	pthread_attr_init(&attr);
	if (dev->dedicated)
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	rc = ur_thread_start(&dev->progress_thread, &attr,
			     is_adaptive(dev) ? run_adaptive : run_ticks, dev);
	pthread_attr_destroy(&attr);
	dev->progress_runs = !rc;
	return rc;
}

void ur_progress_stop(struct ur_device *dev, bool exiting)
{
	struct timespec until;

	if (!dev->progress_runs)
		return;
	dev->progress_runs = false;
	atomic_store(&dev->progress_stop, true);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EXIT_WAIT_S;
	if (exiting)
		pthread_timedjoin_np(dev->progress_thread, NULL, &until);
	else
		pthread_join(dev->progress_thread, NULL);
}
