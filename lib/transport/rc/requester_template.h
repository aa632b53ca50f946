/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester of RC and UC, for every loss engine: walks the send queue, decides whether WQE `cur` may
 * send, and makes its packets (IBA 9.7.3). A C file that includes this has included a loss engine (rc/loss.h)
 * and a header codec before and has defined REQUESTER(name), the name under which a function is exported:
 *
 *   bool REQUESTER(ready)(qp)                  whether it could make a packet now, or take a WQE forward
 *   bool REQUESTER(next)(qp, tx, now, wqes)    makes the next packet, see ur_requester_next()
 *   unsigned REQUESTER(burst)(qp, tx, cap, bytes, now)  makes the commonest packets, see ur_requester_burst(); not UC
 *   void REQUESTER(fail)(qp, idx, status)      WQE idx fails when those before it are complete
 *
 * The files that do: requester_gbn.c, requester_selective.c, requester_uc.c. So the compiler sees each loss engine as if
 * the requester were written for it alone.
 *
 * Thread class: the QP's worker.
 */
#include "transport/rc/loss.h"
#include "transport/sgl.h"
#include "wire/assert.h"
#include "wire/ext.h"

/* ---- what can be sent ---- */

static inline bool has_wqe(const struct ur_qp *qp)
{
	return qp->req.cur != ur_wq_tail(&qp->sq);
}

/* WQE `cur`, which is there, can be worked on: a new packet, a local operation, or its failure; admission aside. */
static inline bool may_go_on(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_wqe *wqe;
	unsigned class;

	if (req->local_err || loss_holds(qp))
		return false;
	/* RC-REQ-DRAIN-01, EXT-REQ-DRAIN-01 */
	if (qp->state == IBV_QPS_SQD && !loss_is_begun(qp))
		return false;
	if (!loss_is_reliable(qp))
		return true;
	wqe = ur_sq_at(&qp->sq, req->cur);
	class = class_of(wqe);
	/* RC-REQ-FENCE-01, EXT-REQ-FENCE-01 */
	if (!req->cur_off && (wqe->flags & UR_WQE_FENCE) && loss_has_answers_due(qp))
		return false;
	/* RC-REQ-LOCAL-01, EXT-REQ-LOCAL-01: what it takes away may be needed to send something again. */
	if (class & OP_LOCAL)
		return req->head == req->cur;
	if (!loss_has_credit(qp, class))
		return false;
	if ((class & OP_RECV) && !loss_is_idle(qp) && !has_receive(req, ssn_of(req, wqe)))
		return false;
	if (!(class & (OP_READ | OP_ATOMIC)) || !req->max_rd_atomic)
		return true;
	return loss_may_read(qp, wqe);
}

static inline bool can_go_on(const struct ur_qp *qp)
{
	return may_go_on(qp) && loss_may_begin(qp);
}

static inline bool is_sending(const struct ur_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
}

static inline bool may_send(const struct ur_qp *qp)
{
	return is_sending(qp) && (!loss_is_reliable(qp) || !qp->retry.is_waiting);
}

static inline bool may_probe(const struct ur_qp *qp)
{
	return is_sending(qp) && loss_may_probe(qp);
}

static __attribute__((noinline, cold)) bool has_again(const struct ur_qp *qp)
{
	struct again again;

	return loss_next_again(qp, &again);
}

/* Without a WQE to go on with. */
static __attribute__((noinline, cold)) bool is_ready_again(const struct ur_qp *qp)
{
	return may_send(qp) ? has_again(qp) : may_probe(qp);
}

static __attribute__((noinline)) bool is_ready(const struct ur_qp *qp)
{
	if (!may_send(qp))
		return may_probe(qp);
	return can_go_on(qp) || (loss_is_troubled(qp) && has_again(qp));
}

/* Nothing is in flight, failed or held back, and WQE `cur`, which is there, is a SEND, WRITE or READ without a fence. */
static inline bool begins_afresh(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, req->cur);

	return loss_is_reliable(qp) && qp->state == IBV_QPS_RTS && req->cur == req->head &&
	       !(req->cur_off | req->local_err | qp->admission) && !qp->retry.is_waiting &&
	       loss_is_done(qp) && (class_of(wqe) & (OP_DATA | OP_READ)) &&
	       !(wqe->flags & UR_WQE_FENCE);
}

