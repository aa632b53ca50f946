/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "frames.h"
#include "wire/delay.h"
#include "wire/ext.h"

static const uint8_t xth_bytes[UR_XTH_BYTES] = {0x01, 0x23, 0x45, 0x67, 0x0f, 0xa1, 0xa2, 0xa3,
						0x05, 0xb1, 0xb2, 0xb3, 0x77, 0xc1, 0xc2, 0xc3};
static const uint8_t xaeth_bytes[UR_XAETH_BYTES] = {0x89, 0xab, 0xcd, 0xef, 0x00, 0x00,
						    0x10, 0x01, 0x03, 0xfe, 0xdc, 0xba};
static const uint8_t xrth_bytes[UR_XRTH_BYTES] = {0x66, 0xd1, 0xd2, 0xd3, 0x55, 0xe1, 0xe2, 0xe3};

/* WIRE-XTH-01 */
Test(xth, fields_lie_where_the_diagram_says)
{
	struct ur_cursor c = ur_cursor_ro(xth_bytes, sizeof(xth_bytes));
	struct ur_xth x;

	ur_get_xth(&c, &x);
	cr_assert_eq(ur_cursor_left(&c), 0);
	cr_assert_eq(x.stamp, 0x01234567);
	cr_assert_eq(x.path, 15);
	cr_assert_eq(x.ssn, 0xa1a2a3);
	cr_assert_eq(x.flags, UR_XTH_RECV | UR_XTH_RETRY);
	cr_assert_eq(x.offset, 0xb1b2b3);
	cr_assert_eq(x.tag, 0x77);
	cr_assert_eq(x.rwqen, 0xc1c2c3);
}

/* WIRE-XAETH-01 */
Test(xaeth, fields_lie_where_the_diagram_says)
{
	struct ur_cursor c = ur_cursor_ro(xaeth_bytes, sizeof(xaeth_bytes));
	struct ur_xaeth x;

	ur_get_xaeth(&c, &x);
	cr_assert_eq(ur_cursor_left(&c), 0);
	cr_assert_eq(x.echo, 0x89abcdef);
	cr_assert_eq(x.residence, 0x1001);
	cr_assert_eq(x.path, 3);
	cr_assert_eq(x.epsn.v, 0xfedcba);
}

/* WIRE-XRTH-01 */
Test(xrth, fields_lie_where_the_diagram_says)
{
	struct ur_cursor c = ur_cursor_ro(xrth_bytes, sizeof(xrth_bytes));
	struct ur_xrth x;

	ur_get_xrth(&c, &x);
	cr_assert_eq(ur_cursor_left(&c), 0);
	cr_assert_eq(x.resv, 0x66);
	cr_assert_eq(x.ssn, 0xd1d2d3);
	cr_assert_eq(x.resv2, 0x55);
	cr_assert_eq(x.offset, 0xe1e2e3);
}

/* WIRE-ASTH-01 */
Test(asth, fields_lie_where_the_diagram_says)
{
	static const uint8_t bytes[UR_ASTH_BYTES] = {0x9d, 0x7f, 0x12, 0x34};
	struct ur_cursor c = ur_cursor_ro(bytes, sizeof(bytes));
	struct ur_asth x;

	ur_get_asth(&c, &x);
	cr_assert_eq(ur_cursor_left(&c), 0);
	cr_assert_eq(x.status, 2);
	cr_assert_eq(x.queue_class, 1);
	cr_assert(x.granted);
	cr_assert_eq(x.resv, 5);
	cr_assert_eq(x.room, 127);
	cr_assert_eq(x.generation, 0x1234);
}

/* WIRE-ASTH-01 */
Test(ext_wire, notify_is_a_bth_a_status_and_the_pool)
{
	static const uint8_t want[] = {0xd8, 0x07, 0x81, 0x82, 0x91, 0x92, 0x93, 0x94};
	struct ur_packet p = frame_packet(UR_EXT_NOTIFY, false, NULL, 0);
	struct frame f;

	frame_make(&f, &p);
	cr_assert_eq(f.b[42], 0xd9);
	cr_assert_eq(f.len, 54 + sizeof(want) + 4);
	cr_assert_arr_eq(f.b + 54, want, sizeof(want));
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.pool, 0x91929394);
	p = frame_packet(UR_EXT_NOTIFY, false, want, 4);
	frame_make(&f, &p);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_LENGTH, "with payload");
}

