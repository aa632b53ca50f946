/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_PREDICT_H
#define UR_WIRE_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/path.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Header prediction (docs/design/prediction.md): a frame on a connection is compared with the headers that its next
 * packet has. What is equal needs no decoding and no check; whatever differs is decoded by ur_packet_decode().
 *
 * Only untagged IPv4 is predicted, so every header has a fixed place.
 *
 * Thread class: pure functions.
 */
#define UR_PREDICT_L3	 UR_ETH_BYTES
#define UR_PREDICT_UDP	 (UR_PREDICT_L3 + UR_IPV4_BYTES)
#define UR_PREDICT_BTH	 UR_PATH_MIN_BYTES
#define UR_PREDICT_BYTES (UR_PREDICT_BTH + UR_BTH_BYTES + UR_ICRC_BYTES) /* shortest frame */

/* BTH word 0, host order: what may differ between packets of one kind, and the rest of it. */
#define UR_PREDICT_SOLICITED (1u << 23)
#define UR_PREDICT_MIGREQ    (1u << 22)
#define UR_PREDICT_PAD_SHIFT 20
#define UR_PREDICT_TVER	     (0xfu << 16)
#define UR_PREDICT_PKEY	     0xffffu
#define UR_PREDICT_FREE	     (UR_PREDICT_SOLICITED | UR_PREDICT_MIGREQ | 3u << UR_PREDICT_PAD_SHIFT)
/* Before the addresses. EtherType, version, header length, and the lower ECN bit, which no packet from ECT(0) has unmarked. */
#define UR_PREDICT_V4_MASK 0xffffff01u
#define UR_PREDICT_V4	   (UR_ETHERTYPE_IPV4 << 16 | 0x4500u)
/* More fragments and fragment offset, protocol. */
#define UR_PREDICT_UDP_MASK 0x3fff00ffu
/* BTH word 2. */
#define UR_PREDICT_ACKREQ (1u << 31)

/* The packets of a SEND or WRITE of several, without immediate data. */
#define UR_PREDICT_PARTS                                                                           \
	(1u << UR_RC_SEND_FIRST | 1u << UR_RC_SEND_MIDDLE | 1u << UR_RC_SEND_LAST |                \
	 1u << UR_RC_WRITE_FIRST | 1u << UR_RC_WRITE_MIDDLE | 1u << UR_RC_WRITE_LAST)
#define UR_PREDICT_REQUESTS                                                                        \
	(UR_PREDICT_PARTS | 1u << UR_RC_SEND_ONLY | 1u << UR_RC_WRITE_ONLY |                       \
	 1u << UR_RC_READ_REQUEST)

/* The opcode, of RC or extended mode, is one of these operations. */
static inline bool ur_predict_among(uint32_t operations, uint8_t opcode)
{
	return operations >> (opcode & ~UR_TRANSPORT_MASK) & 1;
}

/* What a responder may expect next. */
static inline bool ur_predict_opcode(uint8_t opcode)
{
	return ur_predict_among(UR_PREDICT_REQUESTS, opcode);
}

/* The same for a completer. */
static inline bool ur_predict_answer(uint8_t opcode)
{
	uint8_t operation = opcode & ~UR_TRANSPORT_MASK;

	return operation == UR_RC_ACKNOWLEDGE || operation == UR_RC_READ_RESPONSE_ONLY ||
	       operation == UR_RC_READ_RESPONSE_MIDDLE;
}

/* Word 0 of the BTH of a packet with this opcode and P_Key; TVer is 0 (WIRE-BTH-02). */
static inline uint32_t ur_predict_bth(uint8_t opcode, uint16_t pkey)
{
	return (uint32_t)opcode << 24 | pkey;
}

