/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_OPCODE_H
#define UR_WIRE_OPCODE_H

#include <stdint.h>

/*
 * Every BTH opcode that uroce knows, once: name, value, what it is and which headers follow.
 * (IBA 9.2, table "OpCode field"; CNP: annex A17. WIRE-OPCODE-01, WIRE-EXT-01)
 *
 * What a packet is: SEND, WRITE, READ_REQ, READ_RESP, ATOMIC (a request), ACK (also ATOMIC_ACK), CNP.
 * Where it stands in its message: FIRST (the message starts here), LAST (it ends here); both is
 * "Only", neither is "Middle".
 */
enum ur_op_flags {
	UR_OP_SEND = 1 << 0,
	UR_OP_WRITE = 1 << 1,
	UR_OP_READ_REQ = 1 << 2,
	UR_OP_READ_RESP = 1 << 3,
	UR_OP_ATOMIC = 1 << 4,
	UR_OP_ACK = 1 << 5,
	UR_OP_CNP = 1 << 6,
	UR_OP_FIRST = 1 << 7,
	UR_OP_LAST = 1 << 8,
	UR_OP_PAYLOAD = 1 << 9, /* may carry payload and pad */
	UR_OP_RETH = 1 << 10,
	UR_OP_AETH = 1 << 11,
	UR_OP_DETH = 1 << 12,
	UR_OP_ATOMICETH = 1 << 13,
	UR_OP_ATOMICACKETH = 1 << 14,
	UR_OP_IMM = 1 << 15,
	UR_OP_IETH = 1 << 16,
	UR_OP_KNOWN = 1 << 17, /* the opcode is in the list */

	UR_OP_ONLY = UR_OP_FIRST | UR_OP_LAST,
	UR_OP_REQUEST = UR_OP_SEND | UR_OP_WRITE | UR_OP_READ_REQ | UR_OP_ATOMIC,
	UR_OP_RESPONSE = UR_OP_READ_RESP | UR_OP_ACK,
};

/* The transport is the top three bits of the opcode. */
enum ur_transport {
	UR_TRANSPORT_RC = 0x00,
	UR_TRANSPORT_UC = 0x20,
	UR_TRANSPORT_RD = 0x40,
	UR_TRANSPORT_UD = 0x60,
	UR_TRANSPORT_CNP = 0x80,
	UR_TRANSPORT_XRC = 0xa0,
	UR_TRANSPORT_VENDOR = 0xc0,
};

#define UR_TRANSPORT_MASK 0xe0

#define UR_SEND_(where)  (UR_OP_SEND | UR_OP_PAYLOAD | (where))
#define UR_WRITE_(where) (UR_OP_WRITE | UR_OP_PAYLOAD | (where))
#define UR_RESP_(where)  (UR_OP_READ_RESP | UR_OP_PAYLOAD | (where))

