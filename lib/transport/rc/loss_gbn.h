/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_LOSS_GBN_H
#define UR_TRANSPORT_RC_LOSS_GBN_H

#define LOSS_RSP ur_psn
#include "transport/rc/loss.h"

/*
 * The loss engine of modes gbn and reorder (rc/loss.h) over recovery.h. What is lost is sent again by going
 * back: `cur` returns to the WQE at una, and the packets from there on are made as if they were new. In mode
 * reorder, and after silence, the packet at una goes again alone and `cur` stays where it is.
 */

static inline bool loss_is_reliable(const struct ur_qp *qp)
{
	(void)qp;
	return true;
}

static inline struct ur_psn loss_next_psn(const struct ur_qp *qp)
{
	return qp->gbn.rec.nxt;
}

static inline bool loss_is_idle(const struct ur_qp *qp)
{
	return ur_psn_eq(qp->gbn.rec.nxt, qp->gbn.rec.una);
}

static inline bool loss_is_done(const struct ur_qp *qp)
{
	const struct ur_recovery *rec = &qp->gbn.rec;

	return ur_psn_eq(rec->una, rec->max) && !rec->hold;
}

static inline bool loss_is_begun(const struct ur_qp *qp)
{
	return qp->req.cur_off || ur_recovery_is_resend(&qp->gbn.rec);
}

static inline bool loss_holds(const struct ur_qp *qp)
{
	return qp->gbn.rec.hold;
}

static inline bool loss_has_answers_due(const struct ur_qp *qp)
{
	return qp->gbn.rd_out;
}

/*
 * RC-REQ-FLIGHT-01. READ and atomic requests are sent again like others, but in mode reorder they
 * leave room for a packet of data and are not held up themselves: their answers take long, and come
 * once.
 */
static inline bool flight_has_room(const struct ur_gbn_requester *gbn, unsigned class)
{
	const struct ur_recovery *rec = &gbn->rec;
	uint32_t left = ur_recovery_flight_left(rec), rd = gbn->rd_out;

	if (!rec->selective)
		return left > rd;
	if (!(class & OP_DATA))
		return true;
	return left > rd || left == rec->flight;
}

/* RC-REQ-WINDOW-01 */
static inline bool loss_has_credit(const struct ur_qp *qp, unsigned class)
{
	const struct ur_gbn_requester *gbn = &qp->gbn;

	if (!ur_recovery_credit(&gbn->rec) || !flight_has_room(gbn, class))
		return false;
	/* What follows would be dropped until what the peer misses can be sent again. */
	return !(__builtin_expect(gbn->nak_owed, 0) && ur_recovery_goes_back(&gbn->rec));
}

/* How many times in a row loss_has_credit() would hold, if each time a packet of data were sent. */
static inline uint32_t loss_data_credit(const struct ur_qp *qp)
{
	const struct ur_gbn_requester *gbn = &qp->gbn;
	uint32_t credit = ur_recovery_credit(&gbn->rec);
	uint32_t left = ur_recovery_flight_left(&gbn->rec);

	if (!loss_has_credit(qp, OP_DATA))
		return 0;
	left = left > gbn->rd_out ? left - gbn->rd_out : 1;
	return left < credit ? left : credit;
}

/* RC-REQ-READ-01 */
static inline bool loss_may_read(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	const struct ur_requester *req = &qp->req;

	if (qp->gbn.rd_out >= req->max_rd_atomic)
		return false;
	return !(class_of(wqe) & OP_READ) || loss_is_idle(qp) ||
	       read_part(qp, wqe, req->cur_off >> qp->mtu_shift).n <=
		       ur_recovery_credit(&qp->gbn.rec);
}

static inline bool loss_may_begin(const struct ur_qp *qp)
{
	(void)qp;
	return true;
}

