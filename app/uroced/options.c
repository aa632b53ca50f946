/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <getopt.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#define CLIENTS_MAX 62

enum {
	OPT_SOCKET = 256,
	OPT_UPLINK,
	OPT_RANGE,
	OPT_ADDRESS,
	OPT_SHARE,
	OPT_CLIENTS,
	OPT_PER_USER,
	OPT_QUARANTINE,
	OPT_MODE,
	OPT_GROUP,
	OPT_RATE,
	OPT_MTU,
	OPT_MANAGE,
	OPT_LEASES,
	OPT_NO_DIRECT,
	OPT_NO_REALTIME
};

static const struct option longs[] = {
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"uplink", required_argument, NULL, OPT_UPLINK},
	{"range", required_argument, NULL, OPT_RANGE},
	{"address", required_argument, NULL, OPT_ADDRESS},
	{"share", required_argument, NULL, OPT_SHARE},
	{"clients", required_argument, NULL, OPT_CLIENTS},
	{"per-user", required_argument, NULL, OPT_PER_USER},
	{"quarantine", required_argument, NULL, OPT_QUARANTINE},
	{"mode", required_argument, NULL, OPT_MODE},
	{"group", required_argument, NULL, OPT_GROUP},
	{"rate", required_argument, NULL, OPT_RATE},
	{"mtu", required_argument, NULL, OPT_MTU},
	{"manage", no_argument, NULL, OPT_MANAGE},
	{"leases", required_argument, NULL, OPT_LEASES},
	{"no-direct", no_argument, NULL, OPT_NO_DIRECT},
	{"no-realtime", no_argument, NULL, OPT_NO_REALTIME},
	COMMON_LONGS,
};

static bool whole(const char *text, int base, unsigned long lo, unsigned long hi,
		  unsigned long *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	*out = strtoul(text, &end, base);
	return !*end && *out >= lo && *out <= hi;
}

static bool host_address(const char *text, uint32_t *out)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1)
		return false;
	*out = ntohl(in.s_addr);
	return true;
}

/* "10.77.0.2-10.77.0.63/24" */
static bool range(struct options *o, const char *text)
{
	char copy[64], *last, *prefix;
	unsigned long len;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return false;
	last = strchr(copy, '-');
	prefix = last ? strchr(last, '/') : NULL;
	if (!prefix)
		return false;
	*last++ = *prefix++ = '\0';
	if (!host_address(copy, &o->lease.first) || !host_address(last, &o->lease.last) ||
	    !whole(prefix, 10, 1, 30, &len))
		return false;
	o->lease.prefix = (uint8_t)len;
	return true;
}

/* "192.0.2.1/24" */
static bool address(struct options *o, const char *text)
{
	char copy[64], *prefix;
	unsigned long len;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return false;
	prefix = strchr(copy, '/');
	if (!prefix)
		return false;
	*prefix++ = '\0';
	if (!host_address(copy, &o->lease.host) || !whole(prefix, 10, 1, 30, &len))
		return false;
	o->lease.prefix = (uint8_t)len;
	return o->lease.host;
}

static bool group(struct options *o, const char *name)
{
	const struct group *g = getgrnam(name);

	if (g)
		o->group = g->gr_gid;
	return g;
}

