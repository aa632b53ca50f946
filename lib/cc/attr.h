/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_ATTR_H
#define UR_CC_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include <uroce/pacing_modes.h>

#include "uroce/counter_list.h"

/*
 * Attributes and views of congestion control: plain data. cc.h has the table of destinations.
 */
enum ur_cc_mode {
#define X(NAME, name, summary) UR_CC_##NAME,
	UROCE_PACING_MODES(X)
#undef X
};

#define UR_CC_LINK_BPS_MIN UINT64_C(1000000)
#define UR_CC_LINK_BPS_MAX UINT64_C(1000000000000)

/* Where a comment names a default, 0 stands for it. */
struct ur_cc_attr {
	enum ur_cc_mode mode;
	/* Speed of the sender's link, in [UR_CC_LINK_BPS_MIN, UR_CC_LINK_BPS_MAX]; only for
	 * algorithms with ur_cc_ops.link. */
	uint64_t link_bps;
	uint64_t seed;	 /* of the table's hash */
	bool round_trip; /* delays are round trips, even where switches would stamp them */

	/* CMDPD: deflections, init0 < init1. */
	bool ewma;     /* exponentially weighted average; false: plain mean */
	uint8_t init0; /* throttling ends below; default 8 */
	uint8_t init1; /* throttling begins above; default 16 */
	/* What a delay does from init0 to init1, where the paper's text is cut off. */
	bool keep_average; /* the average does not include it */
	bool release;	   /* throttling ends */

	/* DCQCN, names of the paper. */
	uint32_t timer_ns; /* between increases by time; default 55 us */
	uint32_t byte_cnt; /* bytes sent between increases by bytes; default 10 MB */
	uint32_t alpha_ns; /* time without a CNP after which alpha shrinks; default 55 us */
	uint8_t g_shift;   /* g = 2^-g_shift, [1, 16]; default 8 */
	uint8_t f;	   /* number of increases in fast recovery; default 5 */
	uint64_t rai_bps;  /* additive increase; default 40 Mb/s */
	uint64_t rhai_bps; /* hyper increase; default 400 Mb/s */

	/* Swift. */
	uint32_t target_ns; /* base target delay, the path included, [1, 10^8]; default 100 us */
};

#define UR_CC_KEY 16 /* bytes that name a destination: its IP address */

struct ur_cc_counters {
#define X(name, type, unit, help) uint64_t name;
	UROCE_PACING_COUNTERS(X)
#undef X
};

struct ur_cc_view {
	uint64_t samples, outliers, reseeds, throttles, cnps, losses, timeouts;
	bool throttled;
	uint32_t average_ns, least_ns;	  /* delays; 0: no sample yet */
	uint32_t deflection;		  /* last delay / average, in 1/256 */
	uint32_t gap_ns;		  /* after a packet of 4096 bytes; 0: not throttled */
	uint64_t rate_bps;		  /* 0: not throttled, or the rate is unknown */
	uint64_t window_bytes, in_flight; /* 0: no window */
	uint32_t users;
	uint8_t key[UR_CC_KEY];
};

#endif
