/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_THREAD_H
#define UR_EDGE_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * EDGE-THREAD-01. Around everything that starts threads: they inherit the mask. Signals are for the
 * application's own threads; they must interrupt what waits there, and run handlers that know
 * nothing of ours.
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

#endif
