/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_TRAFFIC_H
#define PERF_TRAFFIC_H

#include "session.h"

/*
 * The traffic between START and FINISH. Both ends call perf_traffic_step() repeatedly; what it
 * does follows from the session's parameters and role. One thread.
 *
 * bw.c sends as fast as it can, verify.c sends and checks patterns, lat.c plays ping-pong; this is
 * what they share: completions, receives, acknowledgements, draining.
 */

/* Call it when all queue pairs are connected; `sending`: this end sends. */
void perf_traffic_start(struct perf_session *s, bool sending);

/* One round: post, poll. Returns the number of completions and posted messages. */
unsigned perf_traffic_step(struct perf_session *s);

/* Sleeps until there is something to poll, at most 100 ms; only with params.events. */
void perf_traffic_sleep(struct perf_session *s);

/* Stops new messages; those in flight continue. */
void perf_traffic_quiet(struct perf_session *s);
/* Requests the last completions; true if nothing is in flight (call it between steps). */
bool perf_traffic_drained(struct perf_session *s);
bool perf_traffic_qp_drained(struct perf_session *s, struct perf_qp *q);
/* Every queue pair has reached its tx_limit. */
bool perf_traffic_finished(const struct perf_session *s);

/* Call it when a queue pair is connected, or has room again, while the traffic runs. */
void perf_traffic_kick(struct perf_session *s, struct perf_qp *q);

/* Polls the completion queues once. */
unsigned perf_traffic_poll(struct perf_session *s);

/* How many more messages may be posted on a queue pair now, in [0, PERF_BATCH]. */
uint32_t perf_traffic_room(struct perf_session *s, struct perf_qp *q);

/* Posts tx_wr[0, cnt), linked. Returns how many were posted; the session fails on an error. */
uint32_t perf_traffic_post(struct perf_session *s, struct perf_qp *q, uint32_t cnt);

/* bw.c: messages that all look alike. The number posted. */
void perf_bw_start(struct perf_session *s);
uint32_t perf_bw_post(struct perf_session *s, struct perf_qp *q, uint32_t cnt);

/*
 * verify.c. post: messages by the plan, patterns filled in. complete: [tx_done, done) of ours has
 * completed. receive: a receive has; `slot` is its buffer. end: how much the peer sent.
 */
uint32_t perf_checked_post(struct perf_session *s, struct perf_qp *q, uint32_t cnt);
void perf_checked_complete(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc,
			   uint64_t done);
void perf_checked_receive(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc,
			  uint32_t slot);
void perf_checked_end(struct perf_session *s, const struct perf_end *end);
/* After the last end: checks the sum of all fetch_adds; `word` is the peer's. */
void perf_checked_fetch_adds(struct perf_session *s, uint64_t word);

/* send_inv: grants the peer a region to invalidate with its message n, the oldest not granted. */
void perf_grant(struct perf_session *s, struct perf_qp *q, uint32_t victim, uint64_t n);
/* The key granted for our message n; 0 when there is none yet. */
uint32_t perf_granted(const struct perf_qp *q, uint64_t n);

/* lat.c: the client's step and the server's. */
unsigned perf_lat_step(struct perf_session *s);
void perf_lat_receive(struct perf_session *s, struct perf_qp *q);

#endif
