/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_MEMORY_H
#define UR_SIM_MEMORY_H

#include <stddef.h>

/*
 * Memory of engines, regions and rings, aligned to 64 bytes. A case takes some megabytes and gives them back: blocks
 * are used again instead of going back to the kernel, because the page faults took more time than the cases, ten times
 * more with AddressSanitizer. With it a block is poisoned while it is free, and so is what lies behind its end.
 *
 * One thread. Contents are undefined.
 */

/* At least one byte. Never NULL: aborts without memory. */
void *sim_memory_take(size_t bytes);
/* What sim_memory_take() returned, or NULL. */
void sim_memory_give(void *p);

#endif
