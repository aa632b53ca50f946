/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_WQ_H
#define UR_TRANSPORT_WQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "transport/ah.h"
#include "wire/psn.h"

/*
 * Work queues: rings of work queue elements (WQEs) in memory that the QP's owner hands over. The
 * poster writes elements and stores `tail` with release; the worker reads them in place and
 * stores `head` with release when it no longer needs them. Indices run free; an element's
 * place is its index modulo the ring.
 */

struct ur_sge {
	uint64_t addr;
	uint32_t length; /* bytes */
	uint32_t lkey;
};

enum ur_wqe_flags {
	/* As in a work request. */
	UR_WQE_FENCE = IBV_SEND_FENCE,
	UR_WQE_SIGNALED = IBV_SEND_SIGNALED,
	UR_WQE_SOLICITED = IBV_SEND_SOLICITED,
	UR_WQE_INLINE = IBV_SEND_INLINE, /* the payload follows instead of SGEs */
	UR_WQE_EXT = 1 << 4,		 /* 16 bytes of ur_wqe_ext stand before the SGEs */
	UR_WQE_DONE = 1 << 5,		 /* a local operation that was executed; the worker's */
	UR_WQE_BEGUN = 1 << 6,		 /* first_psn and ssn are set; the worker's */
};

/* A send WQE: 48 bytes, then ur_wqe_ext for UD and atomics, then SGEs or inline payload. */
struct ur_wqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t imm_inv; /* immediate data (network order, as posted) or R_Key to invalidate */
	uint32_t length;  /* bytes, all SGEs together */
	uint8_t opcode;	  /* enum ibv_wr_opcode */
	uint8_t flags;	  /* enum ur_wqe_flags */
	uint8_t num_sge;
	uint8_t resv;
	/* Written by the worker when the first packet is made: its PSN and the message's SSN. */
	struct ur_psn first_psn;
	struct ur_msn ssn;
	/* Extended mode: number of the first response packet. */
	struct ur_rspn first_rsp;
	uint32_t rwqen; /* extended mode: of the receive it consumes; READs, atomics: rd_seq */
};

struct ur_wqe_ext {
	union {
		struct {
			const struct ur_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
		struct {
			uint64_t compare_add;
			uint64_t swap;
		} atomic;
		/* With remote_addr, rkey (the new one) and imm_inv (the region's L_Key). */
		struct {
			uint64_t length;
			uint32_t old_rkey;
			uint32_t access; /* enum ibv_access_flags */
		} bind;
	};
};

static inline const struct ur_wqe_ext *ur_wqe_ext(const struct ur_wqe *wqe)
{
	return (const struct ur_wqe_ext *)(wqe + 1);
}

/* The SGEs, or the inline payload. */
static inline const void *ur_wqe_data(const struct ur_wqe *wqe)
{
	return (const uint8_t *)(wqe + 1) +
	       ((wqe->flags & UR_WQE_EXT) ? sizeof(struct ur_wqe_ext) : 0);
}

/* A receive WQE: 16 bytes, then SGEs. */
struct ur_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t length; /* bytes, all SGEs together, at most UINT32_MAX */
	struct ur_sge sge[];
};

struct ur_wq {
	uint8_t *ring;
	uint16_t stride;       /* bytes an element */
	uint16_t mask;	       /* places - 1 */
	uint16_t entries;      /* elements that may be posted at once, <= places */
	uint16_t max_inline;   /* bytes; the poster's */
	_Atomic uint32_t tail; /* one past the last element posted */
	_Atomic uint32_t head; /* [head, tail) belong to the worker */
	/* The poster's. */
	uint32_t head_seen; /* head when it last looked */
	uint16_t opcodes;   /* a send queue: bit n, enum ibv_wr_opcode n may be posted */
	uint8_t max_sge;
	bool connected; /* a send queue: else each WQE names an address handle */
};

#define UR_WQ_ENTRIES_MAX 32768
#define UR_WQ_INLINE_MAX  65408 /* bytes: with the rest of the element, less than 2^16 */

