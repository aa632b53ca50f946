/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

void ctl_options_help(FILE *out)
{
	static const char *const usage[][2] = {
#define X(name, words, least, most, meaning) {#name, words},
		CTL_COMMANDS(X)
#undef X
	};

	for (unsigned i = 0; i < CTL_COMMAND_CNT; i++)
		fprintf(out, "%s uroce-ctl %s %s%s[OPTION]...\n",
			i ? "  or: " : "Usage:", usage[i][0], usage[i][1],
			usage[i][1][0] ? " " : "");
	fputs("Manages a fabric of uroce switches and endpoints over the links that carry its data.\n"
	      "\n"
	      "Commands:\n",
	      out);
#define X(name, words, least, most, meaning)                                                       \
	fprintf(out, "  %-9s %-20s %s\n", #name, words, meaning);
	CTL_COMMANDS(X)
#undef X
	fputs("\n"
	      "Each command discovers the fabric first. NODE is a GUID such as 0x27572000000001, a\n"
	      "description, or #N, the N-th node of 'topology'. 'trace TO' follows the directed route\n"
	      "from this program to the node. 'trace FROM TO' follows the forwarding tables of the\n"
	      "switches.\n"
	      "\n"
	      "Registers are read with 'reg read NODE REGISTER...' and written with\n"
	      "'reg write NODE REGISTER VALUE'. REGISTER is an address, a name such as uptime_ns, or\n"
	      "a name and a port such as tx_packets:3. 'reg list' prints all of them.\n"
	      "\n"
	      "MODE of monitor: single reads everything once, loop again and again, compare prints\n"
	      "only what has changed.\n"
	      "\n"
	      "MODE of routes: updown (default) goes up toward the roots and then down, without\n"
	      "deadlocks; shortest takes a shortest path.\n"
	      "\n"
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
	      "  --window N             requests at the same time (64)\n"
	      "  --per-node N           of these, to the same node (4)\n"
	      "  --timeout-ms N         a request is sent again after N ms without a response (100)\n"
	      "  --retries N            how often (3)\n"
	      "  --nodes N              no more nodes than this (65536)\n"
	      "  --m-key KEY            the M_Key of the nodes that are written to (0)\n"
	      "\n"
	      "monitor, faults, bist:\n"
	      "  --interval S           seconds from pass to pass (1)\n"
	      "  --count N              ends after N passes, or N reports (0: when interrupted)\n"
	      "  --duration S           faults: ends after S seconds (0: when interrupted); bist: S\n"
	      "                         seconds of test (1)\n"
	      "  --tiers N              counters up to this tier of severity, 1 to 3 (2)\n"
	      "\n"
	      "Any command:\n"
	      "  --load-routes MODE     loads routes first, as 'routes load' does\n"
	      "\n"
	      "Output:\n"
	      "  --json FILE            results as JSON; '-' is standard output, instead of text;\n"
	      "                         monitor writes a line for each pass\n"
	      "  --dot FILE             topology: a graph for Graphviz; '-' is standard output\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "Examples:\n"
	      "  uroce-ctl discover --dev eth1\n"
	      "  uroce-ctl topology --fabric-model fattree:4 --dot - | dot -Tsvg >fabric.svg\n"
	      "  uroce-ctl trace 'host 3.1.1' --fabric-model fattree:4\n"
	      "  uroce-ctl monitor compare --socket /run/lab.sock --interval 0.1\n"
	      "\n"
	      "Exit status: 0 success, 1 an error, 2 a wrong command line.\n",
	      out);
}
