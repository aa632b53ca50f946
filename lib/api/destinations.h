/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_DESTINATIONS_H
#define UR_API_DESTINATIONS_H

#include "dpdk/counters.h"

/* Telemetry "destinations": the destinations of packets and their pacing. */
int ur_destinations_emit(struct ur_emit *e, const char *params, void *ctx);

#endif
