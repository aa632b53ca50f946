/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_COMMON_H
#define SWITCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>

/* What the command lines of uroce-switch and uroced have in common. */
#define COMMON_SETS_MAX 64

struct common_options {
	const char *config, *json, *state; /* files, or NULL */
	const char *set[COMMON_SETS_MAX];
	unsigned set_cnt;
	double interval_s; /* of statistics */
	bool poll;
	bool realtime; /* the thread that forwards may have a real-time priority (rest.h) */
};

/* What a command line is. */
enum parse {
	PARSE_OK,
	PARSE_HELP,
	PARSE_HELP_CONFIG,
	PARSE_USAGE, /* with a sentence in err */
};

enum {
	COMMON_CONFIG = 512,
	COMMON_SET,
	COMMON_STATE,
	COMMON_JSON,
	COMMON_INTERVAL,
	COMMON_POLL,
	COMMON_HELP_CONFIG
};

/* For a table of struct option, with its end. */
#define COMMON_LONGS                                                                               \
	{"config", required_argument, NULL, COMMON_CONFIG},                                        \
		{"set", required_argument, NULL, COMMON_SET},                                      \
		{"state", required_argument, NULL, COMMON_STATE},                                  \
		{"json", required_argument, NULL, COMMON_JSON},                                    \
		{"interval", required_argument, NULL, COMMON_INTERVAL},                            \
		{"poll", no_argument, NULL, COMMON_POLL},                                          \
		{"help-config", no_argument, NULL, COMMON_HELP_CONFIG},                            \
		{"help", no_argument, NULL, 'h'},                                                  \
	{                                                                                          \
		NULL, 0, NULL, 0                                                                   \
	}

/* The last lines of the help. */
#define COMMON_HELP                                                                                \
	"  --interval S           seconds between them (1)\n"                                      \
	"  --poll                 never sleeps; without it the idle program yields its CPU\n"      \
	"  --help-config          prints every section and key\n"                                  \
	"  -h, --help             this text\n"

void common_options_init(struct common_options *o);
/*
 * An option and its argument from getopt_long(). True: it was one of these, and *result says whether it is valid, with a sentence in
 * `err` if not.
 */
bool common_options_take(struct common_options *o, int opt, const char *arg, enum parse *result,
			 char *err, size_t cap);

/* A number within limits. False: it is none. */
bool common_real(const char *text, double lo, double hi, double *out);

#endif
