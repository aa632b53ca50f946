/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_OPTIONS_PRIV_H
#define PERF_OPTIONS_PRIV_H

#include <stdarg.h>

#include "options.h"

/* What reading the command line and checking it share. */

/* X(option, field, min, max, default): whole numbers. */
#define PERF_OPT_NUMBERS(X)                                                                        \
	X("port", port, 1, 65535, PERF_DEFAULT_PORT)                                               \
	X("qps", qps, 1, 65536, 1)                                                                 \
	X("depth", depth, 1, 8192, 64)                                                             \
	X("iters", iters, 1, UINT64_MAX, 0)                                                        \
	X("inline", inline_bytes, 0, 1024, 0)                                                      \
	X("sge", sge, 1, 16, 1)                                                                    \
	X("signal-every", signal_every, 1, 4096, 0)                                                \
	X("seed", seed, 0, UINT64_MAX, 1)                                                          \
	X("timeout", timeout, 1, 31, 14)                                                           \
	X("retry", retry, 0, 7, 7)                                                                 \
	X("rnr-retry", rnr_retry, 0, 7, 7)                                                         \
	X("min-rnr-timer", min_rnr_timer, 0, 31, 1)                                                \
	X("rd-atomic", rd_atomic, 1, 128, 16)                                                      \
	X("receives", receives, 1, 1024, 0)                                                        \
	X("service-us", service_us, 1, 1000000, 0)                                                 \
	X("think-us", think_us, 1, 10000000, 0)                                                    \
	X("buffers", buffers, 1, 65536, 0)

/* X(option, field, max, default): seconds. */
#define PERF_OPT_SECONDS(X)                                                                        \
	X("duration", duration_s, 1e7, 0)                                                          \
	X("warmup", warmup_s, 3600, 0)                                                             \
	X("live-interval", live_interval_s, 3600, 1)

/* X(option, field, min, max, default): lists of numbers. */
#define PERF_OPT_LISTS(X)                                                                          \
	X("sl", sl, 0, 15, 0)                                                                      \
	X("priority", priority, 0, 7, 0)                                                           \
	X("weight", weight, 1, 255, 1)

/* X(option, field) */
#define PERF_OPT_FLAGS(X)                                                                          \
	X("once", once)                                                                            \
	X("shared-srq", shared_srq)                                                                \
	X("bidir", bidir)                                                                          \
	X("verify", verify)                                                                        \
	X("random-order", random_order)                                                            \
	X("srq", srq)                                                                              \
	X("events", events)                                                                        \
	X("ping", ping)                                                                            \
	X("live", live)

#define PERF_OPT_STRINGS(X)                                                                        \
	X("pcap", pcap)                                                                            \
	X("filter", filter)                                                                        \
	X("json", json)                                                                            \
	X("dev", dev)                                                                              \
	X("metrics", metrics)                                                                      \
	X("peer", peer)

enum perf_opt {
	OPT_HELP = 256,
	OPT_HELP_CONFIG,
	OPT_SET,
	OPT_CONFIG,
	OPT_PACING,
	OPT_OP,
	OPT_MODE,
	OPT_TYPE,
	OPT_TRANSPORT_MODE,
	OPT_SIZE,
	OPT_SIZES,
	OPT_BYTES,
	OPT_MTU,
#define X(text, field, ...) OPT_##field,
	PERF_OPT_NUMBERS(X) PERF_OPT_SECONDS(X) PERF_OPT_LISTS(X) PERF_OPT_FLAGS(X)
		PERF_OPT_STRINGS(X)
#undef X
			OPT_END
};

/* A command line that is being read. */
struct perf_parser {
	struct perf_options *o;
	char *err;
	size_t err_bytes;
	bool given[OPT_END];
};

/* Writes the sentence to err. */
__attribute__((format(printf, 2, 3))) static inline enum perf_parse fail(struct perf_parser *p,
									 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->err_bytes, fmt, ap);
	va_end(ap);
	return PERF_PARSE_USAGE;
}

/* Without the two dashes. */
const char *perf_option_name(enum perf_opt opt);

/*
 * options_check.c: checks that the options given fit each other and this side, and derives the
 * others from them.
 */
enum perf_parse perf_options_check(struct perf_parser *p);

#endif
