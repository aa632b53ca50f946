/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/ordered_copy.h"
#include "transport/rc/responder_priv.h"
#include "transport/sgl.h"
#include "wire/assert.h"

/*
 * The responder: an ordered list of checks that change nothing, each with a verdict, then one
 * function that acts on the first verdict that is not CONTINUE, then the execution (IBA 9.7.4,
 * 9.8.3 for UC).
 */

/* RC-RESP-PSN-01: before ePSN is a duplicate, after it a gap. */
static struct verdict check_psn(const struct ur_qp *qp, const struct ur_packet *p)
{
	int32_t diff = ur_psn_diff(p->bth.psn, qp->rsp.epsn);

	if (diff == 0)
		return CONTINUE;
	return (struct verdict){.kind = diff < 0 ? V_DUPLICATE : V_GAP};
}

/* RC-RESP-SEQ-01: a message is First, Middle..., Last, or Only, all of one kind. */
static struct verdict check_sequence(const struct ur_qp *qp, const struct ur_packet *p)
{
	uint8_t under_way = qp->rsp.kind;
	bool ok = p->op & UR_OP_FIRST ? under_way == UR_MSG_NONE
				      : under_way == ur_responder_kind_of(p->op);

	return ok ? CONTINUE : NAK(INV_REQ, OP_SEQUENCE);
}

/* RC-RESP-LEN-01, RC-RESP-ATOMIC-01: First and Middle carry a PMTU, Last 1..PMTU, Only 0..PMTU; a
 * WRITE adds up. */
static struct verdict check_length(const struct ur_qp *qp, const struct ur_packet *p)
{
	uint32_t mtu = 1u << qp->mtu_shift;
	bool first = p->op & UR_OP_FIRST, last = p->op & UR_OP_LAST;

	if (p->op & UR_OP_READ_REQ)
		return p->reth.length <= 1u << 31 &&
				       ur_responder_read_psns(qp, p->reth.length) < UR_PSN_WINDOW
			       ? CONTINUE
			       : NAK(INV_REQ, MSG_LENGTH);
	if (p->op & UR_OP_ATOMIC)
		return p->atomiceth.va & 7 ? NAK(INV_REQ, MSG_LENGTH) : CONTINUE;
	if (last ? p->payload_len > mtu || (!first && !p->payload_len) : p->payload_len != mtu)
		return NAK(INV_REQ, MSG_LENGTH);
	if (p->op & UR_OP_WRITE) {
		uint32_t left = first ? p->reth.length : qp->gbn_rsp.left;

		if (left > 1u << 31 || (last ? p->payload_len != left : p->payload_len >= left))
			return NAK(INV_REQ, MSG_LENGTH);
	}
	return CONTINUE;
}

/* RC-RESP-RES-01: receives for SEND and immediate, room to remember READs and atomics. */
static struct verdict check_resources(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_responder *rsp = &qp->rsp;

	if (p->op & (UR_OP_READ_REQ | UR_OP_ATOMIC)) {
		const struct ur_rd_res *oldest = &rsp->res[rsp->res_next];

		/* A replay gives way: a peer that asks for something new has received the answer. */
		if (!rsp->res_cnt || (oldest->queued && !oldest->repeat))
			return NAK(INV_REQ, RESOURCES);
		return CONTINUE;
	}
	if (!rsp->wqe && (p->op & (UR_OP_SEND | UR_OP_IMM)) && !ur_responder_bind(qp))
		return (struct verdict){.kind = V_RNR};
	return CONTINUE;
}

struct verdict ur_responder_check_atomic(const struct ur_qp *qp, const struct ur_atomiceth *a)
{
	const uint8_t *at =
		ur_mem_check(qp->core->mem, a->rkey, qp->pd, a->va, 8, IBV_ACCESS_REMOTE_ATOMIC);

	if (!at)
		return NAK(REM_ACCESS, ACCESS);
	/* An aligned address may name bytes that are not: iova and base differ. */
	return (uintptr_t)at & 7 ? NAK(INV_REQ, MSG_LENGTH) : CONTINUE;
}

