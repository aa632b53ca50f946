/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>

#include "vl_arbiter.h"

/* The law of the mode `measured`, see docs/design/virtual-lanes.md. */

/* A cycle of two saturated lanes: from a high packet that follows a low one to the next such packet. */
struct cycle {
	uint32_t high, low; /* packets */
};

static struct cycle cycle_of(struct ur_vl_attr a)
{
	struct cycle c = {0};
	unsigned vl, last = 0;

	start(a);
	for (unsigned begun = 0; begun < 3; last = vl) {
		vl = send_one(3, 1u << a.mtu_shift);
		begun += vl == 0 && last == 1;
		if (begun == 2)
			break;
		c.high += begun && vl == 0;
		c.low += begun && vl == 1;
	}
	return c;
}

struct row {
	uint8_t q, h, l;
	uint32_t measured[2], iba[2]; /* high : low */
};

/* docs/design/virtual-lanes.md prints the same. */
static const struct row rows[] = {
	{0, 2, 2, {1, 1}, {1, 1}},	{0, 3, 4, {3, 4}, {1, 1}},
	{1, 16, 4, {4, 1}, {2, 1}},	{1, 16, 25, {48, 25}, {2, 1}},
	{2, 3, 2, {3, 1}, {4, 1}},	{3, 16, 12, {16, 3}, {6, 1}},
	{5, 10, 90, {10, 1}, {10, 1}},	{6, 8, 40, {12, 1}, {12, 1}},
	{8, 25, 100, {16, 1}, {16, 1}}, {16, 5, 96, {1535, 48}, {32, 1}},
	{10, 10, 90, {20, 1}, {20, 1}},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* VL-LAW-01 */
Test(vl_law, measured_gives_the_rows_of_the_paper)
{
	for (unsigned i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		struct ur_vl_attr a = two(UR_VL_MEASURED, r->q, r->h, r->l);
		struct cycle c = cycle_of(a);

		cr_assert_eq(c.low, r->l);
		cr_assert_eq(c.high * r->measured[1], c.low * r->measured[0]);
		start(a);
		run(3, FULL, 1000000);
		expect_ratio(sent[0], sent[1], r->measured[0], r->measured[1]);
	}
}

/* VL-LIMIT-01 */
Test(vl_law, iba_gives_the_same_rows_by_the_limit_alone)
{
	for (unsigned i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];

		start(two(UR_VL_IBA, r->q, r->h, r->l));
		run(3, FULL, 1000000);
		expect_ratio(sent[0], sent[1], r->iba[0], r->iba[1]);
	}
}

/* VL-LAW-01 */
Test(vl_law, the_law_counts_the_limit_in_packets_of_the_path_mtu)
{
	static const struct {
		uint8_t mtu_shift, q, h, l;
		uint32_t high, low;
	} cases[] = {
		{12, 1, 16, 25, 16, 25}, {12, 3, 16, 12, 32, 12},
		{12, 0, 3, 4, 3, 4},	 {12, 16, 5, 96, 1535, 96},
		{10, 1, 16, 25, 96, 25}, {10, 3, 16, 12, 144, 12},
		{10, 0, 3, 4, 3, 4},	 {9, 1, 16, 25, 192, 25},
		{8, 2, 3, 2, 63, 2},	 {11, 255, 1, 255, 130050, 255},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ur_vl_attr a = two(UR_VL_MEASURED, cases[i].q, cases[i].h, cases[i].l);
		struct cycle c;

		a.mtu_shift = cases[i].mtu_shift;
		c = cycle_of(a);
		cr_assert_eq(c.high, cases[i].high, "case %u: %u", i, c.high);
		cr_assert_eq(c.low, cases[i].low, "case %u: %u", i, c.low);
	}
}

static unsigned gcd(unsigned a, unsigned b)
{
	return b ? gcd(b, a % b) : a;
}

/* true if a < b, as ratios of high to low */
static bool below(struct cycle a, struct cycle b)
{
	return (uint64_t)a.high * b.low < (uint64_t)b.high * a.low;
}

/* VL-LAW-01 */
Test(vl_law, the_ratio_is_a_sawtooth_of_the_low_weight)
{
	static const uint8_t qs[] = {1, 2, 4, 6, 8, 10, 14}, hs[] = {1, 3, 5, 8, 10, 16, 25, 128};

	for (unsigned i = 0; i < sizeof(qs) * sizeof(hs); i++) {
		unsigned q = qs[i / sizeof(hs)], h = hs[i % sizeof(hs)];
		unsigned lambda = h / gcd(h, 2 * q);
		struct cycle of[256];

		for (unsigned l = 1; l < 256; l++)
			of[l] = cycle_of(two(UR_VL_MEASURED, (uint8_t)q, (uint8_t)h, (uint8_t)l));
		for (unsigned l = lambda; l < 256; l += lambda)
			cr_assert_eq(of[l].high, 2 * q * of[l].low, "%u %u %u", q, h, l);
		for (unsigned l = 2; l < 256; l++)
			if (2 * q * l / h == 2 * q * (l - 1) / h)
				cr_assert(below(of[l], of[l - 1]), "%u %u %u", q, h, l);
		if (h <= q)
			continue;
		for (unsigned l = (h + 2 * q - 1) / (2 * q), end = (h + q - 1) / q - 1; l < 256;
		     l++)
			cr_assert(!below(of[l], of[end]), "%u %u %u", q, h, l);
	}
}

