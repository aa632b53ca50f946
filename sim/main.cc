/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce-ns3: one run of a pattern through a network, see docs/design/ns3.md. Prints one object of JSON.
 */
#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include <ns3/command-line.h>
#include <ns3/global-value.h>
#include <ns3/string.h>

#include "clock.h"
#include "topology.h"
#include "workload.h"

extern "C" void ur_assert_fail(const char *expr, const char *file, int line)
{
	std::fprintf(stderr, "at %" PRIu64 " ns: %s:%d: %s\n", sim::now_ns(), file, line, expr);
	std::abort();
}

namespace
{

struct Options {
	std::string topology = "tree", routing = "ecmp", queues = "output";
	std::string pattern = "uniform_random", pacing = "none";
	uint32_t k = 4, n = 4, p = 2, a = 4, h = 2;
	std::string source = "stamps";
	uint32_t init0 = 8, init1 = 16, target_ns = 0;
	bool ewma = false, lossless = true, oracle = false;
	uint32_t flit_bytes = 32, delay_ns = 50, buffer_bytes = 16384, cut_through_bytes = 64;
	uint64_t bits_per_s = 0, queue_bytes = 0, ecn_bytes = 0;
	uint32_t max_qp = 0;
	uint32_t slots = 64, message_bytes = 2048, ackreq_every = 1, turn_ns = 10, window = 128;
	uint64_t warm_ns = 100000, run_ns = 1000000, seed = 1;
	uint32_t intervals = 20;
	std::string mode = "extended";
};

[[noreturn]] void wrong(const std::string &what)
{
	std::fprintf(stderr, "uroce-ns3: %s; see --help\n", what.c_str());
	std::exit(2);
}

void parse(Options *o, int argc, char **argv)
{
	ns3::CommandLine cmd;

	cmd.Usage("One run of a pattern through a network of uroce engines; prints JSON.");
	cmd.AddValue("topology", "tree: a k-ary n-tree; dragonfly", o->topology);
	cmd.AddValue("k", "ports down of a switch of a tree", o->k);
	cmd.AddValue("n", "levels of a tree", o->n);
	cmd.AddValue("p", "hosts of a router of a dragonfly", o->p);
	cmd.AddValue("a", "routers of a group", o->a);
	cmd.AddValue("h", "global links of a router", o->h);
	cmd.AddValue("routing", "tree: ecmp, dmodk; dragonfly: minimal, valiant, ugal", o->routing);
	cmd.AddValue("queues", "of the switches: output, input", o->queues);
	cmd.AddValue(
		"pattern",
		"hot_node, alltoall_round_robin, uniform_random, uniform_random_seq_gen, incast, "
		"permutation",
		o->pattern);
	cmd.AddValue("pacing", "none, cmdpd, auto, dcqcn, swift", o->pacing);
	cmd.AddValue("init0", "CMDPD: throttling ends below this deflection", o->init0);
	cmd.AddValue("init1", "CMDPD: throttling begins above it", o->init1);
	cmd.AddValue("ewma", "CMDPD: an average that ages", o->ewma);
	cmd.AddValue("target", "Swift: target delay, ns; 0: its default", o->target_ns);
	cmd.AddValue(
		"source",
		"delays that pacing hears: stamps (where switches are asked, else round trips), "
		"round_trip, one_way, switches (the time in them, of every packet, as in the paper)",
		o->source);
	cmd.AddValue("mode", "of the queue pairs: gbn, reorder, extended", o->mode);
	cmd.AddValue("lossless", "links have credits", o->lossless);
	cmd.AddValue("buffer", "with credits: room of an input for each lane, bytes",
		     o->buffer_bytes);
	cmd.AddValue("queue", "without credits: depth at which a queue drops, bytes",
		     o->queue_bytes);
	cmd.AddValue("ecn", "depth at which an output-queued switch marks, bytes; 0: never",
		     o->ecn_bytes);
	cmd.AddValue("flit", "bytes sent in a nanosecond, in whole flits; 0: use rate",
		     o->flit_bytes);
	cmd.AddValue("rate", "of links without flits, bit/s", o->bits_per_s);
	cmd.AddValue("delay", "of a link, ns", o->delay_ns);
	cmd.AddValue("cutThrough", "bytes after which a switch begins to forward; 0: all",
		     o->cut_through_bytes);
	cmd.AddValue("slots", "messages that a host has outstanding", o->slots);
	cmd.AddValue("message", "bytes of a message", o->message_bytes);
	cmd.AddValue("qps", "queue pairs of a host at most; 0: one for each other host", o->max_qp);
	cmd.AddValue("ackreq", "packets between two AckReq bits at most", o->ackreq_every);
	cmd.AddValue("turn", "from an event to the host's turn, ns", o->turn_ns);
	cmd.AddValue("window", "PSNs in flight of a queue pair at most", o->window);
	cmd.AddValue("warm", "time before the measurement, ns", o->warm_ns);
	cmd.AddValue("run", "time measured, ns", o->run_ns);
	cmd.AddValue("intervals", "parts of the measurement", o->intervals);
	cmd.AddValue("seed", "of everything random", o->seed);
	cmd.AddValue("oracle", "validate the whole network after each interval", o->oracle);
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
	check_in("window", o.window, 4, 1u << 16);
	if (o.window & (o.window - 1))
		wrong("--window=" + std::to_string(o.window) + " is no power of two");
	check_in("run", o.run_ns, 1, UINT64_C(1) << 40);
	check_in("warm", o.warm_ns, 0, UINT64_C(1) << 40);
	check_in("intervals", o.intervals, 1, o.run_ns);
	if (!o.flit_bytes)
		check_in("rate", o.bits_per_s, UR_CC_LINK_BPS_MIN, UR_CC_LINK_BPS_MAX);
	else
		check_in("flit", o.flit_bytes, 1, 125);
}

template <typename T> T named(const std::string &name, const std::vector<const char *> &names)
{
	for (size_t i = 0; i < names.size(); i++)
		if (name == names[i])
			return static_cast<T>(i);
	wrong("'" + name + "' is none of the choices");
}

/* Time of the processor, which other load of the machine does not prolong. */
double cpu_seconds()
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Addresses of peers that can be paced: as many as a host talks to, within a memory that 4096 hosts have. */
constexpr uint32_t DESTINATIONS_MAX = 512;

class Run
{
      public:
	explicit Run(const Options &o) : o_(o)
	{
		topology_ = make_topology();
		pattern_ = sim::make_pattern(o.pattern, topology_->hosts(), o.seed);
		if (!pattern_)
			wrong("there is no pattern '" + o.pattern + "'");
		sim::build(&net_, topology_.get(), host_attr(), switch_attr(), wire_attr(), o.seed);
		workload_ = std::make_unique<sim::Workload>(&net_, pattern_.get(), workload_attr());
	}

