/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission.h"
#include "transport/build.h"
#include "transport/rc/ext.h"
#include "transport/rc/responder_priv.h"
#include "wire/assert.h"
#include "wire/opcode.h"

/*
 * What an extended responder sends. At most one ACK or NAK is owed, beside the answer to a probe:
 * what it says is looked up when it leaves.
 */

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

static void update_ack(struct ur_qp *qp)
{
	ur_sched_set(&qp->core->acks, &qp->ack_node, ur_ext_response_ack_due(qp));
}

void ur_ext_response_update_ack(struct ur_qp *qp)
{
	update_ack(qp);
}

static bool is_newer(uint32_t stamp, uint32_t than)
{
	return (int32_t)(stamp - than) > 0;
}

/* EXT-RESP-ECHO-01: of the packets since the last ACK, the newest by stamp. */
static void remember_echo(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_ext_responder *x = &qp->xrsp;

	if (qp->rsp.ack != UR_ACK_NONE && !is_newer(p->xth.stamp, x->echo))
		return;
	x->echo = p->xth.stamp;
	x->echo_path = p->xth.path;
	x->arrival_ns = now_ns;
}

void ur_ext_response_ack(struct ur_qp *qp, const struct ur_packet *p, bool probe, uint64_t now_ns)
{
	struct ur_ext_responder *x = &qp->xrsp;

	if (probe) {
		if (x->probe && !is_newer(p->xth.stamp, x->probe_echo))
			return;
		x->probe = true;
		x->probe_echo = p->xth.stamp;
		x->probe_path = p->xth.path;
		x->probe_arrival_ns = now_ns;
		x->first.probe_after = x->first.cnt;
		x->again.probe_after = x->again.cnt;
	} else {
		remember_echo(qp, p, now_ns);
		/* A NAK acknowledges what comes before it. */
		if (qp->rsp.ack == UR_ACK_NONE)
			qp->rsp.ack = UR_ACK_OWED;
	}
	update_ack(qp);
}

void ur_ext_response_nak(struct ur_qp *qp, const struct ur_packet *p, uint8_t syndrome,
			 uint64_t now_ns)
{
	remember_echo(qp, p, now_ns);
	ur_response_nak(qp, syndrome, qp->rsp.epsn);
	update_ack(qp);
}

/* ---- answers ---- */

/* First answers wait in the order of their PSNs, and all that waits is younger than the head. */
bool ur_ext_response_pending(const struct ur_qp *qp, struct ur_psn psn, uint32_t end)
{
	const struct ur_ext_responder *x = &qp->xrsp;
	const struct ur_ext_answer *a = &qp->rsp.ans[x->first.head];

	if (!x->first.cnt || ur_psn_lt(psn, a->psn))
		return false;
	return !ur_psn_eq(psn, a->psn) || end > a->offset + (a->sent >> qp->mtu_shift);
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
	struct ur_ext_answers *q = queue_of(x, a->repeat);
	unsigned at = (unsigned)q->head + q->cnt, cap = qp->rsp.ans_cap / 2u;

	UR_ASSERT(ur_ext_response_room(qp, a->repeat));
	ring_of(qp, a->repeat)[at < cap ? at : at - cap] = *a;
	q->cnt++;
	ur_emux_set(&qp->core->emux, &qp->rsp_queue, true);
}

/*
 * EXT-RESP-ANSWER-01. The answer that is sent next. The peer waits for a repeat, and everything
 * behind it: it does not wait in turn, not even for the end of a first answer.
 */
static struct ur_ext_answer *head_of(const struct ur_qp *qp)
{
	const struct ur_ext_responder *x = &qp->xrsp;
	bool repeat = x->again.cnt;

	return ring_of(qp, repeat) + (repeat ? x->again.head : x->first.head);
}

