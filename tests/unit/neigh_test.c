/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>

#include "edge/neigh.h"
#include "unhex.h"

#define SECOND 1000000000ull

/* Our addresses are 10.9.0.2, fd09::2 and the link-local of this one; the peer is a Linux kernel. */
static const uint8_t our_mac[6] = {0x92, 0x52, 0x3c, 0x2a, 0x8b, 0xb1};
static const uint8_t peer_mac[6] = {0xae, 0x88, 0xd1, 0x89, 0xb8, 0x39};

/* Captured from Linux 6. */
#define ARP_REQUEST                                                                                \
	"ffffffffffffae88d189b83908060001080006040001ae88d189b8390a0900010000000000000a090002"
#define ARP_REPLY                                                                                  \
	"92523c2a8bb1ae88d189b83908060001080006040002ae88d189b8390a09000192523c2a8bb10a090002"
#define PING4                                                                                      \
	"92523c2a8bb1ae88d189b8390800450000240c42400040011a830a0900010a090002080075b5763900010001" \
	"020304050607"
#define SOLICIT                                                                                    \
	"3333ff000002ae88d189b83986dd6000000000203afffd090000000000000000000000000001ff0200000000" \
	"000000000001ff0000028700473a00000000fd0900000000000000000000000000020101ae88d189b839"
#define ADVERT_WITHOUT_ADDRESS                                                                     \
	"92523c2a8bb1ae88d189b83986dd6000000000183afffd090000000000000000000000000001fd0900000000" \
	"000000000000000000028800408b40000000fd090000000000000000000000000001"
#define PING6                                                                                      \
	"92523c2a8bb1ae88d189b83986dd600ff8dc00103a40fd090000000000000000000000000001fd0900000000" \
	"0000000000000000000280000352763b00010001020304050607"

static const struct ur_gid peer4 = {{[10] = 0xff, 0xff, 10, 9, 0, 1}};
static const struct ur_gid peer6 = {{0xfd, 0x09, [15] = 1}};
static const struct ur_gid ours6 = {{0xfd, 0x09, [15] = 2}};

static struct ur_gid ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct ur_gid){{[10] = 0xff, 0xff, a, b, c, d}};
}

static struct ur_neigh_attr our_attr(void)
{
	struct ur_neigh_attr attr = {.addr_cnt = 3};

	memcpy(attr.mac, our_mac, 6);
	attr.addr[0] = (struct ur_neigh_addr){ipv4(10, 9, 0, 2), 24};
	attr.addr[1] = (struct ur_neigh_addr){ur_neigh_link_local(our_mac), 64};
	attr.addr[2] = (struct ur_neigh_addr){ours6, 64};
	return attr;
}

/* Criterion runs each test in its own process. */
static struct ur_neigh n;
static uint8_t in[UR_NEIGH_FRAME_MAX], out[UR_NEIGH_FRAME_MAX];

static void setup(void)
{
	struct ur_neigh_attr attr = our_attr();

	ur_neigh_init(&n, &attr);
}

TestSuite(neigh, .init = setup);

static enum ur_neigh_verdict feed(const char *hex, uint64_t now_ns)
{
	size_t len = unhex(hex, in);

	return ur_neigh_input(&n, in, len, now_ns);
}

/* The next frame out is exactly this one. */
static void expect_out(const char *hex)
{
	uint8_t want[256];
	size_t len = unhex(hex, want), got = ur_neigh_output(&n, out, sizeof(out));

	cr_assert_eq(got, len, "%zu bytes instead of %zu", got, len);
	for (size_t i = 0; i < len; i++)
		cr_assert_eq(out[i], want[i], "byte %zu: %02x instead of %02x", i, out[i], want[i]);
}

static void expect_silence(void)
{
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 0);
}

