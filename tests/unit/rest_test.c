/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "edge/rest.h"

/* EDGE-REST-01 */

#define T0 1000000000

Test(rest, stands_back_while_the_application_works)
{
	cr_expect_not(ur_rest_may_work(T0, T0));
	cr_expect_not(ur_rest_may_work(T0 + UR_REST_STAND_NS - 1, T0));
	cr_expect(ur_rest_may_work(T0 + UR_REST_STAND_NS, T0));
	cr_expect(ur_rest_may_work(T0, 0));
}

/* EDGE-REST-06 */
Test(rest, an_ack_waits_for_an_application_that_was_here)
{
	struct ur_rest_worker w = {0};

	cr_expect_not(ur_rest_is_left_alone(&w, T0, T0 - UR_REST_STAND_NS, false));
	cr_expect(ur_rest_is_left_alone(&w, T0 + UR_REST_STAND_NS, T0 - UR_REST_STAND_NS, false));
	cr_expect(ur_rest_may_be_answered(&w, T0));
	ur_rest_made_round(&w, T0);
	cr_expect(ur_rest_is_left_alone(&w, T0 + UR_REST_MAX_NS, T0, false));
	cr_expect(ur_rest_may_be_answered(&w, T0 + UR_REST_MAX_NS),
		  "its own rounds are not the application's");
	cr_expect_not(ur_rest_may_be_answered(&w, T0 + 2 * UR_REST_MAX_NS),
		      "an application that sleeps answers nothing");
}

/* EDGE-REST-09 */
Test(rest, an_application_that_says_so_is_absent_until_its_next_round)
{
	struct ur_rest_worker w = {0};

	cr_expect_not(ur_rest_is_left_alone(&w, T0, T0 - 1, false));
	ur_rest_leave(&w, T0 - 1);
	cr_expect(ur_rest_is_left_alone(&w, T0, T0 - 1, false));
	cr_expect_not(ur_rest_may_be_answered(&w, T0), "it sleeps");
	ur_rest_made_round(&w, T0);
	cr_expect(ur_rest_is_left_alone(&w, T0 + 1, T0, false));
	cr_expect_not(ur_rest_is_left_alone(&w, T0 + 2, T0 + 1, false), "it is back");
}

/* EDGE-REST-09 */
Test(rest, an_application_that_works_all_the_same_is_left_in_peace)
{
	struct ur_rest_worker w = {0};

	ur_rest_leave(&w, T0 - 1);
	cr_expect_not(ur_rest_is_left_alone(&w, T0, T0 - 1, true), "the thread was in its way");
	ur_rest_leave(&w, T0 - 1);
	cr_expect_not(ur_rest_is_left_alone(&w, T0 + 1, T0, false), "it has made a round since");
}

/* EDGE-REST-07 */
Test(rest, an_application_that_lost_the_cpu_is_there)
{
	struct ur_rest_worker w = {0};
	uint64_t due_ns = T0, last_ns;
	struct ur_rest r;

	ur_rest_init(&r, false);
	for (int i = 0; i < 100; i++) {
		last_ns = due_ns;
		/* All threads of this CPU stand still. */
		due_ns += 2 * UR_REST_STAND_NS;
		cr_assert_not(ur_rest_is_left_alone(&w, due_ns, last_ns, false), "look %d", i);
		cr_assert(w.in_doubt);
		due_ns += ur_rest_in_doubt(ur_rest_stand_back(&r));
	}
	/* It has made no round since. */
	cr_expect(ur_rest_is_left_alone(&w, due_ns, last_ns, false));
	cr_expect_eq(due_ns - last_ns, 3 * UR_REST_STAND_NS, "the second look is late");
}

/* EDGE-REST-07: with another worker to serve, the thread looks again at once. */
Test(rest, doubt_lasts_its_time_however_often_the_thread_looks)
{
	struct ur_rest_worker w = {0};
	uint64_t last_ns = T0 - 2 * UR_REST_STAND_NS;

	for (unsigned ns = 0; ns < UR_REST_STAND_NS; ns += 1000)
		cr_assert_not(ur_rest_is_left_alone(&w, T0 + ns, last_ns, false), "%u ns later",
			      ns);
	cr_expect(ur_rest_is_left_alone(&w, T0 + UR_REST_STAND_NS, last_ns, false));
	cr_expect(ur_rest_is_left_alone(&w, T0 + UR_REST_STAND_NS + 1, last_ns, false));
}