struct verdict ur_responder_check_reth(const struct ur_qp *qp, uint32_t op,
				       const struct ur_reth *reth)
{
	uint32_t right = op & UR_OP_WRITE ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;

	return !reth->length || ur_mem_check(qp->core->mem, reth->rkey, qp->pd, reth->va,
					     reth->length, right)
		       ? CONTINUE
		       : NAK(REM_ACCESS, ACCESS);
}

/* RC-RESP-ACC-01: key, range, rights and domain, before memory is touched; nothing for 0 bytes. */
static struct verdict check_access(const struct ur_qp *qp, const struct ur_packet *p)
{
	const struct ur_responder *rsp = &qp->rsp;

	if (p->op & UR_OP_SEND) {
		if (p->payload_len > rsp->wqe->length - rsp->placed)
			return NAK_RECV(INV_REQ, RECV_BUFFER, IBV_WC_LOC_LEN_ERR);
		return CONTINUE;
	}
	if (p->op & UR_OP_ATOMIC)
		return ur_responder_check_atomic(qp, &p->atomiceth);
	return p->op & UR_OP_RETH ? ur_responder_check_reth(qp, p->op, &p->reth) : CONTINUE;
}

bool ur_responder_take_srq(struct ur_qp *qp, struct ur_rwqe *to)
{
	bool limit;

	if (!ur_srq_take(qp->srq, to, &limit))
		return false;
	if (limit)
		qp->core->sink.async(qp->core->sink.ctx, IBV_EVENT_SRQ_LIMIT_REACHED,
				     qp->srq->user);
	return true;
}

bool ur_responder_bind(struct ur_qp *qp)
{
	struct ur_responder *rsp = &qp->rsp;

	if (qp->srq) {
		if (!ur_responder_take_srq(qp, rsp->srq_wqe))
			return false;
		rsp->wqe = rsp->srq_wqe;
	} else {
		uint32_t head = ur_wq_head(&qp->rq);

		if (head == ur_wq_tail(&qp->rq))
			return false;
		rsp->wqe = ur_rq_at(&qp->rq, head);
	}
	rsp->placed = 0;
	return true;
}

void ur_responder_complete(struct ur_qp *qp, struct ibv_wc *wc, bool solicited)
{
	wc->wr_id = qp->rsp.wqe->wr_id;
	wc->qp_num = qp->qpn.v;
	qp->rsp.wqe = NULL;
	if (!qp->srq)
		ur_wq_release(&qp->rq, ur_wq_head(&qp->rq) + 1);
	ur_core_complete(qp->core, qp->recv_cq, wc, solicited);
}

void ur_responder_abort(struct ur_qp *qp, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.status = status, .opcode = IBV_WC_RECV};

	if (!qp->rsp.wqe)
		return;
	if (status == IBV_WC_WR_FLUSH_ERR)
		qp->core->cnt.flushed_wqe++;
	else
		qp->core->cnt.resp_cqe_error++;
	ur_responder_complete(qp, &wc, true);
}

/* RC-RESP-RES-02 */
void ur_responder_resize(struct ur_qp *qp, uint8_t cnt)
{
	struct ur_responder *rsp = &qp->rsp;
	unsigned old = rsp->res_cnt, kept = cnt < old ? cnt : old;
	struct ur_rd_res known[UR_RD_ATOMIC_MAX];

	UR_ASSERT(cnt <= qp->res_max);
	for (unsigned i = 0; i < kept; i++)
		known[i] = rsp->res[(rsp->res_next + old - kept + i) % old];
	memset(rsp->res, 0, qp->res_max * sizeof(*rsp->res));
	memcpy(rsp->res, known, kept * sizeof(known[0]));
	rsp->res_cnt = cnt;
	rsp->res_next = (uint8_t)(kept < cnt ? kept : 0);
}

/* ---- duplicates (IBA 9.7.4.1.2, 9.7.5.1.3) ---- */

