/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_SHARE_H
#define UR_API_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ur_device;

/*
 * An endpoint that shares a kernel interface ([port] dev): its GID table is the interface's
 * addresses, and its port is up while the link is and there is an address.
 */

/* Chooses the driver of a shared interface where the configuration names none. */
void ur_share_choose_driver(struct ur_device *dev);

/*
 * Call it when opening the port has failed with the negative errno `rc` and the message `err`. Returns
 * whether another driver was chosen, so that opening can be tried again.
 */
bool ur_share_fall_back(struct ur_device *dev, int rc, const char *err);

/*
 * Reads the addresses, before DPDK is started. Does nothing without [port] dev. 0, or a negative
 * errno with a sentence in `err`.
 */
int ur_share_open(struct ur_device *dev, char *err, size_t cap);

/*
 * Holds UDP port 4791. Call it when this endpoint has the interface lock (iface_lock.h), so that another
 * endpoint is not reported as an unknown program. Returns as ur_share_open().
 */
int ur_share_hold(struct ur_device *dev, char *err, size_t cap);

/* Releases UDP port 4791 to the kernel. Call it when no worker runs any more and the port is closed. */
void ur_share_close(struct ur_device *dev);

/*
 * Applies changes in the kernel to the GID table and the state of the port, and raises their events; at
 * most about a hundred times a second. Thread class: the progress thread. Never waits for the device's
 * lock.
 */
void ur_share_follow(struct ur_device *dev, uint64_t now_ns);

#endif
