/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_SLOTS_H
#define UR_ENGINE_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/qp.h"

/*
 * The QPs of an engine and their numbers. A QPN is, from the high end: prefix, generation, slot, worker. The prefix belongs to
 * an endpoint that shares its address with others, and else has no bits.
 * Slots 0 and 1 stay empty, which keeps the numbers of QP0 and QP1 free. Free slots form a queue: the one
 * that has been free longest is used next, under another generation, and not before its time-wait
 * is over (packets of the old QP may still be on their way).
 *
 * Thread class: the worker.
 */
struct ur_slots {
	struct ur_qp *qps; /* [0, slot_cnt) */
	uint32_t slot_cnt; /* a power of two */
	uint8_t worker_bits, slot_bits;
	uint16_t worker;
	struct ur_qpn_prefix prefix;
	uint32_t *free;	      /* a ring of slot_cnt: [free_head, free_head + free_cnt) */
	uint64_t *free_after; /* when the slot's time-wait is over, by slot */
	uint32_t free_head, free_cnt;
	uint32_t live;
};

size_t ur_slots_size(uint32_t max_qp);
/* `max_qp` QPs at once. At least one bit is left for the generation. */
void ur_slots_init(struct ur_slots *s, void *memory, uint32_t max_qp, uint16_t workers,
		   uint16_t worker, struct ur_qpn_prefix prefix);

/*
 * Returns a QP of which only the number is set; NULL when all are in use or in time-wait. `random`, fresh
 * for each call, is its generation, so that a number does not reveal the next one.
 */
struct ur_qp *ur_slots_take(struct ur_slots *s, uint64_t now_ns, uint64_t random);
/* Returns a QP; its number is invalid at once, its slot free after free_after_ns. */
void ur_slots_give(struct ur_slots *s, struct ur_qp *qp, uint64_t free_after_ns);

/* The number of slots whose time-wait is not over. */
uint32_t ur_slots_time_wait(const struct ur_slots *s, uint64_t now_ns);

/* The slot of that number, whether or not the QP exists. */
static inline struct ur_qp *ur_slots_at(const struct ur_slots *s, struct ur_qpn qpn)
{
	return &s->qps[(qpn.v >> s->worker_bits) & (s->slot_cnt - 1)];
}

/* The QP with that number, or NULL. */
static inline struct ur_qp *ur_slots_find(const struct ur_slots *s, struct ur_qpn qpn)
{
	struct ur_qp *qp = ur_slots_at(s, qpn);

	return __builtin_expect(qp->qpn.v == qpn.v && qp->core, 1) ? qp : NULL;
}

#endif
