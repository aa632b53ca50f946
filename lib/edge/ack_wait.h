/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_ACK_WAIT_H
#define UR_EDGE_ACK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How long ACKs wait for the caller's answer to what they acknowledge (EDGE-ACK-01, docs/design/worker.md). They wait while
 * they are all there is to send, until the caller has posted, or the time is over.
 *
 * Thread class: that of the round.
 */
#define UR_ACK_WAIT_NS 1000
#define UR_ACK_WAIT_SYSCALL_NS                                                                     \
	8000 /* where a burst is a system call: an ACK behind an answer comes later by one */

struct ur_ack_wait {
	uint64_t since_ns; /* 0: none waits */
	uint32_t for_ns;   /* 0: they do not wait */
	bool answered;	   /* the caller has posted since ACKs are owed */
};

/* What the caller posted is sent. `owed`: ACKs were owed before. */
static inline void ur_ack_wait_posted(struct ur_ack_wait *w, bool owed)
{
	w->answered |= owed;
}

/* ACKs are sent, if any are owed. */
static inline void ur_ack_wait_over(struct ur_ack_wait *w)
{
	w->answered = false;
	w->since_ns = 0;
}

/* Only ACKs are to be sent: whether they wait. */
static inline bool ur_ack_wait_goes_on(struct ur_ack_wait *w, uint64_t now_ns)
{
	if (w->answered)
		return false;
	if (!w->since_ns)
		w->since_ns = now_ns;
	return now_ns < w->since_ns + w->for_ns;
}

#endif
