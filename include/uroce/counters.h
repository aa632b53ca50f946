/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_COUNTERS_H
#define UROCE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#include "uroce/counter_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * liburoce: counters. Included by uroce/uroce.h, whose conventions hold here as well.
 *
 * Counters start at 0 when the endpoint is opened and only grow. They are read while workers count:
 * each value is right, but values of one call may be of slightly different moments.
 */

/* X(name, unit, help). Sums come first: the transport's list grows at its end, and so does the struct. */
#define UROCE_COUNTERS(X)                                                                          \
	UROCE_SUMMARY_COUNTERS(X)                                                                  \
	UROCE_TRANSPORT_COUNTERS(X)

/* The whole endpoint: sums over its workers. */
struct uroce_counters {
#define X(name, unit, help) uint64_t name;
	UROCE_COUNTERS(X)
#undef X
};

/*
 * Writes `bytes` bytes of the struct, so that a program that was compiled with an older, shorter
 * struct gets the counters that it has. Counters that the library does not have are set to 0. EINVAL:
 * `bytes` is not a multiple of 8.
 */
int uroce_query_counters_sized(struct ibv_context *ctx, struct uroce_counters *counters,
			       size_t bytes);

/* Returns the current values of all counters that the program was compiled with. */
static inline int uroce_query_counters(struct ibv_context *ctx, struct uroce_counters *counters)
{
	return uroce_query_counters_sized(ctx, counters, sizeof(*counters));
}

/*
 * Returns the text of a JSON object with every counter, and the state of ports, queue pairs, lanes and
 * destinations. The caller frees it with free(). NULL: out of memory.
 */
char *uroce_counters_json(struct ibv_context *ctx);

/* The type of a metric, in the sense of Prometheus. */
enum uroce_metric_type {
	UROCE_METRIC_COUNTER, /* only grows */
	UROCE_METRIC_GAUGE,   /* goes up and down */
};

/* A label of a metric; strings of the library, valid during the call. */
struct uroce_metric_label {
	const char *name;  /* such as "worker" */
	const char *value; /* such as "0" */
};

/*
 * One counter or gauge with its unit and help text, for programs that show metrics without a list of
 * their own. Later versions may add fields at the end; programs only read it.
 */
struct uroce_metric {
	const char
		*name; /* lower case letters, digits and '_'; some metrics differ in labels only */
	const char *unit;			 /* plural noun: "packets" */
	const char *help;			 /* half a sentence */
	enum uroce_metric_type type;		 /* counter or gauge */
	const struct uroce_metric_label *labels; /* [0, label_cnt); the first is the port */
	size_t label_cnt;			 /* how many labels */
	uint64_t value;				 /* in units */
};

/*
 * Calls visit(arg, metric) for each metric of the endpoint. Metrics of one name come one after the
 * other, always in the same order. The metric and its strings are valid during the call. If visit
 * returns a value other than 0, the walk ends and that value is returned. ENOMEM.
 *
 * Takes about a microsecond of each worker's time, between two rounds.
 */
int uroce_visit_metrics(struct ibv_context *ctx,
			int (*visit)(void *arg, const struct uroce_metric *metric), void *arg);

/*
 * Writes the metrics of `cnt` endpoints of this process to `out`, in the Prometheus text exposition
 * format, version 0.0.4 (content type "text/plain; version=0.0.4"). A counter NAME is
 * "uroce_NAME_total", a gauge is "uroce_NAME". Labels are port (DPDK's name of it), worker, lane,
 * reason and so on. EIO: `out` cannot be written; ENOMEM.
 */
int uroce_write_metrics(struct ibv_context *const *ctx, size_t cnt, FILE *out);

/* Live objects of the context, to find leaks. X(name, unit, help) */
#define UROCE_OBJECTS(X)                                                                           \
	X(pds, "objects", "protection domains")                                                    \
	X(mrs, "objects", "memory regions")                                                        \
	X(cqs, "objects", "completion queues")                                                     \
	X(srqs, "objects", "shared receive queues")                                                \
	X(qps, "objects", "queue pairs")                                                           \
	X(ahs, "objects", "address handles")                                                       \
	X(channels, "objects", "completion channels")                                              \
	X(cm_ids, "objects", "connection manager ids")                                             \
	X(cm_connections, "objects", "connections")                                                \
	X(qps_time_wait, "objects", "queue pair numbers that cannot be used again yet")            \
	X(mws, "objects", "memory windows")                                                        \
	X(tds, "objects", "thread domains")

/* Numbers of live objects, see uroce_query_objects(). */
struct uroce_objects {
#define X(name, unit, help) uint32_t name;
	UROCE_OBJECTS(X)
#undef X
};
/* Fills `objects` with the numbers of live objects of the context. Always 0. */
int uroce_query_objects(struct ibv_context *ctx, struct uroce_objects *objects);

#ifdef __cplusplus
}
#endif

#endif
