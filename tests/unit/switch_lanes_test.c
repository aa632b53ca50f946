/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_bed.h"

#include "manager/qos.h"

/* Lanes, bounds, rates and marks of a switch's ports. */
static unsigned lane_of(struct ur_switch_frame f)
{
	cr_assert_eq(give(1, f), 1);
	cr_assert_eq(take(2, 256), 1);
	return tx[0].vl;
}

/* SWITCH-LANE-01 */
Test(switch_lanes, lane_by_dscp_then_by_priority)
{
	bed_plain();
	introduce();
	for (unsigned sl = 0; sl < 16; sl++) {
		uint8_t dscp = attr.sl_dscp[sl];
		unsigned vl = port_attr.vl.sl2vl[sl];

		cr_assert_eq(lane_of(roce(1, 2, sl & 1, (uint8_t)(dscp << 2), 50000, 64)), vl);
		/* An IP header counts more than a tag. */
		cr_assert_eq(
			lane_of(tagged(roce(1, 2, false, (uint8_t)(dscp << 2), 50000, 64), 0x2000)),
			vl);
	}
	for (unsigned pcp = 0; pcp < 8; pcp++)
		cr_assert_eq(lane_of(tagged(plain(1, 2, 64), (uint16_t)(pcp << 13))), pcp);
	cr_assert_eq(lane_of(plain(1, 2, 64)), 0);
	/* A DSCP of no service level belongs to the class of its first three bits. */
	cr_assert_eq(lane_of(roce(1, 2, false, 46 << 2, 50000, 64)), 5);
}

/* SWITCH-LANE-01 */
Test(switch_lanes, without_a_lane_there_is_no_service)
{
	bed_attr();
	port_attr.vl.sl2vl[3] = 15;
	bed_start();
	introduce();
	cr_assert_eq(give(1, roce(1, 2, false, 24 << 2, 50000, 64)), 0);
	cr_assert_eq(dropped(2, 0, UR_SWITCH_DROP_NO_SERVICE), 1);
	/* A lane that loses its service loses what waits in it. */
	cr_assert_eq(give(1, roce(1, 2, false, 32 << 2, 50000, 64)), 1);
	port_attr.vl.low[4].weight = 0;
	ur_switch_set_port(sw, 2, &port_attr, now_ns);
	ur_switch_validate(sw);
	cr_assert_eq(dropped(2, 4, UR_SWITCH_DROP_NO_SERVICE), 1);
	cr_assert_eq(ur_switch_reap(sw, tx, 256), 1);
	cr_assert_eq(take(2, 256), 0);
}

/* SWITCH-VL15-01 */
Test(switch_lanes, vl15_goes_first_and_lanes_share_by_their_tables)
{
	unsigned of[16] = {0};

	bed_attr();
	port_attr.vl.mode = UR_VL_MEASURED;
	port_attr.vl.mtu_shift = 10;
	port_attr.vl.high_cnt = 1;
	port_attr.vl.high[0] = (struct ur_vl_entry){1, 3};
	port_attr.vl.low_cnt = 1;
	port_attr.vl.low[0] = (struct ur_vl_entry){2, 1};
	for (unsigned sl = 0; sl < 16; sl++)
		port_attr.vl.sl2vl[sl] = sl == 1 ? 1 : 2;
	bed_start();
	introduce();
	ur_switch_set_lft(sw, 9, 2);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_eq(give(1, roce(1, 2, false, 8 << 2, 50000, 1024 - 62)), 1);
		cr_assert_eq(give(3, roce(3, 2, false, 16 << 2, 50000, 1024 - 62)), 1);
	}
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(give(4, mad(9)), 1);
	cr_assert_eq(take(2, 5 + 40), 45);
	for (unsigned i = 0; i < 45; i++) {
		cr_assert(i >= 5 || tx[i].vl == 15);
		of[tx[i].vl]++;
	}
	cr_assert_eq(of[1], 30);
	cr_assert_eq(of[2], 10);
}

