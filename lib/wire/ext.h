/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_EXT_H
#define UR_WIRE_EXT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"
#include "wire/psn.h"
#include "wire/stamp.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The headers of extended mode (docs/wire-format.md, docs/design/loss.md). They let a receiver place
 * any packet immediately, and tell a sender exactly which packets are missing. Opcodes are
 * 0xC0 | the RC opcode, 0xD8 for the probe, 0xD9 for NOTIFY, and 0xDA to 0xDC for an ACK or NAK with the
 * status of a receive pool (docs/design/admission.md), a delay (docs/design/delay.md), or both, 0xDD and 0xDE for one with
 * a part of a long bitmap, without and with a status. Order on the wire:
 *
 *   request    BTH XTH [RETH | AtomicETH] [Immediate | IETH] payload
 *   response   BTH AETH XAETH [XRTH] [AtomicAckETH] payload
 *   ACK, NAK   BTH AETH XAETH [ASTH] [NDTH | BPTH] bitmap (as payload)
 *   probe      BTH XTH
 *   NOTIFY     BTH ASTH pool
 *
 * Stamps and durations are 32-bit counts of 16 ns. They wrap after 68.7 s.
 *
 * As in roce.h, the put and get functions work on a bounds-checked cursor.
 */
/* WIRE-XTH-01. XTH: transmit stamp 32; path index 8, SSN 24; flags 8, PSN_OFFSET 24; pool tag 8, RWQEN 24. */
struct ur_xth {
	uint32_t stamp;	 /* time of this transmission, 16 ns */
	uint8_t path;	 /* index of the sender's UDP source port */
	uint32_t ssn;	 /* message number, counted from ur_first_ssn(); 24 bits */
	uint8_t flags;	 /* enum ur_xth_flags */
	uint32_t offset; /* PSN_OFFSET: index of this packet in its message, in PMTUs; 24 bits */
	uint8_t tag; /* ur_pool_tag() of the pool that the receive is of, for switches; 0: none. Not checked */
	uint32_t rwqen; /* UR_XTH_RECV: which receive of the QP, counted from 0; 24 bits */
};
#define UR_XTH_BYTES 16
#define UR_XTH_PATH  4 /* the byte with the path index, */
#define UR_XTH_FLAGS 8 /* and the one with the flags */

enum ur_xth_flags {
	UR_XTH_RECV = 1 << 0,	   /* the message consumes receive `rwqen` (in all its packets) */
	UR_XTH_LAST_READ = 1 << 1, /* READ: the last request of its message */
	/* This PSN, or part of it, was sent before. Probe: the one before was not answered. */
	UR_XTH_RETRY = 1 << 2,
	UR_XTH_TWICE = 1 << 5, /* READ: has just been sent; dropped if that was executed */
	UR_XTH_BACK = 1 << 6,  /* probe that asks for a delay: its answer is to ask as well */
	UR_XTH_CLAIM =
		3 << 3, /* two bits, enum ur_adm_class: queue class of the refusal of its message */
};
#define UR_XTH_CLAIM_SHIFT 3

/*
 * EXT-SSN-01. SSN of the first message of a connection whose first request has PSN `psn`. With a
 * constant first SSN, an attacker would know the SSNs of a new connection and would have to guess
 * only the PSN of a forged request. The multiplier spreads PSNs that are close to one another, so
 * that no SSN fits two of them.
 */
static inline struct ur_msn ur_first_ssn(struct ur_psn psn)
{
	return ur_msn(psn.v * 0x9e3779u);
}

/* WIRE-XAETH-01. XAETH: echoed stamp 32; residence 32; echoed path index 8, ePSN 24. */
struct ur_xaeth {
	uint32_t echo;	    /* stamp of the request that caused this response */
	uint32_t residence; /* from the arrival of that request to the departure of this response */
	uint8_t path;	    /* path index of that request */
	struct ur_psn epsn; /* every request with an older PSN has been executed */
};
#define UR_XAETH_BYTES 12

/*
 * WIRE-XRTH-01. XRTH: reserved 8, SSN 24; reserved 8, PSN_OFFSET 24. The SSN is the request's; the
 * offset is that of this packet in the response.
 */
struct ur_xrth {
	uint8_t resv;
	uint32_t ssn;
	uint8_t resv2;
	uint32_t offset;
};
#define UR_XRTH_BYTES 8

