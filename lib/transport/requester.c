/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/build.h"
#include "transport/qp.h"
#include "transport/requester_priv.h"
#include "transport/sgl.h"
#include "wire/assert.h"
#include "wire/opcode.h"

uint32_t ur_requester_psns(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	unsigned class = class_of(wqe);
	uint32_t mtu = 1u << qp->mtu_shift;

	if (class & OP_LOCAL)
		return 0;
	if (class & OP_ATOMIC || wqe->length <= mtu)
		return 1;
	return (wqe->length + (mtu - 1)) >> qp->mtu_shift;
}

/* PSNs and bytes of the READ request that starts at byte `off` of the WQE. */
static uint32_t read_chunk(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off,
			   uint32_t *bytes)
{
	const struct ur_requester *req = &qp->req;
	uint32_t at = off >> qp->mtu_shift;
	uint32_t psns = req->read_psns - (at & (req->read_psns - 1));
	uint32_t left = wqe->length - off;

	*bytes = psns << qp->mtu_shift;
	if (left <= *bytes) {
		*bytes = left;
		psns = left ? (left + (1u << qp->mtu_shift) - 1) >> qp->mtu_shift : 1;
	}
	return psns;
}

/* WQE `cur` was begun: it is a resend, or packets of it have left. */
static inline bool is_begun(const struct ur_requester *req)
{
	return req->cur_off || ur_recovery_is_resend(&req->rec);
}

/*
 * RC-REQ-FLIGHT-01. READ and atomic requests are sent again like others, but in mode reorder they
 * leave room for a packet of data and are not held up themselves: their answers take long, and come
 * once.
 */
static bool flight_has_room(const struct ur_requester *req, unsigned class)
{
	const struct ur_recovery *rec = &req->rec;
	uint32_t left = ur_recovery_flight_left(rec), rd = req->rd_out;

	if (!rec->selective)
		return left > rd;
	if (!(class & OP_DATA))
		return true;
	return left > rd || left == rec->flight;
}

bool ur_requester_ready(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_recovery *rec = &req->rec;
	const struct ur_wqe *wqe;
	bool idle = ur_psn_eq(rec->nxt, rec->una);
	unsigned class;
	uint32_t bytes;

	/* RC-REQ-DRAIN-01 */
	if (qp->state != IBV_QPS_RTS &&
	    !(qp->state == IBV_QPS_SQD && (is_begun(req) || rec->repeat)))
		return false;
	if (__builtin_expect(rec->repeat, 0))
		return !rec->rnr_until_ns;
	if (req->cur == ur_wq_tail(&qp->sq) || rec->rnr_until_ns || req->local_err || rec->hold)
		return false;
	if (qp->type != IBV_QPT_RC)
		return true;
	wqe = ur_sq_at(&qp->sq, req->cur);
	class = class_of(wqe);
	/* RC-REQ-FENCE-01 */
	if (!req->cur_off && (wqe->flags & UR_WQE_FENCE) && req->rd_out)
		return false;
	/* RC-REQ-LOCAL-01: what it takes away may be needed to send something again. */
	if (class & OP_LOCAL)
		return req->head == req->cur;
	if (!ur_recovery_credit(rec)) /* RC-REQ-WINDOW-01 */
		return false;
	if (!flight_has_room(req, class))
		return false;
	/* What follows would be dropped until what the peer misses can be sent again. */
	if (__builtin_expect(req->nak_owed, 0) && ur_recovery_goes_back(rec))
		return false;
	/* RC-REQ-CREDIT-01 */
	if ((class & OP_RECV) && req->flow_control && !idle &&
	    ur_psn_lt(ur_psn(req->lsn), ur_psn(wqe->flags & UR_WQE_BEGUN ? wqe->ssn : req->ssn)))
		return false;
	if (!(class & (OP_READ | OP_ATOMIC)))
		return true;
	/* RC-REQ-READ-01 */
	if (req->max_rd_atomic && req->rd_out >= req->max_rd_atomic)
		return false;
	return !(class & OP_READ) || idle ||
	       read_chunk(qp, wqe, req->cur_off, &bytes) <= ur_recovery_credit(rec);
}

