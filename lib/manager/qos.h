/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_QOS_H
#define UR_MANAGER_QOS_H

#include <stdbool.h>
#include <stdint.h>

#include "vl/attr.h"

/*
 * From what service levels are to get to the arbitration tables of a port (docs/design/management.md): the inverse of
 * vl/vl.h. Each target gets a lane of its own; the service levels without a target share one more, if more than the
 * tolerance is left for them. Every candidate is run through the arbiter with all lanes backlogged by packets of a PMTU.
 *
 * Thread class: pure functions, of milliseconds.
 */
#define UR_QOS_ALL 1000000u /* a share of the whole link */

struct ur_qos_target {
	uint8_t sl;	   /* [0, 15] */
	uint32_t share;	   /* of the link while all lanes are busy, of UR_QOS_ALL; more than 0 */
	uint64_t bound_ns; /* most that the packet at the head of its lane waits; 0: any */
};

struct ur_qos_task {
	enum ur_vl_mode mode;
	uint8_t mtu_shift;  /* [8, 12] */
	uint64_t bps;	    /* payload that the port carries; more than 0 if there is a bound */
	uint32_t tolerance; /* of a share, of UR_QOS_ALL: a part of the link */
	uint8_t cnt;	    /* targets, [1, UR_VL_CNT] */
	struct ur_qos_target target[UR_VL_CNT];
};

/* What a lane gets. */
struct ur_qos_got {
	uint32_t share;	  /* of UR_QOS_ALL */
	uint64_t wait_ns; /* the longest */
	bool high;	  /* it is in the high table */
};

struct ur_qos_solution {
	struct ur_vl_attr vl;
	uint8_t lanes;	     /* targets, and the rest if there is one */
	uint16_t packets[2]; /* of a PMTU that a round of the low and of the high table has */
	struct ur_qos_got got[UR_VL_CNT]; /* [0, lanes): in the order of the targets */
	/* Where there is no solution, this is the nearest that was found. */
	int8_t failed; /* the target whose bound is missed; -1: none of them, but shares */
};

/* A sentence about what is wrong with the task, or NULL. */
const char *ur_qos_check(const struct ur_qos_task *t);

/*
 * Finds the tables with the fewest packets a round, and in as few entries as the bounds need. `t` has passed the check.
 * False: there is none; `s` has the nearest. MGR-QOS-01
 *
 *   UR_VL_IBA       the low table alone; both only where its 64 entries do not suffice
 *   UR_VL_MEASURED  one table or both, whichever has fewer packets, by the law; then the least limit
 *   UR_VL_STRICT    lanes with a bound are in the high table. Shares hold among those of one table
 */
bool ur_qos_solve(const struct ur_qos_task *t, struct ur_qos_solution *s);

/*
 * Runs `packets` packets of a PMTU through the arbiter, all lanes of `vl` that service levels use backlogged, and says
 * what each lane gets: bytes, and the most bytes of others between two of its packets.
 */
void ur_qos_run(const struct ur_vl_attr *vl, uint32_t packets, uint64_t bytes[UR_VL_CNT],
		uint64_t gap[UR_VL_CNT]);

#endif
