/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/crc32.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#include <smmintrin.h>
#include <wmmintrin.h>

#define BLOCK 16

/*
 * Bits are reflected: bit 0 of byte 0 is the highest power of x. A constant is x^n mod P, reflected and
 * shifted left by one.
 */
#define X_160 INT64_C(0x1751997d0)
#define X_96  INT64_C(0x0ccaa009e)
#define X_64  INT64_C(0x163cd6124)
#define P     INT64_C(0x1db710641) /* the polynomial */
#define P_INV INT64_C(0x1f7011641) /* x^64 / P, for Barrett's reduction */

/* [d - 1]: move a block by d blocks of 128 bits, x^(128 d + 32) and x^(128 d - 32). */
static const int64_t move[UR_CRC32_SHORT / BLOCK][2] __attribute__((aligned(BLOCK))) = {
	/* clang-format off */
	{0x1751997d0, 0x0ccaa009e},
	{0x0f1da05aa, 0x15a546366},
	{0x03db1ecdc, 0x174359406},
	{0x154442bd4, 0x1c6e41596},
	{0x1c7569e54, 0x0ae0b5394},
	{0x0df068dc2, 0x18cb44e58},
	{0x1ea89367e, 0x1d7cfc6ac},
	{0x1e88ef372, 0x14a7fe880},
	{0x1fdc60a7c, 0x03f41287a},
	{0x0e3543be0, 0x14b57d3f0},
	{0x1816ab61c, 0x10aae2566},
	{0x1821d8bc0, 0x12e958ac4},
	/* clang-format on */
};

#define SSE __attribute__((target("pclmul,avx")))

/*
 * Indices for pshufb, read at an offset: at BLOCK - n they move bytes up by n, at BLOCK + n down by n;
 * an index with its high bit set gives zero.
 */
#define Z 0x80
static const uint8_t shifts[3 * BLOCK] = {
	Z, Z, Z,  Z,  Z,  Z,  Z,  Z,  Z, Z, Z, Z, Z, Z, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7,
	8, 9, 10, 11, 12, 13, 14, 15, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z,
};

SSE static inline __m128i load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Moves `block` d blocks further, without a carry into them, and adds it. */
SSE static inline __m128i add_moved(__m128i acc, __m128i block, size_t d)
{
	__m128i k = _mm_load_si128((const __m128i *)(const void *)move[d - 1]);
	__m128i lo = _mm_clmulepi64_si128(block, k, 0x00);
	__m128i hi = _mm_clmulepi64_si128(block, k, 0x11);

	return _mm_xor_si128(acc, _mm_xor_si128(lo, hi));
}

/* 128 bits to 32: two multiplications, then Barrett's reduction. */
SSE static inline uint32_t reduce(__m128i acc)
{
	const __m128i k = _mm_set_epi64x(X_96, X_160);
	const __m128i k64 = _mm_set_epi64x(0, X_64);
	const __m128i p = _mm_set_epi64x(P_INV, P);
	const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
	__m128i quotient;

	acc = _mm_xor_si128(_mm_srli_si128(acc, 8), _mm_clmulepi64_si128(acc, k, 0x10));
	acc = _mm_xor_si128(_mm_srli_si128(acc, 4),
			    _mm_clmulepi64_si128(_mm_and_si128(acc, low32), k64, 0x00));
	quotient = _mm_clmulepi64_si128(_mm_and_si128(acc, low32), p, 0x10);
	quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), p, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(acc, quotient), 1);
}

/* Block j from the end is at a constant distance from it: no count, no address is computed. */
#define BLOCKS(X) X(10) X(9) X(8) X(7) X(6) X(5) X(4) X(3) X(2) X(1)

/* Adds the last `left` blocks of the data, left >= 1, to `acc`. */
SSE static inline __m128i add_last(__m128i acc, const uint8_t *end, size_t left)
{
	switch (left - 1) {
#define X(j)                                                                                       \
	case j:                                                                                    \
		acc = add_moved(acc, load(end - BLOCK * (j + 1)), j);                              \
		__attribute__((fallthrough));
		BLOCKS(X)
#undef X
	default:
		return _mm_xor_si128(acc, load(end - BLOCK));
	}
}

/*
 * ur_crc32_short(), compiled for each way that mask_len is known. Zeros in front do not count, so the data is taken as whole blocks that end at its end. Each block is
 * multiplied by the power of x that belongs to its distance from the last one. No multiplication waits
 * for another, as it would where a block is folded into the next.
 */
