/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_LOSS_SELECTIVE_H
#define UR_TRANSPORT_RC_LOSS_SELECTIVE_H

#include "transport/admission.h"
#include "transport/dest.h"
#define LOSS_RSP ur_rspn
#include "transport/rc/loss.h"
#include "transport/rc/selective_state.h"
#include "wire/assert.h"
#include "wire/delay.h"

/*
 * The loss engine of extended mode (rc/loss.h) over selective.h. `cur` only moves on; what is lost, requests
 * and responses by their own numbers, is sent again from where it lies in the send queue.
 */

/* A WQE that is not complete is at most so many PSNs old, so that PSNs of WQEs can be compared. */
#define SPAN_MAX (UR_PSN_WINDOW / 2)

#define TWICE_LEAST 4 /* responses that a request asks for which leaves twice */

static inline bool loss_is_reliable(const struct ur_qp *qp)
{
	(void)qp;
	return true;
}

static inline struct ur_psn loss_next_psn(const struct ur_qp *qp)
{
	return qp->xreq.psn.max;
}

static inline bool loss_is_idle(const struct ur_qp *qp)
{
	return ur_psn_eq(qp->xreq.psn.una, qp->xreq.psn.max);
}

static inline bool loss_is_done(const struct ur_qp *qp)
{
	return ur_psn_eq(qp->xreq.psn.una, qp->xreq.psn.max);
}

static inline bool loss_is_begun(const struct ur_qp *qp)
{
	return qp->req.cur_off;
}

static inline bool loss_holds(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_has_answers_due(const struct ur_qp *qp)
{
	return !ur_psn_eq(qp->xreq.rsp.una, qp->xreq.rsp.max);
}

/* EXT-REQ-WINDOW-01 */
static inline bool loss_has_credit(const struct ur_qp *qp, unsigned class)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_selective *psn = &qp->xreq.psn;

	(void)class;
	if (!ur_selective_credit(psn))
		return false;
	return req->cur == req->head || ur_psn_diff(psn->max, oldest_wqe(qp)->first_psn) < SPAN_MAX;
}

/* How many times in a row it would hold, if each time a packet of data were sent. */
static inline uint32_t loss_data_credit(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_selective *psn = &qp->xreq.psn;
	uint32_t credit = ur_selective_credit(psn);
	int32_t left = req->cur == req->head
			       ? SPAN_MAX
			       : SPAN_MAX - ur_psn_diff(psn->max, oldest_wqe(qp)->first_psn);

	/* LOSS-OWN-02. What takes a larger context goes by itself: where there is none, no more may follow. */
	if (__builtin_expect(psn->flags, 0) && psn->rtx) {
		uint32_t sent = (uint32_t)ur_psn_diff(psn->max, psn->una), span = psn->rtx->span;
		uint32_t room = sent < span ? span - sent : 0;

		credit = credit < room ? credit : room;
	}
	return left < (int32_t)credit ? (uint32_t)(left > 0 ? left : 0) : credit;
}

/*
 * EXT-REQ-ATOMIC-01. The peer remembers the results of so many requests: what an atomic found must
 * not be forgotten before it has arrived.
 */
static bool would_forget(const struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;
	uint16_t since;

	if (!x->atomic_cnt)
		return false;
	since = (uint16_t)(x->rd_seq - ur_sq_at(&qp->sq, x->atomic)->rwqen);
	return since >= qp->req.max_rd_atomic;
}

/* Response packets that the next request of the READ or atomic asks for. */
static __attribute__((noinline)) uint32_t responses_next(const struct ur_qp *qp,
							 const struct ur_wqe *wqe)
{
	uint32_t first = qp->req.cur_off >> qp->mtu_shift;

	return class_of(wqe) & OP_READ ? read_part(qp, wqe, first).n : 1;
}

/* EXT-REQ-READ-01 */
static inline bool loss_may_read(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	const struct ur_requester *req = &qp->req;
	uint32_t credit;

	if (ur_ext_reads_out(&qp->xreq) >= req->max_rd_atomic || would_forget(qp))
		return false;
	credit = ur_selective_credit(&qp->xreq.rsp);
	return credit >= req->read_psns || credit >= responses_next(qp, wqe);
}

