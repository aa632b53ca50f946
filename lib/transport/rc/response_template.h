/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the responder of RC sends, for every loss engine: answers to READs and atomics, and NAKs (IBA 9.7.5). See
 * rc/response.h for what the C file that includes this defines before. It exports
 *
 *   bool RESPONSE(next)(qp, tx, now)              the next packet of an answer; false: none, or the QP is to fail
 *   void RESPONSE(update_ack)(qp)                 what ack_due() looks at has changed
 *   void RESPONSE(stop)(qp)                       nothing is answered any more but what comes before a fatal NAK, and that
 *   void RESPONSE(nak)(qp, syndrome, psn)         owes a NAK, and nothing else: it acknowledges what comes before it
 *   enum ur_drop RESPONSE(refuse)(qp, psn, v)     acts on V_NAK: counts, owes the NAK for psn, and the QP fails. Returns
 *                                                 v.drop
 *
 * Thread class: the QP's worker.
 */

void RESPONSE(update_ack)(struct ur_qp *qp)
{
	ur_sched_set(&qp->core->acks, &qp->ack_node, RESPONSE(ack_due)(qp));
}

/* A NAK is owed, and with it `owed`, enum ur_ack_owed. */
static void owe_nak(struct ur_qp *qp, uint8_t owed, uint8_t syndrome, struct ur_psn psn)
{
	struct ur_responder *rsp = &qp->rsp;

	rsp->ack = owed;
	rsp->nak_syndrome = syndrome;
	rsp->nak_psn = psn;
	RESPONSE(update_ack)(qp);
}

void RESPONSE(nak)(struct ur_qp *qp, uint8_t syndrome, struct ur_psn psn)
{
	owe_nak(qp, UR_NAK_OWED, syndrome, psn);
}

/* RC-RESP-NAK-01 */
enum ur_drop RESPONSE(refuse)(struct ur_qp *qp, struct ur_psn psn, struct verdict v)
{
	struct ur_core *core = qp->core;

	if (v.code == UR_NAK_REM_ACCESS)
		core->cnt.resp_remote_access_errors++;
	else
		core->cnt.resp_invalid_requests++;
	RESPONSE(nak)(qp, UR_SYNDROME_NAK | v.code, psn);
	/* Where a receive completes with the error, that tells the consumer; else an event does. */
	if (!qp->rsp.wqe || v.recv_status == IBV_WC_WR_FLUSH_ERR)
		core->sink.async(core->sink.ctx,
				 v.code == UR_NAK_REM_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
							     : IBV_EVENT_QP_REQ_ERR,
				 qp->user);
	ur_qp_fail(qp, IBV_WC_WR_FLUSH_ERR, v.recv_status);
	return v.drop;
}

static void make_atomic_ack(struct ur_qp *qp, struct ANSWER *a, struct ur_tx *tx, uint64_t now_ns)
{
	uint8_t *p;

	clear_payload(tx);
	p = codec_begin_answer(qp, a, UR_RC_ATOMIC_ACKNOWLEDGE, true, UR_ATOMICACKETH_BYTES, tx,
			       now_ns);
	ur_build64(p, a->original);
	answer_leaves(qp, a);
	answers_dequeue(qp, a);
}

/* RC-RESP-READ-02. A region that has gone since: fatal, but not for a repeated request. */
static void refuse_read(struct ur_qp *qp, struct ANSWER *a)
{
	struct ur_psn psn = answer_psn(qp, a);

	if (a->repeat) {
		answers_dequeue(qp, a);
		return;
	}
	answers_refuse(qp, a);
	RESPONSE(refuse)(qp, psn, NAK(REM_ACCESS, ACCESS));
}

/* RC-RESP-READ-01, EXT-RESP-READ-01. Each packet is checked again: the region may have gone. */
static bool make_read_response(struct ur_qp *qp, struct ANSWER *a, struct ur_tx *tx,
			       uint64_t now_ns)
{
	static const uint8_t opcode[2][2] = {
		{UR_RC_READ_RESPONSE_MIDDLE, UR_RC_READ_RESPONSE_LAST},
		{UR_RC_READ_RESPONSE_FIRST, UR_RC_READ_RESPONSE_ONLY},
	};
	uint32_t left = a->to - a->from, mtu = 1u << qp->mtu_shift;
	uint32_t len = left < mtu ? left : mtu;
	bool first = answer_begins(a), last = len == left;

	tx->frag_cnt = 0;
	tx->payload_len = (uint16_t)len;
	if (len) {
		const uint8_t *base =
			ur_mem_check_remote(qp->core->mem, a->rkey, qp->pd, qp->qpn.v,
					    a->va + a->from, len, IBV_ACCESS_REMOTE_READ);

		if (!base) {
			refuse_read(qp, a);
			return false;
		}
		tx->frag[0] = (struct ur_frag){base, len};
		tx->frag_cnt = 1;
	}
	codec_begin_answer(qp, a, opcode[first][last], first || last, 0, tx, now_ns);
	a->from += len;
	if (first || last)
		answer_leaves(qp, a);
	if (last)
		answers_dequeue(qp, a);
	return true;
}

bool RESPONSE(next)(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	while (answers_wait(qp) && !qp->fail_send) {
		struct ANSWER *a = answers_head(qp);

		if (a->atomic) {
			make_atomic_ack(qp, a, tx, now_ns);
			return true;
		}
		if (make_read_response(qp, a, tx, now_ns))
			return true;
	}
	return false;
}

/* RC-RESP-NAK-02: a NAK that says why still goes out, after the answers before it. */
void RESPONSE(stop)(struct ur_qp *qp)
{
	bool fatal = ur_response_owes_fatal_nak(&qp->rsp);

	answers_stop(qp, fatal);
	if (!fatal) {
		ur_emux_set(&qp->core->emux, &qp->rsp_queue, false);
		qp->rsp.ack = UR_ACK_NONE;
	}
	RESPONSE(update_ack)(qp);
}
