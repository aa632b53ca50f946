/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "dpdk/rtnl.h"
#include "dpdk/shared.h"

/* Messages as the kernel sends them, and as it would not. */

static _Alignas(8) char buf[1024];
static struct nlmsghdr *nlh;
static struct ur_rtnl_msg msg;

static const uint8_t mac_a[6] = {0x02, 0, 0, 0, 0, 0x0a};
static const uint8_t v4_a[4] = {10, 0, 0, 1}, v4_b[4] = {10, 0, 0, 2};
static const uint8_t v6_a[16] = {0xfd, [15] = 1}, v6_b[16] = {0xfd, [15] = 2};

static void *message(uint16_t type, size_t fixed)
{
	memset(buf, 0, sizeof(buf));
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	return mnl_nlmsg_put_extra_header(nlh, fixed);
}

static struct ur_gid gid4(const uint8_t b[4])
{
	return ur_gid_from_ipv4((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 |
				b[3]);
}

static struct ur_gid gid6(const uint8_t b[16])
{
	struct ur_gid g;

	memcpy(g.b, b, 16);
	return g;
}

static void expect_gid(const struct ur_gid *got, struct ur_gid want)
{
	cr_expect(ur_gid_eq(got, &want));
}

/* ---- links ---- */

static void link_message(unsigned flags)
{
	struct ifinfomsg *m = message(RTM_NEWLINK, sizeof(*m));

	m->ifi_index = 7;
	m->ifi_flags = flags;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "eth0");
	mnl_attr_put_u32(nlh, IFLA_MTU, 1500);
	mnl_attr_put(nlh, IFLA_ADDRESS, 6, mac_a);
}

Test(rtnl, a_link_has_a_state_an_mtu_and_a_mac_address)
{
	link_message(IFF_UP | IFF_RUNNING);
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_LINK);
	cr_expect_eq(msg.link.ifindex, 7);
	cr_expect(msg.link.up && msg.link.ethernet && !msg.gone);
	cr_expect_eq(msg.link.mtu, 1500);
	cr_expect_eq(memcmp(msg.link.mac, mac_a, 6), 0);
}

Test(rtnl, a_link_without_carrier_is_down)
{
	link_message(IFF_UP);
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_LINK);
	cr_expect_not(msg.link.up);
	link_message(IFF_RUNNING);
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_LINK);
	cr_expect_not(msg.link.up);
}

Test(rtnl, a_removed_link_is_reported)
{
	link_message(IFF_UP | IFF_RUNNING);
	nlh->nlmsg_type = RTM_DELLINK;
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_LINK);
	cr_expect(msg.gone);
}

Test(rtnl, addresses_of_another_length_are_no_mac_address)
{
	static const uint8_t infiniband[20] = {0x80}, none[6], group[6] = {1, 0, 0x5e};
	const struct {
		const uint8_t *p;
		size_t len;
	} wrong[] = {{infiniband, 20}, {none, 6}, {group, 6}, {mac_a, 5}, {mac_a, 0}};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct ifinfomsg *m = message(RTM_NEWLINK, sizeof(*m));

		m->ifi_index = 7;
		mnl_attr_put(nlh, IFLA_ADDRESS, wrong[i].len, wrong[i].p);
		cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_LINK);
		cr_expect_not(msg.link.ethernet, "%u", i);
	}
}

Test(rtnl, a_port_of_a_bridge_is_no_link)
{
	struct ifinfomsg *m;

	link_message(IFF_UP);
	m = mnl_nlmsg_get_payload(nlh);
	m->ifi_family = AF_BRIDGE;
	cr_expect_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_OTHER);
}

/* ---- addresses ---- */

static struct ifaddrmsg *addr_message(unsigned char family, unsigned char len)
{
	struct ifaddrmsg *m = message(RTM_NEWADDR, sizeof(*m));

	m->ifa_family = family;
	m->ifa_prefixlen = len;
	m->ifa_index = 7;
	return m;
}

