/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder of RC, for every loss engine: an ordered list of checks that change nothing but bind a receive, each
 * with a verdict; the execution; and one function that acts on the first verdict that is not CONTINUE (IBA 9.7.4). See
 * rc/arrival.h for what the C file that includes this defines before. It exports
 *
 *   enum ur_drop RESPONDER(input)(qp, p, now)    a request came
 *
 * The files that do: responder_gbn.c (modes gbn and reorder, and UC with it), responder_selective.c (mode extended).
 *
 * Thread class: the QP's worker.
 */
#include "transport/rc/place.h"
#include "transport/repath.h"

/* RC-RESP-RES-01: receives for SEND and immediate, room to remember READs and atomics. */
static inline struct verdict check_resources(struct ur_qp *qp, const struct ur_packet *p,
					     uint64_t now_ns)
{
	if (is_answered(p->op))
		return arrival_has_room(qp) ? CONTINUE : NAK(INV_REQ, RESOURCES);
	if (!qp->rsp.wqe && needs_receive(p->op) && !arrival_bind(qp, p, now_ns))
		return (struct verdict){.kind = V_RNR};
	return CONTINUE;
}

/* ---- execution ---- */

/* A READ is answered from memory later. It came at `arrival_ns`. */
static inline void execute_read(struct ur_qp *qp, const struct ur_packet *p, uint64_t arrival_ns)
{
	struct ANSWER *a = arrival_new_answer(qp, p, false, arrival_ns);

	qp->core->cnt.rx_read_requests++;
	a->va = p->reth.va;
	a->rkey = p->reth.rkey;
	a->to = p->reth.length;
	arrival_pass_request(qp, p, a);
	RESPONSE(queue)(qp, a);
}

/* An atomic is executed now. */
static struct verdict execute_answered(struct ur_qp *qp, const struct ur_packet *p,
				       uint64_t arrival_ns)
{
	struct ANSWER *a;
	uint64_t original = 0;
	struct verdict v = ur_responder_check_access(qp, p);

	if (!v.kind && is_read(p->op)) {
		execute_read(qp, p, arrival_ns);
		return CONTINUE;
	}
	if (v.kind || (v = ur_responder_atomic(qp, p, &original)).kind)
		return v;
	a = arrival_new_answer(qp, p, false, arrival_ns);
	a->atomic = true;
	a->original = original;
	arrival_pass_request(qp, p, a);
	RESPONSE(queue)(qp, a);
	return CONTINUE;
}

static inline struct verdict execute_data(struct ur_qp *qp, const struct ur_packet *p, bool placed)
{
	struct ur_responder *rsp = &qp->rsp;
	struct pieces at;
	struct verdict v;

	if (!placed) {
		v = locate(qp, p, rsp->wqe, &at);
		if (v.kind)
			return v;
		place(qp, p, &at);
	}
	rsp->kind = ur_responder_kind_of(p->op);
	if (p->op & UR_OP_LAST) {
		v = ur_responder_finish(qp, p, (uint32_t)arrival_offset(qp, p) + p->payload_len);
		if (v.kind)
			return v;
	}
	arrival_pass_data(qp, p);
	rsp->epsn = ur_psn_add(rsp->epsn, 1);
	return CONTINUE;
}

/* Checks and executes the packet at ePSN, which came at `arrival_ns`. `placed`: as in struct turn. */
static inline struct verdict execute(struct ur_qp *qp, const struct ur_packet *p, bool placed,
				     uint64_t arrival_ns, uint64_t now_ns)
{
	struct verdict v = arrival_check_sequence(qp, p);

	if (v.kind)
		return v;
	if (!placed &&
	    ((v = ur_responder_check_rights(qp, p->op)).kind || (v = check_length(qp, p)).kind))
		return v;
	v = check_resources(qp, p, now_ns);
	if (v.kind)
		return v;
	return is_answered(p->op) ? execute_answered(qp, p, arrival_ns)
				  : execute_data(qp, p, placed);
}

/* ---- RC ---- */

