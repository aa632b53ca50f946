/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU sets */
#endif
#include <criterion/criterion.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "dpdk/evict.h"
#include "edge/cache.h"

static char text[256];

static const char *describe(struct ur_evict e)
{
	ur_evict_describe(&e, text, sizeof(text));
	return text;
}

/* EDGE-EVICT-01 */
Test(evict, frames_that_no_other_process_writes_stay)
{
	struct ur_evict e = ur_evict_decide(UR_TRISTATE_AUTO, false, 0);

	cr_expect_not(e.on);
	cr_expect_eq(e.reason, UR_EVICT_NOT_SHARED);
}

Test(evict, the_configuration_decides)
{
	struct ur_evict e = ur_evict_decide(UR_TRISTATE_NO, true, 0);

	cr_expect_not(e.on);
	cr_expect_str_eq(describe(e), "received frames stay in the cache (as configured)");
	e = ur_evict_decide(UR_TRISTATE_YES, true, 0);
	cr_expect_eq(e.on, ur_cache_can_evict());
	if (e.on)
		cr_expect_str_eq(describe(e),
				 "received frames are evicted from the cache (as configured)");
	else
		cr_expect_eq(e.reason, UR_EVICT_NO_CLFLUSHOPT);
}

Test(evict, an_eighth_must_be_saved)
{
	cr_expect(ur_evict_pays(2000, 450));
	cr_expect(ur_evict_pays(1000, 874));
	cr_expect_not(ur_evict_pays(1000, 875));
	cr_expect_not(ur_evict_pays(76, 390));
	cr_expect(ur_evict_pays(UINT32_MAX, UINT32_MAX / 2), "no overflow");
}

/* What is measured depends on the machine; that the decision follows from it does not. */
Test(evict, a_measurement_decides_by_its_figures_and_leaves_the_thread_alone)
{
	cpu_set_t before, after;
	struct ur_evict e;

	sched_getaffinity(0, sizeof(before), &before);
	e = ur_evict_decide(UR_TRISTATE_AUTO, true, (unsigned)sched_getcpu());
	sched_getaffinity(0, sizeof(after), &after);
	cr_expect(CPU_EQUAL(&before, &after));
	if (e.reason == UR_EVICT_MEASURED) {
		cr_expect_geq(e.cpu_cnt, 1);
		cr_expect_leq(e.cpu_cnt, 4);
		cr_expect_gt(e.keep_ns, 0);
		cr_expect_gt(e.evict_ns, 0);
		cr_expect_eq(e.on, ur_evict_pays(e.keep_ns, e.evict_ns));
		cr_expect_not_null(strstr(describe(e), "if they stay"));
		return;
	}
	cr_expect_not(e.on, "nothing is evicted without a reason");
	cr_expect_eq(e.cpu_cnt, 0);
	cr_expect(e.reason == UR_EVICT_NO_CLFLUSHOPT || e.reason == UR_EVICT_NO_OTHER_CPU ||
		  e.reason == UR_EVICT_NOT_MEASURED);
}

Test(evict, the_description_names_the_figures)
{
	struct ur_evict e = {.on = true,
			     .mixed = true,
			     .reason = UR_EVICT_MEASURED,
			     .cpu = 3,
			     .cpu_cnt = 2,
			     .keep_ns = 4000,
			     .evict_ns = 900};

	cr_expect_str_eq(describe(e),
			 "received frames are evicted from the cache (measured with CPU 3 and 2 "
			 "others: 2000 ns for 4 KB if they stay, 450 ns if evicted; it depends on "
			 "the other CPU, [port] evict decides)");
}

/* The time limit bounds the start of an endpoint, also if a CPU does not answer. */
Test(evict, a_cpu_that_does_not_exist_is_not_measured)
{
	struct ur_evict e = ur_evict_decide(UR_TRISTATE_AUTO, true, CPU_SETSIZE - 1);

	cr_expect_leq(e.cpu_cnt, 4);
	cr_expect(e.reason != UR_EVICT_CONFIGURED && e.reason != UR_EVICT_NOT_SHARED);
}
