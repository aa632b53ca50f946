/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_FRAME_H
#define UR_EDGE_FRAME_H

#include <rte_mbuf.h>

#include "wire/tx.h"

/*
 * From an engine's descriptor to a frame: payload, pad and ICRC behind the headers that the engine
 * wrote. Payload is copied into the mbuf or, where that is safe, attached as an external buffer.
 *
 * Attaching is safe for ports whose driver copies the frame before its TX burst returns: what the
 * port did not take is copied then (ur_frame_own()), so that no frame refers to a user's memory
 * when the engine runs again. A request may therefore complete as soon as it is acknowledged.
 *
 * Thread class: the worker.
 */
struct ur_framer {
	struct rte_mempool *pool; /* for the pieces of a frame */
	bool attach;		  /* the port takes chained mbufs and copies before it returns */
	struct rte_mbuf_ext_shared_info shared; /* of all payload attached */
};

void ur_framer_init(struct ur_framer *f, struct rte_mempool *pool, bool attach);

/* Finishes the frame whose headers lie at the start of m. */
void ur_frame_finish(struct ur_framer *f, struct rte_mbuf *m, const struct ur_tx *tx);

/*
 * Copies attached payload into the frames' first mbufs: nothing of theirs refers to a user's memory
 * after it.
 */
void ur_frame_own(struct rte_mbuf **pkts, unsigned n);

#endif
