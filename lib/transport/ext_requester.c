/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/build.h"
#include "transport/admission.h"
#include "transport/ext.h"
#include "transport/requester_priv.h"
#include "wire/assert.h"
#include "wire/bytes.h"

/* A WQE that is not complete is at most so many PSNs old, so that PSNs of WQEs can be compared. */
#define SPAN_MAX (UR_PSN_WINDOW / 2)

#define PAUSE (UINT32_C(1) << 26) /* stamps, 1.07 s */

static uint32_t mtu_of(const struct ur_qp *qp)
{
	return 1u << qp->mtu_shift;
}

/* ---- numbers to WQEs ---- */

/*
 * The last WQE of the `cnt` from head on whose first PSN (response number) is not after `nr`;
 * head's is not.
 */
static uint32_t find(const struct ur_qp *qp, uint32_t cnt, struct ur_psn nr, bool by_response)
{
	uint32_t lo = qp->req.head;

	UR_ASSERT(cnt > 0);
	while (cnt > 1) {
		uint32_t half = cnt / 2;
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, lo + half);

		if (ur_psn_le(by_response ? wqe->first_rsp : wqe->first_psn, nr)) {
			lo += half;
			cnt -= half;
		} else {
			cnt = half;
		}
	}
	return lo;
}

struct ur_psn ur_ext_response_of(const struct ur_qp *qp, struct ur_psn psn)
{
	uint32_t begun = ur_ext_begun(qp);
	const struct ur_wqe *wqe;
	uint32_t at;

	if (!begun || ur_psn_eq(psn, qp->xreq.psn.max))
		return qp->xreq.rsp.max;
	wqe = ur_sq_at(&qp->sq, find(qp, begun, psn, false));
	at = (uint32_t)ur_psn_diff(psn, wqe->first_psn);
	/* It belongs to a WQE that fails, or lies behind it. */
	if (at >= ur_ext_psns(qp, wqe))
		return qp->xreq.rsp.max;
	if (!(class_of(wqe) & OP_READ))
		return wqe->first_rsp;
	return ur_psn_add(wqe->first_rsp, at << __builtin_ctz(qp->req.read_psns));
}

/* What READ request number `at` of the WQE asks for: responses [first, first + n), bytes. */
struct part {
	uint32_t first, n;
	uint32_t bytes;
	bool last;
};

static struct part read_part(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t at)
{
	uint32_t all = ur_ext_responses(qp, wqe);
	struct part r = {.first = at << __builtin_ctz(qp->req.read_psns), .n = qp->req.read_psns};

	r.last = all - r.first <= r.n;
	r.bytes = r.n << qp->mtu_shift;
	if (r.last) {
		r.n = all - r.first;
		r.bytes = wqe->length - (r.first << qp->mtu_shift);
	}
	return r;
}

/* ---- what can be sent ---- */

