/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_OP_H
#define PERF_OP_H

#include <infiniband/verbs.h>

/*
 * What uroce-perf can drive, as lists: names on the command line, in JSON and on the wire (the
 * value of the enum) come from here and nowhere else.
 *
 * X(name, text, verbs opcode, traits)
 */
#define PERF_T_SOURCE 0x01 /* payload travels from the requester */
#define PERF_T_WRITE  0x02 /* lands where the requester says */
#define PERF_T_RECV   0x04 /* consumes a receive and completes it */
#define PERF_T_IMM    0x08 /* carries immediate data: the message number's low 32 bits */
#define PERF_T_FETCH  0x10 /* brings data back (READ, atomics) */
#define PERF_T_ATOMIC 0x20 /* 8 bytes, always */

#define PERF_OPS(X)                                                                                \
	X(WRITE, "write", IBV_WR_RDMA_WRITE, PERF_T_SOURCE | PERF_T_WRITE)                         \
	X(WRITE_IMM, "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM,                                      \
	  PERF_T_SOURCE | PERF_T_WRITE | PERF_T_RECV | PERF_T_IMM)                                 \
	X(READ, "read", IBV_WR_RDMA_READ, PERF_T_FETCH)                                            \
	X(SEND, "send", IBV_WR_SEND, PERF_T_SOURCE | PERF_T_RECV)                                  \
	X(SEND_IMM, "send_imm", IBV_WR_SEND_WITH_IMM, PERF_T_SOURCE | PERF_T_RECV | PERF_T_IMM)    \
	X(SEND_INV, "send_inv", IBV_WR_SEND_WITH_INV, PERF_T_SOURCE | PERF_T_RECV)                 \
	X(CAS, "cas", IBV_WR_ATOMIC_CMP_AND_SWP, PERF_T_FETCH | PERF_T_ATOMIC)                     \
	X(FETCH_ADD, "fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, PERF_T_FETCH | PERF_T_ATOMIC)

/* MIXED stands for all of them but SEND_INV, chosen by perf_plan(). */
enum perf_op {
#define X(name, text, opcode, traits) PERF_OP_##name,
	PERF_OPS(X)
#undef X
		PERF_OP_MIXED,
	PERF_OP_CNT
};

/* X(name, text) */
#define PERF_MODES(X)                                                                              \
	X(BW, "bw")                                                                                \
	X(RATE, "rate")                                                                            \
	X(LAT, "lat")                                                                              \
	X(SOAK, "soak")                                                                            \
	X(CONNECT, "connect")

enum perf_mode {
#define X(name, text) PERF_MODE_##name,
	PERF_MODES(X)
#undef X
		PERF_MODE_CNT
};

#define PERF_TYPES(X)                                                                              \
	X(RC, "rc", IBV_QPT_RC)                                                                    \
	X(UC, "uc", IBV_QPT_UC)                                                                    \
	X(UD, "ud", IBV_QPT_UD)

enum perf_type {
#define X(name, text, qpt) PERF_TYPE_##name,
	PERF_TYPES(X)
#undef X
		PERF_TYPE_CNT
};

/* Names and traits of a valid value. MIXED has the traits of all its members together. */
const char *perf_op_name(enum perf_op op);
unsigned perf_op_traits(enum perf_op op);
enum ibv_wr_opcode perf_op_opcode(enum perf_op op);
const char *perf_mode_name(enum perf_mode mode);
const char *perf_type_name(enum perf_type type);
enum ibv_qp_type perf_type_qpt(enum perf_type type);

#endif
