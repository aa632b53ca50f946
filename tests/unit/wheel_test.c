/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <signal.h>

#include "timer/wheel.h"

#define TICK  (UINT64_C(1) << UR_WHEEL_TICK_SHIFT)
#define REACH (TICK << (UR_WHEEL_SLOT_BITS * UR_WHEEL_LEVELS)) /* of the last level */

/* splitmix64: a failing case is identified by its seed */
static uint64_t next_random(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* The first tick boundary at or after the deadline. */
static uint64_t fires_at(uint64_t deadline_ns)
{
	uint64_t part = deadline_ns % TICK;

	return part ? deadline_ns - part + TICK : deadline_ns;
}

/* Advances to the next time repeatedly until the timer fires; returns that time and the steps. */
static uint64_t run_until_fired(struct ur_wheel *w, struct ur_timer *t, uint64_t now, int *steps)
{
	for (*steps = 1;; ++*steps) {
		uint64_t next = ur_wheel_next(w);
		struct ur_timer *got;

		cr_assert_gt(next, now, "no progress at %lu", now);
		now = next;
		got = ur_wheel_expire(w, now);
		if (got) {
			cr_assert_eq(got, t);
			return now;
		}
	}
}

/* TIMER-FIRE-01: never before the deadline, at most one tick after it. */
Test(wheel, fires_at_the_deadline_rounded_up_to_a_tick)
{
	static const struct {
		uint64_t start, deadline, fires;
	} cases[] = {
		{0, 1, 1024},
		{0, 1023, 1024},
		{0, 1024, 1024},
		{0, 1025, 2048},
		{5, 1024, 1024},
		{1023, 2000, 2048},
		{0, 64 * 1024, 64 * 1024}, /* the first of level 1 */
		{0, 64 * 1024 - 1, 64 * 1024},
		{0, 64 * 1024 + 1, 65 * 1024},
		{63 * 1024, 64 * 1024, 64 * 1024}, /* near, but the carry reaches level 1 */
		{0, 4096 * 1024 + 1, 4097 * 1024},
		{4095 * 1024, 4096 * 1024, 4096 * 1024},
		{(TICK << 36) - 1, TICK << 36, TICK << 36}, /* the carry leaves the last level */
		{(TICK << 36) - 1, (TICK << 36) + 1, (TICK << 36) + TICK},
		{3, UINT64_C(1000000000), UINT64_C(1000000512)},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ur_timer t = {0};
		struct ur_wheel w;
		int steps;

		ur_wheel_init(&w, cases[i].start);
		ur_timer_set(&w, &t, cases[i].deadline);
		cr_assert_null(ur_wheel_expire(&w, cases[i].start), "case %zu", i);
		cr_expect_eq(run_until_fired(&w, &t, cases[i].start, &steps), cases[i].fires,
			     "case %zu", i);
		cr_expect_leq(steps, UR_WHEEL_LEVELS, "case %zu", i);
	}
}

Test(wheel, fires_on_time_when_expire_is_called_only_at_the_end)
{
	for (uint64_t d = 1; d < 4 * REACH; d = d * 3 + 1) {
		struct ur_timer t = {0};
		struct ur_wheel w;

		ur_wheel_init(&w, 0);
		ur_timer_set(&w, &t, d);
		cr_assert_null(ur_wheel_expire(&w, fires_at(d) - 1), "%lu early", d);
		cr_assert_eq(ur_wheel_expire(&w, fires_at(d)), &t, "%lu late", d);
		cr_assert_null(ur_wheel_expire(&w, fires_at(d)));
	}
}

/* TIMER-FIRE-02 */
Test(wheel, past_deadline_fires_at_the_next_expire)
{
	struct ur_timer zero = {0}, past = {0};
	struct ur_wheel w;

	ur_wheel_init(&w, 50 * TICK);
	ur_timer_set(&w, &zero, 0);
	ur_timer_set(&w, &past, 50 * TICK);
	cr_assert_leq(ur_wheel_next(&w), 50 * TICK);
	cr_assert_not_null(ur_wheel_expire(&w, 50 * TICK));
	cr_assert_not_null(ur_wheel_expire(&w, 50 * TICK));
	cr_assert_null(ur_wheel_expire(&w, 50 * TICK));
	cr_assert(!zero.armed && !past.armed);
}

/* TIMER-FIRE-03 */
Test(wheel, deadline_beyond_the_last_level_fires_on_time)
{
	static const uint64_t deadlines[] = {REACH, REACH + 1, 2 * REACH - TICK, 2 * REACH,
					     100 * REACH + 12345};
	static const uint64_t starts[] = {0, 777, REACH / 2 + 1, REACH - 1};

	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		for (size_t i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++) {
			struct ur_timer t = {0};
			struct ur_wheel w;
			int steps;

			ur_wheel_init(&w, starts[s]);
			ur_timer_set(&w, &t, starts[s] + deadlines[i]);
			cr_expect_eq(run_until_fired(&w, &t, starts[s], &steps),
				     fires_at(starts[s] + deadlines[i]));
		}
	}
}

