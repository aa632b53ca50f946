/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_PREFETCH_H
#define UR_ENGINE_PREFETCH_H

#include "transport/qp.h"

/*
 * Prefetches the state of a queue pair shortly before it is used: with thousands of queue pairs it is
 * not in the fast caches. There are two stages, because the lines of the first one hold the pointers to
 * the rest. These are hints only; a slot without a queue pair does no harm.
 */
#define UR_PREFETCH_OWNER_BYTES 128 /* of the object that `user` points to */

/* Cache lines [from, to) of the queue pair, bytes. */
static inline void ur_prefetch_lines(const struct ur_qp *qp, size_t from, size_t to)
{
	for (const char *p = (const char *)qp + (from & ~(size_t)63); p < (const char *)qp + to;
	     p += 64)
		__builtin_prefetch(p, 1);
}

/* First stage of sending: identity, list, rings. */
static inline void ur_prefetch_identity(const struct ur_qp *qp)
{
	ur_prefetch_lines(qp, 0, 1);
	ur_prefetch_lines(qp, offsetof(struct ur_qp, sq_queue), offsetof(struct ur_qp, req));
}

/* Second stage: path, requester's state, the WQE of that index. */
static inline void ur_prefetch_sender(const struct ur_qp *qp, uint32_t idx)
{
	__builtin_prefetch(ur_sq_at(&qp->sq, idx), 1);
	__builtin_prefetch(qp->path);
	ur_prefetch_lines(qp, offsetof(struct ur_qp, req), qp->ops->sending_end);
}

/* Second stage, when the application is about to post: also the application's object. */
static inline void ur_prefetch_poster(const struct ur_qp *qp)
{
	/* The slot is empty. */
	if (!qp->user)
		return;
	for (size_t i = 0; i < UR_PREFETCH_OWNER_BYTES; i += 64)
		__builtin_prefetch((const char *)qp->user + i);
	ur_prefetch_sender(qp, ur_wq_tail(&qp->sq));
}

/* The state that receiving and responding touch. */
static inline void ur_prefetch_receiver(const struct ur_qp *qp)
{
	ur_prefetch_lines(qp, 0, offsetof(struct ur_qp, sq_queue));
}

#endif
