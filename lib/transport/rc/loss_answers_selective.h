/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_LOSS_ANSWERS_SELECTIVE_H
#define UR_TRANSPORT_RC_LOSS_ANSWERS_SELECTIVE_H

#include "transport/admission.h"
#define LOSS_RSP ur_rspn
#include "transport/rc/loss_answers.h"
#include "transport/rc/selective_state.h"
#include "wire/predict.h"

/*
 * Answers in extended mode (rc/loss_answers.h). Every answer says how far the peer has executed requests (its
 * ePSN) and when the packet that caused it left (the echo), an ACK or NAK also which requests beyond a gap
 * have arrived. Responses have numbers of their own: they are placed in any order and acknowledge nothing but
 * themselves.
 */
enum { LOSS_IS_EXT = true };

/* EXT-COMP-TIMEOUT-01. Only what is oldest is sent again: it asks as well as all of it. */
static inline void loss_rewind(struct ur_qp *qp)
{
	struct ur_selective_env env = ur_ext_env(qp);
	struct ur_ext_requester *x = &qp->xreq;

	ur_selective_lose_una(ur_psn_eq(x->psn.una, x->psn.max) ? &x->rsp : &x->psn, &env);
}

static inline uint32_t loss_psns(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	return ur_ext_psns(qp, wqe);
}

/* Responses come of executed requests only. */
static inline int32_t loss_passed(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	const struct ur_ext_requester *x = &qp->xreq;

	return has_responses(wqe) ? ur_rspn_diff(ur_ext_rsp_una(x), wqe->first_rsp)
				  : ur_psn_diff(x->psn.una, wqe->first_psn);
}

/* ---- any answer ---- */

/* Nothing is in flight: there is nothing to find out. The next packet will see the delay that a probe asks for. */
static inline void stop_probing(struct ur_qp *qp)
{
	qp->xreq.probe &= ur_wq_tail(&qp->sq) != qp->req.cur ? UR_PROBE_DELAY : 0;
}

static __attribute__((noinline, cold)) void complete_admitted(struct ur_qp *qp, bool una_moved,
							      uint64_t now_ns)
{
	uint32_t received = complete_wqes(qp, true);

	if (una_moved)
		ur_admission_on_complete(qp, received, now_ns);
}

/* Something was acknowledged or answered; `una_moved`: requests. */
static inline __attribute__((always_inline)) void progress_here(struct ur_qp *qp, bool una_moved,
								uint64_t now_ns)
{
	bool idle;

	if (__builtin_expect(qp->admission & UR_ADM_SENDER, 0))
		complete_admitted(qp, una_moved, now_ns);
	else
		complete_wqes(qp, false);
	idle = ur_ext_idle(&qp->xreq);
	if (idle)
		stop_probing(qp);
	ur_retry_progress(&qp->retry, !idle, una_moved, now_ns);
	fail_oldest(qp);
}

static __attribute__((noinline)) void progress(struct ur_qp *qp, bool una_moved, uint64_t now_ns)
{
	progress_here(qp, una_moved, now_ns);
}

/* EXT-SEL-RTT-02. A round trip, if the echo is newer than *newest; 0: it tells nothing. */
static inline uint32_t take_sample(struct ur_qp *qp, struct ur_stamp *newest,
				   const struct ur_xaeth *h, bool read, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_stamp echo = ur_stamp_of(h->echo);
	uint32_t rtt;

	if (!ur_rtt_is_fresh(echo, *newest, qp->req.last_stamp))
		return 0;
	*newest = echo;
	rtt = ur_rtt_sample(&x->rtt, echo, h->residence, ur_stamp(now_ns));
	if (!rtt)
		return 0;
	/* Of an ACK, only the time for which the peer kept it counts for others: the rest may be a queue in the network. */
	if (!ur_psn_eq(x->rsp.una, x->rsp.max)) {
		ur_rtt_expect_more(&x->rtt, h->residence);
		ur_rtx_note_answer(&qp->core->rtx, rtt + h->residence, now_ns);
	} else {
		ur_rtx_note_kept_ack(&qp->core->rtx, h->residence, now_ns);
	}
	ur_dest_on_rtt(qp, rtt, h->residence, read, now_ns);
	return rtt;
}

