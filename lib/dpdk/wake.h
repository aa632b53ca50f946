/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_WAKE_H
#define UR_DPDK_WAKE_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "dpdk/memif_wake.h"
#include "edge/config.h"

/*
 * Sleeping until a port receives (EDGE-REST-03). DPDK's drivers for kernel interfaces have no receive interrupts, but their
 * descriptors can be polled: packet sockets, XDP sockets, and the queues of a tap. The drivers do not expose them. So they are
 * found as the descriptors of these kinds that the process did not have before the port was opened. A memif port has to be
 * armed before the sleep (memif_wake.h), and uroced wakes its clients by a socket.
 *
 * Thread class: finding: the thread that opens the port; the others: any thread that sleeps, each with a copy.
 */

#define UR_WAKE_MAX	   32
#define UR_WAKE_ARMED_MAX  33 /* rings, and uroced */
#define UR_WAKE_BEFORE_MAX 64
#define UR_WAKE_FDS_MAX	   (UR_WAKE_MAX + UR_WAKE_ARMED_MAX)

struct ur_wake {
	struct pollfd fd
		[UR_WAKE_FDS_MAX]; /* of the driver: fd -1: not any more; then those that are armed */
	unsigned cnt;		   /* of the driver */
	unsigned armed;		   /* after them */
	struct ur_memif_end end;   /* path "": not a memif port */
	int daemon;		   /* uroced's socket, the last of the armed ones, or -1 */
};

struct ur_wake_before {
	int fd[UR_WAKE_BEFORE_MAX];
	unsigned cnt;
};

/* Notes the descriptors of these kinds that the process has. */
void ur_wake_note(struct ur_wake_before *before);

/*
 * Finds those that have been added, and what the peer of a memif port of this configuration needs. With more than UR_WAKE_MAX
 * descriptors, or too many before, there are none.
 */
void ur_wake_find(struct ur_wake *wake, const struct ur_wake_before *before,
		  const struct ur_config *cfg);

/* Whether the port can wake a thread. */
static inline bool ur_wake_is_possible(const struct ur_wake *wake)
{
	return wake->cnt || wake->end.path[0];
}

/*
 * Before a wait: asks the peer of a memif port to wake this thread for these queues (bit i: queue i). `daemon`: uroced's socket, or
 * -1. True: it will, and has to be told that it need not; what came before woke no thread, so the caller makes a round.
 */
bool ur_wake_arm(struct ur_wake *wake, uint32_t queues, int daemon);
/* The peer need not wake anybody. */
void ur_wake_disarm(struct ur_wake *wake);

/*
 * Sleeps for `ns` nanoseconds, less than a second, or until a descriptor of the port becomes readable: then it returns 1; otherwise 0, or a negative errno, as of ppoll(). A
 * descriptor of the driver that reports anything else, as when its interface goes down, is not waited for again. One of the caller's own
 * descriptors ends the sleep, too; their revents are set as by ppoll(), and behind them there is room for UR_WAKE_FDS_MAX more. NULL, 0: it has none. `mask`: the signal
 * mask during the sleep, or NULL. Disarms.
 */
int ur_wake_wait(struct ur_wake *wake, struct pollfd *own, unsigned own_cnt, uint64_t ns,
		 const sigset_t *mask);

#endif
