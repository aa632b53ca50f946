/* SPDX-License-Identifier: BSD-3-Clause */
#include "selective_fixture.h"

/* ---- in order ---- */

Test(selective, is_small)
{
	cr_assert_leq(sizeof(struct ur_selective), 136);
}

Test(selective, has_nothing_to_do_at_first)
{
	ur_selective_validate(&s);
	cr_assert_eq(deadline(), -1);
	cr_assert_eq(ur_selective_credit(&s), 256);
	cr_assert_eq(expire(1000000), UR_SELECTIVE_NOTHING);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(news(0, 0, 0, 10), 0);
}

/* EXT-SEL-CTX-01 */
Test(selective, takes_no_context_in_order)
{
	for (uint32_t i = 0; i < 5000; i++) {
		send(4, 100 * i);
		cr_assert_eq(news(4 * i + 2, 0, 100 * i, 100 * i + 99), 2);
		cr_assert_eq(news(4 * i + 4, 0, 100 * i, 100 * i + 99), 2);
	}
	cr_assert_eq(pool.taken_cnt, 0);
	cr_assert_eq(pool.lost_cnt, 0);
	cr_assert_eq(deadline(), -1);
	expect_window(20000, 20000);
}

/* EXT-SEL-FLIGHT-01 */
Test(selective, bounds_the_flight_by_the_window)
{
	rtt.min = 1; /* no path that holds more */
	send(200, 0);
	cr_assert_eq(ur_selective_in_flight(&s), 200);
	cr_assert_eq(ur_selective_credit(&s), 56);
	send(56, 1);
	cr_assert_eq(ur_selective_credit(&s), 0);
	/* Neither arrived packets beyond the gap nor lost ones are in flight. */
	news_many(0, 255, 1, 101);
	cr_assert_eq(ur_selective_in_flight(&s), 1);
	cr_assert_eq(ur_selective_credit(&s), 255);
	ur_selective_lose_una(&s, &env);
	cr_assert_eq(ur_selective_in_flight(&s), 0);
	cr_assert_eq(ur_selective_credit(&s), 256);
}

Test(selective, keeps_the_outstanding_numbers_within_the_window_of_the_receiver)
{
	rtt.min = 1;
	send(UR_EXT_WINDOW, 0);
	news_many(0, UR_EXT_WINDOW - 1, 0, 100);
	cr_assert_eq(ur_selective_in_flight(&s), 1);
	cr_assert_eq(ur_selective_credit(&s), 0);
	cr_assert_eq(news(UR_EXT_WINDOW, 0, 100, 200), 1);
	cr_assert_eq(ur_selective_credit(&s), 256);
	cr_assert_eq(pool.held_cnt, 0);
}

/* Every 100 us the whole flight is acknowledged: the path carries everything. Returns how many numbers were sent. */
static uint32_t fill_path(void)
{
	uint32_t sent = 0, credit = 0;

	for (uint32_t i = 0; i < 100; i++) {
		uint32_t n = ur_selective_credit(&s);

		cr_assert_geq(n, credit);
		credit = n;
		send(n, 100 * i);
		sent += n;
		cr_assert_eq(news(sent, 0, 100 * i, 100 * i + 100), n);
	}
	cr_assert_eq(credit, UR_EXT_WINDOW / 2);
	return sent;
}

Test(selective, learns_a_flight_beyond_the_window)
{
	uint32_t sent = fill_path();

	/* Then it carries a hundred numbers per round trip. */
	for (uint32_t i = 100; i < 200; i++) {
		send(100, 100 * i);
		sent += 100;
		news(sent, 0, 100 * i, 100 * i + 100);
	}
	cr_assert_eq(ur_selective_credit(&s), 256);
}

Test(selective, returns_to_the_window_where_nothing_is_delivered)
{
	uint32_t sent = fill_path();

	send(1, 10000);
	/* The answers to probes show that the peer is there, and that it lacks what was sent. */
	for (uint32_t i = 100; i < 120; i++)
		cr_assert_eq(news(sent, 0, 100 * i + 1, 100 * i + 101), 0);
	cr_assert_eq(lost(), (int)sent);
	cr_assert_eq(ur_selective_credit(&s), 256);
}

