/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_bed.h"

/* Which ports have a frame to send, as a string such as "24". */
static const char *to(void)
{
	static char ports[BED_PORTS + 1];
	unsigned n = 0;

	for (uint8_t p = 0; p < BED_PORTS; p++)
		if (take(p, 256))
			ports[n++] = (char)('0' + p);
	ports[n] = '\0';
	return ports;
}

/* ---- learning and flooding ---- */

/* SWITCH-MAC-01 */
Test(switch_, unknown_is_flooded_known_is_not)
{
	bed_plain();
	cr_assert_eq(give(1, plain(1, 2, 64)), 3);
	cr_assert_str_eq(to(), "234");
	cr_assert_eq(give(2, plain(2, 1, 64)), 1);
	cr_assert_str_eq(to(), "1");
	cr_assert_eq(give(1, plain(1, 2, 64)), 1);
	cr_assert_str_eq(to(), "2");
	cr_assert_eq(counters(1).flooded, 1);
	cr_assert_eq(counters(1).copies, 2);
}

/* SWITCH-MAC-01 */
Test(switch_, a_station_that_moves_is_followed)
{
	bed_plain();
	introduce();
	give(3, plain(2, 1, 64));
	cr_assert_str_eq(to(), "1");
	give(1, plain(1, 2, 64));
	cr_assert_str_eq(to(), "3");
	cr_assert_eq(counters(3).moved, 1);
}

/* SWITCH-MAC-01 */
Test(switch_, an_old_address_is_forgotten)
{
	bed_plain();
	introduce();
	cr_assert_eq(ur_switch_macs(sw, now_ns), 4);
	now_ns += attr.age_ns - 1;
	give(1, plain(1, 2, 64));
	cr_assert_str_eq(to(), "2");
	now_ns += 1;
	give(1, plain(1, 2, 64));
	cr_assert_str_eq(to(), "234");
	cr_assert_eq(ur_switch_macs(sw, now_ns), 1);
}

/* SWITCH-MAC-02 */
Test(switch_, one_port_cannot_displace_the_addresses_of_others)
{
	bed_attr();
	attr.limits.macs = 256;
	port_attr.flood_per_s = 0;
	bed_start();
	introduce();
	for (unsigned h = 100; h < 6000; h++) {
		give(4, plain(h, 1, 64));
		take(1, 256);
		now_ns += 1000;
	}
	for (unsigned h = 1; h < 4; h++) {
		give((uint8_t)(h % 3 + 1), plain(h % 3 + 1, h, 64));
		cr_assert_eq(take((uint8_t)h, 256), 1);
	}
	cr_assert_str_eq(to(), "");
}

/* SWITCH-MAC-02: a table that one port has filled has room for the others' addresses. */
Test(switch_, a_full_table_learns_of_a_port_with_less_than_its_share)
{
	bed_attr();
	attr.limits.macs = 64;
	port_attr.flood_per_s = 0;
	bed_start();
	for (unsigned h = 100; h < 5000; h++)
		give(4, plain(h, h, 64));
	for (uint8_t p = 1; p < 4; p++)
		while (take(p, 256))
			;
	introduce();
	give(1, plain(1, 2, 64));
	cr_assert_str_eq(to(), "2");
	cr_assert_eq(counters(2).not_learned, 0);
}

/* SWITCH-FLOOD-01 */
Test(switch_, floods_are_limited)
{
	bed_attr();
	port_attr.flood_per_s = 1000;
	port_attr.lane_bytes = 1 << 20;
	attr.limits.frames = 8192;
	bed_start();
	for (unsigned i = 0; i < 3000; i++)
		give(1, plain(1, 0xffff, 64));
	cr_assert_leq(counters(1).flooded, 1025);
	cr_assert_geq(counters(1).flooded, 1024);
	cr_assert_eq(counters(1).flooded + dropped(1, 0, UR_SWITCH_DROP_FLOOD), 3000);
	/* Another port is not affected, and a second later there is room for a thousand. */
	cr_assert_eq(give(2, plain(2, 0xffff, 64)), 3);
	now_ns += 1000000000;
	for (unsigned i = 0; i < 3000; i++)
		give(1, plain(1, 0xffff, 64));
	cr_assert_leq(counters(1).flooded, 2026);
	cr_assert_geq(counters(1).flooded, 2023);
}