/* X(name, value, flags) */
#define UR_OPCODES(X)                                                                              \
	X(RC_SEND_FIRST, 0x00, UR_SEND_(UR_OP_FIRST))                                              \
	X(RC_SEND_MIDDLE, 0x01, UR_SEND_(0))                                                       \
	X(RC_SEND_LAST, 0x02, UR_SEND_(UR_OP_LAST))                                                \
	X(RC_SEND_LAST_IMM, 0x03, UR_SEND_(UR_OP_LAST) | UR_OP_IMM)                                \
	X(RC_SEND_ONLY, 0x04, UR_SEND_(UR_OP_ONLY))                                                \
	X(RC_SEND_ONLY_IMM, 0x05, UR_SEND_(UR_OP_ONLY) | UR_OP_IMM)                                \
	X(RC_WRITE_FIRST, 0x06, UR_WRITE_(UR_OP_FIRST) | UR_OP_RETH)                               \
	X(RC_WRITE_MIDDLE, 0x07, UR_WRITE_(0))                                                     \
	X(RC_WRITE_LAST, 0x08, UR_WRITE_(UR_OP_LAST))                                              \
	X(RC_WRITE_LAST_IMM, 0x09, UR_WRITE_(UR_OP_LAST) | UR_OP_IMM)                              \
	X(RC_WRITE_ONLY, 0x0a, UR_WRITE_(UR_OP_ONLY) | UR_OP_RETH)                                 \
	X(RC_WRITE_ONLY_IMM, 0x0b, UR_WRITE_(UR_OP_ONLY) | UR_OP_RETH | UR_OP_IMM)                 \
	X(RC_READ_REQUEST, 0x0c, UR_OP_READ_REQ | UR_OP_ONLY | UR_OP_RETH)                         \
	X(RC_READ_RESPONSE_FIRST, 0x0d, UR_RESP_(UR_OP_FIRST) | UR_OP_AETH)                        \
	X(RC_READ_RESPONSE_MIDDLE, 0x0e, UR_RESP_(0))                                              \
	X(RC_READ_RESPONSE_LAST, 0x0f, UR_RESP_(UR_OP_LAST) | UR_OP_AETH)                          \
	X(RC_READ_RESPONSE_ONLY, 0x10, UR_RESP_(UR_OP_ONLY) | UR_OP_AETH)                          \
	X(RC_ACKNOWLEDGE, 0x11, UR_OP_ACK | UR_OP_ONLY | UR_OP_AETH)                               \
	X(RC_ATOMIC_ACKNOWLEDGE, 0x12, UR_OP_ACK | UR_OP_ONLY | UR_OP_AETH | UR_OP_ATOMICACKETH)   \
	X(RC_COMPARE_SWAP, 0x13, UR_OP_ATOMIC | UR_OP_ONLY | UR_OP_ATOMICETH)                      \
	X(RC_FETCH_ADD, 0x14, UR_OP_ATOMIC | UR_OP_ONLY | UR_OP_ATOMICETH)                         \
	X(RC_SEND_LAST_INV, 0x16, UR_SEND_(UR_OP_LAST) | UR_OP_IETH)                               \
	X(RC_SEND_ONLY_INV, 0x17, UR_SEND_(UR_OP_ONLY) | UR_OP_IETH)                               \
	X(UC_SEND_FIRST, 0x20, UR_SEND_(UR_OP_FIRST))                                              \
	X(UC_SEND_MIDDLE, 0x21, UR_SEND_(0))                                                       \
	X(UC_SEND_LAST, 0x22, UR_SEND_(UR_OP_LAST))                                                \
	X(UC_SEND_LAST_IMM, 0x23, UR_SEND_(UR_OP_LAST) | UR_OP_IMM)                                \
	X(UC_SEND_ONLY, 0x24, UR_SEND_(UR_OP_ONLY))                                                \
	X(UC_SEND_ONLY_IMM, 0x25, UR_SEND_(UR_OP_ONLY) | UR_OP_IMM)                                \
	X(UC_WRITE_FIRST, 0x26, UR_WRITE_(UR_OP_FIRST) | UR_OP_RETH)                               \
	X(UC_WRITE_MIDDLE, 0x27, UR_WRITE_(0))                                                     \
	X(UC_WRITE_LAST, 0x28, UR_WRITE_(UR_OP_LAST))                                              \
	X(UC_WRITE_LAST_IMM, 0x29, UR_WRITE_(UR_OP_LAST) | UR_OP_IMM)                              \
	X(UC_WRITE_ONLY, 0x2a, UR_WRITE_(UR_OP_ONLY) | UR_OP_RETH)                                 \
	X(UC_WRITE_ONLY_IMM, 0x2b, UR_WRITE_(UR_OP_ONLY) | UR_OP_RETH | UR_OP_IMM)                 \
	X(UD_SEND_ONLY, 0x64, UR_SEND_(UR_OP_ONLY) | UR_OP_DETH)                                   \
	X(UD_SEND_ONLY_IMM, 0x65, UR_SEND_(UR_OP_ONLY) | UR_OP_DETH | UR_OP_IMM)                   \
	X(CNP, 0x81, UR_OP_CNP | UR_OP_ONLY)

enum ur_opcode {
#define X(name, value, flags) UR_##name = (value),
	UR_OPCODES(X)
#undef X
};

struct ur_opcode_info {
	uint32_t flags;    /* enum ur_op_flags; 0 for an unknown opcode */
	uint8_t ext_bytes; /* extended headers between BTH and payload, bytes */
	const char *name;  /* "RC_SEND_FIRST"; NULL for an unknown opcode */
};

extern const struct ur_opcode_info ur_opcodes[256];

static inline uint32_t
ur_op_flags(uint8_t opcode)
{
	return ur_opcodes[opcode].flags;
}

#endif