/* RC-RESP-DUP-03. The newest comes first: an old one may have had the same PSNs, 2^24 packets ago.
 */
struct ur_rd_res *ur_responder_find(struct ur_responder *rsp, struct ur_psn psn)
{
	for (unsigned i = 0, at = rsp->res_next; i < rsp->res_cnt; i++) {
		struct ur_rd_res *res;

		at = at ? at - 1 : rsp->res_cnt - 1u;
		res = &rsp->res[at];
		if (res->psns && ur_psn_in(psn, res->first, ur_psn_add(res->first, res->psns)))
			return res;
	}
	return NULL;
}

/* RC-RESP-DUP-02: a repeated READ may ask for a part of the original range, nothing else. */
static bool replay_read(struct ur_qp *qp, const struct ur_packet *p, struct ur_rd_res *res)
{
	uint32_t off = (uint32_t)ur_psn_diff(p->bth.psn, res->first) << qp->mtu_shift;

	if (res->atomic || p->reth.rkey != res->rkey || off > res->length ||
	    p->reth.va != res->va + off || p->reth.length > res->length - off)
		return false;
	if (res->queued && !res->repeat) {
		/* The original answer is still on its way out: it goes back to what was lost. */
		if (off < res->from)
			res->start = res->from = off;
		return true;
	}
	res->start = res->from = off;
	res->to = off + p->reth.length;
	return true;
}

/*
 * RC-RESP-ACK-07. A peer that goes back N repeats the READ as well, and its answer says all that an
 * ACK would say. A peer that does not repeat the READ is answered in its fourth pass. `another`: the
 * duplicate begins a pass; one pass may repeat many messages.
 */
static bool may_stay_silent(struct ur_qp *qp, bool another)
{
	enum { PASSES = 3 };
	uint8_t *silenced = &qp->gbn_rsp.silenced;

	if (!ur_psn_lt(ur_psn_add(qp->gbn_rsp.data, 1), qp->rsp.epsn))
		return false;
	if ((another || !*silenced) && *silenced <= PASSES)
		++*silenced;
	return *silenced <= PASSES;
}

/*
 * RC-RESP-DUP-01. What is repeated is no newer than the newest SEND or WRITE executed, whose PSN
 * the ACK has: that of a READ behind it would tell the peer that the READ is done. A PSN of a READ
 * that comes as something else gets no answer.
 */
static void acknowledge_again(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_pass *pass = &qp->gbn_rsp.pass;
	bool another = ur_pass_is_another(pass, p->bth.psn);

	if (qp->gbn_rsp.data_old || ur_psn_lt(qp->gbn_rsp.data, p->bth.psn))
		return;
	ur_pass_repeated(pass, p->bth.psn, qp->gbn_rsp.data, !(qp->rsp.ack & UR_ACK_OWED));
	if (!may_stay_silent(qp, another))
		ur_response_ack(qp);
}

/* RC-RESP-DUP-01 */
static enum ur_drop duplicate(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_rd_res *res;

	qp->core->cnt.duplicate_request++;
	if (p->op & (UR_OP_SEND | UR_OP_WRITE)) {
		/* Others come again for their answer as well. */
		ur_reorder_duplicate(qp, p->bth.psn);
		acknowledge_again(qp, p);
		return UR_DROP_PSN_DUPLICATE;
	}
	res = ur_responder_find(rsp, p->bth.psn);
	if (!res)
		return UR_DROP_DUP_UNKNOWN;
	if (p->op & UR_OP_ATOMIC ? !res->atomic : !replay_read(qp, p, res))
		return UR_DROP_DUP_UNKNOWN;
	qp->gbn_rsp.silenced = 0;
	if (!res->queued) {
		res->repeat = true;
		ur_response_queue(qp, res);
	}
	return UR_DROP_PSN_DUPLICATE;
}

/* ---- execution ---- */

