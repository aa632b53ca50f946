/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/send_queue.h"

#include "mem/window.h"
#include "transport/sgl.h"

uint32_t ur_send_queue_packets(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	unsigned class = class_of(wqe);
	uint32_t mtu = 1u << qp->mtu_shift;

	if (class & OP_LOCAL)
		return 0;
	if (class & OP_ATOMIC || wqe->length <= mtu)
		return 1;
	return (wqe->length + (mtu - 1)) >> qp->mtu_shift;
}

bool ur_send_queue_gather(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off,
			  uint32_t len, struct ur_tx *tx)
{
	tx->frag_cnt = 0;
	tx->payload_len = (uint16_t)len;
	if (!len)
		return true;
	if (wqe->flags & UR_WQE_INLINE) {
		tx->frag[0] = (struct ur_frag){(const uint8_t *)ur_wqe_data(wqe) + off, len};
		tx->frag_cnt = 1;
		return true;
	}
	return ur_sgl_gather(qp->core->mem, qp->pd, ur_wqe_data(wqe), wqe->num_sge, off, len, tx);
}

bool ur_send_queue_local(struct ur_qp *qp, const struct ur_wqe *wqe)
{
	const struct ur_wqe_ext *ext = ur_wqe_ext(wqe);
	struct ur_mem *mem = qp->core->mem;

	if (wqe->opcode == IBV_WR_LOCAL_INV)
		return ur_mem_invalidate(mem, wqe->imm_inv, qp->pd, false) ||
		       ur_window_invalidate(mem, wqe->imm_inv, qp->pd, qp->qpn.v);
	qp->has_bound = true;
	return ur_window_bind(mem,
			      &(struct ur_window_bind){.old_key = ext->bind.old_rkey,
						       .key = wqe->rkey,
						       .lkey = wqe->imm_inv,
						       .access = ext->bind.access,
						       .addr = wqe->remote_addr,
						       .length = ext->bind.length},
			      qp->pd, qp->qpn.v);
}

void ur_send_queue_finish(struct ur_qp *qp, enum ibv_wc_status status)
{
	static const uint8_t wc_opcode[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
	};
	const struct ur_wqe *wqe = oldest_wqe(qp);
	struct ibv_wc other, *wc;

	if (status == IBV_WC_WR_FLUSH_ERR)
		qp->core->cnt.flushed_wqe++;
	else if (status != IBV_WC_SUCCESS)
		qp->core->cnt.req_cqe_error++;
	else if (!(wqe->flags & UR_WQE_SIGNALED)) {
		ur_wq_release(&qp->sq, ++qp->req.head);
		return;
	}
	wc = ur_core_place(qp->core, qp->send_cq, &other);
	ur_cq_fill(wc, wqe->wr_id, status, wc_opcode[wqe->opcode], wqe->length, qp->qpn.v);
	/* The place is free before the poster can learn of it. */
	ur_wq_release(&qp->sq, ++qp->req.head);
	ur_core_complete_placed(qp->core, qp->send_cq, wc, &other, status != IBV_WC_SUCCESS);
}

void ur_send_queue_advance(struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;

	while (req->head != req->cur && (oldest_wqe(qp)->flags & UR_WQE_DONE))
		ur_send_queue_finish(qp, IBV_WC_SUCCESS);
	/* QP-SQE-01: the receive queue of others lives on. */
	if (__builtin_expect(req->local_err, 0) && req->head == req->cur)
		ur_qp_fail(qp, req->local_err,
			   qp->ops->reliable ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
}
