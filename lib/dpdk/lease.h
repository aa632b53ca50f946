/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_LEASE_H
#define UR_DPDK_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "edge/config.h"
#include "edge/lease_msg.h"

/*
 * A port leased from uroced (docs/design/uroced.md): the connection that the lease lasts with.
 * Thread class: open and close: one control thread. poll: one thread, until close. bind and unbind: any, until close.
 */
struct ur_lease;

enum ur_lease_event {
	UR_LEASE_SAME,
	UR_LEASE_LOST, /* the connection has ended; poll asks for the same lease again */
	UR_LEASE_BACK, /* there is one */
};

/*
 * UROCED-CLIENT-01: gets a lease for a configuration with [port] dev = uroced[:PATH][@ADDRESS], and makes it one of a memif
 * client. 0, or a negative errno with a sentence in `err`.
 */
int ur_lease_open(struct ur_config *cfg, struct ur_lease **out, char *err, size_t cap);

/* Gives the lease back. NULL: does nothing. */
void ur_lease_close(struct ur_lease *l);

/* What the endpoint's queue pair numbers begin with; zero: nothing. */
struct ur_qpn_prefix ur_lease_prefix(const struct ur_lease *l);

/* The address is that of a kernel interface, and the kernel's routes apply: every destination is resolved by ARP. */
bool ur_lease_is_kernels(const struct ur_lease *l);

/*
 * Binds a port of the address, which other processes have too, for this process; *port 0: an ephemeral one. Each bind of a port
 * needs an unbind. 0; -EADDRINUSE: another process has it; -ENOBUFS: this one has too many; -EADDRNOTAVAIL: none is free;
 * -ENETDOWN: the daemon does not answer. Without a prefix: 0, and nothing happens. The lease's ports are bound again when
 * the daemon was started again. Thread class: any but a worker.
 */
int ur_lease_bind(struct ur_lease *l, enum ur_lease_space space, uint16_t *port);
void ur_lease_unbind(struct ur_lease *l, enum ur_lease_space space, uint16_t port);

/*
 * A socket on which uroced writes when there are packets for the endpoint and its ring says that its consumer sleeps; -1: there
 * is none now. The lease owns it. Thread class: that of poll.
 */
int ur_lease_wake_fd(const struct ur_lease *l);

/* Whether the endpoint may have direct rings: with one worker, and without link credits. */
bool ur_lease_takes_direct(const struct ur_lease *l);

/* UROCED-DIRECT-01: asks uroced for a ring to this client. It may not answer. Thread class: that of poll. */
void ur_lease_request_ring(struct ur_lease *l, uint32_t client);

/*
 * Takes the next message about direct rings that has arrived, and its descriptor, which is the caller's, or -1. False: there is none.
 * After UR_LEASE_LOST there are none of before, and no ring is permitted any more. Thread class: that of poll.
 */
bool ur_lease_next_direct(struct ur_lease *l, struct ur_lease_direct *d, int *fd);

/* Looks at the connection; never waits. `now_ns` does not go back. */
enum ur_lease_event ur_lease_poll(struct ur_lease *l, uint64_t now_ns);

#endif
