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

/* The first packet is here: raises IBV_EVENT_COMM_EST if the QP is still in RTR, once. */
void ur_responder_established(struct ur_qp *qp);
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

/* RC-RESP-ACC-01: the key, range and rights of an atomic, and that its bytes are aligned. */
struct verdict ur_responder_check_atomic(const struct ur_qp *qp, const struct ur_atomiceth *a);
/* The same of [va, va + length) under a RETH; nothing for 0 bytes. */
struct verdict ur_responder_check_reth(const struct ur_qp *qp, uint32_t op,
				       const struct ur_reth *reth);

/* Executes a FETCH_ADD or else a compare and swap; *original is the value found. */
struct verdict ur_responder_atomic(struct ur_qp *qp, bool fetch_add, const struct ur_atomiceth *a,
				   uint64_t *original);

struct ur_message_end {
	uint32_t op;	   /* enum ur_op_flags of the last packet */
	uint32_t imm_inv;  /* immediate data, host order, or the key to invalidate */
	uint32_t byte_len; /* of the message */
	bool solicited;
};

/* A SEND or WRITE is complete: invalidates, counts the message, completes the receive bound. */
struct verdict ur_responder_finish(struct ur_qp *qp, const struct ur_message_end *end);

/* Acts on V_NAK: counts, owes the NAK for `psn`, and the QP fails. Returns v.drop. */
enum ur_drop ur_response_refuse(struct ur_qp *qp, struct ur_psn psn, struct verdict v);
enum ur_drop ur_ext_response_refuse(struct ur_qp *qp, struct ur_psn psn, struct verdict v);

#endif
