/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SCHED_SCHED_H
#define UR_SCHED_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

/*
 * A FIFO list of objects that have work to do. The owner of an object sets and clears its
 * readiness. Nodes are embedded in their objects, which must be taken out of the list before they
 * are freed.
 *
 * Thread class: one worker. Every operation takes constant time.
 */
struct ur_sched_node {
	TAILQ_ENTRY(ur_sched_node) link;
	bool ready;   /* in the list */
	uint8_t kind; /* type of the object, for the owner's use */
};

struct ur_sched {
	TAILQ_HEAD(ur_sched_list, ur_sched_node) ready;
	uint32_t ready_cnt;
};

static inline void ur_sched_init(struct ur_sched *s)
{
	TAILQ_INIT(&s->ready);
	s->ready_cnt = 0;
}

/* Appends the node to the list or removes it. No effect if it is as wanted already. */
static inline void ur_sched_set(struct ur_sched *s, struct ur_sched_node *n, bool ready)
{
	if (n->ready == ready)
		return;
	n->ready = ready;
	if (ready) {
		TAILQ_INSERT_TAIL(&s->ready, n, link);
		s->ready_cnt++;
	} else {
		TAILQ_REMOVE(&s->ready, n, link);
		s->ready_cnt--;
	}
}

/* The first node, which stays in the list; NULL if the list is empty. */
static inline struct ur_sched_node *ur_sched_peek(const struct ur_sched *s)
{
	return TAILQ_FIRST(&s->ready);
}

/* Moves a node whose turn is over to the end of the list, if it is still ready. */
static inline void ur_sched_rotate(struct ur_sched *s, struct ur_sched_node *n)
{
	if (n->ready && TAILQ_NEXT(n, link)) {
		TAILQ_REMOVE(&s->ready, n, link);
		TAILQ_INSERT_TAIL(&s->ready, n, link);
	}
}

#endif
