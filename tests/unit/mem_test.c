/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdlib.h>

#include "mem/table.h"

#define PD     7
#define LOCAL  IBV_ACCESS_LOCAL_WRITE
#define READ   IBV_ACCESS_REMOTE_READ
#define WRITE  IBV_ACCESS_REMOTE_WRITE
#define ATOMIC IBV_ACCESS_REMOTE_ATOMIC
#define IOVA   UINT64_C(0x10000)
#define LEN    UINT64_C(4096)

static uint8_t bytes[LEN];
static uint64_t seed = 1;

static uint64_t next_random(void)
{
	uint64_t z = seed += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static struct ur_mem *table(uint32_t max_mr)
{
	void *memory = NULL;

	cr_assert_eq(posix_memalign(&memory, 64, ur_mem_size(max_mr)), 0);
	return ur_mem_init(memory, max_mr);
}

static void table_free(struct ur_mem *m)
{
	free(m);
}

static uint32_t add(struct ur_mem *m, uint64_t iova, uint64_t len, uint32_t access)
{
	uint32_t key = 0;

	cr_assert_eq(ur_mem_register(m, PD, bytes, len, iova, access, next_random(), &key), 0);
	cr_assert_neq(key, 0);
	return key;
}

static void drop(struct ur_mem *m, uint32_t key)
{
	cr_assert_eq(ur_mem_suspend(m, key), 0);
	cr_assert_eq(ur_mem_release(m, key), 0);
}

/* MEM-CHECK-01 */
Test(mem, grants_exactly_the_bytes_of_the_region)
{
	struct ur_mem *m = table(4);
	uint32_t key = add(m, IOVA, LEN, LOCAL | READ);

	cr_expect_eq(ur_mem_check(m, key, PD, IOVA, LEN, READ), bytes);
	cr_expect_eq(ur_mem_check(m, key, PD, IOVA + 1, LEN - 1, READ), bytes + 1);
	cr_expect_eq(ur_mem_check(m, key, PD, IOVA + LEN - 1, 1, READ), bytes + LEN - 1);
	cr_expect_null(ur_mem_check(m, key, PD, IOVA, LEN + 1, READ));
	cr_expect_null(ur_mem_check(m, key, PD, IOVA + 1, LEN, READ));
	cr_expect_null(ur_mem_check(m, key, PD, IOVA - 1, 1, READ));
	cr_expect_null(ur_mem_check(m, key, PD, IOVA - 1, 2, READ));
	cr_expect_null(ur_mem_check(m, key, PD, IOVA + LEN, 1, READ));
	table_free(m);
}

/* MEM-CHECK-01 */
Test(mem, zero_length_is_inside_up_to_the_end_and_not_beyond)
{
	struct ur_mem *m = table(4);
	uint32_t key = add(m, IOVA, LEN, LOCAL);

	cr_expect_eq(ur_mem_check(m, key, PD, IOVA, 0, 0), bytes);
	cr_expect_eq(ur_mem_check(m, key, PD, IOVA + LEN, 0, 0), bytes + LEN);
	cr_expect_null(ur_mem_check(m, key, PD, IOVA + LEN + 1, 0, 0));
	cr_expect_null(ur_mem_check(m, key, PD, IOVA - 1, 0, 0));
	table_free(m);
}

/* MEM-CHECK-02 */
Test(mem, range_that_wraps_at_2_to_the_64_is_refused)
{
	struct ur_mem *m = table(4);
	uint32_t low = add(m, IOVA, LEN, LOCAL), high = add(m, 0 - LEN, LEN, LOCAL);

	cr_expect_null(ur_mem_check(m, low, PD, IOVA + 1, UINT64_MAX, 0));
	cr_expect_null(ur_mem_check(m, low, PD, IOVA + 1, 0 - IOVA, 0));
	cr_expect_null(ur_mem_check(m, low, PD, UINT64_MAX, IOVA + 2, 0));
	cr_expect_eq(ur_mem_check(m, high, PD, 0 - LEN, LEN, 0), bytes);
	cr_expect_eq(ur_mem_check(m, high, PD, UINT64_MAX, 1, 0), bytes + LEN - 1);
	cr_expect_null(ur_mem_check(m, high, PD, UINT64_MAX, 2, 0));
	cr_expect_null(ur_mem_check(m, high, PD, 0 - LEN, LEN + 1, 0));
	cr_expect_null(ur_mem_check(m, high, PD, 0, 1, 0));
	cr_expect_null(ur_mem_check(m, high, PD, 0, 0, 0));
	table_free(m);
}

/* MEM-CHECK-03 */
Test(mem, key_of_another_domain_is_refused)
{
	struct ur_mem *m = table(4);
	uint32_t key = add(m, IOVA, LEN, LOCAL);

	cr_expect_not_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	cr_expect_null(ur_mem_check(m, key, PD + 1, IOVA, 1, 0));
	cr_expect_null(ur_mem_check(m, key, 0, IOVA, 1, 0));
	table_free(m);
}

/* MEM-CHECK-04 */
Test(mem, every_requested_right_must_have_been_given)
{
	struct ur_mem *m = table(16);

	for (uint32_t given = 0; given < 16; given++) {
		uint32_t key;

		if (given & (WRITE | ATOMIC) && !(given & LOCAL))
			continue;
		key = add(m, IOVA, LEN, given);
		for (uint32_t asked = 0; asked < 16; asked++)
			cr_expect_eq(!!ur_mem_check(m, key, PD, IOVA, LEN, asked),
				     (asked & ~given) == 0, "given %u asked %u", given, asked);
	}
	table_free(m);
}

/* MEM-KEY-01 */
Test(mem, key_with_one_bit_changed_is_refused)
{
	struct ur_mem *m = table(64);
	uint32_t key = add(m, IOVA, LEN, LOCAL | READ);

	for (int bit = 0; bit < 32; bit++)
		cr_expect_null(ur_mem_check(m, key ^ 1u << bit, PD, IOVA, 1, 0), "bit %d", bit);
	cr_expect_null(ur_mem_check(m, 0, PD, IOVA, 0, 0));
	table_free(m);
}

/* MEM-KEY-01 */
Test(mem, zero_is_not_a_key_even_of_free_entries)
{
	struct ur_mem *m = table(1);
	uint32_t key;

	cr_expect_null(ur_mem_check(m, 0, 0, 0, 0, 0));
	cr_expect_not(ur_mem_invalidate(m, 0, 0, false));
	cr_expect_eq(ur_mem_suspend(m, 0), -EINVAL);
	cr_expect_eq(ur_mem_release(m, 0), -EINVAL);
	/* If the random bits give 0, another key is chosen. */
	cr_assert_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL, 0, &key), 0);
	cr_expect_neq(key, 0);
	cr_expect_not_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	drop(m, key);
	/* The entry still has the properties of the former region. */
	cr_expect_null(ur_mem_check(m, 0, PD, IOVA, 1, 0));
	cr_expect_not(ur_mem_invalidate(m, 0, PD, false));
	cr_assert_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL, 0, &key), 0);
	cr_expect_neq(key, 0);
	table_free(m);
}

