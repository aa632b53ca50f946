/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/psn.h"

#define HALF (1u << 23)
#define LAST 0xffffffu

/* Values at which a mistake in the arithmetic would show. */
static const uint32_t corners[] = {0, 1, 2, HALF - 1, HALF, HALF + 1, LAST, LAST - 1, 0x123456};
#define CORNER_CNT (sizeof(corners) / sizeof(corners[0]))

Test(psn, is_cut_to_24_bits)
{
	cr_assert_eq(ur_psn(0x1000000).v, 0);
	cr_assert_eq(ur_psn(UINT32_MAX).v, LAST);
	cr_assert_eq(ur_qpn(0xff000011).v, 0x11);
}

Test(psn, add_wraps_at_2_to_the_24)
{
	cr_assert_eq(ur_psn_add(ur_psn(LAST), 1).v, 0);
	cr_assert_eq(ur_psn_add(ur_psn(LAST), LAST).v, LAST - 1);
	cr_assert_eq(ur_psn_add(ur_psn(HALF), HALF).v, 0);
	cr_assert_eq(ur_psn_add(ur_psn(0), (uint32_t)-1).v, LAST);
}

/* WIRE-PSN-01 */
Test(psn, distance_wraps_at_2_to_the_24)
{
	cr_assert_eq(ur_psn_diff(ur_psn(0), ur_psn(LAST)), 1);
	cr_assert_eq(ur_psn_diff(ur_psn(LAST), ur_psn(0)), -1);
	cr_assert_eq(ur_psn_diff(ur_psn(5), ur_psn(LAST - 4)), 10);
}

Test(psn, distance_lies_in_the_half_open_interval_around_zero)
{
	cr_assert_eq(ur_psn_diff(ur_psn(HALF - 1), ur_psn(0)), (int32_t)HALF - 1);
	cr_assert_eq(ur_psn_diff(ur_psn(HALF), ur_psn(0)), -(int32_t)HALF);
	cr_assert_eq(ur_psn_diff(ur_psn(HALF + 1), ur_psn(0)), -(int32_t)HALF + 1);
	cr_assert_eq(ur_psn_diff(ur_psn(0), ur_psn(HALF)), -(int32_t)HALF);
}

Test(psn, distance_undoes_add_from_every_corner)
{
	static const int32_t steps[] = {0, 1, -1, 128, -128, (int32_t)HALF - 1, -(int32_t)HALF};

	for (size_t i = 0; i < CORNER_CNT; i++)
		for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
			struct ur_psn a = ur_psn(corners[i]);
			struct ur_psn b = ur_psn_add(a, (uint32_t)steps[k]);

			cr_assert_eq(ur_psn_diff(b, a), steps[k], "%#x %+d", a.v, steps[k]);
		}
}

/* WIRE-PSN-01 */
Test(psn, successor_is_newer_everywhere)
{
	for (size_t i = 0; i < CORNER_CNT; i++) {
		struct ur_psn a = ur_psn(corners[i]), next = ur_psn_add(a, 1);

		cr_assert(ur_psn_lt(a, next));
		cr_assert(ur_psn_le(a, next));
		cr_assert_not(ur_psn_lt(next, a));
		cr_assert_not(ur_psn_le(next, a));
		cr_assert_not(ur_psn_eq(a, next));
		cr_assert(ur_psn_le(a, a));
		cr_assert_not(ur_psn_lt(a, a));
		cr_assert(ur_psn_eq(a, a));
	}
}

/* WIRE-PSN-01 */
Test(psn, interval_takes_nothing_that_is_half_of_all_away)
{
	for (size_t i = 0; i < CORNER_CNT; i++) {
		struct ur_psn lo = ur_psn(corners[i]), far = ur_psn_add(lo, HALF);

		for (uint32_t len = 0; len <= 4; len++) {
			cr_assert_not(ur_psn_in(far, lo, ur_psn_add(lo, len)));
			cr_assert_not(ur_psn_in(ur_psn_add(far, len), lo, ur_psn_add(lo, len)));
		}
	}
}

Test(psn, interval_takes_its_first_and_not_its_end)
{
	for (size_t i = 0; i < CORNER_CNT; i++) {
		struct ur_psn lo = ur_psn(corners[i]), hi = ur_psn_add(lo, 64);

		cr_assert(ur_psn_in(lo, lo, hi));
		cr_assert(ur_psn_in(ur_psn_add(hi, LAST), lo, hi));
		cr_assert_not(ur_psn_in(hi, lo, hi));
		cr_assert_not(ur_psn_in(ur_psn_add(lo, LAST), lo, hi));
	}
}

Test(psn, empty_interval_takes_nothing)
{
	for (size_t i = 0; i < CORNER_CNT; i++) {
		struct ur_psn at = ur_psn(corners[i]);

		cr_assert_not(ur_psn_in(at, at, at));
		cr_assert_not(ur_psn_in(ur_psn_add(at, 1), at, at));
		cr_assert_not(ur_psn_in(ur_psn_add(at, LAST), at, at));
	}
}

Test(psn, interval_of_the_whole_window_takes_all_but_its_end)
{
	struct ur_psn lo = ur_psn(LAST - 10), hi = ur_psn_add(lo, UR_PSN_WINDOW - 1);

	cr_assert(ur_psn_in(lo, lo, hi));
	cr_assert(ur_psn_in(ur_psn_add(lo, UR_PSN_WINDOW - 2), lo, hi));
	cr_assert_not(ur_psn_in(hi, lo, hi));
	cr_assert_not(ur_psn_in(ur_psn_add(lo, UR_PSN_WINDOW), lo, hi));
}

/* WIRE-PSN-01: other sequences count alike. */
Test(psn, message_and_response_numbers_wrap_as_psns_do)
{
	for (size_t i = 0; i < CORNER_CNT; i++)
		for (size_t k = 0; k < CORNER_CNT; k++) {
			struct ur_psn a = ur_psn(corners[i]), b = ur_psn(corners[k]);
			struct ur_msn m = ur_msn(a.v), n = ur_msn(b.v);
			struct ur_rspn r = ur_rspn(a.v), q = ur_rspn(b.v);

			cr_assert_eq(ur_msn_diff(m, n), ur_psn_diff(a, b));
			cr_assert_eq(ur_rspn_diff(r, q), ur_psn_diff(a, b));
			cr_assert_eq(ur_msn_add(m, n.v).v, ur_psn_add(a, b.v).v);
			cr_assert_eq(ur_rspn_add(r, q.v).v, ur_psn_add(a, b.v).v);
			cr_assert_eq(ur_msn_lt(m, n), ur_psn_lt(a, b));
			cr_assert_eq(ur_rspn_lt(r, q), ur_psn_lt(a, b));
		}
}
