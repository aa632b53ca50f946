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

struct ur_mem; /* mem/table.h */

/* Regions at once: leaves 8 bits of a key to chance beside the choice of its entry. */
#define UR_MEM_MAX (1u << 24)

/*
 * Bytes of memory for a table of `max_mr` regions, at most UR_MEM_MAX (the caller checks). The
 * memory is aligned to 64 bytes and stays the caller's; the table lies at its start.
 */
size_t ur_mem_size(uint32_t max_mr);
struct ur_mem *ur_mem_init(void *memory, uint32_t max_mr);

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

#ifdef __cplusplus
}
#endif

#endif