/* Asked after every post, answer and turn: most often everything posted has been sent, or nothing of it. */
bool REQUESTER(ready)(const struct ur_qp *qp)
{
	if (has_wqe(qp))
		return begins_afresh(qp) || is_ready(qp);
	return loss_is_troubled(qp) && is_ready_again(qp);
}

/* ---- packets ---- */

/* Packet r->offset of a SEND or WRITE, its payload is gathered. */
static inline void build_data(struct ur_qp *qp, const struct ur_wqe *wqe, struct request *r,
			      struct ur_tx *tx, uint64_t now_ns)
{
	unsigned class = class_of(wqe);
	bool last = (r->offset << qp->mtu_shift) + tx->payload_len == wqe->length;
	bool tail = last && (class & (OP_IMM | OP_INV));
	bool reth = (class & OP_WRITE) && (CODEC_RETH_IN_EACH || !r->offset);
	uint8_t *p;

	r->class = (uint8_t) class;
	r->opcode = data_opcode(class, !r->offset, last);
	r->solicited = last && (wqe->flags & UR_WQE_SOLICITED);
	p = codec_begin(qp, wqe, r, (reth ? UR_RETH_BYTES : 0) + (tail ? 4 : 0), tx, now_ns);
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
	r->ackreq = codec_answers_want_ack();
	p = codec_begin(qp, wqe, r, UR_RETH_BYTES, tx, now_ns);
	put_reth(p, wqe->remote_addr + ((uint64_t)r->offset << qp->mtu_shift), wqe->rkey, bytes);
	tx->asked = bytes;
}

static void build_atomic(struct ur_qp *qp, const struct ur_wqe *wqe, struct request *r,
			 struct ur_tx *tx, uint64_t now_ns)
{
	tx->frag_cnt = 0;
	tx->payload_len = 0;
	r->opcode = atomic_opcode(wqe);
	r->ackreq = codec_answers_want_ack();
	put_atomiceth(codec_begin(qp, wqe, r, UR_ATOMICETH_BYTES, tx, now_ns), wqe);
}

/* References the payload of data packet `at`. False: an SGE is refused. */
static inline bool gather(const struct ur_qp *qp, const struct ur_wqe *wqe, uint32_t at,
			  struct ur_tx *tx)
{
	uint32_t off = at << qp->mtu_shift, left = wqe->length - off, mtu = 1u << qp->mtu_shift;

	return ur_send_queue_gather(qp, wqe, off, left < mtu ? left : mtu, tx);
}

/* ---- failure ---- */

/*
 * RC-REQ-ERR-01, EXT-REQ-ERR-01. WQE idx fails with `status` when those before it are complete. They complete
 * only if an ACK is on its way: where it takes a packet to ask for one, that goes first, and the WQE fails at
 * the next try.
 */
void REQUESTER(fail)(struct ur_qp *qp, uint32_t idx, enum ibv_wc_status status)
{
	struct ur_requester *req = &qp->req;

	if (req->local_err && req->cur - req->head <= idx - req->head)
		return;
	if (loss_ask_for_ack(qp))
		return;
	req->cur = idx;
	req->cur_off = 0;
	req->local_err = (uint8_t)status;
}

/* ---- again ---- */

/* EXT-REQ-RESEND-01. The request with any PSN in flight; *idx is its WQE. */
static enum ibv_wc_status resend(struct ur_qp *qp, struct ur_psn psn, uint32_t *idx,
				 struct ur_tx *tx, uint64_t now_ns)
{
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, *idx = loss_find(qp, psn));
	uint32_t at = (uint32_t)ur_psn_diff(psn, wqe->first_psn);
	struct request r = {.psn = psn, .flags = codec_retry_flags(qp)};
	struct LOSS_RSP nr = loss_first_response(wqe);
	struct read_part part = {.n = 0};
	unsigned class = class_of(wqe);

	if (class & OP_DATA) {
		r.offset = at;
		/* The peer may not see that it fills a gap. */
		r.ackreq = true;
		if (!gather(qp, wqe, at, tx))
			return IBV_WC_LOC_PROT_ERR;
		build_data(qp, wqe, &r, tx, now_ns);
	} else if (class & OP_READ) {
		part = read_part(qp, wqe, at << __builtin_ctz(qp->req.read_psns));
		nr = loss_rsp_add(nr, part.first);
		r.offset = part.first;
		r.flags |= part.last ? UR_XTH_LAST_READ : 0;
		build_read(qp, wqe, &r, part.bytes, tx, now_ns);
	} else {
		part.n = 1;
		build_atomic(qp, wqe, &r, tx, now_ns);
	}
	loss_resent(qp, psn, nr, part.n, now_ns);
	qp->core->cnt.retransmitted_packets++;
	return IBV_WC_SUCCESS;
}