static void dequeue(struct ur_qp *qp, bool repeat)
{
	struct ur_ext_responder *x = &qp->xrsp;
	struct ur_ext_answers *q = queue_of(x, repeat);

	q->head = (uint16_t)(q->head + 1 < qp->rsp.ans_cap / 2 ? q->head + 1 : 0);
	q->cnt--;
	if (q->probe_after)
		q->probe_after--;
	if (!ur_ext_response_queued(qp))
		ur_emux_set(&qp->core->emux, &qp->rsp_queue, false);
	update_ack(qp);
}

static uint8_t *put_aeth(uint8_t *p, const struct ur_qp *qp, uint8_t syndrome)
{
	return ur_build32(p, (uint32_t)syndrome << 24 | (qp->rsp.msn & UR_PSN_MASK));
}

/* EXT-RESP-ECHO-02 */
static uint8_t *put_xaeth(uint8_t *p, const struct ur_qp *qp, uint32_t echo, uint8_t path,
			  uint64_t arrival_ns, uint64_t now_ns)
{
	uint64_t residence = (now_ns - arrival_ns) >> UR_STAMP_SHIFT;

	p = ur_build32(p, echo);
	p = ur_build32(p, residence < UINT32_MAX ? (uint32_t)residence : UINT32_MAX);
	return ur_build32(p, (uint32_t)path << 24 | qp->rsp.epsn.v);
}

/* What all answers begin with; `index` of the packet in the answer, in PMTUs. */
static inline uint8_t *begin_answer(struct ur_qp *qp, const struct ur_ext_answer *a, uint8_t opcode,
				    uint32_t index, unsigned more, struct ur_tx *tx,
				    uint64_t now_ns)
{
	struct ur_build_bth bth = {
		.opcode = opcode,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = a->psn,
	};
	uint8_t *p = ur_build_begin(tx, &qp->path, &bth,
				    UR_AETH_BYTES + UR_XAETH_BYTES + UR_XRTH_BYTES + more);

	qp->core->cnt.retransmitted_responses += a->repeat;
	p = put_aeth(p, qp, UR_SYNDROME_ACK | ur_response_credits(qp));
	p = put_xaeth(p, qp, a->stamp, a->path, a->arrival_ns, now_ns);
	p = ur_build32(p, a->ssn);
	return ur_build32(p, a->offset + index);
}

static void make_atomic_ack(struct ur_qp *qp, const struct ur_ext_answer *a, struct ur_tx *tx,
			    uint64_t now_ns)
{
	uint8_t *p;

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	p = begin_answer(qp, a, UR_EXT_ATOMIC_ACKNOWLEDGE, 0, UR_ATOMICACKETH_BYTES, tx, now_ns);
	ur_build64(p, a->va);
	dequeue(qp, a->repeat);
}

/* RC-RESP-READ-02. A region that has gone since: fatal, but not for a repeated request. */
static void refuse_read(struct ur_qp *qp, const struct ur_ext_answer *a)
{
	struct ur_psn psn = a->psn;

	if (a->repeat) {
		dequeue(qp, true);
		return;
	}
	qp->xrsp.echo = a->stamp;
	qp->xrsp.echo_path = a->path;
	qp->xrsp.arrival_ns = a->arrival_ns;
	while (qp->xrsp.first.cnt)
		dequeue(qp, false);
	ur_response_refuse(qp, psn, NAK(REM_ACCESS, ACCESS));
	update_ack(qp);
}

/* EXT-RESP-READ-01 */
static bool make_read_response(struct ur_qp *qp, struct ur_ext_answer *a, struct ur_tx *tx,
			       uint64_t now_ns)
{
	static const uint8_t opcode[2][2] = {
		{UR_EXT_READ_RESPONSE_MIDDLE, UR_EXT_READ_RESPONSE_LAST},
		{UR_EXT_READ_RESPONSE_FIRST, UR_EXT_READ_RESPONSE_ONLY},
	};
	uint32_t left = a->length - a->sent, mtu = 1u << qp->mtu_shift;
	uint32_t len = left < mtu ? left : mtu;
	bool last = len == left;

	tx->frag_cnt = 0;
	tx->payload_len = (uint16_t)len;
	if (len) {
		const uint8_t *base = ur_mem_check(qp->core->mem, a->rkey, qp->pd, a->va + a->sent,
						   len, IBV_ACCESS_REMOTE_READ);

		if (!base) {
			refuse_read(qp, a);
			return false;
		}
		tx->frag[0] = (struct ur_frag){base, len};
		tx->frag_cnt = 1;
	}
	begin_answer(qp, a, opcode[!a->sent][last], a->sent >> qp->mtu_shift, 0, tx, now_ns);
	a->sent += len;
	if (last)
		dequeue(qp, a->repeat);
	return true;
}

