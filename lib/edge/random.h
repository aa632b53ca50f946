/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_RANDOM_H
#define UR_EDGE_RANDOM_H

#include <stdint.h>
#include <unistd.h>

#include "wire/assert.h"

/*
 * 64 bits that cannot be guessed: keys, seeds, first PSNs. A system call, so not for the data path.
 *
 * EDGE-FORK-03: not by arc4random() of libbsd. Its lock may be another thread's when the process forks, and the child then waits
 * for ever.
 */
static inline uint64_t ur_random64(void)
{
	uint64_t r;

	/* It fails where the system call is missing or forbidden. */
	UR_ASSERT(getentropy(&r, sizeof(r)) == 0);
	return r;
}

#endif