/* Stamps come back in order by each path, whatever overtakes them by another. SPRAY-TELL-01 */
static __attribute__((noinline)) void take_echo_of_path(struct ur_qp *qp, const struct ur_xaeth *h,
							bool read, uint64_t now_ns)
{
	struct ur_spray_qp *spray = qp->xreq.spray;
	uint32_t rtt;

	if (h->path >= spray->paths.n)
		return;
	rtt = take_sample(qp, &spray->echoed[h->path], h, read, now_ns);
	if (rtt)
		ur_spray_acked(&spray->paths, h->path, rtt);
}

static __attribute__((noinline)) void balance(struct ur_qp *qp, uint32_t rtt, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;

	if (ur_plb_on_rtt(&x->plb, &x->rtt, rtt, ur_stamp(now_ns)))
		ur_repath_balance(qp);
	x->plb_is_on = ur_plb_is_on(&x->plb);
}

static inline void take_echo_of_own_path(struct ur_qp *qp, const struct ur_xaeth *h, bool read,
					 uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	uint32_t rtt = take_sample(qp, &x->echoed, h, read, now_ns);

	/* What READ responses wait for is on the way of the peer, by a port of its own. */
	if (rtt && !read && __builtin_expect(x->plb_is_on || ur_plb_begins(&x->rtt, rtt), 0))
		balance(qp, rtt, now_ns);
}

static inline void take_echo(struct ur_qp *qp, const struct ur_xaeth *h, bool read, uint64_t now_ns)
{
	if (__builtin_expect(qp->sprays, 0))
		take_echo_of_path(qp, h, read, now_ns);
	else
		take_echo_of_own_path(qp, h, read, now_ns);
}

/* CC-LOSS-01. Selective loss detection may have found something in what arrived. */
static void report_lost(struct ur_qp *qp, uint64_t now_ns)
{
	const struct ur_selective **by = &qp->core->rtx.lost_by;

	if (*by != &qp->xreq.psn && *by != &qp->xreq.rsp)
		return;
	*by = NULL;
	ur_dest_on_loss(qp, now_ns);
}

/* What the answer says of requests beside its echo; `sack`: of those beyond ePSN. The PSNs it acknowledges. */
static inline uint32_t take_epsn(struct ur_qp *qp, const struct ur_packet *p, bool sack,
				 uint64_t now_ns)
{
	struct ur_selective_env env = ur_ext_psn_env(qp);
	struct ur_ack_info ack = {
		.una = p->xaeth.epsn,
		.sack = sack ? p->payload : NULL,
		.sack_bits = sack ? p->payload_len * 8u : 0,
		.echo = ur_stamp_of(p->xaeth.echo),
		.partial = !sack,
	};

	if (__builtin_expect(sack && (p->op & UR_OP_BPTH), 0)) {
		ack.sack_at = p->bpth.offset;
		ack.more = p->bpth.flags & UR_BPTH_MORE;
	}
	return ur_selective_on_ack(&qp->xreq.psn, &env, &ack, now_ns);
}

/* The same of an answer without a bitmap, while requests are in order; it acknowledges some. */
static inline uint32_t take_epsn_in_order(struct ur_qp *qp, const struct ur_xaeth *h,
					  uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	uint32_t acked = (uint32_t)ur_psn_diff(h->epsn, x->psn.una);

	ur_selective_in_order(&x->psn, &x->rtt, &x->tx_times, h->epsn, ur_stamp_of(h->echo),
			      now_ns);
	return acked;
}

/*
 * EXT-COMP-CREDIT-02. Only the newest answer, what it acknowledges taken in, tells how many receives there are and
 * whether they are counted at all. Others were overtaken, or are forged: a quarter of all PSNs is old.
 */
static inline bool is_newest(const struct ur_qp *qp, const struct ur_packet *p)
{
	return ur_psn_eq(p->xaeth.epsn, qp->xreq.psn.una);
}

