/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_LOSS_ANSWERS_GBN_H
#define UR_TRANSPORT_RC_LOSS_ANSWERS_GBN_H

#define LOSS_RSP ur_psn
#include "transport/rc/loss_answers.h"
#include "wire/opcode.h"

/*
 * Answers in modes gbn and reorder (rc/loss_answers.h). An answer to PSN n acknowledges every request before
 * n; a response is itself what acknowledges its request. So una moves over a READ or atomic only when its
 * responses are there, and an answer from beyond a missing response is an implied NAK (IBA 9.7.5.1.2).
 *
 * Mode reorder keeps responses from beyond a missing one (read_gap.h) and knows, from the ACKs, what the peer
 * has executed.
 */
enum { LOSS_IS_EXT = false };

static inline void loss_rewind(struct ur_qp *qp)
{
	ur_requester_reposition(qp);
}

static inline uint32_t loss_psns(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	return ur_send_queue_packets(qp, wqe);
}

static inline int32_t loss_passed(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	return ur_psn_diff(qp->gbn.rec.una, wqe->first_psn);
}

/* ---- what is lost ---- */

/* CC-LOSS-01: the packet at una, or the response, is to be sent again. */
static void recover(struct ur_qp *qp, enum ur_recovery_verdict verdict, uint64_t now_ns)
{
	if (verdict == UR_RECOVERY_REWIND || verdict == UR_RECOVERY_REPEAT)
		ur_dest_on_loss(qp, now_ns);
	act_on(qp, verdict, IBV_WC_RETRY_EXC_ERR);
}

/* The packet at una is missing. */
static void recover_gap(struct ur_qp *qp, uint64_t now_ns)
{
	recover(qp, ur_recovery_gap(&qp->gbn.rec, now_ns), now_ns);
}

/* Something from beyond the missing response at una came; `psn` is its PSN, or una. */
static void judge_gap(struct ur_qp *qp, struct ur_psn psn, uint64_t now_ns)
{
	if (ur_read_gap_judge(qp->gbn.gap, psn, &qp->gbn.reo_window,
			      ur_recovery_answer_ns(&qp->gbn.rec), now_ns))
		recover(qp, ur_recovery_reask(&qp->gbn.rec), now_ns);
}

/* A context for the hole at una; false: there is none. */
static bool take_gap(struct ur_qp *qp, uint64_t now_ns)
{
	if (qp->gbn.gap)
		return true;
	qp->gbn.gap = ur_read_gap_take(&qp->core->read_gaps, qp->gbn.rec.una, now_ns);
	if (qp->gbn.gap)
		qp->core->cnt.rtx_contexts++;
	else
		qp->core->cnt.rtx_exhausted++;
	return qp->gbn.gap;
}

/* RC-COMP-IMPLIED-01. An answer shows that a response before it was lost. */
static enum ur_drop imply_nak(struct ur_qp *qp, uint64_t now_ns)
{
	qp->core->cnt.implied_nak_seq_err++;
	/* REORDER-READ-02: it may be late only, and the others need not come again. */
	if (qp->gbn.gap)
		judge_gap(qp, qp->gbn.rec.una, now_ns);
	else
		recover_gap(qp, now_ns);
	return UR_DROP_PSN_GAP;
}

/* The same for what carries nothing that could be kept. */
static enum ur_drop report_missing(struct ur_qp *qp, uint64_t now_ns)
{
	if (qp->gbn.rec.selective)
		take_gap(qp, now_ns);
	return imply_nak(qp, now_ns);
}

/* ---- what is acknowledged ---- */

/* una has moved: what was recorded before it is done with. */
static void advance_gap(struct ur_qp *qp, uint64_t now_ns)
{
	ur_read_gap_advance(qp->gbn.gap, qp->gbn.rec.una, &qp->gbn.reo_window, now_ns);
	if (!qp->gbn.gap->cnt && ur_psn_le(qp->gbn.executed, qp->gbn.rec.una))
		ur_completer_give_gap(qp);
	else if (!qp->gbn.gap->asked &&
		 ur_reo_window_is_over(&qp->gbn.reo_window, qp->gbn.gap->later))
		act_on(qp, ur_recovery_reask(&qp->gbn.rec), IBV_WC_RETRY_EXC_ERR);
}