/* WIRE-ASTH-01 */
Test(ext_wire, an_acknowledgement_with_status_has_it_before_the_bitmap)
{
	static const uint8_t map[4] = {0x23};
	static const uint8_t want[] = {0x0e, 0xff, 0xff, 0xff, 0xd8, 0x07,
				       0x81, 0x82, 0x23, 0,    0,    0};
	struct ur_packet p = frame_packet(UR_EXT_ACKNOWLEDGE_STATUS, false, map, sizeof(map));
	struct frame f;

	frame_make(&f, &p);
	cr_assert_eq(f.b[42], 0xda);
	cr_assert_arr_eq(f.b + 54 + UR_AETH_BYTES + 8, want, sizeof(want));
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.payload_len, 4);
}

/* WIRE-NDTH-01 */
Test(ndth, fields_lie_where_the_diagram_says)
{
	static const uint8_t bytes[UR_NDTH_BYTES] = {0x9d, 0x7f, 0x12, 0x34};
	struct ur_cursor c = ur_cursor_ro(bytes, sizeof(bytes));
	struct ur_ndth x;

	ur_get_ndth(&c, &x);
	cr_assert_eq(ur_cursor_left(&c), 0);
	cr_assert_eq(x.hops, 0x13);
	cr_assert_eq(x.resv, 0x57f);
	cr_assert_eq(x.delay, 0x1234);
	cr_assert_eq(ur_ndth_pack(&x), 0x9d7f1234);
}

/* WIRE-NDTH-01 */
Test(ext_wire, an_acknowledgement_with_delay_has_it_last_before_the_bitmap)
{
	static const uint8_t map[4] = {0x23};
	static const uint8_t delay[] = {0x0e, 0xff, 0xff, 0xff, 0x18, 0, 0x23, 0x45, 0x23, 0, 0, 0};
	static const uint8_t both[] = {0x0e, 0xff, 0xff, 0xff, 0xd8, 0x07, 0x81, 0x82,
				       0x18, 0,	   0x23, 0x45, 0x23, 0,	   0,	 0};
	struct ur_packet p = frame_packet(UR_EXT_ACKNOWLEDGE_DELAY, false, map, sizeof(map));
	struct frame f;

	frame_make(&f, &p);
	cr_assert_eq(f.b[42], 0xdb);
	cr_assert_arr_eq(f.b + 54 + UR_AETH_BYTES + 8, delay, sizeof(delay));
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.payload_len, 4);
	cr_assert_eq(p.ndth.hops, 3);
	p = frame_packet(UR_EXT_ACKNOWLEDGE_STATUS_DELAY, false, map, sizeof(map));
	frame_make(&f, &p);
	cr_assert_eq(f.b[42], 0xdc);
	cr_assert_arr_eq(f.b + 54 + UR_AETH_BYTES + 8, both, sizeof(both));
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.ndth.delay, 0x2345);
}

/* WIRE-BPTH-01 */
Test(bpth, fields_lie_where_the_diagram_says)
{
	static const uint8_t bytes[UR_BPTH_BYTES] = {0x81, 0x12, 0x34, 0x56};
	struct ur_cursor c = ur_cursor_ro(bytes, sizeof(bytes));
	struct ur_bpth x;

	ur_get_bpth(&c, &x);
	cr_assert_eq(ur_cursor_left(&c), 0);
	cr_assert_eq(x.flags, 0x81);
	cr_assert(x.flags & UR_BPTH_MORE);
	cr_assert_eq(x.offset, 0x123456);
	cr_assert_eq(ur_bpth_pack(&x), 0x81123456);
}

