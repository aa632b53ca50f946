/* SPDX-License-Identifier: BSD-3-Clause */
#include "vl_arbiter.h"

/* ACKs, NAKs and CNPs are sent ahead of all lanes and charged to their own lane. */

/* Lane `vl` sends `bytes` ahead of all for each packet of its own; all are counted in `sent`. */
static void run_ahead(uint16_t ready, unsigned vl, uint32_t bytes, unsigned cnt)
{
	while (cnt--)
		if (send_one(ready, FULL) == vl) {
			ur_vl_charge_ahead(&v, vl, bytes);
			sent[vl] += bytes;
		}
}

/* VL-AHEAD-01 */
Test(vl_ahead, packets_sent_ahead_are_part_of_the_lanes_share)
{
	static const uint8_t weights[] = {1, 32, 64, 255};

	for (unsigned i = 0; i < 4; i++) {
		struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, weights[i]);

		a.low_cnt = 2;
		a.low[1] = (struct ur_vl_entry){2, weights[i]};
		start(a);
		run_ahead(6, 1, 256, 1000000);
		expect_ratio(sent[1], sent[2], 1, 1);
	}
	/* Also between the two tables. */
	for (unsigned vl = 0; vl < 2; vl++) {
		start(two(UR_VL_IBA, 1, 16, 4));
		run_ahead(3, vl, 512, 1000000);
		expect_ratio(sent[0], sent[1], 2, 1);
		start(two(UR_VL_MEASURED, 1, 16, 4));
		run_ahead(3, vl, 512, 1000000);
		expect_ratio(sent[0], sent[1], 4, 1);
		start(two(UR_VL_MEASURED, 16, 5, 96));
		run_ahead(3, vl, 64, 1000000);
		expect_ratio(sent[0], sent[1], 1535, 48);
	}
}

/* VL-AHEAD-01 */
Test(vl_ahead, debt_is_paid_in_whole_packets)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, 96);

	a.low_cnt = 2;
	a.low[1] = (struct ur_vl_entry){2, 32};
	start(a);
	ur_vl_charge_ahead(&v, 1, 2047);
	expect(6, FULL, "1112");
	/* Two more, for a packet counts 64 bytes at least: 2047 + 2 * 64. */
	ur_vl_charge_ahead(&v, 1, 0);
	ur_vl_charge_ahead(&v, 1, 0);
	expect(6, FULL, "1121112");
	ur_vl_charge_ahead(&v, 1, 3 * FULL);
	expect(6, FULL, "21112");
	/* After a turn that was used up by debt, the lane has a real turn. */
	ur_vl_charge_ahead(&v, 1, 6 * FULL);
	expect(6, FULL, "2111221112");
}

/* VL-AHEAD-02 */
Test(vl_ahead, debt_is_bounded_and_is_paid_off_some_time)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, 32);

	a.low_cnt = 2;
	a.low[1] = (struct ur_vl_entry){2, 32};
	start(a);
	for (unsigned i = 0; i < 100000; i++)
		ur_vl_charge_ahead(&v, 1, UINT32_MAX);
	run(6, FULL, 1000);
	/* 64 KiB are 32 packets. */
	cr_assert_eq(sent[2] - sent[1], 32 * FULL);
}

/* VL-AHEAD-02 */
Test(vl_ahead, a_lane_deep_in_debt_has_every_other_turn)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, 32);

	a.low_cnt = 2;
	a.low[1] = (struct ur_vl_entry){2, 32};
	start(a);
	run_ahead(6, 1, 1 << 16, 3);
	for (unsigned i = 0; i < 300; i++) {
		ur_vl_charge_ahead(&v, 1, 1 << 16);
		expect(6, FULL, i % 3 ? "2" : "1");
	}
	for (enum ur_vl_mode mode = UR_VL_IBA; mode <= UR_VL_STRICT; mode++) {
		uint64_t high;

		start(two(mode, 1, 2, 2));
		ur_vl_charge_ahead(&v, 0, 1 << 20);
		expect(1, FULL, "00000000");
		high = sent[0];
		for (unsigned i = 0; i < 3000; i++) {
			ur_vl_charge_ahead(&v, 0, 1 << 16);
			send_one(3, FULL);
		}
		cr_assert_geq(sent[0] - high, 1000 * FULL, "mode %d", (int)mode);
	}
}
