/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include "api/wait.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "api/adaptive.h"
#include "api/device.h"
#include "api/progress.h"
#include "thread/cancelled.h"
#include "thread/thread.h"

#define IDLE_SPINS    2000
#define IDLE_SLEEP_NS 20000
#define NEAR	      32		    /* descriptors for which the stack has room */
#define ROOM	      (1 + UR_WAKE_FDS_MAX) /* for the call's and the port's behind the program's */
#define MARKED_FDS    16384

static bool sleep_ns(long ns)
{
	struct timespec ts = {.tv_nsec = ns};

	return nanosleep(&ts, NULL) == 0;
}

bool ur_device_wait_a_bit(struct ur_device *dev, unsigned *idle)
{
	if (ur_device_progress(dev))
		*idle = 0;
	else if (dev->dedicated || ++*idle > IDLE_SPINS)
		return sleep_ns(IDLE_SLEEP_NS);
	return true;
}

/* ---- descriptors that threads have waited for ---- */

/* The number of the endpoint for which, and 1; 0: none. Those beyond count as not waited for, which costs a wake-up. */
static _Atomic uint16_t marks[MARKED_FDS];

void ur_wait_note(const struct ur_device *dev, int fd)
{
	if (fd >= 0 && fd < MARKED_FDS)
		atomic_store_explicit(&marks[fd], dev->number + 1, memory_order_relaxed);
}

bool ur_wait_has_been_for(const struct ur_device *dev, int fd)
{
	return fd >= 0 && fd < MARKED_FDS &&
	       atomic_load_explicit(&marks[fd], memory_order_relaxed) == dev->number + 1;
}

void ur_wait_forget(int fd)
{
	if (fd >= 0 && fd < MARKED_FDS)
		atomic_store_explicit(&marks[fd], 0, memory_order_relaxed);
}

/* ---- as poll() ---- */

struct wait {
	struct ur_device *dev;
	struct pollfd *fds; /* with room for ROOM more */
	unsigned cnt;
	uint64_t until_ns;
	/* The caller's states; in between it is neither cancelled nor interrupted, except in its sleeps. */
	int cancel;
	sigset_t mask;
	int why; /* an errno value: the wait has failed */
	bool leads, follows;
	int slack; /* of the thread's timers, if it leads where nothing wakes it; else 0 */
	struct ur_adaptive adaptive; /* if it leads */
	struct pollfd *owned;	     /* or NULL */
};

/* EDGE-WAIT-02. What a follower waits for must not come a millisecond late. */
static void stop_leading(struct wait *w)
{
	if (w->slack)
		prctl(PR_SET_TIMERSLACK, w->slack, 0, 0, 0);
	w->leads = false;
	atomic_store(&w->dev->led, false);
	if (atomic_load(&w->dev->followers))
		ur_progress_call(w->dev);
}

static void stop_following(struct wait *w)
{
	w->follows = false;
	atomic_fetch_sub(&w->dev->followers, 1);
}

static void block(struct wait *w)
{
	sigset_t all;

	w->cancel = ur_cancel_off();
	sigfillset(&all);
	for (int sig = 1; sig < _NSIG; sig++)
		if (ur_signal_is_fault(sig))
			sigdelset(&all, sig);
	pthread_sigmask(SIG_BLOCK, &all, &w->mask);
}

static void unblock(const struct wait *w)
{
	pthread_sigmask(SIG_SETMASK, &w->mask, NULL);
	ur_cancel_restore(w->cancel);
}

/* The thread was cancelled in its sleep. */
static void give_up(void *wait)
{
	struct wait *w = wait;

	ur_cancelled();
	ur_cancel_off();
	if (w->leads) {
		ur_adaptive_end_sleep(&w->adaptive);
		stop_leading(w);
	}
	if (w->follows)
		stop_following(w);
	free(w->owned);
	unblock(w);
}

