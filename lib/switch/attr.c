/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/attr.h"

#include <string.h>

#include "wire/credit.h"

#define MAX_FRAME_DEFAULT 1522
#define MAX_FRAME_MOST	  65535
#define BYTES_MOST	  (1u << 30)
#define FRAMES_MOST	  (1u << 20)

void ur_switch_port_attr_default(struct ur_switch_port_attr *a)
{
	*a = (struct ur_switch_port_attr){
		.trunk = true,
		.vid = UR_SWITCH_VID,
		.max_frame = MAX_FRAME_DEFAULT,
		.lane_bytes = 256 << 10,
		.ecn_min_bytes = UINT32_MAX,
		.ecn_max_bytes = UINT32_MAX,
		.flood_per_s = 100000,
		.mgmt_per_s = 50000,
	};
	ur_vl_attr_default(&a->vl);
	memset(a->vids, 0xff, sizeof(a->vids));
}

void ur_switch_attr_default(struct ur_switch_attr *a)
{
	*a = (struct ur_switch_attr){
		.limits = {.macs = 8192, .frames = 2048, .mgmt_frames = 128, .routes = 1024},
		.age_ns = UINT64_C(300000000000),
		.vl15_bytes = 64 << 10,
	};
	for (uint8_t sl = 0; sl < 16; sl++) {
		a->sl_dscp[sl] = (uint8_t)(sl < 8 ? 8 * sl : 8 * (sl - 8) + 2);
		a->sl_pcp[sl] = sl % 8;
	}
}

const char *ur_switch_attr_check(const struct ur_switch_attr *a)
{
	const struct ur_switch_limits *l = &a->limits;

	if (l->ports < 2 || l->ports > UR_SWITCH_PORTS_MAX)
		return "the number of ports is not in 1 to 63";
	if (l->macs < UR_SWITCH_PORTS_MAX || l->macs > UR_SWITCH_MACS_MAX)
		return "the number of addresses is not in 64 to 1048576";
	if (l->frames < UR_SWITCH_FRAMES_MIN || l->frames > FRAMES_MOST)
		return "the number of frames is not in 64 to 1048576";
	if (l->mgmt_frames < 1 || l->mgmt_frames > FRAMES_MOST)
		return "the number of management packets is not in 1 to 1048576";
	if (l->routes < 1 || l->routes > UR_SWITCH_ROUTES_MAX)
		return "the number of routes is not in 1 to 65536";
	if (!a->age_ns)
		return "the age is 0";
	for (unsigned sl = 0; sl < 16; sl++)
		if (a->sl_dscp[sl] > 63 || a->sl_pcp[sl] > 7)
			return "a service level has a DSCP above 63 or a priority above 7";
	return NULL;
}

static const char *check_vlans(const struct ur_switch_port_attr *a)
{
	if (a->vid < 1 || a->vid > UR_SWITCH_VIDS - 2)
		return "the VLAN is not in 1 to 4094";
	return NULL;
}

const char *ur_switch_port_attr_check(const struct ur_switch_port_attr *a)
{
	const char *wrong = ur_vl_attr_check(&a->vl);

	if (wrong)
		return wrong;
	if (a->rate_gbps != 0 && !(a->rate_gbps >= 0.001 && a->rate_gbps <= 1000))
		return "the rate is not 0 or in 0.001 to 1000 Gb/s";
	if (a->max_frame < 64 || a->max_frame > MAX_FRAME_MOST)
		return "the largest frame is not in 64 to 65535 bytes";
	if (a->lane_bytes < a->max_frame || a->lane_bytes > BYTES_MOST)
		return "a lane's queue does not hold one frame, or is longer than 1 GiB";
	if (a->ecn_max_bytes < a->ecn_min_bytes)
		return "the upper ECN threshold is below the lower one";
	if (a->credit_frames && a->credit_frames < UR_CREDIT_LANES * UR_CREDIT_MIN)
		return "credits need 240 buffers at least";
	if (a->credit_frames && (!a->credit_session || !a->credit_life_ns))
		return "credits have no session or no time";
	return check_vlans(a);
}
