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
 * The objects of an engine, as in verbs: completion queues, shared receive queues, queue pairs.
 * Their structs are private to the engine; this header and query.h have all operations on them. Address
 * handles (transport/ah.h) are plain data of the caller, and memory regions (mem/mem.h) are in a
 * table of the endpoint.
 *
 * Memory is the caller's: a call returns how many bytes an object takes. The caller provides them,
 * aligned to 64 bytes, and may reuse them when the object has been destroyed or, for a CQ and an
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
	uint16_t worker; /* the worker that pushes completions; other workers pass theirs to it */
	bool unarmed;	 /* ur_engine_arm_cq() is never called: pushing needs no full barrier */
	void *user;	 /* passed to callbacks */
};

size_t ur_engine_cq_size(uint32_t cqe);
struct ur_cq *ur_engine_create_cq(void *memory, const struct ur_cq_create *attr);

/* Takes up to n completions and returns how many. Thread class: consumer. */
unsigned ur_engine_poll_cq(struct ur_cq *cq, unsigned n, struct ibv_wc *wc);

/*
 * Requests one call of ur_sink.completion at the next completion, or the next solicited or
 * erroneous one (IBA 11.4.2.2). True: a completion waits that no such call has reported, and none will; the
 * caller does what the callback would do. Thread class: consumer.
 */
bool ur_engine_arm_cq(struct ur_cq *cq, bool solicited_only);

/*
 * Moves the completions that wait to memory of ur_engine_cq_ring_bytes(), for `cqe` entries from now on; memory of an
 * earlier resize is the caller's again. -EINVAL: more wait than fit. Thread class: the CQ's worker, while no consumer runs.
 */
size_t ur_engine_cq_ring_bytes(uint32_t cqe);
int ur_engine_resize_cq(struct ur_cq *cq, void *ring, uint32_t cqe);

/* Removes the completions of a queue pair that wait. Thread class: as ur_engine_resize_cq(). */
void ur_engine_forget_completions(struct ur_cq *cq, struct ur_qpn qpn);

uint16_t ur_engine_cq_worker(const struct ur_cq *cq);
void *ur_engine_cq_user(const struct ur_cq *cq);

/* ---- shared receive queues (IBA 10.2.9) ---- */

struct ur_srq_create {
	uint32_t entries, max_sge; /* >= 1; at most 32768 entries */
	uint32_t pd;
	uint32_t pool; /* the name by which peers know it (docs/design/admission.md) */
	void *ring;    /* ur_engine_srq_ring_bytes() */
	void *user;
};

size_t ur_engine_srq_size(void);
size_t ur_engine_srq_ring_bytes(uint32_t entries, uint32_t max_sge);
struct ur_srq *ur_engine_create_srq(void *memory, const struct ur_srq_create *attr);

/* Posts a receive. 0, ENOMEM (full) or EINVAL, positive as in verbs. Thread class: poster. */
int ur_engine_post_srq_recv(struct ur_srq *srq, const struct ibv_recv_wr *wr);

/*
 * Moves the posted receives to a ring of another size; the old ring is the caller's again. -EINVAL:
 * more are posted than fit. Thread class: worker, while no poster runs.
 */
int ur_engine_resize_srq(struct ur_srq *srq, void *ring, uint32_t entries);

/*
 * Sets the limit: IBV_EVENT_SRQ_LIMIT_REACHED is raised once when fewer than `limit` are posted; 0:
 * never. True: fewer are posted already; the caller raises the event, and the limit is 0 again. Thread
 * class: worker.
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

/* Bytes of `rings`, 64-byte aligned; 0 for a queue pair that lacks a queue. */
size_t ur_qp_rings_bytes(const struct ur_qp_create *attr);

/*
 * Creates a QP in RESET. 0; -ENOMEM: every slot is in use or in time-wait; -EINVAL: an attribute is out
 * of range.
 */
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
 * Sets the mode, which takes effect at RTR and is kept through RESET; that of a new QP is go-back-N. 0, or
 * -EINVAL if the QP is not RC or not in RESET or INIT. Thread class: worker, here and below.
 */
int ur_engine_set_mode(struct ur_qp *qp, const struct ur_qp_mode *mode);

/*
 * As ibv_modify_qp(). `path` is the resolved address vector (RTR of RC and UC; NULL if the mask has no
 * IBV_QP_AV). 0, -EINVAL, or -EBUSY if max_dest_rd_atomic would change while a READ or atomic is being
 * answered (try again); nothing is changed on failure.
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
 * Moves an RC or UC QP from RESET to RTS in one call, with a local ACK timeout of 67 ms, 7 retries of each
 * kind, and as many READs and atomics as the QP remembers.
 * -EINVAL: not in RESET, or an attribute out of its range; the QP is in RESET then.
 */
