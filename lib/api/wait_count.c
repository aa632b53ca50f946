/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* preadv2 */
#endif
#include "api/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "api/adaptive.h"
#include "api/device.h"
#include "api/progress.h"
#include "thread/busy.h"
#include "thread/cancelled.h"
#include "thread/thread.h"
#include "wire/assert.h"

#define BUSY_NS 100000
#define KNOWN_NS                                                                                   \
	100000000 /* how long a thread takes the program's handlers for those that it has seen */

/* Does not block. Polling before a blocking read would not do: another thread may take the count. */
static bool take_count(int fd)
{
	uint64_t one;
	struct iovec to = {&one, sizeof(one)};

	return preadv2(fd, &to, 1, -1, RWF_NOWAIT) == sizeof(one);
}

unsigned ur_device_take_counts(int fd, unsigned cnt)
{
	int cancel = ur_cancel_off();
	unsigned n = 0;

	while (n < cnt && take_count(fd))
		n++;
	ur_cancel_restore(cancel);
	return n;
}

void ur_device_add_counts(int fd, uint64_t cnt)
{
	int cancel = ur_cancel_off();

	if (write(fd, &cnt, sizeof(cnt)) < 0)
		UR_ASSERT(errno == EAGAIN); /* the counter is at its maximum, 2^64 - 2 */
	ur_cancel_restore(cancel);
}

/*
 * WAIT-SIGNAL-01. A wait at the port is a ppoll(), which ends after any signal. Whether the kernel would have begun a read() again is up to the
 * handler of that signal, and which one it was is not known. If all handlers of the program are of one kind, that says it. If not, the
 * thread does not sleep at the port.
 */

/* What the handlers of this thread's signals have a wait do. */
enum { SIGNALS_RESTART = 1, SIGNALS_END = 2 };

static unsigned look_at_handlers(void)
{
	unsigned found = 0;
	struct sigaction sa;
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int sig = 1; sig < _NSIG; sig++) {
		if (ur_signal_is_fault(sig) || sigismember(&blocked, sig) ||
		    sigaction(sig, NULL, &sa) != 0 || sa.sa_handler == SIG_DFL ||
		    sa.sa_handler == SIG_IGN)
			continue;
		found |= sa.sa_flags & SA_RESTART ? SIGNALS_RESTART : SIGNALS_END;
	}
	return found;
}

/* What a thread has seen of them. */
static _Thread_local struct {
	unsigned found;
	uint64_t until_ns;
} handlers;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static bool are_of_one_kind(void)
{
	uint64_t now = now_ns();

	if (now >= handlers.until_ns) {
		handlers.found = look_at_handlers();
		handlers.until_ns = now + KNOWN_NS;
	}
	return handlers.found != (SIGNALS_RESTART | SIGNALS_END);
}

/*
 * After a signal. Its handler may have been for one time; and without any handler it was a signal of the C library's. A handler that was added since is taken
 * for the one that ran.
 */
static bool begins_again(void)
{
	unsigned before = handlers.found;

	handlers.found = look_at_handlers();
	return !((handlers.found ? handlers.found : before) & SIGNALS_END);
}

/*
 * Sleeps in read(). The kernel restarts it after a signal whose handler has SA_RESTART; any other signal ends it with EINTR.
 * The descriptor is the caller's, -1 at first.
 */
static int sleep_in_read(int *timer)
{
	static const struct itimerspec soon = {.it_value.tv_nsec = UR_WAIT_SLEEP_NS};
	uint64_t expired;

	if (*timer < 0)
		*timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (*timer < 0 || timerfd_settime(*timer, 0, &soon, NULL) < 0)
		return nanosleep(&soon.it_value, NULL);
	return read(*timer, &expired, sizeof(expired)) < 0 ? -1 : 0;
}

static void close_timer(void *timer)
{
	int fd = *(int *)timer, why = errno;

	ur_cancelled();
	if (fd >= 0)
		close(fd);
	errno = why;
}

/* ---- waiting for a count ---- */

