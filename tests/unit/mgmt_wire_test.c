/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/icrc.h"
#include "wire/mad_path.h"
#include "wire/perf.h"
#include "wire/smp.h"
#include "wire/vendor.h"

static uint32_t rng_state;

static uint8_t rng8(void)
{
	rng_state = rng_state * 1664525u + 1013904223u;
	return (uint8_t)(rng_state >> 24);
}

static void random_bytes(uint8_t *to, size_t n)
{
	while (n--)
		*to++ = rng8();
}

Test(mgmt_wire, bits_are_read_and_written_at_any_place_and_width)
{
	for (unsigned at = 0; at < 24; at++)
		for (unsigned width = 1; width <= 64; width++) {
			uint8_t data[16], again[16], shown[16];
			uint64_t v = 0, w;

			random_bytes(data, sizeof(data));
			for (unsigned i = 0; i < width; i++)
				v = v << 1 | (data[(at + i) / 8] >> (7 - (at + i) % 8) & 1);
			cr_assert(ur_get_bits(data, at, width) == v, "%u at %u", width, at);
			memcpy(again, data, sizeof(data));
			ur_put_bits(again, at, width, v);
			cr_assert_arr_eq(again, data, sizeof(data));
			random_bytes((uint8_t *)&w, sizeof(w));
			ur_put_bits(again, at, width, w);
			cr_assert(ur_get_bits(again, at, width) ==
				  (width < 64 ? w & ((UINT64_C(1) << width) - 1) : w));
			memcpy(shown, again, sizeof(data));
			ur_put_bits(shown, at, width, v);
			cr_assert_arr_eq(shown, data, sizeof(data), "%u at %u: bits beside", width,
					 at);
		}
}

/* What is encoded decodes to the same, and a second encoding is equal. */
#define ROUND_TRIP(stem, bytes)                                                                    \
	Test(mgmt_wire, stem##_survives_a_round_trip)                                              \
	{                                                                                          \
		for (unsigned i = 0; i < 200; i++) {                                               \
			uint8_t wire[bytes], first[bytes] = {0}, second[bytes] = {0};              \
			struct ur_##stem a, b;                                                     \
                                                                                                   \
			random_bytes(wire, sizeof(wire));                                          \
			ur_get_##stem(wire, &a);                                                   \
			ur_put_##stem(first, &a);                                                  \
			ur_get_##stem(first, &b);                                                  \
			ur_put_##stem(second, &b);                                                 \
			cr_assert_arr_eq(first, second, sizeof(first));                            \
			ur_put_##stem(wire, &a);                                                   \
			ur_get_##stem(wire, &b);                                                   \
			memset(second, 0, sizeof(second));                                         \
			ur_put_##stem(second, &b);                                                 \
			cr_assert_arr_eq(first, second, sizeof(first));                            \
		}                                                                                  \
	}

ROUND_TRIP(node_info, UR_SMP_DATA_BYTES)
ROUND_TRIP(switch_info, UR_SMP_DATA_BYTES)
ROUND_TRIP(port_info, UR_SMP_DATA_BYTES)
ROUND_TRIP(sm_info, UR_SMP_DATA_BYTES)
ROUND_TRIP(notice, UR_SMP_DATA_BYTES)
ROUND_TRIP(port_counters, UR_GMP_DATA_BYTES)
ROUND_TRIP(port_counters_ext, UR_GMP_DATA_BYTES)
ROUND_TRIP(class_port_info, UR_GMP_DATA_BYTES)
ROUND_TRIP(registers, UR_SMP_DATA_BYTES)
ROUND_TRIP(eeprom, UR_SMP_DATA_BYTES)
ROUND_TRIP(bist, UR_VENDOR_BODY_BYTES)
ROUND_TRIP(fault, UR_NOTICE_DETAILS_BYTES)

Test(mgmt_wire, a_guid_is_the_eui_64_of_the_mac_address)
{
	const uint8_t mac[6] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56};

	cr_assert(ur_mac_guid(mac) == UINT64_C(0x505400fffe123456));
}