/* EXT-COMP-EPSN-01 */
static inline bool loss_is_current(const struct ur_qp *qp, const struct ur_packet *p)
{
	return (p->op & UR_OP_XAETH) && ur_selective_may_ack(&qp->xreq.psn, p->xaeth.epsn);
}

/* ADM-GRANT-04. The peer has a receive for the request that it refused: the RNR wait is over. */
static __attribute__((noinline, cold)) void end_rnr_wait(struct ur_qp *qp, uint64_t now_ns)
{
	if (!qp->retry.is_waiting)
		return;
	qp->retry.is_waiting = false;
	ur_retry_restart(&qp->retry, !ur_ext_idle(&qp->xreq), now_ns);
	loss_rewind(qp);
}

static __attribute__((noinline, cold)) enum ur_drop
loss_take_old(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	enum ur_drop drop;
	bool granted;

	if (!(p->op & UR_OP_NOTIFY))
		return p->op & UR_OP_XAETH ? UR_DROP_PSN_STALE : UR_DROP_MODE;
	drop = ur_admission_on_notify(qp, p, &granted, now_ns);
	if (granted)
		end_rnr_wait(qp, now_ns);
	return drop;
}

/* ---- ACK and NAK ---- */

/*
 * EXT-COMP-PROBE-01. The probe is back, and with it everything that the peer had sent before: what
 * is missing of the responses is lost, if all requests for them have been executed.
 */
static void take_probe_answer(struct ur_qp *qp, struct ur_stamp echo, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_selective_env env = ur_ext_rsp_env(qp);

	x->probed &= (uint8_t) ~(UR_PROBE_LOSS | UR_PROBE_TRAIN);
	if (!ur_psn_eq(x->rsp.una, x->rsp.max) &&
	    ur_rspn_eq(ur_ext_response_of(qp, x->psn.una), ur_ext_rsp_max(x)))
		ur_selective_on_probe_answer(&x->rsp, &env, echo, now_ns);
	report_lost(qp, now_ns);
}

/* The ACK or NAK answers the probe that asked for a delay. With a wide gap it has the lowest part of the bitmap, and no delay. */
static bool answers_ask(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (p->op & UR_OP_NDTH)
		return ur_dest_on_delay(qp, p, now_ns);
	return p->op & UR_OP_BPTH && !p->bpth.offset &&
	       ur_dest_on_no_delay(qp, ur_stamp_of(p->xaeth.echo));
}

/* A probe has been sent. Whether this answers one that was to find out what is lost; a delay is taken. */
static __attribute__((noinline)) bool is_probe_answer(struct ur_qp *qp, const struct ur_packet *p,
						      uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_stamp echo = ur_stamp_of(p->xaeth.echo);

	if (x->probed & UR_PROBE_DELAY && answers_ask(qp, p, now_ns))
		x->probed &= (uint8_t)~UR_PROBE_DELAY;
	if (!(x->probed & UR_PROBE_LOSS))
		return false;
	if (!(x->probed & UR_PROBE_TRAIN))
		return ur_stamp_eq(echo, x->probe_stamp);
	return ur_stamp_le(x->probe_stamp, echo) && ur_stamp_le(echo, qp->req.last_stamp);
}

/* What an ACK or NAK says of the peer's receive pool. */
static __attribute__((noinline, cold)) void take_status(struct ur_qp *qp, const struct ur_packet *p,
							struct ack *ack, bool probe_answered,
							uint64_t now_ns)
{
	bool held = qp->adm.queue_class;

	ur_admission_on_status(qp, p, now_ns);
	if (!is_newest(qp, p))
		return;
	/* ADM-GRANT-04, ADM-CLASS-02: a grant, or the queue class has gone. */
	ack->granted = qp->adm.queue_class ? p->asth.granted : held && probe_answered;
	if (ack->granted && ack->kind != ACK_RNR)
		end_rnr_wait(qp, now_ns);
}

