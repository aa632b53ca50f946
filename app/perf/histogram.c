/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

#include <math.h>
#include <string.h>

#define SUB    (1u << PERF_HIST_SUB_BITS)
#define TOP_NS ((1ull << PERF_HIST_MAX_BITS) - 1)

/*
 * Index: the first 2 * SUB values stand for themselves. After that a value with its top bit at b
 * (b > SUB_BITS) keeps its SUB_BITS bits below the top one, octave after octave.
 */
static unsigned index_of(uint64_t ns)
{
	unsigned top, shift;

	if (ns > TOP_NS)
		ns = TOP_NS;
	if (ns < 2 * SUB)
		return (unsigned)ns;
	top = 63u - (unsigned)__builtin_clzll(ns);
	shift = top - PERF_HIST_SUB_BITS;
	return shift * SUB + (unsigned)(ns >> shift);
}

static uint64_t highest_of(unsigned idx)
{
	unsigned shift;

	if (idx < 2 * SUB)
		return idx;
	shift = idx / SUB - 1;
	return (((uint64_t)(idx - shift * SUB) + 1) << shift) - 1;
}

void perf_histogram_reset(struct perf_histogram *h)
{
	memset(h, 0, sizeof(*h));
}

void perf_histogram_record(struct perf_histogram *h, uint64_t ns)
{
	if (h->cnt == 0 || ns < h->min_ns)
		h->min_ns = ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
	h->cnt++;
	h->bucket[index_of(ns)]++;
}

uint64_t perf_histogram_percentile(const struct perf_histogram *h, double percent)
{
	uint64_t rank, seen = 0, ns;

	if (h->cnt == 0)
		return 0;
	/* 99.9 is no binary fraction: what is whole but for its last bits must not round up. */
	rank = (uint64_t)ceil(percent * (double)h->cnt / 100.0 - 1e-6);
	if (rank == 0)
		rank = 1;
	if (rank > h->cnt)
		rank = h->cnt;
	for (unsigned i = 0; i < PERF_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen < rank)
			continue;
		ns = highest_of(i);
		return ns > h->max_ns ? h->max_ns : ns < h->min_ns ? h->min_ns : ns;
	}
	return h->max_ns;
}

void perf_histogram_merge(struct perf_histogram *h, const struct perf_histogram *from)
{
	if (from->cnt == 0)
		return;
	if (h->cnt == 0 || from->min_ns < h->min_ns)
		h->min_ns = from->min_ns;
	if (from->max_ns > h->max_ns)
		h->max_ns = from->max_ns;
	h->cnt += from->cnt;
	for (unsigned i = 0; i < PERF_HIST_BUCKETS; i++)
		h->bucket[i] += from->bucket[i];
}