int ur_engine_connect_qp(struct ur_engine *e, struct ur_qp *qp, const struct ur_qp_connection *c,
			 uint64_t now_ns);

/*
 * Destroys the QP, without completions and without the ACKs that it owes: see ur_engine_flush_acks(). Its
 * slot is reused after time-wait, first in, first out.
 */
void ur_engine_destroy_qp(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns);

/*
 * EDGE-OWED-01. Makes the QP owe an ACK of everything that it has executed, which ur_engine_output()
 * sends. Call it before the QP is destroyed or moved to ERR or RESET.
 */
void ur_engine_flush_qp_acks(struct ur_qp *qp);

/* Sets the QP's share of its lane: priority in [0, UR_EMUX_PRIORITIES), weight >= 1. */
void ur_engine_set_share(struct ur_qp *qp, uint8_t priority, uint8_t weight);

/* The QP with that number, or NULL. */
struct ur_qp *ur_engine_find_qp(struct ur_engine *e, struct ur_qpn qpn);

/* The QP's number, which does not change. Any thread. */
struct ur_qpn ur_engine_qpn(const struct ur_qp *qp);

/* Calls fn for every QP. */
void ur_engine_for_each_qp(struct ur_engine *e, void (*fn)(struct ur_qp *qp, void *ctx), void *ctx);

/*
 * Calls fn for the path of every connected QP, with the address vector that it was made from. fn may change
 * the path's traffic class, tag and MAC address.
 */
void ur_engine_for_each_path(struct ur_engine *e,
			     void (*fn)(struct ur_path *path, const struct ibv_ah_attr *av,
					void *ctx),
			     void *ctx);

/* Makes work requests that name this address handle fail, so that its memory may be freed. */
void ur_engine_forget_ah(struct ur_engine *e, const struct ur_ah *ah);

/*
 * Attaches a UD queue pair of any worker to a multicast group (IBA 11.3.1), IPv4-mapped or IPv6. Every engine of an endpoint
 * is told of every attachment. `skip_own`: what the queue pair itself has sent is not delivered to it. A queue pair is
 * detached before it is destroyed. -EINVAL: not a group, or not a UD queue pair; -EALREADY: it is attached; -ENOMEM: limits.attachments.
 * Thread class: the worker.
 */
int ur_engine_attach(struct ur_engine *e, const struct ur_gid *group, struct ur_qpn qpn,
		     bool skip_own);
/* -EINVAL: it is not attached. */
int ur_engine_detach(struct ur_engine *e, const struct ur_gid *group, struct ur_qpn qpn);

/* ---- posting: any thread, one poster at a time for each queue ---- */

/*
 * Posts one work request to the send queue; the caller rings the doorbell after the last one. 0, or
 * a positive errno value as from ibv_post_send(): ENOMEM (queue full), EINVAL (state, opcode not of this
 * type, SGE count, inline size, length over 2^31, UD without an address handle and the like).
 */
int ur_engine_post_send(struct ur_qp *qp, const struct ibv_send_wr *wr);

/*
 * Requests that are posted together or not at all: ur_engine_stage_send() writes one of them behind `ahead` staged
 * ones, and returns what ur_engine_post_send() would. ur_engine_publish_sends() posts all `cnt`; EINVAL: the state
 * takes no requests any more, and none is posted. Nothing else may be posted in between.
 */
int ur_engine_stage_send(struct ur_qp *qp, uint32_t ahead, const struct ibv_send_wr *wr);
int ur_engine_publish_sends(struct ur_qp *qp, uint32_t cnt);

/* The operations that send queues of a type take: bit n, enum ibv_wr_opcode n. Any thread. */
uint32_t ur_engine_opcodes(enum ibv_qp_type type);

/*
 * Posts a list to the receive queue. 0, or positive: ENOMEM (queue full), EINVAL (in RESET, or more SGEs
 * than the queue has), and the request that was not taken in *bad. *flushes: the QP is in ERR, so the caller rings the doorbell.
 */
int ur_engine_post_recv(struct ur_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
			bool *flushes);

/* Rings the doorbell: requests were posted to the send queue (in ERR, to either queue). Thread class: worker. */
void ur_engine_doorbell(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns);

/*
 * For doorbells of other threads, which pass through a queue of the caller's. True: no doorbell of this QP
 * is queued, and the caller queues one. The worker calls ur_engine_take_doorbell() when it has taken it
 * from the queue, before ur_engine_doorbell(); a post after that rings again.
 */
bool ur_engine_mark_doorbell(struct ur_qp *qp);
void ur_engine_take_doorbell(struct ur_qp *qp);

#ifdef __cplusplus
}
#endif

#endif
