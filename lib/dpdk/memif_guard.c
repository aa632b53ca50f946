/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dpdk/memif_guard.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_lcore.h>

#include "dpdk/driver_call.h"
#include "dpdk/memif_wake.h"
#include "dpdk/worker.h"

static struct {
	pthread_mutex_t lock;
	struct ur_worker *worker[RTE_MAX_LCORE];
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread bool is_interrupt_thread;

static void record_thread(void *arg)
{
	(void)arg;
	is_interrupt_thread = true;
}

/* Replace munmap() and close() in the driver. */
static int unmap(void *addr, size_t len);
static int close_descriptor(int fd);

void ur_memif_guard_start(void)
{
	ur_driver_call_replace("librte_net_memif.so", "munmap", (ur_driver_fn)unmap);
	ur_driver_call_replace("librte_net_memif.so", "close", (ur_driver_fn)close_descriptor);
	rte_eal_alarm_set(1, record_thread, NULL);
}

static void replace(struct ur_worker *old, struct ur_worker *new)
{
	unsigned i = 0;

	pthread_mutex_lock(&guard.lock);
	while (i < RTE_DIM(guard.worker) && guard.worker[i] != old)
		i++;
	if (i < RTE_DIM(guard.worker))
		guard.worker[i] = new;
	pthread_mutex_unlock(&guard.lock);
}

void ur_memif_guard_add(struct ur_worker *w)
{
	replace(NULL, w);
}

void ur_memif_guard_remove(struct ur_worker *w)
{
	replace(w, NULL);
}

static void wait_for_workers(void)
{
	pthread_mutex_lock(&guard.lock);
	for (unsigned i = 0; i < RTE_DIM(guard.worker); i++)
		if (guard.worker[i])
			ur_worker_wait_round(guard.worker[i]);
	pthread_mutex_unlock(&guard.lock);
}

static int unmap(void *addr, size_t len)
{
	if (is_interrupt_thread)
		wait_for_workers();
	return munmap(addr, len);
}

static bool is_socket(int fd)
{
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof(type)}) == 0;
}

static int close_descriptor(int fd)
{
	if (is_interrupt_thread && !is_socket(fd))
		wait_for_workers();
	ur_memif_wake_closed(fd);
	return close(fd);
}
