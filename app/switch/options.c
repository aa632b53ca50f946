/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_PORT = 256 };

static const struct option longs[] = {{"port", required_argument, NULL, OPT_PORT}, COMMON_LONGS};

static bool add_port(struct switch_options *o, const char *text, char *err, size_t cap)
{
	if (o->spec_cnt == SWITCH_SPECS_MAX) {
		snprintf(err, cap, "there are more than %d ports", SWITCH_SPECS_MAX);
		return false;
	}
	return switch_spec_parse(text, &o->spec[o->spec_cnt], err, cap) && ++o->spec_cnt;
}

static enum parse take(struct switch_options *o, int opt, char *err, size_t cap)
{
	enum parse result;

	if (common_options_take(&o->common, opt, optarg, &result, err, cap))
		return result;
	if (opt == OPT_PORT)
		return add_port(o, optarg, err, cap) ? PARSE_OK : PARSE_USAGE;
	snprintf(err, cap, "try 'uroce-switch --help'");
	return PARSE_USAGE;
}

enum parse switch_options_parse(struct switch_options *o, int argc, char **argv, char *err,
				size_t cap)
{
	enum parse result;
	int opt;

	*o = (struct switch_options){0};
	common_options_init(&o->common);
	optind = 1;
	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		result = take(o, opt, err, cap);
		if (result != PARSE_OK)
			return result;
	}
	if (optind < argc) {
		snprintf(err, cap, "\"%s\" is not an option; a port is --port KIND=NAME",
			 argv[optind]);
		return PARSE_USAGE;
	}
	if (!o->spec_cnt && !o->common.config) {
		snprintf(err, cap,
			 "no port is given; --port dev=veth0 is one, 'uroce-switch --help' has the "
			 "others");
		return PARSE_USAGE;
	}
	return PARSE_OK;
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
	snprintf(err, cap, "%s: [forwarding] ports: is empty, and there is no --port",
		 o->common.config);
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
	      "  --json FILE            writes statistics there, each interval and at the end\n" COMMON_HELP
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
