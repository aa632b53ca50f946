/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#include "wire/crc32.h"

static const uint8_t no_mask[UR_CRC32_MASK];

/* A bit at a time, as IEEE 802.3 defines it. */
static uint32_t bitwise(uint32_t crc, const uint8_t *data, size_t len)
{
	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static void fill(uint8_t *data, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		data[i] = (uint8_t)(seed >> 24);
	}
}

static void need_short(void)
{
	if (!ur_crc32_has_short())
		cr_skip_test("this CPU has no carry-less multiplication");
}

TestSuite(crc32, .init = need_short);

/* The reference itself: CRC-32/ISO-HDLC of "123456789" is 0xcbf43926 in every catalogue. */
Test(crc32, the_definition_gives_the_published_check_value)
{
	cr_assert_eq(bitwise(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
}

/* The memory has no byte more than the data: a read beyond either end is found by the sanitizer. */
Test(crc32, equals_isa_l_and_the_definition_at_every_length_and_alignment)
{
	for (size_t len = 16; len <= UR_CRC32_SHORT; len++)
		for (size_t align = 0; align < 17; align++) {
			uint8_t *memory = malloc(align + len), *data = memory + align;
			uint32_t seed = (uint32_t)(len * 2654435761u + align), crc;

			cr_assert_not_null(memory);
			fill(data, len, seed);
			crc = ur_crc32_short(seed, no_mask, 0, data, len);
			cr_assert_eq(crc, crc32_gzip_refl(seed, data, len), "%zu at %zu", len,
				     align);
			cr_assert_eq(crc, bitwise(seed, data, len), "%zu at %zu", len, align);
			free(memory);
		}
}

/* Each bit counts, wherever it is: the constants of all distances are right. */
Test(crc32, equals_the_definition_for_each_single_bit)
{
	uint8_t data[UR_CRC32_SHORT];

	for (size_t len = 16; len <= UR_CRC32_SHORT; len += 11)
		for (size_t bit = 0; bit < 8 * len; bit++) {
			memset(data, 0, len);
			data[bit / 8] = (uint8_t)(1u << bit % 8);
			cr_assert_eq(ur_crc32_short(0, no_mask, 0, data, len),
				     bitwise(0, data, len), "bit %zu of %zu bytes", bit, len);
		}
}

Test(crc32, counts_masked_bits_as_ones)
{
	uint8_t mask[UR_CRC32_MASK] = {0}, data[UR_CRC32_SHORT], ored[UR_CRC32_SHORT];

	for (size_t len = 16; len <= UR_CRC32_SHORT; len++) {
		size_t masked = len % (UR_CRC32_MASKED + 1);

		memset(mask, 0, sizeof(mask));
		fill(mask, masked, 7);
		fill(data, len, (uint32_t)len);
		for (size_t i = 0; i < len; i++)
			ored[i] = data[i] | (i < masked ? mask[i] : 0);
		cr_assert_eq(ur_crc32_short(1, mask, masked, data, len), bitwise(1, ored, len),
			     "%zu", len);
		if (masked <= UR_CRC32_MASKED_V4)
			cr_assert_eq(ur_crc32_short_v4(1, mask, data, len), bitwise(1, ored, len),
				     "%zu with %zu masked", len, masked);
	}
}
