/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/arrival.h"
#include "wire/assert.h"
#include "wire/predict.h"

/*
 * The responder of modes gbn and reorder, and of UC: a packet belongs to the message that the one before it belongs to
 * (rc/arrival.h). What comes beyond ePSN is dropped, or kept whole in reorder.h.
 */
#define RESPONDER(name) ur_responder_##name
#define RESPONSE(name)	ur_response_##name
#define ANSWER		ur_rd_res

/* ---- the packet itself ---- */

enum { ARRIVAL_READ_PSNS = UR_PSN_WINDOW - 1 };

static inline struct verdict arrival_check_form(const struct ur_qp *qp, const struct ur_packet *p)
{
	return CONTINUE;
}

static inline uint64_t arrival_offset(const struct ur_qp *qp, const struct ur_packet *p)
{
	return p->op & UR_OP_FIRST ? 0 : qp->rsp.placed;
}

static inline const struct ur_reth *arrival_reth(const struct ur_qp *qp, const struct ur_packet *p)
{
	return p->op & UR_OP_FIRST ? &p->reth : &qp->gbn_rsp.write;
}

/* Nothing is placed before its turn. */
static inline bool arrival_clip(const struct ur_qp *qp, struct ur_psn psn, uint8_t *dst,
				const uint8_t *src, uint32_t len)
{
	return false;
}

static inline bool arrival_is_foreign(const struct ur_packet *p)
{
	return false;
}

static inline bool arrival_is_consumed(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	return false;
}

/* ---- in its turn ---- */

/* RC-RESP-SEQ-01: a message is First, Middle..., Last, or Only, all of one kind. */
static inline struct verdict arrival_check_sequence(const struct ur_qp *qp,
						    const struct ur_packet *p)
{
	uint8_t kind = p->op & UR_OP_FIRST ? UR_MSG_NONE : ur_responder_kind_of(p->op);

	return qp->rsp.kind == kind ? CONTINUE : NAK(INV_REQ, OP_SEQUENCE);
}

/* A replay gives way: a peer that asks for something new has received the answer. */
static inline bool arrival_has_room(const struct ur_qp *qp)
{
	const struct ur_responder *rsp = &qp->rsp;
	const struct ur_rd_res *oldest = &rsp->res[rsp->res_next];

	return rsp->res_cnt && (!oldest->queued || oldest->repeat);
}

static inline bool arrival_bind(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	return ur_responder_bind(qp);
}

static inline struct ur_rd_res *arrival_new_answer(struct ur_qp *qp, const struct ur_packet *p,
						   bool repeat, uint64_t arrival_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_rd_res *res;

	qp->gbn_rsp.silenced = 0;
	if (rsp->res[rsp->res_next].queued) /* a replay that gives way */
		ur_response_unqueue(qp, &rsp->res[rsp->res_next]);
	res = ur_responder_remember(
		qp, p->bth.psn, is_read(p->op) ? ur_responder_read_psns(qp, p->reth.length) : 1);
	res->length = is_read(p->op) ? p->reth.length : 0;
	return res;
}

/* PSNs; a peer's window, or the sign of a difference, is not far from it. */
#define DATA_FAR (1 << 22)

static inline void arrival_pass_request(struct ur_qp *qp, const struct ur_packet *p,
					const struct ur_rd_res *res)
{
	struct ur_responder *rsp = &qp->rsp;
	int32_t behind;

	rsp->epsn = ur_psn_add(rsp->epsn, res->psns);
	rsp->msn = ur_msn_add(rsp->msn, 1); /* RC-RESP-MSN-01 */
	behind = ur_psn_diff(rsp->epsn, qp->gbn_rsp.data);
	if (__builtin_expect(behind >= 0 && behind < DATA_FAR, 1))
		return;
	qp->gbn_rsp.data_old = true;
	rsp->ack &= UR_NAK_OWED;
	qp->gbn_rsp.unacked = 0;
}

/* The packet `psn` of a SEND or WRITE was executed. `several`: it ends a message of more than one. */
static inline void pass_psn(struct ur_qp *qp, struct ur_psn psn, bool several)
{
	qp->gbn_rsp.several = several;
	qp->gbn_rsp.data = psn;
	qp->gbn_rsp.data_old = false;
}

