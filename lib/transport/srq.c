/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/srq.h"

#include <errno.h>
#include <string.h>

static size_t element_bytes(const struct ur_rwqe *rwqe)
{
	return sizeof(*rwqe) + rwqe->num_sge * sizeof(struct ur_sge);
}

void ur_srq_init(struct ur_srq *srq, void *ring, uint32_t entries, uint32_t max_sge, uint32_t pd,
		 void *user)
{
	ur_rq_init(&srq->rq, ring, entries, max_sge);
	srq->pd = pd;
	srq->limit = 0;
	srq->qp_cnt = 0;
	srq->pool = 0;
	srq->core = NULL;
	srq->user = user;
}

const struct ur_rwqe *ur_srq_ahead(const struct ur_srq *srq)
{
	uint32_t head = ur_wq_head(&srq->rq);

	return ur_wq_tail(&srq->rq) - head > UR_SRQ_AHEAD ? ur_rq_at(&srq->rq, head + UR_SRQ_AHEAD)
							  : NULL;
}

bool ur_srq_take(struct ur_srq *srq, struct ur_rwqe *dst, bool *limit_reached)
{
	uint32_t head = ur_wq_head(&srq->rq);
	uint32_t posted = ur_wq_tail(&srq->rq) - head;
	const struct ur_rwqe *src = ur_rq_at(&srq->rq, head), *ahead = ur_srq_ahead(srq);

	*limit_reached = false;
	if (posted == 0)
		return false;
	if (ahead)
		__builtin_prefetch(ahead);
	memcpy(dst, src, element_bytes(src));
	ur_wq_release(&srq->rq, head + 1);
	/* SRQ-LIMIT-01: once; for another event the limit has to be set again. */
	if (srq->limit && posted - 1 < srq->limit) {
		srq->limit = 0;
		*limit_reached = true;
	}
	return true;
}

int ur_srq_resize(struct ur_srq *srq, void *ring, uint32_t entries)
{
	struct ur_wq *old = &srq->rq;
	uint32_t head = ur_wq_head(old), tail = ur_wq_tail(old);
	struct ur_wq new;

	if (entries == 0 || entries > UR_WQ_ENTRIES_MAX || tail - head > entries)
		return -EINVAL;
	ur_rq_init(&new, ring, entries, old->max_sge);
	/* Indices keep counting, so that remembered ones stay valid; places change. */
	for (uint32_t i = head; i != tail; i++) {
		const struct ur_rwqe *src = ur_rq_at(old, i);

		memcpy(ur_rq_at(&new, i), src, element_bytes(src));
	}
	old->ring = new.ring;
	old->mask = new.mask;
	old->entries = new.entries;
	return 0;
}