/* The bytes of docs/design/management.md. */
Test(mgmt_wire, hop_and_lid_packets_have_the_documented_addresses)
{
	static const uint8_t mac[6] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56};
	static const uint8_t hop[] = {0x01, 0x80, 0xc2, 0,    0,    0x0e, 0x52, 0x54,
				      0x00, 0x12, 0x34, 0x56, 0x86, 0xdd, 0x6e, 0x00};
	static const uint8_t hop_src[16] = {0xfe, 0x80, 0,    0,    0,	  0,	0,    0,
					    0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56};
	static const uint8_t all_nodes[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
	static const uint8_t lid[] = {0x02, 0x4c, 0x49, 0x44, 0xbe, 0xef, 0x02,
				      0x4c, 0x49, 0x44, 0x00, 0x07, 0x86, 0xdd};
	static const uint8_t lid_dst[16] = {0xfe, 0x80, 0,    0,    0,	  0,	0,    0,
					    0x00, 0x4c, 0x49, 0xff, 0xfe, 0x44, 0xbe, 0xef};
	struct ur_path path;

	ur_mad_hop_path(&path, mac);
	cr_assert_arr_eq(path.hdr, hop, sizeof(hop));
	cr_assert(path.hdr[14 + 7] == 255);
	cr_assert_arr_eq(path.hdr + 14 + 8, hop_src, 16);
	cr_assert_arr_eq(path.hdr + 14 + 24, all_nodes, 16);
	ur_mad_lid_path(&path, 7, 0xbeef);
	cr_assert_arr_eq(path.hdr, lid, sizeof(lid));
	cr_assert_arr_eq(path.hdr + 14 + 24, lid_dst, 16);
	cr_assert(ur_mad_is_mgmt_mac(hop) && ur_mad_is_mgmt_mac(lid) && !ur_mad_is_mgmt_mac(mac));
}

Test(mgmt_wire, a_frame_decodes_to_its_way_and_its_mad)
{
	static const uint8_t mac[6] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56};
	uint8_t mad[UR_MAD_BYTES], frame[512];
	struct ur_path path;
	struct ur_packet p;
	uint16_t slid, dlid;
	unsigned len;

	random_bytes(mad, sizeof(mad));
	for (unsigned qpn = 0; qpn < 2; qpn++) {
		ur_mad_hop_path(&path, mac);
		len = ur_mad_frame(frame, &path, ur_qpn(qpn), ur_qpn(qpn), ur_psn(5), mad);
		cr_assert(len == UR_MAD_FRAME_BYTES(&path));
		cr_assert(ur_packet_decode(frame, len, &p) == UR_DROP_NONE &&
			  ur_icrc_ok(frame, &p));
		cr_assert(ur_mad_way_of(&p, &slid, &dlid) == UR_MAD_HOP);
		cr_assert(p.bth.dqpn.v == qpn && p.deth.sqpn.v == qpn && p.bth.psn.v == 5);
		cr_assert(p.deth.qkey == (qpn ? UR_GSI_QKEY : 0));
		cr_assert(p.payload_len == UR_MAD_BYTES && p.ip.tos == 0xe0);
		cr_assert_arr_eq(p.payload, mad, UR_MAD_BYTES);
	}
	ur_mad_lid_path(&path, 3, 4);
	len = ur_mad_frame(frame, &path, ur_qpn(1), ur_qpn(1), ur_psn(0), mad);
	cr_assert(ur_packet_decode(frame, len, &p) == UR_DROP_NONE && ur_icrc_ok(frame, &p));
	cr_assert(ur_mad_way_of(&p, &slid, &dlid) == UR_MAD_LID && slid == 3 && dlid == 4);
	/* The MAC address alone does not make a LID: the IPv6 addresses must agree. */
	p.ip.src.b[9]++;
	cr_assert(ur_mad_way_of(&p, &slid, &dlid) == UR_MAD_IP);
}

Test(mgmt_wire, every_list_has_texts)
{
	cr_assert_str_eq(ur_mad_class_text(UR_MAD_CLASS_PERF), "performance management");
	cr_assert_str_eq(ur_mad_class_text(UR_MAD_CLASS_CM), "connection management");
	cr_assert_str_eq(ur_mad_method_text(UR_MAD_METHOD_GET_RESP), "GetResp");
	cr_assert_str_eq(ur_mad_status_text(UR_MAD_STATUS_VALUE),
			 "invalid value in the attribute or its modifier");
	cr_assert_str_eq(ur_smp_attr_text(UR_SMP_LFT), "LinearForwardingTable");
	cr_assert_str_eq(ur_vendor_error_text(UR_VENDOR_ERROR_ADDRESS), "no such address");
	cr_assert_str_eq(ur_fault_text(UR_FAULT_LINK_DOWN), "link down");
	cr_assert_str_eq(ur_severity_text(ur_fault_severity(UR_FAULT_LINK_DOWN)), "critical");
	cr_assert_str_eq(ur_severity_text(99), "unknown");
	cr_assert_str_eq(ur_fault_text(99), "unknown");
}
