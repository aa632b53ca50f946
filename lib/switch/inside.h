/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_INSIDE_H
#define UR_SWITCH_INSIDE_H

#include "switch/admission.h"
#include "switch/macs.h"
#include "switch/queue.h"
#include "switch/routes.h"
#include "switch/switch.h"
#include "vl/vl.h"
#include "wire/credit.h"
#include "wire/rate.h"

/* Internal to the sources of switch.h. */
struct ur_switch_out {
	struct ur_vl vl;
	struct ur_rate rate;
	uint16_t ready;	      /* bit v: data lane v has a frame and service */
	uint64_t waits_ns;    /* since when a frame waits for the rate; 0: none does */
	uint64_t ecn_slope;   /* chance of a mark for each byte above ecn_min_bytes, of 2^48 */
	uint32_t lane_frames; /* most references in a data lane's queue */
	/* References to frames of each receiving port, in queues and to be reaped; [0]: the agent's. */
	uint32_t data_from[UR_SWITCH_PORTS_MAX],
		mgmt_from[UR_SWITCH_PORTS_MAX];	 /* without credit */
	uint32_t vl15_from[UR_SWITCH_PORTS_MAX]; /* bytes of the same management packets */
	struct ur_switch_list lane[UR_SWITCH_LANES];
	/* Of each lane, with credit: what bounds the others does not count them. Includes what waits for a receive pool. */
	uint32_t credit_bytes[UR_VL_CNT], credit_cnt[UR_VL_CNT];
};

struct ur_switch_in {
	struct ur_switch_limit flood, mgmt;
	uint32_t held, held_mgmt; /* references of its frames in queues and to be reaped */
};

struct ur_switch_port {
	struct ur_switch_port_attr attr;
	struct ur_switch_in in;
	struct ur_switch_out out;
	struct ur_switch_counters counters;
	struct ur_credit
		credit; /* valid if attr.credit_frames, otherwise all zero: open, nothing held */
};

struct ur_switch {
	struct ur_switch_attr attr;
	uint64_t link, enabled; /* bit p: of port p */
	uint64_t up;		/* link & enabled: what takes part */
	uint64_t urgent;	/* has packets in VL15 */
	uint16_t lid;		/* the switch's own; 0: none */
	struct ur_switch_steer steer;
	uint64_t random;
	struct ur_switch_port *port; /* [0, attr.limits.ports) */
	struct ur_switch_ref *ref;   /* [0, ref_cnt) */
	uint32_t ref_cnt;
	struct ur_switch_list free, dead;
	uint8_t sl_of_dscp[64], sl_of_pcp[8];
	struct ur_switch_macs macs;
	struct ur_switch_routes routes;
	struct ur_switch_adm adm;
};

static inline void ur_switch_drop(struct ur_switch *sw, uint8_t port, unsigned vl,
				  enum ur_switch_drop reason)
{
	sw->port[port].counters.lane[vl].drops[reason]++;
}

/* Where a frame goes, and how. */
struct ur_switch_way {
	uint8_t in;
	bool mgmt;	/* on VL15 */
	bool flooded;	/* to several ports, perhaps */
	uint8_t sl;	/* if !mgmt */
	uint16_t vid;	/* if !mgmt */
	uint8_t credit; /* as ur_switch_ref.credit; 0 if flooded */
};

/* Queues a reference on port `out`. False: dropped and counted. */
bool ur_switch_enqueue(struct ur_switch *sw, uint8_t out, const struct ur_switch_frame *frame,
		       const struct ur_switch_headers *h, const struct ur_switch_way *way,
		       uint64_t now_ns);

/* Moves a lane's queue to the ones to reap. */
void ur_switch_drop_lane(struct ur_switch *sw, uint8_t port, unsigned vl,
			 enum ur_switch_drop reason);

/* ---- credit.c ---- */

/* The port has new attributes. */
void ur_switch_credit_set(struct ur_switch *sw, struct ur_switch_port *p);

/* A frame has arrived at a port with credits. Returns ur_switch_way.credit; ur_switch_credit_arrived() follows. */
uint8_t ur_switch_credit_take(struct ur_switch_port *p, const struct ur_switch_frame *frame,
			      uint8_t *lane);

/* A reference with credit is made, and handed out. */
static inline void ur_switch_credit_hold(struct ur_switch *sw, const struct ur_switch_ref *r)
{
	struct ur_switch_out *out = &sw->port[r->out_port].out;

	out->credit_bytes[r->vl] += r->frame.len;
	out->credit_cnt[r->vl]++;
	ur_credit_hold(&sw->port[r->in_port].credit, r->credit - 1u);
}

static inline void ur_switch_credit_free(struct ur_switch *sw, const struct ur_switch_ref *r)
{
	struct ur_switch_out *out = &sw->port[r->out_port].out;

	out->credit_bytes[r->vl] -= r->frame.len;
	out->credit_cnt[r->vl]--;
	ur_credit_free(&sw->port[r->in_port].credit, r->credit - 1u);
}

/* SWITCH-CREDIT-02: drops lanes that have had frames, and no credit, for too long. */
void ur_switch_credit_expire(struct ur_switch *sw, uint8_t port, uint64_t now_ns);

/* Data lanes that have a frame, service and credit. */
static inline unsigned ur_switch_ready(const struct ur_switch_port *p)
{
	return p->out.ready & ~(unsigned)p->credit.closed;
}

/* SWITCH-BOUND-01: whether a lane's queue has room for a data frame; `credit` as in ur_switch_ref. */
bool ur_switch_has_room(const struct ur_switch_port *p, unsigned vl, uint32_t bytes,
			uint8_t credit);

static inline bool ur_switch_is_member(const struct ur_switch_port_attr *a, uint16_t vid)
{
	if (!a->trunk)
		return a->vid == vid;
	return a->vids[vid / 64] >> vid % 64 & 1;
}

#endif
