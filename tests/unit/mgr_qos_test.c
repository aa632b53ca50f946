/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "manager/qos.h"
#include "vl/vl.h"

/* Tables for targets: checked by the arbiter, and against all smaller ones. */

#define MTU   4096u
#define BPS   UINT64_C(10000000000)
#define PART  (UR_QOS_ALL / 100) /* of a share */
#define NS(b) ((uint64_t)(b)*8 * 1000000000 / BPS)

static uint64_t rng = 88172645463325252u;

static unsigned random_below(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)(rng >> 33) % n;
}

static struct ur_qos_task random_task(enum ur_vl_mode mode)
{
	struct ur_qos_task t = {.mode = mode,
				.mtu_shift = (uint8_t)(8 + random_below(5)),
				.bps = BPS,
				.tolerance = PART,
				.cnt = (uint8_t)(1 + random_below(6))};
	uint32_t left = UR_QOS_ALL;

	for (unsigned i = 0; i < t.cnt; i++) {
		struct ur_qos_target *target = &t.target[i];

		target->sl = (uint8_t)((i * 5 + 3) % 16);
		target->share =
			i + 1 < t.cnt ? 1000 + random_below(2 * left / (t.cnt - i) - 2000) : left;
		if (i + 1 == t.cnt && random_below(2))
			target->share = 1 + random_below(left);
		left -= target->share;
		if (random_below(3) == 0)
			target->bound_ns = NS((4 + random_below(60)) << t.mtu_shift);
	}
	return t;
}

