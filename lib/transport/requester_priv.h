/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_REQUESTER_PRIV_H
#define UR_TRANSPORT_REQUESTER_PRIV_H

#include "transport/build.h"
#include "transport/qp.h"
#include "wire/opcode.h"

/*
 * What requester.c and completer.c share with ext_requester.c and ext_completer.c; nobody else
 * includes this.
 */

/* What a send WQE's opcode means to a requester. */
enum op_class {
	OP_DATA = 1 << 0, /* SEND or WRITE: payload goes out */
	OP_WRITE = 1 << 1,
	OP_READ = 1 << 2,
	OP_ATOMIC = 1 << 3,
	OP_LOCAL = 1 << 4, /* no packet */
	OP_IMM = 1 << 5,
	OP_INV = 1 << 6,
	OP_RECV = 1 << 7, /* consumes a receive at the peer: needs credit */
};

static inline unsigned class_of(const struct ur_wqe *wqe)
{
	static const uint8_t op_class[] = {
		[IBV_WR_RDMA_WRITE] = OP_DATA | OP_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = OP_DATA | OP_WRITE | OP_IMM | OP_RECV,
		[IBV_WR_SEND] = OP_DATA | OP_RECV,
		[IBV_WR_SEND_WITH_IMM] = OP_DATA | OP_IMM | OP_RECV,
		[IBV_WR_RDMA_READ] = OP_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = OP_ATOMIC,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = OP_ATOMIC,
		[IBV_WR_LOCAL_INV] = OP_LOCAL,
		[IBV_WR_SEND_WITH_INV] = OP_DATA | OP_INV | OP_RECV,
	};

	return op_class[wqe->opcode];
}

/* The RC opcode of a packet of a SEND or WRITE; those of other transports have other top bits. */
static inline uint8_t data_opcode(unsigned class, bool first, bool last)
{
	/* [write][first][last]; immediate and invalidate only change the last packet's. */
	static const uint8_t plain[2][2][2] = {
		{{UR_RC_SEND_MIDDLE, UR_RC_SEND_LAST}, {UR_RC_SEND_FIRST, UR_RC_SEND_ONLY}},
		{{UR_RC_WRITE_MIDDLE, UR_RC_WRITE_LAST}, {UR_RC_WRITE_FIRST, UR_RC_WRITE_ONLY}},
	};
	uint8_t op = plain[!!(class & OP_WRITE)][first][last];

	if (last && (class & OP_IMM))
		op++;
	else if (last && (class & OP_INV))
		op = first ? UR_RC_SEND_ONLY_INV : UR_RC_SEND_LAST_INV;
	return op;
}

static inline uint8_t *put_reth(uint8_t *p, uint64_t va, uint32_t rkey, uint32_t length)
{
	p = ur_build64(p, va);
	p = ur_build32(p, rkey);
	return ur_build32(p, length);
}

/* The last packet of a message carries its immediate data, or the key to invalidate. */
static inline void put_imm_inv(uint8_t *p, const struct ur_wqe *wqe)
{
	if (class_of(wqe) & OP_IMM)
		memcpy(p, &wqe->imm_inv, UR_IMM_BYTES);
	else
		ur_build32(p, wqe->imm_inv);
}

/* The RC opcode of an atomic, and its header. */
static inline uint8_t atomic_opcode(const struct ur_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? UR_RC_COMPARE_SWAP : UR_RC_FETCH_ADD;
}

static inline void put_atomiceth(uint8_t *p, const struct ur_wqe *wqe)
{
	const struct ur_wqe_ext *ext = ur_wqe_ext(wqe);
	bool cas = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	p = ur_build64(p, wqe->remote_addr);
	p = ur_build32(p, wqe->rkey);
	p = ur_build64(p, cas ? ext->atomic.swap : ext->atomic.compare_add);
	ur_build64(p, cas ? ext->atomic.compare_add : 0);
}

/* ---- completer.c ---- */

/* An ACK or a response came: takes in its credits. */
void ur_completer_credits(struct ur_requester *req, const struct ur_aeth *aeth);
/* The status with which a NAK of this code, not PSN_SEQ, ends its request; IBV_WC_SUCCESS: none. */
enum ibv_wc_status ur_completer_nak_status(uint8_t code);

/* ---- ext_requester.c ---- */

static inline struct ur_selective_env ur_ext_env(struct ur_qp *qp)
{
	return (struct ur_selective_env){
		.pool = &qp->core->rtx, .rtt = &qp->xreq.rtt, .marks = &qp->xreq.marks};
}

/* For the sequence of requests. */
static inline struct ur_selective_env ur_ext_psn_env(struct ur_qp *qp)
{
	struct ur_selective_env env = ur_ext_env(qp);

	if (ur_psn_le(qp->xreq.reads_from, qp->xreq.psn.una))
		env.kind = UR_SELECTIVE_READS;
	return env;
}

/* For the sequence of responses. */
static inline struct ur_selective_env ur_ext_rsp_env(struct ur_qp *qp)
{
	struct ur_selective_env env = ur_ext_env(qp);

	env.kind = UR_SELECTIVE_RESPONSES;
	return env;
}

/* Response packets that the WQE asks for: at least 1 for a READ or atomic, else 0. */
static inline uint32_t ur_ext_responses(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	return class_of(wqe) & (OP_READ | OP_ATOMIC) ? ur_requester_psns(qp, wqe) : 0;
}

/* PSNs that the WQE takes, at least 1 (a local operation takes none and is not asked about). */
static inline uint32_t ur_ext_psns(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	uint32_t n = ur_requester_psns(qp, wqe);

	if (class_of(wqe) & OP_READ)
		n = (n + qp->req.read_psns - 1) >> __builtin_ctz(qp->req.read_psns);
	return n;
}

/*
 * WQEs [head, head + this) have packets in flight or wait for completion, all of them with a PSN:
 * local operations run when they are the oldest and are complete at once. What comes behind a WQE
 * that is to fail does not count any more.
 */
static inline uint32_t ur_ext_begun(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	bool cur = !req->local_err && req->cur != ur_wq_tail(&qp->sq) &&
		   (ur_sq_at(&qp->sq, req->cur)->flags & UR_WQE_BEGUN);

	return req->cur - req->head + cur;
}

/* Whether every request and response has come through. */
static inline bool ur_ext_idle(const struct ur_ext_requester *x)
{
	return ur_psn_eq(x->psn.una, x->psn.max) && ur_psn_eq(x->rsp.una, x->rsp.max);
}

/* Number of the first response that the request `psn` of [psn.una, psn.max] or a later one asks
 * for. */
struct ur_psn ur_ext_response_of(const struct ur_qp *qp, struct ur_psn psn);
/* Tells recovery.h what is outstanding. */
void ur_ext_follow(struct ur_qp *qp, uint64_t now_ns);
/*
 * WQE `idx` fails with `status` as soon as those before it are complete (ur_completer_advance());
 * nothing of it or behind it is sent or taken in any more.
 */
void ur_ext_fail(struct ur_qp *qp, uint32_t idx, enum ibv_wc_status status);

#endif