/* EDGE-REST-07: the thread woke on the application's CPU, and late. */
Test(rest, an_application_that_worked_until_the_thread_woke_is_in_no_doubt)
{
	struct ur_rest_worker w = {0};

	cr_expect_not(ur_rest_is_left_alone(&w, T0, T0 + 2000, false));
	cr_expect_not(w.in_doubt);
}

/* EDGE-REST-07: one that had just made a round, at the last look, is in no doubt. */
Test(rest, an_application_that_has_stopped_is_replaced_at_once)
{
	struct ur_rest_worker w = {0};

	cr_expect_not(ur_rest_is_left_alone(&w, T0, T0 - 1, false));
	cr_expect_not(w.in_doubt);
	cr_expect(ur_rest_is_left_alone(&w, T0 + UR_REST_STAND_NS, T0 - 1, false));
}

Test(rest, looks_ever_more_seldom)
{
	struct ur_rest r;
	uint64_t sleep_ns = 0, sum = 0;

	ur_rest_init(&r, false);
	cr_expect_eq(ur_rest_stand_back(&r), UR_REST_STAND_NS);
	for (int i = 0; i < 100; i++) {
		uint64_t next = ur_rest_stand_back(&r);

		cr_expect_geq(next, sleep_ns);
		sleep_ns = next;
		sum += next;
	}
	cr_expect_eq(sleep_ns, UR_REST_MAX_NS);
	/* About as often as once in a millisecond, over all. */
	cr_expect_gt(sum, UINT64_C(94) * UR_REST_MAX_NS);
}

Test(rest, spins_after_a_packet_then_sleeps_in_growing_steps)
{
	struct ur_rest r;
	uint64_t now = T0;

	ur_rest_init(&r, false);
	ur_rest_after(&r, now - UR_REST_DENSE_NS + 1, 1);
	ur_rest_after(&r, now - 1, 0);
	cr_expect_eq(ur_rest_after(&r, now, 3), 0);
	cr_expect_eq(ur_rest_after(&r, now + UR_REST_SPIN_NS - 1, 0), 0);
	now += UR_REST_SPIN_NS;
	cr_expect_eq(ur_rest_after(&r, now, 0), UR_REST_STEP_NS);
	cr_expect_eq(ur_rest_after(&r, now, 0), 2 * UR_REST_STEP_NS);
	for (int i = 0; i < 10; i++)
		ur_rest_after(&r, now, 0);
	cr_expect_eq(ur_rest_after(&r, now, 0), UR_REST_MAX_NS);
	/* A packet begins anew, standing back as well. */
	for (int i = 0; i < 10; i++)
		ur_rest_stand_back(&r);
	cr_expect_eq(ur_rest_after(&r, now, 1), 0);
	cr_expect_eq(ur_rest_after(&r, now + UR_REST_SPIN_NS, 0), UR_REST_STEP_NS);
	cr_expect_eq(ur_rest_stand_back(&r), UR_REST_STAND_NS);
}

/* The next one may be far. */
Test(rest, a_packet_that_comes_alone_does_not_make_it_spin)
{
	struct ur_rest r;

	ur_rest_init(&r, false);
	for (int i = 0; i < 10; i++) {
		uint64_t now = T0 + i * (uint64_t)(UR_REST_DENSE_NS + 1);

		cr_expect_eq(ur_rest_after(&r, now, 1), 0, "the answer is to be sent");
		cr_expect_eq(ur_rest_after(&r, now + 1, 1), 0, "it is");
		cr_expect_eq(ur_rest_after(&r, now + 2, 0), UR_REST_STEP_NS);
	}
	for (int i = 0; i < 10; i++) {
		uint64_t now = T0 + 10 * (uint64_t)UR_REST_DENSE_NS + i * UR_REST_ANSWER_NS;

		ur_rest_after(&r, now, 1);
		cr_expect_eq(ur_rest_after(&r, now + 1, 0), 0,
			     "packets that come one after the other do");
	}
}

Test(rest, does_not_spin_before_the_first_packet)
{
	struct ur_rest r;

	ur_rest_init(&r, false);
	cr_expect_eq(ur_rest_after(&r, 1, 0), UR_REST_STEP_NS);
}

Test(rest, never_spins_on_a_single_cpu)
{
	struct ur_rest r;

	ur_rest_init(&r, true);
	cr_expect_eq(ur_rest_after(&r, T0, 5), 0, "the answer is sent");
	cr_expect_eq(ur_rest_after(&r, T0 + 1, 5), 0);
	cr_expect_eq(ur_rest_after(&r, T0 + 2, 0), UR_REST_STEP_NS);
	cr_expect_eq(ur_rest_after(&r, T0 + 3, 0), 2 * UR_REST_STEP_NS);
}