static uint32_t off(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

/* The longest wait of a lane that is idle, gets a packet at some moment, and is idle again when it was sent. */
static uint64_t wait_of_one(const struct ur_vl_attr *vl, unsigned lane, uint16_t others)
{
	uint32_t mtu = 1u << vl->mtu_shift;
	uint64_t worst = 0;
	struct ur_vl v;

	ur_vl_init(&v, vl);
	for (int i = 0; i < 2000; i++) {
		uint64_t waited = 0;
		unsigned picked;

		for (unsigned idle = random_below(40); others && idle; idle--)
			ur_vl_charge(&v, ur_vl_pick(&v, others), mtu);
		while ((picked = ur_vl_pick(&v, (uint16_t)(others | 1u << lane))) != lane) {
			ur_vl_charge(&v, picked, mtu);
			waited += mtu;
		}
		ur_vl_charge(&v, lane, mtu);
		worst = waited > worst ? waited : worst;
	}
	return worst;
}

/* What the arbiter does with a solution meets the targets, and is what the solution says. */
static void check_solution(const struct ur_qos_task *t, const struct ur_qos_solution *s)
{
	uint64_t bytes[UR_VL_CNT], gap[UR_VL_CNT], all = 0, mtu = UINT64_C(1) << t->mtu_shift;
	struct ur_vl_attr vl = s->vl;

	cr_assert(!ur_vl_attr_check(&vl), "%s", ur_vl_attr_check(&vl));
	ur_qos_run(&vl, 100000, bytes, gap);
	for (unsigned i = 0; i < s->lanes; i++)
		all += bytes[i];
	cr_assert(all == 100000 * mtu);
	for (unsigned i = 0; i < t->cnt; i++) {
		const struct ur_qos_target *target = &t->target[i];
		uint32_t share = (uint32_t)(bytes[i] * UR_QOS_ALL / all);

		cr_assert(vl.sl2vl[target->sl] == i);
		cr_assert(off(share, target->share) <= t->tolerance + 1500, "%u of %u, target %u",
			  i, share, target->share);
		cr_assert(off(share, s->got[i].share) < 1500);
		if (!target->bound_ns)
			continue;
		cr_assert(NS(gap[i] + mtu) <= target->bound_ns + 1);
		cr_assert(s->got[i].wait_ns <= target->bound_ns + 1);
		cr_assert(NS(wait_of_one(&vl, i, (uint16_t)(((1u << s->lanes) - 1) & ~(1u << i))) +
			     mtu) <= target->bound_ns + 1);
	}
}

/* REQ: MGR-QOS-01 */
Test(mgr_qos, a_thousand_targets_are_met_as_the_arbiter_says_or_refused)
{
	unsigned solved = 0, high = 0;

	for (int i = 0; i < 1000; i++) {
		struct ur_qos_task t = random_task(i & 1 ? UR_VL_MEASURED : UR_VL_IBA);
		struct ur_qos_solution s;

		cr_assert(!ur_qos_check(&t), "%s", ur_qos_check(&t));
		if (!ur_qos_solve(&t, &s))
			continue;
		solved++;
		high += s.vl.high_cnt > 0;
		check_solution(&t, &s);
	}
	cr_assert(solved > 500, "%u", solved);
	cr_assert(high > 100, "%u", high);
}

/* All divisions of `total` packets among lanes: true if one is within the tolerance. */
static bool exists(const struct ur_qos_task *t, unsigned lane, unsigned left, unsigned total)
{
	if (lane == t->cnt)
		return !left;
	for (unsigned n = 1; n <= left; n++)
		if (off((uint32_t)((uint64_t)n * UR_QOS_ALL / total), t->target[lane].share) <=
			    t->tolerance &&
		    exists(t, lane + 1, left - n, total))
			return true;
	return false;
}

/* REQ: MGR-QOS-01 */
Test(mgr_qos, no_smaller_table_has_the_shares)
{
	for (int i = 0; i < 300; i++) {
		struct ur_qos_task t = {.mode = UR_VL_IBA, .mtu_shift = 12, .cnt = 3};
		struct ur_qos_solution s;
		uint32_t a = 10000 + random_below(900000);

		t.tolerance = 2 * PART;
		t.target[0] = (struct ur_qos_target){.sl = 0, .share = a};
		t.target[1] =
			(struct ur_qos_target){.sl = 1, .share = 5000 + random_below(980000 - a)};
		t.target[2] = (struct ur_qos_target){.sl = 2,
						     .share = UR_QOS_ALL - a - t.target[1].share};
		if (!ur_qos_solve(&t, &s))
			continue;
		cr_assert(!s.vl.high_cnt);
		check_solution(&t, &s);
		for (unsigned total = 3; total < s.packets[0]; total++)
			cr_assert(!exists(&t, 0, total, total), "%u packets, not %u", total,
				  s.packets[0]);
	}
}

/* A low table of single packets, as a sequence: what gaps it has. */
static bool keeps(const struct ur_qos_task *t, const uint8_t *lane, unsigned total)
{
	for (unsigned i = 0; i < t->cnt; i++) {
		unsigned n = 0, gap = 0, run = 0;

		for (unsigned k = 0; k < 2 * total; k++) {
			bool own = lane[k % total] == i;

			n += own && k < total;
			run = own ? 0 : run + 1;
			gap = run > gap ? run : gap;
		}
		if (off(n * UR_QOS_ALL / total, t->target[i].share) > t->tolerance ||
		    (t->target[i].bound_ns && NS((gap + 1) * MTU) > t->target[i].bound_ns))
			return false;
	}
	return true;
}

static bool some_sequence(const struct ur_qos_task *t, uint8_t *lane, unsigned at, unsigned total)
{
	if (at == total)
		return keeps(t, lane, total);
	for (lane[at] = 0; lane[at] < t->cnt; lane[at]++)
		if (some_sequence(t, lane, at + 1, total))
			return true;
	return false;
}

/* REQ: MGR-QOS-01 */
Test(mgr_qos, no_smaller_table_keeps_the_bounds)
{
	unsigned found = 0;

	for (int i = 0; i < 200; i++) {
		struct ur_qos_task t = {.mode = UR_VL_IBA, .mtu_shift = 12, .bps = BPS, .cnt = 3};
		struct ur_qos_solution s;
		unsigned n[3] = {1 + random_below(3), 1 + random_below(4), 1 + random_below(3)};
		unsigned sum = n[0] + n[1] + n[2];
		uint8_t lane[16];

		t.tolerance = PART;
		for (unsigned k = 0; k < 3; k++)
			t.target[k] = (struct ur_qos_target){.sl = (uint8_t)k,
							     .share = UR_QOS_ALL / sum * n[k]};
		t.target[i % 3].bound_ns = NS((2 + random_below(sum)) * MTU) + 1;
		if (!ur_qos_solve(&t, &s) || s.vl.high_cnt)
			continue;
		found++;
		for (unsigned total = 3; total < s.packets[0] && total <= 9; total++)
			cr_assert(!some_sequence(&t, lane, 0, total), "%u packets, not %u", total,
				  s.packets[0]);
	}
	cr_assert(found > 80, "%u", found);
}

/* Two lanes, a packet is 2048 bytes: what the law says of weights `h` and `l`. */
static uint32_t law(unsigned h, unsigned l, unsigned limit)
{
	uint64_t k = limit ? 2 * limit : 1, turns = k * l / h, high = h * (turns ? turns : 1);

	return (uint32_t)(high * UR_QOS_ALL / (high + l));
}

/* REQ: MGR-QOS-01, VL-LAW-01 */
Test(mgr_qos, no_smaller_pair_of_tables_has_what_the_law_says)
{
	unsigned pairs = 0;

	for (int i = 0; i < 200; i++) {
		uint32_t share = 30000 + random_below(940000);
		struct ur_qos_task t = {.mode = UR_VL_MEASURED,
					.mtu_shift = 11,
					.tolerance = PART / 4,
					.cnt = 2,
					.target = {{.sl = 0, .share = share},
						   {.sl = 1, .share = UR_QOS_ALL - share}}};
		struct ur_qos_solution s;
		unsigned sum;

		cr_assert(ur_qos_solve(&t, &s));
		check_solution(&t, &s);
		sum = s.packets[0] + s.packets[1];
		if (s.vl.high_cnt) {
			bool first = s.got[0].high;

			pairs++;
			cr_assert(off(law(s.packets[1], s.packets[0], s.vl.high_limit),
				      first ? share : UR_QOS_ALL - share) <= t.tolerance + 1);
		}
		for (unsigned less = 2; less < sum && less <= 64; less++) {
			cr_assert(!exists(&t, 0, less, less));
			for (unsigned h = 1; h < less; h++)
				for (unsigned limit = 0; limit < 256; limit++) {
					uint32_t got = law(h, less - h, limit);

					cr_assert(off(got, share) > t.tolerance &&
							  off(got, UR_QOS_ALL - share) >
								  t.tolerance,
						  "H %u, L %u, Q %u, not a sum of %u", h, less - h,
						  limit, sum);
				}
		}
	}
	cr_assert(pairs > 50, "%u", pairs);
}

/* REQ: MGR-QOS-01 */
Test(mgr_qos, strict_puts_lanes_with_a_bound_first)
{
	struct ur_qos_task t = {.mode = UR_VL_STRICT,
				.mtu_shift = 12,
				.bps = BPS,
				.tolerance = PART,
				.cnt = 3,
				.target = {{.sl = 0, .share = 600000},
					   {.sl = 4, .share = 100000, .bound_ns = NS(2 * MTU) + 1},
					   {.sl = 5, .share = 300000}}};
	struct ur_qos_solution s;

	cr_assert(ur_qos_solve(&t, &s));
	cr_assert(s.got[1].high && !s.got[0].high && !s.got[2].high);
	cr_assert(s.vl.high_cnt == 1 && s.vl.high[0].vl == 1);
	cr_assert(off(s.got[0].share, 666667) <= 2 * PART &&
		  off(s.got[2].share, 333333) <= 2 * PART);
	cr_assert(wait_of_one(&s.vl, 1, 5) == 0, "a low packet goes before it");
}

/* REQ: MGR-QOS-01. The rest is less than the tolerance, so there is no lane for it, and no low table. */
Test(mgr_qos, strict_may_have_a_bound_for_every_lane)
{
	struct ur_qos_task t = {.mode = UR_VL_STRICT,
				.mtu_shift = 12,
				.bps = BPS,
				.tolerance = PART,
				.cnt = 2,
				.target = {{.sl = 0, .share = 600000, .bound_ns = NS(64 * MTU)},
					   {.sl = 1, .share = 395000, .bound_ns = NS(64 * MTU)}}};
	struct ur_qos_solution s;

	cr_assert(ur_qos_solve(&t, &s));
	cr_assert(s.got[0].high && s.got[1].high && s.vl.low_cnt == 0);
}

/* REQ: MGR-QOS-01 */
Test(mgr_qos, what_cannot_be_met_is_named)
{
	struct ur_qos_task t = {.mode = UR_VL_IBA,
				.mtu_shift = 12,
				.bps = BPS,
				.tolerance = PART,
				.cnt = 2,
				.target = {{.sl = 0, .share = 900000},
					   {.sl = 1, .share = 100000, .bound_ns = 100}}};
	struct ur_qos_solution s;

	cr_assert(!ur_qos_solve(&t, &s));
	cr_assert(s.failed == 1 && s.got[1].wait_ns > 100 && s.lanes == 2);
	t.target[1].share = 200000;
	cr_assert_str_eq(ur_qos_check(&t), "the shares are more than the whole link together");
	t.target[1] = (struct ur_qos_target){.sl = 0, .share = 1};
	cr_assert(ur_qos_check(&t));
}

/* REQ: MGR-QOS-01 */
Test(mgr_qos, service_levels_without_a_target_share_what_is_left)
{
	struct ur_qos_task t = {.mode = UR_VL_IBA,
				.mtu_shift = 12,
				.tolerance = PART,
				.cnt = 1,
				.target = {{.sl = 3, .share = 250000}}};
	struct ur_qos_solution s;

	cr_assert(ur_qos_solve(&t, &s) && s.lanes == 2);
	for (unsigned sl = 0; sl < 16; sl++)
		cr_assert(s.vl.sl2vl[sl] == (sl == 3 ? 0 : 1));
	cr_assert(s.packets[0] == 4 && off(s.got[1].share, 750000) < 100);
}
