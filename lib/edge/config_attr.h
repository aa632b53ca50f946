/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CONFIG_ATTR_H
#define UR_EDGE_CONFIG_ATTR_H

#include "edge/config.h"
#include "edge/impair.h"
#include "edge/neigh.h"
#include "engine/engine.h"

/*
 * Convert a configuration that has passed ur_config_check() to the attributes of the parts. Pure
 * functions: any thread.
 */

/* [address], for a port with this MAC address. */
struct ur_neigh_attr ur_neigh_attr_of(const struct ur_config *cfg, const uint8_t mac[6]);

/*
 * Initializes a table from *attr, with the static entries of [address] neighbor. It announces its
 * addresses with the next output.
 */
void ur_neigh_open(struct ur_neigh *n, const struct ur_neigh_attr *attr,
		   const struct ur_config *cfg, uint64_t now_ns);

/* One direction of [impair], for one of `workers`. */
struct ur_impair_config ur_impair_config_of(const struct ur_config *cfg, bool tx, unsigned workers);

/* [admission]. */
struct ur_adm_attr ur_adm_attr_of(const struct ur_config *cfg);

/*
 * [transport] and the limits of the other sections, for each of `workers` engines. The caller adds
 * the rest: mem, sink, cm and its limits except max_ids, random, qos, pacing, admission, and
 * limits.worker.
 */
struct ur_engine_attr ur_engine_attr_of(const struct ur_config *cfg, uint16_t workers,
					uint8_t mtu_shift);

#endif
