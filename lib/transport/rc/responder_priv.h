/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RESPONDER_PRIV_H
#define UR_TRANSPORT_RESPONDER_PRIV_H

#include "transport/qp.h"
#include "wire/opcode.h"
#include "wire/packet.h"

/*
 * What the responders of all modes and their answers share: the verdicts, the checks that do not
 * depend on the order of arrival, how a message ends and how a connection is refused. Nothing else
 * includes this.
 */
enum verdict_kind {
	V_CONTINUE,
	V_DUPLICATE, /* executed before: acknowledge or replay */
	V_GAP,	     /* beyond ePSN */
	V_RNR,	     /* no receive: RNR NAK */
	V_NAK,	     /* NAK with `code`, then the QP goes to error */
};

struct verdict {
	uint8_t kind;	     /* enum verdict_kind */
	uint8_t code;	     /* enum ur_nak_code */
	uint8_t drop;	     /* enum ur_drop */
	uint8_t recv_status; /* how the receive under way completes on V_NAK */
};

#define CONTINUE ((struct verdict){V_CONTINUE, 0, 0, 0})
#define NAK(nak, reason)                                                                           \
	((struct verdict){V_NAK, UR_NAK_##nak, UR_DROP_##reason, IBV_WC_WR_FLUSH_ERR})
#define NAK_RECV(nak, reason, status)                                                              \
	((struct verdict){V_NAK, UR_NAK_##nak, UR_DROP_##reason, status})

/* enum ur_msg_kind of a packet with these opcode flags. */
static inline uint8_t ur_responder_kind_of(uint32_t op)
{
	return op & UR_OP_SEND ? UR_MSG_SEND : op & UR_OP_WRITE ? UR_MSG_WRITE : UR_MSG_NONE;
}

/* PSNs that the answer to a READ of `length` bytes takes in standard mode, or responses in
 * extended. */
static inline uint32_t ur_responder_read_psns(const struct ur_qp *qp, uint32_t length)
{
	uint64_t mtu = UINT64_C(1) << qp->mtu_shift;

	return length ? (uint32_t)((length + mtu - 1) >> qp->mtu_shift) : 1;
}

/* Raises IBV_EVENT_COMM_EST. */
void ur_responder_raise_established(struct ur_qp *qp);

/* Requests are taken in. The first tells that the peer is there, if the QP is still in RTR. */
static inline bool ur_responder_receives(struct ur_qp *qp)
{
	if (__builtin_expect(qp->state == IBV_QPS_RTS, 1))
		return true;
	if (qp->state == IBV_QPS_RTR && !qp->comm_est)
		ur_responder_raise_established(qp);
	return qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_SQD || qp->state == IBV_QPS_SQE;
}
/* Takes the oldest receive of the QP's SRQ; false when none is posted. */
bool ur_responder_take_srq(struct ur_qp *qp, struct ur_rwqe *to);
/* The newest READ or atomic remembered that took `psn`, or NULL. */
struct ur_rd_res *ur_responder_find(struct ur_responder *rsp, struct ur_psn psn);
/* Forgets the oldest for a new one that takes [first, first + psns). */
struct ur_rd_res *ur_responder_remember(struct ur_qp *qp, struct ur_psn first, uint32_t psns);

/* RC-RESP-RIGHTS-01: what the QP does not permit is an invalid request. */
static inline struct verdict ur_responder_check_rights(const struct ur_qp *qp, uint32_t op)
{
	uint32_t need = op & UR_OP_WRITE      ? IBV_ACCESS_REMOTE_WRITE
			: op & UR_OP_READ_REQ ? IBV_ACCESS_REMOTE_READ
			: op & UR_OP_ATOMIC   ? IBV_ACCESS_REMOTE_ATOMIC
					      : 0;

	return (qp->access & need) == need ? CONTINUE : NAK(INV_REQ, ACCESS);
}

/* RC-RESP-ACC-01: the key, range and rights of a READ or atomic, and that the bytes of an atomic are aligned. */
struct verdict ur_responder_check_access(const struct ur_qp *qp, const struct ur_packet *p);

/* Executes an atomic; *original is the value found. */
struct verdict ur_responder_atomic(struct ur_qp *qp, const struct ur_packet *p, uint64_t *original);

/*
 * A SEND or WRITE of `bytes` bytes is complete with packet p: invalidates, counts the message, completes the receive
 * bound.
 */
struct verdict ur_responder_finish(struct ur_qp *qp, const struct ur_packet *p, uint32_t bytes);

/* Acts on V_NAK: counts, owes the NAK for `psn`, and the QP fails. Returns v.drop. */
enum ur_drop ur_response_refuse(struct ur_qp *qp, struct ur_psn psn, struct verdict v);
enum ur_drop ur_ext_response_refuse(struct ur_qp *qp, struct ur_psn psn, struct verdict v);

#endif
