/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission.h"
#include "transport/dest.h"
#include "transport/rc/ext.h"
#include "transport/rc/completer_priv.h"
#include "transport/rc/selective_state.h"
#include "transport/sgl.h"
#include "wire/assert.h"

/* How far back an ePSN may lie: the contract of ur_selective_on_ack(). */
#define EPSN_PAST (1 << 22)

/* ---- completion ---- */

/* All packets of `wqe`, the first of which is `first` in the sequence, are acknowledged. */
static inline bool has_come(const struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_psn first,
			    const struct ur_selective *s)
{
	int32_t cnt = ur_psn_diff(s->una, first);

	return cnt > 0 && (uint64_t)cnt << qp->mtu_shift >= wqe->length;
}

/* Everything that the WQE at the head asked for has come. Responses come of executed requests only.
 */
static bool is_complete(struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;
	const struct ur_wqe *wqe = oldest_wqe(qp);

	if (class_of(wqe) & (OP_READ | OP_ATOMIC))
		return has_come(qp, wqe, wqe->first_rsp, &x->rsp);
	return has_come(qp, wqe, wqe->first_psn, &x->psn);
}

/* EXT-COMP-ORDER-01. Something was acknowledged or answered; `una_moved`: requests. */
static void progress(struct ur_qp *qp, bool una_moved, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	uint32_t received = 0;
	bool idle;

	while (req->head != req->cur && is_complete(qp)) {
		received += !!(class_of(oldest_wqe(qp)) & OP_RECV);
		ur_send_queue_finish(qp, IBV_WC_SUCCESS);
	}
	if (__builtin_expect(qp->admission & UR_ADM_SENDER, 0) && una_moved)
		ur_admission_on_complete(qp, received, now_ns);
	idle = ur_ext_idle(&qp->xreq);
	if (idle)
		qp->xreq.probe = false;
	ur_retry_progress(&qp->retry, !idle, una_moved, now_ns);
	ur_send_queue_advance(qp);
}

/* ---- what an ACK tells ---- */

/* EXT-SEL-RTT-02. By one path stamps come back in their order, whatever overtakes them by another.
 */