/* SHARED-ADDR-01 */
Test(rtnl, the_local_address_of_a_point_to_point_link_is_ours)
{
	for (int order = 0; order < 2; order++) {
		addr_message(AF_INET, 24);
		mnl_attr_put(nlh, order ? IFA_LOCAL : IFA_ADDRESS, 4, order ? v4_a : v4_b);
		mnl_attr_put(nlh, order ? IFA_ADDRESS : IFA_LOCAL, 4, order ? v4_b : v4_a);
		cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_ADDR);
		expect_gid(&msg.addr.gid, gid4(v4_a));
		cr_expect_eq(msg.addr.prefix_len, 24);
		cr_expect(msg.addr.usable);
	}
}

/* SHARED-ADDR-01 */
Test(rtnl, an_address_is_of_use_once_no_other_host_has_it)
{
	static const struct {
		uint32_t flags;
		bool usable;
	} row[] = {{IFA_F_PERMANENT, true},
		   {IFA_F_TENTATIVE, false},
		   {IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, true},
		   {IFA_F_DADFAILED, false},
		   {IFA_F_DADFAILED | IFA_F_TENTATIVE, false}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		addr_message(AF_INET6, 64);
		mnl_attr_put(nlh, IFA_ADDRESS, 16, v6_a);
		mnl_attr_put_u32(nlh, IFA_FLAGS, row[i].flags);
		cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_ADDR);
		expect_gid(&msg.addr.gid, gid6(v6_a));
		cr_expect_eq(msg.addr.usable, row[i].usable, "%u", i);
	}
}

Test(rtnl, an_address_that_does_not_fit_its_family_is_none)
{
	addr_message(AF_INET, 24);
	mnl_attr_put(nlh, IFA_LOCAL, 16, v6_a);
	cr_expect_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_OTHER);
	addr_message(AF_INET6, 64);
	mnl_attr_put(nlh, IFA_ADDRESS, 4, v4_a);
	cr_expect_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_OTHER);
	addr_message(AF_INET, 33);
	mnl_attr_put(nlh, IFA_LOCAL, 4, v4_a);
	cr_expect_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_OTHER);
	addr_message(AF_INET, 24);
	cr_expect_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_OTHER, "an address without one");
}

/* ---- routes ---- */

static void route_message(unsigned char family, unsigned char type)
{
	struct rtmsg *m = message(RTM_NEWROUTE, sizeof(*m));

	m->rtm_family = family;
	m->rtm_type = type;
	mnl_attr_put_u32(nlh, RTA_OIF, 7);
}

/* SHARED-ROUTE-01 */
Test(rtnl, a_route_names_interface_gateway_and_source)
{
	route_message(AF_INET, RTN_UNICAST);
	mnl_attr_put(nlh, RTA_GATEWAY, 4, v4_b);
	mnl_attr_put(nlh, RTA_PREFSRC, 4, v4_a);
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_ROUTE);
	cr_expect_eq(msg.route.type, UR_RTNL_UNICAST);
	cr_expect_eq(msg.route.oif, 7);
	cr_expect(msg.route.has_gateway && msg.route.has_src);
	expect_gid(&msg.route.gateway, gid4(v4_b));
	expect_gid(&msg.route.src, gid4(v4_a));
}

/* SHARED-ROUTE-01 */
Test(rtnl, a_route_without_a_gateway_is_on_the_link)
{
	route_message(AF_INET6, RTN_UNICAST);
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_ROUTE);
	cr_expect_not(msg.route.has_gateway);
	cr_expect_not(msg.route.has_src);
}

/* RFC 5549 */
Test(rtnl, an_ipv4_route_may_have_an_ipv6_gateway)
{
	struct {
		uint16_t family;
		uint8_t addr[16];
	} via = {.family = AF_INET6};

	memcpy(via.addr, v6_b, 16);
	route_message(AF_INET, RTN_UNICAST);
	mnl_attr_put(nlh, RTA_VIA, sizeof(via), &via);
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_ROUTE);
	cr_expect(msg.route.has_gateway);
	expect_gid(&msg.route.gateway, gid6(v6_b));
	route_message(AF_INET, RTN_UNICAST);
	mnl_attr_put(nlh, RTA_VIA, 5, &via);
	cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_ROUTE);
	cr_expect_not(msg.route.has_gateway);
}

