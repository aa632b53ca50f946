/* SPDX-License-Identifier: BSD-3-Clause */
#include "sched/emux.h"

#include "wire/assert.h"

#define LONG_AGO   0x8000 /* turns, for a queue that has not had one */
#define TURN_UNITS 256	  /* at most, of what a queue spends; 255 turns fit into 16 bits */

/* ---- life ---- */

/* The limits let a turn of weight 255 fit into 32 bits. */
static void set_attr(struct ur_emux *x, const struct ur_emux_attr *attr)
{
	UR_ASSERT(attr->wqes >= 1 && attr->wqes <= 1 << 24);
	UR_ASSERT(attr->burst >= 1 && attr->burst <= 1 << 24);
	x->attr = *attr;
	x->spent_shift = 0;
	while (attr->burst >> x->spent_shift > TURN_UNITS)
		x->spent_shift++;
}

void ur_emux_init(struct ur_emux *x, const struct ur_emux_attr *attr, const struct ur_vl *vl)
{
	*x = (struct ur_emux){.vl = vl};
	set_attr(x, attr);
	for (unsigned v = 0; v < UR_VL_CNT; v++)
		for (unsigned p = 0; p < UR_EMUX_PRIORITIES; p++)
			ur_sched_init(&x->ready[v][p]);
}

void ur_emux_change(struct ur_emux *x, const struct ur_emux_attr *attr)
{
	set_attr(x, attr);
	for (unsigned v = 0; v < UR_VL_CNT; v++)
		x->turn[v].queue = NULL;
}

void ur_gate_init(struct ur_gate *g)
{
	ur_sched_init(&g->waiting);
	g->closed = false;
}

static uint8_t lane_of(const struct ur_emux *x, uint8_t sl)
{
	int vl = ur_vl_of_sl(x->vl, sl);

	return vl < 0 ? UR_VL_CNT : (uint8_t)vl;
}

void ur_emux_queue_init(const struct ur_emux *x, struct ur_emux_queue *q, uint8_t kind, uint8_t sl)
{
	*q = (struct ur_emux_queue){.sl = sl, .vl = lane_of(x, sl), .weight = 1};
	q->node.kind = kind;
	if (q->vl != UR_VL_CNT)
		q->since = (uint16_t)(x->backlog_turns[q->vl] - LONG_AGO);
}

/* ---- lists ---- */

/* How many times as long its turn is. */
static uint32_t times_of(const struct ur_emux *x, const struct ur_emux_queue *q)
{
	return x->attr.policy == UR_EMUX_WRR ? q->weight : 1;
}

/*
 * SCHED-SPARSE-01. Whether the queue goes before those with a backlog: one turn was enough the last time, and its share of this round
 * is not spent. A round is over when each queue with a backlog could have had a turn.
 */
static bool is_sparse(struct ur_emux *x, struct ur_emux_queue *q)
{
	const struct ur_sched *backlog = &x->ready[q->vl][UR_EMUX_BACKLOG];
	uint16_t turns = (uint16_t)(x->backlog_turns[q->vl] - q->since);

	if (!q->may_lead || q->was_long || x->attr.in_turn)
		return false;
	if (backlog->ready_cnt == 0)
		return true;
	if (turns >= backlog->ready_cnt) {
		q->since = x->backlog_turns[q->vl];
		q->spent = 0;
	}
	return q->spent < (x->attr.burst >> x->spent_shift) * times_of(x, q);
}

/* SCHED-POLICY-01 */
static unsigned list_of(struct ur_emux *x, struct ur_emux_queue *q)
{
	if (x->attr.policy == UR_EMUX_STRICT)
		return q->priority;
	return is_sparse(x, q) ? UR_EMUX_SPARSE : UR_EMUX_BACKLOG;
}

static void make_ready(struct ur_emux *x, struct ur_emux_queue *q, unsigned p)
{
	q->state = UR_EMUX_READY;
	q->at = p & (UR_EMUX_PRIORITIES - 1);
	ur_sched_set(&x->ready[q->vl][p], &q->node, true);
	x->ready_cnt++;
	x->ready_priorities[q->vl] |= (uint8_t)(1u << p);
	x->ready_lanes |= (uint16_t)(1u << q->vl);
}

static void hold(struct ur_emux *x, struct ur_emux_queue *q)
{
	q->state = UR_EMUX_HELD;
	ur_sched_set(&q->gate->waiting, &q->node, true);
	x->held_cnt++;
}

void ur_emux_list_emptied(struct ur_emux *x, const struct ur_emux_queue *q)
{
	x->ready_priorities[q->vl] &= (uint8_t) ~(1u << q->at);
	if (x->ready_priorities[q->vl] == 0)
		x->ready_lanes &= (uint16_t) ~(1u << q->vl);
}

/* Takes the queue out of its list and ends its turn. */
static void leave(struct ur_emux *x, struct ur_emux_queue *q)
{
	unsigned vl = q->vl;

	if (q->state == UR_EMUX_HELD) {
		ur_sched_set(&q->gate->waiting, &q->node, false);
		x->held_cnt--;
	} else if (q->state == UR_EMUX_READY) {
		struct ur_sched *list = &x->ready[vl][q->at];

		if (x->turn[vl].queue == q)
			ur_emux_spend(x, vl, q, 0);
		ur_sched_set(list, &q->node, false);
		x->ready_cnt--;
		if (list->ready_cnt == 0)
			ur_emux_list_emptied(x, q);
		if (x->turn[vl].queue == q)
			x->turn[vl].queue = NULL;
	}
	q->state = UR_EMUX_IDLE;
}