/* -1 with errno: EINTR; EBADF: the program has closed the descriptor. */
static int sleep_once(struct ur_device *dev, int fd, int *timer)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int why;

	if (!are_of_one_kind())
		return sleep_in_read(timer);
	if (ur_device_wait_fds(dev, &p, 1, UINT64_MAX) >= 0) {
		errno = EBADF;
		return p.revents & POLLNVAL ? -1 : 0;
	}
	why = errno;
	if (why == EINTR && begins_again())
		return 0;
	errno = why;
	return -1;
}

static _Thread_local struct ur_busy busy = {UINT64_MAX};

/* In inline mode this thread has to run the workers. Not in the frame of the clean-up handler. */
static __attribute__((noinline)) int wait_with(struct ur_device *dev, int fd, int *timer)
{
	uint64_t most_ns = ur_adaptive_may_spin() ? BUSY_NS : 0, from_ns, until_ns;
	int rc = 0;

	if (take_count(fd))
		return 0;
	ur_wait_note(dev, fd);
	from_ns = ur_clock_ns(&dev->clock);
	until_ns = from_ns + ur_busy_for(&busy, most_ns);
	do {
		if (!ur_device_progress(dev) && ur_clock_ns(&dev->clock) >= until_ns)
			rc = sleep_once(dev, fd, timer);
	} while (!rc && !take_count(fd));
	ur_busy_after(&busy, most_ns, ur_clock_ns(&dev->clock) - from_ns);
	return rc;
}

static int wait_inline(struct ur_device *dev, int fd)
{
	int timer = -1, rc;

	pthread_cleanup_push(close_timer, &timer);
	rc = wait_with(dev, fd, &timer);
	pthread_cleanup_pop(1);
	return rc;
}

static int wait_for_count(struct ur_device *dev, int fd, bool leave_rounds)
{
	uint64_t one;

	/* EDGE-FORK-02: the count is the parent's. */
	if (ur_worker_is_the_parents()) {
		errno = EIO;
		return -1;
	}
	if (!dev->dedicated && !leave_rounds && !(fcntl(fd, F_GETFL) & O_NONBLOCK))
		return wait_inline(dev, fd);
	ur_device_progress(dev);
	return read(fd, &one, sizeof(one)) < 0 ? -1 : 0;
}

int ur_device_wait_count(struct ur_device *dev, int fd)
{
	return wait_for_count(dev, fd, false);
}

int ur_device_sleep_count(struct ur_device *dev, int fd)
{
	return wait_for_count(dev, fd, ur_progress_is_adaptive(dev));
}

/* ---- threads that wait for an object which may be destroyed ---- */

bool ur_device_waiter_enter(struct ur_waiters *w, pthread_mutex_t *lock)
{
	bool open;

	pthread_mutex_lock(lock);
	open = !w->closing;
	w->cnt += open;
	pthread_mutex_unlock(lock);
	return open;
}

bool ur_device_waiter_leave(struct ur_waiters *w, pthread_mutex_t *lock)
{
	bool closing;

	pthread_mutex_lock(lock);
	closing = w->closing;
	/* Under the lock, because the object is freed once the last waiter has released it. */
	if (!--w->cnt && closing)
		pthread_cond_signal(&w->left);
	pthread_mutex_unlock(lock);
	return closing;
}

void ur_device_waiters_close(struct ur_waiters *w, pthread_mutex_t *lock, int fd)
{
	int cancel = ur_cancel_off();

	pthread_mutex_lock(lock);
	w->closing = true;
	/* One count per reader; a single one wakes all pollers. */
	if (w->cnt)
		ur_device_add_counts(fd, w->cnt);
	while (w->cnt)
		pthread_cond_wait(&w->left, lock);
	pthread_mutex_unlock(lock);
	ur_cancel_restore(cancel);
}

void ur_device_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked,
			 uint32_t got)
{
	int cancel = ur_cancel_off();

	pthread_mutex_lock(lock);
	while (*acked != got)
		pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
	ur_cancel_restore(cancel);
}
