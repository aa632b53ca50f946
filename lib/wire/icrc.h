/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_ICRC_H
#define UR_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The invariant CRC of RoCEv2 (IBA annex A17.3, 7.8.1): CRC-32 over eight bytes of ones, then
 * IP, UDP, BTH and everything up to the ICRC, with the fields that routers change read as ones.
 */

/*
 * ICRC of the bytes [l3, l3 + len), IP header to the end of the pad; `v6` tells which IP header it
 * is. `len` is at least IP + UDP + BTH. The value is stored little-endian.
 */
uint32_t ur_icrc(const uint8_t *l3, size_t len, bool v6);

/*
 * The same for a packet that lies in several places: the first piece, IP header to at least the end
 * of the BTH, then the others. The value after the last piece is the ICRC.
 */
uint32_t ur_icrc_begin(const uint8_t *l3, size_t len, bool v6);
uint32_t ur_icrc_more(uint32_t icrc, const uint8_t *data, size_t len);

/* Stores an ICRC, least significant byte first. */
static inline void ur_icrc_put(uint8_t *at, uint32_t icrc)
{
	at[0] = (uint8_t)icrc;
	at[1] = (uint8_t)(icrc >> 8);
	at[2] = (uint8_t)(icrc >> 16);
	at[3] = (uint8_t)(icrc >> 24);
}

/* Computes the ICRC of [l3, l3 + len) and stores its four bytes behind it. */
void ur_icrc_append(uint8_t *l3, size_t len, bool v6);

/* The ICRC that `p` carries is right for `frame`, from which it was decoded. */
bool ur_icrc_ok(const uint8_t *frame, const struct ur_packet *p);

#ifdef __cplusplus
}
#endif

#endif
