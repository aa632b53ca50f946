/* SPDX-License-Identifier: BSD-3-Clause */
#include "vl_arbiter.h"

/* ---- IBA ---- */

/* VL-LIMIT-01 */
Test(vl, limit_0_is_one_packet)
{
	start(two(UR_VL_IBA, 0, 255, 1));
	expect(3, FULL, "01010101");
	expect(3, 64, "01010101");
	/* The limit is used up again when the low lane becomes ready. */
	expect(1, FULL, "0000");
	expect(3, FULL, "10");
}

/* VL-LIMIT-01 */
Test(vl, limit_1_is_4096_bytes_and_the_last_packet_may_pass_it)
{
	start(two(UR_VL_IBA, 1, 1, 255));
	expect(3, FULL, "001001001");
	start(two(UR_VL_IBA, 1, 1, 255));
	expect(3, 1500, "000100010001");
	start(two(UR_VL_IBA, 1, 1, 255));
	expect(3, 1024, "0000100001");
}

/* VL-LIMIT-01 */
Test(vl, limit_255_is_none_and_254_is_one)
{
	start(two(UR_VL_IBA, 255, 1, 255));
	run(3, FULL, 3000000);
	cr_assert_eq(sent[1], 0);
	expect(2, FULL, "1");
	start(two(UR_VL_IBA, 254, 1, 255));
	run(3, FULL, 508);
	cr_assert_eq(sent[1], 0);
	expect(3, FULL, "10");
}

/* VL-LIMIT-01 */
Test(vl, a_low_packet_resets_the_limit)
{
	start(two(UR_VL_IBA, 2, 64, 64));
	expect(3, FULL, "000");
	expect(2, FULL, "1");
	expect(3, FULL, "000010000");
	/* If it is used up while no low lane is ready, it starts again. */
	expect(1, FULL, "00");
	expect(3, FULL, "001");
}

/* VL-TURN-01 */
Test(vl, an_entry_keeps_the_turn_until_its_weight_is_used_up)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, 32);

	a.low_cnt = 4;
	a.low[1] = (struct ur_vl_entry){2, 33};
	a.low[2] = (struct ur_vl_entry){3, 0};
	a.low[3] = (struct ur_vl_entry){4, 96};
	start(a);
	expect(0x16, FULL, "122444122444");
	/* A lane that becomes idle in its turn loses the rest if another lane takes over, */
	expect(0x16, FULL, "1224");
	expect(0x06, FULL, "1");
	expect(0x16, FULL, "224441");
	/* and keeps it if none does. */
	expect(0x04, FULL, "2");
	expect(0x01, FULL, "000");
	expect(0x16, FULL, "2444");
}

/* VL-TURN-01 */
Test(vl, iba_shares_a_table_by_weight)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 4, 1, 1);
	static const uint64_t high[] = {32, 64, 160}, low[] = {255, 128, 32, 64, 32};

	a.high_cnt = 3;
	a.low_cnt = 5;
	for (uint8_t i = 0; i < 3; i++)
		a.high[i] = (struct ur_vl_entry){i, (uint8_t)high[i]};
	for (uint8_t i = 0; i < 5; i++)
		a.low[i] = (struct ur_vl_entry){(uint8_t)(10 + i % 4), (uint8_t)low[i]};
	start(a);
	run(ur_vl_served(&v), FULL, 2000000);
	expect_ratio(sent[0], sent[1], 32, 64);
	expect_ratio(sent[2], sent[1], 160, 64);
	/* VL 10 is listed twice: 256 and 32 with full packets. */
	expect_ratio(sent[10], sent[11], 288, 128);
	expect_ratio(sent[12], sent[11], 32, 128);
	expect_ratio(sent[13], sent[12], 64, 32);
	expect_ratio(sent[0] + sent[1] + sent[2], sent[10] + sent[11] + sent[12] + sent[13], 8, 1);
}

/* A naive arbiter, packet by packet and entry by entry, as IBA describes it. */
struct naive {
	struct ur_vl_attr a;
	unsigned at[2];
	int64_t left[2], limit_left;
	unsigned high;
};

static int64_t naive_limit(const struct naive *n)
{
	return n->a.high_limit ? n->a.high_limit * 4096 : 1;
}