void ur_requester_reposition(struct ur_qp *qp)
{
	struct ur_requester *req = &qp->req;
	uint32_t tail = ur_wq_tail(&qp->sq);
	const struct ur_wqe *wqe;

	/* nxt is una, which lies in the oldest WQE that takes PSNs. */
	req->cur = req->head;
	req->cur_off = 0;
	req->rd_out = 0;
	req->since_ackreq = 0;
	req->asking = false;
	req->nak_owed = false;
	req->local_err = 0;
	while (req->cur != tail && (ur_sq_at(&qp->sq, req->cur)->flags & UR_WQE_DONE))
		req->cur++;
	if (req->cur == tail)
		return;
	/* What was sent so far may end in the middle of the message. */
	wqe = ur_sq_at(&qp->sq, req->cur);
	if (wqe->flags & UR_WQE_BEGUN)
		req->cur_off = (uint32_t)ur_psn_diff(req->rec.nxt, wqe->first_psn) << qp->mtu_shift;
}

/* The first packet of a WQE is made for the first time: number it. */
static void begin(struct ur_qp *qp, struct ur_wqe *wqe)
{
	struct ur_requester *req = &qp->req;
	unsigned shift = (unsigned)__builtin_ctz(req->read_psns);

	wqe->flags |= UR_WQE_BEGUN;
	wqe->first_psn = req->rec.nxt;
	wqe->ssn = req->ssn;
	/* Each READ request is a message of its own to the responder. */
	if (class_of(wqe) & OP_READ)
		req->ssn += (ur_requester_psns(qp, wqe) + req->read_psns - 1) >> shift;
	else
		req->ssn++;
}

/* After the packet about to be made, the last of WQE `cur`, nothing can be sent without an ACK. */
static bool stalls_after(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_wqe *next;
	unsigned class;
	uint32_t psns;

	if (req->cur + 1 == ur_wq_tail(&qp->sq))
		return true;
	next = ur_sq_at(&qp->sq, req->cur + 1);
	class = class_of(next);
	if (class & OP_READ) {
		psns = ur_requester_psns(qp, next);
		return (psns < req->read_psns ? psns : req->read_psns) >=
		       ur_recovery_credit(&req->rec);
	}
	if ((class & OP_RECV) && req->flow_control)
		return ur_psn_lt(ur_psn(req->lsn),
				 ur_psn(next->flags & UR_WQE_BEGUN ? next->ssn : req->ssn));
	return class & OP_LOCAL;
}

/*
 * AckReq on the last packet of what the application waits for, where nothing follows, and often
 * enough that the window never closes without an ACK on its way.
 */
/* RC-REQ-ACK-01 */
static bool wants_ack(struct ur_qp *qp, const struct ur_wqe *wqe, unsigned class, bool last)
{
	struct ur_requester *req = &qp->req;
	const struct ur_recovery *rec = &req->rec;
	bool ask = req->asking || ++req->since_ackreq >= req->ackreq_every ||
		   4 * req->since_ackreq >= rec->flight || ur_recovery_credit(rec) <= 1;

	/* The first packet of another pass tells soonest that it goes well. */
	if (ur_psn_eq(rec->nxt, rec->una) && ur_recovery_is_resend(rec))
		ask = true;

	if ((class & OP_RECV) && req->flow_control &&
	    !ur_psn_lt(ur_psn(wqe->ssn), ur_psn(req->lsn)))
		ask = true;
	if (last && !ask)
		ask = !req->heard || (wqe->flags & UR_WQE_SIGNALED) || stalls_after(qp) ||
		      qp->state == IBV_QPS_SQD;
	if (ask) {
		req->since_ackreq = 0;
		req->asking = false;
	}
	return ask;
}

bool ur_requester_gather(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off,
			 uint32_t len, struct ur_tx *tx)
{
	tx->frag_cnt = 0;
	tx->payload_len = (uint16_t)len;
	if (!len)
		return true;
	if (wqe->flags & UR_WQE_INLINE) {
		tx->frag[0] = (struct ur_frag){(const uint8_t *)ur_wqe_data(wqe) + off, len};
		tx->frag_cnt = 1;
		return true;
	}
	return ur_sgl_gather(qp->core->mem, qp->pd, ur_wqe_data(wqe), wqe->num_sge, off, len, tx);
}

/* The message's last packet was made: on to the next WQE. */
static void wqe_done(struct ur_requester *req)
{
	req->cur++;
	req->cur_off = 0;
}

/* Bytes of the packet of a SEND or WRITE that starts at byte `off`. */
static uint32_t data_len(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off)
{
	uint32_t left = wqe->length - off, mtu = 1u << qp->mtu_shift;

	return left < mtu ? left : mtu;
}

