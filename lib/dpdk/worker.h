/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_WORKER_H
#define UR_DPDK_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dpdk/clock.h"
#include "dpdk/port.h"
#include "edge/round.h"
#include "engine/verbs.h"

/*
 * A worker: one engine, one queue pair of the port as its packet source, the round that joins them
 * (round.h), and the thread that runs it. In dedicated mode a loop on an lcore of its own does; in
 * inline mode whatever calls ur_worker_poll() is the worker for as long as that takes.
 *
 * Thread class: poll, call, doorbell: any thread. new, free, start, stop: control.
 */

struct ur_worker_attr {
	uint16_t idx, cnt;	  /* this worker, of so many */
	struct ur_worker **peers; /* all of them, [0, cnt) */
	struct ur_port *port;
	const struct ur_clock *clock;
	struct ur_engine_attr engine;
	struct ur_impair_config rx_impair, tx_impair;
	struct ur_neigh *neigh; /* worker 0; NULL where the kernel does its part */
	struct ur_capture_hook *capture;
	const struct ur_gid *gids; /* the endpoint's own addresses, [0, gid_cnt) */
	unsigned gid_cnt;
	uint16_t vid; /* of the VLAN that the endpoint is in; 0: untagged */
	bool dedicated;
	bool attach_payload; /* see mbuf_source.h */
	double rate_gbps;    /* of what this worker sends; 0: no limit. See rate.h */
	unsigned lcore;
};

struct ur_worker;

/* NULL with a sentence in err. */
struct ur_worker *ur_worker_new(const struct ur_worker_attr *attr, char *err, size_t cap);
void ur_worker_free(struct ur_worker *w);

/* Dedicated mode: starts the loop on its lcore. */
int ur_worker_start(struct ur_worker *w);
/*
 * When it returns nobody uses the port for this worker any more: the loop has ended, inline rounds
 * do nothing. Commands are still run, by their callers.
 */
void ur_worker_stop(struct ur_worker *w);

/*
 * Inline mode: one round, unless another thread is in one. Returns the packets received and sent.
 * Dedicated mode: 0 at once.
 */
unsigned ur_worker_poll(struct ur_worker *w);

/*
 * Runs fn(arg, now_ns) on the worker between two rounds and waits for it. That is also a quiescent
 * point: what the worker looked at before, it looks at no more.
 */
void ur_worker_call(struct ur_worker *w, void (*fn)(void *arg, uint64_t now_ns), void *arg);

/*
 * Returns when the round that may be under way has ended, or after 200 ms: who is interrupted in it
 * by exit() in a signal handler never ends it. Thread class: any but the worker.
 */
void ur_worker_wait_round(struct ur_worker *w);

/*
 * Something was posted on qp. Inline mode sends at once (unless another thread runs the worker);
 * dedicated mode tells the worker.
 */
void ur_worker_doorbell(struct ur_worker *w, struct ur_qp *qp);

/* A completion for a CQ of worker `w`, pushed by another worker. False: lost, the ring is full. */
bool ur_worker_push_cqe(struct ur_worker *w, struct ur_cq *cq, const struct ibv_wc *wc,
			bool solicited);

/*
 * EDGE-OWED-01. Sends what is owed to peers by now, as far as the port takes it, before something is
 * taken away that owes it. Thread class: a command.
 */
void ur_worker_flush(struct ur_worker *w);

/* As rate_gbps of the attributes, from the next packet on. Thread class: a command. */
void ur_worker_set_rate(struct ur_worker *w, double gbps);

/* The endpoint's own addresses from the next packet on. Thread class: a command. */
void ur_worker_set_gids(struct ur_worker *w, const struct ur_gid *gids, unsigned cnt);

struct ur_engine *ur_worker_engine(struct ur_worker *w);
const struct ur_worker_counters *ur_worker_counters(const struct ur_worker *w);
const struct ur_impair *ur_worker_impair(const struct ur_worker *w, bool tx);
/* When the worker last finished a round, its clock's time. */
uint64_t ur_worker_last_ns(const struct ur_worker *w);

#endif
