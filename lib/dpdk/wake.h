/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_WAKE_H
#define UR_DPDK_WAKE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Sleeping until a port receives (EDGE-REST-03). DPDK's drivers for kernel interfaces have no receive interrupts, but their
 * sockets, packet sockets and XDP sockets, can be polled. The drivers do not expose them. So they are found as the sockets
 * of these kinds that the process did not have before the port was opened.
 *
 * Thread class: finding: the thread that opens the port; waiting: the progress thread.
 */

#define UR_WAKE_MAX	   32
#define UR_WAKE_BEFORE_MAX 64

struct ur_wake {
	struct pollfd fd[UR_WAKE_MAX]; /* fd -1: not any more */
	unsigned cnt;		       /* 0: the port cannot wake a thread */
};

struct ur_wake_before {
	int fd[UR_WAKE_BEFORE_MAX];
	unsigned cnt;
};

/* Notes the packet and XDP sockets of the process. */
void ur_wake_note(struct ur_wake_before *before);

/* Finds those that have been added. With more than UR_WAKE_MAX, or too many before, there are none. */
void ur_wake_find(struct ur_wake *wake, const struct ur_wake_before *before);

/*
 * Sleeps for `ns` nanoseconds, less than a second, or until a socket becomes readable; then it returns true. A socket that reports
 * anything else, as when its interface goes down, is not waited for again.
 */
bool ur_wake_wait(struct ur_wake *wake, uint64_t ns);

#endif
