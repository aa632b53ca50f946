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
#include "edge/thread.h"

#define INLINE_PERIOD_NS    1000000
#define DEDICATED_PERIOD_NS 10000000 /* beside dedicated workers */
#define EXIT_WAIT_S	    1

static void run_workers(struct ur_device *dev, uint64_t now_ns)
{
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		if (ur_worker_last_ns(dev->workers[i]) + INLINE_PERIOD_NS < now_ns)
			ur_worker_poll(dev->workers[i]);
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
	const struct timespec nap = {.tv_nsec = dev->dedicated ? DEDICATED_PERIOD_NS
							       : INLINE_PERIOD_NS};

	while (!atomic_load(&dev->progress_stop)) {
		uint64_t now_ns = ur_clock_ns(&dev->clock);

		if (!dev->dedicated)
			run_workers(dev, now_ns);
		do_chores(dev, now_ns);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* Makes a round of each worker that the application leaves alone. False: it leaves none alone. */
static bool serve(struct ur_device *dev, struct ur_rest_worker *seen, uint64_t now_ns,
		  unsigned *packets)
{
	bool worked = false;

	*packets = 0;
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct ur_worker *w = dev->workers[i];

		if (!ur_rest_is_left_alone(&seen[i], now_ns, ur_worker_last_ns(w),
					   ur_worker_take_contended(w)))
			continue;
		worked = true;
		*packets += ur_worker_poll(w);
		ur_rest_made_round(&seen[i], ur_worker_last_ns(w));
	}
	return worked;
}

/*
 * Sleeps, at the port if that can wake the thread. Returns whether the port did. `at_port`: false while the
 * application works, whose packets are no concern of this thread.
 */
static bool nap(struct ur_device *dev, uint64_t sleep_ns, bool at_port)
{
	if (at_port && dev->wake.cnt)
		return ur_wake_wait(&dev->wake, sleep_ns);
	nanosleep(&(struct timespec){.tv_nsec = (long)sleep_ns}, NULL);
	return false;
}

/* EDGE-REST-01, EDGE-REST-03 */
static void *run_adaptive(void *arg)
{
	struct ur_device *dev = arg;
	struct ur_rest_worker seen[UR_WORKERS_MAX] = {0};
	struct ur_rest rest;
	uint64_t chores_ns = 0;
	cpu_set_t cpus;
	bool woken = false;

	ur_eal_cpus(&cpus);
	ur_rest_init(&rest, CPU_COUNT(&cpus) < 2);
	/* The default, 50 us, is longer than the shortest sleep. */
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	while (!atomic_load(&dev->progress_stop)) {
		uint64_t now_ns = ur_clock_ns(&dev->clock), sleep_ns;
		unsigned packets;
		bool free = serve(dev, seen, now_ns, &packets);

		if (free)
			sleep_ns = ur_rest_after(&rest, now_ns, packets);
		else
			sleep_ns = ur_rest_stand_back(&rest);
		if (now_ns >= chores_ns) {
			do_chores(dev, now_ns);
			chores_ns = now_ns + INLINE_PERIOD_NS;
		}
		/* What woke the thread and did not come in its round might wake it without end. */
		if (sleep_ns)
			woken = nap(dev, sleep_ns, free && !(woken && !packets));
	}
	return NULL;
}

static bool is_adaptive(const struct ur_device *dev)
{
	return !dev->dedicated && dev->cfg.worker.progress == UR_PROGRESS_ADAPTIVE;
}

int ur_progress_start(struct ur_device *dev)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	sigset_t old;
	int rc;

	ur_eal_cpus(&cpus);
	pthread_attr_init(&attr);
	if (dev->dedicated)
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	ur_signals_block(&old);
	rc = pthread_create(&dev->progress_thread, &attr,
			    is_adaptive(dev) ? run_adaptive : run_ticks, dev);
	ur_signals_restore(&old);
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
