/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PRINT_PRINT_H
#define UR_PRINT_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

/*
 * Packet headers as text, for programs, traces and tests.
 *
 * Every function writes at most `cap` bytes including the final NUL, truncates text that does not
 * fit, and returns the length of the text written (without NUL). UR_PRINT_MAX bytes suffice for any
 * packet.
 *
 * Thread class: pure functions.
 */
#define UR_PRINT_MAX 1024

/*
 * One line, without newline:
 *
 *   10.0.0.1:49153 > 10.0.0.2 RC_WRITE_ONLY qpn 0x11 psn 1048576 [A] RETH{va 0x7f00 rkey 0x273
 *   len 64} payload 64 icrc ok
 *
 * Flags are SE (solicited), M (migrated), A (ack requested), FECN and BECN. VLAN, traffic class,
 * P_Key and pad are shown only if they differ from none, 0, 0xffff and 0. A MAD to QP1 is shown by
 * ur_print_mad(). Of the bitmap of an extended ACK the first ranges of PSNs are shown:
 *
 *   XAETH{echo 4096 path 0 residence 10496 ns epsn 7} SACK{missing 4: 7 10..12 arrived 3: 8..9 13}
 *
 * `p` comes from ur_packet_decode(), and its frame must still exist.
 */
size_t ur_print_packet(char *buf, size_t cap, const struct ur_packet *p, bool icrc_ok);

/* "10.0.0.1" or "fe80::1". */
size_t ur_print_gid(char *buf, size_t cap, const struct ur_gid *gid);

/* An AETH, such as "AETH{ACK credits none msn 3}". */
size_t ur_print_aeth(char *buf, size_t cap, const struct ur_aeth *aeth);

/*
 * The management datagram [mad, mad + len), such as "MAD{CM REQ tid 0x1 ...}". CM messages are
 * shown field by field, others by class, method and attribute. "MAD{malformed}" if `len` is not
 * 256.
 */
size_t ur_print_mad(char *buf, size_t cap, const uint8_t *mad, size_t len);

#endif
