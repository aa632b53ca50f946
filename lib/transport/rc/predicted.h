/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_PREDICTED_H
#define UR_TRANSPORT_RC_PREDICTED_H

#include "transport/qp.h"
#include "transport/rc/responder_priv.h"
#include "wire/predict.h"

/*
 * The commonest requests, from top to bottom, in place of decoding and of the ordered checks of responder_template.h: a
 * WRITE, SEND or READ of one packet at ePSN, without immediate data, between two messages, on a queue pair where nothing is
 * missing (docs/design/prediction.md). The C files of both responders include this behind the template; PREDICTED_EXT
 * says whether requests have an XTH, and they have defined
 *
 *   predicted_is_quiet(qp)                nothing is early, missing or owed that the next packet must look at
 *   predicted_fits(qp, ext, send)         the headers between BTH and RETH are those of the next message
 *   predicted_pass(qp, ext, psn, n, send)  the packet of n bytes was executed; ePSN is about to move past it
 *   predicted_acknowledge(qp, ext, ackreq, now)  owes an ACK if it is time
 *   predicted_read(ext, p)                fills in what the same headers say of a READ; false: not all of it is asked for
 *
 * Nothing changes before every check has passed, except that a receive may be bound, as by the ordered checks. So what is
 * not taken here is judged by those as if it had not been looked at.
 */

/* Where the bytes go: as locate() and check_length(), for a message that is one packet. NULL: judge it the other way. */
static inline uint8_t *predicted_write_to(const struct ur_qp *qp, const uint8_t *reth, uint32_t n)
{
	if (ur_load32(reth + 12) != n || !(qp->access & IBV_ACCESS_REMOTE_WRITE))
		return NULL;
	return ur_mem_check(qp->core->mem, ur_load32(reth + 8), qp->pd, ur_load64(reth), n,
			    IBV_ACCESS_REMOTE_WRITE);
}

/* The receive of the next message; NULL: none is posted. One of the queue pair's own needs not be bound first. */
static inline const struct ur_rwqe *predicted_receive(struct ur_qp *qp)
{
	uint32_t head = ur_wq_head(&qp->rq);

	if (qp->rsp.wqe || qp->has_srq)
		return qp->rsp.wqe || ur_responder_bind(qp) ? qp->rsp.wqe : NULL;
	return head != ur_wq_tail(&qp->rq) ? ur_rq_at(&qp->rq, head) : NULL;
}

static inline uint8_t *predicted_send_to(const struct ur_qp *qp, const struct ur_rwqe *rwqe,
					 uint32_t n)
{
	if (!rwqe || n > rwqe->length || !ur_sgl_in_first(rwqe->sge, rwqe->num_sge, 0, n))
		return NULL;
	return ur_mem_check(qp->core->mem, rwqe->sge->lkey, qp->pd, rwqe->sge->addr, n,
			    IBV_ACCESS_LOCAL_WRITE);
}

static inline void predicted_complete(struct ur_qp *qp, const struct ur_rwqe *rwqe, uint32_t n,
				      bool solicited)
{
	struct ibv_wc other, *wc = ur_core_place(qp->core, qp->recv_cq, &other);

	*wc = (struct ibv_wc){
		.wr_id = rwqe->wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = n,
		.qp_num = qp->qpn.v,
	};
	ur_responder_release_wqe(qp);
	ur_core_complete_placed(qp->core, qp->recv_cq, wc, &other, solicited);
}

/*
 * PREDICT-REQ-01. `frame` passed ur_predict_path(), with `bytes` from BTH to ICRC. True: it was taken in. False: nothing
 * was done.
 */
