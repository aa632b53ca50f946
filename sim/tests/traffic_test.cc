/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic besides patterns, slowdown, and faults. */
#include <criterion/criterion.h>

#include <algorithm>
#include <cinttypes>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "clock.h"
#include "world.h"

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
	bool is_here(uint32_t) const override
	{
		return true;
	}
	void tell(uint32_t, uint32_t to, uint32_t kind, uint32_t tag) override
	{
		told_.push_back({to, kind, tag});
	}
	void start(sim::Traffic *t)
	{
		t->start(this);
		hear(t);
	}
	void complete(sim::Traffic *t, unsigned left)
	{
		for (; left && !waiting_.empty(); left--) {
			Sent s = waiting_.front();

			waiting_.pop_front();
			t->completed(s.src, s.dst, s.tag);
			hear(t);
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
	struct Told {
		uint32_t host, kind, tag;
	};

	void hear(sim::Traffic *t)
	{
		while (!told_.empty()) {
			Told told = told_.front();

			told_.pop_front();
			t->told(told.host, told.kind, told.tag);
		}
	}

	std::deque<Sent> waiting_;
	std::deque<Told> told_;
};

} // namespace

Test(traffic, a_ring_sends_each_part_twice_around)
{
	auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	auto ring = sim::make_traffic("ring_allreduce", traffic_of(*t, 1));
	std::set<uint32_t> from, to;
	Instant s;

	s.start(ring.get());
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

	s.start(tree.get());
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
		bool is_here(uint32_t) const override
		{
			return true;
		}
		void tell(uint32_t, uint32_t, uint32_t, uint32_t) override
		{
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

namespace
{

/* Messages of host 0 to one other, all at once. */
class Burst : public sim::Traffic
{
      public:
	Burst(uint32_t dst, std::vector<uint32_t> bytes) : dst_(dst), bytes_(std::move(bytes))
	{
	}
	void start(sim::Sender *s) override
	{
		for (uint32_t n : bytes_)
			s->send(0, dst_, n, 0);
	}
	void completed(uint32_t, uint32_t, uint32_t) override
	{
	}
	uint32_t most_bytes() const override
	{
		return *std::max_element(bytes_.begin(), bytes_.end());
	}
	bool is_open() const override
	{
		return true;
	}

      private:
	uint32_t dst_;
	std::vector<uint32_t> bytes_;
};

/* What becomes of them in a network that is idle otherwise. `look` is called when the run is over. */
void run_burst(sim::Topology *t, Burst *burst, sim::WorkloadAttr load,
	       const std::function<void(sim::Workload &)> &look)
{
	sim::HostAttr host;
	sim::WireAttr wire;
	sim::Network net;

	host.limits.max_qp = t->hosts() * load.flows;
	host.turn_delay_ns = 10;
	host.ackreq_every = 1;
	wire.flit_bytes = 32;
	wire.delay_ns = 50;
	wire.cut_through_bytes = 64;
	wire.credit_bytes = 16384;
	sim::build(&net, t, host, sim::SwitchAttr(), wire, 5);
	{
		sim::Workload w(&net, t, burst, load);

		w.start();
		ns3::Simulator::Stop(ns3::NanoSeconds(load.run_ns));
		ns3::Simulator::Run();
		w.end();
		look(w);
	}
	ns3::Simulator::Destroy();
}

} // namespace

/* A message alone: the network is idle, and its slowdown is 1. */
Test(traffic, the_ideal_time_is_that_of_a_message_alone)
{
	for (enum ur_mode mode : {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED})
		for (uint32_t dst : {1u, 5u, 19u})
			for (uint32_t bytes : {1u, 2048u, 2049u, 5000u, 100000u}) {
				auto t = dst == 19 ? sim::make_dragonfly(1, 4, 1,
									 sim::Detour::NEVER, 1)
						   : sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
				Burst single(dst, {bytes});
				sim::WorkloadAttr load;

				load.mode = mode;
				run_burst(t.get(), &single, load, [&](sim::Workload &w) {
					cr_assert_eq(w.message.count(), 1u);
					cr_assert_eq(w.slowdown.count(), 1u);
					cr_assert(w.slowdown.max() >= 980 &&
							  w.slowdown.max() <= 1020,
						  "mode %d, %u bytes to %u: %" PRIu64, mode, bytes,
						  dst, w.slowdown.max());
				});
			}
}

/* A queue pair keeps the order of its messages, so a short one waits for a long one before it, unless it has another. */
Test(traffic, with_several_flows_a_short_message_does_not_wait_for_a_long_one)
{
	uint64_t most[2];

	for (uint8_t flows : {1, 2}) {
		auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
		Burst burst(5, {1000000, 1000});
		sim::WorkloadAttr load;

		load.flows = flows;
		run_burst(t.get(), &burst, load, [&](sim::Workload &w) {
			cr_assert_eq(w.queue_pairs, 2u * flows);
			cr_assert_eq(w.unfinished() + w.errors, 0u);
			most[flows - 1] = w.slowdown.max();
		});
	}
	cr_assert_gt(most[0], 50000u, "%" PRIu64, most[0]);
	cr_assert_lt(most[1], 3000u, "%" PRIu64, most[1]);
}

/* A message of which the run does not see the end is as slow as it is by then: a percentile must not forget it. */
Test(traffic, what_has_not_completed_counts_as_slow)
{
	auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
	Burst burst(5, {1000000, 1000});
	sim::WorkloadAttr load;

	load.run_ns = 20000;
	load.intervals = 1;
	run_burst(t.get(), &burst, load, [&](sim::Workload &w) {
		cr_assert_eq(w.unfinished(), 2u);
		cr_assert_eq(w.message.count(), 0u);
		cr_assert_eq(w.slowdown.count(), 2u);
		cr_assert_gt(w.slowdown.max(), 15000u, "%" PRIu64, w.slowdown.max());
	});
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
 * Each host sends to one of another leaf, and ECMP puts several of the four flows of a leaf on one uplink. In extended mode they
 * part by themselves, with every seed.
 */
Test(run, flows_that_share_a_link_part)
{
	uint64_t before = 0, after = 0;

	for (uint64_t seed = 1; seed <= 4; seed++)
		for (enum ur_mode mode : {UR_MODE_GBN, UR_MODE_EXTENDED}) {
			Outcome shared, parted;
			Case c;

			c.run_ns = 400000;
			c.shift = 4;
			c.mode = mode;
			c.plb = false;
			shared = run(sim::make_fat_tree(4, 2, sim::UpPort::ECMP, seed).get(),
				     nullptr, c);
			c.plb = true;
			parted = run(sim::make_fat_tree(4, 2, sim::UpPort::ECMP, seed).get(),
				     nullptr, c);
			cr_assert_eq(shared.errors + parted.errors, 0u);
			if (mode == UR_MODE_GBN) {
				cr_assert(shared == parted);
				continue;
			}
			cr_assert_gt(parted.quarter, shared.quarter,
				     "seed %" PRIu64 ": %" PRIu64 " %" PRIu64, seed, parted.quarter,
				     shared.quarter);
			before += shared.quarter;
			after += parted.quarter;
		}
	cr_assert_gt(after, before * 5 / 4, "%" PRIu64 " %" PRIu64, after, before);
}

/*
 * One of sixteen core links dies. Without help what is hashed to it stands still, as long as ports are kept; routing that learns of it
 * uses the others; and so do a queue pair that takes another port and one that sprays, by themselves.
 */
Test(run, a_dead_core_link_is_avoided)
{
	auto tree = [] { return sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1); };
	Outcome whole, dead, learned, repathed, sprayed;
	Case c;

	c.lossless = false;
	c.queue_bytes = 1 << 20;
	c.run_ns = 400000;
	c.shift = 4; /* to another leaf */
	whole = run(tree().get(), nullptr, c);
	c.fault.links = 1;
	c.fault.at_ns = 100000;
	c.repath = false;
	dead = run(tree().get(), nullptr, c);
	c.fault.reroute_ns = 20000;
	learned = run(tree().get(), nullptr, c);
	c.fault.reroute_ns = 0;
	c.repath = true;
	repathed = run(tree().get(), nullptr, c);
	c.paths = 16;
	sprayed = run(tree().get(), nullptr, c);
	cr_assert_eq(whole.lost + whole.errors + dead.errors + learned.errors + repathed.errors +
			     sprayed.errors,
		     0u);
	cr_assert(dead.lost && learned.lost && repathed.lost && sprayed.lost);
	cr_assert_lt(dead.quarter, whole.quarter * 97 / 100, "%" PRIu64 " %" PRIu64, dead.quarter,
		     whole.quarter);
	cr_assert_gt(learned.quarter, dead.quarter, "%" PRIu64 " %" PRIu64, learned.quarter,
		     dead.quarter);
	cr_assert_gt(repathed.quarter, dead.quarter, "%" PRIu64 " %" PRIu64, repathed.quarter,
		     dead.quarter);
	/*
	 * 0.87. Acknowledgements are sprayed as well, so that no message is held up for ever; a part of them is lost as long as
	 * the link is dead, and when it is the last of 16 messages outstanding the sender waits for its probe, 1 ms.
	 */
	cr_assert_gt(sprayed.quarter, whole.quarter * 17 / 20, "%" PRIu64 " %" PRIu64,
		     sprayed.quarter, whole.quarter);
}

/*
 * The link is dead for data and for acknowledgements, for ever, and routing does not learn of it. With one path what is hashed
 * to it stands still, while a message of a queue pair that sprays needs no more than another packet.
 */
Test(run, spraying_completes_what_a_dead_link_holds_up)
{
	uint64_t unfinished[2];

	for (uint8_t paths : {1, 16}) {
		Case c;

		c.lossless = false;
		c.queue_bytes = 1 << 22;
		c.run_ns = 40000000; /* arrivals in 50 us of that; timeouts double from 1 ms */
		c.paths = paths;
		c.repath = false;
		c.fault.links = 1;
		c.fault.at_ns = 10000;
		Outcome o = run(sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1).get(), "storage", c);

		cr_assert(o.lost && !o.errors && o.completed > 100, "%" PRIu64, o.completed);
		cr_assert_geq(o.unfinished_bytes, o.unfinished);
		cr_assert_eq(!o.unfinished, !o.unfinished_bytes);
		unfinished[paths > 1] = o.unfinished;
	}
	cr_assert(unfinished[0] && !unfinished[1], "%" PRIu64 " %" PRIu64, unfinished[0],
		  unfinished[1]);
}

/*
 * REPATH-REQ-01, REPATH-RSP-01. The same link, one port at a time, in each mode: a timeout changes it. With go-back-N a queue pair that
 * has not measured a round trip has only its eight local ACK timeouts for finding two ports that work.
 */
Test(run, another_port_completes_what_a_dead_link_holds_up)
{
	for (enum ur_mode mode : {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED}) {
		uint64_t unfinished[2];

		for (bool repath : {false, true}) {
			Case c;

			c.lossless = false;
			c.queue_bytes = 1 << 22;
			c.run_ns = 600000000;
			c.mode = mode;
			c.repath = repath;
			c.fault.links = 1;
			c.fault.at_ns = 10000;
			Outcome o = run(sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1).get(),
					"storage", c);

			cr_assert(o.lost && !o.errors && o.completed > 100, "%" PRIu64,
				  o.completed);
			unfinished[repath] = o.unfinished;
		}
		cr_assert_gt(unfinished[0], 10u, "mode %d: %" PRIu64, mode, unfinished[0]);
		cr_assert_leq(unfinished[1], mode == UR_MODE_GBN ? unfinished[0] / 10 : 0,
			      "mode %d: %" PRIu64 " of %" PRIu64, mode, unfinished[1],
			      unfinished[0]);
	}
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
