/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies, their routing, and the patterns that load them. */
#include <criterion/criterion.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <map>
#include <set>

#include "clock.h"
#include "fault.h"
#include "topology.h"
#include "wire/delay.h"
#include "workload.h"

extern "C" void ur_assert_fail(const char *expr, const char *file, int line)
{
	std::fprintf(stderr, "at %" PRIu64 " ns: %s:%d: %s\n", sim::now_ns(), file, line, expr);
	std::abort();
}

/* ---- routing ---- */

static void expect_sound(const sim::Topology &t, const char *name)
{
	sim::Dependencies d = sim::find_dependencies(t);

	cr_assert(d.all_arrive, "%s: a frame may miss its host", name);
	cr_assert_not(d.cycle, "%s: %zu dependencies of %zu channels have a cycle", name, d.edges,
		      d.channels);
	cr_assert_gt(d.edges, 0u, "%s", name);
}

Test(routing, trees_reach_all_hosts_and_cannot_deadlock)
{
	static const unsigned sizes[][2] = {{2, 3}, {4, 2}, {3, 3}, {2, 5}, {4, 3}};

	for (sim::UpPort up : {sim::UpPort::ECMP, sim::UpPort::D_MOD_K})
		for (const unsigned *s : sizes)
			expect_sound(*sim::make_fat_tree(s[0], s[1], up, 1), "tree");
}

Test(routing, the_papers_size_of_tree)
{
	auto t = sim::make_fat_tree(4, 4, sim::UpPort::ECMP, 1);
	sim::Dependencies d;

	cr_assert_eq(t->hosts(), 256u);
	cr_assert_eq(t->switches(), 256u);
	cr_assert_eq(t->links().size(), 3u * 256);
	d = sim::find_dependencies(*t);
	cr_assert(d.all_arrive && !d.cycle);
	cr_assert_eq(d.channels, 2u * 3 * 256);
}

Test(routing, dragonflies_reach_all_hosts_and_cannot_deadlock)
{
	static const unsigned sizes[][3] = {{1, 2, 1}, {2, 2, 1}, {1, 4, 1}, {2, 4, 2}, {1, 3, 3}};

	for (sim::Detour detour : {sim::Detour::NEVER, sim::Detour::VALIANT, sim::Detour::UGAL_L})
		for (const unsigned *s : sizes) {
			auto t = sim::make_dragonfly(s[0], s[1], s[2], detour, 1);
			unsigned groups = s[1] * s[2] + 1;

			cr_assert_eq(t->hosts(), s[0] * s[1] * groups);
			cr_assert_eq(t->links().size(),
				     groups * s[1] * (s[1] - 1) / 2 + groups * (groups - 1) / 2);
			expect_sound(*t, "dragonfly");
		}
}

Test(routing, a_ring_with_one_lane_has_a_cycle)
{
	sim::Dependencies d = sim::find_dependencies(*sim::make_ring(5));

	cr_assert(d.all_arrive);
	cr_assert(d.cycle);
}

/* ---- patterns ---- */

Test(pattern, nobody_sends_to_itself)
{
	for (const std::string &name : sim::pattern_names()) {
		auto p = sim::make_pattern(name, 16, 1);

		for (unsigned i = 0; i < 100; i++)
			for (uint32_t h = 0; h < 16; h++) {
				uint32_t dst = p->next(h);

				cr_assert(dst < 16 && dst != h, "%s: %u to %u", name.c_str(), h,
					  dst);
			}
	}
	cr_assert_null(sim::make_pattern("none such", 16, 1));
}

Test(pattern, a_round_has_every_other_host_once)
{
	for (const char *name : {"uniform_random_seq_gen", "alltoall_round_robin"}) {
		auto p = sim::make_pattern(name, 16, 1);
		std::vector<uint32_t> first, second;

		for (unsigned round = 0; round < 2; round++) {
			std::set<uint32_t> seen;

			for (unsigned i = 0; i < 15; i++) {
				(round ? second : first).push_back(p->next(3));
				seen.insert((round ? second : first).back());
			}
			cr_assert_eq(seen.size(), 15u, "%s", name);
		}
		/* The rounds of the one are random, those of the other are not. */
		cr_assert_eq(first == second, name[0] == 'a', "%s", name);
	}
}

