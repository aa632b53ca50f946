/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission.h"
#include "transport/rc/ext.h"
#include "transport/rc/response.h"
#include "wire/delay.h"

/*
 * The responses of mode extended: answers wait in two rings, and a repeat goes first. At most one ACK or NAK is owed,
 * beside the answer to a probe; what it says is looked up when it leaves.
 */
#define RESPONSE(name) ur_ext_response_##name
#define ANSWER	       ur_ext_answer

/* ---- the queues of answers ---- */

/* First answers wait in the order of their PSNs, and all that waits is younger than the head. */
bool ur_ext_response_pending(const struct ur_qp *qp, struct ur_psn psn, uint32_t end)
{
	const struct ur_ext_responder *x = &qp->xrsp;
	const struct ur_ext_answer *a = &qp->rsp.ans[x->first.head];

	if (!x->first.cnt || ur_psn_lt(psn, a->psn))
		return false;
	return !ur_psn_eq(psn, a->psn) || end > a->offset + (a->from >> qp->mtu_shift);
}

/* What is left of `a` includes all of `b`. */
static bool includes(const struct ur_qp *qp, const struct ur_ext_answer *a,
		     const struct ur_ext_answer *b)
{
	uint64_t at = b->va - a->va;

	if (!ur_psn_eq(a->psn, b->psn) || a->atomic != b->atomic)
		return false;
	if (a->atomic)
		return true;
	return a->rkey == b->rkey && b->offset >= a->offset &&
	       at == (uint64_t)(b->offset - a->offset) << qp->mtu_shift && at >= a->from &&
	       at + b->to <= a->to;
}

/*
 * EXT-RESP-DUP-05. With thousands of queue pairs a repeat waits for its turn for longer than the timeout of the peer,
 * which asks once more meanwhile.
 */
bool ur_ext_response_repeats(const struct ur_qp *qp, const struct ur_ext_answer *a)
{
	const struct ur_ext_answers *q = &qp->xrsp.again;
	unsigned cap = qp->rsp.ans_cap / 2u, at = q->head;

	for (unsigned left = q->cnt; left; left--) {
		if (includes(qp, &qp->rsp.ans[cap + at], a))
			return true;
		at = at + 1 < cap ? at + 1 : 0;
	}
	return false;
}

static struct ur_ext_answers *queue_of(struct ur_ext_responder *x, bool repeat)
{
	return repeat ? &x->again : &x->first;
}

static struct ur_ext_answer *ring_of(const struct ur_qp *qp, bool repeat)
{
	return qp->rsp.ans + (repeat ? qp->rsp.ans_cap / 2 : 0);
}

void ur_ext_response_queue(struct ur_qp *qp, const struct ur_ext_answer *a)
{
	struct ur_ext_responder *x = &qp->xrsp;

	UR_ASSERT(ur_ext_response_room(qp, a->repeat));
	queue_of(x, a->repeat)->cnt++;
	ur_emux_set(&qp->core->emux, &qp->rsp_queue, true);
}

static inline bool answers_wait(const struct ur_qp *qp)
{
	return ur_ext_response_queued(qp);
}

/*
 * EXT-RESP-ANSWER-01. The answer that is sent next. The peer waits for a repeat, and everything
 * behind it: it does not wait in turn, not even for the end of a first answer.
 */
static inline struct ur_ext_answer *answers_head(const struct ur_qp *qp)
{
	const struct ur_ext_responder *x = &qp->xrsp;
	bool repeat = x->again.cnt;

	return ring_of(qp, repeat) + (repeat ? x->again.head : x->first.head);
}

static void answers_dequeue(struct ur_qp *qp, const struct ur_ext_answer *a)
{
	struct ur_ext_responder *x = &qp->xrsp;
	struct ur_ext_answers *q = queue_of(x, a->repeat);

	q->head = (uint16_t)(q->head + 1 < qp->rsp.ans_cap / 2 ? q->head + 1 : 0);
	q->cnt--;
	if (q->probe_after)
		q->probe_after--;
	if (!ur_ext_response_queued(qp))
		ur_emux_set(&qp->core->emux, &qp->rsp_queue, false);
	if (__builtin_expect(x->probe | qp->rsp.ack, 0))
		ur_ext_response_update_ack(qp);
}