/* EXT-REQ-RSP-01, REORDER-REPEAT-01. One request for the missing responses from `nr` on. */
static void ask_for_responses(struct ur_qp *qp, struct LOSS_RSP nr, struct ur_tx *tx,
			      uint64_t now_ns)
{
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, loss_find_rsp(qp, nr));
	uint32_t first = (uint32_t)loss_rsp_diff(nr, loss_first_response(wqe)), n;
	struct request r = {
		.psn = loss_request_psn(qp, wqe, first),
		.offset = first,
		.flags = UR_XTH_RETRY,
	};

	if (class_of(wqe) & OP_READ) {
		struct read_part part = read_part(qp, wqe, first);
		uint32_t bytes;

		n = loss_reask(qp, wqe, nr, part.n, now_ns);
		bytes = n < part.n ? n << qp->mtu_shift : part.bytes;
		r.flags |= part.last ? UR_XTH_LAST_READ : 0;
		build_read(qp, wqe, &r, bytes, tx, now_ns);
	} else {
		loss_reask(qp, wqe, nr, 1, now_ns);
		build_atomic(qp, wqe, &r, tx, now_ns);
	}
	qp->core->cnt.retransmitted_packets++;
}

/* EXT-REQ-TWICE-01. The READ request for the responses [nr, nr + cnt), which has just left. */
static void ask_twice(struct ur_qp *qp, const struct again *again, struct ur_tx *tx,
		      uint64_t now_ns)
{
	const struct ur_wqe *wqe = ur_sq_at(&qp->sq, loss_find_rsp(qp, again->rsp));
	uint32_t first = (uint32_t)loss_rsp_diff(again->rsp, loss_first_response(wqe));
	struct read_part part = read_part(qp, wqe, first);
	struct request r = {
		.psn = loss_request_psn(qp, wqe, first),
		.offset = first,
		.flags = UR_XTH_RETRY | (again->is_new ? UR_XTH_TWICE : 0) |
			 (part.last ? UR_XTH_LAST_READ : 0),
	};

	build_read(qp, wqe, &r, again->cnt < part.n ? again->cnt << qp->mtu_shift : part.bytes, tx,
		   now_ns);
	tx->asked = 0;
	loss_sent_twice(qp);
	qp->core->cnt.retransmitted_packets++;
}

/* EXT-REQ-PROBE-01 */
static void make_probe(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	struct request r = {.psn = loss_next_psn(qp), .opcode = UR_EXT_PROBE, .ackreq = true};
	bool alone = loss_is_alone(qp, now_ns);

	tx->frag_cnt = 0;
	tx->payload_len = 0;
	codec_begin(qp, NULL, &r, 0, tx, now_ns);
	loss_sent_probe(qp, tx, alone, now_ns);
}

/* What goes before anything new. False: there is nothing; *made: there was, and it is a packet. */
static __attribute__((noinline, cold)) bool make_again(struct ur_qp *qp, struct ur_tx *tx,
						       uint64_t now_ns, unsigned *wqes, bool *made)
{
	struct again again;
	uint32_t idx;

	*made = true;
	if (!loss_next_again(qp, &again))
		return false;
	if (LOSS_PROBES && again.what == AGAIN_PROBE) {
		make_probe(qp, tx, now_ns);
		return true;
	}
	if (LOSS_TWICE && again.what == AGAIN_TWICE) {
		ask_twice(qp, &again, tx, now_ns);
		return true;
	}
	*wqes += 1;
	if (again.what == AGAIN_RESPONSES) {
		ask_for_responses(qp, again.rsp, tx, now_ns);
	} else {
		enum ibv_wc_status status = resend(qp, again.psn, &idx, tx, now_ns);

		*made = status == IBV_WC_SUCCESS;
		if (!*made)
			REQUESTER(fail)(qp, idx, status);
	}
	return true;
}

/* ---- new ---- */

/* The first packet of a WQE is about to be made: number it. */
static inline void begin(struct ur_qp *qp, struct ur_wqe *wqe, unsigned class)
{
	struct ur_requester *req = &qp->req;

	wqe->flags |= UR_WQE_BEGUN;
	wqe->first_psn = loss_next_psn(qp);
	wqe->ssn = req->ssn;
	req->ssn = ur_msn_add(req->ssn, loss_number(qp, wqe, class));
}

