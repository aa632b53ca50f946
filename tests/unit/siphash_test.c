/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/siphash.h"

static const uint64_t k0 = UINT64_C(0x0706050403020100), k1 = UINT64_C(0x0f0e0d0c0b0a0908);

Test(siphash, agrees_with_the_vectors_of_its_authors)
{
	uint8_t m[15];

	for (uint8_t i = 0; i < sizeof(m); i++)
		m[i] = i;
	cr_assert_eq(ur_siphash(k0, k1, m, 15), UINT64_C(0xa129ca6149be45e5));
	cr_assert_eq(ur_siphash(k0, k1, m, 0), UINT64_C(0x726fdb47dd0e0e31));
	cr_assert_eq(ur_siphash(k0, k1, m, 8), UINT64_C(0x93f5f5799a932462));
}

Test(siphash, every_bit_of_key_and_message_counts)
{
	uint8_t m[24] = {0};
	uint64_t plain = ur_siphash(k0, k1, m, sizeof(m));

	for (unsigned i = 0; i < 64; i++) {
		cr_assert_neq(ur_siphash(k0 ^ UINT64_C(1) << i, k1, m, sizeof(m)), plain);
		cr_assert_neq(ur_siphash(k0, k1 ^ UINT64_C(1) << i, m, sizeof(m)), plain);
	}
	for (unsigned i = 0; i < 8 * sizeof(m); i++) {
		m[i / 8] ^= (uint8_t)(1u << i % 8);
		cr_assert_neq(ur_siphash(k0, k1, m, sizeof(m)), plain);
		m[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	cr_assert_neq(ur_siphash(k0, k1, m, sizeof(m) - 1), plain);
}
