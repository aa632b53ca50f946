/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SCHED_ATTR_H
#define UR_SCHED_ATTR_H

#include <stdbool.h>
#include <stdint.h>

/* Configuration of how the queues of a lane share it. emux.h has the scheduler. */
#define UR_EMUX_PRIORITIES 8
#define UR_EMUX_WQES	   8	 /* default of `wqes` */
#define UR_EMUX_BURST	   16384 /* default of `burst` */

/*
 * Policies: which of a lane's ready queues is next, and how long its turn is. X(NAME, name)
 *
 * - rr: round robin, equal turns
 * - wrr: round robin, turns in proportion to the queues' weights
 * - strict: the ready queue with the highest priority; round robin among equals
 */
#define UR_EMUX_POLICIES(X)                                                                        \
	X(RR, rr)                                                                                  \
	X(WRR, wrr)                                                                                \
	X(STRICT, strict)

enum ur_emux_policy {
#define X(NAME, name) UR_EMUX_##NAME,
	UR_EMUX_POLICIES(X)
#undef X
};

struct ur_emux_attr {
	enum ur_emux_policy policy;
	uint32_t wqes;	/* WQEs begun per turn, [1, 2^24] */
	uint32_t burst; /* bytes of frames per turn, [1, 2^24] */
	bool in_turn;	/* sparse queues do not go first */
};

#endif
