/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_ASIDE_H
#define UROCED_ASIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "thread/thread.h"

#define ASIDE_STACK_BYTES (256 << 10)

/* Starts a thread for what could keep the thread that forwards waiting. Nobody joins it. False: there is none. */
static inline bool aside_start(void *(*work)(void *arg), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, ASIDE_STACK_BYTES);
	rc = ur_thread_start(&thread, &attr, work, arg);
	pthread_attr_destroy(&attr);
	return rc == 0;
}

#endif
