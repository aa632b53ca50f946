/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/slots.h"

#include "wire/assert.h"
#include "wire/bits.h"

#define RESERVED 2 /* slots 0 and 1 */

size_t ur_slots_size(uint32_t max_qp)
{
	size_t n = ur_pow2_at_least(max_qp + RESERVED);

	return n * (sizeof(struct ur_qp) + sizeof(uint64_t) + sizeof(uint32_t));
}

void ur_slots_init(struct ur_slots *s, void *memory, uint32_t max_qp, uint16_t workers,
		   uint16_t worker, struct ur_qpn_prefix prefix)
{
	uint32_t n = ur_pow2_at_least(max_qp + RESERVED);

	*s = (struct ur_slots){
		.qps = memory,
		.slot_cnt = n,
		.slot_bits = (uint8_t)__builtin_ctz(n),
		.worker_bits = (uint8_t)__builtin_ctz(ur_pow2_at_least(workers)),
		.worker = worker,
		.prefix = prefix,
	};
	memset(memory, 0, ur_slots_size(max_qp));
	s->free_after = (uint64_t *)(void *)(s->qps + n);
	s->free = (uint32_t *)(void *)(s->free_after + n);
	for (uint32_t i = 0; i < max_qp; i++) {
		uint32_t slot = i + RESERVED;

		s->free[s->free_cnt++] = slot;
		/* The number this slot had last; take() chooses another generation. */
		s->qps[slot].qpn = ur_qpn_with_prefix(prefix, slot << s->worker_bits | worker);
	}
}

struct ur_qp *ur_slots_take(struct ur_slots *s, uint64_t now_ns, uint64_t random)
{
	unsigned shift = s->slot_bits + s->worker_bits;
	struct ur_qpn qpn;
	struct ur_qp *qp;
	uint32_t slot;

	if (!s->free_cnt || s->free_after[s->free[s->free_head]] > now_ns)
		return NULL;
	slot = s->free[s->free_head];
	s->free_head = (s->free_head + 1) & (s->slot_cnt - 1);
	s->free_cnt--;
	s->live++;
	qp = &s->qps[slot];
	/* SLOT-QPN-02, SLOT-QPN-03 */
	qpn = ur_qpn_with_prefix(s->prefix,
				 (uint32_t)random << shift | slot << s->worker_bits | s->worker);
	/* SLOT-QPN-01: 0xffffff is the multicast QPN */
	while (qpn.v == qp->qpn.v || qpn.v == UR_GROUP_QPN)
		qpn = ur_qpn_with_prefix(s->prefix, qpn.v + (1u << shift));
	memset(qp, 0, sizeof(*qp));
	qp->qpn = qpn;
	return qp;
}

/* SLOT-WAIT-01 */
void ur_slots_give(struct ur_slots *s, struct ur_qp *qp, uint64_t free_after_ns)
{
	uint32_t slot = (uint32_t)(qp - s->qps);

	UR_ASSERT(qp->core);
	qp->core = NULL;
	s->free_after[slot] = free_after_ns;
	s->free[(s->free_head + s->free_cnt) & (s->slot_cnt - 1)] = slot;
	s->free_cnt++;
	s->live--;
}

uint32_t ur_slots_time_wait(const struct ur_slots *s, uint64_t now_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->slot_cnt; i++)
		n += !s->qps[i].core && s->free_after[i] > now_ns;
	return n;
}