Test(pattern, a_tenth_of_the_hosts_is_hot)
{
	auto p = sim::make_pattern("hot_node", 256, 7);
	std::map<uint32_t, unsigned> seen;

	for (unsigned i = 0; i < 200; i++)
		for (uint32_t h = 0; h < 256; h++)
			seen[p->next(h)]++;
	cr_assert_eq(seen.size(), 25u);
	for (const auto &s : seen)
		cr_assert(s.second > 1500 && s.second < 2600, "%u: %u", s.first, s.second);
}

Test(pattern, a_permutation_has_each_destination_once)
{
	auto p = sim::make_pattern("permutation", 64, 3);
	std::set<uint32_t> seen;

	for (uint32_t h = 0; h < 64; h++) {
		uint32_t dst = p->next(h);

		seen.insert(dst);
		cr_assert_eq(dst, p->next(h));
	}
	cr_assert_eq(seen.size(), 64u);
}

Test(histogram, quantiles_are_within_a_sixty_fourth)
{
	for (uint64_t n : {1u, 30u, 31u, 32u, 33u, 1000u, 100000u}) {
		sim::Histogram h;

		for (uint64_t v = 1; v <= n; v++)
			h.add(v);
		cr_assert_eq(h.max(), n);
		cr_assert_float_eq(h.mean(), static_cast<double>(n + 1) / 2, 1e-6);
		for (double q : {0.1, 0.5, 0.9, 0.99}) {
			double want = std::max(1.0, q * static_cast<double>(n));
			double got = static_cast<double>(h.quantile(q));

			cr_assert(got >= want - 1 && got <= want * 65 / 64 + 2,
				  "%g of %" PRIu64 ": %g", q, n, got);
		}
	}
}

/* ---- runs ---- */

namespace
{

struct Case {
	sim::SwitchAttr::Queues queues = sim::SwitchAttr::OUTPUT;
	enum ur_cc_mode pacing = UR_CC_NONE;
	bool lossless = true;
	uint32_t buffer_bytes = 16384;
	uint64_t run_ns = 60000;
	uint64_t queue_bytes = 30000;
	uint32_t shift = 0; /* without a pattern: each host to the one so many further */
	enum ur_mode mode = UR_MODE_EXTENDED;
	uint8_t paths = 1;
	sim::FaultAttr fault;
};

class Shift : public sim::Pattern
{
      public:
	Shift(uint32_t hosts, uint32_t shift) : hosts_(hosts), shift_(shift)
	{
	}
	uint32_t next(uint32_t host) override
	{
		return (host + shift_) % hosts_;
	}

      private:
	uint32_t hosts_, shift_;
};

sim::TrafficAttr traffic_of(const sim::Topology &t, uint32_t slots = 16)
{
	sim::TrafficAttr a = {};

	a.hosts = t.hosts();
	a.seed = 5;
	a.slots = slots;
	a.link_bps = 256000000000;
	a.end_ns = 50000;
	return a;
}

/* What a run is judged by, and what two runs of the same case must have in common. */
struct Outcome {
	uint64_t completed, errors, again, sent, received, dropped, marked, late, throttles;
	uint64_t operations, lost, quarter; /* quarter: packets in the last one */

