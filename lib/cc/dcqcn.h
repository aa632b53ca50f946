/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_DCQCN_H
#define UR_CC_DCQCN_H

#include <stdint.h>

/* The state of DCQCN for a destination; names of the paper. */
struct ur_cc_dcqcn {
	uint32_t rate, target;	   /* RC, RT; valid while throttled */
	uint32_t alpha;		   /* 1/65536, [0, 65536] */
	uint32_t bytes;		   /* since the last increase by bytes */
	uint8_t by_time, by_bytes; /* increases since the last CNP, up to 255 */
	uint64_t timer_ns;	   /* when the last increase by time was due */
	uint64_t cnp_ns;	   /* when the last CNP arrived */
};

#endif