/* MEM-KEY-02 */
Test(mem, entry_is_chosen_at_random)
{
	uint64_t seen = 0;

	for (int i = 0; i < 1000; i++) {
		struct ur_mem *m = table(64);

		seen |= UINT64_C(1) << ur_mem_slot(m, add(m, IOVA, LEN, LOCAL));
		table_free(m);
	}
	cr_expect_eq(seen, UINT64_MAX);
}

/* MEM-KEY-02 */
Test(mem, keys_differ_in_all_bits_and_from_one_another)
{
	enum { CNT = 500 };
	struct ur_mem *m = table(CNT);
	uint32_t keys[CNT], ones_cnt[32] = {0};

	for (int i = 0; i < CNT; i++) {
		keys[i] = add(m, IOVA, LEN, LOCAL);
		for (int j = 0; j < i; j++)
			cr_assert_neq(ur_mem_slot(m, keys[i]), ur_mem_slot(m, keys[j]));
		for (int bit = 0; bit < 32; bit++)
			ones_cnt[bit] += keys[i] >> bit & 1;
	}
	for (int bit = 0; bit < 32; bit++)
		cr_expect(ones_cnt[bit] > CNT / 3 && ones_cnt[bit] < CNT * 2 / 3, "bit %d: %u", bit,
			  ones_cnt[bit]);
	for (int i = 0; i < CNT; i++)
		cr_expect_eq(ur_mem_check(m, keys[i], PD, IOVA, LEN, 0), bytes);
	table_free(m);
}

