/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "engine/inside.h"

/*
 * Two engines joined in memory, for figures that are the same on every run: no DPDK, no clock (time
 * is a number that advances with each step), no threads. A packet passes the same steps as in a
 * worker: headers, copy of the payload, ICRC, decoding, check of the ICRC, input.
 *
 * Thread class: one thread.
 */
#define PAIR_DEPTH   64 /* send and receive queue of a queue pair */
#define PAIR_AHEAD   32 /* receives that side 1 has posted ahead of the SENDs */
#define PAIR_BURST   (PAIR_DEPTH - PAIR_AHEAD) /* SENDs that may be posted at once */
#define PAIR_QPS_MAX (1 << 14)

struct pair_attr {
	uint32_t qps; /* queue pairs on each side, connected by index, in [1, PAIR_QPS_MAX] */
	enum ur_mode mode;
	enum ibv_mtu mtu;
	uint32_t buffer_bytes; /* size of the region on each side */
};

struct pair_end {
	struct ur_engine *engine;
	struct ur_mem *mem;
	struct ur_cq cq;
	uint8_t *buffer;
	uint32_t key;
	struct ur_qp **qp;
	size_t engine_bytes, rings_bytes; /* handed to the engine; the second of each queue pair */
};

struct pair {
	struct pair_end end[2];
	uint64_t now_ns;
	uint64_t packets;      /* packets between the sides, ACKs included */
	uint64_t data_packets; /* of these, those from side 0 */
	uint8_t *frames;       /* of the burst that is being carried */
	uint32_t buffer_bytes;
};

/* On failure ends the program with an error message. */
void pair_init(struct pair *p, const struct pair_attr *attr);
void pair_free(struct pair *p);

/*
 * Posts one signalled request of `len` bytes to queue pair `i` of side 0 and, for a SEND, another receive
 * at side 1, behind those that it has posted ahead: so the requester has credits, as from any application that does not
 * want to lose time.
 */
void pair_post(struct pair *p, uint32_t i, enum ibv_wr_opcode opcode, uint32_t len);
/* Moves packets both ways until neither side has anything to send. */
void pair_settle(struct pair *p);
/* Polls all completions of side 0, which must be successful; returns their number. */
unsigned pair_completions(struct pair *p);

/*
 * Number of events that do not happen while packets arrive in order: packets sent again, early
 * packets, contexts taken, probes, timeouts.
 */
uint64_t pair_trouble(const struct pair *p);

/* Converts a name such as "write" to IBV_WR_RDMA_WRITE; false if it is unknown. */
bool pair_opcode(const char *name, enum ibv_wr_opcode *opcode);
bool pair_mode(const char *name, enum ur_mode *mode);

#endif
