/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_WORLD_H
#define ENGINE_WORLD_H

#include "engine/inside.h"
#include "engine/mgmt.h"

/* What engine_fuzz.c drives: an engine with a connected queue pair of every kind, and its memory. */
#define QPS	  8
#define PD	  3u
#define MR_BYTES  4096u
#define DEPTH	  4
#define FIRST_PSN 0xfffff0u /* wraps early */
#define PEER_QPN  0x77
#define QKEY	  0x1234u
#define POOL	  3 /* of a pool in mode intelligent; the next one is in mode paper */

extern struct ur_engine *engine;
extern struct ur_mem *mem;
extern struct ur_cq cq;
extern struct ur_srq srq;
extern struct ur_qp *qps[QPS];
extern struct ur_ah ah;
extern uint8_t *region; /* a separate allocation, so that ASan knows its bounds */
extern uint32_t key, readonly_key;
extern uint64_t now_ns;

/* Makes all of it anew; the caller frees `region`. */
void make_world(void);

/* Creates queue pair `i` and connects it. */
void make_qp(unsigned i);
/* Brings a queue pair from RESET to RTS. */
void connect_qp(struct ur_qp *qp);

#endif
