/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "transport/loss/rtt.h"

static struct ur_rtt r;

static void start(void)
{
	ur_rtt_init(&r);
}

TestSuite(rtt, .init = start);

static uint32_t sample(uint32_t stamp, uint32_t residence, uint32_t now)
{
	return ur_rtt_sample(&r, ur_stamp_of(stamp), residence, ur_stamp_of(now));
}

static bool is_fresh(uint32_t stamp, uint32_t newest, uint32_t last)
{
	return ur_rtt_is_fresh(ur_stamp_of(stamp), ur_stamp_of(newest), ur_stamp_of(last));
}

Test(rtt, is_unknown_at_first)
{
	cr_assert_eq(r.srtt, 0);
	cr_assert_eq(r.min, UINT32_MAX);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), 20000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 3), 160000000);
}

Test(rtt, takes_the_first_sample_whole_and_half_of_it_as_deviation)
{
	sample(1000, 0, 3500);
	cr_assert_eq(r.srtt, 2500);
	cr_assert_eq(r.rttvar, 1250);
	cr_assert_eq(r.min, 2500);
}

Test(rtt, does_not_count_what_the_peer_kept)
{
	sample(1000, 500, 3500);
	cr_assert_eq(r.srtt, 2000);
	cr_assert_eq(r.min, 2000);
}

/* EXT-SEL-RTT-03 */
Test(rtt, timeout_covers_what_the_peer_keeps)
{
	sample(0, 100000, 300000);
	cr_assert_eq(r.srtt, 200000);
	cr_assert_eq(r.kept, 100000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), (200000 + 4 * 100000 + 100000) * 16);
	/* It grows at once, and shrinks by a sixteenth per sample. */
	sample(0, 260000, 460000);
	cr_assert_eq(r.kept, 260000);
	sample(0, 100000, 300000);
	cr_assert_eq(r.kept, 250000);
}

/* EXT-SEL-RTT-04 */
Test(rtt, later_answers_to_a_request_may_take_half_as_long_again)
{
	sample(0, 100000, 300000);
	ur_rtt_expect_more(&r, 100000);
	cr_assert_eq(r.kept, 150000);
	ur_rtt_expect_more(&r, 20000);
	cr_assert_eq(r.kept, 150000);
	ur_rtt_expect_more(&r, UINT32_MAX);
	cr_assert_eq(r.kept, UR_RTT_MAX);
}

Test(rtt, smooths_by_an_eighth)
{
	sample(0, 0, 8000);
	sample(0, 0, 16000);
	cr_assert_eq(r.srtt, 9000);
	/* The deviation is 8000, RTTVAR 4000: it grows by a quarter of the difference. */
	cr_assert_eq(r.rttvar, 5000);
	sample(0, 0, 9000);
	cr_assert_eq(r.srtt, 9000);
	/* It shrinks only by a sixteenth. */
	cr_assert_eq(r.rttvar, 5000 - 312);
	sample(0, 0, 1000);
	cr_assert_eq(r.srtt, 8000);
	cr_assert_eq(r.min, 1000);
}

/* EXT-SEL-RTT-01 */
Test(rtt, ignores_what_cannot_be)
{
	sample(100, 0, 200);
	sample(201, 0, 200);
	sample(200 - 0x80000000u, 0, 200);
	sample(100, 101, 200);
	sample(100, UINT32_MAX, 200);
	cr_assert_eq(r.srtt, 100);
	cr_assert_eq(r.rttvar, 50);
	cr_assert_eq(r.min, 100);
}

Test(rtt, has_no_sample_of_nothing_and_none_beyond_four_seconds)
{
	sample(200, 0, 200);
	cr_assert_eq(r.srtt, 1);
	start();
	sample(0, 0, 0x7fffffff);
	cr_assert_eq(r.srtt, UR_RTT_MAX);
	sample(0, 0, 0x7fffffff);
	cr_assert_eq(r.srtt, UR_RTT_MAX);
}

Test(rtt, measures_across_the_wrap_of_stamps)
{
	sample(0xffffff00u, 0x10, 0x100);
	cr_assert_eq(r.srtt, 0x1f0);
}

/* EXT-SEL-RTT-02 */
Test(rtt, a_stamp_seen_before_is_not_fresh)
{
	cr_assert(is_fresh(1001, 1000, 2000));
	cr_assert(is_fresh(2000, 1000, 2000));
	cr_assert_not(is_fresh(1000, 1000, 2000));
	cr_assert_not(is_fresh(999, 1000, 2000));
	cr_assert_not(is_fresh(0, 1000, 2000));
	cr_assert_not(is_fresh(2001, 1000, 2000), "it has not left yet");
	cr_assert_not(is_fresh(2000, 2000, 2000));
	/* Across the wrap of stamps. */
	cr_assert(is_fresh(0xfffffff1u, 0xfffffff0u, 0x10));
	cr_assert(is_fresh(0, 0xfffffff0u, 0x10));
	cr_assert(is_fresh(0x10, 0xfffffff0u, 0x10));
	cr_assert_not(is_fresh(0xfffffff0u, 0xfffffff0u, 0x10));
	cr_assert_not(is_fresh(0xffffff00u, 0xfffffff0u, 0x10));
	cr_assert_not(is_fresh(0x11, 0xfffffff0u, 0x10));
	/* After a pause of 51.5 s, three quarters of the stamp's range. */
	cr_assert(is_fresh(0xc00003e8u, 1000, 0xc00003e8u));
	cr_assert_not(is_fresh(1000, 1000, 0xc00003e8u));
	cr_assert_not(is_fresh(900, 1000, 0xc00003e8u));
}

Test(rtt, forgets_the_least_after_two_intervals)
{
	uint32_t now = 0xfffff000u;

	sample(now - 100, 0, now);
	sample(now - 300, 0, now);
	cr_assert_eq(r.min, 100);
	now += UR_RTT_MIN_INTERVAL;
	sample(now - 300, 0, now);
	cr_assert_eq(r.min, 100, "the interval before counts");
	now += UR_RTT_MIN_INTERVAL - 1;
	sample(now - 200, 0, now);
	cr_assert_eq(r.min, 100);
	sample(now - 399, 0, now + 1);
	cr_assert_eq(r.min, 200);
}

Test(rtt, gives_a_timeout_within_bounds_that_doubles)
{
	/* 62500 stamps are 1 ms. */
	sample(0, 0, 62);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), 1000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 1), 2000000);
	start();
	sample(0, 0, 62500);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), 3000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 1), 6000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 6), 192000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 7), 200000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 255), 200000000);
}