/*
 * Bytes of ring memory for a send queue / a receive queue of [1, UR_WQ_ENTRIES_MAX] elements. max_sge is at
 * most 255, max_inline at most UR_WQ_INLINE_MAX.
 *
 * Every send WQE has room for ur_wqe_ext and either max_sge SGEs or max_inline bytes, and starts on
 * a cache line: what RC and UC post with one SGE (or up to 16 bytes inline) lies in one line.
 */
size_t ur_sq_ring_bytes(uint32_t entries, uint32_t max_sge, uint32_t max_inline);
size_t ur_rq_ring_bytes(uint32_t entries, uint32_t max_sge);
struct ur_qp_ops;
/* The ring memory is aligned to 64 bytes. `ops`: of the queue pair (qp_ops.h), whatever its mode. */
void ur_sq_init(struct ur_wq *wq, const struct ur_qp_ops *ops, void *ring, uint32_t entries,
		uint32_t max_sge, uint32_t max_inline);
void ur_rq_init(struct ur_wq *wq, void *ring, uint32_t entries, uint32_t max_sge);

/*
 * Posts one work request to the send queue of a QP in state `state`. Thread class: one
 * poster at a time. Returns 0, or what ibv_post_send() returns as a positive errno value: ENOMEM
 * (queue full), EINVAL (state, opcode not of its type, SGE count, inline size, inline with anything
 * but SEND or WRITE, unknown flag, length over 2^31, an atomic that is not 8 bytes, UD without an AH).
 * States that take requests: RTS, SQD, SQE and ERR (IBA 10.3.1; in ERR they are flushed). The SGEs of
 * a local invalidate and of a bind are ignored. Whether a datagram fits the path MTU is the worker's to check.
 */
int ur_sq_post(struct ur_wq *wq, enum ibv_qp_state state, const struct ibv_send_wr *wr,
	       bool sig_all);
/*
 * Requests that are posted together or not at all: ur_sq_stage() writes one of them, with `ahead` staged before it,
 * and returns what ur_sq_post() would. The worker sees none of them before ur_sq_publish() of all `cnt`, which returns
 * EINVAL if the state takes no requests any more; until then nothing else may be posted. Thread class: as ur_sq_post().
 */
int ur_sq_stage(struct ur_wq *wq, enum ibv_qp_state state, uint32_t ahead,
		const struct ibv_send_wr *wr, bool sig_all);
int ur_sq_publish(struct ur_wq *wq, enum ibv_qp_state state, uint32_t cnt);
/* Posts to a receive queue or an SRQ: 0, ENOMEM or EINVAL. */
int ur_rq_post(struct ur_wq *wq, const struct ibv_recv_wr *wr);

static inline struct ur_wqe *ur_sq_at(const struct ur_wq *wq, uint32_t idx)
{
	return (struct ur_wqe *)(wq->ring + (size_t)(idx & wq->mask) * wq->stride);
}

static inline struct ur_rwqe *ur_rq_at(const struct ur_wq *wq, uint32_t idx)
{
	return (struct ur_rwqe *)(wq->ring + (size_t)(idx & wq->mask) * wq->stride);
}

/* Elements that the worker can see, [head, tail). Thread class: worker. */
static inline uint32_t ur_wq_tail(const struct ur_wq *wq)
{
	return atomic_load_explicit(&wq->tail, memory_order_acquire);
}

static inline uint32_t ur_wq_head(const struct ur_wq *wq)
{
	return atomic_load_explicit(&wq->head, memory_order_relaxed);
}

/* How many those are. */
static inline uint32_t ur_wq_cnt(const struct ur_wq *wq)
{
	return ur_wq_tail(wq) - ur_wq_head(wq);
}

/* The worker is done with every element before `head`. */
static inline void ur_wq_release(struct ur_wq *wq, uint32_t head)
{
	atomic_store_explicit(&wq->head, head, memory_order_release);
}

#endif
