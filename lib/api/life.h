/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_LIFE_H
#define UR_API_LIFE_H

#include <stdbool.h>

struct ur_device;

/*
 * The open endpoints of the process. exit() without uroce_close() stops their threads, after the ACKs
 * that they owe have been sent (EDGE-OWED-01). A child of fork() has none of the threads, and leaves
 * the endpoints to its parent (EDGE-FORK-01).
 *
 * Thread class: any.
 */

/* Enlists an endpoint whose port is open; delist it before the port is closed. */
void ur_life_enlist(struct ur_device *dev);
void ur_life_delist(struct ur_device *dev);

/*
 * The lowest free number of an endpoint, so that repeated opening and closing needs few names. From 255
 * on they share that number.
 */
unsigned ur_life_take_number(void);
void ur_life_return_number(unsigned number);

/*
 * Before an endpoint is opened. False: a parent of this process has opened one, or was about to; DPDK has one process, and the
 * endpoint's locks may be held by threads that this process does not have (EDGE-FORK-03).
 */
bool ur_life_may_open(void);

/* True from the start of exit() on. */
bool ur_life_is_exiting(void);
/* True if another process, a parent of this one, opened the endpoints. */
bool ur_life_is_child(void);

#endif
