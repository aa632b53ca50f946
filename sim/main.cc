/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce-ns3: one run of a pattern through a network, see docs/design/ns3.md. Prints one object of JSON.
 */
#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "clock.h"
#include "fault.h"
#include "options.h"
#include "order.h"
#include "processes.h"
#include "topology.h"
#include "workload.h"

extern "C" void ur_assert_fail(const char *expr, const char *file, int line)
{
	std::fprintf(stderr, "at %" PRIu64 " ns: %s:%d: %s\n", sim::now_ns(), file, line, expr);
	std::abort();
}

namespace
{

using sim::named;
using sim::Options;
using sim::wrong;

/* Time of the processor, which other load of the machine does not prolong. */
double cpu_seconds()
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

std::unique_ptr<sim::Topology> make_topology(const Options &o)
{
	if (o.topology == "dragonfly")
		return sim::make_dragonfly(
			o.p, o.a, o.h,
			named<sim::Detour>(o.routing, {"minimal", "valiant", "ugal"}), o.seed);
	if (o.topology != "tree")
		wrong("there is no topology '" + o.topology + "'");
	return sim::make_fat_tree(o.k, o.n, named<sim::UpPort>(o.routing, {"ecmp", "dmodk"}),
				  o.seed);
}

void print_dependencies(const Options &o)
{
	double begin = cpu_seconds();
	std::unique_ptr<sim::Topology> topology = make_topology(o);
	sim::Dependencies d = sim::find_dependencies(*topology);

	std::printf(
		"{\"topology\": \"%s\", \"hosts\": %u, \"switches\": %u, \"routing\": \"%s\", \"lanes\": %u, "
		"\"channels\": %zu, \"dependencies\": %zu, \"cycle\": %s, \"all_arrive\": %s, "
		"\"cpu_seconds\": %.2f}\n",
		o.topology.c_str(), topology->hosts(), topology->switches(), o.routing.c_str(),
		topology->vls(), d.channels, d.edges, d.cycle ? "true" : "false",
		d.all_arrive ? "true" : "false", cpu_seconds() - begin);
}

class Run
{
      public:
	Run(const Options &o, sim::Processes *all)
	    : o_(o), all_(all), net_(all->me(), all->count(), all->cut())
	{
		topology_ = make_topology(o);
		traffic_ = sim::make_traffic(o.pattern, traffic_attr());
		if (!traffic_)
			wrong("there is no pattern '" + o.pattern + "'");
		if (o.down_links > topology_->core().size())
			wrong("this network has " + std::to_string(topology_->core().size()) +
			      " core links");
		sim::build(&net_, topology_.get(), host_attr(), switch_attr(), wire_attr(), o.seed);
		workload_ = std::make_unique<sim::Workload>(&net_, topology_.get(), traffic_.get(),
							    workload_attr());
		fault_ = std::make_unique<sim::Fault>(&net_, topology_.get(), fault_attr(), o.seed);
	}

	void go()
	{
		double begin = cpu_seconds();

		sim::call_at(sim::NETWORK_CONTEXT, 0, &sim::Workload::start, workload_.get());
		sim::call_at(sim::NETWORK_CONTEXT, 0, &sim::Fault::start, fault_.get());
		if (o_.oracle)
			sim::call_at(sim::NETWORK_CONTEXT, step_ns(), &Run::check, this);
		all_->run(&net_, o_.warm_ns + o_.run_ns + o_.drain_ns);
		seconds_ = cpu_seconds() - begin;
		account_ = net_.validate();
		gather();
		sim::Network::balance(account_);
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
		sim::call_at(sim::NETWORK_CONTEXT, sim::now_ns() + step_ns(), &Run::check, this);
	}
	enum Source { STAMPS, ROUND_TRIP, ONE_WAY, SWITCHES };
	Source source() const
	{
		return named<Source>(o_.source, {"stamps", "round_trip", "one_way", "switches"});
	}
	void add_contexts(struct ur_limits *l);
	sim::HostAttr host_attr();
	sim::SwitchAttr switch_attr();
	sim::WireAttr wire_attr();
	sim::WorkloadAttr workload_attr();
	sim::TrafficAttr traffic_attr();
	sim::FaultAttr fault_attr();
	void count();
	void gather();
	void print_intervals();
	void print_counters();

