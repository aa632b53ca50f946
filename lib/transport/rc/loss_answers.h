/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_LOSS_ANSWERS_H
#define UR_TRANSPORT_RC_LOSS_ANSWERS_H

#include "transport/repath.h"
#include "transport/send_queue.h"

/*
 * The other half of the interface of a loss engine: rc/loss.h is what the requester needs of it, this is
 * what the completer needs (completer_template.h). What an answer acknowledges, which work request it belongs
 * to, and what is sent again for it. Each loss engine fills it with static inline functions in a header of its
 * own, and the completer is compiled once for each:
 *
 *   loss_answers_gbn.h        go-back-N and mode reorder, over recovery.h and read_gap.h
 *   loss_answers_selective.h  extended mode, over selective.h
 *
 * An answer is an ACK or NAK, or a response to a READ or atomic. The functions are called in the order of this
 * list. One that returns a drop reason ends the packet with it, unless that is UR_DROP_NONE.
 *
 *   LOSS_IS_EXT                  answers have extended headers (wire/ext.h)
 *   loss_is_current(qp, p)       the answer speaks of requests in flight
 *   loss_take_old(qp, p, now)    it does not, or the packet is no answer: a drop reason
 *
 *   loss_take_ack(qp, p, ack, now)  what it acknowledges, credits, what is complete, what is lost: a drop reason
 *   loss_on_rnr(qp, p, ack, delay, now)  an RNR NAK: the verdict
 *   loss_on_fatal_nak(qp, p, status)  the request that the NAK names fails: a drop reason
 *
 *   LOSS_TRANSPORT               top bits of the opcodes of answers
 *   LOSS_ACK_EXT_BYTES, LOSS_RSP_EXT_BYTES  of an ACK or a response: bytes of headers behind the AETH
 *   LOSS_MIDDLE_EXT_BYTES        of a response between the first and the last: bytes of headers behind the BTH
 *   loss_predicts_ack(qp, psn, ext)  an ACK with this PSN and these bytes is of the commonest kind: it acknowledges
 *                                requests in flight, and nothing was sent again or is to be
 *   loss_take_predicted_ack(qp, psn, aeth, ext, now)  as loss_take_ack(), for such a one
 *   loss_predicts_response(qp, wqe, psn, ext)  the same for a response: it is the only one to `wqe`, the oldest, whose
 *                                request was sent; no other one is missing
 *   loss_take_predicted_response(qp, wqe, aeth, ext, now)  as loss_on_response(), when it was placed
 *   loss_predicts_middle(qp, wqe, psn, behind, at)  the same for one of several responses to `wqe`, a READ: the next that is
 *                                missing, number *at of them. `behind`: what follows the BTH
 *   loss_take_predicted_middle(qp, psn, behind, now)  as loss_on_response(), when it was placed
 *   loss_repeats(qp)             after any of them: something is to be sent again after all
 *   loss_is_settled(qp)          or: nothing is in flight any more, and neither side has a deadline
 *
 *   loss_find_target(qp, p, t, now)   t->wqe and t->at of a response: a drop reason if nothing asked for it
 *   loss_check_target(qp, p, t, now)  the WQE is a READ or atomic as the response is: a drop reason unless the
 *                                response is to be placed
 *   loss_fail_target(qp, t, status, now)  it cannot be: its WQE fails
 *   loss_on_response(qp, p, t, now)   it was: credits, what is complete, what is lost: a drop reason
 *
 *   loss_on_timer(qp, now, timeout)  the RNR wait, the local ACK timeout, or a deadline of the loss engine may be
 *                                over: the verdict; *timeout says whether it was the local ACK timeout
 *
 *   loss_rewind(qp)              UR_RECOVERY_REWIND: what is oldest is sent again
 *   loss_psns(qp, wqe)           PSNs of a WQE that has begun
 *   loss_passed(qp, wqe)         packets of it from its first on that are acknowledged or answered, all those
 *                                before it as well; <= 0: none
 *
 * Thread class: the QP's worker.
 */
static inline void loss_rewind(struct ur_qp *qp);
static inline uint32_t loss_psns(const struct ur_qp *qp, const struct ur_wqe *wqe);
static inline int32_t loss_passed(const struct ur_qp *qp, const struct ur_wqe *wqe);

