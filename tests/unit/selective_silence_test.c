/* SPDX-License-Identifier: BSD-3-Clause */
#include "selective_fixture.h"

/* What happens when nothing arrives: probes and timeouts. */

/* EXT-SEL-PROBE-01 */
Test(selective, probes_a_silent_tail_once_and_learns_what_is_lost)
{
	send(10, 0);
	cr_assert_eq(deadline(), 200);
	news(6, 0, 0, 100);
	cr_assert_eq(deadline(), 300);
	cr_assert_eq(expire(299), UR_SELECTIVE_NOTHING);
	cr_assert_eq(expire(300), UR_SELECTIVE_PROBE);
	cr_assert_eq(expire(301), UR_SELECTIVE_NOTHING);
	cr_assert_eq(lost(), -1);
	/* 6 and 7 are lost; 8 and 9 no longer count as lost. */
	cr_assert_eq(news(6, 0x2, 300, 400), 1);
	cr_assert_eq(s.lost_cnt, 3);
	resend(6, 400);
	resend(7, 400);
	resend(9, 400);
	cr_assert_eq(news(10, 0, 400, 500), 3);
	cr_assert_eq(deadline(), -1);
}

/* EXT-SEL-PROBE-05 */
Test(selective, waits_as_long_as_peers_took_lately_before_it_asks)
{
	send(3, 0);
	ur_rtx_note_answer(&pool, UR_SLOW - 1, at(150));
	cr_assert_eq(pool.slow, 0);
	ur_rtx_note_answer(&pool, 62500, at(150));
	cr_assert_eq(expire(200), UR_SELECTIVE_NOTHING);
	cr_assert_eq(deadline(), 200 + 1500, "half as long again");
	cr_assert_eq(expire(1700), UR_SELECTIVE_PROBE, "no more is known");
}

/* EXT-SEL-PROBE-05 */
Test(selective, goes_by_its_own_round_trips_where_packets_are_lost_or_peers_have_become_fast)
{
	ur_rtx_note_answer(&pool, 62500, at(0));
	ur_probe_train_note_loss(&pool.trains, at(0));
	send(3, 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_PROBE);

	start();
	ur_rtx_note_answer(&pool, 62500, at(0));
	send(3, 6000);
	cr_assert_eq(expire(6200), UR_SELECTIVE_PROBE, "it is forgotten");
}

Test(selective, learns_from_a_probe_that_all_is_lost)
{
	send(3, 0);
	cr_assert_eq(expire(250), UR_SELECTIVE_PROBE);
	cr_assert_eq(news(0, 0, 250, 350), 0);
	resend(0, 350);
	resend(1, 350);
	resend(2, 350);
	cr_assert_eq(news(3, 0, 350, 450), 3);
	cr_assert_eq(pool.held_cnt, 0);
}

Test(selective, waits_longer_where_round_trips_vary)
{
	rtt.rttvar = 3125;
	send(1, 0);
	cr_assert_eq(deadline(), 400);
	start();
	rtt.srtt = rtt.rttvar = 10;
	send(1, 0);
	cr_assert_eq(deadline(), 10);
	start();
	rtt.srtt = 0;
	send(1, 0);
	cr_assert_eq(deadline(), 1000);
}

/* EXT-SEL-PROBE-03 */
Test(selective, who_was_sent_again_is_asked_about_after_two_round_trips)
{
	rtt.rttvar = 3125; /* the probe timeout is 400 us */
	send(1, 0);
	ur_selective_lose_una(&s, &env);
	resend(0, 100);
	cr_assert_eq(deadline(), 300);
	cr_assert_eq(expire(299), UR_SELECTIVE_NOTHING);
	cr_assert_eq(expire(300), UR_SELECTIVE_PROBE);
	/* The same with a context, but only while it is una. */
	start();
	rtt.rttvar = 3125;
	send(3, 0);
	news(0, 0x1, 0, 100);
	cr_assert_not_null(s.rtx);
	cr_assert_eq(deadline(), 500);
	ur_selective_lose_una(&s, &env);
	resend(0, 100);
	cr_assert_eq(deadline(), 300);
	news(2, 0, 100, 200);
	cr_assert_eq(deadline(), 600);
}

Test(selective, sending_more_puts_the_probe_off)
{
	send(1, 0);
	send(1, 150);
	cr_assert_eq(expire(200), UR_SELECTIVE_NOTHING);
	cr_assert_eq(deadline(), 350);
}

