/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "edge/rest.h"

/* EDGE-REST-01 */

#define T0 1000000000

Test(rest, stands_back_while_the_application_works)
{
	cr_expect_not(ur_rest_may_work(T0, T0));
	cr_expect_not(ur_rest_may_work(T0 + UR_REST_STAND_NS - 1, T0));
	cr_expect(ur_rest_may_work(T0 + UR_REST_STAND_NS, T0));
	cr_expect(ur_rest_may_work(T0, 0));
}

Test(rest, looks_ever_more_seldom)
{
	struct ur_rest r;
	uint64_t sleep_ns = 0, sum = 0;

	ur_rest_init(&r, false);
	cr_expect_eq(ur_rest_stand_back(&r), UR_REST_STAND_NS);
	for (int i = 0; i < 100; i++) {
		uint64_t next = ur_rest_stand_back(&r);

		cr_expect_geq(next, sleep_ns);
		sleep_ns = next;
		sum += next;
	}
	cr_expect_eq(sleep_ns, UR_REST_MAX_NS);
	/* About as often as once in a millisecond, over all. */
	cr_expect_gt(sum, UINT64_C(94) * UR_REST_MAX_NS);
}

Test(rest, spins_after_a_packet_then_sleeps_in_growing_steps)
{
	struct ur_rest r;
	uint64_t now = T0;

	ur_rest_init(&r, false);
	cr_expect_eq(ur_rest_after(&r, now, 3), 0);
	cr_expect_eq(ur_rest_after(&r, now + UR_REST_SPIN_NS - 1, 0), 0);
	now += UR_REST_SPIN_NS;
	cr_expect_eq(ur_rest_after(&r, now, 0), UR_REST_STEP_NS);
	cr_expect_eq(ur_rest_after(&r, now, 0), 2 * UR_REST_STEP_NS);
	for (int i = 0; i < 10; i++)
		ur_rest_after(&r, now, 0);
	cr_expect_eq(ur_rest_after(&r, now, 0), UR_REST_MAX_NS);
	/* A packet begins anew, standing back as well. */
	for (int i = 0; i < 10; i++)
		ur_rest_stand_back(&r);
	cr_expect_eq(ur_rest_after(&r, now, 1), 0);
	cr_expect_eq(ur_rest_after(&r, now + UR_REST_SPIN_NS, 0), UR_REST_STEP_NS);
	cr_expect_eq(ur_rest_stand_back(&r), UR_REST_STAND_NS);
}

Test(rest, does_not_spin_before_the_first_packet)
{
	struct ur_rest r;

	ur_rest_init(&r, false);
	cr_expect_eq(ur_rest_after(&r, 1, 0), UR_REST_STEP_NS);
}

Test(rest, never_spins_on_a_single_cpu)
{
	struct ur_rest r;

	ur_rest_init(&r, true);
	cr_expect_eq(ur_rest_after(&r, T0, 5), UR_REST_STEP_NS);
	cr_expect_eq(ur_rest_after(&r, T0 + 1, 5), UR_REST_STEP_NS);
	cr_expect_eq(ur_rest_after(&r, T0 + 2, 0), 2 * UR_REST_STEP_NS);
}