/* ---- a host on several ports ---- */

static uint64_t steered;

static uint64_t steer(void *arg, uint8_t in, const struct ur_switch_frame *frame,
		      const struct ur_switch_headers *h)
{
	return steered;
}

/* SWITCH-STEER-01 */
Test(switch_, a_frame_is_steered_and_the_hosts_address_not_learned)
{
	struct ur_switch_steer s = {.ports = steer};
	struct ur_switch_frame f;

	bed_plain();
	f = plain(1, 2, 64);
	memcpy(s.mac, f.data + 6, 6);
	ur_switch_set_steer(sw, &s);
	steered = 1 << 3;
	cr_assert_eq(give(1, f), 1);
	cr_assert_str_eq(to(), "3");
	steered = 1 << 1; /* back to where it came from */
	cr_assert_eq(give(1, plain(1, 2, 64)), 1);
	cr_assert_str_eq(to(), "1");
	steered = 1 << 2 | 1 << 4 | 1; /* never to the agent */
	cr_assert_eq(give(1, plain(1, 2, 64)), 2);
	cr_assert_str_eq(to(), "24");
	steered = 0;
	cr_assert_eq(give(1, plain(1, 2, 64)), 0);
	cr_assert_eq(dropped(1, 0, UR_SWITCH_DROP_NO_ENDPOINT), 1);
	steered = UR_SWITCH_NOT_STEERED;
	cr_assert_eq(give(2, plain(2, 1, 64)), 3);
	cr_assert_str_eq(to(), "134");
	cr_assert_eq(ur_switch_macs(sw, now_ns), 1);
}

/* ---- what is not forwarded ---- */

Test(switch_, invalid_and_reserved_frames_are_dropped)
{
	struct ur_switch_frame f;

	bed_plain();
	for (uint32_t len = 0; len < 14; len++)
		cr_assert_eq(give(1, plain(1, 2, len)), 0);
	cr_assert_eq(dropped(1, 0, UR_SWITCH_DROP_TRUNCATED), 14);
	f = plain(1, 2, 64);
	f.data[6] |= 1;
	cr_assert_eq(give(1, f), 0);
	cr_assert_eq(dropped(1, 0, UR_SWITCH_DROP_SOURCE), 1);
	for (uint8_t i = 0; i < 16; i++) {
		f = plain(1, 2, 64);
		memcpy(f.data, (const uint8_t[]){1, 0x80, 0xc2, 0, 0, i}, 6);
		cr_assert_eq(give(1, f), 0);
	}
	cr_assert_eq(dropped(1, 0, UR_SWITCH_DROP_RESERVED), 16);
	give(1, plain(1, 0xffff, 64));
	cr_assert_str_eq(to(), "234");
	cr_assert_eq(give(1, plain(2, 1, 64)), 0);
	cr_assert_eq(dropped(1, 0, UR_SWITCH_DROP_SAME_PORT), 1);
}

Test(switch_, a_frame_that_the_port_cannot_send_is_dropped)
{
	bed_plain();
	introduce();
	cr_assert_eq(give(1, plain(1, 2, port_attr.max_frame)), 1);
	cr_assert_eq(give(1, plain(1, 2, port_attr.max_frame + 1)), 0);
	cr_assert_eq(dropped(2, 0, UR_SWITCH_DROP_TOO_LONG), 1);
}

/* ---- VLANs ---- */

