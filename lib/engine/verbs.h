/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_VERBS_H
#define UR_ENGINE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "engine/engine.h"
#include "transport/ah.h"

/*
 * The objects of an engine as verbs know them: completion queues, shared receive queues, queue pairs.
 * Their structs are the engine's own; what may be asked of them is here and in query.h. Address
 * handles (transport/ah.h) and memory regions (mem/mem.h) are plain data of the caller and a
 * table of the endpoint.
 *
 * Memory is the caller's: a call says how many bytes an object takes, the caller hands them over,
 * aligned to 64 bytes, and may reuse them when the object has been destroyed, or for a CQ and an
 * SRQ, when no queue pair refers to it.
 *
 * Thread classes. "Worker" is the thread that runs the engine. A "poster" or "consumer" is any
 * thread, one at a time for each queue; it may run beside the worker.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* ---- completion queues (IBA 11.2.8) ---- */

struct ur_cq_create {
	uint32_t cqe;	 /* entries, [1, 2^31] */
	uint16_t worker; /* the worker that pushes completions; others send theirs there */
	bool unarmed;	 /* ur_engine_arm_cq() is never called: pushing needs no full barrier */
	void *user;	 /* what callbacks get */
};

size_t ur_engine_cq_size(uint32_t cqe);
struct ur_cq *ur_engine_create_cq(void *memory, const struct ur_cq_create *attr);

/* Takes up to n completions and returns how many. Thread class: consumer. */
unsigned ur_engine_poll_cq(struct ur_cq *cq, unsigned n, struct ibv_wc *wc);

/*
 * Asks for one call of ur_sink.completion at the next completion, or the next solicited or
 * erroneous one (IBA 11.4.2.2). True: completions are there already and the call is not going to
 * come; the caller does what the callback would do. Thread class: consumer.
 */
bool ur_engine_arm_cq(struct ur_cq *cq, bool solicited_only);

uint16_t ur_engine_cq_worker(const struct ur_cq *cq);
void *ur_engine_cq_user(const struct ur_cq *cq);

/* ---- shared receive queues (IBA 10.2.9) ---- */

struct ur_srq_create {
	uint32_t entries, max_sge; /* >= 1 */
	uint32_t pd;
	uint32_t pool; /* the name by which peers know it (docs/design/admission.md) */
	void *ring;    /* ur_engine_srq_ring_bytes() */
	void *user;
};

size_t ur_engine_srq_size(void);
size_t ur_engine_srq_ring_bytes(uint32_t entries, uint32_t max_sge);
struct ur_srq *ur_engine_create_srq(void *memory, const struct ur_srq_create *attr);

/* 0, ENOMEM (full) or EINVAL, positive as verbs have it. Thread class: poster. */
int ur_engine_post_srq_recv(struct ur_srq *srq, const struct ibv_recv_wr *wr);

/*
 * Moves what is posted to a ring of other size; the old ring is the caller's again. -EINVAL: more
 * is posted than fits. Thread class: worker, while no poster runs.
 */
int ur_engine_resize_srq(struct ur_srq *srq, void *ring, uint32_t entries);

/*
 * IBV_EVENT_SRQ_LIMIT_REACHED comes once when fewer than `limit` are posted; 0: never. True: that is
 * so already; the caller raises the event, and the limit is 0 again. Thread class: worker.
 */
bool ur_engine_set_srq_limit(struct ur_srq *srq, uint32_t limit);

/* Entries, SGEs and limit. Thread class: worker, or while it does not run. */
void ur_engine_query_srq(const struct ur_srq *srq, struct ibv_srq_attr *out);

/* ---- queue pairs ---- */

struct ur_qp_create {
	enum ibv_qp_type type; /* RC, UC or UD */
	uint32_t pd;
	struct ur_cq *send_cq, *recv_cq; /* recv_cq is of this worker */
	struct ur_srq *srq;		 /* or NULL */
	struct ibv_qp_cap cap;
	bool sig_all;
	uint8_t max_dest_rd_atomic; /* READs and atomics remembered at most */
	uint64_t random;	    /* 64 fresh random bits, for its number */
	void *user;		    /* what callbacks get */
	void *rings;		    /* ur_qp_rings_bytes(), until ur_engine_destroy_qp() */
};

size_t ur_qp_rings_bytes(const struct ur_qp_create *attr);

/* 0 and the QP in RESET; -ENOMEM when every slot is in use or in time-wait; -EINVAL. */
int ur_engine_create_qp(struct ur_engine *e, const struct ur_qp_create *attr, uint64_t now_ns,
			struct ur_qp **qp);

/* How the QP survives loss (docs/design/loss.md), and what was agreed on with its peer. */
struct ur_qp_mode {
	enum ur_mode mode;
	bool strict;   /* extended: the last byte of a message is placed after all others */
	uint8_t paths; /* extended: UDP source ports to spray over; 0 and 1: its own alone */
	struct ur_adm_agreed agreed;
};

