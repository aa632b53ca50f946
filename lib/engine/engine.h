/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_ENGINE_H
#define UR_ENGINE_ENGINE_H

#include <stdint.h>

#include "cm/cm.h"
#include "transport/core.h"
#include "transport/qp.h"

/*
 * One endpoint's share on one worker: QPs, their transports, timers, and on worker 0 the connection
 * manager. Bytes and time come in as arguments; nothing here asks the system for anything.
 *
 *   input           a packet whose ICRC was verified; payload is placed before it returns
 *   output          packets to send now, at most `cap`
 *   next_deadline   when expire has something to do
 *   expire          timers
 *   commands        create, modify, destroy, doorbell
 *
 * Thread class: the worker that owns the engine. `now_ns` never goes back.
 */

struct ur_limits {
	uint32_t max_qp;  /* QPs of this engine at once, in [1, 2^15 - 2] */
	uint16_t workers; /* engines of the endpoint, a power of two in [1, 8] */
	uint16_t worker;  /* this one, [0, workers) */
	struct ur_cm_limits cm;
	/* Pools for queue pairs with a gap (docs/design/loss.md); 0: early packets are dropped. */
	uint32_t reorder_slots;	     /* packets kept, of mode reorder and for strict placement */
	uint16_t reorder_slot_bytes; /* the largest payload of one: the port's largest PMTU */
	uint32_t reorder_contexts;   /* mode reorder: QPs that keep early packets */
	uint32_t read_gaps;	     /* mode reorder: QPs with READ responses beyond a gap */
	uint32_t ooo_contexts;	     /* mode extended: QPs that receive beyond a gap */
	uint32_t rtx_contexts;	     /* mode extended: QPs that send again selectively, two each */
	uint16_t max_sge;	     /* of a receive, for ooo_contexts */
	uint32_t spray_contexts;     /* mode extended: QPs that spray over several ports */
	uint32_t destinations;	     /* addresses that are paced; 0: none is */
	uint32_t admission;	     /* peers of receive pools, and pools of peers; 0: none */
};

/* How what can be sent shares the port (docs/design/sending.md). */
struct ur_engine_qos {
	struct ur_vl_attr vl; /* passed ur_vl_attr_check() */
	struct ur_emux_attr sched;
};

void ur_engine_qos_default(struct ur_engine_qos *qos);

struct ur_engine_attr {
	struct ur_limits limits;
	struct ur_mem *mem; /* the endpoint's table of memory regions */
	struct ur_sink sink;
	struct ur_cm_attr cm;  /* worker 0 only */
	uint64_t random;       /* for what must not be guessable */
	uint64_t time_wait_ns; /* how long the slot of a destroyed QP stays unused */
	uint32_t window;       /* PSNs in flight a QP at most, a power of two >= 4 */
	uint32_t ackreq_every; /* packets between two AckReq bits at most */
	uint8_t mtu_shift;     /* the port's largest PMTU is 1 << mtu_shift bytes, [8, 12] */
	const struct ur_engine_qos *qos;     /* NULL: the default */
	const struct ur_pacing_attr *pacing; /* used if limits.destinations */
	const struct ur_adm_attr *admission; /* NULL: the default, plain */
};

struct ur_engine;

/* Bytes of memory, 64-byte aligned, for an engine of these limits. */
size_t ur_engine_size(const struct ur_limits *limits);
struct ur_engine *ur_engine_init(void *memory, const struct ur_engine_attr *attr, uint64_t now_ns);

/* A packet as ur_packet_decode() left it, its ICRC verified, and the frame it points into. */
enum ur_drop ur_engine_input(struct ur_engine *e, const struct ur_packet *p, const uint8_t *frame,
			     uint64_t now_ns);

/*
 * Has what ur_engine_input() will need of the queue pair brought near. `frame` is of `len` bytes and
 * not looked at further than for a guess: nothing was verified, nothing is promised.
 */
void ur_engine_prefetch(const struct ur_engine *e, const uint8_t *frame, size_t len);

/*
 * Fills up to `cap` descriptors, each of whose `hdr` points to UR_HDR_MAX bytes. The payload
 * references are good until the next call on the engine. Returns how many. Fewer than `cap` means
 * that nothing more can be sent now.
 */
unsigned ur_engine_output(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns);

/*
 * The same for requests and responses alone: ACKs and management wait for the next ur_engine_output().
 * For a poster in a hurry, who calls that soon.
 */
