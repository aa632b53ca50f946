/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_ADMISSION_STATS_H
#define UR_API_ADMISSION_STATS_H

#include "dpdk/counters.h"

/* Telemetry: our SRQs as pools, and the status known of peers' pools. `ctx` is the device. */
int ur_admission_emit(struct ur_emit *e, const char *params, void *ctx);

#endif
