/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_OPTIONS_H
#define SWITCH_OPTIONS_H

#include <stdio.h>

#include "common.h"
#include "spec.h"

/* The command line of uroce-switch. */
#define SWITCH_SPECS_MAX (UR_SWITCH_PORTS_MAX - 1)

struct switch_options {
	struct common_options common;
	struct switch_spec
		spec[SWITCH_SPECS_MAX]; /* of --port alone, until switch_options_ports() */
	unsigned spec_cnt;
};

enum parse switch_options_parse(struct switch_options *o, int argc, char **argv, char *err,
				size_t cap);
void switch_options_help(FILE *out);

/* Puts the ports of the configuration before those of the command line. False: a sentence in err. */
bool switch_options_ports(struct switch_options *o, const char *ports, char *err, size_t cap);

#endif
