/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_CORE_H
#define UR_TRANSPORT_CORE_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "mem/slabs.h"
#include "mem/table.h"
#include "sched/emux.h"
#include "cc/cc.h"
#include "timer/wheel.h"
#include "transport/admission_state.h"
#include "transport/counters.h"
#include "transport/cq.h"
#include "transport/loss/ooo.h"
#include "transport/loss/read_gap.h"
#include "transport/path_pool.h"
#include "transport/rc/reorder.h"
#include "transport/loss/selective.h"
#include "transport/sink.h"
#include "transport/rc/spray.h"

/*
 * The state that the transports of one worker share. Thread class: that worker.
 */

/* What a lane has sent, ACKs and NAKs included. */
struct ur_lane_counters {
	uint64_t packets, bytes; /* of frames, Ethernet header to ICRC */
};

struct ur_core {
	struct ur_mem *mem; /* shared with the endpoint's other workers */
	struct ur_wheel wheel;
	struct ur_vl vl;     /* which lane sends next, */
	struct ur_emux emux; /* and which queue in it */
	struct ur_cc cc;
	struct ur_flight *flights; /* of each queue pair, transport/dest.h */
	const struct ur_qp *qps;   /* if dests: the first queue pair */
	struct ur_dest *dests;	   /* transport/dest.h */
	struct ur_path_pool paths; /* of connected queue pairs */
	struct ur_sched settle; /* unreliable QPs with packets that have left, not completed yet */
	struct ur_slabs loss;	/* memory of the contexts of these two */
	struct ur_ooo_pool ooo;
	struct ur_rtx_pool rtx;
	struct ur_spray_pool spray;
	struct ur_reorder_pool reorder;
	struct ur_read_gap_pool read_gaps;
	struct ur_admission adm;
	struct ur_sched cnps; /* QPs that owe a CNP */
	struct ur_sched acks; /* QPs that owe an ACK or NAK: served before everything else */
	struct ur_counters cnt;
	struct ur_lane_counters lane[UR_VL_CNT];
	struct ur_sink sink;
	uint16_t worker;
	bool no_prediction; /* the engine's, */
	bool keeps_ports;   /* this, */
	bool no_plb;	    /* and this */
};

/* Where to build a completion: in its CQ, or in `other`. Then ur_core_complete_placed(). */
static inline struct ibv_wc *ur_core_place(const struct ur_core *core, const struct ur_cq *cq,
					   struct ibv_wc *other)
{
	return __builtin_expect(cq->worker == core->worker, 1) ? ur_cq_place(cq, other) : other;
}

/* Pushes a completion to its CQ, on this worker or another, and raises the events that follow. */
void ur_core_complete(struct ur_core *core, struct ur_cq *cq, const struct ibv_wc *wc,
		      bool solicited);

/* The same for one built where ur_core_place() said, which is not `other` if it lies in the CQ. */
static inline void ur_core_complete_placed(struct ur_core *core, struct ur_cq *cq,
					   const struct ibv_wc *wc, const struct ibv_wc *other,
					   bool solicited)
{
	if (wc == other || !ur_cq_push_placed(cq))
		ur_core_complete(core, cq, wc, solicited);
}

#endif
