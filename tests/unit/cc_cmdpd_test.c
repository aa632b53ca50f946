/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "cc/cc.h"
#include "cc/cmdpd.h"

#define CMDPD(d) ((const struct ur_cc_cmdpd *)(const void *)(d)->state)

static struct ur_cc t;
static _Alignas(8) uint8_t memory[2048];
static struct ur_cc_dest *d;
static struct ur_cc_view v;

static void start_attr(const struct ur_cc_attr *attr)
{
	uint8_t key[UR_CC_KEY] = {1};

	cr_assert_leq(ur_cc_size(1), sizeof(memory));
	ur_cc_init(&t, memory, 1, attr);
	d = ur_cc_get(&t, key, 4096, 0);
}

static void start_with(bool ewma, uint8_t init0, uint8_t init1)
{
	struct ur_cc_attr attr = {
		.mode = UR_CC_CMDPD, .ewma = ewma, .init0 = init0, .init1 = init1};

	start_attr(&attr);
}

/* 8 and 16, the plain mean. */
static void start(void)
{
	start_with(false, 0, 0);
}

static uint32_t average(void)
{
	ur_cc_view(&t, d, &v);
	return v.average_ns;
}

static void delays(unsigned n, uint32_t delay_ns, uint64_t now_ns)
{
	for (unsigned i = 0; i < n; i++)
		ur_cc_on_ack(&t, d, delay_ns, now_ns);
}

TestSuite(cc_cmdpd, .init = start);

/* PACE-CMDPD-03 */
Test(cc_cmdpd, takes_the_first_delay_for_the_average)
{
	delays(1, 1000, 5000);
	cr_assert_eq(average(), 1000);
	cr_assert_eq(ur_cc_open_ns(d), 0);
}

Test(cc_cmdpd, keeps_the_plain_mean)
{
	delays(3, 1000, 5000);
	delays(1, 5000, 5000);
	cr_assert_eq(average(), 2000);
}

Test(cc_cmdpd, keeps_a_weighted_mean_that_forgets)
{
	start_with(true, 0, 0);
	delays(1000, 1000, 5000);
	delays(1, 5000, 5000);
	cr_assert_eq(average(), 1500);
	delays(40, 5000, 5000);
	cr_assert_float_eq((double)average(), 5000, 30);
}

/* PACE-CMDPD-01 */
Test(cc_cmdpd, throttles_beyond_init1_and_not_at_it)
{
	delays(1, 1000, 5000);
	delays(1, 16001, 50000);
	cr_assert(d->throttled);
	cr_assert_eq(average(), 1000, "an outlier does not count");
	cr_assert_eq(v.outliers, 1);
	cr_assert_eq(v.gap_ns, 16001);
	cr_assert_eq(v.deflection, 256 * 16001 / 1000);
	start();
	delays(1, 1000, 5000);
	delays(1, 16000, 50000);
	cr_assert_not(d->throttled);
	cr_assert_eq(average(), 8500);
}

/* PACE-CMDPD-04 */
Test(cc_cmdpd, sends_one_packet_a_gap_while_throttled)
{
	delays(1, 1000, 5000);
	ur_cc_on_send(&t, d, 4096, 6000);
	cr_assert_eq(ur_cc_open_ns(d), 0);
	delays(1, 20000, 50000);
	cr_assert_leq(ur_cc_open_ns(d), 50000);
	ur_cc_on_send(&t, d, 4096, 50100);
	cr_assert_eq(ur_cc_open_ns(d), 70100);
	/* Long after: still one. */
	ur_cc_on_send(&t, d, 64, 170000);
	cr_assert_eq(ur_cc_open_ns(d), 190000);
	/* The newest outlier determines the gap, also of a gap that has begun. */
	delays(1, 17000, 171000);
	cr_assert_eq(ur_cc_open_ns(d), 188000);
}

