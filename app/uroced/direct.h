/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_DIRECT_H
#define UROCED_DIRECT_H

#include "client.h"

/*
 * Direct rings between two clients (docs/design/uroced.md). The daemon makes the memory, gives it to both, and has no part in
 * what follows. It remembers which clients are joined, and tells the other one when a lease ends.
 *
 * Thread class: the daemon's one thread.
 */

/*
 * UROCED-DIRECT-01: client `c` requests a ring to `to`, which is as in struct ur_lease_direct, among client[0, cnt), for packets of `mtu` bytes. They are joined
 * when both request it. Otherwise, and with too many rings, nothing happens: the frames go by the switch.
 */
void direct_request(struct client *const *client, unsigned cnt, struct client *c, uint32_t to,
		    uint32_t mtu);

/* The lease of `c` ends: its peers must not use their rings any more. */
void direct_part(struct client *const *client, unsigned cnt, struct client *c);

/* Tells a client what could not be sent to it before. */
void direct_tell(struct client *c);

#endif
