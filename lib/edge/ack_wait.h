/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_ACK_WAIT_H
#define UR_EDGE_ACK_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * How long an ACK waits for the caller's answer to what it acknowledges (EDGE-ACK-01, docs/design/worker.md). One that is all there
 * is to send waits until the caller has posted, or the time is over. It leaves with the next round after the answer. If a progress
 * thread has had to receive for the caller, the next ones leave in one burst with the answer (EDGE-ACK-02). Once the application has asked
 * for events of a completion queue of its sends and its receives, ACKs go ahead of its answers (EDGE-ACK-04).
 *
 * Thread class: that of the round; ur_ack_wait_put_first(): any thread.
 */
#define UR_ACK_WAIT_NS 1000
#define UR_ACK_WAIT_SYSCALL_NS                                                                     \
	8000 /* where a burst is a system call: an ACK behind an answer comes later by one */
#define UR_ACKS_WITH_ANSWER 1024 /* that leave in one burst with it */

struct ur_ack_wait {
	uint64_t since_ns;    /* 0: none waits */
	uint32_t for_ns;      /* 0: it does not wait */
	bool answered;	      /* the caller has posted since ACKs are owed */
	uint16_t with_answer; /* so many ACKs leave behind their answers, in one burst */
	_Atomic bool first;   /* ahead of them, in one burst */
};

static inline void ur_ack_wait_put_first(struct ur_ack_wait *w)
{
	atomic_store_explicit(&w->first, true, memory_order_relaxed);
}

static inline bool ur_ack_wait_is_first(const struct ur_ack_wait *w)
{
	return atomic_load_explicit(&w->first, memory_order_relaxed);
}

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
	w->since_ns = 0;
}

/* A progress thread has received in the caller's place, and the ACK waits. */
static inline void ur_ack_wait_kept(struct ur_ack_wait *w)
{
	w->with_answer = UR_ACKS_WITH_ANSWER;
}

/* ACKs are owed, and there is something to send: whether they leave behind it, in one burst. */
static inline bool ur_ack_wait_join(struct ur_ack_wait *w)
{
	if (!w->with_answer || !w->since_ns || ur_ack_wait_is_first(w))
		return false;
	w->with_answer--;
	return true;
}

/* An ACK is all there is to send: whether it waits. */
static inline bool ur_ack_wait_goes_on(const struct ur_ack_wait *w, uint64_t now_ns)
{
	return !w->answered && now_ns < w->since_ns + w->for_ns;
}

#endif
