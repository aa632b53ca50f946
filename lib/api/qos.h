/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_QOS_H
#define UR_API_QOS_H

#include "api/dscp_map.h"
#include "edge/config.h"
#include "dpdk/counters.h"
#include "engine/engine.h"

struct ur_device;

/* Settings that can change while traffic runs. */
struct ur_qos {
	struct ur_engine_qos engine;
	struct ur_dscp_map dscp_map;
	double rate_gbps; /* limit of the port, for all workers together; 0: no limit */
};

/* Converts [qos] and [port] of a configuration that has passed ur_config_check(). */
void ur_qos_of_config(const struct ur_config *cfg, uint8_t mtu_shift, struct ur_qos *qos);

/* Bit i: SL i has a lane with weight. */
uint16_t ur_qos_served_sls(const struct ur_engine_qos *qos);

/*
 * Gives all workers other VL tables, and leaves the other settings as they are. False: the device's lock is held, try
 * later. Thread class: the progress thread.
 */
bool ur_qos_try_vl(struct ur_device *dev, const struct ur_vl_attr *vl);

/* Telemetry: "lanes" and "qos". */
int ur_qos_emit_lanes(struct ur_emit *e, const char *params, void *ctx);
int ur_qos_emit(struct ur_emit *e, const char *params, void *ctx);

#endif