	Options o_;
	sim::Processes *all_;
	struct ur_cc_attr pacing_ = {};
	struct ur_engine_qos qos_ = {};
	sim::Network net_;
	std::unique_ptr<sim::Topology> topology_;
	std::unique_ptr<sim::Traffic> traffic_;
	std::unique_ptr<sim::Workload> workload_;
	std::unique_ptr<sim::Fault> fault_;
	sim::Network::Account account_;
	struct {
		uint64_t again, timeouts, samples, stamped, outliers, throttles, marked, dropped,
			memory;
		uint64_t events, rss_mb, cpu_ms;
	} cnt_ = {};
	double seconds_ = 0;
};

/* For queue pairs with a gap: what takes several ways arrives in another order. */
void Run::add_contexts(struct ur_limits *l)
{
	if (o_.lossless && o_.routing != "valiant" && o_.routing != "ugal" && o_.paths == 1)
		return;
	l->loss_slabs = l->loss_slabs_max = 16;
	l->loss_slab_bytes = 64 << 10;
	l->spray_contexts = o_.paths > 1 ? l->max_qp : 0;
	if (named<enum ur_mode>(o_.mode, {"gbn", "reorder", "extended"}) == UR_MODE_REORDER) {
		l->reorder_slots = 1024;
		l->reorder_slot_bytes = 2048;
		l->reorder_contexts = 64;
	}
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
	pacing_.link_bps = o_.link_bps();
	pacing_.seed = o_.seed;
	pacing_.ewma = o_.ewma;
	pacing_.keep_average = o_.keep_average;
	pacing_.release = o_.release;
	pacing_.init0 = static_cast<uint8_t>(o_.init0);
	pacing_.init1 = static_cast<uint8_t>(o_.init1);
	pacing_.target_ns = o_.target_ns;
	pacing_.round_trip = source() != STAMPS;
	a.told = source() == ONE_WAY	? sim::Told::ONE_WAY
		 : source() == SWITCHES ? sim::Told::SWITCHES
					: sim::Told::NOTHING;
	a.limits = {};
	a.limits.workers = 1;
	a.limits.max_qp = o_.max_qp ? o_.max_qp : topology_->hosts() * o_.flows;
	a.limits.max_sge = 1;
	add_contexts(&a.limits);
	a.limits.destinations =
		std::min(a.limits.max_qp, topology_->hosts()); /* each peer can be paced */
	a.pacing = &pacing_;
	ur_engine_qos_default(&qos_);
	qos_.sched.in_turn = !o_.sparse_first;
	a.qos = &qos_;
	a.max_mr = 1;
	a.ackreq_every = o_.ackreq_every;
	a.repath = o_.repath;
	a.plb = o_.plb;
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

	a.paths = static_cast<uint8_t>(o_.paths);
	a.flows = static_cast<uint8_t>(o_.flows);
	a.mode = named<enum ur_mode>(o_.mode, {"gbn", "reorder", "extended"});
	a.warm_ns = o_.warm_ns;
	a.run_ns = o_.run_ns;
	a.stamps = source() == STAMPS;
	a.intervals = o_.intervals;
	return a;
}

sim::TrafficAttr Run::traffic_attr()
{
	sim::TrafficAttr a = {};

	a.hosts = topology_->hosts();
	a.seed = o_.seed;
	a.slots = o_.slots;
	a.message_bytes = o_.message_bytes;
	a.load = o_.load / 100;
	a.link_bps = o_.link_bps();
	a.end_ns = o_.warm_ns + o_.run_ns;
	return a;
}

sim::FaultAttr Run::fault_attr()
{
	sim::FaultAttr a;

	a.loss = o_.loss / 100;
	a.links = o_.down_links;
	a.at_ns = o_.down_at_ns;
	a.for_ns = o_.down_for_ns;
	a.every_ns = o_.down_every_ns;
	a.reroute_ns = o_.reroute_ns;
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

/* What this process has done. */
void Run::count()
{
	struct rusage usage;

	for (unsigned h = 0; h < net_.hosts(); h++) {
		struct ur_destinations_view view;
		const struct ur_counters *c;

		if (!net_.host(h).is_here())
			continue;
		ur_engine_view_destinations(net_.host(h).engine(), &view);
		c = ur_engine_counters(net_.host(h).engine());
		cnt_.again += c->retransmitted_packets;
		cnt_.timeouts += c->local_ack_timeout_err;
		cnt_.throttles += view.cnt.throttles;
		cnt_.samples += view.cnt.samples;
		cnt_.stamped += view.cnt.net_samples;
		cnt_.outliers += view.cnt.outliers;
		cnt_.memory += net_.host(h).memory().bytes();
	}
	for (unsigned s = 0; s < net_.switches(); s++) {
		cnt_.marked += net_.sw(s).marked;
		cnt_.dropped += net_.sw(s).dropped;
	}
	getrusage(RUSAGE_SELF, &usage);
	cnt_.events = ns3::Simulator::GetEventCount();
	cnt_.rss_mb = static_cast<uint64_t>(usage.ru_maxrss / 1024);
	cnt_.cpu_ms = static_cast<uint64_t>(seconds_ * 1000);
}

/* Adds what all processes have done. */
void Run::gather()
{
	count();
	for (uint64_t *v :
	     {&cnt_.again, &cnt_.timeouts, &cnt_.samples, &cnt_.stamped, &cnt_.outliers,
	      &cnt_.throttles, &cnt_.marked, &cnt_.dropped, &cnt_.memory, &cnt_.events,
	      &cnt_.rss_mb, &cnt_.cpu_ms, &account_.sent, &account_.received, &account_.lost,
	      &account_.dropped, &account_.held, &account_.flying, &account_.lost_frames})
		all_->sum(v, 1);
	workload_->end();
	workload_->gather(all_);
	traffic_->operation.gather(all_);
}

void Run::print_counters()
{
	struct ur_limits limits = host_attr().limits;

	std::printf(" \"retransmitted\": %" PRIu64 ", \"ack_timeouts\": %" PRIu64
		    ", \"samples\": %" PRIu64 ", \"stamped\": %" PRIu64 ", \"outliers\": %" PRIu64
		    ", \"throttles\": %" PRIu64 ", \"marked\": %" PRIu64 ", \"dropped\": %" PRIu64
		    ", \"lost_frames\": %" PRIu64 ",\n",
		    cnt_.again, cnt_.timeouts, cnt_.samples, cnt_.stamped, cnt_.outliers,
		    cnt_.throttles, cnt_.marked, cnt_.dropped, account_.lost_frames);
	std::printf(" \"queue_pairs\": %" PRIu64 ", \"host_bytes\": %.0f, \"engine_bytes\": %zu,\n",
		    workload_->queue_pairs, static_cast<double>(cnt_.memory) / net_.hosts(),
		    ur_engine_size(&limits));
	std::printf(" \"processes\": %u, \"rss_mb\": %" PRIu64 ", \"events\": %" PRIu64
		    ", \"cpu_seconds\": %.2f\n",
		    all_->count(), cnt_.rss_mb, cnt_.events,
		    static_cast<double>(cnt_.cpu_ms) / 1000);
}

void Run::print()
{
	uint64_t received = std::accumulate(workload_->received_bytes.begin(),
					    workload_->received_bytes.end(), UINT64_C(0));
	double gbps = static_cast<double>(received) * 8 / static_cast<double>(o_.run_ns);

	std::printf(
		"{\"topology\": \"%s\", \"hosts\": %u, \"switches\": %u, \"routing\": \"%s\", "
		"\"queues\": \"%s\", \"lossless\": %s, \"pattern\": \"%s\", \"pacing\": \"%s\", \"init0\": %u, "
		"\"init1\": %u, \"ewma\": %s, \"source\": \"%s\", \"seed\": %" PRIu64 ",\n",
		o_.topology.c_str(), net_.hosts(), net_.switches(), o_.routing.c_str(),
		o_.queues.c_str(), o_.lossless ? "true" : "false", o_.pattern.c_str(),
		o_.pacing.c_str(), o_.init0, o_.init1, o_.ewma ? "true" : "false",
		o_.source.c_str(), o_.seed);
	std::printf(" \"gbps\": %.3f, \"share_of_links\": %.4f, \"completed\": %" PRIu64
		    ", \"unfinished\": %" PRIu64 ", \"offered_bytes\": %" PRIu64
		    ", \"completed_bytes\": %" PRIu64 ", \"errors\": %" PRIu64
		    ", \"jain_sent\": %.4f, \"jain_received\": %.4f,\n",
		    gbps, gbps * 1e9 / (static_cast<double>(o_.link_bps()) * net_.hosts()),
		    workload_->completed, traffic_->is_open() ? workload_->unfinished() : 0,
		    workload_->offered_bytes, workload_->completed_bytes, workload_->errors,
		    fairness(workload_->sent_bytes), fairness(workload_->received_bytes));
	print_times("wait_ns", workload_->wait);
	print_times("one_way_ns", workload_->one_way);
	print_times("message_ns", workload_->message);
	print_times("slowdown_1000", workload_->slowdown);
	print_times("operation_ns", traffic_->operation);
	print_intervals();
	std::printf(" \"bytes\": {\"sent\": %" PRIu64 ", \"received\": %" PRIu64
		    ", \"lost\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"in_switches\": %" PRIu64
		    ", \"on_wires\": %" PRIu64 "},\n",
		    account_.sent, account_.received, account_.lost, account_.dropped,
		    account_.held, account_.flying);
	print_counters();
	std::printf("}\n");
}

} // namespace

int main(int argc, char **argv)
{
	std::unique_ptr<sim::Processes> all = sim::Processes::begin(&argc, &argv);
	Options o = sim::read_options(argc, argv);

	if (o.dependencies) {
		if (all->me() == 0)
			print_dependencies(o);
		return 0;
	}
	sim::OrderScheduler::use();
	{
		Run run(o, all.get());

		run.go();
		if (all->me() == 0)
			run.print();
	}
	ns3::Simulator::Destroy();
	return 0;
}
