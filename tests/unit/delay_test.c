/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/delay.h"

#define LARGEST ((UINT64_C(8191) << 14) + (1 << 14) - 1) /* of those that do not saturate */

/* WIRE-DELAY-01 */
Test(delay, every_code_is_that_of_its_value)
{
	for (uint32_t code = 0; code <= UINT16_MAX; code++)
		cr_assert_eq(ur_delay_encode(ur_delay_decode((uint16_t)code)), code, "%#x", code);
}

/* WIRE-DELAY-01 */
Test(delay, codes_are_ordered_as_their_values)
{
	for (uint32_t code = 0; code < UINT16_MAX; code++)
		cr_assert_lt(ur_delay_decode((uint16_t)code), ur_delay_decode((uint16_t)(code + 1)),
			     "%#x", code);
}

/* WIRE-DELAY-01: what every implementation must agree on. */
Test(delay, has_the_values_of_the_specification)
{
	static const struct {
		uint16_t code;
		uint64_t units;
	} known[] = {{0, 0},
		     {1, 1},
		     {0x0fff, 4095},
		     {0x1000, 4096},
		     {0x1fff, 8191},
		     {0x2000, 8192},
		     {0x2001, 8194},
		     {0x3000, 16384},
		     {0x3fff, 32764},
		     {0xf000, 4096 << 14},
		     {0xffff, UINT64_C(8191) << 14}};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		cr_assert_eq(ur_delay_decode(known[i].code), known[i].units, "%u", i);
		cr_assert_eq(ur_delay_encode(known[i].units), known[i].code, "%u", i);
		cr_assert_eq(ur_delay_ns(known[i].code), 16 * known[i].units);
	}
}

/* WIRE-DELAY-01 */
Test(delay, rounds_down_by_less_than_a_part_in_4096)
{
	for (uint64_t units = 1; units <= LARGEST; units += 1 + units / 9973) {
		uint64_t back = ur_delay_decode(ur_delay_encode(units));

		cr_assert_leq(back, units);
		cr_assert_lt((units - back) * 4096, units, "%lu", (unsigned long)units);
		if (units < 8192)
			cr_assert_eq(back, units);
	}
}

/* WIRE-DELAY-01 */
Test(delay, that_is_too_long_is_the_longest)
{
	static const uint64_t units[] = {LARGEST, LARGEST + 1, UINT32_MAX, UINT64_MAX};

	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(ur_delay_encode(units[i]), UINT16_MAX);
	cr_assert_eq(ur_delay_add(UINT16_MAX, UINT64_MAX), UINT16_MAX);
	cr_assert_eq(ur_delay_add(0, UINT64_MAX), UINT16_MAX);
	cr_assert_eq(ur_delay_add(UINT16_MAX, 0), UINT16_MAX);
}

/* SWITCH-DELAY-01: hops and value agree, however fast a switch is. */
Test(delay, that_was_added_is_never_zero)
{
	cr_assert_eq(ur_delay_add(0, 0), 1);
	cr_assert_eq(ur_delay_add(0, 15), 1);
	cr_assert_eq(ur_delay_add(0, 16), 1);
	cr_assert_eq(ur_delay_add(0, 32), 2);
	cr_assert_eq(ur_delay_add(7, 15), 7);
}

/* Adds some of the delays of 31 hops from `at` on, `step` apart. */
static uint16_t sum(const uint64_t *ns, unsigned at, unsigned step)
{
	uint16_t code = 0;

	for (unsigned i = 0; i < 31; i++)
		code = ur_delay_add(code, ns[(at + i * step) % 31]);
	return code;
}

/* WIRE-DELAY-01 */
Test(delay, is_the_sum_of_all_hops_in_any_order)
{
	uint64_t ns[31], total = 0, random = 1;

	for (unsigned i = 0; i < 31; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		ns[i] = random >> (34 + i % 16);
		total += ns[i];
	}
	for (unsigned at = 0; at < 31; at++)
		for (unsigned step = 1; step < 31; step++) {
			double got = (double)ur_delay_ns(sum(ns, at, step));

			cr_assert_leq(got, (double)total);
			cr_assert_gt(got, (double)total * (1 - 31 / 4096.) - 31 * 16.);
		}
}