/* REORDER-NAK-04. The NAK that was remembered counts once una is there. */
static void take_owed_nak(struct ur_qp *qp, uint64_t now_ns)
{
	if (ur_psn_lt(qp->gbn.rec.una, qp->gbn.nak_psn))
		return;
	qp->gbn.nak_owed = false;
	if (ur_psn_eq(qp->gbn.rec.una, qp->gbn.nak_psn))
		recover_gap(qp, now_ns);
}

/* PACE-RTT-01: standard mode measures a packet that asks for an answer, one at a time. */
static inline void report_rtt(struct ur_qp *qp, uint64_t now_ns)
{
	if (__builtin_expect(qp->gbn.rec.sample == 0, 1))
		return;
	ur_dest_on_rtt(qp, qp->gbn.rec.sample, 0, false, now_ns);
	qp->gbn.rec.sample = 0;
}

/* Everything before `una`, which is newer than before, is acknowledged. */
static void advance_una(struct ur_qp *qp, struct ur_psn una, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	bool rewound = ur_recovery_on_ack(&qp->gbn.rec, una, now_ns);

	report_rtt(qp, now_ns);
	if (__builtin_expect(rewound, 0)) {
		/* What was sent before the rewind is acknowledged, beyond `cur`. */
		find_wqe(qp, ur_psn_add(una, UR_PSN_MASK), ur_wq_tail(&qp->sq), &req->cur);
		req->cur++;
	}
	complete_wqes(qp, false);
	if (__builtin_expect(rewound, 0))
		ur_requester_reposition(qp);
	if (__builtin_expect(qp->gbn.gap != NULL, 0))
		advance_gap(qp, now_ns);
	if (__builtin_expect(qp->gbn.nak_owed, 0))
		take_owed_nak(qp, now_ns);
	fail_oldest(qp);
}

/*
 * REORDER-READ-01. How far the READ or atomic, which was executed, is answered from `una` on; its requests that are
 * answered wholly no longer count as outstanding. RC-COMP-EMPTY-01: the response to a READ of no bytes brings
 * nothing that could be missing.
 */
static struct ur_psn pass_responses(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_psn una)
{
	uint32_t psns = loss_psns(qp, wqe), each = qp->req.read_psns, from, to, done;
	unsigned shift = (unsigned)__builtin_ctz(each);
	bool empty = (class_of(wqe) & OP_READ) && !wqe->length;
	struct ur_psn end = ur_psn_add(wqe->first_psn, psns), next;

	if (!qp->gbn.gap && !empty)
		return una;
	next = empty ? end : ur_read_gap_missing(qp->gbn.gap, una, end);
	from = (uint32_t)ur_psn_diff(una, wqe->first_psn);
	to = (uint32_t)ur_psn_diff(next, wqe->first_psn);
	done = (to >> shift) - (from >> shift) + (to == psns && (psns & (each - 1)));
	/* After a rewind an empty one may not have been sent again yet. */
	if (!empty || ur_psn_lt(una, qp->gbn.rec.nxt))
		qp->gbn.rd_out -= (uint8_t)(done < qp->gbn.rd_out ? done : qp->gbn.rd_out);
	ur_recovery_pass_read(&qp->gbn.rec, to - from);
	return next;
}

/* Where una stops, when the peer has executed every request before `known`: at a missing response. */
static struct ur_psn pass_requests(struct ur_qp *qp, struct ur_psn known)
{
	const struct ur_recovery *rec = &qp->gbn.rec;
	struct ur_psn una = rec->una;

	if (!rec->reads_out && ur_psn_le(known, rec->nxt))
		return known;
	for (uint32_t i = qp->req.head; ur_psn_lt(una, known); i++) {
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, i);
		struct ur_psn next = ur_psn_add(wqe->first_psn, loss_psns(qp, wqe));

		if (has_responses(wqe)) {
			una = pass_responses(qp, wqe, una);
			if (ur_psn_lt(una, next))
				break;
		} else {
			una = ur_psn_lt(known, next) ? known : next;
		}
	}
	return una;
}

