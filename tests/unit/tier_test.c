/* SPDX-License-Identifier: BSD-3-Clause */
#include "selective_fixture.h"
#include "transport/loss/ooo.h"
#include "transport/loss/tier.h"

/* Contexts of both ends: what they take, how they grow, and what they do without memory for it. */
static struct ur_ooo_pool ooo_pool;

static void setup(void)
{
	start();
	ur_rtx_pool_init(&pool, &memory.slabs, 64, UR_EXT_WINDOW);
	ur_ooo_pool_init(&ooo_pool, &memory.slabs, 64, UR_EXT_WINDOW, 4);
}

TestSuite(tier, .init = setup);

static void note(struct ur_ooo *o, uint32_t psn)
{
	ur_ooo_defer(o, ur_psn(psn), &(struct ur_ooo_deferred){.ssn = psn, .held = 7});
	ur_ooo_validate(o, ur_psn(100));
}

/* LOSS-TIER-01 */
Test(tier, a_gap_at_either_end_takes_two_kilobytes_for_both)
{
	struct ur_ooo *o = ur_ooo_take(&ooo_pool, NULL, ur_psn(100), 2);

	cr_assert(ur_ooo_room(&ooo_pool, o, ur_psn(100), 1));
	send(64, 0);
	news(0, 1, 0, 100);
	cr_assert_not_null(s.rtx);
	cr_assert_eq(s.rtx->span, 64);
	cr_assert_eq(o->span, 64);
	cr_assert_leq(memory.slabs.used_bytes, 2048);
	cr_assert_eq(pool.held_cnt + ooo_pool.held_cnt, 2);
}

/* LOSS-TIER-02 */
Test(tier, what_was_noted_moves_with_the_context)
{
	struct ur_ooo *o = ur_ooo_take(&ooo_pool, NULL, ur_psn(100), 2);
	uint8_t small[8];

	note(o, 102);
	note(o, 163);
	cr_assert_eq(ur_ooo_sack(o, ur_psn(100), false).bytes, 8);
	memcpy(small, o->sack, 8);
	cr_assert(ur_ooo_reach(&ooo_pool, &o, ur_psn(100), 63));
	cr_assert_eq(o->span, 64);
	cr_assert(ur_ooo_reach(&ooo_pool, &o, ur_psn(100), 64));
	cr_assert_eq(o->span, 256);
	cr_assert_eq(ur_ooo_sack(o, ur_psn(100), false).bytes, 8);
	cr_assert_eq(memcmp(small, o->sack, 8), 0);
	cr_assert(ur_ooo_reach(&ooo_pool, &o, ur_psn(100), UR_EXT_WINDOW - 1));
	cr_assert_eq(o->span, UR_EXT_WINDOW);
	ur_ooo_validate(o, ur_psn(100));
	cr_assert_eq(o->deferred_cnt, 2);
	cr_assert_eq(ur_ooo_deferred_at(o, ur_psn(163))->ssn, 163);
	cr_assert_eq(ur_ooo_deferred_at(o, ur_psn(102))->ssn, 102);
	cr_assert_eq(ooo_pool.grown_cnt, 2);
	cr_assert_eq(ooo_pool.held_cnt, 1);
}

/* LOSS-TIER-02 */
Test(tier, bitmap_of_the_smallest_tier_is_right_wherever_the_window_lies)
{
	ur_ooo_pool_init(&ooo_pool, &memory.slabs, UR_TIER_LEAST, UR_EXT_WINDOW, 4);
	for (uint32_t epsn = UR_PSN_MASK - 20; epsn < UR_PSN_MASK + 20; epsn++) {
		struct ur_ooo *o = ur_ooo_take(&ooo_pool, NULL, ur_psn(epsn), 15);
		uint32_t bits = 0;

		cr_assert_eq(o->span, 16);
		for (uint32_t ahead = 1; ahead < 16; ahead += 1 + ahead % 3) {
			ur_ooo_defer(o, ur_psn(epsn + ahead), &(struct ur_ooo_deferred){0});
			bits |= 1u << (ahead - 1);
		}
		cr_assert_eq(ur_ooo_sack(o, ur_psn(epsn), false).bytes, 4);
		cr_assert_eq(memcmp(o->sack, &bits, 4), 0, "ePSN %u", epsn);
		ur_ooo_give(&ooo_pool, o);
	}
}