unsigned ur_engine_output_posted(struct ur_engine *e, struct ur_tx *tx, unsigned cap,
				 uint64_t now_ns);

/* Whether ur_engine_output() has anything to do. */
bool ur_engine_wants_output(const struct ur_engine *e);

uint64_t ur_engine_next_deadline(const struct ur_engine *e);
void ur_engine_expire(struct ur_engine *e, uint64_t now_ns);

/* At dry_ns the port was last found empty: what it held until then has been input (0: never). */
void ur_engine_port_dry(struct ur_engine *e, uint64_t dry_ns);

/* ACKs or NAKs wait for ur_engine_output(). */
bool ur_engine_owes(const struct ur_engine *e);

/* A completion that another worker made for a CQ of this one. */
void ur_engine_complete(struct ur_engine *e, struct ur_cq *cq, const struct ibv_wc *wc,
			bool solicited);

struct ur_cm *ur_engine_cm(struct ur_engine *e); /* NULL but on worker 0 */

/* The worker that owns a QPN, for packets that arrived elsewhere. */
static inline unsigned ur_qpn_worker(struct ur_qpn qpn, uint16_t workers)
{
	return qpn.v < 2 ? 0 : qpn.v & (workers - 1u);
}

/* ---- commands ---- */

struct ur_qp_create {
	enum ibv_qp_type type; /* RC, UC or UD */
	uint32_t pd;
	struct ur_cq *send_cq, *recv_cq; /* recv_cq is of this worker */
	struct ur_srq *srq;		 /* or NULL */
	struct ibv_qp_cap cap;
	bool sig_all;
	uint8_t max_dest_rd_atomic; /* READs and atomics remembered at most */
	uint64_t random;	    /* 64 fresh random bits, for its number */
	void *user;
	/* Memory that the caller hands over until ur_engine_destroy_qp(), ur_qp_rings_bytes() of
	 * it. */
	void *rings;
};

size_t ur_qp_rings_bytes(const struct ur_qp_create *attr);

/* 0 and the QP in RESET; -ENOMEM when every slot is in use or in time-wait; -EINVAL. */
int ur_engine_create_qp(struct ur_engine *e, const struct ur_qp_create *attr, uint64_t now_ns,
			struct ur_qp **qp);

/*
 * As ibv_modify_qp(). `path` is what the attribute's address vector resolved to (RTR of RC and UC;
 * NULL when the mask has no IBV_QP_AV). 0, -EINVAL, or -EBUSY when max_dest_rd_atomic is to change
 * while a READ or atomic is being answered (try again); nothing is changed on failure.
 */
int ur_engine_modify_qp(struct ur_engine *e, struct ur_qp *qp, const struct ibv_qp_attr *attr,
			int mask, const struct ur_path_attr *path, uint64_t now_ns);

/*
 * Forgets the QP without completions, and what it owes its peer; ur_engine_output() before this, or
 * before a modify to ERR or RESET, sends it. Its slot is reused after time-wait, first in, first out.
 */
void ur_engine_destroy_qp(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns);

/* Tables, policy and length of turns from now on; what can be sent stays so, on its lane of now. */
void ur_engine_set_qos(struct ur_engine *e, const struct ur_engine_qos *qos);

/* How the QP shares its lanes: priority in [0, UR_EMUX_PRIORITIES), weight >= 1. */
void ur_engine_set_share(struct ur_qp *qp, uint8_t priority, uint8_t weight);

/* The port's speed, for pacing. */
void ur_engine_set_link(struct ur_engine *e, uint64_t link_bps);

/* Something was posted to the send queue (or, in ERR, to either queue). */
void ur_engine_doorbell(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns);

/* The live QP of that number, or NULL. */
struct ur_qp *ur_engine_find_qp(struct ur_engine *e, struct ur_qpn qpn);

struct ur_engine_objects {
	uint32_t qps, time_wait;
};
struct ur_engine_objects ur_engine_objects(struct ur_engine *e, uint64_t now_ns);

/* EDGE-OWED-01. ur_response_tell_all() for each QP: the engine is going to stop. */
void ur_engine_tell_all(struct ur_engine *e);

/* Calls fn for every live QP (counters, tests). */
void ur_engine_for_each_qp(struct ur_engine *e, void (*fn)(struct ur_qp *qp, void *ctx), void *ctx);

#endif
