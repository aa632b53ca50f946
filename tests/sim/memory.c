/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif

#ifdef POISONING
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)	  ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* Smaller blocks come from malloc(), which keeps them itself. */
#define KEPT_MIN   (64u << 10)
#define KEPT_MAX   32
#define BEHIND_END 64

static struct block {
	uint8_t *p;
	size_t cap; /* a multiple of 64, BEHIND_END of it behind the end */
	bool used;
} blocks[KEPT_MAX];

static void *allocate(size_t bytes)
{
	void *p = aligned_alloc(64, bytes);

	if (!p)
		abort();
	return p;
}

static void *use(struct block *b, size_t bytes)
{
	b->used = true;
	ASAN_UNPOISON_MEMORY_REGION(b->p, bytes);
	ASAN_POISON_MEMORY_REGION(b->p + bytes, b->cap - bytes);
	return b->p;
}

void *sim_memory_take(size_t bytes)
{
	size_t cap = (bytes + 63) / 64 * 64 + BEHIND_END;
	struct block *unused = NULL;

	if (bytes < KEPT_MIN)
		return allocate((bytes + 63) / 64 * 64);
	for (struct block *b = blocks; b < blocks + KEPT_MAX; b++) {
		if (!b->used && b->p && b->cap == cap)
			return use(b, bytes);
		if (!b->used && (!unused || (unused->p && !b->p)))
			unused = b;
	}
	if (!unused)
		return allocate(cap);
	if (unused->p) {
		ASAN_UNPOISON_MEMORY_REGION(unused->p, unused->cap);
		free(unused->p);
	}
	*unused = (struct block){.p = allocate(cap), .cap = cap};
	return use(unused, bytes);
}

void sim_memory_give(void *p)
{
	for (struct block *b = blocks; p && b < blocks + KEPT_MAX; b++) {
		if (b->p != p)
			continue;
		b->used = false;
		ASAN_POISON_MEMORY_REGION(b->p, b->cap);
		return;
	}
	free(p);
}
