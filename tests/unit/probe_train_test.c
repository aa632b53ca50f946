/* SPDX-License-Identifier: BSD-3-Clause */
#include "selective_fixture.h"

TestSuite(probe_train, .init = start);

static unsigned places_taken(void)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < UR_PROBE_TRAINS; i++)
		cnt += pool.trains.place[i].of != NULL;
	return cnt;
}

/* Probes from `us` on, each at its deadline, up to the timeout, of which the time is returned. */
static long probe_until_timeout(long us, unsigned *probes)
{
	for (*probes = 0; expire((uint64_t)us) == UR_SELECTIVE_PROBE; ++*probes)
		us = deadline();
	return us;
}

/* EXT-SEL-TRAIN-01 */
Test(probe_train, probes_follow_each_other_faster_where_packets_are_being_lost)
{
	static const long at_us[] = {200, 300, 350, 375, 400, 425, 450, 475, 500,
				     525, 550, 575, 600, 625, 650, 675, 800, 925};

	ur_probe_train_note_loss(&pool.trains, at(0));
	send(3, 0);
	for (unsigned i = 0; i < sizeof(at_us) / sizeof(at_us[0]); i++) {
		cr_assert_eq(deadline(), at_us[i], "probe %u", i);
		cr_assert_eq(expire((uint64_t)at_us[i] - 1), UR_SELECTIVE_NOTHING);
		cr_assert_eq(expire((uint64_t)at_us[i]), UR_SELECTIVE_PROBE);
	}
	cr_assert_eq(places_taken(), 1);
	/* Its end is the timeout, which would have come then without a train as well. */
	cr_assert_eq(expire(1600), UR_SELECTIVE_RESEND);
	resend(0, 1600);
}

/* REPATH-REQ-02: when the others have taken the same path for four round trips. */
Test(probe_train, some_of_them_take_another_path)
{
	static const long again_us[] = {600, 1050, 1550, 2175};
	unsigned n = 0;
	long us = 200, timeout_us = 0;

	ur_probe_train_note_loss(&pool.trains, at(0));
	send(3, 0);
	for (; n < 4; us = deadline()) {
		enum ur_selective_verdict verdict = expire((uint64_t)us);

		if (verdict == UR_SELECTIVE_RESEND) {
			timeout_us = us;
			resend(0, (uint64_t)us);
		} else if (ur_selective_asks_again(&s, &env, at((uint64_t)us))) {
			cr_assert_eq(us, again_us[n++], "%ld us", us);
		}
	}
	cr_assert_eq(timeout_us, 1675);
}

Test(probe_train, does_not_begin_where_nothing_was_lost_lately)
{
	send(1, 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 600);
	cr_assert_eq(places_taken(), 0);
	start();
	ur_probe_train_note_loss(&pool.trains, at(0));
	send(1, 100000);
	cr_assert_eq(expire(100200), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 100600);
}

Test(probe_train, ends_after_four_timeouts)
{
	unsigned probes;
	long us = 200;

	ur_probe_train_note_loss(&pool.trains, at(0));
	send(1, 0);
	for (unsigned i = 0; i < UR_PROBE_TRAIN_TIMEOUTS; i++) {
		us = probe_until_timeout(us, &probes);
		cr_assert_geq(probes + 1, 8u << i);
		cr_assert_leq(probes, UR_PROBE_TRAIN_FAST + (8u << i));
		resend(0, (uint64_t)us);
		us = deadline();
	}
	cr_assert_eq(s.backoff, UR_PROBE_TRAIN_TIMEOUTS);
	cr_assert_eq(places_taken(), 0);
	probe_until_timeout(us, &probes);
	cr_assert_eq(probes, 3, "EXT-SEL-PROBE-02");
}

Test(probe_train, the_answer_to_any_of_them_shows_what_is_lost)
{
	ur_probe_train_note_loss(&pool.trains, at(0));
	send(3, 0);
	expire(200);
	expire(300);
	cr_assert_eq(expire(350), UR_SELECTIVE_PROBE);
	cr_assert_eq(news(0, 0, 300, 400), 0);
	cr_assert_eq(places_taken(), 0);
	resend(0, 400);
	resend(1, 400);
	resend(2, 400);
	cr_assert_eq(news(3, 0, 400, 500), 3);
	cr_assert_eq(deadline(), -1);
}

Test(probe_train, says_nothing_of_what_left_after_it_began)
{
	ur_probe_train_note_loss(&pool.trains, at(0));
	send(1, 0);
	expire(200);
	send(1, 250);
	expire(300);
	cr_assert_eq(news(0, 0, 200, 310), 0);
	cr_assert_eq(lost(), -1, "the last probe is of use for both");
	cr_assert_eq(news(0, 0, 300, 400), 0);
	resend(0, 400);
	cr_assert_eq(lost(), -1, "its age is 50 us");
}

/* However many queue pairs find silence, eight of a worker have trains. */
Test(probe_train, has_eight_places)
{
	ur_probe_train_note_loss(&pool.trains, at(0));
	for (unsigned i = 0; i < UR_PROBE_TRAINS; i++)
		pool.trains.place[i].of = &pool.trains.place[i];
	send(1, 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 600);
	pool.trains.place[3].of = NULL;
	cr_assert_eq(expire(600), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 700);
	cr_assert_eq(pool.trains.place[3].of, &s);
	ur_selective_stop(&s, &env);
	cr_assert_eq(places_taken(), UR_PROBE_TRAINS - 1);
}

/* EXT-SEL-PROBE-04 */
Test(probe_train, that_waits_for_its_turn_does_not_time_out)
{
	ur_probe_train_note_loss(&pool.trains, at(0));
	send(1, 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_PROBE);
	ur_selective_on_probe_sent(&s, &env, at(5000));
	cr_assert_eq(deadline(), 5100);
	cr_assert_eq(expire(5100), UR_SELECTIVE_PROBE);
}

/* EXT-SEL-RTO-02 */
Test(probe_train, its_timeout_is_bounded_as_well)
{
	static const struct ur_retry retry = {
		.timeout = 10}; /* an eighth is 524 us: no less than the first timeout */
	unsigned probes;
	long us;

	env.retry = &retry;
	ur_probe_train_note_loss(&pool.trains, at(0));
	send(1, 0);
	us = probe_until_timeout(200, &probes);
	resend(0, (uint64_t)us);
	cr_assert_leq(probe_until_timeout(deadline(), &probes), us + 1125);
}