/* EXT-COMP-CREDIT-01 */
static inline enum ur_drop loss_take_ack(struct ur_qp *qp, const struct ur_packet *p,
					 struct ack *ack, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_psn una = x->psn.una;
	bool probe_answered;
	uint32_t acked;

	qp->core->cnt.acks_received++;
	take_echo(qp, &p->xaeth, false, now_ns);
	acked = take_epsn(qp, p, true, now_ns);
	if (__builtin_expect((x->psn.flags | x->rsp.flags) != 0, 0))
		report_lost(qp, now_ns);
	if (ack->kind == ACK_PLAIN && is_newest(qp, p))
		take_credits(&qp->req, &p->aeth);
	probe_answered = x->probed && is_probe_answer(qp, p, now_ns);
	if (probe_answered)
		take_probe_answer(qp, ur_stamp_of(p->xaeth.echo), now_ns);
	if (acked)
		progress(qp, !ur_psn_eq(una, x->psn.una), now_ns);
	if (__builtin_expect(qp->admission & UR_ADM_SENDER, 0) && (p->op & UR_OP_ASTH) &&
	    !ur_qp_has_failed(qp))
		take_status(qp, p, ack, probe_answered, now_ns);
	return UR_DROP_NONE;
}

/* EXT-COMP-RNR-01 */
static inline enum ur_recovery_verdict loss_on_rnr(struct ur_qp *qp, const struct ur_packet *p,
						   const struct ack *ack, uint64_t delay_ns,
						   uint64_t now_ns)
{
	struct ur_retry *retry = &qp->retry;
	bool has_class = (p->op & UR_OP_ASTH) && qp->adm.queue_class;

	/* It is over, or not said of a request. */
	if (ur_psn_eq(p->bth.psn, qp->xreq.psn.una) && !ur_psn_eq(p->bth.psn, qp->xreq.psn.max)) {
		/* SPRAY-TELL-02 */
		if (qp->sprays)
			ur_spray_refused(qp->xreq.spray);
		/* ADM-CLASS-03: the peer keeps a place for the request. */
		if (has_class)
			qp->adm.wait_ns = delay_ns;
		if (!retry->is_waiting) {
			if (!has_class && !ur_retry_spend_rnr(retry))
				return UR_RECOVERY_FAILED;
			ur_retry_wait(retry, delay_ns, now_ns);
		}
		ur_ext_follow(qp, now_ns);
	}
	if (ack->granted)
		end_rnr_wait(qp, now_ns);
	return UR_RECOVERY_IGNORE;
}

/*
 * EXT-COMP-NAK-01. A request is refused: the one at una, or a READ before it that is not wholly
 * answered. It fails when those before it are complete.
 */
static inline enum ur_drop loss_on_fatal_nak(struct ur_qp *qp, const struct ur_packet *p,
					     enum ibv_wc_status status)
{
	struct ur_psn psn = p->bth.psn, una = qp->xreq.psn.una;
	const struct ur_wqe *wqe;
	uint32_t idx;

	if (ur_psn_eq(psn, qp->xreq.psn.max))
		return UR_DROP_UNEXPECTED;
	wqe = find_wqe(qp, psn, qp->req.head + ur_ext_begun(qp), &idx);
	if (!ur_psn_eq(psn, una) && (!wqe || ur_psn_lt(una, psn) || !(class_of(wqe) & OP_READ)))
		return UR_DROP_PSN_STALE;
	/* None: it belongs to what fails anyway. */
	if (wqe)
		ur_ext_requester_fail(qp, idx, status);
	qp->xreq.fatal_nak = true;
	qp->xreq.probe = 0;
	fail_oldest(qp);
	return UR_DROP_NONE;
}

/* ---- a predicted answer ---- */

enum {
	LOSS_TRANSPORT = UR_TRANSPORT_EXT,
	LOSS_ACK_EXT_BYTES = UR_XAETH_BYTES,
	LOSS_RSP_EXT_BYTES = UR_XAETH_BYTES + UR_XRTH_BYTES,
	LOSS_MIDDLE_EXT_BYTES = UR_AETH_BYTES + UR_XAETH_BYTES + UR_XRTH_BYTES,
};