/*
 * RC-COMP-ACK-01. The peer has executed every request before PSN `end`. True: una is there, no READ or atomic
 * stands in the way whose response is missing.
 */
static bool ack_until(struct ur_qp *qp, struct ur_psn end, uint64_t now_ns)
{
	struct ur_psn known = end, una;

	/* What an earlier ACK told is not told again. */
	if (qp->gbn.rec.selective) {
		if (ur_psn_lt(qp->gbn.executed, end))
			qp->gbn.executed = end;
		known = qp->gbn.executed;
	}
	una = pass_requests(qp, known);
	if (!ur_psn_eq(una, qp->gbn.rec.una))
		advance_una(qp, una, now_ns);
	return ur_psn_le(end, una);
}

/* ---- any answer ---- */

static inline bool loss_is_current(const struct ur_qp *qp, const struct ur_packet *p)
{
	return ur_psn_in(p->bth.psn, qp->gbn.rec.una, qp->gbn.rec.max);
}

/*
 * RC-COMP-NAK-02. The READ at una is refused from a PSN that was asked for again although it had
 * come: the peer, whose memory has gone, says this once and then nothing.
 */
static bool refuses_read(const struct ur_qp *qp, const struct ur_packet *p)
{
	const struct ur_wqe *wqe;
	uint32_t idx;

	if (p->bth.opcode != UR_RC_ACKNOWLEDGE ||
	    p->aeth.syndrome != (UR_SYNDROME_NAK | UR_NAK_REM_ACCESS))
		return false;
	wqe = find_wqe(qp, p->bth.psn, ur_wq_tail(&qp->sq), &idx);
	return wqe && (class_of(wqe) & OP_READ) && ur_psn_lt(p->bth.psn, qp->gbn.rec.una);
}

static __attribute__((noinline, cold)) enum ur_drop
loss_take_old(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	/* A repeated ACK may still bring credits. */
	if (p->bth.opcode == UR_RC_ACKNOWLEDGE && is_positive(p) &&
	    ur_psn_eq(ur_psn_add(p->bth.psn, 1), qp->gbn.rec.una)) {
		take_credits(&qp->req, &p->aeth);
		return UR_DROP_NONE;
	}
	if (p->op & UR_OP_READ_RESP) {
		ur_recovery_on_response(&qp->gbn.rec, now_ns);
		/* It was asked for again needlessly. */
		if (qp->gbn.has_reasked && ur_psn_eq(p->bth.psn, qp->gbn.reasked)) {
			qp->gbn.has_reasked = false;
			ur_reo_window_double(&qp->gbn.reo_window);
		}
	}
	if (!refuses_read(qp, p))
		return UR_DROP_PSN_STALE;
	ur_qp_fail(qp, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR);
	return UR_DROP_NONE;
}

/* ---- ACK and NAK ---- */

/* An ACK tells of the request at its PSN as well, a NAK of those before it. */
static inline enum ur_drop loss_take_ack(struct ur_qp *qp, const struct ur_packet *p,
					 struct ack *ack, uint64_t now_ns)
{
	bool plain = ack->kind == ACK_PLAIN, seq_nak = ack->kind == ACK_SEQ_NAK;

	if (plain)
		take_credits(&qp->req, &p->aeth);
	if (!ack_until(qp, ur_psn_add(p->bth.psn, plain), now_ns) && ack->kind != ACK_FATAL &&
	    !(seq_nak && !qp->gbn.rec.selective)) {
		/*
		 * REORDER-NAK-04. The peer misses a request, but una is a response that is missing: its
		 * NAK, which it does not repeat, is remembered until una gets there.
		 */
		if (seq_nak) {
			qp->gbn.nak_owed = true;
			qp->gbn.nak_psn = p->bth.psn;
		}
		return report_missing(qp, now_ns);
	}
	if (seq_nak || (plain && ur_recovery_is_alone(&qp->gbn.rec, now_ns)))
		recover_gap(qp, now_ns);
	return UR_DROP_NONE;
}

static inline enum ur_recovery_verdict loss_on_rnr(struct ur_qp *qp, const struct ur_packet *p,
						   const struct ack *ack, uint64_t delay_ns,
						   uint64_t now_ns)
{
	return ur_recovery_rnr(&qp->gbn.rec, delay_ns, now_ns);
}