static void take_echo(struct ur_qp *qp, const struct ur_xaeth *h, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	uint32_t *newest = &x->echoed, rtt;

	if (__builtin_expect(x->spray != NULL, 0)) {
		if (h->path >= x->spray->paths.n)
			return;
		newest = &x->spray->echoed[h->path];
	}
	if (!ur_rtt_is_fresh(h->echo, *newest, qp->req.last_stamp))
		return;
	*newest = h->echo;
	rtt = ur_rtt_sample(&x->rtt, h->echo, h->residence, ur_stamp(now_ns));
	if (!rtt)
		return;
	ur_dest_on_rtt(qp, rtt, now_ns);
	/* SPRAY-TELL-01 */
	if (__builtin_expect(x->spray != NULL, 0))
		ur_spray_acked(&x->spray->paths, h->path, rtt);
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

/*
 * What any packet of the peer says of requests and times; its ePSN was checked. The one place where
 * echoes are looked at. Returns how many PSNs became acknowledged.
 */
static inline uint32_t take_ack_info(struct ur_qp *qp, const struct ur_packet *p, bool sample,
				     uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_ack_info ack;
	struct ur_selective_env env;
	bool bitmap = !(p->op & UR_OP_XRTH);

	if (sample)
		take_echo(qp, &p->xaeth, now_ns);
	/* Most packets of an answer repeat what the first one said. */
	if (!bitmap && ur_psn_le(p->xaeth.epsn, x->psn.una))
		return 0;
	ack = (struct ur_ack_info){
		.una = p->xaeth.epsn,
		.sack = bitmap ? p->payload : NULL,
		.sack_bits = bitmap ? p->payload_len * 8u : 0,
		.echo = p->xaeth.echo,
		.partial = !bitmap,
	};
	env = ur_ext_psn_env(qp);

	return ur_selective_on_ack(&x->psn, &env, &ack, now_ns);
}

/*
 * EXT-COMP-CREDIT-02. Only the newest packet tells how many receives there are, and whether they
 * are counted at all; what it acknowledges was taken in. Others were overtaken, or come from a stranger: a
 * quarter of all PSNs is old.
 */
static inline void take_credits(struct ur_qp *qp, const struct ur_packet *p)
{
	if (ur_psn_eq(p->xaeth.epsn, qp->xreq.psn.una))
		ur_completer_credits(&qp->req, &p->aeth);
}

/* EXT-COMP-EPSN-01 */
static bool is_known(const struct ur_ext_requester *x, struct ur_psn epsn)
{
	return ur_psn_le(epsn, x->psn.max) && ur_psn_diff(epsn, x->psn.una) >= -EPSN_PAST;
}

/* ---- ACK and NAK ---- */

/*
 * EXT-COMP-PROBE-01. The probe is back, and with it everything that the peer had sent before: what
 * is missing of the responses is lost, if all requests for them have been executed.
 */
static void probe_back(struct ur_qp *qp, uint32_t echo, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_selective_env env = ur_ext_rsp_env(qp);

	x->probed = false;
	if (!ur_psn_eq(x->rsp.una, x->rsp.max) &&
	    ur_psn_eq(ur_ext_response_of(qp, x->psn.una), x->rsp.max))
		ur_selective_on_probe_answer(&x->rsp, &env, echo, now_ns);
	report_lost(qp, now_ns);
}

/* EXT-COMP-TIMEOUT-01. False: the QP is in error. */
static bool ack_timeout(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_selective_env env = ur_ext_env(qp);
	enum ur_recovery_verdict verdict;
	bool timeout;

	verdict = ur_retry_on_timer(&qp->retry, !ur_ext_idle(x), now_ns, &timeout);
	core->cnt.local_ack_timeout_err += timeout;
	if (timeout)
		ur_dest_on_timeout(qp, now_ns);
	if (verdict == UR_RECOVERY_FAILED) {
		core->cnt.retry_exceeded_err++;
		ur_qp_fail(qp, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
		return false;
	}
	if (verdict == UR_RECOVERY_REWIND)
		ur_selective_lose_una(ur_psn_eq(x->psn.una, x->psn.max) ? &x->rsp : &x->psn, &env);
	return true;
}

void ur_ext_on_grant(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_retry *retry = &qp->retry;

	if (!retry->rnr_until_ns)
		return;
	retry->rnr_until_ns = now_ns;
	ur_ext_follow(qp, now_ns);
	if (ack_timeout(qp, now_ns))
		ur_ext_follow(qp, now_ns);
}

/* ADM-CLASS-02. The end of an RNR wait is no reason to send while the grant is still to come. */
static bool waits_on(struct ur_qp *qp, uint64_t now_ns)
{
	uint64_t wait_ns;
	bool probe;

	if (!qp->retry.rnr_until_ns || !(qp->admission & UR_ADM_HOLDER))
		return false;
	wait_ns = ur_admission_wait_on(qp, &probe, now_ns);
	if (!wait_ns)
		return false;
	qp->xreq.probe |= probe;
	qp->retry.rnr_until_ns = now_ns + wait_ns;
	return true;
}

/* EXT-COMP-RNR-01 */
static void rnr_nak(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	struct ur_retry *retry = &qp->retry;
	uint64_t wait_ns = ur_rnr_timer_ns(p->aeth.syndrome);
	bool has_class = (p->op & UR_OP_ASTH) && qp->adm.queue_class;

	core->cnt.rnr_nak_retry_err++;
	/* It is over, or not said of a request. */
	if (!ur_psn_eq(p->bth.psn, qp->xreq.psn.una) || ur_psn_eq(p->bth.psn, qp->xreq.psn.max))
		return;
	/* SPRAY-TELL-02 */
	if (qp->xreq.spray)
		ur_spray_refused(qp->xreq.spray);
	/* ADM-CLASS-03: the peer keeps a place for the request. */
	if (has_class)
		qp->adm.wait_ns = wait_ns;
	if (!retry->rnr_until_ns) {
		if (!has_class && !ur_retry_spend_rnr(retry)) {
			core->cnt.rnr_retry_exceeded_err++;
			ur_qp_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
			return;
		}
		ur_retry_wait(retry, wait_ns, now_ns);
	}
	ur_ext_follow(qp, now_ns);
}

/*
 * EXT-COMP-NAK-01. A request is refused: the one at una, or a READ before it that is not wholly
 * answered. It fails when those before it are complete.
 */
static enum ur_drop nak(struct ur_qp *qp, const struct ur_packet *p, enum ibv_wc_status status)
{
	struct ur_requester *req = &qp->req;
	struct ur_psn psn = p->bth.psn, una = qp->xreq.psn.una;
	uint32_t begun = ur_ext_begun(qp);
	bool next = ur_psn_eq(psn, una);
	uint32_t i = 0;

	if (ur_psn_eq(psn, qp->xreq.psn.max))
		return UR_DROP_UNEXPECTED;
	while (i < begun) {
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, req->head + i);

		if (ur_psn_lt(psn, ur_psn_add(wqe->first_psn, ur_ext_psns(qp, wqe)))) {
			if (!next && (ur_psn_lt(una, psn) || ur_psn_lt(psn, wqe->first_psn) ||
				      !(class_of(wqe) & OP_READ)))
				return UR_DROP_PSN_STALE;
			ur_ext_requester_fail(qp, req->head + i, status);
			break;
		}
		i++;
	}
	/* No request at all when it belongs to what fails anyway. */
	if (i == begun && !next)
		return UR_DROP_PSN_STALE;
	qp->xreq.fatal_nak = true;
	qp->xreq.probe = false;
	ur_send_queue_advance(qp);
	return UR_DROP_NONE;
}

/* What an ACK or NAK says of the peer's receive pool; `back`: it answers the probe. */
static void take_status(struct ur_qp *qp, const struct ur_packet *p, bool rnr, bool back,
			uint64_t now_ns)
{
	bool held = qp->adm.queue_class;

	ur_admission_on_status(qp, p, now_ns);
	if (rnr)
		rnr_nak(qp, p, now_ns);
	if (ur_qp_has_failed(qp) || !ur_psn_eq(p->xaeth.epsn, qp->xreq.psn.una))
		return;
	/* ADM-GRANT-04, ADM-CLASS-02: a grant, or the queue class has gone. */
	if (qp->adm.queue_class ? p->asth.granted : held && back)
		ur_ext_on_grant(qp, now_ns);
}

/* EXT-COMP-FORM-01, EXT-COMP-CREDIT-01 */
static enum ur_drop acknowledge(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	uint8_t kind = p->aeth.syndrome & UR_SYNDROME_KIND_MASK;
	uint8_t code = p->aeth.syndrome & UR_SYNDROME_VALUE_MASK;
	enum ibv_wc_status status = ur_completer_nak_status(code);
	bool fatal = kind == UR_SYNDROME_NAK && code != UR_NAK_PSN_SEQ;
	bool rnr = kind == UR_SYNDROME_RNR_NAK, back;
	struct ur_psn una = x->psn.una;
	uint32_t n;

	if ((p->aeth.syndrome & 0x80) || kind == UR_SYNDROME_RESERVED ||
	    (fatal && status == IBV_WC_SUCCESS))
		return UR_DROP_UNEXPECTED;
	/* What is not ready is always the request that comes next; what is refused may be a READ
	 * that was accepted before, whose memory went away under the answer. */
	if ((kind == UR_SYNDROME_RNR_NAK && !ur_psn_eq(p->bth.psn, p->xaeth.epsn)) ||
	    (fatal && ur_psn_lt(p->xaeth.epsn, p->bth.psn)))
		return UR_DROP_UNEXPECTED;
	if ((p->payload_len & 3) || p->payload_len > UR_SACK_BYTES)
		return UR_DROP_MSG_LENGTH;
	qp->core->cnt.acks_received++;
	if (kind == UR_SYNDROME_NAK && !fatal)
		qp->core->cnt.packet_seq_err++;
	n = take_ack_info(qp, p, true, now_ns);
	if (__builtin_expect((x->psn.flags | x->rsp.flags) != 0, 0))
		report_lost(qp, now_ns);
	if (kind == UR_SYNDROME_ACK)
		take_credits(qp, p);
	back = x->probed && p->xaeth.echo == x->probe_stamp;
	if (back)
		probe_back(qp, p->xaeth.echo, now_ns);
	if (n)
		progress(qp, !ur_psn_eq(una, x->psn.una), now_ns);
	/* What just completed may have been all that a failure waited for. */
	if (ur_qp_has_failed(qp))
		return UR_DROP_NONE;
	if ((p->op & UR_OP_ASTH) && (qp->admission & UR_ADM_SENDER))
		take_status(qp, p, rnr, back, now_ns);
	else if (rnr)
		rnr_nak(qp, p, now_ns);
	if (ur_qp_has_failed(qp))
		return UR_DROP_NONE;
	return fatal ? nak(qp, p, status) : UR_DROP_NONE;
}

/* ---- responses ---- */

/* Where a response belongs. */
struct target {
	uint32_t idx;	  /* of the WQE */
	uint32_t part;	  /* which of its requests */
	struct ur_psn nr; /* its response number */
	struct ur_wqe *wqe;
};

/*
 * EXT-COMP-RSP-01. Finds the READ or atomic (`class`) that asked for the response: of an SSN in the
 * send queue, an offset that was asked for, with the PSN of the request that asked for it,
 * executed.
 */
static inline enum ur_drop find_target(struct ur_qp *qp, const struct ur_packet *p, unsigned class,
				       struct target *t)
{
	const struct ur_ext_requester *x = &qp->xreq;
	uint32_t begun = ur_ext_begun(qp), ahead;

	if (!begun)
		return UR_DROP_PSN_STALE;
	ahead = (p->xrth.ssn - oldest_wqe(qp)->ssn) & UR_PSN_MASK;
	if (ahead >= begun)
		return UR_DROP_PSN_STALE;
	t->idx = qp->req.head + ahead;
	t->wqe = ur_sq_at(&qp->sq, t->idx);
	if (!(class_of(t->wqe) & class) ||
	    (p->xrth.offset && (uint64_t)p->xrth.offset << qp->mtu_shift >= t->wqe->length))
		return UR_DROP_UNEXPECTED;
	t->nr = ur_psn_add(t->wqe->first_rsp, p->xrth.offset);
	t->part = p->xrth.offset >> __builtin_ctz(qp->req.read_psns);
	if (!ur_psn_lt(t->nr, x->rsp.max) ||
	    !ur_psn_eq(p->bth.psn, ur_psn_add(t->wqe->first_psn, t->part)) ||
	    !ur_psn_lt(p->bth.psn, p->xaeth.epsn))
		return UR_DROP_UNEXPECTED;
	return UR_DROP_NONE;
}

/*
 * EXT-COMP-PASS-01. The peer sends first answers in the order of their requests and repeats only
 * what it has sent before: whichever response has come, those before it have left, and the requests
 * that asked for them take no place at the peer any more, lost responses or not.
 */
static inline void passed(struct ur_qp *qp, const struct target *t, uint32_t offset)
{
	uint32_t next = offset + 1;
	bool last = !(next & (qp->req.read_psns - 1)) ||
		    (uint64_t)next << qp->mtu_shift >= t->wqe->length;
	uint16_t seq = (uint16_t)(t->wqe->rwqen + t->part + last);

	if ((int16_t)(uint16_t)(seq - qp->xreq.rd_passed) > 0)
		qp->xreq.rd_passed = seq;
}

/* The atomic is answered: which is the oldest that is not? */
static void atomic_answered(struct ur_qp *qp, uint32_t idx)
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
		if ((class_of(wqe) & OP_ATOMIC) && !ur_psn_lt(wqe->first_rsp, x->rsp.una) &&
		    !ur_selective_has(&x->rsp, wqe->first_rsp))
			return;
	}
}

