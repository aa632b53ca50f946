/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_FOLLOW_H
#define UR_API_FOLLOW_H

#include <stdint.h>

#include "wire/path.h"

struct ur_device;

/*
 * Updates paths when the MAC address of a neighbour changes, because another NIC or host has taken
 * over the IP address. The headers of a path are built once, so the progress thread checks whether
 * the generation of the neighbour table has changed, at most ten times a second.
 */

/*
 * Updates the paths of queue pairs, address handles and connections. Never waits for a lock. Thread
 * class: the progress thread.
 */
void ur_follow_neighbours(struct ur_device *dev, uint64_t now_ns);

/*
 * Reports a new path that was built from the table at that generation. From now on
 * ur_follow_neighbours() updates it.
 */
void ur_follow_since(struct ur_device *dev, uint32_t generation);

/* The generation of the neighbour table. Read it before the table itself. */
uint32_t ur_follow_generation(const struct ur_device *dev);

/* Sets the path's MAC address from the table. Thread class: worker 0, or while it is paused. */
void ur_follow_path(const struct ur_device *dev, struct ur_path *path);

#endif