	bool operator==(const Outcome &o) const
	{
		return completed == o.completed && again == o.again && sent == o.sent &&
		       received == o.received && dropped == o.dropped && marked == o.marked &&
		       late == o.late && throttles == o.throttles;
	}
};

Outcome run(sim::Topology *t, const char *pattern, const Case &c)
{
	sim::TrafficAttr traffic_attr = traffic_of(*t);
	std::unique_ptr<sim::Traffic> traffic =
		pattern ? sim::make_traffic(pattern, traffic_attr)
			: sim::make_closed(std::make_unique<Shift>(t->hosts(), c.shift),
					   traffic_attr);
	struct ur_cc_attr pacing = {};
	sim::WorkloadAttr load;
	sim::HostAttr host;
	sim::SwitchAttr sw;
	sim::WireAttr wire;
	sim::Network net;
	Outcome o = {};

	pacing.mode = c.pacing;
	pacing.link_bps = 256000000000;
	host.limits.destinations = t->hosts();
	host.limits.max_qp = host.limits.spray_contexts = t->hosts();
	host.pacing = &pacing;
	host.turn_delay_ns = 10;
	host.backlog_ns = 0;
	host.ackreq_every = 1;
	sw.queues = c.queues;
	sw.queue_bytes = c.lossless ? 0 : c.queue_bytes;
	sw.ecn_bytes = c.pacing == UR_CC_DCQCN ? 8000 : 0;
	wire.flit_bytes = 32;
	wire.delay_ns = 50;
	wire.cut_through_bytes = 64;
	wire.credit_bytes = c.lossless ? c.buffer_bytes : 0;
	load.run_ns = c.run_ns;
	load.intervals = 4;
	load.mode = c.mode;
	load.paths = c.paths;
	sim::build(&net, t, host, sw, wire, 5);
	{
		sim::Workload w(&net, t, traffic.get(), load);
		sim::Fault fault(&net, t, c.fault, 5);

		w.start();
		fault.start();
		for (unsigned i = 1; i <= 20; i++) {
			ns3::Simulator::Stop(ns3::NanoSeconds(c.run_ns * i / 20 - sim::now_ns()));
			ns3::Simulator::Run();
			net.validate();
		}
		o.completed = w.completed;
		o.errors = w.errors;
		o.operations = traffic->operation.count();
		o.lost = net.validate().lost_frames;
		o.quarter = w.interval[3].packets;
		o.late = w.interval[2].packets + w.interval[3].packets;
		o.sent = net.validate().sent;
		o.received = net.validate().received;
		for (unsigned h = 0; h < net.hosts(); h++) {
			struct ur_destinations_view view;

			ur_engine_view_destinations(net.host(h).engine(), &view);
			o.throttles += view.cnt.throttles;
			o.again += ur_engine_counters(net.host(h).engine())->retransmitted_packets;
		}
		for (unsigned s = 0; s < net.switches(); s++) {
			o.dropped += net.sw(s).dropped;
			o.marked += net.sw(s).marked;
		}
	}
	ns3::Simulator::Destroy();
	return o;
}

} // namespace

Test(run, a_tree_of_16_loses_nothing_in_any_pattern)
{
	for (const std::string &name : sim::pattern_names())
		for (auto queues : {sim::SwitchAttr::OUTPUT, sim::SwitchAttr::INPUT})
			for (auto up : {sim::UpPort::ECMP, sim::UpPort::D_MOD_K}) {
				auto t = sim::make_fat_tree(4, 2, up, 1);
				Case c;

				c.queues = queues;
				Outcome o = run(t.get(), name.c_str(), c);

				cr_assert_eq(o.dropped + o.again + o.errors, 0u, "%s",
					     name.c_str());
				/* One host can take 900 messages in this time. */
				cr_assert_gt(o.completed, 700u, "%s: %" PRIu64, name.c_str(),
					     o.completed);
				cr_assert_gt(o.late, 300u, "%s: %" PRIu64, name.c_str(), o.late);
			}
}

/* ---- traffic ---- */

namespace
{

/* Completes what is sent, at once and in order, until `left` messages have. */
class Instant : public sim::Sender
{
      public:
	void send(uint32_t src, uint32_t dst, uint32_t, uint32_t tag) override
	{
		sent[{src, dst}]++;
		waiting_.push_back({src, dst, tag});
	}
	void complete(sim::Traffic *t, unsigned left)
	{
		for (; left && !waiting_.empty(); left--) {
			Sent s = waiting_.front();

			waiting_.pop_front();
			t->completed(s.src, s.dst, s.tag);
		}
	}
	size_t waiting() const
	{
		return waiting_.size();
	}
	std::map<std::pair<uint32_t, uint32_t>, unsigned> sent;

      private:
	struct Sent {
		uint32_t src, dst, tag;
	};
	std::deque<Sent> waiting_;
};

} // namespace

