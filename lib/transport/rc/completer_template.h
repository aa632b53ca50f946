/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completer of RC, for every loss engine: takes in the peer's answers, places responses, and turns both
 * into completions (IBA 9.7.5). A C file that includes this has included a loss engine's half of the
 * interface (rc/loss_answers.h) before and has defined COMPLETER(name), the name under which a function is
 * exported:
 *
 *   enum ur_drop COMPLETER(input)(qp, p, now)  an answer arrived
 *   bool COMPLETER(predicted)(qp, frame, bytes, now)  the commonest answer, see qp_ops.h
 *   void COMPLETER(timer)(qp, now)             a deadline of the requester may have passed
 *
 * The files that do: completer_gbn.c, completer_selective.c. So the compiler sees each loss engine as if the
 * completer were written for it alone.
 *
 * Nothing here ends the queue pair; it says how it ends (ur_qp_fail()).
 *
 * Thread class: the QP's worker.
 */
#include "transport/rc/loss_answers.h"
#include "transport/sgl.h"
#include "wire/predict.h"

/* ---- ACK and NAK ---- */

/* RC-COMP-NAK-01 */
static inline struct ack read_syndrome(uint8_t syndrome)
{
	static const uint8_t status[] = {
		[UR_NAK_INV_REQ] = IBV_WC_REM_INV_REQ_ERR,
		[UR_NAK_REM_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[UR_NAK_REM_OP] = IBV_WC_REM_OP_ERR,
		[UR_NAK_INV_RD_REQ] = IBV_WC_REM_INV_RD_REQ_ERR,
	};
	uint8_t kind = syndrome & UR_SYNDROME_KIND_MASK, code = syndrome & UR_SYNDROME_VALUE_MASK;

	if (__builtin_expect(kind == UR_SYNDROME_ACK, 1))
		return (struct ack){.kind = ACK_PLAIN};
	if (kind == UR_SYNDROME_RNR_NAK)
		return (struct ack){.kind = ACK_RNR};
	if (kind != UR_SYNDROME_NAK || code >= sizeof(status))
		return (struct ack){.kind = ACK_INVALID};
	return (struct ack){code == UR_NAK_PSN_SEQ ? ACK_SEQ_NAK : ACK_FATAL, status[code], false};
}

/*
 * EXT-COMP-FORM-01. What is not ready is always the request that comes next; what is refused may be a READ that
 * was accepted before, whose memory went away under the answer.
 */
static inline enum ur_drop check_ext_ack(const struct ur_packet *p, enum ack_kind kind)
{
	if ((kind == ACK_RNR && !ur_psn_eq(p->bth.psn, p->xaeth.epsn)) ||
	    (kind == ACK_FATAL && ur_psn_lt(p->xaeth.epsn, p->bth.psn)))
		return UR_DROP_UNEXPECTED;
	if ((p->payload_len & 3) || p->payload_len > UR_SACK_BYTES ||
	    ((p->op & UR_OP_BPTH) && p->bpth.offset > UR_EXT_WINDOW_MAX))
		return UR_DROP_MSG_LENGTH;
	return UR_DROP_NONE;
}

/* What it acknowledges was taken in. */
static __attribute__((noinline, cold)) enum ur_drop
take_nak(struct ur_qp *qp, const struct ur_packet *p, const struct ack *ack, uint64_t now_ns)
{
	/* What just completed may have been all that a failure waited for. */
	if (ur_qp_has_failed(qp))
		return UR_DROP_NONE;
	if (ack->kind == ACK_FATAL)
		return loss_on_fatal_nak(qp, p, ack->status);
	if (ack->kind == ACK_RNR)
		act_on(qp, loss_on_rnr(qp, p, ack, ur_rnr_timer_ns(p->aeth.syndrome), now_ns),
		       IBV_WC_RNR_RETRY_EXC_ERR);
	return UR_DROP_NONE;
}

static enum ur_drop take_ack(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ack ack = read_syndrome(p->aeth.syndrome);
	enum ur_drop drop;

	if (ack.kind == ACK_INVALID)
		return UR_DROP_UNEXPECTED;
	drop = LOSS_IS_EXT ? check_ext_ack(p, ack.kind) : UR_DROP_NONE;
	if (drop)
		return drop;
	if (__builtin_expect(ack.kind != ACK_PLAIN, 0)) {
		qp->core->cnt.packet_seq_err += ack.kind == ACK_SEQ_NAK;
		qp->core->cnt.rnr_nak_retry_err += ack.kind == ACK_RNR;
	}
	drop = loss_take_ack(qp, p, &ack, now_ns);
	if (__builtin_expect(ack.kind != ACK_PLAIN, 0) && !drop)
		return take_nak(qp, p, &ack, now_ns);
	return drop;
}

/* ---- responses ---- */

/* RC-COMP-READ-01, RC-COMP-READ-02, EXT-COMP-RSP-02. Writes what the response brings to where its WQE wants it. */
static enum ur_drop take_response(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	bool read = p->op & UR_OP_READ_RESP;
	const uint8_t *src = (const uint8_t *)&p->atomic_ack;
	uint32_t off = 0, len = sizeof(p->atomic_ack), mtu = 1u << qp->mtu_shift;
	struct target t = {.last = true, .fits = true};
	enum ur_drop drop;

	if ((LOSS_IS_EXT || (p->op & UR_OP_AETH)) && !is_positive(p))
		return UR_DROP_UNEXPECTED;
	drop = loss_find_target(qp, p, &t, now_ns);
	if (drop)
		return drop;
	if (!(class_of(t.wqe) & (read ? OP_READ : OP_ATOMIC)))
		return UR_DROP_UNEXPECTED;
	if (read) {
		off = t.at << qp->mtu_shift;
		len = t.wqe->length - off;
		t.last = len <= mtu;
		len = t.last ? len : mtu;
		src = p->payload;
		t.fits = p->payload_len == len;
	}
	t.ends = t.last || !((t.at + 1) & (qp->req.read_psns - 1));
	drop = loss_check_target(qp, p, &t, now_ns);
	if (drop)
		return drop;
	if (!t.fits) {
		loss_fail_target(qp, &t, IBV_WC_BAD_RESP_ERR, now_ns);
		return UR_DROP_MSG_LENGTH;
	}
	if (!ur_sgl_scatter(qp->core->mem, qp->pd, ur_wqe_data(t.wqe), t.wqe->num_sge, off, src,
			    len)) {
		loss_fail_target(qp, &t, IBV_WC_LOC_PROT_ERR, now_ns);
		return UR_DROP_RECV_BUFFER;
	}
	return loss_on_response(qp, p, &t, now_ns);
}

/* ---- what arrives, and when nothing does ---- */

/* With IBA headers a NAK may have an atomic's opcode. */
static inline bool is_response(const struct ur_packet *p)
{
	if (LOSS_IS_EXT)
		return p->op & UR_OP_XRTH;
	return (p->op & UR_OP_READ_RESP) || ((p->op & UR_OP_ATOMICACKETH) && is_positive(p));
}

/* RC-COMP-PSN-01, EXT-COMP-EPSN-01 */
enum ur_drop COMPLETER(input)(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return UR_DROP_QP_STATE;
	if (!loss_is_current(qp, p))
		return loss_take_old(qp, p, now_ns);
	return is_response(p) ? take_response(qp, p, now_ns) : take_ack(qp, p, now_ns);
}

void COMPLETER(timer)(struct ur_qp *qp, uint64_t now_ns)
{
	enum ur_recovery_verdict verdict;
	bool timeout;

	if (ur_qp_has_failed(qp))
		return;
	verdict = loss_on_timer(qp, now_ns, &timeout);
	qp->core->cnt.local_ack_timeout_err += timeout;
	act_on(qp, verdict, IBV_WC_RETRY_EXC_ERR);
}

/* ---- a predicted answer ---- */

/* Most often everything posted has been sent, and often answered: then there is nothing to ask. */
static inline void after_predicted(struct ur_qp *qp)
{
	struct ur_core *core = qp->core;

	if (ur_dest_is_watched(qp) || qp->req.cur != ur_wq_tail(&qp->sq) || loss_repeats(qp)) {
		ur_qp_update(qp);
	} else if (!loss_is_settled(qp)) {
		ur_qp_sent_all(qp);
	} else {
		ur_emux_set(&core->emux, &qp->sq_queue, false);
		ur_qp_rest_timer(qp);
	}
}

/*
 * PREDICT-ACK-01. An ACK of requests in flight, on a queue pair that has nothing to send again: what take_ack() and
 * ur_qp_input() do for it, from top to bottom.
 */
static inline bool take_predicted_ack(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				      struct ur_psn psn, const struct ur_aeth *aeth,
				      uint64_t now_ns)
{
	const uint8_t *ext = frame + UR_PREDICT_BTH + UR_BTH_BYTES + UR_AETH_BYTES;

	if (bytes != UR_BTH_BYTES + UR_AETH_BYTES + LOSS_ACK_EXT_BYTES + UR_ICRC_BYTES ||
	    !loss_predicts_ack(qp, psn, ext) || !ur_predict_icrc(frame, bytes))
		return false;
	loss_take_predicted_ack(qp, psn, aeth, ext, now_ns);
	qp->core->cnt.rx_acks_predicted++;
	return true;
}

/* Where the READ wants bytes [off, off + n); NULL: not in one piece, or they may not be written. */
static inline uint8_t *piece_for(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off,
				 uint32_t n)
{
	const struct ur_sge *sge = ur_wqe_data(wqe);

	if (!ur_sgl_in_first(sge, wqe->num_sge, off, n))
		return NULL;
	return ur_mem_check(qp->core->mem, sge->lkey, qp->pd, sge->addr + off, n,
			    IBV_ACCESS_LOCAL_WRITE);
}

/* PREDICT-RSP-01. The same for the response, of one packet, to the READ that is the oldest work request. */
static inline bool take_predicted_response(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
					   uint32_t pad, struct ur_psn psn,
					   const struct ur_aeth *aeth, uint64_t now_ns)
{
	const uint8_t *ext = frame + UR_PREDICT_BTH + UR_BTH_BYTES + UR_AETH_BYTES;
	uint32_t padded = bytes - UR_BTH_BYTES - UR_AETH_BYTES - LOSS_RSP_EXT_BYTES - UR_ICRC_BYTES;
	uint32_t n = padded - pad;
	struct ur_wqe *wqe = oldest_wqe(qp);
	uint8_t *to;

	/* A difference below 0 is larger than any PMTU. */
	if (qp->req.head == qp->req.cur || wqe->opcode != IBV_WR_RDMA_READ || (padded & 3) ||
	    n - 1 >= 1u << qp->mtu_shift || n != wqe->length ||
	    !loss_predicts_response(qp, wqe, psn, ext) || !(to = piece_for(qp, wqe, 0, n)) ||
	    !ur_predict_icrc(frame, bytes))
		return false;
	memcpy(to, ext + LOSS_RSP_EXT_BYTES, n);
	loss_take_predicted_response(qp, wqe, aeth, ext, now_ns);
	qp->core->cnt.rx_responses_predicted++;
	return true;
}

/*
 * PREDICT-RSP-02. The same for a response that is neither the first nor the last of its request, to the READ that is the oldest
 * work request.
 */
static __attribute__((noinline)) bool take_predicted_middle(struct ur_qp *qp, const uint8_t *frame,
							    uint32_t bytes, struct ur_psn psn,
							    uint64_t now_ns)
{
	const uint8_t *behind = frame + UR_PREDICT_BTH + UR_BTH_BYTES;
	uint32_t n = 1u << qp->mtu_shift, at;
	const struct ur_wqe *wqe = oldest_wqe(qp);
	uint8_t *to;

	if (qp->req.head == ur_wq_tail(&qp->sq) || wqe->opcode != IBV_WR_RDMA_READ ||
	    !(wqe->flags & UR_WQE_BEGUN) ||
	    bytes != UR_BTH_BYTES + LOSS_MIDDLE_EXT_BYTES + n + UR_ICRC_BYTES ||
	    !loss_predicts_middle(qp, wqe, psn, behind, &at) ||
	    !((at + 1) & (qp->req.read_psns - 1u)) ||
	    (uint64_t)(at + 1) << qp->mtu_shift >= wqe->length ||
	    !(to = piece_for(qp, wqe, at << qp->mtu_shift, n)) || !ur_predict_icrc(frame, bytes))
		return false;
	memcpy(to, behind + LOSS_MIDDLE_EXT_BYTES, n);
	loss_take_predicted_middle(qp, psn, behind, now_ns);
	qp->core->cnt.rx_responses_predicted++;
	return true;
}

/* flatten: an ACK pays for no call of what responses need as well. */
__attribute__((flatten)) bool COMPLETER(predicted)(struct ur_qp *qp, const uint8_t *frame,
						   uint32_t bytes, uint64_t now_ns)
{
	const uint8_t *bth = frame + UR_PREDICT_BTH, *at = bth + UR_BTH_BYTES;
	uint32_t word0 = ur_load32(bth), pad = word0 >> UR_PREDICT_PAD_SHIFT & 3;
	uint32_t kind = word0 & ~UR_PREDICT_FREE;
	struct ur_psn psn = ur_psn(ur_load32(bth + 8));
	struct ur_aeth aeth = {at[0], ur_predict_low24(at)};
	bool positive = (aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_ACK, taken = false;

	if (!(qp->pkey & 0x8000) || qp->state != IBV_QPS_RTS || qp->req.local_err)
		return false;
	if (positive && kind == ur_predict_bth(LOSS_TRANSPORT | UR_RC_ACKNOWLEDGE, qp->pkey))
		taken = !pad && take_predicted_ack(qp, frame, bytes, psn, &aeth, now_ns);
	else if (positive &&
		 kind == ur_predict_bth(LOSS_TRANSPORT | UR_RC_READ_RESPONSE_ONLY, qp->pkey))
		taken = take_predicted_response(qp, frame, bytes, pad, psn, &aeth, now_ns);
	/* With IBA headers, a response in between has no AETH. */
	else if ((positive || !LOSS_IS_EXT) && !pad &&
		 kind == ur_predict_bth(LOSS_TRANSPORT | UR_RC_READ_RESPONSE_MIDDLE, qp->pkey))
		taken = take_predicted_middle(qp, frame, bytes, psn, now_ns);
	if (taken)
		after_predicted(qp);
	return taken;
}