/* After the packet about to be made, the last of WQE `cur`, nothing can be sent without an ACK. */
static bool stalls_after(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_wqe *next;
	unsigned class;

	if (req->cur + 1 == ur_wq_tail(&qp->sq))
		return true;
	next = ur_sq_at(&qp->sq, req->cur + 1);
	class = class_of(next);
	return (class & OP_LOCAL) || ((class & OP_RECV) && !has_receive(req, ssn_of(req, next))) ||
	       loss_stalls_before(qp, next);
}

/*
 * RC-REQ-ACK-01, EXT-REQ-ACK-01. AckReq on the last packet of what the application waits for, where nothing
 * follows, and often enough that the window never closes without an ACK on its way.
 */
static inline bool wants_ack(struct ur_qp *qp, const struct ur_wqe *wqe, bool last)
{
	struct ur_requester *req = &qp->req;
	bool ask;

	if (last && (wqe->flags & UR_WQE_SIGNALED)) {
		req->since_ackreq = 0;
		return true;
	}
	ask = ++req->since_ackreq >= req->ackreq_every || loss_wants_ack(qp);
	if ((class_of(wqe) & OP_RECV) && req->flow_control && !ur_msn_lt(wqe->ssn, req->lsn))
		ask = true;
	if (last && !ask)
		ask = !req->ack_seen || stalls_after(qp) || qp->state == IBV_QPS_SQD;
	if (ask)
		req->since_ackreq = 0;
	return ask;
}

/* The `bytes` of WQE `cur` after cur_off were sent or asked for. */
static inline void step(struct ur_requester *req, const struct ur_wqe *wqe, uint32_t bytes)
{
	req->cur_off += bytes;
	if (req->cur_off != wqe->length)
		return;
	req->cur++;
	req->cur_off = 0;
}

