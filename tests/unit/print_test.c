/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "frames.h"
#include "print/print.h"
#include "wire/cm_msg.h"

static const uint8_t text[32] = "payload";

/* The line of a packet made by frame_packet(). */
static const char *line_of(struct ur_packet p, bool icrc_ok)
{
	static char line[UR_PRINT_MAX];
	size_t len = ur_print_packet(line, sizeof(line), &p, icrc_ok);

	cr_assert_eq(len, strlen(line));
	return line;
}

static struct ur_packet v4(uint8_t opcode, uint16_t payload_len)
{
	struct ur_packet p = frame_packet(opcode, false, text, payload_len);

	p.ip.tos = 0;
	p.bth.dqpn = ur_qpn(0x11);
	p.bth.psn = ur_psn(7);
	return p;
}

Test(print, shows_addresses_port_opcode_qpn_psn_and_payload)
{
	cr_assert_str_eq(line_of(v4(UR_RC_SEND_ONLY, 8), true),
			 "10.0.0.1:49443 > 10.0.0.2 RC_SEND_ONLY qpn 0x11 psn 7 payload 8 icrc ok");
}

Test(print, puts_ipv6_addresses_with_a_port_in_brackets)
{
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, true, text, 8);

	p.ip.tos = 0;
	cr_assert_str_eq(line_of(p, true), "[fe80::1]:49443 > fe80::2 RC_SEND_ONLY qpn 0x123456 "
					   "psn 16702650 payload 8 icrc ok");
}

Test(print, shows_flags_and_what_is_not_usual)
{
	struct ur_packet p = v4(UR_RC_SEND_LAST, 5);

	p.bth.solicited = p.bth.migreq = p.bth.ackreq = p.bth.fecn = p.bth.becn = true;
	p.bth.pkey = 0x8001;
	p.has_vlan = true;
	p.vlan_tci = 3 << 13 | 42;
	p.ip.tos = 26 << 2 | 3;
	cr_assert_str_eq(line_of(p, true),
			 "10.0.0.1:49443 > 10.0.0.2 vlan 42 prio 3 dscp 26 ecn 3 RC_SEND_LAST "
			 "qpn 0x11 psn 7 [SE M A FECN BECN] pkey 0x8001 payload 5 pad 3 icrc ok");
}

Test(print, shows_a_wrong_icrc_with_its_value)
{
	struct ur_packet p = v4(UR_RC_SEND_ONLY, 0);

	p.icrc = 0xbadc0de;
	cr_assert(strstr(line_of(p, false), "payload 0 ICRC WRONG 0x0badc0de"));
}

Test(print, names_every_extended_header)
{
	cr_assert(strstr(line_of(v4(UR_RC_WRITE_ONLY_IMM, 0), true),
			 " RETH{va 0x7f0102030405 rkey 0xa1b2c3d4 len 12345} ImmDt{0xcafef00d} "));
	cr_assert(strstr(line_of(v4(UR_RC_SEND_ONLY_INV, 0), true), " IETH{rkey 0xbadcafe} "));
	cr_assert(strstr(line_of(v4(UR_UD_SEND_ONLY, 0), true),
			 " DETH{qkey 0x11111111 sqpn 0x654321} "));
	cr_assert(strstr(line_of(v4(UR_RC_COMPARE_SWAP, 0), true),
			 " AtomicETH{va 0x7f01020304f8 rkey 0xa1b2c3d4 swap 0x1122334455667788 "
			 "compare 0x99aabbccddeeff00} "));
	cr_assert(strstr(line_of(v4(UR_RC_FETCH_ADD, 0), true),
			 " AtomicETH{va 0x7f01020304f8 rkey 0xa1b2c3d4 add 0x1122334455667788} "));
	cr_assert(strstr(line_of(v4(UR_RC_ATOMIC_ACKNOWLEDGE, 0), true),
			 " AETH{ACK credits none msn 658188} "
			 "AtomicAckETH{original 0x123456789abcdef} "));
}

