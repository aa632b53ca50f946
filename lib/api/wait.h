/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_WAIT_H
#define UR_API_WAIT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ur_device;
struct ur_waiters;

/* Waiting in a call of the library. Thread class: any, but for the worker's where it says so. */

/*
 * A step of a loop that waits: runs the workers in inline mode, and sleeps briefly if there has
 * been no work for a while. *idle is a counter that begins with 0. Returns false if a signal
 * interrupted it.
 */
bool ur_device_wait_a_bit(struct ur_device *dev, unsigned *idle);

/*
 * EDGE-WAIT-01. As poll(), for `timeout_ns`, UINT64_MAX: without end. In inline mode the thread makes the endpoint's rounds meanwhile, and sleeps
 * at the port; only one thread at a time does so, others sleep on their descriptors and look again every millisecond. Returns the number of
 * descriptors with events, or -1 with errno as poll(): EINTR after any signal. The thread can be cancelled.
 */
int ur_device_wait_fds(struct ur_device *dev, struct pollfd *fds, unsigned cnt,
		       uint64_t timeout_ns);

/* Nanoseconds of a timeout as poll() has it. */
static inline uint64_t ur_wait_ns(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000000;
}

/* A thread waits in the library, at this endpoint, for the descriptor. */
void ur_wait_note(const struct ur_device *dev, int fd);
/* Whether one has since the descriptor was created. */
bool ur_wait_has_been_for(const struct ur_device *dev, int fd);
/* The descriptor is a new one. */
void ur_wait_forget(int fd);

/* ---- counts: of eventfds with EFD_SEMAPHORE ---- */

/* Takes up to `cnt` counts; never blocks. */
unsigned ur_device_take_counts(int fd, unsigned cnt);
/* Adds counts. Also the worker's. */
void ur_device_add_counts(int fd, uint64_t cnt);

/*
 * Waits for a count and takes it. In inline mode the thread makes rounds meanwhile. Like read(): -1 with errno EINTR (WAIT-SIGNAL-01), or
 * EAGAIN if the descriptor is O_NONBLOCK and there is no count.
 */
int ur_device_wait_count(struct ur_device *dev, int fd);
/* The same for what is not urgent: if the progress thread is adaptive, the rounds are left to it. */
int ur_device_sleep_count(struct ur_device *dev, int fd);

/* ---- threads that wait for an object which may be destroyed ---- */

/*
 * A thread that waits on `fd`, an eventfd with EFD_SEMAPHORE, calls enter before and leave after
 * the wait. enter returns false if the object is being destroyed. close wakes all waiters and
 * returns when they have left; a waiter checks `closing` when it wakes.
 */
bool ur_device_waiter_enter(struct ur_waiters *w, pthread_mutex_t *lock);
/* Returns `closing`. */
bool ur_device_waiter_leave(struct ur_waiters *w, pthread_mutex_t *lock);
void ur_device_waiters_close(struct ur_waiters *w, pthread_mutex_t *lock, int fd);

/* Waits until the application has acknowledged the `got` events that it has fetched. */
void ur_device_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked,
			 uint32_t got);

#endif
