/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_OOO_H
#define UR_TRANSPORT_OOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "transport/selective.h"
#include "transport/wq.h"

/*
 * The out-of-order context of an extended responder: what has arrived beyond ePSN, what has to wait
 * for its turn, and which memory was written early (docs/design/loss.md). Held from the first gap until
 * it closes; a bounded pool a worker.
 *
 * Thread class: the QP's worker.
 */
struct ur_ooo;

struct ur_ooo_pool {
	SLIST_HEAD(, ur_ooo) free;
	uint32_t free_cnt, cnt;
};

/* Bytes for `cnt` contexts whose receives have at most `max_sge` SGEs; 64-byte aligned. */
size_t ur_ooo_pool_size(uint32_t cnt, uint32_t max_sge);
void ur_ooo_pool_init(struct ur_ooo_pool *p, void *memory, uint32_t cnt, uint32_t max_sge);

#endif