/* Of WQE `cur`: a message that takes a receive begins. */
static inline bool begins_receive(const struct ur_qp *qp)
{
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, qp->req.cur);

	return (class_of(wqe) & OP_RECV) && !(wqe->flags & UR_WQE_BEGUN);
}

static inline bool loss_may_begin(const struct ur_qp *qp)
{
	return !(__builtin_expect(qp->admission & UR_ADM_HOLDER, 0) && begins_receive(qp) &&
		 ur_admission_holds(qp));
}

static inline bool loss_is_held(const struct ur_qp *qp)
{
	return __builtin_expect(qp->admission & UR_ADM_HOLDER, 0);
}

static inline void loss_before_new(struct ur_qp *qp, bool may_go_on)
{
	ur_admission_update(qp, may_go_on && begins_receive(qp));
}

enum { LOSS_PROBES = true, LOSS_TWICE = true };

/* ADM-CLASS-02. A queue pair that waits for a grant asks whether it still has its queue class. */
static inline bool loss_may_probe(const struct ur_qp *qp)
{
	return (qp->xreq.probe & UR_PROBE_LOSS) && (qp->admission & UR_ADM_HOLDER) &&
	       qp->adm.queue_class;
}

/* The stamp of a packet that is made now is no other packet's. */
static inline bool loss_is_alone(const struct ur_qp *qp, uint64_t now_ns)
{
	return !ur_stamp_eq(ur_stamp(now_ns), qp->req.last_stamp);
}

/* EXT-REQ-PROBE-01. The answer to a probe tells only if its stamp is no other packet's. */
static inline void loss_sent_probe(struct ur_qp *qp, struct ur_tx *tx, bool alone, uint64_t now_ns)
{
	struct ur_selective_env env = ur_ext_env(qp);
	struct ur_ext_requester *x = &qp->xreq;
	uint8_t *flags = &tx->hdr[qp->path->len + UR_BTH_BYTES + UR_XTH_FLAGS];
	bool asks = x->probe == UR_PROBE_DELAY;

	if (x->probe & UR_PROBE_AGAIN)
		*flags |= UR_XTH_RETRY;
	x->probe = 0;
	/* PACE-NET-04. The path may drop it, so nothing else depends on the answer. */
	if (asks) {
		x->probed |= UR_PROBE_DELAY;
		tx->hdr[qp->path->len + UR_DELAY_BTH] |= UR_DELAY_ASK;
		/* PACE-NET-06 */
		if (ur_dest_on_ask(qp, ur_stamp(now_ns), now_ns))
			*flags |= UR_XTH_BACK;
		return;
	}
	if (!alone || !(x->probed & UR_PROBE_TRAIN))
		x->probe_stamp = ur_stamp(now_ns);
	x->probed = (uint8_t)((x->probed & UR_PROBE_DELAY) |
			      (alone ? UR_PROBE_LOSS | UR_PROBE_TRAIN : 0));
	qp->req.since_ackreq = 0;
	ur_selective_on_probe_sent(&x->psn, &env, now_ns);
	ur_selective_on_probe_sent(&x->rsp, &env, now_ns);
	qp->core->cnt.probes_sent++;
}

/* ---- asking for ACKs ---- */

/* EXT-REQ-ACK-01 */
static inline bool loss_wants_ack(const struct ur_qp *qp)
{
	return ur_selective_credit(&qp->xreq.psn) <= 1;
}

static inline bool loss_stalls_before(const struct ur_qp *qp, const struct ur_wqe *next)
{
	(void)qp;
	(void)next;
	return false;
}

/* RC-REQ-ACK-02: what carried no AckReq would wait for a timer. A probe asks in its stead, in its turn. */
static inline bool loss_ask_for_ack(struct ur_qp *qp)
{
	if (qp->req.since_ackreq && !loss_is_idle(qp))
		qp->xreq.probe = (qp->xreq.probe & UR_PROBE_AGAIN) | UR_PROBE_LOSS;
	return false;
}

/* ---- sending ---- */

/* EXT-REQ-PSN-01 */
static inline uint32_t loss_number(struct ur_qp *qp, struct ur_wqe *wqe, unsigned class)
{
	struct ur_ext_requester *x = &qp->xreq;

	wqe->first_rsp = ur_ext_rsp_max(x);
	wqe->rwqen = class & (OP_READ | OP_ATOMIC) ? x->rd_seq : x->rwqen;
	if (class & OP_RECV) {
		x->rwqen = (x->rwqen & ~UR_PSN_MASK) | ((x->rwqen + 1) & UR_PSN_MASK);
		ur_admission_begin(qp);
	}
	return 1;
}