/* MEM-KEY-02: with 500 regions and 2 * 10^6 guesses, 0.23 hits are expected. */
Test(mem, guessing_a_key_hardly_ever_succeeds)
{
	struct ur_mem *m = table(500);
	unsigned int hit_cnt = 0;

	for (int i = 0; i < 500; i++)
		add(m, IOVA, LEN, LOCAL);
	for (int i = 0; i < 2000000; i++)
		hit_cnt += ur_mem_check(m, (uint32_t)next_random(), PD, IOVA, 1, 0) != NULL;
	cr_expect_leq(hit_cnt, 3);
	table_free(m);
}

/* MEM-KEY-03 */
Test(mem, entry_used_again_gets_another_key)
{
	struct ur_mem *m = table(1);
	uint64_t random = next_random();
	uint32_t first, second;

	cr_assert_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL, random, &first), 0);
	drop(m, first);
	/* the same random bits again */
	cr_assert_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL, random, &second), 0);
	cr_expect_eq(ur_mem_slot(m, first), ur_mem_slot(m, second));
	cr_expect_neq(first, second);
	cr_expect_null(ur_mem_check(m, first, PD, IOVA, 1, 0));
	cr_expect_not_null(ur_mem_check(m, second, PD, IOVA, 1, 0));
	cr_expect_eq(ur_mem_suspend(m, first), -EINVAL);
	table_free(m);
}

/* MEM-DEREG-01 */
Test(mem, full_table_is_reported_and_has_room_after_a_release)
{
	struct ur_mem *m = table(3);
	uint32_t keys[3], key = 99;

	for (int i = 0; i < 3; i++)
		keys[i] = add(m, IOVA, LEN, LOCAL);
	cr_expect_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL, next_random(), &key), -ENOMEM);
	cr_expect_eq(key, 99);
	cr_assert_eq(ur_mem_suspend(m, keys[1]), 0);
	cr_expect_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL, next_random(), &key), -ENOMEM);
	cr_assert_eq(ur_mem_release(m, keys[1]), 0);
	cr_expect_eq(m->used, 2);
	key = add(m, IOVA, LEN, LOCAL);
	cr_expect_not_null(ur_mem_check(m, keys[0], PD, IOVA, 1, 0));
	cr_expect_not_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	table_free(m);
}

Test(mem, no_entry_is_lost_or_given_twice)
{
	enum { CNT = 37 };
	struct ur_mem *m = table(CNT);
	uint32_t keys[CNT] = {0}, in_use = 0;

	for (int i = 0; i < 20000; i++) {
		uint32_t at = (uint32_t)(next_random() % CNT);

		if (keys[at]) {
			drop(m, keys[at]);
			keys[at] = 0;
			in_use--;
		} else {
			keys[at] = add(m, IOVA + at * LEN, LEN, LOCAL);
			in_use++;
		}
		cr_assert_eq(m->used, in_use);
		for (uint32_t k = 0; k < CNT; k++) {
			if (keys[k])
				cr_assert_eq(ur_mem_check(m, keys[k], PD, IOVA + k * LEN, LEN, 0),
					     bytes);
		}
	}
	table_free(m);
}

