/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_DESTINATIONS_H
#define UR_API_DESTINATIONS_H

#include "edge/counters.h"

/* Telemetry: "destinations", where packets go and how they are paced. */
int ur_destinations_emit(struct ur_emit *e, const char *params, void *ctx);

#endif
