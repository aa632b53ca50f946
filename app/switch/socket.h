/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_SOCKET_H
#define SWITCH_SOCKET_H

#include "device.h"

/*
 * A port of kind socket: a unix SOCK_SEQPACKET at a path, one Ethernet frame for each message. Each client
 * has a device of its own, whose link is up while it is connected. A client beyond their number is
 * disconnected at once.
 */

/* Makes spec->clients devices at devs, and what serves them. NULL: a sentence in `err`. */
struct device_group *socket_open(const struct switch_spec *spec, uint32_t max_frame,
				 struct rte_mempool *pool, struct device **devs, char *err,
				 size_t cap);

#endif
