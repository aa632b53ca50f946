/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_IMPAIR_H
#define UR_EDGE_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A bad network inside the port, because many kernels have no netem: loss, duplication,
 * reordering, delay, corruption and ECN marks, the same for the same seed, and a slow link with a
 * queue in front of it. One instance for each direction of each worker; none (NULL) costs nothing.
 *
 * A packet passes these stages in order, each with a random stream of its own, so that turning one
 * knob leaves the choices of the others as they were:
 *   loss -> corruption -> ECN mark -> duplication -> reordering -> link -> delay
 * A copy made by duplication goes through the last three on its own. Link and delay keep the order,
 * jitter too: only reordering reorders.
 *
 * Loss is Gilbert's and Elliott's: each packet finds the network in its good state, where `loss` of
 * them are dropped, or in a burst, where `burst_loss` are. A packet in the good state begins a
 * burst with chance `burst` and is its first; a burst lasts burst_packets on average,
 * geometrically. In the long run burst / (burst + 1 / burst_packets) of the packets are in bursts.
 * IMPAIR-BURST-01
 *
 * The link carries one packet after the other, each for the time of its bytes. Its queue is first
 * in, first out, and measured by the time that it takes to leave: link_queue_bytes of it at most,
 * what is on the link included.
 *
 * This file is pure logic over opaque packets; impair_mbuf.h fits it to mbufs.
 * Thread class: none; one owner (the worker).
 */

/* X(name, text): the counters */
#define UR_IMPAIR_COUNTERS(X)                                                                      \
	X(PACKETS, "packets seen")                                                                 \
	X(LOST, "dropped on purpose")                                                              \
	X(CORRUPTED, "one bit flipped")                                                            \
	X(MARKED, "marked congestion experienced")                                                 \
	X(NOT_ECT, "chosen for a mark but not ECN-capable")                                        \
	X(DUPLICATED, "doubled")                                                                   \
	X(REORDERED, "held back for later ones")                                                   \
	X(DELAYED, "delayed")                                                                      \
	X(HOLD_FULL, "not held back: too many are")                                                \
	X(OVERFLOW, "dropped: the delay line is full")                                             \
	X(NO_MEMORY, "not copied or corrupted for lack of a buffer")                               \
	X(LINK_PACKETS, "sent over the slow link")                                                 \
	X(LINK_BYTES, "their bytes on the wire")                                                   \
	X(LINK_DROPPED, "dropped: the slow link's queue is full")                                  \
	X(LINK_MARKED, "marked congestion experienced by the slow link's queue")                   \
	X(LINK_WAIT_NS, "time that packets waited for the slow link, all together")                \
	X(LINK_WAIT_MAX_NS, "the longest of these times")                                          \
	X(BURSTS, "bursts of loss")

enum ur_impair_counter {
#define X(name, text) UR_IMPAIR_##name,
	UR_IMPAIR_COUNTERS(X)
#undef X
		UR_IMPAIR_CNT
};

/* A probability p as floor(p * 2^32); UINT32_MAX is certainty, 0 switches off. */
typedef uint32_t ur_chance;

struct ur_impair_config {
	uint64_t seed;
	ur_chance loss, duplicate, reorder, corrupt, ecn;
	ur_chance burst;	  /* that a packet begins a burst; 0: there are none */
	ur_chance burst_loss;	  /* of packets in a burst */
	uint32_t burst_packets;	  /* of a burst, lost or not, on average; 0 is 1 */
	uint32_t reorder_gap;	  /* a packet held back waits for so many later ones ... */
	uint64_t reorder_hold_ns; /* ... or so long, whichever ends first; 0 of both switches off */
	uint64_t delay_ns;	  /* of every packet */
	uint64_t jitter_ns;	  /* plus a uniform share of [0, jitter_ns] */
	double link_gbps;	  /* the slow link, on the wire; 0: none, else as ur_rate_init() */
	uint32_t link_queue_bytes; /* more are dropped; less than the longest packet: all are */
	uint32_t link_ecn_bytes;   /* who finds more is marked; 0: nobody */
	uint32_t hold_max;	   /* packets in each of the two queues; 0 is 1024 */
};

/*
 * What is done to a packet. clone() and flip() return NULL when there is no memory: no copy is
 * made then, and the packet stays as it is. flip() returns the packet to go on with, which need not
 * be the one it got (a shared buffer must not be written to; the old one is then its business).
 * mark_ce() returns whether the packet was ECN-capable and is marked now; *pkt may be replaced.
 * wire_bytes() is how many bytes the packet takes on a link; not called without one.
 */
struct ur_impair_ops {
	void *(*clone)(void *ctx, void *pkt);
	void (*release)(void *ctx, void *pkt);
	void *(*flip)(void *ctx, void *pkt, uint64_t random);
	bool (*mark_ce)(void *ctx, void **pkt);
	uint32_t (*wire_bytes)(void *ctx, void *pkt);
};

struct ur_impair;

/* 0.01 -> 42949672. Clamped to [0, 1]; not a number is 0. */
ur_chance ur_impair_chance(double probability);

/* "lost"; "dropped on purpose". Never NULL for a valid value. */
const char *ur_impair_counter_name(unsigned counter);
const char *ur_impair_counter_text(unsigned counter);

/* Whether the configuration does anything at all. */
bool ur_impair_active(const struct ur_impair_config *cfg);

/*
 * A new instance; `stream` tells instances of one seed apart (worker and direction). *cfg is
 * copied, *ops and ctx must outlive the instance. NULL: no memory.
 */
struct ur_impair *ur_impair_new(const struct ur_impair_config *cfg, uint32_t stream,
				const struct ur_impair_ops *ops, void *ctx);
/* Releases every packet held, and the instance. NULL is fine. */
void ur_impair_free(struct ur_impair *imp);

/*
 * Takes over the n packets of in and writes those that come out now, held ones that are due among
 * them, to out: at most `cap`, returns how many. The caller owns those. What does not fit waits in
 * the delay line and comes with the next call. `in` and `out` must not overlap. now_ns must not go
 * back.
 */
uint16_t ur_impair_run(struct ur_impair *imp, void *const *in, uint16_t n, void **out, uint16_t cap,
		       uint64_t now_ns);

/* When a held packet comes due; UINT64_MAX for never. Call ur_impair_run with n = 0 then. */
uint64_t ur_impair_next_deadline(const struct ur_impair *imp);

/* Packets held now. */
uint32_t ur_impair_held(const struct ur_impair *imp);

/* UR_IMPAIR_CNT counters; other threads may read them (torn by at most a packet). */
const uint64_t *ur_impair_counters(const struct ur_impair *imp);

#endif
