/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_OPCODE_H
#define UR_WIRE_OPCODE_H

#include <stdint.h>

/*
 * The list of all BTH opcodes that uroce knows: name, value, kind, and the headers that follow.
 * (IBA 9.2, table "OpCode field"; CNP: annex A17. WIRE-OPCODE-01, WIRE-EXT-01)
 *
 * Flags for the kind: SEND, WRITE, READ_REQ, READ_RESP, ATOMIC (a request), ACK (also ATOMIC_ACK),
 * CNP. Flags for the position in the message: FIRST and LAST. An "Only" packet has both, a "Middle"
 * packet neither.
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
	UR_OP_KNOWN = 1 << 17,	/* the opcode is in the list */
	UR_OP_XTH = 1 << 18,	/* extended mode (wire/ext.h): a request */
	UR_OP_XAETH = 1 << 19,	/* extended mode: a response */
	UR_OP_XRTH = 1 << 20,	/* extended mode: a READ or atomic response */
	UR_OP_PROBE = 1 << 21,	/* extended mode: asks for an ACK, consumes no PSN */
	UR_OP_NOTIFY = 1 << 22, /* extended mode: status of a receive pool, consumes no PSN */
	UR_OP_ASTH = 1 << 23,	/* extended mode: status of a receive pool */
	UR_OP_POOL = 1 << 24,	/* extended mode: name of the pool */
	UR_OP_NDTH = 1 << 25,	/* extended mode: delay that a packet met in switches */
	UR_OP_BPTH = 1 << 26,	/* extended mode: which part of the bitmap follows */

	UR_OP_ONLY = UR_OP_FIRST | UR_OP_LAST,
	UR_OP_REQUEST = UR_OP_SEND | UR_OP_WRITE | UR_OP_READ_REQ | UR_OP_ATOMIC | UR_OP_PROBE,
	UR_OP_RESPONSE = UR_OP_READ_RESP | UR_OP_ACK,
};

/* The top three bits of the opcode are the transport. */
enum ur_transport {
	UR_TRANSPORT_RC = 0x00,
	UR_TRANSPORT_UC = 0x20,
	UR_TRANSPORT_RD = 0x40,
	UR_TRANSPORT_UD = 0x60,
	UR_TRANSPORT_CNP = 0x80,
	UR_TRANSPORT_XRC = 0xa0,
	UR_TRANSPORT_EXT = 0xc0, /* manufacturer specific: uroce's extended mode */
};

#define UR_TRANSPORT_MASK 0xe0

#define UR_SEND_(where)	 (UR_OP_SEND | UR_OP_PAYLOAD | (where))
#define UR_WRITE_(where) (UR_OP_WRITE | UR_OP_PAYLOAD | (where))
#define UR_RESP_(where)	 (UR_OP_READ_RESP | UR_OP_PAYLOAD | (where))

/*
 * Extended mode: the RC opcode with 0xC0 set. The flags are those of the RC opcode plus the
 * extended headers. WIRE-XOPCODE-01
 */
