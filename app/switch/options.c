/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_PORT = 256, OPT_SWITCH, OPT_REALTIME };

static const struct option longs[] = {{"port", required_argument, NULL, OPT_PORT},
				      {"switch", required_argument, NULL, OPT_SWITCH},
				      {"realtime", no_argument, NULL, OPT_REALTIME},
				      COMMON_LONGS};

/* Options ahead of the first --switch are in sw[0] until then, and hold for all. */
struct line {
	struct switch_options *sw;
	unsigned cnt; /* of --switch */
	struct common_options common;
};

static bool add_port(struct switch_options *o, const char *text, char *err, size_t cap)
{
	if (o->spec_cnt == SWITCH_SPECS_MAX) {
		snprintf(err, cap, "there are more than %d ports", SWITCH_SPECS_MAX);
		return false;
	}
	return switch_spec_parse(text, &o->spec[o->spec_cnt], err, cap) && ++o->spec_cnt;
}

static enum parse __attribute__((format(printf, 3, 4)))
usage(char *err, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, cap, fmt, ap);
	va_end(ap);
	return PARSE_USAGE;
}

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	return len && len < SWITCH_NAME_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       len;
}

/* SWITCH-MANY-01 */
static enum parse begin_switch(struct line *l, const char *name, char *err, size_t cap)
{
	const struct switch_options *first = &l->sw[0];

	if (!is_name(name))
		return usage(
			err, cap,
			"--switch: \"%s\" is not a name; allowed: 1 to %d letters, digits, and _.-",
			name, SWITCH_NAME_MAX - 1);
	for (unsigned i = 0; i < l->cnt; i++)
		if (strcmp(l->sw[i].name, name) == 0)
			return usage(err, cap, "--switch: there are two named \"%s\"", name);
	if (l->cnt == SWITCHES_MAX)
		return usage(err, cap, "there are more than %d switches", SWITCHES_MAX);
	if (!l->cnt && (first->spec_cnt || first->common.state || first->common.json))
		return usage(
			err, cap,
			"--port, --state and --json belong to one switch: they have to follow its --switch");
	if (!l->cnt)
		l->common = first->common;
	l->sw[l->cnt] = (struct switch_options){.common = l->common};
	strcpy(l->sw[l->cnt].name, name);
	l->cnt++;
	return PARSE_OK;
}

static enum parse take(struct line *l, int opt, char *err, size_t cap)
{
	struct switch_options *o = &l->sw[l->cnt ? l->cnt - 1 : 0];
	enum parse result;

	if (common_options_take(&o->common, opt, optarg, &result, err, cap))
		return result;
	if (opt == OPT_REALTIME) {
		l->sw[0].common.realtime = true; /* of the thread, which all switches share */
		return PARSE_OK;
	}
	if (opt == OPT_PORT)
		return add_port(o, optarg, err, cap) ? PARSE_OK : PARSE_USAGE;
	if (opt == OPT_SWITCH)
		return begin_switch(l, optarg, err, cap);
	return usage(err, cap, "try 'uroce-switch --help'");
}

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static enum parse check(const struct switch_options *o, unsigned cnt, char *err, size_t cap)
{
	for (unsigned i = 0; i < cnt; i++) {
		if (!o[i].spec_cnt && !o[i].common.config)
			return usage(err, cap,
				     "%s%sno port is given; --port dev=veth0 is one, 'uroce-switch "
				     "--help' has the others",
				     o[i].name, o[i].name[0] ? ": " : "");
		for (unsigned k = 0; k < i; k++)
			if (same(o[i].common.state, o[k].common.state) ||
			    same(o[i].common.json, o[k].common.json))
				return usage(err, cap, "%s and %s have the same file", o[k].name,
					     o[i].name);
	}
	return PARSE_OK;
}

enum parse switch_options_parse(struct switch_options *o, unsigned *cnt, int argc, char **argv,
				char *err, size_t cap)
{
	struct line l = {.sw = o};
	enum parse result;
	int opt;

	o[0] = (struct switch_options){0};
	common_options_init(&o[0].common);
	optind = 1;
	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		result = take(&l, opt, err, cap);
		if (result != PARSE_OK)
			return result;
	}
	if (optind < argc)
		return usage(err, cap, "\"%s\" is not an option; a port is --port KIND=NAME",
			     argv[optind]);
	*cnt = l.cnt ? l.cnt : 1;
	return check(o, *cnt, err, cap);
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
	      "       uroce-switch [OPTION]... --switch NAME --port KIND=NAME... [OPTION]... --switch NAME...\n"
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
	      "                           credits=yes|no  link credits ([port] credits); not for socket, ring\n"
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
	      "  --realtime             while other programs want its CPU, a frame interrupts them, for at most\n"
	      "                         19/20 of the time (SCHED_FIFO 1; needs root or LimitRTPRIO)\n"
	      "  --switch NAME          begins the description of a switch of that name; what follows is\n"
	      "                         its own, what is ahead of the first holds for all. 64 at most, in\n"
	      "                         one thread, with 32 ports that are neither socket nor ring\n" COMMON_HELP
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
	      "  uroce-switch --set eal.hugepages=no \\\n"
	      "      --switch left --port dev=veth0 --port ring=middle \\\n"
	      "      --switch right --port dev=veth1 --port ring=middle\n"
	      "\n"
	      "SIGINT and SIGTERM end it. Exit status: 0 ended by a signal, 1 an error, 2 a wrong\n"
	      "command line.\n",
	      out);
}
