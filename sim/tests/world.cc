/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "clock.h"

extern "C" void ur_assert_fail(const char *expr, const char *file, int line)
{
	std::fprintf(stderr, "at %" PRIu64 " ns: %s:%d: %s\n", sim::now_ns(), file, line, expr);
	std::abort();
}

namespace
{

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

} // namespace

sim::TrafficAttr traffic_of(const sim::Topology &t, uint32_t slots)
{
	sim::TrafficAttr a = {};

	a.hosts = t.hosts();
	a.seed = 5;
	a.slots = slots;
	a.link_bps = 256000000000;
	a.end_ns = 50000;
	return a;
}

Outcome run(sim::Topology *t, const char *name, const Case &c)
{
	sim::TrafficAttr traffic_attr = traffic_of(*t);
	std::unique_ptr<sim::Traffic> traffic =
		name ? sim::make_traffic(name, traffic_attr)
		     : sim::make_closed(std::make_unique<Shift>(t->hosts(), c.shift), traffic_attr);
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
	host.repath = c.repath;
	host.plb = c.plb;
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
		o.unfinished = traffic->is_open() ? w.unfinished() : 0;
		o.unfinished_bytes = w.offered_bytes - w.completed_bytes;
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
