/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_FRAMES_H
#define UR_TEST_FRAMES_H

#include "wire/packet.h"

/*
 * Frames for tests, made by plain code that shares nothing with the decoder or the CRC under test.
 */
#define FRAME_CAP 9216

struct frame {
	uint8_t b[FRAME_CAP];
	size_t len;
};

/*
 * A packet between 10.0.0.1 and 10.0.0.2 (or fe80::1 and fe80::2) with telling values in every
 * header of `opcode`; payload_len bytes of `payload` follow, pad is set to match.
 */
struct ur_packet frame_packet(uint8_t opcode, bool v6, const uint8_t *payload,
			      uint16_t payload_len);

/* Sets the length fields, the IPv4 checksum and the ICRC of *p and encodes it. */
void frame_make(struct frame *f, struct ur_packet *p);

/* Mends the IPv4 header checksum of the header at `ip`. */
void frame_fix_ipv4_csum(uint8_t *ip);

/* CRC-32 (IEEE 802.3), a bit at a time, over [p, p + len) from state `crc`; start with 0. */
uint32_t frame_crc32(uint32_t crc, const uint8_t *p, size_t len);

/* The ICRC by the letter of annex A17, for [l3, l3 + len) without the ICRC itself. */
uint32_t frame_icrc(const uint8_t *l3, size_t len, bool v6);

#endif