static uint16_t sum16(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Corrects the ICMPv6 checksum of the untagged frame in `in` after a change. */
static void mend_icmp6(size_t len)
{
	uint16_t sum;

	in[56] = in[57] = 0;
	sum = (uint16_t)~sum16((uint32_t)(len - 54) + 58 + sum16(0, in + 22, 32), in + 54,
			       len - 54);
	in[56] = (uint8_t)(sum >> 8);
	in[57] = (uint8_t)sum;
}

Test(neigh, answers_the_arp_request_of_a_kernel)
{
	uint8_t mac[6];

	cr_assert_eq(feed(ARP_REQUEST, 0), UR_NEIGH_ARP_REQUEST);
	expect_out(
		"ae88d189b83992523c2a8bb10806000108000604000292523c2a8bb10a090002ae88d189b8390a09"
		"0001000000000000000000000000000000000000");
	expect_silence();
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 1), 0, "the sender of a request is known");
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(neigh, answers_the_ping_of_a_kernel)
{
	cr_assert_eq(feed(PING4, 0), UR_NEIGH_PING4);
	expect_out(
		"ae88d189b83992523c2a8bb108004500002400004000400126c50a0900020a09000100007db57639"
		"0001000102030405060700000000000000000000");
	expect_silence();
}

Test(neigh, answers_the_solicitation_of_a_kernel)
{
	uint8_t mac[6];

	cr_assert_eq(feed(SOLICIT, 0), UR_NEIGH_ND_SOLICIT);
	expect_out(
		"ae88d189b83992523c2a8bb186dd6000000000203afffd090000000000000000000000000002fd09"
		"00000000000000000000000000018800c45260000000fd090000000000000000000000000002020"
		"192523c2a8bb1");
	cr_assert_eq(ur_neigh_resolve(&n, &peer6, mac, 1), 0);
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(neigh, answers_the_ping6_of_a_kernel)
{
	cr_assert_eq(feed(PING6, 0), UR_NEIGH_PING6);
	expect_out(
		"ae88d189b83992523c2a8bb186dd6000000000103a40fd090000000000000000000000000002fd09"
		"000000000000000000000000000181000252763b00010001020304050607");
}

Test(neigh, answers_a_ping_of_a_jumbo_frame_and_of_no_byte)
{
	static const size_t sizes[] = {0, 1, 1472, 8000};

	for (size_t i = 0; i < 4; i++) {
		size_t len = 54 + 8 + sizes[i];

		unhex(PING6, in);
		for (size_t k = 62; k < len; k++)
			in[k] = (uint8_t)(k * 7);
		in[18] = (uint8_t)((len - 54) >> 8);
		in[19] = (uint8_t)(len - 54);
		mend_icmp6(len);
		cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_PING6);
		cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), len);
		cr_assert_arr_eq(out + 58, in + 58, len - 58);
		cr_assert_eq(sum16((uint32_t)(len - 54) + 58 + sum16(0, out + 22, 32), out + 54,
				   len - 54),
			     0xffff);
	}
}

Test(neigh, every_truncation_is_without_effect)
{
	static const char *const frames[] = {ARP_REQUEST, ARP_REPLY, PING4,
					     SOLICIT,	  PING6,     ADVERT_WITHOUT_ADDRESS};

	for (size_t f = 0; f < 6; f++) {
		size_t len = unhex(frames[f], in);

		for (size_t cut = 0; cut < len; cut++) {
			uint8_t *exact = malloc(cut); /* so that a sanitizer sees one byte more */

			memcpy(exact, in, cut);
			cr_assert_eq(ur_neigh_input(&n, exact, cut, 0), UR_NEIGH_MALFORMED,
				     "frame %zu cut at %zu", f, cut);
			free(exact);
		}
	}
	expect_silence();
	for (size_t i = 0; i < UR_NEIGH_ENTRIES_MAX; i++)
		cr_assert_eq(n.entry[i].state, UR_NEIGH_STATE_FREE);
}