/*
 * WIRE-ASTH-01. ASTH: status 2, queue class 2, grant 1, reserved 3; room 8; generation 16. Behind it,
 * in a NOTIFY alone: the pool's name, 32 bits.
 */
struct ur_asth {
	uint8_t status;	     /* of the pool, enum ur_adm_status */
	uint8_t queue_class; /* of the addressed queue pair, enum ur_adm_class; 2 bits, any value */
	bool granted;	     /* a receive is reserved for it */
	uint8_t resv;	     /* 3 bits */
	uint8_t room;	     /* receives that are not reserved; 255: or more */
	uint16_t generation; /* of the status */
};
#define UR_ASTH_BYTES 4
#define UR_POOL_BYTES 4

/* What an XTH says of a pool's name: 1 to 255. Two pools may have the same. */
static inline uint8_t ur_pool_tag(uint32_t name)
{
	return (uint8_t)((name * 0x01010101u >> 24) % 255 + 1);
}

/* WIRE-NDTH-01. NDTH: hops 5, reserved 11; delay 16. What switches have stamped into the packet that is answered. */
struct ur_ndth {
	uint8_t hops;	/* 5 bits; UR_DELAY_VOID: the delay is not to be used */
	uint16_t resv;	/* 11 bits */
	uint16_t delay; /* code, delay.h */
};
#define UR_NDTH_BYTES 4

/*
 * The bitmap after an extended ACK or NAK. Bit i (bit i % 8 of byte i / 8, least significant bit
 * first) is set if request ePSN + 1 + i has arrived. The length is a multiple of 4 bytes and at
 * most UR_SACK_BYTES; requests beyond the bitmap are not known to have arrived. WIRE-SACK-01
 */
#define UR_SACK_BYTES 256
#define UR_SACK_BITS  (8 * UR_SACK_BYTES)

/*
 * WIRE-BPTH-01. BPTH: flags 8, offset 24. The bitmap that follows is a part of a longer one: its bit i is set if request
 * ePSN + 1 + offset + i has arrived, and it says nothing of requests before it, nor, with UR_BPTH_MORE, of those behind it.
 */
struct ur_bpth {
	uint8_t flags;	 /* enum ur_bpth_flags; others are sent as 0 and ignored on receipt */
	uint32_t offset; /* 24 bits */
};
#define UR_BPTH_BYTES 4

enum ur_bpth_flags {
	UR_BPTH_MORE = 1 << 0, /* requests behind the part have arrived */
};

static inline bool ur_sack_bit(const uint8_t *map, uint32_t i)
{
	return map[i >> 3] >> (i & 7) & 1;
}

void ur_put_xth(struct ur_cursor *c, const struct ur_xth *x);
void ur_get_xth(struct ur_cursor *c, struct ur_xth *x);
void ur_put_xaeth(struct ur_cursor *c, const struct ur_xaeth *x);
void ur_get_xaeth(struct ur_cursor *c, struct ur_xaeth *x);
void ur_put_xrth(struct ur_cursor *c, const struct ur_xrth *x);
void ur_get_xrth(struct ur_cursor *c, struct ur_xrth *x);
void ur_put_asth(struct ur_cursor *c, const struct ur_asth *x);
void ur_get_asth(struct ur_cursor *c, struct ur_asth *x);
void ur_put_ndth(struct ur_cursor *c, const struct ur_ndth *x);
void ur_get_ndth(struct ur_cursor *c, struct ur_ndth *x);
void ur_put_bpth(struct ur_cursor *c, const struct ur_bpth *x);
void ur_get_bpth(struct ur_cursor *c, struct ur_bpth *x);

static inline uint32_t ur_asth_pack(const struct ur_asth *x)
{
	return (uint32_t)(x->status & 3) << 30 | (uint32_t)(x->queue_class & 3) << 28 |
	       (uint32_t)x->granted << 27 | (uint32_t)(x->resv & 7) << 24 |
	       (uint32_t)x->room << 16 | x->generation;
}

static inline uint32_t ur_ndth_pack(const struct ur_ndth *x)
{
	return (uint32_t)(x->hops & 31) << 27 | (uint32_t)(x->resv & 0x7ff) << 16 | x->delay;
}

static inline uint32_t ur_bpth_pack(const struct ur_bpth *x)
{
	return (uint32_t)x->flags << 24 | (x->offset & 0xffffff);
}

#ifdef __cplusplus
}
#endif

#endif