/* MEM-REG-01 */
Test(mem, senseless_registrations_are_refused)
{
	static const struct {
		uint32_t pd;
		uint64_t length, iova;
		uint32_t access;
		int result;
	} cases[] = {
		{0, LEN, IOVA, LOCAL, -EINVAL},
		{PD, LEN, UINT64_MAX, LOCAL, -EINVAL},
		{PD, LEN, 0 - LEN + 1, LOCAL, -EINVAL},
		{PD, LEN, 0 - LEN, LOCAL, 0},
		{PD, UINT64_MAX, 0, LOCAL, -EINVAL}, /* base + length wraps */
		{PD, 0, IOVA, LOCAL, 0},
		{PD, 0, UINT64_MAX, LOCAL, 0},
		{PD, LEN, IOVA, 0, 0},
		{PD, LEN, IOVA, READ, 0},
		{PD, LEN, IOVA, WRITE, -EINVAL},
		{PD, LEN, IOVA, ATOMIC, -EINVAL},
		{PD, LEN, IOVA, READ | WRITE | ATOMIC, -EINVAL},
		{PD, LEN, IOVA, LOCAL | READ | WRITE | ATOMIC, 0},
		{PD, LEN, IOVA, LOCAL | IBV_ACCESS_MW_BIND, 0},
		{PD, LEN, IOVA, LOCAL | IBV_ACCESS_ON_DEMAND, -EINVAL},
		{PD, LEN, IOVA, LOCAL | 1u << 31, -EINVAL},
		{PD, LEN, IOVA, LOCAL | IBV_ACCESS_RELAXED_ORDERING, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ur_mem *m = table(1);
		uint32_t key = 0;

		cr_expect_eq(ur_mem_register(m, cases[i].pd, bytes, cases[i].length, cases[i].iova,
					     cases[i].access, next_random(), &key),
			     cases[i].result, "case %zu", i);
		cr_expect_eq(key != 0, cases[i].result == 0, "case %zu", i);
		cr_expect_eq(m->used, cases[i].result == 0, "case %zu", i);
		table_free(m);
	}
}

/* MEM-INV-01 */
Test(mem, invalidated_key_grants_nothing_and_stays_registered)
{
	struct ur_mem *m = table(1);
	uint32_t key = add(m, IOVA, LEN, LOCAL | READ), other;

	cr_assert(ur_mem_invalidate(m, key, PD, false));
	cr_expect_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	cr_expect_null(ur_mem_check(m, key, PD, IOVA, 0, 0));
	cr_expect_not(ur_mem_invalidate(m, key, PD, false), "twice");
	cr_expect_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL, 1, &other), -ENOMEM);
	drop(m, key);
	add(m, IOVA, LEN, LOCAL);
	table_free(m);
}

/* MEM-INV-02 */
Test(mem, invalidate_needs_the_domain_and_remotely_a_right_of_its_own)
{
	struct ur_mem *m = table(8);
	static const uint32_t remote[] = {READ, LOCAL | WRITE, LOCAL | ATOMIC};
	uint32_t key = add(m, IOVA, LEN, LOCAL);

	/* The right to read or write does not include the right to invalidate. */
	for (int i = 0; i < 3; i++) {
		uint32_t open = add(m, IOVA, LEN, remote[i]);

		cr_expect_not(ur_mem_invalidate(m, open, PD, true), "right %u", remote[i]);
		cr_expect_not_null(ur_mem_check(m, open, PD, IOVA, 1, remote[i]));
		cr_expect_eq(ur_mem_suspend(m, open), 0);
		cr_expect_eq(ur_mem_release(m, open), 0);
	}
	cr_expect_not(ur_mem_invalidate(m, key, PD + 1, false));
	cr_expect_not(ur_mem_invalidate(m, key ^ 0x80000000, PD, false));
	cr_expect_not(ur_mem_invalidate(m, key, PD, true));
	cr_expect_not_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	cr_expect(ur_mem_invalidate(m, key, PD, false));
	for (int i = 0; i < 3; i++) {
		key = add(m, IOVA, LEN, remote[i] | UR_ACCESS_REMOTE_INVALIDATE);
		cr_expect_not(ur_mem_invalidate(m, key, PD + 1, true));
		cr_expect(ur_mem_invalidate(m, key, PD, true), "right %u", remote[i]);
		cr_expect_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	}
	table_free(m);
}

