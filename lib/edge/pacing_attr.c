/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/pacing_attr.h"

#define LINK_GBPS 100 /* if the port's speed is not configured */
#define ECT0	  2   /* RFC 3168 */

uint64_t ur_cc_link_of(const struct ur_config *cfg, double rate_gbps, unsigned workers)
{
	double gbps = cfg->pacing.link_gbps;
	uint64_t bps;

	if (gbps == 0)
		gbps = rate_gbps > 0 ? rate_gbps : LINK_GBPS;
	bps = (uint64_t)(gbps * 1e9 / workers);
	return bps > UR_CC_LINK_BPS_MIN ? bps : UR_CC_LINK_BPS_MIN;
}

struct ur_cc_attr ur_cc_attr_of(const struct ur_config *cfg, unsigned workers, uint64_t seed)
{
	return (struct ur_cc_attr){
		.mode = (enum ur_cc_mode)cfg->pacing.mode,
		.link_bps = ur_cc_link_of(cfg, cfg->port.rate_gbps, workers),
		.seed = seed,
		.round_trip = cfg->pacing.delay == UR_DELAY_ROUND_TRIP,
		.ewma = cfg->pacing.average == UR_AVERAGE_EWMA,
		.init0 = (uint8_t)cfg->pacing.init0,
		.init1 = (uint8_t)cfg->pacing.init1,
		.target_ns = cfg->pacing.target_us * 1000,
	};
}

uint8_t ur_cc_ecn_of(const struct ur_config *cfg)
{
	return ur_engine_wants_ecn((enum ur_cc_mode)cfg->pacing.mode) ? ECT0 : 0;
}