SSE static inline __attribute__((always_inline)) uint32_t
crc_of(uint32_t crc, const uint8_t *mask, size_t mask_len, const uint8_t *data, size_t len)
{
	size_t part = len % BLOCK, left = len / BLOCK, done = 0;
	__m128i start = _mm_cvtsi32_si128((int)~crc); /* added to the first four bytes */
	__m128i acc = _mm_setzero_si128(), block;

	if (part) {
		block = _mm_xor_si128(_mm_or_si128(load(data), load(mask)), start);
		acc = add_moved(acc, _mm_shuffle_epi8(block, load(&shifts[part])), left);
		start = _mm_shuffle_epi8(start, load(&shifts[BLOCK + part]));
	}
	do {
		block = _mm_or_si128(load(data + part + done), load(mask + part + done));
		if (!done)
			block = _mm_xor_si128(block, start);
		if (!--left)
			return ~reduce(_mm_xor_si128(acc, block));
		acc = add_moved(acc, block, left);
		done += BLOCK;
	} while (done < mask_len);
	return ~reduce(add_last(acc, data + len, left));
}

SSE uint32_t ur_crc32_short(uint32_t crc, const uint8_t *mask, size_t mask_len, const uint8_t *data,
			    size_t len)
{
	return crc_of(crc, mask, mask_len, data, len);
}

SSE static inline __m128i load_masked(const uint8_t *data, const uint8_t *mask)
{
	return _mm_or_si128(load(data), load(mask));
}

/* The same from four blocks on, for the headers of IPv4: its masked bytes are in the first ones, which take no loop. */
SSE static inline __attribute__((always_inline)) uint32_t
crc_of_long(uint32_t crc, const uint8_t *mask, const uint8_t *data, size_t len)
{
	size_t part = len % BLOCK, left = len / BLOCK;
	__m128i start = _mm_cvtsi32_si128((int)~crc), acc = _mm_setzero_si128(), block;
	const uint8_t *at = data + part;

	if (part) {
		block = _mm_xor_si128(load_masked(data, mask), start);
		acc = add_moved(acc, _mm_shuffle_epi8(block, load(&shifts[part])), left);
		start = _mm_shuffle_epi8(start, load(&shifts[BLOCK + part]));
		mask += part;
	}
	acc = add_moved(acc, _mm_xor_si128(load_masked(at, mask), start), left - 1);
	acc = add_moved(acc, load_masked(at + BLOCK, mask + BLOCK), left - 2);
	acc = add_moved(acc, load_masked(at + 2 * BLOCK, mask + 2 * BLOCK), left - 3);
	return ~reduce(add_last(acc, data + len, left - 3));
}

/* The same for a length that the compiler knows, of two or three blocks and at least four bytes in front of them. */
SSE static inline __attribute__((always_inline)) uint32_t
crc_of_known(uint32_t crc, const uint8_t *mask, const uint8_t *data, size_t len)
{
	size_t part = len % BLOCK, left = len / BLOCK;
	__m128i start = _mm_cvtsi32_si128((int)~crc), acc = _mm_setzero_si128();
	__m128i block = _mm_xor_si128(load_masked(data, mask), start);

	acc = add_moved(acc, _mm_shuffle_epi8(block, load(&shifts[part])), left);
	for (; left > 1; left--, part += BLOCK)
		acc = add_moved(acc, load_masked(data + part, mask + part), left - 1);
	return ~reduce(_mm_xor_si128(acc, load_masked(data + part, mask + part)));
}

#define ACK_BYTES     44 /* what the ICRC covers of an ACK over IPv4 */
#define EXT_ACK_BYTES 56 /* the same in extended mode; also of a READ request, in the others */

SSE uint32_t ur_crc32_short_v4(uint32_t crc, const uint8_t *mask, const uint8_t *data, size_t len)
{
	if (len >= 4 * BLOCK)
		return crc_of_long(crc, mask, data, len);
	if (len == ACK_BYTES)
		return crc_of_known(crc, mask, data, ACK_BYTES);
	if (len == EXT_ACK_BYTES)
		return crc_of_known(crc, mask, data, EXT_ACK_BYTES);
	return crc_of(crc, mask, UR_CRC32_MASKED_V4, data, len);
}
#else
#include "wire/assert.h"

uint32_t ur_crc32_short(uint32_t crc, const uint8_t *mask, size_t mask_len, const uint8_t *data,
			size_t len)
{
	UR_ASSERT(ur_crc32_has_short());
	return crc;
}

uint32_t ur_crc32_short_v4(uint32_t crc, const uint8_t *mask, const uint8_t *data, size_t len)
{
	return ur_crc32_short(crc, mask, UR_CRC32_MASKED_V4, data, len);
}
#endif