struct ur_rd_res *ur_responder_remember(struct ur_qp *qp, struct ur_psn first, uint32_t psns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_rd_res *res = &rsp->res[rsp->res_next];

	rsp->res_next = (uint8_t)(rsp->res_next + 1u < rsp->res_cnt ? rsp->res_next + 1 : 0);
	*res = (struct ur_rd_res){.first = first, .psns = psns};
	return res;
}

/* The same of a request whose answer waits as an index in q. */
static struct ur_rd_res *remember(struct ur_qp *qp, struct ur_psn first, uint32_t psns)
{
	struct ur_responder *rsp = &qp->rsp;

	qp->gbn_rsp.silenced = 0;
	if (rsp->res[rsp->res_next].queued) { /* a replay that gives way */
		unsigned idx = rsp->res_next, kept = 0;

		for (unsigned i = 0; i < qp->rsp.q_cnt; i++) {
			uint8_t e = rsp->q[(qp->rsp.q_head + i) % rsp->res_cnt];

			if (e != idx)
				rsp->q[(qp->rsp.q_head + kept++) % rsp->res_cnt] = e;
		}
		qp->rsp.q_cnt = (uint8_t)kept;
	}
	return ur_responder_remember(qp, first, psns);
}

#define DATA_FAR                                                                                   \
	(1 << 22) /* PSNs; a peer's window, or the sign of a difference, is not far from it */

/* A READ or atomic that takes `psns` PSNs is executed. */
static void pass_psns(struct ur_qp *qp, uint32_t psns)
{
	struct ur_responder *rsp = &qp->rsp;
	int32_t behind;

	rsp->epsn = ur_psn_add(rsp->epsn, psns);
	rsp->msn++; /* RC-RESP-MSN-01 */
	behind = ur_psn_diff(rsp->epsn, qp->gbn_rsp.data);
	if (__builtin_expect(behind >= 0 && behind < DATA_FAR, 1))
		return;
	qp->gbn_rsp.data_old = true;
	rsp->ack &= UR_NAK_OWED;
	qp->gbn_rsp.unacked = 0;
}

static void execute_read(struct ur_qp *qp, const struct ur_packet *p)
{
	uint32_t psns = ur_responder_read_psns(qp, p->reth.length);
	struct ur_rd_res *res = remember(qp, p->bth.psn, psns);

	qp->core->cnt.rx_read_requests++;
	res->rkey = p->reth.rkey;
	res->va = p->reth.va;
	res->length = res->to = p->reth.length;
	pass_psns(qp, psns);
	ur_response_queue(qp, res);
}

