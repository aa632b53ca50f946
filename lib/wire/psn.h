/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_PSN_H
#define UR_WIRE_PSN_H

#include "wire/number.h"

/*
 * The numbers of the transport, which cannot be mixed, and QPNs, which only look like them. number.h has the
 * arithmetic: ur_psn(), ur_psn_add(), ur_psn_diff() and so on.
 *
 * Thread class: pure functions.
 */

/* Packet sequence numbers (IBA 9.7.1). */
UR_NUMBER(ur_psn);

/* Message numbers: SSN of the requester, MSN of the responder, which counts the same messages. */
UR_NUMBER(ur_msn);

/* Response numbers of extended mode: the packets that answer READs and atomics, in the order of requests. */
UR_NUMBER(ur_rspn);

struct ur_qpn {
	uint32_t v; /* [0, 2^24) */
};

#define UR_PSN_MASK   UR_NUMBER_MASK
#define UR_PSN_WINDOW (1 << 23) /* unacknowledged PSNs stay below this */

static inline struct ur_qpn ur_qpn(uint32_t v)
{
	return (struct ur_qpn){v & UR_PSN_MASK};
}

/* The upper `bits` of a number, [0, 24], of which `value` has no more. Zero: none. */
struct ur_qpn_prefix {
	uint8_t bits, value;
};

/* The prefix, and the lower bits of `v`. */
static inline struct ur_qpn ur_qpn_with_prefix(struct ur_qpn_prefix prefix, uint32_t v)
{
	unsigned rest = 24u - prefix.bits;

	return ur_qpn((uint32_t)prefix.value << rest | (v & ((1u << rest) - 1)));
}

#endif
