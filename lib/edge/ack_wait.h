/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_ACK_WAIT_H
#define UR_EDGE_ACK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How long an ACK waits for the caller's answer to what it acknowledges (EDGE-ACK-01, docs/design/worker.md). One that is all there
 * is to send waits until the caller has posted, or the time is over. It leaves with the next round after the answer, or in one burst with it if a
 * progress thread has had to receive for the caller not long ago (EDGE-ACK-02). If a completion has raised an event, it does not wait at all (EDGE-ACK-03).
 *
 * Thread class: that of the round.
 */
#define UR_ACK_WAIT_NS 1000
#define UR_ACK_WAIT_SYSCALL_NS                                                                     \
	8000 /* where a burst is a system call: an ACK behind an answer comes later by one */
#define UR_ACK_JOINS 1024 /* ACKs that leave in one burst with the answer */

struct ur_ack_wait {
	uint64_t since_ns; /* 0: none waits */
	uint32_t for_ns;   /* 0: it does not wait */
	bool answered;	   /* the caller has posted since ACKs are owed */
	bool ahead;	   /* ACKs leave ahead of what the caller posts */
	uint16_t joins;	   /* so many ACKs leave in one burst with their answers */
};

/* What the caller posted is sent. `owed`: ACKs were owed before. */
static inline void ur_ack_wait_posted(struct ur_ack_wait *w, bool owed)
{
	w->answered |= owed;
}

/* ACKs are owed now, perhaps since before. */
static inline void ur_ack_wait_owed(struct ur_ack_wait *w, uint64_t now_ns)
{
	if (!w->since_ns)
		w->since_ns = now_ns;
}

/* ACKs are sent, if any are owed. */
static inline void ur_ack_wait_over(struct ur_ack_wait *w)
{
	w->answered = false;
	w->ahead = false;
	w->since_ns = 0;
}

/* A completion has raised an event. */
static inline void ur_ack_wait_woke(struct ur_ack_wait *w)
{
	w->ahead = true;
}

/* A progress thread has received in the caller's place, and the ACK waits. */
static inline void ur_ack_wait_kept(struct ur_ack_wait *w)
{
	w->joins = UR_ACK_JOINS;
}

/* There is something to send: whether what waits leaves in that burst, behind the rest. */
static inline bool ur_ack_wait_joins(struct ur_ack_wait *w)
{
	if (!w->joins || !w->since_ns || w->ahead)
		return false;
	w->joins--;
	return true;
}

/* An ACK is all there is to send: whether it waits. */
static inline bool ur_ack_wait_goes_on(const struct ur_ack_wait *w, uint64_t now_ns)
{
	return !w->answered && !w->ahead && now_ns < w->since_ns + w->for_ns;
}

#endif
