/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_PORT = 256,
	OPT_CONFIG,
	OPT_SET,
	OPT_JSON,
	OPT_STATE,
	OPT_INTERVAL,
	OPT_POLL,
	OPT_HELP_CONFIG
};

static const struct option longs[] = {
	{"port", required_argument, NULL, OPT_PORT},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"set", required_argument, NULL, OPT_SET},
	{"json", required_argument, NULL, OPT_JSON},
	{"state", required_argument, NULL, OPT_STATE},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"poll", no_argument, NULL, OPT_POLL},
	{"help-config", no_argument, NULL, OPT_HELP_CONFIG},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static bool add_port(struct switch_options *o, const char *text, char *err, size_t cap)
{
	if (o->spec_cnt == SWITCH_SPECS_MAX) {
		snprintf(err, cap, "there are more than %d ports", SWITCH_SPECS_MAX);
		return false;
	}
	return switch_spec_parse(text, &o->spec[o->spec_cnt], err, cap) && ++o->spec_cnt;
}

static bool add_set(struct switch_options *o, const char *text, char *err, size_t cap)
{
	if (o->set_cnt == SWITCH_SETS_MAX) {
		snprintf(err, cap, "--set appears more than %d times", SWITCH_SETS_MAX);
		return false;
	}
	o->set[o->set_cnt++] = text;
	return true;
}

static bool interval(struct switch_options *o, const char *text, char *err, size_t cap)
{
	char *end;

	o->interval_s = strtod(text, &end);
	if (*text && !*end && o->interval_s >= 0.01 && o->interval_s <= 86400)
		return true;
	snprintf(err, cap, "--interval: \"%s\" is not a time; allowed: seconds from 0.01 to 86400",
		 text);
	return false;
}

static bool take(struct switch_options *o, int opt, char *err, size_t cap)
{
	switch (opt) {
	case OPT_PORT:
		return add_port(o, optarg, err, cap);
	case OPT_SET:
		return add_set(o, optarg, err, cap);
	case OPT_INTERVAL:
		return interval(o, optarg, err, cap);
	case OPT_CONFIG:
		o->config = optarg;
		return true;
	case OPT_JSON:
		o->json = optarg;
		return true;
	case OPT_STATE:
		o->state = optarg;
		return true;
	case OPT_POLL:
		o->poll = true;
		return true;
	default:
		snprintf(err, cap, "try 'uroce-switch --help'");
		return false;
	}
}

enum switch_parse switch_options_parse(struct switch_options *o, int argc, char **argv, char *err,
				       size_t cap)
{
	int opt;

	*o = (struct switch_options){.interval_s = 1};
	optind = 1;
	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == 'h')
			return SWITCH_PARSE_HELP;
		if (opt == OPT_HELP_CONFIG)
			return SWITCH_PARSE_HELP_CONFIG;
		if (!take(o, opt, err, cap))
			return SWITCH_PARSE_USAGE;
	}
	if (optind < argc) {
		snprintf(err, cap, "\"%s\" is not an option; a port is --port KIND=NAME",
			 argv[optind]);
		return SWITCH_PARSE_USAGE;
	}
	if (!o->spec_cnt && !o->config) {
		snprintf(err, cap,
			 "no port is given; --port dev=veth0 is one, 'uroce-switch --help' has the "
			 "others");
		return SWITCH_PARSE_USAGE;
	}
	return SWITCH_PARSE_OK;
}

bool switch_options_ports(struct switch_options *o, const char *ports, char *err, size_t cap)
{
	static struct switch_spec given[SWITCH_SPECS_MAX];
	unsigned cnt = o->spec_cnt;
	char copy[UR_CONFIG_TEXT], *rest = copy, *word;

	memcpy(given, o->spec, sizeof(given));
	o->spec_cnt = 0;
	snprintf(copy, sizeof(copy), "%s", ports);
	while ((word = strsep(&rest, " \t")) != NULL)
		if (*word && !add_port(o, word, err, cap))
			return false;
	if (o->spec_cnt + cnt > SWITCH_SPECS_MAX) {
		snprintf(err, cap, "there are more than %d ports", SWITCH_SPECS_MAX);
		return false;
	}
	memcpy(&o->spec[o->spec_cnt], given, cnt * sizeof(given[0]));
	o->spec_cnt += cnt;
	if (o->spec_cnt)
		return true;
	snprintf(err, cap, "%s: [forwarding] ports: is empty, and there is no --port", o->config);
	return false;
}

void switch_options_help(FILE *out)
{
	fputs("Usage: uroce-switch --port KIND=NAME[,KEY=VALUE]... [OPTION]...\n"
	      "Forwards Ethernet frames between ports: RoCEv2 by table where there is one, everything\n"
	      "else by learning. Each port has virtual lanes with VL arbitration, a rate, ECN marks, and\n"
	      "queues of bounded length. ICRCs are left as they are.\n"
	      "\n"
	      "  --port KIND=NAME       a port; may be repeated, 63 at most. Kinds:\n",
	      out);
#define X(NAME, word, help) fprintf(out, "                           %-7s " help "\n", word "=");
	SWITCH_KINDS(X)
#undef X
	fputs("                         Keys that may follow, separated by commas:\n"
	      "                           rate=G      sends at most G Gb/s\n"
	      "                           mtu=N       largest IP packet, in bytes\n"
	      "                           credits=yes|no  link credits ([port] credits); not for socket\n"
	      "                           access=V    member of VLAN V only, without tags\n"
	      "                           trunk=V+V   member of these VLANs, with tags (all)\n"
	      "                           native=V    VLAN of a trunk's untagged frames (1)\n"
	      "                           role=ROLE   memif: server (default) or client\n"
	      "                           clients=N   socket: its clients at most, a port each (8)\n"
	      "                           mode=OCTAL  socket: its permissions (0660)\n"
	      "  --config FILE          reads [eal], [port] (for all ports), [qos] (lanes),\n"
	      "                         [forwarding] (ports, queues, ECN, tables) and [management] (keys)\n"
	      "  --set SECTION.KEY=VAL  overrides one key; may be repeated\n"
	      "  --state FILE           keeps there what management sets (forwarding table, LID, lanes,\n"
	      "                         disabled ports, E2PROM), and begins with it when started again\n"
	      "  --json FILE            writes statistics there, each interval and at the end\n"
	      "  --interval S           seconds between them (1)\n"
	      "  --poll                 never sleeps; without it an idle switch yields its CPU\n"
	      "  --help-config          prints every section and key\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "Ports have the numbers 1, 2, ... in this order; a socket has as many as clients. Ports of\n"
	      "kind dev and xdp take all frames of the interface, so give it no address of the kernel.\n"
	      "\n"
	      "Examples:\n"
	      "  uroce-switch --port dev=veth0 --port dev=veth1 --port dev=veth2\n"
	      "  uroce-switch --port dev=eth1,rate=1 --port tap=lab0 --json stats.json \\\n"
	      "      --set forwarding.ecn_min_kb=30 --set forwarding.ecn_max_kb=100\n"
	      "  uroce-switch --port dev=veth0,access=10 --port dev=veth1,access=10 \\\n"
	      "      --port dev=uplink,trunk=10+20\n"
	      "  uroce-switch --port dev=veth0 --port socket=/run/fabric.sock,mode=0666\n"
	      "\n"
	      "SIGINT and SIGTERM end it. Exit status: 0 ended by a signal, 1 an error, 2 a wrong\n"
	      "command line.\n",
	      out);
}
