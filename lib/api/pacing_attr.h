/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_PACING_ATTR_H
#define UR_API_PACING_ATTR_H

#include "edge/config.h"
#include "pacing/pacing.h"

/* What [pacing] asks of a worker's table, one of `workers`, keyed by a number nobody can guess. */
struct ur_pacing_attr ur_pacing_attr_of(const struct ur_config *cfg, unsigned workers,
					uint64_t seed);
/* Bits of the traffic class that every packet has for it: ECN-capable or nothing. */
uint8_t ur_pacing_ecn_of(const struct ur_config *cfg);

#endif