static void access_port(uint8_t port, uint16_t vid)
{
	struct ur_switch_port_attr a = port_attr;

	a.trunk = false;
	a.vid = vid;
	ur_switch_set_port(sw, port, &a, now_ns);
}

static void trunk_port(uint8_t port, uint16_t native, uint16_t vid)
{
	struct ur_switch_port_attr a = port_attr;

	memset(a.vids, 0, sizeof(a.vids));
	a.vid = native;
	ur_switch_vids_add(&a, native);
	ur_switch_vids_add(&a, vid);
	ur_switch_set_port(sw, port, &a, now_ns);
}

/* SWITCH-VLAN-01 */
Test(switch_, a_frame_stays_in_its_vlan)
{
	bed_plain();
	access_port(1, 10);
	access_port(2, 10);
	access_port(3, 20);
	trunk_port(4, 1, 10);
	give(1, plain(1, 0xffff, 64));
	cr_assert_str_eq(to(), "24");
	give(3, plain(3, 0xffff, 64));
	cr_assert_str_eq(to(), "");
	cr_assert_eq(dropped(3, 0, UR_SWITCH_DROP_NO_MEMBER), 1);
	cr_assert_eq(give(4, tagged(plain(4, 0xffff, 64), 20)), 0);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_VLAN), 1);
	give(4, tagged(plain(4, 0xffff, 64), 10));
	cr_assert_str_eq(to(), "12");
	cr_assert_eq(give(1, tagged(plain(1, 4, 64), 20)), 0);
	/* The same address may be known in two VLANs. */
	give(3, plain(1, 0xffff, 64));
	give(4, tagged(plain(4, 1, 64), 10));
	cr_assert_str_eq(to(), "1");
}

/* SWITCH-VLAN-02 */
Test(switch_, tags_are_put_on_and_taken_off)
{
	struct ur_switch_frame f;
	const uint8_t *out;
	uint32_t len;

	bed_plain();
	access_port(1, 10);
	access_port(2, 10);
	trunk_port(4, 1, 10);
	f = plain(1, 0xffff, 64);
	f.data[14] = 0x5a;
	give(1, f);
	cr_assert_eq(take(4, 1), 1);
	out = sent(0, &len);
	cr_assert_eq(len, 68);
	cr_assert_eq(ur_load32(out + 12), 0x8100000a);
	cr_assert_eq(ur_load16(out + 16), 0x88b5);
	cr_assert_eq(out[18], 0x5a);
	cr_assert_eq(take(2, 1), 1);
	cr_assert_eq(tx[0].head_len, 0);

	give(4, tagged(plain(4, 0xffff, 64), 0x600a));
	cr_assert_eq(take(1, 1), 1);
	out = sent(0, &len);
	cr_assert_eq(len, 64);
	cr_assert_eq(ur_load16(out + 12), 0x88b5);

	/* Priority without a VLAN: the priority stays, the VLAN is that of the port. */
	give(1, tagged(plain(1, 0xffff, 64), 0x6000));
	cr_assert_eq(take(4, 1), 1);
	out = sent(0, &len);
	cr_assert_eq(len, 68);
	cr_assert_eq(ur_load32(out + 12), 0x8100600a);
}

/* SWITCH-VLAN-02: without configuration of VLANs nothing is changed. */
Test(switch_, by_default_frames_are_not_changed)
{
	static const uint16_t tci[] = {0, 1, 10, 0x6000, 0xe001, 4094};

	bed_plain();
	for (unsigned i = 0; i < 6; i++) {
		give(1, tagged(plain(1, 0xffff, 64), tci[i]));
		cr_assert_eq(take(2, 1), 1);
		cr_assert_eq(tx[0].head_len, 0);
	}
	cr_assert_eq(give(1, tagged(plain(1, 0xffff, 64), 4095)), 0);
}

/* ---- forwarding by table ---- */

static struct ur_gid roce_address(bool v6, unsigned last)
{
	struct ur_gid g = ur_gid_from_ipv4(0x0a000000u | last);