/* WIRE-XTH-01 */
Test(print, names_the_fields_of_an_extended_request)
{
	struct ur_packet p = v4(UR_EXT_WRITE_MIDDLE, 4);

	p.xth.flags = 0;
	cr_assert_str_eq(line_of(p, true),
			 "10.0.0.1:49443 > 10.0.0.2 EXT_WRITE_MIDDLE qpn 0x11 psn 7 "
			 "XTH{stamp 4059231220 path 13 ssn 2171427 offset 3224115} "
			 "RETH{va 0x7f0102030405 rkey 0xa1b2c3d4 len 12345} payload 4 icrc ok");
	p = v4(UR_EXT_SEND_ONLY, 4);
	p.xth = (struct ur_xth){.flags = UR_XTH_RECV | UR_XTH_RETRY, .ssn = 1, .rwqen = 9};
	cr_assert(strstr(line_of(p, true),
			 " XTH{stamp 0 path 0 ssn 1 offset 0 receive 9 retry} payload 4 "));
	p = v4(UR_EXT_READ_REQUEST, 0);
	p.xth = (struct ur_xth){.flags = UR_XTH_LAST_READ, .ssn = 2};
	cr_assert(strstr(line_of(p, true), " XTH{stamp 0 path 0 ssn 2 offset 0 last} RETH{"));
	p.xth.flags = UR_XTH_TWICE | UR_XTH_RETRY;
	cr_assert(
		strstr(line_of(p, true), " XTH{stamp 0 path 0 ssn 2 offset 0 retry twice} RETH{"));
	cr_assert(strstr(line_of(v4(UR_EXT_FETCH_ADD, 0), true), " add 0x1122334455667788} "));
	p = v4(UR_EXT_PROBE, 0);
	p.xth = (struct ur_xth){.stamp = 5};
	cr_assert(strstr(line_of(p, true), " EXT_PROBE qpn 0x11 psn 7 "
					   "XTH{stamp 5 path 0 ssn 0 offset 0} payload 0 icrc ok"));
}

/* WIRE-XAETH-01, WIRE-XRTH-01 */
Test(print, names_the_fields_of_an_extended_response)
{
	cr_assert(strstr(line_of(v4(UR_EXT_ATOMIC_ACKNOWLEDGE, 0), true),
			 " AETH{ACK credits none msn 658188} XAETH{echo 3789743076 path 14 "
			 "residence 270544960 ns epsn 16777215} XRTH{ssn 5329491 offset 6382179} "
			 "AtomicAckETH{original 0x123456789abcdef} payload 0 icrc ok"));
	cr_assert_null(strstr(line_of(v4(UR_EXT_ACKNOWLEDGE, 0), true), "SACK"));
}

/* WIRE-ASTH-01 */
Test(print, names_the_status_of_a_receive_pool)
{
	struct ur_packet p = v4(UR_EXT_NOTIFY, 0);

	cr_assert(strstr(line_of(p, true), " EXT_NOTIFY qpn 0x11 psn 7 ASTH{B generation 33154 "
					   "room 7 class A granted} pool 2442302356 payload 0 "));
	p = v4(UR_EXT_ACKNOWLEDGE_STATUS, 0);
	p.asth = (struct ur_asth){.status = 2, .generation = 9, .room = 255};
	cr_assert(strstr(line_of(p, true), " epsn 16777215} ASTH{NB generation 9 room 255} "));
	p = v4(UR_EXT_SEND_ONLY, 4);
	p.xth.flags = UR_XTH_RECV | 2 << UR_XTH_CLAIM_SHIFT;
	cr_assert(strstr(line_of(p, true), " receive 4276803 claims B} "));
}

/* WIRE-DELAY-01, WIRE-NDTH-01 */
Test(print, shows_delays_in_switches)
{
	struct ur_packet p = v4(UR_EXT_PROBE, 0);

	cr_assert_null(strstr(line_of(p, true), "delay"));
	p.bth.resv6 = 2;
	cr_assert_null(strstr(line_of(p, true), "delay"), "not asked for");
	p.bth.resv6 = 0x22;
	p.udp_csum = 0x2001;
	cr_assert(strstr(line_of(p, true), " delay{131104 ns in 2 hops} XTH{"));
	p.bth.resv6 = 0x3f;
	cr_assert(strstr(line_of(p, true), " delay{void} XTH{"));
	p = v4(UR_RC_SEND_ONLY, 4);
	p.bth.resv6 = 0x22;
	cr_assert_null(strstr(line_of(p, true), "delay"), "of standard mode");
	p = v4(UR_EXT_ACKNOWLEDGE_STATUS_DELAY, 0);
	cr_assert(strstr(line_of(p, true), " granted} NDTH{157856 ns in 3 hops} payload 0 "));
	p.ndth.hops = 31;
	cr_assert(strstr(line_of(p, true), " NDTH{void} payload 0 "));
}

static void assert_sack_says(uint32_t epsn, const uint8_t *map, uint16_t len, const char *want)
{
	struct ur_packet p = v4(UR_EXT_ACKNOWLEDGE, len);

	p.xaeth.epsn = ur_psn(epsn);
	p.payload = map;
	cr_assert(strstr(line_of(p, true), want), "%s", line_of(p, true));
}

