/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_MTU_H
#define UR_EDGE_MTU_H

#include <stdint.h>

/*
 * Sizes around a payload. An MTU is the largest IP packet of a frame, in bytes. A path MTU (PMTU)
 * is the largest payload: 256, 512, 1024, 2048 or 4096 bytes. Thread class: pure functions.
 */

/*
 * Maximum bytes of an IP packet that are not payload: IPv6 40, UDP 8, BTH 12, extended headers 36,
 * ICRC 4. An MTU of 4196 therefore allows a PMTU of 4096, and 1500 allows 1024.
 */
#define UR_ROCE_OVERHEAD_BYTES 100

#define UR_FRAME_OVERHEAD_BYTES 18 /* Ethernet header and one tag */
#define UR_TPACKET_BYTES	66 /* before a frame in an af_packet slot: TPACKET2_HDRLEN, gap */
/* The difference between an af_packet slot and the MTU. */
#define UR_AF_PACKET_ROOM_BYTES (UR_FRAME_OVERHEAD_BYTES + UR_TPACKET_BYTES)

/* The MTU of links without a kernel interface. */
#define UR_VIRTUAL_MTU 4200

/* The largest PMTU that fits into the MTU; 0 if not even 256 fits. */
static inline uint16_t ur_mtu_payload(uint32_t mtu)
{
	uint32_t payload = 4096;

	while (payload >= 256 && payload + UR_ROCE_OVERHEAD_BYTES > mtu)
		payload /= 2;
	return payload >= 256 ? (uint16_t)payload : 0;
}

#endif
