/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_MEMIF_WAKE_H
#define UR_DPDK_MEMIF_WAKE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

/*
 * Being woken by the peer of a memif port (EDGE-REST-04). memif has an interrupt descriptor for each ring, an eventfd to which the
 * producer writes unless the consumer has set a flag of the ring. DPDK's driver does so as a producer. As a consumer it sets
 * the flag when it connects, has no receive interrupts, and exposes neither the descriptor nor the ring. Both are in the messages
 * with which the ends of a memif socket connect. So these are read as the driver sends or receives them (driver_call.h), and the
 * ring's header gets a mapping of its own here, which lives until the connection ends, whatever the driver unmaps before.
 *
 * Rings in a region other than the first, with a descriptor whose read could block, or with unknown contents never wake.
 *
 * Thread class: start and closed: control, and the driver's. arm and disarm: any thread.
 */

/* An end of a memif socket, as the process names it. */
struct ur_memif_end {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "": none */
	uint32_t id;
	bool server;
};

/* Called before a memif port connects. */
void ur_memif_wake_start(void);

/*
 * From now on a packet for one of the queues (bit i: queue i) makes a descriptor of `fd` readable. Returns how many there are, at most
 * `cap`; 0: the port is not connected, or cannot wake. What came before this call wakes no thread: the caller looks once more.
 * A descriptor that is closed meanwhile reports POLLNVAL. The peer orders its two accesses as its memory model does: a DPDK
 * peer has no fence between them, so in rare cases a packet does not wake. Several threads may sleep; each one for which it did not return 0
 * disarms.
 */
unsigned ur_memif_wake_arm(const struct ur_memif_end *end, uint32_t queues, struct pollfd *fd,
			   unsigned cap);
void ur_memif_wake_disarm(const struct ur_memif_end *end);

/*
 * EDGE-REST-05. In connections that this end makes from now on, the driver writes to a copy of `fd` when the consumer of a ring sleeps, and
 * not to a descriptor of its own, which uroced would not take from a stranger. One write, when the ring is made, says that this is so. -1: to its own. 0 or a negative errno.
 * Thread class: control.
 */
int ur_memif_wake_interrupt(const struct ur_memif_end *end, int fd);

/* The driver is about to close `fd`. */
void ur_memif_wake_closed(int fd);

/*
 * A message that was sent or received on the control connection `sock` of that end, with a descriptor, or -1, that stays
 * the caller's. The hooks call it.
 */
void ur_memif_wake_message(int sock, bool server, const uint8_t *msg, int fd);
/* `sock` connects to `path`, as a client. */
void ur_memif_wake_connect(int sock, const char *path);

#endif