/* A request that is to be sent again. */
static bool lost_request(const struct ur_qp *qp, struct ur_psn *nr)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_wqe *failing;

	if (!ur_selective_next_lost(&qp->xreq.psn, nr))
		return false;
	/* ADM-HOLD-03. What follows a message that was refused would be dropped. */
	if (__builtin_expect(qp->admission & UR_ADM_TOLD, 0) && qp->adm.letter &&
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
static bool lost_response(const struct ur_qp *qp, struct ur_psn *nr)
{
	uint32_t begun;
	const struct ur_wqe *wqe;
	uint32_t at;

	if (!ur_selective_next_lost(&qp->xreq.rsp, nr))
		return false;
	begun = ur_ext_begun(qp);
	if (!begun)
		return false;
	wqe = ur_sq_at(&qp->sq, find(qp, begun, *nr, true));
	at = (uint32_t)ur_psn_diff(*nr, wqe->first_rsp);
	/* It belongs to a WQE that fails. */
	if (at >= ur_ext_responses(qp, wqe))
		return false;
	return ur_psn_lt(ur_psn_add(wqe->first_psn, at >> __builtin_ctz(qp->req.read_psns)),
			 qp->xreq.psn.una);
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

static bool has_credit(const struct ur_requester *req, uint32_t ssn)
{
	return !req->flow_control || !ur_psn_lt(ur_psn(req->lsn), ur_psn(ssn));
}

static uint32_t ssn_of(const struct ur_requester *req, const struct ur_wqe *wqe)
{
	return wqe->flags & UR_WQE_BEGUN ? wqe->ssn : req->ssn;
}

/* Response packets that the next request of the READ or atomic asks for. */
static __attribute__((noinline)) uint32_t responses_next(const struct ur_qp *qp,
							 const struct ur_wqe *wqe)
{
	uint32_t at = qp->req.cur_off >> qp->mtu_shift >> __builtin_ctz(qp->req.read_psns);

	return class_of(wqe) & OP_READ ? read_part(qp, wqe, at).n : 1;
}

/* WQE `cur` can be worked on: a new packet, a local operation, or its failure; admission aside. */
static bool may_go_on(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_ext_requester *x = &qp->xreq;
	const struct ur_wqe *wqe;
	uint32_t credit;
	unsigned class;

	if (req->cur == ur_wq_tail(&qp->sq) || req->local_err)
		return false;
	/* EXT-REQ-DRAIN-01 */
	if (qp->state == IBV_QPS_SQD && !req->cur_off)
		return false;
	wqe = ur_sq_at(&qp->sq, req->cur);
	class = class_of(wqe);
	/* EXT-REQ-FENCE-01 */
	if (!req->cur_off && (wqe->flags & UR_WQE_FENCE) && !ur_psn_eq(x->rsp.una, x->rsp.max))
		return false;
	if (class & OP_LOCAL)
		return req->head == req->cur;
	/* EXT-REQ-WINDOW-01 */
	if (!ur_selective_has_credit(&x->psn))
		return false;
	if (req->cur != req->head &&
	    ur_psn_diff(x->psn.max, ur_sq_at(&qp->sq, req->head)->first_psn) >= SPAN_MAX)
		return false;
	/* EXT-REQ-CREDIT-01 */
	if ((class & OP_RECV) && !ur_psn_eq(x->psn.una, x->psn.max) &&
	    !has_credit(req, ssn_of(req, wqe)))
		return false;
	if (!(class & (OP_READ | OP_ATOMIC)) || !req->max_rd_atomic)
		return true;
	/* EXT-REQ-READ-01 */
	if (ur_ext_reads_out(x) >= req->max_rd_atomic || would_forget(qp))
		return false;
	credit = ur_selective_credit(&x->rsp);
	return credit >= req->read_psns || credit >= responses_next(qp, wqe);
}

/* Of WQE `cur`, which can be worked on: a message that takes a receive begins. */
static bool begins_receive(const struct ur_qp *qp)
{
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, qp->req.cur);

	return (class_of(wqe) & OP_RECV) && !(wqe->flags & UR_WQE_BEGUN);
}

static bool can_go_on(const struct ur_qp *qp)
{
	return may_go_on(qp) && !(__builtin_expect(qp->admission & UR_ADM_HELD, 0) &&
				  begins_receive(qp) && ur_admission_holds(qp));
}

static bool is_sending(const struct ur_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
}

static bool may_send(const struct ur_qp *qp)
{
	return is_sending(qp) && !qp->req.rec.rnr_until_ns;
}

/* ADM-LETTER-02. Who waits for a call asks whether it still holds its letter. */
static bool may_probe(const struct ur_qp *qp)
{
	return qp->xreq.probe && (qp->admission & UR_ADM_HELD) && qp->adm.letter && is_sending(qp);
}

bool ur_ext_requester_asks(const struct ur_qp *qp)
{
	return may_send(qp) && may_go_on(qp) && begins_receive(qp);
}

/* There may be something else to be sent than what is new. */
static inline bool is_troubled(const struct ur_ext_requester *x)
{
	return __builtin_expect(x->probe | x->psn.flags | x->rsp.flags, 0);
}

static __attribute__((noinline, cold)) bool has_again(const struct ur_qp *qp)
{
	struct ur_psn nr;

	return qp->xreq.probe || lost_request(qp, &nr) || lost_response(qp, &nr);
}

static __attribute__((noinline)) bool is_ready(const struct ur_qp *qp)
{
	if (!may_send(qp))
		return may_probe(qp);
	return can_go_on(qp) || (is_troubled(&qp->xreq) && has_again(qp));
}

/* Asked after every answer and every turn: most often everything posted has been sent. */
bool ur_ext_requester_ready(const struct ur_qp *qp)
{
	return (qp->req.cur != ur_wq_tail(&qp->sq) || is_troubled(&qp->xreq)) && is_ready(qp);
}

/* ---- packets ---- */

/* SPRAY-PORT-02. The packet goes by another UDP source port than the queue pair's own. */
static __attribute__((noinline)) void take_path(const struct ur_qp *qp, struct ur_tx *tx)
{
	uint8_t *at = tx->hdr + qp->path.len - UR_UDP_BYTES;

	ur_store16(at, ur_spray_port(ur_load16(at), qp->xreq.path));
}

/* The way of the packet that is made now: one that cannot be made costs no path its turn. */
static void choose_path(struct ur_ext_requester *x)
{
	if (__builtin_expect(x->spray != NULL, 0))
		x->path = ur_spray_next(&x->spray->paths);
}

/* SPRAY-TELL-01. Which way the packet of `psn` went. */
static inline void went(struct ur_ext_requester *x, struct ur_psn psn, bool again)
{
	if (__builtin_expect(x->spray != NULL, 0))
		ur_spray_sent(x->spray, psn, x->path, again);
}

struct request {
	struct ur_psn psn;
	uint32_t offset; /* PSN_OFFSET */
	uint8_t flags;	 /* enum ur_xth_flags, but for RECV */
	uint8_t opcode;	 /* of RC */
	bool ackreq, solicited;
};

/*
 * EXT-SEL-RTT-02. After a pause the stamps of what is older may look like those of what comes next:
 * only that counts.
 */
static __attribute__((noinline, cold)) void forget_echoes(struct ur_ext_requester *x,
							  uint32_t stamp)
{
	x->echoed = stamp;
	for (unsigned i = 0; x->spray && i < UR_SPRAY_MAX; i++)
		x->spray->echoed[i] = stamp;
}

/* EXT-REQ-HDR-01. BTH and XTH; returns where the `ext` bytes behind them go. */
static inline uint8_t *build(struct ur_qp *qp, const struct ur_wqe *wqe, const struct request *r,
			     unsigned ext, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_build_bth bth = {
		.opcode = r->opcode | UR_TRANSPORT_EXT,
		.solicited = r->solicited,
		.ackreq = r->ackreq,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = r->psn,
	};
	bool recv = wqe && (class_of(wqe) & OP_RECV);
	uint32_t stamp = ur_stamp(now_ns);
	uint8_t *p = ur_build_begin(tx, &qp->path, &bth, UR_XTH_BYTES + ext);

	choose_path(&qp->xreq);
	if (__builtin_expect(qp->xreq.path, 0))
		take_path(qp, tx);
	/* What comes back with this stamp may be the answer to this packet. */
	if (stamp == qp->xreq.probe_stamp)
		qp->xreq.probed = false;
	if (__builtin_expect(stamp - qp->xreq.last_stamp > PAUSE, 0))
		forget_echoes(&qp->xreq, stamp - 1);
	qp->xreq.last_stamp = stamp;
	p = ur_build32(p, stamp);
	p = ur_build32(p, (uint32_t)qp->xreq.path << 24 | (wqe ? wqe->ssn : 0));
	p = ur_build32(p, (uint32_t)(r->flags | (recv ? UR_XTH_RECV : 0)) << 24 | r->offset);
	return ur_build32(p, recv ? wqe->rwqen : 0);
}

/* Packet `at` of a SEND or WRITE, its payload is gathered. */
static inline void build_data(struct ur_qp *qp, const struct ur_wqe *wqe, struct request *r,
			      struct ur_tx *tx, uint64_t now_ns)
{
	unsigned class = class_of(wqe);
	bool last = (r->offset << qp->mtu_shift) + tx->payload_len == wqe->length;
	bool tail = last && (class & (OP_IMM | OP_INV));
	bool reth = class & OP_WRITE;
	uint8_t *p;

	r->opcode = data_opcode(class, !r->offset, last);
	r->solicited = last && (wqe->flags & UR_WQE_SOLICITED);
	p = build(qp, wqe, r, (reth ? UR_RETH_BYTES : 0) + (tail ? 4 : 0), tx, now_ns);
	if (reth)
		p = put_reth(p, wqe->remote_addr, wqe->rkey, wqe->length);
	if (tail)
		put_imm_inv(p, wqe);
}

/* Asks for `bytes` from r->offset on. */
static inline void build_read(struct ur_qp *qp, const struct ur_wqe *wqe, struct request *r,
			      uint32_t bytes, struct ur_tx *tx, uint64_t now_ns)
{
	uint8_t *p;

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	r->opcode = UR_RC_READ_REQUEST;
	p = build(qp, wqe, r, UR_RETH_BYTES, tx, now_ns);
	put_reth(p, wqe->remote_addr + ((uint64_t)r->offset << qp->mtu_shift), wqe->rkey, bytes);
	tx->asked = bytes;
}

static void build_atomic(struct ur_qp *qp, const struct ur_wqe *wqe, struct request *r,
			 struct ur_tx *tx, uint64_t now_ns)
{
	tx->frag_cnt = 0;
	tx->payload_len = 0;
	r->opcode = atomic_opcode(wqe);
	put_atomiceth(build(qp, wqe, r, UR_ATOMICETH_BYTES, tx, now_ns), wqe);
}

/* References the payload of data packet `at`. False: an SGE is refused. */
static bool gather(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t at, struct ur_tx *tx)
{
	uint32_t off = at << qp->mtu_shift, left = wqe->length - off, mtu = mtu_of(qp);

	return ur_requester_gather(qp, wqe, off, left < mtu ? left : mtu, tx);
}

/* ---- again ---- */

/*
 * EXT-COMP-DUE-01. The request for the responses [nr, nr + n) is sent again, because it had been
 * lost itself. What was deemed lost before the peer had even been asked for it is on its way now,
 * and a probe that left before tells nothing of it.
 */
static void responses_due(struct ur_qp *qp, struct ur_psn nr, uint32_t n, uint64_t now_ns)
{
	struct ur_selective_env env = ur_ext_env(qp);
	struct ur_ext_requester *x = &qp->xreq;

	x->probed = false;
	for (; x->rsp.lost_cnt && n--; nr = ur_psn_add(nr, 1))
		if (!ur_psn_lt(nr, x->rsp.una))
			ur_selective_spare(&x->rsp, &env, nr, now_ns);
}

/* EXT-REQ-RESEND-01. The packet of any PSN in flight. False: its payload is out of reach. */
static bool resend(struct ur_qp *qp, struct ur_psn psn, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_selective_env env = ur_ext_env(qp);
	uint32_t idx = find(qp, ur_ext_begun(qp), psn, false);
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, idx);
	uint32_t at = (uint32_t)ur_psn_diff(psn, wqe->first_psn);
	struct request r = {
		.psn = psn,
		.flags = (uint8_t)(UR_XTH_RETRY | qp->adm.letter << UR_XTH_CLAIM_SHIFT),
	};
	unsigned class = class_of(wqe);

	if (class & OP_DATA) {
		r.offset = at;
		/* The peer may not see that it fills a gap. */
		r.ackreq = true;
		if (!gather(qp, wqe, at, tx)) {
			ur_ext_fail(qp, idx, IBV_WC_LOC_PROT_ERR);
			return false;
		}
		build_data(qp, wqe, &r, tx, now_ns);
	} else if (class & OP_READ) {
		struct part part = read_part(qp, wqe, at);

		r.offset = part.first;
		r.flags |= part.last ? UR_XTH_LAST_READ : 0;
		responses_due(qp, ur_psn_add(wqe->first_rsp, part.first), part.n, now_ns);
		build_read(qp, wqe, &r, part.bytes, tx, now_ns);
	} else {
		responses_due(qp, wqe->first_rsp, 1, now_ns);
		build_atomic(qp, wqe, &r, tx, now_ns);
	}
	ur_selective_resent(&qp->xreq.psn, &env, psn, now_ns);
	went(&qp->xreq, psn, true);
	qp->core->cnt.retransmitted_packets++;
	return true;
}

