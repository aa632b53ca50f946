/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_OPTIONS_H
#define CTL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The command line of uroce-ctl. */

#define CTL_WORDS_MAX  64
#define CTL_EVENTS_MAX 64

/* X(name, what follows it, least and most words that follow, meaning) */
#define CTL_COMMANDS(X)                                                                            \
	X(discover, "", 0, 0, "find all nodes and links; print how many, and what is wrong")       \
	X(topology, "", 0, 0, "print the nodes and what each port is linked to")                   \
	X(trace, "[FROM] TO", 1, 2, "print a path, hop by hop, with the state of each port")       \
	X(node, "NODE", 1, 1, "print what a node says of itself")                                  \
	X(port, "NODE PORT", 2, 2, "print what a node says of a port")                             \
	X(reg, "list|read|write ...", 1, CTL_WORDS_MAX, "registers of a node; see below")          \
	X(e2prom, "read|write|save|...", 2, CTL_WORDS_MAX, "the E2PROM of a node; see below")      \
	X(vl, "show|set ...", 2, 7, "virtual lanes of a port; see below")                          \
	X(qos, "solve|apply ...", 2, CTL_WORDS_MAX,                                                \
	  "arbitration tables from target shares and waits; see below")                            \
	X(keys, "show|set|clear ...", 1, 3, "M_Keys of nodes; see below")                          \
	X(counters, "NODE [PORT]", 1, 2, "print the counters of a node's ports")                   \
	X(monitor, "MODE [NODE]", 1, 2, "watch the counters of all ports; see below")              \
	X(top, "", 0, 0, "a live table of all ports: load, discards, errors; see below")           \
	X(bist, "NODE PORT", 2, 2, "test a link, beside its traffic")                              \
	X(routes, "compute|load|source", 1, 2,                                                     \
	  "compute forwarding tables, and load them; see below")                                   \
	X(manage, "run|list|handover|...", 1, 3, "managers of zones; see below")                   \
	X(web, "", 0, 0, "a page with a picture of the fabric; see below")                         \
	X(faults, "[list|ack ID|tail]", 0, 2,                                                      \
	  "have faults reported here, and print them; or read a log of them; see below")

/* Commands whose first word is of a list. X(command, first word, what follows it, least and most words that follow) */
#define CTL_FORMS(X)                                                                               \
	X(reg, list, "", 0, 0)                                                                     \
	X(reg, read, "NODE REGISTER...", 2, CTL_WORDS_MAX)                                         \
	X(reg, write, "NODE REGISTER VALUE", 3, 3)                                                 \
	X(e2prom, read, "NODE ADDRESS [N]", 2, 3)                                                  \
	X(e2prom, write, "NODE ADDRESS BYTE...", 3, CTL_WORDS_MAX)                                 \
	X(e2prom, save, "NODE FILE", 2, 2)                                                         \
	X(e2prom, load, "NODE FILE", 2, 2)                                                         \
	X(e2prom, defaults, "NODE [REGISTER VALUE... | none]", 1, CTL_WORDS_MAX)                   \
	X(vl, show, "NODE [PORT]", 1, 2)                                                           \
	X(vl, set, "NODE PORT NAME=VALUE...", 3, 6)                                                \
	X(qos, solve, "SL=PERCENT[,MICROSECONDS]...", 1, CTL_WORDS_MAX)                            \
	X(qos, apply, "NODE PORT FILE", 3, 3)                                                      \
	X(keys, show, "[NODE]", 0, 1)                                                              \
	X(keys, set, "NODE|all KEY", 2, 2)                                                         \
	X(keys, clear, "NODE|all", 1, 1)                                                           \
	X(monitor, single, "[NODE]", 0, 1)                                                         \
	X(monitor, loop, "[NODE]", 0, 1)                                                           \
	X(monitor, compare, "[NODE]", 0, 1)                                                        \
	X(routes, compute, "[MODE]", 0, 1)                                                         \
	X(routes, load, "[MODE]", 0, 1)                                                            \
	X(routes, source, "", 0, 0)                                                                \
	X(manage, run, "ZONE", 1, 1)                                                               \
	X(manage, list, "", 0, 0)                                                                  \
	X(manage, handover, "ZONE [GUID]", 1, 2)                                                   \
	X(manage, disable, "ZONE GUID", 2, 2)                                                      \
	X(manage, enable, "ZONE GUID", 2, 2)                                                       \
	X(faults, list, "", 0, 0)                                                                  \
	X(faults, ack, "ID|all", 1, 1)                                                             \
	X(faults, tail, "", 0, 0)

struct ctl_form {
	unsigned command; /* enum ctl_command */
	const char *word, *words;
	unsigned least, most;
};
extern const struct ctl_form ctl_forms[];
extern const unsigned ctl_forms_cnt;

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
	const char *m_key_file;			 /* or NULL; m_key is what it says */
	const char *source_routes;		 /* a table of directed routes, or NULL */
	uint64_t window, per_node, retries, timeout_ms, nodes;
	uint64_t lmc;	/* of routes: LIDs of an endpoint's port, 2^lmc */
	uint64_t spray; /* of trace: UDP source ports of a queue pair; 0: it does not spray */
	uint64_t m_key, tiers, count, protect, lease;
	const char *listen; /* an address of 'web', or NULL */
	const char *log;    /* a log of faults, or NULL */
	const char *mode;   /* of virtual lanes: qos */
	uint64_t mtu;
	double rate_gbps, tolerance;
	double share; /* of monitor: percent of rate_gbps that requests may take; 0: all */
	bool force, open, ecmp;
	const char *sport; /* of trace: "N" or "N-M", or NULL */
	double interval_s, duration_s;
	const char *zones, *key_out; /* manage; or NULL */
	uint64_t priority, misses;
	double poll_s;
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

/* The key in a file: a number, and nothing else. False: a sentence is in err. */
bool ctl_read_key(const char *file, uint64_t *key, char *err, size_t err_bytes);

/* A whole number in decimal, or in hexadecimal after 0x. False: it is none, or above `max`. */
bool ctl_parse_number(const char *text, uint64_t max, uint64_t *value);

#endif
