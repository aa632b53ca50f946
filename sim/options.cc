/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <cstdio>
#include <cstdlib>

#include <ns3/command-line.h>

#include "cc/attr.h"
#include "traffic.h"
#include "transport/attr.h"

namespace sim
{

void wrong(const std::string &what)
{
	std::fprintf(stderr, "uroce-ns3: %s; see --help\n", what.c_str());
	std::exit(2);
}

namespace
{

/* All names of traffic. */
std::string traffic()
{
	std::string all;

	for (const auto &names : {pattern_names(), traffic_names()})
		for (const std::string &name : names)
			all += (all.empty() ? "" : ", ") + name;
	return all;
}

void add_network_and_pacing(ns3::CommandLine &cmd, Options *o)
{
	cmd.AddValue("topology", "tree: a k-ary n-tree; dragonfly", o->topology);
	cmd.AddValue("k", "ports down of a switch of a tree", o->k);
	cmd.AddValue("n", "levels of a tree", o->n);
	cmd.AddValue("p", "hosts of a router of a dragonfly", o->p);
	cmd.AddValue("a", "routers of a group", o->a);
	cmd.AddValue("h", "global links of a router", o->h);
	cmd.AddValue("routing",
		     "tree: ecmp (default), dmodk; dragonfly: minimal (default), valiant, ugal",
		     o->routing);
	cmd.AddValue("queues", "of the switches: output, input", o->queues);
	cmd.AddValue("pattern", "of the traffic: " + traffic(), o->pattern);
	cmd.AddValue("load", "per cent of its link that a host uses; of Poisson arrivals", o->load);
	cmd.AddValue("drain", "time after the measurement in which messages may complete, ns",
		     o->drain_ns);
	cmd.AddValue("pacing", "none, cmdpd, auto, dcqcn, swift", o->pacing);
	cmd.AddValue("init0", "CMDPD: throttling ends below this deflection", o->init0);
	cmd.AddValue("init1", "CMDPD: throttling begins above it", o->init1);
	cmd.AddValue("ewma", "CMDPD: an average that ages", o->ewma);
	cmd.AddValue("keepAverage", "CMDPD: from init0 to init1 the average stays",
		     o->keep_average);
	cmd.AddValue("release", "CMDPD: from init0 to init1 throttling ends", o->release);
	cmd.AddValue("target", "Swift: target delay, ns; 0: its default", o->target_ns);
	cmd.AddValue(
		"source",
		"delays that pacing hears: stamps (where switches are asked, else round trips), "
		"round_trip, one_way, switches (the time in them, of every packet, as in the paper)",
		o->source);
	cmd.AddValue("mode", "of the queue pairs: gbn, reorder, extended", o->mode);
}

void add_links_and_load(ns3::CommandLine &cmd, Options *o)
{
	cmd.AddValue("lossless", "links have credits", o->lossless);
	cmd.AddValue("buffer", "with credits: room of an input for each lane, bytes",
		     o->buffer_bytes);
	cmd.AddValue("queue", "without credits: depth at which a queue drops, bytes",
		     o->queue_bytes);
	cmd.AddValue("ecn", "depth at which an output-queued switch marks, bytes; 0: never",
		     o->ecn_bytes);
	cmd.AddValue("loss", "per cent of frames lost at random on the last link", o->loss);
	cmd.AddValue("downLinks", "core links that go down", o->down_links);
	cmd.AddValue("downAt", "when, ns", o->down_at_ns);
	cmd.AddValue("downFor", "for how long, ns; 0: for ever", o->down_for_ns);
	cmd.AddValue("downEvery", "and again so often, ns; 0: once", o->down_every_ns);
	cmd.AddValue("reroute", "until routing knows it, ns; 0: never", o->reroute_ns);
	cmd.AddValue("paths", "UDP source ports that a queue pair sprays over", o->paths);
	cmd.AddValue("repath",
		     "a timeout changes the UDP source port of a queue pair that does not spray",
		     o->repath);
	cmd.AddValue("plb", "so do round trips that stay long, in mode extended", o->plb);
	cmd.AddValue(
		"sparseFirst",
		"queue pairs that had less than their share are served before those with a backlog",
		o->sparse_first);
	cmd.AddValue("flit", "bytes sent in a nanosecond, in whole flits; 0: use rate",
		     o->flit_bytes);
	cmd.AddValue("rate", "of links without flits, bit/s", o->bits_per_s);
	cmd.AddValue("delay", "of a link, ns", o->delay_ns);
	cmd.AddValue("cutThrough", "bytes after which a switch begins to forward; 0: all",
		     o->cut_through_bytes);
	cmd.AddValue("slots",
		     "messages that a host has outstanding; all-reduce: operations at a time",
		     o->slots);
	cmd.AddValue("message", "bytes of a message", o->message_bytes);
	cmd.AddValue("qps", "queue pairs of a host at most; 0: --flows for each other host",
		     o->max_qp);
	cmd.AddValue(
		"flows",
		"queue pairs to each other host at most; a message takes that with the fewest bytes before it",
		o->flows);
	cmd.AddValue("ackreq", "packets between two AckReq bits at most", o->ackreq_every);
	cmd.AddValue("turn", "from an event to the host's turn, ns", o->turn_ns);
	cmd.AddValue("window", "PSNs in flight of a queue pair at most", o->window);
	cmd.AddValue("warm", "time before the measurement, ns", o->warm_ns);
	cmd.AddValue("run", "time measured, ns", o->run_ns);
	cmd.AddValue("intervals", "parts of the measurement", o->intervals);
	cmd.AddValue("seed", "of everything random", o->seed);
	cmd.AddValue(
		"dependencies",
		"simulate nothing: print the channel dependency graph, which must have no cycle",
		o->dependencies);
	cmd.AddValue("oracle", "validate the whole network after each interval", o->oracle);
}

void parse(Options *o, int argc, char **argv)
{
	ns3::CommandLine cmd;

	cmd.Usage("One run of a pattern through a network of uroce engines; prints JSON.");
	add_network_and_pacing(cmd, o);
	add_links_and_load(cmd, o);
	cmd.Parse(argc, argv);
}

void check_in(const char *name, uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least || value > most)
		wrong("--" + std::string(name) + "=" + std::to_string(value) + " is not in [" +
		      std::to_string(least) + ", " + std::to_string(most) + "]");
}

uint64_t power(uint64_t base, uint32_t exponent)
{
	uint64_t product = 1;

	while (exponent-- && product <= UINT32_MAX)
		product *= base;
	return product;
}

void check(const Options &o)
{
	uint64_t groups = static_cast<uint64_t>(o.a) * o.h + 1;
	uint64_t hosts = o.topology == "tree" ? power(o.k, o.n) : groups * o.a * o.p;

	check_in("k", o.k, 2, 32);
	check_in("n", o.n, 1, 16);
	check_in("p", o.p, 1, 256);
	check_in("a", o.a, 1, 256);
	check_in("h", o.h, 1, 256);
	if (hosts < 2 || hosts > 32766)
		wrong("a network has 2 to 32766 hosts, and this one " + std::to_string(hosts));
	check_in("init1", o.init1, 1, 255);
	check_in("init0", o.init0, 1, o.init1 - 1);
	check_in("buffer", o.lossless ? o.buffer_bytes : 4096, 4096, 1u << 30);
	check_in("slots", o.slots, 1, 65536);
	check_in("message", o.message_bytes, 1, 1u << 24);
	check_in("ackreq", o.ackreq_every, 1, 1u << 16);
	check_in("qps", o.max_qp, 0, 32766);
	check_in("flows", o.flows, 1, 255);
	if (!o.max_qp && hosts * o.flows > 32766)
		wrong("--flows=" + std::to_string(o.flows) +
		      " is more than the 32766 queue pairs of a host: give --qps as well");
	check_in("window", o.window, 4, 1u << 16);
	if (o.window & (o.window - 1))
		wrong("--window=" + std::to_string(o.window) + " is no power of two");
	check_in("run", o.run_ns, 1, UINT64_C(1) << 40);
	check_in("warm", o.warm_ns, 0, UINT64_C(1) << 40);
	check_in("drain", o.drain_ns, 0, UINT64_C(1) << 40);
	check_in("paths", o.paths, 1, UR_SPRAY_MAX);
	if (!(o.load > 0 && o.load <= 100))
		wrong("--load=" + std::to_string(o.load) + " is not in (0, 100]");
	if (!(o.loss >= 0 && o.loss <= 100))
		wrong("--loss=" + std::to_string(o.loss) + " is not in [0, 100]");
	if (o.lossless && (o.loss > 0 || o.down_links))
		wrong("links with credits lose nothing: --lossless=0");
	if (o.paths > 1 && o.mode != "extended")
		wrong("only mode extended takes several --paths");
	check_in("downLinks", o.down_links, 0, 65536);
	for (uint64_t ns : {o.down_at_ns, o.down_for_ns, o.down_every_ns, o.reroute_ns})
		check_in("downAt, downFor, downEvery, reroute", ns, 0, UINT64_C(1) << 40);
	if (o.reroute_ns && o.topology != "tree")
		wrong("only a tree can --reroute");
	if (o.source == "switches" && o.pacing != "none" && o.pacing != "cmdpd")
		wrong("--source=switches is for CMDPD");
	if ((o.source == "switches" || o.source == "one_way") && o.mode != "extended")
		wrong("only mode extended can have this --source");
	check_in("intervals", o.intervals, 1, o.run_ns);
	if (!o.flit_bytes)
		check_in("rate", o.bits_per_s, UR_CC_LINK_BPS_MIN, UR_CC_LINK_BPS_MAX);
	else
		check_in("flit", o.flit_bytes, 1, 125);
}

} // namespace

Options read_options(int argc, char **argv)
{
	Options o;

	parse(&o, argc, argv);
	if (o.routing.empty())
		o.routing = o.topology == "dragonfly" ? "minimal" : "ecmp";
	check(o);
	return o;
}

} // namespace sim
