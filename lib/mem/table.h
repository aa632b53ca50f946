/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MEM_TABLE_H
#define UR_MEM_TABLE_H

#include <stdatomic.h>

#include "mem/mem.h"

/* What a table of memory regions (mem.h) consists of, and the check of every access to memory. For the transports. */
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
