/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/dest.h"
#include "transport/rc/completer_priv.h"
#include "transport/send_queue.h"
#include "transport/sgl.h"
#include "wire/assert.h"
#include "wire/opcode.h"

static inline bool is_read(const struct ur_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ;
}

static inline bool is_atomic(const struct ur_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void verdict(struct ur_qp *qp, enum ur_recovery_verdict v)
{
	switch (v) {
	case UR_RECOVERY_IGNORE:
	case UR_RECOVERY_REPEAT:
		break;
	case UR_RECOVERY_REWIND:
		ur_requester_reposition(qp);
		break;
	case UR_RECOVERY_FAILED:
		qp->core->cnt.retry_exceeded_err++;
		ur_qp_fail(qp, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
		break;
	}
}

/* una has moved: what was noted before it is done with. */
static void advance_gap(struct ur_qp *qp, uint64_t now_ns)
{
	ur_read_gap_advance(qp->gbn.gap, qp->gbn.rec.una, &qp->gbn.reo_window, now_ns);
	if (!qp->gbn.gap->cnt && ur_psn_le(qp->gbn.executed, qp->gbn.rec.una))
		ur_completer_give_gap(qp);
	else if (!qp->gbn.gap->asked &&
		 ur_reo_window_is_over(&qp->gbn.reo_window, qp->gbn.gap->later))
		verdict(qp, ur_recovery_reask(&qp->gbn.rec));
}

/* CC-LOSS-01: the packet at una, or the response, is to be sent again. */
static void find_lost(struct ur_qp *qp, enum ur_recovery_verdict v, uint64_t now_ns)
{
	if (v == UR_RECOVERY_REWIND || v == UR_RECOVERY_REPEAT)
		ur_dest_on_loss(qp, now_ns);
	verdict(qp, v);
}

static void gap(struct ur_qp *qp, uint64_t now_ns)
{
	find_lost(qp, ur_recovery_gap(&qp->gbn.rec, now_ns), now_ns);
}

/*
 * REORDER-NAK-04. The peer misses a request, but una is a response that is missing: its NAK, which
 * it does not repeat, is remembered until una gets there.
 */
static void owe_nak(struct ur_qp *qp, struct ur_psn psn)
{
	qp->gbn.nak_owed = true;
	qp->gbn.nak_psn = psn;
}

static void settle_nak(struct ur_qp *qp, uint64_t now_ns)
{
	if (ur_psn_lt(qp->gbn.rec.una, qp->gbn.nak_psn))
		return;
	qp->gbn.nak_owed = false;
	if (ur_psn_eq(qp->gbn.rec.una, qp->gbn.nak_psn))
		gap(qp, now_ns);
}

/* PACE-RTT-01: standard mode measures a packet that asks for an answer, one at a time. */
static void tell_rtt(struct ur_qp *qp, uint64_t now_ns)
{
	ur_dest_on_rtt(qp, qp->gbn.rec.sample, now_ns);
	qp->gbn.rec.sample = 0;
}

/* Everything before `una` is acknowledged and its WQEs are completed. */
static void acked(struct ur_qp *qp, struct ur_psn una, uint64_t now_ns)
{
	if (!ur_psn_eq(una, qp->gbn.rec.una)) {
		bool rewound = ur_recovery_on_ack(&qp->gbn.rec, una, now_ns);

		if (__builtin_expect(qp->gbn.rec.sample != 0, 0))
			tell_rtt(qp, now_ns);
		if (rewound)
			ur_requester_reposition(qp);
		if (__builtin_expect(qp->gbn.gap != NULL, 0))
			advance_gap(qp, now_ns);
		if (__builtin_expect(qp->gbn.nak_owed, 0))
			settle_nak(qp, now_ns);
	}
	ur_send_queue_advance(qp);
}

/*
 * REORDER-READ-01. How far the READ or atomic at the head is answered from `una` on; its requests
 * that are answered wholly no longer count as outstanding.
 */
static struct ur_psn answered_until(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_psn una)
{
	struct ur_requester *req = &qp->req;
	unsigned shift = (unsigned)__builtin_ctz(req->read_psns);
	uint32_t psns = ur_send_queue_packets(qp, wqe), from, to, done;
	struct ur_psn next;

	if (!qp->gbn.gap)
		return una;
	next = ur_read_gap_missing(qp->gbn.gap, una, ur_psn_add(wqe->first_psn, psns));
	from = (uint32_t)ur_psn_diff(una, wqe->first_psn);
	to = (uint32_t)ur_psn_diff(next, wqe->first_psn);
	done = (to >> shift) - (from >> shift) + (to == psns && (psns & (req->read_psns - 1)));
	qp->gbn.rd_out -= (uint8_t)(done < qp->gbn.rd_out ? done : qp->gbn.rd_out);
	return next;
}

/*
 * RC-COMP-ACK-01. The peer has executed every request before PSN `end`. Completes them, as far as
 * no READ or atomic stands in the way whose response is missing. True when all of [una, end) went.
 */
static bool ack_until(struct ur_qp *qp, struct ur_psn end, uint64_t now_ns)
{
	struct ur_psn una = qp->gbn.rec.una, known = end;

	/* What an earlier ACK told is not told again. */
	if (qp->mode == UR_MODE_REORDER) {
		if (ur_psn_lt(qp->gbn.executed, end))
			qp->gbn.executed = end;
		known = qp->gbn.executed;
	}
	while (ur_psn_lt(una, known)) {
		const struct ur_wqe *wqe = oldest_wqe(qp);
		struct ur_psn next;

		if (wqe->flags & UR_WQE_DONE) {
			ur_send_queue_finish(qp, IBV_WC_SUCCESS);
			continue;
		}
		next = ur_psn_add(wqe->first_psn, ur_send_queue_packets(qp, wqe));
		if (is_read(wqe) || is_atomic(wqe)) {
			struct ur_psn from = una;

			una = answered_until(qp, wqe, una);
			ur_recovery_pass_read(&qp->gbn.rec, (uint32_t)ur_psn_diff(una, from));
			if (ur_psn_lt(una, next))
				break;
		} else if (ur_psn_lt(known, next)) {
			una = known;
			break;
		}
		ur_send_queue_finish(qp, IBV_WC_SUCCESS);
		una = next;
	}
	acked(qp, una, now_ns);
	return ur_psn_le(end, una);
}

void ur_completer_give_gap(struct ur_qp *qp)
{
	if (!qp->gbn.gap)
		return;
	ur_read_gap_give(&qp->core->read_gaps, qp->gbn.gap);
	qp->gbn.gap = NULL;
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

/* Something from beyond the missing response at una came; `psn` is its PSN, or una. */
static void judge_gap(struct ur_qp *qp, struct ur_psn psn, uint64_t now_ns)
{
	if (ur_read_gap_judge(qp->gbn.gap, psn, &qp->gbn.reo_window,
			      ur_recovery_answer_ns(&qp->gbn.rec), now_ns))
		find_lost(qp, ur_recovery_reask(&qp->gbn.rec), now_ns);
}

void ur_completer_gap_timer(struct ur_qp *qp, uint64_t now_ns)
{
	if (qp->gbn.gap && now_ns >= qp->gbn.gap->deadline_ns)
		judge_gap(qp, qp->gbn.rec.una, now_ns);
}

/* RC-COMP-IMPLIED-01. A response shows that one before it was lost (IBA 9.7.5.1.2). */
static enum ur_drop implied_nak(struct ur_qp *qp, bool held, uint64_t now_ns)
{
	qp->core->cnt.implied_nak_seq_err++;
	/* REORDER-READ-02: it may be late only, and the others need not come again. */
	if (held)
		judge_gap(qp, qp->gbn.rec.una, now_ns);
	else
		gap(qp, now_ns);
	return UR_DROP_PSN_GAP;
}

/* The same for what carries nothing that could be kept. */
static enum ur_drop missing(struct ur_qp *qp, uint64_t now_ns)
{
	return implied_nak(qp, qp->mode == UR_MODE_REORDER && take_gap(qp, now_ns), now_ns);
}

void ur_completer_credits(struct ur_requester *req, const struct ur_aeth *aeth)
{
	uint8_t code = aeth->syndrome & UR_SYNDROME_VALUE_MASK;
	struct ur_psn lsn;

	req->ack_seen = true;
	if (code == UR_CREDITS_NONE) {
		req->flow_control = false;
		return;
	}
	lsn = ur_psn(aeth->msn + ur_credits_decode(code));
	if (!req->flow_control || ur_psn_lt(ur_psn(req->lsn), lsn))
		req->lsn = lsn.v;
	req->flow_control = true;
}

static enum ur_drop rnr_nak(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_core *core = qp->core;

	core->cnt.rnr_nak_retry_err++;
	if (!ack_until(qp, p->bth.psn, now_ns))
		return missing(qp, now_ns);
	switch (ur_recovery_rnr(&qp->gbn.rec, ur_rnr_timer_ns(p->aeth.syndrome), now_ns)) {
	case UR_RECOVERY_FAILED:
		core->cnt.rnr_retry_exceeded_err++;
		ur_qp_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
		break;
	case UR_RECOVERY_REWIND:
		ur_requester_reposition(qp);
		break;
	case UR_RECOVERY_IGNORE:
	case UR_RECOVERY_REPEAT:
		break;
	}
	return UR_DROP_NONE;
}

enum ibv_wc_status ur_completer_nak_status(uint8_t code)
{
	static const uint8_t status[] = {
		[UR_NAK_INV_REQ] = IBV_WC_REM_INV_REQ_ERR,
		[UR_NAK_REM_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[UR_NAK_REM_OP] = IBV_WC_REM_OP_ERR,
		[UR_NAK_INV_RD_REQ] = IBV_WC_REM_INV_RD_REQ_ERR,
	};

	return code < sizeof(status) ? status[code] : IBV_WC_SUCCESS;
}

/* RC-COMP-NAK-01 */
static enum ur_drop nak(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	uint8_t code = p->aeth.syndrome & UR_SYNDROME_VALUE_MASK;

	if (code > UR_NAK_INV_RD_REQ)
		return UR_DROP_UNEXPECTED;
	if (code == UR_NAK_PSN_SEQ) {
		qp->core->cnt.packet_seq_err++;
		if (!ack_until(qp, p->bth.psn, now_ns) && qp->mode == UR_MODE_REORDER) {
			owe_nak(qp, p->bth.psn);
			return missing(qp, now_ns);
		}
		gap(qp, now_ns);
		return UR_DROP_NONE;
	}
	ack_until(qp, p->bth.psn, now_ns);
	ur_qp_fail(qp, ur_completer_nak_status(code), IBV_WC_WR_FLUSH_ERR);
	return UR_DROP_NONE;
}

static enum ur_drop ack(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	ur_completer_credits(&qp->req, &p->aeth);
	if (!ack_until(qp, ur_psn_add(p->bth.psn, 1), now_ns))
		return missing(qp, now_ns);
	if (ur_recovery_is_alone(&qp->gbn.rec, now_ns))
		gap(qp, now_ns);
	return UR_DROP_NONE;
}

static void response_done(struct ur_qp *qp, bool request_done, bool wqe_done, uint64_t now_ns)
{
	struct ur_psn next = ur_psn_add(qp->gbn.rec.una, 1);

	if (__builtin_expect(qp->gbn.gap != NULL, 0)) {
		/* On to the next hole in one step. */
		ur_read_gap_on_response(qp->gbn.gap, qp->gbn.rec.una);
		if (ur_psn_lt(qp->gbn.executed, next))
			qp->gbn.executed = next;
		ack_until(qp, qp->gbn.executed, now_ns);
		return;
	}
	/* After a rewind the request may not have been sent again yet. */
	if (request_done && qp->gbn.rd_out && ur_psn_lt(qp->gbn.rec.una, qp->gbn.rec.nxt))
		qp->gbn.rd_out--;
	if (wqe_done)
		ur_send_queue_finish(qp, IBV_WC_SUCCESS);
	ur_recovery_pass_read(&qp->gbn.rec, 1);
	acked(qp, next, now_ns);
	/* What lies behind it may be known already. */
	if (qp->mode == UR_MODE_REORDER && ur_psn_lt(next, qp->gbn.executed))
		ack_until(qp, qp->gbn.executed, now_ns);
}

/* The WQE in flight that PSN `psn` of [una, max) belongs to. */
static const struct ur_wqe *wqe_of(const struct ur_qp *qp, struct ur_psn psn)
{
	uint32_t tail = ur_wq_tail(&qp->sq);

	for (uint32_t i = qp->req.head; i != tail; i++) {
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, i);

		if (wqe->flags & UR_WQE_DONE)
			continue;
		if (!(wqe->flags & UR_WQE_BEGUN))
			break;
		if (ur_psn_in(psn, wqe->first_psn,
			      ur_psn_add(wqe->first_psn, ur_send_queue_packets(qp, wqe))))
			return wqe;
	}
	return NULL;
}

/*
 * RC-COMP-READ-01. An opcode that does not fit the end of a READ. Where an answer begins is the
 * peer's choice when it was asked for again, so that nothing else is held against it.
 */
static bool misplaced(const struct ur_qp *qp, const struct ur_wqe *wqe, const struct ur_packet *p)
{
	struct ur_psn end = ur_psn_add(wqe->first_psn, ur_send_queue_packets(qp, wqe));

	return (p->op & UR_OP_READ_RESP) && !(p->op & UR_OP_LAST) &&
	       ur_psn_eq(ur_psn_add(p->bth.psn, 1), end);
}

/* Writes what the response brings to where its WQE wants it; NONE, or the QP is in error. */
static enum ur_drop place(struct ur_qp *qp, const struct ur_wqe *wqe, const struct ur_packet *p)
{
	const uint8_t *from = p->payload;
	uint32_t off = 0, len = sizeof(p->atomic_ack), left, mtu = 1u << qp->mtu_shift;

	if (p->op & UR_OP_READ_RESP) {
		off = (uint32_t)ur_psn_diff(p->bth.psn, wqe->first_psn) << qp->mtu_shift;
		left = wqe->length - off;
		len = left < mtu ? left : mtu;
		if (p->payload_len != len) {
			ur_qp_fail(qp, IBV_WC_BAD_RESP_ERR, IBV_WC_WR_FLUSH_ERR);
			return UR_DROP_MSG_LENGTH;
		}
	} else {
		from = (const uint8_t *)&p->atomic_ack;
	}
	if (!ur_sgl_scatter(qp->core->mem, qp->pd, ur_wqe_data(wqe), wqe->num_sge, off, from,
			    len)) {
		ur_qp_fail(qp, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR);
		return UR_DROP_RECV_BUFFER;
	}
	if (p->op & UR_OP_AETH)
		ur_completer_credits(&qp->req, &p->aeth);
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

		if (wqe->flags & UR_WQE_DONE)
			continue;
		if (!(wqe->flags & UR_WQE_BEGUN))
			break;
		end = ur_psn_add(first, ur_send_queue_packets(qp, wqe));
		if (ur_psn_lt(first, from))
			first = from;
		if (ur_psn_lt(psn, end))
			end = psn;
		if ((is_read(wqe) || is_atomic(wqe)) && ur_psn_lt(first, end))
			between += (uint32_t)ur_psn_diff(end, first);
	}
	return between < UR_READ_GAP_NEAR;
}

static bool believes(const struct ur_qp *qp, struct ur_psn psn)
{
	struct ur_read_gap *g = qp->gbn.gap;
	bool near_run = ur_psn_le(g->run, psn) && is_near(qp, g->run, psn);

	return ur_read_gap_believes(g, psn, is_near(qp, g->sure, psn), near_run,
				    qp->window / UR_READ_GAP_NEAR);
}

/* REORDER-READ-01. A response beyond the missing one at una. */
static enum ur_drop early_response(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	const struct ur_wqe *wqe = wqe_of(qp, p->bth.psn);
	enum ur_drop drop;
	bool held;

	if (!wqe || !(p->op & UR_OP_READ_RESP ? is_read(wqe) : is_atomic(wqe)))
		return UR_DROP_UNEXPECTED;
	if (misplaced(qp, wqe, p))
		return UR_DROP_OP_SEQUENCE;
	held = take_gap(qp, now_ns);
	if (!held || ur_psn_diff(p->bth.psn, qp->gbn.rec.una) >= UR_READ_GAP_WINDOW) {
		qp->core->cnt.early_dropped++;
		return implied_nak(qp, held, now_ns);
	}
	if (ur_read_gap_has(qp->gbn.gap, p->bth.psn))
		return UR_DROP_PSN_STALE;
	if (!believes(qp, p->bth.psn)) {
		qp->core->cnt.early_disbelieved++;
		return implied_nak(qp, held, now_ns);
	}
	drop = place(qp, wqe, p);
	if (drop)
		return drop;
	qp->core->cnt.early_responses++;
	ur_read_gap_on_response(qp->gbn.gap, p->bth.psn);
	if (ur_psn_le(qp->gbn.executed, p->bth.psn))
		qp->gbn.executed = ur_psn_add(p->bth.psn, 1);
	judge_gap(qp, p->bth.psn, now_ns);
	return UR_DROP_NONE;
}

/*
 * RC-COMP-ACK-02, RC-COMP-READ-01, RC-COMP-READ-02. A READ or atomic response acknowledges what
 * comes before it.
 */
static enum ur_drop response(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	bool read = p->op & UR_OP_READ_RESP;
	const struct ur_wqe *wqe;
	enum ur_drop drop;
	uint32_t idx, psns;

	if (!ack_until(qp, p->bth.psn, now_ns)) {
		ur_recovery_on_response(&qp->gbn.rec, now_ns);
		return qp->mode == UR_MODE_REORDER ? early_response(qp, p, now_ns)
						   : missing(qp, now_ns);
	}
	if (!ur_psn_eq(qp->gbn.rec.una, p->bth.psn))
		return UR_DROP_PSN_STALE;
	wqe = oldest_wqe(qp);
	if (!(read ? is_read(wqe) : is_atomic(wqe)))
		return UR_DROP_UNEXPECTED;
	if (misplaced(qp, wqe, p))
		return UR_DROP_OP_SEQUENCE;
	drop = place(qp, wqe, p);
	if (drop)
		return drop;
	idx = (uint32_t)ur_psn_diff(p->bth.psn, wqe->first_psn) + 1;
	psns = ur_send_queue_packets(qp, wqe);
	response_done(qp, idx == psns || (idx & (qp->req.read_psns - 1)) == 0, idx == psns, now_ns);
	/* Another peer may be about to answer what it kept; the timer tells. */
	if (ur_recovery_goes_back(&qp->gbn.rec) && ur_recovery_is_alone(&qp->gbn.rec, now_ns))
		gap(qp, now_ns);
	return UR_DROP_NONE;
}

/* A response that came already: was it asked for again needlessly? */
static void repeated_response(struct ur_qp *qp, struct ur_psn psn)
{
	if (!qp->gbn.has_reasked || !ur_psn_eq(psn, qp->gbn.reasked))
		return;
	qp->gbn.has_reasked = false;
	ur_reo_window_double(&qp->gbn.reo_window);
}

/*
 * RC-COMP-NAK-02. The READ at una is refused from a PSN that was asked for again although it had
 * come: the peer, whose memory has gone, says this once and then nothing.
 */
static bool refuses_read(const struct ur_qp *qp, const struct ur_packet *p)
{
	const struct ur_wqe *wqe;

	if (p->bth.opcode != UR_RC_ACKNOWLEDGE ||
	    p->aeth.syndrome != (UR_SYNDROME_NAK | UR_NAK_REM_ACCESS))
		return false;
	wqe = wqe_of(qp, qp->gbn.rec.una);
	return wqe && is_read(wqe) && ur_psn_in(p->bth.psn, wqe->first_psn, qp->gbn.rec.una);
}

/* RC-COMP-PSN-01 */
enum ur_drop ur_completer_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_recovery *rec = &qp->gbn.rec;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return UR_DROP_QP_STATE;
	if (!ur_psn_in(p->bth.psn, rec->una, rec->max)) {
		/* A repeated ACK may still bring credits. */
		if (p->bth.opcode == UR_RC_ACKNOWLEDGE &&
		    (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_ACK &&
		    ur_psn_eq(ur_psn_add(p->bth.psn, 1), rec->una)) {
			ur_completer_credits(&qp->req, &p->aeth);
			return UR_DROP_NONE;
		}
		if (p->op & UR_OP_READ_RESP) {
			ur_recovery_on_response(rec, now_ns);
			repeated_response(qp, p->bth.psn);
		}
		if (!refuses_read(qp, p))
			return UR_DROP_PSN_STALE;
		ur_qp_fail(qp, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR);
		return UR_DROP_NONE;
	}
	if (p->op & UR_OP_READ_RESP) {
		if ((p->op & UR_OP_AETH) &&
		    (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) != UR_SYNDROME_ACK)
			return UR_DROP_UNEXPECTED;
		return response(qp, p, now_ns);
	}
	switch (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) {
	case UR_SYNDROME_ACK:
		return p->bth.opcode == UR_RC_ATOMIC_ACKNOWLEDGE ? response(qp, p, now_ns)
								 : ack(qp, p, now_ns);
	case UR_SYNDROME_RNR_NAK:
		return rnr_nak(qp, p, now_ns);
	case UR_SYNDROME_NAK:
		return nak(qp, p, now_ns);
	default:
		return UR_DROP_UNEXPECTED;
	}
}
