/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_CQ_H
#define UR_TRANSPORT_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/*
 * A completion queue: a ring with one producer (the worker it belongs to) and one consumer at a
 * time (pollers hold the object's lock). An entry is valid once `tail` has passed it, which is
 * stored with release after the entry (IBA 11.4.2.1).
 */
enum ur_cq_arm {
	UR_CQ_QUIET = 0,     /* no event wanted */
	UR_CQ_SOLICITED = 1, /* at the next solicited or erroneous completion */
	UR_CQ_ANY = 2,	     /* at the next completion */
};

struct ur_cq {
	/* The producer's. */
	struct ibv_wc *ring;
	uint32_t mask;	    /* ring entries - 1 */
	uint32_t cqe;	    /* entries that may be used, <= mask + 1 */
	uint32_t head_seen; /* head when the producer last looked */
	uint16_t worker;    /* the worker whose engine pushes */
	bool unarmed;	    /* the owner promises never to arm it: pushing needs no full barrier */
	bool overflown;	    /* nothing is pushed any more (IBV_EVENT_CQ_ERR was raised) */
	void *user;	    /* the owner's object, for events */
	_Atomic uint32_t tail;

	/* The consumer's. [head, tail) are valid entries. */
	_Alignas(64) _Atomic uint32_t head;
	uint32_t tail_seen;
	_Atomic uint32_t armed; /* bits of enum ur_cq_arm */
	_Atomic uint32_t
		reported; /* the entries before this one were polled or have raised an event */
};

/* Bytes of the ring memory for `cqe` entries (rounded up to a power of two). */
size_t ur_cq_ring_bytes(uint32_t cqe);

/* cqe is in [1, 2^31]. `unarmed` starts as false; the owner may set it before the CQ is in use. */
void ur_cq_init(struct ur_cq *cq, void *ring, uint32_t cqe, uint16_t worker, void *user);

enum ur_cq_push {
	UR_CQ_PUSHED,	/* no consumer waits */
	UR_CQ_NOTIFY,	/* pushed; the armed consumer has to be notified now */
	UR_CQ_OVERFLOW, /* full: lost, the CQ is in error from now on; raise IBV_EVENT_CQ_ERR, once */
	UR_CQ_DEAD,	/* full since before */
};

/*
 * Where to build the next completion, so that ur_cq_push() need not copy it: its entry, or `other` if the CQ seems to
 * be full. Thread class: the CQ's worker.
 */
static inline struct ibv_wc *ur_cq_place(const struct ur_cq *cq, struct ibv_wc *other)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	return __builtin_expect(tail - cq->head_seen < cq->cqe, 1) ? &cq->ring[tail & cq->mask]
								   : other;
}

/*
 * Fills in a completion without immediate data and the like. Member by member: where the compiler clears all of them at
 * once, it takes a string instruction, which costs more than the rest.
 */
static inline void ur_cq_fill(struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_status status,
			      enum ibv_wc_opcode opcode, uint32_t byte_len, uint32_t qp_num)
{
	wc->wr_id = wr_id;
	wc->status = status;
	wc->opcode = opcode;
	wc->vendor_err = 0;
	wc->byte_len = byte_len;
	wc->imm_data = 0;
	wc->qp_num = qp_num;
	wc->src_qp = 0;
	wc->wc_flags = 0;
	wc->pkey_index = wc->slid = 0;
	wc->sl = wc->dlid_path_bits = 0;
}

/*
 * ur_cq_push() of a completion that was built in its entry, where no consumer is ever notified. False: it takes
 * ur_cq_push().
 */
static inline bool ur_cq_push_placed(struct ur_cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (__builtin_expect(!cq->unarmed || cq->overflown, 0))
		return false;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	return true;
}

/*
 * Thread class: the CQ's worker. A status other than success counts as solicited, whatever
 * `solicited` says (IBA 11.4.2.2). What was pushed before an overflow can still be polled.
 */
enum ur_cq_push ur_cq_push(struct ur_cq *cq, const struct ibv_wc *wc, bool solicited);

/* Takes up to n completions. Thread class: one consumer at a time. Returns how many. */
unsigned ur_cq_poll(struct ur_cq *cq, unsigned n, struct ibv_wc *wc);

/*
 * Arms the CQ. Returns true if a completion waits that has raised no event (CQ-ARM-03): the caller polls again, or raises the event
 * itself if ur_cq_disarm() returns true. Until then it stays armed, so there may be one event too many, but never one too few. Arming for any completion is not undone by arming for solicited ones.
 */
bool ur_cq_arm(struct ur_cq *cq, bool solicited_only);
/* False: the CQ is not armed any more, because the worker or another thread raises the event. */
bool ur_cq_disarm(struct ur_cq *cq);

/*
 * Moves the completions that wait to `ring`, for `cqe` entries from now on; the old ring is the caller's again. False:
 * more wait than fit. Thread class: worker, while no consumer runs.
 */
bool ur_cq_resize(struct ur_cq *cq, void *ring, uint32_t cqe);

/* Removes the completions of a queue pair that wait. Thread class: worker, while no consumer runs. */
void ur_cq_forget_qp(struct ur_cq *cq, uint32_t qpn);

/* Completions that wait to be polled. */
uint32_t ur_cq_pending(const struct ur_cq *cq);

#endif