static unsigned next_with_weight(const struct ur_vl_entry *entry, unsigned cnt, unsigned at)
{
	do
		at = (at + 1) % cnt;
	while (!entry[at].weight);
	return at;
}

/* Sends the whole turn of an entry. */
static void expect_turn(const struct ur_vl_entry *e, uint16_t ready)
{
	for (unsigned i = 0; i < e->weight; i++)
		cr_assert_eq(send_one(ready, FULL), e->vl, "seed %u", seed);
}

/* VL-LAW-01 */
Test(vl_law, measured_sends_whole_turns_in_the_order_of_the_tables)
{
	seed = 7;
	for (unsigned k = 0; k < 1000; k++) {
		struct ur_vl_attr a = random_attr(UR_VL_MEASURED, k % 40 ? 6 : UR_VL_ENTRIES, 20);
		unsigned hi = a.high_cnt - 1u, lo = a.low_cnt - 1u;

		start(a);
		hi = next_with_weight(a.high, a.high_cnt, hi);
		for (unsigned due = 0; due < 20; due++) {
			unsigned used = 0, may;

			lo = next_with_weight(a.low, a.low_cnt, lo);
			may = (a.high_limit ? 2u * a.high_limit : 1) * a.low[lo].weight;
			do {
				expect_turn(&a.high[hi], ur_vl_served(&v));
				used += a.high[hi].weight;
				hi = next_with_weight(a.high, a.high_cnt, hi);
			} while (used + a.high[hi].weight <= may);
			expect_turn(&a.low[lo], ur_vl_served(&v));
		}
	}
}

/* VL-LAW-01 */
Test(vl_law, measured_shares_bytes_exactly_also_with_packets_of_all_sizes)
{
	seed = 3;
	start(two(UR_VL_MEASURED, 3, 16, 12));
	for (unsigned i = 0; i < 2000000; i++)
		send_one(3, 64 + random_below(FULL - 63));
	expect_ratio(sent[0], sent[1], 16, 3);
	/* One lane has full packets, the other a bit more than half of that. */
	start(two(UR_VL_MEASURED, 0, 1, 1));
	for (unsigned i = 0; i < 1000000; i++) {
		unsigned vl = ur_vl_pick(&v, 3);
		uint32_t bytes = vl ? 1100 : FULL;

		ur_vl_charge(&v, vl, bytes);
		sent[vl] += bytes;
	}
	expect_ratio(sent[0], sent[1], 1, 1);
}

/* VL-WORK-01 */
Test(vl_law, measured_low_lane_alone_yields_to_the_first_high_packet_and_continues)
{
	start(two(UR_VL_MEASURED, 1, 4, 3));
	expect(2, FULL, "1111");
	expect(3, FULL, "0");
	expect(2, FULL, "1");
	/* The rest of the high turn, then what the due low lane has left of its second one. */
	expect(3, FULL, "0001");
	expect(3, FULL, "00001110000111");
}

/* VL-WORK-01 */
Test(vl_law, measured_low_lane_that_empties_gets_the_rest_after_one_high_turn)
{
	start(two(UR_VL_MEASURED, 2, 3, 4));
	expect(3, FULL,
	       "000000000000000"
	       "11");
	expect(1, FULL, "0");
	expect(3, FULL, "0011000");
	/* The lane is ready again after a long time. */
	start(two(UR_VL_MEASURED, 2, 3, 4));
	expect(1, FULL, "0000000000000000000");
	expect(3, FULL,
	       "001111000000000000000"
	       "1111");
}

/* VL-LAW-01, VL-FAIR-01 */
Test(vl_law, measured_low_lanes_that_flicker_do_not_hand_the_link_to_each_other)
{
	struct ur_vl_attr a = two(UR_VL_MEASURED, 0, 2, 4);

	a.low_cnt = 2;
	a.low[1] = (struct ur_vl_entry){2, 4};
	start(a);
	expect(7, FULL, "00001");
	expect(5, FULL, "0000");
	expect(5, FULL, "2");
	expect(3, FULL, "0000");
	expect(3, FULL, "1");
	/* A lane that was idle in its turn has lost it to the other, even if it is ready again. */
	start(a);
	expect(7, FULL, "00001");
	expect(5, FULL, "0");
	expect(7, FULL, "0002222");
	expect(7, FULL, "00001111");
}
