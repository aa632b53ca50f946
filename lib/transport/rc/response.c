/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/build.h"
#include "transport/qp.h"
#include "transport/rc/responder_priv.h"
#include "wire/assert.h"
#include "wire/opcode.h"

static inline uint8_t *queued_at(const struct ur_qp *qp, unsigned i)
{
	const struct ur_responder *rsp = &qp->rsp;
	unsigned at = qp->rsp.q_head + i;

	return &rsp->q[at < rsp->res_cnt ? at : at - rsp->res_cnt];
}

/*
 * RC-RESP-ACK-02, RC-RESP-ACK-06. Neither overtakes the responses that it would acknowledge, and no
 * ACK goes before or into an answer of several packets: that says the same, and does not depend on
 * one of them alone.
 */
bool ur_response_ack_due(const struct ur_qp *qp)
{
	const struct ur_responder *rsp = &qp->rsp;

	if (!(rsp->ack & UR_ACK_OWED))
		return rsp->ack && !qp->rsp.q_cnt;
	for (unsigned i = 0; i < qp->rsp.q_cnt; i++) {
		const struct ur_rd_res *res = &rsp->res[*queued_at(qp, i)];

		if (res->psns > 1 || ur_psn_lt(res->first, qp->gbn_rsp.data))
			return false;
	}
	return true;
}

void ur_response_update_ack(struct ur_qp *qp)
{
	ur_sched_set(&qp->core->acks, &qp->ack_node, ur_response_ack_due(qp));
}

/* RC-RESP-ACK-01 */
void ur_response_ack(struct ur_qp *qp)
{
	qp->rsp.ack |= UR_ACK_OWED;
	ur_response_update_ack(qp);
}

/* EDGE-OWED-01 */
void ur_response_ack_all(struct ur_qp *qp)
{
	struct ur_pass *pass = &qp->gbn_rsp.pass;

	if (ur_qp_is_ext(qp) || !pass->on || !pass->held)
		return;
	pass->on = false;
	ur_response_ack(qp);
}

static void owe_nak(struct ur_qp *qp, uint8_t owed, uint8_t syndrome, struct ur_psn psn)
{
	struct ur_responder *rsp = &qp->rsp;

	rsp->ack = owed;
	rsp->nak_syndrome = syndrome;
	rsp->nak_psn = psn;
	/* Extended mode has an update of its own, which its callers make. */
	if (!ur_qp_is_ext(qp))
		ur_response_update_ack(qp);
}

void ur_response_nak(struct ur_qp *qp, uint8_t syndrome, struct ur_psn psn)
{
	owe_nak(qp, UR_NAK_OWED, syndrome, psn);
}

/* RC-RESP-NAK-01 */
enum ur_drop ur_response_refuse(struct ur_qp *qp, struct ur_psn psn, struct verdict v)
{
	struct ur_core *core = qp->core;

	if (v.code == UR_NAK_REM_ACCESS)
		core->cnt.resp_remote_access_errors++;
	else
		core->cnt.resp_invalid_requests++;
	ur_response_nak(qp, UR_SYNDROME_NAK | v.code, psn);
	/* Where a receive completes with the error, that tells the consumer; else an event does. */
	if (!qp->rsp.wqe || v.recv_status == IBV_WC_WR_FLUSH_ERR)
		core->sink.async(core->sink.ctx,
				 v.code == UR_NAK_REM_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
							     : IBV_EVENT_QP_REQ_ERR,
				 qp->user);
	ur_qp_fail(qp, IBV_WC_WR_FLUSH_ERR, v.recv_status);
	return v.drop;
}

/*
 * RC-RESP-ACK-05. To a peer that goes back N for each NAK and counts that as a retry, only an ACK
 * is progress.
 */
void ur_response_seq_nak(struct ur_qp *qp)
{
	struct ur_responder *rsp = &qp->rsp;
	uint8_t ack = qp->gbn_rsp.unacked ? UR_ACK_OWED : rsp->ack & UR_ACK_OWED;

	owe_nak(qp, ack | UR_NAK_OWED, UR_SYNDROME_NAK | UR_NAK_PSN_SEQ, rsp->epsn);
}