static inline __attribute__((always_inline)) bool
take_predicted(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes, bool send, uint32_t word0,
	       uint32_t word2, uint64_t now_ns)
{
	const uint8_t *ext = frame + UR_PREDICT_BTH + UR_BTH_BYTES;
	uint32_t headers = PREDICTED_EXT + (send ? 0 : UR_RETH_BYTES);
	uint32_t padded = bytes - UR_BTH_BYTES - headers - UR_ICRC_BYTES;
	uint32_t n = padded - (word0 >> UR_PREDICT_PAD_SHIFT & 3);
	const struct ur_rwqe *rwqe = NULL;
	uint8_t *to;

	/* A difference below 0 is larger than any PMTU. */
	if ((padded & 3) || n - 1 >= 1u << qp->mtu_shift || !predicted_fits(qp, ext, send) ||
	    !ur_predict_icrc(frame, bytes))
		return false;
	if (send)
		rwqe = predicted_receive(qp);
	to = send ? predicted_send_to(qp, rwqe, n) : predicted_write_to(qp, ext + PREDICTED_EXT, n);
	if (!to)
		return false;
	memcpy(to, ext + headers, n);
	qp->core->cnt.rx_write_requests += !send;
	qp->rsp.msn = ur_msn_add(qp->rsp.msn, 1);
	if (send)
		predicted_complete(qp, rwqe, n, word0 & UR_PREDICT_SOLICITED);
	predicted_pass(qp, qp->rsp.epsn, n, send);
	qp->rsp.epsn = ur_psn_add(qp->rsp.epsn, 1);
	predicted_acknowledge(qp, ext, word2 & UR_PREDICT_ACKREQ, now_ns);
	return true;
}

/* PREDICT-REQ-01. The same for a READ request that one response answers. */
static inline bool take_predicted_read(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				       uint32_t word0, uint32_t word2, uint64_t now_ns)
{
	const uint8_t *ext = frame + UR_PREDICT_BTH + UR_BTH_BYTES;
	struct ur_packet p = {
		.op = UR_OP_READ_REQ | UR_OP_ONLY,
		.bth.psn = ur_psn(word2),
		.reth = ur_predict_reth(ext + PREDICTED_EXT),
	};

	if (bytes != UR_BTH_BYTES + PREDICTED_EXT + UR_RETH_BYTES + UR_ICRC_BYTES ||
	    (word0 >> UR_PREDICT_PAD_SHIFT & 3) || p.reth.length - 1 >= 1u << qp->mtu_shift ||
	    !predicted_fits(qp, ext, false) || !predicted_read(ext, &p) ||
	    !(qp->access & IBV_ACCESS_REMOTE_READ) || !arrival_has_room(qp) ||
	    !ur_predict_icrc(frame, bytes) ||
	    !ur_mem_check(qp->core->mem, p.reth.rkey, qp->pd, p.reth.va, p.reth.length,
			  IBV_ACCESS_REMOTE_READ))
		return false;
	execute_read(qp, &p, now_ns);
	/* Its answer says what an ACK would say; but an extended request may ask for one. */
	if (PREDICTED_EXT)
		predicted_acknowledge(qp, ext, word2 & UR_PREDICT_ACKREQ, now_ns);
	return true;
}

static inline bool predicted_request(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				     uint8_t transport, uint64_t now_ns)
{
	const uint8_t *bth = frame + UR_PREDICT_BTH;
	uint32_t word0 = ur_load32(bth), word2 = ur_load32(bth + 8);
	uint32_t kind = word0 & ~UR_PREDICT_FREE;

	/* With the highest bit of its P_Key set, the queue pair is a full member: an equal P_Key matches (IBA 10.9.3). */
	if ((word2 & UR_PSN_MASK) != qp->rsp.epsn.v || qp->state != IBV_QPS_RTS ||
	    qp->rsp.kind != UR_MSG_NONE || (qp->rsp.nak_sent | qp->strict | qp->admission) ||
	    !(qp->pkey & 0x8000) || !predicted_is_quiet(qp))
		return false;
	if (kind == ur_predict_bth(transport | UR_RC_WRITE_ONLY, qp->pkey))
		return take_predicted(qp, frame, bytes, false, word0, word2, now_ns);
	if (kind == ur_predict_bth(transport | UR_RC_SEND_ONLY, qp->pkey))
		return take_predicted(qp, frame, bytes, true, word0, word2, now_ns);
	if (kind == ur_predict_bth(transport | UR_RC_READ_REQUEST, qp->pkey))
		return take_predicted_read(qp, frame, bytes, word0, word2, now_ns);
	return false;
}

#endif