/* The headers of that packet, whose payload was gathered. */
static void put_data(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off,
		     struct ur_psn psn, bool ackreq, struct ur_tx *tx)
{
	unsigned class = class_of(wqe);
	bool first = !off, last = off + tx->payload_len == wqe->length;
	bool reth = first && (class & OP_WRITE);
	bool tail = last && (class & (OP_IMM | OP_INV));
	uint8_t uc = qp->type == IBV_QPT_UC ? UR_TRANSPORT_UC : 0;
	struct ur_build_bth bth = {
		.opcode = data_opcode(class, first, last) | uc,
		.solicited = last && (wqe->flags & UR_WQE_SOLICITED),
		.ackreq = ackreq,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = psn,
	};
	uint8_t *p =
		ur_build_begin(tx, &qp->path, &bth, (reth ? UR_RETH_BYTES : 0) + (tail ? 4 : 0));

	if (reth)
		p = put_reth(p, wqe->remote_addr, wqe->rkey, wqe->length);
	if (tail)
		put_imm_inv(p, wqe);
}

static void put_read(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off, uint32_t bytes,
		     struct ur_psn psn, struct ur_tx *tx)
{
	struct ur_build_bth bth = {
		.opcode = UR_RC_READ_REQUEST,
		.ackreq = true,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = psn,
	};
	uint8_t *p;

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	p = ur_build_begin(tx, &qp->path, &bth, UR_RETH_BYTES);
	put_reth(p, wqe->remote_addr + off, wqe->rkey, bytes);
	tx->asked = bytes;
}

static void put_atomic(const struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_psn psn,
		       struct ur_tx *tx)
{
	struct ur_build_bth bth = {
		.opcode = atomic_opcode(wqe),
		.ackreq = true,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = psn,
	};

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	put_atomiceth(ur_build_begin(tx, &qp->path, &bth, UR_ATOMICETH_BYTES), wqe);
}

static bool make_data(struct ur_qp *qp, const struct ur_wqe *wqe, unsigned class, struct ur_tx *tx,
		      uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	uint32_t len = data_len(qp, wqe, req->cur_off);
	bool last = req->cur_off + len == wqe->length, ask = false, again;

	if (!ur_requester_gather(qp, wqe, req->cur_off, len, tx))
		return false;
	if (qp->type == IBV_QPT_RC)
		ask = wants_ack(qp, wqe, class, last);
	put_data(qp, wqe, req->cur_off, req->rec.nxt, ask, tx);
	again = ur_recovery_is_resend(&req->rec);
	ur_recovery_sent(&req->rec, 1, now_ns);
	if (ask)
		ur_recovery_asked(&req->rec, again, now_ns);
	req->cur_off += len;
	if (last)
		wqe_done(req);
	return true;
}

/* A READ or atomic request of `psns` PSNs was made. */
static void sent_request(struct ur_requester *req, uint32_t psns, uint64_t now_ns)
{
	bool again = ur_recovery_is_resend(&req->rec);

	ur_recovery_sent(&req->rec, psns, now_ns);
	ur_recovery_sent_read(&req->rec, psns);
	ur_recovery_asked(&req->rec, again, now_ns);
	req->since_ackreq = 0;
	req->rd_out++;
}

static bool make_read(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	uint32_t bytes, psns = read_chunk(qp, wqe, req->cur_off, &bytes);

	put_read(qp, wqe, req->cur_off, bytes, req->rec.nxt, tx);
	sent_request(req, psns, now_ns);
	req->cur_off += bytes;
	if (req->cur_off == wqe->length)
		wqe_done(req);
	return true;
}

static bool make_atomic(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_tx *tx,
			uint64_t now_ns)
{
	put_atomic(qp, wqe, qp->req.rec.nxt, tx);
	sent_request(&qp->req, 1, now_ns);
	wqe_done(&qp->req);
	return true;
}

/* The part of a READ to be asked for again: from una to the first response that has come. */
static uint32_t missing_part(struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t off,
			     uint32_t *bytes, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	uint32_t psns = read_chunk(qp, wqe, off, bytes);
	struct ur_psn una = req->rec.una, end = ur_psn_add(una, psns);

	if (!req->gap)
		return psns;
	end = ur_read_gap_present(req->gap, una, end);
	if ((uint32_t)ur_psn_diff(end, una) < psns) {
		psns = (uint32_t)ur_psn_diff(end, una);
		*bytes = psns << qp->mtu_shift;
	}
	ur_read_gap_asked(req->gap, end, req->rec.max, ur_recovery_answer_ns(&req->rec), now_ns);
	return psns;
}

