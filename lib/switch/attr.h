/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_ATTR_H
#define UR_SWITCH_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "vl/attr.h"

/* Configuration of a switch and of its ports. switch.h has the switch. */
#define UR_SWITCH_PORTS_MAX  64	     /* port 0, the agent's, included */
#define UR_SWITCH_LANES	     16	     /* 15 data lanes and VL15 */
#define UR_SWITCH_VL15	     15	     /* management */
#define UR_SWITCH_LIDS	     0xc000  /* unicast LIDs are 1 to 0xbfff (IBA 4.1.3) */
#define UR_SWITCH_NO_PORT    255     /* of a LID that is not in the forwarding table */
#define UR_SWITCH_VIDS	     4096    /* VLAN identifiers; 0 and 4095 are reserved */
#define UR_SWITCH_VID	     1	     /* the VLAN of untagged frames by default */
#define UR_SWITCH_FRAMES_MIN 64	     /* least of ur_switch_limits.frames */
#define UR_SWITCH_MACS_MAX   1048576 /* most of ur_switch_limits.macs */
#define UR_SWITCH_ROUTES_MAX 65536   /* most of ur_switch_limits.routes */

struct ur_switch_limits {
	uint16_t ports;	      /* [2, UR_SWITCH_PORTS_MAX], port 0 included */
	uint32_t macs;	      /* addresses that can be learned, rounded up to a power of two */
	uint32_t frames;      /* references to data frames of one port that queues may hold */
	uint32_t mgmt_frames; /* the same for management packets */
	uint32_t routes;      /* addresses with a LID */
};

struct ur_switch_attr {
	struct ur_switch_limits limits;
	uint64_t age_ns;     /* a learned address is forgotten after this time of silence */
	uint64_t seed;	     /* of hashes and of random marking; should differ between switches */
	uint32_t vl15_bytes; /* most that the queue of VL15 holds, of each port */
	bool hold;	     /* requests that their receive pool would refuse wait here */
	uint8_t sl_dscp[16]; /* DSCP of each SL, [0, 63], as at the endpoints */
	uint8_t sl_pcp[16];  /* 802.1Q priority of each SL, [0, 7] */
};

struct ur_switch_port_attr {
	struct ur_vl_attr vl;
	bool trunk;   /* member of the VLANs in `vids`; false: of `vid` alone, untagged */
	uint16_t vid; /* VLAN of untagged frames, [1, 4094] */
	uint64_t vids[UR_SWITCH_VIDS / 64]; /* trunk: bit v % 64 of word v / 64: VLAN v */
	double rate_gbps;	/* limit of what is sent, as [port] rate_gbps; 0: none */
	uint32_t max_frame;	/* bytes of the largest frame to send, without FCS */
	uint32_t lane_bytes;	/* most that the queue of a data lane holds */
	uint32_t ecn_min_bytes; /* a longer queue begins to mark; UINT32_MAX: never */
	uint32_t ecn_max_bytes; /* >= ecn_min_bytes; from here on every frame is marked */
	uint32_t ecn_chance;	/* of a mark just below ecn_max_bytes, of 2^32 */
	uint32_t flood_per_s;	/* frames of this port that are flooded in a second; 0: no limit */
	uint32_t mgmt_per_s;	/* management packets taken from this port; 0: no limit */
	/*
	 * Link credits (docs/design/credits.md): buffers for frames with credit, fewer than ur_switch_limits.frames; 0: the
	 * port gives and needs no credits.
	 */
	uint32_t credit_frames;
	uint32_t credit_session; /* random, not 0 */
	uint64_t credit_life_ns; /* without credit, after which a lane is drained */
};

/* A trunk of all VLANs, untagged frames in VLAN 1, one lane table as ur_vl_attr_default(), no rate,
 * no marks, 1522 bytes, 256 KiB a lane, 100 000 floods and 50 000 management packets a second. */
void ur_switch_port_attr_default(struct ur_switch_port_attr *a);

/* 8192 addresses for 300 s, 2048 frames and 128 management packets a port, 1024 routes; SLs as the
 * endpoints' defaults. `ports` is left to the caller. */
void ur_switch_attr_default(struct ur_switch_attr *a);

/* NULL if the attributes are valid, else a phrase that says what is wrong (a constant). */
const char *ur_switch_attr_check(const struct ur_switch_attr *a);
const char *ur_switch_port_attr_check(const struct ur_switch_port_attr *a);

static inline void ur_switch_vids_add(struct ur_switch_port_attr *a, uint16_t vid)
{
	a->vids[vid / 64] |= UINT64_C(1) << vid % 64;
}

#endif