/* RC-RESP-ATOMIC-02 */
struct verdict ur_responder_atomic(struct ur_qp *qp, bool fetch_add, const struct ur_atomiceth *a,
				   uint64_t *original)
{
	uint64_t *at = (uint64_t *)(void *)ur_mem_check(qp->core->mem, a->rkey, qp->pd, a->va, 8,
							IBV_ACCESS_REMOTE_ATOMIC);

	/* Another thread may have taken the key out of force since the check. */
	if (!at)
		return NAK(REM_ACCESS, ACCESS);
	qp->core->cnt.rx_atomic_requests++;
	if (fetch_add) {
		*original = __atomic_fetch_add(at, a->swap_add, __ATOMIC_SEQ_CST);
	} else {
		*original = a->compare;
		__atomic_compare_exchange_n(at, original, a->swap_add, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	return CONTINUE;
}

static struct verdict execute_atomic(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_rd_res *res;
	uint64_t original;
	struct verdict v =
		ur_responder_atomic(qp, p->bth.opcode == UR_RC_FETCH_ADD, &p->atomiceth, &original);

	if (v.kind)
		return v;
	res = remember(qp, p->bth.psn, 1);
	res->atomic = true;
	res->original = original;
	pass_psns(qp, 1);
	ur_response_queue(qp, res);
	return CONTINUE;
}

/* Places the payload of a SEND or WRITE packet. */
static struct verdict place(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_responder *rsp = &qp->rsp;
	uint8_t *to;

	if (p->op & UR_OP_SEND) {
		if (p->payload_len &&
		    !ur_sgl_scatter(qp->core->mem, qp->pd, rsp->wqe->sge, rsp->wqe->num_sge,
				    rsp->placed, p->payload, p->payload_len))
			return NAK_RECV(REM_OP, RECV_BUFFER, IBV_WC_LOC_PROT_ERR);
		rsp->placed += p->payload_len;
		return CONTINUE;
	}
	qp->core->cnt.rx_write_requests++;
	if (p->op & UR_OP_FIRST) {
		qp->gbn_rsp.rkey = p->reth.rkey;
		qp->gbn_rsp.va = p->reth.va;
		qp->gbn_rsp.left = qp->gbn_rsp.length = p->reth.length;
	}
	if (p->payload_len) {
		to = ur_mem_check(qp->core->mem, qp->gbn_rsp.rkey, qp->pd, qp->gbn_rsp.va,
				  p->payload_len, IBV_ACCESS_REMOTE_WRITE);
		if (!to)
			return NAK(REM_ACCESS, ACCESS);
		if (__builtin_expect(qp->strict && p->op & UR_OP_LAST, 0))
			ur_ordered_copy(to, p->payload, p->payload_len);
		else
			memcpy(to, p->payload, p->payload_len);
	}
	qp->gbn_rsp.va += p->payload_len;
	qp->gbn_rsp.left -= p->payload_len;
	return CONTINUE;
}

/* RC-RESP-RECV-01. The message is complete: a receive completes with it, if one is bound. */
struct verdict ur_responder_finish(struct ur_qp *qp, const struct ur_message_end *end)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ibv_wc wc = {
		.status = IBV_WC_SUCCESS,
		.opcode = end->op & UR_OP_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = end->byte_len,
	};

	if (end->op & UR_OP_IMM) {
		wc.imm_data = __builtin_bswap32(end->imm_inv);
		wc.wc_flags = IBV_WC_WITH_IMM;
	} else if (end->op & UR_OP_IETH) {
		if (!ur_mem_invalidate(qp->core->mem, end->imm_inv, qp->pd, true))
			return NAK_RECV(REM_ACCESS, ACCESS, IBV_WC_LOC_ACCESS_ERR);
		wc.invalidated_rkey = end->imm_inv;
		wc.wc_flags = IBV_WC_WITH_INV;
	}
	rsp->kind = UR_MSG_NONE;
	rsp->msn++;
	if (end->op & (UR_OP_SEND | UR_OP_IMM))
		ur_responder_complete(qp, &wc, end->solicited);
	return CONTINUE;
}

static struct verdict finish_message(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_message_end end = {
		.op = p->op,
		.imm_inv = p->op & UR_OP_IMM	? p->imm
			   : p->op & UR_OP_IETH ? p->ieth
						: 0,
		.byte_len = p->op & UR_OP_SEND ? qp->rsp.placed : qp->gbn_rsp.length,
		.solicited = p->bth.solicited,
	};

	return ur_responder_finish(qp, &end);
}

static struct verdict execute_data(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_responder *rsp = &qp->rsp;
	struct verdict v = place(qp, p);

	if (v.kind)
		return v;
	rsp->kind = ur_responder_kind_of(p->op);
	if (p->op & UR_OP_LAST) {
		v = finish_message(qp, p);
		if (v.kind)
			return v;
		qp->gbn_rsp.several = !(p->op & UR_OP_FIRST);
	}
	qp->gbn_rsp.data = p->bth.psn;
	qp->gbn_rsp.data_old = false;
	rsp->epsn = ur_psn_add(rsp->epsn, 1);
	if (qp->type != IBV_QPT_RC)
		return CONTINUE;
	if (++qp->gbn_rsp.unacked >= UR_ACK_EVERY || p->bth.ackreq) /* RC-RESP-ACK-04 */
		ur_response_ack(qp);
	else if (__builtin_expect(qp->rsp.q_cnt != 0, 0))
		ur_response_update_ack(qp);
	return CONTINUE;
}

/*
 * RC-RESP-GAP-02. The packet at ePSN has come. A NAK for it that has not left yet asks for the next
 * hole instead, if something beyond ePSN was dropped, and else becomes an ACK of what is not
 * acknowledged.
 */
static void hole_filled(struct ur_qp *qp)
{
	struct ur_responder *rsp = &qp->rsp;

	qp->gbn_rsp.reorder.rnr = false;
	rsp->nak_sent = (rsp->ack & UR_NAK_OWED) && ur_psn_le(rsp->epsn, qp->gbn_rsp.beyond);
	if (rsp->nak_sent) {
		ur_response_seq_nak(qp);
	} else if (rsp->ack & UR_NAK_OWED) {
		rsp->ack = qp->gbn_rsp.unacked ? UR_ACK_OWED : UR_ACK_NONE;
		ur_response_update_ack(qp);
	}
}

static struct verdict execute(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_responder *rsp = &qp->rsp;
	struct verdict v = CONTINUE;

	if (p->op & UR_OP_READ_REQ)
		execute_read(qp, p);
	else if (p->op & UR_OP_ATOMIC)
		v = execute_atomic(qp, p);
	else
		v = execute_data(qp, p);
	if (__builtin_expect(rsp->nak_sent, 0) && !v.kind)
		hole_filled(qp);
	return v;
}

/* ---- RC ---- */

static struct verdict check(struct ur_qp *qp, const struct ur_packet *p)
{
	struct verdict v;

	if ((v = check_psn(qp, p)).kind || (v = check_sequence(qp, p)).kind ||
	    (v = ur_responder_check_rights(qp, p->op)).kind || (v = check_length(qp, p)).kind ||
	    (v = check_resources(qp, p)).kind)
		return v;
	return check_access(qp, p);
}

/* RC-RESP-GAP-01 */
static void report_gap(struct ur_qp *qp, struct ur_psn psn)
{
	struct ur_responder *rsp = &qp->rsp;

	if (!rsp->nak_sent || ur_psn_lt(qp->gbn_rsp.beyond, psn))
		qp->gbn_rsp.beyond = psn;
	if (rsp->nak_sent)
		return;
	rsp->nak_sent = true;
	qp->core->cnt.seq_nak_sent++;
	ur_response_seq_nak(qp);
}

static enum ur_drop early(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	enum ur_drop drop = UR_DROP_PSN_GAP;

	qp->core->cnt.out_of_sequence++;
	if (qp->mode == UR_MODE_REORDER) {
		drop = ur_reorder_keep(qp, p, now_ns);
		if (qp->gbn_rsp.reorder.ctx)
			return drop;
	}
	report_gap(qp, p->bth.psn);
	return drop;
}

static enum ur_drop act(struct ur_qp *qp, const struct ur_packet *p, struct verdict v,
			uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;

	switch ((enum verdict_kind)v.kind) {
	case V_CONTINUE:
		return UR_DROP_NONE;
	case V_DUPLICATE:
		return duplicate(qp, p);
	case V_GAP:
		return early(qp, p, now_ns);
	case V_RNR: /* RC-RESP-RNR-01 */
		/* What follows is beyond ePSN and says nothing new: silence until the retry. */
		rsp->nak_sent = true;
		qp->gbn_rsp.reorder.rnr = true;
		qp->gbn_rsp.beyond = rsp->epsn;
		qp->core->cnt.rnr_nak_sent++;
		ur_response_nak(qp, UR_SYNDROME_RNR_NAK | rsp->min_rnr_timer, rsp->epsn);
		return UR_DROP_RNR;
	case V_NAK:
		return ur_response_refuse(qp, p->bth.psn, v);
	}
	return UR_DROP_NONE;
}

static enum ur_drop rc_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct verdict v = check(qp, p);

	if (!v.kind)
		v = execute(qp, p);
	return v.kind ? act(qp, p, v, now_ns) : UR_DROP_NONE;
}