/* EXT-REQ-RSP-01. One request for the run of lost responses that starts at `nr`. */
static void ask_again(struct ur_qp *qp, struct ur_psn nr, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_selective *rsp = &qp->xreq.rsp;
	struct ur_selective_env env = ur_ext_env(qp);
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, find(qp, ur_ext_begun(qp), nr, true));
	uint32_t first = (uint32_t)ur_psn_diff(nr, wqe->first_rsp), n = 0;
	uint32_t at = first >> __builtin_ctz(qp->req.read_psns);
	struct request r = {
		.psn = ur_psn_add(wqe->first_psn, at), .offset = first, .flags = UR_XTH_RETRY};
	struct part part = {.n = 1, .last = true};
	struct ur_psn next;

	if (class_of(wqe) & OP_READ)
		part = read_part(qp, wqe, at);
	do {
		ur_selective_resent(rsp, &env, ur_psn_add(nr, n++), now_ns);
	} while (first + n < part.first + part.n && ur_selective_next_lost(rsp, &next) &&
		 ur_psn_eq(next, ur_psn_add(nr, n)));
	if (class_of(wqe) & OP_READ) {
		uint32_t skip = (first - part.first) << qp->mtu_shift;
		uint32_t bytes = n << qp->mtu_shift;

		if (bytes > part.bytes - skip)
			bytes = part.bytes - skip;
		r.flags |= part.last ? UR_XTH_LAST_READ : 0;
		build_read(qp, wqe, &r, bytes, tx, now_ns);
	} else {
		build_atomic(qp, wqe, &r, tx, now_ns);
	}
	qp->core->cnt.retransmitted_packets++;
}

