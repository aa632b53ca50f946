/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/slab.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/assert.h"

#define HUGE_BYTES  ((size_t)2 << 20)
#define SMALL_BYTES (HUGE_BYTES / 4) /* smaller objects are not worth a huge page */
#define LINE	    ((size_t)64)

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Large objects are allocated on their own, outside chunks. */
static bool is_alone(size_t bytes)
{
	return bytes >= SMALL_BYTES;
}

void *ur_huge_alloc(size_t bytes)
{
	size_t to = is_alone(bytes) ? HUGE_BYTES : LINE, span = round_up(bytes, to);
	void *p = aligned_alloc(to, span);

	if (!p)
		return NULL;
	/* madvise() must precede the first access. */
	if (is_alone(bytes))
		madvise(p, span, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

void ur_huge_free(void *p)
{
	free(p);
}

/* ---- chunks: their header, then objects ---- */

struct object {
	SLIST_ENTRY(object) link;
};

struct ur_slab_chunk {
	LIST_ENTRY(ur_slab_chunk) link; /* in the class's list `room` */
	SLIST_HEAD(, object) free;
	uint32_t live;
	uint32_t next; /* offset in bytes from which objects have never been used */
};

#define FIRST round_up(sizeof(struct ur_slab_chunk), LINE)

static bool has_room(const struct ur_slab_chunk *c, size_t bytes)
{
	return !SLIST_EMPTY(&c->free) || c->next + bytes <= HUGE_BYTES;
}

static struct ur_slab_chunk *chunk_of(void *p)
{
	return (struct ur_slab_chunk *)((uintptr_t)p & ~(uintptr_t)(HUGE_BYTES - 1));
}

/* Sizes in units of 64 bytes: all up to 16, then eight for each power of two. */
static struct ur_slab_class *class_of(struct ur_slab *s, size_t bytes)
{
	uint32_t lines = (uint32_t)(round_up(bytes ? bytes : 1, LINE) / LINE);
	unsigned shift = lines < 16 ? 0 : 28 - (unsigned)__builtin_clz(lines);
	struct ur_slab_class *class;

	lines = (uint32_t)round_up(lines, (size_t)1 << shift);
	class = &s->class[8 * shift + (lines >> shift) - 1];
	class->bytes = lines * LINE;
	return class;
}

static struct ur_slab_chunk *new_chunk(void)
{
	struct ur_slab_chunk *c = ur_huge_alloc(HUGE_BYTES);

	if (!c)
		return NULL;
	c->next = FIRST;
	SLIST_INIT(&c->free);
	return c;
}

static void *take(struct ur_slab_class *class)
{
	struct ur_slab_chunk *c = LIST_FIRST(&class->room);
	struct object *o;

	if (!c) {
		c = class->spare ? class->spare : new_chunk();
		if (!c)
			return NULL;
		class->spare = NULL;
		LIST_INSERT_HEAD(&class->room, c, link);
	}
	o = SLIST_FIRST(&c->free);
	if (o) {
		SLIST_REMOVE_HEAD(&c->free, link);
		memset(o, 0, class->bytes);
	} else {
		o = (struct object *)(void *)((char *)c + c->next);
		c->next += (uint32_t) class->bytes;
	}
	c->live++;
	if (!has_room(c, class->bytes))
		LIST_REMOVE(c, link);
	return o;
}

static void give(struct ur_slab_class *class, struct object *o)
{
	struct ur_slab_chunk *c = chunk_of(o);
	bool had_room = has_room(c, class->bytes);

	UR_ASSERT(c->live > 0);
	SLIST_INSERT_HEAD(&c->free, o, link);
	if (!had_room)
		LIST_INSERT_HEAD(&class->room, c, link);
	if (--c->live > 0)
		return;
	LIST_REMOVE(c, link);
	if (class->spare)
		ur_huge_free(c);
	else
		class->spare = c;
}

/* ---- slab ---- */

void ur_slab_init(struct ur_slab *s)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	for (unsigned i = 0; i < UR_SLAB_CLASSES; i++)
		LIST_INIT(&s->class[i].room);
}

void ur_slab_destroy(struct ur_slab *s)
{
	for (unsigned i = 0; i < UR_SLAB_CLASSES; i++)
		ur_huge_free(s->class[i].spare);
	pthread_mutex_destroy(&s->lock);
}

void *ur_slab_alloc(struct ur_slab *s, size_t bytes)
{
	void *p;

	if (is_alone(bytes))
		return ur_huge_alloc(bytes);
	pthread_mutex_lock(&s->lock);
	p = take(class_of(s, bytes));
	pthread_mutex_unlock(&s->lock);
	return p;
}

void ur_slab_free(struct ur_slab *s, void *p, size_t bytes)
{
	if (!p)
		return;
	if (is_alone(bytes)) {
		ur_huge_free(p);
		return;
	}
	pthread_mutex_lock(&s->lock);
	give(class_of(s, bytes), p);
	pthread_mutex_unlock(&s->lock);
}
