/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/roce.h"

#define EXT_BYTES(f)                                                                               \
	(((f)&UR_OP_DETH ? UR_DETH_BYTES : 0) + ((f)&UR_OP_RETH ? UR_RETH_BYTES : 0) +             \
	 ((f)&UR_OP_ATOMICETH ? UR_ATOMICETH_BYTES : 0) + ((f)&UR_OP_AETH ? UR_AETH_BYTES : 0) +   \
	 ((f)&UR_OP_ATOMICACKETH ? UR_ATOMICACKETH_BYTES : 0) +                                    \
	 ((f)&UR_OP_XTH ? UR_XTH_BYTES : 0) + ((f)&UR_OP_XAETH ? UR_XAETH_BYTES : 0) +             \
	 ((f)&UR_OP_XRTH ? UR_XRTH_BYTES : 0) + ((f)&UR_OP_ASTH ? UR_ASTH_BYTES : 0) +             \
	 ((f)&UR_OP_POOL ? UR_POOL_BYTES : 0) + ((f)&UR_OP_NDTH ? UR_NDTH_BYTES : 0) +             \
	 ((f)&UR_OP_BPTH ? UR_BPTH_BYTES : 0) + ((f)&UR_OP_IMM ? UR_IMM_BYTES : 0) +               \
	 ((f)&UR_OP_IETH ? UR_IETH_BYTES : 0))

const struct ur_opcode_info ur_opcodes[256] = {
#define X(sym, value, f)                                                                           \
	[value] = {.flags = (f) | UR_OP_KNOWN, .ext_bytes = EXT_BYTES(f), .name = #sym},
	UR_OPCODES(X)
#undef X
};
