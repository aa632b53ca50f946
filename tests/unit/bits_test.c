/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/bits.h"

static uint32_t counted(uint64_t x)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < 64; i++)
		n += x >> i & 1;
	return n;
}

Test(bits, none_and_all_are_counted)
{
	cr_assert_eq(ur_popcount(0), 0);
	cr_assert_eq(ur_popcount(UINT64_MAX), 64);
}

Test(bits, every_run_of_bits_at_every_place_is_counted)
{
	for (unsigned from = 0; from < 64; from++)
		for (unsigned n = 1; n <= 64 - from; n++)
			cr_assert_eq(ur_popcount(UINT64_MAX >> (64 - n) << from), n);
}

Test(bits, any_pattern_is_counted_as_one_by_one)
{
	uint64_t x = 1;

	for (unsigned i = 0; i < 100000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		cr_assert_eq(ur_popcount(x), counted(x), "%#lx", x);
	}
}