static uint64_t left_ns(const struct wait *w)
{
	uint64_t now_ns;

	if (w->until_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = ur_clock_ns(&w->dev->clock);
	return now_ns < w->until_ns ? w->until_ns - now_ns : 0;
}

static void begin_to_lead(struct wait *w)
{
	struct ur_adaptive *a = &w->adaptive;

	w->leads = true;
	ur_adaptive_init_waiter(a, w->dev);
	w->fds[w->cnt] = (struct pollfd){.fd = w->dev->call_fd, .events = POLLIN};
	a->own = w->fds;
	a->own_cnt = w->cnt + 1;
	a->cancel = w->cancel;
	a->mask = &w->mask;
	/* The default, 50 us, is as long as the sleep. */
	if (!ur_wake_is_possible(&a->wake)) {
		w->slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
		prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	}
}

static void lead(struct wait *w)
{
	struct ur_adaptive *a = &w->adaptive;
	uint64_t left;

	begin_to_lead(w);
	while (!a->ready && !a->interrupted && (left = left_ns(w)))
		ur_adaptive_step(a, left);
	if (a->interrupted && !a->ready)
		w->why = EINTR;
	stop_leading(w);
}

/* False: the thread that led does not any more. */
static bool begin_to_follow(struct wait *w)
{
	w->follows = true;
	atomic_fetch_add(&w->dev->followers, 1);
	if (!atomic_load(&w->dev->led)) {
		stop_following(w);
		return false;
	}
	return true;
}

/* Another thread makes the rounds. With ticks only there may soon be none. True: the wait is over. */
static bool follow(struct wait *w)
{
	uint64_t left = left_ns(w);
	uint64_t most_ns = ur_progress_is_adaptive(w->dev) ? UR_REST_MAX_NS : UR_WAIT_SLEEP_NS;
	struct timespec most = {.tv_nsec = (long)(left < most_ns ? left : most_ns)};
	int rc;

	if (!begin_to_follow(w))
		return false;
	ur_cancel_restore(w->cancel);
	rc = ppoll(w->fds, w->cnt, &most, &w->mask);
	ur_cancel_off();
	if (rc < 0)
		w->why = errno;
	stop_following(w);
	return rc || !left;
}

static int count(const struct wait *w)
{
	int n = 0;

	for (unsigned i = 0; i < w->cnt; i++)
		n += w->fds[i].revents != 0;
	return n;
}

/* Packets that came before the call count, even without a timeout. Signals do, too. */
static int look(struct wait *w)
{
	static const struct timespec none;

	ur_device_progress(w->dev);
	return ppoll(w->fds, w->cnt, &none, &w->mask);
}

/* Returns as poll(). Not in the frame of the clean-up handler. */
static __attribute__((noinline)) int wait_for_any(struct wait *w)
{
	int n = look(w);

	if (n || !left_ns(w))
		return n;
	for (unsigned i = 0; i < w->cnt; i++)
		ur_wait_note(w->dev, w->fds[i].fd);
	/* If another thread leads, it has seen this one's rounds, and stands back. */
	if (atomic_load(&w->dev->led))
		ur_progress_call(w->dev);
	for (;;) {
		if (!atomic_exchange(&w->dev->led, true)) {
			lead(w);
			break;
		}
		if (follow(w))
			break;
	}
	if (w->why) {
		errno = w->why;
		return -1;
	}
	n = count(w);
	return n ? n : look(w);
}

static int wait_inline(struct wait *w)
{
	int n;

	block(w);
	pthread_cleanup_push(give_up, w);
	n = wait_for_any(w);
	pthread_cleanup_pop(0);
	unblock(w);
	return n;
}

static int wait_without_rounds(struct pollfd *fds, unsigned cnt, uint64_t timeout_ns)
{
	struct timespec most = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
				.tv_nsec = (long)(timeout_ns % NS_PER_S)};

	return ppoll(fds, cnt, timeout_ns == UINT64_MAX ? NULL : &most, NULL);
}

int ur_device_wait_fds(struct ur_device *dev, struct pollfd *fds, unsigned cnt, uint64_t timeout_ns)
{
	struct pollfd near[NEAR + ROOM];
	struct wait w = {.dev = dev, .fds = near, .cnt = cnt, .until_ns = UINT64_MAX};
	int n;

	if (dev->dedicated || ur_worker_is_the_parents())
		return wait_without_rounds(fds, cnt, timeout_ns);
	if (cnt > NEAR) {
		w.owned = w.fds = calloc(cnt + ROOM, sizeof(*fds));
		if (!w.owned) {
			errno = ENOMEM;
			return -1;
		}
	}
	if (timeout_ns != UINT64_MAX)
		w.until_ns = ur_clock_ns(&dev->clock) + timeout_ns;
	for (unsigned i = 0; i < cnt; i++)
		w.fds[i] = fds[i];
	n = wait_inline(&w);
	for (unsigned i = 0; i < cnt; i++)
		fds[i].revents = w.fds[i].revents;
	free(w.owned);
	return n;
}

int uroce_wait(struct ibv_context *ctx, struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	if (cnt > INT_MAX) {
		errno = EINVAL;
		return -1;
	}
	return ur_device_wait_fds(ur_device(ctx), fds, (unsigned)cnt, ur_wait_ns(timeout_ms));
}