static unsigned naive_pick(struct naive *n, uint16_t ready)
{
	const struct ur_vl_entry *table[2] = {n->a.low, n->a.high};
	unsigned cnt[2] = {n->a.low_cnt, n->a.high_cnt}, any[2] = {0}, *at, tried;

	for (unsigned t = 0; t < 2; t++)
		for (unsigned i = 0; i < cnt[t]; i++)
			any[t] |= table[t][i].weight && ready >> table[t][i].vl & 1;
	if (n->limit_left <= 0 && any[1] && !any[0])
		n->limit_left = naive_limit(n);
	n->high = n->a.mode == UR_VL_STRICT ? any[1] : any[1] && n->limit_left > 0;
	at = &n->at[n->high];
	for (tried = 0; tried <= 2 * UR_VL_ENTRIES; tried++) {
		const struct ur_vl_entry *e = &table[n->high][*at];

		if (n->left[n->high] > 0 && ready >> e->vl & 1)
			return e->vl;
		*at = (*at + 1) % cnt[n->high];
		n->left[n->high] = table[n->high][*at].weight * 64;
	}
	cr_assert(false, "no lane can send");
	return 0;
}

static void naive_charge(struct naive *n, uint32_t bytes)
{
	n->left[n->high] -= bytes;
	n->limit_left = n->high ? n->limit_left - bytes : naive_limit(n);
}

/* VL-TURN-01, VL-LIMIT-01 */
Test(vl, iba_and_strict_agree_with_a_naive_arbiter_packet_by_packet)
{
	seed = 1;
	for (unsigned k = 0; k < 4000; k++) {
		enum ur_vl_mode mode = k % 5 ? UR_VL_IBA : UR_VL_STRICT;
		struct ur_vl_attr a =
			random_attr(mode, k % 2 ? 6 : UR_VL_ENTRIES, k % 3 ? 255 : 40);
		struct naive n = {.a = a, .at = {a.low_cnt - 1u, a.high_cnt - 1u}};
		unsigned most = 1 + random_below(100); /* percent of lanes that are ready */

		n.limit_left = naive_limit(&n);
		start(a);
		for (unsigned i = 0; i < 500; i++) {
			uint16_t ready = 0;
			uint32_t bytes = 64 + random_below(4033);
			unsigned want;

			for (unsigned vl = 0; vl < UR_VL_CNT; vl++)
				ready |= (uint16_t)((random_below(100) < most) << vl);
			ready &= ur_vl_served(&v);
			if (!ready)
				continue;
			want = naive_pick(&n, ready);
			cr_assert_eq(send_one(ready, bytes), want, "config %u packet %u", k, i);
			naive_charge(&n, bytes);
		}
	}
}

Test(vl, strict_sends_low_lanes_only_when_no_high_one_is_ready)
{
	start(two(UR_VL_STRICT, 0, 1, 255));
	run(3, FULL, 3000000);
	cr_assert_eq(sent[1], 0);
	expect(2, FULL, "111");
	expect(3, FULL, "000");
}

/* ---- any mode ---- */

/* VL-WORK-01 */
Test(vl, a_high_lane_that_sleeps_costs_the_low_one_nothing)
{
	for (enum ur_vl_mode mode = UR_VL_IBA; mode <= UR_VL_STRICT; mode++) {
		start(two(mode, 1, 16, 4));
		run(2, FULL, 100000);
		cr_assert_eq(sent[1], UINT64_C(100000) * FULL);
		/* An occasional high packet is sent at once; all others are low. */
		for (unsigned i = 0; i < 1000; i++) {
			cr_assert_eq(send_one(3, FULL), 0, "mode %d, %u", (int)mode, i);
			expect(2, FULL, "111111111");
		}
	}
}

/* VL-WORK-01 */
Test(vl, a_lane_that_joins_a_lane_that_was_alone_waits_for_one_turn_at_most)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, 96);

	a.low_cnt = 2;
	a.low[1] = (struct ur_vl_entry){2, 64};
	start(a);
	expect(2, FULL, "1");
	expect(6, FULL, "1122111");
	expect(4, FULL, "2222222222");
	expect(6, FULL, "1112211122");
	run(2, FULL, 2000001); /* whole turns */
	expect(7, FULL, "0202010101");
	/* It owes nothing for that. */
	a.mode = UR_VL_MEASURED;
	a.low[0].weight = a.low[1].weight = 2;
	start(a);
	run(2, FULL, 100);
	expect(6, FULL, "22112211");
}

/* Packets without payload also use up a turn. */
Test(vl, a_packet_counts_at_least_64_bytes)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, 2);

	a.low_cnt = 2;
	a.low[1] = (struct ur_vl_entry){2, 3};
	start(a);
	expect(6, 0, "1122211222");
	expect(6, 1, "11222");
}

