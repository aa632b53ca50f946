/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "frames.h"
#include "wire/icrc.h"

/* A CNP sent by a ConnectX-4 Lx: UDP source port 0, TOS 0xc2. */
static const uint8_t connectx4_cnp[] = {
	0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45,
	0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01,
	0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff,
	0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a};

Test(icrc, verifies_the_cnp_of_a_connectx4)
{
	struct ur_packet p;

	cr_assert_eq(ur_packet_decode(connectx4_cnp, sizeof(connectx4_cnp), &p), UR_DROP_NONE);
	cr_assert_eq(p.bth.opcode, UR_CNP);
	cr_assert(p.bth.becn);
	cr_assert_eq(p.bth.dqpn.v, 0x118);
	cr_assert_eq(p.icrc, 0x2a00fd82);
	cr_assert(ur_icrc_ok(connectx4_cnp, &p));
}

Test(icrc, gives_the_published_value_of_a_uc_send)
{
	/* 192.168.0.7 to itself, port 49152, TOS 1, id 1144, 18 bytes and 2 of pad. */
	static const uint8_t l3[] = {0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11,
				     0xb4, 0xd5, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07,
				     0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2, 0x24, 0x60,
				     0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
				     0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a,
				     0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00};

	cr_assert_eq(ur_icrc(l3, sizeof(l3), false), 0xf353f378);
}

/* WIRE-ICRC-01 */
Test(icrc, equals_the_bitwise_definition_at_every_length)
{
	static uint8_t l3[4400];

	for (size_t i = 0; i < sizeof(l3); i++)
		l3[i] = (uint8_t)(i * 31 + i / 256);
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (size_t len = v6 ? 60 : 40; len < sizeof(l3); len += len < 400 ? 1 : 97)
			cr_assert_eq(ur_icrc(l3, len, v6), frame_icrc(l3, len, v6), "v6 %u len %zu",
				     v6, len);
}

/* WIRE-ICRC-01 */
Test(icrc, is_the_same_without_carry_less_multiplication)
{
	static uint8_t l3[4400];

	for (size_t i = 0; i < sizeof(l3); i++)
		l3[i] = (uint8_t)(i * 29 + i / 256);
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (size_t len = v6 ? 60 : 40; len < sizeof(l3); len += len < 400 ? 1 : 97)
			cr_assert_eq(ur_icrc_plain(l3, len, v6), frame_icrc(l3, len, v6),
				     "v6 %u len %zu", v6, len);
}

/* The first piece has all masked bytes. Its length decides which function continues with what. */
Test(icrc, of_pieces_equals_that_of_the_whole)
{
	static uint8_t l3[700];

	for (size_t i = 0; i < sizeof(l3); i++)
		l3[i] = (uint8_t)(i * 37 + i / 128);
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (size_t first = v6 ? 60 : 40; first < 300; first += 4)
			for (size_t len = first; len < sizeof(l3); len += 31) {
				size_t second = first + (len - first) / 3;
				uint32_t icrc = ur_icrc_begin(l3, first, v6);

				icrc = ur_icrc_more(icrc, l3 + first, second - first);
				icrc = ur_icrc_more(icrc, l3 + second, len - second);
				cr_assert_eq(icrc, frame_icrc(l3, len, v6), "v6 %u: %zu of %zu", v6,
					     first, len);
			}
}

/* WIRE-ICRC-01 */
Test(icrc, append_stores_what_verifies)
{
	static const uint8_t text[200] = "payload";

	for (uint16_t len = 0; len <= sizeof(text); len++)
		for (unsigned v6 = 0; v6 < 2; v6++) {
			struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, v6, text, len);
			struct frame f;

			frame_make(&f, &p);
			memset(f.b + f.len - 4, 0, 4);
			ur_icrc_append(f.b + 14, f.len - 4 - 14, v6);
			cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
			cr_assert(ur_icrc_ok(f.b, &p));
		}
}

/* Bits that routers may change, by byte of the IP packet. */
static uint8_t variant_bits(unsigned byte, bool v6)
{
	unsigned udp = v6 ? 40 : 20;

	if (byte == udp + 6 || byte == udp + 7 || byte == udp + 8 + 4)
		return 0xff;
	if (v6)
		return byte == 0 ? 0x0f : byte <= 3 || byte == 7 ? 0xff : 0;
	return byte == 1 || byte == 8 || byte == 10 || byte == 11 ? 0xff : 0;
}

static void assert_covers_exactly_the_invariant_bits(bool v6, uint16_t payload_len)
{
	static const uint8_t payload[512];
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, v6, payload, payload_len);
	struct frame f;
	size_t len;

	frame_make(&f, &p);
	len = f.len - 14 - 4;
	for (unsigned bit = 0; bit < len * 8; bit++) {
		bool variant = variant_bits(bit / 8, v6) >> bit % 8 & 1;
		uint32_t crc;

		f.b[14 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		crc = ur_icrc(f.b + 14, len, v6);
		f.b[14 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(crc == p.icrc, variant, "v6 %d byte %u bit %u", v6, bit / 8, bit % 8);
	}
}

/* WIRE-ICRC-02 */
Test(icrc, covers_every_bit_but_those_that_routers_change)
{
	assert_covers_exactly_the_invariant_bits(false, 0);
	assert_covers_exactly_the_invariant_bits(false, 301);
	assert_covers_exactly_the_invariant_bits(true, 0);
	assert_covers_exactly_the_invariant_bits(true, 301);
}

Test(icrc, is_refused_when_any_of_its_own_bits_is_wrong)
{
	uint8_t frame[sizeof(connectx4_cnp)];
	struct ur_packet p;

	for (unsigned bit = 0; bit < 32; bit++) {
		memcpy(frame, connectx4_cnp, sizeof(frame));
		frame[sizeof(frame) - 4 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(ur_packet_decode(frame, sizeof(frame), &p), UR_DROP_NONE);
		cr_assert_not(ur_icrc_ok(frame, &p), "bit %u", bit);
	}
}

#if defined(__x86_64__)
/* Whether upper halves of vector registers are in use: XINUSE, bit 2 (Intel's manual, XGETBV with ECX = 1). */
static bool upper_halves_are_in_use(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return low & 4;
}

static bool cpu_tells_them(void)
{
	uint32_t a, b, c, d;

	return __builtin_cpu_supports("avx") && __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && a & 4;
}

/* What follows, compiled to SSE, would wait for them with each instruction. */
Test(icrc, leaves_no_upper_halves_of_vector_registers_in_use)
{
	static const size_t lens[] = {64, 200, 320, 1100, 4200};
	static uint8_t l3[4200];

	if (!cpu_tells_them())
		cr_skip_test("this CPU does not tell");
	for (unsigned i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		(void)ur_icrc(l3, lens[i], true);
		cr_expect_not(upper_halves_are_in_use(), "ur_icrc(), %zu bytes", lens[i]);
		(void)ur_icrc_plain(l3, lens[i], false);
		cr_expect_not(upper_halves_are_in_use(), "ur_icrc_plain(), %zu bytes", lens[i]);
		(void)ur_icrc_more(UR_ICRC_SEED, l3, lens[i]);
		cr_expect_not(upper_halves_are_in_use(), "ur_icrc_more(), %zu bytes", lens[i]);
	}
}
#endif
