/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_ENGINE_PRIV_H
#define UR_ENGINE_ENGINE_PRIV_H

#include "engine/engine.h"
#include "engine/groups.h"
#include "engine/slots.h"
#include "transport/core.h"

/*
 * Shared by engine.c (input: packets, time, commands), output.c (what is sent, and in which order),
 * verbs.c and query.c. Other files do not include this.
 */
#define GSI_QPN	   1
#define GSI_QKEY   0x80010000u
#define GSI_PKEY   0xffff
#define CM_BATCH   8
#define MGMT_BATCH 4

enum node_kind {
	NODE_SQ,  /* a send queue */
	NODE_RSP, /* queued responses */
	NODE_ACK,
	NODE_SETTLE,
};

struct ur_engine {
	struct ur_core core;
	struct ur_slots slots;
	struct ur_groups groups;
	struct ur_qp *last_doorbell; /* the queue pair whose doorbell rang last */
	struct ur_cm *cm;
	uint64_t time_wait_ns;
	uint32_t window, ackreq_every;
	uint8_t mtu_shift;
	struct ur_cm_out cm_out[CM_BATCH];
	struct engine_mgmt *mgmt; /* mgmt_priv.h; NULL: no agent */
	bool mgmt_busy;		  /* it may have something to send */
	uint16_t closed_lanes,
		closed_acks; /* bit v: lane v has no credit, for packets and for ACKs */
	uint64_t mgmt_deadline_ns;
};

/* LOSS-SLAB-04. PSNs that mode extended takes in from ePSN on, fewer if a slab does not hold the context. */
uint32_t ur_engine_loss_window(const struct ur_engine_attr *a);

/* Completes requests of unreliable queue pairs whose payload has been sent since the last call. */
void ur_engine_complete_sent(struct ur_engine *e);

#endif
