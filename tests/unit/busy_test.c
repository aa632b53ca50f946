/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "thread/busy.h"

/* EDGE-BUSY-01 */

#define MOST 100000

Test(busy, looks_as_long_as_it_may_while_waits_are_short)
{
	struct ur_busy b = {UINT64_MAX};

	for (uint64_t waited = 0; waited <= 2 * MOST; waited += MOST / 2) {
		cr_expect_eq(ur_busy_for(&b, MOST), MOST);
		ur_busy_after(&b, MOST, waited);
	}
	cr_expect_eq(ur_busy_for(&b, MOST), MOST);
}

Test(busy, looks_ever_shorter_while_waits_are_long)
{
	struct ur_busy b = {UINT64_MAX};
	uint64_t ns = MOST;

	for (int i = 0; i < 20; i++) {
		cr_expect_eq(ur_busy_for(&b, MOST), ns);
		ur_busy_after(&b, MOST, 2 * MOST + 1);
		ns /= 2;
	}
	cr_expect_eq(ur_busy_for(&b, MOST), 0);
	/* Asleep for no longer than it would have looked: it was too short to sleep. */
	ur_busy_after(&b, MOST, 2 * MOST);
	cr_expect_eq(ur_busy_for(&b, MOST), MOST);
}

Test(busy, never_looks_where_it_may_not)
{
	struct ur_busy b = {UINT64_MAX};

	cr_expect_eq(ur_busy_for(&b, 0), 0);
	ur_busy_after(&b, 0, 0);
	cr_expect_eq(ur_busy_for(&b, 0), 0);
	ur_busy_after(&b, 0, 5);
	cr_expect_eq(ur_busy_for(&b, 0), 0);
}
