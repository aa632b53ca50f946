/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "cm/speck.h"

Test(speck, agrees_with_the_vector_of_its_authors)
{
	struct ur_speck s;

	ur_speck_init(&s, 0x1918111009080100ull, 32);
	cr_assert_eq(ur_speck_encrypt(&s, 0x6574694c), 0xa86842f2);
	cr_assert_eq(ur_speck_decrypt(&s, 0xa86842f2), 0x6574694c);
}

Test(speck, decrypts_what_it_encrypted)
{
	struct ur_speck s;

	for (uint64_t key = 1; key; key <<= 1) {
		ur_speck_init(&s, key, 32);
		for (uint32_t x = 0; x < 64; x++)
			cr_assert_eq(ur_speck_decrypt(&s, ur_speck_encrypt(&s, x << 26 | x)),
				     x << 26 | x);
	}
}

Test(speck, smaller_blocks_are_permuted)
{
	static uint8_t seen[1 << 18];
	struct ur_speck s;

	ur_speck_init(&s, 0x1918111009080100ull, 18);
	for (uint32_t x = 0; x < 1 << 18; x++) {
		uint32_t y = ur_speck_encrypt(&s, x);

		cr_assert_lt(y, 1 << 18);
		cr_assert_eq(seen[y]++, 0);
		cr_assert_eq(ur_speck_decrypt(&s, y), x);
	}
	ur_speck_init(&s, 0xfedcba9876543210ull, 26);
	for (uint32_t x = 0; x < 1 << 26; x += 99991)
		cr_assert_eq(ur_speck_decrypt(&s, ur_speck_encrypt(&s, x)), x);
}
