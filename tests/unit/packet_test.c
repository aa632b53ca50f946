/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "frames.h"

static const uint8_t text[32] = "thirty-one bytes for a payload.";

/* Offsets in an untagged IPv4 frame. */
#define IP  14
#define UDP 34
#define BTH 42

static enum ur_drop decode(const struct frame *f)
{
	struct ur_packet p;

	return ur_packet_decode(f->b, f->len, &p);
}

static struct frame send_only(void)
{
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, false, text, 30);
	struct frame f;

	frame_make(&f, &p);
	return f;
}

static uint16_t payload_for(uint8_t opcode)
{
	if (ur_op_flags(opcode) & UR_OP_CNP)
		return 16;
	return ur_op_flags(opcode) & UR_OP_PAYLOAD ? 29 : 0;
}

static void assert_same_xth(const struct ur_xth *a, const struct ur_xth *b)
{
	cr_assert_eq(a->stamp, b->stamp);
	cr_assert_eq(a->path, b->path);
	cr_assert_eq(a->ssn, b->ssn);
	cr_assert_eq(a->flags, b->flags);
	cr_assert_eq(a->offset, b->offset);
	cr_assert_eq(a->rwqen, b->rwqen);
}

static void assert_same_ext(const struct ur_packet *a, const struct ur_packet *b)
{
	if (a->op & UR_OP_DETH) {
		cr_assert_eq(a->deth.qkey, b->deth.qkey);
		cr_assert_eq(a->deth.sqpn.v, b->deth.sqpn.v);
	}
	if (a->op & UR_OP_RETH) {
		cr_assert_eq(a->reth.va, b->reth.va);
		cr_assert_eq(a->reth.rkey, b->reth.rkey);
		cr_assert_eq(a->reth.length, b->reth.length);
	}
	if (a->op & UR_OP_AETH) {
		cr_assert_eq(a->aeth.syndrome, b->aeth.syndrome);
		cr_assert_eq(a->aeth.msn, b->aeth.msn);
	}
	if (a->op & UR_OP_ATOMICETH) {
		cr_assert_eq(a->atomiceth.va, b->atomiceth.va);
		cr_assert_eq(a->atomiceth.rkey, b->atomiceth.rkey);
		cr_assert_eq(a->atomiceth.swap_add, b->atomiceth.swap_add);
		cr_assert_eq(a->atomiceth.compare, b->atomiceth.compare);
	}
	if (a->op & UR_OP_XTH)
		assert_same_xth(&a->xth, &b->xth);
	if (a->op & UR_OP_XAETH) {
		cr_assert_eq(a->xaeth.echo, b->xaeth.echo);
		cr_assert_eq(a->xaeth.residence, b->xaeth.residence);
		cr_assert_eq(a->xaeth.path, b->xaeth.path);
		cr_assert_eq(a->xaeth.epsn.v, b->xaeth.epsn.v);
	}
	if (a->op & UR_OP_XRTH) {
		cr_assert_eq(a->xrth.ssn, b->xrth.ssn);
		cr_assert_eq(a->xrth.offset, b->xrth.offset);
	}
	if (a->op & UR_OP_ATOMICACKETH)
		cr_assert_eq(a->atomic_ack, b->atomic_ack);
	if (a->op & UR_OP_IMM)
		cr_assert_eq(a->imm, b->imm);
	if (a->op & UR_OP_IETH)
		cr_assert_eq(a->ieth, b->ieth);
}

static void assert_round_trip(uint8_t opcode, bool v6, bool vlan)
{
	struct ur_packet in = frame_packet(opcode, v6, text, payload_for(opcode)), out;
	unsigned l3_off = vlan ? 18 : 14, ip_bytes = v6 ? 40 : 20;
	struct frame f;
	uint8_t again[FRAME_CAP];

	if (!(in.op & UR_OP_PAYLOAD))
		in.bth.pad = 0;
	in.has_vlan = vlan;
	in.vlan_tci = 0x6123;
	frame_make(&f, &in);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &out), UR_DROP_NONE, "%#x", opcode);

	cr_assert_eq(out.l3_off, l3_off);
	cr_assert_eq(out.bth_off, l3_off + ip_bytes + 8);
	cr_assert_eq(out.payload_off, out.bth_off + 12 + ur_opcodes[opcode].ext_bytes);
	cr_assert_eq(out.icrc_off, f.len - 4);
	cr_assert_eq(out.frame_len, f.len);
	cr_assert_eq(out.has_vlan, vlan);
	cr_assert_eq(out.vlan_tci, vlan ? 0x6123 : 0);
	cr_assert_eq(out.ip.v6, v6);
	cr_assert_eq(out.ip.tos, in.ip.tos);
	cr_assert_eq(out.ip.ttl, 64);
	cr_assert_eq(out.ip.flow_label, in.ip.flow_label);
	cr_assert(ur_gid_eq(&out.ip.src, &in.ip.src));
	cr_assert(ur_gid_eq(&out.ip.dst, &in.ip.dst));
	cr_assert_eq(out.sport, 0xc123);
	cr_assert_eq(out.dport, 4791);
	cr_assert_eq(out.bth.dqpn.v, 0x123456);
	cr_assert_eq(out.bth.psn.v, 0xfedcba);
	cr_assert_eq(out.icrc, in.icrc);
	cr_assert_eq(out.op, in.op);
	cr_assert_eq(out.payload_len, in.payload_len);
	cr_assert_eq(out.payload, f.b + out.payload_off);
	cr_assert_arr_eq(out.payload, text, in.payload_len);
	assert_same_ext(&out, &in);

	cr_assert_eq(ur_packet_encode(&out, again, sizeof(again)), f.len);
	cr_assert_arr_eq(again, f.b, f.len);
}

