/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_STATS_H
#define UR_API_STATS_H

#include "dpdk/counters.h"

/*
 * Sections of the telemetry and of uroce_counters_json() other than plain counters. Each is a
 * ur_counters_fn; `ctx` is the struct ur_device.
 */

/* "qp,QPN" and "qps" (qp_stats.c): copies that the worker makes between two rounds. */
int ur_stats_emit_qp(struct ur_emit *e, const char *params, void *ctx);
int ur_stats_emit_qps(struct ur_emit *e, const char *params, void *ctx);

/* "capture" (capture.c). */
int ur_stats_emit_capture(struct ur_emit *e, const char *params, void *ctx);

#endif