Test(neigh, any_flipped_bit_of_a_checked_message_is_noticed)
{
	static const struct {
		const char *hex;
		size_t from; /* where the checksum's coverage starts */
	} cases[] = {{PING4, 14}, {SOLICIT, 54}, {PING6, 54}};

	for (size_t f = 0; f < 3; f++) {
		size_t len = unhex(cases[f].hex, in);

		for (size_t bit = cases[f].from * 8; bit < len * 8; bit++) {
			enum ur_neigh_verdict v;

			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			v = ur_neigh_input(&n, in, len, 0);
			cr_assert(v == UR_NEIGH_MALFORMED || v == UR_NEIGH_OTHER,
				  "frame %zu bit %zu: %s", f, bit, ur_neigh_verdict_name(v));
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	expect_silence();
}

Test(neigh, a_solicitation_that_a_router_forwarded_is_refused)
{
	size_t len = unhex(SOLICIT, in);

	in[21] = 254;
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MALFORMED);
	expect_silence();
}

Test(neigh, an_option_of_length_zero_is_refused)
{
	size_t len = unhex(SOLICIT, in);

	in[79] = 0;
	mend_icmp6(len);
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MALFORMED);
	in[79] = 2;
	mend_icmp6(len);
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MALFORMED);
}

Test(neigh, a_probe_for_our_address_is_answered_to_all_nodes)
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
	size_t len = unhex(SOLICIT, in) - 8;

	in[19] -= 8;
	memset(in + 22, 0, 16); /* from the unspecified address, no option */
	mend_icmp6(len);
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_ND_SOLICIT);
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 86);
	cr_assert_arr_eq(out + 38, all_nodes, 16);
	cr_assert_eq(out[58], 0x20, "not solicited, override");
}

Test(neigh, our_ipv4_address_mapped_into_an_ipv6_packet_is_not_ours)
{
	size_t len = unhex(SOLICIT, in);

	memcpy(in + 62, ipv4(10, 9, 0, 2).b, 16);
	mend_icmp6(len);
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MALFORMED);
	len = unhex(PING6, in);
	memcpy(in + 38, ipv4(10, 9, 0, 2).b, 16);
	mend_icmp6(len);
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_FOREIGN);
	expect_silence();
}

Test(neigh, frames_for_other_hosts_and_vlans_are_not_taken)
{
	size_t len = unhex(PING4, in);

	in[5] ^= 4;
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_FOREIGN);
	len = unhex(ARP_REQUEST, in);
	in[41] = 3;
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_FOREIGN);
	memmove(in + 16, in + 12, len - 12);
	memcpy(in + 12, (const uint8_t[]){0x81, 0x00, 0x00, 0x07}, 4);
	in[45] = 2;
	cr_assert_eq(ur_neigh_input(&n, in, len + 4, 0), UR_NEIGH_FOREIGN);
	in[15] = 0; /* a priority tag is not a VLAN tag */
	cr_assert_eq(ur_neigh_input(&n, in, len + 4, 0), UR_NEIGH_ARP_REQUEST);
}

Test(neigh, on_a_vlan_answers_carry_our_tag)
{
	struct ur_neigh_attr attr = our_attr();
	size_t len;

	attr.has_vlan = true;
	attr.vlan_tci = 0x6007;
	ur_neigh_init(&n, &attr);
	cr_assert_eq(feed(ARP_REQUEST, 0), UR_NEIGH_FOREIGN);
	len = unhex(ARP_REQUEST, in);
	memmove(in + 16, in + 12, len - 12);
	memcpy(in + 12, (const uint8_t[]){0x81, 0x00, 0x00, 0x07}, 4);
	cr_assert_eq(ur_neigh_input(&n, in, len + 4, 0), UR_NEIGH_ARP_REQUEST);
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 60);
	cr_assert_arr_eq(out + 12, ((const uint8_t[]){0x81, 0x00, 0x60, 0x07, 0x08, 0x06}), 6);
}

Test(neigh, other_traffic_is_tolerated)
{
	size_t len = unhex(PING4, in);

	in[23] = 17; /* UDP */
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_OTHER);
	in[12] = 0x88, in[13] = 0xcc; /* LLDP */
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_OTHER);
	cr_assert_eq(n.cnt[UR_NEIGH_OTHER], 2);
	expect_silence();
}

