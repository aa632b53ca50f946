/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SCHED_EMUX_H
#define UR_SCHED_EMUX_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/attr.h"
#include "sched/sched.h"
#include "vl/vl.h"

/*
 * The event multiplexer: the only door to scheduling state (docs/design/sending.md; the cacheless
 * scheduler of SRNIC). A queue is in its lane's ready list exactly while it is active, its gate is
 * not closed and its lane is served; then it has turns. What holds it back from outside closes the
 * gate, where it waits.
 *
 * Thread class: one worker. Every operation takes constant time, but for ur_emux_gate_open(), which
 * is given how many it may wake.
 */
/* Holds queues back while it is closed. Part of its owner, which outlives who refers to it. */
struct ur_gate {
	struct ur_sched waiting; /* in the order in which they came */
	bool closed;
};

/* A send queue or a queue of responses. */
struct ur_emux_queue {
	struct ur_sched_node node; /* in a ready list or in a gate's */
	uint8_t state;		   /* private: enum ur_emux_state */
	uint8_t at;		   /* private: which of its lane's ready lists */
	uint8_t sl;		   /* [0, 15] */
	uint8_t vl;		   /* of sl; UR_VL_CNT: unserved */
	uint8_t priority;	   /* [0, UR_EMUX_PRIORITIES), UR_EMUX_STRICT */
	uint8_t weight;		   /* [1, 255], UR_EMUX_WRR */
	struct ur_gate *gate;	   /* NULL: none */
};

struct ur_emux_turn {
	struct ur_emux_queue *queue; /* NULL: no turn is open */
	uint32_t bytes, wqes;	     /* left; valid with queue */
	bool fruitful;		     /* something was sent */
};

struct ur_emux {
	uint16_t ready_lanes; /* bit v: lane v has a ready queue */
	uint32_t ready_cnt;   /* queues in ready lists */
	uint32_t held_cnt;    /* queues at gates */
	struct ur_emux_attr attr;
	const struct ur_vl *vl;
	struct ur_emux_turn turn[UR_VL_CNT];
	uint8_t ready_priorities[UR_VL_CNT]; /* bit p: ready[v][p] is not empty */
	struct ur_sched ready[UR_VL_CNT][UR_EMUX_PRIORITIES];
	/* These only grow. */
	uint64_t turns, blind_visits, sifted, woken;
};

/* `vl` stays where it is; what its tables say may change, ur_emux_remap() follows. */
void ur_emux_init(struct ur_emux *x, const struct ur_emux_attr *attr, const struct ur_vl *vl);
/* The policy or the length of turns changes; open turns end. Queues follow by ur_emux_remap(). */
void ur_emux_change(struct ur_emux *x, const struct ur_emux_attr *attr);

void ur_gate_init(struct ur_gate *g);

/* Idle, of this service level, weight 1, priority 0, without a gate. `kind` is the owner's. */
void ur_emux_queue_init(const struct ur_emux *x, struct ur_emux_queue *q, uint8_t kind, uint8_t sl);

void ur_emux_activate(struct ur_emux *x, struct ur_emux_queue *q);
void ur_emux_deactivate(struct ur_emux *x, struct ur_emux_queue *q);

enum ur_emux_state {
	UR_EMUX_IDLE,
	UR_EMUX_READY,
	UR_EMUX_HELD,
	UR_EMUX_UNSERVED,
};

static inline bool ur_emux_is_active(const struct ur_emux_queue *q)
{
	return q->state != UR_EMUX_IDLE;
}

/* What the transport says: it has something that it may send, or it has not. */
static inline void ur_emux_set(struct ur_emux *x, struct ur_emux_queue *q, bool active)
{
	if (active == ur_emux_is_active(q))
		return;
	if (active)
		ur_emux_activate(x, q);
	else
		ur_emux_deactivate(x, q);
}

/* What the tables say of its service level, or the policy, has changed. */
void ur_emux_remap(struct ur_emux *x, struct ur_emux_queue *q);
void ur_emux_set_share(struct ur_emux *x, struct ur_emux_queue *q, uint8_t priority,
		       uint8_t weight);
void ur_emux_set_sl(struct ur_emux *x, struct ur_emux_queue *q, uint8_t sl);
void ur_emux_set_gate(struct ur_emux *x, struct ur_emux_queue *q, struct ur_gate *gate);

/* Opens the gate; at most `n` of those that wait go on. The others wait for the next call. */
void ur_emux_gate_open(struct ur_emux *x, struct ur_gate *g, uint32_t n);

/* Whose turn it is in lane `vl` of ready_lanes; NULL: gates closed for all that were there. */
struct ur_emux_queue *ur_emux_turn(struct ur_emux *x, unsigned vl);
/* The queue that has the turn in `vl` sent a packet and began so many WQEs. False: it is over. */
bool ur_emux_sent(struct ur_emux *x, unsigned vl, uint32_t bytes, uint32_t wqes);
/* It sends nothing more now. */
void ur_emux_end_turn(struct ur_emux *x, unsigned vl);

/* Who comes after the open turn in `vl`, to be prefetched; NULL: nobody. */
static inline struct ur_emux_queue *ur_emux_after(const struct ur_emux *x, unsigned vl)
{
	const struct ur_emux_turn *t = &x->turn[vl];

	return t->queue ? (struct ur_emux_queue *)(void *)TAILQ_NEXT(&t->queue->node, link) : NULL;
}

/* Asserts what is stated above. */
void ur_emux_validate(const struct ur_emux *x);

#endif