/* SWITCH-VL15-02: which ports have management to send, and that alone. */
Test(switch_lanes, management_is_sent_without_the_data_behind_it)
{
	bed_plain();
	introduce();
	ur_switch_set_lft(sw, 9, 2);
	cr_assert_eq(ur_switch_mgmt_ports(sw), 0);
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(give(1, plain(1, 2, 1000)), 1);
	cr_assert_eq(ur_switch_mgmt_ports(sw), 0, "data is not urgent");
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(give(4, mad(9)), 1);
	cr_assert_eq(ur_switch_mgmt_ports(sw), 1u << 2);
	cr_assert_eq(ur_switch_output_mgmt(sw, 2, tx, 2, now_ns), 2);
	cr_assert(tx[0].vl == UR_SWITCH_VL15 && tx[1].vl == UR_SWITCH_VL15);
	cr_assert_eq(ur_switch_mgmt_ports(sw), 1u << 2, "one is left");
	cr_assert_eq(ur_switch_output_mgmt(sw, 2, tx, 64, now_ns), 1);
	cr_assert_eq(tx[0].vl, UR_SWITCH_VL15);
	cr_assert_eq(ur_switch_mgmt_ports(sw), 0);
	cr_assert_eq(ur_switch_output_mgmt(sw, 2, tx, 64, now_ns), 0, "ten frames of data wait");
	cr_assert_eq(take(2, 256), 10);
	/* What the link drops is not urgent any more. */
	cr_assert_eq(give(4, mad(9)), 1);
	ur_switch_set_link(sw, 2, false, now_ns);
	cr_assert_eq(ur_switch_mgmt_ports(sw), 0);
	cr_assert_eq(ur_switch_reap(sw, tx, 256), 1);
	ur_switch_validate(sw);
}

/* MGR-QOS-01: what a manager has solved, on a port whose lanes are all busy. */
static void share_port(enum ur_vl_mode mode)
{
	struct ur_qos_task task = {.mode = mode,
				   .mtu_shift = 10,
				   .tolerance = UR_QOS_ALL / 200,
				   .cnt = 3,
				   .target = {{.sl = 1, .share = UR_QOS_ALL * 62 / 100},
					      {.sl = 2, .share = UR_QOS_ALL * 27 / 100},
					      {.sl = 3, .share = UR_QOS_ALL * 11 / 100}}};
	unsigned of[3] = {0}, sum = 0;
	struct ur_qos_solution s;

	cr_assert(ur_qos_solve(&task, &s));
	bed_attr();
	port_attr.vl = s.vl;
	bed_start();
	give(2, plain(2, 0xffff, 64));
	ur_switch_reap(sw, tx, 256);
	for (unsigned round = 0; round < 700; round++) {
		for (unsigned vl = 0; vl < 3; vl++)
			while (ur_switch_queued_bytes(sw, 2, (uint8_t)vl) < 12 * 1024)
				cr_assert_eq(
					give(vl == 1 ? 3 : 1,
					     roce(vl == 1 ? 3 : 1, 2, false,
						  (uint8_t)((8 * vl + 8) << 2), 50000, 1024 - 58)),
					1);
		cr_assert_eq(take(2, 6), 6);
		for (unsigned i = 0; i < 6; i++)
			of[tx[i].vl]++;
		sum += 6;
	}
	for (unsigned i = 0; i < 3; i++) {
		double share = 100.0 * of[i] / sum,
		       want = task.target[i].share * 100.0 / UR_QOS_ALL;

		cr_assert(share > want - 1 && share < want + 1, "lane %u: %.2f %%, not %.2f", i,
			  share, want);
	}
}

/* REQ: MGR-QOS-01 */
Test(switch_lanes, a_port_shares_as_a_manager_has_solved)
{
	share_port(UR_VL_IBA);
	share_port(UR_VL_MEASURED);
}