/*
 * REORDER-REPLAY-01. The packet at ePSN was executed, or got an RNR NAK: what was kept beyond it
 * goes through the same checks as if it came now.
 */
static void replay(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_reorder_slot *slot;
	struct ur_packet p;

	while (!qp->fail_send && qp->gbn_rsp.reorder.ctx && !qp->gbn_rsp.reorder.rnr &&
	       (slot = ur_reorder_next(qp))) {
		enum ur_drop drop;

		ur_reorder_packet(slot, &p);
		drop = rc_input(qp, &p, now_ns);
		if (drop)
			qp->core->cnt.drops[drop]++;
		ur_reorder_slot_give(&qp->core->reorder, slot);
	}
	if (!qp->fail_send && qp->gbn_rsp.reorder.ctx)
		ur_reorder_judge_hole(qp, now_ns);
}

/* ---- UC (IBA 9.8.3): a broken message is dropped whole, its receive is used again ---- */

/* UC-RESP-SILENT-01 */
static enum ur_drop uc_skip(struct ur_qp *qp, const struct ur_packet *p, enum ur_drop why)
{
	struct ur_responder *rsp = &qp->rsp;

	rsp->kind = p->op & UR_OP_LAST ? UR_MSG_NONE : UR_MSG_SKIP;
	rsp->placed = 0;
	return why;
}

