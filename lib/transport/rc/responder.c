/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/responder_priv.h"
#include "mem/window.h"
#include "wire/assert.h"

/* What the responders have in common that no packet in order pays for twice: see responder_priv.h and qp.h. */

void ur_responder_raise_established(struct ur_qp *qp)
{
	qp->comm_est = true;
	qp->core->sink.async(qp->core->sink.ctx, IBV_EVENT_COMM_EST, qp->user);
}

/* ---- receives ---- */

bool ur_responder_take_srq(struct ur_qp *qp, struct ur_rwqe *to)
{
	bool limit;

	if (!ur_srq_take(qp->srq, to, &limit))
		return false;
	if (limit)
		qp->core->sink.async(qp->core->sink.ctx, IBV_EVENT_SRQ_LIMIT_REACHED,
				     qp->srq->user);
	return true;
}

bool ur_responder_bind(struct ur_qp *qp)
{
	struct ur_responder *rsp = &qp->rsp;

	if (qp->has_srq) {
		if (!ur_responder_take_srq(qp, rsp->srq_wqe))
			return false;
		rsp->wqe = rsp->srq_wqe;
	} else {
		uint32_t head = ur_wq_head(&qp->rq);

		if (head == ur_wq_tail(&qp->rq))
			return false;
		rsp->wqe = ur_rq_at(&qp->rq, head);
	}
	return true;
}

void ur_responder_complete(struct ur_qp *qp, struct ibv_wc *wc, bool solicited)
{
	wc->wr_id = qp->rsp.wqe->wr_id;
	wc->qp_num = qp->qpn.v;
	ur_responder_release_wqe(qp);
	ur_core_complete(qp->core, qp->recv_cq, wc, solicited);
}

void ur_responder_abort(struct ur_qp *qp, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.status = status, .opcode = IBV_WC_RECV};

	if (!qp->rsp.wqe)
		return;
	if (status == IBV_WC_WR_FLUSH_ERR)
		qp->core->cnt.flushed_wqe++;
	else
		qp->core->cnt.resp_cqe_error++;
	ur_responder_complete(qp, &wc, true);
}

/* RC-RESP-RECV-01. The message is complete: a receive completes with it, if one is bound. */
struct verdict ur_responder_finish(struct ur_qp *qp, const struct ur_packet *p, uint32_t bytes)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ibv_wc wc = {
		.status = IBV_WC_SUCCESS,
		.opcode = p->op & UR_OP_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = bytes,
	};

	if (p->op & UR_OP_IMM) {
		wc.imm_data = __builtin_bswap32(p->imm);
		wc.wc_flags = IBV_WC_WITH_IMM;
	} else if (p->op & UR_OP_IETH) {
		/* MEM-INV-02, MW-INV-01 */
		if (!ur_mem_invalidate(qp->core->mem, p->ieth, qp->pd, true) &&
		    !ur_window_invalidate(qp->core->mem, p->ieth, qp->pd, qp->qpn.v))
			return NAK_RECV(REM_ACCESS, ACCESS, IBV_WC_LOC_ACCESS_ERR);
		wc.invalidated_rkey = p->ieth;
		wc.wc_flags = IBV_WC_WITH_INV;
	}
	rsp->kind = UR_MSG_NONE;
	rsp->msn = ur_msn_add(rsp->msn, 1);
	if (p->op & (UR_OP_SEND | UR_OP_IMM))
		ur_responder_complete(qp, &wc, p->bth.solicited);
	return CONTINUE;
}

/* ---- READs and atomics ---- */

/* RC-RESP-RES-02 */
void ur_responder_resize(struct ur_qp *qp, uint8_t cnt)
{
	struct ur_responder *rsp = &qp->rsp;
	unsigned old = rsp->res_cnt, kept = cnt < old ? cnt : old;
	struct ur_rd_res known[UR_RD_ATOMIC_MAX];

	UR_ASSERT(cnt <= qp->res_max);
	for (unsigned i = 0; i < kept; i++)
		known[i] = rsp->res[(rsp->res_next + old - kept + i) % old];
	memset(rsp->res, 0, qp->res_max * sizeof(*rsp->res));
	memcpy(rsp->res, known, kept * sizeof(known[0]));
	rsp->res_cnt = cnt;
	rsp->res_next = (uint8_t)(kept < cnt ? kept : 0);
}

/* RC-RESP-DUP-03. The newest comes first: an old one may have had the same PSNs, 2^24 packets ago.
 */
struct ur_rd_res *ur_responder_find(struct ur_responder *rsp, struct ur_psn psn)
{
	for (unsigned i = 0, at = rsp->res_next; i < rsp->res_cnt; i++) {
		struct ur_rd_res *res;

		at = at ? at - 1 : rsp->res_cnt - 1u;
		res = &rsp->res[at];
		if (res->psns && ur_psn_in(psn, res->first, ur_psn_add(res->first, res->psns)))
			return res;
	}
	return NULL;
}

struct ur_rd_res *ur_responder_remember(struct ur_qp *qp, struct ur_psn first, uint32_t psns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_rd_res *res = &rsp->res[rsp->res_next];

	rsp->res_next = (uint8_t)(rsp->res_next + 1u < rsp->res_cnt ? rsp->res_next + 1 : 0);
	*res = (struct ur_rd_res){.first = first, .psns = psns};
	return res;
}

static struct verdict check_atomic(const struct ur_qp *qp, const struct ur_atomiceth *a)
{
	const uint8_t *at = ur_mem_check_remote(qp->core->mem, a->rkey, qp->pd, qp->qpn.v, a->va, 8,
						IBV_ACCESS_REMOTE_ATOMIC);

	if (!at)
		return NAK(REM_ACCESS, ACCESS);
	/* An aligned address may name bytes that are not: iova and base differ. */
	return (uintptr_t)at & 7 ? NAK(INV_REQ, MSG_LENGTH) : CONTINUE;
}

/* RC-RESP-ACC-01: key, range, rights and domain, before memory is touched; nothing for 0 bytes. */
struct verdict ur_responder_check_access(const struct ur_qp *qp, const struct ur_packet *p)
{
	const struct ur_reth *reth = &p->reth;

	if (p->op & UR_OP_ATOMIC)
		return check_atomic(qp, &p->atomiceth);
	return !reth->length || ur_mem_check_remote(qp->core->mem, reth->rkey, qp->pd, qp->qpn.v,
						    reth->va, reth->length, IBV_ACCESS_REMOTE_READ)
		       ? CONTINUE
		       : NAK(REM_ACCESS, ACCESS);
}

/* RC-RESP-ATOMIC-02 */
struct verdict ur_responder_atomic(struct ur_qp *qp, const struct ur_packet *p, uint64_t *original)
{
	const struct ur_atomiceth *a = &p->atomiceth;
	uint64_t *at = (uint64_t *)(void *)ur_mem_check_remote(
		qp->core->mem, a->rkey, qp->pd, qp->qpn.v, a->va, 8, IBV_ACCESS_REMOTE_ATOMIC);

	/* Another thread may have taken the key out of force since the check. */
	if (!at)
		return NAK(REM_ACCESS, ACCESS);
	qp->core->cnt.rx_atomic_requests++;
	if ((p->bth.opcode & ~UR_TRANSPORT_MASK) == UR_RC_FETCH_ADD) {
		*original = __atomic_fetch_add(at, a->swap_add, __ATOMIC_SEQ_CST);
	} else {
		*original = a->compare;
		__atomic_compare_exchange_n(at, original, a->swap_add, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	return CONTINUE;
}
