/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_ROUND_H
#define UR_EDGE_ROUND_H

#include "edge/ack_wait.h"
#include "edge/capture.h"
#include "edge/impair_pkt.h"
#include "edge/neigh.h"
#include "edge/round_credit.h"
#include "wire/rate.h"
#include "edge/source.h"
#include "edge/worker_counters.h"
#include "engine/engine.h"

/*
 * The round connects an engine to a packet source. Each call of ur_round_run() does, in this order:
 *
 *   output -> copy payload, ICRC -> [impair] -> [capture] -> send
 *   receive -> [capture] -> [impair] -> decode, address, VLAN, ICRC -> engine, another worker's
 *   round, or the neighbour part
 *   timers
 *
 * It calls the engine, the neighbours and the source, and makes no system call. Bytes come from the
 * source, time is an argument. A program without threads uses endpoint.h.
 *
 * Thread class: one thread at a time, for all functions. Time never goes back; an earlier one counts
 * as the last one.
 */
#define UR_ROUND_BURSTS	      2 /* bursts sent per round, and so also received */
#define UR_ROUND_IMPAIR_BURST (4 * UR_BURST)
#define UR_ROUND_TX_PENDING   (UR_ROUND_IMPAIR_BURST + UR_BURST)
#define UR_ROUND_STAGE	      256 /* bytes of the largest frame that stage_tx is for, >= UR_HDR_MAX */
#define UR_ROUND_LOOPBACK     1024    /* packets to ourselves that wait, a power of two */
#define UR_ROUND_STUCK_NS     1000000 /* a source that takes no frame for as long has no link */

struct ur_round_attr {
	const struct ur_source_ops *ops; /* these three outlive the round */
	void *source;
	struct ur_engine *engine;
	uint32_t frame_bytes; /* room of a buffer that the source allocates, >= UR_HDR_MAX */
	uint8_t mac[6];	      /* of the port */
	uint16_t idx, cnt;    /* this worker, of so many; 0, 1 without others */
	struct ur_impair_config rx_impair, tx_impair;
	struct ur_neigh *neigh; /* worker 0; NULL: frames that are not RoCEv2 are dropped */
	struct ur_capture_hook *capture; /* or NULL */
	const struct ur_gid *gids; /* the endpoint's own addresses, [0, gid_cnt); not copied */
	unsigned gid_cnt;
	uint16_t vid; /* of the VLAN that the endpoint is in; 0: untagged */
	bool no_loop; /* packets to the own address leave by the port: other endpoints have it too */
	bool evict_rx;	      /* evict received payload from the cache, see cache.h */
	uint32_t ack_wait_ns; /* of ACKs for an answer; 0: they do not wait. See ack_wait.h */
	bool stage_tx; /* build small frames elsewhere, then store them in their buffers at once */
	double rate_gbps; /* limit of what it sends; 0: none. See rate.h */
	struct ur_credit
		*credit; /* of the link, with UR_ROUND_CREDIT_SPARE spare; NULL: none. One worker */
};

/* All fields except `cnt` are private to the round. */
struct ur_round {
	const struct ur_source_ops *ops;
	void *source;
	const struct ur_gather_ops *gather; /* NULL also while impairment holds frames back */
	struct ur_engine *engine;
	struct ur_neigh *neigh;
	struct ur_capture_hook *capture;
	struct ur_impair_pkt *rx_impair, *tx_impair;
	const struct ur_gid *gids;
	unsigned gid_cnt;
	uint32_t frame_bytes;
	uint16_t idx, workers, vid;
	uint8_t mac[6];
	bool evict_rx, stage_tx, no_loop;
	uint64_t now_ns;
	uint64_t dry_ns;	/* when the source was last empty */
	uint64_t tick;		/* of the engine, when timers were last checked */
	unsigned sent_since_rx; /* packets sent since the last receive */
	unsigned behind;	/* rounds in a row after which the source may hold more */
	struct ur_ack_wait ack_wait;
	bool may_have_output; /* timers, or packets held back until now, may have made output */
	struct ur_rate rate;
	struct ur_credit *credit;
	/* Frames made but not taken by the source yet, [tx_head, tx_tail). */
	uint16_t tx_head, tx_tail;
	uint64_t
		stuck_ns; /* when the source first took none of them; 0: it took the last that it was offered */
	struct ur_pkt tx_pending[UR_ROUND_TX_PENDING];
	/* Empty buffers for the next output, [spare_first, UR_BURST); tx[].hdr points into them. */
	uint16_t spare_first;
	struct ur_pkt spare[UR_BURST];
	struct ur_tx tx[UR_BURST];
	/* With stage_tx, tx[].hdr points here instead. */
	uint8_t stage[UR_BURST][UR_ROUND_STAGE];
	/* Packets to our own MAC address, and copies of those to our groups, [loop_head, loop_tail), free-running. */
	uint32_t loop_head, loop_tail;
	bool event_raised; /* since the last round */
	bool handed;	   /* what is taken in now comes from another worker */
	struct ur_pkt loop[UR_ROUND_LOOPBACK];
	struct ur_worker_counters cnt;
};