Test(traffic, a_ring_sends_each_part_twice_around)
{
	auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	auto ring = sim::make_traffic("ring_allreduce", traffic_of(*t, 1));
	std::set<uint32_t> from, to;
	Instant s;

	ring->start(&s);
	cr_assert_eq(s.waiting(), 16u);
	s.complete(ring.get(), 16 * 30 - 1);
	cr_assert_eq(ring->operation.count(), 0u);
	for (const auto &pair : s.sent) {
		cr_assert_eq(pair.second, 30u);
		from.insert(pair.first.first);
		to.insert(pair.first.second);
	}
	cr_assert(s.sent.size() == 16 && from.size() == 16 && to.size() == 16);
	s.complete(ring.get(), 1);
	cr_assert_eq(ring->operation.count(), 1u);
	cr_assert_eq(s.waiting(), 16u, "the next one has not begun");
}

Test(traffic, a_tree_sends_up_and_down_each_edge)
{
	auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	auto tree = sim::make_traffic("tree_allreduce", traffic_of(*t, 2));
	Instant s;

	tree->start(&s);
	cr_assert_eq(s.waiting(), 2u * 8);
	s.complete(tree.get(), 2 * 2 * 15);
	cr_assert_eq(tree->operation.count(), 2u);
	cr_assert_eq(s.sent.size(), 2u * 15);
	/* What has begun again is the leaves' messages. */
	cr_assert_eq(s.waiting(), 2u * 8);
	for (const auto &pair : s.sent)
		cr_assert_geq(pair.second, 2u);
}

Test(traffic, sizes_are_those_of_the_tables)
{
	const struct {
		const char *name;
		double mean, at, percent;
	} known[] = {{"websearch", 1711250, 1000000, 70},
		     {"hadoop", 120420.75, 1000, 60},
		     {"storage", 40869.8, 8000, 69.21}};

	for (const auto &k : known) {
		const sim::Sizes *sizes = sim::Sizes::find(k.name);
		double sum = 0;

		cr_assert(sizes);
		cr_assert_float_eq(sizes->mean(), k.mean, k.mean / 1e5, "%s: %f", k.name,
				   sizes->mean());
		for (unsigned i = 0; i < 100000; i++)
			sum += sizes->at((i + 0.5) / 100000);
		cr_assert_float_eq(sum / 100000, k.mean, k.mean / 500, "%s: %f", k.name,
				   sum / 100000);
		cr_assert_float_eq(sizes->at(k.percent / 100), k.at, k.at / 1000 + 1);
		cr_assert_eq(sizes->at(0), 1u);
		cr_assert_leq(sizes->at(0.9999999), sizes->most());
	}
	cr_assert_null(sim::Sizes::find("none such"));
}

/* Load: in so many arrivals a host sends its share of the link within a few per cent. */
Test(traffic, poisson_arrivals_have_the_load_that_was_asked_for)
{
	class Count : public sim::Sender
	{
	      public:
		void send(uint32_t src, uint32_t dst, uint32_t bytes, uint32_t) override
		{
			cr_assert(src < 16 && dst < 16 && src != dst);
			all += bytes;
			cnt++;
			last = sim::now_ns();
		}
		double all = 0;
		unsigned cnt = 0;
		uint64_t last = 0;
	} count;
	sim::TrafficAttr a = {};

	a.hosts = 16;
	a.seed = 3;
	a.load = 0.3;
	a.link_bps = 100000000000;
	a.end_ns = 100000000;
	auto t = sim::make_traffic("storage", a);
	t->start(&count);
	ns3::Simulator::Run();
	ns3::Simulator::Destroy();
	cr_assert_float_eq(count.all * 8 / (16 * 0.1), 0.3e11, 0.3e11 / 20, "%g bytes", count.all);
	cr_assert_float_eq(count.cnt, 16 * 0.1 * 0.3e11 / 8 / sim::Sizes::find("storage")->mean(),
			   count.cnt / 20.0);
	cr_assert(count.last < a.end_ns && count.last > a.end_ns * 9 / 10);
}

