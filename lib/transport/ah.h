/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_AH_H
#define UR_TRANSPORT_AH_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "wire/path.h"

/*
 * An address handle: a path, and the other fields of an address vector. Owned by its creator, which keeps
 * it until the WQEs that name it have completed. A work request names it by `verbs`, its first member.
 */
struct ur_ah {
	struct ibv_ah verbs;
	struct ur_path path;
	uint32_t pd;
	uint8_t sl;
};

#endif
