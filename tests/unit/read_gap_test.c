/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "timer/wheel.h"
#include "transport/loss/read_gap.h"

#define AGAIN_NS    UINT64_C(50000)
#define PATIENCE_NS (UR_REO_WINDOW_US * UINT64_C(1000))

static struct ur_read_gap_pool pool;
static struct ur_reo_window reo_window;
static struct ur_read_gap *g;
static _Alignas(64) uint8_t memory[4096];

static void start(uint32_t una)
{
	cr_assert_leq(ur_read_gap_pool_size(2), sizeof(memory));
	ur_read_gap_pool_init(&pool, memory, 2);
	ur_reo_window_init(&reo_window);
	g = ur_read_gap_take(&pool, ur_psn(una), 0);
}

static void arrived(uint32_t psn)
{
	ur_read_gap_on_response(g, ur_psn(psn));
}

static bool judge(uint32_t psn, uint64_t now_ns)
{
	return ur_read_gap_judge(g, ur_psn(psn), &reo_window, AGAIN_NS, now_ns);
}

static uint32_t missing(uint32_t from, uint32_t end)
{
	return ur_read_gap_missing(g, ur_psn(from), ur_psn(end)).v;
}

static uint32_t present(uint32_t from, uint32_t end)
{
	return ur_read_gap_present(g, ur_psn(from), ur_psn(end)).v;
}

Test(read_gap, the_pool_is_bounded)
{
	struct ur_read_gap *second;

	start(10);
	second = ur_read_gap_take(&pool, ur_psn(5), 0);
	cr_assert_not_null(second);
	cr_assert_null(ur_read_gap_take(&pool, ur_psn(5), 0));
	ur_read_gap_give(&pool, second);
	cr_assert_eq(pool.free_cnt, 1);
	cr_assert_eq(g->deadline_ns, UR_NEVER);
}

Test(read_gap, finds_what_is_there_and_what_is_not_across_the_wrap)
{
	start(0xffff80);
	arrived(0xffff82);
	arrived(0xffffff);
	arrived(0x000000);
	arrived(0x000200);
	cr_assert(ur_read_gap_has(g, ur_psn(0xffffff)));
	cr_assert_not(ur_read_gap_has(g, ur_psn(0xfffffe)));
	cr_assert_eq(missing(0xffff80, 0x300), 0xffff80);
	cr_assert_eq(missing(0xffffff, 0x300), 0x000001);
	cr_assert_eq(missing(0xffffff, 0x000001), 0x000001, "all there: the end");
	cr_assert_eq(present(0xffff80, 0x300), 0xffff82);
	cr_assert_eq(present(0xffff83, 0x300), 0xffffff);
	cr_assert_eq(present(0x000001, 0x300), 0x000200);
	cr_assert_eq(present(0x000001, 0x200), 0x000200, "none there: the end");
	cr_assert_eq(g->cnt, 4);
}

Test(read_gap, what_lies_before_una_is_forgotten_and_its_place_used_again)
{
	start(100);
	arrived(101);
	arrived(99 + UR_READ_GAP_WINDOW);
	ur_read_gap_advance(g, ur_psn(102), &reo_window, 1);
	cr_assert_eq(g->cnt, 1);
	cr_assert_not(ur_read_gap_has(g, ur_psn(101 + UR_READ_GAP_WINDOW)));
	arrived(101 + UR_READ_GAP_WINDOW);
	ur_read_gap_advance(g, ur_psn(101 + UR_READ_GAP_WINDOW), &reo_window, 2);
	cr_assert_eq(g->cnt, 1);
}

/* REORDER-WINDOW-01 */
Test(read_gap, three_later_responses_make_a_loss)
{
	start(10);
	cr_assert_not(judge(11, 1));
	cr_assert_not(judge(12, 2));
	cr_assert(judge(13, 3));
}

Test(read_gap, a_hole_open_for_long_is_a_loss)
{
	start(10);
	cr_assert_not(judge(11, 1));
	cr_assert_eq(g->deadline_ns, PATIENCE_NS);
	cr_assert_not(judge(12, PATIENCE_NS - 1));
	start(10);
	cr_assert_not(judge(11, 1));
	cr_assert(judge(10, PATIENCE_NS));
}

/* REORDER-READ-02 */
Test(read_gap, what_was_asked_for_again_is_given_time)
{
	start(10);
	for (uint32_t psn = 15; psn < 18; psn++)
		judge(psn, 1);
	ur_read_gap_on_reask(g, ur_psn(15), ur_psn(40), AGAIN_NS, 1);
	for (uint32_t psn = 18; psn < 30; psn++)
		cr_assert_not(judge(psn, 2), "it was asked for before");
	cr_assert_not(judge(10, AGAIN_NS));
	cr_assert(judge(10, 1 + AGAIN_NS));
}

Test(read_gap, what_an_answer_leaves_out_is_asked_for_once_more)
{
	start(10);
	ur_read_gap_on_reask(g, ur_psn(20), ur_psn(40), AGAIN_NS, 1);
	ur_read_gap_advance(g, ur_psn(11), &reo_window, 2);
	cr_assert(g->asked);
	cr_assert_not(judge(12, 3));
	cr_assert_not(judge(13, 4));
	cr_assert(judge(14, 5));
}

Test(read_gap, answers_to_later_requests_show_that_the_repeated_one_was_lost)
{
	start(10);
	ur_read_gap_on_reask(g, ur_psn(20), ur_psn(40), AGAIN_NS, 1);
	cr_assert_not(judge(39, 2));
	cr_assert_not(judge(40, 3));
	cr_assert_not(judge(41, 4));
	cr_assert(judge(42, 5));
}

Test(read_gap, the_next_hole_counts_what_came_beyond_it)
{
	start(10);
	for (uint32_t psn = 12; psn < 16; psn++)
		arrived(psn);
	ur_read_gap_on_reask(g, ur_psn(11), ur_psn(20), AGAIN_NS, 1);
	ur_read_gap_advance(g, ur_psn(11), &reo_window, 2);
	cr_assert_not(g->asked);
	cr_assert_eq(g->later, 4);
}

Test(read_gap, a_late_response_widens_the_reordering_window)
{
	start(10);
	judge(11, 1);
	judge(12, 1);
	ur_read_gap_advance(g, ur_psn(13), &reo_window, 80000);
	cr_assert_eq(reo_window.packets, 4);
	cr_assert_eq(reo_window.us, 160);
}

Test(read_gap, losses_shrink_the_reordering_window_to_its_minimum)
{
	ur_reo_window_init(&reo_window);
	for (unsigned i = 0; i < 10; i++)
		ur_reo_window_double(&reo_window);
	cr_assert_eq(reo_window.packets, UR_REO_WINDOW_PACKETS_MAX);
	cr_assert_eq(reo_window.us, UR_REO_WINDOW_US_MAX);
	for (unsigned i = 0; i < 100 * UR_REO_WINDOW_LOSSES; i++)
		ur_reo_window_narrow(&reo_window);
	cr_assert_eq(reo_window.packets, UR_REO_WINDOW_PACKETS);
	cr_assert_eq(reo_window.us, UR_REO_WINDOW_US);
}