/* ---- loss ---- */

/* EXT-SEL-LOSS-01 */
Test(selective, finds_one_lost_when_a_number_a_window_younger_has_arrived)
{
	/* One number per microsecond; number 3 is missing. */
	for (uint32_t i = 0; i < 104; i++)
		send(1, i);
	cr_assert_eq(news(3, 0, 2, 102), 3);
	cr_assert_null(s.rtx);
	cr_assert_eq(news(3, 1, 4, 104), 1);
	cr_assert_not_null(s.rtx);
	for (uint32_t i = 104; i < 300; i++)
		send(1, i);
	cr_assert_eq(news_many(3, 96, 99, 199), 95);
	cr_assert_eq(lost(), -1, "its age is 96 us");
	/* tx_time samples give the time of number 3 with an error of at most half a round trip. */
	cr_assert_eq(news_many(3, 150, 153, 253), 54);
	resend(3, 253);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(news_many(3, 200, 203, 303), 50);
	cr_assert_eq(lost(), -1, "its retransmission is young");
	cr_assert_eq(news(254, 0, 253, 353), 51);
	expect_window(254, 300);
	cr_assert_null(s.rtx);
	cr_assert_eq(pool.held_cnt, 0);
	cr_assert_eq(pool.lost_cnt, 1);
	cr_assert_eq(pool.spurious_cnt, 0);
}

/* 2^15 numbers and more, one at a time, leave no sample behind that could be taken for a young one. */
Test(selective, numbers_that_leave_one_by_one_need_one_sample)
{
	uint32_t sent = 0;

	for (; sent < 40000; sent++) {
		ur_selective_begin_flight(&s, &rtt, &marks, true, at(200 * sent));
		cr_assert_eq(marks.youngest, 0);
		cr_assert_eq(news(sent + 1, 0, 200 * sent, 200 * sent + 100), 1);
	}
	/* Then one per 10 us; the first is missing. */
	for (uint32_t i = 0; i < 10; i++)
		send(1, 200 * sent + 10 * i);
	cr_assert_eq(news(sent, 0x3f, 200 * sent + 60, 200 * sent + 160), 6);
	cr_assert_eq(marks.youngest, UR_TX_TIMES - 1);
	cr_assert_eq(s.rtx->stamp[s.una.v % s.rtx->span].v, ur_stamp(at(200 * sent)).v);
	cr_assert_eq(news(sent + 10, 0, 200 * sent + 90, 200 * sent + 190), 4);
	cr_assert_eq(pool.lost_cnt, 0);
	/* What leaves next finds nothing in flight. */
	ur_selective_begin_flight(&s, &rtt, &marks, true, at(200 * sent + 300));
	cr_assert_eq(marks.youngest, 0);
}

Test(selective, only_a_flight_that_may_teach_something_ends_with_its_times)
{
	cr_assert_eq(s.plain_flight, 128);
	send(129, 0);
	cr_assert_not(ur_selective_end_flight(&s, s.max), "more than half a window");
	cr_assert_eq(news(129, 0, 0, 100), 129);
	send(128, 1000);
	cr_assert_not(ur_selective_end_flight(&s, ur_psn(FIRST + 130)), "one is in flight");
	cr_assert(ur_selective_end_flight(&s, s.max));
	ur_selective_validate(&s);
	/* Number 257 comes after 258. */
	send(2, 2000);
	cr_assert_eq(news(257, 1, 2000, 2100), 1);
	cr_assert_eq(news(259, 0, 2000, 2101), 1);
	cr_assert_eq(s.plain_flight, 0, "reordering fades with rounds");
	send(1, 3000);
	cr_assert_not(ur_selective_end_flight(&s, s.max));
}