/* WIRE-BPTH-01 */
Test(ext_wire, a_part_of_a_bitmap_is_named_right_before_it)
{
	static const uint8_t map[4] = {0x23};
	static const uint8_t part[] = {0x0e, 0xff, 0xff, 0xff, 0x01, 0, 0x08, 0, 0x23, 0, 0, 0};
	static const uint8_t both[] = {0x0e, 0xff, 0xff, 0xff, 0xd8, 0x07, 0x81, 0x82,
				       0x01, 0,	   0x08, 0,    0x23, 0,	   0,	 0};
	struct ur_packet p = frame_packet(UR_EXT_ACKNOWLEDGE_PART, false, map, sizeof(map));
	struct frame f;

	frame_make(&f, &p);
	cr_assert_eq(f.b[42], 0xdd);
	cr_assert_arr_eq(f.b + 54 + UR_AETH_BYTES + 8, part, sizeof(part));
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.payload_len, 4);
	cr_assert_eq(p.bpth.offset, 2048);
	p = frame_packet(UR_EXT_ACKNOWLEDGE_STATUS_PART, false, map, sizeof(map));
	frame_make(&f, &p);
	cr_assert_eq(f.b[42], 0xde);
	cr_assert_arr_eq(f.b + 54 + UR_AETH_BYTES + 8, both, sizeof(both));
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.bpth.flags, UR_BPTH_MORE);
}

/* WIRE-DELAY-01: a stamp changes two fields that the ICRC does not cover, and both are decoded. */
Test(ext_wire, a_stamp_lies_in_the_bth_and_in_the_udp_checksum)
{
	struct ur_packet plain = frame_packet(UR_EXT_PROBE, false, NULL, 0), p = plain, got;
	struct frame before, after;

	frame_make(&before, &plain);
	p.bth.resv6 = UR_DELAY_ASK | 2;
	p.udp_csum = 0x1234;
	frame_make(&after, &p);
	cr_assert_eq(after.b[42 + 4], 0x22);
	cr_assert_eq(after.b[40], 0x12);
	cr_assert_eq(after.b[41], 0x34);
	cr_assert_arr_eq(after.b + after.len - 4, before.b + before.len - 4, 4);
	cr_assert_eq(ur_packet_decode(after.b, after.len, &got), UR_DROP_NONE);
	cr_assert_eq(got.bth.resv6, UR_DELAY_ASK | 2);
	cr_assert_eq(got.udp_csum, 0x1234);
}

/* The get and put functions of each header, so that all headers pass the same checks. */
union any {
	struct ur_xth xth;
	struct ur_xaeth xaeth;
	struct ur_xrth xrth;
	struct ur_asth asth;
	struct ur_ndth ndth;
	struct ur_bpth bpth;
};

#define PAIR(header)                                                                               \
	static void get_##header(struct ur_cursor *c, union any *x)                                \
	{                                                                                          \
		ur_get_##header(c, &x->header);                                                    \
	}                                                                                          \
	static void put_##header(struct ur_cursor *c, const union any *x)                          \
	{                                                                                          \
		ur_put_##header(c, &x->header);                                                    \
	}
PAIR(xth)
PAIR(xaeth)
PAIR(xrth)
PAIR(asth)
PAIR(ndth)
PAIR(bpth)

static const struct {
	const char *name;
	size_t bytes;
	void (*get)(struct ur_cursor *c, union any *x);
	void (*put)(struct ur_cursor *c, const union any *x);
} headers[] = {
	{"XTH", UR_XTH_BYTES, get_xth, put_xth},
	{"XAETH", UR_XAETH_BYTES, get_xaeth, put_xaeth},
	{"XRTH", UR_XRTH_BYTES, get_xrth, put_xrth},
	{"ASTH", UR_ASTH_BYTES, get_asth, put_asth},
	{"NDTH", UR_NDTH_BYTES, get_ndth, put_ndth},
	{"BPTH", UR_BPTH_BYTES, get_bpth, put_bpth},
};
#define HEADERS_CNT (sizeof(headers) / sizeof(headers[0]))

static void assert_round_trip(size_t h, const uint8_t *in)
{
	uint8_t out[UR_XTH_BYTES];
	struct ur_cursor c = ur_cursor_ro(in, headers[h].bytes);
	union any x;

	memset(&x, 0, sizeof(x));
	headers[h].get(&c, &x);
	cr_assert_eq(ur_cursor_left(&c), 0, "%s", headers[h].name);
	c = ur_cursor(out, headers[h].bytes);
	headers[h].put(&c, &x);
	cr_assert_not(c.bad, "%s", headers[h].name);
	cr_assert_eq(ur_cursor_left(&c), 0, "%s", headers[h].name);
	cr_assert_arr_eq(out, in, headers[h].bytes);
}