	if (v6)
		g = (struct ur_gid){{0xfe, 0x80, [15] = (uint8_t)last}};
	return g;
}

Test(switch_, roce_goes_by_table_when_the_address_has_a_lid)
{
	struct ur_gid addr[2] = {roce_address(false, 2), roce_address(true, 2)};

	bed_plain();
	introduce();
	for (unsigned v6 = 0; v6 < 2; v6++) {
		give(1, roce(1, 2, v6, 0, 50000, 64));
		cr_assert_str_eq(to(), "2");
		cr_assert(ur_switch_set_route(sw, &addr[v6], 7, 0));
		cr_assert_eq(give(1, roce(1, 2, v6, 0, 50000, 64)), 0);
		cr_assert_eq(dropped(1, 0, UR_SWITCH_DROP_NO_ROUTE), v6 + 1);
		ur_switch_set_lft(sw, 7, 3);
		give(1, roce(1, 2, v6, 0, 50000, 64));
		cr_assert_str_eq(to(), "3");
		/* What is not RoCE is not affected. */
		give(1, plain(1, 2, 64));
		cr_assert_str_eq(to(), "2");
		cr_assert(ur_switch_set_route(sw, &addr[v6], 0, 0));
		give(1, roce(1, 2, v6, 0, 50000, 64));
		cr_assert_str_eq(to(), "2");
		ur_switch_set_lft(sw, 7, UR_SWITCH_NO_PORT);
	}
	cr_assert_eq(counters(1).routed, 2);
}

/* SWITCH-ECMP-01 */
Test(switch_, source_ports_spread_over_the_lids_of_an_address)
{
	struct ur_gid addr = roce_address(false, 2);
	unsigned of[BED_PORTS] = {0};
	uint8_t first[64];

	bed_plain();
	cr_assert(ur_switch_set_route(sw, &addr, 8, 2));
	for (uint16_t i = 0; i < 4; i++)
		ur_switch_set_lft(sw, 8 + i, (uint8_t)(2 + i % 3));
	for (unsigned round = 0; round < 2; round++)
		for (uint16_t s = 0; s < 64; s++) {
			const char *ports;

			give(1, roce(1, 2, false, 0, 0xc000 + s, 64));
			ports = to();
			cr_assert_eq(strlen(ports), 1);
			of[ports[0] - '0']++;
			if (round)
				cr_assert_eq(first[s], ports[0], "a flow has one path");
			first[s] = (uint8_t)ports[0];
		}
	for (unsigned p = 2; p < 5; p++)
		cr_assert_gt(of[p], 10);
	/* The flows of a port that goes down take the others. */
	ur_switch_set_link(sw, 2, false, now_ns);
	for (uint16_t s = 0; s < 64; s++)
		cr_assert_eq(give(1, roce(1, 2, false, 0, 0xc000 + s, 64)), 1);
	cr_assert_str_eq(to(), "34");
}

Test(switch_, routes_are_checked_and_bounded)
{
	struct ur_gid addr = roce_address(false, 1);

	bed_attr();
	attr.limits.routes = 100;
	bed_start();
	cr_assert_not(ur_switch_set_route(sw, &addr, 9, 1), "not a multiple of 2");
	cr_assert_not(ur_switch_set_route(sw, &addr, 256, 8));
	cr_assert_not(ur_switch_set_route(sw, &addr, UR_SWITCH_LIDS, 0));
	for (unsigned round = 0; round < 1000; round++) {
		for (unsigned i = 0; i < 100; i++) {
			addr = roce_address(false, round * 7 + i);
			cr_assert(ur_switch_set_route(sw, &addr, (uint16_t)(i + 1), 0));
		}
		addr = roce_address(true, 200);
		cr_assert_not(ur_switch_set_route(sw, &addr, 5, 0));
		for (unsigned i = 0; i < 100; i++) {
			addr = roce_address(false, round * 7 + i);
			cr_assert(ur_switch_set_route(sw, &addr, 0, 0));
		}
	}
}