Test(neigh, resolve_sends_a_query_and_learns_from_the_answer)
{
	uint8_t mac[6];

	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 0), -EAGAIN);
	expect_out(
		"ffffffffffff92523c2a8bb10806000108000604000192523c2a8bb10a0900020000000000000a09"
		"0001000000000000000000000000000000000000");
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 1), -EAGAIN);
	expect_silence();
	cr_assert_eq(feed(ARP_REPLY, 2), UR_NEIGH_ARP_REPLY);
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 3), 0);
	cr_assert_arr_eq(mac, peer_mac, 6);
	cr_assert_eq(n.entry[0].state, UR_NEIGH_STATE_REACHABLE);
}

Test(neigh, resolve_of_ipv6_solicits_the_group)
{
	uint8_t mac[6];

	cr_assert_eq(ur_neigh_resolve(&n, &peer6, mac, 0), -EAGAIN);
	expect_out(
		"3333ff00000192523c2a8bb186dd6000000000203afffd090000000000000000000000000002ff02"
		"00000000000000000001ff0000018700255900000000fd0900000000000000000000000000010101"
		"92523c2a8bb1");
}

Test(neigh, silence_is_unreachable_after_three_queries_a_second_apart)
{
	uint8_t mac[6];

	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 0), -EAGAIN);
	for (uint64_t t = 1; t <= 3; t++) {
		cr_assert_eq(ur_neigh_next_deadline(&n), t * SECOND);
		ur_neigh_expire(&n, t * SECOND - 1);
		cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, t * SECOND - 1), -EAGAIN);
		ur_neigh_expire(&n, t * SECOND);
	}
	cr_assert_eq(n.queries_cnt, 3);
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 3 * SECOND), -EHOSTUNREACH);
	ur_neigh_expire(&n, 6 * SECOND);
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 6 * SECOND), -EAGAIN, "asked anew");
	cr_assert_eq(n.queries_cnt, 4);
}

Test(neigh, a_stale_neighbour_is_used_while_it_is_confirmed)
{
	uint8_t mac[6];
	uint64_t t = UR_NEIGH_REACHABLE_NS + 10;

	ur_neigh_resolve(&n, &peer6, mac, 0);
	feed(SOLICIT, 1);
	while (ur_neigh_output(&n, out, sizeof(out)))
		;
	ur_neigh_expire(&n, t);
	cr_assert_eq(n.entry[0].state, UR_NEIGH_STATE_STALE);
	cr_assert_eq(ur_neigh_resolve(&n, &peer6, mac, t), 0);
	cr_assert_arr_eq(mac, peer_mac, 6);
	expect_out(
		"ae88d189b83992523c2a8bb186dd6000000000203afffd090000000000000000000000000002fd09"
		"00000000000000000000000000018700265400000000fd090000000000000000000000000001010"
		"192523c2a8bb1");
	cr_assert_eq(feed(ADVERT_WITHOUT_ADDRESS, t + 1), UR_NEIGH_ND_ADVERT);
	cr_assert_eq(n.entry[0].state, UR_NEIGH_STATE_REACHABLE);
	cr_assert_eq(n.generation, 1, "the address never changed");
}

Test(neigh, an_unasked_for_reply_makes_no_entry)
{
	cr_assert_eq(feed(ARP_REPLY, 0), UR_NEIGH_IGNORED);
	cr_assert_eq(feed(ADVERT_WITHOUT_ADDRESS, 0), UR_NEIGH_IGNORED);
	cr_assert_eq(n.entry[0].state, UR_NEIGH_STATE_FREE);
}

Test(neigh, a_static_entry_never_moves)
{
	static const uint8_t fixed[6] = {2, 0, 0, 0, 0, 9};
	uint8_t mac[6];

	cr_assert_eq(ur_neigh_add_static(&n, &peer4, fixed, 0), 0);
	feed(ARP_REQUEST, 1);
	feed(ARP_REPLY, 1);
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 2), 0);
	cr_assert_arr_eq(mac, fixed, 6);
	cr_assert_eq(ur_neigh_add_static(&n, &peer4, (const uint8_t[]){1, 0, 0, 0, 0, 9}, 0),
		     -EINVAL);
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
}

