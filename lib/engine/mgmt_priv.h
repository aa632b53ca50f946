/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_MGMT_PRIV_H
#define UR_ENGINE_MGMT_PRIV_H

#include "engine/engine_priv.h"
#include "engine/mgmt.h"

/* The agent in an engine: mgmt.c. */
struct engine_mgmt {
	struct ur_nma *nma;
	struct ur_engine *engine;
	struct ur_engine_mgmt_attr attr;
	struct ur_nma_ops ops;
	struct ur_engine_qos qos; /* as last set */
	struct ur_path hop_path;
	bool link_up;
	uint64_t link_downs;
	uint8_t mtu; /* code: 1 to 5 */
	struct ur_nma_out out[MGMT_BATCH];
};

/* Bytes for the agent, a multiple of 64; 0: none. */
size_t ur_mgmt_size(const struct ur_limits *l);
void ur_mgmt_init(struct ur_engine *e, void *memory, const struct ur_engine_attr *attr,
		  uint64_t now_ns);

/* A packet for QP0 or QP1 that is not the connection manager's. `path`: back to its source. */
enum ur_drop ur_mgmt_packet(struct ur_engine *e, const struct ur_packet *p,
			    const struct ur_path *path, uint64_t now_ns);

/* Whether it is a hop packet: the only ones to a group that are taken. */
bool ur_mgmt_is_hop(const struct ur_packet *p);

unsigned ur_mgmt_output(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns);
void ur_mgmt_expire(struct ur_engine *e, uint64_t now_ns);

#endif