/* It has come before; `nr` was asked for. */
static bool has_response(const struct ur_ext_requester *x, struct ur_psn nr)
{
	return ur_psn_lt(nr, x->rsp.una) || ur_selective_has(&x->rsp, nr);
}

/* EXT-COMP-RSP-02. Places `len` bytes at `off` of the target and notes the arrival. */
static inline enum ur_drop place(struct ur_qp *qp, const struct ur_packet *p,
				 const struct target *t, uint32_t off, const uint8_t *src,
				 uint32_t len, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct ur_selective_env env = ur_ext_rsp_env(qp);
	struct ur_psn una = x->psn.una;
	/* The first packet of an answer tells what the wire takes, the others what the answer
	 * takes. */
	uint32_t n = take_ack_info(qp, p, p->op & UR_OP_FIRST, now_ns);
	bool early = !ur_psn_eq(t->nr, x->rsp.una), arrived;

	qp->core->cnt.acks_received += n > 0;
	if (early && has_response(x, t->nr)) {
		if (n)
			progress(qp, !ur_psn_eq(una, x->psn.una), now_ns);
		return UR_DROP_PSN_STALE;
	}
	if (!ur_sgl_scatter(qp->core->mem, qp->pd, ur_wqe_data(t->wqe), t->wqe->num_sge, off, src,
			    len)) {
		ur_ext_requester_fail(qp, t->idx, IBV_WC_LOC_PROT_ERR);
		progress(qp, !ur_psn_eq(una, x->psn.una), now_ns);
		return UR_DROP_RECV_BUFFER;
	}
	take_credits(qp, p);
	arrived = ur_selective_on_response(&x->rsp, &env, t->nr, p->xaeth.echo, now_ns);
	if (arrived) {
		if (__builtin_expect(early, 0)) {
			qp->core->cnt.early_responses++;
			report_lost(qp, now_ns);
		}
		passed(qp, t, p->xrth.offset);
		if (class_of(t->wqe) & OP_ATOMIC)
			atomic_answered(qp, t->idx);
	}
	if (n || arrived)
		progress(qp, !ur_psn_eq(una, x->psn.una), now_ns);
	return arrived ? UR_DROP_NONE : UR_DROP_NO_CONTEXT;
}