/*
 * The thread beside an application and a peer, in virtual time. The application works for a while, with a round at least every
 * `gap` < UR_REST_STAND_NS, then calls nothing for a while. Packets come all the time, in bursts. A round takes ROUND ns.
 */
#define ROUND	  400
#define STATES	  60
#define STATE_MAX 20000000

struct world {
	uint32_t seed;
	uint64_t now_ns;	/* of the thread */
	uint64_t until_ns;	/* the end of the application's state */
	uint64_t begun_ns;	/* its beginning */
	bool works;		/* the state */
	uint64_t round_ns, gap; /* the application's last round, the most between two */
	uint64_t last_ns;	/* the worker's last round, in any thread */
	uint64_t packet_ns;	/* the next packet */
	unsigned wakes, rounds, late;
};

static uint32_t some(struct world *w, uint32_t below)
{
	w->seed = w->seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)w->seed * below) >> 32);
}

/* What the application has done until now. */
static void let_application_work(struct world *w)
{
	while (w->until_ns <= w->now_ns) {
		w->begun_ns = w->until_ns;
		w->until_ns += 1000000 + some(w, STATE_MAX);
		w->works = !w->works;
		w->gap = 200 + some(w, UR_REST_STAND_NS - 400);
		if (w->works)
			w->round_ns = w->begun_ns;
	}
	while (w->works && w->round_ns + w->gap <= w->now_ns)
		w->round_ns += 100 + some(w, (uint32_t)w->gap - 100);
	if (w->round_ns > w->last_ns)
		w->last_ns = w->round_ns;
}

/* Packets that have come since the last round; the next one comes within 10 us, or after a pause. */
static unsigned take_packets(struct world *w)
{
	unsigned n = 0;

	while (w->packet_ns <= w->now_ns) {
		if (!w->works && w->packet_ns > w->begun_ns + 3 * UR_REST_MAX_NS &&
		    w->now_ns > w->packet_ns + UR_REST_MAX_NS + UR_REST_STAND_NS + ROUND)
			w->late++;
		w->packet_ns += some(w, 50) ? some(w, 10000) : some(w, 3000000);
		n++;
	}
	return n;
}

static void live(struct world *w, struct ur_rest *r, struct ur_rest_worker *seen)
{
	uint64_t sleep_ns;
	unsigned n;

	let_application_work(w);
	w->wakes++;
	if (!ur_rest_is_left_alone(seen, w->now_ns, w->last_ns, false)) {
		sleep_ns = ur_rest_stand_back(r);
		if (seen->in_doubt)
			sleep_ns = ur_rest_in_doubt(sleep_ns);
	} else {
		/* It never works beside the application. */
		cr_assert_geq(w->now_ns, w->round_ns + UR_REST_STAND_NS);
		w->rounds++;
		w->last_ns = w->now_ns;
		n = take_packets(w);
		ur_rest_made_round(seen, w->last_ns);
		sleep_ns = ur_rest_after(r, w->now_ns, n);
		cr_assert(!n || !sleep_ns, "a packet, and it sleeps");
	}
	cr_assert_leq(sleep_ns, UR_REST_MAX_NS);
	w->now_ns += ROUND + sleep_ns;
}

Test(rest, leaves_the_application_alone_and_serves_its_peers)
{
	for (uint32_t seed = 1; seed <= 10; seed++) {
		struct world w = {.seed = seed, .now_ns = T0, .until_ns = T0, .round_ns = T0};
		struct ur_rest_worker seen = {0};
		uint64_t begun_ns = 0;
		struct ur_rest r;
		unsigned wakes = 0;

		ur_rest_init(&r, false);
		for (unsigned states = 0; states < STATES;) {
			live(&w, &r, &seen);
			if (begun_ns != w.begun_ns) {
				begun_ns = w.begun_ns;
				wakes = w.wakes;
				states++;
			}
			/* It looks once in a millisecond, besides the first few times. */
			if (w.works)
				cr_assert_leq(w.wakes - wakes,
					      (w.now_ns - begun_ns) / UR_REST_MAX_NS + 8);
		}
		cr_assert_gt(w.rounds, 1000);
		cr_assert_eq(w.late, 0, "seed %u: %u packets were late", seed, w.late);
	}
}
