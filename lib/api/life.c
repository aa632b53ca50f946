/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/life.h"

#include <stdlib.h>
#include <unistd.h>

#include "api/device.h"

#define NUMBERS_MAX 256

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, ur_device) devices = LIST_HEAD_INITIALIZER(devices);
static bool numbers[NUMBERS_MAX]; /* numbers in use */
static _Atomic bool exiting;
static _Atomic pid_t owner; /* the process that opens endpoints; 0: none has */

bool ur_life_is_exiting(void)
{
	return atomic_load(&exiting);
}

bool ur_life_is_child(void)
{
	return getpid() != owner;
}

bool ur_life_may_open(void)
{
	pid_t none = 0;

	return atomic_compare_exchange_strong(&owner, &none, getpid()) || none == getpid();
}

/* Of what other threads, the library's among them, do with an endpoint. */
static void renew_locks(struct ur_device *dev)
{
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->gid_lock, NULL);
	pthread_mutex_init(&dev->async_lock, NULL);
	pthread_mutex_init(&dev->slab.lock, NULL);
}

/* EDGE-FORK-03: another thread of the parent may have been inside. */
static void leave_to_parent(void)
{
	struct ur_device *dev;

	ur_worker_leave_to_parent();
	pthread_mutex_init(&devices_lock, NULL);
	LIST_FOREACH(dev, &devices, link)
	renew_locks(dev);
}

/* For exit() without uroce_close(). An older exit handler closes the ports after this one. */
static void stop_all(void)
{
	struct ur_device *dev;

	atomic_store(&exiting, true);
	/* EDGE-FORK-01 */
	if (ur_life_is_child())
		return;
	pthread_mutex_lock(&devices_lock);
	LIST_FOREACH(dev, &devices, link)
	ur_device_stop_threads(dev);
	pthread_mutex_unlock(&devices_lock);
}

void ur_life_enlist(struct ur_device *dev)
{
	static bool registered;

	pthread_mutex_lock(&devices_lock);
	if (!registered)
		registered =
			atexit(stop_all) == 0 && pthread_atfork(NULL, NULL, leave_to_parent) == 0;
	LIST_INSERT_HEAD(&devices, dev, link);
	pthread_mutex_unlock(&devices_lock);
}

void ur_life_delist(struct ur_device *dev)
{
	pthread_mutex_lock(&devices_lock);
	LIST_REMOVE(dev, link);
	pthread_mutex_unlock(&devices_lock);
}

unsigned ur_life_take_number(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&devices_lock);
	while (n < NUMBERS_MAX - 1 && numbers[n])
		n++;
	numbers[n] = true;
	pthread_mutex_unlock(&devices_lock);
	return n;
}

void ur_life_return_number(unsigned number)
{
	pthread_mutex_lock(&devices_lock);
	numbers[number] = false;
	pthread_mutex_unlock(&devices_lock);
}
