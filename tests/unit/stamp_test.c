/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/stamp.h"

static const uint32_t around[] = {0,	     1, 1000, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX - 1,
				  UINT32_MAX};

#define AROUND (sizeof(around) / sizeof(around[0]))

Test(stamp, counts_16_ns)
{
	cr_expect_eq(ur_stamp(0).v, 0);
	cr_expect_eq(ur_stamp(15).v, 0);
	cr_expect_eq(ur_stamp(16).v, 1);
	cr_expect_eq(ur_stamp((UINT64_C(16) << 32) + 33).v, 2, "it wraps");
}

Test(stamp, distances_wrap)
{
	for (unsigned i = 0; i < AROUND; i++) {
		struct ur_stamp a = ur_stamp_of(around[i]);

		for (unsigned k = 0; k < AROUND; k++) {
			struct ur_stamp b = ur_stamp_add(a, around[k]);

			cr_expect_eq(ur_stamp_since(b, a), around[k]);
			cr_expect_eq(ur_stamp_diff(b, a), (int32_t)around[k]);
			cr_expect_eq(ur_stamp_eq(a, b), around[k] == 0);
		}
	}
}

Test(stamp, order_holds_for_half_the_range)
{
	for (unsigned i = 0; i < AROUND; i++) {
		struct ur_stamp a = ur_stamp_of(around[i]);

		cr_expect_not(ur_stamp_lt(a, a));
		cr_expect(ur_stamp_le(a, a));
		for (unsigned k = 1; k < AROUND; k++) {
			struct ur_stamp b = ur_stamp_add(a, around[k]);
			bool younger = around[k] <= INT32_MAX;

			if (around[k] == UINT32_C(1) << 31)
				continue; /* neither */
			cr_expect_eq(ur_stamp_lt(a, b), younger);
			cr_expect_eq(ur_stamp_le(a, b), younger);
			cr_expect_eq(ur_stamp_lt(b, a), !younger);
		}
	}
}