/*
 * RC-RESP-ORDER-01. How many answers go before this one: what the peer asks for again is older than
 * what has not been sent, and the peer waits for it. An answer that was begun is not interrupted.
 */
static unsigned position_of(const struct ur_qp *qp, const struct ur_rd_res *res)
{
	const struct ur_responder *rsp = &qp->rsp;
	unsigned i = qp->rsp.q_cnt;

	while (res->replay && i) {
		const struct ur_rd_res *before = &rsp->res[*queued_at(qp, i - 1)];
		bool begun = i == 1 && !before->atomic && before->from != before->start;

		if (begun || ur_psn_lt(before->first, res->first))
			break;
		i--;
	}
	return i;
}

void ur_response_queue(struct ur_qp *qp, unsigned idx)
{
	struct ur_responder *rsp = &qp->rsp;
	unsigned at;

	UR_ASSERT(!rsp->res[idx].queued && qp->rsp.q_cnt < rsp->res_cnt);
	at = position_of(qp, &rsp->res[idx]);
	for (unsigned i = qp->rsp.q_cnt; i > at; i--)
		*queued_at(qp, i) = *queued_at(qp, i - 1);
	*queued_at(qp, at) = (uint8_t)idx;
	qp->rsp.q_cnt++;
	rsp->res[idx].queued = true;
	ur_response_update_ack(qp);
	ur_emux_set(&qp->core->emux, &qp->rsp_queue, true);
}

static void dequeue(struct ur_qp *qp, struct ur_rd_res *res)
{
	struct ur_responder *rsp = &qp->rsp;

	res->queued = res->replay = false;
	qp->rsp.q_head = (uint8_t)(qp->rsp.q_head + 1 < rsp->res_cnt ? qp->rsp.q_head + 1 : 0);
	if (!--qp->rsp.q_cnt)
		ur_emux_set(&qp->core->emux, &qp->rsp_queue, false);
	if (rsp->ack)
		ur_response_update_ack(qp);
}

/* A response leaves: it acknowledges all requests before its own. */
static void acknowledge(struct ur_qp *qp, const struct ur_rd_res *res)
{
	struct ur_responder *rsp = &qp->rsp;

	if (!ur_psn_lt(qp->gbn_rsp.data, res->first))
		return;
	qp->gbn_rsp.unacked = 0;
	if (!(rsp->ack & UR_ACK_OWED))
		return;
	rsp->ack &= UR_NAK_OWED;
	ur_response_update_ack(qp);
}

static uint8_t *put_aeth(uint8_t *p, const struct ur_qp *qp)
{
	return ur_build32(p, (uint32_t)(UR_SYNDROME_ACK | ur_response_credits(qp)) << 24 |
				     (qp->rsp.msn & UR_PSN_MASK));
}

static void make_atomic_ack(struct ur_qp *qp, struct ur_rd_res *res, struct ur_tx *tx)
{
	struct ur_build_bth bth = {
		.opcode = UR_RC_ATOMIC_ACKNOWLEDGE,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = res->first,
	};
	uint8_t *p;

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	p = ur_build_begin(tx, &qp->path, &bth, UR_AETH_BYTES + UR_ATOMICACKETH_BYTES);
	ur_build64(put_aeth(p, qp), res->original);
	acknowledge(qp, res);
	dequeue(qp, res);
}

/* RC-RESP-NAK-02. Nothing is answered any more but what older requests ask for again. */
static void keep_older(struct ur_qp *qp, const struct ur_rd_res *refused)
{
	struct ur_responder *rsp = &qp->rsp;
	unsigned kept = 0;

	for (unsigned i = 0; i < qp->rsp.q_cnt; i++) {
		uint8_t idx = *queued_at(qp, i);
		struct ur_rd_res *res = &rsp->res[idx];

		if (res->replay && ur_psn_lt(res->first, refused->first))
			*queued_at(qp, kept++) = idx;
		else
			res->queued = res->replay = false;
	}
	qp->rsp.q_cnt = (uint8_t)kept;
	ur_emux_set(&qp->core->emux, &qp->rsp_queue, kept != 0);
}

