/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CONFIG_ATTR_H
#define UR_EDGE_CONFIG_ATTR_H

#include "edge/config.h"
#include "edge/impair.h"
#include "edge/neigh.h"
#include "engine/engine.h"
#include "wire/credit.h"

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

/*
 * The lanes of what an endpoint sends with these tables, for link credits. `sl_dscp`: 0: that of `traffic_class`, as in
 * [qos].
 */
void ur_credit_map_of(const struct ur_vl_attr *vl, const uint8_t sl_dscp[16],
		      const uint8_t sl_pcp[16], uint8_t traffic_class, struct ur_credit_map *map);

/* [port] credits, for a receive ring of so many slots. `map` is left to the caller. */
struct ur_credit_attr ur_credit_attr_of(const struct ur_config *cfg, uint32_t slots,
					uint32_t session);

/* [admission]. */
struct ur_adm_attr ur_adm_attr_of(const struct ur_config *cfg);

/* [transport] window, as the engine takes it: a power of two. */
uint32_t ur_config_window(const struct ur_config *cfg);

/*
 * [transport] and the limits of the other sections, for each of `workers` engines. The caller adds
 * the rest: mem, sink, cm and its limits except max_ids, random, qos, pacing, admission, and
 * limits.worker.
 */
struct ur_engine_attr ur_engine_attr_of(const struct ur_config *cfg, uint16_t workers,
					uint8_t mtu_shift);

#endif
