/* SPDX-License-Identifier: BSD-3-Clause */
#include "selective_fixture.h"

/* ---- no context left ---- */

/* EXT-SEL-POOL-01 */
Test(selective, without_a_context_una_alone_is_sent_again_once_a_round_trip)
{
	start_at(1000000000, 0);
	send(200, 0);
	send(200, 120);
	cr_assert_eq(news_many(0, 150, 0, 100), 0);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(news_many(0, 250, 120, 220), 0);
	cr_assert_eq(pool.exhausted_cnt, 2);
	cr_assert_eq(ur_selective_in_flight(&s), 399);
	resend(0, 220);
	send(10, 244);
	cr_assert_eq(news_many(0, 405, 244, 344), 0);
	cr_assert_eq(lost(), -1);
	send(1, 245);
	cr_assert_eq(news_many(0, 410, 245, 345), 0);
	resend(0, 345);
	cr_assert_eq(news(411, 0, 345, 445), 411);
	cr_assert_eq(pool.spurious_cnt, 0);
	cr_assert_eq(deadline(), -1);
}

Test(selective, a_context_that_is_free_again_takes_over)
{
	void **all;

	start_at(1000000000, 2);
	all = hog(&memory.slabs);
	send(200, 0);
	send(200, 120);
	news_many(0, 250, 120, 220);
	resend(0, 220);
	cr_assert_null(s.rtx);
	give_all_back(&memory.slabs, all);
	cr_assert_eq(news_many(0, 260, 120, 230), 260);
	cr_assert_eq(lost(), -1, "the retransmission is known to the context");
	cr_assert_eq(news(400, 0, 220, 320), 140);
	cr_assert_eq(pool.held_cnt, 0);
	cr_assert_eq(memory.slabs.object_cnt, 0);
	cr_assert_eq(pool.spurious_cnt, 0);
}

/* LOSS-OWN-01, LOSS-OWN-02 */
Test(selective, memory_of_its_own_tracks_64_numbers_and_no_more_are_sent_until_there_is_enough)
{
	static _Alignas(16) uint8_t own[UR_OWN_RTX_BYTES];
	uint32_t objects;
	void **all;

	start_at(1000000000, 2);
	env.own = own;
	all = hog(&memory.slabs);
	objects = memory.slabs.object_cnt;
	send(200, 0);
	cr_assert_eq(news_many(0, 150, 0, 100), 63);
	cr_assert_eq(s.rtx->span, 64);
	cr_assert_eq(memory.slabs.object_cnt, objects);
	cr_assert_eq(pool.exhausted_cnt, 0);
	cr_assert_eq(pool.short_cnt, 1);
	cr_assert_eq(ur_selective_credit(&s), 0, "200 are outstanding");
	cr_assert_eq(news(200, 0, 0, 110), 137);
	cr_assert_null(s.rtx);
	cr_assert_eq(ur_selective_credit(&s), 64);
	send(64, 120);
	cr_assert_eq(ur_selective_credit(&s), 0);
	cr_assert_eq(s.limit, 64);
	cr_assert_eq(news(201, 2, 120, 220), 2);
	cr_assert_eq(ur_selective_credit(&s), 1, "a gap that fits it does not widen it");
	give_all_back(&memory.slabs, all);
	cr_assert_eq(news(264, 0, 120, 230), 62);
	send(64, 240);
	cr_assert_eq(news(264, 2, 240, 340), 1);
	cr_assert_gt(memory.slabs.object_cnt, 0);
	cr_assert_eq(ur_selective_credit(&s), 256 - 63);
	env.own = NULL;
}

/* ---- responses ---- */

static bool arrived(uint32_t nr, uint64_t echo_us, uint64_t us)
{
	bool is = ur_selective_on_response(&s, &env, ur_psn(FIRST + nr), ur_stamp(at(echo_us)),
					   at(us));

	ur_selective_validate(&s);
	return is;
}

Test(selective, responses_arrive_in_any_order_once_each)
{
	send(8, 0);
	cr_assert(arrived(0, 0, 100));
	cr_assert(arrived(1, 0, 100));
	cr_assert_null(s.rtx);
	cr_assert(arrived(4, 0, 101));
	cr_assert_not(arrived(4, 0, 102));
	cr_assert(arrived(3, 0, 102));
	cr_assert(ur_selective_has(&s, ur_psn(FIRST + 3)));
	cr_assert_not(ur_selective_has(&s, ur_psn(FIRST + 2)));
	expect_window(2, 8);
	cr_assert(arrived(2, 0, 103));
	expect_window(5, 8);
	cr_assert_null(s.rtx);
	cr_assert_not(ur_selective_has(&s, ur_psn(FIRST + 5)));
	cr_assert_eq(pool.reordered_cnt, 2);
}