static inline bool loss_is_held(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline void loss_before_new(struct ur_qp *qp, bool may_go_on)
{
	(void)qp;
	(void)may_go_on;
}

enum { LOSS_PROBES = false, LOSS_TWICE = false };

static inline void loss_sent_twice(struct ur_qp *qp)
{
	(void)qp;
}

static inline bool loss_may_probe(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_is_alone(const struct ur_qp *qp, uint64_t now_ns)
{
	(void)qp;
	(void)now_ns;
	return false;
}

static inline void loss_sent_probe(struct ur_qp *qp, struct ur_tx *tx, bool alone, uint64_t now_ns)
{
	(void)qp, (void)tx, (void)alone, (void)now_ns;
}

/* ---- asking for ACKs ---- */

/* RC-REQ-ACK-01: a quarter of the flight, the window's end, and the first packet of another pass, which
 * tells soonest that it goes well. */
static inline bool loss_wants_ack(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_recovery *rec = &qp->gbn.rec;

	return qp->gbn.ackreq_again || 4 * req->since_ackreq >= rec->flight ||
	       ur_recovery_credit(rec) <= 1 || (loss_is_idle(qp) && ur_recovery_is_resend(rec));
}

static inline bool loss_stalls_before(const struct ur_qp *qp, const struct ur_wqe *next)
{
	uint32_t n = ur_send_queue_packets(qp, next), each = qp->req.read_psns;

	return (class_of(next) & OP_READ) &&
	       (n < each ? n : each) >= ur_recovery_credit(&qp->gbn.rec);
}

/*
 * RC-REQ-ACK-02: the requests in flight that carried no AckReq would never complete. The newest packet
 * goes again, with AckReq. False when an ACK or a response is on its way anyhow.
 */
static inline bool loss_ask_for_ack(struct ur_qp *qp)
{
	struct ur_requester *req = &qp->req;

	if (!req->since_ackreq || qp->gbn.ackreq_again || loss_is_idle(qp))
		return false;
	/* Since AckReq was set last there was nothing but data. */
	if (!req->cur_off) {
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, --req->cur);

		req->cur_off = ur_send_queue_packets(qp, wqe) << qp->mtu_shift;
	}
	req->cur_off -= 1u << qp->mtu_shift;
	ur_recovery_step_back(&qp->gbn.rec);
	qp->gbn.ackreq_again = true;
	return true;
}

/* ---- sending ---- */

/* Each READ request is a message of its own to the responder. */
static inline uint32_t loss_number(struct ur_qp *qp, struct ur_wqe *wqe, unsigned class)
{
	uint32_t each = qp->req.read_psns;

	if (!(class & OP_READ))
		return 1;
	return (ur_send_queue_packets(qp, wqe) + each - 1) >> __builtin_ctz(each);
}

static inline void count_retransmission(struct ur_qp *qp, bool again)
{
	if (__builtin_expect(again, 0))
		qp->core->cnt.retransmitted_packets++;
}

static inline void loss_sent(struct ur_qp *qp, bool ackreq, bool joins, uint64_t now_ns)
{
	struct ur_gbn_requester *gbn = &qp->gbn;
	bool again = ur_recovery_is_resend(&gbn->rec);

	(void)joins;
	count_retransmission(qp, again);
	ur_recovery_on_send(&gbn->rec, 1, now_ns);
	if (!ackreq)
		return;
	gbn->ackreq_again = false;
	ur_recovery_on_ackreq(&gbn->rec, again, now_ns);
}

static inline void loss_sent_read(struct ur_qp *qp, uint32_t n, uint64_t now_ns)
{
	struct ur_gbn_requester *gbn = &qp->gbn;
	bool again = ur_recovery_is_resend(&gbn->rec);

	count_retransmission(qp, again);
	ur_recovery_on_send(&gbn->rec, n, now_ns);
	ur_recovery_on_read(&gbn->rec, n);
	ur_recovery_on_ackreq(&gbn->rec, again, now_ns);
	gbn->rd_out++;
}

static inline void loss_sent_atomic(struct ur_qp *qp, uint64_t now_ns)
{
	loss_sent_read(qp, 1, now_ns);
}

static inline void loss_after_send(struct ur_qp *qp, uint64_t now_ns)
{
	(void)qp;
	(void)now_ns;
}

/* ---- again: REORDER-REPEAT-01, the packet at una alone, asking for an answer ---- */

static inline bool loss_is_troubled(const struct ur_qp *qp)
{
	return __builtin_expect(qp->gbn.rec.repeat, 0);
}

static inline bool loss_is_quiet(const struct ur_qp *qp)
{
	return !loss_is_troubled(qp);
}

/* una lies in the oldest WQE that takes PSNs. */
static inline uint32_t loss_find(const struct ur_qp *qp, struct ur_psn psn)
{
	uint32_t idx = qp->req.head;

	(void)psn;
	while (ur_sq_at(&qp->sq, idx)->flags & UR_WQE_DONE)
		idx++;
	return idx;
}

static inline uint32_t loss_find_rsp(const struct ur_qp *qp, struct ur_psn nr)
{
	return loss_find(qp, nr);
}

static inline bool loss_next_again(const struct ur_qp *qp, struct again *again)
{
	const struct ur_recovery *rec = &qp->gbn.rec;
	const struct ur_wqe *wqe;

	if (!rec->repeat)
		return false;
	wqe = ur_sq_at(&qp->sq, loss_find(qp, rec->una));
	again->what = class_of(wqe) & OP_DATA ? AGAIN_REQUEST : AGAIN_RESPONSES;
	again->psn = again->rsp = rec->una;
	return true;
}

/* A response has the PSN that its request reserved for it. */
static inline struct ur_psn loss_first_response(const struct ur_wqe *wqe)
{
	return wqe->first_psn;
}

static inline struct ur_psn loss_request_psn(const struct ur_qp *qp, const struct ur_wqe *wqe,
					     uint32_t i)
{
	(void)qp;
	return ur_psn_add(wqe->first_psn, i);
}

/* From una to the first response that has come. */
static inline uint32_t loss_reask(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_psn nr,
				  uint32_t most, uint64_t now_ns)
{
	struct ur_gbn_requester *gbn = &qp->gbn;
	struct ur_psn end = ur_psn_add(nr, most);

	if (gbn->gap) {
		end = ur_read_gap_present(gbn->gap, nr, end);
		ur_read_gap_on_reask(gbn->gap, end, gbn->rec.max, ur_recovery_answer_ns(&gbn->rec),
				     now_ns);
	}
	if (class_of(wqe) & OP_READ) {
		gbn->reasked = nr;
		gbn->has_reasked = true;
	}
	most = (uint32_t)ur_psn_diff(end, nr);
	ur_recovery_on_repeat(&gbn->rec, most, now_ns);
	return most;
}

static inline void loss_resent(struct ur_qp *qp, struct ur_psn psn, struct ur_psn nr, uint32_t n,
			       uint64_t now_ns)
{
	(void)psn;
	(void)nr;
	(void)n;
	ur_recovery_on_repeat(&qp->gbn.rec, 1, now_ns);
}

#endif
