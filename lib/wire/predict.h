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
#define UR_PREDICT_FREE	     (UR_PREDICT_SOLICITED | UR_PREDICT_MIGREQ | 3u << UR_PREDICT_PAD_SHIFT)
/* BTH word 2. */
#define UR_PREDICT_ACKREQ (1u << 31)

/* Nothing else is predicted, so that other packets pay for no more than this. RC, extended mode */
static inline bool ur_predict_opcode(uint8_t opcode)
{
	uint8_t operation = opcode & ~UR_TRANSPORT_MASK;

	return operation == UR_RC_WRITE_ONLY || operation == UR_RC_SEND_ONLY;
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

/* The header's words sum to 0xffff, in whichever byte order (RFC 791). */
static inline bool ur_predict_ipv4_sum(const uint8_t *ip)
{
	uint64_t sum = ur_predict_word(ip);

	for (unsigned i = 4; i < UR_IPV4_BYTES; i += 4)
		sum += ur_predict_word(ip + i);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* An address of a single host: neither 0/8, 127/8, multicast nor reserved. `first`: of its bytes. */
static inline bool ur_predict_is_host(uint8_t first)
{
	return (uint8_t)(first - 1) < 223 && first != 127;
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
	uint64_t addresses = ur_predict_words(mine + 12);
	uint32_t total = ur_load16(ip + 2);

	*roce_bytes = total - UR_IPV4_BYTES - UR_UDP_BYTES;
	if (path->len != UR_PATH_MIN_BYTES ||
	    ur_load32(frame + 12) >> 8 != (UR_ETHERTYPE_IPV4 << 8 | 0x45) ||
	    ur_predict_words(ip + 12) != (addresses << 32 | addresses >> 32))
		return false;
	if (((frame[0] | frame[6]) & 1) || (ip[1] & 3) == 3 || (ur_load16(ip + 6) & 0x3fff) ||
	    ip[9] != UR_IPPROTO_UDP || !ur_predict_is_host(ip[12]))
		return false;
	return ur_load32(ip + UR_IPV4_BYTES + 2) ==
		       (UR_ROCE_UDP_PORT << 16 | (total - UR_IPV4_BYTES)) &&
	       total + UR_PREDICT_L3 <= len && total >= UR_PREDICT_BYTES - UR_PREDICT_L3 &&
	       ur_predict_ipv4_sum(ip);
}

/* The ICRC of such a frame is right. */
static inline bool ur_predict_icrc(const uint8_t *frame, uint32_t roce_bytes)
{
	uint32_t covered = UR_PREDICT_BTH - UR_PREDICT_L3 + roce_bytes - UR_ICRC_BYTES;
	const uint8_t *l3 = frame + UR_PREDICT_L3;

	return ur_icrc(l3, covered, false) == __builtin_bswap32(ur_load32(l3 + covered));
}

#ifdef __cplusplus
}
#endif

#endif