/* EXT-REQ-PROBE-01 */
static void probe(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct request r = {.psn = x->psn.max, .opcode = UR_EXT_PROBE, .ackreq = true};
	bool alone = ur_stamp(now_ns) != x->last_stamp;

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	build(qp, NULL, &r, 0, tx, now_ns);
	x->probe = false;
	x->probed = alone;
	x->probe_stamp = ur_stamp(now_ns);
	qp->req.since_ackreq = 0;
	qp->core->cnt.probes_sent++;
}

/* ---- new ---- */

/* EXT-REQ-PSN-01. The first packet of a WQE is about to be made: number it. */
static void begin(struct ur_qp *qp, struct ur_wqe *wqe)
{
	struct ur_requester *req = &qp->req;
	struct ur_ext_requester *x = &qp->xreq;

	wqe->flags |= UR_WQE_BEGUN;
	wqe->first_psn = x->psn.max;
	wqe->first_rsp = x->rsp.max;
	wqe->ssn = req->ssn;
	req->ssn = (req->ssn + 1) & UR_PSN_MASK;
	wqe->rwqen = class_of(wqe) & (OP_READ | OP_ATOMIC) ? x->rd_seq : x->rwqen;
	if (class_of(wqe) & OP_RECV) {
		x->rwqen = (x->rwqen + 1) & UR_PSN_MASK;
		ur_admission_begun(qp);
	}
}

