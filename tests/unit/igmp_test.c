/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>

#include "edge/neigh.h"
#include "unhex.h"

#define SECOND 1000000000ull

/* Captured from Linux 6.18, MAC addresses aside: how it joins 239.1.2.3, and the general query of a bridge without an address. */
#define JOIN                                                                                       \
	"01005e000016ae88d189b839080046c00028000040000102f9ab0a4d0001e0000016"                     \
	"940400002200e8f90000000104000000ef010203"
#define QUERY3                                                                                     \
	"01005e000001ae88d189b839080046c00024000040000102041300000000e0000001"                     \
	"94040000110aecf30000000002020000"
/* The same of version 2; checksums by mend(). */
#define QUERY2                                                                                     \
	"01005e000001ae88d189b839080046c0002000004000010204df00000000e0000001"                     \
	"94040000"                                                                                 \
	"110aeef500000000"

static const uint8_t mac[6] = {0xae, 0x88, 0xd1, 0x89, 0xb8, 0x39};
static const struct ur_gid group4 = {{[10] = 0xff, 0xff, 239, 1, 2, 3}};
static const struct ur_gid group6 = {{0xff, 0x15, [15] = 9}};
static struct ur_neigh n;
static uint8_t in[256], out[UR_NEIGH_FRAME_MAX];

static void setup(void)
{
	struct ur_neigh_attr attr = {.addr_cnt = 2};

	memcpy(attr.mac, mac, 6);
	attr.addr[0] = (struct ur_neigh_addr){{{[10] = 0xff, 0xff, 10, 77, 0, 1}}, 24};
	attr.addr[1] = (struct ur_neigh_addr){ur_neigh_link_local(mac), 64};
	ur_neigh_init(&n, &attr);
}

TestSuite(igmp, .init = setup);

static uint16_t sum16(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void mend_ip(void)
{
	uint16_t sum;

	in[24] = in[25] = 0;
	sum = (uint16_t)~sum16(in + 14, 24);
	in[24] = (uint8_t)(sum >> 8);
	in[25] = (uint8_t)sum;
}

/* Fills in both checksums of an IGMP message behind an IP header with a router alert. */
static size_t mend(const char *hex)
{
	size_t len = unhex(hex, in);
	uint16_t sum;

	in[16] = 0;
	in[17] = (uint8_t)(len - 14);
	mend_ip();
	in[40] = in[41] = 0;
	sum = (uint16_t)~sum16(in + 38, len - 38);
	in[40] = (uint8_t)(sum >> 8);
	in[41] = (uint8_t)sum;
	return len;
}

static void expect_silence(void)
{
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 0);
}

/* A version 3 report of one record about the group. */
static void expect_report(uint8_t record_type)
{
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 60);
	cr_assert_eq(sum16(out + 14, 24), 0xffff);
	cr_assert_eq(sum16(out + 38, 16), 0xffff);
	cr_assert_eq(out[22], 1, "TTL");
	cr_assert_arr_eq(out + 30, ((uint8_t[]){224, 0, 0, 22}), 4);
	cr_assert_eq(out[38], 0x22);
	cr_assert_eq(out[45], 1, "a record");
	cr_assert_eq(out[46], record_type);
	cr_assert_arr_eq(out + 50, group4.b + 12, 4);
}

/* Of versions 1 and 2. */
static void expect_old(uint8_t type, const uint8_t to[4])
{
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 60);
	cr_assert_eq(sum16(out + 38, 8), 0xffff);
	cr_assert_arr_eq(out + 30, to, 4);
	cr_assert_eq(out[38], type);
	cr_assert_arr_eq(out + 42, group4.b + 12, 4);
}

