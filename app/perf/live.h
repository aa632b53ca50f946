/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_LIVE_H
#define PERF_LIVE_H

#include "endpoint.h"

/*
 * --live: what the endpoint's lanes and scheduler do, how destinations are paced and receive pools
 * shared where that is asked for, on stderr, every --live-interval seconds: redrawn in place on a
 * terminal, appended elsewhere. A hundred columns wide. All zero: off.
 */
struct perf_live {
	struct perf_endpoint *ep;
	bool terminal;
	unsigned drawn; /* lines on the terminal that the next table overwrites */
	uint64_t interval_ns, start_ns, last_ns;
	struct uroce_lanes last;
	struct uroce_counters last_counters;
	struct uroce_qos_attr qos;
};

void perf_live_start(struct perf_live *l, struct perf_endpoint *ep, const struct perf_options *o);
/* Call it often; it checks the clock. */
void perf_live_update(struct perf_live *l);

#endif
