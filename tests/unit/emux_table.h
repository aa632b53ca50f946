/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMUX_TABLE_H
#define EMUX_TABLE_H

#include <criterion/criterion.h>

#include "sched/emux.h"

/* An EMUX on the table: queues 0 to 7 of SL 0, two gates; SL i has VL i, SL 14 and 15 have none. */
#define NO_QUEUE 9

static struct ur_vl vl;
static struct ur_emux x;
static struct ur_emux_queue q[8];
static struct ur_gate pace, other;

static inline void tables(uint8_t unserved)
{
	struct ur_vl_attr a;

	ur_vl_attr_default(&a);
	a.low[unserved].weight = 0;
	a.sl2vl[15] = 15;
	ur_vl_init(&vl, &a);
}

static inline void start_with(enum ur_emux_policy policy)
{
	struct ur_emux_attr a = {policy, UR_EMUX_WQES, UR_EMUX_BURST};

	tables(14);
	ur_emux_init(&x, &a, &vl);
	ur_gate_init(&pace);
	ur_gate_init(&other);
	for (unsigned i = 0; i < 8; i++)
		ur_emux_queue_init(&x, &q[i], 0, 0);
}

static inline void start(void)
{
	start_with(UR_EMUX_RR);
}

static inline void policy(enum ur_emux_policy policy)
{
	struct ur_emux_attr a = {policy, UR_EMUX_WQES, UR_EMUX_BURST};

	ur_emux_change(&x, &a);
	for (unsigned i = 0; i < 8; i++)
		ur_emux_remap(&x, &q[i]);
	ur_emux_validate(&x);
}

/* The queues named by the digits become active, in this order. */
static inline void wake(const char *digits)
{
	for (; *digits; digits++) {
		ur_emux_set(&x, &q[*digits - '0'], true);
		ur_emux_validate(&x);
	}
}

static inline void sleeps(unsigned i)
{
	ur_emux_set(&x, &q[i], false);
	ur_emux_validate(&x);
}

static inline void open_for(struct ur_gate *g, uint32_t n)
{
	ur_emux_gate_open(&x, g, n);
	ur_emux_validate(&x);
}

static inline void behind(unsigned i, struct ur_gate *g)
{
	ur_emux_set_gate(&x, &q[i], g);
	ur_emux_validate(&x);
}

static inline unsigned turn(unsigned lane)
{
	struct ur_emux_queue *digits = ur_emux_turn(&x, lane);

	ur_emux_validate(&x);
	return digits ? (unsigned)(digits - q) : NO_QUEUE;
}

static inline bool sends(unsigned lane, uint32_t bytes, uint32_t wqes)
{
	bool goes_on = ur_emux_charge(&x, lane, bytes, wqes);

	ur_emux_validate(&x);
	return goes_on;
}

static inline void ends(unsigned lane)
{
	ur_emux_end_turn(&x, lane);
	ur_emux_validate(&x);
}

/* Whole turns of a packet each, of the queues named by the digits. */
static inline void expect_turns(unsigned lane, const char *digits)
{
	for (const char *c = digits; *c; c++) {
		unsigned is = turn(lane);

		cr_assert_eq(is, (unsigned)(*c - '0'), "turn %d of %s is %u's", (int)(c - digits),
			     digits, is);
		sends(lane, 100, 1);
		ends(lane);
	}
}

/* Packets of so many bytes and WQEs in the turn that is next in lane 0. */
static inline unsigned packets_in_turn(uint32_t bytes, uint32_t wqes)
{
	unsigned n = 1;

	cr_assert_neq(turn(0), NO_QUEUE);
	while (sends(0, bytes, wqes))
		n++;
	ends(0);
	return n;
}

static inline void expect_waiting(const struct ur_gate *g, const char *digits)
{
	const struct ur_sched_node *n = ur_sched_peek(&g->waiting);

	for (const char *c = digits; *c; c++, n = TAILQ_NEXT(n, link)) {
		cr_assert_not_null(n, "no queue waits as number %d of %s", (int)(c - digits),
				   digits);
		cr_assert_eq(n, &q[*c - '0'].node, "number %d of %s is another", (int)(c - digits),
			     digits);
	}
	cr_assert_null(n, "more than %s wait", digits);
}

static inline void expect(unsigned i, enum ur_emux_state state)
{
	cr_assert_eq(q[i].state, state, "queue %u is in state %u", i, q[i].state);
}

#endif
