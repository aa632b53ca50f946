/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MEM_SLABS_H
#define UR_MEM_SLABS_H

#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

/*
 * Objects of a few sizes from memory that the owner adds in slabs of equal size. A slab holds objects of one
 * size class at a time; when the last of them is given back it is free for any class. Take and give are O(1):
 * no system call, no lock. (edge/slab.h is for the control path, and gets its memory from the system.)
 *
 * The memory of slabs is the owner's, who may add slabs at any time until `max_cnt`, and keeps them as long as
 * the allocator is used.
 *
 * Thread class: one thread, except ur_slabs_wanted(): any.
 */
#define UR_SLABS_CLASSES 112 /* sizes in [64 bytes, 4 MiB] */

struct ur_slabs_slab;
struct ur_slabs_object;

struct ur_slabs {
	uint32_t slab_bytes;
	uint32_t max_cnt, cnt; /* slabs at most; slabs that were added */
	uint32_t free_cnt;     /* of cnt: without an object */
	uint32_t wanted;       /* slabs to be added; any thread reads it */
	uint32_t object_cnt;   /* objects that are taken */
	uint64_t used_bytes;   /* their size */
	uint64_t peak_bytes;   /* the largest used_bytes ever */
	LIST_HEAD(ur_slabs_list, ur_slabs_slab) free;
	struct ur_slabs_list room[UR_SLABS_CLASSES]; /* slabs of a class with a free object */
};

/* `slab_bytes` is a multiple of 64. No slab is there yet. */
void ur_slabs_init(struct ur_slabs *s, uint32_t slab_bytes, uint32_t max_cnt);

/* Adds a slab, 64-byte aligned. The caller checks ur_slabs_wanted(), or that there are fewer than max_cnt. */
void ur_slabs_add(struct ur_slabs *s, void *memory);

/*
 * An object of at least `bytes` bytes, 16-byte aligned, not zeroed. NULL: it would not fit a slab, or none has
 * room. If it needs a free slab, `keep` slabs remain free, or NULL is returned.
 */
void *ur_slabs_take(struct ur_slabs *s, size_t bytes, uint32_t keep);
void ur_slabs_give(struct ur_slabs *s, void *object);

/*
 * An object of `n` bytes in memory of the owner's, UR_SLABS_OWN_BYTES(n) of it, aligned to 16. It may be passed to
 * ur_slabs_give(), which then does nothing: the owner knows when it may be taken again.
 */
#define UR_SLABS_HEADER	      16 /* bytes before each object */
#define UR_SLABS_OWN_BYTES(n) (UR_SLABS_HEADER + (((n) + 15) & ~(size_t)15))
void *ur_slabs_own(void *memory);

/* Slabs that should be added soon, so that as many are free as are in use; 0 at the limit. */
static inline uint32_t ur_slabs_wanted(const struct ur_slabs *s)
{
	return __atomic_load_n(&s->wanted, __ATOMIC_RELAXED);
}

/* Asserts what is stated at the fields. */
void ur_slabs_validate(const struct ur_slabs *s);

#endif
