/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/window.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "wire/assert.h"

#define TAGS	(1u << UR_WINDOW_TAG_BITS)
#define WRITERS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define RIGHTS	(WRITERS | IBV_ACCESS_REMOTE_READ)

uint32_t ur_windows_entries(uint32_t max_mr)
{
	uint32_t cnt = 1;

	while (cnt < max_mr && cnt < UR_WINDOWS_MAX)
		cnt <<= 1;
	return cnt;
}

static size_t table_bytes(uint32_t entries)
{
	return (size_t)entries * ((sizeof(struct ur_window) + 63) & ~(size_t)63);
}

size_t ur_windows_size(uint32_t entries)
{
	return table_bytes(entries) + entries * sizeof(uint32_t);
}

void ur_windows_init(struct ur_windows *w, void *memory, uint32_t entries)
{
	w->mask = entries - 1;
	w->at = memory;
	w->free = (uint32_t *)(void *)((uint8_t *)memory + table_bytes(entries));
	w->free_cnt = entries;
	for (uint32_t i = 0; i < entries; i++) {
		w->at[i] = (struct ur_window){0};
		w->free[i] = i;
	}
}

static struct ur_window *entry_of(const struct ur_mem *m, uint32_t key)
{
	return &m->windows.at[key >> UR_WINDOW_TAG_BITS & m->windows.mask];
}

bool ur_windows_own(const struct ur_mem *m, uint32_t key)
{
	uint32_t prefix = key >> UR_WINDOW_TAG_BITS;

	return prefix && entry_of(m, key)->prefix == prefix;
}

/* ---- writers take turns ---- */

static bool try_lock(struct ur_window *w, uint32_t *seq)
{
	*seq = atomic_load_explicit(&w->seq, memory_order_relaxed);
	if (*seq & 1 || !atomic_compare_exchange_strong_explicit(
				&w->seq, seq, *seq + 1, memory_order_acquire, memory_order_relaxed))
		return false;
	atomic_thread_fence(memory_order_release);
	return true;
}

/* A writer is done within a few stores. */
static uint32_t lock(struct ur_window *w)
{
	uint32_t seq;

	while (!try_lock(w, &seq))
		__builtin_ia32_pause();
	return seq;
}

static void unlock(struct ur_window *w, uint32_t seq)
{
	atomic_store_explicit(&w->seq, seq + 2, memory_order_release);
}

/* Locked. */
static void unbind(struct ur_mem *m, struct ur_window *w)
{
	if (!atomic_load_explicit(&w->key, memory_order_relaxed))
		return;
	atomic_store_explicit(&w->key, 0, memory_order_relaxed);
	atomic_fetch_sub_explicit(&m->mrs[w->region].windows, 1, memory_order_release);
}

/* ---- control ---- */

/* Whether a key of the prefix has been given to a region that still exists. */
static bool is_of_region(const struct ur_mem *m, uint32_t prefix)
{
	for (uint32_t tag = 0; tag < TAGS; tag++) {
		const struct ur_mr *mr =
			&m->mrs[ur_mem_slot(m, prefix << UR_WINDOW_TAG_BITS | tag)];

		if (mr->state == UR_MR_VALID && mr->given >> UR_WINDOW_TAG_BITS == prefix)
			return true;
	}
	return false;
}

int ur_window_alloc(struct ur_mem *m, uint32_t pd, bool type2, uint64_t random, uint32_t *key)
{
	struct ur_windows *all = &m->windows;
	uint32_t pick, slot, prefix, seq;
	struct ur_window *w;

	if (!all->free_cnt)
		return -ENOMEM;
	pick = (uint32_t)((random >> 32) * all->free_cnt >> 32);
	slot = all->free[pick];
	prefix = ((uint32_t)random >> UR_WINDOW_TAG_BITS & ~all->mask) | slot;
	/* MEM-KEY-02, MEM-KEY-03 */
	while (!prefix || prefix == all->at[slot].last || is_of_region(m, prefix))
		prefix = (prefix + all->mask + 1) & (UINT32_MAX >> UR_WINDOW_TAG_BITS);
	all->free[pick] = all->free[--all->free_cnt];
	w = &all->at[slot];
	seq = lock(w);
	atomic_store_explicit(&w->pd, pd, memory_order_relaxed);
	w->type2 = type2;
	w->prefix = w->last = prefix;
	unlock(w, seq);
	*key = prefix << UR_WINDOW_TAG_BITS;
	return 0;
}

void ur_window_suspend(struct ur_mem *m, uint32_t key)
{
	struct ur_window *w = entry_of(m, key);
	uint32_t seq = lock(w);

	UR_ASSERT(w->last == key >> UR_WINDOW_TAG_BITS);
	unbind(m, w);
	/* No bind that is still in a send queue succeeds any more. */
	atomic_store_explicit(&w->pd, 0, memory_order_relaxed);
	w->prefix = 0;
	unlock(w, seq);
}

void ur_window_free(struct ur_mem *m, uint32_t key)
{
	struct ur_window *w = entry_of(m, key);

	UR_ASSERT(w->last == key >> UR_WINDOW_TAG_BITS && !w->prefix);
	m->windows.free[m->windows.free_cnt++] = (uint32_t)(w - m->windows.at);
}

/* ---- workers ---- */