#define UR_EXT_SEND_(where)  (UR_SEND_(where) | UR_OP_XTH)
#define UR_EXT_WRITE_(where) (UR_WRITE_(where) | UR_OP_XTH | UR_OP_RETH)
#define UR_EXT_RESP_(where)  (UR_RESP_(where) | UR_OP_AETH | UR_OP_XAETH | UR_OP_XRTH)
#define UR_EXT_ACK_	     (UR_OP_ACK | UR_OP_ONLY | UR_OP_AETH | UR_OP_XAETH)

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
	X(CNP, 0x81, UR_OP_CNP | UR_OP_ONLY)                                                       \
	X(EXT_SEND_FIRST, 0xc0, UR_EXT_SEND_(UR_OP_FIRST))                                         \
	X(EXT_SEND_MIDDLE, 0xc1, UR_EXT_SEND_(0))                                                  \
	X(EXT_SEND_LAST, 0xc2, UR_EXT_SEND_(UR_OP_LAST))                                           \
	X(EXT_SEND_LAST_IMM, 0xc3, UR_EXT_SEND_(UR_OP_LAST) | UR_OP_IMM)                           \
	X(EXT_SEND_ONLY, 0xc4, UR_EXT_SEND_(UR_OP_ONLY))                                           \
	X(EXT_SEND_ONLY_IMM, 0xc5, UR_EXT_SEND_(UR_OP_ONLY) | UR_OP_IMM)                           \
	X(EXT_WRITE_FIRST, 0xc6, UR_EXT_WRITE_(UR_OP_FIRST))                                       \
	X(EXT_WRITE_MIDDLE, 0xc7, UR_EXT_WRITE_(0))                                                \
	X(EXT_WRITE_LAST, 0xc8, UR_EXT_WRITE_(UR_OP_LAST))                                         \
	X(EXT_WRITE_LAST_IMM, 0xc9, UR_EXT_WRITE_(UR_OP_LAST) | UR_OP_IMM)                         \
	X(EXT_WRITE_ONLY, 0xca, UR_EXT_WRITE_(UR_OP_ONLY))                                         \
	X(EXT_WRITE_ONLY_IMM, 0xcb, UR_EXT_WRITE_(UR_OP_ONLY) | UR_OP_IMM)                         \
	X(EXT_READ_REQUEST, 0xcc, UR_OP_READ_REQ | UR_OP_ONLY | UR_OP_XTH | UR_OP_RETH)            \
	X(EXT_READ_RESPONSE_FIRST, 0xcd, UR_EXT_RESP_(UR_OP_FIRST))                                \
	X(EXT_READ_RESPONSE_MIDDLE, 0xce, UR_EXT_RESP_(0))                                         \
	X(EXT_READ_RESPONSE_LAST, 0xcf, UR_EXT_RESP_(UR_OP_LAST))                                  \
	X(EXT_READ_RESPONSE_ONLY, 0xd0, UR_EXT_RESP_(UR_OP_ONLY))                                  \
	X(EXT_ACKNOWLEDGE, 0xd1, UR_EXT_ACK_ | UR_OP_PAYLOAD)                                      \
	X(EXT_ATOMIC_ACKNOWLEDGE, 0xd2, UR_EXT_ACK_ | UR_OP_XRTH | UR_OP_ATOMICACKETH)             \
	X(EXT_COMPARE_SWAP, 0xd3, UR_OP_ATOMIC | UR_OP_ONLY | UR_OP_XTH | UR_OP_ATOMICETH)         \
	X(EXT_FETCH_ADD, 0xd4, UR_OP_ATOMIC | UR_OP_ONLY | UR_OP_XTH | UR_OP_ATOMICETH)            \
	X(EXT_SEND_LAST_INV, 0xd6, UR_EXT_SEND_(UR_OP_LAST) | UR_OP_IETH)                          \
	X(EXT_SEND_ONLY_INV, 0xd7, UR_EXT_SEND_(UR_OP_ONLY) | UR_OP_IETH)                          \
	X(EXT_PROBE, 0xd8, UR_OP_PROBE | UR_OP_ONLY | UR_OP_XTH)                                   \
	X(EXT_NOTIFY, 0xd9, UR_OP_NOTIFY | UR_OP_ONLY | UR_OP_ASTH | UR_OP_POOL)                   \
	X(EXT_ACKNOWLEDGE_STATUS, 0xda, UR_EXT_ACK_ | UR_OP_PAYLOAD | UR_OP_ASTH)                  \
	X(EXT_ACKNOWLEDGE_DELAY, 0xdb, UR_EXT_ACK_ | UR_OP_PAYLOAD | UR_OP_NDTH)                   \
	X(EXT_ACKNOWLEDGE_STATUS_DELAY, 0xdc,                                                      \
	  UR_EXT_ACK_ | UR_OP_PAYLOAD | UR_OP_ASTH | UR_OP_NDTH)                                   \
	X(EXT_ACKNOWLEDGE_PART, 0xdd, UR_EXT_ACK_ | UR_OP_PAYLOAD | UR_OP_BPTH)                    \
	X(EXT_ACKNOWLEDGE_STATUS_PART, 0xde, UR_EXT_ACK_ | UR_OP_PAYLOAD | UR_OP_ASTH | UR_OP_BPTH)

enum ur_opcode {
#define X(name, value, flags) UR_##name = (value),
	UR_OPCODES(X)
#undef X
};

struct ur_opcode_info {
	uint32_t flags;	   /* enum ur_op_flags; 0 for an unknown opcode */
	uint8_t ext_bytes; /* extended headers between BTH and payload, bytes */
	const char *name;  /* "RC_SEND_FIRST"; NULL for an unknown opcode */
};

extern const struct ur_opcode_info ur_opcodes[256];

static inline uint32_t ur_op_flags(uint8_t opcode)
{
	return ur_opcodes[opcode].flags;
}

#endif
