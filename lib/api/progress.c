/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_timedjoin_np */
#endif
#include "api/progress.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>

#include "api/adaptive.h"
#include "api/device.h"
#include "api/follow.h"
#include "api/lease.h"
#include "api/mgmt.h"
#include "api/share.h"
#include "api/wait.h"
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

/* EDGE-REST-01, EDGE-REST-03, EDGE-REST-04 */
static void *run_adaptive(void *arg)
{
	struct ur_device *dev = arg;
	struct ur_adaptive a;
	uint64_t chores_ns = 0;

	ur_adaptive_init(&a, dev);
	/* The default, 50 us, is longer than the shortest sleep. */
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	while (!atomic_load(&dev->progress_stop)) {
		uint64_t now_ns = ur_clock_ns(&dev->clock);

		if (now_ns >= chores_ns) {
			do_chores(dev, now_ns);
			chores_ns = now_ns + INLINE_PERIOD_NS;
		}
		if (atomic_load(&dev->led))
			ur_adaptive_stand_aside(&a);
		else
			ur_adaptive_step(&a, UR_REST_MAX_NS);
	}
	return NULL;
}

bool ur_progress_is_adaptive(const struct ur_device *dev)
{
	return !dev->dedicated && dev->cfg.worker.progress == UR_PROGRESS_ADAPTIVE;
}

void ur_progress_call(struct ur_device *dev)
{
	if (atomic_load(&dev->led))
		ur_device_add_counts(dev->call_fd, 1);
	else if (ur_progress_is_adaptive(dev))
		ur_nap_call(&dev->progress_nap);
}

int ur_progress_start(struct ur_device *dev)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	dev->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (dev->call_fd < 0)
		return errno;
	ur_eal_cpus(&cpus);
	pthread_attr_init(&attr);
	if (dev->dedicated)
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	rc = ur_thread_start(&dev->progress_thread, &attr,
			     ur_progress_is_adaptive(dev) ? run_adaptive : run_ticks, dev);
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