/* WIRE-XTH-01, WIRE-XAETH-01, WIRE-XRTH-01 */
Test(ext_wire, headers_keep_every_single_bit)
{
	for (size_t h = 0; h < HEADERS_CNT; h++)
		for (unsigned bit = 0; bit < headers[h].bytes * 8; bit++) {
			uint8_t bytes[UR_XTH_BYTES] = {0};

			bytes[bit / 8] = (uint8_t)(1 << bit % 8);
			assert_round_trip(h, bytes);
			for (unsigned i = 0; i < sizeof(bytes); i++)
				bytes[i] = (uint8_t)~bytes[i];
			assert_round_trip(h, bytes);
		}
}

Test(ext_wire, headers_that_are_cut_change_nothing)
{
	for (size_t h = 0; h < HEADERS_CNT; h++)
		for (size_t len = 0; len < headers[h].bytes; len++) {
			/* A separate allocation, so that ASan detects an access past the end. */
			uint8_t *cut = malloc(len ? len : 1);
			struct ur_cursor c = ur_cursor_ro(cut, len);
			union any x, before;

			memset(cut, 0x3c, len ? len : 1);
			memset(&x, 0xa5, sizeof(x));
			before = x;
			headers[h].get(&c, &x);
			cr_assert(c.bad, "%s of %zu bytes", headers[h].name, len);
			cr_assert_arr_eq((uint8_t *)&x, (uint8_t *)&before, sizeof(x));
			c = ur_cursor(cut, len);
			headers[h].put(&c, &x);
			cr_assert(c.bad, "%s into %zu bytes", headers[h].name, len);
			for (size_t i = 0; i < len; i++)
				cr_assert_eq(cut[i], 0x3c);
			free(cut);
		}
}

Test(ext_wire, values_that_are_too_large_are_cut_to_their_fields)
{
	const struct ur_xth xth = {.ssn = 0xff000001, .offset = 0xff000002, .rwqen = 0xff000003};
	const struct ur_xrth xrth = {.ssn = 0xff000004, .offset = 0xff000005};
	static const uint8_t want_xth[UR_XTH_BYTES] = {[7] = 1, [11] = 2, [15] = 3};
	static const uint8_t want_xrth[UR_XRTH_BYTES] = {[3] = 4, [7] = 5};
	uint8_t out[UR_XTH_BYTES];
	struct ur_cursor c = ur_cursor(out, sizeof(out));

	ur_put_xth(&c, &xth);
	cr_assert_arr_eq(out, want_xth, sizeof(want_xth));
	c = ur_cursor(out, sizeof(out));
	ur_put_xrth(&c, &xrth);
	cr_assert_arr_eq(out, want_xrth, sizeof(want_xrth));
}

/* WIRE-SACK-01 */
Test(sack, bit_zero_is_the_lowest_of_the_first_byte)
{
	uint8_t map[UR_SACK_BYTES];

	for (uint32_t bit = 0; bit < UR_SACK_BYTES * 8; bit++) {
		memset(map, 0, sizeof(map));
		map[bit / 8] = (uint8_t)(1 << bit % 8);
		for (uint32_t i = 0; i < UR_SACK_BYTES * 8; i++)
			cr_assert_eq(ur_sack_bit(map, i), i == bit);
	}
}

Test(stamp, counts_16_ns_and_wraps_after_68_seconds)
{
	cr_assert_eq(ur_stamp(0).v, 0);
	cr_assert_eq(ur_stamp(15).v, 0);
	cr_assert_eq(ur_stamp(16).v, 1);
	cr_assert_eq(ur_stamp(UINT64_C(68719476735)).v, UINT32_MAX);
	cr_assert_eq(ur_stamp(UINT64_C(68719476736)).v, 0);
}

/* Offsets in an untagged IPv4 frame. */
#define BTH 42
#define EXT 54

static struct frame frame_of(uint8_t opcode, const uint8_t *payload, uint16_t len)
{
	struct ur_packet p = frame_packet(opcode, false, payload, len);
	struct frame f;