Test(selective, probes_early_where_only_the_age_of_a_gap_is_missing)
{
	send(200, 0);
	news_many(0, 150, 0, 100);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(deadline(), 100);
	cr_assert_eq(expire(101), UR_SELECTIVE_PROBE);
	news_many(0, 150, 101, 201);
	cr_assert_eq(lost(), 0);
}

/* EXT-SEL-TAIL-01 */
Test(selective, probes_a_gap_in_the_tail_as_soon_as_an_answer_would_tell)
{
	env.idle = true;
	send(10, 0);
	news(3, 0x3f, 0, 100);
	cr_assert_eq(deadline(), 100);
	cr_assert_eq(expire(100), UR_SELECTIVE_PROBE);
	news(3, 0x3f, 100, 200);
	resend(3, 200);
	cr_assert_eq(lost(), -1);
}

/* EXT-SEL-TAIL-01 */
Test(selective, does_not_probe_a_young_gap_in_the_tail)
{
	env.idle = true;
	send(4, 0);
	send(4, 70);
	/* An answer to a probe before 170 us would not show the age of number 4. */
	news(4, 0x7, 70, 150);
	cr_assert_eq(deadline(), 170);
	cr_assert_eq(expire(169), UR_SELECTIVE_NOTHING);
	cr_assert_eq(expire(170), UR_SELECTIVE_PROBE);
	cr_assert_eq(lost(), -1, "never by the clock alone");
	/* It was late. */
	cr_assert_eq(news(8, 0, 70, 250), 1);
	cr_assert_eq(pool.lost_cnt, 0);
}

/* EXT-SEL-TAIL-01 */
Test(selective, waits_for_silence_while_there_is_more_to_send)
{
	send(10, 0);
	news(3, 0x3f, 0, 100);
	cr_assert_eq(deadline(), 300);
}

/* EXT-SEL-TAIL-01 */
Test(selective, waits_for_what_is_in_flight_where_that_will_tell)
{
	env.idle = true;
	rtt.min = 1;
	send(200, 0);
	news_many(0, 50, 0, 100);
	cr_assert_eq(deadline(), 300);
	news_many(0, 95, 0, 101);
	cr_assert_eq(deadline(), 301);
}

/* EXT-SEL-TAIL-01: whether there is more to send or not. */
Test(selective, a_gap_in_the_tail_is_given_the_reordering_that_was_seen)
{
	for (unsigned idle = 0; idle < 2; idle++) {
		start();
		env.idle = idle;
		send(1, 0);
		send(65, 80);
		news_many(0, 65, 80, 180);
		news(66, 0, 80, 181);
		/* 66 is missing and only nine numbers follow it: less than the reordering seen before. */
		send(10, 200);
		news(66, 0x1ff, 200, 300);
		cr_assert_eq(deadline(), 1200);
		cr_assert_eq(expire(1200), UR_SELECTIVE_PROBE);
		news(66, 0x1ff, 1200, 1300);
		cr_assert_eq(lost(), 66);
	}
}

/* EXT-SEL-PROBE-02 */
Test(selective, probes_three_times_where_the_timeout_leaves_room)
{
	rtt.srtt = 2500; /* 40 us: a probe after 80 us, the timeout after 1 ms */
	send(10, 0);
	cr_assert_eq(expire(80), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 240);
	cr_assert_eq(expire(240), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 400);
	cr_assert_eq(expire(400), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 1400);
	cr_assert_eq(expire(1399), UR_SELECTIVE_NOTHING);
	cr_assert_eq(expire(1400), UR_SELECTIVE_RESEND);
	/* An answer ends the series. */
	resend(0, 1400);
	news(1, 0, 1400, 1440);
	cr_assert_eq(s.flags & 7, 0);
}

/* EXT-SEL-PROBE-04 */
Test(selective, the_answer_to_a_probe_is_awaited_from_when_it_leaves)
{
	send(10, 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_PROBE);
	/* It waited 9 ms for its turn. */
	ur_selective_on_probe_sent(&s, &env, at(9200));
	cr_assert_eq(deadline(), 9600);
	cr_assert_eq(expire(9599), UR_SELECTIVE_NOTHING);
	cr_assert_eq(expire(9600), UR_SELECTIVE_PROBE);
	ur_selective_on_probe_sent(&s, &env, at(20000));
	cr_assert_eq(deadline(), 21000);
	cr_assert_eq(expire(21000), UR_SELECTIVE_RESEND);
}

/* EXT-SEL-PROBE-04 */
Test(selective, a_probe_for_the_other_sequence_changes_no_deadline)
{
	send(10, 0);
	ur_selective_on_probe_sent(&s, &env, at(100));
	cr_assert_eq(deadline(), 200);
}

