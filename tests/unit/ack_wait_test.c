/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "edge/ack_wait.h"

/* EDGE-ACK-01 */

#define T0 1000000000

Test(ack_wait, an_ack_waits_for_a_while_from_when_it_is_owed)
{
	struct ur_ack_wait w = {.for_ns = 1000};

	for (uint64_t t = T0; t <= 2 * (uint64_t)T0; t += T0) {
		ur_ack_wait_owed(&w, t);
		cr_expect(ur_ack_wait_goes_on(&w, t));
		ur_ack_wait_owed(&w, t + 500);
		cr_expect(ur_ack_wait_goes_on(&w, t + 999));
		cr_expect_not(ur_ack_wait_goes_on(&w, t + 1000),
			      "others that come meanwhile prolong nothing");
		ur_ack_wait_over(&w);
	}
}

Test(ack_wait, it_leaves_behind_an_answer)
{
	struct ur_ack_wait w = {.for_ns = 1000};

	ur_ack_wait_owed(&w, T0);
	ur_ack_wait_posted(&w, true);
	cr_expect_not(ur_ack_wait_goes_on(&w, T0 + 1));
	ur_ack_wait_over(&w);
	ur_ack_wait_owed(&w, T0 + 2);
	cr_expect(ur_ack_wait_goes_on(&w, T0 + 2), "the next one waits for an answer of its own");
}

Test(ack_wait, what_was_posted_before_is_no_answer)
{
	struct ur_ack_wait w = {.for_ns = 1000};

	ur_ack_wait_posted(&w, false);
	ur_ack_wait_owed(&w, T0);
	cr_expect(ur_ack_wait_goes_on(&w, T0));
}

Test(ack_wait, without_a_time_none_waits)
{
	struct ur_ack_wait w = {0};

	ur_ack_wait_owed(&w, T0);
	cr_expect_not(ur_ack_wait_goes_on(&w, T0));
}