	frame_make(&f, &p);
	return f;
}

/* WIRE-XTH-01 */
Test(ext_wire, write_has_xth_then_reth_then_immediate_then_payload)
{
	static const uint8_t payload[4] = {0xd0, 0xd1, 0xd2, 0xd3};
	static const uint8_t want[] = {
		0xf1, 0xf2, 0xf3, 0xf4, 0x0d, 0x21, 0x22, 0x23, /* XTH */
		0x05, 0x31, 0x32, 0x33, 0x00, 0x41, 0x42, 0x43, /* */
		0x00, 0x00, 0x7f, 0x01, 0x02, 0x03, 0x04, 0x05, /* RETH */
		0xa1, 0xb2, 0xc3, 0xd4, 0x00, 0x00, 0x30, 0x39, /* */
		0xca, 0xfe, 0xf0, 0x0d, 0xd0, 0xd1, 0xd2, 0xd3, /* immediate, payload */
	};
	struct frame f = frame_of(UR_EXT_WRITE_LAST_IMM, payload, sizeof(payload));

	cr_assert_eq(f.b[BTH], 0xc9);
	cr_assert_eq(f.len, EXT + sizeof(want) + 4);
	cr_assert_arr_eq(f.b + EXT, want, sizeof(want));
}

/* WIRE-XAETH-01, WIRE-XRTH-01 */
Test(ext_wire, atomic_response_has_aeth_then_xaeth_then_xrth_then_the_value)
{
	static const uint8_t want[] = {
		0x1f, 0x0a, 0x0b, 0x0c,				/* AETH */
		0xe1, 0xe2, 0xe3, 0xe4, 0x01, 0x02, 0x03, 0x04, /* XAETH */
		0x0e, 0xff, 0xff, 0xff,				/* */
		0x00, 0x51, 0x52, 0x53, 0x00, 0x61, 0x62, 0x63, /* XRTH */
		0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* AtomicAckETH */
	};
	struct frame f = frame_of(UR_EXT_ATOMIC_ACKNOWLEDGE, NULL, 0);

	cr_assert_eq(f.b[BTH], 0xd2);
	cr_assert_eq(f.len, EXT + sizeof(want) + 4);
	cr_assert_arr_eq(f.b + EXT, want, sizeof(want));
}

/* WIRE-SACK-01 */
Test(ext_wire, acknowledge_carries_its_bitmap_as_payload)
{
	static const uint8_t map[UR_SACK_BYTES] = {0x02, 0x80, [UR_SACK_BYTES - 1] = 0x80};

	for (uint16_t bytes = 0; bytes <= UR_SACK_BYTES; bytes += 4) {
		struct frame f = frame_of(UR_EXT_ACKNOWLEDGE, map, bytes);
		struct ur_packet p;

		cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
		cr_assert_eq(p.payload_off, EXT + UR_AETH_BYTES + UR_XAETH_BYTES);
		cr_assert_eq(p.payload_len, bytes);
		cr_assert_arr_eq(p.payload, map, bytes);
	}
}

/* WIRE-XOPCODE-01 */
Test(ext_wire, probe_is_a_bth_and_an_xth_and_nothing_more)
{
	struct frame f = frame_of(UR_EXT_PROBE, NULL, 0);
	struct ur_packet p;

	cr_assert_eq(f.b[BTH], 0xd8);
	cr_assert_eq(f.len, EXT + UR_XTH_BYTES + 4);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.op & UR_OP_REQUEST, UR_OP_PROBE);
	f = frame_of(UR_EXT_PROBE, xth_bytes, 4);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_LENGTH, "a probe with payload");
}

Test(ext_wire, no_header_of_extended_mode_outgrows_the_room_for_headers)
{
	for (unsigned op = UR_TRANSPORT_EXT; op < UR_TRANSPORT_EXT + 0x20; op++)
		cr_assert_leq(UR_ETH_BYTES + UR_VLAN_BYTES + UR_IPV6_BYTES + UR_UDP_BYTES +
				      UR_BTH_BYTES + ur_opcodes[op].ext_bytes,
			      UR_HDR_MAX);
}
