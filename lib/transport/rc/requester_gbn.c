/* SPDX-License-Identifier: BSD-3-Clause */
#define CODEC_TRANSPORT UR_TRANSPORT_RC
#include "transport/rc/codec_iba.h"
#include "transport/rc/loss_gbn.h"

/* The requester of modes gbn and reorder. */
#define LOSS_BURSTS
#define REQUESTER(name) ur_requester_##name
#include "transport/rc/requester_template.h"

void ur_requester_reposition(struct ur_qp *qp)
{
	struct ur_requester *req = &qp->req;
	struct ur_gbn_requester *gbn = &qp->gbn;
	uint32_t tail = ur_wq_tail(&qp->sq);
	const struct ur_wqe *wqe;

	/* nxt is una, which lies in the oldest WQE that takes PSNs. */
	req->cur = req->head;
	req->cur_off = 0;
	gbn->rd_out = 0;
	req->since_ackreq = 0;
	gbn->ackreq_again = false;
	gbn->nak_owed = false;
	req->local_err = 0;
	while (req->cur != tail && (ur_sq_at(&qp->sq, req->cur)->flags & UR_WQE_DONE))
		req->cur++;
	if (req->cur == tail)
		return;
	/* What was sent so far may end in the middle of the message. */
	wqe = ur_sq_at(&qp->sq, req->cur);
	if (wqe->flags & UR_WQE_BEGUN)
		req->cur_off = (uint32_t)ur_psn_diff(gbn->rec.nxt, wqe->first_psn) << qp->mtu_shift;
}

void ur_requester_drain(struct ur_qp *qp)
{
	if (!loss_is_begun(qp))
		loss_ask_for_ack(qp);
}