/* MW-BIND-01 */
static bool may_bind(const struct ur_mr *mr, const struct ur_window_bind *b, uint32_t pd)
{
	uint64_t off = b->addr - mr->iova;

	return b->lkey && atomic_load_explicit(&mr->key, memory_order_acquire) == b->lkey &&
	       mr->pd == pd && mr->access & IBV_ACCESS_MW_BIND && b->addr >= mr->iova &&
	       off <= mr->length && b->length <= mr->length - off &&
	       (!(b->access & WRITERS) || mr->access & IBV_ACCESS_LOCAL_WRITE);
}

static bool has_sane_access(const struct ur_window *w, uint32_t access)
{
	uint32_t known =
		RIGHTS | IBV_ACCESS_LOCAL_WRITE | (w->type2 ? (uint32_t)IBV_ACCESS_ZERO_BASED : 0);

	return !(access & ~known);
}

/* Locked. */
static bool bind(struct ur_mem *m, struct ur_window *w, const struct ur_window_bind *b, uint32_t pd,
		 uint32_t qpn)
{
	uint32_t region = ur_mem_slot(m, b->lkey);
	struct ur_mr *mr = &m->mrs[region];

	if (atomic_load_explicit(&w->pd, memory_order_relaxed) != pd ||
	    w->prefix != b->key >> UR_WINDOW_TAG_BITS ||
	    w->prefix != b->old_key >> UR_WINDOW_TAG_BITS || !has_sane_access(w, b->access))
		return false;
	if (w->type2 && (!b->length || atomic_load_explicit(&w->key, memory_order_relaxed)))
		return false;
	if (!b->length) {
		unbind(m, w);
		return true;
	}
	if (!may_bind(mr, b, pd))
		return false;
	unbind(m, w);
	w->region = region;
	atomic_fetch_add_explicit(&mr->windows, 1, memory_order_release);
	atomic_store_explicit(&w->base, mr->base + (b->addr - mr->iova), memory_order_relaxed);
	atomic_store_explicit(&w->iova, b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr,
			      memory_order_relaxed);
	atomic_store_explicit(&w->length, b->length, memory_order_relaxed);
	atomic_store_explicit(&w->access, b->access & RIGHTS, memory_order_relaxed);
	atomic_store_explicit(&w->qpn, w->type2 ? qpn : 0, memory_order_relaxed);
	atomic_store_explicit(&w->key, b->key, memory_order_relaxed);
	return true;
}

bool ur_window_bind(struct ur_mem *m, const struct ur_window_bind *b, uint32_t pd, uint32_t qpn)
{
	struct ur_window *w = entry_of(m, b->key);
	uint32_t seq;
	bool ok;

	if (!b->key || !try_lock(w, &seq))
		return false;
	ok = bind(m, w, b, pd, qpn);
	unlock(w, seq);
	return ok;
}

bool ur_window_invalidate(struct ur_mem *m, uint32_t key, uint32_t pd, uint32_t qpn)
{
	struct ur_window *w = entry_of(m, key);
	uint32_t seq;
	bool ok;

	if (!key || !try_lock(w, &seq))
		return false;
	ok = atomic_load_explicit(&w->key, memory_order_relaxed) == key &&
	     atomic_load_explicit(&w->pd, memory_order_relaxed) == pd && w->type2 &&
	     atomic_load_explicit(&w->qpn, memory_order_relaxed) == qpn;
	if (ok)
		unbind(m, w);
	unlock(w, seq);
	return ok;
}

void ur_windows_forget_qp(struct ur_mem *m, uint32_t qpn)
{
	for (uint32_t i = 0; i <= m->windows.mask; i++) {
		struct ur_window *w = &m->windows.at[i];
		uint32_t seq;

		if (!atomic_load_explicit(&w->key, memory_order_relaxed) ||
		    atomic_load_explicit(&w->qpn, memory_order_relaxed) != qpn)
			continue;
		seq = lock(w);
		if (w->type2 && atomic_load_explicit(&w->qpn, memory_order_relaxed) == qpn)
			unbind(m, w);
		unlock(w, seq);
	}
}

/* MW-CHECK-01 */
uint8_t *ur_window_check(const struct ur_mem *m, uint32_t key, uint32_t pd, uint32_t qpn,
			 uint64_t addr, uint64_t len, uint32_t access)
{
	const struct ur_window *w = entry_of(m, key);
	uint32_t seq = atomic_load_explicit(&w->seq, memory_order_acquire), bound;
	uint64_t iova, off, length;
	uint8_t *base;
	bool ok;

	if (!key || seq & 1 || atomic_load_explicit(&w->key, memory_order_relaxed) != key)
		return NULL;
	iova = atomic_load_explicit(&w->iova, memory_order_relaxed);
	off = addr - iova;
	length = atomic_load_explicit(&w->length, memory_order_relaxed);
	bound = atomic_load_explicit(&w->qpn, memory_order_relaxed);
	base = atomic_load_explicit(&w->base, memory_order_relaxed);
	ok = atomic_load_explicit(&w->pd, memory_order_relaxed) == pd && (!bound || bound == qpn) &&
	     addr >= iova && off <= length && len <= length - off &&
	     (atomic_load_explicit(&w->access, memory_order_relaxed) & access) == access;
	/* Fields of two binds grant nothing. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&w->seq, memory_order_relaxed) != seq)
		return NULL;
	return ok ? base + off : NULL;
}
