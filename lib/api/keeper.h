/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_KEEPER_H
#define UR_API_KEEPER_H

#include <stdbool.h>

struct ur_device;

/*
 * The endpoint's own thread. Inline mode: it runs the workers when nothing else has for a while. In
 * both modes it has paths follow their neighbours (follow.h).
 */

/* 0 or an errno value. */
int ur_keeper_start(struct ur_device *dev);

/*
 * Ends it, if it runs. `exiting`: it may wait for a worker that exit() has interrupted, in a signal
 * handler, and is left alone after a second.
 */
void ur_keeper_stop(struct ur_device *dev, bool exiting);

#endif
