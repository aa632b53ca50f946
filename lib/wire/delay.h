/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_DELAY_H
#define UR_WIRE_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/stamp.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Delay stamps (docs/design/delay.md): the time that a packet of extended mode has spent in switches. Both fields are
 * among those that the ICRC does not cover:
 *
 *   BTH, byte 4       F 1 | B 1 | D 1 | hops 5
 *   UDP checksum      delay, if D is set
 *
 * D asks switches to stamp. Hops counts those that did; UR_DELAY_VOID says that the value is not to be used.
 *
 * WIRE-DELAY-01. A delay is a 16-bit code for a number of 16 ns, exponent e in bits 15 to 12, mantissa m below:
 * m if e is 0, else (4096 + m) << (e - 1). So it is exact up to 131 us, reaches 2.15 s, and what is cut off is less
 * than a part in 4096. Codes are ordered as the delays are.
 *
 * Thread class: pure functions.
 */
#define UR_DELAY_BTH  4	   /* the byte of the BTH that has these bits: */
#define UR_DELAY_ASK  0x20 /* D, in the six below F and B, */
#define UR_DELAY_HOPS 0x1f
#define UR_DELAY_VOID                                                                              \
	31 /* hops: more than can be counted, or a delay that is none of the network's */

#define UR_DELAY_MANTISSA 12

/* The code of `units` of 16 ns, rounded down; 0xffff for 2.15 s and more. */
static inline uint16_t ur_delay_encode(uint64_t units)
{
	unsigned e;

	if (units < 1u << UR_DELAY_MANTISSA)
		return (uint16_t)units;
	e = 64 - UR_DELAY_MANTISSA - (unsigned)__builtin_clzll(units);
	if (e > 15)
		return UINT16_MAX;
	/* The mantissa's highest bit, 4096, adds 1 to the exponent. */
	return (uint16_t)((units >> (e - 1)) + ((e - 1) << UR_DELAY_MANTISSA));
}

/* In units of 16 ns, [0, 2^27). */
static inline uint32_t ur_delay_decode(uint16_t code)
{
	unsigned e = code >> UR_DELAY_MANTISSA;

	return e ? (uint32_t)(code - ((e - 1) << UR_DELAY_MANTISSA)) << (e - 1) : code;
}

static inline uint64_t ur_delay_ns(uint16_t code)
{
	return (uint64_t)ur_delay_decode(code) << UR_STAMP_SHIFT;
}

/* The code of a delay that has grown by `ns`; at least 1. */
static inline uint16_t ur_delay_add(uint16_t code, uint64_t ns)
{
	uint16_t sum = ur_delay_encode(ur_delay_decode(code) + (ns >> UR_STAMP_SHIFT));

	return sum ? sum : 1;
}

#ifdef __cplusplus
}
#endif

#endif
