/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "transport/loss/rtt.h"

static struct ur_rtt r;

static void start(void)
{
	ur_rtt_init(&r);
}

TestSuite(rtt, .init = start);

Test(rtt, is_unknown_at_first)
{
	cr_assert_eq(r.srtt, 0);
	cr_assert_eq(r.min, UINT32_MAX);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), 20000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 3), 160000000);
}

Test(rtt, takes_the_first_sample_whole_and_half_of_it_as_deviation)
{
	ur_rtt_sample(&r, 1000, 0, 3500);
	cr_assert_eq(r.srtt, 2500);
	cr_assert_eq(r.rttvar, 1250);
	cr_assert_eq(r.min, 2500);
}

Test(rtt, does_not_count_what_the_peer_kept)
{
	ur_rtt_sample(&r, 1000, 500, 3500);
	cr_assert_eq(r.srtt, 2000);
	cr_assert_eq(r.min, 2000);
}

/* EXT-SEL-RTT-03 */
Test(rtt, timeout_covers_what_the_peer_keeps)
{
	ur_rtt_sample(&r, 0, 100000, 300000);
	cr_assert_eq(r.srtt, 200000);
	cr_assert_eq(r.kept, 100000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), (200000 + 4 * 100000 + 100000) * 16);
	/* It grows at once, and shrinks by a sixteenth per sample. */
	ur_rtt_sample(&r, 0, 260000, 460000);
	cr_assert_eq(r.kept, 260000);
	ur_rtt_sample(&r, 0, 100000, 300000);
	cr_assert_eq(r.kept, 250000);
}

Test(rtt, smooths_by_an_eighth)
{
	ur_rtt_sample(&r, 0, 0, 8000);
	ur_rtt_sample(&r, 0, 0, 16000);
	cr_assert_eq(r.srtt, 9000);
	/* The deviation is 8000, RTTVAR 4000: it grows by a quarter of the difference. */
	cr_assert_eq(r.rttvar, 5000);
	ur_rtt_sample(&r, 0, 0, 9000);
	cr_assert_eq(r.srtt, 9000);
	/* It shrinks only by a sixteenth. */
	cr_assert_eq(r.rttvar, 5000 - 312);
	ur_rtt_sample(&r, 0, 0, 1000);
	cr_assert_eq(r.srtt, 8000);
	cr_assert_eq(r.min, 1000);
}

/* EXT-SEL-RTT-01 */
Test(rtt, ignores_what_cannot_be)
{
	ur_rtt_sample(&r, 100, 0, 200);
	ur_rtt_sample(&r, 201, 0, 200);
	ur_rtt_sample(&r, 200 - 0x80000000u, 0, 200);
	ur_rtt_sample(&r, 100, 101, 200);
	ur_rtt_sample(&r, 100, UINT32_MAX, 200);
	cr_assert_eq(r.srtt, 100);
	cr_assert_eq(r.rttvar, 50);
	cr_assert_eq(r.min, 100);
}

Test(rtt, has_no_sample_of_nothing_and_none_beyond_four_seconds)
{
	ur_rtt_sample(&r, 200, 0, 200);
	cr_assert_eq(r.srtt, 1);
	start();
	ur_rtt_sample(&r, 0, 0, 0x7fffffff);
	cr_assert_eq(r.srtt, UR_RTT_MAX);
	ur_rtt_sample(&r, 0, 0, 0x7fffffff);
	cr_assert_eq(r.srtt, UR_RTT_MAX);
}

Test(rtt, measures_across_the_wrap_of_stamps)
{
	ur_rtt_sample(&r, 0xffffff00u, 0x10, 0x100);
	cr_assert_eq(r.srtt, 0x1f0);
}

/* EXT-SEL-RTT-02 */
Test(rtt, a_stamp_seen_before_is_not_fresh)
{
	cr_assert(ur_rtt_is_fresh(1001, 1000, 2000));
	cr_assert(ur_rtt_is_fresh(2000, 1000, 2000));
	cr_assert_not(ur_rtt_is_fresh(1000, 1000, 2000));
	cr_assert_not(ur_rtt_is_fresh(999, 1000, 2000));
	cr_assert_not(ur_rtt_is_fresh(0, 1000, 2000));
	cr_assert_not(ur_rtt_is_fresh(2001, 1000, 2000), "it has not left yet");
	cr_assert_not(ur_rtt_is_fresh(2000, 2000, 2000));
	/* Across the wrap of stamps. */
	cr_assert(ur_rtt_is_fresh(0xfffffff1u, 0xfffffff0u, 0x10));
	cr_assert(ur_rtt_is_fresh(0, 0xfffffff0u, 0x10));
	cr_assert(ur_rtt_is_fresh(0x10, 0xfffffff0u, 0x10));
	cr_assert_not(ur_rtt_is_fresh(0xfffffff0u, 0xfffffff0u, 0x10));
	cr_assert_not(ur_rtt_is_fresh(0xffffff00u, 0xfffffff0u, 0x10));
	cr_assert_not(ur_rtt_is_fresh(0x11, 0xfffffff0u, 0x10));
	/* After a pause of 51.5 s, three quarters of the stamp's range. */
	cr_assert(ur_rtt_is_fresh(0xc00003e8u, 1000, 0xc00003e8u));
	cr_assert_not(ur_rtt_is_fresh(1000, 1000, 0xc00003e8u));
	cr_assert_not(ur_rtt_is_fresh(900, 1000, 0xc00003e8u));
}

Test(rtt, forgets_the_least_after_two_intervals)
{
	uint32_t now = 0xfffff000u;

	ur_rtt_sample(&r, now - 100, 0, now);
	ur_rtt_sample(&r, now - 300, 0, now);
	cr_assert_eq(r.min, 100);
	now += UR_RTT_MIN_INTERVAL;
	ur_rtt_sample(&r, now - 300, 0, now);
	cr_assert_eq(r.min, 100, "the interval before counts");
	now += UR_RTT_MIN_INTERVAL - 1;
	ur_rtt_sample(&r, now - 200, 0, now);
	cr_assert_eq(r.min, 100);
	ur_rtt_sample(&r, now - 399, 0, now + 1);
	cr_assert_eq(r.min, 200);
}

Test(rtt, gives_a_timeout_within_bounds_that_doubles)
{
	/* 62500 stamps are 1 ms. */
	ur_rtt_sample(&r, 0, 0, 62);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), 1000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 1), 2000000);
	start();
	ur_rtt_sample(&r, 0, 0, 62500);
	cr_assert_eq(ur_rtt_rto_ns(&r, 0), 3000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 1), 6000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 6), 192000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 7), 200000000);
	cr_assert_eq(ur_rtt_rto_ns(&r, 255), 200000000);
}