Test(neigh, a_flood_of_hosts_pushes_out_no_neighbour_in_use)
{
	uint8_t mac[6];

	n.entry_max = 4;
	ur_neigh_resolve(&n, &peer4, mac, 0);
	feed(ARP_REPLY, 1);
	for (unsigned i = 3; i < 200; i++) {
		size_t len = unhex(ARP_REQUEST, in);

		in[11] = in[27] = (uint8_t)i;
		in[31] = (uint8_t)i;
		cr_assert_eq(ur_neigh_input(&n, in, len, i), UR_NEIGH_ARP_REQUEST);
		while (ur_neigh_output(&n, out, sizeof(out)))
			;
	}
	cr_assert_eq(n.evicted_cnt, 197 - 3);
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 300), 0);
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(neigh, a_table_full_of_queries_is_reported)
{
	uint8_t mac[6];

	n.entry_max = 2;
	for (uint8_t i = 10; i < 12; i++) {
		struct ur_gid g = ipv4(10, 9, 0, i);

		cr_assert_eq(ur_neigh_resolve(&n, &g, mac, 0), -EAGAIN);
	}
	cr_assert_eq(ur_neigh_resolve(&n, &peer4, mac, 0), -ENOBUFS);
}

Test(neigh, a_host_with_our_address_is_a_conflict)
{
	size_t len = unhex(ARP_REQUEST, in);

	in[31] = 2;
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_CONFLICT);
	expect_silence();
}