/* PACE-CMDPD-02 */
Test(cc_cmdpd, opens_below_init0_only)
{
	delays(100, 1000, 5000);
	delays(1, 20000, 50000);
	/* In between the average moves, the throttling stays. */
	delays(1, 8100, 51000);
	cr_assert(d->throttled);
	cr_assert_eq(average(), 1070);
	ur_cc_on_send(&t, d, 4096, 52000);
	cr_assert_eq(ur_cc_open_ns(d), 72000);
	/* 8 times (100000 + 8100) / 101 is 8562.4. */
	delays(1, 8563, 53000);
	cr_assert(d->throttled);
	delays(1, 8500, 54000);
	cr_assert_not(d->throttled);
	cr_assert_eq(ur_cc_open_ns(d), 0);
}

/* PACE-CMDPD-02 */
Test(cc_cmdpd, takes_other_limits)
{
	start_with(false, 2, 3);
	delays(1, 1000, 5000);
	delays(1, 3001, 9000);
	cr_assert(d->throttled);
	delays(1, 2000, 9100);
	cr_assert(d->throttled);
	cr_assert_eq(average(), 1500);
	delays(1, 2999, 9200);
	cr_assert_not(d->throttled);
}

/* PACE-CMDPD-03 */
Test(cc_cmdpd, learns_anew_after_thirty_two_outliers_in_a_row)
{
	delays(1, 1000, 5000);
	delays(31, 50000, 60000);
	cr_assert(d->throttled);
	delays(1, 1000, 60000);
	delays(31, 50000, 60000);
	cr_assert(d->throttled, "a normal one in between");
	delays(1, 60000, 60000);
	cr_assert_not(d->throttled);
	cr_assert_eq(average(), 60000);
	cr_assert_eq(v.reseeds, 1);
	cr_assert_eq(v.outliers, 63);
	cr_assert_eq(t.cnt.reseeds, 1);
}

/* PACE-CMDPD-03 */
Test(cc_cmdpd, learns_anew_after_ten_gaps_without_a_normal_delay)
{
	delays(1, 1000, 5000);
	/* After a long pause the first outlier is just one. */
	delays(1, 50000, 10000000);
	delays(1, 50000, 10499999);
	cr_assert(d->throttled);
	cr_assert_eq(average(), 1000);
	delays(1, 50000, 10500000);
	cr_assert_not(d->throttled);
	cr_assert_eq(average(), 50000);
	/* And the series starts afresh. */
	delays(1, 900000, 11000000);
	cr_assert(d->throttled);
}

/* PACE-CMDPD-05 */
Test(cc_cmdpd, keeps_sums_within_bounds)
{
	/* The longest delays there are: the sum stays below 2^52. */
	delays(3 << 20, UINT32_MAX, UINT64_C(1) << 40);
	cr_assert_eq(average(), UINT32_MAX);
	cr_assert_lt(CMDPD(d)->sum_ns, UINT64_C(1) << 52);
	cr_assert_lt(CMDPD(d)->cnt, 1 << 20);
	cr_assert_geq(CMDPD(d)->cnt, 1 << 19);
	cr_assert_not(d->throttled);
	/* Halving both has let the mean follow: it is no mean of everything since the start. */
	delays(3 << 20, 1 << 30, UINT64_C(1) << 40);
	cr_assert_lt(average(), UINT32_C(1400000000));
}

/* PACE-CMDPD-02, and the readings that ur_cc_attr offers beside it. */
Test(cc_cmdpd, between_the_bounds_each_reading_does_what_it_says)
{
	for (unsigned reading = 0; reading < 4; reading++) {
		struct ur_cc_attr attr = {
			.mode = UR_CC_CMDPD, .keep_average = reading & 1, .release = reading & 2};

		start_attr(&attr);
		delays(1, 1000, 5000);
		delays(1, 16001, 50000);
		cr_assert(d->throttled);
		delays(1, 9000, 60000);
		cr_assert_eq(average(), reading & 1 ? 1000 : 5000, "reading %u", reading);
		cr_assert_eq(d->throttled, !(reading & 2), "reading %u", reading);
	}
}