/* SWITCH-BOUND-01 */
Test(switch_lanes, queues_are_bounded_by_port_and_lane)
{
	bed_attr();
	port_attr.lane_bytes = 10000;
	attr.vl15_bytes = 3000;
	bed_start();
	introduce();
	ur_switch_set_lft(sw, 9, 2);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(give(1, plain(1, 2, 1000)), i < 10);
		cr_assert_eq(give(1, tagged(plain(1, 2, 996), 0x2000)), i < 10);
		cr_assert_eq(give(1, plain(1, 3, 1000)), i < 10);
		give(1, mad(9));
	}
	cr_assert_eq(ur_switch_queued_bytes(sw, 2, 0), 10000);
	cr_assert_eq(dropped(2, 0, UR_SWITCH_DROP_QUEUE_FULL), 10);
	cr_assert_eq(dropped(2, 1, UR_SWITCH_DROP_QUEUE_FULL), 10);
	/* SWITCH-BOUND-02: a sender takes half of what VL15 has, the next one half of the rest. */
	cr_assert(ur_switch_queued_bytes(sw, 2, 15) > 1500 - 400 &&
		  ur_switch_queued_bytes(sw, 2, 15) <= 1500);
	cr_assert_gt(dropped(2, 15, UR_SWITCH_DROP_QUEUE_FULL), 5);
	for (unsigned i = 0; i < 10; i++)
		give(3, mad(9));
	cr_assert(ur_switch_queued_bytes(sw, 2, 15) > 1500 &&
		  ur_switch_queued_bytes(sw, 2, 15) <= 3000);
}

/* SWITCH-BOUND-01 */
Test(switch_lanes, one_port_cannot_take_all_buffers)
{
	bed_attr();
	attr.limits.frames = 100;
	port_attr.lane_bytes = 1 << 20;
	bed_start();
	introduce();
	for (unsigned i = 0; i < 200; i++)
		give(1, plain(1, 2, 64));
	cr_assert_eq(dropped(2, 0, UR_SWITCH_DROP_QUEUE_FULL), 150, "half for a lane");
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(give(1, plain(1, 4, 64)), 1);
	for (unsigned i = 0; i < 200; i++)
		give(1, plain(1, 3, 64));
	cr_assert_eq(dropped(3, 0, UR_SWITCH_DROP_NO_BUFFER), 185, "half of what is left");
	cr_assert_eq(give(4, plain(4, 3, 64)), 1, "another port has buffers");
	ur_switch_set_lft(sw, 9, 2);
	cr_assert_eq(give(1, mad(9)), 1, "management has buffers of its own");
	take(2, 256);
	cr_assert_eq(give(1, plain(1, 2, 64)), 1);
}

/* SWITCH-BOUND-01 */
Test(switch_lanes, a_port_that_takes_nothing_holds_a_share_of_management_only)
{
	struct ur_switch_frame f;
	unsigned queued = 0;

	bed_attr();
	port_attr.mgmt_per_s = 0;
	bed_start();
	ur_switch_set_lft(sw, 9, 2);
	ur_switch_set_lft(sw, 8, 3);
	for (unsigned i = 0; i < 1000; i++) {
		f = mad(0);
		queued += ur_switch_send_mgmt(sw, 2, &f, now_ns);
		give(1, mad(9));
	}
	ur_switch_validate(sw);
	cr_assert_lt(queued, 1000);
	for (uint8_t p = 1; p < BED_PORTS; p++) {
		f = mad(0);
		if (p != 2)
			cr_assert(ur_switch_send_mgmt(sw, p, &f, now_ns), "to port %u", p);
	}
	cr_assert_eq(give(1, mad(8)), 1, "of port 1 to port 3");
}

/* SWITCH-RATE-01 */
Test(switch_lanes, a_port_sends_at_its_rate)
{
	uint64_t bytes = 0, start, wake;

	bed_attr();
	attr.limits.frames = 2048;
	port_attr.lane_bytes = 1 << 20;
	bed_start();
	introduce();
	port_attr.rate_gbps = 1;
	ur_switch_set_port(sw, 2, &port_attr, now_ns);
	now_ns += 100000000;
	start = now_ns;
	for (unsigned i = 0; i < 500; i++)
		cr_assert_eq(give(1, plain(1, 2, 1226)), 1);
	while (ur_switch_queued(sw)) {
		unsigned n = take(2, 3);

		bytes += n * UINT64_C(1250); /* with preamble, FCS and gap */
		wake = ur_switch_next_deadline(sw, UINT64_MAX, now_ns);
		if (wake == UINT64_MAX)
			break;
		cr_assert(n <= 2 && wake > now_ns, "two frames at the port, no more");
		now_ns = wake;
	}
	cr_assert_eq(bytes, 500 * 1250);
	/* All but the last two have left. */
	cr_assert_eq(now_ns - start, 498 * 10000);
	cr_assert_geq(counters(2).wait_ns, 490 * 10000);
}