Test(wheel, farthest_deadline_does_not_wrap_into_the_past)
{
	struct ur_timer t = {0};
	struct ur_wheel w;

	ur_wheel_init(&w, 0);
	ur_timer_set(&w, &t, UR_NEVER);
	cr_assert_null(ur_wheel_expire(&w, 1000 * REACH));
	cr_assert_null(ur_wheel_expire(&w, UINT64_MAX - TICK));
	cr_assert_gt(ur_wheel_next(&w), UINT64_MAX - TICK);
	cr_assert(t.armed);
}

/* TIMER-NEXT-01 */
Test(wheel, next_is_never_when_nothing_is_armed)
{
	struct ur_timer t = {0};
	struct ur_wheel w;

	ur_wheel_init(&w, 1);
	cr_assert_eq(ur_wheel_next(&w), UR_NEVER);
	ur_timer_set(&w, &t, 5 * TICK);
	cr_assert_eq(ur_wheel_next(&w), 5 * TICK);
	ur_timer_cancel(&w, &t);
	cr_assert_eq(ur_wheel_next(&w), UR_NEVER);
	cr_assert_eq(w.armed_cnt, 0);
}

/* TIMER-CANCEL-01 */
Test(wheel, cancelled_timer_does_not_fire)
{
	struct ur_timer a = {0}, b = {0};
	struct ur_wheel w;

	ur_wheel_init(&w, 0);
	ur_timer_set(&w, &a, 5 * TICK);
	ur_timer_set(&w, &b, 5 * TICK);
	ur_timer_cancel(&w, &a);
	ur_timer_cancel(&w, &a);
	cr_assert_eq(ur_wheel_expire(&w, 5 * TICK), &b);
	cr_assert_null(ur_wheel_expire(&w, 10 * TICK));
}

/* TIMER-CANCEL-01 */
Test(wheel, timer_found_expired_can_still_be_cancelled_or_moved)
{
	struct ur_timer t[3] = {0}, *first, *rest[2];
	struct ur_wheel w;
	int n = 0;

	ur_wheel_init(&w, 0);
	for (int i = 0; i < 3; i++)
		ur_timer_set(&w, &t[i], 7 * TICK);
	first = ur_wheel_expire(&w, 7 * TICK);
	cr_assert_not_null(first);
	for (int i = 0; i < 3; i++) {
		if (&t[i] != first)
			rest[n++] = &t[i];
	}
	ur_timer_cancel(&w, rest[0]);
	ur_timer_set(&w, rest[1], 9 * TICK);
	cr_assert_null(ur_wheel_expire(&w, 7 * TICK));
	cr_assert_eq(ur_wheel_next(&w), 9 * TICK);
	cr_assert_eq(ur_wheel_expire(&w, 9 * TICK), rest[1]);
	cr_assert_eq(w.armed_cnt, 0);
}

Test(wheel, set_moves_an_armed_timer_both_ways)
{
	struct ur_timer t = {0};
	struct ur_wheel w;

	ur_wheel_init(&w, 0);
	ur_timer_set(&w, &t, 3 * TICK);
	ur_timer_set(&w, &t, 5000 * TICK);
	cr_assert_eq(w.armed_cnt, 1);
	cr_assert_null(ur_wheel_expire(&w, 100 * TICK));
	ur_timer_set(&w, &t, 101 * TICK);
	cr_assert_eq(ur_wheel_next(&w), 101 * TICK);
	cr_assert_eq(ur_wheel_expire(&w, 101 * TICK), &t);
	cr_assert_eq(ur_wheel_next(&w), UR_NEVER);
}

Test(wheel, time_that_goes_back_is_our_own_bug, .signal = SIGABRT)
{
	struct ur_wheel w;

	ur_wheel_init(&w, 5 * TICK);
	ur_wheel_expire(&w, 4 * TICK);
}

#define TIMER_CNT 300

/* A model of the wheel that looks at every timer. */
struct model {
	struct ur_wheel wheel;
	struct ur_timer timers[TIMER_CNT];
	uint64_t fires[TIMER_CNT]; /* UR_NEVER: not armed */
	uint64_t now;
};

static uint64_t earliest(const struct model *m)
{
	uint64_t first = UR_NEVER;

	for (int i = 0; i < TIMER_CNT; i++) {
		if (m->fires[i] < first)
			first = m->fires[i];
	}
	return first;
}

static void expire_both(struct model *m, uint64_t seed)
{
	uint32_t armed_cnt = 0;
	struct ur_timer *t;

	while ((t = ur_wheel_expire(&m->wheel, m->now))) {
		long i = t - m->timers;

		cr_assert(i >= 0 && i < TIMER_CNT && !t->armed, "seed %lu", seed);
		cr_assert_leq(m->fires[i], m->now, "seed %lu: early", seed);
		m->fires[i] = UR_NEVER;
	}
	for (int i = 0; i < TIMER_CNT; i++)
		armed_cnt += m->fires[i] != UR_NEVER;
	cr_assert_gt(earliest(m), m->now, "seed %lu: late", seed);
	cr_assert_eq(m->wheel.armed_cnt, armed_cnt, "seed %lu", seed);
	cr_assert_gt(ur_wheel_next(&m->wheel), m->now, "seed %lu: next makes no progress", seed);
}