/* SPRAY-TELL-01. Which way the packet of `psn` went; whose path is forgotten blames none. */
static inline void record_path(struct ur_qp *qp, struct ur_psn psn, bool again)
{
	if (__builtin_expect(qp->sprays, 0))
		ur_spray_sent(qp->xreq.spray, psn, qp->spray_path,
			      again && ur_psn_diff(qp->xreq.psn.max, psn) <= UR_SPRAY_PSNS);
}

/* The last `n` numbers of `s` have left. */
static inline void record_sent(struct ur_qp *qp, struct ur_selective *s, uint32_t n,
			       uint64_t now_ns)
{
	const struct ur_selective_env env = ur_ext_env(qp);

	ur_selective_on_send(s, &env, n, now_ns);
}

/* `joins`: another one was recorded in this call, and nothing has happened since. */
static inline void record_request(struct ur_qp *qp, bool joins, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;

	record_path(qp, x->psn.max, false);
	if (joins && __builtin_expect(!x->psn.flags, 1)) {
		ur_selective_join(&x->psn, &x->tx_times);
		return;
	}
	if (ur_selective_on_send_too(&x->psn, &x->tx_times, now_ns))
		return;
	if (ur_psn_eq(x->psn.una, x->psn.max)) {
		ur_selective_begin_flight(&x->psn, &x->rtt, &x->tx_times, ur_ext_idle(x), now_ns);
		return;
	}
	record_sent(qp, &x->psn, 1, now_ns);
}

static inline void record_responses(struct ur_qp *qp, uint32_t n, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;

	x->rd_seq++;
	if (n == 1 && ur_selective_on_send_too(&x->rsp, &x->tx_times, now_ns))
		return;
	if (n == 1 && ur_psn_eq(x->rsp.una, x->rsp.max)) {
		ur_selective_begin_flight(&x->rsp, &x->rtt, &x->tx_times, ur_ext_idle(x), now_ns);
		return;
	}
	record_sent(qp, &x->rsp, n, now_ns);
}

static inline void loss_sent(struct ur_qp *qp, bool ackreq, bool joins, uint64_t now_ns)
{
	(void)ackreq;
	record_request(qp, joins, now_ns);
	qp->xreq.reads_from = qp->xreq.psn.max;
}

/*
 * EXT-REQ-TWICE-01. While packets are being lost each READ request leaves twice: it is short, and without it the peer is
 * silent, for this READ and all behind it.
 */
static inline void send_twice(struct ur_qp *qp, struct ur_rspn nr, uint32_t n, bool is_new)
{
	struct ur_rtx *rtx;

	if (__builtin_expect(!qp->xreq.rsp.flags, 1))
		return;
	rtx = qp->xreq.rsp.rtx;
	if (rtx && rtx->losses == UR_RTX_LOSSES && (!is_new || n >= TWICE_LEAST))
		rtx->twice = (struct ur_rtx_twice){ur_rspn_to(nr), (uint16_t)n, is_new};
}

/* A READ of `n` responses, while nothing is in flight. */
static inline void begin_read(struct ur_qp *qp, uint32_t n, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;

	x->rd_seq++;
	record_path(qp, x->psn.max, false);
	ur_selective_begin_flights(&x->psn, &x->rsp, n, &x->rtt, &x->tx_times, now_ns);
}

static inline void loss_sent_read(struct ur_qp *qp, uint32_t n, uint64_t now_ns)
{
	struct ur_rspn nr = ur_ext_rsp_max(&qp->xreq);

	if (ur_ext_idle(&qp->xreq)) {
		begin_read(qp, n, now_ns);
	} else {
		record_responses(qp, n, now_ns);
		record_request(qp, false, now_ns);
	}
	send_twice(qp, nr, n, true);
	/* So that it never falls half the numbers behind. */
	if (ur_psn_lt(qp->xreq.reads_from, qp->xreq.psn.una))
		qp->xreq.reads_from = qp->xreq.psn.una;
}

static inline void loss_sent_atomic(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;

	if (!x->atomic_cnt++)
		x->atomic = qp->req.cur;
	record_responses(qp, 1, now_ns);
	record_request(qp, false, now_ns);
	x->reads_from = x->psn.max;
}

