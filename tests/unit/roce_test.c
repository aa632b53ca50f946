/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/roce.h"

/* Every bit of the header is one of the fields: any 12 bytes must come back as they were. */
static void assert_bth_round_trip(const uint8_t in[UR_BTH_BYTES])
{
	uint8_t out[UR_BTH_BYTES];
	struct ur_cursor c = ur_cursor_ro(in, UR_BTH_BYTES);
	struct ur_bth bth;

	ur_get_bth(&c, &bth);
	cr_assert_eq(ur_cursor_left(&c), 0);
	c = ur_cursor(out, sizeof(out));
	ur_put_bth(&c, &bth);
	cr_assert_not(c.bad);
	cr_assert_arr_eq(out, in, UR_BTH_BYTES);
}

/* WIRE-BTH-01 */
Test(bth, fields_lie_where_the_diagram_says)
{
	static const uint8_t bytes[UR_BTH_BYTES] = {0x64, 0xe5, 0x80, 0x01, 0x95, 0x12,
						    0x34, 0x56, 0xaa, 0xfe, 0xdc, 0xba};
	struct ur_cursor c = ur_cursor_ro(bytes, sizeof(bytes));
	struct ur_bth bth;

	ur_get_bth(&c, &bth);
	cr_assert_eq(bth.opcode, 0x64);
	cr_assert(bth.solicited);
	cr_assert(bth.migreq);
	cr_assert_eq(bth.pad, 2);
	cr_assert_eq(bth.tver, 5);
	cr_assert_eq(bth.pkey, 0x8001);
	cr_assert(bth.fecn);
	cr_assert_not(bth.becn);
	cr_assert_eq(bth.resv6, 0x15);
	cr_assert_eq(bth.dqpn.v, 0x123456);
	cr_assert(bth.ackreq);
	cr_assert_eq(bth.resv7, 0x2a);
	cr_assert_eq(bth.psn.v, 0xfedcba);
}

/* WIRE-BTH-01 */
Test(bth, keeps_every_single_bit)
{
	for (unsigned bit = 0; bit < UR_BTH_BYTES * 8; bit++) {
		uint8_t bytes[UR_BTH_BYTES] = {0};

		bytes[bit / 8] = (uint8_t)(1 << bit % 8);
		assert_bth_round_trip(bytes);
		for (unsigned i = 0; i < UR_BTH_BYTES; i++)
			bytes[i] = (uint8_t)~bytes[i];
		assert_bth_round_trip(bytes);
	}
}

Test(bth, cuts_values_that_are_too_large_for_their_fields)
{
	struct ur_bth bth = {.pad = 0xff, .tver = 0xff, .resv6 = 0xff, .resv7 = 0xff};
	uint8_t out[UR_BTH_BYTES];
	struct ur_cursor c = ur_cursor(out, sizeof(out));

	ur_put_bth(&c, &bth);
	cr_assert_eq(out[1], 0x3f, "pad and version must not touch S and M");
	cr_assert_eq(out[4], 0x3f, "reserved bits must not touch FECN and BECN");
	cr_assert_eq(out[8], 0x7f, "reserved bits must not touch AckReq");
}

Test(reth, has_address_key_and_length)
{
	static const uint8_t bytes[UR_RETH_BYTES] = {
		1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44, 0x80, 0x00, 0x00, 0x01};
	struct ur_cursor c = ur_cursor_ro(bytes, sizeof(bytes));
	uint8_t out[UR_RETH_BYTES];
	struct ur_reth reth;

	ur_get_reth(&c, &reth);
	cr_assert_eq(reth.va, 0x0102030405060708);
	cr_assert_eq(reth.rkey, 0x11223344);
	cr_assert_eq(reth.length, 0x80000001);
	c = ur_cursor(out, sizeof(out));
	ur_put_reth(&c, &reth);
	cr_assert_arr_eq(out, bytes, sizeof(bytes));
}

/* WIRE-AETH-01 */
Test(aeth, has_syndrome_and_msn)
{
	static const uint8_t bytes[UR_AETH_BYTES] = {0x61, 0xab, 0xcd, 0xef};
	struct ur_cursor c = ur_cursor_ro(bytes, sizeof(bytes));
	uint8_t out[UR_AETH_BYTES];
	struct ur_aeth aeth;

	ur_get_aeth(&c, &aeth);
	cr_assert_eq(aeth.syndrome, 0x61);
	cr_assert_eq(aeth.msn, 0xabcdef);
	c = ur_cursor(out, sizeof(out));
	ur_put_aeth(&c, &aeth);
	cr_assert_arr_eq(out, bytes, sizeof(bytes));
}

Test(deth, has_qkey_reserved_and_source_qpn)
{
	static const uint8_t bytes[UR_DETH_BYTES] = {0x80, 0x01, 0, 0, 0x77, 0x12, 0x34, 0x56};
	struct ur_cursor c = ur_cursor_ro(bytes, sizeof(bytes));
	uint8_t out[UR_DETH_BYTES];
	struct ur_deth deth;

	ur_get_deth(&c, &deth);
	cr_assert_eq(deth.qkey, 0x80010000);
	cr_assert_eq(deth.resv, 0x77);
	cr_assert_eq(deth.sqpn.v, 0x123456);
	c = ur_cursor(out, sizeof(out));
	ur_put_deth(&c, &deth);
	cr_assert_arr_eq(out, bytes, sizeof(bytes));
}