/* NULL: taken; else what is allowed. */
static const char *take_number(struct options *o, int opt)
{
	unsigned long v = 0;

	switch (opt) {
	case OPT_CLIENTS:
		if (!whole(optarg, 10, 1, CLIENTS_MAX, &v))
			return "1 to 62";
		o->lease.clients = (unsigned)v;
		return NULL;
	case OPT_PER_USER:
		if (!whole(optarg, 10, 1, CLIENTS_MAX, &v))
			return "1 to 62";
		o->lease.per_user = (unsigned)v;
		return NULL;
	case OPT_QUARANTINE:
		if (!whole(optarg, 10, 0, 86400, &v))
			return "seconds from 0 to 86400";
		o->lease.quarantine_ns = v * UINT64_C(1000000000);
		return NULL;
	case OPT_MODE:
		if (!whole(optarg, 8, 0, 0777, &v))
			return "permissions such as 0666";
		o->mode = (uint32_t)v;
		return NULL;
	case OPT_MTU:
		if (!whole(optarg, 10, 576, 9600, &v))
			return "576 to 9600";
		o->mtu = (uint32_t)v;
		return NULL;
	case OPT_RATE:
		return common_real(optarg, 0.001, 1000, &o->rate_gbps) ? NULL
								       : "Gb/s from 0.001 to 1000";
	case OPT_RANGE:
		return range(o, optarg) ? NULL
					: "FIRST-LAST/LENGTH, such as 10.77.0.2-10.77.0.63/24";
	case OPT_ADDRESS:
		return address(o, optarg) ? NULL : "ADDRESS/LENGTH, such as 192.0.2.1/24";
	case OPT_GROUP:
		return group(o, optarg) ? NULL : "the name of a group";
	default:
		return "";
	}
}

static bool take_word(struct options *o, int opt)
{
	switch (opt) {
	case OPT_SOCKET:
		o->socket = optarg;
		return true;
	case OPT_SHARE:
		o->share = optarg;
		return true;
	case OPT_LEASES:
		o->leases = optarg;
		return true;
	case OPT_MANAGE:
		o->manage = true;
		return true;
	case OPT_NO_DIRECT:
		o->direct = false;
		return true;
	case OPT_NO_REALTIME:
		o->common.realtime = false;
		return true;
	case OPT_UPLINK:
		if (o->uplink_cnt == UROCED_UPLINKS_MAX)
			return false;
		o->uplink[o->uplink_cnt++] = optarg;
		return true;
	default:
		return false;
	}
}

static enum parse take(struct options *o, int opt, int at, char *err, size_t cap)
{
	const char *allowed;
	enum parse result;

	if (common_options_take(&o->common, opt, optarg, &result, err, cap))
		return result;
	if (opt == '?') {
		snprintf(err, cap, "try 'uroced --help'");
		return PARSE_USAGE;
	}
	allowed = take_number(o, opt);
	if (!allowed || (!*allowed && take_word(o, opt)))
		return PARSE_OK;
	if (*allowed)
		snprintf(err, cap, "--%s: \"%s\" is not valid; allowed: %s", longs[at].name, optarg,
			 allowed);
	else
		snprintf(err, cap, "--%s appears too often", longs[at].name);
	return PARSE_USAGE;
}

/* Its address is not known here: any that passes the check stands for it. */
static bool take_share(struct options *o, char *err, size_t cap)
{
	if (o->lease.host || o->uplink_cnt) {
		snprintf(err, cap, "--share comes without --address and --uplink");
		return false;
	}
	o->lease.host = o->lease.first;
	return true;
}

enum parse options_parse(struct options *o, int argc, char **argv, char *err, size_t cap)
{
	const char *wrong;
	enum parse result;
	int opt, at = 0;

	*o = (struct options){
		.socket = UR_LEASE_SOCKET,
		.lease = {.clients = 16, .per_user = 8, .quarantine_ns = UINT64_C(10000000000)},
		.mode = 0660,
		.group = (gid_t)-1,
		.mtu = 4200};
	common_options_init(&o->common);
	o->common.realtime = o->direct = true;
	range(o, "10.77.0.2-10.77.0.63/24");
	optind = 1;
	while ((opt = getopt_long(argc, argv, "h", longs, &at)) != -1) {
		result = take(o, opt, at, err, cap);
		if (result != PARSE_OK)
			return result;
	}
	if (o->share && !take_share(o, err, cap))
		return PARSE_USAGE;
	if (o->lease.host) {
		o->lease.first = 1;
		o->lease.last = UR_LEASE_NUMBER_MAX;
	}
	wrong = lease_attr_check(&o->lease);
	if (optind < argc)
		snprintf(err, cap, "\"%s\" is not an option; try 'uroced --help'", argv[optind]);
	else if (wrong)
		snprintf(err, cap, "--%s: %s", o->lease.host ? "address" : "range", wrong);
	else
		return PARSE_OK;
	return PARSE_USAGE;
}

