/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "histogram.h"

static struct perf_histogram h, g;

static void fresh(void)
{
	perf_histogram_reset(&h);
	perf_histogram_reset(&g);
}

TestSuite(perf_histogram, .init = fresh);

Test(perf_histogram, without_samples_every_percentile_is_0)
{
	cr_assert_eq(perf_histogram_percentile(&h, 0), 0);
	cr_assert_eq(perf_histogram_percentile(&h, 50), 0);
	cr_assert_eq(perf_histogram_percentile(&h, 100), 0);
}

Test(perf_histogram, values_below_2048_are_exact)
{
	for (uint64_t ns = 0; ns < 2048; ns++) {
		perf_histogram_reset(&h);
		perf_histogram_record(&h, ns);
		perf_histogram_record(&h, 1000000000);
		cr_assert_eq(perf_histogram_percentile(&h, 50), ns);
	}
}

Test(perf_histogram, a_reported_value_is_at_most_a_thousandth_too_high)
{
	for (uint64_t ns = 2048; ns < 1ull << 39; ns += ns / 97 + 1) {
		uint64_t got;

		perf_histogram_reset(&h);
		perf_histogram_record(&h, ns);
		perf_histogram_record(&h, UINT64_MAX);
		got = perf_histogram_percentile(&h, 50);
		cr_assert(got >= ns && got - ns <= ns / 1024, "%llu became %llu",
			  (unsigned long long)ns, (unsigned long long)got);
	}
}

Test(perf_histogram, percentiles_count_ranks)
{
	for (uint64_t ns = 1; ns <= 1000; ns++)
		perf_histogram_record(&h, ns);
	cr_assert_eq(perf_histogram_percentile(&h, 0), 1);
	cr_assert_eq(perf_histogram_percentile(&h, 50), 500);
	cr_assert_eq(perf_histogram_percentile(&h, 99), 990);
	cr_assert_eq(perf_histogram_percentile(&h, 99.9), 999);
	cr_assert_eq(perf_histogram_percentile(&h, 100), 1000);
}

Test(perf_histogram, one_outlier_in_a_thousand_is_beyond_p99_and_is_the_maximum)
{
	for (unsigned i = 0; i < 999; i++)
		perf_histogram_record(&h, 700);
	perf_histogram_record(&h, 5000000);
	cr_assert_eq(perf_histogram_percentile(&h, 99), 700);
	cr_assert_eq(perf_histogram_percentile(&h, 99.9), 700);
	cr_assert_eq(perf_histogram_percentile(&h, 100), 5000000);
	cr_assert_eq(h.max_ns, 5000000);
}

Test(perf_histogram, never_reports_more_than_the_largest_sample)
{
	perf_histogram_record(&h, 1000001);
	cr_assert_eq(perf_histogram_percentile(&h, 50), 1000001);
	cr_assert_eq(h.min_ns, 1000001);
}

Test(perf_histogram, what_is_longer_than_its_range_lands_in_the_last_bucket)
{
	perf_histogram_record(&h, UINT64_MAX);
	cr_assert_eq(h.bucket[PERF_HIST_BUCKETS - 1], 1);
	perf_histogram_record(&h, 1ull << PERF_HIST_MAX_BITS);
	cr_assert_eq(h.bucket[PERF_HIST_BUCKETS - 1], 2);
}

Test(perf_histogram, merging_is_as_if_all_had_been_recorded_in_one)
{
	for (uint64_t ns = 1; ns <= 500; ns++)
		perf_histogram_record(&h, ns);
	for (uint64_t ns = 501; ns <= 1000; ns++)
		perf_histogram_record(&g, ns);
	perf_histogram_merge(&h, &g);
	cr_assert_eq(h.cnt, 1000);
	cr_assert_eq(h.min_ns, 1);
	cr_assert_eq(h.max_ns, 1000);
	cr_assert_eq(perf_histogram_percentile(&h, 75), 750);
}

Test(perf_histogram, merging_an_empty_one_changes_nothing)
{
	perf_histogram_record(&h, 42);
	perf_histogram_merge(&h, &g);
	cr_assert_eq(h.cnt, 1);
	cr_assert_eq(h.min_ns, 42);
	perf_histogram_merge(&g, &h);
	cr_assert_eq(g.min_ns, 42);
}