/* Longest wait, in packets, of a lane that is always ready. */
static uint64_t bound_of(const struct ur_vl_attr *a, uint32_t least_bytes)
{
	unsigned unit = a->mode == UR_VL_MEASURED ? 1u << a->mtu_shift : 64;
	uint64_t high = 0, low = 0, due = 1, most = 0;

	for (unsigned i = 0; i < a->high_cnt; i++) {
		high += a->high[i].weight * unit / least_bytes + 1;
		most = a->high[i].weight > most ? a->high[i].weight : most;
	}
	for (unsigned i = 0; i < a->low_cnt; i++) {
		low += a->low[i].weight * unit / least_bytes + 1;
		due += a->low[i].weight;
	}
	/* Packets of the other table between two of this one, and both twice for debts. */
	most = most * unit + (a->mode == UR_VL_MEASURED ? due : 1) * 4096 * (a->high_limit + 1u);
	return 4 * (high + low) * (most / least_bytes + 2);
}

/* VL-WORK-01, VL-FAIR-01, VL-AHEAD-02 */
Test(vl, every_ready_mask_lets_a_ready_lane_send_and_none_starves)
{
	seed = 11;
	for (unsigned k = 0; k < 120; k++) {
		enum ur_vl_mode mode = k % 2 ? UR_VL_IBA : UR_VL_MEASURED;
		struct ur_vl_attr a = random_attr(mode, 5, mode == UR_VL_IBA ? 60 : 6);
		unsigned lively = random_below(101), ahead = k % 3 ? 0 : random_below(4000);
		uint64_t bound, waited[UR_VL_CNT] = {0};
		uint16_t awake;

		a.mtu_shift = 8 + k % 4;
		bound = bound_of(&a, 512 < 1u << a.mtu_shift ? 512 : 1u << a.mtu_shift);
		start(a);
		awake = (uint16_t)random_below(1u << UR_VL_CNT) & ur_vl_served(&v);
		for (uint64_t i = 0; i < 3 * bound; i++) {
			uint16_t ready = awake;
			unsigned vl;

			for (uint32_t rest = ur_vl_served(&v); rest; rest &= rest - 1)
				if (random_below(100) < lively)
					ready |= (uint16_t)(rest & -rest);
			if (!ready)
				continue;
			vl = send_one(ready, 512 + random_below(1537));
			for (uint32_t rest = awake; rest; rest &= rest - 1) {
				unsigned w = (unsigned)__builtin_ctz(rest);

				waited[w] = w == vl ? 0 : waited[w] + 1;
				cr_assert_leq(waited[w], bound, "config %u, VL %u", k, w);
				if (ahead)
					ur_vl_charge_ahead(&v, w, ahead);
			}
		}
	}
}

/* VL-WORK-01 */
Test(vl, picks_without_a_packet_change_nothing)
{
	seed = 5;
	for (unsigned k = 0; k < 600; k++) {
		struct ur_vl_attr a = random_attr((enum ur_vl_mode)(k % 3), 8, 30);

		start(a);
		for (unsigned i = 0; i < 200; i++) {
			uint16_t ready = (uint16_t)random_below(1u << UR_VL_CNT) & ur_vl_served(&v);
			struct ur_vl once;
			unsigned vl;

			if (!ready)
				continue;
			if (random_below(4) == 0)
				ur_vl_charge_ahead(&v, (unsigned)__builtin_ctz(ready), 3000);
			vl = ur_vl_pick(&v, ready);
			once = v;
			cr_assert_eq(ur_vl_pick(&v, ready), vl);
			cr_assert_eq(ur_vl_pick(&v, ready), vl);
			cr_assert_eq(memcmp(&once, &v, sizeof(v)), 0, "config %u packet %u", k, i);
			ur_vl_charge(&v, vl, FULL);
		}
	}
}

Test(vl, a_lane_of_both_tables_has_its_share_of_both)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 32, 32);

	a.low_cnt = 2;
	a.low[1] = (struct ur_vl_entry){0, 32};
	start(a);
	expect(3, FULL, "0100010001");
	expect(1, FULL, "000");
	a.mode = UR_VL_MEASURED;
	a.high[0].weight = a.low[0].weight = a.low[1].weight = 2;
	start(a);
	expect(3, FULL, "0011000000110000");
}

/* ---- attributes ---- */

Test(vl, new_attributes_hold_from_the_next_pick)
{
	start(two(UR_VL_MEASURED, 1, 16, 4));
	expect(3, FULL, "000000000000000011");
	start(two(UR_VL_STRICT, 1, 16, 4));
	expect(3, FULL, "0000000000");
	start(two(UR_VL_MEASURED, 0, 2, 2));
	expect(3, FULL, "0011001");
	start(two(UR_VL_IBA, 1, 1, 1));
	expect(3, FULL, "001001");
	/* VL 1 in the high table now, VL 0 not served at all. */
	{
		struct ur_vl_attr a = two(UR_VL_IBA, 0, 1, 1);

		a.high[0].vl = 1;
		a.low[0] = (struct ur_vl_entry){3, 1};
		start(a);
	}
	cr_assert_eq(ur_vl_served(&v), 0x0a);
	cr_assert_eq(ur_vl_of_sl(&v, 0), -1);
	expect(0x0a, FULL, "1313");
}