/* After the last packet of WQE `cur` nothing can be sent without an ACK. */
static bool stalls_after(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	unsigned class;

	if (req->cur + 1 == ur_wq_tail(&qp->sq))
		return true;
	class = class_of(ur_sq_at(&qp->sq, req->cur + 1));
	return (class & OP_LOCAL) || ((class & OP_RECV) && !has_credit(req, req->ssn));
}

/*
 * EXT-REQ-ACK-01. AckReq as in standard mode (RC-REQ-ACK-01), but for READs and atomics: their
 * answers say the same.
 */
static bool wants_ack(struct ur_qp *qp, const struct ur_wqe *wqe, bool last)
{
	struct ur_requester *req = &qp->req;
	bool ask =
		++req->since_ackreq >= req->ackreq_every || ur_selective_credit(&qp->xreq.psn) <= 1;

	if ((class_of(wqe) & OP_RECV) && req->flow_control &&
	    !ur_psn_lt(ur_psn(wqe->ssn), ur_psn(req->lsn)))
		ask = true;
	if (last && !ask)
		ask = !req->heard || (wqe->flags & UR_WQE_SIGNALED) || stalls_after(qp) ||
		      qp->state == IBV_QPS_SQD;
	if (ask)
		req->since_ackreq = 0;
	return ask;
}

/* A packet with new bytes of WQE `cur`, the `bytes` after cur_off, left. */
static void sent_new(struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t bytes, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	struct ur_selective_env env = ur_ext_env(qp);

	went(&qp->xreq, qp->xreq.psn.max, false);
	ur_selective_sent(&qp->xreq.psn, &env, 1, now_ns);
	req->cur_off += bytes;
	if (req->cur_off == wqe->length) {
		req->cur++;
		req->cur_off = 0;
	}
}