/* EXT-SEL-PROBE-02: quarters of the interval, but no less than the first timeout. */
Test(selective, probes_share_the_time_between_timeouts)
{
	static const uint16_t timeout_us[] = {1600, 3600, 7600, 15600};
	static const uint16_t probe_us[][3] = {{2600}, {4600, 5600, 6600}, {9600, 11600, 13600}};

	send(10, 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_PROBE);
	cr_assert_eq(expire(600), UR_SELECTIVE_PROBE);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(deadline(), timeout_us[i]);
		cr_assert_eq(expire(timeout_us[i]), UR_SELECTIVE_RESEND);
		resend(0, timeout_us[i]);
		for (unsigned j = 0; i < 3 && j < 3 && probe_us[i][j]; j++) {
			cr_assert_eq(deadline(), probe_us[i][j]);
			cr_assert_eq(expire(probe_us[i][j]), UR_SELECTIVE_PROBE);
			cr_assert(ur_selective_asks_again(&s, &env, at(probe_us[i][j])));
		}
	}
	/* Its answer shows what is lost, as that of any probe. */
	cr_assert_eq(expire(19600), UR_SELECTIVE_PROBE);
	news(1, 0, 19600, 19700);
	cr_assert_eq(s.lost_cnt, 9);
	cr_assert_eq(s.backoff, 0);
}

/* EXT-SEL-RTO-02 */
Test(selective, where_the_doubling_ends_probes_still_keep_apart)
{
	static const struct ur_retry retry = {.timeout = 12}; /* an eighth is 2097 us */
	long us = 200;

	env.retry = &retry;
	send(10, 0);
	for (; s.backoff < 5; us = deadline() + 1)
		if (expire((uint64_t)us) == UR_SELECTIVE_RESEND)
			resend(0, (uint64_t)us);
	cr_assert_eq(expire((uint64_t)us), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), us + 1097);
	us += 1098;
	cr_assert_eq(expire((uint64_t)us), UR_SELECTIVE_RESEND);
	cr_assert_eq(deadline(), us + 1000);
}

/* EXT-SEL-RTO-01 */
Test(selective, a_timeout_loses_una_alone_and_backs_off)
{
	send(10, 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_PROBE);
	/* EXT-SEL-PROBE-02 */
	cr_assert_eq(deadline(), 600);
	cr_assert_eq(expire(600), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 1600);
	cr_assert_eq(expire(1600), UR_SELECTIVE_RESEND);
	cr_assert_eq(s.lost_cnt, 1);
	resend(0, 1600);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(expire(2600), UR_SELECTIVE_PROBE);
	cr_assert_eq(deadline(), 3600);
	cr_assert_eq(expire(3400), UR_SELECTIVE_NOTHING);
	cr_assert_eq(expire(3600), UR_SELECTIVE_RESEND);
	resend(0, 3600);
	/* The peer runs again and has una by its last retransmission; the rest follows at once. */
	cr_assert_eq(news(1, 0, 3600, 3700), 1);
	cr_assert_eq(s.lost_cnt, 9);
	for (int nr = 1; nr < 10; nr++)
		resend(nr, 3700);
	cr_assert_eq(news(10, 0, 3700, 3800), 9);
	cr_assert_eq(s.backoff, 0);
	cr_assert_eq(pool.spurious_cnt, 0);
}

Test(selective, asks_again_for_a_resend_that_did_not_happen)
{
	send(2, 0);
	ur_selective_lose_una(&s, &env);
	cr_assert_eq(lost(), 0);
	cr_assert_eq(expire(200), UR_SELECTIVE_RESEND);
	cr_assert_eq(s.lost_cnt, 1);
	cr_assert_eq(deadline(), 1200);
}

/* A peer that does not run for 50 ms and then answers everything, including retransmissions. */
Test(selective, a_stall_resends_nothing_but_una)
{
	uint64_t us = 0;
	uint32_t resent = 0;

	send(256, 0);
	while (us < 50000) {
		us = (uint64_t)deadline();
		if (expire(us) == UR_SELECTIVE_RESEND) {
			resend(0, us);
			resent++;
		}
	}
	cr_assert_leq(resent, 6);
	for (uint32_t una = 32; una <= 256; una += 32)
		cr_assert_eq(news(una, 0, 0, us + una), 32);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(pool.taken_cnt, 0);
	cr_assert_eq(pool.spurious_cnt, 1);
	cr_assert_eq(deadline(), -1);
}