void options_help(FILE *out)
{
	fputs("Usage: uroced [OPTION]...\n"
	      "Gives each process of this host a RoCEv2 port of its own: a software switch whose ports\n"
	      "are leased over a unix socket, each with a MAC and an IPv4 address that its process\n"
	      "cannot change. Processes reach each other by these addresses, and by an uplink the rest\n"
	      "of a network. With --address they share one address, as with a kernel driver.\n"
	      "\n"
	      "  --socket FILE          where processes ask for a lease (" UR_LEASE_SOCKET ")\n"
	      "  --mode OCTAL           permissions of the socket (0660)\n"
	      "  --group GROUP          its group: with 0660 its members may have leases\n"
	      "  --range RANGE          addresses to lease, FIRST-LAST/LENGTH with the length of their\n"
	      "                         network's prefix (10.77.0.2-10.77.0.63/24)\n"
	      "  --address ADDRESS/LEN  one address for all processes, which have queue pair numbers and\n"
	      "                         ports of the host to themselves instead; 61 processes at most\n"
	      "  --share IFACE          the same with the address of this kernel interface, whose other traffic\n"
	      "                         stays with the kernel\n"
	      "  --clients N            leases at a time, each with a port, 62 at most (16)\n"
	      "  --per-user N           leases of one user at a time (8)\n"
	      "  --quarantine S         seconds for which the address of a process that has ended is kept\n"
	      "                         for it (10)\n"
	      "  --rate G               each process sends, and receives, at most G Gb/s\n"
	      "  --mtu N                largest IP packet, in bytes (4200, or what the uplink carries)\n"
	      "  --uplink KIND=NAME     a port to a network, as --port of uroce-switch: dev=eth1, xdp=eth1,\n"
	      "                         pci=..., socket=PATH; may be repeated. The range must belong to the\n"
	      "                         network\n"
	      "  --manage               processes may manage the switch; otherwise only an uplink may\n"
	      "  --leases FILE          keeps there the leases, so that processes have their addresses\n"
	      "                         again when the daemon is started again (that of --socket, .leases)\n"
	      "  --no-direct            every frame passes the switch; without it, and without --rate, connections\n"
	      "                         between two processes have shared memory of their own\n"
	      "  --no-realtime          never interrupts other programs; without it a frame does, when they\n"
	      "                         use the daemon's CPU and it may have a real-time priority\n"
	      "  --config FILE          reads [eal], [port], [qos], [forwarding] and [management], as\n"
	      "                         uroce-switch\n"
	      "  --set SECTION.KEY=VAL  overrides one key; may be repeated\n"
	      "  --state FILE           keeps there what management sets\n"
	      "  --json FILE            writes statistics there, each interval and at the end: leases, what\n"
	      "                         processes sent that was not theirs to send, and those of the switch\n" COMMON_HELP
	      "\n"
	      "A lease lasts until its process ends. A process uses the daemon by --dev uroced, or\n"
	      "--dev uroced:PATH for another socket; --dev uroced@ADDRESS and --dev uroced:PATH@ADDRESS ask\n"
	      "for an address.\n"
	      "\n"
	      "Examples:\n"
	      "  uroced &\n"
	      "  uroce-run --dev uroced ib_write_bw &\n"
	      "  uroce-run --dev uroced ib_write_bw 127.0.0.1\n"
	      "\n"
	      "  uroced --uplink dev=eth1 --range 192.0.2.100-192.0.2.120/24 --group rdma\n"
	      "  uroced --uplink socket=/run/uroced/manage.sock,mode=0600\n"
	      "  uroce-ctl --socket /run/uroced/manage.sock discover\n"
	      "\n"
	      "SIGINT and SIGTERM end it. Exit status: 0 ended by a signal, 1 an error, 2 a wrong\n"
	      "command line.\n",
	      out);
}