/* WIRE-EXT-01 */
Test(packet, of_every_opcode_comes_back_over_ipv4_ipv6_and_vlan)
{
	for (unsigned op = 0; op < 256; op++)
		if (ur_op_flags((uint8_t)op))
			for (unsigned how = 0; how < 4; how++)
				assert_round_trip((uint8_t)op, how & 1, how & 2);
}

Test(packet, of_every_opcode_is_refused_at_every_truncation)
{
	for (unsigned op = 0; op < 256; op++)
		for (unsigned how = 0; how < 4 && ur_op_flags((uint8_t)op); how++) {
			struct ur_packet p =
				frame_packet((uint8_t)op, how & 1, text, payload_for((uint8_t)op));
			struct frame f;

			p.has_vlan = how & 2;
			if (!(p.op & UR_OP_PAYLOAD))
				p.bth.pad = 0;
			frame_make(&f, &p);
			for (size_t len = 0; len < f.len; len++) {
				/* A separate allocation, so that ASan detects a read past the end. */
				uint8_t *cut = malloc(len ? len : 1);

				memcpy(cut, f.b, len);
				cr_assert_eq(ur_packet_decode(cut, len, &p), UR_DROP_TRUNCATED,
					     "%s cut to %zu", ur_opcodes[op].name, len);
				free(cut);
			}
		}
}

/* WIRE-IP-01 */
Test(packet, icrc_is_found_before_ethernet_padding)
{
	struct ur_packet in = frame_packet(UR_RC_SEND_ONLY, false, text, 0), out;
	struct frame f;

	frame_make(&f, &in);
	cr_assert_lt(f.len, 60, "this packet needs Ethernet padding");
	memset(f.b + f.len, 0xee, 100);
	cr_assert_eq(ur_packet_decode(f.b, f.len + 100, &out), UR_DROP_NONE);
	cr_assert_eq(out.frame_len, f.len);
	cr_assert_eq(out.icrc_off, f.len - 4);
	cr_assert_eq(out.icrc, in.icrc);
	cr_assert_eq(out.payload_len, 0);
}

/* WIRE-UDP-01 */
Test(packet, other_traffic_is_not_roce)
{
	static const uint8_t arp[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0,    0,
					0,    0,    1,	  0x08, 0x06, 0,    1, 0x08, 0};
	struct frame f = send_only();
	struct ur_packet p;

	cr_assert_eq(ur_packet_decode(arp, sizeof(arp), &p), UR_DROP_NOT_ROCE);
	f.b[IP + 9] = 6;
	frame_fix_ipv4_csum(f.b + IP);
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "TCP");
	f = send_only();
	f.b[UDP + 3] ^= 1;
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "another UDP port");
	f = send_only();
	f.b[12] = 0x88;
	f.b[13] = 0xa8;
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "802.1ad");
	f = send_only();
	f.b[IP] = 0x46;
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "IPv4 options");
}

Test(packet, short_other_traffic_is_not_roce_either)
{
	struct frame f = send_only();

	f.b[IP + 9] = 1;
	frame_fix_ipv4_csum(f.b + IP);
	f.len = UDP;
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "an ICMP header of zero bytes");
	f.len = IP;
	f.b[12] = 0x08;
	f.b[13] = 0x06;
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "an ARP frame without ARP");
}

Test(packet, ipv6_extension_headers_are_not_roce)
{
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, true, text, 8);
	struct frame f;

	frame_make(&f, &p);
	f.b[IP + 6] = 0;
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "hop by hop");
	f.b[IP + 6] = 44;
	cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "fragment");
}

