/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "cc/cc.h"
#include "cc/dcqcn.h"

#define DCQCN(d) ((const struct ur_cc_dcqcn *)(const void *)(d)->state)

#define GBPS UINT64_C(1000000000)
#define US   UINT64_C(1000)
#define T0   (1000 * US)

static struct ur_cc t;
static _Alignas(8) uint8_t memory[2048];
static struct ur_cc_dest *d;

static void start_with(struct ur_cc_attr attr)
{
	uint8_t key[UR_CC_KEY] = {1};

	attr.mode = UR_CC_DCQCN;
	attr.link_bps = 40 * GBPS;
	ur_cc_init(&t, memory, 1, &attr);
	d = ur_cc_get(&t, key, 4096, 0);
}

static void start(void)
{
	start_with((struct ur_cc_attr){0});
}

static double mbps(void)
{
	struct ur_cc_view v;

	ur_cc_view(&t, d, &v);
	return (double)v.rate_bps / 1e6;
}

static double target_mbps(void)
{
	return DCQCN(d)->target * 8000.0 / (1 << UR_CC_RATE_SHIFT);
}

/* Within half a thousandth. */
#define EXPECT(value, expected) cr_assert_float_eq(value, expected, (expected) / 2000.0)

TestSuite(cc_dcqcn, .init = start);

Test(cc_dcqcn, starts_at_the_rate_of_the_link)
{
	ur_cc_on_send(&t, d, 4096, T0);
	cr_assert_eq(ur_cc_open_ns(d), 0);
	cr_assert_eq(mbps(), 0);
}

/* PACE-DCQCN-01 */
Test(cc_dcqcn, halves_with_the_first_notification)
{
	ur_cc_on_cnp(&t, d, T0);
	EXPECT(mbps(), 20000);
	EXPECT(target_mbps(), 40000);
	/* 4000 bytes at 20 Gb/s. */
	ur_cc_on_send(&t, d, 4000, T0);
	cr_assert_float_eq((double)ur_cc_open_ns(d), T0 + 1600, 2);
}

/* PACE-DCQCN-01 */
Test(cc_dcqcn, cuts_less_when_notifications_are_rare)
{
	ur_cc_on_cnp(&t, d, T0);
	/* alpha stays 1 without time for it to shrink. */
	ur_cc_on_cnp(&t, d, T0 + 54 * US);
	EXPECT(mbps(), 10000);
	EXPECT(target_mbps(), 20000);
	cr_assert_eq(DCQCN(d)->alpha, 65536);
	/* Ten periods: (255/256)^10 = 0.9616; fast recovery: ten steps, five of them with more
	 * target. */
	ur_cc_on_cnp(&t, d, T0 + 54 * US + 550 * US);
	EXPECT(DCQCN(d)->alpha / 65536.0, 0.9616 * 255 / 256 + 1.0 / 256);
}

/* PACE-DCQCN-02 */
Test(cc_dcqcn, recovers_fast_then_adds)
{
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_cnp(&t, d, T0);
	EXPECT(mbps(), 10000);
	/* Halfway to the target of 20 Gb/s, each 55 us. */
	ur_cc_on_send(&t, d, 1000, T0 + 55 * US - 1);
	EXPECT(mbps(), 10000);
	ur_cc_on_send(&t, d, 1000, T0 + 55 * US);
	EXPECT(mbps(), 15000);
	ur_cc_on_send(&t, d, 1000, T0 + 220 * US);
	EXPECT(mbps(), 19375);
	EXPECT(target_mbps(), 20000);
	/* From the fifth on 40 Mb/s more each. */
	ur_cc_on_send(&t, d, 1000, T0 + 275 * US);
	EXPECT(target_mbps(), 20040);
	EXPECT(mbps(), (19375 + 20040) / 2.0);
	ur_cc_on_send(&t, d, 1000, T0 + 330 * US);
	EXPECT(target_mbps(), 20080);
}

/* PACE-DCQCN-01 */
Test(cc_dcqcn, recovers_fast_after_each_notification)
{
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_send(&t, d, 1000, T0 + 330 * US);
	ur_cc_on_cnp(&t, d, T0 + 330 * US);
	EXPECT(target_mbps(), 19893.75);
	ur_cc_on_send(&t, d, 1000, T0 + 550 * US);
	EXPECT(target_mbps(), 19893.75);
	ur_cc_on_send(&t, d, 1000, T0 + 605 * US);
	EXPECT(target_mbps(), 19933.75);
}

/* PACE-DCQCN-02 */
Test(cc_dcqcn, increases_by_bytes_as_well)
{
	start_with((struct ur_cc_attr){.byte_cnt = 10000});
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_cnp(&t, d, T0);
	for (unsigned i = 0; i < 2; i++)
		ur_cc_on_send(&t, d, 4999, T0 + US);
	EXPECT(mbps(), 10000);
	ur_cc_on_send(&t, d, 2, T0 + US);
	EXPECT(mbps(), 15000);
	cr_assert_eq(DCQCN(d)->bytes, 0);
}

