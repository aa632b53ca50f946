/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "edge/nap.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool ur_nap(struct ur_nap *nap, uint32_t *seen, uint64_t ns)
{
	struct timespec most = {.tv_nsec = (long)ns};
	uint32_t before = *seen;

	/* Before the kernel looks at `calls`: a call after that look finds the thread asleep. */
	atomic_store(&nap->asleep, true);
	syscall(SYS_futex, &nap->calls, FUTEX_WAIT_PRIVATE, before, &most, NULL, 0);
	atomic_store(&nap->asleep, false);
	*seen = atomic_load(&nap->calls);
	return *seen != before;
}

void ur_nap_call(struct ur_nap *nap)
{
	atomic_fetch_add(&nap->calls, 1);
	if (atomic_exchange(&nap->asleep, false))
		syscall(SYS_futex, &nap->calls, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