/* EXT-COMP-BAD-01. A repetition of what has come is not worth an error. */
static enum ur_drop bad_length(struct ur_qp *qp, const struct target *t)
{
	if (has_response(&qp->xreq, t->nr))
		return UR_DROP_PSN_STALE;
	ur_ext_requester_fail(qp, t->idx, IBV_WC_BAD_RESP_ERR);
	ur_send_queue_advance(qp);
	return UR_DROP_MSG_LENGTH;
}

static enum ur_drop response(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	bool read = p->op & UR_OP_READ_RESP;
	const uint8_t *src = (const uint8_t *)&p->atomic_ack;
	uint32_t off = 0, len = sizeof(p->atomic_ack), mtu = 1u << qp->mtu_shift;
	struct target t;
	enum ur_drop drop = find_target(qp, p, read ? OP_READ : OP_ATOMIC, &t);

	if (drop)
		return drop;
	if (read) {
		off = p->xrth.offset << qp->mtu_shift;
		len = t.wqe->length - off < mtu ? t.wqe->length - off : mtu;
		if (p->payload_len != len)
			return bad_length(qp, &t);
		src = p->payload;
	}
	return place(qp, p, &t, off, src, len, now_ns);
}

static enum ur_drop take_notify(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	bool granted;
	enum ur_drop drop = ur_admission_on_notify(qp, p, &granted, now_ns);

	if (granted)
		ur_ext_on_grant(qp, now_ns);
	return drop;
}

