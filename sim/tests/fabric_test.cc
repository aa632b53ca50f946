/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies, their routing, and the patterns that load them. */
#include <criterion/criterion.h>

#include <algorithm>
#include <cinttypes>
#include <map>
#include <set>

#include "clock.h"
#include "wire/delay.h"
#include "world.h"

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

Test(run, a_tree_of_16_loses_nothing_in_any_pattern)
{
	for (const std::string &name : sim::pattern_names())
		for (auto queues : {sim::SwitchAttr::OUTPUT, sim::SwitchAttr::INPUT})
			for (auto up : {sim::UpPort::ECMP, sim::UpPort::D_MOD_K}) {
				auto t = sim::make_fat_tree(4, 2, up, 1);
				Case c;

				c.queues = queues;
				c.plb = false; /* see a_move_costs_a_few_packets */
				Outcome o = run(t.get(), name.c_str(), c);

				cr_assert_eq(o.dropped + o.again + o.errors, 0u, "%s",
					     name.c_str());
				/* One host can take 900 messages in this time. */
				cr_assert_gt(o.completed, 700u, "%s: %" PRIu64, name.c_str(),
					     o.completed);
				cr_assert_gt(o.late, 300u, "%s: %" PRIu64, name.c_str(), o.late);
			}
}

/* Behind a queue of many round trips, packets of a new path overtake by more than the reordering window, now and then. */
Test(run, a_move_costs_a_few_packets)
{
	for (auto queues : {sim::SwitchAttr::OUTPUT, sim::SwitchAttr::INPUT}) {
		auto t = sim::make_fat_tree(4, 2, sim::UpPort::ECMP, 1);
		Case c;

		c.queues = queues;
		Outcome o = run(t.get(), "incast", c);

		cr_assert_eq(o.dropped + o.errors, 0u);
		cr_assert_lt(o.again, o.completed / 50, "%" PRIu64 " of %" PRIu64, o.again,
			     o.completed);
	}
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

Heard listen(sim::Told told, bool stamps, bool round_trip, uint64_t run_ns = 300000)
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
	host.plb = false; /* what is overtaken gives no sample */
	host.turn_delay_ns = 10;
	host.ackreq_every = 1;
	wire.flit_bytes = 32;
	wire.delay_ns = 500;
	wire.credit_bytes = 16384;
	load.stamps = stamps;
	load.run_ns = run_ns;
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
	/* An open destination hears only what it asks: one packet in 128. */
	Heard stamped = listen(sim::Told::NOTHING, true, false, 6000000);

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
	c.shift =
		2; /* in a ring of five, each frame waits for room that a frame going as far has */
	o = run(ring.get(), nullptr, c);
	cr_assert_gt(o.sent, 0u);
	cr_assert_eq(o.completed, 0u);
	cr_assert_eq(o.late, 0u);
	o = run(tree.get(), nullptr, c);
	cr_assert_gt(o.late, 5000u, "%" PRIu64, o.late);
}