static inline enum ur_drop loss_on_fatal_nak(struct ur_qp *qp, const struct ur_packet *p,
					     enum ibv_wc_status status)
{
	ur_qp_fail(qp, status, IBV_WC_WR_FLUSH_ERR);
	return UR_DROP_NONE;
}

/* ---- a predicted answer ---- */

enum {
	LOSS_TRANSPORT = UR_TRANSPORT_RC,
	LOSS_ACK_EXT_BYTES = 0,
	LOSS_RSP_EXT_BYTES = 0,
	LOSS_MIDDLE_EXT_BYTES = 0,
};

/* No response is missing, and nothing was sent again that the answer of the request `psn`, in flight, could tell of. */
static inline bool answers_in_order(const struct ur_gbn_requester *gbn, struct ur_psn psn)
{
	const struct ur_recovery *rec = &gbn->rec;

	if (!ur_psn_in(psn, rec->una, rec->nxt) || rec->probing)
		return false;
	/* Mode gbn has none of these, and does not fetch their lines. */
	return !rec->selective ||
	       (!gbn->gap && !gbn->nak_owed && ur_psn_le(gbn->executed, rec->una));
}

/* No READ or atomic is in flight. */
static inline bool loss_predicts_ack(const struct ur_qp *qp, struct ur_psn psn, const uint8_t *ext)
{
	return !qp->gbn.rec.reads_out && answers_in_order(&qp->gbn, psn);
}

static inline bool loss_predicts_response(const struct ur_qp *qp, const struct ur_wqe *wqe,
					  struct ur_psn psn, const uint8_t *ext)
{
	return ur_psn_eq(psn, qp->gbn.rec.una) && ur_psn_eq(psn, wqe->first_psn) &&
	       qp->gbn.rd_out && answers_in_order(&qp->gbn, psn);
}

/* All before `una` was answered: nothing of it was sent again. */
static inline void pass_predicted(struct ur_qp *qp, struct ur_psn una, uint64_t now_ns)
{
	struct ur_recovery *rec = &qp->gbn.rec;

	if (rec->selective)
		qp->gbn.executed = una;
	ur_recovery_on_ack(rec, una, now_ns);
	report_rtt(qp, now_ns);
}

static inline void loss_take_predicted_response(struct ur_qp *qp, const struct ur_wqe *wqe,
						const struct ur_aeth *aeth, const uint8_t *ext,
						uint64_t now_ns)
{
	take_credits(&qp->req, aeth);
	qp->gbn.rd_out--;
	ur_recovery_pass_read(&qp->gbn.rec, 1);
	pass_predicted(qp, ur_psn_add(wqe->first_psn, 1), now_ns);
	ur_send_queue_finish(qp, IBV_WC_SUCCESS);
}

static inline bool loss_predicts_middle(const struct ur_qp *qp, const struct ur_wqe *wqe,
					struct ur_psn psn, const uint8_t *behind, uint32_t *at)
{
	*at = (uint32_t)ur_psn_diff(psn, wqe->first_psn);
	return ur_psn_eq(psn, qp->gbn.rec.una) && answers_in_order(&qp->gbn, psn);
}

static inline void loss_take_predicted_middle(struct ur_qp *qp, struct ur_psn psn,
					      const uint8_t *behind, uint64_t now_ns)
{
	ur_recovery_pass_read(&qp->gbn.rec, 1);
	pass_predicted(qp, ur_psn_add(psn, 1), now_ns);
}

static inline bool loss_repeats(const struct ur_qp *qp)
{
	return false;
}

static inline void loss_take_predicted_ack(struct ur_qp *qp, struct ur_psn psn,
					   const struct ur_aeth *aeth, const uint8_t *ext,
					   uint64_t now_ns)
{
	take_credits(&qp->req, aeth);
	pass_predicted(qp, ur_psn_add(psn, 1), now_ns);
	complete_wqes(qp, false);
}

static inline bool loss_is_settled(const struct ur_qp *qp)
{
	const struct ur_recovery *rec = &qp->gbn.rec;

	return ur_psn_eq(rec->una, rec->max) && !(rec->selective && qp->gbn_rsp.reorder.ctx);
}

