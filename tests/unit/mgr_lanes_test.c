/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "manager/lanes.h"
#include "vl/blocks.h"

/* The way from one configuration of a port's lanes to another one. */

static uint64_t rng = 1;

static unsigned random_below(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)(rng >> 33) % n;
}

static void random_table(struct ur_vl_entry *entry, uint8_t *cnt, unsigned lanes)
{
	*cnt = (uint8_t)random_below(UR_VL_ENTRIES + 1);
	for (unsigned i = 0; i < *cnt; i++)
		entry[i] = (struct ur_vl_entry){(uint8_t)random_below(lanes),
						(uint8_t)(random_below(3) ? random_below(256) : 0)};
}

static struct ur_vl_attr random_attr(void)
{
	struct ur_vl_attr a;

	do {
		unsigned lanes = 1 + random_below(UR_VL_CNT);

		a = (struct ur_vl_attr){.mode = UR_VL_IBA, .mtu_shift = 12};
		random_table(a.high, &a.high_cnt, lanes);
		random_table(a.low, &a.low_cnt, lanes);
		if (random_below(3) == 0)
			a.high_cnt = 0;
		for (unsigned sl = 0; sl < 16; sl++)
			a.sl2vl[sl] = (uint8_t)random_below(16);
	} while (ur_vl_attr_check(&a));
	return a;
}

/* What an agent would do with the attribute. */
static void write_step(struct ur_vl_attr *port, const struct ur_vl_attr *next, int step)
{
	uint8_t data[UR_VL_BLOCK_BYTES];

	if (step == UR_LANES_SL2VL) {
		ur_vl_put_sl2vl(data, next);
		ur_vl_get_sl2vl(data, port);
	} else {
		ur_vl_put_block(data, next, (unsigned)step);
		ur_vl_get_block(data, port, (unsigned)step);
	}
}

static void normal_form(const struct ur_vl_attr *a, uint8_t form[5][UR_VL_BLOCK_BYTES])
{
	ur_vl_put_sl2vl(form[0], a);
	for (unsigned block = 1; block <= UR_VL_BLOCKS; block++)
		ur_vl_put_block(form[block], a, block);
}

static unsigned walk(struct ur_vl_attr port, const struct ur_vl_attr *want)
{
	uint8_t got[5][UR_VL_BLOCK_BYTES], wanted[5][UR_VL_BLOCK_BYTES];
	struct ur_vl_attr next;
	unsigned steps = 0;
	int step;

	while ((step = ur_lanes_step(&port, want, &next)) != UR_LANES_DONE) {
		write_step(&port, &next, step);
		cr_assert(!ur_vl_attr_check(&port), "%s", ur_vl_attr_check(&port));
		cr_assert(++steps <= 6);
	}
	normal_form(&port, got);
	normal_form(want, wanted);
	for (unsigned i = 0; i < 5; i++)
		cr_assert(!memcmp(got[i], wanted[i], UR_VL_BLOCK_BYTES));
	return steps;
}

/* REQ: MGR-VL-01 */
Test(mgr_lanes, every_step_is_valid_and_the_last_one_is_what_was_wanted)
{
	for (int i = 0; i < 20000; i++) {
		struct ur_vl_attr from = random_attr(), to = random_attr();

		(void)walk(from, &to);
		cr_assert(walk(to, &to) == 0);
	}
}

/* REQ: MGR-VL-01 */
Test(mgr_lanes, a_port_moves_to_lanes_that_it_did_not_have)
{
	for (unsigned from_high = 0; from_high < 2; from_high++)
		for (unsigned to_high = 0; to_high < 2; to_high++)
			for (unsigned late = 0; late < 2; late++) {
				struct ur_vl_attr a = {.mode = UR_VL_IBA, .mtu_shift = 12}, b = a;
				unsigned at = late ? 40 : 0;

				memset(a.sl2vl, 15, 16);
				memset(b.sl2vl, 15, 16);
				a.sl2vl[3] = 0;
				b.sl2vl[3] = 9;
				(from_high ? a.high : a.low)[0] = (struct ur_vl_entry){0, 1};
				*(from_high ? &a.high_cnt : &a.low_cnt) = 1;
				(to_high ? b.high : b.low)[at] = (struct ur_vl_entry){9, 1};
				*(to_high ? &b.high_cnt : &b.low_cnt) = (uint8_t)(at + 1);
				(void)walk(a, &b);
			}
}

/* REQ: MGR-VL-01 */
Test(mgr_lanes, a_service_level_with_a_lane_before_and_after_has_one_meanwhile)
{
	struct ur_vl_attr a, b, next;
	int step;

	ur_vl_attr_default(&a);
	b = a;
	/* SL 0 and 1 change their lanes, and every other lane goes. */
	b.high[0] = (struct ur_vl_entry){1, 10};
	b.high_cnt = 1;
	b.low_cnt = 1;
	memset(b.sl2vl, 15, 16);
	b.sl2vl[0] = 1;
	b.sl2vl[1] = 0;
	while ((step = ur_lanes_step(&a, &b, &next)) != UR_LANES_DONE) {
		write_step(&a, &next, step);
		cr_assert((ur_vl_attr_served_sls(&a) & 3) == 3);
	}
}