static inline void loss_after_send(struct ur_qp *qp, uint64_t now_ns)
{
	ur_retry_follow(&qp->retry, true, now_ns);
}

/* ---- again ---- */

static inline bool is_from(const struct ur_qp *qp, uint32_t idx, struct ur_psn psn,
			   struct ur_rspn rsp, bool by_response)
{
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, idx);

	return by_response ? ur_rspn_le(wqe->first_rsp, rsp) : ur_psn_le(wqe->first_psn, psn);
}

/*
 * The last WQE of those begun whose first PSN (response number) is not after `nr`; the oldest one's is
 * not. Something is begun.
 */
static uint32_t search(const struct ur_qp *qp, struct ur_psn psn, struct ur_rspn rsp,
		       bool by_response)
{
	uint32_t lo = qp->req.head, cnt = ur_ext_begun(qp), step;

	UR_ASSERT(cnt > 0);
	/* A READ that leaves twice is the newest. What is lost belongs to one of the oldest: steps that grow, then halves. */
	if (is_from(qp, lo + cnt - 1, psn, rsp, by_response))
		return lo + cnt - 1;
	for (step = 1; step < cnt && is_from(qp, lo + step, psn, rsp, by_response); step *= 2) {
		lo += step;
		cnt -= step;
	}
	cnt = step < cnt ? step : cnt;
	while (cnt > 1) {
		uint32_t half = cnt / 2;

		if (is_from(qp, lo + half, psn, rsp, by_response)) {
			lo += half;
			cnt -= half;
		} else {
			cnt = half;
		}
	}
	return lo;
}

static inline uint32_t loss_find(const struct ur_qp *qp, struct ur_psn psn)
{
	return search(qp, psn, ur_rspn(0), false);
}

static inline uint32_t loss_find_rsp(const struct ur_qp *qp, struct ur_rspn nr)
{
	return search(qp, ur_psn(0), nr, true);
}

static inline struct ur_rspn loss_first_response(const struct ur_wqe *wqe)
{
	return wqe->first_rsp;
}

static inline struct ur_psn loss_request_psn(const struct ur_qp *qp, const struct ur_wqe *wqe,
					     uint32_t i)
{
	return ur_psn_add(wqe->first_psn, i >> __builtin_ctz(qp->req.read_psns));
}

/* A request that is to be sent again. */
static bool next_lost_request(const struct ur_qp *qp, struct ur_psn *nr)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_wqe *failing;

	if (!ur_selective_next_lost(&qp->xreq.psn, nr))
		return false;
	/* ADM-HOLD-03. What follows a message that was refused would be dropped. */
	if (__builtin_expect(qp->admission & UR_ADM_SENDER, 0) && qp->adm.queue_class &&
	    !ur_psn_eq(*nr, qp->xreq.psn.una))
		return false;
	if (!req->local_err)
		return true;
	failing = ur_sq_at(&qp->sq, req->cur);
	return !(failing->flags & UR_WQE_BEGUN) || ur_psn_lt(*nr, failing->first_psn);
}

/*
 * EXT-REQ-RSP-02. A response that is to be asked for again. As long as its request has not been
 * executed it cannot be lost: then the request is, or what comes before it.
 */
static bool next_lost_response(const struct ur_qp *qp, struct ur_rspn *nr)
{
	struct ur_psn lost;
	const struct ur_wqe *wqe;
	uint32_t at;

	if (!ur_selective_next_lost(&qp->xreq.rsp, &lost) || !ur_ext_begun(qp))
		return false;
	*nr = ur_rspn_of(lost);
	wqe = ur_sq_at(&qp->sq, loss_find_rsp(qp, *nr));
	at = (uint32_t)ur_rspn_diff(*nr, wqe->first_rsp);
	/* It belongs to a WQE that fails. */
	if (at >= ur_ext_responses(qp, wqe))
		return false;
	return ur_psn_lt(loss_request_psn(qp, wqe, at), qp->xreq.psn.una);
}

static inline bool is_twice_due(const struct ur_ext_requester *x)
{
	return x->rsp.rtx && x->rsp.rtx->twice.cnt;
}