/* The same for a READ or atomic, which asks for `responses`. */
static void asked(struct ur_qp *qp, uint32_t responses, uint64_t now_ns)
{
	struct ur_selective_env env = ur_ext_env(qp);

	ur_selective_sent(&qp->xreq.rsp, &env, responses, now_ns);
	qp->xreq.rd_seq++;
	qp->req.since_ackreq = 0;
}

static enum ibv_wc_status make_data(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
				    uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	struct request r = {.psn = qp->xreq.psn.max, .offset = req->cur_off >> qp->mtu_shift};

	if (!gather(qp, wqe, r.offset, tx))
		return IBV_WC_LOC_PROT_ERR;
	if (!(wqe->flags & UR_WQE_BEGUN))
		begin(qp, wqe);
	r.ackreq = wants_ack(qp, wqe, req->cur_off + tx->payload_len == wqe->length);
	build_data(qp, wqe, &r, tx, now_ns);
	sent_new(qp, wqe, tx->payload_len, now_ns);
	qp->xreq.reads_from = qp->xreq.psn.max;
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status make_read(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
				    uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	struct request r = {.psn = qp->xreq.psn.max, .offset = req->cur_off >> qp->mtu_shift};
	struct part part = read_part(qp, wqe, r.offset >> __builtin_ctz(req->read_psns));

	if (!(wqe->flags & UR_WQE_BEGUN))
		begin(qp, wqe);
	r.flags = part.last ? UR_XTH_LAST_READ : 0;
	build_read(qp, wqe, &r, part.bytes, tx, now_ns);
	asked(qp, part.n, now_ns);
	sent_new(qp, wqe, part.bytes, now_ns);
	/* So that it never falls half the numbers behind. */
	if (ur_psn_lt(qp->xreq.reads_from, qp->xreq.psn.una))
		qp->xreq.reads_from = qp->xreq.psn.una;
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status make_atomic(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
				      uint64_t now_ns)
{
	struct ur_ext_requester *x = &qp->xreq;
	struct request r = {.psn = x->psn.max};

	begin(qp, wqe);
	if (!x->atomic_cnt++)
		x->atomic = qp->req.cur;
	build_atomic(qp, wqe, &r, tx, now_ns);
	asked(qp, 1, now_ns);
	sent_new(qp, wqe, wqe->length, now_ns);
	x->reads_from = x->psn.max;
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status make_new(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
				   uint64_t now_ns)
{
	unsigned class = class_of(wqe);

	/* RC-REQ-LEN-01 */
	if (wqe->length >> qp->mtu_shift >= UR_PSN_WINDOW - 1)
		return IBV_WC_LOC_LEN_ERR;
	if (class & OP_DATA)
		return make_data(qp, wqe, tx, now_ns);
	if (!qp->req.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	return class & OP_READ ? make_read(qp, wqe, tx, now_ns) : make_atomic(qp, wqe, tx, now_ns);
}

/* EXT-REQ-LOCAL-01: it is the oldest. */
static enum ibv_wc_status invalidate(struct ur_qp *qp, struct ur_wqe *wqe)
{
	if (!ur_mem_invalidate(qp->core->mem, wqe->imm_inv, qp->pd, false))
		return IBV_WC_MW_BIND_ERR;
	wqe->flags |= UR_WQE_DONE;
	qp->req.cur++;
	ur_completer_advance(qp);
	return IBV_WC_SUCCESS;
}

/* EXT-REQ-ERR-01 */
void ur_ext_fail(struct ur_qp *qp, uint32_t idx, enum ibv_wc_status status)
{
	struct ur_requester *req = &qp->req;

	if (req->local_err && req->cur - req->head <= idx - req->head)
		return;
	req->cur = idx;
	req->cur_off = 0;
	req->local_err = (uint8_t)status;
	/* Those before it complete only if somebody asks for the ACK. */
	ur_ext_requester_drain(qp);
}

/* What goes before anything new. False: there is nothing; *made: there was, and it is a packet. */
static __attribute__((noinline, cold)) bool make_again(struct ur_qp *qp, struct ur_tx *tx,
						       uint64_t now_ns, unsigned *wqes, bool *made)
{
	struct ur_psn nr;

	*made = true;
	if (lost_request(qp, &nr)) {
		*made = resend(qp, nr, tx, now_ns);
		*wqes += 1;
	} else if (lost_response(qp, &nr)) {
		ask_again(qp, nr, tx, now_ns);
		*wqes += 1;
	} else if (qp->xreq.probe) {
		probe(qp, tx, now_ns);
	} else {
		return false;
	}
	return true;
}

/* The next packet of WQE `cur`. False: it is a local operation, or it fails. */
static bool go_on(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes)
{
	struct ur_requester *req = &qp->req;
	struct ur_wqe *wqe = ur_sq_at(&qp->sq, req->cur);
	bool local = class_of(wqe) & OP_LOCAL;
	enum ibv_wc_status status;

	*wqes += !req->cur_off;
	status = local ? invalidate(qp, wqe) : make_new(qp, wqe, tx, now_ns);
	if (status != IBV_WC_SUCCESS) {
		ur_ext_fail(qp, req->cur, status);
		*wqes += 1;
	}
	return status == IBV_WC_SUCCESS && !local;
}

bool ur_ext_requester_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes)
{
	if (!may_send(qp)) {
		if (!may_probe(qp))
			return false;
		probe(qp, tx, now_ns);
		return true;
	}
	do {
		bool made;

		if (!is_troubled(&qp->xreq) || !make_again(qp, tx, now_ns, wqes, &made)) {
			if (__builtin_expect(qp->admission & UR_ADM_HELD, 0))
				ur_admission_update(qp);
			if (!can_go_on(qp))
				return false;
			made = go_on(qp, tx, now_ns, wqes);
		}
		if (made) {
			ur_recovery_outstanding(&qp->req.rec, now_ns);
			return true;
		}
		/* A WQE that failed and is the oldest ends it all. */
		ur_completer_advance(qp);
	} while (may_send(qp));
	return false;
}

/* ---- life ---- */

/* RC-REQ-ACK-02: what nobody asked an ACK for would wait for a timer. */
void ur_ext_requester_drain(struct ur_qp *qp)
{
	if (qp->req.since_ackreq && !ur_psn_eq(qp->xreq.psn.una, qp->xreq.psn.max))
		qp->xreq.probe = true;
}

void ur_ext_follow(struct ur_qp *qp, uint64_t now_ns)
{
	const struct ur_ext_requester *x = &qp->xreq;
	struct ur_psn una = x->psn.una;

	/* The newest request stands for the responses that are missing. */
	if (ur_psn_eq(una, x->psn.max) && !ur_psn_eq(x->rsp.una, x->rsp.max))
		una = ur_psn_add(una, UR_PSN_MASK);
	ur_recovery_follow(&qp->req.rec, una, x->psn.max, now_ns);
}

void ur_ext_requester_stop(struct ur_qp *qp)
{
	struct ur_selective_env env = ur_ext_env(qp);
	struct ur_ext_requester *x = &qp->xreq;

	ur_selective_stop(&x->psn, &env);
	ur_selective_stop(&x->rsp, &env);
	x->probe = x->probed = false;
	x->atomic_cnt = 0;
	if (x->spray)
		ur_spray_give(&qp->core->spray, x->spray);
	x->spray = NULL;
	x->path = 0;
}

void ur_ext_requester_init(struct ur_qp *qp, struct ur_psn first)
{
	uint16_t window = (uint16_t)(qp->window < UR_EXT_WINDOW ? qp->window : UR_EXT_WINDOW);
	struct ur_ext_requester *x = &qp->xreq;

	ur_ext_requester_stop(qp);
	/* EXT-SEL-RTT-02: what was sent before is no business of the next connection. */
	*x = (struct ur_ext_requester){.last_stamp = x->last_stamp, .echoed = x->last_stamp};
	ur_rtt_init(&x->rtt);
	ur_selective_init(&x->psn, &x->marks, 0, first, window);
	x->reads_from = first;
	if (qp->mode == UR_MODE_EXTENDED)
		qp->req.ssn = ur_first_ssn(first);
	ur_selective_init(&x->rsp, &x->marks, 1, ur_psn(0), window);
	/* SPRAY-POOL-01. One in RESET may stay there, or be destroyed next. */
	if (qp->paths > 1 && qp->mode == UR_MODE_EXTENDED && qp->state != IBV_QPS_RESET)
		x->spray = ur_spray_take(&qp->core->spray, qp->paths, x->last_stamp);
}