enum ur_drop ur_ext_completer_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return UR_DROP_QP_STATE;
	if (p->op & UR_OP_NOTIFY)
		return take_notify(qp, p, now_ns);
	if (!(p->op & UR_OP_XAETH))
		return UR_DROP_MODE;
	if (!is_known(&qp->xreq, p->xaeth.epsn))
		return UR_DROP_PSN_STALE;
	if (!(p->op & UR_OP_XRTH))
		return acknowledge(qp, p, now_ns);
	if ((p->aeth.syndrome & UR_SYNDROME_KIND_MASK) != UR_SYNDROME_ACK)
		return UR_DROP_UNEXPECTED;
	return response(qp, p, now_ns);
}

/* ---- time ---- */

/* What ur_selective wants. True when it has waited long enough for something to be lost. */
/* EXT-SEL-RTO-02. The next step of `s` is not put off beyond what retry_cnt allows for. */
static void hasten(const struct ur_qp *qp, struct ur_selective *s, uint64_t now_ns)
{
	uint64_t most = ur_retry_silence_ns(&qp->retry, ur_rtt_rto_ns(&qp->xreq.rtt, 0));

	if (s->deadline_ns != UR_NEVER && s->deadline_ns - now_ns > most)
		s->deadline_ns = now_ns + most;
}

static bool expired(struct ur_qp *qp, struct ur_selective *s, uint64_t now_ns)
{
	struct ur_selective_env env = s == &qp->xreq.psn ? ur_ext_psn_env(qp) : ur_ext_rsp_env(qp);
	uint8_t backoff = s->backoff;

	if (now_ns < s->deadline_ns)
		return false;
	switch (ur_selective_on_timer(s, &env, now_ns)) {
	case UR_SELECTIVE_PROBE:
		qp->xreq.probe = true;
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
	hasten(qp, s, now_ns);
	qp->core->cnt.rto++;
	ur_dest_on_timeout(qp, now_ns);
	return true;
}

void ur_ext_timer(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	bool silent;

	if (ur_qp_has_failed(qp))
		return;
	if (ur_retry_is_due(&qp->retry, now_ns) && !waits_on(qp, now_ns)) {
		ur_ext_follow(qp, now_ns);
		if (!ack_timeout(qp, now_ns))
			return;
		ur_ext_follow(qp, now_ns);
	}
	if (!qp->retry.rnr_until_ns) {
		expired(qp, &x->psn, now_ns);
		silent = expired(qp, &x->rsp, now_ns);
		/* The peer has stopped: responses that did not come before its NAK will not come.
		 */
		if (x->fatal_nak && silent) {
			ur_qp_fail(qp, qp->req.local_err, IBV_WC_WR_FLUSH_ERR);
			return;
		}
		if (ur_ext_idle(x))
			x->probe = false;
	}
}
