/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "frames.h"
#include "switch/frame.h"
#include "switch/stamp.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

/* SWITCH-DELAY-01 */

#define ETH	     14
#define V4	     20
#define BITS	     4 /* of the BTH */
#define UDP_CHECKSUM 6

static const uint8_t text[64] = "a packet of extended mode";

static struct ur_packet asking(uint8_t opcode, bool v6, bool vlan)
{
	bool data = ur_op_flags(opcode) & UR_OP_PAYLOAD;
	struct ur_packet p = frame_packet(opcode, v6, text, data ? 28 : 0);

	p.has_vlan = vlan;
	p.vlan_tci = 42;
	p.bth.resv6 = UR_DELAY_ASK;
	return p;
}

static struct frame frame_of(struct ur_packet p)
{
	struct frame f;

	frame_make(&f, &p);
	return f;
}

static uint32_t udp_of(bool v6, bool vlan)
{
	return ETH + (vlan ? 4u : 0) + (v6 ? 40u : V4);
}

static bool stamp(struct frame *f, uint64_t ns)
{
	struct ur_switch_stamp s;

	if (!ur_switch_stamp_begin(f->b, (uint32_t)f->len, &s))
		return false;
	ur_switch_stamp_set(f->b, &s, ns);
	return true;
}

/* The frame is `was` but for its hops and its delay. */
static void expect_stamped(const struct frame *f, struct frame was, uint32_t udp, uint8_t hops,
			   uint16_t code)
{
	struct ur_packet p;

	ur_store16(was.b + udp + UDP_CHECKSUM, code);
	was.b[udp + 8 + BITS] = (uint8_t)((was.b[udp + 8 + BITS] & 0xe0) | hops);
	cr_assert_arr_eq(f->b, was.b, was.len);
	cr_assert_eq(ur_packet_decode(f->b, f->len, &p), UR_DROP_NONE);
	cr_assert(ur_icrc_ok(f->b, &p));
	cr_assert_eq(p.icrc, frame_icrc(f->b + p.l3_off, p.icrc_off - p.l3_off, p.ip.v6));
}

static void expect_unstamped(struct frame f)
{
	struct frame was = f;

	cr_assert_not(stamp(&f, 1000000));
	cr_assert_arr_eq(f.b, was.b, was.len);
}

Test(switch_stamp, adds_the_time_and_a_hop)
{
	for (unsigned how = 0; how < 4; how++)
		for (unsigned op = UR_TRANSPORT_EXT; op <= UR_EXT_ACKNOWLEDGE_STATUS_DELAY; op++) {
			struct frame f, was;
			uint32_t udp = udp_of(how & 1, how & 2);

			if (!ur_op_flags((uint8_t)op))
				continue;
			f = was = frame_of(asking((uint8_t)op, how & 1, how & 2));
			cr_assert(stamp(&f, 1600));
			expect_stamped(&f, was, udp, 1, 100);
			cr_assert(stamp(&f, 0));
			expect_stamped(&f, was, udp, 2, 100);
			cr_assert(stamp(&f, 3200));
			expect_stamped(&f, was, udp, 3, 300);
		}
}

Test(switch_stamp, a_fast_switch_shows_too)
{
	struct frame f = frame_of(asking(UR_EXT_PROBE, false, false)), was = f;

	cr_assert(stamp(&f, 0));
	expect_stamped(&f, was, udp_of(false, false), 1, 1);
}

Test(switch_stamp, a_device_that_takes_nothing_makes_one_hop_longer)
{
	struct frame f = frame_of(asking(UR_EXT_PROBE, false, false)), was = f;
	struct ur_switch_stamp s;

	cr_assert(ur_switch_stamp_begin(f.b, (uint32_t)f.len, &s));
	for (uint64_t ns = 16; ns <= 100000000; ns += 1 + ns / 7) {
		ur_switch_stamp_set(f.b, &s, ns);
		expect_stamped(&f, was, udp_of(false, false), 1, ur_delay_encode(ns / 16));
	}
}

Test(switch_stamp, hops_end_where_they_say_that_the_value_is_void)
{
	struct ur_packet p = asking(UR_EXT_PROBE, false, false);
	struct frame f;

	p.bth.resv6 |= UR_DELAY_VOID - 1;
	f = frame_of(p);
	cr_assert(stamp(&f, 16));
	cr_assert_eq(f.b[udp_of(false, false) + 8 + BITS], UR_DELAY_ASK | UR_DELAY_VOID);
	expect_unstamped(f);
}

/* SWITCH-HOLD-02: the time that a frame was held back is not the network's. */
Test(switch_stamp, a_frame_that_was_held_says_that_its_delay_is_void)
{
	struct ur_packet quiet = frame_packet(UR_EXT_PROBE, false, text, 0);
	struct frame f = frame_of(asking(UR_EXT_PROBE, false, false)), was = f;
	uint32_t bits = udp_of(false, false) + 8 + BITS;

	ur_switch_stamp_void(f.b, (uint32_t)f.len);
	cr_assert_eq(f.b[bits], UR_DELAY_ASK | UR_DELAY_VOID);
	f.b[bits] = was.b[bits];
	cr_assert_arr_eq(f.b, was.b, was.len);
	f = was = frame_of(quiet);
	ur_switch_stamp_void(f.b, (uint32_t)f.len);
	cr_assert_arr_eq(f.b, was.b, was.len);
}

