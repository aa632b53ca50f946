/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_QOS_H
#define UR_API_QOS_H

#include "edge/config.h"
#include "edge/counters.h"
#include "engine/engine.h"

struct ur_device;

/* What [qos] says, checked by ur_config_check(). */
void ur_qos_of_config(const struct ur_config *cfg, uint8_t mtu_shift, struct ur_engine_qos *qos);

/* Bit i: SL i has a lane with weight. */
uint16_t ur_qos_served_sls(const struct ur_engine_qos *qos);

/* The traffic class of a service level: its DSCP, or [qos] traffic_class where that is 0. */
uint8_t ur_qos_tos(const struct ur_config *cfg, uint8_t sl);
/* The 802.1Q tag's priority bits of a service level. */
uint16_t ur_qos_tci(const struct ur_config *cfg, uint8_t sl);
/* The lowest service level that sends with such a DSCP; 0 when none does. */
uint8_t ur_qos_sl_of_tos(const struct ur_config *cfg, uint8_t tos);

/* Telemetry: "lanes" and "qos". */
int ur_qos_emit_lanes(struct ur_emit *e, const char *params, void *ctx);
int ur_qos_emit(struct ur_emit *e, const char *params, void *ctx);

#endif