/* VL-SL-01 */
Test(vl, by_default_every_service_level_is_served_and_all_lanes_are_equal)
{
	struct ur_vl_attr a;

	ur_vl_attr_default(&a);
	start(a);
	for (int sl = 0; sl < 15; sl++)
		cr_assert_eq(ur_vl_of_sl(&v, (unsigned)sl), sl);
	cr_assert_eq(ur_vl_of_sl(&v, 15), 7);
	cr_assert_eq(ur_vl_served(&v), 0x7fff);
	for (unsigned size = 256; size <= 4096; size *= 2) {
		start(a);
		run(0x7fff, size, 15 * 16 * 100);
		for (unsigned vl = 0; vl < UR_VL_CNT; vl++)
			cr_assert_eq(sent[vl], UINT64_C(1600) * size);
	}
}

/* VL-SL-01 */
Test(vl, service_levels_without_a_lane_that_has_weight_get_no_service)
{
	struct ur_vl_attr a = two(UR_VL_IBA, 0, 5, 6);

	a.low_cnt = 3;
	a.low[1] = (struct ur_vl_entry){2, 0};
	a.low[2] = (struct ur_vl_entry){14, 1};
	a.sl2vl[3] = 14;
	a.sl2vl[4] = 15;
	a.sl2vl[5] = 1;
	start(a);
	cr_assert_eq(ur_vl_of_sl(&v, 0), 0);
	cr_assert_eq(ur_vl_of_sl(&v, 1), 1);
	cr_assert_eq(ur_vl_of_sl(&v, 2), -1);
	cr_assert_eq(ur_vl_of_sl(&v, 3), 14);
	cr_assert_eq(ur_vl_of_sl(&v, 4), -1);
	cr_assert_eq(ur_vl_of_sl(&v, 5), 1);
	cr_assert_eq(ur_vl_of_sl(&v, 6), -1);
	cr_assert_eq(ur_vl_of_sl(&v, 15), -1);
	cr_assert_eq(ur_vl_served(&v), 0x4003);
}

Test(vl, a_single_lane_is_always_served)
{
	struct ur_vl_attr a = two(UR_VL_MEASURED, 0, 1, 0);

	start(a);
	run(1, 4096, 3000000);
	cr_assert_eq(sent[0], UINT64_C(3000000) * 4096);
}

static void expect_reason(struct ur_vl_attr a, const char *reason)
{
	const char *got = ur_vl_attr_check(&a);

	cr_assert_not_null(got, "%s", reason);
	cr_assert_str_eq(got, reason);
}

/* VL-ATTR-01 */
Test(vl, attributes_that_make_no_sense_are_refused_with_the_reason)
{
	struct ur_vl_attr good = two(UR_VL_IBA, 255, 255, 255), a;

	cr_assert_null(ur_vl_attr_check(&good));
	a = good;
	a.mode = (enum ur_vl_mode)3;
	expect_reason(a, "the mode of arbitration is unknown");
	a = good;
	a.mtu_shift = 7;
	expect_reason(a, "the path MTU is none of 256, 512, 1024, 2048 and 4096");
	a.mtu_shift = 13;
	expect_reason(a, "the path MTU is none of 256, 512, 1024, 2048 and 4096");
	a = good;
	a.high_cnt = 65;
	expect_reason(a, "the high table has more than 64 entries");
	a = good;
	a.low_cnt = 65;
	expect_reason(a, "the low table has more than 64 entries");
	a = good;
	a.high[0].vl = 15;
	expect_reason(a, "the high table names a VL that is not in 0 to 14");
	a = good;
	a.low[0] = (struct ur_vl_entry){255, 0};
	expect_reason(a, "the low table names a VL that is not in 0 to 14");
	a = good;
	a.high[0].weight = a.low[0].weight = 0;
	expect_reason(a, "no VL has a weight above 0");
	a.high_cnt = a.low_cnt = 0;
	expect_reason(a, "no VL has a weight above 0");
	a = good;
	a.sl2vl[9] = 16;
	expect_reason(a, "an SL is mapped to a VL that is not in 0 to 15");
	a = good;
	memset(a.sl2vl, 15, 16);
	expect_reason(a, "no SL is mapped to a VL that has a weight above 0");
	memset(a.sl2vl, 2, 16);
	expect_reason(a, "no SL is mapped to a VL that has a weight above 0");
	a.sl2vl[15] = 1;
	cr_assert_null(ur_vl_attr_check(&a));
}
