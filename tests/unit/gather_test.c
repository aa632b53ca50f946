/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "edge/gather.h"
#include "edge/source.h"

/* EDGE-GATHER-01 */

static struct ur_gather g;

Test(gather, a_request_that_is_posted_alone_leaves_at_once)
{
	ur_gather_init(&g, UR_TRISTATE_AUTO);
	for (uint64_t now_ns = 5000; now_ns < 50000; now_ns += UR_GATHER_NS) {
		cr_assert_not(ur_gather_joins(&g, now_ns, 1));
		cr_assert_not(ur_gather_open(&g));
	}
}

Test(gather, the_followers_of_a_series_wait_until_there_are_32)
{
	uint64_t now_ns = 5000;

	ur_gather_init(&g, UR_TRISTATE_AUTO);
	for (unsigned series = 0; series < 3; series++) {
		cr_assert_eq(ur_gather_joins(&g, now_ns++, 1), series > 0);
		ur_gather_sent(&g);
		for (unsigned i = 1; i < UR_GATHER_REQUESTS; i++) {
			cr_assert(ur_gather_joins(&g, now_ns++, 1), "request %u waits", i);
			cr_assert(ur_gather_open(&g));
		}
		cr_assert_not(ur_gather_joins(&g, now_ns++, 1), "they are sent");
		ur_gather_sent(&g);
		cr_assert_not(ur_gather_open(&g));
	}
	cr_assert_eq(UR_GATHER_REQUESTS, UR_BURST);
}

Test(gather, a_slow_series_leaves_in_pieces)
{
	uint64_t now_ns = 5000, first_ns = 0;
	unsigned sent = 0;

	ur_gather_init(&g, UR_TRISTATE_AUTO);
	cr_assert_not(ur_gather_joins(&g, now_ns, 1));
	for (unsigned i = 0; i < 100; i++) {
		now_ns += UR_GATHER_NS - 1;
		if (!ur_gather_open(&g))
			first_ns = now_ns;
		if (ur_gather_joins(&g, now_ns, 1)) {
			cr_assert_lt(now_ns, first_ns + UR_GATHER_MOST_NS, "request %u", i);
			continue;
		}
		ur_gather_sent(&g);
		sent++;
	}
	cr_assert_geq(sent, 100 / (UR_GATHER_MOST_NS / UR_GATHER_NS + 2));
}

Test(gather, a_list_counts_as_its_requests)
{
	ur_gather_init(&g, UR_TRISTATE_YES);
	cr_assert(ur_gather_joins(&g, 1, 31));
	cr_assert_not(ur_gather_joins(&g, 2, 1));
	ur_gather_sent(&g);
	cr_assert_not(ur_gather_joins(&g, 3, 32), "a list that fills a burst does not wait");
}

Test(gather, after_a_round_the_next_request_is_alone)
{
	ur_gather_init(&g, UR_TRISTATE_AUTO);
	cr_assert_not(ur_gather_joins(&g, 100, 1));
	cr_assert(ur_gather_joins(&g, 101, 1));
	ur_gather_round(&g);
	cr_assert_not(ur_gather_open(&g));
	cr_assert_not(ur_gather_joins(&g, 102, 1));
}

Test(gather, auto_ends_when_events_are_asked_for_and_yes_does_not)
{
	ur_gather_init(&g, UR_TRISTATE_AUTO);
	cr_assert_not(ur_gather_joins(&g, 100, 1));
	ur_gather_end_auto(&g);
	cr_assert_not(ur_gather_joins(&g, 101, 1));
	ur_gather_init(&g, UR_TRISTATE_YES);
	ur_gather_end_auto(&g);
	cr_assert(ur_gather_joins(&g, 100, 1));
}

Test(gather, no_sends_every_request_at_once)
{
	ur_gather_init(&g, UR_TRISTATE_NO);
	for (uint64_t now_ns = 1; now_ns < 100; now_ns++)
		cr_assert_not(ur_gather_joins(&g, now_ns, 1));
}
