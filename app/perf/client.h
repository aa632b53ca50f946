/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_CLIENT_H
#define PERF_CLIENT_H

#include "control.h"
#include "link.h"
#include "live.h"
#include "report.h"
#include "traffic.h"

#define PERF_EXIT_OK	      0
#define PERF_EXIT_ERROR	      1
#define PERF_EXIT_USAGE	      2
#define PERF_EXIT_INTERRUPTED 130

/*
 * The client's whole state, towards one peer. Of several endpoints and peers each pair has one, and
 * they run side by side: [0, all_cnt) of `all`, peers of one endpoint next to one another. One
 * thread.
 */
struct perf_client {
	const struct perf_options *o;
	struct perf_endpoint *ep;
	const struct perf_peer *peer;
	struct perf_client *all;
	unsigned all_cnt;
	uint32_t number; /* in `all` */
	struct perf_run run;
	struct perf_control control;
	uint64_t session_id;
	uint32_t seq;
	struct perf_session session; /* of the current run */
	bool session_open;
	enum perf_link *links; /* of the session's queue pairs */
	uint64_t *asked_ns;    /* when each began to connect */
	uint32_t in_transit;   /* of them CONNECTING or CLOSING */
	uint32_t refused;      /* connect mode: rejected, as the server had no free queue pair */
	struct perf_histogram hist, ping_hist;
	struct perf_report *report;
	struct perf_progress progress;
	struct perf_live live;
	uint32_t churns; /* soak */
};

/* The whole program's client side, on an endpoint of each file; returns the exit status. */
int perf_client_main(struct perf_endpoint *eps, const struct perf_options *o);

/* Behind the last of them all. */
static inline struct perf_client *perf_client_end(const struct perf_client *c)
{
	return c->all + c->all_cnt;
}

/* False if the run must end: an error, or a server is gone. */
bool perf_client_alive(const struct perf_client *c);

/* One step of all clients: sends and completes what it can. Returns how much that was. */
unsigned perf_client_step(struct perf_client *c);

/* Exchanges with the server how much was sent on queue pairs [from, from + cnt). */
bool perf_client_ends(struct perf_client *c, uint32_t from, uint32_t cnt);

/* soak.c: closes and opens queue pairs while the traffic runs. */
enum perf_soak_state {
	PERF_SOAK_IDLE,
	PERF_SOAK_DRAINING,
	PERF_SOAK_CLOSING,
	PERF_SOAK_OPENING,
};

struct perf_soak {
	enum perf_soak_state state;
	uint32_t idx;
	uint64_t since_ns, random;
};

void perf_soak_step(struct perf_client *c, struct perf_soak *soak);

/* connect.c: --mode connect, after START. Returns the number of connections made. */
uint64_t perf_connect_run(struct perf_client *c);
/* Waits until time-wait is over, at most a few seconds. */
void perf_connect_settle(struct perf_client *c, const struct perf_objects *before);

#endif