/* Both sequences are in order, and no probe is awaited; the ACK brings news. */
static inline bool loss_predicts_ack(const struct ur_qp *qp, struct ur_psn psn, const uint8_t *ext)
{
	const struct ur_ext_requester *x = &qp->xreq;
	struct ur_psn last = ur_psn(ur_load32(ext + 8) - 1);

	return !(x->psn.flags | x->rsp.flags | x->probed | qp->admission) &&
	       ur_psn_in(last, x->psn.una, x->psn.max);
}

/* What it says of requests: the peer has executed more of them. */
static inline void take_predicted_epsn(struct ur_qp *qp, const struct ur_xaeth *xaeth,
				       uint64_t now_ns)
{
	qp->core->cnt.acks_received++;
	if (!ur_selective_end_flight(&qp->xreq.psn, xaeth->epsn))
		take_epsn_in_order(qp, xaeth, now_ns);
}

static inline void loss_take_predicted_ack(struct ur_qp *qp, struct ur_psn psn,
					   const struct ur_aeth *aeth, const uint8_t *ext,
					   uint64_t now_ns)
{
	struct ur_xaeth xaeth = ur_predict_xaeth(ext);

	take_echo(qp, &xaeth, false, now_ns);
	take_predicted_epsn(qp, &xaeth, now_ns);
	take_credits(&qp->req, aeth);
	progress_here(qp, true, now_ns);
}

static inline bool loss_repeats(const struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;

	return x->probe | x->psn.flags | x->rsp.flags;
}

static inline bool loss_is_settled(const struct ur_qp *qp)
{
	return ur_ext_idle(&qp->xreq) && !qp->xrsp.has_gap;
}

/* ---- responses ---- */

static inline enum ur_drop loss_find_target(struct ur_qp *qp, const struct ur_packet *p,
					    struct target *t, uint64_t now_ns)
{
	uint32_t begun = ur_ext_begun(qp), ahead;

	if (!begun)
		return UR_DROP_PSN_STALE;
	ahead = (p->xrth.ssn - oldest_wqe(qp)->ssn.v) & UR_PSN_MASK;
	if (ahead >= begun)
		return UR_DROP_PSN_STALE;
	t->idx = qp->req.head + ahead;
	t->wqe = ur_sq_at(&qp->sq, t->idx);
	t->at = p->xrth.offset;
	return UR_DROP_NONE;
}

/*
 * EXT-COMP-RSP-01. A response fits the WQE of its SSN if the WQE asked for its offset, with the PSN of the
 * request that did, which is executed.
 */
static inline enum ur_drop loss_check_target(struct ur_qp *qp, const struct ur_packet *p,
					     struct target *t, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_psn una = x->psn.una;

	if (t->at && (uint64_t)t->at << qp->mtu_shift >= t->wqe->length)
		return UR_DROP_UNEXPECTED;
	t->nr = ur_rspn_add(t->wqe->first_rsp, t->at);
	t->part = t->at >> __builtin_ctz(qp->req.read_psns);
	t->early = !ur_rspn_eq(t->nr, ur_ext_rsp_una(x));
	if (!ur_rspn_lt(t->nr, ur_ext_rsp_max(x)) ||
	    !ur_psn_eq(p->bth.psn, ur_psn_add(t->wqe->first_psn, t->part)) ||
	    !ur_psn_lt(p->bth.psn, p->xaeth.epsn))
		return UR_DROP_UNEXPECTED;
	if (t->fits) {
		/* The first packet of an answer tells what the wire takes, the others what the answer
		 * takes. */
		if (p->op & UR_OP_FIRST)
			take_echo(qp, &p->xaeth, true, now_ns);
		/* Most packets of an answer repeat what the first one said. */
		if (ur_psn_lt(una, p->xaeth.epsn))
			t->acked = x->psn.flags ? take_epsn(qp, p, false, now_ns)
						: take_epsn_in_order(qp, &p->xaeth, now_ns);
		t->una_moved = !ur_psn_eq(una, x->psn.una);
		qp->core->cnt.acks_received += t->acked > 0;
	}
	/* EXT-COMP-BAD-01. A repetition of what has come is not worth an error. */
	if (__builtin_expect(!t->early, 1) || !ur_selective_has_arrived(&x->rsp, ur_rspn_to(t->nr)))
		return UR_DROP_NONE;
	if (t->acked)
		progress(qp, t->una_moved, now_ns);
	return UR_DROP_PSN_STALE;
}