/* MEM-DEREG-01 */
Test(mem, suspended_region_grants_nothing_and_is_released_once)
{
	struct ur_mem *m = table(2);
	uint32_t key = add(m, IOVA, LEN, LOCAL);

	cr_assert_eq(ur_mem_suspend(m, key), 0);
	cr_expect_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	cr_expect_not(ur_mem_invalidate(m, key, PD, false));
	cr_expect_eq(ur_mem_suspend(m, key), 0);
	cr_expect_eq(ur_mem_release(m, key ^ 0x80000000), -EINVAL);
	cr_expect_eq(ur_mem_release(m, key), 0);
	cr_expect_eq(ur_mem_release(m, key), -EINVAL);
	cr_expect_eq(ur_mem_suspend(m, key), -EINVAL);
	cr_expect_eq(m->used, 0);
	table_free(m);
}

/* MEM-REREG-01 */
Test(mem, region_registered_again_has_its_key_and_new_properties)
{
	struct ur_mem *m = table(4);
	uint32_t old = add(m, IOVA, LEN, LOCAL), key = 0, third = 0;

	cr_assert_eq(ur_mem_suspend(m, old), 0);
	cr_assert_eq(ur_mem_reregister(m, old, PD + 1, bytes + 8, 16, 0, READ, old, &key), 0);
	cr_expect_eq(key, old);
	cr_expect_eq(m->used, 1);
	cr_expect_null(ur_mem_check(m, key, PD, IOVA, 1, 0));
	cr_expect_eq(ur_mem_check(m, key, PD + 1, 0, 16, READ), bytes + 8);

	cr_assert_eq(ur_mem_suspend(m, key), 0);
	cr_expect_eq(ur_mem_reregister(m, old ^ 0x80000000, PD, bytes, LEN, IOVA, LOCAL, 1, &third),
		     -EINVAL);
	cr_expect_eq(ur_mem_reregister(m, key, 0, bytes, LEN, IOVA, LOCAL, 1, &third), -EINVAL);
	cr_expect_eq(ur_mem_reregister(m, key, PD, bytes, LEN, IOVA, WRITE, 1, &third), -EINVAL);
	cr_expect_eq(third, 0);
	cr_expect_eq(ur_mem_reregister(m, key, PD, bytes, LEN, IOVA, LOCAL, 1, &third), 0);
	table_free(m);
}

/* MEM-REREG-01, MEM-KEY-03 */
Test(mem, region_whose_key_was_invalidated_is_registered_again_under_another)
{
	struct ur_mem *m = table(4);
	uint32_t old = add(m, IOVA, LEN, LOCAL), key = 0;

	cr_assert(ur_mem_invalidate(m, old, PD, false));
	cr_assert_eq(ur_mem_suspend(m, old), 0);
	cr_assert_eq(ur_mem_reregister(m, old, PD, bytes, LEN, IOVA, LOCAL, next_random(), &key),
		     0);
	cr_expect_neq(key, old);
	cr_expect_null(ur_mem_check(m, old, PD, IOVA, 1, 0));
	cr_expect_not_null(ur_mem_check(m, key, PD, IOVA, LEN, LOCAL));
	table_free(m);
}

Test(mem, release_before_suspend_is_our_own_bug, .signal = SIGABRT)
{
	struct ur_mem *m = table(1);

	ur_mem_release(m, add(m, IOVA, LEN, LOCAL));
}

Test(mem, reregister_before_suspend_is_our_own_bug, .signal = SIGABRT)
{
	struct ur_mem *m = table(1);
	uint32_t key;

	ur_mem_reregister(m, add(m, IOVA, LEN, LOCAL), PD, bytes, LEN, IOVA, LOCAL, 1, &key);
}
