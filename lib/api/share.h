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
 * The port could not be opened for the reason `err`, with that negative errno. Returns whether
 * another driver was chosen, with which it can be tried again.
 */
bool ur_share_fall_back(struct ur_device *dev, int rc, const char *err);

/*
 * Learns the addresses, before DPDK is started. Does nothing without [port] dev. 0, or a negative
 * errno with a sentence in `err`.
 */
int ur_share_open(struct ur_device *dev, char *err, size_t cap);

/*
 * Holds UDP port 4791, once the interface is this endpoint's (iface_lock.h): another endpoint is
 * then not taken for a stranger. As ur_share_open().
 */
int ur_share_hold(struct ur_device *dev, char *err, size_t cap);

/* When no worker runs any more and the port is closed: the kernel answers for UDP port 4791 again. */
void ur_share_close(struct ur_device *dev);

/*
 * Takes over what has changed in the kernel, some hundred times a second at most: the GID table,
 * the state of the port, and their events. Thread class: the progress thread. Never waits for the
 * device's lock.
 */
void ur_share_follow(struct ur_device *dev, uint64_t now_ns);

#endif