/* A message alone: the network is idle, and its slowdown is 1. */
Test(traffic, the_ideal_time_is_that_of_a_message_alone)
{
	class Single : public sim::Traffic
	{
	      public:
		Single(uint32_t dst, uint32_t bytes) : dst_(dst), bytes_(bytes)
		{
		}
		void start(sim::Sender *s) override
		{
			s->send(0, dst_, bytes_, 0);
		}
		void completed(uint32_t, uint32_t, uint32_t) override
		{
		}
		uint32_t most_bytes() const override
		{
			return bytes_;
		}

	      private:
		uint32_t dst_, bytes_;
	};

	for (enum ur_mode mode : {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED})
		for (uint32_t dst : {1u, 5u, 19u})
			for (uint32_t bytes : {1u, 2048u, 2049u, 5000u, 100000u}) {
				auto t = dst == 19 ? sim::make_dragonfly(1, 4, 1,
									 sim::Detour::NEVER, 1)
						   : sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
				Single single(dst, bytes);
				sim::WorkloadAttr load;
				sim::HostAttr host;
				sim::WireAttr wire;
				sim::Network net;

				host.limits.max_qp = t->hosts();
				host.turn_delay_ns = 10;
				host.ackreq_every = 1;
				wire.flit_bytes = 32;
				wire.delay_ns = 50;
				wire.cut_through_bytes = 64;
				wire.credit_bytes = 16384;
				load.mode = mode;
				sim::build(&net, t.get(), host, sim::SwitchAttr(), wire, 5);
				{
					sim::Workload w(&net, t.get(), &single, load);

					w.start();
					ns3::Simulator::Stop(ns3::NanoSeconds(900000));
					ns3::Simulator::Run();
					cr_assert_eq(w.slowdown.count(), 1u);
					cr_assert(w.slowdown.max() >= 980 &&
							  w.slowdown.max() <= 1020,
						  "mode %d, %u bytes to %u: %" PRIu64, mode, bytes,
						  dst, w.slowdown.max());
				}
				ns3::Simulator::Destroy();
			}
}

Test(run, all_reduce_and_arrivals_end_on_a_tree_and_a_dragonfly)
{
	for (const std::string &name : sim::traffic_names())
		for (bool tree : {true, false}) {
			auto t = tree ? sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1)
				      : sim::make_dragonfly(1, 4, 1, sim::Detour::UGAL_L, 1);
			Case c;

			c.run_ns = 100000;
			Outcome o = run(t.get(), name.c_str(), c);

			cr_assert_eq(o.dropped + o.errors, 0u, "%s", name.c_str());
			cr_assert_gt(o.completed, name == "websearch" ? 0u : 20u, "%s: %" PRIu64,
				     name.c_str(), o.completed);
			if (name.find("allreduce") != std::string::npos)
				cr_assert_gt(o.operations, 3u, "%s: %" PRIu64, name.c_str(),
					     o.operations);
		}
}

/* ---- faults ---- */

Test(run, each_mode_survives_random_loss)
{
	for (enum ur_mode mode : {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED}) {
		auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
		Case c;

		c.lossless = false;
		c.queue_bytes = 1 << 20;
		c.mode = mode;
		c.run_ns = 100000;
		c.fault.loss = 0.01;
		Outcome o = run(t.get(), "uniform_random", c);

		cr_assert_eq(o.errors + o.dropped, 0u, "mode %d", mode);
		/* One in a hundred of the frames that a host gets, with their acknowledgements. */
		cr_assert(o.lost > o.completed * 2 / 150 && o.lost < o.completed * 2 / 50,
			  "mode %d: %" PRIu64 " of %" PRIu64, mode, o.lost, o.completed);
		cr_assert_gt(o.again, 0u, "mode %d", mode);
		cr_assert_gt(o.completed, 3000u, "mode %d: %" PRIu64, mode, o.completed);
	}
}

/*
 * One of sixteen core links dies. Without help what is hashed to it stands still; routing that learns of it uses the
 * others; and so does a queue pair that sprays, by itself.
 */