/* Repeats have left by now, and all that waits is to follow. */
static void answers_refuse(struct ur_qp *qp, const struct ur_ext_answer *a)
{
	qp->xrsp.echo = (struct ur_echo){a->arrival_ns, a->stamp, a->path};
	while (qp->xrsp.first.cnt)
		answers_dequeue(qp, a);
}

static inline void answers_stop(struct ur_qp *qp, bool fatal)
{
	struct ur_ext_responder *x = &qp->xrsp;

	x->probe = false;
	if (!fatal)
		x->first = x->again = (struct ur_ext_answers){0};
}

static inline bool answer_begins(const struct ur_ext_answer *a)
{
	return !a->from;
}

/* An answer says what an ACK says, but for the path and the echo of what has come since. */
static inline void answer_leaves(struct ur_qp *qp, const struct ur_ext_answer *a)
{
}

/* ---- headers ---- */

static inline struct ur_psn answer_psn(const struct ur_qp *qp, const struct ur_ext_answer *a)
{
	return a->psn;
}

/* EXT-RESP-ECHO-02 */
static inline uint8_t *put_xaeth(uint8_t *p, const struct ur_qp *qp, const struct ur_echo *e,
				 uint64_t now_ns)
{
	uint64_t residence = (now_ns - e->arrival_ns) >> UR_STAMP_SHIFT;

	p = ur_build2(p, e->stamp.v, residence < UINT32_MAX ? (uint32_t)residence : UINT32_MAX);
	return ur_build32(p, (uint32_t)e->path << 24 | qp->rsp.epsn.v);
}

/*
 * SPRAY-ANSWER-01. By the port for the path that the peer's packet took. The peer's next packet takes another path, and so
 * does the answer to that: no dead way back is asked for twice.
 */
static inline void take_path(const struct ur_qp *qp, uint8_t path, struct ur_tx *tx)
{
	if (__builtin_expect(path && path < UR_SPRAY_MAX, 0))
		ur_ext_write_port(qp, path, tx);
}

static inline uint8_t *codec_begin_answer(struct ur_qp *qp, const struct ur_ext_answer *a,
					  uint8_t opcode, bool ends, unsigned more,
					  struct ur_tx *tx, uint64_t now_ns)
{
	uint8_t *p = begin_response(qp, opcode | UR_TRANSPORT_EXT, a->psn,
				    UR_AETH_BYTES + UR_XAETH_BYTES + UR_XRTH_BYTES + more, tx);

	struct ur_echo echo = {a->arrival_ns, a->stamp, a->path};

	/* First answers keep one path, and so their order. */
	if (__builtin_expect(a->repeat, 0)) {
		take_path(qp, a->path, tx);
		qp->core->cnt.retransmitted_responses++;
	}
	p = put_aeth(p, qp, ack_syndrome(qp));
	p = put_xaeth(p, qp, &echo, now_ns);
	return ur_build2(p, a->ssn.v, a->offset + (a->from >> qp->mtu_shift));
}

#include "transport/rc/response_template.h"

/* ---- ACKs and NAKs ---- */

/* A NAK that ends the connection leaves after the answers before it. */
static bool ack_due(const struct ur_qp *qp)
{
	return qp->rsp.ack != UR_ACK_NONE &&
	       !(ur_response_owes_fatal_nak(&qp->rsp) && ur_ext_response_queued(qp));
}

/* EXT-RESP-PROBE-01 */
static bool probe_due(const struct ur_qp *qp)
{
	const struct ur_ext_responder *x = &qp->xrsp;

	return x->probe && !x->first.probe_after && !x->again.probe_after;
}