Test(neigh, destinations_go_by_subnet_gateway_and_mapping)
{
	static const struct {
		struct ur_gid dst;
		uint8_t mac[6];
	} maps[] = {
		{{{[10] = 0xff, 0xff, 255, 255, 255, 255}}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{{{[10] = 0xff, 0xff, 10, 9, 0, 255}}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{{{[10] = 0xff, 0xff, 239, 129, 2, 3}}, {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}},
		{{{0xff, 0x02, [12] = 1, 2, 3, 4}}, {0x33, 0x33, 1, 2, 3, 4}},
		{{{[10] = 0xff, 0xff, 10, 9, 0, 2}}, {0x92, 0x52, 0x3c, 0x2a, 0x8b, 0xb1}},
	};
	struct ur_neigh_attr attr = our_attr();
	struct ur_gid far4 = ipv4(192, 0, 2, 1), far6 = {{0x20, 0x01, [15] = 1}};
	uint8_t mac[6];

	for (size_t i = 0; i < 5; i++) {
		cr_assert_eq(ur_neigh_resolve(&n, &maps[i].dst, mac, 0), 0);
		cr_assert_arr_eq(mac, maps[i].mac, 6, "case %zu", i);
	}
	cr_assert_eq(ur_neigh_resolve(&n, &far4, mac, 0), -ENETUNREACH);
	cr_assert_eq(ur_neigh_resolve(&n, &far6, mac, 0), -ENETUNREACH);
	expect_silence();

	attr.has_gateway4 = attr.has_gateway6 = true;
	attr.gateway4 = peer4;
	attr.gateway6 = peer6;
	ur_neigh_init(&n, &attr);
	cr_assert_eq(ur_neigh_resolve(&n, &far4, mac, 0), -EAGAIN);
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 60);
	cr_assert_arr_eq(out + 38, peer4.b + 12, 4, "the gateway is asked for");
	cr_assert_eq(feed(ARP_REPLY, 1), UR_NEIGH_ARP_REPLY);
	cr_assert_eq(ur_neigh_resolve(&n, &far4, mac, 2), 0);
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(neigh, announcements_cover_every_address)
{
	ur_neigh_announce(&n);
	expect_out(
		"ffffffffffff92523c2a8bb10806000108000604000192523c2a8bb10a0900020000000000000a09"
		"0002000000000000000000000000000000000000");
	expect_out(
		"33330000000192523c2a8bb186dd6000000000203afffe8000000000000090523cfffe2a8bb1ff02"
		"00000000000000000000000000018800511320000000fe8000000000000090523cfffe2a8bb10201"
		"92523c2a8bb1");
	expect_out(
		"33330000000192523c2a8bb186dd6000000000203afffd090000000000000000000000000002ff02"
		"00000000000000000000000000018800025a20000000fd0900000000000000000000000000020201"
		"92523c2a8bb1");
}

/* ---- MLD ---- */

/* A general query of MLDv2 from fe80::1, 10 s to answer; checksum by mend(). */
#define QUERY2                                                                                     \
	"333300000001ae88d189b83986dd6000000000240001fe800000000000000000000000000001ff0200000000" \
	"00000000000000000001"                                                                     \
	"3a00050200000100"                                                                         \
	"82000000271000000000000000000000000000000000"                                             \
	"0000"                                                                                     \
	"027d0000"
#define MLD_ICMP 62 /* in an untagged frame */

/* The ICMPv6 checksum of the MLD message at the end of `in`. */
static void mend_mld(size_t len)
{
	uint16_t sum;

	in[MLD_ICMP + 2] = in[MLD_ICMP + 3] = 0;
	sum = (uint16_t)~sum16((uint32_t)(len - MLD_ICMP) + 58 + sum16(0, in + 22, 32),
			       in + MLD_ICMP, len - MLD_ICMP);
	in[MLD_ICMP + 2] = (uint8_t)(sum >> 8);
	in[MLD_ICMP + 3] = (uint8_t)sum;
}

static size_t query(const char *hex)
{
	size_t len = unhex(hex, in);

	mend_mld(len);
	return len;
}

/* An MLDv2 report of both our solicited-node groups, of that record type. */
static void expect_report(uint8_t type)
{
	static const uint8_t head[] = {0x33, 0x33, 0,	 0,    0,    0x16, 0x92, 0x52,
				       0x3c, 0x2a, 0x8b, 0xb1, 0x86, 0xdd, 0x60, 0,
				       0,    0,	   0,	 56,   0,    1};
	static const uint8_t groups[2][3] = {{0x2a, 0x8b, 0xb1}, {0, 0, 2}};
	struct ur_gid ll = ur_neigh_link_local(our_mac);

	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 54 + 56);
	cr_assert_arr_eq(out, head, sizeof(head));
	cr_assert_arr_eq(out + 22, ll.b, 16);
	cr_assert_arr_eq(out + 38, ((uint8_t[16]){0xff, 2, [15] = 0x16}), 16);
	cr_assert_arr_eq(out + 54, ((uint8_t[]){58, 0, 5, 2, 0, 0, 1, 0, 143, 0}), 10);
	cr_assert_eq(sum16(48 + 58 + sum16(0, out + 22, 32), out + MLD_ICMP, 48), 0xffff);
	cr_assert_arr_eq(out + 66, ((uint8_t[]){0, 0, 0, 2}), 4);
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *record = out + 70 + 20 * i;

		cr_assert_arr_eq(record, ((uint8_t[]){type, 0, 0, 0}), 4);
		cr_assert_arr_eq(record + 4,
				 ((uint8_t[]){0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}), 13);
		cr_assert_arr_eq(record + 17, groups[i], 3);
	}
}

/* MLD-REPORT-01 */
Test(neigh, joining_is_reported_twice)
{
	uint64_t due;

	ur_mld_join(&n, 5);
	expect_report(4);
	expect_silence();
	due = ur_neigh_next_deadline(&n);
	cr_assert(due > 5 && due < 5 + SECOND);
	ur_neigh_expire(&n, due - 1);
	expect_silence();
	ur_neigh_expire(&n, due);
	expect_report(4);
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
}

/* MLD-REPORT-01 */
Test(neigh, a_query_is_answered_within_its_time)
{
	size_t len = query(QUERY2);
	uint64_t due;

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(ur_neigh_input(&n, in, len, 7), UR_NEIGH_MLD_QUERY);
	expect_silence();
	due = ur_neigh_next_deadline(&n);
	cr_assert(due >= 7 && due < 7 + 10 * SECOND);
	ur_neigh_expire(&n, due);
	expect_report(2);
	expect_silence();
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
}