/* LOSS-TIER-02 */
Test(tier, what_is_acknowledged_lost_and_sent_again_moves_with_the_context)
{
	send(20, 0);
	send(40, 120);
	news_many(0, 40, 120, 220);
	cr_assert_eq(s.rtx->span, 64);
	ur_selective_lose_una(&s, &env);
	resend(0, 230);
	for (unsigned i = 0; i < 10; i++)
		send(100, 240);
	cr_assert_eq(s.rtx->span, UR_EXT_WINDOW);
	cr_assert_eq(pool.grown_cnt, 3);
	cr_assert_eq(ur_selective_in_flight(&s), 1060 - 40);
	cr_assert(ur_selective_has(&s, ur_psn(FIRST + 40)));
	cr_assert_not(ur_selective_has(&s, ur_psn(FIRST + 41)));
	cr_assert_eq(lost(), -1, "it was sent again just now");
	cr_assert_eq(news(1060, 0, 240, 340), 1020);
	cr_assert_eq(pool.held_cnt, 0);
	cr_assert_eq(memory.slabs.object_cnt, 0);
	cr_assert_eq(pool.spurious_cnt, 0);
}

/* LOSS-TIER-03 */
Test(tier, large_contexts_leave_a_quarter_of_the_slabs_to_small_ones)
{
	struct ur_ooo *o;
	unsigned large = 0;

	while ((o = ur_ooo_take(&ooo_pool, NULL, ur_psn(0), 1000)))
		large++;
	cr_assert_gt(large, 0);
	cr_assert_eq(memory.slabs.free_cnt, 1);
	o = ur_ooo_take(&ooo_pool, NULL, ur_psn(0), 63);
	cr_assert_not_null(o);
	cr_assert_eq(o->span, 64);
}

/* LOSS-TIER-04 */
Test(tier, a_responder_without_memory_for_more_keeps_what_its_context_spans)
{
	struct ur_ooo *o = ur_ooo_take(&ooo_pool, NULL, ur_psn(100), 1), *same = o;
	void **all = hog(&memory.slabs);

	cr_assert(ur_ooo_reach(&ooo_pool, &o, ur_psn(100), 63));
	cr_assert_not(ur_ooo_reach(&ooo_pool, &o, ur_psn(100), 64));
	cr_assert_not(ur_ooo_reach(&ooo_pool, &o, ur_psn(100), 64));
	cr_assert_eq(o, same);
	cr_assert_eq(ooo_pool.short_cnt, 1, "once a context");
	give_all_back(&memory.slabs, all);
	cr_assert(ur_ooo_reach(&ooo_pool, &o, ur_psn(100), 64));
}

/* LOSS-TIER-04 */
Test(tier, a_smaller_context_serves_where_the_first_tier_is_used_up)
{
	struct ur_ooo *least = NULL, *o;
	void **all;

	ur_ooo_pool_init(&ooo_pool, &memory.slabs, UR_TIER_LEAST, UR_EXT_WINDOW, 4);
	least = ur_ooo_take(&ooo_pool, NULL, ur_psn(0), 1);
	ooo_pool.first = 64;
	all = hog(&memory.slabs);
	cr_assert_null(ur_ooo_take(&ooo_pool, NULL, ur_psn(0), 16),
		       "it is beyond what the smallest spans");
	o = ur_ooo_take(&ooo_pool, NULL, ur_psn(0), 15);
	cr_assert(o && o != least);
	cr_assert_eq(o->span, UR_TIER_LEAST);
	give_all_back(&memory.slabs, all);
}

/* LOSS-TIER-04: numbers enter the context, and their bits of the bitmap count, as una moves on. */
Test(tier, a_requester_without_memory_for_more_tracks_the_first_numbers)
{
	uint64_t bits[4] = {~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)};
	struct ur_ack_info ack = {.una = ur_psn(FIRST),
				  .sack = (const uint8_t *)bits,
				  .sack_bits = 199,
				  .echo = ur_stamp(at(0))};
	void **all;

	send(10, 0);
	news(0, 1, 0, 100);
	cr_assert_eq(s.rtx->span, 64);
	all = hog(&memory.slabs);
	send(190, 150);
	cr_assert_eq(s.rtx->span, 64);
	cr_assert_eq(pool.short_cnt, 1);
	/* All but 0 and 100 arrive; those that are not tracked count as later ones. */
	bits[1] &= ~(UINT64_C(1) << (99 - 64));
	ack.echo = ur_stamp(at(150));
	cr_assert_eq(ur_selective_on_ack(&s, &env, &ack, at(250)), 62);
	ur_selective_validate(&s);
	resend(0, 260);
	ack.una = ur_psn(FIRST + 100);
	bits[1] = ~UINT64_C(0);
	ack.sack_bits = 99;
	ack.echo = ur_stamp(at(260));
	cr_assert_eq(ur_selective_on_ack(&s, &env, &ack, at(360)), 37 + 63);
	ur_selective_validate(&s);
	expect_window(100, 200);
	resend(100, 370);
	cr_assert_eq(lost(), -1, "what is not tracked is not lost");
	ack.una = ur_psn(FIRST + 200);
	ack.sack_bits = 0;
	ack.echo = ur_stamp(at(370));
	ur_selective_on_ack(&s, &env, &ack, at(470));
	ur_selective_validate(&s);
	cr_assert_eq(deadline(), -1);
	cr_assert_eq(pool.spurious_cnt, 0);
	cr_assert_eq(pool.lost_cnt, 2);
	give_all_back(&memory.slabs, all);
	cr_assert_eq(memory.slabs.object_cnt, 0);
}

