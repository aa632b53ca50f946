/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#include "edge/slab.h"

static struct ur_slab slab;

static void start(void)
{
	ur_slab_init(&slab);
}

static void stop(void)
{
	ur_slab_destroy(&slab);
}

TestSuite(slab, .init = start, .fini = stop);

static void expect_fresh(const uint8_t *p, size_t bytes)
{
	cr_assert_not_null(p);
	cr_assert_eq((uintptr_t)p & 63, 0);
	for (size_t i = 0; i < bytes; i++)
		cr_assert_eq(p[i], 0);
}

/* Sizes on both sides of the boundaries between classes, and of the largest class. */
Test(slab, every_size_is_zeroed_aligned_and_its_own)
{
	static const size_t sizes[] = {0,    1,	   63,	 64,	65,    1023,   1024,   1025,
				       1087, 1088, 1500, 12608, 99999, 524287, 524288, 3000000};
	uint8_t *p[16];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 16; i++) {
			p[i] = ur_slab_alloc(&slab, sizes[i]);
			expect_fresh(p[i], sizes[i]);
			memset(p[i], (int)i + 1, sizes[i]);
		}
		for (unsigned i = 0; i < 16; i++) {
			for (size_t b = 0; b < sizes[i]; b++)
				cr_assert_eq(p[i][b], i + 1);
			ur_slab_free(&slab, p[i], sizes[i]);
		}
	}
}

Test(slab, objects_of_one_size_lie_close_and_are_used_again)
{
	enum { CNT = 1000, BYTES = 4096 };
	uint8_t *p[CNT], *again;
	unsigned near = 0;

	for (unsigned i = 0; i < CNT; i++) {
		p[i] = ur_slab_alloc(&slab, BYTES);
		expect_fresh(p[i], BYTES);
		near += i && (size_t)(p[i] - p[i - 1]) == BYTES;
	}
	/* 511 in a chunk of 2 MiB. */
	cr_assert_geq(near, CNT - 2u);
	memset(p[700], 0xff, BYTES);
	ur_slab_free(&slab, p[700], BYTES);
	again = ur_slab_alloc(&slab, BYTES);
	cr_assert_eq(again, p[700]);
	expect_fresh(again, BYTES);
	for (unsigned i = 0; i < CNT; i++)
		ur_slab_free(&slab, p[(i * 7) % CNT], BYTES);
	ur_slab_free(&slab, NULL, BYTES);
}

/* A full chunk that gets room again is used, and empty chunks but one are returned to the system. */
Test(slab, full_chunks_come_back_and_empty_ones_go)
{
	enum { PER_CHUNK = 4, CNT = 4 * PER_CHUNK };
	const size_t bytes = 500000;
	uint8_t *p[CNT];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < CNT; i++) {
			p[i] = ur_slab_alloc(&slab, bytes);
			cr_assert_not_null(p[i]);
			p[i][bytes - 1] = 1;
		}
		for (unsigned i = round; i < CNT; i += 2)
			ur_slab_free(&slab, p[i], bytes);
		for (unsigned i = round; i < CNT; i += 2) {
			p[i] = ur_slab_alloc(&slab, bytes);
			expect_fresh(p[i], bytes);
		}
		for (unsigned i = 0; i < CNT; i++)
			ur_slab_free(&slab, p[i], bytes);
	}
}

/* What is made and destroyed again and again keeps its chunk; of two empty ones the second goes. */
Test(slab, one_empty_chunk_of_a_size_is_kept)
{
	enum { PER_CHUNK = 4 };
	const size_t bytes = 500000;
	uint8_t *first = ur_slab_alloc(&slab, bytes), *p[2 * PER_CHUNK];
	struct ur_slab_class *class = NULL;

	ur_slab_free(&slab, first, bytes);
	for (unsigned i = 0; i < UR_SLAB_CLASSES; i++)
		if (slab.class[i].spare)
			class = &slab.class[i];
	cr_assert_not_null(class);
	for (unsigned i = 0; i < 2 * PER_CHUNK; i++)
		p[i] = ur_slab_alloc(&slab, bytes);
	cr_assert_eq(p[0], first, "of the chunk that was kept");
	expect_fresh(p[0], bytes);
	cr_assert_null(class->spare);
	for (unsigned i = 0; i < 2 * PER_CHUNK; i++)
		ur_slab_free(&slab, p[i], bytes);
	cr_assert_not_null(class->spare);
	cr_assert(LIST_EMPTY(&class->room));
}

Test(slab, object_of_its_own)
{
	uint8_t *p = ur_huge_alloc(5000000);

	expect_fresh(p, 5000000);
	ur_huge_free(p);
}
