/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SCHED_EMUX_H
#define UR_SCHED_EMUX_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/attr.h"
#include "sched/sched.h"
#include "vl/vl.h"

/*
 * The event multiplexer (EMUX): the only code that changes scheduling state
 * (docs/design/sending.md; the cacheless scheduler of SRNIC). A queue is in the ready list of its
 * lane, and gets turns, exactly while it is active, its gate is open and its lane is served. While
 * its gate is closed, an active queue waits there.
 *
 * Queues and gates are embedded in objects of the caller; the EMUX allocates nothing.
 *
 * Thread class: one worker. Every operation takes constant time, except ur_emux_gate_open(), whose
 * caller limits the number of queues that it wakes.
 */
/* Holds queues back while it is closed. A gate must outlive the queues that refer to it. */
struct ur_gate {
	struct ur_sched waiting; /* in order of arrival */
	bool closed;
};

/* A send queue or a queue of responses. */
struct ur_emux_queue {
	struct ur_sched_node node; /* in a ready list or in a gate's */
	uint8_t state : 2;	   /* private: enum ur_emux_state */
	bool overran : 1;	   /* private: one turn was not enough since it became active */
	bool was_long : 1;	   /* private: nor was it the last time */
	bool may_lead : 1;	   /* SCHED-SPARSE-01 applies to it */
	uint8_t priority : 3;	   /* [0, UR_EMUX_PRIORITIES), UR_EMUX_STRICT */
	uint8_t at : 4;		   /* private: index of its ready list in the lane */
	uint8_t sl : 4;		   /* service level, [0, 15] */
	uint8_t vl;		   /* lane of `sl`; UR_VL_CNT: unserved */
	uint8_t weight;		   /* [1, 255], UR_EMUX_WRR */
	/* Private: its share of a round of the backlog; when that began, by `backlog_turns`, and what is spent. */
	uint16_t since, spent;
	struct ur_gate *gate; /* NULL: none */
};

struct ur_emux_turn {
	struct ur_emux_queue *queue; /* NULL: no turn is open */
	uint32_t bytes, wqes;	     /* left in the turn; valid while `queue` is set */
	uint32_t length;	     /* bytes in all; so is this */
	bool has_sent;		     /* a packet was sent in this turn */
};

struct ur_emux {
	uint16_t ready_lanes; /* bit v: lane v has a ready queue */
	uint32_t ready_cnt;   /* queues in ready lists */
	uint32_t held_cnt;    /* queues waiting at gates */
	struct ur_emux_attr attr;
	const struct ur_vl *vl;
	struct ur_emux_turn turn[UR_VL_CNT];
	uint8_t ready_priorities[UR_VL_CNT]; /* bit p: ready[v][p] is not empty */
	uint16_t backlog_turns[UR_VL_CNT];   /* turns begun of queues in list UR_EMUX_BACKLOG */
	uint8_t spent_shift;		     /* ur_emux_queue.spent has units of 1 << this bytes */
	struct ur_sched ready[UR_VL_CNT][UR_EMUX_PRIORITIES];
	/* Counters: turns begun; turns without a packet; queues of a ready list moved to a closed
	 * gate; queues woken by an opened gate. */
	uint64_t turns, blind_visits, sifted, woken;
};

/*
 * `vl` must outlive the EMUX and stay at its address. After its tables have changed, call
 * ur_emux_remap() for every queue.
 */
void ur_emux_init(struct ur_emux *x, const struct ur_emux_attr *attr, const struct ur_vl *vl);
/* Changes policy and length of turns, and ends open turns. Call ur_emux_remap() for every queue. */
void ur_emux_change(struct ur_emux *x, const struct ur_emux_attr *attr);

void ur_gate_init(struct ur_gate *g);

/* The queue that leaves the gate first when it opens; NULL: none waits. */
static inline struct ur_emux_queue *ur_gate_first(const struct ur_gate *g)
{
	return (struct ur_emux_queue *)(void *)ur_sched_peek(&g->waiting);
}

/* Initializes an idle queue: weight 1, priority 0, no gate, may not lead. `kind` is for the owner's use. */
void ur_emux_queue_init(const struct ur_emux *x, struct ur_emux_queue *q, uint8_t kind, uint8_t sl);

/* The queue is in no list: puts it into the list that it belongs to. Use ur_emux_set(). */
void ur_emux_activate(struct ur_emux *x, struct ur_emux_queue *q);
/* Takes the queue out of its list and ends its turn. Before the queue is freed it must be idle. */
void ur_emux_deactivate(struct ur_emux *x, struct ur_emux_queue *q);

/* Lists of a lane where priorities do not count, SCHED-SPARSE-01. */
enum { UR_EMUX_BACKLOG, UR_EMUX_SPARSE };

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

/* Sets whether the queue has something that it may send now. Called by the transport. */
static inline void ur_emux_set(struct ur_emux *x, struct ur_emux_queue *q, bool active)
{
	if (active == ur_emux_is_active(q))
		return;
	if (active)
		ur_emux_activate(x, q);
	else
		ur_emux_deactivate(x, q);
}

/* Updates a queue after a change of the VL tables or of the policy. */
void ur_emux_remap(struct ur_emux *x, struct ur_emux_queue *q);
void ur_emux_set_share(struct ur_emux *x, struct ur_emux_queue *q, uint8_t priority,
		       uint8_t weight);