bool ur_ext_response_ack_due(const struct ur_qp *qp)
{
	return ack_due(qp) || probe_due(qp);
}

static bool is_newer(struct ur_stamp stamp, struct ur_stamp than)
{
	return ur_stamp_diff(stamp, than) > 0;
}

void ur_ext_response_ack(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	ur_ext_response_ack_stamp(qp, ur_stamp_of(p->xth.stamp), &p->xth.path, now_ns);
}

void ur_ext_response_probe(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ext_responder *x = &qp->xrsp;

	if (x->probe && !is_newer(ur_stamp_of(p->xth.stamp), x->probe_echo.stamp))
		return;
	x->probe = true;
	x->probe_echo = (struct ur_echo){now_ns, ur_stamp_of(p->xth.stamp), p->xth.path, 0, 0};
	/* EXT-RESP-DELAY-01 */
	if (qp->agreed.delay && p->bth.resv6 & UR_DELAY_ASK) {
		x->probe_echo.hops = (uint8_t)(p->bth.resv6 | (p->xth.flags & UR_XTH_BACK));
		x->probe_echo.delay = p->udp_csum;
	}
	x->first.probe_after = x->first.cnt;
	x->again.probe_after = x->again.cnt;
	ur_ext_response_update_ack(qp);
}

/*
 * EXT-RESP-SACK-01: the bitmap lies in the context until the next call. An ACK and the answer to a probe may leave together; if they tell different
 * parts, these lie apart.
 */
static __attribute__((noinline)) struct ur_bpth add_bitmap(struct ur_qp *qp, struct ur_tx *tx,
							   bool lowest)
{
	struct ur_ooo *o = qp->xrsp.ooo;
	struct ur_ooo_part part;

	part = ur_ooo_sack(o, qp->rsp.epsn, lowest);
	tx->payload_len = (uint16_t)part.bytes;
	tx->frag[tx->frag_cnt++] = (struct ur_frag){part.sack, tx->payload_len};
	return (struct ur_bpth){part.more ? UR_BPTH_MORE : 0, part.offset};
}

/* What follows the XAETH of an ACK or NAK. */
enum tail { TAIL_NONE, TAIL_DELAY, TAIL_PART };

/* Ethernet to BTH of an ACK or NAK; the AETH follows, and after the XAETH status and tail, if it has them. */
static inline uint8_t *begin_ack(struct ur_qp *qp, struct ur_psn psn, bool status, enum tail tail,
				 struct ur_tx *tx)
{
	uint8_t opcode = status ? UR_EXT_ACKNOWLEDGE_STATUS : UR_EXT_ACKNOWLEDGE;
	unsigned more = status ? UR_ASTH_BYTES : 0;

	if (__builtin_expect(tail == TAIL_DELAY, 0)) {
		opcode = status ? UR_EXT_ACKNOWLEDGE_STATUS_DELAY : UR_EXT_ACKNOWLEDGE_DELAY;
		more += UR_NDTH_BYTES;
	} else if (__builtin_expect(tail == TAIL_PART, 0)) {
		opcode = status ? UR_EXT_ACKNOWLEDGE_STATUS_PART : UR_EXT_ACKNOWLEDGE_PART;
		more += UR_BPTH_BYTES;
	}
	return begin_response(qp, opcode, psn, UR_AETH_BYTES + UR_XAETH_BYTES + more, tx);
}

static inline struct ur_ndth ndth_of(const struct ur_echo *e)
{
	return (struct ur_ndth){.hops = e->hops & UR_DELAY_HOPS, .delay = e->delay};
}

/* EXT-RESP-CREDIT-02: gap may follow gap, and a NAK has no place for credits. */
static inline uint8_t positive_syndrome(struct ur_qp *qp)
{
	qp->xrsp.credits_msn = qp->rsp.msn;
	qp->core->cnt.acks_sent++;
	return ack_syndrome(qp);
}