/* EXT-COMP-BAD-01. The WQE fails after those before it. */
static void loss_fail_target(struct ur_qp *qp, const struct target *t, enum ibv_wc_status status,
			     uint64_t now_ns)
{
	ur_ext_requester_fail(qp, t->idx, status);
	if (t->fits)
		progress(qp, t->una_moved, now_ns);
	fail_oldest(qp);
}

/*
 * EXT-COMP-PASS-01. The peer sends first answers in the order of their requests and repeats only
 * what it has sent before: whichever response has come, those before it have left, and the requests
 * that asked for them take no place at the peer any more, lost responses or not.
 */
static inline void free_places(struct ur_qp *qp, const struct target *t)
{
	uint16_t seq = (uint16_t)(t->wqe->rwqen + t->part + t->ends);

	if ((int16_t)(uint16_t)(seq - qp->xreq.rd_passed) > 0)
		qp->xreq.rd_passed = seq;
}

/* The atomic is answered: which is the oldest that is not? */
static void retire_atomic(struct ur_qp *qp, uint32_t idx)
{
	struct ur_ext_requester *x = &qp->xreq;

	if (!--x->atomic_cnt || idx != x->atomic)
		return;
	for (;;) {
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, ++x->atomic);

		/* The others are behind a WQE that is to fail: their answers are of no use. */
		if (x->atomic - qp->req.head >= ur_ext_begun(qp)) {
			x->atomic_cnt = 0;
			return;
		}
		if ((class_of(wqe) & OP_ATOMIC) &&
		    !ur_selective_has_arrived(&x->rsp, ur_rspn_to(wqe->first_rsp)))
			return;
	}
}

/* Of the response `t`; false: it had arrived before, or no context tracks it. */
static inline bool take_number(struct ur_qp *qp, const struct target *t, struct ur_stamp echo,
			       uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_selective_env env;

	if (__builtin_expect(!t->early && !x->rsp.flags, 1)) {
		ur_selective_in_order(&x->rsp, &x->rtt, &x->tx_times, ur_psn_add(x->rsp.una, 1),
				      x->rsp.rack_stamp, now_ns);
		return true;
	}
	env = ur_ext_rsp_env(qp);
	return ur_selective_on_response(&x->rsp, &env, ur_rspn_to(t->nr), echo, now_ns);
}

static inline enum ur_drop loss_on_response(struct ur_qp *qp, const struct ur_packet *p,
					    const struct target *t, uint64_t now_ns)
{
	bool arrived;

	if (is_newest(qp, p))
		take_credits(&qp->req, &p->aeth);
	arrived = take_number(qp, t, ur_stamp_of(p->xaeth.echo), now_ns);
	if (arrived) {
		if (__builtin_expect(t->early, 0)) {
			qp->core->cnt.early_responses++;
			report_lost(qp, now_ns);
		}
		free_places(qp, t);
		if (class_of(t->wqe) & OP_ATOMIC)
			retire_atomic(qp, t->idx);
	}
	if (t->acked || arrived)
		progress(qp, t->una_moved, now_ns);
	return arrived ? UR_DROP_NONE : UR_DROP_NO_CONTEXT;
}

#define XRTH_NUMBERS UINT64_C(0x00ffffff00ffffff) /* SSN and PSN_OFFSET */

/* Both sequences are in order, no probe is awaited, and what the response says of requests is no older than what is known. */
static inline bool loss_predicts_response(const struct ur_qp *qp, const struct ur_wqe *wqe,
					  struct ur_psn psn, const uint8_t *ext)
{
	const struct ur_ext_requester *x = &qp->xreq;
	struct ur_psn epsn = ur_psn(ur_load32(ext + 8)), end = ur_psn_add(x->psn.max, 1);
	uint64_t xrth = ur_load64(ext + UR_XAETH_BYTES) & XRTH_NUMBERS;