/* MLD-REPORT-01 */
Test(neigh, an_old_querier_gets_old_reports)
{
	size_t len = query(QUERY2) - 4;

	in[19] -= 4; /* without what MLDv2 has added */
	mend_mld(len);
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MLD_QUERY);
	ur_neigh_expire(&n, 10 * SECOND);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 86);
		cr_assert_eq(out[MLD_ICMP], 131);
		cr_assert_arr_eq(out + 38, out + 70, 16, "to the group that it names");
		cr_assert_eq(sum16(24 + 58 + sum16(0, out + 22, 32), out + MLD_ICMP, 24), 0xffff);
	}
	expect_silence();
}

static void expect_ignored(size_t len, enum ur_neigh_verdict verdict)
{
	mend_mld(len);
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), verdict);
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
}

/* MLD-REPORT-01 */
Test(neigh, queries_that_may_be_forged_or_are_not_for_us_are_ignored)
{
	size_t len = query(QUERY2);

	in[21] = 64;
	expect_ignored(len, UR_NEIGH_IGNORED);
	query(QUERY2);
	in[22] = 0x20; /* from another network */
	expect_ignored(len, UR_NEIGH_IGNORED);
	query(QUERY2);
	in[56] = 1; /* without a router alert */
	in[57] = 4;
	expect_ignored(len, UR_NEIGH_IGNORED);
	query(QUERY2);
	in[MLD_ICMP + 8] = 0xff; /* for another group */
	expect_ignored(len, UR_NEIGH_IGNORED);
	query(QUERY2);
	in[55] = 200; /* options beyond the end */
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MALFORMED);
	query(QUERY2);
	in[MLD_ICMP + 2] ^= 1;
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MALFORMED);
	query(QUERY2);
	cr_assert_eq(ur_neigh_input(&n, in, len - 4, 0), UR_NEIGH_MALFORMED);
	expect_silence();
}

/* ---- invariants ---- */

/* NEIGH-FOLLOW-01 */
Test(neigh, what_is_known_can_be_looked_up_without_a_question)
{
	uint8_t mac[6] = {0};
	struct ur_gid gone = ipv4(10, 9, 0, 77);

	cr_assert_not(ur_neigh_lookup(&n, &peer4, mac));
	cr_assert_eq(feed(ARP_REQUEST, 0), UR_NEIGH_ARP_REQUEST);
	cr_assert(ur_neigh_lookup(&n, &peer4, mac));
	cr_assert_arr_eq(mac, peer_mac, 6);
	cr_assert_eq(ur_neigh_resolve(&n, &gone, mac, 0), -EAGAIN);
	cr_assert_not(ur_neigh_lookup(&n, &gone, mac), "not yet known");
	cr_assert_not(ur_neigh_lookup(&n, &n.attr.addr[0].gid, mac), "never changes");
	cr_assert_eq(n.moved_cnt, 0);
	unhex(ARP_REQUEST, in);
	in[27] = 0x40;
	cr_assert_eq(ur_neigh_input(&n, in, 42, 0), UR_NEIGH_ARP_REQUEST);
	cr_assert(ur_neigh_lookup(&n, &peer4, mac));
	cr_assert_eq(mac[5], 0x40);
	cr_assert_eq(n.moved_cnt, 1);
}

Test(neigh, a_full_queue_drops_the_answer_and_counts)
{
	unsigned answered = 0;

	while (feed(ARP_REQUEST, 0) == UR_NEIGH_ARP_REQUEST)
		answered++;
	cr_assert_eq(answered, UR_NEIGH_QUEUE_BYTES / 62);
	cr_assert_eq(n.cnt[UR_NEIGH_QUEUE_FULL], 1);
	for (unsigned i = 0; i < answered; i++)
		cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 60);
	expect_silence();
	cr_assert_eq(feed(ARP_REQUEST, 0), UR_NEIGH_ARP_REQUEST, "and goes on afterwards");
}