/* Nothing is early, no probe waits for an answer, and no status is told. */
static inline bool owes_plain_ack(const struct ur_qp *qp)
{
	const struct ur_ext_responder *x = &qp->xrsp;

	return qp->rsp.ack == UR_ACK_OWED && !x->has_gap && !x->probe &&
	       !(qp->admission & UR_ADM_RECEIVER) && !qp->core->no_prediction;
}

static inline void make_plain_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_psn psn = ur_psn_add(qp->rsp.epsn, UR_PSN_MASK); /* ePSN - 1 */
	uint8_t *p;

	clear_payload(tx);
	p = begin_ack(qp, psn, false, TAIL_NONE, tx);
	take_path(qp, qp->xrsp.echo.path, tx);
	p = put_aeth(p, qp, positive_syndrome(qp));
	put_xaeth(p, qp, &qp->xrsp.echo, now_ns);
	qp->rsp.ack = UR_ACK_NONE;
	ur_sched_set(&qp->core->acks, &qp->ack_node, false);
}

static __attribute__((noinline)) bool make_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_ext_responder *x = &qp->xrsp;
	bool probe = rsp->ack != UR_ACK_OWED && !ack_due(qp);
	bool status = qp->admission & UR_ADM_RECEIVER;
	enum tail tail = probe && x->probe_echo.hops ? TAIL_DELAY : TAIL_NONE;
	struct ur_bpth part = {0};
	struct ur_psn psn = rsp->epsn;
	uint8_t syndrome, *p;

	if (probe && !probe_due(qp))
		return false;
	if (!probe && rsp->ack & UR_NAK_OWED) {
		psn = rsp->nak_psn;
		syndrome = rsp->nak_syndrome;
	} else if (x->has_gap && (qp->srq || ur_msn_eq(x->credits_msn, rsp->msn))) {
		syndrome = UR_SYNDROME_NAK | UR_NAK_PSN_SEQ;
		qp->core->cnt.seq_nak_sent++;
	} else {
		psn = ur_psn_add(psn, UR_PSN_MASK); /* ePSN - 1 */
		syndrome = positive_syndrome(qp);
	}
	/* EXT-RESP-PART-01. The answer to a probe tells of the oldest hole; it leaves the delay out if it has a part only. */
	clear_payload(tx);
	if (__builtin_expect(x->has_gap, 0)) {
		part = add_bitmap(qp, tx, probe);
		if (part.flags | part.offset)
			tail = TAIL_PART;
	}
	p = begin_ack(qp, psn, status, tail, tx);
	take_path(qp, (probe ? &x->probe_echo : &x->echo)->path, tx);
	p = put_aeth(p, qp, syndrome);
	p = put_xaeth(p, qp, probe ? &x->probe_echo : &x->echo, now_ns);
	if (__builtin_expect(status, 0))
		p = ur_build32(p, ur_admission_status(qp));
	if (__builtin_expect(tail == TAIL_DELAY, 0)) {
		struct ur_ndth ndth = ndth_of(&x->probe_echo);

		ur_build32(p, ur_ndth_pack(&ndth));
		/* PACE-NET-06 */
		if (x->probe_echo.hops & UR_XTH_BACK)
			tx->hdr[qp->path->len + UR_DELAY_BTH] |= UR_DELAY_ASK;
	} else if (__builtin_expect(tail == TAIL_PART, 0)) {
		ur_build32(p, ur_bpth_pack(&part));
	}
	if (probe)
		x->probe = false;
	else
		rsp->ack = UR_ACK_NONE;
	if (__builtin_expect(x->probe | rsp->ack, 0))
		ur_ext_response_update_ack(qp);
	else
		ur_sched_set(&qp->core->acks, &qp->ack_node, false);
	return true;
}

/* PREDICT-ACK-02 */
bool ur_ext_response_next_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	if (!owes_plain_ack(qp))
		return make_ack(qp, tx, now_ns);
	make_plain_ack(qp, tx, now_ns);
	return true;
}
