/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "op.h"

#define PERF_DEFAULT_PORT 18515
#define PERF_SIZES_MAX	  64
#define PERF_SETS_MAX	  64
#define PERF_CONFIGS_MAX  32
#define PERF_PEERS_MAX	  32
#define PERF_LIST_MAX	  64

/* Queue pairs take the numbers in turn; there is one at least. */
struct perf_list {
	uint8_t v[PERF_LIST_MAX];
	unsigned cnt;
};

/* The command line, checked. Strings belong to argv. Zero means "not given" unless noted.
 */
struct perf_options {
	bool server;
	const char *config[PERF_CONFIGS_MAX]; /* an endpoint each; NULL: none is needed, with dev */
	unsigned configs_cnt;
	const char *dev;		    /* kernel interface that the endpoint shares, or NULL */
	const char *set[PERF_SETS_MAX + 1]; /* NULL at its end */
	unsigned port;
	bool once;	 /* server: leave after the first client */
	bool shared_srq; /* server: clients with --srq have one together */
	const char *pcap, *filter, *json;
	const char *metrics; /* as given */
	struct sockaddr_storage metrics_addr;

	const char *peer;
	struct perf_peer {
		char text[48];		      /* as given */
		struct sockaddr_storage addr; /* with the port in it */
	} peers[PERF_PEERS_MAX];
	unsigned peers_cnt;

	enum perf_op op;
	enum perf_mode mode;
	enum perf_type type;
	uint64_t sizes[PERF_SIZES_MAX];
	unsigned sizes_cnt;
	uint64_t qps, depth, iters, bytes, mtu, inline_bytes, sge, signal_every, seed;
	uint64_t timeout, retry, rnr_retry, min_rnr_timer, rd_atomic;
	uint64_t receives, service_us, think_us; /* of an SRQ that is overrun */
	uint64_t buffers;			 /* 0: each queue pair has its own */
	uint64_t transport; /* enum uroce_qp_mode + 1; 0: as both configurations say */
	struct perf_list sl, priority, weight;
	double duration_s, warmup_s, live_interval_s;
	bool bidir, verify, random_order, srq, events, live, ping;
};

enum perf_parse {
	PERF_PARSE_OK = 0,
	PERF_PARSE_HELP = 1,	    /* --help was given: print it, exit 0 */
	PERF_PARSE_USAGE = 2,	    /* err holds one sentence: print it, exit 2 */
	PERF_PARSE_HELP_CONFIG = 3, /* --help-config: print the keys of a configuration, exit 0 */
};

/* argv[0] is the program's name. `o` is complete only on PERF_PARSE_OK. */
enum perf_parse perf_options_parse(struct perf_options *o, int argc, char **argv, char *err,
				   size_t err_bytes);

void perf_options_help(FILE *out);

/* "64", "4K", "1M", "2G" (powers of 1024) to a number; false if it is none or exceeds max. */
bool perf_parse_size(const char *text, uint64_t max, uint64_t *value);

static inline uint8_t perf_list_at(const struct perf_list *list, uint64_t idx)
{
	return list->v[idx % list->cnt];
}

#endif