static inline bool loss_is_troubled(const struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;

	if (__builtin_expect(!(x->probe | x->psn.flags | x->rsp.flags), 1))
		return false;
	return x->probe || x->psn.lost_cnt || x->rsp.lost_cnt || is_twice_due(x);
}

/* A gap of responses makes each READ leave twice. */
static inline bool loss_is_quiet(const struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;

	return !(x->probe | x->rsp.flags) && (!x->psn.flags || !x->psn.lost_cnt);
}

/* The request that is to leave once more; things may have changed since. */
static bool next_twice(const struct ur_qp *qp, struct again *again)
{
	const struct ur_ext_requester *x = &qp->xreq;
	const struct ur_rtx_twice *twice;
	const struct ur_wqe *wqe;
	struct ur_psn psn;
	uint32_t at;

	if (!is_twice_due(x))
		return false;
	twice = &x->rsp.rtx->twice;
	if (qp->req.local_err || !ur_ext_begun(qp) ||
	    !ur_psn_in(twice->first, x->rsp.una, x->rsp.max))
		return false;
	*again = (struct again){.what = AGAIN_TWICE,
				.rsp = ur_rspn_of(twice->first),
				.cnt = twice->cnt,
				.is_new = twice->is_new};
	wqe = ur_sq_at(&qp->sq, loss_find_rsp(qp, again->rsp));
	at = (uint32_t)ur_rspn_diff(again->rsp, wqe->first_rsp);
	psn = loss_request_psn(qp, wqe, at);
	return ur_psn_le(x->psn.una, psn) == twice->is_new;
}

static __attribute__((noinline, cold)) bool loss_next_again(const struct ur_qp *qp,
							    struct again *again)
{
	if (next_twice(qp, again))
		return true;
	if (next_lost_request(qp, &again->psn))
		again->what = AGAIN_REQUEST;
	else if (next_lost_response(qp, &again->rsp))
		again->what = AGAIN_RESPONSES;
	else
		again->what = AGAIN_PROBE;
	return again->what != AGAIN_PROBE || qp->xreq.probe;
}

/* EXT-REQ-RSP-01. The run of lost responses that starts at `nr`. */
static inline uint32_t loss_reask(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_rspn nr,
				  uint32_t most, uint64_t now_ns)
{
	struct ur_selective *rsp = &qp->xreq.rsp;
	struct ur_selective_env env = ur_ext_env(qp);
	struct ur_psn next;
	uint32_t n = 0;

	do {
		ur_selective_on_resend(rsp, &env, ur_rspn_to(ur_rspn_add(nr, n++)), now_ns);
	} while (n < most && ur_selective_next_lost(rsp, &next) &&
		 ur_rspn_eq(ur_rspn_of(next), ur_rspn_add(nr, n)));
	if (class_of(wqe) & OP_READ)
		send_twice(qp, nr, n, false);
	return n;
}

static inline void loss_sent_twice(struct ur_qp *qp)
{
	qp->xreq.rsp.rtx->twice.cnt = 0;
}

/*
 * EXT-COMP-DUE-01. The request for the responses [nr, nr + n) had been lost itself. What was deemed lost
 * before the peer had even been asked for it is on its way now, and a probe that left before tells nothing
 * of it.
 */
static inline void unmark_lost_responses(struct ur_qp *qp, struct ur_rspn nr, uint32_t n,
					 uint64_t now_ns)
{
	struct ur_selective_env env = ur_ext_env(qp);
	struct ur_ext_requester *x = &qp->xreq;

	x->probed &= (uint8_t) ~(UR_PROBE_LOSS | UR_PROBE_TRAIN);
	for (; x->rsp.lost_cnt && n--; nr = ur_rspn_add(nr, 1))
		if (!ur_rspn_lt(nr, ur_ext_rsp_una(x)))
			ur_selective_unmark_lost(&x->rsp, &env, ur_rspn_to(nr), now_ns);
}

static inline void loss_resent(struct ur_qp *qp, struct ur_psn psn, struct ur_rspn nr, uint32_t n,
			       uint64_t now_ns)
{
	struct ur_selective_env env = ur_ext_env(qp);

	if (n)
		unmark_lost_responses(qp, nr, n, now_ns);
	ur_selective_on_resend(&qp->xreq.psn, &env, psn, now_ns);
	send_twice(qp, nr, n, true);
	record_path(qp, psn, true);
}

#endif