static inline enum ibv_wc_status make_data(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
					   uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	struct request r = {.psn = loss_next_psn(qp), .offset = req->cur_off >> qp->mtu_shift};

	if (!gather(qp, wqe, r.offset, tx))
		return IBV_WC_LOC_PROT_ERR;
	if (!(wqe->flags & UR_WQE_BEGUN))
		begin(qp, wqe, class_of(wqe));
	if (loss_is_reliable(qp))
		r.ackreq = wants_ack(qp, wqe, req->cur_off + tx->payload_len == wqe->length);
	build_data(qp, wqe, &r, tx, now_ns);
	loss_sent(qp, r.ackreq, false, now_ns);
	step(req, wqe, tx->payload_len);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status make_read(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
				    uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	struct request r = {.psn = loss_next_psn(qp), .offset = req->cur_off >> qp->mtu_shift};
	struct read_part part = read_part(qp, wqe, r.offset);

	if (!(wqe->flags & UR_WQE_BEGUN))
		begin(qp, wqe, class_of(wqe));
	r.flags = part.last ? UR_XTH_LAST_READ : 0;
	build_read(qp, wqe, &r, part.bytes, tx, now_ns);
	loss_sent_read(qp, part.n, now_ns);
	req->since_ackreq = 0;
	step(req, wqe, part.bytes);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status make_atomic(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
				      uint64_t now_ns)
{
	struct request r = {.psn = loss_next_psn(qp)};

	if (!(wqe->flags & UR_WQE_BEGUN))
		begin(qp, wqe, class_of(wqe));
	build_atomic(qp, wqe, &r, tx, now_ns);
	loss_sent_atomic(qp, now_ns);
	qp->req.since_ackreq = 0;
	step(&qp->req, wqe, wqe->length);
	return IBV_WC_SUCCESS;
}

static inline enum ibv_wc_status make_new(struct ur_qp *qp, struct ur_wqe *wqe, struct ur_tx *tx,
					  uint64_t now_ns)
{
	unsigned class = class_of(wqe);

	/* RC-REQ-LEN-01: a message takes fewer than 2^23 PSNs, or they could not be told apart. */
	if (wqe->length >> qp->mtu_shift >= UR_PSN_WINDOW - 1)
		return IBV_WC_LOC_LEN_ERR;
	if (class & OP_DATA)
		return make_data(qp, wqe, tx, now_ns);
	if (!qp->req.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	return class & OP_READ ? make_read(qp, wqe, tx, now_ns) : make_atomic(qp, wqe, tx, now_ns);
}

/* A local operation is the oldest WQE. */
static enum ibv_wc_status execute_local(struct ur_qp *qp, struct ur_wqe *wqe)
{
	if (!(wqe->flags & UR_WQE_DONE) && !ur_send_queue_local(qp, wqe))
		return IBV_WC_MW_BIND_ERR;
	wqe->flags |= UR_WQE_DONE;
	qp->req.cur++;
	ur_send_queue_advance(qp);
	return IBV_WC_SUCCESS;
}

/* The next packet of WQE `cur`. False: it is a local operation, or it fails. */
static inline bool go_on(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes)
{
	struct ur_requester *req = &qp->req;
	struct ur_wqe *wqe = ur_sq_at(&qp->sq, req->cur);
	bool local = class_of(wqe) & OP_LOCAL;
	enum ibv_wc_status status;

	*wqes += !req->cur_off;
	status = local ? execute_local(qp, wqe) : make_new(qp, wqe, tx, now_ns);
	if (__builtin_expect(status != IBV_WC_SUCCESS, 0)) {
		REQUESTER(fail)(qp, req->cur, status);
		*wqes += 1;
	}
	return status == IBV_WC_SUCCESS && !local;
}

bool REQUESTER(next)(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes)
{
	if (!may_send(qp)) {
		if (!LOSS_PROBES || !may_probe(qp))
			return false;
		make_probe(qp, tx, now_ns);
		return true;
	}
	do {
		bool made;

		if (!loss_is_troubled(qp) || !make_again(qp, tx, now_ns, wqes, &made)) {
			if (loss_is_held(qp))
				loss_before_new(qp, has_wqe(qp) && may_go_on(qp));
			if (!has_wqe(qp) || !can_go_on(qp))
				return false;
			made = go_on(qp, tx, now_ns, wqes);
		}
		if (made) {
			loss_after_send(qp, now_ns);
			return true;
		}
		/* A WQE that failed and is the oldest ends it all. */
		ur_send_queue_advance(qp);
	} while (!qp->fail_send && may_send(qp));
	return false;
}

#ifdef LOSS_BURSTS
/* ---- the commonest packets ---- */

/* [off, off + n) of the payload, if it lies in one piece; NULL: it does not, or it may not be read. */
static inline const uint8_t *piece_of(const struct ur_qp *qp, const struct ur_wqe *wqe,
				      uint32_t off, uint32_t n)
{
	const struct ur_sge *sge = (const void *)(wqe + 1);

	if (wqe->flags & UR_WQE_INLINE)
		return (const uint8_t *)(wqe + 1) + off;
	if (!ur_sgl_in_first(sge, wqe->num_sge, off, n))
		return NULL;
	return ur_mem_check(qp->core->mem, sge->lkey, qp->pd, sge->addr + off, n, 0);
}

/* Nothing waits to be sent again, and nothing is failed, held back or refused. */
static inline bool is_quiet(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;

	return qp->state == IBV_QPS_RTS && !(req->local_err | qp->admission) &&
	       !qp->retry.is_waiting && loss_is_quiet(qp) && !loss_holds(qp) &&
	       !qp->core->no_prediction;
}

/* The message takes one packet. */
static inline bool is_whole(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	return wqe->length - 1 < 1u << qp->mtu_shift;
}

/* Nothing of it was sent, and it waits for nothing that comes before it. */
static inline bool may_begin_now(const struct ur_wqe *wqe)
{
	return !(wqe->flags & (UR_WQE_FENCE | UR_WQE_BEGUN));
}

/* Whether the next packet of the SEND or WRITE may go now. */
static inline bool may_go_now(const struct ur_qp *qp, const struct ur_wqe *wqe, bool write,
			      bool whole)
{
	const struct ur_requester *req = &qp->req;

	/* RC-REQ-LEN-01 */
	if (!whole && (!wqe->length || wqe->length >> qp->mtu_shift >= UR_PSN_WINDOW - 1))
		return false;
	if ((whole || !req->cur_off) && !may_begin_now(wqe))
		return false;
	return write || has_receive(req, whole ? req->ssn : ssn_of(req, wqe)) || loss_is_idle(qp);
}

/*
 * Makes the next packet of WQE `cur`, a SEND or WRITE, from top to bottom. `whole`: the only one; `joins`: not the first packet of
 * the burst. False: nothing was done, and the general way decides.
 */
static inline __attribute__((always_inline)) bool make_plain(struct ur_qp *qp, struct ur_wqe *wqe,
							     bool write, bool whole, bool joins,
							     struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	uint32_t off = whole ? 0 : req->cur_off, left = wqe->length - off,
		 mtu = 1u << qp->mtu_shift;
	bool first = !off, last = whole || left <= mtu;
	uint32_t n = last ? left : mtu;
	bool reth = write && (CODEC_RETH_IN_EACH || first);
	/* As class_of() says, but known to the compiler. */
	struct request r = {.psn = loss_next_psn(qp),
			    .offset = off >> qp->mtu_shift,
			    .class = OP_DATA | (write ? OP_WRITE : OP_RECV),
			    .joins = joins};
	const uint8_t *base;
	uint8_t *p;

	if (!may_go_now(qp, wqe, write, whole) || !(base = piece_of(qp, wqe, off, n)))
		return false;
	tx->frag[0] = (struct ur_frag){base, n};
	tx->frag_cnt = 1;
	tx->payload_len = (uint16_t)n;
	if (first)
		begin(qp, wqe, r.class);
	r.ackreq = wants_ack(qp, wqe, last);
	r.solicited = last && (wqe->flags & UR_WQE_SOLICITED);
	r.opcode = data_opcode(r.class, first, last);
	p = codec_begin(qp, wqe, &r, reth ? UR_RETH_BYTES : 0, tx, now_ns);
	if (reth)
		put_reth(p, wqe->remote_addr, wqe->rkey, wqe->length);
	loss_sent(qp, r.ackreq, joins, now_ns);
	if (whole)
		req->cur++;
	else
		step(req, wqe, n);
	return true;
}

static inline __attribute__((always_inline)) bool make_plain_data(struct ur_qp *qp,
								  struct ur_wqe *wqe, bool write,
								  bool joins, struct ur_tx *tx,
								  uint64_t now_ns)
{
	return is_whole(qp, wqe) ? make_plain(qp, wqe, write, true, joins, tx, now_ns)
				 : make_plain(qp, wqe, write, false, joins, tx, now_ns);
}

/* The same for a READ of one response. */
static inline bool make_plain_read(struct ur_qp *qp, struct ur_wqe *wqe, bool joins,
				   struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;
	struct request r = {
		.psn = loss_next_psn(qp),
		.flags = UR_XTH_LAST_READ,
		.joins = joins,
	};

	if (!is_whole(qp, wqe) || !may_begin_now(wqe) || !req->max_rd_atomic ||
	    !loss_has_credit(qp, OP_READ) || !loss_may_read(qp, wqe))
		return false;
	begin(qp, wqe, OP_READ);
	build_read(qp, wqe, &r, wqe->length, tx, now_ns);
	loss_sent_read(qp, 1, now_ns);
	req->since_ackreq = 0;
	req->cur++;
	return true;
}

static inline bool make_next_plain(struct ur_qp *qp, bool joins, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_wqe *wqe = ur_sq_at(&qp->sq, qp->req.cur);

	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
		return make_plain_data(qp, wqe, true, joins, tx, now_ns);
	case IBV_WR_SEND:
		return make_plain_data(qp, wqe, false, joins, tx, now_ns);
	case IBV_WR_RDMA_READ:
		return make_plain_read(qp, wqe, joins, tx, now_ns);
	default:
		return false;
	}
}

/*
 * PREDICT-SEND-01. Packets of SENDs and WRITEs, and READs of one response, while nothing else has to be sent or decided. What
 * they have in common is asked once.
 */
unsigned REQUESTER(burst)(struct ur_qp *qp, struct ur_tx *tx, unsigned cap, uint32_t *bytes,
			  uint64_t now_ns)
{
	uint32_t credit, sent = 0;
	unsigned n = 0;

	if (!has_wqe(qp) || !is_quiet(qp))
		return 0;
	credit = loss_data_credit(qp);
	if (cap > credit)
		cap = credit;
	while (n < cap && sent < *bytes && make_next_plain(qp, n, &tx[n], now_ns)) {
		sent += ur_tx_frame_bytes(&tx[n++]);
		if (!has_wqe(qp))
			break;
	}
	if (!n)
		return 0;
	loss_after_send(qp, now_ns);
	qp->core->cnt.tx_predicted += n;
	*bytes = sent;
	return n;
}
#endif
