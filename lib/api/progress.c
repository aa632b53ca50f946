/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_timedjoin_np */
#endif
#include "api/progress.h"

#include <time.h>

#include "api/device.h"
#include "api/follow.h"
#include "api/share.h"
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

static void *run_progress(void *arg)
{
	struct ur_device *dev = arg;
	const struct timespec nap = {.tv_nsec = dev->dedicated ? DEDICATED_PERIOD_NS
							       : INLINE_PERIOD_NS};

	while (!atomic_load(&dev->progress_stop)) {
		uint64_t now_ns = ur_clock_ns(&dev->clock);

		if (!dev->dedicated)
			run_workers(dev, now_ns);
		for (unsigned i = 0; i < dev->worker_cnt; i++)
			ur_worker_grow(dev->workers[i]);
		ur_share_follow(dev, now_ns);
		ur_follow_neighbours(dev, now_ns);
		nanosleep(&nap, NULL);
	}
	return NULL;
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
	rc = pthread_create(&dev->progress_thread, &attr, run_progress, dev);
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
