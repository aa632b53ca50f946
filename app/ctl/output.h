/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_OUTPUT_H
#define CTL_OUTPUT_H

#include <jansson.h>

#include "session.h"

/* What the commands print. Each returns false if that failed, and a sentence was printed. */

/* The file of --json or --dot; '-' is standard output. */
FILE *ctl_output_open(const char *file);
bool ctl_output_close(FILE *out, const char *file);

/* Writes `root` to the file of --json, and drops the reference. */
bool ctl_json_write(const struct ctl_options *o, json_t *root);
/* True: there is text to print as well. */
bool ctl_prints_text(const struct ctl_options *o);
/* "0x..." */
json_t *ctl_json_hex(uint64_t number);

/* The commands. */
bool ctl_cmd_discover(struct ctl_session *s);
bool ctl_cmd_topology(struct ctl_session *s);
bool ctl_cmd_trace(struct ctl_session *s);
bool ctl_cmd_node(struct ctl_session *s);
bool ctl_cmd_port(struct ctl_session *s);
bool ctl_cmd_reg(struct ctl_session *s);
bool ctl_cmd_e2prom(struct ctl_session *s);
bool ctl_cmd_vl(struct ctl_session *s);
bool ctl_cmd_qos(struct ctl_session *s);
bool ctl_cmd_keys(struct ctl_session *s);
bool ctl_cmd_counters(struct ctl_session *s);
bool ctl_cmd_monitor(struct ctl_session *s);
bool ctl_cmd_top(struct ctl_session *s);
bool ctl_cmd_web(struct ctl_session *s);
bool ctl_cmd_bist(struct ctl_session *s);
bool ctl_cmd_faults(struct ctl_session *s);
bool ctl_cmd_manage(struct ctl_session *s);
bool ctl_cmd_routes(struct ctl_session *s);
/* For --load-routes. */
bool ctl_load_routes(struct ctl_session *s);

#endif