void ur_emux_deactivate(struct ur_emux *x, struct ur_emux_queue *q)
{
	leave(x, q);
	ur_emux_rest(q);
}

/* SCHED-READY-01 */
void ur_emux_activate(struct ur_emux *x, struct ur_emux_queue *q)
{
	if (q->vl == UR_VL_CNT)
		q->state = UR_EMUX_UNSERVED;
	else if (ur_emux_may_go(q))
		make_ready(x, q, list_of(x, q));
	else
		hold(x, q);
}

/* ---- events ---- */

/* Moves an active queue to the list that it belongs to now. */
static void requeue(struct ur_emux *x, struct ur_emux_queue *q)
{
	if (!ur_emux_is_active(q))
		return;
	leave(x, q);
	ur_emux_activate(x, q);
}

void ur_emux_remap(struct ur_emux *x, struct ur_emux_queue *q)
{
	bool active = ur_emux_is_active(q);

	leave(x, q);
	q->vl = lane_of(x, q->sl);
	if (active)
		ur_emux_activate(x, q);
}

void ur_emux_set_sl(struct ur_emux *x, struct ur_emux_queue *q, uint8_t sl)
{
	if (q->sl == sl)
		return;
	q->sl = sl;
	ur_emux_remap(x, q);
}

void ur_emux_set_share(struct ur_emux *x, struct ur_emux_queue *q, uint8_t priority, uint8_t weight)
{
	UR_ASSERT(priority < UR_EMUX_PRIORITIES && weight >= 1);
	q->priority = priority & (UR_EMUX_PRIORITIES - 1);
	q->weight = weight;
	ur_emux_remap(x, q);
}

void ur_emux_set_gate(struct ur_emux *x, struct ur_emux_queue *q, struct ur_gate *gate)
{
	bool active = ur_emux_is_active(q);

	if (q->gate == gate)
		return;
	leave(x, q);
	q->gate = gate;
	if (active)
		ur_emux_activate(x, q);
}

/* SCHED-WAKE-01 */
void ur_emux_gate_open(struct ur_emux *x, struct ur_gate *g, uint32_t n)
{
	struct ur_sched_node *node;

	g->closed = false;
	while (n-- && (node = ur_sched_peek(&g->waiting))) {
		struct ur_emux_queue *q = (struct ur_emux_queue *)(void *)node;

		requeue(x, q);
		x->woken++;
	}
}

/* ---- turns ---- */

struct ur_emux_queue *ur_emux_begin_turn(struct ur_emux *x, unsigned vl)
{
	while (x->ready_priorities[vl]) {
		unsigned p = 31 - (unsigned)__builtin_clz(x->ready_priorities[vl]);
		struct ur_emux_queue *q =
			(struct ur_emux_queue *)(void *)ur_sched_peek(&x->ready[vl][p]);

		/* SCHED-BLIND-01: a queue whose gate is closed gets no turn; it moves to the gate. */
		if (!ur_emux_may_go(q)) {
			requeue(x, q);
			x->sifted++;
			continue;
		}
		ur_emux_open_turn(x, vl, q, times_of(x, q));
		return q;
	}
	return NULL;
}

void ur_emux_end_turn(struct ur_emux *x, unsigned vl)
{
	struct ur_emux_turn *t = &x->turn[vl];
	struct ur_emux_queue *q = t->queue;

	x->blind_visits += !t->has_sent;
	/* The queue may have been deactivated during its turn. */
	if (!q)
		return;
	if (!ur_emux_may_go(q)) {
		requeue(x, q);
		return;
	}
	t->queue = NULL;
	q->overran = true;
	if (q->at == UR_EMUX_SPARSE && x->attr.policy != UR_EMUX_STRICT) {
		leave(x, q);
		make_ready(x, q, UR_EMUX_BACKLOG);
	} else {
		ur_sched_rotate(&x->ready[vl][q->at], &q->node);
	}
}

/* ---- for tests ---- */

static void validate_list(const struct ur_sched *list, unsigned vl, unsigned p)
{
	const struct ur_sched_node *n;
	uint32_t cnt = 0;

	TAILQ_FOREACH(n, &list->ready, link)
	{
		const struct ur_emux_queue *q = (const void *)n;

		UR_ASSERT(n->ready && q->state == UR_EMUX_READY && q->vl == vl && q->at == p);
		cnt++;
	}
	UR_ASSERT(cnt == list->ready_cnt);
}

void ur_emux_validate(const struct ur_emux *x)
{
	uint32_t ready = 0;

	for (unsigned v = 0; v < UR_VL_CNT; v++) {
		const struct ur_emux_turn *t = &x->turn[v];

		for (unsigned p = 0; p < UR_EMUX_PRIORITIES; p++) {
			validate_list(&x->ready[v][p], v, p);
			ready += x->ready[v][p].ready_cnt;
			UR_ASSERT(!(x->ready_priorities[v] >> p & 1) ==
				  (x->ready[v][p].ready_cnt == 0));
		}
		UR_ASSERT(!(x->ready_lanes >> v & 1) == (x->ready_priorities[v] == 0));
		UR_ASSERT(!t->queue ||
			  (t->queue->state == UR_EMUX_READY && t->queue->vl == v &&
			   ur_sched_peek(&x->ready[v][t->queue->at]) == &t->queue->node));
	}
	UR_ASSERT(ready == x->ready_cnt);
	UR_ASSERT((x->ready_lanes & ~ur_vl_served(x->vl)) == 0);
}