static inline void arrival_pass_data(struct ur_qp *qp, const struct ur_packet *p)
{
	qp->rsp.placed = (uint32_t)arrival_offset(qp, p) + p->payload_len;
	if ((p->op & (UR_OP_WRITE | UR_OP_FIRST | UR_OP_LAST)) == (UR_OP_WRITE | UR_OP_FIRST))
		qp->gbn_rsp.write = p->reth;
	pass_psn(qp, p->bth.psn, p->op & UR_OP_LAST ? !(p->op & UR_OP_FIRST) : qp->gbn_rsp.several);
}

/* RC-RESP-ACK-04. A packet of a SEND or WRITE was executed. */
static inline void acknowledge_data(struct ur_qp *qp, bool ackreq)
{
	if (++qp->gbn_rsp.unacked >= UR_ACK_EVERY || ackreq) {
		/* Where no answer waits, what is owed is due already. */
		if (!(qp->rsp.ack & UR_ACK_OWED) || qp->rsp.q_cnt)
			ur_response_ack(qp);
	} else if (__builtin_expect(qp->rsp.q_cnt != 0, 0))
		ur_response_update_ack(qp);
}

static inline void arrival_acknowledge(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (!is_answered(p->op))
		acknowledge_data(qp, p->bth.ackreq);
}

/*
 * RC-RESP-GAP-02. The packet at ePSN has come. A NAK for it that has not left yet asks for the next
 * hole instead, if something beyond ePSN was dropped, and else becomes an ACK of what is not
 * acknowledged.
 */
static void arrival_close_hole(struct ur_qp *qp)
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

static inline void arrival_record_echo(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
}

/* What follows is beyond ePSN and says nothing new. */
static inline uint8_t arrival_rnr_timer(struct ur_qp *qp)
{
	qp->gbn_rsp.reorder.rnr = true;
	qp->gbn_rsp.beyond = qp->rsp.epsn;
	return qp->rsp.min_rnr_timer;
}

/* ---- beyond ePSN ---- */

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

static enum ur_drop arrival_take_early(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
				       uint64_t now_ns)
{
	enum ur_drop drop = UR_DROP_PSN_GAP;

	if (qp->ops->keeps_early) {
		drop = ur_reorder_keep(qp, p, now_ns);
		if (qp->gbn_rsp.reorder.ctx)
			return drop;
	}
	report_gap(qp, p->bth.psn);
	return drop;
}

static inline bool arrival_is_waiting(const struct ur_qp *qp)
{
	return qp->gbn_rsp.reorder.ctx;
}

static bool arrival_next(struct ur_qp *qp, struct turn *turn)
{
	const struct ur_reorder_qp *r = &qp->gbn_rsp.reorder;

	turn->slot = r->ctx && !r->rnr ? ur_reorder_next(qp) : NULL;
	if (!turn->slot)
		return false;
	ur_reorder_packet(turn->slot, &turn->p);
	turn->placed = false;
	turn->arrival_ns = 0;
	return true;
}

static void arrival_release(struct ur_qp *qp, const struct turn *turn, enum ur_drop drop)
{
	if (drop)
		qp->core->cnt.drops[drop]++;
	ur_reorder_slot_give(&qp->core->reorder, turn->slot);
}

static void arrival_finish_turns(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (qp->gbn_rsp.reorder.ctx)
		ur_reorder_judge_hole(qp, now_ns);
}

/* ---- before ePSN ---- */

static inline uint32_t arrival_part(const struct ur_packet *p)
{
	return 0;
}

static inline struct ur_repeats *arrival_repeats(struct ur_qp *qp)
{
	return &qp->gbn_rsp.repeats;
}

