/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_NEAR_H
#define UR_ENGINE_NEAR_H

#include "transport/mode.h"
#include "transport/qp.h"

/*
 * Brings near what a queue pair needs before it needs it: with thousands of them none of it is in
 * the first caches. In two stages, because the first one's lines say where the rest is. All of it
 * are hints; a slot whose queue pair is gone does no harm.
 */
#define UR_NEAR_OWNER_BYTES 192 /* of the owner's object, with which it posts */

/* Cache lines [from, to) of the queue pair, bytes. */
static inline void ur_near_lines(const struct ur_qp *qp, size_t from, size_t to)
{
	for (const char *p = (const char *)qp + (from & ~(size_t)63); p < (const char *)qp + to;
	     p += 64)
		__builtin_prefetch(p, 1);
}

/* First stage of sending: identity, list, rings. */
static inline void ur_near_where(const struct ur_qp *qp)
{
	ur_near_lines(qp, 0, 1);
	ur_near_lines(qp, offsetof(struct ur_qp, sq_queue), offsetof(struct ur_qp, req));
}

/* Second stage: path, requester's state, the WQE of that index. */
static inline void ur_near_sender(const struct ur_qp *qp, uint32_t idx)
{
	__builtin_prefetch(ur_sq_at(&qp->sq, idx), 1);
	ur_near_lines(qp, offsetof(struct ur_qp, path), offsetof(struct ur_qp, ack_node));
	ur_near_lines(qp, offsetof(struct ur_qp, req),
		      ur_mode_is_ext(qp) ? offsetof(struct ur_qp, settle_node)
					 : offsetof(struct ur_qp, xreq));
}

/* Second stage for who is going to post: the owner's object as well. */
static inline void ur_near_poster(const struct ur_qp *qp)
{
	/* Nobody lives in the slot. */
	if (!qp->user)
		return;
	for (size_t i = 0; i < UR_NEAR_OWNER_BYTES; i += 64)
		__builtin_prefetch((const char *)qp->user + i);
	ur_near_sender(qp, ur_wq_tail(&qp->sq));
}

/* Receiving, and answers. */
static inline void ur_near_receiver(const struct ur_qp *qp)
{
	ur_near_lines(qp, 0, offsetof(struct ur_qp, sq_queue));
}

#endif
