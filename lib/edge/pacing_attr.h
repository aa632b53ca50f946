/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_PACING_ATTR_H
#define UR_EDGE_PACING_ATTR_H

#include "edge/config.h"
#include "engine/engine.h"

/*
 * The share of the link of one of `workers`: of [pacing] link_gbps or, if that is 0, of the port's rate,
 * which may have changed since the configuration was read.
 */
uint64_t ur_cc_link_of(const struct ur_config *cfg, double rate_gbps, unsigned workers);
/* [pacing] for the table of one of `workers`; `seed`: random, it keys the table. */
struct ur_cc_attr ur_cc_attr_of(const struct ur_config *cfg, unsigned workers, uint64_t seed);
/* The ECN bits that congestion control needs in every packet: ECN-capable, or 0. */
uint8_t ur_cc_ecn_of(const struct ur_config *cfg);

#endif
