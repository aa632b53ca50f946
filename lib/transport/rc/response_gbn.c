/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/response.h"

/*
 * The responses of modes gbn and reorder: answers wait as indices into the READs and atomics that are remembered.
 * An ACK and a NAK may be owed at once; the ACK goes first.
 */
#define RESPONSE(name) ur_response_##name
#define ANSWER	       ur_rd_res

/* ---- the queue of answers ---- */

static inline uint8_t *queued_at(const struct ur_qp *qp, unsigned i)
{
	const struct ur_responder *rsp = &qp->rsp;
	unsigned at = qp->rsp.q_head + i;

	return &rsp->q[at < rsp->res_cnt ? at : at - rsp->res_cnt];
}

/*
 * RC-RESP-ORDER-01. How many answers go before this one: what the peer asks for again is older than
 * what has not been sent, and the peer waits for it. An answer that was begun is not interrupted.
 */
static unsigned position_of(const struct ur_qp *qp, const struct ur_rd_res *res)
{
	const struct ur_responder *rsp = &qp->rsp;
	unsigned i = qp->rsp.q_cnt;

	while (res->repeat && i) {
		const struct ur_rd_res *before = &rsp->res[*queued_at(qp, i - 1)];
		bool begun = i == 1 && !before->atomic && before->from != before->start;

		if (begun || ur_psn_lt(before->first, res->first))
			break;
		i--;
	}
	return i;
}

void ur_response_queue(struct ur_qp *qp, struct ur_rd_res *res)
{
	unsigned at;

	UR_ASSERT(!res->queued && qp->rsp.q_cnt < qp->rsp.res_cnt);
	at = position_of(qp, res);
	for (unsigned i = qp->rsp.q_cnt; i > at; i--)
		*queued_at(qp, i) = *queued_at(qp, i - 1);
	*queued_at(qp, at) = (uint8_t)(res - qp->rsp.res);
	qp->rsp.q_cnt++;
	res->queued = true;
	ur_response_update_ack(qp);
	ur_emux_set(&qp->core->emux, &qp->rsp_queue, true);
}

void ur_response_unqueue(struct ur_qp *qp, const struct ur_rd_res *res)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < qp->rsp.q_cnt; i++) {
		uint8_t idx = *queued_at(qp, i);

		if (&qp->rsp.res[idx] != res)
			*queued_at(qp, kept++) = idx;
	}
	qp->rsp.q_cnt = (uint8_t)kept;
}

static inline bool answers_wait(const struct ur_qp *qp)
{
	return qp->rsp.q_cnt;
}

static inline struct ur_rd_res *answers_head(const struct ur_qp *qp)
{
	return &qp->rsp.res[qp->rsp.q[qp->rsp.q_head]];
}

static void answers_dequeue(struct ur_qp *qp, struct ur_rd_res *res)
{
	struct ur_responder *rsp = &qp->rsp;

	res->queued = res->repeat = false;
	qp->rsp.q_head = (uint8_t)(qp->rsp.q_head + 1 < rsp->res_cnt ? qp->rsp.q_head + 1 : 0);
	if (!--qp->rsp.q_cnt)
		ur_emux_set(&qp->core->emux, &qp->rsp_queue, false);
	if (rsp->ack)
		ur_response_update_ack(qp);
}

/* RC-RESP-NAK-02. Nothing is answered any more but what older requests ask for again. */
static void answers_refuse(struct ur_qp *qp, const struct ur_rd_res *refused)
{
	struct ur_responder *rsp = &qp->rsp;
	unsigned kept = 0;

	for (unsigned i = 0; i < qp->rsp.q_cnt; i++) {
		uint8_t idx = *queued_at(qp, i);
		struct ur_rd_res *res = &rsp->res[idx];

		if (res->repeat && ur_psn_lt(res->first, refused->first))
			*queued_at(qp, kept++) = idx;
		else
			res->queued = res->repeat = false;
	}
	qp->rsp.q_cnt = (uint8_t)kept;
	ur_emux_set(&qp->core->emux, &qp->rsp_queue, kept != 0);
}

static inline void answers_stop(struct ur_qp *qp, bool fatal)
{
	qp->gbn_rsp.pass.on = false;
	if (fatal)
		return;
	for (unsigned i = 0; i < qp->rsp.res_cnt; i++)
		qp->rsp.res[i].queued = qp->rsp.res[i].repeat = false;
	qp->rsp.q_cnt = 0;
}

static inline bool answer_begins(const struct ur_rd_res *res)
{
	return res->from == res->start;
}

/* A response leaves: it acknowledges all requests before its own. */
static void answer_leaves(struct ur_qp *qp, const struct ur_rd_res *res)
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

/* ---- headers ---- */

static inline struct ur_psn answer_psn(const struct ur_qp *qp, const struct ur_rd_res *res)
{
	return ur_psn_add(res->first, res->from >> qp->mtu_shift);
}

/* Only the first and the last packet of an answer have an AETH (IBA 9.4). */
static inline uint8_t *codec_begin_answer(struct ur_qp *qp, const struct ur_rd_res *res,
					  uint8_t opcode, bool ends, unsigned more,
					  struct ur_tx *tx, uint64_t now_ns)
{
	uint8_t *p = begin_response(qp, opcode, answer_psn(qp, res),
				    (ends ? UR_AETH_BYTES : 0) + more, tx);

	return ends ? put_aeth(p, qp, ack_syndrome(qp)) : p;
}

#include "transport/rc/response_template.h"

/* ---- ACKs and NAKs ---- */

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

/* RC-RESP-ACK-01. Where no answer waits, the ACK waits for nothing. */
void ur_response_ack(struct ur_qp *qp)
{
	qp->rsp.ack |= UR_ACK_OWED;
	if (__builtin_expect(!qp->rsp.q_cnt, 1))
		ur_sched_set(&qp->core->acks, &qp->ack_node, true);
	else
		ur_response_update_ack(qp);
}

/* EDGE-OWED-01 */
void ur_response_ack_all(struct ur_qp *qp)
{
	struct ur_pass *pass = &qp->gbn_rsp.pass;

	if (!pass->on || !pass->held)
		return;
	pass->on = false;
	ur_response_ack(qp);
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

/* RC-RESP-ACK-03 */
static struct ur_psn name_psn(struct ur_qp *qp)
{
	bool ends = qp->rsp.kind == UR_MSG_NONE && qp->gbn_rsp.several;

	return ur_pass_named(&qp->gbn_rsp.pass, qp->gbn_rsp.data, ends);
}

bool ur_response_next_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_psn psn = rsp->nak_psn;
	uint8_t syndrome = rsp->nak_syndrome;

	if ((rsp->q_cnt || !rsp->ack) && !ur_response_ack_due(qp))
		return false;
	if (rsp->ack & UR_ACK_OWED) {
		psn = name_psn(qp);
		syndrome = ack_syndrome(qp);
		rsp->ack &= UR_NAK_OWED;
		qp->gbn_rsp.unacked = 0;
		qp->core->cnt.acks_sent++;
	} else {
		rsp->ack = UR_ACK_NONE;
	}
	clear_payload(tx);
	put_aeth(begin_response(qp, UR_RC_ACKNOWLEDGE, psn, UR_AETH_BYTES, tx), qp, syndrome);
	if (__builtin_expect(rsp->ack, 0))
		ur_response_update_ack(qp);
	else
		ur_sched_set(&qp->core->acks, &qp->ack_node, false);
	return true;
}
