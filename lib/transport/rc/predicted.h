/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_PREDICTED_H
#define UR_TRANSPORT_RC_PREDICTED_H

#include "transport/qp.h"
#include "transport/rc/responder_priv.h"
#include "wire/predict.h"

/*
 * The commonest requests, from top to bottom, in place of decoding and of the ordered checks of responder_template.h: a
 * packet of a WRITE or SEND at ePSN, without immediate data, or a READ of one response, on a queue pair where nothing is
 * missing (docs/design/prediction.md). The C files of both responders include this behind the template; PREDICTED_EXT
 * says whether requests have an XTH, and they have defined
 *
 *   predicted_is_quiet(qp)            nothing is early, missing or owed that the next packet must look at
 *   predicted_is_between(qp)          no message is under way
 *   predicted_fits(qp, ext, c)        the headers between BTH and RETH are those of the packet that c says
 *   predicted_reth(qp, ext, c)        the RETH of its message
 *   predicted_offset(qp)              what came before of the message under way, in bytes
 *   predicted_pass(qp, c)             it was executed; ePSN is about to move past it
 *   predicted_acknowledge(qp, ext, ackreq, now)  owes an ACK if it is time
 *   predicted_read(qp, ext, p)        fills in what the same headers say of a READ; false: not all of it is asked for
 *
 * Nothing changes before every check has passed, except that a receive may be bound, as by the ordered checks. So what is
 * not taken here is judged by those as if it had not been looked at.
 */

/* Of the PMTU, or at the end of a message at most; a difference below 0 is more. */
static inline bool predicted_size(const struct ur_qp *qp, const struct candidate *c)
{
	uint32_t mtu = 1u << qp->mtu_shift;

	return c->last ? c->n - 1 < mtu : c->n == mtu;
}

/* The packet ends where its message does, or before. With predicted_size(): as check_length() */
static inline bool predicted_end(const struct candidate *c)
{
	uint32_t end = c->off + c->n, most = 1u << 31;

	if (!c->first && (c->off > most || end > most))
		return false;
	if (c->send)
		return true;
	return c->last ? end == c->reth.length : end < c->reth.length && c->reth.length <= most;
}

/* Where the bytes go: as locate(). NULL: judge it the other way. */
static inline uint8_t *predicted_write_to(const struct ur_qp *qp, const struct candidate *c)
{
	uint8_t *base;

	if (!(qp->access & IBV_ACCESS_REMOTE_WRITE))
		return NULL;
	base = ur_mem_check(qp->core->mem, c->reth.rkey, qp->pd, c->reth.va, c->reth.length,
			    IBV_ACCESS_REMOTE_WRITE);
	return base ? base + c->off : NULL;
}

/* The receive of the message; NULL: none is posted. One of the queue pair's own needs not be bound for a single packet. */
static inline const struct ur_rwqe *predicted_receive(struct ur_qp *qp, const struct candidate *c)
{
	uint32_t head = ur_wq_head(&qp->rq);

	if (!c->first)
		return qp->rsp.wqe;
	if (qp->rsp.wqe || qp->has_srq || !c->last)
		return qp->rsp.wqe || ur_responder_bind(qp) ? qp->rsp.wqe : NULL;
	return head != ur_wq_tail(&qp->rq) ? ur_rq_at(&qp->rq, head) : NULL;
}

static inline uint8_t *predicted_send_to(const struct ur_qp *qp, const struct ur_rwqe *rwqe,
					 const struct candidate *c)
{
	if (!rwqe || c->off + c->n > rwqe->length ||
	    !ur_sgl_in_first(rwqe->sge, rwqe->num_sge, c->off, c->n))
		return NULL;
	return ur_mem_check(qp->core->mem, rwqe->sge->lkey, qp->pd, rwqe->sge->addr + c->off, c->n,
			    IBV_ACCESS_LOCAL_WRITE);
}

static inline void predicted_complete(struct ur_qp *qp, const struct ur_rwqe *rwqe, uint32_t n,
				      bool solicited)
{
	struct ibv_wc other, *wc = ur_core_place(qp->core, qp->recv_cq, &other);

	ur_cq_fill(wc, rwqe->wr_id, IBV_WC_SUCCESS, IBV_WC_RECV, n, qp->qpn.v);
	ur_responder_release_wqe(qp);
	ur_core_complete_placed(qp->core, qp->recv_cq, wc, &other, solicited);
}

/*
 * PREDICT-REQ-01. `frame` passed ur_predict_path(), with `bytes` from BTH to ICRC. True: it was taken in. False: nothing
 * was done.
 */