	return !(x->psn.flags | x->rsp.flags | x->probed | qp->admission) &&
	       ur_psn_in(epsn, x->psn.una, end) && ur_psn_lt(psn, epsn) &&
	       ur_psn_eq(psn, wqe->first_psn) && ur_rspn_eq(wqe->first_rsp, ur_ext_rsp_una(x)) &&
	       xrth == (uint64_t)wqe->ssn.v << 32;
}

static inline void loss_take_predicted_response(struct ur_qp *qp, struct ur_wqe *wqe,
						const struct ur_aeth *aeth, const uint8_t *ext,
						uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_xaeth xaeth = ur_predict_xaeth(ext);
	bool una_moved = ur_psn_lt(x->psn.una, xaeth.epsn);
	struct target t = {.wqe = wqe, .ends = true};
	struct ur_psn next = ur_psn_add(x->rsp.una, 1);

	take_echo(qp, &xaeth, true, now_ns);
	if (una_moved)
		take_predicted_epsn(qp, &xaeth, now_ns);
	take_credits(&qp->req, aeth);
	if (!ur_selective_end_flight(&x->rsp, next))
		ur_selective_in_order(&x->rsp, &x->rtt, &x->tx_times, next, x->rsp.rack_stamp,
				      now_ns);
	free_places(qp, &t);
	ur_send_queue_finish(qp, IBV_WC_SUCCESS);
	progress_here(qp, una_moved, now_ns);
}

/* It says no more of requests than is known; of the same one an earlier response has come. */
static inline bool loss_predicts_middle(const struct ur_qp *qp, const struct ur_wqe *wqe,
					struct ur_psn psn, const uint8_t *behind, uint32_t *at)
{
	const struct ur_ext_requester *x = &qp->xreq;
	const uint8_t *ext = behind + UR_AETH_BYTES;
	struct ur_psn epsn = ur_psn(ur_load32(ext + 8));
	uint64_t xrth = ur_load64(ext + UR_XAETH_BYTES) & XRTH_NUMBERS;

	*at = (uint32_t)ur_rspn_diff(ur_ext_rsp_una(x), wqe->first_rsp);
	return !(x->psn.flags | x->rsp.flags | x->probed | qp->admission) &&
	       ur_psn_eq(epsn, x->psn.una) && ur_psn_lt(psn, epsn) &&
	       ur_psn_eq(psn,
			 ur_psn_add(wqe->first_psn, *at >> __builtin_ctz(qp->req.read_psns))) &&
	       xrth == ((uint64_t)wqe->ssn.v << 32 | *at);
}

static inline void loss_take_predicted_middle(struct ur_qp *qp, struct ur_psn psn,
					      const uint8_t *behind, uint64_t now_ns)
{
	const struct ur_aeth aeth = {behind[0], ur_predict_low24(behind)};
	struct ur_ext_requester *x = &qp->xreq;

	take_credits(&qp->req, &aeth);
	ur_selective_in_order(&x->rsp, &x->rtt, &x->tx_times, ur_psn_add(x->rsp.una, 1),
			      x->rsp.rack_stamp, now_ns);
	ur_retry_progress(&qp->retry, true, false, now_ns);
}

/* ---- time ---- */

/* ADM-CLASS-02. The end of an RNR wait is no reason to send while the grant is still to come. */
static bool extend_rnr_wait(struct ur_qp *qp, uint64_t now_ns)
{
	uint64_t wait_ns;
	bool probe;

	if (!qp->retry.is_waiting || !(qp->admission & UR_ADM_HOLDER))
		return false;
	wait_ns = ur_admission_wait_on(qp, &probe, now_ns);
	if (!wait_ns)
		return false;
	if (probe)
		qp->xreq.probe = (qp->xreq.probe & UR_PROBE_AGAIN) | UR_PROBE_LOSS;
	qp->retry.rnr_until_ns = now_ns + wait_ns;
	return true;
}

