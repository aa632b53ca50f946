/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/table.h"
#include "mem/window.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "wire/assert.h"

#define WRITERS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define RIGHTS                                                                                     \
	(WRITERS | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |          \
	 UR_ACCESS_REMOTE_INVALIDATE)
/* Optional access flags are hints, which an implementation may ignore. */
#define HINTS ((uint32_t)IBV_ACCESS_OPTIONAL_RANGE)

static size_t entry_cnt(uint32_t max_mr)
{
	size_t cnt = 1;

	UR_ASSERT(max_mr <= UR_MEM_MAX);
	while (cnt < max_mr)
		cnt <<= 1;
	return cnt;
}

static size_t header_bytes(void)
{
	return (sizeof(struct ur_mem) + 63) & ~(size_t)63;
}

/* The windows stand behind the regions, on a cache line. */
static size_t windows_at(uint32_t max_mr)
{
	size_t regions = entry_cnt(max_mr) * (sizeof(struct ur_mr) + sizeof(uint32_t));

	return header_bytes() + ((regions + 63) & ~(size_t)63);
}

size_t ur_mem_size(uint32_t max_mr)
{
	return windows_at(max_mr) + ur_windows_size(ur_windows_entries(max_mr));
}

struct ur_mem *ur_mem_init(void *memory, uint32_t max_mr)
{
	uint32_t cnt = (uint32_t)entry_cnt(max_mr);
	struct ur_mem *m = memory;

	UR_ASSERT(((uintptr_t)memory & 63) == 0);
	m->mask = cnt - 1;
	m->limit = max_mr;
	m->used = 0;
	m->mrs = (struct ur_mr *)(void *)((uint8_t *)memory + header_bytes());
	m->free = (uint32_t *)(m->mrs + cnt);
	m->free_cnt = cnt;
	for (uint32_t i = 0; i < cnt; i++) {
		struct ur_mr *mr = &m->mrs[i];

		*mr = (struct ur_mr){.state = UR_MR_FREE};
		m->free[i] = i;
	}
	ur_windows_init(&m->windows, (uint8_t *)memory + windows_at(max_mr),
			ur_windows_entries(max_mr));
	return m;
}

/* True if [start, start + length) does not wrap around 2^64. */
static bool fits(uint64_t start, uint64_t length)
{
	return length == 0 || start <= UINT64_MAX - (length - 1);
}

/* MEM-REG-01 */
bool ur_mem_sane(uint32_t pd, const void *base, uint64_t length, uint64_t iova, uint32_t access)
{
	return pd != 0 && fits((uintptr_t)base, length) && fits(iova, length) &&
	       !(access & ~(RIGHTS | HINTS)) &&
	       (!(access & WRITERS) || (access & IBV_ACCESS_LOCAL_WRITE));
}

/*
 * MEM-KEY-01, MEM-KEY-03. Never 0, and never the previous key of the entry, so that a stale key
 * does not become valid again at once.
 */
static uint32_t new_key(const struct ur_mem *m, uint32_t slot, uint32_t random)
{
	uint32_t key = (random & ~m->mask) | slot;

	while (key == 0 || key == m->mrs[slot].given || ur_windows_own(m, key))
		key += m->mask + 1;
	return key;
}

static uint32_t grant(struct ur_mem *m, uint32_t slot, uint32_t pd, void *base, uint64_t length,
		      uint64_t iova, uint32_t access, uint32_t key)
{
	struct ur_mr *mr = &m->mrs[slot];

	mr->pd = pd;
	mr->iova = iova;
	mr->length = length;
	mr->base = base;
	mr->access = access;
	mr->state = UR_MR_VALID;
	mr->given = key;
	atomic_store_explicit(&mr->key, mr->given, memory_order_release);
	return mr->given;
}

/* The registered region with this key, even if the key has been cleared; NULL: none. */
static struct ur_mr *find_region(struct ur_mem *m, uint32_t key)
{
	struct ur_mr *mr = &m->mrs[ur_mem_slot(m, key)];

	return mr->state == UR_MR_VALID && mr->given == key ? mr : NULL;
}

int ur_mem_register(struct ur_mem *m, uint32_t pd, void *base, uint64_t length, uint64_t iova,
		    uint32_t access, uint64_t random, uint32_t *key)
{
	uint32_t pick, slot;

	if (!ur_mem_sane(pd, base, length, iova, access))
		return -EINVAL;
	if (m->used == m->limit)
		return -ENOMEM;
	/* MEM-KEY-02 */
	pick = (uint32_t)((random >> 32) * m->free_cnt >> 32);
	slot = m->free[pick];
	m->free[pick] = m->free[--m->free_cnt];
	m->used++;
	*key = grant(m, slot, pd, base, length, iova, access, new_key(m, slot, (uint32_t)random));
	return 0;
}

/* MEM-REREG-01 */
int ur_mem_reregister(struct ur_mem *m, uint32_t old_key, uint32_t pd, void *base, uint64_t length,
		      uint64_t iova, uint32_t access, uint64_t random, uint32_t *key)
{
	struct ur_mr *mr = find_region(m, old_key);
	uint32_t slot = ur_mem_slot(m, old_key);

	if (!mr || !ur_mem_sane(pd, base, length, iova, access))
		return -EINVAL;
	UR_ASSERT(atomic_load_explicit(&mr->key, memory_order_relaxed) == 0);
	*key = grant(m, slot, pd, base, length, iova, access,
		     mr->revoked ? new_key(m, slot, (uint32_t)random) : old_key);
	return 0;
}

/* MEM-DEREG-01 */
int ur_mem_suspend(struct ur_mem *m, uint32_t key)
{
	struct ur_mr *mr = find_region(m, key);

	if (!mr)
		return -EINVAL;
	mr->revoked = atomic_exchange_explicit(&mr->key, 0, memory_order_acq_rel) == 0;
	return 0;
}

/* MW-REGION-01 */
bool ur_mem_keep_bound(struct ur_mem *m, uint32_t key)
{
	struct ur_mr *mr = find_region(m, key);

	if (!mr || !atomic_load_explicit(&mr->windows, memory_order_acquire))
		return false;
	if (!mr->revoked)
		atomic_store_explicit(&mr->key, key, memory_order_release);
	return true;
}

int ur_mem_release(struct ur_mem *m, uint32_t key)
{
	struct ur_mr *mr = find_region(m, key);

	if (!mr)
		return -EINVAL;
	UR_ASSERT(atomic_load_explicit(&mr->key, memory_order_relaxed) == 0);
	mr->state = UR_MR_FREE;
	m->free[m->free_cnt++] = ur_mem_slot(m, key);
	m->used--;
	return 0;
}

/* MEM-INV-01, MEM-INV-02 */
bool ur_mem_invalidate(struct ur_mem *m, uint32_t key, uint32_t pd, bool remote)
{
	struct ur_mr *mr = &m->mrs[ur_mem_slot(m, key)];
	uint32_t in_force = key;

	if (!key || atomic_load_explicit(&mr->key, memory_order_acquire) != key || mr->pd != pd ||
	    (remote && !(mr->access & UR_ACCESS_REMOTE_INVALIDATE)) ||
	    atomic_load_explicit(&mr->windows, memory_order_acquire))
		return false;
	/* If two workers invalidate a key at the same time, only one of them succeeds. */
	return atomic_compare_exchange_strong_explicit(&mr->key, &in_force, 0, memory_order_acq_rel,
						       memory_order_relaxed);
}