Test(run, a_dead_core_link_is_avoided)
{
	auto tree = [] { return sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1); };
	Outcome whole, dead, learned, sprayed;
	Case c;

	c.lossless = false;
	c.queue_bytes = 1 << 20;
	c.run_ns = 400000;
	c.shift = 4; /* to another leaf */
	whole = run(tree().get(), nullptr, c);
	c.fault.links = 1;
	c.fault.at_ns = 100000;
	dead = run(tree().get(), nullptr, c);
	c.fault.reroute_ns = 20000;
	learned = run(tree().get(), nullptr, c);
	c.fault.reroute_ns = 0;
	c.paths = 16;
	sprayed = run(tree().get(), nullptr, c);
	cr_assert_eq(whole.lost + whole.errors + dead.errors + learned.errors + sprayed.errors, 0u);
	cr_assert(dead.lost && learned.lost && sprayed.lost);
	cr_assert_lt(dead.quarter, whole.quarter * 97 / 100, "%" PRIu64 " %" PRIu64, dead.quarter,
		     whole.quarter);
	cr_assert_gt(learned.quarter, dead.quarter, "%" PRIu64 " %" PRIu64, learned.quarter,
		     dead.quarter);
	cr_assert_gt(sprayed.quarter, whole.quarter * 9 / 10, "%" PRIu64 " %" PRIu64,
		     sprayed.quarter, whole.quarter);
}

/* Rerouting never leads into a dead link: nothing is lost once it is known, until the link is up and dies again. */
Test(run, rerouting_loses_nothing_more)
{
	uint64_t lost[2];
	unsigned i = 0;

	for (uint64_t run_ns : {100000, 200000}) {
		Case c;

		c.lossless = false;
		c.queue_bytes = 1 << 20;
		c.run_ns = run_ns;
		c.fault.links = 2;
		c.fault.at_ns = 20000;
		c.fault.reroute_ns = 10000;
		lost[i++] = run(sim::make_fat_tree(2, 4, sim::UpPort::ECMP, 1).get(),
				"uniform_random", c)
				    .lost;
	}
	cr_assert(lost[0] && lost[1] == lost[0], "%" PRIu64 " %" PRIu64, lost[0], lost[1]);
}

Test(run, a_dragonfly_of_20_loses_nothing_in_any_pattern)
{
	for (const std::string &name : sim::pattern_names())
		for (auto queues : {sim::SwitchAttr::OUTPUT, sim::SwitchAttr::INPUT})
			for (sim::Detour detour :
			     {sim::Detour::NEVER, sim::Detour::VALIANT, sim::Detour::UGAL_L}) {
				auto t = sim::make_dragonfly(1, 4, 1, detour, 1);
				Case c;

				c.queues = queues;
				Outcome o = run(t.get(), name.c_str(), c);

				cr_assert_eq(o.dropped + o.errors, 0u, "%s", name.c_str());
				/* Ways of different length change the order, and may look like loss. */
				cr_assert(detour != sim::Detour::NEVER || o.again == 0, "%s",
					  name.c_str());
				cr_assert_gt(o.completed, 700u, "%s: %" PRIu64, name.c_str(),
					     o.completed);
				cr_assert_gt(o.late, 300u, "%s: %" PRIu64, name.c_str(), o.late);
			}
}

/*
 * All hosts of a group send to one other group, by one global link: the shortest way has a quarter of what detours
 * have. Random destinations are the other way round.
 */
Test(run, ugal_takes_the_better_of_two_ways)
{
	uint64_t shift[3], random[3];
	unsigned i = 0;

	for (sim::Detour detour : {sim::Detour::NEVER, sim::Detour::VALIANT, sim::Detour::UGAL_L}) {
		auto t = sim::make_dragonfly(2, 4, 2, detour, 1);
		Case c;

		c.shift = 8;
		shift[i] = run(t.get(), nullptr, c).late;
		random[i++] = run(t.get(), "uniform_random", c).late;
	}
	cr_assert(shift[1] > 2 * shift[0] && shift[2] > 2 * shift[0],
		  "%" PRIu64 " %" PRIu64 " %" PRIu64, shift[0], shift[1], shift[2]);
	cr_assert(random[0] > random[1] && random[2] > random[1],
		  "%" PRIu64 " %" PRIu64 " %" PRIu64, random[0], random[1], random[2]);
}