/* An ACK or NAK by its syndrome (IBA 9.7.5.1.1). */
struct ack {
	enum ack_kind {
		ACK_PLAIN,   /* with credits */
		ACK_RNR,     /* the request at its PSN finds no receive */
		ACK_SEQ_NAK, /* a request is missing */
		ACK_FATAL,   /* the request at its PSN fails with `status` */
		ACK_INVALID,
	} kind;
	enum ibv_wc_status status;
	bool granted; /* mode extended: the peer has a receive now */
};

/* Where a response belongs. */
struct target {
	struct ur_wqe *wqe;
	uint32_t at; /* which of the WQE's response packets it is */
	bool last;   /* of the WQE */
	bool ends;   /* last of the request that asked for it */
	bool fits;   /* its length is what its place requires */
	/* The loss engine's. */
	bool early;	    /* an older response is missing */
	struct LOSS_RSP nr; /* number of the response */
	uint32_t idx;	    /* of the WQE */
	uint32_t part;	    /* which of the WQE's requests asked for it */
	uint32_t acked;	    /* PSNs that it acknowledges, */
	bool una_moved;	    /* una among them */
};

static inline bool has_responses(const struct ur_wqe *wqe)
{
	return class_of(wqe) & (OP_READ | OP_ATOMIC);
}

/* The answer, which has an AETH, is no NAK. */
static inline bool is_positive(const struct ur_packet *p)
{
	return (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_ACK;
}

/* The credits of an ACK or a response (IBA 9.7.7.2). */
static inline void take_credits(struct ur_requester *req, const struct ur_aeth *aeth)
{
	uint8_t code = aeth->syndrome & UR_SYNDROME_VALUE_MASK;
	struct ur_msn lsn;

	req->ack_seen = true;
	if (code == UR_CREDITS_NONE) {
		req->flow_control = false;
		return;
	}
	lsn = ur_msn(aeth->msn + ur_credits_decode(code));
	if (!req->flow_control || ur_msn_lt(req->lsn, lsn))
		req->lsn = lsn;
	req->flow_control = true;
}

/* Carries out what the loss engine decided; `exceeded` is the status for FAILED. */
static inline void act_on(struct ur_qp *qp, enum ur_recovery_verdict verdict,
			  enum ibv_wc_status exceeded)
{
	if (verdict == UR_RECOVERY_REWIND)
		loss_rewind(qp);
	if (verdict != UR_RECOVERY_FAILED)
		return;
	if (exceeded == IBV_WC_RETRY_EXC_ERR)
		qp->core->cnt.retry_exceeded_err++;
	else
		qp->core->cnt.rnr_retry_exceeded_err++;
	ur_qp_fail(qp, exceeded, IBV_WC_WR_FLUSH_ERR);
}

/* The WQE of [head, end) that has begun and takes this PSN, and its index; NULL: there is none. */
static inline struct ur_wqe *find_wqe(const struct ur_qp *qp, struct ur_psn psn, uint32_t end,
				      uint32_t *idx)
{
	for (*idx = qp->req.head; *idx != end; ++*idx) {
		struct ur_wqe *wqe = ur_sq_at(&qp->sq, *idx);

		if (!(wqe->flags & UR_WQE_BEGUN))
			break;
		if (ur_psn_in(psn, wqe->first_psn, ur_psn_add(wqe->first_psn, loss_psns(qp, wqe))))
			return wqe;
	}
	return NULL;
}

/*
 * RC-COMP-ACK-01, EXT-COMP-ORDER-01. Completes the WQEs at the head of which every packet is acknowledged or
 * answered. Returns how many of them took a receive, if `counts`.
 */
static inline __attribute__((always_inline)) uint32_t complete_wqes(struct ur_qp *qp, bool counts)
{
	struct ur_requester *req = &qp->req;
	uint32_t received = 0;

	while (req->head != req->cur) {
		const struct ur_wqe *wqe = oldest_wqe(qp);
		int32_t passed = loss_passed(qp, wqe);

		if (passed <= 0 || (uint64_t)passed << qp->mtu_shift < wqe->length)
			break;
		received += counts && (class_of(wqe) & OP_RECV);
		ur_send_queue_finish(qp, IBV_WC_SUCCESS);
	}
	return received;
}

/*
 * The head has moved, so the WQE that is to fail may be the oldest now. No local operation waits for that: it runs
 * only when it is the oldest, and completes at once.
 */
static inline void fail_oldest(struct ur_qp *qp)
{
	if (__builtin_expect(qp->req.local_err, 0))
		ur_send_queue_advance(qp);
}

#endif
