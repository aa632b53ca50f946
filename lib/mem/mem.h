/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MEM_MEM_H
#define UR_MEM_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Memory regions and their keys (IBA 10.6). One table an endpoint, written by control threads under
 * the endpoint's lock, read by all workers without one: an entry is valid when its key matches,
 * and the key is stored last (release) and cleared first.
 *
 * A key is 32 random bits whose low bits happen to be the number of a free entry that was itself
 * chosen at random, so that guessing one succeeds with probability regions / 2^32. lkey and rkey
 * are the same number. Key 0 is never valid.
 */
/* Beside enum ibv_access_flags: a peer may invalidate the key. MEM-INV-02 */
#define UR_ACCESS_REMOTE_INVALIDATE (1u << 16)

struct ur_mr {
	_Atomic uint32_t key; /* 0: the entry grants nothing */
	uint32_t pd;	      /* protection domain handle, never 0 */
	uint64_t iova;	      /* the address by which the region's first byte is named */
	uint64_t length;      /* bytes */
	uint8_t *base;	      /* the first byte */
	uint32_t access;      /* enum ibv_access_flags, UR_ACCESS_REMOTE_INVALIDATE */
	uint32_t given;	      /* the key last given out, in force or not; control threads only */
	uint8_t state;	      /* enum ur_mr_state; control threads only */
};

enum ur_mr_state {
	UR_MR_FREE,  /* in the free list */
	UR_MR_VALID, /* registered; `key` may have been cleared by an invalidate since */
};

struct ur_mem {
	uint32_t mask;	/* entries - 1 */
	uint32_t limit; /* regions at once, at most entries */
	uint32_t used;	/* regions registered now */
	uint32_t free_cnt;
	uint32_t *free; /* [0, free_cnt): numbers of free entries */
	struct ur_mr *mrs;
};

/* Regions at once: leaves 8 bits of a key to chance beside the choice of its entry. */
#define UR_MEM_MAX (1u << 24)

/*
 * Bytes of memory for a table of `max_mr` regions, at most UR_MEM_MAX (the caller checks). The
 * memory is aligned for struct ur_mr.
 */
size_t ur_mem_size(uint32_t max_mr);
void ur_mem_init(struct ur_mem *m, void *memory, uint32_t max_mr);

/* Whether ur_mem_register() would take these, were there room. */
bool ur_mem_sane(uint32_t pd, const void *base, uint64_t length, uint64_t iova, uint32_t access);

/*
 * Registers [base, base + length) under addresses from `iova`. `random` is 64 fresh random bits.
 * Thread class: control. Returns 0 and the key, -ENOMEM when the table is full, -EINVAL for a
 * zero pd, an address range that wraps (its last byte beyond 2^64 - 1), unknown access bits, or
 * remote write/atomic without local write. Bits of IBV_ACCESS_OPTIONAL_RANGE are hints, ignored. A
 * key differs from the one last given out for the same entry.
 */
int ur_mem_register(struct ur_mem *m, uint32_t pd, void *base, uint64_t length, uint64_t iova,
		    uint32_t access, uint64_t random, uint32_t *key);

/*
 * Gives the region of entry ur_mem_slot(key) a new key and new properties (see register). The old
 * key, also one that was invalidated, must be the last one given out for it: -EINVAL otherwise.
 * No worker may be using the region: the caller has waited for quiescence after ur_mem_suspend().
 */
int ur_mem_reregister(struct ur_mem *m, uint32_t old_key, uint32_t pd, void *base, uint64_t length,
		      uint64_t iova, uint32_t access, uint64_t random, uint32_t *key);

/*
 * Takes the key out of force; the entry stays reserved until ur_mem_release(). The caller waits for
 * quiescence of every worker in between. -EINVAL when no such region is registered.
 */
int ur_mem_suspend(struct ur_mem *m, uint32_t key);
int ur_mem_release(struct ur_mem *m, uint32_t key);

/*
 * Local or remote invalidate by a QP of domain `pd`: the key grants nothing from now on. Thread
 * class: any worker. False when the key is not in force, belongs to another domain or, for
 * `remote`, when the region was not registered for it.
 */
bool ur_mem_invalidate(struct ur_mem *m, uint32_t key, uint32_t pd, bool remote);

static inline uint32_t ur_mem_slot(const struct ur_mem *m, uint32_t key)
{
	return key & m->mask;
}

/*
 * The bytes [addr, addr + len) under `key`, if the key is in force, belongs to `pd`, grants every
 * right in `access` and the range lies inside; NULL otherwise. Thread class: any worker.
 * (IBA 10.6.3; the one place where an access to memory is decided. MEM-CHECK-01, MEM-CHECK-02,
 * MEM-CHECK-03, MEM-CHECK-04, MEM-KEY-01.)
 */
static inline uint8_t *ur_mem_check(const struct ur_mem *m, uint32_t key, uint32_t pd,
				    uint64_t addr, uint64_t len, uint32_t access)
{
	const struct ur_mr *mr = &m->mrs[key & m->mask];
	uint64_t off;

	if (__builtin_expect(atomic_load_explicit(&mr->key, memory_order_acquire) != key || !key,
			     0))
		return NULL;
	off = addr - mr->iova;
	if (__builtin_expect(mr->pd != pd || (mr->access & access) != access || addr < mr->iova ||
				     off > mr->length || len > mr->length - off,
			     0))
		return NULL;
	return mr->base + off;
}

#endif
