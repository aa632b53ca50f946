/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_PROGRESS_H
#define UR_API_PROGRESS_H

#include <stdbool.h>

struct ur_device;

/*
 * The progress thread, of which each endpoint has one. In inline mode it runs rounds of a worker
 * that no call has run for a millisecond, or, with [worker] progress = adaptive, as edge/rest.h says. In both modes it updates paths whose neighbours have
 * changed (follow.h), does what the management agent leaves to it (mgmt.h), and gives workers the memory that they want for queue pairs with a gap.
 */

/* Starts the thread. Returns 0 or an errno value. Thread class: control. */
int ur_progress_start(struct ur_device *dev);

/*
 * Ends the thread if it is running, and joins it. `exiting`: called from exit(), perhaps in a
 * signal handler. The thread may then be waiting for a worker that is interrupted, so it is
 * abandoned after a second. Thread class: control.
 */
void ur_progress_stop(struct ur_device *dev, bool exiting);

/* Whether it makes rounds as edge/rest.h says. Thread class: any. */
bool ur_progress_is_adaptive(const struct ur_device *dev);

/*
 * EDGE-REST-09. A thread of the application is about to sleep until an event wakes it, and another one makes the rounds: the progress thread, or one that leads
 * (wait.h). If that stands back, it takes over at once. Thread class: any.
 */
void ur_progress_call(struct ur_device *dev);

#endif