static inline __attribute__((always_inline)) bool take_predicted(struct ur_qp *qp,
								 struct candidate c,
								 const uint8_t *frame,
								 uint32_t bytes, uint64_t now_ns)
{
	const uint8_t *bth = frame + UR_PREDICT_BTH, *ext = bth + UR_BTH_BYTES;
	uint32_t headers = PREDICTED_EXT;
	const struct ur_rwqe *rwqe = NULL;
	uint32_t padded;
	uint8_t *to;

	if (!c.send && (PREDICTED_EXT || c.first))
		headers += UR_RETH_BYTES;
	padded = bytes - UR_BTH_BYTES - headers - UR_ICRC_BYTES;
	c.n = padded - (ur_load32(bth) >> UR_PREDICT_PAD_SHIFT & 3);
	c.off = c.first ? 0 : predicted_offset(qp);
	if ((padded & 3) || !predicted_size(qp, &c) || !predicted_fits(qp, ext, &c))
		return false;
	if (!c.send)
		c.reth = predicted_reth(qp, ext, &c);
	if (!predicted_end(&c) || !ur_predict_icrc(frame, bytes))
		return false;
	if (c.send)
		rwqe = predicted_receive(qp, &c);
	to = c.send ? predicted_send_to(qp, rwqe, &c) : predicted_write_to(qp, &c);
	if (!to)
		return false;
	memcpy(to, ext + headers, c.n);
	qp->core->cnt.rx_write_requests += !c.send;
	if (c.last)
		qp->rsp.msn = ur_msn_add(qp->rsp.msn, 1);
	if (c.last && c.send)
		predicted_complete(qp, rwqe, c.off + c.n, bth[1] & UR_PREDICT_SOLICITED >> 16);
	if (!c.first || !c.last)
		qp->rsp.kind = c.last ? UR_MSG_NONE : c.send ? UR_MSG_SEND : UR_MSG_WRITE;
	predicted_pass(qp, &c);
	qp->rsp.epsn = ur_psn_add(qp->rsp.epsn, 1);
	predicted_acknowledge(qp, ext, bth[8] & UR_PREDICT_ACKREQ >> 24, now_ns);
	return true;
}

/* PREDICT-REQ-01. The same for a READ request that one response answers. */
static inline bool take_predicted_read(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				       uint64_t now_ns)
{
	const uint8_t *bth = frame + UR_PREDICT_BTH, *ext = bth + UR_BTH_BYTES;
	const struct candidate c = {.first = true, .last = true};
	struct ur_packet p = {
		.op = UR_OP_READ_REQ | UR_OP_ONLY,
		.bth.psn = qp->rsp.epsn,
		.reth = ur_predict_reth(ext + PREDICTED_EXT),
	};

	if (bytes != UR_BTH_BYTES + PREDICTED_EXT + UR_RETH_BYTES + UR_ICRC_BYTES ||
	    (ur_load32(bth) >> UR_PREDICT_PAD_SHIFT & 3) ||
	    p.reth.length - 1 >= 1u << qp->mtu_shift || !predicted_fits(qp, ext, &c) ||
	    !predicted_read(qp, ext, &p) || !(qp->access & IBV_ACCESS_REMOTE_READ) ||
	    !arrival_has_room(qp) || !ur_predict_icrc(frame, bytes) ||
	    !ur_mem_check(qp->core->mem, p.reth.rkey, qp->pd, p.reth.va, p.reth.length,
			  IBV_ACCESS_REMOTE_READ))
		return false;
	execute_read(qp, &p, now_ns);
	/* Its answer says what an ACK would say; but an extended request may ask for one. */
	if (PREDICTED_EXT)
		predicted_acknowledge(qp, ext, bth[8] & UR_PREDICT_ACKREQ >> 24, now_ns);
	return true;
}

/* A packet of a SEND or WRITE of several. */
static __attribute__((noinline)) bool predicted_part(struct ur_qp *qp, const uint8_t *frame,
						     uint32_t bytes, uint64_t now_ns)
{
	uint8_t operation = frame[UR_PREDICT_BTH] & ~UR_TRANSPORT_MASK;
	bool send = operation <= UR_RC_SEND_LAST;
	struct candidate c = {
		.first = operation == UR_RC_SEND_FIRST || operation == UR_RC_WRITE_FIRST,
		.last = operation == UR_RC_SEND_LAST || operation == UR_RC_WRITE_LAST,
	};

	if (c.first ? !predicted_is_between(qp)
		    : qp->rsp.kind != (send ? UR_MSG_SEND : UR_MSG_WRITE))
		return false;
	if (!send)
		return take_predicted(qp, c, frame, bytes, now_ns);
	c.send = true; /* the compiler knows which of the two it is */
	return take_predicted(qp, c, frame, bytes, now_ns);
}

static inline bool predicted_request(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				     uint8_t transport, uint64_t now_ns)
{
	const struct candidate write = {.first = true, .last = true},
			       send = {.send = true, .first = true, .last = true};
	const uint8_t *bth = frame + UR_PREDICT_BTH;
	uint32_t kind = ur_load32(bth) & ~UR_PREDICT_FREE;

	/* With the highest bit of its P_Key set, the queue pair is a full member: an equal P_Key matches (IBA 10.9.3). */
	if ((ur_load32(bth + 8) & UR_PSN_MASK) != qp->rsp.epsn.v || qp->state != IBV_QPS_RTS ||
	    (qp->rsp.nak_sent | qp->strict | qp->admission) || !(qp->pkey & 0x8000) ||
	    !predicted_is_quiet(qp))
		return false;
	if (predicted_is_between(qp)) {
		if (kind == ur_predict_bth(transport | UR_RC_WRITE_ONLY, qp->pkey))
			return take_predicted(qp, write, frame, bytes, now_ns);
		if (kind == ur_predict_bth(transport | UR_RC_SEND_ONLY, qp->pkey))
			return take_predicted(qp, send, frame, bytes, now_ns);
		if (kind == ur_predict_bth(transport | UR_RC_READ_REQUEST, qp->pkey))
			return take_predicted_read(qp, frame, bytes, now_ns);
	}
	return kind == ur_predict_bth(transport | (bth[0] & ~UR_TRANSPORT_MASK), qp->pkey) &&
	       ur_predict_among(UR_PREDICT_PARTS, bth[0]) &&
	       predicted_part(qp, frame, bytes, now_ns);
}

#endif
