/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_FOLLOW_H
#define UR_API_FOLLOW_H

#include <stdint.h>

#include "wire/path.h"

struct ur_device;

/*
 * Paths follow neighbours whose MAC address changes: another NIC or another host has taken over the
 * IP address. The path's headers are made once, so somebody has to look; that is the keeper, when
 * the table's generation has changed, and no more than ten times a second.
 */

/* Queue pairs, address handles and connections. Thread class: the keeper. Never waits for a lock.
 */
void ur_follow_neighbours(struct ur_device *dev, uint64_t now_ns);

/* A path was made of what the table said at that generation, and is known to the above from now on.
 */
void ur_follow_since(struct ur_device *dev, uint32_t generation);

/* The generation, to be asked for before the table. */
uint32_t ur_follow_generation(const struct ur_device *dev);

/* Gives the path the MAC address that the table has. Thread class: worker 0, or while it pauses. */
void ur_follow_path(const struct ur_device *dev, struct ur_path *path);

#endif