/* 0, or -ENOMEM (impairment). */
int ur_round_init(struct ur_round *r, const struct ur_round_attr *attr, uint64_t now_ns);
/* Frees every packet that the round has. After a failed init too, or on a zeroed struct. */
void ur_round_fini(struct ur_round *r);

/* Sends, receives and expires timers. Returns the packets received and sent. */
unsigned ur_round_run(struct ur_round *r, uint64_t now_ns);
/* The same, with the time of the source, which has a clock (now_ns). */
unsigned ur_round_poll(struct ur_round *r);

/*
 * EDGE-ACK-02. A progress thread has run the round in the caller's place. Returns whether an ACK is all there is to send, and waits
 * for the caller's answer. If so, that one and the next ones follow the answers in the same bursts.
 */
bool ur_round_keep_ack(struct ur_round *r);
/* EDGE-ACK-01: an ACK that waits for the caller's answer leaves with the next round. */
static inline void ur_round_send_acks(struct ur_round *r)
{
	ur_ack_wait_posted(&r->ack_wait, true);
}

/* EDGE-ACK-04, from now on. Thread class: any. */
static inline void ur_round_put_acks_first(struct ur_round *r)
{
	ur_ack_wait_put_first(&r->ack_wait);
}

/* EDGE-ACK-03: a completion has raised an event. ACKs that are owed leave in the same round. */
static inline void ur_round_event_raised(struct ur_round *r)
{
	r->event_raised = true;
}

/*
 * Only sends. `posted`: only requests and responses, see ur_engine_output_posted(), unless ACKs leave with them (EDGE-ACK-02,
 * EDGE-ACK-04).
 * Returns the packets made by the engine.
 */
unsigned ur_round_output(struct ur_round *r, uint64_t now_ns, bool posted);

/* Whether ur_round_output() has sent so much that it is time to receive as well. */
static inline bool ur_round_must_receive(const struct ur_round *r)
{
	return r->sent_since_rx >= UR_ROUND_BURSTS * UR_BURST;
}

/* Frames wait for the source to take them. */
static inline bool ur_round_has_pending(const struct ur_round *r)
{
	return r->tx_head != r->tx_tail;
}

/* Sets the time, also for code that runs on the worker outside of a round. Returns it. */
static inline uint64_t ur_round_set_now(struct ur_round *r, uint64_t now_ns)
{
	if (now_ns > r->now_ns)
		r->now_ns = now_ns;
	return r->now_ns;
}

/*
 * The time at which the round has something to do although nothing arrives and nothing is posted. Valid
 * if ur_round_run() returned 0 last. UINT64_MAX: never. It does not cover that the source has room again.
 */
uint64_t ur_round_next_deadline(const struct ur_round *r);

/* As rate_gbps of the attributes, from the next packet on. */
void ur_round_set_rate(struct ur_round *r, double gbps);

/* The endpoint's own addresses from the next packet on; not copied. */
void ur_round_set_gids(struct ur_round *r, const struct ur_gid *gids, unsigned cnt);

/* NULL: none. */
const struct ur_impair *ur_round_impair(const struct ur_round *r, bool tx);

#endif