/* What `s` wants at its deadline. True: it timed out. */
static bool expire(struct ur_qp *qp, struct ur_selective *s, uint64_t now_ns)
{
	struct ur_selective_env env = s == &qp->xreq.psn ? ur_ext_psn_env(qp) : ur_ext_rsp_env(qp);
	uint8_t backoff = s->backoff;

	if (now_ns < s->deadline_ns)
		return false;
	/* EXT-SEL-PROBE-04. With thousands of queue pairs a turn takes longer than the timeout. */
	if (qp->xreq.probe & UR_PROBE_LOSS) {
		ur_selective_rearm(s, &qp->xreq.rtt, now_ns);
		return false;
	}
	switch (ur_selective_on_timer(s, &env, now_ns)) {
	case UR_SELECTIVE_PROBE:
		qp->xreq.probe = UR_PROBE_LOSS;
		if (ur_selective_asks_again(s, &env, now_ns))
			qp->xreq.probe |= UR_PROBE_AGAIN;
		break;
	case UR_SELECTIVE_RESEND:
		/* ADM-HOLD-03: una alone is sent, and may have been lost, or the NAK of it. */
		if (s == &qp->xreq.psn && qp->adm.queue_class)
			ur_selective_lose_una(s, &env);
		break;
	case UR_SELECTIVE_NOTHING:
		break;
	}
	if (s->backoff == backoff)
		return false;
	qp->core->cnt.rto++;
	ur_dest_on_timeout(qp, now_ns);
	return true;
}

/*
 * EXT-COMP-TIMEOUT-02. What asks the peer waits for its turn while others have theirs, and nothing has left since the local
 * ACK timeout began: with thousands of queue pairs it is this end that is silent. Without turns it is the port that takes
 * nothing, and a dead peer may be the reason.
 */
static bool extend_ack_timeout(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_retry *retry = &qp->retry;
	uint64_t silent_ns = (uint64_t)ur_stamp_since(ur_stamp(now_ns), qp->req.last_stamp)
			     << UR_STAMP_SHIFT;

	uint16_t turns = (uint16_t)qp->core->cnt.sched_turns;

	if (retry->is_waiting || !ur_emux_is_active(&qp->sq_queue) || turns == retry->turns ||
	    silent_ns < UINT64_C(4096) << retry->timeout)
		return false;
	retry->turns = turns;
	ur_retry_restart(retry, true, now_ns);
	return true;
}

static inline enum ur_recovery_verdict loss_on_timer(struct ur_qp *qp, uint64_t now_ns,
						     bool *timeout)
{
	struct ur_ext_requester *x = &qp->xreq;
	enum ur_recovery_verdict verdict = UR_RECOVERY_IGNORE;
	bool lost, silent, asked;

	*timeout = false;
	if (ur_retry_is_due(&x->retry, now_ns) && !extend_rnr_wait(qp, now_ns) &&
	    !extend_ack_timeout(qp, now_ns))
		verdict = ur_retry_on_timer(&x->retry, !ur_ext_idle(x), now_ns, timeout);
	if (*timeout)
		ur_dest_on_timeout(qp, now_ns);
	if (verdict == UR_RECOVERY_REWIND)
		loss_rewind(qp);
	if (verdict == UR_RECOVERY_FAILED || x->retry.is_waiting)
		return verdict;
	asked = x->probe & UR_PROBE_AGAIN;
	lost = expire(qp, &x->psn, now_ns);
	silent = expire(qp, &x->rsp, now_ns);
	/* What both sequences want leaves as one packet. While a request is missing, responses are not asked for. */
	if (*timeout || lost || (silent && ur_psn_eq(x->psn.una, x->psn.max)) ||
	    (!asked && x->probe & UR_PROBE_AGAIN)) {
		ur_repath_requests(qp); /* REPATH-REQ-01, REPATH-REQ-02 */
		if (!qp->sprays) {
			ur_plb_on_silence(&x->plb, ur_stamp(now_ns));
			x->plb_is_on = true;
		}
	}
	/* The peer has stopped: responses that did not come before its NAK will not come. */
	if (x->fatal_nak && silent)
		ur_qp_fail(qp, qp->req.local_err, IBV_WC_WR_FLUSH_ERR);
	else if (ur_ext_idle(x))
		stop_probing(qp);
	return UR_RECOVERY_IGNORE;
}

#endif