Test(atomiceth, has_address_key_swap_and_compare)
{
	uint8_t bytes[UR_ATOMICETH_BYTES], out[UR_ATOMICETH_BYTES];
	struct ur_atomiceth atomic;
	struct ur_cursor c;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	c = ur_cursor_ro(bytes, sizeof(bytes));
	ur_get_atomiceth(&c, &atomic);
	cr_assert_eq(atomic.va, 0x0102030405060708);
	cr_assert_eq(atomic.rkey, 0x090a0b0c);
	cr_assert_eq(atomic.swap_add, 0x0d0e0f1011121314);
	cr_assert_eq(atomic.compare, 0x15161718191a1b1c);
	c = ur_cursor(out, sizeof(out));
	ur_put_atomiceth(&c, &atomic);
	cr_assert_arr_eq(out, bytes, sizeof(bytes));
}

/* A get on one byte too few leaves its struct alone, a put its buffer; both turn the cursor bad. */
#define ASSERT_ALL_OR_NOTHING(noun, bytes)                                                         \
	do {                                                                                       \
		uint8_t buf[bytes], same[bytes];                                                   \
		struct ur_##noun h, before;                                                        \
		struct ur_cursor c = ur_cursor(buf, (bytes)-1);                                    \
                                                                                                   \
		memset(buf, 0xa5, sizeof(buf));                                                    \
		memcpy(same, buf, sizeof(buf));                                                    \
		memset(&h, 0, sizeof(h));                                                          \
		memset(&before, 0, sizeof(before));                                                \
		ur_get_##noun(&c, &h);                                                             \
		cr_assert(c.bad);                                                                  \
		cr_assert_arr_eq(&h, &before, sizeof(h));                                          \
		c = ur_cursor(buf, (bytes)-1);                                                     \
		ur_put_##noun(&c, &h);                                                             \
		cr_assert(c.bad);                                                                  \
		cr_assert_arr_eq(buf, same, sizeof(buf));                                          \
	} while (0)

/* WIRE-EXT-01 */
Test(roce, headers_are_taken_whole_or_not_at_all)
{
	ASSERT_ALL_OR_NOTHING(bth, UR_BTH_BYTES);
	ASSERT_ALL_OR_NOTHING(reth, UR_RETH_BYTES);
	ASSERT_ALL_OR_NOTHING(aeth, UR_AETH_BYTES);
	ASSERT_ALL_OR_NOTHING(deth, UR_DETH_BYTES);
	ASSERT_ALL_OR_NOTHING(atomiceth, UR_ATOMICETH_BYTES);
}

/* WIRE-AETH-02 */
Test(credits, decode_the_table)
{
	static const uint32_t receives[31] = {0,    1,	  2,	3,     4,     6,     8,	   12,
					      16,   24,	  32,	48,    64,    96,    128,  192,
					      256,  384,  512,	768,   1024,  1536,  2048, 3072,
					      4096, 6144, 8192, 12288, 16384, 24576, 32768};

	for (uint8_t code = 0; code < 31; code++)
		cr_assert_eq(ur_credits_decode(code), receives[code], "code %u", code);
	cr_assert_eq(ur_credits_decode(UR_CREDITS_NONE), UINT32_MAX);
}

/* WIRE-AETH-02 */
Test(credits, encode_never_promises_more_than_there_is)
{
	for (uint32_t n = 0; n < 40000; n++) {
		uint8_t code = ur_credits_encode(n);

		cr_assert_leq(ur_credits_decode(code), n);
		if (code < 30)
			cr_assert_gt(ur_credits_decode((uint8_t)(code + 1)), n, "not the largest");
	}
	cr_assert_eq(ur_credits_encode(UINT32_MAX), 30, "31 means something else");
}

/* WIRE-AETH-03 */
Test(rnr_timer, codes_are_those_of_table_45)
{
	static const uint64_t us[32] = {
		655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,   320,
		480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
		20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

	for (uint8_t code = 0; code < 32; code++) {
		cr_assert_eq(ur_rnr_timer_ns(code), us[code] * 1000, "code %u", code);
		cr_assert_eq(ur_rnr_timer_ns(code | UR_SYNDROME_RNR_NAK), us[code] * 1000);
	}
}

/* WIRE-AETH-01 */
Test(nak, has_a_name_for_every_code)
{
	cr_assert_str_eq(ur_nak_name(0), "PSN sequence error");
	cr_assert_str_eq(ur_nak_name(1), "invalid request");
	cr_assert_str_eq(ur_nak_name(2), "remote access error");
	cr_assert_str_eq(ur_nak_name(3), "remote operational error");
	cr_assert_str_eq(ur_nak_name(4), "invalid RD request");
	for (unsigned code = 5; code < 256; code++)
		cr_assert_str_eq(ur_nak_name((uint8_t)code), "reserved");
}