/* LOSS-TIER-04: a response beyond what is tracked is asked for once more. */
Test(tier, a_response_beyond_what_is_tracked_does_not_count)
{
	void **all;

	send(10, 0);
	cr_assert(ur_selective_on_response(&s, &env, ur_psn(FIRST + 1), ur_stamp(at(0)), at(100)));
	all = hog(&memory.slabs);
	send(190, 150);
	cr_assert_not(
		ur_selective_on_response(&s, &env, ur_psn(FIRST + 64), ur_stamp(at(150)), at(250)));
	cr_assert_not(ur_selective_has(&s, ur_psn(FIRST + 64)));
	cr_assert(
		ur_selective_on_response(&s, &env, ur_psn(FIRST + 63), ur_stamp(at(150)), at(250)));
	ur_selective_validate(&s);
	give_all_back(&memory.slabs, all);
	cr_assert(
		ur_selective_on_response(&s, &env, ur_psn(FIRST + 64), ur_stamp(at(150)), at(260)));
	ur_selective_validate(&s);
	cr_assert_eq(s.rtx->span, 256);
}

/* LOSS-TIER-05 */
Test(tier, receives_of_an_srq_keep_their_order_when_their_ring_grows)
{
	struct ur_ooo *o = ur_ooo_take(&ooo_pool, NULL, ur_psn(0), 1);
	uint64_t posted = 0, taken = 0;

	srand(1);
	while (posted < 300) {
		unsigned n = (unsigned)rand() % 8;

		while (n-- && ur_ooo_bound_room(&ooo_pool, o, o->bound_cnt + 1u)) {
			memset(ur_ooo_bound(o, o->bound_cnt), (int)posted++, o->bound_stride);
			o->bound_cnt++;
		}
		for (n = (unsigned)rand() % 6; n && o->bound_cnt; n--) {
			cr_assert_eq(*(uint8_t *)ur_ooo_bound(o, 0), (uint8_t)taken++);
			ur_ooo_unbind(o);
		}
	}
	cr_assert_eq(o->bound_cap, UR_OOO_BOUND);
	cr_assert_not(ur_ooo_bound_room(&ooo_pool, o, UR_OOO_BOUND + 1));
	ur_ooo_give(&ooo_pool, o);
	cr_assert_eq(memory.slabs.object_cnt, 0);
}

/* LOSS-TIER-05: a list that cannot grow keeps what it has. */
Test(tier, lists_without_memory_for_more_stay_as_they_are)
{
	struct ur_ooo *o = ur_ooo_take(&ooo_pool, NULL, ur_psn(0), 1);
	void **all;

	cr_assert(ur_ooo_hold_room(&ooo_pool, o) && ur_ooo_room(&ooo_pool, o, ur_psn(0), 1) &&
		  ur_ooo_bound_room(&ooo_pool, o, 1));
	all = hog(&memory.slabs);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert(ur_ooo_hold_room(&ooo_pool, o) &&
			  ur_ooo_room(&ooo_pool, o, ur_psn(0), 1));
		ur_ooo_hold(o, &(struct ur_ooo_held){.path = (uint8_t)i});
		ur_ooo_written(o, ur_psn(1 + 2 * i), (uint8_t *)&memory + 2 * i, 1);
	}
	cr_assert(!ur_ooo_hold_room(&ooo_pool, o) && !ur_ooo_room(&ooo_pool, o, ur_psn(0), 1) &&
		  !ur_ooo_bound_room(&ooo_pool, o, 17));
	ur_ooo_validate(o, ur_psn(0));
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(o->held[i].path, i);
	give_all_back(&memory.slabs, all);
	ur_ooo_give(&ooo_pool, o);
	cr_assert_eq(memory.slabs.object_cnt, 0);
}
