/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_tryjoin_np */
#endif
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "edge/nap.h"

/* EDGE-REST-09. A nap that no call ends takes almost a second, so a thousand of them do not fit into the time of a test. */
#define LONG_NS	 900000000
#define CALLS	 1000
#define SHORT_NS 1000

Test(nap, ends_by_itself)
{
	struct ur_nap nap = {0};
	uint32_t seen = 0;

	cr_expect_not(ur_nap(&nap, &seen, SHORT_NS));
	cr_expect_not(ur_nap(&nap, &seen, SHORT_NS));
	cr_expect_eq(seen, 0);
}

Test(nap, a_call_before_it_is_not_slept_through)
{
	struct ur_nap nap = {0};
	uint32_t seen = 0;

	for (int i = 0; i < CALLS; i++) {
		ur_nap_call(&nap);
		cr_assert(ur_nap(&nap, &seen, LONG_NS));
	}
	ur_nap_call(&nap);
	ur_nap_call(&nap);
	cr_expect(ur_nap(&nap, &seen, LONG_NS));
	cr_expect_not(ur_nap(&nap, &seen, SHORT_NS), "two calls, one nap");
}

static void *sleep_often(void *arg)
{
	uint32_t seen = 0;

	for (int i = 0; i < CALLS; i++)
		while (!ur_nap(arg, &seen, LONG_NS))
			;
	return NULL;
}

/* Each call comes before, while, or after the thread falls asleep. */
Test(nap, a_call_wakes_the_thread, .timeout = 120)
{
	struct ur_nap nap = {0};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, sleep_often, &nap), 0);
	for (;;) {
		ur_nap_call(&nap);
		if (pthread_tryjoin_np(thread, NULL) == 0)
			break;
		sched_yield();
	}
}
