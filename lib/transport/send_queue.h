/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SEND_QUEUE_H
#define UR_TRANSPORT_SEND_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "transport/qp.h"
#include "transport/wq.h"
#include "wire/tx.h"

/*
 * What a send work queue element (WQE) means, whatever the transport and the loss engine: its class, how
 * many packets it takes, where its payload lies, and how it completes.
 *
 * Thread class: the QP's worker.
 */

/* What a send WQE's opcode means to a requester. */
enum op_class {
	OP_DATA = 1 << 0, /* SEND or WRITE: payload goes out */
	OP_WRITE = 1 << 1,
	OP_READ = 1 << 2,
	OP_ATOMIC = 1 << 3,
	OP_LOCAL = 1 << 4, /* no packet */
	OP_IMM = 1 << 5,
	OP_INV = 1 << 6,
	OP_RECV = 1 << 7, /* consumes a receive at the peer: needs credit */
};

static inline unsigned class_of(const struct ur_wqe *wqe)
{
	static const uint8_t op_class[] = {
		[IBV_WR_RDMA_WRITE] = OP_DATA | OP_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = OP_DATA | OP_WRITE | OP_IMM | OP_RECV,
		[IBV_WR_SEND] = OP_DATA | OP_RECV,
		[IBV_WR_SEND_WITH_IMM] = OP_DATA | OP_IMM | OP_RECV,
		[IBV_WR_RDMA_READ] = OP_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = OP_ATOMIC,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = OP_ATOMIC,
		[IBV_WR_LOCAL_INV] = OP_LOCAL,
		[IBV_WR_BIND_MW] = OP_LOCAL,
		[IBV_WR_SEND_WITH_INV] = OP_DATA | OP_INV | OP_RECV,
	};

	return op_class[wqe->opcode];
}

static inline struct ur_wqe *oldest_wqe(const struct ur_qp *qp)
{
	return ur_sq_at(&qp->sq, qp->req.head);
}

/* Packets of payload that the WQE takes, sent or (READ) asked for: at least 1, 0 for a local operation. */
uint32_t ur_send_queue_packets(const struct ur_qp *qp, const struct ur_wqe *wqe);

/* References bytes [off, off + len) of the WQE's payload, inline or by SGEs. False: an SGE is refused. */
bool ur_send_queue_gather(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off,
			  uint32_t len, struct ur_tx *tx);

/* Executes a local operation. False: it is not allowed, and has changed nothing. */
bool ur_send_queue_local(struct ur_qp *qp, const struct ur_wqe *wqe);

/* Completes the WQE at the head with `status` and takes it out of the queue. */
void ur_send_queue_finish(struct ur_qp *qp, enum ibv_wc_status status);

/* Completes local operations at the head that were executed; fails a WQE that is the oldest now. */
void ur_send_queue_advance(struct ur_qp *qp);

#endif
