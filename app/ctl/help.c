/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

static const char about_commands[] =
	"\n"
	"Each command discovers the fabric first. NODE is a GUID such as 0x27572000000001, a\n"
	"description, or #N, the N-th node of 'topology'. 'trace TO' follows the directed route\n"
	"from this program to the node. 'trace FROM TO' follows the forwarding tables of the\n"
	"switches, to each LID of the node. 'trace FROM ADDRESS --sport N' and '--ecmp' follow RoCE\n"
	"packets to an IP address.\n"
	"\n"
	"Registers are read with 'reg read NODE REGISTER...' and written with\n"
	"'reg write NODE REGISTER VALUE'. REGISTER is an address, a name such as uptime_ns, or\n"
	"a name and a port such as tx_packets:3. 'reg list' prints all of them.\n"
	"\n"
	"'e2prom write' changes bytes, 'save' and 'load' copy the whole, or as much as FILE has.\n"
	"'defaults' shows or replaces the list of registers and the values that they get when the\n"
	"node starts. An E2PROM is slow: 150 us a byte to read, 3 ms to write.\n"
	"\n"
	"'vl set' changes some of high=VL:WEIGHT,..., low=VL:WEIGHT,..., limit=N and\n"
	"sl2vl=VL,... (16 of them) of a port.\n"
	"\n"
	"'qos solve' finds the smallest tables by which each service level gets its share of a port,\n"
	"in percent, and waits no longer than that while all are busy. It needs no fabric. 'qos apply'\n"
	"writes what it wrote with --json onto a port.\n"
	"\n"
	"'keys set' gives nodes a new M_Key; KEY is a number, or @FILE with a number in it. Nodes\n"
	"that are farther away come first.\n"
	"\n"
	"MODE of monitor: single reads everything once, loop again and again, compare prints\n"
	"only what has changed.\n"
	"\n"
	"top shows the rates, and what has been lost since it began, of all ports that are or were\n"
	"up. On a terminal, keys sort it: l by load, d by discards, e by errors, n by node; j and k\n"
	"move, q ends. Otherwise it prints the table once a pass.\n"
	"\n"
	"faults has all nodes report to this program, and prints the reports; --log FILE appends\n"
	"them to a log as well. 'faults list' prints the log, 'faults tail' its end and what is added,\n"
	"'faults ack ID' and 'faults ack all' acknowledge. None of the three joins a fabric, unless\n"
	"ack is told how: then it clears the causes in FAULT_STATUS of the nodes, too.\n"
	"\n"
	"'manage run ZONE' is one of the managers of a zone, a set of nodes that the file of --zones\n"
	"defines. One of them is master: it has put its M_Key on the zone's nodes, has faults reported,\n"
	"and discovers the fabric every --interval. The others take over when it is gone. 'manage list'\n"
	"shows all managers, 'handover' lets the master of a zone hand over, 'disable' and 'enable' take a\n"
	"standby out and in.\n"
	"\n"
	"web serves a page with a picture of the fabric, load, faults and lists of links and nodes,\n"
	"until it is interrupted. Nodes report their faults to it, unless --log names a log that\n"
	"another uroce-ctl writes.\n"
	"\n"
	"'routes source' prints the ports by which requests to each node travel, and their responses.\n"
	"What it writes with --json is a table for --source-routes: a route is 'there', ports from this\n"
	"program on, and leads through each node as that node's own route does. With --source-routes it\n"
	"asks each node of the table by its route, too.\n"
	"\n"
	"MODE of routes: updown (default) goes up toward the roots and then down, without\n"
	"deadlocks; shortest takes a shortest path.\n"
	"\n";

