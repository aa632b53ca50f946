/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_HISTOGRAM_H
#define PERF_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A log-linear histogram of durations: 1 ns to 2^40 ns (18 minutes; longer ones count as that).
 * Values below 2048 ns are kept exactly, above with 1024 steps an octave, so a reported value is
 * at most 1 in 1024 too high: three significant digits. Recording is a few instructions.
 *
 * Thread class: one thread per histogram.
 */
#define PERF_HIST_SUB_BITS 10
#define PERF_HIST_MAX_BITS 40
#define PERF_HIST_BUCKETS  ((PERF_HIST_MAX_BITS - PERF_HIST_SUB_BITS + 1) << PERF_HIST_SUB_BITS)

struct perf_histogram {
	uint64_t cnt, min_ns, max_ns;
	uint32_t bucket[PERF_HIST_BUCKETS];
};

void perf_histogram_reset(struct perf_histogram *h);
void perf_histogram_record(struct perf_histogram *h, uint64_t ns);

/*
 * The smallest value that at least `percent` (0..100) of the samples do not exceed, in ns; 0 when
 * there is no sample. Never below the smallest nor above the largest sample.
 */
uint64_t perf_histogram_percentile(const struct perf_histogram *h, double percent);

/* Adds all samples of `from`. */
void perf_histogram_merge(struct perf_histogram *h, const struct perf_histogram *from);

#endif
