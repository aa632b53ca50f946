/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_OPTIONS_H
#define CTL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The command line of uroce-ctl. */

#define CTL_WORDS_MAX  16
#define CTL_EVENTS_MAX 64

/* X(name, what follows it, least and most words that follow, meaning) */
#define CTL_COMMANDS(X)                                                                            \
	X(discover, "", 0, 0, "find all nodes and links; print how many, and what is wrong")       \
	X(topology, "", 0, 0, "print the nodes and what each port is linked to")                   \
	X(trace, "[FROM] TO", 1, 2, "print a path, hop by hop, with the state of each port")       \
	X(node, "NODE", 1, 1, "print what a node says of itself")                                  \
	X(port, "NODE PORT", 2, 2, "print what a node says of a port")                             \
	X(reg, "list|read|write ...", 1, 16, "registers of a node; see below")                     \
	X(counters, "NODE [PORT]", 1, 2, "print the counters of a node's ports")                   \
	X(monitor, "MODE [NODE]", 1, 2, "watch the counters of all ports; see below")              \
	X(bist, "NODE PORT", 2, 2, "test a link, beside its traffic")                              \
	X(routes, "compute|load [MODE]", 1, 2,                                                     \
	  "compute forwarding tables, and load them; see below")                                   \
	X(faults, "", 0, 0, "have faults reported to this program, and print them")

enum ctl_command {
#define X(name, words, least, most, meaning) CTL_##name,
	CTL_COMMANDS(X)
#undef X
		CTL_COMMAND_CNT
};

struct ctl_options {
	enum ctl_command command;
	const char *words[CTL_WORDS_MAX];
	unsigned words_cnt;
	const char *fabric_model, *socket, *dev; /* one of them */
	const char *load_routes;		 /* a mode of routes, or NULL */
	const char *json, *dot;			 /* files, '-' is standard output; or NULL */
	uint64_t window, per_node, retries, timeout_ms, nodes;
	uint64_t m_key, tiers, count;
	double interval_s, duration_s;
	const char *events[CTL_EVENTS_MAX]; /* of --model-event */
	unsigned events_cnt;
};

enum ctl_parse {
	CTL_PARSE_OK,
	CTL_PARSE_HELP,	 /* print it, exit 0 */
	CTL_PARSE_USAGE, /* err holds a sentence: print it, exit 2 */
};

enum ctl_exit { CTL_EXIT_OK = 0, CTL_EXIT_ERROR = 1, CTL_EXIT_USAGE = 2 };

/* argv[0] is the program's name. `o` is complete only on CTL_PARSE_OK. */
enum ctl_parse ctl_options_parse(struct ctl_options *o, int argc, char **argv, char *err,
				 size_t err_bytes);
void ctl_options_help(FILE *out);
const char *ctl_command_name(enum ctl_command command);

/* True: it is answered without joining a fabric. */
bool ctl_needs_no_fabric(const struct ctl_options *o);

/* A whole number in decimal, or in hexadecimal after 0x. False: it is none, or above `max`. */
bool ctl_parse_number(const char *text, uint64_t max, uint64_t *value);

#endif