/* SWITCH-AHEAD-01 */
Test(switch_lanes, vl15_is_behind_16_kib_at_most_when_a_port_catches_up)
{
	uint32_t ahead = 0;

	bed_attr();
	attr.limits.frames = 2048;
	port_attr.lane_bytes = 1 << 20;
	bed_start();
	introduce();
	port_attr.rate_gbps = 25;
	ur_switch_set_port(sw, 2, &port_attr, now_ns);
	for (unsigned i = 0; i < 500; i++)
		cr_assert_eq(give(1, plain(1, 2, 1226)), 1);
	take(2, 2);
	now_ns += 3000000; /* another process had the CPU */
	for (unsigned n = take(2, 64); n; n--)
		ahead += tx[n - 1].frame.len;
	cr_expect(ahead > 14000 && ahead < UR_SWITCH_AHEAD_BYTES + 1226, "%u bytes", ahead);
	ur_switch_set_lft(sw, 7, 2);
	cr_assert_eq(give(1, mad(7)), 1);
	cr_assert(take(2, 64) > 2 && tx[0].vl == UR_SWITCH_VL15);
	/* Nothing is lost by it: the rate is reached. */
	while (take(2, 64))
		;
	cr_expect_eq(ur_switch_queued(sw), 0);
}

/* SWITCH-BOUND-02: three ports that flood leave the agent a place. */
Test(switch_lanes, senders_leave_bytes_of_vl15_to_others)
{
	struct ur_switch_frame f;

	bed_attr();
	attr.vl15_bytes = 16 << 10;
	port_attr.mgmt_per_s = 0;
	bed_start();
	introduce();
	ur_switch_set_lft(sw, 7, 2);
	for (uint8_t p = 1; p <= 4; p++)
		for (unsigned i = 0; p != 2 && i < 100; i++)
			give(p, mad(7));
	f = mad(0);
	cr_expect(ur_switch_send_mgmt(sw, 2, &f, now_ns), "%u bytes are queued",
		  ur_switch_queued_bytes(sw, 2, UR_SWITCH_VL15));
}

/* A port whose device takes nothing is not worth being awake for. */
Test(switch_lanes, only_ports_that_can_send_have_a_deadline)
{
	bed_attr();
	bed_start();
	introduce();
	cr_assert_eq(give(1, plain(1, 2, 100)), 1);
	cr_expect_eq(ur_switch_next_deadline(sw, UINT64_MAX, now_ns), now_ns);
	cr_expect_eq(ur_switch_next_deadline(sw, ~UINT64_C(4), now_ns), UINT64_MAX);
}

/* SWITCH-ECN-01 */
Test(switch_lanes, marks_by_the_length_of_the_queue)
{
	unsigned below = 0, between = 0, above = 0;

	bed_attr();
	port_attr.ecn_min_bytes = 100000;
	port_attr.ecn_max_bytes = 200000;
	port_attr.ecn_chance = UINT32_MAX / 10;
	port_attr.lane_bytes = 1 << 20;
	attr.limits.frames = 10000;
	bed_start();
	introduce();
	for (unsigned i = 0; i < 3000; i++) {
		uint32_t queue = ur_switch_queued_bytes(sw, 2, 0);
		uint64_t before = counters(2).ce_marked;
		unsigned marked;

		cr_assert_eq(give(1, roce(1, 2, i & 1, 2, 50000, 40)), 1);
		marked = (unsigned)(counters(2).ce_marked - before);
		if (queue < 100000)
			below += marked;
		else if (queue < 200000)
			between += marked;
		else
			above += !marked;
	}
	cr_assert_eq(below, 0);
	cr_assert_eq(above, 0);
	/* About 1000 frames; the mean chance is 5 %. */
	cr_assert(between > 20 && between < 100, "%u", between);
	for (unsigned n; (n = take(2, 256)) > 0;)
		for (unsigned i = 0; i < n; i++) {
			struct ur_packet p;
			uint32_t len;
			const uint8_t *out = sent(i, &len);

			/* Checksum and ICRC are right, marked or not. */
			cr_assert_eq(ur_packet_decode(out, len, &p), UR_DROP_NONE);
			cr_assert(ur_icrc_ok(out, &p));
			cr_assert_eq(p.ip.tos & 3, tx[i].head_len ? 3 : 2);
		}
}

