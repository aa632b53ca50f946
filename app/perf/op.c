/* SPDX-License-Identifier: BSD-3-Clause */
#include "op.h"

#define MIXED_TRAITS                                                                               \
	(PERF_T_SOURCE | PERF_T_WRITE | PERF_T_RECV | PERF_T_IMM | PERF_T_FETCH | PERF_T_ATOMIC)

static const struct {
	const char *text;
	enum ibv_wr_opcode opcode;
	unsigned traits;
} ops[] = {
#define X(name, text, opcode, traits) [PERF_OP_##name] = {text, opcode, traits},
	PERF_OPS(X)
#undef X
		[PERF_OP_MIXED] = {"mixed", IBV_WR_SEND, MIXED_TRAITS},
};

static const char *const modes[] = {
#define X(name, text) [PERF_MODE_##name] = text,
	PERF_MODES(X)
#undef X
};

static const struct {
	const char *text;
	enum ibv_qp_type qpt;
} types[] = {
#define X(name, text, qpt) [PERF_TYPE_##name] = {text, qpt},
	PERF_TYPES(X)
#undef X
};

const char *perf_op_name(enum perf_op op)
{
	return ops[op].text;
}

unsigned perf_op_traits(enum perf_op op)
{
	return ops[op].traits;
}

enum ibv_wr_opcode perf_op_opcode(enum perf_op op)
{
	return ops[op].opcode;
}

const char *perf_mode_name(enum perf_mode mode)
{
	return modes[mode];
}

const char *perf_type_name(enum perf_type type)
{
	return types[type].text;
}

enum ibv_qp_type perf_type_qpt(enum perf_type type)
{
	return types[type].qpt;
}
