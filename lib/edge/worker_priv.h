/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_WORKER_PRIV_H
#define UR_EDGE_WORKER_PRIV_H

#include "edge/frame.h"
#include "edge/rate.h"
#include "edge/worker.h"

/*
 * What a worker's life, commands and doorbells (worker.c) and its round (worker_round.c) share.
 *
 * Thread class of the functions: whoever is the worker.
 */
#define BURST	     UR_WORKER_BURST
#define IMPAIR_BURST (4 * BURST)
#define TX_PENDING   (IMPAIR_BURST + BURST)
#define ROUND_BURSTS 2 /* of output in a round, and so of what may come back */

/* A completion on its way to the worker of its CQ; a multiple of 16 bytes, as rte_ring wants. */
struct cross_cqe {
	struct ur_cq *cq;
	uint64_t solicited;
	struct ibv_wc wc;
};
_Static_assert(sizeof(struct cross_cqe) % 16 == 0, "rte_ring element size");

struct ur_worker {
	struct ur_engine *engine;
	struct ur_port *port;
	const struct ur_clock *clock;
	struct ur_impair *rx_impair, *tx_impair;
	struct ur_neigh *neigh;
	struct ur_capture_hook *capture;
	const struct ur_gid *gids;
	unsigned gid_cnt;
	uint16_t idx, cnt;
	uint16_t vid; /* of the VLAN that we are in; 0: untagged */
	bool dedicated;
	unsigned lcore;
	struct ur_worker **peers;
	uint64_t now_ns;
	uint64_t dry_ns;  /* when the port had nothing more to receive */
	uint64_t tick;	  /* of the wheel, at the last look at the timers */
	unsigned unheard; /* packets sent since the port was last asked for some */
	unsigned behind;  /* rounds in a row after which the port may hold more */
	struct ur_rate rate;
	/* Frames made and not taken by the port yet, [tx_head, tx_tail). */
	uint16_t tx_head, tx_tail;
	struct rte_mbuf *tx_pending[TX_PENDING];
	/* Empty mbufs for the next output, [spare_first, BURST), and tx[].hdr points into them. */
	uint16_t spare_first;
	struct rte_mbuf *spare[BURST];
	struct ur_tx tx[BURST];
	struct ur_framer framer;
	struct ur_worker_counters cnt_;
	struct rte_ring *handover; /* frames for this worker's QPs that arrived elsewhere */
	struct rte_ring *doorbells;
	struct rte_ring *cross_cqes;
	void *engine_mem;

	_Alignas(64) _Atomic bool lock; /* inline: held by whoever is the worker */
	_Atomic uint64_t last_ns;
	_Atomic bool stop;
	_Atomic unsigned callers; /* inline: commands that wait for the lock */
	/* Commands for a dedicated worker. */
	pthread_mutex_t cmd_lock;
	bool ended; /* the loop runs no command any more */
	pthread_cond_t cmd_done;
	struct command *_Atomic cmds;
};

/* Stamps and round trips are no better than this is fresh: once a burst. */
static inline void ur_worker_update_now(struct ur_worker *w)
{
	uint64_t now = ur_clock_ns(w->clock);

	/* Never backwards, whatever core this runs on. */
	if (now > w->now_ns)
		w->now_ns = now;
}

/* Receives, expires and sends. Returns the packets received and sent. */
unsigned ur_worker_round(struct ur_worker *w);

/*
 * Sends. `posted`: only what was posted, not ACKs and management; see ur_engine_output_posted().
 * Returns the packets made.
 */
unsigned ur_worker_output(struct ur_worker *w, bool posted);

/* What other threads left in the rings: doorbells, and completions of other workers. */
void ur_worker_take(struct ur_worker *w);

#endif
