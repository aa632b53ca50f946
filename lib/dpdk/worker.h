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
 * A worker: one engine, one queue pair of the port as its packet source, the round that connects the two
 * (round.h), and the thread that runs the round. In dedicated mode that is a loop on an lcore of its
 * own. In inline mode it is the thread that calls ur_worker_poll(), for the time of the call.
 *
 * Thread class: poll, call, doorbell: any thread. new, free, start, stop: control.
 */

struct ur_worker_attr {
	uint16_t idx, cnt;	  /* index of this worker, number of workers */
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
	bool no_loop; /* packets to the own address leave by the port */
	bool dedicated;
	bool attach_payload;	      /* see mbuf_source.h */
	double rate_gbps;	      /* of what this worker sends; 0: no limit. See rate.h */
	struct ur_credit_attr credit; /* link credits, with one worker; buffers 0: none */
	int gather;		      /* inline: UR_TRISTATE_ value, see edge/gather.h */
	unsigned lcore;
};

struct ur_worker;
struct ur_direct;

/* *attr is copied; the objects that it points to must outlive the worker. NULL: no memory, see `err`. */
struct ur_worker *ur_worker_new(const struct ur_worker_attr *attr, char *err, size_t cap);
/* Frees its packets and its engine. The worker has been stopped. NULL is allowed. */
void ur_worker_free(struct ur_worker *w);

/* Dedicated mode: starts the loop on its lcore. 0, or a negative errno. Inline mode: does nothing. */
int ur_worker_start(struct ur_worker *w);
/*
 * Sends the ACKs that are owed and ends the rounds: afterwards the worker no longer uses the port.
 * Commands still run, on the threads that issue them.
 */
void ur_worker_stop(struct ur_worker *w);

/*
 * Inline mode: one round, unless another thread is in one. Returns the packets received and sent.
 * Dedicated mode: 0 at once.
 */
unsigned ur_worker_poll(struct ur_worker *w);

/*
 * The same for a thread that is not the application's. Unless `may_be_answered`, an ACK does not wait for the application's answer.
 * *in_way, unless NULL: the application is about to run, and may have to wait for this thread's CPU (EDGE-REST-08): an event was raised; or an ACK
 * waits for its answer, and the caller runs on the CPU on which it has polled or posted last.
 */
unsigned ur_worker_serve(struct ur_worker *w, bool may_be_answered, bool *in_way);

/* EDGE-ACK-04, from now on; nothing in a child of fork() (EDGE-FORK-02). Thread class: any. */
void ur_worker_put_acks_first(struct ur_worker *w);

/* EDGE-ACK-03: a completion of this worker has raised an event. Thread class: the worker. */
void ur_worker_event_raised(struct ur_worker *w);

/*
 * EDGE-FORK-02. In a child of fork(): the workers are the parent's from now on. No round is made, no doorbell is rung, and
 * ur_worker_call() returns without a call.
 */
void ur_worker_leave_to_parent(void);
bool ur_worker_is_the_parents(void);

/*
 * Runs fn(arg, now_ns) on the worker between two rounds, and returns when it has run. That is also a
 * quiescent point: the worker holds no pointer that it took before.
 */
void ur_worker_call(struct ur_worker *w, void (*fn)(void *arg, uint64_t now_ns), void *arg);

/*
 * Returns when a round that is under way has ended, or after 200 ms: a round that exit() in a signal
 * handler has interrupted never ends. Thread class: any but the worker.
 */
void ur_worker_wait_round(struct ur_worker *w);

/*
 * Rings the doorbell of `qp` for `cnt` new requests. Dedicated mode queues it for the worker. Inline mode
 * sends at once, except for a doorbell that joins an open burst: one that another thread's round will
 * take, or that of a series (edge/gather.h).
 */
void ur_worker_doorbell(struct ur_worker *w, struct ur_qp *qp, unsigned cnt);

/* Inline mode: sends what doorbells have gathered, unless another thread is in a round. */
void ur_worker_close_burst(struct ur_worker *w);

/* The same; with `gather` = auto each doorbell sends at once from now on. */
void ur_worker_stop_gathering(struct ur_worker *w);

/* A completion for a CQ of worker `w`, pushed by another worker. False: lost, the ring is full. */
bool ur_worker_push_cqe(struct ur_worker *w, struct ur_cq *cq, const struct ibv_wc *wc,
			bool solicited);

/*
 * EDGE-OWED-01. Sends the ACKs that are owed now, as far as the port accepts them. Call it before an
 * object that owes some is destroyed. Thread class: a command.
 */
void ur_worker_flush(struct ur_worker *w);

/* Changes rate_gbps of the attributes, from the next packet on. Thread class: a command. */
void ur_worker_set_rate(struct ur_worker *w, double gbps);

/* Link credits: the lanes of what is sent from now on; no effect without. Thread class: a command. */
void ur_worker_set_credit_map(struct ur_worker *w, const struct ur_credit_map *map);
/* The same when the link went down or came up. Thread class: a command. */
void ur_worker_restart_credit(struct ur_worker *w);

/*
 * Frames leave by these rings as well, and come from them, from now on; the worker counts them. With several workers a ring would have several
 * producers: one worker alone. Thread class: a command.
 */
void ur_worker_set_direct(struct ur_worker *w, struct ur_direct *direct);

/* Changes the endpoint's own addresses, from the next packet on. Thread class: a command. */
void ur_worker_set_gids(struct ur_worker *w, const struct ur_gid *gids, unsigned cnt);

/*
 * Gives the engine the memory that it wants for queue pairs with a gap, if it wants any. Call it every few
 * milliseconds. Thread class: control, one at a time.
 */
void ur_worker_grow(struct ur_worker *w);

struct ur_engine *ur_worker_engine(struct ur_worker *w);
const struct ur_worker_counters *ur_worker_counters(const struct ur_worker *w);
/* Rounds so far, and those that moved a packet. Thread class: the worker. */
struct ur_worker_rounds {
	uint64_t all, busy;
};
const struct ur_worker_rounds *ur_worker_rounds(const struct ur_worker *w);
/* Fill of the fuller of its rings, packets handed over and doorbells, 1/1000. Thread class: any. */
unsigned ur_worker_ring_fill(const struct ur_worker *w);
const struct ur_impair *ur_worker_impair(const struct ur_worker *w, bool tx);
/* The time of the end of its last round, by its clock. Any thread. */
uint64_t ur_worker_last_ns(const struct ur_worker *w);
/*
 * Inline mode: whether a thread has wanted to be the worker, while another one was, since the last call. Any thread.
 */
bool ur_worker_take_contended(struct ur_worker *w);

#endif
