/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_CRC32_H
#define UR_WIRE_CRC32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * CRC-32 (IEEE 802.3, reflected) of short packets, by carry-less multiplication. ISA-L's function is
 * faster for long data. For some hundred bytes this one takes half its instructions, and it masks header
 * bytes in registers instead of in a copy.
 *
 * Method: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
 * Intel, 2009.
 *
 * Thread class: pure functions.
 */

/* The most bytes of ur_crc32_short(), a multiple of 16. For more ISA-L is faster. */
#define UR_CRC32_SHORT 192

/* Mask bytes: a read of 16 bytes may start before each of the last masked ones. */
#define UR_CRC32_MASKED 64
#define UR_CRC32_MASK	(UR_CRC32_MASKED + 16)
/* Enough of them for IPv4, in whole blocks of 16. */
#define UR_CRC32_MASKED_V4 48

/* Whether this CPU can run ur_crc32_short(). */
static inline bool ur_crc32_has_short(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx");
#else
	return false;
#endif
}

/*
 * Continues `crc`, a finished CRC-32, with [data, data + len), 16 <= len <= UR_CRC32_SHORT. Byte i of the
 * first mask_len bytes, mask_len <= UR_CRC32_MASKED, counts as data[i] | mask[i]. `mask` has
 * UR_CRC32_MASK bytes, and those from mask_len on are zero. Requires ur_crc32_has_short().
 */
uint32_t ur_crc32_short(uint32_t crc, const uint8_t *mask, size_t mask_len, const uint8_t *data,
			size_t len);
/* The same with a mask_len of at most UR_CRC32_MASKED_V4. */
uint32_t ur_crc32_short_v4(uint32_t crc, const uint8_t *mask, const uint8_t *data, size_t len);

/* Clears the upper halves of the vector registers, after code that may leave something in them (Intel's manual, VZEROUPPER). */
static inline void ur_crc32_clear_upper(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
					   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
					   "xmm13", "xmm14", "xmm15");
#endif
}

#ifdef __cplusplus
}
#endif

#endif