Test(selective, finds_several_and_names_the_lowest_first)
{
	send(64, 0);
	send(400, 200);
	/* 1, 5 and 63 are missing; 96 of the second burst have arrived. */
	news(1, ~UINT64_C(0) & ~(UINT64_C(1) << 3) & ~(UINT64_C(1) << 61), 200, 300);
	cr_assert_eq(lost(), -1, "too few arrived beyond them");
	{
		uint8_t map[32];
		struct ur_ack_info n = {.una = ur_psn(FIRST + 1),
					.sack = map,
					.sack_bits = 256,
					.echo = ur_stamp(at(200))};

		memset(map, 0xff, sizeof(map));
		map[0] &= (uint8_t) ~(1 << 3);
		map[7] &= (uint8_t) ~(1 << 5);
		cr_assert_eq(ur_selective_on_ack(&s, &env, &n, at(301)), 192);
		ur_selective_validate(&s);
	}
	cr_assert_eq(s.lost_cnt, 3);
	resend(1, 301);
	resend(5, 301);
	resend(63, 301);
	cr_assert_eq(lost(), -1);
}

Test(selective, finds_a_lost_retransmission_without_a_timeout)
{
	send(200, 0);
	send(200, 120);
	news_many(0, 250, 120, 220);
	resend(0, 220);
	send(10, 330);
	cr_assert_eq(news_many(0, 409, 330, 430), 159);
	resend(0, 431);
	cr_assert_eq(pool.lost_cnt, 2);
	cr_assert_eq(s.backoff, 0);
	cr_assert_eq(news(410, 0, 431, 531), 1);
	cr_assert_eq(pool.spurious_cnt, 0);
	expect_window(410, 410);
}

/* EXT-SEL-REO-02 */
Test(selective, what_was_sent_again_is_given_a_quarter_of_a_round_trip)
{
	send(200, 0);
	send(200, 120);
	news_many(0, 250, 120, 220);
	resend(0, 220);
	send(1, 244);
	news_many(0, 400, 244, 344);
	cr_assert_eq(lost(), -1);
	send(1, 245);
	news_many(0, 401, 245, 345);
	resend(0, 345);
	cr_assert_eq(news(402, 0, 345, 445), 1);
	cr_assert_eq(pool.spurious_cnt, 0);
}

/* EXT-SEL-REO-02 */
Test(selective, what_was_sent_again_is_given_the_reordering_that_was_seen)
{
	send(1, 0);
	send(65, 80);
	news_many(0, 65, 80, 180);
	news(66, 0, 80, 181);
	cr_assert_eq(s.reo_time, 80 * US / 16);
	send(200, 200);
	send(200, 320);
	news_many(66, 250, 320, 420);
	resend(66, 420);
	send(1, 519);
	news_many(66, 400, 519, 619);
	cr_assert_eq(lost(), -1);
	send(1, 520);
	news_many(66, 401, 520, 620);
	resend(66, 620);
}

/* ---- reordering ---- */

/* EXT-SEL-REO-01 */
Test(selective, reordering_by_64_places_is_no_loss_from_the_first_packet_on)
{
	/* The first sample was on an idle path: 10 us; a number takes 3 us. */
	rtt.srtt = rtt.min = 625;
	for (uint32_t i = 0; i <= 64; i++) {
		send(1, 3 * i);
		if (i < 4)
			continue;
		cr_assert_eq(news_many(0, i - 3, 3 * (i - 3), 3 * i + 1), 1);
		cr_assert_eq(lost(), -1);
	}
	cr_assert_eq(news_many(0, 64, 192, 202), 3);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(news(65, 0, 0, 210), 1);
	cr_assert_eq(pool.lost_cnt, 0);
	cr_assert_eq(pool.reordered_cnt, 1);
	cr_assert_eq(s.reo_places, 64);
	cr_assert_geq(s.reo_time, 180 * US / 16);
	cr_assert_eq(pool.held_cnt, 0);
}

