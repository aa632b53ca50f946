/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_WORKER_COUNTERS_H
#define UR_EDGE_WORKER_COUNTERS_H

#include <stdint.h>

#include "wire/packet.h"

/* Counters of the edge, in addition to the engine's. X(name, type, unit, help): docs/design/counters.md */
#define UR_WORKER_COUNTERS(X)                                                                              \
	X(rx_frames, COUNTER, "frames", "Ethernet frames received")                                        \
	X(tx_frames, COUNTER, "frames", "Ethernet frames handed to the port")                              \
	X(handed_over, COUNTER, "packets", "packets passed to the worker of their queue pair")             \
	X(handover_full, COUNTER, "packets",                                                               \
	  "packets lost because another worker's ring was full")                                           \
	X(loopback, COUNTER, "packets", "packets from this endpoint to itself")                            \
	X(gathered, COUNTER, "requests",                                                                   \
	  "requests that waited for others of their series, [worker] gather")                              \
	X(no_mbuf, COUNTER, "times", "times that no packet buffer was free")                               \
	X(rate_waits, COUNTER, "times", "times that packets had to wait for [port] rate_gbps")             \
	X(other_frames, COUNTER, "frames", "frames received that are not RoCEv2")                          \
	X(loss_memory_bytes, GAUGE, "bytes",                                                               \
	  "memory for the contexts of queue pairs with a gap, in use or not")                              \
	X(cross_cqe_full, COUNTER, "completions", "completions lost on the way to another worker")         \
	X(direct_tx, COUNTER, "frames", "frames sent by direct rings of uroced's clients")                 \
	X(direct_rx, COUNTER, "frames", "frames received by direct rings")                                 \
	X(direct_lost, COUNTER, "frames",                                                                  \
	  "frames lost because the other end of a direct ring took less than half of it in a millisecond") \
	X(direct_refused, COUNTER, "frames",                                                               \
	  "frames of direct rings that the other end's lease does not permit")                             \
	X(credit_sessions, COUNTER, "times",                                                               \
	  "times that the other end of the link has begun to give credits")                                \
	X(credit_silences, COUNTER, "times",                                                               \
	  "times that nothing was heard from the other end of the link for a second")                      \
	X(credit_wait_ns, COUNTER, "ns", "time during which lanes with packets waited for credit")         \
	X(credit_stalls, COUNTER, "times",                                                                 \
	  "times that a lane had no credit for longer than credit_life_ms")

struct ur_worker_counters {
#define X(name, type, unit, help) uint64_t name;
	UR_WORKER_COUNTERS(X)
#undef X
	uint64_t drops[UR_DROP_CNT]; /* before the engine: decode, address, ICRC */
};

#endif
