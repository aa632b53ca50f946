/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/clock.h"

#include <time.h>

void ur_clock_start(struct ur_clock *c)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	c->base = rte_rdtsc();
	c->mult = (uint64_t)(((unsigned __int128)1000000000 << 32) / rte_get_tsc_hz());
	c->epoch_ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
