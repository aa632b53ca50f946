/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/ud/ud.h"

#include "transport/build.h"
#include "transport/send_queue.h"
#include "transport/sgl.h"
#include "wire/opcode.h"

#define GRH_BYTES 40

/*
 * UD-GRH-01. The 40 bytes in front of a received datagram: the IPv6 header as it came, or 20 zero
 * bytes and the IPv4 header (annex A17.4.5.2).
 */
static void put_grh(uint8_t grh[GRH_BYTES], const struct ur_packet *p)
{
	const uint8_t *frame = p->payload - p->payload_off;

	memset(grh, 0, GRH_BYTES);
	if (p->ip.v6)
		memcpy(grh, frame + p->l3_off, UR_IPV6_BYTES);
	else
		memcpy(grh + GRH_BYTES - UR_IPV4_BYTES, frame + p->l3_off, UR_IPV4_BYTES);
}

enum ur_drop ur_ud_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	const struct ur_rwqe *wqe;
	uint8_t grh[GRH_BYTES];
	struct ibv_wc wc = {
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = GRH_BYTES + p->payload_len,
		.src_qp = p->deth.sqpn.v,
		.wc_flags = IBV_WC_GRH,
	};

	(void)now_ns;
	if (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD &&
	    qp->state != IBV_QPS_SQE)
		return UR_DROP_QP_STATE;
	if (p->deth.qkey != qp->ud_rsp.qkey) /* UD-QKEY-01 */
		return UR_DROP_QKEY;
	/* UD-LEN-01. A datagram that does not fit is lost; its receive waits for one that does. */
	if (p->payload_len > 1u << qp->mtu_shift)
		return UR_DROP_MSG_LENGTH;
	if (!rsp->wqe && !ur_responder_bind(qp))
		return UR_DROP_RNR;
	wqe = rsp->wqe;
	if (wqe->length < wc.byte_len)
		return UR_DROP_RECV_BUFFER;
	put_grh(grh, p);
	if (!ur_sgl_scatter(qp->core->mem, qp->pd, wqe->sge, wqe->num_sge, 0, grh, GRH_BYTES) ||
	    !ur_sgl_scatter(qp->core->mem, qp->pd, wqe->sge, wqe->num_sge, GRH_BYTES, p->payload,
			    p->payload_len)) {
		ur_qp_fail(qp, IBV_WC_WR_FLUSH_ERR, IBV_WC_LOC_PROT_ERR);
		return UR_DROP_RECV_BUFFER;
	}
	if (p->op & UR_OP_IMM) {
		wc.imm_data = __builtin_bswap32(p->imm);
		wc.wc_flags |= IBV_WC_WITH_IMM;
	}
	ur_responder_complete(qp, &wc, p->bth.solicited);
	return UR_DROP_NONE;
}

static bool fail(struct ur_qp *qp, enum ibv_wc_status status)
{
	qp->req.local_err = (uint8_t)status;
	ur_send_queue_advance(qp);
	return false;
}

bool ur_ud_ready(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;

	return qp->state == IBV_QPS_RTS && !req->local_err && req->cur != ur_wq_tail(&qp->sq);
}

bool ur_ud_next(struct ur_qp *qp, struct ur_tx *tx)
{
	struct ur_requester *req = &qp->req;
	const struct ur_wqe *wqe;
	const struct ur_wqe_ext *ext;
	bool imm;
	struct ur_build_bth bth;
	uint8_t *p;

	if (!ur_ud_ready(qp))
		return false;
	wqe = ur_sq_at(&qp->sq, req->cur);
	ext = ur_wqe_ext(wqe);
	if (ext->ud.ah->pd != qp->pd)
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	if (wqe->length > 1u << qp->mtu_shift)
		return fail(qp, IBV_WC_LOC_LEN_ERR);
	if (!ur_send_queue_gather(qp, wqe, 0, wqe->length, tx))
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	imm = wqe->opcode == IBV_WR_SEND_WITH_IMM;
	bth = (struct ur_build_bth){
		.opcode = imm ? UR_UD_SEND_ONLY_IMM : UR_UD_SEND_ONLY,
		.solicited = wqe->flags & UR_WQE_SOLICITED,
		.pkey = qp->pkey,
		.dqpn = ur_qpn(ext->ud.remote_qpn),
		.psn = qp->unreliable.nxt,
	};
	p = ur_build_begin(tx, &ext->ud.ah->path, &bth, UR_DETH_BYTES + (imm ? UR_IMM_BYTES : 0));
	/* UD-QKEY-02: a Q_Key with its high bit set stands for the QP's own. */
	p = ur_build32(p, ext->ud.remote_qkey >> 31 ? qp->ud_rsp.qkey : ext->ud.remote_qkey);
	p = ur_build32(p, qp->qpn.v);
	if (imm)
		memcpy(p, &wqe->imm_inv, UR_IMM_BYTES);
	qp->unreliable.nxt = ur_psn_add(qp->unreliable.nxt, 1);
	req->cur++;
	return true;
}

/* SCHED-SL-02 */
void ur_ud_follow_sl(struct ur_qp *qp)
{
	const struct ur_ah *ah;

	if (qp->req.cur == ur_wq_tail(&qp->sq))
		return;
	ah = ur_wqe_ext(ur_sq_at(&qp->sq, qp->req.cur))->ud.ah;
	ur_emux_set_sl(&qp->core->emux, &qp->sq_queue, ah->sl);
}