/* WIRE-IP-02 */
Test(packet, ipv4_fragments_are_not_roce)
{
	static const uint16_t fragments[] = {0x2000, 0x0001, 0x1fff, 0x3000};

	for (size_t i = 0; i < sizeof(fragments) / sizeof(fragments[0]); i++) {
		struct frame f = send_only();

		f.b[IP + 6] = (uint8_t)(fragments[i] >> 8);
		f.b[IP + 7] = (uint8_t)fragments[i];
		frame_fix_ipv4_csum(f.b + IP);
		cr_assert_eq(decode(&f), UR_DROP_NOT_ROCE, "%#x", fragments[i]);
	}
}

Test(packet, wrong_ip_headers_are_refused)
{
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, true, text, 8);
	struct frame f = send_only();

	f.b[IP] = 0x55;
	cr_assert_eq(decode(&f), UR_DROP_IP_HEADER, "version");
	f.b[IP] = 0x44;
	cr_assert_eq(decode(&f), UR_DROP_IP_HEADER, "header of 16 bytes");
	frame_make(&f, &p);
	f.b[IP] = 0x40;
	cr_assert_eq(decode(&f), UR_DROP_IP_HEADER, "version 4 under an IPv6 Ethertype");
}

Test(packet, every_flipped_bit_in_an_ipv4_header_is_refused)
{
	for (unsigned bit = 0; bit < 20 * 8; bit++) {
		struct frame f = send_only();

		f.b[IP + bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_neq(decode(&f), UR_DROP_NONE, "bit %u", bit);
	}
}

/* WIRE-IP-01 */
Test(packet, lengths_must_agree)
{
	struct frame f = send_only();

	f.b[UDP + 5] -= 4;
	cr_assert_eq(decode(&f), UR_DROP_LENGTH, "UDP shorter than IP");
	f = send_only();
	f.b[UDP + 5] += 4;
	cr_assert_eq(decode(&f), UR_DROP_LENGTH, "UDP longer than IP");
	f = send_only();
	f.b[IP + 3] -= 4;
	frame_fix_ipv4_csum(f.b + IP);
	cr_assert_eq(decode(&f), UR_DROP_LENGTH, "IP shorter than UDP");
	f = send_only();
	f.b[IP + 3] += 4;
	frame_fix_ipv4_csum(f.b + IP);
	cr_assert_eq(decode(&f), UR_DROP_TRUNCATED, "IP longer than the frame");
	f = send_only();
	f.b[IP + 2] = 0;
	f.b[IP + 3] = 19;
	frame_fix_ipv4_csum(f.b + IP);
	cr_assert_eq(decode(&f), UR_DROP_LENGTH, "IP shorter than its own header");
}

/* Sets both length fields of an IPv4 frame and keeps the rest. */
static void set_udp_len(struct frame *f, uint16_t udp_len)
{
	uint16_t total = (uint16_t)(udp_len + 20);

	f->b[UDP + 4] = (uint8_t)(udp_len >> 8);
	f->b[UDP + 5] = (uint8_t)udp_len;
	f->b[IP + 2] = (uint8_t)(total >> 8);
	f->b[IP + 3] = (uint8_t)total;
	frame_fix_ipv4_csum(f->b + IP);
}

Test(packet, udp_too_short_for_bth_and_icrc_is_truncated)
{
	for (uint16_t udp_len = 0; udp_len < 8 + 12 + 4; udp_len++) {
		struct frame f = send_only();

		set_udp_len(&f, udp_len);
		cr_assert_eq(decode(&f), UR_DROP_TRUNCATED, "%u", udp_len);
	}
}

Test(packet, udp_too_short_for_the_extended_headers_is_truncated)
{
	struct ur_packet p = frame_packet(UR_RC_COMPARE_SWAP, false, NULL, 0);
	struct frame f;

	for (uint16_t udp_len = 24; udp_len < 24 + 28; udp_len++) {
		frame_make(&f, &p);
		set_udp_len(&f, udp_len);
		cr_assert_eq(decode(&f), UR_DROP_TRUNCATED, "%u", udp_len);
	}
}

/* WIRE-PAD-01 */
Test(packet, payload_and_pad_fill_words)
{
	for (uint16_t more = 1; more < 4; more++) {
		struct frame f = send_only();

		f.len += more;
		set_udp_len(&f, (uint16_t)(f.len - UDP));
		cr_assert_eq(decode(&f), UR_DROP_LENGTH, "%u bytes beyond a word", more);
	}
}

/* WIRE-PAD-01 */
Test(packet, pad_needs_payload_to_stand_in)
{
	struct ur_packet in = frame_packet(UR_RC_SEND_ONLY, false, text, 1), out;
	struct frame f;

	frame_make(&f, &in);
	cr_assert_eq(in.bth.pad, 3);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &out), UR_DROP_NONE);
	cr_assert_eq(out.payload_len, 1);
	in = frame_packet(UR_RC_SEND_ONLY, false, text, 0);
	frame_make(&f, &in);
	f.b[BTH + 1] |= 0x10;
	cr_assert_eq(decode(&f), UR_DROP_LENGTH, "a pad byte of nothing");
}

