/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MEM_WINDOW_H
#define UR_MEM_WINDOW_H

#include <stdatomic.h>

#include "mem/table.h"

/*
 * Memory windows (IBA 10.6.7): keys for a part of a region, which a queue pair puts in force without the control path
 * (docs/design/verbs.md). Control threads allocate and free them; workers bind, check and invalidate them.
 *
 * A key's high 24 bits, its prefix, belong to the window until that is freed, and are those of no region's key. The low 8
 * bits are the program's, which counts them by ibv_inc_rkey(). The prefix's low bits are the number of the entry.
 */

/*
 * Written under `seq`: the thread that makes it odd writes, and then makes it even again. A reader that finds the same even
 * number before and after has read fields of one moment.
 */
struct ur_window {
	_Atomic uint32_t seq;
	_Atomic uint32_t key;	 /* in force; 0: the window grants nothing */
	_Atomic uint32_t access; /* enum ibv_access_flags, remote rights only */
	_Atomic uint32_t qpn;	 /* type 2: of the only queue pair that it serves; type 1: 0 */
	_Atomic uint64_t iova, length;
	uint8_t *_Atomic base;
	_Atomic uint32_t pd;
	uint32_t region; /* number of the region's entry, while the key is in force; under seq */
	uint32_t prefix; /* 0: the entry is free; under seq */
	uint32_t last;	 /* the prefix before; control threads only */
	bool type2;	 /* under seq */
};

/* What a bind asks for. */
struct ur_window_bind {
	uint32_t old_key; /* any key of the window; only its prefix counts */
	uint32_t key;	  /* with the window's prefix */
	uint32_t lkey;	  /* of the region */
	uint32_t access;  /* enum ibv_access_flags; IBV_ACCESS_LOCAL_WRITE is ignored */
	uint64_t addr, length;
};

/* Bytes of memory for the windows of a table; it is given to ur_windows_init(), aligned to 64 bytes. */
size_t ur_windows_size(uint32_t entries);
void ur_windows_init(struct ur_windows *w, void *memory, uint32_t entries);

/* Whether a key with this prefix belongs to a window, so that no region gets it. Thread class: control. */
bool ur_windows_own(const struct ur_mem *m, uint32_t key);

/*
 * MW-BIND-01. Binds a window, for a queue pair of protection domain `pd`. A length of 0 unbinds one of type 1. False, and
 * nothing is changed: the window, the region or the queue pair are of different domains, the region does not allow
 * windows, or not these rights or bytes, or a window of type 2 is bound already. Thread class: any worker.
 */
bool ur_window_bind(struct ur_mem *m, const struct ur_window_bind *b, uint32_t pd, uint32_t qpn);
/* MW-INV-01. Unbinds a window of type 2 that is bound to this queue pair; else false. Thread class: any worker. */
bool ur_window_invalidate(struct ur_mem *m, uint32_t key, uint32_t pd, uint32_t qpn);
/* Unbinds all windows of type 2 that are bound to this queue pair. Thread class: any worker. */
void ur_windows_forget_qp(struct ur_mem *m, uint32_t qpn);

/* The bytes of a window, as ur_mem_check() returns those of a region. Thread class: any worker. MW-CHECK-01 */
uint8_t *ur_window_check(const struct ur_mem *m, uint32_t key, uint32_t pd, uint32_t qpn,
			 uint64_t addr, uint64_t len, uint32_t access);

/* What a peer of queue pair `qpn` names by an R_Key: bytes of a region or of a window. As ur_mem_check(). */
static inline uint8_t *ur_mem_check_remote(const struct ur_mem *m, uint32_t key, uint32_t pd,
					   uint32_t qpn, uint64_t addr, uint64_t len,
					   uint32_t access)
{
	uint8_t *at = ur_mem_check(m, key, pd, addr, len, access);

	return __builtin_expect(at != NULL, 1)
		       ? at
		       : ur_window_check(m, key, pd, qpn, addr, len, access);
}

#endif