Test(rtnl, each_kind_of_route_is_distinguished)
{
	static const struct {
		unsigned char type;
		enum ur_rtnl_route_type want;
	} row[] = {{RTN_UNICAST, UR_RTNL_UNICAST},	 {RTN_LOCAL, UR_RTNL_LOCAL},
		   {RTN_BROADCAST, UR_RTNL_BROADCAST},	 {RTN_MULTICAST, UR_RTNL_MULTICAST},
		   {RTN_BLACKHOLE, UR_RTNL_UNREACHABLE}, {RTN_UNREACHABLE, UR_RTNL_UNREACHABLE},
		   {RTN_PROHIBIT, UR_RTNL_UNREACHABLE},	 {200, UR_RTNL_UNREACHABLE}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		route_message(AF_INET, row[i].type);
		cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_ROUTE);
		cr_expect_eq(msg.route.type, row[i].want, "%u", row[i].type);
	}
}

/* ---- neighbours ---- */

static void neigh_message(uint16_t state)
{
	struct ndmsg *m = message(RTM_NEWNEIGH, sizeof(*m));

	m->ndm_family = AF_INET;
	m->ndm_ifindex = 7;
	m->ndm_state = state;
	mnl_attr_put(nlh, NDA_DST, 4, v4_b);
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac_a);
}

/* SHARED-NEIGH-01 */
Test(rtnl, a_neighbour_is_of_use_in_the_states_in_which_the_kernel_sends_to_it)
{
	static const struct {
		uint16_t state;
		bool has_mac, failed, stale;
	} row[] = {{NUD_NONE, false, false, false},	{NUD_INCOMPLETE, false, false, false},
		   {NUD_REACHABLE, true, false, false}, {NUD_STALE, true, false, true},
		   {NUD_DELAY, true, false, false},	{NUD_PROBE, true, false, false},
		   {NUD_PERMANENT, true, false, false}, {NUD_FAILED, false, true, false}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		neigh_message(row[i].state);
		cr_assert_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_NEIGH);
		expect_gid(&msg.neigh.gid, gid4(v4_b));
		cr_expect_eq(msg.neigh.has_mac, row[i].has_mac, "%u", row[i].state);
		cr_expect_eq(msg.neigh.failed, row[i].failed, "%u", row[i].state);
		cr_expect_eq(msg.neigh.stale, row[i].stale, "%u", row[i].state);
	}
}

Test(rtnl, a_forwarding_entry_of_a_bridge_is_no_neighbour)
{
	struct ndmsg *m = message(RTM_NEWNEIGH, sizeof(*m));

	m->ndm_family = AF_BRIDGE;
	m->ndm_ifindex = 7;
	m->ndm_state = NUD_REACHABLE;
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac_a);
	cr_expect_eq(ur_rtnl_parse(nlh, &msg), UR_RTNL_OTHER);
}

/* ---- lengths ---- */

static void forget(void *arg, const struct ur_rtnl_msg *m)
{
	(*(unsigned *)arg)++;
}

/* The message in memory of exactly that size, so that a sanitizer sees a byte beyond. */
static void walk_exactly(size_t len, unsigned *seen)
{
	void *copy = malloc(len ? len : 1);

	memcpy(copy, buf, len);
	ur_rtnl_walk(copy, len, forget, seen);
	free(copy);
}