Test(selective, the_window_grows_to_the_reordering_that_was_seen)
{
	/* One number per microsecond. Number 0 arrives after 200 later ones and is deemed lost meanwhile. */
	for (uint64_t us = 0; us <= 101; us++)
		send(1, us);
	news(0, 1, 1, 101);
	for (uint64_t us = 102; us < 500; us++)
		send(1, us);
	news_many(0, 200, 200, 300);
	cr_assert_eq(lost(), 0);
	cr_assert_eq(news(201, 0, 0, 301), 1);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(pool.late_cnt, 1);
	cr_assert_eq(pool.spurious_cnt, 0);
	cr_assert_eq(s.reo_places, 200);
	cr_assert_geq(s.reo_time, 150 * US / 16);
	/* The same reordering again does not count as a loss. */
	news_many(201, 200, 401, 501);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(news(402, 0, 201, 502), 1);
	cr_assert_eq(pool.lost_cnt, 1);
	cr_assert_eq(pool.reordered_cnt, 1);
}

Test(selective, a_retransmission_in_vain_makes_it_more_patient)
{
	send(200, 0);
	send(200, 120);
	news_many(0, 250, 120, 220);
	resend(0, 221);
	/* The answer was caused by a packet older than the retransmission. */
	cr_assert_eq(news(300, 0, 120, 400), 50);
	cr_assert_eq(pool.spurious_cnt, 1);
	cr_assert_eq(s.reo_time, 200 * US / 16);
	send(1, 400);
	cr_assert_eq(news(401, 0, 400, 500), 101);
	/* An answer that arrives sooner than the least round trip belongs to the first transmission. */
	send(200, 600);
	send(200, 900);
	news_many(401, 399, 900, 1000);
	resend(401, 1000);
	cr_assert_eq(news(801, 0, 1000, 1050), 1);
	cr_assert_eq(pool.spurious_cnt, 2);
}

Test(selective, what_was_seen_of_reordering_fades)
{
	uint32_t nr = 66;

	send(1, 0);
	send(65, 80);
	news_many(0, 65, 80, 180);
	news(66, 0, 80, 181);
	cr_assert_eq(s.reo_places, 65);
	cr_assert_eq(s.reo_time, 80 * US / 16);
	for (uint64_t us = 1000; us < 60000; us += 100) {
		send(2, us);
		nr += 2;
		news(nr, 0, us, us + 100);
		if (us == 2000)
			cr_assert_eq(s.reo_places, 65);
	}
	cr_assert_eq(s.reo_places, 0);
	cr_assert_eq(s.reo_time, 0);
}

/* ---- duplicated, late and old answers ---- */

Test(selective, repeated_acks_have_no_effect)
{
	send(20, 0);
	send(1, 20);
	cr_assert_eq(news(10, 0x8, 20, 120), 11);
	/* una of 5 with 6..9 and 14 arrived, and the same again. */
	cr_assert_eq(news(5, 0x10f, 0, 121), 0);
	cr_assert_eq(news(5, 0x11f, 0, 122), 1,
		     "a peer that contradicts itself is taken at its word");
	expect_window(11, 21);
	cr_assert_eq(s.rack_stamp.v, ur_stamp(at(20)).v);
	cr_assert_eq(lost(), -1);
}

/* EXT-SEL-REPEAT-01 */
Test(selective, an_answer_that_is_repeated_puts_off_neither_probe_nor_timeout)
{
	long until;

	send(10, 0);
	news(6, 0, 0, 100);
	for (uint64_t us = 110; us < 300; us += 10)
		cr_assert_eq(news(6, 0, 0, us), 0);
	cr_assert_eq(deadline(), 300);
	cr_assert_eq(expire(300), UR_SELECTIVE_PROBE);
	news(6, 0, 0, 310);
	news(3, 0, 0, 320);
	cr_assert_eq(deadline(), 700);
	/* The probe's answer counts, but only once; its bit is known then. */
	news(6, 0, 300, 400);
	cr_assert_eq(s.lost_cnt, 4);
	for (int nr = 6; nr < 10; nr++)
		resend(nr, 400);
	cr_assert_eq(news(6, 0x2, 400, 500), 1);
	until = deadline();
	for (uint64_t us = 510; us < 600; us += 10)
		cr_assert_eq(news(6, 0x2, 400, us), 0);
	cr_assert_eq(deadline(), until);
}

