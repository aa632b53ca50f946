/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_FRAME_H
#define UR_EDGE_FRAME_H

#include <rte_mbuf.h>

#include "wire/tx.h"

/*
 * Builds frames from the engine's descriptors: appends payload, pad and ICRC to the headers that
 * the engine wrote. The payload is copied into the mbuf or, if that is safe, attached as an
 * external buffer.
 *
 * Attaching is safe if the driver copies the frame before its TX burst returns. ur_frame_own()
 * copies the payload of frames that the port did not accept. So no frame refers to the user's
 * memory when the engine runs again, and a request can complete as soon as it is acknowledged.
 *
 * Thread class: the worker.
 */
struct ur_framer {
	struct rte_mempool *pool; /* for the mbufs of a chain */
	bool attach;		  /* the port accepts chained mbufs and copies before it returns */
	struct rte_mbuf_ext_shared_info shared; /* shared by all attached payload */
};

void ur_framer_init(struct ur_framer *f, struct rte_mempool *pool, bool attach);

/* Completes the frame whose headers are at the start of `m`. */
void ur_frame_finish(struct ur_framer *f, struct rte_mbuf *m, const struct ur_tx *tx);

/*
 * Copies attached payload into the first mbuf of each frame, so that no frame refers to the user's
 * memory.
 */
void ur_frame_own(struct rte_mbuf **pkts, unsigned n);

#endif