/* SWITCH-ECN-01 */
Test(switch_lanes, only_what_can_be_marked_is)
{
	static const uint8_t ecn[] = {0, 1, 2, 3};

	bed_attr();
	port_attr.ecn_min_bytes = port_attr.ecn_max_bytes = 0;
	bed_start();
	introduce();
	for (unsigned i = 0; i < 8; i++) {
		uint8_t tos = (uint8_t)(40 << 2 | ecn[i / 2]);
		uint32_t len;
		const uint8_t *out;

		give(1, tagged(roce(1, 2, i & 1, tos, 50000, 64), 5));
		cr_assert_eq(take(2, 1), 1);
		out = sent(0, &len);
		cr_assert_eq(i & 1 ? ur_load16(out + 18) >> 4 & 0xff : out[19],
			     (tos & 3) % 3 ? tos | 3 : tos);
	}
	give(1, plain(1, 2, 64));
	cr_assert_eq(take(2, 1), 1);
	cr_assert_eq(counters(2).ce_marked, 4);
}

/* SWITCH-ECN-01: every ECN-capable IPv4 header keeps a right checksum. */
Test(switch_lanes, checksum_after_a_mark)
{
	bed_attr();
	port_attr.ecn_min_bytes = port_attr.ecn_max_bytes = 0;
	bed_start();
	introduce();
	for (unsigned i = 0; i < 65536; i++) {
		struct ur_switch_frame f = roce(1, 2, false, 1 + (i & 1), 50000, 4);
		uint32_t sum = 0, len;
		const uint8_t *out;

		ur_store16(f.data + 18, (uint16_t)i); /* identification */
		frame_fix_ipv4_csum(f.data + 14);
		cr_assert_eq(ur_switch_input(sw, 1, &f, now_ns), 1);
		cr_assert_eq(ur_switch_output(sw, 2, tx, 1, now_ns), 1);
		out = sent(0, &len);
		for (unsigned b = 0; b < 20; b += 2)
			sum += ur_load16(out + 14 + b);
		sum = (sum & 0xffff) + (sum >> 16);
		cr_assert_eq((sum & 0xffff) + (sum >> 16), 0xffff);
	}
}

static uint64_t sent_by(uint8_t port)
{
	struct ur_switch_counters c;

	ur_switch_counters(sw, port, &c);
	return c.tx_packets;
}

/* SWITCH-BOUND-02 */
Test(switch_lanes, receivers_that_take_nothing_leave_some_for_others)
{
	uint64_t before;

	bed_attr();
	port_attr.mgmt_per_s = 0;
	bed_start();
	introduce();
	ur_switch_set_lft(sw, 7, 2);
	ur_switch_set_lft(sw, 8, 3);
	ur_switch_set_lft(sw, 9, 4);
	for (unsigned i = 0; i < 2000; i++) {
		give(1, plain(1, 2, 64));
		give(1, plain(1, 3, 64));
		give(1, mad(7));
		give(1, mad(8));
	}
	before = sent_by(4);
	for (unsigned i = 0; i < 500; i++) {
		cr_assert_eq(give(1, plain(1, 4, 64)), 1, "frame %u", i);
		cr_assert_eq(give(1, mad(9)), 1, "management packet %u", i);
		cr_assert_eq(take(4, 8), 2u);
	}
	cr_assert_eq(sent_by(4), before + 1000);
}
