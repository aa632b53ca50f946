/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MEM_MEM_H
#define UR_MEM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Memory regions and their keys (IBA 10.6). An endpoint has one table. Control threads write it
 * under the endpoint's lock; all workers read it without a lock. An entry is valid if its key
 * matches. A writer stores the key last (with release semantics) and clears it first.
 *
 * A key has 32 random bits. Its low bits are the number of the entry, which is also chosen at
 * random, so that a guess succeeds with probability regions / 2^32. lkey and rkey are the same
 * number. Key 0 is never valid.
 */
/* In addition to enum ibv_access_flags: a peer may invalidate the key. MEM-INV-02 */
#define UR_ACCESS_REMOTE_INVALIDATE (1u << 16)

struct ur_mem; /* mem/table.h */

/* Maximum number of regions. 8 bits of a key are random in addition to the choice of its entry. */
#define UR_MEM_MAX (1u << 24)

/*
 * Bytes of memory for a table of `max_mr` regions, at most UR_MEM_MAX (the caller checks). The
 * memory is aligned to 64 bytes and belongs to the caller, who keeps it as long as the table is in
 * use. ur_mem_init() returns the table, which is at its start.
 */
size_t ur_mem_size(uint32_t max_mr);
struct ur_mem *ur_mem_init(void *memory, uint32_t max_mr);

/* True if the arguments are valid for ur_mem_register(). */
bool ur_mem_sane(uint32_t pd, const void *base, uint64_t length, uint64_t iova, uint32_t access);

/*
 * Registers [base, base + length), which peers and work requests address from `iova` on. The memory
 * stays the caller's and must outlive the region. `random` is 64 fresh random bits. Returns 0 and
 * sets *key; -ENOMEM if the table is full; -EINVAL for pd 0, an address range that wraps, unknown
 * access bits, or remote write or atomic without local write. IBV_ACCESS_MW_BIND allows memory windows.
 * Bits of IBV_ACCESS_OPTIONAL_RANGE are ignored. A key differs from the previous key of the same entry. Thread class: control.
 */
int ur_mem_register(struct ur_mem *m, uint32_t pd, void *base, uint64_t length, uint64_t iova,
		    uint32_t access, uint64_t random, uint32_t *key);

/*
 * Gives the region of `old_key` new properties (see ur_mem_register()), and a new key if `old_key` was invalidated
 * before it was suspended, or the same key. `old_key` must be the last key of its entry; -EINVAL otherwise. No worker
 * may be using the region: after ur_mem_suspend() the caller has waited until every worker has
 * passed a quiescent point. Thread class: control.
 */
int ur_mem_reregister(struct ur_mem *m, uint32_t old_key, uint32_t pd, void *base, uint64_t length,
		      uint64_t iova, uint32_t access, uint64_t random, uint32_t *key);

/*
 * ur_mem_suspend() clears the key; the entry stays reserved until ur_mem_release(). In between the
 * caller waits until every worker has passed a quiescent point. -EINVAL if no region with this key
 * is registered. Thread class: control.
 */
int ur_mem_suspend(struct ur_mem *m, uint32_t key);
/*
 * After ur_mem_suspend() and a quiescent point: true if a window is bound to the region. Then the key is in force again,
 * if it was before, and the region stays. Thread class: control.
 */
bool ur_mem_keep_bound(struct ur_mem *m, uint32_t key);
int ur_mem_release(struct ur_mem *m, uint32_t key);

/*
 * Memory windows (window.h). A key's high 24 bits, its prefix, belong to the window until that is freed; the low 8 bits are
 * the program's.
 */
#define UR_WINDOW_TAG_BITS 8
/* Windows of a table of `max_mr` regions: as many, but at most these. */
#define UR_WINDOWS_MAX 8192u
uint32_t ur_windows_entries(uint32_t max_mr);

/*
 * Allocates a window of a protection domain, bound to nothing. *key is one of its keys, with tag 0. `random`: 64 fresh
 * random bits. 0 or -ENOMEM. Thread class: control.
 */
int ur_window_alloc(struct ur_mem *m, uint32_t pd, bool type2, uint64_t random, uint32_t *key);
/*
 * suspend takes the key out of force, for ever; free gives the entry back, after every worker has passed a quiescent
 * point. Thread class: control.
 */
void ur_window_suspend(struct ur_mem *m, uint32_t key);
void ur_window_free(struct ur_mem *m, uint32_t key);

#ifdef __cplusplus
}
#endif

#endif
