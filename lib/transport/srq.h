/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SRQ_H
#define UR_TRANSPORT_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include "admission/pool.h"
#include "sched/sched.h"
#include "timer/wheel.h"
#include "transport/wq.h"

struct ur_core;

/*
 * A shared receive queue (IBA 10.2.9): a receive ring whose elements are taken, in order, by the
 * QPs of one worker. A taken element is copied to the QP, so its place is free at once.
 */
struct ur_srq {
	struct ur_wq rq;
	uint32_t pd;
	uint32_t limit;	 /* 0: no event; else one IBV_EVENT_SRQ_LIMIT_REACHED below this many */
	uint32_t qp_cnt; /* QPs attached */
	void *user;
	/* Admission (transport/admission.h); valid while qp_cnt, the worker's. */
	uint32_t pool; /* its name for peers, set by the owner before */
	struct ur_core *core;
	struct ur_adm_pool adm;
	struct ur_timer timer;
	struct ur_sched_node node; /* in ur_admission.busy */
	bool changed;		   /* since admission last served it */
	LIST_ENTRY(ur_srq) link;   /* in ur_admission.srqs */
};

void ur_srq_init(struct ur_srq *srq, void *ring, uint32_t entries, uint32_t max_sge, uint32_t pd,
		 void *user);

/*
 * Takes the oldest element into `dst` (room for max_sge SGEs). False when there is none. Sets
 * *limit_reached to whether the SRQ just fell below its limit (the limit is disarmed by that).
 * Thread class: the SRQ's worker.
 */
bool ur_srq_take(struct ur_srq *srq, struct ur_rwqe *dst, bool *limit_reached);

/*
 * SRQ-PREFETCH-01. The element that is prefetched when the oldest one is taken: UR_SRQ_AHEAD places after it, so that it
 * arrives before its turn. NULL if it is not posted: then the poster is about to write its lines. Thread class: as above.
 */
#define UR_SRQ_AHEAD 4
const struct ur_rwqe *ur_srq_ahead(const struct ur_srq *srq);

/*
 * Moves what is posted to a larger or smaller ring. Thread class: the SRQ's worker, while no poster
 * runs. -EINVAL when more is posted than fits. The old ring memory is the caller's again.
 */
int ur_srq_resize(struct ur_srq *srq, void *ring, uint32_t entries);

#endif