	void go()
	{
		double begin = cpu_seconds();

		sim::call_at(0, &sim::Workload::start, workload_.get());
		if (o_.oracle)
			sim::call_at(step_ns(), &Run::check, this);
		ns3::Simulator::Stop(ns3::NanoSeconds(o_.warm_ns + o_.run_ns));
		ns3::Simulator::Run();
		seconds_ = cpu_seconds() - begin;
		account_ = net_.validate();
	}

	void print();

      private:
	uint64_t step_ns() const
	{
		return (o_.warm_ns + o_.run_ns) / o_.intervals + 1;
	}
	void check()
	{
		net_.validate();
		sim::call_at(sim::now_ns() + step_ns(), &Run::check, this);
	}
	enum Source { STAMPS, ROUND_TRIP, ONE_WAY, SWITCHES };
	Source source() const
	{
		return named<Source>(o_.source, {"stamps", "round_trip", "one_way", "switches"});
	}
	std::unique_ptr<sim::Topology> make_topology();
	sim::HostAttr host_attr();
	sim::SwitchAttr switch_attr();
	sim::WireAttr wire_attr();
	sim::WorkloadAttr workload_attr();
	uint64_t link_bps() const
	{
		return o_.flit_bytes ? o_.flit_bytes * UINT64_C(8000000000) : o_.bits_per_s;
	}
	void print_intervals();
	void print_counters();

