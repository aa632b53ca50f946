/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <criterion/criterion.h>

#include "sched/emux.h"

/*
 * Compares the EMUX with a simple model based on arrays. After each random event, every list must
 * have the same queues in the same order.
 */
#define QUEUES 24
#define GATES  6
#define LISTS  (UR_VL_CNT * UR_EMUX_PRIORITIES + GATES)
#define EVENTS 20000

struct model_queue {
	bool active;
	unsigned sl, priority, weight;
	int gate; /* -1: none */
	int list; /* -1: in none */
	bool may_lead, overran, was_long;
	uint16_t since; /* turns of the backlog of its lane when its share began */
	uint32_t spent; /* of its share, in 256 parts of a turn at most */
};

struct model {
	struct model_queue q[QUEUES];
	bool closed[GATES];
	int lane[16]; /* of a service level, -1: none */
	enum ur_emux_policy policy;
	uint32_t wqes, burst;
	bool in_turn;
	uint16_t backlog_turns[UR_VL_CNT];
	unsigned order[LISTS][QUEUES], cnt[LISTS];
	int turn[UR_VL_CNT]; /* queue that has the turn; -1: none */
	bool has_sent[UR_VL_CNT];
	int64_t length[UR_VL_CNT], bytes_left[UR_VL_CNT], wqes_left[UR_VL_CNT];
	uint64_t turns, blind, sifted, woken;
	uint64_t led; /* turns of queues that went before a backlog */
};

static struct model m;
static struct ur_vl vl;
static struct ur_emux x;
static struct ur_emux_queue q[QUEUES];
static struct ur_gate gate[GATES];
static uint64_t seed;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % n);
}

/* ---- the model ---- */

static int gate_list(unsigned g)
{
	return (int)(UR_VL_CNT * UR_EMUX_PRIORITIES + g);
}

static int closed_gate_list(unsigned i)
{
	int g = m.q[i].gate;

	return g >= 0 && m.closed[g] ? gate_list((unsigned)g) : -1;
}

static unsigned backlog_of(unsigned lane)
{
	return m.cnt[lane * UR_EMUX_PRIORITIES + UR_EMUX_BACKLOG];
}

/* The least power of two of which a turn has 256 at most. */
static uint32_t unit(void)
{
	uint32_t bytes = 1;

	while (m.burst / bytes > 256)
		bytes *= 2;
	return bytes;
}

static unsigned times_of(unsigned i)
{
	return m.policy == UR_EMUX_WRR ? m.q[i].weight : 1;
}

static void leave(unsigned i)
{
	int l = m.q[i].list;
	unsigned at = 0;

	if (l < 0)
		return;
	for (unsigned v = 0; v < UR_VL_CNT; v++)
		if (m.turn[v] == (int)i && m.q[i].may_lead && backlog_of(v))
			m.q[i].spent +=
				(uint32_t)((m.length[v] - m.bytes_left[v] + unit() - 1) / unit());
	while (m.order[l][at] != i)
		at++;
	m.cnt[l]--;
	for (; at < m.cnt[l]; at++)
		m.order[l][at] = m.order[l][at + 1];
	m.q[i].list = -1;
	for (unsigned v = 0; v < UR_VL_CNT; v++)
		if (m.turn[v] == (int)i)
			m.turn[v] = -1;
}

/* Whether a queue that becomes ready goes before the backlog of its lane. */
static bool leads(unsigned i, unsigned lane)
{
	struct model_queue *p = &m.q[i];

	if (m.policy == UR_EMUX_STRICT || m.in_turn || !p->may_lead || p->was_long)
		return false;
	if (backlog_of(lane) == 0)
		return true;
	if ((uint16_t)(m.backlog_turns[lane] - p->since) >= backlog_of(lane)) {
		p->since = m.backlog_turns[lane];
		p->spent = 0;
	}
	return p->spent < m.burst / unit() * times_of(i);
}

/* Appends the queue to the list that it belongs to now. */
static void place(unsigned i)
{
	int lane = m.lane[m.q[i].sl], l = closed_gate_list(i);

	leave(i);
	if (!m.q[i].active || lane < 0)
		return;
	if (l < 0)
		l = lane * UR_EMUX_PRIORITIES + (m.policy == UR_EMUX_STRICT ? (int)m.q[i].priority
						 : leads(i, (unsigned)lane) ? UR_EMUX_SPARSE
									    : UR_EMUX_BACKLOG);
	m.order[l][m.cnt[l]++] = i;
	m.q[i].list = l;
}

static bool lane_is_ready(unsigned lane)
{
	for (unsigned p = 0; p < UR_EMUX_PRIORITIES; p++)
		if (m.cnt[lane * UR_EMUX_PRIORITIES + p])
			return true;
	return false;
}