bool ur_ext_response_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	while (ur_ext_response_queued(qp) && !qp->fail_send) {
		struct ur_ext_answer *a = head_of(qp);

		if (a->atomic) {
			make_atomic_ack(qp, a, tx, now_ns);
			return true;
		}
		if (make_read_response(qp, a, tx, now_ns))
			return true;
	}
	return false;
}

/* ---- ACKs ---- */

/* EXT-RESP-SACK-01: the bitmap lies in the context until the next call. */
static void add_bitmap(struct ur_qp *qp, struct ur_tx *tx)
{
	struct ur_ooo *o = qp->xrsp.ooo;

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	if (!o)
		return;
	tx->payload_len = (uint16_t)ur_ooo_sack(o, qp->rsp.epsn);
	tx->frag[tx->frag_cnt++] = (struct ur_frag){o->sack, tx->payload_len};
}

bool ur_ext_response_next_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_ext_responder *x = &qp->xrsp;
	struct ur_build_bth bth = {
		.opcode = UR_EXT_ACKNOWLEDGE,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = rsp->epsn,
	};
	bool probe = !ack_due(qp), status = qp->admission & UR_ADM_RECEIVER;
	uint8_t syndrome, *p;

	if (probe && !probe_due(qp))
		return false;
	if (!probe && rsp->ack & UR_NAK_OWED) {
		bth.psn = rsp->nak_psn;
		syndrome = rsp->nak_syndrome;
	} else if (x->ooo && (qp->srq || x->credits_msn == rsp->msn)) {
		syndrome = UR_SYNDROME_NAK | UR_NAK_PSN_SEQ;
		qp->core->cnt.seq_nak_sent++;
	} else {
		bth.psn = ur_psn_add(rsp->epsn, UR_PSN_MASK); /* ePSN - 1 */
		syndrome = UR_SYNDROME_ACK | ur_response_credits(qp);
		/* EXT-RESP-CREDIT-02: gap may follow gap, and a NAK has no place for credits. */
		x->credits_msn = rsp->msn;
		qp->core->cnt.acks_sent++;
	}
	add_bitmap(qp, tx);
	if (__builtin_expect(status, 0))
		bth.opcode = UR_EXT_ACKNOWLEDGE_STATUS;
	p = ur_build_begin(tx, &qp->path, &bth,
			   UR_AETH_BYTES + UR_XAETH_BYTES + (status ? UR_ASTH_BYTES : 0));
	p = put_aeth(p, qp, syndrome);
	if (probe) {
		p = put_xaeth(p, qp, x->probe_echo, x->probe_path, x->probe_arrival_ns, now_ns);
		x->probe = false;
	} else {
		p = put_xaeth(p, qp, x->echo, x->echo_path, x->arrival_ns, now_ns);
		rsp->ack = UR_ACK_NONE;
	}
	if (__builtin_expect(status, 0))
		ur_build32(p, ur_admission_status(qp));
	update_ack(qp);
	return true;
}

void ur_ext_response_stop(struct ur_qp *qp)
{
	struct ur_ext_responder *x = &qp->xrsp;

	x->probe = false;
	if (!ur_response_owes_fatal_nak(&qp->rsp)) {
		x->first = x->again = (struct ur_ext_answers){0};
		ur_emux_set(&qp->core->emux, &qp->rsp_queue, false);
		qp->rsp.ack = UR_ACK_NONE;
	}
	update_ack(qp);
}
