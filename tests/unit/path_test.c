/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>

#include <criterion/criterion.h>

#include "frames.h"
#include "wire/icrc.h"
#include "wire/path.h"

static struct ur_path_attr attr_to(bool v6, bool vlan)
{
	struct ur_packet like = frame_packet(UR_RC_SEND_ONLY, v6, NULL, 0);
	struct ur_path_attr attr = {
		.smac = {2, 0, 0, 0, 0, 1},
		.dmac = {2, 0, 0, 0, 0, 2},
		.has_vlan = vlan,
		.vlan_tci = 0x6fff,
		.src = like.ip.src,
		.dst = like.ip.dst,
		.tos = 0x6a,
		.ttl = 17,
		.flow_label = 0xfedcb,
		.sport = 0xc0de,
	};

	return attr;
}

/* A SEND of `payload` zero bytes (a multiple of 4) after the headers of the path. */
static void make_send(const struct ur_path *path, unsigned payload, struct frame *f)
{
	struct ur_bth bth = {.opcode = UR_RC_SEND_ONLY, .pkey = 0xffff};
	struct ur_cursor c;
	unsigned at;

	memset(f->b, 0, sizeof(f->b));
	at = ur_path_write(path, f->b, UR_BTH_BYTES + payload + UR_ICRC_BYTES);
	c = ur_cursor(f->b + at, UR_BTH_BYTES);
	ur_put_bth(&c, &bth);
	f->len = at + UR_BTH_BYTES + payload + UR_ICRC_BYTES;
	ur_icrc_append(f->b + path->l3_off, f->len - path->l3_off - UR_ICRC_BYTES, path->v6);
}

static void assert_every_length_decodes(bool v6, bool vlan)
{
	struct ur_path_attr attr = attr_to(v6, vlan);
	struct ur_path path;
	struct ur_packet p;
	struct frame f;

	ur_path_init(&path, &attr);
	cr_assert_eq(path.v6, v6);
	cr_assert_eq(path.l3_off, vlan ? 18 : 14);
	cr_assert_eq(path.len, path.l3_off + (v6 ? 40 : 20) + 8);
	for (unsigned payload = 0; payload <= 8192; payload += 4) {
		make_send(&path, payload, &f);
		cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE, "%u", payload);
		cr_assert_eq(p.payload_len, payload);
		cr_assert(ur_icrc_ok(f.b, &p));
	}
	cr_assert_arr_eq(p.dmac, attr.dmac, 6);
	cr_assert_arr_eq(p.smac, attr.smac, 6);
	cr_assert_eq(p.has_vlan, vlan);
	cr_assert_eq(p.vlan_tci, vlan ? 0x6fff : 0);
	cr_assert_eq(p.ip.v6, v6);
	cr_assert_eq(p.ip.tos, 0x6a);
	cr_assert_eq(p.ip.ttl, 17);
	cr_assert_eq(p.ip.id, 0);
	cr_assert_eq(p.ip.frag, v6 ? 0 : 0x4000);
	cr_assert_eq(p.ip.flow_label, v6 ? 0xfedcb : 0);
	cr_assert(ur_gid_eq(&p.ip.src, &attr.src));
	cr_assert(ur_gid_eq(&p.ip.dst, &attr.dst));
	cr_assert_eq(p.sport, 0xc0de);
	cr_assert_eq(p.dport, 4791);
	cr_assert_eq(p.udp_csum, 0);
}

static void assert_marks(bool v6, bool vlan)
{
	struct ur_path_attr attr = attr_to(v6, vlan);
	struct ur_path path, fresh;
	struct ur_packet p;
	struct frame f;

	ur_path_init(&path, &attr);
	for (unsigned tos = 0; tos < 256; tos++) {
		ur_path_set_tos(&path, (uint8_t)tos, (uint16_t)(tos << 8 | 0x2a));
		attr.tos = (uint8_t)tos;
		attr.vlan_tci = (uint16_t)(tos << 8 | 0x2a);
		ur_path_init(&fresh, &attr);
		cr_assert_eq(path.csum_part, fresh.csum_part);
		cr_assert_arr_eq(path.hdr, fresh.hdr, sizeof(path.hdr), "%#x", tos);
	}
	ur_path_set_tos(&path, 0xb9, 0xa02a);
	make_send(&path, 64, &f);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.ip.tos, 0xb9);
	cr_assert_eq(p.ip.flow_label, v6 ? 0xfedcb : 0);
	cr_assert_eq(p.vlan_tci, vlan ? 0xa02a : 0);
	cr_assert(ur_icrc_ok(f.b, &p));
}

/* QOS-LIVE-02 */
Test(path, other_marks_are_those_of_a_path_made_anew)
{
	assert_marks(false, false);
	assert_marks(false, true);
	assert_marks(true, false);
	assert_marks(true, true);
}

/* RC-IN-01 */
Test(path, leads_to_one_address_of_one_kind)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		bool v6 = kind & 1, vlan = kind & 2;
		struct ur_path_attr attr = attr_to(v6, vlan);
		struct ur_ip from = {.v6 = v6, .src = attr.dst};
		struct ur_path path;

		ur_path_init(&path, &attr);
		cr_assert(ur_path_leads_to(&path, &from));
		for (unsigned i = v6 ? 0 : 12; i < 16; i++) {
			from.src.b[i] ^= 1;
			cr_assert(!ur_path_leads_to(&path, &from));
			from.src.b[i] ^= 1;
		}
		from.v6 = !v6;
		cr_assert(!ur_path_leads_to(&path, &from));
	}
}