/* WIRE-PAD-01 */
Test(packet, payload_is_refused_where_the_opcode_has_none)
{
	static const uint8_t bare[] = {UR_RC_READ_REQUEST, UR_RC_ACKNOWLEDGE,
				       UR_RC_ATOMIC_ACKNOWLEDGE, UR_RC_COMPARE_SWAP,
				       UR_RC_FETCH_ADD};

	for (size_t i = 0; i < sizeof(bare); i++) {
		struct ur_packet p = frame_packet(bare[i], false, text, 4);
		struct frame f;

		frame_make(&f, &p);
		cr_assert_eq(decode(&f), UR_DROP_LENGTH, "%s", ur_opcodes[bare[i]].name);
		p = frame_packet(bare[i], false, NULL, 0);
		p.bth.pad = 0;
		frame_make(&f, &p);
		cr_assert_eq(decode(&f), UR_DROP_NONE);
		f.b[BTH + 1] |= 0x20;
		cr_assert_eq(decode(&f), UR_DROP_LENGTH, "pad on %s", ur_opcodes[bare[i]].name);
	}
}

/* WIRE-CNP-01 */
Test(packet, cnp_has_its_sixteen_reserved_bytes)
{
	static const uint8_t zeros[20];
	struct ur_packet in = frame_packet(UR_CNP, false, zeros, 16), out;
	struct frame f;

	frame_make(&f, &in);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &out), UR_DROP_NONE);
	cr_assert_eq(out.payload_len, 16);
	for (uint16_t len = 0; len <= 20; len += 4) {
		in = frame_packet(UR_CNP, false, zeros, len);
		frame_make(&f, &in);
		cr_assert_eq(decode(&f), len == 16 ? UR_DROP_NONE : UR_DROP_LENGTH, "%u", len);
	}
}

/* WIRE-BTH-02 */
Test(packet, transport_version_must_be_zero)
{
	for (uint8_t tver = 1; tver < 16; tver++) {
		struct frame f = send_only();

		f.b[BTH + 1] |= tver;
		cr_assert_eq(decode(&f), UR_DROP_TVER, "%u", tver);
	}
}

/* WIRE-OPCODE-01 */
Test(packet, unknown_opcodes_are_refused)
{
	for (unsigned op = 0; op < 256; op++) {
		struct frame f = send_only();

		f.b[BTH] = (uint8_t)op;
		if (!ur_op_flags((uint8_t)op))
			cr_assert_eq(decode(&f), UR_DROP_OPCODE, "%#x", op);
		else
			cr_assert_neq(decode(&f), UR_DROP_OPCODE, "%#x", op);
	}
}

Test(packet, a_frame_beyond_16_bit_offsets_is_refused)
{
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, false, text, 0);
	size_t len = 14 + 65532;
	uint8_t *big = calloc(1, len);
	struct frame f;

	frame_make(&f, &p);
	set_udp_len(&f, 65532 - 20);
	memcpy(big, f.b, BTH + 12);
	cr_assert_eq(ur_packet_decode(big, len, &p), UR_DROP_LENGTH);
	free(big);
}

Test(packet, encode_refuses_every_buffer_that_is_too_small)
{
	struct ur_packet p = frame_packet(UR_RC_WRITE_ONLY_IMM, false, text, 30);
	struct frame f;

	frame_make(&f, &p);
	for (size_t cap = 0; cap < f.len; cap++) {
		uint8_t *buf = malloc(cap ? cap : 1);

		cr_assert_eq(ur_packet_encode(&p, buf, cap), 0, "%zu", cap);
		free(buf);
	}
}

/* It reads nothing beyond the frame, and for a RoCEv2 frame it agrees with the decoder. */
Test(packet, peek_guesses_opcode_and_queue_pair)
{
	for (unsigned how = 0; how < 4; how++) {
		struct ur_packet in = frame_packet(UR_RC_WRITE_ONLY, how & 1, text, 4), out;
		uint8_t opcode = 0;
		struct ur_qpn qpn = ur_qpn(0);
		struct frame f;

		in.has_vlan = how & 2;
		frame_make(&f, &in);
		cr_assert_eq(ur_packet_decode(f.b, f.len, &out), UR_DROP_NONE);
		cr_assert(ur_packet_peek(f.b, f.len, &opcode, &qpn));
		cr_assert_eq(opcode, UR_RC_WRITE_ONLY);
		cr_assert_eq(qpn.v, 0x123456u);
		for (size_t cut = 0; cut < out.bth_off + 12u; cut++)
			cr_assert_not(ur_packet_peek(f.b, cut, &opcode, &qpn));
	}
}