Test(run, every_algorithm_and_the_same_twice)
{
	for (int pacing = UR_CC_NONE; pacing <= UR_CC_SWIFT; pacing++) {
		auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
		Case c;

		c.pacing = static_cast<enum ur_cc_mode>(pacing);
		Outcome first = run(t.get(), "hot_node", c), second = run(t.get(), "hot_node", c);

		cr_assert(first == second, "algorithm %d", pacing);
		cr_assert_eq(first.errors + first.dropped + first.again, 0u);
		cr_assert_eq(first.marked > 0, pacing == UR_CC_DCQCN, "algorithm %d", pacing);
		cr_assert_gt(first.completed, 500u, "algorithm %d: %" PRIu64, pacing,
			     first.completed);
	}
}

namespace
{

/* Makes every packet ask for delay stamps when it enters the network, as probes do. */
class Ask : public sim::Router
{
      public:
	explicit Ask(sim::Topology *t) : t_(t)
	{
	}
	sim::Hop route(const sim::Switch &sw, unsigned idx, sim::Frame *f) override
	{
		if (f->hops == 1)
			f->bytes[UR_ETH_BYTES + UR_IPV4_BYTES + UR_UDP_BYTES + 4] |= UR_DELAY_ASK;
		return t_->route(sw, idx, f);
	}

      private:
	sim::Topology *t_;
};

} // namespace

/* A stamp counts 16 ns in thirteen bits with an exponent, and each switch rounds down. */
Test(run, stamps_in_packets_are_the_time_in_switches)
{
	auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	auto traffic = sim::make_traffic("hot_node", traffic_of(*t, 64));
	unsigned stamped = 0, most_hops = 0;
	sim::WorkloadAttr load;
	sim::HostAttr host;
	sim::SwitchAttr sw;
	sim::WireAttr wire;
	sim::Network net;
	Ask ask(t.get());

	wire.credit_bytes = 16384;
	load.run_ns = 200000;
	host.limits.max_qp = t->hosts();
	for (unsigned i = 0; i < t->switches(); i++)
		net.add_switch(t->ports(i), sw, &ask);
	for (unsigned i = 0; i < t->hosts(); i++) {
		net.add_host(host, i + 1);
		net.link_host(i, t->host(i).sw, t->host(i).port, wire);
	}
	for (const sim::Topology::Link &l : t->links())
		net.link_switches(l.a, l.a_port, l.b, l.b_port, wire);
	sim::Workload w(&net, t.get(), traffic.get(), load);
	for (unsigned i = 0; i < t->hosts(); i++)
		net.host(i).on_arrival = [&](const sim::Frame &f) {
			struct ur_packet packet;
			uint8_t bytes[UR_HDR_MAX + 4096] = {};
			uint64_t ns;
			unsigned hops;

			std::copy(f.bytes, f.bytes + f.kept, bytes);
			cr_assert_eq(ur_packet_decode(bytes, f.len, &packet), UR_DROP_NONE);
			ns = ur_delay_ns(packet.udp_csum);
			hops = bytes[packet.bth_off + 4] & UR_DELAY_HOPS;
			cr_assert_eq(hops, f.hops);
			cr_assert(ns <= f.wait_ns + 16 &&
					  ns + hops * (16 + f.wait_ns / 4096) >= f.wait_ns,
				  "%" PRIu64 " in the packet, %" PRIu64 " in switches", ns,
				  f.wait_ns);
			stamped += f.wait_ns > 1000;
			most_hops = std::max(most_hops, hops);
		};
	w.start();
	ns3::Simulator::Stop(ns3::NanoSeconds(load.run_ns));
	ns3::Simulator::Run();
	ns3::Simulator::Destroy();
	cr_assert_gt(stamped, 100u);
	cr_assert_eq(most_hops, 3u);
}