/* MCAST-JOIN-01 */
Test(igmp, a_group_is_reported_as_linux_does_and_once_more)
{
	uint8_t want[64];
	size_t len;
	uint64_t due;

	cr_assert_eq(ur_neigh_join_group(&n, &group4, 5), 0);
	cr_assert_eq(ur_neigh_join_group(&n, &group4, 5), -EALREADY);
	len = unhex(JOIN, want);
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 60, "padded");
	cr_assert_arr_eq(out, want, len);
	expect_silence();
	due = ur_neigh_next_deadline(&n);
	cr_assert(due > 5 && due < 5 + SECOND);
	ur_neigh_expire(&n, due);
	expect_report(4);
	expect_silence();
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
}

/* MCAST-JOIN-01 */
Test(igmp, a_group_that_is_left_is_reported_twice)
{
	ur_neigh_join_group(&n, &group4, 0);
	ur_neigh_expire(&n, SECOND);
	while (ur_neigh_output(&n, out, sizeof(out)))
		;
	ur_neigh_leave_group(&n, &group4, 2 * SECOND);
	expect_report(3);
	expect_silence();
	ur_neigh_expire(&n, 3 * SECOND);
	expect_report(3);
	expect_silence();
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
	cr_assert_eq(ur_neigh_input(&n, in, mend(QUERY3), 4 * SECOND), UR_NEIGH_IGNORED);
	ur_neigh_leave_group(&n, &group4, 5 * SECOND);
	expect_silence();
}

/* MCAST-JOIN-01 */
Test(igmp, queries_are_answered_in_the_queriers_version)
{
	static const uint8_t routers[4] = {224, 0, 0, 2};
	size_t len;

	ur_neigh_join_group(&n, &group4, 0);
	ur_neigh_expire(&n, SECOND);
	while (ur_neigh_output(&n, out, sizeof(out)))
		;
	len = unhex(QUERY3, in);
	cr_assert_eq(ur_neigh_input(&n, in, len, 2 * SECOND), UR_NEIGH_IGMP_QUERY);
	cr_assert_leq(ur_neigh_next_deadline(&n), 3 * SECOND);
	ur_neigh_expire(&n, 3 * SECOND);
	expect_report(2);
	cr_assert_eq(ur_neigh_input(&n, in, mend(QUERY2), 4 * SECOND), UR_NEIGH_IGMP_QUERY);
	ur_neigh_expire(&n, 5 * SECOND);
	expect_old(0x16, group4.b + 12);
	len = mend(QUERY2);
	in[39] = 0;
	in[41] = (uint8_t)(in[41] + 10); /* version 1 */
	cr_assert_eq(ur_neigh_input(&n, in, len, 6 * SECOND), UR_NEIGH_IGMP_QUERY);
	ur_neigh_expire(&n, 16 * SECOND);
	expect_old(0x12, group4.b + 12);
	cr_assert_eq(ur_neigh_input(&n, in, mend(QUERY2), 17 * SECOND), UR_NEIGH_IGMP_QUERY);
	ur_neigh_expire(&n, 18 * SECOND);
	expect_old(0x16, group4.b + 12);
	ur_neigh_leave_group(&n, &group4, 19 * SECOND);
	expect_old(0x17, routers);
	expect_silence();
	/* The old querier has gone. */
	ur_neigh_expire(&n, 20 * SECOND);
	ur_neigh_join_group(&n, &group4, 300 * SECOND);
	while (ur_neigh_output(&n, out, sizeof(out)))
		;
	ur_neigh_expire(&n, 301 * SECOND);
	expect_report(4);
}

/* MCAST-JOIN-01: the usual case, since an endpoint that is in no group hears queries as well. */
Test(igmp, a_querier_that_was_heard_before_the_join_gets_its_version)
{
	cr_assert_eq(ur_neigh_input(&n, in, mend(QUERY2), SECOND), UR_NEIGH_IGNORED);
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
	ur_neigh_join_group(&n, &group4, 2 * SECOND);
	expect_old(0x16, group4.b + 12);
	ur_neigh_expire(&n, 3 * SECOND);
	expect_old(0x16, group4.b + 12);
	expect_silence();
}

