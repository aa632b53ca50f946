/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_INSIDE_H
#define UR_SWITCH_INSIDE_H

#include "switch/admission.h"
#include "switch/macs.h"
#include "switch/queue.h"
#include "switch/routes.h"
#include "switch/switch.h"
#include "vl/vl.h"
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
	uint32_t data_from[UR_SWITCH_PORTS_MAX], mgmt_from[UR_SWITCH_PORTS_MAX];
	uint32_t vl15_from[UR_SWITCH_PORTS_MAX]; /* bytes of the same management packets */
	struct ur_switch_list lane[UR_SWITCH_LANES];
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
};

struct ur_switch {
	struct ur_switch_attr attr;
	uint64_t link, enabled; /* bit p: of port p */
	uint64_t up;		/* link & enabled: what takes part */
	uint16_t lid;		/* the switch's own; 0: none */
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
	bool mgmt;    /* on VL15 */
	bool flooded; /* to several ports, perhaps */
	uint8_t sl;   /* if !mgmt */
	uint16_t vid; /* if !mgmt */
};

/* Queues a reference on port `out`. False: dropped and counted. */
bool ur_switch_enqueue(struct ur_switch *sw, uint8_t out, const struct ur_switch_frame *frame,
		       const struct ur_switch_headers *h, const struct ur_switch_way *way,
		       uint64_t now_ns);

/* Moves a lane's queue to the ones to reap. */
void ur_switch_drop_lane(struct ur_switch *sw, uint8_t port, unsigned vl,
			 enum ur_switch_drop reason);

static inline bool ur_switch_is_member(const struct ur_switch_port_attr *a, uint16_t vid)
{
	if (!a->trunk)
		return a->vid == vid;
	return a->vids[vid / 64] >> vid % 64 & 1;
}

#endif