/* RC-RESP-READ-02. A region that has gone since: fatal, but not for a repeated request. */
static void refuse_read(struct ur_qp *qp, struct ur_rd_res *res, struct ur_psn psn)
{
	if (res->replay) {
		dequeue(qp, res);
		return;
	}
	keep_older(qp, res);
	ur_response_refuse(qp, psn, NAK(REM_ACCESS, ACCESS));
}

/* RC-RESP-READ-01. Each packet is checked again: the region may have gone. */
static bool make_read_response(struct ur_qp *qp, struct ur_rd_res *res, struct ur_tx *tx)
{
	static const uint8_t opcode[2][2] = {
		{UR_RC_READ_RESPONSE_MIDDLE, UR_RC_READ_RESPONSE_LAST},
		{UR_RC_READ_RESPONSE_FIRST, UR_RC_READ_RESPONSE_ONLY},
	};
	uint32_t left = res->to - res->from, mtu = 1u << qp->mtu_shift;
	uint32_t len = left < mtu ? left : mtu;
	bool first = res->from == res->start, last = len == left;
	struct ur_build_bth bth = {
		.opcode = opcode[first][last],
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = ur_psn_add(res->first, res->from >> qp->mtu_shift),
	};
	uint8_t *p;

	tx->frag_cnt = 0;
	tx->payload_len = (uint16_t)len;
	if (len) {
		const uint8_t *base =
			ur_mem_check(qp->core->mem, res->rkey, qp->pd, res->va + res->from, len,
				     IBV_ACCESS_REMOTE_READ);
		if (!base) {
			refuse_read(qp, res, bth.psn);
			return false;
		}
		tx->frag[0] = (struct ur_frag){base, len};
		tx->frag_cnt = 1;
	}
	p = ur_build_begin(tx, &qp->path, &bth, first || last ? UR_AETH_BYTES : 0);
	if (first || last)
		put_aeth(p, qp);
	res->from += len;
	if (first || last)
		acknowledge(qp, res);
	if (last)
		dequeue(qp, res);
	return true;
}

bool ur_response_next(struct ur_qp *qp, struct ur_tx *tx)
{
	struct ur_responder *rsp = &qp->rsp;

	while (qp->rsp.q_cnt && !qp->fail_send) {
		struct ur_rd_res *res = &rsp->res[rsp->q[qp->rsp.q_head]];

		if (res->atomic) {
			make_atomic_ack(qp, res, tx);
			return true;
		}
		if (make_read_response(qp, res, tx))
			return true;
	}
	return false;
}

/* RC-RESP-ACK-03 */
static struct ur_psn name_psn(struct ur_qp *qp)
{
	bool ends = qp->rsp.kind == UR_MSG_NONE && qp->gbn_rsp.several;

	return ur_pass_named(&qp->gbn_rsp.pass, qp->gbn_rsp.data, ends);
}

bool ur_response_next_ack(struct ur_qp *qp, struct ur_tx *tx)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_build_bth bth = {
		.opcode = UR_RC_ACKNOWLEDGE,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
	};
	uint8_t syndrome, *p;

	if (!ur_response_ack_due(qp))
		return false;
	if (rsp->ack & UR_ACK_OWED) {
		bth.psn = name_psn(qp);
		syndrome = UR_SYNDROME_ACK | ur_response_credits(qp);
		rsp->ack &= UR_NAK_OWED;
		qp->gbn_rsp.unacked = 0;
		qp->core->cnt.acks_sent++;
	} else {
		bth.psn = rsp->nak_psn;
		syndrome = rsp->nak_syndrome;
		rsp->ack = UR_ACK_NONE;
	}
	tx->frag_cnt = 0;
	tx->payload_len = 0;
	p = ur_build_begin(tx, &qp->path, &bth, UR_AETH_BYTES);
	ur_build32(p, (uint32_t)syndrome << 24 | (rsp->msn & UR_PSN_MASK));
	ur_response_update_ack(qp);
	return true;
}