static int model_turn(unsigned lane)
{
	if (m.turn[lane] >= 0 && closed_gate_list((unsigned)m.turn[lane]) < 0)
		return m.turn[lane];
	for (int p = UR_EMUX_PRIORITIES - 1; p >= 0; p--) {
		unsigned l = lane * UR_EMUX_PRIORITIES + (unsigned)p;

		while (m.cnt[l]) {
			unsigned i = m.order[l][0], times;

			if (closed_gate_list(i) >= 0) {
				place(i);
				m.sifted++;
				continue;
			}
			times = times_of(i);
			m.turn[lane] = (int)i;
			m.has_sent[lane] = false;
			m.bytes_left[lane] = m.length[lane] = (int64_t)m.burst * times;
			m.wqes_left[lane] = (int64_t)m.wqes * times;
			m.turns++;
			if (p == UR_EMUX_BACKLOG) {
				m.q[i].since = ++m.backlog_turns[lane];
				m.q[i].spent = 0;
			} else {
				m.led += m.policy != UR_EMUX_STRICT && backlog_of(lane);
			}
			return (int)i;
		}
	}
	return -1;
}

static void model_end_turn(unsigned lane)
{
	int i = m.turn[lane];

	m.blind += !m.has_sent[lane];
	if (i < 0)
		return;
	if (closed_gate_list((unsigned)i) >= 0) {
		place((unsigned)i);
	} else {
		/* To the end of its list, or of the backlog. */
		unsigned l = (unsigned)m.q[i].list;

		if (m.policy != UR_EMUX_STRICT)
			l = lane * UR_EMUX_PRIORITIES + UR_EMUX_BACKLOG;
		m.q[i].overran = true;
		m.turn[lane] = -1;
		leave((unsigned)i);
		m.order[l][m.cnt[l]++] = (unsigned)i;
		m.q[i].list = (int)l;
	}
}

/* ---- comparison ---- */

static void compare_list(const struct ur_sched *s, unsigned l, unsigned event)
{
	const struct ur_sched_node *n = ur_sched_peek(s);

	cr_assert_eq(s->ready_cnt, m.cnt[l], "event %u: %u in list %u, not %u", event, s->ready_cnt,
		     l, m.cnt[l]);
	for (unsigned i = 0; i < m.cnt[l]; i++, n = TAILQ_NEXT(n, link))
		cr_assert_eq(n, &q[m.order[l][i]].node, "event %u: number %u of list %u", event, i,
			     l);
	cr_assert_null(n);
}

static void compare(unsigned event)
{
	unsigned lanes = 0;

	ur_emux_validate(&x);
	for (unsigned v = 0; v < UR_VL_CNT; v++) {
		int i = m.turn[v];

		for (unsigned p = 0; p < UR_EMUX_PRIORITIES; p++)
			compare_list(&x.ready[v][p], v * UR_EMUX_PRIORITIES + p, event);
		lanes |= (unsigned)lane_is_ready(v) << v;
		cr_assert_eq(x.turn[v].queue, i < 0 ? NULL : &q[i], "event %u: turn in %u", event,
			     v);
		if (i >= 0) {
			cr_assert_eq(x.turn[v].bytes, m.bytes_left[v], "event %u", event);
			cr_assert_eq(x.turn[v].wqes, m.wqes_left[v], "event %u", event);
		}
	}
	for (unsigned g = 0; g < GATES; g++)
		compare_list(&gate[g].waiting, (unsigned)gate_list(g), event);
	cr_assert_eq(x.ready_lanes, lanes, "event %u", event);
	cr_assert_eq(x.turns, m.turns, "event %u", event);
	cr_assert_eq(x.blind_visits, m.blind, "event %u", event);
	cr_assert_eq(x.sifted, m.sifted, "event %u", event);
	cr_assert_eq(x.woken, m.woken, "event %u", event);
	for (unsigned i = 0; i < QUEUES; i++)
		cr_assert_eq(ur_emux_is_active(&q[i]), m.q[i].active, "event %u", event);
}

/* ---- events ---- */

static void activity(void)
{
	unsigned i = below(QUEUES);
	bool active = below(4) != 0;

	ur_emux_set(&x, &q[i], active);
	if (m.q[i].active == active)
		return;
	m.q[i].active = active;
	if (!active) {
		m.q[i].was_long = m.q[i].overran;
		m.q[i].overran = false;
	}
	place(i);
}

/* Serves a turn or a part of it: sends packets until it is over or another event happens. */
static void serve(void)
{
	unsigned lane = below(4);
	int i = model_turn(lane);

	cr_assert_eq(ur_emux_turn(&x, lane), i < 0 ? NULL : &q[i]);
	if (i < 0)
		return;
	for (unsigned n = below(12); n; n--) {
		uint32_t bytes = below(4096), wqes = below(3);
		bool goes_on = m.bytes_left[lane] > bytes && m.wqes_left[lane] > wqes;

		m.has_sent[lane] = true;
		cr_assert_eq(ur_emux_charge(&x, lane, bytes, wqes), goes_on);
		if (!goes_on) {
			m.bytes_left[lane] -=
				bytes < m.bytes_left[lane] ? bytes : m.bytes_left[lane];
			ur_emux_end_turn(&x, lane);
			model_end_turn(lane);
			return;
		}
		m.bytes_left[lane] -= bytes;
		m.wqes_left[lane] -= wqes;
	}
	if (below(2)) {
		ur_emux_end_turn(&x, lane);
		model_end_turn(lane);
	}
}

