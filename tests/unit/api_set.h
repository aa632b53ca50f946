/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_API_SET_H
#define UR_TEST_API_SET_H

#include <criterion/criterion.h>

#define API_SET_ROOM 17

/*
 * What an endpoint under test is opened with: little memory and no hugepages, because tests run in parallel; then `set`, which is
 * NULL or a NULL-terminated list of up to 12 overrides.
 */
static inline void api_set(const char *all[API_SET_ROOM], const char *const *set)
{
	static const char *const small[] = {
		"eal.hugepages=no",
		"eal.memory_mb=128",
		"port.framecnt=512",
		"port.mbufs=1023",
		"transport.max_qp=512",
		"transport.reorder_slots=64",
		"transport.reorder_contexts=16",
	};
	unsigned cnt = 0;

	for (; cnt < sizeof(small) / sizeof(small[0]); cnt++)
		all[cnt] = small[cnt];
	for (; set && *set; cnt++) {
		cr_assert_lt(cnt, API_SET_ROOM - 1);
		all[cnt] = *set++;
	}
	all[cnt] = NULL;
}

#endif
