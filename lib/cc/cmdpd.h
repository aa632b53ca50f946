/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_CMDPD_H
#define UR_CC_CMDPD_H

#include <stdint.h>

/* The state of CMDPD for a destination. The average is sum / cnt. */
struct ur_cc_cmdpd {
	uint64_t sum_ns;   /* All_delay */
	uint32_t cnt;	   /* Packet_num, 0: no sample yet */
	uint32_t outliers; /* in a row */
	uint64_t since_ns; /* when the first of them was measured */
};

#endif
