/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_ENGINE_H
#define UR_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "admission/attr.h"
#include "cm/cm.h"
#include "mem/mem.h"
#include "mgmt/attr.h"
#include "cc/attr.h"
#include "sched/attr.h"
#include "transport/attr.h"
#include "transport/sink.h"
#include "vl/attr.h"
#include "wire/assert.h"
#include "wire/drop.h"
#include "wire/packet.h"
#include "wire/psn.h"
#include "wire/tx.h"

/*
 * One endpoint's share on one worker: QPs, their transports, timers, and on worker 0 the connection
 * manager. Bytes and time come in as arguments; nothing here uses the system.
 * docs/embedding.md shows how to drive it from a program of your own.
 *
 *   input           a packet whose ICRC was verified; payload is placed before it returns
 *   output          packets to send now, at most `cap`
 *   next_deadline   when expire has something to do
 *   expire          timers
 *   verbs.h         queue pairs, completion queues, posting
 *   query.h         counters and views
 *   mgmt.h          the management agent
 *
 * These four headers are the engine's whole interface: nothing above the engine includes other headers
 * of the parts than those below. All can be included from C++.
 *
 * Thread class: the worker that owns the engine. `now_ns` never goes back.
 */
#ifdef __cplusplus
extern "C" {
#endif

#define UR_LOSS_SLAB_BYTES                                                                         \
	(128u << 10)		/* the usual limits.loss_slab_bytes, for windows up to 1024 */
#define UR_ENGINE_TICK_SHIFT 10 /* resolution of timers: 1 << this ns */

struct ur_limits {
	uint32_t max_qp;	     /* QPs of this engine at the same time, in [1, 2^15 - 2] */
	uint16_t workers;	     /* engines of the endpoint, a power of two in [1, 8] */
	uint16_t worker;	     /* index of this one, [0, workers) */
	struct ur_qpn_prefix prefix; /* of its queue pair numbers, at most 6 bits; zero: none */
	struct ur_cm_limits cm;	     /* worker 0 only; max_ids 0: no connection manager */
	/* Pools for queue pairs with a gap (docs/design/loss.md); 0: early packets are dropped. */
	uint32_t reorder_slots;	     /* packets kept, of mode reorder and for strict placement */
	uint16_t reorder_slot_bytes; /* the largest payload of one: the port's largest PMTU */
	uint32_t reorder_contexts;   /* mode reorder: QPs that keep early packets */
	uint32_t read_gaps;	     /* mode reorder: QPs with READ responses beyond a gap */
	uint32_t loss_slabs; /* mode extended: memory of QPs with a gap at first, in slabs; */
	uint32_t
		loss_slabs_max; /* at most, see ur_engine_add_slabs(); 0: early packets are dropped */
	uint32_t loss_slab_bytes; /* of a slab, a multiple of 64 */
	uint32_t loss_first;	  /* packets that the first tier tracks: 16, 64 or 256; 0: 64 */
	uint16_t max_sge;	  /* of a receive */
	uint32_t spray_contexts;  /* mode extended: QPs that spray over several ports */
	uint32_t destinations;	  /* addresses that can be paced; 0: no pacing */
	uint32_t admission;	  /* peers of receive pools, and pools of peers; 0: none */
	uint32_t
		attachments; /* of queue pairs of all workers to multicast groups; 0: no multicast */
	struct ur_nma_limits mgmt; /* worker 0 only; ports 1: a management agent, 0: none */
};

/* How queues share the port (docs/design/sending.md). */
struct ur_engine_qos {
	struct ur_vl_attr vl; /* passed ur_vl_attr_check() */
	struct ur_emux_attr sched;
};

void ur_engine_qos_default(struct ur_engine_qos *qos);

struct ur_engine_mgmt_attr;

struct ur_engine_attr {
	struct ur_limits limits;
	struct ur_mem *mem; /* the endpoint's table of memory regions */
	struct ur_sink sink;
	struct ur_cm_attr cm;  /* worker 0 only */
	uint64_t random;       /* random bits, for numbers that must not be guessable */
	uint64_t time_wait_ns; /* how long the slot of a destroyed QP stays unused */
	uint32_t window;       /* PSNs in flight a QP at most, a power of two >= 4 */
	uint32_t ackreq_every; /* packets between two AckReq bits at most */
	uint8_t mtu_shift;     /* the port's largest PMTU is 1 << mtu_shift bytes, [8, 12] */
	bool no_prediction;    /* every packet takes the general way; for tests that compare */
	bool keeps_ports;      /* nothing changes UDP source ports, docs/design/repath.md */
	bool no_plb;	       /* congestion does not, docs/design/plb.md */
	const struct ur_engine_qos *qos;	/* NULL: the default */
	const struct ur_cc_attr *pacing;	/* used if limits.destinations */
	const struct ur_adm_attr *admission;	/* NULL: the default, plain */
	const struct ur_engine_mgmt_attr *mgmt; /* engine/mgmt.h; used if limits.mgmt.ports */
};

/*
 * Sets defaults for a program with a few queue pairs and no connection manager: one worker, 64 queue
 * pairs, a window of 256 packets, every loss mode, no pacing, no admission. The caller adds `mem`, `sink`
 * and `random`, and may change the rest. For connections by the connection manager it sets
 * `limits.cm.max_ids`, at least `limits.cm.max_pending`, `cm.sink`, and random `cm.seed` and `cm.id_key`.
 */
void ur_engine_attr_default(struct ur_engine_attr *attr);

/*
 * EXT-WINDOW-01. Mode extended with ur_engine_attr.window: it takes in 2048 * 2^this PSNs from ePSN on, for the peer's
 * ur_adm_agreed.wide; and a size of slabs that the largest context of a queue pair with a gap fits.
 */
uint8_t ur_engine_wide(uint32_t window);
uint32_t ur_engine_loss_slab_bytes(uint32_t window);

/*
 * NULL, or a sentence about the first attribute that is out of its range or lacks another one; a constant.
 * ur_engine_init() and the sizes take attributes that pass.
 */
const char *ur_engine_attr_check(const struct ur_engine_attr *attr);

struct ur_engine;
struct ur_qp;
struct ur_cq;
struct ur_srq;

/* Bytes of memory, 64-byte aligned, for an engine of these limits. */
size_t ur_engine_size(const struct ur_limits *limits);
struct ur_engine *ur_engine_init(void *memory, const struct ur_engine_attr *attr, uint64_t now_ns);

/*
 * Takes a packet from ur_packet_decode(), whose ICRC was verified. The frame that it points into must exist
 * until this returns. Returns why it was dropped, UR_DROP_NONE if it was accepted; drops are counted.
 */
enum ur_drop ur_engine_input(struct ur_engine *e, const struct ur_packet *p, uint64_t now_ns);

/*
 * Takes a packet to a multicast group for each queue pair of this engine that is attached to it. `own`: this endpoint has
 * sent it. Each queue pair that does not take it counts its reason. Returns UR_DROP_NONE if at least one has taken it, or
 * if those that are attached are other workers'.
 */
enum ur_drop ur_engine_input_group(struct ur_engine *e, const struct ur_packet *p, bool own,
				   uint64_t now_ns);
/* Whether a queue pair of the endpoint is attached to the group. */
bool ur_engine_has_group(const struct ur_engine *e, const struct ur_gid *group);
/* Whether there is any attachment. */
bool ur_engine_has_groups(const struct ur_engine *e);

/*
 * Takes in a frame as it arrived, at a fraction of the cost, if its headers are those that its queue pair expects
 * (docs/design/prediction.md): they are compared, not decoded, and its ICRC is verified. True: *drop says why it was
 * dropped, UR_DROP_NONE if it was accepted; drops are counted. False: its headers are others, nothing was done, and it
 * is to be decoded. As with ur_engine_input() the caller has checked that its destination is an address of this
 * endpoint, and that it carries no VLAN tag beside the frame.
 */
bool ur_engine_input_predicted(struct ur_engine *e, const uint8_t *frame, size_t len,
			       uint64_t now_ns, enum ur_drop *drop);

/*
 * Takes in any frame as it arrived: decodes it and verifies its ICRC first. The caller checks that its
 * destination is an address of this endpoint.
 */
enum ur_drop ur_engine_input_frame(struct ur_engine *e, const uint8_t *frame, size_t len,
				   uint64_t now_ns);

/*
 * Prefetches the state of the queue pair that ur_engine_input() will need. `frame`, of `len` bytes, is
 * read only to guess which queue pair that is: nothing has been verified yet.
 */
void ur_engine_prefetch(const struct ur_engine *e, const uint8_t *frame, size_t len);

/*
 * Fills up to `cap` descriptors, each of whose `hdr` points to UR_HDR_MAX bytes, and returns how many.
 * The payload references are valid until the next call on the engine. Fewer than `cap` means
 * that nothing more can be sent now.
 */
unsigned ur_engine_output(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns);
/* The same, with ACKs behind requests and responses, if there is room. */
unsigned ur_engine_output_acks_last(struct ur_engine *e, struct ur_tx *tx, unsigned cap,
				    uint64_t now_ns);

/*
 * The same for requests and responses only; ACKs and management wait for the next
 * ur_engine_output(), which must follow soon. So a posted request can leave at once.
 */
unsigned ur_engine_output_posted(struct ur_engine *e, struct ur_tx *tx, unsigned cap,
				 uint64_t now_ns);

/*
 * Link credits: which lanes ur_engine_output() may serve, and of which lanes it may send ACKs (bit v: lane v), from now on;
 * at first all. CNPs, NOTIFYs and packets of the connection manager are sent whatever this says.
 */
void ur_engine_open_lanes(struct ur_engine *e, uint16_t data, uint16_t acks);
/* Lanes that have packets to send: open or not. */
uint16_t ur_engine_ready_lanes(const struct ur_engine *e);

/* Whether ur_engine_output() has anything to do. */
bool ur_engine_wants_output(const struct ur_engine *e);

/* The time at which ur_engine_expire() has something to do; UINT64_MAX: no timer runs. */
uint64_t ur_engine_next_deadline(const struct ur_engine *e);
void ur_engine_expire(struct ur_engine *e, uint64_t now_ns);

/* Reports that the port was last empty at dry_ns: packets that arrived before were input. 0: never. */
void ur_engine_port_dry(struct ur_engine *e, uint64_t dry_ns);

/* Whether ACKs or NAKs wait for ur_engine_output(). */
bool ur_engine_owes(const struct ur_engine *e);

/* Whether a single ACK, and no NAK, is all that does. */
bool ur_engine_owes_one_ack(const struct ur_engine *e);

/* Takes a completion that another worker made for a CQ of this one. */
void ur_engine_complete(struct ur_engine *e, struct ur_cq *cq, const struct ibv_wc *wc,
			bool solicited);

struct ur_cm *ur_engine_cm(struct ur_engine *e); /* NULL: there is none */

/* The worker that owns a QPN, for packets that arrived elsewhere. */
static inline unsigned ur_qpn_worker(struct ur_qpn qpn, uint16_t workers)
{
	return qpn.v < 2 ? 0 : qpn.v & (workers - 1u);
}

/* ---- what holds for all queue pairs; objects: verbs.h ---- */

/* Sets tables, policy and length of turns. Queues that can send move to their new lanes. */
void ur_engine_set_qos(struct ur_engine *e, const struct ur_engine_qos *qos);

/*
 * How many slabs the engine should be given soon, for the contexts of queue pairs with a gap: as many as are in
 * use are to be free, up to limits.loss_slabs_max. Thread class: any.
 */
uint32_t ur_engine_wanted_slabs(const struct ur_engine *e);
/*
 * Gives it `cnt` slabs of limits.loss_slab_bytes each, one after the other from `memory` on, which is 64-byte
 * aligned and must outlive the engine. Takes no more than up to limits.loss_slabs_max; returns how many.
 */
uint32_t ur_engine_add_slabs(struct ur_engine *e, void *memory, uint32_t cnt);

/* Whether this congestion control needs packets that are ECN-capable. */
bool ur_engine_wants_ecn(enum ur_cc_mode mode);
/* Sets the port's speed, for congestion control. */
void ur_engine_set_link(struct ur_engine *e, uint64_t link_bps);

struct ur_engine_objects {
	uint32_t qps, time_wait;
};
struct ur_engine_objects ur_engine_objects(struct ur_engine *e, uint64_t now_ns);

/* EDGE-OWED-01. Calls ur_engine_flush_qp_acks() for each QP, before the engine stops. */
void ur_engine_flush_acks(struct ur_engine *e);

#ifdef __cplusplus
}
#endif

#endif