static void expect_verdict(size_t at, uint8_t value, enum ur_neigh_verdict verdict)
{
	size_t len = mend(QUERY3);

	in[at] = value;
	mend_ip();
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), verdict, "byte %zu", at);
	expect_silence();
}

/* What another network could send. */
static void expect_to_host(void)
{
	size_t len = mend(QUERY2);

	memcpy(in, mac, 6);
	in[5]++;
	memcpy(n.attr.mac, in, 6);
	memcpy(in + 30, (uint8_t[]){10, 77, 0, 1}, 4);
	mend_ip();
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_IGNORED, "to the own address");
	memcpy(in + 30, (uint8_t[]){224, 0, 0, 1}, 4);
	mend_ip();
	cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_IGNORED, "to a host's MAC address");
}

Test(igmp, what_no_querier_has_sent_has_no_effect)
{
	cr_assert_eq(ur_neigh_input(&n, in, mend(QUERY3), 0), UR_NEIGH_IGNORED, "in no group");
	ur_neigh_join_group(&n, &group4, 0);
	ur_neigh_expire(&n, SECOND);
	while (ur_neigh_output(&n, out, sizeof(out)))
		;
	expect_verdict(22, 2, UR_NEIGH_IGNORED);      /* forwarded */
	expect_verdict(34, 1, UR_NEIGH_IGNORED);      /* no alert */
	expect_verdict(20, 0x20, UR_NEIGH_MALFORMED); /* a fragment */
	expect_verdict(40, 0, UR_NEIGH_MALFORMED);    /* checksum */
	expect_verdict(33, 2, UR_NEIGH_IGNORED);      /* to other routers */
	expect_verdict(5, 2, UR_NEIGH_IGNORED);	      /* not to its MAC address */
	expect_to_host();
	cr_assert_eq(ur_neigh_next_deadline(&n), UINT64_MAX);
	for (size_t len = 14; len < 50; len++) {
		mend(QUERY3);
		cr_assert_eq(ur_neigh_input(&n, in, len, 0), UR_NEIGH_MALFORMED, "%zu bytes", len);
	}
}

/* MCAST-JOIN-01 */
Test(igmp, groups_of_ipv6_are_mld_s)
{
	cr_assert_eq(ur_neigh_join_group(&n, &group6, 0), 0);
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 90);
	cr_assert_eq(out[62], 143);
	cr_assert_eq(out[70], 4, "a change to exclude mode");
	cr_assert_arr_eq(out + 74, group6.b, 16);
	ur_neigh_expire(&n, SECOND);
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 110, "with that of its own address");
	ur_neigh_leave_group(&n, &group6, 2 * SECOND);
	cr_assert_eq(ur_neigh_output(&n, out, sizeof(out)), 90);
	cr_assert_eq(out[70], 3);
	expect_silence();
}

Test(igmp, groups_are_bounded_and_must_be_groups)
{
	struct ur_gid host = {{[10] = 0xff, 0xff, 10, 77, 0, 9}}, g = group4;

	cr_assert_eq(ur_neigh_join_group(&n, &host, 0), -EINVAL);
	for (unsigned i = 0; i < UR_NEIGH_GROUPS_MAX; i++) {
		g.b[15] = (uint8_t)i;
		cr_assert_eq(ur_neigh_join_group(&n, &g, 0), 0);
	}
	cr_assert_eq(ur_neigh_join_group(&n, &group6, 0), -ENOSPC);
	ur_neigh_leave_group(&n, &g, 0);
	cr_assert_eq(ur_neigh_join_group(&n, &group6, 0), 0, "one that was left makes room");
	while (ur_neigh_output(&n, out, sizeof(out)))
		;
	ur_neigh_expire(&n, SECOND);
	for (unsigned frames = 0; ur_neigh_output(&n, out, sizeof(out)); frames++)
		cr_assert_lt(frames, 20u);
}
