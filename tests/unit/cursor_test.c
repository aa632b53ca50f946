/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/cursor.h"

static const uint8_t digits[18] = {0x01, 0x12, 0x23, 0x34, 0x45, 0x56, 0x67, 0x78, 0x89,
				   0x9a, 0xab, 0xbc, 0xcd, 0xde, 0xef, 0xf0, 0x0f, 0x1e};

Test(cursor, reads_big_endian_numbers_one_after_another)
{
	struct ur_cursor c = ur_cursor_ro(digits, sizeof(digits));

	cr_assert_eq(ur_get8(&c), 0x01);
	cr_assert_eq(ur_get16(&c), 0x1223);
	cr_assert_eq(ur_get24(&c), 0x344556);
	cr_assert_eq(ur_get32(&c), 0x6778899a);
	cr_assert_eq(ur_get64(&c), 0xabbccddeeff00f1e);
	cr_assert_eq(ur_cursor_left(&c), 0);
	cr_assert_not(c.bad);
}

Test(cursor, writes_the_bytes_it_reads)
{
	uint8_t buf[sizeof(digits)];
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));

	ur_put8(&c, 0x01);
	ur_put16(&c, 0x1223);
	ur_put24(&c, 0x344556);
	ur_put32(&c, 0x6778899a);
	ur_put64(&c, 0xabbccddeeff00f1e);
	cr_assert_not(c.bad);
	cr_assert_arr_eq(buf, digits, sizeof(digits));
}

Test(cursor, copies_and_zeroes_bytes)
{
	uint8_t buf[6] = {9, 9, 9, 9, 9, 9}, out[3];
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));

	ur_put_bytes(&c, digits, 3);
	ur_put_zero(&c, 2);
	cr_assert_not(c.bad);
	cr_assert_arr_eq(buf, ((uint8_t[]){0x01, 0x12, 0x23, 0, 0, 9}), 6);

	c = ur_cursor_ro(buf, sizeof(buf));
	ur_get_bytes(&c, out, 3);
	cr_assert_arr_eq(out, digits, 3);
	cr_assert_eq(ur_cursor_left(&c), 3);
}

Test(cursor, yields_zero_and_turns_bad_when_a_read_passes_the_end)
{
	for (size_t len = 0; len < 8; len++) {
		struct ur_cursor c = ur_cursor_ro(digits, len);

		cr_assert_eq(ur_get64(&c), 0);
		cr_assert(c.bad);
		cr_assert_eq(c.p, digits, "a refused read moved the cursor");
		if (len < 4) {
			c = ur_cursor_ro(digits, len);
			cr_assert_eq(ur_get32(&c), 0);
			cr_assert(c.bad);
		}
		if (len < 3) {
			c = ur_cursor_ro(digits, len);
			cr_assert_eq(ur_get24(&c), 0);
			cr_assert(c.bad);
		}
		if (len < 2) {
			c = ur_cursor_ro(digits, len);
			cr_assert_eq(ur_get16(&c), 0);
			cr_assert(c.bad);
		}
	}
}

Test(cursor, stays_bad_for_accesses_that_would_fit)
{
	struct ur_cursor c = ur_cursor_ro(digits, 2);

	ur_get32(&c);
	cr_assert_eq(ur_get8(&c), 0);
	cr_assert_null(ur_take(&c, 0));
	cr_assert(c.bad);
}

Test(cursor, refused_writes_touch_nothing)
{
	uint8_t buf[8];
	struct ur_cursor c;

	memset(buf, 0x5a, sizeof(buf));
	c = ur_cursor(buf, 7);
	ur_put64(&c, 0);
	c = ur_cursor(buf, 3);
	ur_put32(&c, 0);
	c = ur_cursor(buf, 2);
	ur_put24(&c, 0);
	c = ur_cursor(buf, 1);
	ur_put16(&c, 0);
	c = ur_cursor(buf, 0);
	ur_put8(&c, 0);
	c = ur_cursor(buf, 4);
	ur_put_zero(&c, 5);
	cr_assert(c.bad);
	c = ur_cursor(buf, 4);
	ur_put_bytes(&c, digits, 5);
	cr_assert(c.bad);
	for (size_t i = 0; i < sizeof(buf); i++)
		cr_assert_eq(buf[i], 0x5a);
}

Test(cursor, refused_copy_leaves_the_destination_alone)
{
	uint8_t out[4] = {1, 2, 3, 4};
	struct ur_cursor c = ur_cursor_ro(digits, 3);

	ur_get_bytes(&c, out, 4);
	cr_assert(c.bad);
	cr_assert_arr_eq(out, ((uint8_t[]){1, 2, 3, 4}), 4);
}

Test(cursor, taking_nothing_at_the_end_is_fine)
{
	struct ur_cursor c = ur_cursor_ro(digits, 1);

	ur_get8(&c);
	cr_assert_not_null(ur_take(&c, 0));
	cr_assert_not(c.bad);
}

Test(cursor, refuses_lengths_near_the_end_of_the_address_space)
{
	struct ur_cursor c = ur_cursor_ro(digits, sizeof(digits));

	cr_assert_null(ur_take(&c, SIZE_MAX));
	cr_assert(c.bad);
}
