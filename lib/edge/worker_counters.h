/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_WORKER_COUNTERS_H
#define UR_EDGE_WORKER_COUNTERS_H

#include <stdint.h>

#include "wire/packet.h"

/* Counters of the edge, in addition to the engine's. X(name, unit, help): docs/design/counters.md */
#define UR_WORKER_COUNTERS(X)                                                                      \
	X(rx_frames, "frames", "Ethernet frames received")                                         \
	X(tx_frames, "frames", "Ethernet frames handed to the port")                               \
	X(handed_over, "packets", "packets passed to the worker of their queue pair")              \
	X(handover_full, "packets", "packets lost because another worker's ring was full")         \
	X(loopback, "packets", "packets from this endpoint to itself")                             \
	X(no_mbuf, "times", "times that no packet buffer was free")                                \
	X(rate_waits, "times", "times that packets had to wait for [port] rate_gbps")              \
	X(other_frames, "frames", "frames received that are not RoCEv2")                           \
	X(cross_cqe_full, "completions", "completions lost on the way to another worker")

struct ur_worker_counters {
#define X(name, unit, help) uint64_t name;
	UR_WORKER_COUNTERS(X)
#undef X
	uint64_t drops[UR_DROP_CNT]; /* before the engine: decode, address, ICRC */
};

#endif
