/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>

#include <pcap/pcap.h>

#include "dpdk/driver_call.h"

/* libpcap stands in for a driver: a shared object that calls the C library. */

static unsigned calls;

static FILE *no_file(const char *path, const char *mode)
{
	(void)path;
	(void)mode;
	calls++;
	errno = EXDEV;
	return NULL;
}

Test(driver_call, one_object_calls_ours_and_the_others_go_on)
{
	char err[PCAP_ERRBUF_SIZE];
	FILE *f;

	cr_assert_eq(ur_driver_call_replace("libpcap.so", "fopen", (ur_driver_fn)no_file), 0);
	cr_expect_null(pcap_open_offline("/proc/self/maps", err));
	cr_expect_eq(calls, 1);
	f = fopen("/proc/self/maps", "r");
	cr_expect_not_null(f, "ours was called from here");
	cr_expect_eq(calls, 1);
	if (f)
		fclose(f);
}

Test(driver_call, a_missing_driver_or_function_is_reported)
{
	cr_expect_eq(ur_driver_call_replace("libpcap.so", "no_such_call", (ur_driver_fn)no_file),
		     -ENOENT);
	cr_expect_eq(ur_driver_call_replace("no_such_driver.so", "fopen", (ur_driver_fn)no_file),
		     -ENOENT);
	cr_expect_eq(calls, 0);
}
