/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_THREAD_THREAD_H
#define UR_THREAD_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/*
 * EDGE-THREAD-01. Call these around code that starts threads, which inherit the signal mask.
 * Signals are for the application's threads: they must interrupt its waits, and its handlers must
 * not run on threads that the application did not start.
 */
static inline void ur_signals_block(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

static inline void ur_signals_restore(const sigset_t *old)
{
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* The signals that a thread raises itself, by its faults: they cannot wait. */
static inline bool ur_signal_is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
	       sig == SIGTRAP || sig == SIGABRT || sig == SIGSYS;
}

/* pthread_create() for a thread that takes no signals. Returns its errno value. Thread class: any. */
static inline int ur_thread_start(pthread_t *thread, const pthread_attr_t *attr,
				  void *(*run)(void *arg), void *arg)
{
	sigset_t old;
	int rc;

	ur_signals_block(&old);
	rc = pthread_create(thread, attr, run, arg);
	ur_signals_restore(&old);
	return rc;
}

/* The same for a thread that nobody joins. */
static inline int ur_thread_start_detached(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;
	int rc = ur_thread_start(&thread, NULL, run, arg);

	if (!rc)
		pthread_detach(thread);
	return rc;
}

/*
 * EDGE-CANCEL-01. A thread of the application may be cancelled in any call of the C library that can wait. Call these
 * around code that holds a lock, or whose end others wait for.
 */
static inline int ur_cancel_off(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void ur_cancel_restore(int old)
{
	pthread_setcancelstate(old, NULL);
}

#endif