/* Acts on a verdict on the packet at ePSN. p: what came; the packet itself, or what filled the hole before it. */
static __attribute__((noinline, cold)) enum ur_drop act(struct ur_qp *qp, const struct ur_packet *p,
							struct verdict v, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;

	arrival_record_echo(qp, p, now_ns);
	if (v.kind == V_NAK)
		return RESPONSE(refuse)(qp, rsp->epsn, v);
	/* RC-RESP-RNR-01, EXT-RESP-RNR-01: silence until the retry. */
	rsp->nak_sent = true;
	qp->core->cnt.rnr_nak_sent++;
	RESPONSE(nak)(qp, UR_SYNDROME_RNR_NAK | arrival_rnr_timer(qp), rsp->epsn);
	return UR_DROP_RNR;
}

static inline struct verdict take_turn(struct ur_qp *qp, const struct ur_packet *p, bool placed,
				       uint64_t arrival_ns, uint64_t now_ns)
{
	struct verdict v = execute(qp, p, placed, arrival_ns, now_ns);

	if (__builtin_expect(v.kind, 0))
		return v;
	arrival_acknowledge(qp, p, now_ns);
	if (__builtin_expect(qp->rsp.nak_sent, 0))
		arrival_close_hole(qp);
	return v;
}

/*
 * REORDER-REPLAY-01, EXT-RESP-TURN-01. The packet at ePSN has come: what waits behind it has its turn, and goes through
 * the same checks.
 */
static __attribute__((noinline)) void advance(struct ur_qp *qp, const struct ur_packet *p,
					      uint64_t now_ns)
{
	struct verdict v = CONTINUE;
	struct turn turn = {0};

	while (!v.kind && arrival_next(qp, &turn)) {
		enum ur_drop drop = UR_DROP_NONE;

		v = take_turn(qp, &turn.p, turn.placed, turn.arrival_ns, now_ns);
		if (v.kind)
			drop = act(qp, p, v, now_ns);
		arrival_release(qp, &turn, drop);
	}
	if (!qp->fail_send)
		arrival_finish_turns(qp, p, now_ns);
}

static inline enum ur_drop in_order(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	bool waiting = arrival_is_waiting(qp);
	enum ur_drop drop = UR_DROP_NONE;
	struct verdict v = take_turn(qp, p, false, now_ns, now_ns);

	if (__builtin_expect(v.kind, 0))
		drop = act(qp, p, v, now_ns);
	if (__builtin_expect(waiting, 0) && !qp->fail_send)
		advance(qp, p, now_ns);
	return drop;
}

/* RC-RESP-DUP-01, EXT-RESP-DUP-01 (IBA 9.7.4.1.2, 9.7.5.1.3) */
static __attribute__((noinline)) enum ur_drop duplicate(struct ur_qp *qp, const struct ur_packet *p,
							uint64_t now_ns)
{
	qp->core->cnt.duplicate_request++;
	if (!arrival_is_twin(qp, p))
		ur_repath_on_duplicate(qp, p->bth.psn, arrival_part(p), arrival_repeats(qp));
	if (is_answered(p->op))
		return arrival_answer_again(qp, p, now_ns) ? UR_DROP_PSN_DUPLICATE
							   : UR_DROP_DUP_UNKNOWN;
	arrival_acknowledge_again(qp, p, now_ns);
	return UR_DROP_PSN_DUPLICATE;
}

/* RC-RESP-PSN-01: before ePSN is a duplicate, after it a gap. */
enum ur_drop RESPONDER(input)(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	int32_t diff = ur_psn_diff(p->bth.psn, qp->rsp.epsn);

	if (arrival_is_foreign(p))
		return UR_DROP_MODE;
	if (!ur_responder_receives(qp))
		return UR_DROP_QP_STATE;
	if (arrival_is_consumed(qp, p, now_ns))
		return UR_DROP_NONE;
	if (__builtin_expect(diff == 0, 1))
		return in_order(qp, p, now_ns);
	if (diff < 0)
		return duplicate(qp, p, now_ns);
	qp->core->cnt.out_of_sequence++;
	return arrival_take_early(qp, p, (uint32_t)diff, now_ns);
}