/* PACE-DCQCN-02 */
Test(cc_dcqcn, increases_much_when_both_counters_are_beyond_five)
{
	start_with((struct ur_cc_attr){.byte_cnt = 1000});
	for (unsigned i = 0; i < 3; i++)
		ur_cc_on_cnp(&t, d, T0);
	EXPECT(mbps(), 5000);
	for (unsigned i = 0; i < 6; i++)
		ur_cc_on_send(&t, d, 1000, T0);
	/* The fifth and the sixth added 40 Mb/s; time alone as well, five times. */
	EXPECT(target_mbps(), 10080);
	ur_cc_on_send(&t, d, 1, T0 + 275 * US);
	EXPECT(target_mbps(), 10280);
	/* The sixth by time: both are 6, one more than 5. */
	ur_cc_on_send(&t, d, 1, T0 + 330 * US);
	EXPECT(target_mbps(), 10680);
	/* min is 6 still: as much; */
	ur_cc_on_send(&t, d, 998, T0 + 330 * US);
	EXPECT(target_mbps(), 11080);
	/* then 7: twice as much. */
	ur_cc_on_send(&t, d, 1, T0 + 385 * US);
	EXPECT(target_mbps(), 11880);
}

/* PACE-DCQCN-03 */
Test(cc_dcqcn, makes_up_for_increases_that_became_due_meanwhile)
{
	struct ur_cc_dest now;

	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_cnp(&t, d, T0);
	for (unsigned i = 1; i <= 20; i++)
		ur_cc_on_send(&t, d, 10, T0 + i * 55 * US);
	now = *d;
	start();
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_send(&t, d, 10, T0 + 20 * 55 * US);
	cr_assert_eq(DCQCN(d)->rate, DCQCN(&now)->rate);
	cr_assert_eq(DCQCN(d)->target, DCQCN(&now)->target);
	/* A long pause in several calls, and never more than a bounded number of steps in one. */
	ur_cc_on_send(&t, d, 10, T0 + 1000 * 55 * US);
	cr_assert_eq(DCQCN(d)->timer_ns, T0 + 84 * 55 * US);
}

/* PACE-DCQCN-03 */
Test(cc_dcqcn, foresees_increases_within_a_long_gap)
{
	/* 20 notifications: at the least rate there is, 40 Gb/s / 1024. */
	for (unsigned i = 0; i < 20; i++)
		ur_cc_on_cnp(&t, d, T0);
	EXPECT(mbps(), 40000 / 1024.0);
	/*
	 * At 39.06 Mb/s 4096 bytes would take 839 us. But after five periods of 55 us it is 59.06,
	 * then 89.06, 124.1 and 161.6 Mb/s: 25711 of the 32768 bits in eight periods, the rest
	 * in 43.7 us.
	 */
	ur_cc_on_send(&t, d, 4096, T0);
	cr_assert_float_eq((double)(ur_cc_open_ns(d) - T0), 483.7e3, 1e3);
	/* Looking ahead changes nothing. */
	EXPECT(mbps(), 40000 / 1024.0);
}

/* PACE-DCQCN-04 */
Test(cc_dcqcn, lets_go_at_the_rate_of_the_link)
{
	ur_cc_on_cnp(&t, d, T0);
	/* 20, 30, 35, 37.5, 38.75, 39.375, 39.69, 39.84, 39.92 Gb/s: 1/256 less than 40 is 39.844.
	 */
	ur_cc_on_send(&t, d, 1000, T0 + 6 * 55 * US);
	cr_assert(d->throttled);
	ur_cc_on_send(&t, d, 1000, T0 + 8 * 55 * US);
	cr_assert_not(d->throttled);
	cr_assert_eq(ur_cc_open_ns(d), 0);
	/* The next one is a first one, and alpha is 1 again. */
	ur_cc_on_cnp(&t, d, T0 + 1000 * US);
	EXPECT(mbps(), 20000);
	cr_assert_eq(d->throttles, 2);
	ur_cc_on_cnp(&t, d, T0 + 1200 * US);
	cr_assert_lt(DCQCN(d)->alpha, 65536);
	for (unsigned i = 0; i < 5; i++)
		ur_cc_on_send(&t, d, 1000, T0 + 20000 * US);
	cr_assert_not(d->throttled);
	ur_cc_on_cnp(&t, d, T0 + 20000 * US);
	EXPECT(mbps(), 20000);
}

/* PACE-RATE-02 */
Test(cc_dcqcn, never_stops_wholly)
{
	for (unsigned i = 0; i < 1000; i++)
		ur_cc_on_cnp(&t, d, T0 + i);
	EXPECT(mbps(), 40000 / 1024.0);
}

/* PACE-LINK-01 */
Test(cc_dcqcn, a_slower_link_bounds_rate_and_target_or_opens)
{
	start();
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_on_cnp(&t, d, T0 + 1);
	cr_assert_float_eq(mbps(), 10000, 100, "%f", mbps());
	cr_assert_float_eq(target_mbps(), 20000, 100, "%f", target_mbps());
	ur_cc_set_link(&t, 12 * GBPS);
	cr_expect_float_eq(mbps(), 10000, 100, "%f", mbps());
	cr_expect_float_eq(target_mbps(), 12000, 100, "%f", target_mbps());
	ur_cc_set_link(&t, 5 * GBPS);
	cr_expect_not(d->throttled, "the port's own rate is enough");
	cr_expect_eq(t.throttled, 0);
	ur_cc_on_cnp(&t, d, T0 + 1000 * US);
	cr_expect_float_eq(mbps(), 2500, 50, "half of the new link: %f", mbps());
}

/* PACE-LINK-01 */
Test(cc_dcqcn, a_faster_link_lets_it_grow)
{
	start();
	ur_cc_set_link(&t, 5 * GBPS);
	ur_cc_on_cnp(&t, d, T0);
	ur_cc_set_link(&t, 40 * GBPS);
	cr_expect_float_eq(mbps(), 2500, 50, "%f", mbps());
	ur_cc_on_send(&t, d, 1, T0 + 30000 * US);
	cr_assert(d->throttled);
	cr_expect_gt(mbps(), 5100, "%f", mbps());
}