static void random_operation(struct model *m, uint64_t *random, uint64_t seed)
{
	uint64_t r = next_random(random), bits = next_random(random) % 50;
	uint64_t span = next_random(random) >> (63 - bits);
	int i = (int)(r >> 8) % TIMER_CNT;

	if (i < 0)
		i += TIMER_CNT;
	switch (r & 7) {
	case 0:
		ur_timer_cancel(&m->wheel, &m->timers[i]);
		m->fires[i] = UR_NEVER;
		break;
	case 1:
		/* Less than most timers wait, because otherwise the wheel would always be empty. */
		m->now += span >> (next_random(random) % 32);
		expire_both(m, seed);
		break;
	case 2:
		if (m->wheel.armed_cnt && ur_wheel_next(&m->wheel) > m->now)
			m->now = ur_wheel_next(&m->wheel);
		expire_both(m, seed);
		break;
	default:
		ur_timer_set(&m->wheel, &m->timers[i], m->now + span);
		m->fires[i] = fires_at(m->now + span);
		if (m->fires[i] < (m->wheel.tick << UR_WHEEL_TICK_SHIFT))
			m->fires[i] = m->wheel.tick << UR_WHEEL_TICK_SHIFT;
		break;
	}
	cr_assert_leq(ur_wheel_next(&m->wheel), earliest(m), "seed %lu: sleeps too long", seed);
}

/* What the wheel does is what a list of all timers does, through 10 000 operations with each of ten seeds. */
static void agrees(void (*operation)(struct model *m, uint64_t *random, uint64_t seed))
{
	static struct model m;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		uint64_t random = seed;

		m = (struct model){.now = next_random(&random) >> 10};
		for (int i = 0; i < TIMER_CNT; i++)
			m.fires[i] = UR_NEVER;
		ur_wheel_init(&m.wheel, m.now);
		for (int i = 0; i < 10000; i++)
			operation(&m, &random, seed);
	}
}

/* TIMER-FIRE-01, TIMER-FIRE-03, TIMER-CANCEL-01, TIMER-NEXT-01 */
Test(wheel, agrees_with_a_list_of_all_timers)
{
	agrees(random_operation);
}

/* Most are set a round trip ahead and cancelled by an answer; some wait much shorter or longer. */
static void operation_in_order(struct model *m, uint64_t *random, uint64_t seed)
{
	uint64_t r = next_random(random), span = 20000 + (r >> 40) % 64;
	unsigned i = (r >> 8) % TIMER_CNT;

	if (r % 16 == 0)
		span = next_random(random) % (2 * UR_WHEEL_NEAR_NS);
	if (m->fires[i] != UR_NEVER && r % 4) {
		ur_timer_cancel(&m->wheel, &m->timers[i]);
		m->fires[i] = UR_NEVER;
	} else {
		ur_timer_set(&m->wheel, &m->timers[i], m->now + span);
		m->fires[i] = fires_at(m->now + span);
	}
	cr_assert_leq(ur_wheel_next(&m->wheel), earliest(m), "seed %lu: sleeps too long", seed);
	m->now += (r >> 32) % 300;
	if (r >> 60 == 0)
		m->now = ur_wheel_next(&m->wheel) == UR_NEVER ? m->now : earliest(m);
	if (r >> 62 == 0)
		expire_both(m, seed);
}

/* TIMER-ORDER-01 */
Test(wheel, agrees_with_a_list_of_all_timers_that_are_set_in_order)
{
	agrees(operation_in_order);
}

/* TIMER-ORDER-01: a timer in the list and one in a slot of the same tick, and one behind both. */
Test(wheel, what_waits_in_order_and_what_waits_in_a_slot_fire_together)
{
	struct ur_timer later = {0}, in_order = {0}, slot = {0}, *first, *second;
	struct ur_wheel w;

	ur_wheel_init(&w, 0);
	ur_timer_set(&w, &in_order, 100 * TICK);
	ur_timer_set(&w, &later, 101 * TICK);
	ur_timer_set(&w, &slot, 100 * TICK);
	cr_assert_eq(ur_wheel_next(&w) % (64 * TICK), 0, "the slot is opened");
	cr_assert_null(ur_wheel_expire(&w, 99 * TICK));
	first = ur_wheel_expire(&w, 100 * TICK);
	second = ur_wheel_expire(&w, 100 * TICK);
	cr_assert((first == &in_order && second == &slot) ||
		  (first == &slot && second == &in_order));
	cr_assert_null(ur_wheel_expire(&w, 100 * TICK));
	cr_assert_eq(ur_wheel_expire(&w, 101 * TICK), &later);
	cr_assert_eq(w.armed_cnt, 0);
}
