/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_OPTIONS_H
#define SWITCH_OPTIONS_H

#include <stdio.h>

#include "common.h"
#include "spec.h"

/* The command line of uroce-switch: one switch, or several, each with a name. */
#define SWITCH_SPECS_MAX (UR_SWITCH_PORTS_MAX - 1)
#define SWITCHES_MAX	 64
#define SWITCH_NAME_MAX	 32 /* with the NUL */

struct switch_options {
	char name[SWITCH_NAME_MAX]; /* of --switch; "": there is only this one */
	struct common_options common;
	struct switch_spec
		spec[SWITCH_SPECS_MAX]; /* of --port alone, until switch_options_ports() */
	unsigned spec_cnt;
};

/* Fills in o[SWITCHES_MAX], and writes to *cnt how many switches there are. Anything but PARSE_OK leaves both undefined. */
enum parse switch_options_parse(struct switch_options *o, unsigned *cnt, int argc, char **argv,
				char *err, size_t cap);
void switch_options_help(FILE *out);

/* Puts the ports of the configuration before those of the command line. False: a sentence in err. */
bool switch_options_ports(struct switch_options *o, const char *ports, char *err, size_t cap);

#endif