	Options o_;
	struct ur_cc_attr pacing_ = {};
	sim::Network net_;
	std::unique_ptr<sim::Topology> topology_;
	std::unique_ptr<sim::Pattern> pattern_;
	std::unique_ptr<sim::Workload> workload_;
	sim::Network::Account account_;
	double seconds_ = 0;
};

std::unique_ptr<sim::Topology> Run::make_topology()
{
	if (o_.topology == "dragonfly")
		return sim::make_dragonfly(
			o_.p, o_.a, o_.h,
			named<sim::Detour>(o_.routing, {"minimal", "valiant", "ugal"}), o_.seed);
	if (o_.topology != "tree")
		wrong("there is no topology '" + o_.topology + "'");
	return sim::make_fat_tree(o_.k, o_.n, named<sim::UpPort>(o_.routing, {"ecmp", "dmodk"}),
				  o_.seed);
}

sim::HostAttr Run::host_attr()
{
	sim::HostAttr a;
	static const std::vector<const char *> names = {
#define X(NAME, name, summary) #name,
		UROCE_PACING_MODES(X)
#undef X
	};

	pacing_.mode = named<enum ur_cc_mode>(o_.pacing, names);
	pacing_.link_bps = link_bps();
	pacing_.seed = o_.seed;
	pacing_.ewma = o_.ewma;
	pacing_.init0 = static_cast<uint8_t>(o_.init0);
	pacing_.init1 = static_cast<uint8_t>(o_.init1);
	pacing_.target_ns = o_.target_ns;
	pacing_.round_trip = source() != STAMPS;
	a.told = source() == ONE_WAY	? sim::Told::ONE_WAY
		 : source() == SWITCHES ? sim::Told::SWITCHES
					: sim::Told::NOTHING;
	a.limits = {};
	a.limits.workers = 1;
	a.limits.max_qp = o_.max_qp ? o_.max_qp : topology_->hosts();
	a.limits.max_sge = 1;
	/* Contexts for gaps: what takes several ways arrives in another order. */
	if (!o_.lossless || o_.routing == "valiant" || o_.routing == "ugal") {
		a.limits.loss_slabs = a.limits.loss_slabs_max = 2;
		a.limits.loss_slab_bytes = 32 << 10;
	}
	a.limits.destinations = std::min(a.limits.max_qp, DESTINATIONS_MAX);
	a.pacing = &pacing_;
	a.max_mr = 1;
	a.ackreq_every = o_.ackreq_every;
	a.window = o_.window;
	a.turn_delay_ns = o_.turn_ns;
	a.backlog_ns = 0;
	a.tx_cap = 1;
	return a;
}

sim::SwitchAttr Run::switch_attr()
{
	sim::SwitchAttr a;

	a.queues = named<sim::SwitchAttr::Queues>(o_.queues, {"output", "input"});
	if (a.queues == sim::SwitchAttr::INPUT && (!o_.lossless || o_.ecn_bytes))
		wrong("input-queued switches neither drop nor mark");
	a.queue_bytes = o_.lossless ? 0 : o_.queue_bytes;
	a.ecn_bytes = o_.ecn_bytes;
	return a;
}

sim::WireAttr Run::wire_attr()
{
	sim::WireAttr a;

	a.bits_per_s = o_.bits_per_s;
	a.flit_bytes = o_.flit_bytes;
	a.delay_ns = o_.delay_ns;
	a.cut_through_bytes = o_.cut_through_bytes;
	a.credit_bytes = o_.lossless ? o_.buffer_bytes : 0;
	return a;
}

sim::WorkloadAttr Run::workload_attr()
{
	sim::WorkloadAttr a;

	a.slots = o_.slots;
	a.message_bytes = o_.message_bytes;
	a.mode = named<enum ur_mode>(o_.mode, {"gbn", "reorder", "extended"});
	a.warm_ns = o_.warm_ns;
	a.run_ns = o_.run_ns;
	a.stamps = source() == STAMPS;
	a.intervals = o_.intervals;
	return a;
}

/* ---- results ---- */

double fairness(const std::vector<uint64_t> &x)
{
	double sum = 0, squares = 0;

	for (uint64_t v : x) {
		sum += static_cast<double>(v);
		squares += static_cast<double>(v) * static_cast<double>(v);
	}
	return squares > 0 ? sum * sum / squares / static_cast<double>(x.size()) : 0;
}

void print_times(const char *name, const sim::Histogram &h)
{
	std::printf(" \"%s\": {\"count\": %" PRIu64 ", \"mean\": %.1f, \"p50\": %" PRIu64
		    ", \"p99\": %" PRIu64 ", \"max\": %" PRIu64 "},\n",
		    name, h.count(), h.mean(), h.quantile(0.5), h.quantile(0.99), h.max());
}

void Run::print_intervals()
{
	double ns = static_cast<double>(o_.run_ns) / o_.intervals;

	std::printf(" \"intervals\": [");
	for (size_t i = 0; i < workload_->interval.size(); i++) {
		const sim::Workload::Interval &v = workload_->interval[i];

		std::printf("%s{\"gbps\": %.3f, \"wait_mean_ns\": %.1f, \"wait_max_ns\": %" PRIu64
			    "}",
			    i ? ", " : "", static_cast<double>(v.payload_bytes) * 8 / ns,
			    v.packets ? static_cast<double>(v.wait_sum_ns) /
						static_cast<double>(v.packets)
				      : 0,
			    v.wait_max_ns);
	}
	std::printf("],\n");
}

void Run::print_counters()
{
	uint64_t again = 0, throttles = 0, marked = 0, dropped = 0, memory = 0, timeouts = 0;
	uint64_t samples = 0, outliers = 0;
	struct ur_limits limits = host_attr().limits;
	struct rusage usage;

	for (unsigned h = 0; h < net_.hosts(); h++) {
		struct ur_destinations_view view;
		const struct ur_counters *c = ur_engine_counters(net_.host(h).engine());

		ur_engine_view_destinations(net_.host(h).engine(), &view);
		again += c->retransmitted_packets;
		timeouts += c->local_ack_timeout_err;
		throttles += view.cnt.throttles;
		samples += view.cnt.samples;
		outliers += view.cnt.outliers;
		memory += net_.host(h).memory().bytes();
	}
	for (unsigned s = 0; s < net_.switches(); s++) {
		marked += net_.sw(s).marked;
		dropped += net_.sw(s).dropped;
	}
	getrusage(RUSAGE_SELF, &usage);
	std::printf(" \"retransmitted\": %" PRIu64 ", \"ack_timeouts\": %" PRIu64
		    ", \"samples\": %" PRIu64 ", \"outliers\": %" PRIu64 ", \"throttles\": %" PRIu64
		    ", \"marked\": %" PRIu64 ", \"dropped\": %" PRIu64 ",\n",
		    again, timeouts, samples, outliers, throttles, marked, dropped);
	std::printf(" \"queue_pairs\": %" PRIu64
		    ", \"host_bytes\": %.0f, \"engine_bytes\": %zu, \"rss_mb\": %ld,\n",
		    workload_->queue_pairs, static_cast<double>(memory) / net_.hosts(),
		    ur_engine_size(&limits), usage.ru_maxrss / 1024);
	std::printf(" \"events\": %" PRIu64 ", \"cpu_seconds\": %.2f\n",
		    ns3::Simulator::GetEventCount(), seconds_);
}

void Run::print()
{
	uint64_t received = std::accumulate(workload_->received_bytes.begin(),
					    workload_->received_bytes.end(), UINT64_C(0));
	double gbps = static_cast<double>(received) * 8 / static_cast<double>(o_.run_ns);

	std::printf("{\"topology\": \"%s\", \"hosts\": %u, \"switches\": %u, \"routing\": \"%s\", "
		    "\"queues\": \"%s\", \"pattern\": \"%s\", \"pacing\": \"%s\", \"init0\": %u, "
		    "\"init1\": %u, \"ewma\": %s, \"source\": \"%s\", \"seed\": %" PRIu64 ",\n",
		    o_.topology.c_str(), net_.hosts(), net_.switches(), o_.routing.c_str(),
		    o_.queues.c_str(), o_.pattern.c_str(), o_.pacing.c_str(), o_.init0, o_.init1,
		    o_.ewma ? "true" : "false", o_.source.c_str(), o_.seed);
	std::printf(" \"gbps\": %.3f, \"share_of_links\": %.4f, \"completed\": %" PRIu64
		    ", \"errors\": %" PRIu64 ", \"jain_sent\": %.4f, \"jain_received\": %.4f,\n",
		    gbps, gbps * 1e9 / (static_cast<double>(link_bps()) * net_.hosts()),
		    workload_->completed, workload_->errors, fairness(workload_->sent_bytes),
		    fairness(workload_->received_bytes));
	print_times("wait_ns", workload_->wait);
	print_times("one_way_ns", workload_->one_way);
	print_times("message_ns", workload_->message);
	print_intervals();
	std::printf(" \"bytes\": {\"sent\": %" PRIu64 ", \"received\": %" PRIu64
		    ", \"dropped\": %" PRIu64 ", \"in_switches\": %" PRIu64
		    ", \"on_wires\": %" PRIu64 "},\n",
		    account_.sent, account_.received, account_.dropped, account_.held,
		    account_.flying);
	print_counters();
	std::printf("}\n");
}

} // namespace

int main(int argc, char **argv)
{
	Options o;

	parse(&o, argc, argv);
	check(o);
	ns3::GlobalValue::Bind("SchedulerType", ns3::StringValue("ns3::PriorityQueueScheduler"));
	Run run(o);
	run.go();
	run.print();
	ns3::Simulator::Destroy();
	return 0;
}