/* ---- responses ---- */

/* RC-COMP-ACK-02. A READ or atomic response acknowledges what comes before it. */
static inline enum ur_drop loss_find_target(struct ur_qp *qp, const struct ur_packet *p,
					    struct target *t, uint64_t now_ns)
{
	t->nr = p->bth.psn;
	t->early = !ack_until(qp, t->nr, now_ns);
	if (t->early) {
		ur_recovery_on_response(&qp->gbn.rec, now_ns);
		if (!qp->gbn.rec.selective)
			return report_missing(qp, now_ns);
	} else if (!ur_psn_eq(qp->gbn.rec.una, t->nr)) {
		return UR_DROP_PSN_STALE;
	}
	t->wqe = t->early ? find_wqe(qp, t->nr, ur_wq_tail(&qp->sq), &t->idx) : oldest_wqe(qp);
	if (!t->wqe)
		return UR_DROP_UNEXPECTED;
	t->at = (uint32_t)ur_psn_diff(t->nr, t->wqe->first_psn);
	return UR_DROP_NONE;
}

/* Whether fewer than UR_READ_GAP_NEAR responses lie in [from, psn). PSNs of other requests do not
 * count. */
static bool is_near(const struct ur_qp *qp, struct ur_psn from, struct ur_psn psn)
{
	uint32_t tail = ur_wq_tail(&qp->sq), between = 0;

	for (uint32_t i = qp->req.head; i != tail && between < UR_READ_GAP_NEAR; i++) {
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, i);
		struct ur_psn first = wqe->first_psn, end;

		if (!(wqe->flags & UR_WQE_BEGUN))
			break;
		end = ur_psn_add(first, loss_psns(qp, wqe));
		if (ur_psn_lt(first, from))
			first = from;
		if (ur_psn_lt(psn, end))
			end = psn;
		if (has_responses(wqe) && ur_psn_lt(first, end))
			between += (uint32_t)ur_psn_diff(end, first);
	}
	return between < UR_READ_GAP_NEAR;
}

static bool is_believed(const struct ur_qp *qp, struct ur_psn psn)
{
	struct ur_read_gap *g = qp->gbn.gap;
	bool near_run = ur_psn_le(g->run, psn) && is_near(qp, g->run, psn);

	return ur_read_gap_believes(g, psn, is_near(qp, g->sure, psn), near_run,
				    qp->window / UR_READ_GAP_NEAR);
}

/* REORDER-READ-01. Whether a response beyond the missing one at una is kept. */
static enum ur_drop check_early(struct ur_qp *qp, struct ur_psn psn, uint64_t now_ns)
{
	if (!take_gap(qp, now_ns) || ur_psn_diff(psn, qp->gbn.rec.una) >= UR_READ_GAP_WINDOW) {
		qp->core->cnt.early_dropped++;
		return imply_nak(qp, now_ns);
	}
	if (ur_read_gap_has(qp->gbn.gap, psn))
		return UR_DROP_PSN_STALE;
	if (!is_believed(qp, psn)) {
		qp->core->cnt.early_disbelieved++;
		return imply_nak(qp, now_ns);
	}
	return UR_DROP_NONE;
}

/*
 * RC-COMP-READ-01. An opcode that does not fit the end of a READ is refused. Where an answer begins is the
 * peer's choice when it was asked for again, so that nothing else is held against it.
 */
static inline enum ur_drop loss_check_target(struct ur_qp *qp, const struct ur_packet *p,
					     struct target *t, uint64_t now_ns)
{
	if (t->last && !(p->op & UR_OP_LAST))
		return UR_DROP_OP_SEQUENCE;
	return t->early ? check_early(qp, t->nr, now_ns) : UR_DROP_NONE;
}

static inline void loss_fail_target(struct ur_qp *qp, const struct target *t,
				    enum ibv_wc_status status, uint64_t now_ns)
{
	ur_qp_fail(qp, status, IBV_WC_WR_FLUSH_ERR);
}