namespace
{

/* The mean delay that host 1 has heard of host 0, and the mean time of its packets: in switches, and on their way. */
struct Heard {
	double heard, in_switches, one_way;
	uint64_t samples;
};

Heard listen(sim::Told told, bool stamps, bool round_trip)
{
	auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	auto traffic = sim::make_traffic("incast", traffic_of(*t, 4));
	double in_switches = 0, one_way = 0, cnt = 0;
	struct ur_destination_view view = {};
	struct ur_cc_attr pacing = {};
	sim::WorkloadAttr load;
	sim::HostAttr host;
	sim::WireAttr wire;
	sim::Network net;
	uint32_t cursor = 0;

	pacing.mode = UR_CC_CMDPD; /* its average, with bounds that nothing reaches */
	pacing.init0 = 254;
	pacing.init1 = 255;
	pacing.link_bps = 256000000000;
	pacing.round_trip = round_trip;
	host.limits.destinations = host.limits.max_qp = t->hosts();
	host.pacing = &pacing;
	host.told = told;
	host.turn_delay_ns = 10;
	host.ackreq_every = 1;
	wire.flit_bytes = 32;
	wire.delay_ns = 500;
	wire.credit_bytes = 16384;
	load.stamps = stamps;
	load.run_ns = 300000;
	sim::build(&net, t.get(), host, sim::SwitchAttr(), wire, 5);
	sim::Workload w(&net, t.get(), traffic.get(), load);
	net.host(0).on_arrival = [&](const sim::Frame &f) {
		if (f.src != 1 || !f.data)
			return;
		in_switches += static_cast<double>(f.wait_ns);
		one_way += static_cast<double>(sim::now_ns() - f.sent_ns);
		cnt++;
	};
	w.start();
	ns3::Simulator::Stop(ns3::NanoSeconds(load.run_ns));
	ns3::Simulator::Run();
	cr_assert(ur_engine_next_destination(net.host(1).engine(), &cursor, &view));
	ns3::Simulator::Destroy();
	return {static_cast<double>(view.pacing.average_ns), in_switches / cnt, one_way / cnt,
		view.pacing.samples};
}

} // namespace

/* Sixteen senders to one: the queue is most of the delay, and the way back is idle. */
Test(run, senders_hear_the_delay_that_they_are_to_hear)
{
	Heard ours = listen(sim::Told::NOTHING, false, true);
	Heard in_switches = listen(sim::Told::SWITCHES, false, true);
	Heard one_way = listen(sim::Told::ONE_WAY, false, true);
	Heard stamped = listen(sim::Told::NOTHING, true, false);

	for (const Heard &h : {ours, in_switches, one_way, stamped})
		cr_assert_gt(h.samples, 50u);
	cr_assert_float_eq(in_switches.heard, in_switches.in_switches,
			   in_switches.in_switches / 50);
	cr_assert_float_eq(one_way.heard, one_way.one_way, one_way.one_way / 50);
	/* Three links of 500 ns more each way. */
	cr_assert_gt(one_way.one_way, in_switches.in_switches + 1000);
	cr_assert_gt(ours.heard, one_way.heard + 1000);
	/* Stamps count 16 ns. What is added to them is the round trip without queues. */
	cr_assert_float_eq(stamped.heard, ours.heard, ours.heard / 10);
}

Test(run, full_queues_drop_and_what_they_drop_is_sent_again)
{
	auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	Case c;
	Outcome o;

	c.lossless = false;
	c.run_ns = 200000;
	o = run(t.get(), "incast", c);
	cr_assert_gt(o.dropped, 10u);
	cr_assert_gt(o.again, 10u);
	cr_assert_gt(o.completed, 700u);
	cr_assert_eq(o.errors, 0u);
}

/* The check for cycles is about something: with little room, frames in a ring wait for each other for ever. */
Test(run, a_ring_deadlocks_and_a_tree_does_not)
{
	auto ring = sim::make_ring(5);
	auto tree = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	Case c;
	Outcome o;

	c.queues = sim::SwitchAttr::INPUT;
	c.buffer_bytes = 2500; /* of one frame */
	c.run_ns = 400000;
	o = run(ring.get(), "alltoall_round_robin", c);
	cr_assert_gt(o.completed, 0u);
	cr_assert_eq(o.late, 0u);
	o = run(tree.get(), "alltoall_round_robin", c);
	cr_assert_gt(o.late, 5000u, "%" PRIu64, o.late);
}
