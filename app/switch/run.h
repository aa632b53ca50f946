/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_RUN_H
#define SWITCH_RUN_H

#include "node.h"

/* Begin and end of a program that is a switch. */

/* Set by SIGINT and SIGTERM. */
extern volatile sig_atomic_t node_stop;

/* Catches these, and crashes: an XDP program that outlives the process would discard all of the interface's traffic. */
void node_catch_signals(void);

/* Writes the last statistics, if it has run, and closes the switch. False: they cannot be written, as is printed. */
bool node_finish(struct node *n, const char *program, bool has_run);

/* Reads --config, then `defaults`, "SECTION.KEY?=VALUE" and NULL at the end, then --set. False: a sentence in `err`. */
bool node_read_config(const struct common_options *o, const char *const *defaults,
		      struct ur_config *cfg, char *err, size_t cap);

#endif
