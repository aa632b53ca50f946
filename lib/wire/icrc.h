/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_ICRC_H
#define UR_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/crc32.h"
#include "wire/packet.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The invariant CRC of RoCEv2 (IBA annex A17.3, 7.8.1): CRC-32 over eight bytes of ones, then IP,
 * UDP, BTH and everything up to the ICRC. Fields that routers change are taken as all ones.
 *
 * Thread class: pure functions.
 */

/*
 * ICRC of the bytes [l3, l3 + len), from the IP header to the end of the pad. `v6` says whether the
 * IP header is IPv6. `len` is at least IP + UDP + BTH. The ICRC is little-endian on the wire.
 */
uint32_t ur_icrc(const uint8_t *l3, size_t len, bool v6);

/*
 * CRC-32 of eight bytes of ones, which stand for the absent local route header. The computation of
 * every packet starts from this state.
 */
#define UR_ICRC_SEED 0x2144df1cu

/* Headers of an IPv4 packet with masked bytes, and these bytes. */
#define UR_ICRC_V4_HDR (UR_IPV4_BYTES + UR_UDP_BYTES + UR_BTH_BYTES)
extern const uint8_t ur_icrc_v4_mask[UR_CRC32_MASK];

/* ur_icrc() of an IPv4 packet; inline for short ones. */
static inline uint32_t ur_icrc_v4(const uint8_t *l3, size_t len)
{
	if (__builtin_expect(len <= UR_CRC32_SHORT && ur_crc32_has_short(), 1))
		return ur_crc32_short_v4(UR_ICRC_SEED, ur_icrc_v4_mask, l3, len);
	return ur_icrc(l3, len, false);
}

/* The same without ur_crc32_short(), for CPUs that cannot run it. */
uint32_t ur_icrc_plain(const uint8_t *l3, size_t len, bool v6);

/*
 * ICRC of a packet in several pieces. ur_icrc_begin() takes the first piece, from the IP header to
 * at least the end of the BTH, and ur_icrc_more() each further piece. The value returned for the
 * last piece is the ICRC.
 */
uint32_t ur_icrc_begin(const uint8_t *l3, size_t len, bool v6);
uint32_t ur_icrc_more(uint32_t icrc, const uint8_t *data, size_t len);

/* Stores an ICRC in wire order, least significant byte first. */
static inline void ur_icrc_put(uint8_t *at, uint32_t icrc)
{
	at[0] = (uint8_t)icrc;
	at[1] = (uint8_t)(icrc >> 8);
	at[2] = (uint8_t)(icrc >> 16);
	at[3] = (uint8_t)(icrc >> 24);
}

/* Computes the ICRC of [l3, l3 + len) and stores it in the four bytes that follow. */
void ur_icrc_append(uint8_t *l3, size_t len, bool v6);

/* True if the ICRC in `p` is correct. `p` was decoded from `frame`. */
bool ur_icrc_ok(const uint8_t *frame, const struct ur_packet *p);

#ifdef __cplusplus
}
#endif

#endif