/* WIRE-IP-02 */
Test(path, headers_decode_for_every_length)
{
	assert_every_length_decodes(false, false);
	assert_every_length_decodes(false, true);
	assert_every_length_decodes(true, false);
	assert_every_length_decodes(true, true);
}

Test(path, ipv4_checksum_is_right_for_all_16_bit_lengths_and_addresses)
{
	static const uint32_t addrs[] = {0x00000000, 0xffffffff, 0x0a000001, 0xfffffffe};

	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		struct ur_path_attr attr = attr_to(false, false);
		struct ur_path path;
		uint8_t hdr[sizeof(path.hdr)], again[20];

		attr.dst = ur_gid_from_ipv4(addrs[i]);
		ur_path_init(&path, &attr);
		for (unsigned payload = 0; payload <= 65535 - 28; payload++) {
			ur_path_write(&path, hdr, payload);
			memcpy(again, hdr + 14, sizeof(again));
			frame_fix_ipv4_csum(again);
			cr_assert_arr_eq(again, hdr + 14, sizeof(again), "%u", payload);
		}
	}
}

Test(path, writes_its_own_bytes_and_no_more)
{
	for (unsigned how = 0; how < 4; how++) {
		struct ur_path_attr attr = attr_to(how & 1, how & 2);
		struct ur_path path;
		uint8_t buf[sizeof(path.hdr) + 16];

		ur_path_init(&path, &attr);
		memset(buf, 0x5a, sizeof(buf));
		cr_assert_eq(ur_path_write(&path, buf, 16), path.len);
		for (size_t i = path.len; i < sizeof(buf); i++)
			cr_assert_eq(buf[i], 0x5a);
	}
}

/* PREDICT-PATH-01 */
Test(path, plain_is_untagged_ipv4_to_a_single_host)
{
	static const struct {
		uint32_t dst;
		bool plain;
	} row[] = {
		{0x0a000002, true},  {0x01000000, true},  {0x7e000001, true},  {0x80000001, true},
		{0xdfffffff, true},  {0x00000001, false}, {0x7f000001, false}, {0xe0000001, false},
		{0xf0000001, false}, {0xffffffff, false},
	};
	struct ur_path path;

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ur_path_attr attr = attr_to(false, false);

		attr.dst = ur_gid_from_ipv4(row[i].dst);
		ur_path_init(&path, &attr);
		cr_expect_eq(path.plain, row[i].plain, "%08x", row[i].dst);
	}
	for (unsigned i = 1; i < 4; i++) {
		struct ur_path_attr attr = attr_to(i & 1, i & 2);

		ur_path_init(&path, &attr);
		cr_expect(!path.plain);
	}
}

Test(path, hop_limit_zero_is_sent_as_64)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct ur_path_attr attr = attr_to(v6, false);
		struct ur_path path;
		struct ur_packet p;
		struct frame f;

		attr.ttl = 0;
		ur_path_init(&path, &attr);
		make_send(&path, 4, &f);
		cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
		cr_assert_eq(p.ip.ttl, 64);
	}
}

Test(path, flow_label_is_cut_to_20_bits)
{
	struct ur_path_attr attr = attr_to(true, false);
	struct ur_path path;
	struct ur_packet p;
	struct frame f;

	attr.flow_label = 0xfff12345;
	ur_path_init(&path, &attr);
	make_send(&path, 4, &f);
	cr_assert_eq(ur_packet_decode(f.b, f.len, &p), UR_DROP_NONE);
	cr_assert_eq(p.ip.flow_label, 0x12345);
	cr_assert_eq(p.ip.tos, 0x6a);
}

Test(path, between_ipv4_and_ipv6_is_our_own_mistake, .signal = SIGABRT)
{
	struct ur_path_attr attr = attr_to(true, false);
	struct ur_path path;

	attr.src = ur_gid_from_ipv4(0x0a000001);
	ur_path_init(&path, &attr);
}

/* WIRE-UDP-02 */
Test(sport, folds_a_flow_label_into_the_upper_quarter)
{
	cr_assert_eq(ur_path_sport(0x00001, ur_qpn(0), ur_qpn(0)), 0xc001);
	cr_assert_eq(ur_path_sport(0x04000, ur_qpn(0), ur_qpn(0)), 0xc001);
	cr_assert_eq(ur_path_sport(0x04001, ur_qpn(0), ur_qpn(0)), 0xc000);
	cr_assert_eq(ur_path_sport(0xfffff, ur_qpn(0), ur_qpn(0)), 0xffc0);
	cr_assert_eq(ur_path_sport(0xabcde, ur_qpn(0), ur_qpn(0)), 0xfcf4);
}

/* WIRE-UDP-02 */
Test(sport, lies_in_range_for_every_label)
{
	for (uint32_t label = 0; label <= 0xfffff; label++)
		cr_assert_geq(ur_path_sport(label, ur_qpn(17), ur_qpn(18)), 0xc000);
}

Test(sport, without_a_label_comes_from_both_qpns)
{
	/*
	 * 0x11 * 0x12 = 0x132 has nothing to fold; 0x123456 * 0x654321 = 0x7336bf94116 folds to the
	 * label 0xa77ae.
	 */
	cr_assert_eq(ur_path_sport(0, ur_qpn(0x11), ur_qpn(0x12)), 0xc132);
	cr_assert_eq(ur_path_sport(0, ur_qpn(0x12), ur_qpn(0x11)), 0xc132);
	cr_assert_eq(ur_path_sport(0, ur_qpn(0x123456), ur_qpn(0x654321)), 0xf787);
	cr_assert_neq(ur_path_sport(0, ur_qpn(0x11), ur_qpn(0x13)),
		      ur_path_sport(0, ur_qpn(0x11), ur_qpn(0x12)));
}