void ur_emux_set_sl(struct ur_emux *x, struct ur_emux_queue *q, uint8_t sl);
void ur_emux_set_gate(struct ur_emux *x, struct ur_emux_queue *q, struct ur_gate *gate);

/* Opens the gate and wakes at most `n` of its queues. The others wait for the next call. */
void ur_emux_gate_open(struct ur_emux *x, struct ur_gate *g, uint32_t n);

static inline bool ur_emux_may_go(const struct ur_emux_queue *q)
{
	return !(q->gate && q->gate->closed);
}

/* The same as ur_emux_turn(), if no turn goes on. */
struct ur_emux_queue *ur_emux_begin_turn(struct ur_emux *x, unsigned vl);

/* SCHED-TURN-01 */
static inline void ur_emux_open_turn(struct ur_emux *x, unsigned vl, struct ur_emux_queue *q,
				     uint32_t times)
{
	x->turn[vl] = (struct ur_emux_turn){
		.queue = q,
		.bytes = x->attr.burst * times,
		.length = x->attr.burst * times,
		.wqes = x->attr.wqes * times,
	};
	x->turns++;
	if (q->at == UR_EMUX_BACKLOG) {
		q->since = ++x->backlog_turns[vl];
		q->spent = 0;
	}
}

/*
 * Returns the queue that has the turn in lane `vl`, which is in ready_lanes. NULL: the gates of all
 * queues of the lane were closed, and they wait there now.
 */
static inline struct ur_emux_queue *ur_emux_turn(struct ur_emux *x, unsigned vl)
{
	struct ur_emux_queue *q = x->turn[vl].queue;

	if (q && ur_emux_may_go(q))
		return q;
	q = (struct ur_emux_queue *)(void *)ur_sched_peek(
		&x->ready[vl][x->ready_priorities[vl] >> 1 & 1]);
	if (x->attr.policy != UR_EMUX_RR || !q || q->gate)
		return ur_emux_begin_turn(x, vl);
	ur_emux_open_turn(x, vl, q, 1);
	return q;
}

/*
 * Accounts for a packet of `bytes` and `wqes` begun WQEs of the queue that has the turn in `vl`.
 * Returns false if the turn is used up; the caller then calls ur_emux_end_turn().
 */
static inline bool ur_emux_charge(struct ur_emux *x, unsigned vl, uint32_t bytes, uint32_t wqes)
{
	struct ur_emux_turn *t = &x->turn[vl];

	t->has_sent = true;
	if (t->bytes <= bytes || t->wqes <= wqes) {
		t->bytes = t->bytes > bytes ? t->bytes - bytes : 0;
		return false;
	}
	t->bytes -= bytes;
	t->wqes -= wqes;
	return true;
}

/* The queue has nothing more to send. */
static inline void ur_emux_rest(struct ur_emux_queue *q)
{
	q->state = UR_EMUX_IDLE;
	q->was_long = q->overran;
	q->overran = false;
}

/* SCHED-SPARSE-01. Takes what the queue has sent in its turn in `vl`, and `more` bytes that it was not charged for, from its share. */
static inline void ur_emux_spend(const struct ur_emux *x, unsigned vl, struct ur_emux_queue *q,
				 uint32_t more)
{
	const struct ur_emux_turn *t = &x->turn[vl];
	uint32_t spent;

	if (!q->may_lead || !(x->ready_priorities[vl] & 1u << UR_EMUX_BACKLOG))
		return;
	spent = (t->length - t->bytes + more + (1u << x->spent_shift) - 1) >> x->spent_shift;
	q->spent = (uint16_t)(q->spent + spent < UINT16_MAX ? q->spent + spent : UINT16_MAX);
}

/* The list of queue `q`, which was in it, is empty. */
void ur_emux_list_emptied(struct ur_emux *x, const struct ur_emux_queue *q);

/*
 * ur_emux_set() of the queue that has the turn in `vl`: it has nothing more to send, and the turn was not charged for its last `bytes`.
 * During its turn it is the first of its list.
 */
static inline void ur_emux_finish(struct ur_emux *x, unsigned vl, struct ur_emux_queue *q,
				  uint32_t bytes)
{
	struct ur_sched *list = &x->ready[vl][q->at];

	ur_emux_spend(x, vl, q, bytes);
	ur_sched_set(list, &q->node, false);
	x->ready_cnt--;
	if (list->ready_cnt == 0)
		ur_emux_list_emptied(x, q);
	x->turn[vl].queue = NULL;
	ur_emux_rest(q);
}

/* Ends the turn in `vl`: it is used up, or the queue has nothing more to send. */
void ur_emux_end_turn(struct ur_emux *x, unsigned vl);

/* The queue after the one that has the turn in `vl`, for prefetching; NULL: none. */
static inline struct ur_emux_queue *ur_emux_peek_next(const struct ur_emux *x, unsigned vl)
{
	const struct ur_emux_turn *t = &x->turn[vl];

	return t->queue ? (struct ur_emux_queue *)(void *)TAILQ_NEXT(&t->queue->node, link) : NULL;
}

/* Asserts the invariants stated above. For tests. */
void ur_emux_validate(const struct ur_emux *x);

#endif
