/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "histogram.h"
#include "options.h"
#include "proto.h"
#include "session.h"

/* One run, as measured at both ends. */
struct perf_run {
	struct perf_params params;	      /* qps: without that of --ping */
	uint32_t mtu;			      /* in use, bytes */
	const char *qp_mode, *qp_mode_reason; /* in use, and why; NULL: not RC */
	struct perf_result client, server;
	struct perf_fairness fairness; /* of the client's queue pairs */
	struct perf_in_flight in_flight;
	struct uroce_pacing pacing;	     /* of the client's endpoint, at the end */
	enum uroce_admission_mode admission; /* of the client's endpoint */
	const char *port;		     /* of the client's endpoint: perf_endpoint.port */
	const struct perf_histogram *hist;
	const struct perf_histogram *ping_hist; /* NULL: without --ping */
	bool interrupted;
	const char *config, *peer; /* as given */

	/* The client's requests by service level; a level without queue pairs is not shown. */
	struct perf_sl {
		uint64_t qps, ops, bytes;
		uint8_t vl;
	} sl[16];

	/* --mode connect */
	uint64_t connects;
	struct perf_objects before, after; /* at the client */
	bool leaked;
};

struct perf_report; /* collects runs */

struct perf_report *perf_report_create(const struct perf_options *o);
/*
 * Prints the run as a line of the table, below a heading when it is the first. Several that ran
 * side by side, those of an endpoint next to one another, are summed up, and named below.
 */
void perf_report_add(struct perf_report *r, const struct perf_run *const *runs, unsigned cnt);
/* Writes the JSON, if requested; false if that fails. Frees `r`. */
bool perf_report_finish(struct perf_report *r);

/* The progress line on stderr, overwritten in place on a terminal; a soak prints it anywhere. */
struct perf_progress {
	const struct perf_options *o;
	bool terminal, wanted, dirty;
	uint64_t start_ns, next_ns, last_ns, last_ops, last_bytes;
};

void perf_progress_start(struct perf_progress *p, const struct perf_options *o, uint64_t now_ns);
/* `note` is appended; it may be NULL. */
void perf_progress_update(struct perf_progress *p, uint64_t now_ns, uint64_t ops, uint64_t bytes,
			  uint64_t errors, const char *note);
void perf_progress_end(struct perf_progress *p);

#endif
