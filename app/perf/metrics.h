/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_METRICS_H
#define PERF_METRICS_H

#include "endpoint.h"

/*
 * --metrics: an HTTP server that answers GET /metrics with the counters of all open endpoints, for
 * Prometheus. Any other path is 404, any other method 405; 503 before the endpoints are open.
 *
 * It has a thread of its own. Clients are not trusted: there are at most PERF_METRICS_CLIENTS at a
 * time, each has PERF_METRICS_CLIENT_BYTES for its request and PERF_METRICS_CLIENT_S seconds for
 * everything, and the page is made at most ten times a second, however often it is asked for.
 *
 * Thread class: the functions below, the main thread.
 */

#define PERF_METRICS_CLIENTS	  32
#define PERF_METRICS_CLIENT_BYTES 8192
#define PERF_METRICS_CLIENT_S	  5

struct perf_metrics;

/*
 * Listens on o->metrics_addr. Call it before the first endpoint is opened: the thread then may run on
 * every CPU that the process may, not on those of the endpoints alone. NULL after one sentence on
 * stderr.
 */
struct perf_metrics *perf_metrics_start(const struct perf_options *o);

/* Shows [0, cnt) of `eps` from now on. When it returns no other endpoint is read. Ignores NULL. */
void perf_metrics_show(struct perf_metrics *m, const struct perf_endpoint *eps, unsigned cnt);

/* Closes all connections and ends the thread. Ignores NULL. */
void perf_metrics_stop(struct perf_metrics *m);

#endif
