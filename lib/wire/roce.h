/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_ROCE_H
#define UR_WIRE_ROCE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"
#include "wire/psn.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The InfiniBand transport headers as RoCEv2 carries them (IBA 9.2, 9.3). Each header has a struct
 * in host byte order, a put function and a get function. If the cursor has too few bytes left, its
 * `bad` is set and neither buffer nor struct changes. Reserved bits are preserved, so that a
 * decoded packet encodes to the same bytes.
 *
 * Thread class: pure functions.
 */

#define UR_ROCE_UDP_PORT 4791
#define UR_ICRC_BYTES	 4

/*
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * |    opcode     |S|M|pad|  tver |            P_Key              |
 * |F|B|  resv6    |              destination QPN                  |
 * |A|    resv7    |                     PSN                       |
 */
struct ur_bth {
	uint8_t opcode;
	bool solicited, migreq;
	uint8_t pad;  /* padding before the ICRC, [0, 3] bytes */
	uint8_t tver; /* [0, 15]; only 0 is valid */
	uint16_t pkey;
	bool fecn, becn;
	uint8_t resv6;
	struct ur_qpn dqpn;
	bool ackreq;
	uint8_t resv7;
	struct ur_psn psn;
};
#define UR_BTH_BYTES 12

/* RETH: virtual address 64, R_Key 32, DMA length 32. */
struct ur_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t length; /* bytes, at most 2^31 */
};
#define UR_RETH_BYTES 16

/* AETH: syndrome 8, MSN 24. */
struct ur_aeth {
	uint8_t syndrome;
	uint32_t msn; /* [0, 2^24) */
};
#define UR_AETH_BYTES 4

/* DETH: Q_Key 32, reserved 8, source QPN 24. */
struct ur_deth {
	uint32_t qkey;
	uint8_t resv;
	struct ur_qpn sqpn;
};
#define UR_DETH_BYTES 8

/* AtomicETH: virtual address 64, R_Key 32, swap (or add) data 64, compare data 64. */
struct ur_atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
};
#define UR_ATOMICETH_BYTES 28

#define UR_ATOMICACKETH_BYTES 8 /* original remote data 64 */
#define UR_IMM_BYTES	      4 /* immediate data 32 */
#define UR_IETH_BYTES	      4 /* R_Key to invalidate 32 */

void ur_put_bth(struct ur_cursor *c, const struct ur_bth *bth);
void ur_get_bth(struct ur_cursor *c, struct ur_bth *bth);
void ur_put_reth(struct ur_cursor *c, const struct ur_reth *reth);
void ur_get_reth(struct ur_cursor *c, struct ur_reth *reth);
void ur_put_aeth(struct ur_cursor *c, const struct ur_aeth *aeth);
void ur_get_aeth(struct ur_cursor *c, struct ur_aeth *aeth);
void ur_put_deth(struct ur_cursor *c, const struct ur_deth *deth);
void ur_get_deth(struct ur_cursor *c, struct ur_deth *deth);
void ur_put_atomiceth(struct ur_cursor *c, const struct ur_atomiceth *atomic);
void ur_get_atomiceth(struct ur_cursor *c, struct ur_atomiceth *atomic);

/*
 * AETH syndrome: bit 7 is zero, bits 6..5 are the kind, bits 4..0 the value (IBA 9.7.5.1.1;
 * WIRE-AETH-01). The value is a credit code in an ACK, a timer code in an RNR NAK, and a NAK code
 * in a NAK.
 */
enum ur_syndrome_kind {
	UR_SYNDROME_ACK = 0x00,
	UR_SYNDROME_RNR_NAK = 0x20,
	UR_SYNDROME_RESERVED = 0x40,
	UR_SYNDROME_NAK = 0x60,
};
#define UR_SYNDROME_KIND_MASK  0xe0
#define UR_SYNDROME_VALUE_MASK 0x1f
#define UR_CREDITS_NONE	       0x1f /* credit code: no end-to-end flow control */

/* X(name, value of the NAK syndrome's low five bits, text) */
#define UR_NAK_CODES(X)                                                                            \
	X(PSN_SEQ, 0, "PSN sequence error")                                                        \
	X(INV_REQ, 1, "invalid request")                                                           \
	X(REM_ACCESS, 2, "remote access error")                                                    \
	X(REM_OP, 3, "remote operational error")                                                   \
	X(INV_RD_REQ, 4, "invalid RD request")

enum ur_nak_code {
#define X(name, value, text) UR_NAK_##name = (value),
	UR_NAK_CODES(X)
#undef X
};

/* The text of a NAK code; "reserved" if it is not in the list. */
const char *ur_nak_name(uint8_t code);

/* Number of receives for a credit code; UINT32_MAX for UR_CREDITS_NONE (no flow control). */
uint32_t ur_credits_decode(uint8_t code);
/* The credit code of the largest number that does not exceed `receives`. */
uint8_t ur_credits_encode(uint32_t receives);

/* Nanoseconds for an RNR timer code (IBA table 45). Only the low five bits count. */
uint64_t ur_rnr_timer_ns(uint8_t code);

#ifdef __cplusplus
}
#endif

#endif
