/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/slabs.h"

#include <stdbool.h>

#include "wire/assert.h"

#define UNIT ((size_t)64) /* sizes are multiples of it */

/* At the start of each slab; objects follow. */
struct ur_slabs_slab {
	LIST_ENTRY(ur_slabs_slab) link; /* in `free`, or in the class's `room` if it has some */
	SLIST_HEAD(, ur_slabs_object) given;
	uint32_t live; /* objects that are taken */
	uint32_t next; /* offset in bytes from which objects have never been used */
	uint32_t bytes;
	uint32_t class;
};

/* Before each object: where it belongs. */
struct ur_slabs_object {
	union {
		struct ur_slabs_slab *slab;	   /* taken; NULL: the owner's memory */
		SLIST_ENTRY(ur_slabs_object) link; /* given */
	};
};

#define HEADER ((size_t)UR_SLABS_HEADER)
#define FIRST  ((sizeof(struct ur_slabs_slab) + UNIT - 1) & ~(UNIT - 1))

_Static_assert(sizeof(struct ur_slabs_object) <= HEADER, "the header keeps objects aligned");

/* LOSS-SLAB-03 */
static void update_wanted(struct ur_slabs *s)
{
	uint32_t used = s->cnt - s->free_cnt, wanted = 0;

	if (s->free_cnt < used)
		wanted = used - s->free_cnt;
	if (wanted > s->max_cnt - s->cnt)
		wanted = s->max_cnt - s->cnt;
	__atomic_store_n(&s->wanted, wanted, __ATOMIC_RELAXED);
}

/*
 * Sizes in units of 64 bytes: all up to 16, then eight for each power of two. Rounds *bytes up to its class.
 */
static uint32_t class_of(size_t *bytes)
{
	uint32_t units = (uint32_t)((*bytes + UNIT - 1) / UNIT);
	unsigned shift = units < 16 ? 0 : 28 - (unsigned)__builtin_clz(units);

	units = (units + (1u << shift) - 1) >> shift;
	*bytes = (size_t)(units << shift) * UNIT;
	return 8 * shift + units - 1;
}

void ur_slabs_init(struct ur_slabs *s, uint32_t slab_bytes, uint32_t max_cnt)
{
	*s = (struct ur_slabs){.slab_bytes = slab_bytes, .max_cnt = max_cnt};
	LIST_INIT(&s->free);
	for (unsigned i = 0; i < UR_SLABS_CLASSES; i++)
		LIST_INIT(&s->room[i]);
}

void ur_slabs_add(struct ur_slabs *s, void *memory)
{
	struct ur_slabs_slab *slab = memory;

	UR_ASSERT(((uintptr_t)memory & (UNIT - 1)) == 0 && s->cnt < s->max_cnt);
	LIST_INSERT_HEAD(&s->free, slab, link);
	s->cnt++;
	s->free_cnt++;
	update_wanted(s);
}

static bool has_room(const struct ur_slabs *s, const struct ur_slabs_slab *slab)
{
	return !SLIST_EMPTY(&slab->given) || slab->next + slab->bytes <= s->slab_bytes;
}

/* LOSS-SLAB-02 */
static struct ur_slabs_slab *open_slab(struct ur_slabs *s, uint32_t class, size_t bytes,
				       uint32_t keep)
{
	struct ur_slabs_slab *slab = LIST_FIRST(&s->free);

	if (!slab || s->free_cnt <= keep || FIRST + bytes > s->slab_bytes)
		return NULL;
	LIST_REMOVE(slab, link);
	s->free_cnt--;
	update_wanted(s);
	*slab = (struct ur_slabs_slab){.next = FIRST, .bytes = (uint32_t)bytes, .class = class};
	SLIST_INIT(&slab->given);
	LIST_INSERT_HEAD(&s->room[class], slab, link);
	return slab;
}

/* LOSS-SLAB-01 */
void *ur_slabs_take(struct ur_slabs *s, size_t bytes, uint32_t keep)
{
	struct ur_slabs_object *o;
	struct ur_slabs_slab *slab;
	uint32_t class;

	bytes += HEADER;
	if (bytes > s->slab_bytes)
		return NULL;
	class = class_of(&bytes);
	UR_ASSERT(class < UR_SLABS_CLASSES);
	slab = LIST_FIRST(&s->room[class]);
	if (!slab)
		slab = open_slab(s, class, bytes, keep);
	if (!slab)
		return NULL;
	o = SLIST_FIRST(&slab->given);
	if (o) {
		SLIST_REMOVE_HEAD(&slab->given, link);
	} else {
		o = (struct ur_slabs_object *)(void *)((char *)slab + slab->next);
		slab->next += slab->bytes;
	}
	slab->live++;
	if (!has_room(s, slab))
		LIST_REMOVE(slab, link);
	o->slab = slab;
	s->object_cnt++;
	s->used_bytes += slab->bytes;
	if (s->used_bytes > s->peak_bytes)
		s->peak_bytes = s->used_bytes;
	return (char *)o + HEADER;
}

void ur_slabs_give(struct ur_slabs *s, void *object)
{
	struct ur_slabs_object *o = (void *)((char *)object - HEADER);
	struct ur_slabs_slab *slab = o->slab;
	bool had_room;

	if (!slab)
		return;
	had_room = has_room(s, slab);
	UR_ASSERT(slab->live > 0);
	s->object_cnt--;
	s->used_bytes -= slab->bytes;
	SLIST_INSERT_HEAD(&slab->given, o, link);
	if (!had_room)
		LIST_INSERT_HEAD(&s->room[slab->class], slab, link);
	if (--slab->live)
		return;
	LIST_REMOVE(slab, link);
	LIST_INSERT_HEAD(&s->free, slab, link);
	s->free_cnt++;
	update_wanted(s);
}

/* LOSS-OWN-01 */
void *ur_slabs_own(void *memory)
{
	((struct ur_slabs_object *)memory)->slab = NULL;
	return (char *)memory + HEADER;
}

void ur_slabs_validate(const struct ur_slabs *s)
{
	const struct ur_slabs_slab *slab;
	uint32_t free_cnt = 0;

	LIST_FOREACH(slab, &s->free, link)
	free_cnt++;
	UR_ASSERT(free_cnt == s->free_cnt && free_cnt <= s->cnt && s->cnt <= s->max_cnt);
	UR_ASSERT(s->used_bytes <= s->peak_bytes && s->wanted <= s->max_cnt - s->cnt);
	UR_ASSERT(!s->object_cnt == !s->used_bytes && !s->object_cnt == (free_cnt == s->cnt));
	for (uint32_t i = 0; i < UR_SLABS_CLASSES; i++) {
		LIST_FOREACH(slab, &s->room[i], link)
		UR_ASSERT(slab->class == i && slab->live && has_room(s, slab));
	}
}
