/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_FAULT_H
#define UR_NS3_FAULT_H

#include <cstdint>
#include <vector>

#include "network.h"
#include "topology.h"

namespace sim
{

struct FaultAttr {
	double loss = 0;     /* part of frames lost, at random: each on its way to its host, once */
	unsigned links = 0;  /* of Topology::core(), chosen at random, that go down together */
	uint64_t at_ns = 0;  /* when they go down first, */
	uint64_t for_ns = 0; /* for how long; 0: they stay down, */
	uint64_t every_ns = 0; /* and again so often; 0: once */
	/* So long after a link goes down or up routing knows it; 0: it never does. */
	uint64_t reroute_ns = 0;
};

/* Faults of a network without credits. Both must outlive it. */
class Fault
{
      public:
	Fault(Network *net, Topology *topology, const FaultAttr &attr, uint64_t seed);
	/* Schedules everything; call it once, at time 0. */
	void start();

      private:
	void set_down(bool down);
	void reroute(bool dead);

	Network *net_;
	Topology *topology_;
	FaultAttr attr_;
	uint64_t seed_;
	std::vector<size_t> links_;
};

} // namespace sim

#endif
