/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_COUNTERS_H
#define UR_TRANSPORT_COUNTERS_H

#include <stdint.h>

#include "uroce/counter_list.h"
#include "wire/drop.h"

/* What a worker counts; see the list for each meaning. Any thread may read it. */
struct ur_counters {
#define X(name, unit, help) uint64_t name;
	UROCE_TRANSPORT_COUNTERS(X)
#undef X
	uint64_t drops[UR_DROP_CNT]; /* packets, by enum ur_drop */
};

#endif