static void record_response(struct ur_gbn_requester *gbn, struct ur_psn psn)
{
	ur_read_gap_on_response(gbn->gap, psn);
	if (ur_psn_le(gbn->executed, psn))
		gbn->executed = ur_psn_add(psn, 1);
}

/* It is the one at una. */
static inline void pass_response(struct ur_qp *qp, const struct target *t, uint64_t now_ns)
{
	struct ur_gbn_requester *gbn = &qp->gbn;

	if (__builtin_expect(gbn->gap != NULL, 0)) {
		record_response(gbn, t->nr);
	} else {
		/* After a rewind the request may not have been sent again yet. */
		if (t->ends && gbn->rd_out && ur_psn_lt(t->nr, gbn->rec.nxt))
			gbn->rd_out--;
		ur_recovery_pass_read(&gbn->rec, 1);
		advance_una(qp, ur_psn_add(t->nr, 1), now_ns);
	}
	/* What lies behind it may be known already: on to the next hole in one step. */
	if (qp->gbn.rec.selective && ur_psn_lt(gbn->rec.una, gbn->executed))
		ack_until(qp, gbn->executed, now_ns);
	/* Another peer may be about to answer what it kept; the timer tells. */
	if (ur_recovery_goes_back(&gbn->rec) && ur_recovery_is_alone(&gbn->rec, now_ns))
		recover_gap(qp, now_ns);
}

static inline enum ur_drop loss_on_response(struct ur_qp *qp, const struct ur_packet *p,
					    const struct target *t, uint64_t now_ns)
{
	if (p->op & UR_OP_AETH)
		take_credits(&qp->req, &p->aeth);
	if (__builtin_expect(!t->early, 1)) {
		pass_response(qp, t, now_ns);
		return UR_DROP_NONE;
	}
	qp->core->cnt.early_responses++;
	record_response(&qp->gbn, t->nr);
	judge_gap(qp, t->nr, now_ns);
	return UR_DROP_NONE;
}

/* ---- time ---- */

/* Silence for a measured time: the first packet sent for that is a probe of the tail. */
static inline void count_repeat(struct ur_qp *qp, uint64_t now_ns)
{
	if (qp->gbn.rec.backoff <= 1) {
		qp->core->cnt.probes_sent++;
		ur_repath_requests(qp); /* REPATH-REQ-02: a millisecond at least has passed */
		return;
	}
	qp->core->cnt.rto++;
	ur_dest_on_timeout(qp, now_ns);
	ur_repath_requests(qp); /* REPATH-REQ-01 */
}

/*
 * RC-COMP-EMPTY-02. A peer that never answers a READ of no bytes again answers what follows it, and that may be
 * lost too: repeating the READ alone would use up the retries.
 */
static inline bool repeats_empty_read(const struct ur_qp *qp)
{
	const struct ur_wqe *wqe = oldest_wqe(qp);

	return (class_of(wqe) & OP_READ) && !wqe->length && ur_recovery_has_repeated(&qp->gbn.rec);
}

static inline enum ur_recovery_verdict loss_on_timer(struct ur_qp *qp, uint64_t now_ns,
						     bool *timeout)
{
	bool rnr = qp->retry.is_waiting, unanswered = false;
	enum ur_recovery_verdict verdict;

	/* A missing response may count as lost now. */
	if (qp->gbn.gap && now_ns >= qp->gbn.gap->deadline_ns) {
		unanswered = qp->gbn.gap->asked;
		judge_gap(qp, qp->gbn.rec.una, now_ns);
	}
	verdict = ur_recovery_on_timer(&qp->gbn.rec, now_ns, timeout);
	if (*timeout && verdict != UR_RECOVERY_FAILED) {
		ur_dest_on_timeout(qp, now_ns);
		ur_repath_requests(qp); /* REPATH-REQ-01 */
	} else if (verdict == UR_RECOVERY_REPEAT && !rnr) {
		count_repeat(qp, now_ns);
	} else if (unanswered) {
		ur_repath_requests(qp); /* REPATH-REQ-02: only one change for one packet */
	}
	if (verdict == UR_RECOVERY_REPEAT && repeats_empty_read(qp))
		return ur_recovery_go_back(&qp->gbn.rec, now_ns);
	return verdict;
}

#endif
