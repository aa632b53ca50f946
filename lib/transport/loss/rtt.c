/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/rtt.h"

#include "wire/ext.h"

void ur_rtt_init(struct ur_rtt *r)
{
	*r = (struct ur_rtt){.min = UINT32_MAX, .min_next = UINT32_MAX};
}
