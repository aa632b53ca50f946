/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_ATTR_H
#define UR_CC_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include <uroce/pacing_modes.h>

/*
 * What congestion control is told, and what it tells of itself: plain data. cc.h has the table of
 * destinations.
 */
enum ur_cc_mode {
#define X(NAME, name, summary) UR_CC_##NAME,
	UROCE_PACING_MODES(X)
#undef X
};

#define UR_CC_LINK_BPS_MIN UINT64_C(1000000)
#define UR_CC_LINK_BPS_MAX UINT64_C(1000000000000)

/* 0 stands for the default where one is named. */
struct ur_cc_attr {
	enum ur_cc_mode mode;
	uint64_t link_bps; /* of the sender, in these; for algorithms that go by it */
	uint64_t seed;	   /* of the table's hash */

	/* CMDPD: in average delays, init0 < init1. */
	bool ewma;     /* the average is an exponentially weighted one, else the plain mean */
	uint8_t init0; /* shorter ones end the throttling; 8 */
	uint8_t init1; /* longer ones throttle; 16 */

	/* DCQCN, names of the paper. */
	uint32_t timer_ns; /* between increases by time; 55 us */
	uint32_t byte_cnt; /* between increases by bytes sent; 10 MB */
	uint32_t alpha_ns; /* without CNP, after which alpha shrinks; 55 us */
	uint8_t g_shift;   /* g = 2^-g_shift, [1, 16]; 8 */
	uint8_t f;	   /* increases of fast recovery; 5 */
	uint64_t rai_bps;  /* additive increase; 40 Mb/s */
	uint64_t rhai_bps; /* hyper increase; 400 Mb/s */

	/* Swift. */
	uint32_t target_ns; /* base target delay, the path included, [1, 10^8]; 100 us */
};

#define UR_CC_KEY 16 /* bytes that name a destination: its IP address */

/* Counters of a table; X(name, meaning). */
#define UR_CC_COUNTERS(X)                                                                          \
	X(samples, "delays measured")                                                              \
	X(unsure, "delays that may be our own pause, not counted")                                 \
	X(outliers, "delays that were too long")                                                   \
	X(reseeds, "times that a destination's delays were learned anew")                          \
	X(throttles, "times that a destination became throttled")                                  \
	X(cnps, "congestion notification packets")                                                 \
	X(losses, "times that packets to a destination were found lost")                           \
	X(timeouts, "retransmission timeouts")                                                     \
	X(full, "references not controlled because the table was full")

struct ur_cc_counters {
#define X(name, meaning) uint64_t name;
	UR_CC_COUNTERS(X)
#undef X
};

struct ur_cc_view {
	uint64_t samples, outliers, reseeds, throttles, cnps, losses, timeouts;
	bool throttled;
	uint32_t average_ns, least_ns;	  /* delays; 0: no sample yet */
	uint32_t deflection;		  /* last delay / average, 1/256 */
	uint32_t gap_ns;		  /* for a packet of 4096 bytes; 0: not throttled */
	uint64_t rate_bps;		  /* 0: not throttled, or no rate is known */
	uint64_t window_bytes, in_flight; /* 0: no window */
	uint32_t users;
	uint8_t key[UR_CC_KEY];
};

#endif
