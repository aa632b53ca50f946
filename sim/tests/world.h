/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_WORLD_H
#define UR_NS3_WORLD_H

#include <cstdint>

#include "fault.h"
#include "topology.h"
#include "traffic.h"
#include "workload.h"

/* A network and its load, as the tests run them. */
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
	bool repath = true, plb = true;
	sim::FaultAttr fault;
};

/* What a run is judged by, and what two runs of the same case must have in common. */
struct Outcome {
	uint64_t completed, errors, again, sent, received, dropped, marked, late, throttles;
	uint64_t operations, lost, quarter;    /* quarter: packets in the last one */
	uint64_t unfinished, unfinished_bytes; /* of arrivals */

	bool operator==(const Outcome &o) const
	{
		return completed == o.completed && again == o.again && sent == o.sent &&
		       received == o.received && dropped == o.dropped && marked == o.marked &&
		       late == o.late && throttles == o.throttles;
	}
};

/* Of 256 Gb/s, and 50 us of arrivals. */
sim::TrafficAttr traffic_of(const sim::Topology &t, uint32_t slots = 16);

/* Runs a case with traffic of that name (nullptr: Case::shift), and checks conservation at twenty moments. */
Outcome run(sim::Topology *t, const char *traffic, const Case &c);

#endif
