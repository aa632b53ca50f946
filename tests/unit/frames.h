/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_FRAMES_H
#define UR_TEST_FRAMES_H

#include "wire/packet.h"

/*
 * Frames for tests, built by simple code that shares nothing with the decoder and the CRC under
 * test.
 */
#define FRAME_CAP 9216

struct frame {
	uint8_t b[FRAME_CAP];
	size_t len;
};

/*
 * A packet from 10.0.0.1 to 10.0.0.2 (or fe80::1 to fe80::2) with distinct values in every header
 * of `opcode`, followed by payload_len bytes of `payload`. The pad is set to match.
 */
struct ur_packet frame_packet(uint8_t opcode, bool v6, const uint8_t *payload,
			      uint16_t payload_len);

/* Sets the length fields, the IPv4 checksum and the ICRC of *p and encodes it. */
void frame_make(struct frame *f, struct ur_packet *p);

/* Corrects the checksum of the IPv4 header at `ip`. */
void frame_fix_ipv4_csum(uint8_t *ip);

/* CRC-32 (IEEE 802.3) of [p, p + len), bit by bit, from state `crc`; start with 0. */
uint32_t frame_crc32(uint32_t crc, const uint8_t *p, size_t len);

/* The ICRC of [l3, l3 + len), exactly as annex A17 describes it. The ICRC itself is not included. */
uint32_t frame_icrc(const uint8_t *l3, size_t len, bool v6);

#endif