static inline uint32_t ur_predict_word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t ur_predict_words(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* a + b in ones' complement. */
static inline uint64_t ur_predict_add(uint64_t a, uint64_t b)
{
	uint64_t sum = a + b;

	return sum + (sum < a);
}

/*
 * The header's 16-bit words sum to 0xffff in ones' complement, in whichever byte order (RFC 791): they are not all 0, and
 * their sum, of words of any size, is a multiple of 0xffff.
 */
static inline bool ur_predict_ipv4_sum(const uint8_t *ip)
{
	uint64_t sum = ur_predict_add(ur_predict_words(ip), ur_predict_words(ip + 8));

	return ur_predict_add(sum, ur_predict_word(ip + 16)) % 0xffff == 0;
}

/* The big-endian word at `at` has the bits of `want` where `mask` has bits; otherwise the result is not 0. */
static inline uint32_t ur_predict_differs(const uint8_t *at, uint32_t mask, uint32_t want)
{
	return (ur_predict_word(at) & __builtin_bswap32(mask)) ^ __builtin_bswap32(want);
}

/*
 * PREDICT-PATH-01. True if Ethernet, IPv4 and UDP headers of the frame are those of a packet that came the reverse way
 * of `path` and is neither a fragment nor marked by congestion; *roce_bytes are its bytes from BTH to ICRC. `frame` has
 * `len` >= UR_PREDICT_BYTES bytes.
 */
static inline bool ur_predict_path(const struct ur_path *path, const uint8_t *frame, size_t len,
				   uint32_t *roce_bytes)
{
	const uint8_t *ip = frame + UR_PREDICT_L3, *mine = path->hdr + UR_PREDICT_L3;
	uint64_t addresses = ur_predict_words(mine + 12), differs;
	uint32_t total = ur_load16(ip + 2);

	*roce_bytes = total - UR_IPV4_BYTES - UR_UDP_BYTES;
	differs = ur_predict_words(ip + 12) ^ (addresses << 32 | addresses >> 32);
	differs |= ur_predict_differs(frame + 12, UR_PREDICT_V4_MASK, UR_PREDICT_V4);
	differs |= ur_predict_differs(ip + 6, UR_PREDICT_UDP_MASK, UR_IPPROTO_UDP);
	differs |= ur_load32(ip + UR_IPV4_BYTES + 2) ^
		   (UR_ROCE_UDP_PORT << 16 | (total - UR_IPV4_BYTES));
	differs |= (frame[0] | frame[6]) & 1;
	return !differs && path->plain && total + UR_PREDICT_L3 <= len &&
	       total >= UR_PREDICT_BYTES - UR_PREDICT_L3 && ur_predict_ipv4_sum(ip);
}

/* The ICRC of such a frame is right. */
static inline bool ur_predict_icrc(const uint8_t *frame, uint32_t roce_bytes)
{
	uint32_t covered = UR_PREDICT_BTH - UR_PREDICT_L3 + roce_bytes - UR_ICRC_BYTES;
	const uint8_t *l3 = frame + UR_PREDICT_L3;

	return ur_icrc_v4(l3, covered) == __builtin_bswap32(ur_load32(l3 + covered));
}

/* Opcodes with these headers are left to ur_packet_decode(), and probes, which may have a delay in the UDP header. */
#define UR_PREDICT_NOT                                                                             \
	(UR_OP_CNP | UR_OP_DETH | UR_OP_ATOMICETH | UR_OP_ATOMICACKETH | UR_OP_IMM | UR_OP_IETH |  \
	 UR_OP_ASTH | UR_OP_NDTH | UR_OP_BPTH | UR_OP_POOL | UR_OP_PROBE)

/* The low 24 bits of the word at `at`. */
static inline uint32_t ur_predict_low24(const uint8_t *at)
{
	return ur_load32(at) & 0xffffff;
}

static inline struct ur_reth ur_predict_reth(const uint8_t *at)
{
	return (struct ur_reth){ur_load64(at), ur_load32(at + 8), ur_load32(at + 12)};
}

static inline struct ur_xth ur_predict_xth(const uint8_t *at)
{
	return (struct ur_xth){
		.stamp = ur_load32(at),
		.path = at[4],
		.ssn = ur_predict_low24(at + 4),
		.flags = at[8],
		.offset = ur_predict_low24(at + 8),
		.rwqen = ur_predict_low24(at + 12),
	};
}

static inline struct ur_xaeth ur_predict_xaeth(const uint8_t *at)
{
	return (struct ur_xaeth){
		.echo = ur_load32(at),
		.residence = ur_load32(at + 4),
		.path = at[8],
		.epsn = ur_psn(ur_load32(at + 8)),
	};
}

/* The extended headers of p->op, in their order; returns where they end. */
static inline const uint8_t *ur_predict_ext(const uint8_t *at, struct ur_packet *p)
{
	if (p->op & UR_OP_XTH) {
		p->xth = ur_predict_xth(at);
		at += UR_XTH_BYTES;
	}
	if (p->op & UR_OP_RETH) {
		p->reth = ur_predict_reth(at);
		at += UR_RETH_BYTES;
	}
	if (p->op & UR_OP_AETH) {
		p->aeth = (struct ur_aeth){at[0], ur_predict_low24(at)};
		at += UR_AETH_BYTES;
	}
	if (p->op & UR_OP_XAETH) {
		p->xaeth = ur_predict_xaeth(at);
		at += UR_XAETH_BYTES;
	}
	if (p->op & UR_OP_XRTH) {
		p->xrth = (struct ur_xrth){.ssn = ur_predict_low24(at),
					   .offset = ur_predict_low24(at + 4)};
		at += UR_XRTH_BYTES;
	}
	return at;
}

/*
 * PREDICT-DECODE-01. Decodes what follows the UDP header of a frame that passed ur_predict_path(): *p is as
 * ur_packet_decode() fills it, as far as a queue pair reads it that is connected: op, the BTH but for what is compared
 * with the queue pair's, the extended headers, the payload. False: it carries other headers, or is malformed.
 */
static inline bool ur_predict_decode(const uint8_t *frame, uint32_t roce_bytes, struct ur_packet *p)
{
	const uint8_t *bth = frame + UR_PREDICT_BTH;
	const struct ur_opcode_info *info = &ur_opcodes[bth[0]];
	uint32_t word0 = ur_load32(bth), word2 = ur_load32(bth + 8);
	uint32_t pad = word0 >> UR_PREDICT_PAD_SHIFT & 3;
	uint32_t rest = roce_bytes - UR_BTH_BYTES - UR_ICRC_BYTES,
		 with_pad = rest - info->ext_bytes;

	if (!info->flags || (info->flags & UR_PREDICT_NOT) || (word0 & UR_PREDICT_TVER) ||
	    info->ext_bytes > rest)
		return false;
	if (info->flags & UR_OP_PAYLOAD ? (with_pad & 3) || pad > with_pad : with_pad || pad)
		return false;
	p->op = info->flags;
	p->bth.opcode = bth[0];
	p->bth.solicited = word0 & UR_PREDICT_SOLICITED;
	p->bth.ackreq = word2 & UR_PREDICT_ACKREQ;
	p->bth.psn = ur_psn(word2);
	p->payload = ur_predict_ext(bth + UR_BTH_BYTES, p);
	p->payload_len = (uint16_t)(with_pad - pad);
	return true;
}

#ifdef __cplusplus
}
#endif

#endif