/* ---- links ---- */

/* SWITCH-LINK-01 */
Test(switch_, a_port_that_goes_down_loses_its_queue_and_its_addresses)
{
	bed_plain();
	introduce();
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(give(1, plain(1, 2, 64)), 1);
	ur_switch_set_link(sw, 2, false, now_ns);
	ur_switch_validate(sw);
	cr_assert_eq(dropped(2, 0, UR_SWITCH_DROP_LINK_DOWN), 10);
	cr_assert_eq(take(2, 256), 0);
	cr_assert_eq(ur_switch_reap(sw, tx, 7), 7);
	cr_assert_eq(tx[0].in_port, 1);
	cr_assert_eq(ur_switch_reap(sw, tx, 7), 3);
	cr_assert_eq(ur_switch_reap(sw, tx, 7), 0);
	cr_assert_eq(give(1, plain(1, 2, 64)), 2);
	cr_assert_str_eq(to(), "34");
	cr_assert_eq(give(2, plain(2, 1, 64)), 0);
	ur_switch_set_link(sw, 2, true, now_ns);
	cr_assert_eq(give(1, plain(1, 2, 64)), 3);
	cr_assert_eq(counters(2).link_downs, 1);
}

/* ---- management ---- */

/* SWITCH-MGMT-01 */
Test(switch_, management_packets_go_to_the_agent_or_by_lid)
{
	bed_plain();
	cr_assert_eq(give(1, mad(0)), 1);
	cr_assert_str_eq(to(), "0");
	cr_assert_eq(give(1, mad(5)), 0);
	cr_assert_eq(dropped(1, 15, UR_SWITCH_DROP_NO_ROUTE), 1);
	ur_switch_set_lft(sw, 5, 0);
	ur_switch_set_lft(sw, 6, 3);
	give(1, mad(5));
	cr_assert_str_eq(to(), "0");
	give(1, mad(6));
	cr_assert_str_eq(to(), "3");
	/* The agent's own. */
	give(0, mad(6));
	cr_assert_str_eq(to(), "3");
	cr_assert(ur_switch_send_mgmt(sw, 2, &(struct ur_switch_frame){mad(0).data, NULL, 300},
				      now_ns));
	cr_assert_str_eq(to(), "2");
	/* Nothing else reaches the agent. */
	give(1, plain(1, 0xffff, 64));
	cr_assert_str_eq(to(), "234");
}

/* SWITCH-MGMT-01 */
Test(switch_, management_packets_of_a_port_are_limited)
{
	bed_attr();
	attr.limits.mgmt_frames = 4000;
	attr.vl15_bytes = 1 << 30;
	port_attr.mgmt_per_s = 1000;
	bed_start();
	for (unsigned i = 0; i < 2000; i++)
		give(1, mad(0));
	cr_assert_leq(dropped(1, 15, UR_SWITCH_DROP_MGMT), 2000 - 256);
	cr_assert_geq(dropped(1, 15, UR_SWITCH_DROP_MGMT), 2000 - 258);
	cr_assert_eq(give(2, mad(0)), 1, "another port's are not affected");
}

/* SWITCH-MGMT-01: what is not a MAD has no way to VL15, and none around the VLANs. */
Test(switch, only_a_mad_is_management, .init = bed_plain)
{
	struct ur_switch_frame f = mad(5);

	ur_switch_set_lft(sw, 5, 2);
	f.len += 4;
	give(1, f);
	cr_assert_eq(ur_switch_queued_bytes(sw, 2, UR_SWITCH_VL15), 0);
	f = mad(5);
	give(1, f);
	cr_assert_eq(ur_switch_queued_bytes(sw, 2, UR_SWITCH_VL15), f.len);
}
