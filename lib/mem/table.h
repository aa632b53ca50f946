/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MEM_TABLE_H
#define UR_MEM_TABLE_H

#include <stdatomic.h>

#include "mem/mem.h"

/*
 * The layout of a table of memory regions (mem.h), and the check of every access to memory. For the
 * transports, which run this check for every packet; other users include mem.h only.
 */
struct ur_mr {
	_Atomic uint32_t key;	  /* 0: the entry grants nothing */
	uint32_t pd;		  /* protection domain handle, never 0 */
	uint64_t iova;		  /* address of the first byte in work requests and packets */
	uint64_t length;	  /* bytes */
	uint8_t *base;		  /* the first byte */
	uint32_t access;	  /* enum ibv_access_flags, UR_ACCESS_REMOTE_INVALIDATE */
	uint32_t given;		  /* last key of the entry, valid or not; control threads only */
	_Atomic uint32_t windows; /* bound to it (window.h) */
	uint8_t state;		  /* enum ur_mr_state; control threads only */
	bool revoked; /* suspended: the key had been invalidated before; control threads only */
};

enum ur_mr_state {
	UR_MR_FREE,  /* in the free list */
	UR_MR_VALID, /* registered; `key` may have been cleared by an invalidate since */
};

struct ur_window;

struct ur_windows {
	uint32_t mask; /* entries - 1 */
	uint32_t free_cnt;
	uint32_t *free; /* [0, free_cnt): numbers of free entries */
	struct ur_window *at;
};

struct ur_mem {
	uint32_t mask;	/* entries - 1 */
	uint32_t limit; /* maximum number of regions, at most the number of entries */
	uint32_t used;	/* regions registered now */
	uint32_t free_cnt;
	uint32_t *free; /* [0, free_cnt): numbers of free entries */
	struct ur_mr *mrs;
	struct ur_windows windows;
};

/*
 * Local or remote invalidate by a QP of protection domain `pd`: clears the key. Returns false if the
 * key is not valid, belongs to another domain or, for `remote`, if the region does not allow it, or if windows are
 * bound to the region.
 * Thread class: any worker.
 */
bool ur_mem_invalidate(struct ur_mem *m, uint32_t key, uint32_t pd, bool remote);

static inline uint32_t ur_mem_slot(const struct ur_mem *m, uint32_t key)
{
	return key & m->mask;
}

/*
 * Returns the bytes [addr, addr + len) of the region with this key. The key must be valid, belong to
 * `pd` and grant every right in `access`, and the range must be inside the region; NULL otherwise.
 * Every access to memory is decided here. Thread class: any worker. (IBA 10.6.3; MEM-CHECK-01,
 * MEM-CHECK-02, MEM-CHECK-03, MEM-CHECK-04, MEM-KEY-01)
 */
static inline __attribute__((always_inline)) uint8_t *ur_mem_check(const struct ur_mem *m,
								   uint32_t key, uint32_t pd,
								   uint64_t addr, uint64_t len,
								   uint32_t access)
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