static inline bool arrival_is_twin(struct ur_qp *qp, const struct ur_packet *p)
{
	return false;
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
static void arrival_acknowledge_again(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_pass *pass = &qp->gbn_rsp.pass;
	bool another = ur_pass_is_another(pass, p->bth.psn, qp->gbn_rsp.data);

	/* Others come again for their answer as well. */
	ur_reorder_duplicate(qp, p->bth.psn);
	if (qp->gbn_rsp.data_old || ur_psn_lt(qp->gbn_rsp.data, p->bth.psn))
		return;
	ur_pass_repeated(pass, p->bth.psn, qp->gbn_rsp.data, !(qp->rsp.ack & UR_ACK_OWED));
	if (!may_stay_silent(qp, another))
		ur_response_ack(qp);
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

static bool arrival_answer_again(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_rd_res *res = ur_responder_find(&qp->rsp, p->bth.psn);

	if (!res || (p->op & UR_OP_ATOMIC ? !res->atomic : !replay_read(qp, p, res)))
		return false;
	qp->gbn_rsp.silenced = 0;
	if (!res->queued) {
		res->repeat = true;
		ur_response_queue(qp, res);
	}
	return true;
}

#include "transport/rc/responder_template.h"

/* ---- a predicted request ---- */

#define PREDICTED_EXT 0
static inline bool predicted_is_quiet(const struct ur_qp *qp)
{
	return !qp->gbn_rsp.reorder.ctx;
}

static inline bool predicted_is_between(const struct ur_qp *qp)
{
	return qp->rsp.kind == UR_MSG_NONE;
}

static inline bool predicted_fits(const struct ur_qp *qp, const uint8_t *ext,
				  const struct candidate *c)
{
	return true;
}

static inline struct ur_reth predicted_reth(const struct ur_qp *qp, const uint8_t *ext,
					    const struct candidate *c)
{
	return c->first ? ur_predict_reth(ext) : qp->gbn_rsp.write;
}

static inline uint32_t predicted_offset(const struct ur_qp *qp)
{
	return qp->rsp.placed;
}

static inline void predicted_pass(struct ur_qp *qp, const struct candidate *c)
{
	qp->rsp.placed = c->off + c->n;
	if (!c->send && c->first && !c->last)
		qp->gbn_rsp.write = c->reth;
	pass_psn(qp, qp->rsp.epsn, c->last ? !c->first : qp->gbn_rsp.several);
}

static inline void predicted_acknowledge(struct ur_qp *qp, const uint8_t *ext, bool ackreq,
					 uint64_t now_ns)
{
	acknowledge_data(qp, ackreq);
}

static inline bool predicted_read(const struct ur_qp *qp, const uint8_t *ext, struct ur_packet *p)
{
	return true;
}

#include "transport/rc/predicted.h"

/* flatten: messages of one packet pay for no call of what longer ones need as well. */
__attribute__((flatten)) bool ur_responder_predicted(struct ur_qp *qp, const uint8_t *frame,
						     uint32_t bytes, uint64_t now_ns)
{
	return predicted_request(qp, frame, bytes, UR_TRANSPORT_RC, now_ns);
}

/* ---- UC (IBA 9.8.3): a broken message is dropped whole, its receive is used again ---- */

/* UC-RESP-SILENT-01 */
static enum ur_drop uc_skip(struct ur_qp *qp, const struct ur_packet *p, enum ur_drop why)
{
	qp->rsp.kind = p->op & UR_OP_LAST ? UR_MSG_NONE : UR_MSG_SKIP;
	qp->rsp.epsn = ur_psn_add(p->bth.psn, 1);
	return why;
}

/* UC-RESP-SEQ-01 */
enum ur_drop ur_uc_responder_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct verdict v;

	if (!ur_responder_receives(qp))
		return UR_DROP_QP_STATE;
	if (!ur_psn_eq(p->bth.psn, rsp->epsn)) {
		qp->core->cnt.out_of_sequence++;
		rsp->kind = UR_MSG_SKIP;
	}
	rsp->epsn = p->bth.psn;
	if (p->op & UR_OP_FIRST)
		rsp->kind = UR_MSG_NONE;
	else if (rsp->kind == UR_MSG_SKIP || rsp->kind == UR_MSG_NONE)
		return uc_skip(qp, p, UR_DROP_OP_SEQUENCE);
	v = execute(qp, p, false, now_ns, now_ns);
	if (!v.kind)
		return UR_DROP_NONE;
	/* UC-RESP-LOCAL-01: our own fault stops the QP, or its receive would hang. */
	if (v.kind == V_NAK && v.code == UR_NAK_REM_OP)
		ur_qp_fail(qp, IBV_WC_WR_FLUSH_ERR, v.recv_status);
	return uc_skip(qp, p, v.kind == V_RNR ? UR_DROP_RNR : v.drop);
}
