/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "mem/slabs.h"

#define SLAB 4096
#define MAX  8

static struct ur_slabs s;
static char *memory;

static void setup(void)
{
	memory = aligned_alloc(64, MAX * SLAB);
	memset(memory, 0xa5, MAX * SLAB);
	ur_slabs_init(&s, SLAB, MAX);
}

static void teardown(void)
{
	free(memory);
}

TestSuite(slabs, .init = setup, .fini = teardown);

static void add(unsigned n)
{
	while (n--)
		ur_slabs_add(&s, memory + s.cnt * SLAB);
}

static void *take(size_t bytes)
{
	void *p = ur_slabs_take(&s, bytes, 0);

	ur_slabs_validate(&s);
	return p;
}

static void give(void *p)
{
	ur_slabs_give(&s, p);
	ur_slabs_validate(&s);
}

/* LOSS-SLAB-01 */
Test(slabs, without_a_slab_nothing_can_be_taken)
{
	cr_assert_null(take(1));
	cr_assert_eq(ur_slabs_wanted(&s), 0, "nothing is in use that should be doubled");
}

/* LOSS-SLAB-01 */
Test(slabs, one_size_does_not_take_the_slab_of_another)
{
	void *small, *large;

	add(2);
	small = take(100);
	large = take(1000);
	cr_assert(small && large);
	cr_assert_null(take(2000));
	give(small);
	cr_assert_not_null(take(2000), "the slab is free for any size again");
	cr_assert_eq(s.object_cnt, 2);
}

/* LOSS-SLAB-01 */
Test(slabs, larger_than_a_slab_is_refused)
{
	add(1);
	cr_assert_null(take(SLAB));
	cr_assert_not_null(take(3500));
}

/* LOSS-SLAB-02 */
Test(slabs, what_must_stay_free_is_for_those_who_keep_less)
{
	add(2);
	cr_assert_not_null(ur_slabs_take(&s, 1000, 1));
	cr_assert_null(ur_slabs_take(&s, 100, 1));
	cr_assert_not_null(ur_slabs_take(&s, 1000, 1), "its slab has room");
	cr_assert_not_null(ur_slabs_take(&s, 100, 0));
}

/* LOSS-SLAB-03 */
Test(slabs, more_are_wanted_until_half_are_free_or_the_limit_is_reached)
{
	add(1);
	cr_assert_eq(ur_slabs_wanted(&s), 0);
	cr_assert_not_null(take(3000));
	cr_assert_eq(ur_slabs_wanted(&s), 1);
	add(1);
	cr_assert_eq(ur_slabs_wanted(&s), 0);
	for (unsigned n = 0; n < 4; n++) {
		add(ur_slabs_wanted(&s));
		cr_assert_not_null(take(3000));
	}
	cr_assert_eq(s.cnt, MAX);
	cr_assert_eq(ur_slabs_wanted(&s), 0);
}

/* LOSS-SLAB-01: objects never overlap, and all come back. */
Test(slabs, random_use_agrees_with_a_model)
{
	struct {
		unsigned char *p;
		size_t bytes;
	} held[200] = {0};
	uint64_t used = 0;

	add(MAX);
	srand(1);
	for (unsigned n = 0; n < 20000; n++) {
		unsigned i = (unsigned)rand() % 200;

		if (held[i].p) {
			for (size_t b = 0; b < held[i].bytes; b++)
				cr_assert_eq(held[i].p[b], i);
			used -= held[i].bytes;
			give(held[i].p);
			held[i].p = NULL;
		} else {
			held[i].bytes = 1 + (size_t)rand() % (n & 1 ? 100 : 3000);
			held[i].p = take(held[i].bytes);
			if (!held[i].p)
				continue;
			cr_assert_eq((uintptr_t)held[i].p % 16, 0);
			memset(held[i].p, (int)i, held[i].bytes);
			used += held[i].bytes;
		}
		cr_assert_geq(s.used_bytes, used);
	}
	for (unsigned i = 0; i < 200; i++)
		if (held[i].p)
			give(held[i].p);
	cr_assert_eq(s.object_cnt, 0);
	cr_assert_eq(s.free_cnt, MAX);
	cr_assert_gt(s.peak_bytes, 4 * SLAB);
}

/* LOSS-OWN-01 */
Test(slabs, an_object_in_memory_of_the_owner_is_given_back_without_effect)
{
	static _Alignas(16) uint8_t mine[UR_SLABS_OWN_BYTES(100)];
	void *own;

	ur_slabs_init(&s, 4096, 0);
	own = ur_slabs_own(mine);
	cr_assert_eq((uintptr_t)own % 16, 0);
	cr_assert((uint8_t *)own + 100 <= mine + sizeof(mine));
	memset(own, 0xff, 100);
	ur_slabs_give(&s, own);
	cr_assert_eq(s.object_cnt, 0);
	ur_slabs_validate(&s);
}