/* WIRE-SACK-01 */
Test(print, shows_missing_and_arrived_psns_of_a_bitmap)
{
	static const uint8_t nothing[4], holes[4] = {0x23}, whole[4] = {0xff, 0xff, 0xff, 0xff};
	struct ur_packet p = v4(UR_EXT_ACKNOWLEDGE_PART, 4);
	uint8_t most[UR_SACK_BYTES + 4];

	assert_sack_says(7, nothing, 4, " SACK{missing 0 arrived 0} payload 4 ");
	assert_sack_says(7, holes, 4, " SACK{missing 4: 7 10..12 arrived 3: 8..9 13} ");
	assert_sack_says(0xfffffe, whole, 4,
			 " SACK{missing 1: 16777214 arrived 32: 16777215..30} ");
	memset(most, 0x55, sizeof(most));
	assert_sack_says(0, most, sizeof(most),
			 " SACK{missing 1024: 0 2 4 6 8 10 12 14 ... "
			 "arrived 1024: 1 3 5 7 9 11 13 15 ...} payload 260 ");
	/* WIRE-BPTH-01: of a part, of which ePSN is none. */
	p.xaeth.epsn = ur_psn(7);
	p.payload = holes;
	cr_assert(strstr(line_of(p, true), " BPTH{offset 2048 more} SACK{missing 3: 2058..2060 "
					   "arrived 3: 2056..2057 2061} "));
}

static void assert_aeth_says(uint8_t syndrome, const char *want)
{
	struct ur_aeth aeth = {.syndrome = syndrome, .msn = 5};
	char buf[64];

	ur_print_aeth(buf, sizeof(buf), &aeth);
	cr_assert_str_eq(buf, want);
}

Test(print, explains_a_syndrome)
{
	assert_aeth_says(0x00, "AETH{ACK credits 0 msn 5}");
	assert_aeth_says(0x1e, "AETH{ACK credits 32768 msn 5}");
	assert_aeth_says(0x1f, "AETH{ACK credits none msn 5}");
	assert_aeth_says(0x2c, "AETH{RNR NAK 0.64 ms msn 5}");
	assert_aeth_says(0x20, "AETH{RNR NAK 655.36 ms msn 5}");
	assert_aeth_says(0x60, "AETH{NAK PSN sequence error msn 5}");
	assert_aeth_says(0x64, "AETH{NAK invalid RD request msn 5}");
	assert_aeth_says(0x7f, "AETH{NAK reserved msn 5}");
	assert_aeth_says(0x45, "AETH{reserved syndrome 0x45 msn 5}");
	assert_aeth_says(0x9f, "AETH{reserved syndrome 0x9f msn 5}");
}

Test(print, names_every_opcode)
{
	for (unsigned op = 0; op < 256; op++)
		if (ur_op_flags((uint8_t)op))
			cr_assert(strstr(line_of(v4((uint8_t)op, 0), true), ur_opcodes[op].name));
}

Test(print, cuts_what_does_not_fit)
{
	struct ur_packet p = v4(UR_RC_WRITE_ONLY_IMM, 8);
	char whole[UR_PRINT_MAX];
	size_t len = ur_print_packet(whole, sizeof(whole), &p, true);

	for (size_t cap = 1; cap <= len + 1; cap++) {
		char *buf = malloc(cap);

		cr_assert_eq(ur_print_packet(buf, cap, &p, true), cap - 1);
		cr_assert_eq(buf[cap - 1], '\0');
		cr_assert_arr_eq(buf, whole, cap - 1);
		free(buf);
	}
	cr_assert_eq(ur_print_packet(NULL, 0, &p, true), 0);
}

static void assert_mad_says(uint8_t mgmt_class, uint16_t attr_id, const char *want)
{
	struct ur_mad mad = {.base_version = 1,
			     .mgmt_class = mgmt_class,
			     .class_version = 2,
			     .method = UR_MAD_METHOD_SEND,
			     .tid = 0xabc,
			     .attr_id = attr_id};
	uint8_t bytes[UR_MAD_BYTES] = {0};
	struct ur_cursor c = ur_cursor(bytes, sizeof(bytes));
	char buf[UR_PRINT_MAX];

	ur_put_mad(&c, &mad);
	ur_print_mad(buf, sizeof(buf), bytes, sizeof(bytes));
	cr_assert_eq(strncmp(buf, want, strlen(want)), 0, "%s", buf);
	cr_assert_eq(buf[strlen(buf) - 1], '}');
}

Test(print, names_every_cm_message)
{
#define X(name, value, text) assert_mad_says(UR_MAD_CLASS_CM, value, "MAD{CM " #name " tid 0xabc");
	UR_CM_ATTRS(X)
#undef X
	assert_mad_says(UR_MAD_CLASS_CM, 0x99, "MAD{CM attribute 0x0099 tid 0xabc}");
	assert_mad_says(0x03, 0x0011, "MAD{class 0x03 method 0x03 attribute 0x0011 tid 0xabc}");
}

Test(print, calls_a_mad_of_another_length_malformed)
{
	static const uint8_t bytes[UR_MAD_BYTES + 1];
	char buf[64];

	ur_print_mad(buf, sizeof(buf), bytes, UR_MAD_BYTES - 1);
	cr_assert_str_eq(buf, "MAD{malformed}");
	ur_print_mad(buf, sizeof(buf), bytes, UR_MAD_BYTES + 1);
	cr_assert_str_eq(buf, "MAD{malformed}");
}
