/* SPDX-License-Identifier: BSD-3-Clause */
#include <isa-l/crc.h>

#include "wire/icrc.h"

/*
 * CRC-32 of the eight bytes of ones that stand for the absent local route header: the state from
 * which every packet starts.
 */
#define SEED 0x2144df1cu

/* Where BTH keeps FECN, BECN and six reserved bits, which switches may set. */
#define BTH_RESV8A 4

#define V4_HDR_BYTES (UR_IPV4_BYTES + UR_UDP_BYTES + UR_BTH_BYTES)
#define V6_HDR_BYTES (UR_IPV6_BYTES + UR_UDP_BYTES + UR_BTH_BYTES)

static void mask_udp_bth(uint8_t *udp)
{
	memset(udp + 6, 0xff, 2); /* checksum */
	udp[UR_UDP_BYTES + BTH_RESV8A] = 0xff;
}

static uint32_t crc_v4_headers(const uint8_t *l3)
{
	uint8_t hdr[V4_HDR_BYTES];

	memcpy(hdr, l3, sizeof(hdr));
	hdr[1] = 0xff;		   /* TOS */
	hdr[8] = 0xff;		   /* TTL */
	memset(hdr + 10, 0xff, 2); /* header checksum */
	mask_udp_bth(hdr + UR_IPV4_BYTES);
	return crc32_gzip_refl(SEED, hdr, sizeof(hdr));
}

static uint32_t crc_v6_headers(const uint8_t *l3)
{
	uint8_t hdr[V6_HDR_BYTES];

	memcpy(hdr, l3, sizeof(hdr));
	hdr[0] |= 0x0f; /* traffic class and flow label follow the version */
	memset(hdr + 1, 0xff, 3);
	hdr[7] = 0xff; /* hop limit */
	mask_udp_bth(hdr + UR_IPV6_BYTES);
	return crc32_gzip_refl(SEED, hdr, sizeof(hdr));
}

uint32_t ur_icrc(const uint8_t *l3, size_t len, bool v6)
{
	size_t hdr_bytes = v6 ? V6_HDR_BYTES : V4_HDR_BYTES;
	uint32_t crc = v6 ? crc_v6_headers(l3) : crc_v4_headers(l3);

	return crc32_gzip_refl(crc, l3 + hdr_bytes, len - hdr_bytes);
}

void ur_icrc_append(uint8_t *l3, size_t len, bool v6)
{
	uint32_t crc = ur_icrc(l3, len, v6);

	l3[len] = (uint8_t)crc;
	l3[len + 1] = (uint8_t)(crc >> 8);
	l3[len + 2] = (uint8_t)(crc >> 16);
	l3[len + 3] = (uint8_t)(crc >> 24);
}

bool ur_icrc_ok(const uint8_t *frame, const struct ur_packet *p)
{
	return ur_icrc(frame + p->l3_off, p->icrc_off - p->l3_off, p->ip.v6) == p->icrc;
}