/* REORDER-REPEAT-01: the packet at una again, alone, asking for an answer. */
static bool repeat(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, req->head);
	uint32_t off, bytes, psns = 1;
	unsigned class;

	for (uint32_t i = req->head; wqe->flags & UR_WQE_DONE; i++)
		wqe = ur_sq_at(&qp->sq, i + 1);
	class = class_of(wqe);
	off = (uint32_t)ur_psn_diff(req->rec.una, wqe->first_psn) << qp->mtu_shift;
	if (class & OP_READ) {
		psns = missing_part(qp, wqe, off, &bytes, now_ns);
		put_read(qp, wqe, off, bytes, req->rec.una, tx);
		req->reasked = req->rec.una;
		req->has_reasked = true;
	} else if (class & OP_ATOMIC) {
		put_atomic(qp, wqe, req->rec.una, tx);
		if (req->gap)
			ur_read_gap_asked(req->gap, ur_psn_add(req->rec.una, 1), req->rec.max,
					  ur_recovery_answer_ns(&req->rec), now_ns);
	} else {
		if (!ur_requester_gather(qp, wqe, off, data_len(qp, wqe, off), tx)) {
			ur_qp_send_error(qp, IBV_WC_LOC_PROT_ERR);
			return false;
		}
		put_data(qp, wqe, off, req->rec.una, true, tx);
	}
	qp->core->cnt.retransmitted_packets++;
	ur_recovery_repeated(&req->rec, psns, now_ns);
	return true;
}

/*
 * RC-REQ-ACK-02: the requests in flight that nobody asked an ACK for would never complete. The
 * newest packet goes again, with AckReq. False when an ACK or a response is on its way anyhow.
 */
static bool ask_again(struct ur_qp *qp)
{
	struct ur_requester *req = &qp->req;
	struct ur_recovery *rec = &req->rec;

	if (qp->type != IBV_QPT_RC || !req->since_ackreq || req->asking ||
	    ur_psn_eq(rec->nxt, rec->una))
		return false;
	/* Since AckReq was set last there was nothing but data. */
	if (!req->cur_off) {
		const struct ur_wqe *wqe = ur_sq_at(&qp->sq, --req->cur);

		req->cur_off = ur_requester_psns(qp, wqe) << qp->mtu_shift;
	}
	req->cur_off -= 1u << qp->mtu_shift;
	ur_recovery_step_back(rec);
	req->asking = true;
	return true;
}

/* RC-REQ-ERR-01. A WQE that cannot be sent fails when everything before it has completed. */
static bool fail_locally(struct ur_qp *qp, enum ibv_wc_status status)
{
	if (ask_again(qp))
		return false;
	qp->req.local_err = (uint8_t)status;
	ur_completer_advance(qp);
	return false;
}

static void local_invalidate(struct ur_qp *qp, struct ur_wqe *wqe)
{
	if (!(wqe->flags & UR_WQE_DONE)) {
		if (!ur_mem_invalidate(qp->core->mem, wqe->imm_inv, qp->pd, false)) {
			fail_locally(qp, IBV_WC_MW_BIND_ERR);
			return;
		}
		wqe->flags |= UR_WQE_DONE;
	}
	qp->req.cur++;
	ur_completer_advance(qp);
}

bool ur_requester_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes)
{
	struct ur_requester *req = &qp->req;
	struct ur_wqe *wqe;
	unsigned class;
	bool made;

	for (;;) {
		if (!ur_requester_ready(qp))
			return false;
		if (__builtin_expect(req->rec.repeat, 0)) {
			made = repeat(qp, tx, now_ns);
			*wqes += !made;
			return made;
		}
		wqe = ur_sq_at(&qp->sq, req->cur);
		class = class_of(wqe);
		*wqes += !req->cur_off;
		if (!(class & OP_LOCAL))
			break;
		local_invalidate(qp, wqe);
	}
	if (ur_recovery_is_resend(&req->rec))
		qp->core->cnt.retransmitted_packets++;
	else if (!(wqe->flags & UR_WQE_BEGUN))
		begin(qp, wqe);
	/* RC-REQ-LEN-01: a message takes fewer than 2^23 PSNs, or they could not be told apart. */
	if (!req->cur_off && wqe->length >> qp->mtu_shift >= UR_PSN_WINDOW - 1)
		return fail_locally(qp, IBV_WC_LOC_LEN_ERR);
	if (class & OP_DATA)
		made = make_data(qp, wqe, class, tx, now_ns);
	else if (!req->max_rd_atomic)
		return fail_locally(qp, IBV_WC_LOC_QP_OP_ERR);
	else if (class & OP_READ)
		made = make_read(qp, wqe, tx, now_ns);
	else
		made = make_atomic(qp, wqe, tx, now_ns);
	*wqes += !made;
	return made || fail_locally(qp, IBV_WC_LOC_PROT_ERR);
}

void ur_requester_drain(struct ur_qp *qp)
{
	if (!is_begun(&qp->req))
		ask_again(qp);
}
