/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include "manager/lanes.h"
#include "vl/blocks.h"
#include "wire/assert.h"

static void put(uint8_t *data, const struct ur_vl_attr *vl, int step)
{
	if (step == UR_LANES_SL2VL)
		ur_vl_put_sl2vl(data, vl);
	else
		ur_vl_put_block(data, vl, (unsigned)step);
}

/* *next is `now` with that attribute of `want`. False: there is nothing to change. */
static bool change(const struct ur_vl_attr *now, const struct ur_vl_attr *want, int step,
		   struct ur_vl_attr *next)
{
	uint8_t before[UR_VL_BLOCK_BYTES], after[UR_VL_BLOCK_BYTES];

	put(before, now, step);
	put(after, want, step);
	if (!memcmp(before, after, sizeof(before)))
		return false;
	*next = *now;
	if (step == UR_LANES_SL2VL)
		ur_vl_get_sl2vl(after, next);
	else
		ur_vl_get_block(after, next, (unsigned)step);
	return true;
}

/*
 * Old and new lanes have nothing in common: a mapping that serves one service level by an old lane and another one by a new
 * lane is valid with both.
 */
static void map_to_both(const struct ur_vl_attr *now, const struct ur_vl_attr *want,
			struct ur_vl_attr *next)
{
	unsigned to = (unsigned)__builtin_ctz(ur_vl_attr_served_sls(want)), from = to ? 0 : 1;
	unsigned old = (unsigned)__builtin_ctz(ur_vl_attr_served_sls(now));

	*next = *now;
	memcpy(next->sl2vl, want->sl2vl, sizeof(next->sl2vl));
	next->sl2vl[from] = now->sl2vl[old];
}

int ur_lanes_step(const struct ur_vl_attr *now, const struct ur_vl_attr *want,
		  struct ur_vl_attr *next)
{
	uint16_t keep;
	struct ur_vl_attr n;
	int found = UR_LANES_DONE;
	bool differs = false;

	UR_ASSERT(!ur_vl_attr_check(now) && !ur_vl_attr_check(want));
	keep = ur_vl_attr_served_sls(now) & ur_vl_attr_served_sls(want);
	for (int step = UR_VL_BLOCKS; step >= UR_LANES_SL2VL; step--) {
		if (!change(now, want, step, &n))
			continue;
		differs = true;
		if (ur_vl_attr_check(&n))
			continue;
		if (found != UR_LANES_DONE && keep & ~ur_vl_attr_served_sls(&n))
			continue;
		found = step;
		*next = n;
		if (!(keep & ~ur_vl_attr_served_sls(&n)))
			return found;
	}
	if (!differs || found != UR_LANES_DONE)
		return found;
	map_to_both(now, want, next);
	return UR_LANES_SL2VL;
}
