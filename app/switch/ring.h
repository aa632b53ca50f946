/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_RING_H
#define SWITCH_RING_H

#include "device.h"

/*
 * A port of kind ring: a link to the port of the same name, of another switch of this process or of the same one. Frames are
 * copied into an mbuf of the receiver, so that a switch whose queues are full holds no mbufs of its neighbour. One that is
 * longer than the receiver's arrives without bytes.
 */

/* NULL: a sentence in `err`. `max_frame`, `pool`: of this end. */
struct device *ring_open(const struct switch_spec *spec, uint32_t max_frame,
			 struct rte_mempool *pool, char *err, size_t cap);

/* False, with a sentence in `err`: a ring has one end only. */
bool ring_check(char *err, size_t cap);

#endif