Test(selective, responses_that_a_probe_overtook_are_lost)
{
	send(4, 0);
	arrived(1, 0, 100);
	ur_selective_on_probe_answer(&s, &env, ur_stamp(at(90)), at(190));
	cr_assert_eq(lost(), -1, "its age is less than the window");
	ur_selective_on_probe_answer(&s, &env, ur_stamp(at(150)), at(250));
	ur_selective_validate(&s);
	cr_assert_eq(s.lost_cnt, 3);
	resend(0, 250);
	resend(2, 250);
	cr_assert(arrived(3, 0, 251));
	cr_assert_eq(lost(), -1);
	cr_assert_eq(pool.late_cnt, 1);
	cr_assert(arrived(0, 250, 350));
	cr_assert(arrived(2, 250, 350));
	cr_assert_eq(deadline(), -1);
	cr_assert_eq(pool.spurious_cnt, 0);
}

Test(selective, an_early_response_without_a_context_is_not_recorded)
{
	start_at(1000000000, 0);
	send(4, 0);
	cr_assert_not(arrived(2, 0, 100));
	cr_assert_not(ur_selective_has(&s, ur_psn(FIRST + 2)));
	cr_assert_eq(pool.exhausted_cnt, 1);
	cr_assert(arrived(0, 0, 101));
	expect_window(1, 4);
}

/* EXT-SEL-AGAIN-01 */
Test(selective, a_repeat_that_overtakes_first_answers_tells_of_repeats_only)
{
	send(4, 0);
	arrived(1, 0, 100);
	ur_selective_on_probe_answer(&s, &env, ur_stamp(at(150)), at(250));
	cr_assert_eq(s.lost_cnt, 3);
	resend(0, 250);
	resend(2, 250);
	send(4, 260);
	resend(3, 400);
	cr_assert(arrived(2, 250, 420));
	cr_assert_eq(lost(), -1);
	/* Number 0 was requested long before 3; the later ones still wait in their queue. */
	cr_assert(arrived(3, 400, 500));
	cr_assert_eq(lost(), 0);
	cr_assert_eq(s.lost_cnt, 1);
}

/* EXT-SEL-READS-01 */
Test(selective, a_read_request_is_lost_when_4_later_ones_have_arrived)
{
	for (unsigned i = 0; i < 10; i++)
		send(1, 10 * i);
	news(0, 0xff, 80, 180);
	cr_assert_eq(lost(), -1, "it may be anything");
	env.kind = UR_SELECTIVE_READS;
	start();
	for (unsigned i = 0; i < 10; i++)
		send(1, 10 * i);
	news(0, 0x07, 70, 170);
	cr_assert_eq(lost(), -1);
	news(0, 0x0f, 80, 180);
	cr_assert_eq(lost(), 0);
	cr_assert_eq(s.lost_cnt, 1);
}

/* EXT-SEL-SEARCH-01: of 8 responses with the same stamp, only one searches for losses. */
Test(selective, a_response_like_the_one_before_is_not_worth_a_search)
{
	send(1, 0);
	send(200, 100);
	for (uint32_t nr = 1; nr < 99; nr++) {
		cr_assert(arrived(nr, 100, 200));
		cr_assert_eq(lost(), -1, "after %u", nr);
	}
	cr_assert(arrived(99, 100, 200));
	cr_assert_eq(lost(), 0);
}

/* EXT-SEL-SEARCH-01 */
Test(selective, the_last_response_and_a_younger_one_are)
{
	send(1, 0);
	send(97, 100);
	for (uint32_t nr = 1; nr < 97; nr++)
		cr_assert(arrived(nr, 100, 200));
	cr_assert_eq(lost(), -1);
	cr_assert(arrived(97, 100, 200));
	cr_assert_eq(lost(), 0);
	start();
	send(1, 0);
	send(96, 100);
	send(50, 110);
	for (uint32_t nr = 1; nr < 97; nr++)
		cr_assert(arrived(nr, 100, 200));
	cr_assert_eq(lost(), -1);
	cr_assert(arrived(97, 110, 210));
	cr_assert_eq(lost(), 0);
}
