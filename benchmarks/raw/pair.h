/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "engine/inside.h"

/*
 * Two engines joined in memory, for figures that have to be the same on every run: no DPDK, no
 * clock (time is a number that goes on with each step), no thread. A packet takes the way that it
 * takes through a worker: headers, payload copied behind them, ICRC, decode, ICRC checked, input.
 *
 * Thread class: one thread.
 */
#define PAIR_DEPTH 64 /* send and receive queue of a queue pair */

struct pair_attr {
	uint32_t qps; /* queue pairs on each side, each connected to its twin, in [1, 2^14] */
	enum ur_mode mode;
	enum ibv_mtu mtu;
	uint32_t buffer_bytes; /* of the region on each side */
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
	uint64_t packets;      /* that went from one side to the other, ACKs included */
	uint64_t data_packets; /* of these, from side 0 */
	uint8_t *frame;
};

/* Ends the program with a sentence when something fails. */
void pair_init(struct pair *p, const struct pair_attr *attr);
void pair_free(struct pair *p);

/* Posts one signalled request of `len` bytes to queue pair `i` of side 0; a SEND's receive too. */
void pair_post(struct pair *p, uint32_t i, enum ibv_wr_opcode opcode, uint32_t len);
/* Moves packets both ways until nobody has anything to send. */
void pair_settle(struct pair *p);
/* Takes all completions of side 0, which must be good; returns how many. */
unsigned pair_completions(struct pair *p);

/* What never happens in order: packets sent again or early, contexts taken, probes, timeouts. */
uint64_t pair_trouble(const struct pair *p);

/* "write" to IBV_WR_RDMA_WRITE; false when it is no operation of ours. */
bool pair_opcode(const char *name, enum ibv_wr_opcode *opcode);
bool pair_mode(const char *name, enum ur_mode *mode);

#endif