Test(switch_stamp, keeps_the_marks_of_congestion_of_the_bth)
{
	struct ur_packet p = asking(UR_EXT_PROBE, false, false);
	struct frame f;

	p.bth.fecn = p.bth.becn = true;
	f = frame_of(p);
	cr_assert(stamp(&f, 16));
	cr_assert_eq(f.b[udp_of(false, false) + 8 + BITS], 0xc0 | UR_DELAY_ASK | 1);
}

Test(switch_stamp, leaves_alone_what_does_not_ask)
{
	struct ur_packet p;

	for (unsigned op = 0; op < 256; op++) {
		if (!ur_op_flags((uint8_t)op))
			continue;
		p = asking((uint8_t)op, op & 1, op & 2);
		p.bth.resv6 = 0;
		expect_unstamped(frame_of(p));
		p.bth.resv6 = UR_DELAY_HOPS;
		expect_unstamped(frame_of(p));
	}
}

/* Bits that are reserved there, and a checksum that is one. */
Test(switch_stamp, leaves_standard_mode_alone)
{
	for (unsigned op = 0; op < UR_TRANSPORT_EXT; op++)
		if (ur_op_flags((uint8_t)op)) {
			struct ur_packet p = asking((uint8_t)op, op & 1, op & 2);

			p.udp_csum = 0xabcd;
			p.bth.resv6 = 0x3e;
			expect_unstamped(frame_of(p));
		}
}

Test(switch_stamp, leaves_unknown_opcodes_alone)
{
	for (unsigned op = UR_TRANSPORT_EXT; op < 256; op++) {
		struct frame f = frame_of(asking(UR_EXT_PROBE, false, false));

		f.b[udp_of(false, false) + 8] = (uint8_t)op;
		if (!ur_op_flags((uint8_t)op))
			expect_unstamped(f);
	}
}

/* One byte that says that this is something else. */
Test(switch_stamp, leaves_other_protocols_alone)
{
	static const struct {
		bool v6;
		uint8_t at, value;
	} other[] = {
		{false, 12, 0x09},	{false, ETH, 0x46},	     {false, ETH, 0x65},
		{false, ETH + 9, 6},	{false, ETH + 6, 0x20},	     {false, ETH + 7, 1},
		{false, ETH + 6, 0x1f}, {false, ETH + V4 + 3, 0xb8}, {true, 12, 0x08},
		{true, ETH, 0x45},	{true, ETH + 6, 44},	     {true, ETH + 40 + 3, 0xb8},
	};

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct frame f = frame_of(asking(UR_EXT_WRITE_ONLY, other[i].v6, false));

		f.b[other[i].at] = other[i].value;
		expect_unstamped(f);
	}
}

Test(switch_stamp, reads_no_more_than_there_is)
{
	for (unsigned how = 0; how < 4; how++) {
		struct frame f = frame_of(asking(UR_EXT_PROBE, how & 1, how & 2));
		uint32_t least = udp_of(how & 1, how & 2) + 8 + 12 + 4;

		for (uint32_t len = 0; len <= f.len; len++) {
			/* A separate allocation, so that ASan detects an access past the end. */
			uint8_t *cut = malloc(len ? len : 1);
			struct ur_switch_stamp s;

			memcpy(cut, f.b, len);
			cr_assert_eq(ur_switch_stamp_begin(cut, len, &s), len >= least, "%u", len);
			if (len >= least)
				ur_switch_stamp_set(cut, &s, 16);
			free(cut);
		}
	}
}

/* As the switch sends it: edited first, then stamped. */
Test(switch_stamp, is_right_behind_every_edit)
{
	static const unsigned edits[] = {UR_SWITCH_PUSH, UR_SWITCH_POP, UR_SWITCH_RETAG,
					 UR_SWITCH_CE, UR_SWITCH_CE | UR_SWITCH_PUSH};

	for (unsigned i = 0; i < 2 * sizeof(edits) / sizeof(edits[0]); i++) {
		unsigned edit = edits[i / 2];
		bool v6 = i & 1, vlan = edit & (UR_SWITCH_POP | UR_SWITCH_RETAG);
		struct frame f = frame_of(asking(UR_EXT_WRITE_ONLY, v6, vlan)), out;
		uint8_t head[UR_SWITCH_HEAD_MAX], skip;
		uint8_t n = ur_switch_edit(f.b, edit, 7, head, &skip);

		memcpy(out.b, head, n);
		memcpy(out.b + n, f.b + skip, f.len - skip);
		out.len = f.len - skip + n;
		f = out;
		vlan = edit & (UR_SWITCH_PUSH | UR_SWITCH_RETAG);
		cr_assert(stamp(&f, 160));
		expect_stamped(&f, out, udp_of(v6, vlan), 1, 10);
	}
}