Test(selective, ignores_bits_beyond_max_and_acks_of_what_was_not_sent)
{
	send(3, 0);
	cr_assert_eq(news(4, 0, 0, 100), 0);
	cr_assert_eq(news(0, ~UINT64_C(0) << 2, 0, 100), 0);
	cr_assert_null(s.rtx);
	cr_assert_eq(news(0, ~UINT64_C(0), 0, 100), 2);
	expect_window(0, 3);
	cr_assert_eq(s.acked_cnt, 2);
	cr_assert_eq(news(3, ~UINT64_C(0), 0, 100), 1);
	expect_window(3, 3);
	cr_assert_null(s.rtx);
}

Test(selective, tells_which_acks_can_be_the_peers)
{
	send(3, 0);
	cr_assert(ur_selective_may_ack(&s, ur_psn(FIRST)));
	cr_assert(ur_selective_may_ack(&s, ur_psn(FIRST + 3)));
	cr_assert_not(ur_selective_may_ack(&s, ur_psn(FIRST + 4)));
	cr_assert(ur_selective_may_ack(&s, ur_psn(FIRST - UR_ACK_PAST)));
	cr_assert_not(ur_selective_may_ack(&s, ur_psn(FIRST - UR_ACK_PAST - 1)));
}

Test(selective, tells_what_has_arrived_before_una_and_beyond)
{
	send(4, 0);
	cr_assert_eq(news(1, 0x2, 0, 100), 2);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_eq(ur_selective_has_arrived(&s, ur_psn(FIRST + i)), i == 0 || i == 3,
			     "number %u", i);
}

/* EXT-SEL-RTO-02 */
Test(selective, hastens_a_deadline_that_is_later_and_no_other)
{
	ur_selective_hasten(&s, 50 * US, at(0));
	cr_assert_eq(deadline(), -1);
	send(1, 0);
	cr_assert_eq(deadline(), 200);
	ur_selective_hasten(&s, 300 * US, at(0));
	cr_assert_eq(deadline(), 200);
	ur_selective_hasten(&s, 50 * US, at(10));
	cr_assert_eq(deadline(), 60);
}

Test(selective, ignores_an_echo_of_the_future)
{
	send(200, 0);
	news_many(0, 150, 5000, 100);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(s.rack_stamp.v, ur_stamp(at(0)).v);
}

Test(selective, a_response_says_nothing_of_what_lies_beyond_it)
{
	struct ur_ack_info n = {.una = ur_psn(FIRST), .echo = ur_stamp(at(5000)), .partial = true};

	send(3, 0);
	cr_assert_eq(expire(4900), UR_SELECTIVE_PROBE);
	cr_assert_eq(ur_selective_on_ack(&s, &env, &n, at(5100)), 0);
	cr_assert_eq(lost(), -1);
	n.partial = false;
	cr_assert_eq(ur_selective_on_ack(&s, &env, &n, at(5100)), 0);
	cr_assert_eq(lost(), 0);
}

Test(selective, stamps_wrap_inside_a_gap)
{
	/* The stamp wraps at 150 us. */
	start_at((UINT64_C(1) << 36) - 150 * US, CNT);
	send(100, 0);
	send(100, 120);
	cr_assert_eq(news_many(0, 150, 120, 140), 150);
	resend(0, 140);
	send(100, 260);
	cr_assert_eq(news_many(0, 299, 260, 360), 149);
	resend(0, 360);
	cr_assert_eq(news(300, 0, 360, 460), 1);
	cr_assert_eq(pool.lost_cnt, 2);
	cr_assert_eq(pool.spurious_cnt, 0);
	expect_window(300, 300);
}

Test(selective, a_long_rest_makes_no_old_stamp_young)
{
	send(1, 0);
	news(1, 0, 0, 100);
	/* 68.7 s later, just before stamps wrap. */
	for (uint64_t us = 68719000; us < 68720000; us += 100) {
		send(2, us);
		cr_assert_eq(news(s.una.v - FIRST, 0x1, us, us + 50), 1);
		cr_assert_eq(lost(), -1);
		cr_assert_eq(news(s.una.v - FIRST + 2, 0, us, us + 60), 1);
	}
}