static const char about_options[] =
	"How to join the fabric:\n"
	"  --dev INTERFACE        a network interface that is linked to a switch or an endpoint;\n"
	"                         needs CAP_NET_RAW\n"
	"  --socket FILE          a port of kind 'socket' of uroce-switch\n"
	"  --fabric-model SHAPE   none: a model in this program, to try it out: line:N, ring:N,\n"
	"                         fattree:K, random:N,SEED, tianhe2, or a file with lines\n"
	"                         'switch NAME PORTS', 'endpoint NAME', 'link NAME PORT NAME PORT'\n"
	"  --model-event EVENT    what happens in the model: 'SECONDS,up|down|errors,NODE,PORT' or\n"
	"                         'SECONDS,kill,NODE'; may be repeated\n"
	"\n"
	"Requests:\n"
	"  --window N             requests at the same time (0: from 64 to 1024, while the time of a\n"
	"                         response does not double)\n"
	"  --per-node N           of these, to the same node (4)\n"
	"  --timeout-ms N         a request is sent again after N ms without a response (100)\n"
	"  --retries N            how often (3)\n"
	"  --nodes N              no more nodes than this (65536)\n"
	"  --m-key KEY            the M_Key of the nodes (0); others on this host see it\n"
	"  --m-key-file FILE      the same, in a file\n"
	"\n"
	"vl, qos, keys:\n"
	"  --force                vl: although a service level loses its lane; keys: although nothing\n"
	"                         but the key can ever undo it\n"
	"  --mode MODE            qos: vl_mode of the port: iba, measured or strict (iba)\n"
	"  --mtu BYTES            qos: path MTU (4096)\n"
	"  --rate GBPS            qos: what the port carries of payload, for bounds of the wait\n"
	"  --tolerance PERCENT    qos: of the link, by which a share may be off (1)\n"
	"  --protect N            keys: M_KeyProtectBits, 0 to 3 (1: the key is not shown, everything\n"
	"                         else is; 2 and 3: nothing is read without the key)\n"
	"  --lease S              keys: seconds after which the protection ends if a wrong key is\n"
	"                         used and the right one is not (0: never)\n"
	"\n"
	"trace:\n"
	"  --sport N[-M]          the paths of packets with these UDP source ports\n"
	"  --spray N              those of a queue pair that sprays over N source ports and whose own\n"
	"                         port is that of --sport: which of them are different\n"
	"  --ecmp                 all paths, whatever the source port\n"
	"\n"
	"monitor, top, web, faults, bist:\n"
	"  --interval S           seconds from pass to pass (1)\n"
	"  --count N              ends after N passes, or N reports (0: when interrupted); reg read:\n"
	"                         N times, and how long a request took\n"
	"  --duration S           faults: ends after S seconds (0: when interrupted); bist: S\n"
	"                         seconds of test (1)\n"
	"  --log FILE             faults: the log; web: shows its faults\n"
	"  --listen ADDRESS:PORT  web: where it is served (127.0.0.1:8080); there is no log-in\n"
	"  --open                 faults list: only what is neither acknowledged nor over\n"
	"  --tiers N              counters up to this tier of severity, 1 to 3 (2)\n"
	"  --share PERCENT        monitor: its requests take that share of a port of --rate GBPS\n"
	"\n"
	"manage:\n"
	"  --zones FILE           the zones, the same for all managers\n"
	"  --priority N           0 to 15: the standby with the highest takes over first (0)\n"
	"  --poll S               seconds from a question to another manager to the next (0.5)\n"
	"  --misses N             a manager is gone after N questions without an answer (3)\n"
	"  --key-out FILE         where the master writes its M_Key, for --m-key-file\n"
	"\n"
	"Any command:\n"
	"  --load-routes MODE     loads routes first, as 'routes load' does\n"
	"  --lmc N                routes, --load-routes: 2^N LIDs for each port of an endpoint, 0 to 7,\n"
	"                         by different paths where there are several (0)\n"
	"  --source-routes FILE   requests travel by the routes of this table; nodes that are not in it\n"
	"                         are reached as they were found\n"
	"\n"
	"Output:\n"
	"  --json FILE            results as JSON; '-' is standard output, instead of text;\n"
	"                         monitor and top write a line for each pass\n"
	"  --dot FILE             topology: a graph for Graphviz; '-' is standard output\n"
	"  -h, --help             this text\n"
	"\n"
	"Examples:\n"
	"  uroce-ctl discover --dev eth1\n"
	"  uroce-ctl topology --fabric-model fattree:4 --dot - | dot -Tsvg >fabric.svg\n"
	"  uroce-ctl trace 'host 3.1.1' --fabric-model fattree:4\n"
	"  uroce-ctl monitor compare --socket /run/lab.sock --interval 0.1\n"
	"\n"
	"Exit status: 0 success, 1 an error, 2 a wrong command line.\n";

void ctl_options_help(FILE *out)
{
	static const struct {
		const char *name, *words;
	} commands[] = {
#define X(name, words, least, most, meaning) {#name, words},
		CTL_COMMANDS(X)
#undef X
	};
	bool any = false;

	for (unsigned i = 0; i < CTL_COMMAND_CNT; i++) {
		bool has_forms = false;

		for (unsigned k = 0; k < ctl_forms_cnt; k++) {
			const struct ctl_form *f = &ctl_forms[k];

			if (f->command != i)
				continue;
			fprintf(out, "%s uroce-ctl %s %s %s%s[OPTION]...\n",
				any ? "  or: " : "Usage:", commands[i].name, f->word, f->words,
				f->words[0] ? " " : "");
			any = has_forms = true;
		}
		if (has_forms)
			continue;
		fprintf(out, "%s uroce-ctl %s %s%s[OPTION]...\n",
			any ? "  or: " : "Usage:", commands[i].name, commands[i].words,
			commands[i].words[0] ? " " : "");
		any = true;
	}
	fputs("Manages a fabric of uroce switches and endpoints over the links that carry its data.\n"
	      "\n"
	      "Commands:\n",
	      out);
#define X(name, words, least, most, meaning)                                                       \
	fprintf(out, "  %-9s %-20s %s\n", #name, words, meaning);
	CTL_COMMANDS(X)
#undef X
	fputs(about_commands, out);
	fputs(about_options, out);
}
