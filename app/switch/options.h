/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_OPTIONS_H
#define SWITCH_OPTIONS_H

#include <stdio.h>

#include "spec.h"

/* The command line of uroce-switch. */
#define SWITCH_SPECS_MAX (UR_SWITCH_PORTS_MAX - 1)
#define SWITCH_SETS_MAX	 64

struct switch_options {
	const char *config; /* file, or NULL */
	const char *set[SWITCH_SETS_MAX + 1];
	unsigned set_cnt;
	struct switch_spec
		spec[SWITCH_SPECS_MAX]; /* of --port alone, until switch_options_ports() */
	unsigned spec_cnt;
	const char *json;  /* file, or NULL */
	const char *state; /* the same */
	double interval_s;
	bool poll;
};

enum switch_parse {
	SWITCH_PARSE_OK,
	SWITCH_PARSE_HELP,
	SWITCH_PARSE_HELP_CONFIG,
	SWITCH_PARSE_USAGE, /* with a sentence in err */
};

enum switch_parse switch_options_parse(struct switch_options *o, int argc, char **argv, char *err,
				       size_t cap);
void switch_options_help(FILE *out);

/* Puts the ports of the configuration before those of the command line. False: a sentence in err. */
bool switch_options_ports(struct switch_options *o, const char *ports, char *err, size_t cap);

#endif