Test(rtnl, no_length_in_a_message_is_trusted)
{
	unsigned seen = 0;

	for (unsigned kind = 0; kind < 4; kind++) {
		size_t whole;

		if (kind == 0) {
			link_message(IFF_UP);
		} else if (kind == 1) {
			addr_message(AF_INET6, 64);
			mnl_attr_put(nlh, IFA_ADDRESS, 16, v6_a);
			mnl_attr_put_u32(nlh, IFA_FLAGS, 0);
		} else if (kind == 2) {
			route_message(AF_INET6, RTN_UNICAST);
			mnl_attr_put(nlh, RTA_GATEWAY, 16, v6_b);
		} else {
			neigh_message(NUD_STALE);
		}
		whole = nlh->nlmsg_len;
		/* The buffer is shorter than the header's length. */
		for (size_t len = 0; len < whole; len++)
			walk_exactly(len, &seen);
		cr_expect_eq(seen, 0, "a piece of a message was taken for one");
		/* The header's length is less than the buffer's. */
		for (uint32_t len = 0; len < whole; len++) {
			nlh->nlmsg_len = len;
			walk_exactly(whole, &seen);
		}
		cr_expect_leq(seen, whole);
		/* It is more, up to values that are negative as an int. */
		seen = 0;
		for (unsigned bit = 12; bit < 32; bit++) {
			nlh->nlmsg_len = (uint32_t)whole | 1u << bit;
			walk_exactly(whole, &seen);
		}
		cr_expect_eq(seen, 0, "a message longer than what was received");
		nlh->nlmsg_len = (uint32_t)whole;
		/* Each attribute with each length. */
		for (size_t at = NLMSG_HDRLEN; at + sizeof(struct nlattr) <= whole; at += 4)
			for (unsigned len = 0; len < 80; len++) {
				uint16_t old, lie = (uint16_t)len;

				memcpy(&old, buf + at, sizeof(old));
				memcpy(buf + at, &lie, sizeof(lie));
				walk_exactly(whole, &seen);
				memcpy(buf + at, &old, sizeof(old));
			}
		seen = 0;
		walk_exactly(whole, &seen);
		cr_expect_eq(seen, 1);
		seen = 0;
	}
}

Test(rtnl, messages_follow_one_another)
{
	_Alignas(8) char two[512];
	unsigned seen = 0;

	link_message(IFF_UP);
	memcpy(two, buf, NLMSG_ALIGN(nlh->nlmsg_len));
	memcpy(two + NLMSG_ALIGN(nlh->nlmsg_len), buf, nlh->nlmsg_len);
	cr_expect_eq(ur_rtnl_walk(two, NLMSG_ALIGN(nlh->nlmsg_len) + nlh->nlmsg_len, forget, &seen),
		     2);
	cr_expect_eq(seen, 2);
}

/* ---- the GID table of a shared interface ---- */

static struct ur_gid numbered(uint8_t n)
{
	return (struct ur_gid){{0xfd, [15] = n}};
}

/* SHARED-ADDR-01 */
Test(shared, an_address_keeps_its_place_while_others_come_and_go)
{
	static const struct ur_gid none;
	struct ur_gid have[3] = {numbered(1), numbered(2), numbered(3)};
	struct ur_shared_addrs t = {0};

	cr_expect(ur_shared_place(&t, have, 3));
	cr_expect_eq(t.cnt, 3);
	cr_expect_not(ur_shared_place(&t, have, 3), "nothing has changed");
	have[0] = numbered(3);
	cr_expect(ur_shared_place(&t, have, 1));
	cr_expect(ur_gid_eq(&t.gid[0], &none) && ur_gid_eq(&t.gid[1], &none));
	expect_gid(&t.gid[2], numbered(3));
	have[1] = numbered(4);
	cr_expect(ur_shared_place(&t, have, 2));
	expect_gid(&t.gid[0], numbered(4));
	expect_gid(&t.gid[2], numbered(3));
	cr_expect(ur_shared_place(&t, have, 0), "all have gone");
	cr_expect_eq(t.cnt, 3, "places stay");
}

Test(shared, more_addresses_than_the_table_has_places_are_left_out)
{
	struct ur_gid have[UR_SHARED_ADDRS_MAX + 3];
	struct ur_shared_addrs t = {0};

	for (unsigned i = 0; i < UR_SHARED_ADDRS_MAX + 3; i++)
		have[i] = numbered((uint8_t)(i + 1));
	cr_expect(ur_shared_place(&t, have, UR_SHARED_ADDRS_MAX + 3));
	cr_expect_eq(t.cnt, UR_SHARED_ADDRS_MAX);
	cr_expect_not(ur_shared_place(&t, have, UR_SHARED_ADDRS_MAX + 3));
	/* One is removed: one of those that did not fit takes its place. */
	cr_expect(ur_shared_place(&t, have + 1, UR_SHARED_ADDRS_MAX + 2));
	expect_gid(&t.gid[0], numbered(UR_SHARED_ADDRS_MAX + 1));
}