/*
 * In force from RTR on, and kept through RESET until it is set again; a fresh QP goes back N. 0, or
 * -EINVAL when the QP is not RC or not in RESET or INIT. Thread class: worker, here and below.
 */
int ur_engine_set_mode(struct ur_qp *qp, const struct ur_qp_mode *mode);

/*
 * As ibv_modify_qp(). `path` is what the attribute's address vector resolved to (RTR of RC and UC;
 * NULL when the mask has no IBV_QP_AV). 0, -EINVAL, or -EBUSY when max_dest_rd_atomic is to change
 * while a READ or atomic is being answered (try again); nothing is changed on failure.
 */
int ur_engine_modify_qp(struct ur_engine *e, struct ur_qp *qp, const struct ibv_qp_attr *attr,
			int mask, const struct ur_path_attr *path, uint64_t now_ns);

/* Both ends of a connection, as they agree on it. */
struct ur_qp_connection {
	struct ur_path_attr path;
	struct ur_qpn dest_qpn;
	struct ur_psn sq_psn, rq_psn; /* our first, the peer's first */
	enum ibv_mtu path_mtu;
	unsigned access; /* enum ibv_access_flags: what the peer may do */
	struct ur_qp_mode mode;
};

/*
 * From RESET to RTS at once, what takes ibv_modify_qp() three calls: for an RC or UC QP, with a local ACK
 * timeout of 67 ms, 7 retries of each kind, and as many READs and atomics as the QP remembers.
 * -EINVAL: not in RESET, or an attribute out of its range; the QP is in RESET then.
 */
int ur_engine_connect_qp(struct ur_engine *e, struct ur_qp *qp, const struct ur_qp_connection *c,
			 uint64_t now_ns);

/*
 * Forgets the QP without completions, and the ACKs that it owes: see ur_engine_flush_acks(). Its
 * slot is reused after time-wait, first in, first out.
 */
void ur_engine_destroy_qp(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns);

/*
 * EDGE-OWED-01. An ACK of everything that the QP has executed is owed from now on; ur_engine_output()
 * makes it. For the time before the QP is destroyed or moved to ERR or RESET.
 */
void ur_engine_flush_qp_acks(struct ur_qp *qp);

/* How the QP shares its lanes: priority in [0, UR_EMUX_PRIORITIES), weight >= 1. */
void ur_engine_set_share(struct ur_qp *qp, uint8_t priority, uint8_t weight);

/* The live QP of that number, or NULL. */
struct ur_qp *ur_engine_find_qp(struct ur_engine *e, struct ur_qpn qpn);

/* Its number; does not change. Any thread. */
struct ur_qpn ur_engine_qpn(const struct ur_qp *qp);

/* Calls fn for every live QP. */
void ur_engine_for_each_qp(struct ur_engine *e, void (*fn)(struct ur_qp *qp, void *ctx), void *ctx);

/*
 * Calls fn for the path of every connected QP and the address vector that it was made of; fn may change
 * how the path is marked and the MAC address that it leads to.
 */
void ur_engine_for_each_path(struct ur_engine *e,
			     void (*fn)(struct ur_path *path, const struct ibv_ah_attr *av,
					void *ctx),
			     void *ctx);

/* Work requests that name this address handle fail instead of following a dead pointer. */
void ur_engine_forget_ah(struct ur_engine *e, const struct ur_ah *ah);

/* ---- posting: any thread, one poster at a time for each queue ---- */

/*
 * Posts one work request to the send queue; the caller rings the doorbell after the last one. 0, or
 * what ibv_post_send() returns, positive: ENOMEM (queue full), EINVAL (state, opcode not of this
 * type, SGE count, inline size, length over 2^31, UD without an address handle and the like).
 */
int ur_engine_post_send(struct ur_qp *qp, const struct ibv_send_wr *wr);

/*
 * Posts a list to the receive queue. 0, ENOMEM or EINVAL, positive, and the request that was not
 * taken in *bad. *flushes: the QP is in ERR, so the caller rings the doorbell.
 */
int ur_engine_post_recv(struct ur_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
			bool *flushes);

/* Something was posted to the send queue (or, in ERR, to either queue). Thread class: worker. */
void ur_engine_doorbell(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns);

/*
 * A doorbell that another thread rings goes through a queue of the caller's. True: none is on its way
 * and this one is to be queued. The worker says when it has taken it, before
 * ur_engine_doorbell(): a post after that rings again.
 */
bool ur_engine_claim_doorbell(struct ur_qp *qp);
void ur_engine_take_doorbell(struct ur_qp *qp);

#ifdef __cplusplus
}
#endif

#endif
