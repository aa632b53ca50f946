/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PRINT_PRINT_H
#define UR_PRINT_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

/*
 * Headers as text: the one printer of programs, traces and tests.
 *
 * Every function writes at most `cap` bytes including the final NUL, cuts what does not fit, and
 * returns the length of the text it wrote (without NUL). UR_PRINT_MAX is room for any packet.
 *
 * Thread class: reentrant.
 */
#define UR_PRINT_MAX 1024

/*
 * One line, without newline:
 *
 *   10.0.0.1:49153 > 10.0.0.2 RC_WRITE_ONLY qpn 0x11 psn 1048576 [A] RETH{va 0x7f00 rkey 0x273
 *   len 64} payload 64 icrc ok
 *
 * Flags are SE (solicited), M (migrated), A (ack requested), FECN and BECN. VLAN, traffic class,
 * P_Key and pad are shown when they are not the usual none, 0, 0xffff and 0. A MAD to QP1 is shown
 * by name (ur_print_mad()). Of the bitmap of an extended ACK the first ranges of PSNs are named:
 *
 *   XAETH{echo 4096 path 0 residence 10496 ns epsn 7} SACK{missing 4: 7 10..12 arrived 3: 8..9 13}
 *
 * `p` was decoded and its frame is still there.
 */
size_t ur_print_packet(char *buf, size_t cap, const struct ur_packet *p, bool icrc_ok);

/* "10.0.0.1" or "fe80::1". */
size_t ur_print_gid(char *buf, size_t cap, const struct ur_gid *gid);

/* "AETH{ACK credits none msn 3}": what an AETH says. */
size_t ur_print_aeth(char *buf, size_t cap, const struct ur_aeth *aeth);

/*
 * "MAD{CM REQ tid 0x1 ...}" for the management datagram [mad, mad + len): CM messages field by
 * field, others by class, method and attribute. "MAD{malformed}" when it is not 256 bytes.
 */
size_t ur_print_mad(char *buf, size_t cap, const uint8_t *mad, size_t len);

#endif
