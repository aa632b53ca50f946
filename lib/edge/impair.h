/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_IMPAIR_H
#define UR_EDGE_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An impaired network inside the port, because many kernels lack netem: loss, duplication,
 * reordering, delay, corruption, ECN marks, and a slow link with a queue before it. The same seed
 * gives the same results. There is one instance for each direction of each worker; no instance
 * (NULL) costs nothing.
 *
 * A packet passes the stages below in order. Each stage has its own random stream, so that a change
 * of one setting does not affect the decisions of the others:
 *   loss -> corruption -> ECN mark -> duplication -> reordering -> link -> delay
 * A copy made by duplication passes the last three stages on its own. Link and delay, including
 * jitter, preserve the order; only the reordering stage changes it.
 *
 * Loss follows the Gilbert-Elliott model. A packet meets the network either in its good state,
 * where the chance of loss is `loss`, or in a burst, where it is `burst_loss`. In the good state
 * each packet begins a burst, as its first, with chance `burst`. The length of a burst is
 * geometrically distributed with mean burst_packets. In the long run burst / (burst + 1 /
 * burst_packets) of the packets are in bursts. IMPAIR-BURST-01
 *
 * The link carries one packet at a time, for as long as its bytes take. Its FIFO queue is measured
 * by the time that it takes to drain: at most that of link_queue_bytes, including the packet on the
 * link.
 *
 * This file is pure logic on opaque packets; impair_pkt.h applies it to the packets of a source.
 * Thread class: one owner (the worker).
 */

/* X(NAME, type, unit, help): docs/design/counters.md */
#define UR_IMPAIR_COUNTERS(X)                                                                      \
	X(PACKETS, COUNTER, "packets", "packets that passed [impair]")                             \
	X(LOST, COUNTER, "packets", "packets dropped on purpose")                                  \
	X(CORRUPTED, COUNTER, "packets", "packets with one bit flipped")                           \
	X(MARKED, COUNTER, "packets", "packets marked ECN CE")                                     \
	X(NOT_ECT, COUNTER, "packets", "packets chosen for marking that are not ECN-capable")      \
	X(DUPLICATED, COUNTER, "packets", "packets duplicated")                                    \
	X(REORDERED, COUNTER, "packets", "packets held for later ones to overtake")                \
	X(DELAYED, COUNTER, "packets", "packets delayed")                                          \
	X(HOLD_FULL, COUNTER, "packets", "packets not held because too many were held already")    \
	X(OVERFLOW, COUNTER, "packets", "packets dropped because the delay line was full")         \
	X(NO_MEMORY, COUNTER, "packets", "packets not copied or corrupted for lack of a buffer")   \
	X(LINK_PACKETS, COUNTER, "packets", "packets sent over the slow link")                     \
	X(LINK_BYTES, COUNTER, "bytes", "bytes on the wire of the slow link")                      \
	X(LINK_DROPPED, COUNTER, "packets",                                                        \
	  "packets dropped because the slow link's queue was full")                                \
	X(LINK_MARKED, COUNTER, "packets", "packets marked ECN CE by the slow link's queue")       \
	X(LINK_WAIT_NS, COUNTER, "nanoseconds",                                                    \
	  "time that packets waited for the slow link, summed")                                    \
	X(LINK_WAIT_MAX_NS, GAUGE, "nanoseconds",                                                  \
	  "longest time that a packet waited for the slow link")                                   \
	X(BURSTS, COUNTER, "bursts", "bursts of loss")

enum ur_impair_counter {
#define X(name, type, unit, help) UR_IMPAIR_##name,
	UR_IMPAIR_COUNTERS(X)
#undef X
		UR_IMPAIR_CNT
};

/* A probability p as floor(p * 2^32). UINT32_MAX means always, 0 means never. */
typedef uint32_t ur_chance;

struct ur_impair_config {
	uint64_t seed;
	ur_chance loss, duplicate, reorder, corrupt, ecn;
	ur_chance burst;	/* that a packet begins a burst; 0: no bursts */
	ur_chance burst_loss;	/* that a packet in a burst is lost */
	uint32_t burst_packets; /* mean length of a burst, lost or not; 0 means 1 */
	uint32_t reorder_gap; /* a packet is held back until this many later ones have passed ... */
	uint64_t reorder_hold_ns; /* ... or for this time, whichever ends first; both 0: off */
	uint64_t delay_ns;	  /* of every packet */
	uint64_t jitter_ns;	  /* plus a uniform random time in [0, jitter_ns] */
	double link_gbps; /* speed of the slow link on the wire; 0: no link, else as for ur_rate_init() */
	uint32_t
		link_queue_bytes; /* limit of its queue; below the longest packet, such packets are lost */
	uint32_t link_ecn_bytes; /* queue depth above which packets are marked CE; 0: never */
	uint32_t hold_max;	 /* capacity of each of the two queues, packets; 0 means 1024 */
};

/*
 * Operations on packets. clone() and flip() return NULL if memory is out: then there is no copy, or
 * the packet stays unchanged. flip() returns the packet to continue with, which may be a copy,
 * because a shared buffer must not be written; it then releases the original. mark_ce() returns
 * true if the packet is ECN-capable and is marked now; it may replace *pkt. wire_bytes() returns
 * the bytes of the packet on a link and is called only if there is one.
 */
struct ur_impair_ops {
	void *(*clone)(void *ctx, void *pkt);
	void (*release)(void *ctx, void *pkt);
	void *(*flip)(void *ctx, void *pkt, uint64_t random);
	bool (*mark_ce)(void *ctx, void **pkt);
	uint32_t (*wire_bytes)(void *ctx, void *pkt);
};

struct ur_impair;

/* Converts a probability, clamped to [0, 1]; NaN becomes 0. Example: 0.01 gives 42949672. */
ur_chance ur_impair_chance(double probability);

/* "LOST". Never NULL for a valid value. */
const char *ur_impair_counter_name(unsigned counter);

/* True if the configuration has any effect. */
bool ur_impair_active(const struct ur_impair_config *cfg);

/*
 * Creates an instance. `stream` distinguishes instances of one seed (worker and direction). *cfg is
 * copied; *ops and ctx must outlive the instance. Returns NULL if memory is out.
 */
struct ur_impair *ur_impair_new(const struct ur_impair_config *cfg, uint32_t stream,
				const struct ur_impair_ops *ops, void *ctx);
/* Releases all packets held, and frees the instance. NULL is allowed. */
void ur_impair_free(struct ur_impair *imp);

/*
 * Takes over the `n` packets of `in` and writes the packets that leave now, including held ones
 * that are due, to `out`: at most `cap`. Returns their number; the caller owns them. Packets that
 * do not fit stay in the delay line until the next call. `in` and `out` must not overlap. now_ns
 * must not go back.
 */
uint16_t ur_impair_run(struct ur_impair *imp, void *const *in, uint16_t n, void **out, uint16_t cap,
		       uint64_t now_ns);

/* The time at which to call ur_impair_run(), with n = 0, for the next held packet; else UINT64_MAX. */
uint64_t ur_impair_next_deadline(const struct ur_impair *imp);

/* Number of packets held. */
uint32_t ur_impair_held(const struct ur_impair *imp);

/* UR_IMPAIR_CNT counters. Other threads may read them; values may differ by one packet. */
const uint64_t *ur_impair_counters(const struct ur_impair *imp);

#ifdef __cplusplus
}
#endif

#endif
