/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_LOSS_MEMORY_H
#define UR_TEST_LOSS_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "mem/slabs.h"

#define LOSS_SLAB (128u << 10) /* holds a context of any tier */

/*
 * Memory for contexts of extended mode. UROCE_LOSS_FIRST in the environment is the span of the first tier, 64 by
 * default: with 16 contexts move to larger tiers all the time.
 */
struct loss_memory {
	struct ur_slabs slabs;
	void *memory;
};

static inline uint32_t loss_first(void)
{
	const char *first = getenv("UROCE_LOSS_FIRST");

	return first ? (uint32_t)atoi(first) : 64;
}

/* `cnt` slabs of `bytes` each. */
static inline void loss_memory_init(struct loss_memory *m, uint32_t cnt, uint32_t bytes)
{
	ur_slabs_init(&m->slabs, bytes, cnt);
	m->memory = cnt ? aligned_alloc(64, (size_t)cnt * bytes) : NULL;
	if (cnt)
		memset(m->memory, 0xa5, (size_t)cnt * bytes);
	for (uint32_t i = 0; i < cnt; i++)
		ur_slabs_add(&m->slabs, (char *)m->memory + (size_t)i * bytes);
}

static inline void loss_memory_free(struct loss_memory *m)
{
	free(m->memory);
	m->memory = NULL;
}

/* Takes all free slabs, so that only what has room in its slab can be taken; give_all_back() takes what it returns. */
static inline void **hog(struct ur_slabs *s)
{
	void **all = NULL, **object;

	while ((object = ur_slabs_take(s, s->slab_bytes * 3 / 4, 0))) {
		*object = all;
		all = object;
	}
	return all;
}

static inline void give_all_back(struct ur_slabs *s, void **all)
{
	while (all) {
		void **next = *all;

		ur_slabs_give(s, all);
		all = next;
	}
}

#endif