/* UC-RESP-SEQ-01 */
static enum ur_drop uc_input(struct ur_qp *qp, const struct ur_packet *p)
{
	struct ur_responder *rsp = &qp->rsp;
	bool first = p->op & UR_OP_FIRST;
	struct verdict v;

	if (!ur_psn_eq(p->bth.psn, rsp->epsn)) {
		qp->core->cnt.out_of_sequence++;
		rsp->kind = UR_MSG_SKIP;
	}
	rsp->epsn = p->bth.psn;
	if (first) {
		rsp->kind = UR_MSG_NONE;
		rsp->placed = 0;
	} else if (rsp->kind == UR_MSG_SKIP || rsp->kind == UR_MSG_NONE) {
		rsp->epsn = ur_psn_add(rsp->epsn, 1);
		return uc_skip(qp, p, UR_DROP_OP_SEQUENCE);
	}
	if ((v = check_sequence(qp, p)).kind || (v = ur_responder_check_rights(qp, p->op)).kind ||
	    (v = check_length(qp, p)).kind || (v = check_resources(qp, p)).kind ||
	    (v = check_access(qp, p)).kind || (v = execute_data(qp, p)).kind) {
		rsp->epsn = ur_psn_add(p->bth.psn, 1);
		/* UC-RESP-LOCAL-01: our own fault stops the QP, or its receive would hang. */
		if (v.kind == V_NAK && v.code == UR_NAK_REM_OP)
			ur_qp_fail(qp, IBV_WC_WR_FLUSH_ERR, v.recv_status);
		return uc_skip(qp, p, v.kind == V_RNR ? UR_DROP_RNR : v.drop);
	}
	return UR_DROP_NONE;
}

void ur_responder_established(struct ur_qp *qp)
{
	if (qp->state != IBV_QPS_RTR || qp->comm_est)
		return;
	qp->comm_est = true;
	qp->core->sink.async(qp->core->sink.ctx, IBV_EVENT_COMM_EST, qp->user);
}

enum ur_drop ur_responder_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	enum ur_drop drop;
	bool fills;

	if (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD &&
	    qp->state != IBV_QPS_SQE)
		return UR_DROP_QP_STATE;
	ur_responder_established(qp);
	if (qp->type == IBV_QPT_UC)
		return uc_input(qp, p);
	fills = qp->gbn_rsp.reorder.ctx && ur_psn_eq(p->bth.psn, qp->rsp.epsn);
	drop = rc_input(qp, p, now_ns);
	if (__builtin_expect(fills, 0) && !qp->fail_send)
		replay(qp, now_ns);
	return drop;
}
