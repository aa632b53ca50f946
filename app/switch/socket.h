/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_SOCKET_H
#define SWITCH_SOCKET_H

#include "device.h"

/*
 * A port of kind socket: a unix SOCK_SEQPACKET at a path, one Ethernet frame for each message. Each client
 * has a device of its own, whose link is up while it is connected. A client beyond their number is
 * disconnected at once.
 */
struct socket_port;

/* Makes spec->clients devices at devs. NULL: a sentence in `err`. */
struct socket_port *socket_open(const struct switch_spec *spec, uint32_t max_frame,
				struct rte_mempool *pool, struct device **devs, char *err,
				size_t cap);

/* Accepts clients that wait. */
void socket_accept(struct socket_port *s);

/* Ends listening and removes the path. The devices are closed by themselves, before. */
void socket_close(struct socket_port *s);

#endif
