/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CC_SWIFT_H
#define UR_CC_SWIFT_H

#include <stdint.h>

#define UR_SWIFT_ONE (UINT32_C(1) << 16) /* a packet, as cwnd counts them */

/* What Swift remembers of a destination. */
struct ur_cc_swift {
	uint32_t cwnd;	      /* in packets, 1/65536; meaningful while throttled */
	uint32_t path_ns;     /* what the path was found to take; 0: less than the base target */
	uint32_t target_ns;   /* delay beyond which cwnd shrinks */
	uint32_t floor_ns;    /* least delay since cwnd is at its minimum */
	uint64_t sample_ns;   /* when a delay was measured last */
	uint64_t target_at;   /* when the target was computed */
	uint64_t acked;	      /* bytes acknowledged since cwnd grew last, less than a window */
	uint64_t decrease_ns; /* time of the last decrease */
	uint64_t limited_ns;  /* when the window was last half full or more */
	uint8_t timeouts;     /* in a row, at most one counted each RTT */
	uint8_t stuck;	      /* decreases in a row that found cwnd at its minimum */
};

#endif
