/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_MTU_H
#define UR_EDGE_MTU_H

#include <stdint.h>

/*
 * What stands around a payload. An MTU is the bytes of IP packet that pass in one frame, a path MTU
 * (PMTU) the bytes of payload: 256, 512, ... 4096. Pure functions.
 */

/*
 * Bytes of an IP packet that are not payload, at most: IPv6 40, UDP 8, BTH 12, extended headers 36,
 * ICRC 4. An MTU of 4196 therefore carries 4096, 1500 carries 1024.
 */
#define UR_ROCE_OVERHEAD_BYTES 100

#define UR_FRAME_OVERHEAD_BYTES 18 /* Ethernet header and one tag */
#define UR_TPACKET_BYTES	66 /* in front of a frame in an af_packet slot: TPACKET2_HDRLEN, gap */
/* A slot is so much larger than the MTU. */
#define UR_AF_PACKET_ROOM_BYTES (UR_FRAME_OVERHEAD_BYTES + UR_TPACKET_BYTES)

/* Of links without a kernel interface. */
#define UR_VIRTUAL_MTU 4200

/* The largest PMTU that fits; 0 when not even 256 does. */
static inline uint16_t ur_mtu_payload(uint32_t mtu)
{
	uint32_t payload = 4096;

	while (payload >= 256 && payload + UR_ROCE_OVERHEAD_BYTES > mtu)
		payload /= 2;
	return payload >= 256 ? (uint16_t)payload : 0;
}

#endif