static void close_gate(void)
{
	unsigned g = below(GATES);

	gate[g].closed = m.closed[g] = true;
}

static void open_gate(void)
{
	unsigned g = below(GATES), n = below(6), l = (unsigned)gate_list(g);

	ur_emux_gate_open(&x, &gate[g], n);
	m.closed[g] = false;
	for (; n && m.cnt[l]; n--) {
		place(m.order[l][0]);
		m.woken++;
	}
}

static void change_gate(void)
{
	unsigned i = below(QUEUES);
	int g = (int)below(GATES + 1) - 1;

	ur_emux_set_gate(&x, &q[i], g < 0 ? NULL : &gate[g]);
	if (m.q[i].gate == g)
		return;
	m.q[i].gate = g;
	place(i);
}

static void change_sl(void)
{
	unsigned i = below(QUEUES), sl = below(6);

	ur_emux_set_sl(&x, &q[i], (uint8_t)sl);
	if (m.q[i].sl == sl)
		return;
	m.q[i].sl = sl;
	place(i);
}

static void change_share(void)
{
	unsigned i = below(QUEUES);

	m.q[i].priority = below(UR_EMUX_PRIORITIES);
	m.q[i].weight = 1 + below(5);
	ur_emux_set_share(&x, &q[i], (uint8_t)m.q[i].priority, (uint8_t)m.q[i].weight);
	place(i);
}

static void change_tables(void)
{
	struct ur_vl_attr a;
	struct ur_emux_attr attr = {(enum ur_emux_policy)below(3), 1 + below(10), 1 + below(20000),
				    below(4) == 0};

	ur_vl_attr_default(&a);
	for (unsigned sl = 0; sl < 6; sl++)
		a.sl2vl[sl] = (uint8_t)below(5);
	a.low[4].weight = 0;
	ur_vl_init(&vl, &a);
	ur_emux_change(&x, &attr);
	m.policy = attr.policy;
	m.wqes = attr.wqes;
	m.burst = attr.burst;
	m.in_turn = attr.in_turn;
	for (unsigned sl = 0; sl < 6; sl++)
		m.lane[sl] = a.sl2vl[sl] == 4 ? -1 : a.sl2vl[sl];
	for (unsigned v = 0; v < UR_VL_CNT; v++)
		m.turn[v] = -1;
	for (unsigned i = 0; i < QUEUES; i++) {
		ur_emux_remap(&x, &q[i]);
		place(i);
	}
}

static void start(unsigned number)
{
	static const struct ur_emux_attr attr = {UR_EMUX_RR, 1, 1};
	struct ur_vl_attr a;

	seed = number;
	memset(&m, 0, sizeof(m));
	ur_vl_attr_default(&a);
	ur_vl_init(&vl, &a);
	ur_emux_init(&x, &attr, &vl);
	for (unsigned v = 0; v < UR_VL_CNT; v++)
		m.turn[v] = -1;
	for (unsigned g = 0; g < GATES; g++)
		ur_gate_init(&gate[g]);
	for (unsigned i = 0; i < QUEUES; i++) {
		ur_emux_queue_init(&x, &q[i], 0, 0);
		q[i].may_lead = below(4) != 0;
		m.q[i] = (struct model_queue){.weight = 1,
					      .gate = -1,
					      .list = -1,
					      .may_lead = q[i].may_lead,
					      .since = 0x8000};
	}
	change_tables();
}

/* SCHED-READY-01, SCHED-TURN-01, SCHED-WAKE-01, SCHED-POLICY-01, SCHED-BLIND-01, SCHED-SPARSE-01 */
Test(emux_model, random_events_lead_to_the_same_lists)
{
	/* Frequencies of events, of 64. */
	static const struct {
		void (*happens)(void);
		unsigned share;
	} events[] = {{activity, 12},	{serve, 28},	{close_gate, 6},   {open_gate, 9},
		      {change_gate, 3}, {change_sl, 3}, {change_share, 2}, {change_tables, 1}};

	for (unsigned number = 1; number <= 20; number++) {
		start(number);
		for (unsigned n = 0; n < EVENTS; n++) {
			unsigned which = below(64), k = 0;

			for (; which >= events[k].share; k++)
				which -= events[k].share;
			events[k].happens();
			compare(n);
		}
		cr_assert_gt(m.turns, EVENTS / 10);
		cr_assert_gt(m.sifted, EVENTS / 100);
		cr_assert_gt(m.woken, EVENTS / 100);
		cr_assert_gt(m.led, EVENTS / 100);
	}
}
