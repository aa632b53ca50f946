/* SPDX-License-Identifier: BSD-3-Clause */
#include <isa-l/crc.h>

#include "wire/crc32.h"
#include "wire/icrc.h"

#define UDP_BTH_BYTES (UR_UDP_BYTES + UR_BTH_BYTES)
#define V4_HDR_BYTES  UR_ICRC_V4_HDR
#define V6_HDR_BYTES  (UR_IPV6_BYTES + UDP_BTH_BYTES)

/*
 * A packet of up to this size is copied and passed to the CRC in one call. For an ACK, a second
 * call costs more than copying the few bytes after the masked headers.
 */
#define ONE_CALL_BYTES 128

/* UDP checksum; FECN, BECN and the six reserved bits beside them. `o`: offset of the UDP header. */
#define UDP_BTH_MASK(o) [(o) + 6] = 0xff, [(o) + 7] = 0xff, [(o) + UR_UDP_BYTES + 4] = 0xff

/* WIRE-ICRC-02 */
const uint8_t ur_icrc_v4_mask[UR_CRC32_MASK] = {
	[1] = 0xff, /* DSCP, ECN */
	[8] = 0xff, /* TTL */
	[10] = 0xff,
	[11] = 0xff, /* header checksum */
	UDP_BTH_MASK(UR_IPV4_BYTES),
};

static const uint8_t v6_mask[UR_CRC32_MASK] = {
	[0] = 0x0f,
	[1] = 0xff,
	[2] = 0xff,
	[3] = 0xff, /* traffic class, flow label */
	[7] = 0xff, /* hop limit */
	UDP_BTH_MASK(UR_IPV6_BYTES),
};

_Static_assert(V6_HDR_BYTES <= UR_CRC32_MASKED, "all masked bytes are in the mask");

/* Two functions with constant lengths, so that the compiler can vectorize the loops. */
static void mask_v4(uint8_t *dst, const uint8_t *l3)
{
	for (unsigned i = 0; i < V4_HDR_BYTES; i++)
		dst[i] = l3[i] | ur_icrc_v4_mask[i];
}

static void mask_v6(uint8_t *dst, const uint8_t *l3)
{
	for (unsigned i = 0; i < V6_HDR_BYTES; i++)
		dst[i] = l3[i] | v6_mask[i];
}

/*
 * By ISA-L. Its code for AVX-512 returns with the upper halves of vector registers in use, and then the SSE instructions that
 * compilers make of plain C are slow until these are cleared. A message of 256 bytes cost both engines 500 ns instead of 180.
 */
static inline uint32_t crc_by_isal(uint32_t crc, const uint8_t *data, size_t len)
{
	crc = crc32_gzip_refl(crc, data, len);
	ur_crc32_clear_upper();
	return crc;
}

/* WIRE-ICRC-01 */
uint32_t ur_icrc_plain(const uint8_t *l3, size_t len, bool v6)
{
	size_t hdr_bytes = v6 ? V6_HDR_BYTES : V4_HDR_BYTES;
	uint8_t buf[ONE_CALL_BYTES];
	uint32_t crc;

	if (v6)
		mask_v6(buf, l3);
	else
		mask_v4(buf, l3);
	if (len <= sizeof(buf)) {
		memcpy(buf + hdr_bytes, l3 + hdr_bytes, len - hdr_bytes);
		return crc_by_isal(UR_ICRC_SEED, buf, len);
	}
	crc = crc_by_isal(UR_ICRC_SEED, buf, hdr_bytes);
	return crc_by_isal(crc, l3 + hdr_bytes, len - hdr_bytes);
}

/* WIRE-ICRC-01 */
uint32_t ur_icrc(const uint8_t *l3, size_t len, bool v6)
{
	const uint8_t *mask = v6 ? v6_mask : ur_icrc_v4_mask;
	size_t hdr_bytes = v6 ? V6_HDR_BYTES : V4_HDR_BYTES;
	uint32_t crc;

	if (__builtin_expect(!ur_crc32_has_short(), 0))
		return ur_icrc_plain(l3, len, v6);
	if (len <= UR_CRC32_SHORT)
		return ur_crc32_short(UR_ICRC_SEED, mask, hdr_bytes, l3, len);
	crc = ur_crc32_short(UR_ICRC_SEED, mask, hdr_bytes, l3, hdr_bytes);
	return crc_by_isal(crc, l3 + hdr_bytes, len - hdr_bytes);
}

void ur_icrc_append(uint8_t *l3, size_t len, bool v6)
{
	ur_icrc_put(l3 + len, v6 ? ur_icrc(l3, len, true) : ur_icrc_v4(l3, len));
}

/* The result of ISA-L's CRC is final after each call and is also the seed to continue from. */
uint32_t ur_icrc_begin(const uint8_t *l3, size_t len, bool v6)
{
	return ur_icrc(l3, len, v6);
}

uint32_t ur_icrc_more(uint32_t icrc, const uint8_t *data, size_t len)
{
	return crc_by_isal(icrc, data, len);
}

bool ur_icrc_ok(const uint8_t *frame, const struct ur_packet *p)
{
	return ur_icrc(frame + p->l3_off, p->icrc_off - p->l3_off, p->ip.v6) == p->icrc;
}
