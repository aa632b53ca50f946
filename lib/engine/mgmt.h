/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_MGMT_H
#define UR_ENGINE_MGMT_H

#include "engine/engine.h"
#include "mgmt/nma.h"
#include "mgmt/registers.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The management agent of an endpoint (mgmt/nma.h): worker 0 has it if limits.mgmt.ports is 1. What arrives for QP0, and
 * for QP1 unless it is the connection manager's, goes to it. It answers by itself; the functions here are
 * for what the engine cannot know.
 *
 * Thread class: the worker, as for the engine.
 */

/* What the owner of the port adds, a constant table. Each may be NULL. */
struct ur_engine_mgmt_ops {
	/* Adds what was counted outside of this engine: other workers, packets that did not reach an engine. */
	void (*add_counters)(void *ctx, struct ur_nma_counters *counters);
	void (*get_gauges)(void *ctx, struct ur_nma_gauges *gauges);
	uint8_t (*eeprom_load)(void *ctx, uint16_t address);
	void (*eeprom_store)(void *ctx, uint16_t address, uint8_t value);
	/*
	 * New VL tables, for all workers: the owner sets them by ur_engine_set_qos(), later. NULL: an engine that is
	 * alone sets them itself; the tables of several cannot be set.
	 */
	void (*set_vl)(void *ctx, const struct ur_vl_attr *vl);
	/* Needed with set_vl. Tables that the engines do not have yet; false: there are none. */
	bool (*pending_vl)(void *ctx, struct ur_vl_attr *vl);
	/* The port got another LID, 0 for none: packets for ur_mad_lid_path()'s address are to be let through. */
	void (*set_lid)(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc);
	/* A MAD for the client of ur_engine_mgmt_input(). Without this there is no client. */
	void (*to_client)(void *ctx, const struct ur_nma_out *out);
};

struct ur_engine_mgmt_attr {
	struct ur_nma_config config;
	uint64_t node_guid;
	uint8_t mac[6]; /* of the port */
	char description[UR_SMP_DATA_BYTES + 1];
	uint64_t link_bps;		      /* 0: unknown */
	uint64_t seed;			      /* random */
	const struct ur_engine_mgmt_ops *ops; /* NULL: none of them */
	void *ctx;
};

/* Limits of an endpoint's agent. */
void ur_engine_mgmt_limits_default(struct ur_nma_limits *limits);

/* NULL: the engine has no agent. The other functions do nothing then. */
const struct ur_nma_stats *ur_engine_mgmt_stats(const struct ur_engine *e);

/* The link went up or down, or changed its speed; at the start it is up. */
void ur_engine_mgmt_link(struct ur_engine *e, bool up, uint64_t bps, uint64_t now_ns);

/* Whether there is a client, here and below a manager on this node, and whether it is a subnet manager. */
void ur_engine_mgmt_client(struct ur_engine *e, bool present, bool is_sm);
/* A MAD of the client; as ur_nma_input() with from->way UR_MAD_LOCAL. UR_DROP_QPN: there is no agent. */
enum ur_drop ur_engine_mgmt_input(struct ur_engine *e, const uint8_t mad[UR_MAD_BYTES],
				  const struct ur_nma_from *from, uint64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif
