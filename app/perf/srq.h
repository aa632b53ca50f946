/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_SRQ_H
#define PERF_SRQ_H

#include "session.h"

/*
 * An SRQ of the server and its receives. Without --shared-srq each session has its own, with
 * receive buffers in the session's memory. With it all sessions of an endpoint use one, with
 * buffers of its own: the first session creates it, the last one destroys it. A session that ends
 * posts the receives that it had consumed again.
 */
struct perf_srq {
	struct ibv_srq *srq;
	struct perf_srq **home; /* where the next session finds it; NULL: a session's own */
	unsigned users;
	uint64_t receives, service_us, verify; /* from the first session's parameters */
	uint32_t entries;
	bool armed;

	uint64_t *at; /* the buffer of each entry */
	uint32_t bytes, lkey;
	uint8_t *mem; /* NULL: the session's */
	uint64_t mem_bytes;
	struct ibv_mr *mr;

	/* Consumed receives are posted again in batches. */
	uint32_t batch, pending_cnt, pending[PERF_BATCH];
	/* Entries whose messages are in service, [serve_head, serve_tail); the first one until
	 * serve_until_ns. */
	uint32_t serve[PERF_RECEIVES_MAX];
	uint32_t serve_head, serve_tail;
	uint64_t serve_until_ns;

	/* Filled in and posted, never kept. */
	struct ibv_recv_wr wr[PERF_BATCH];
	struct ibv_sge sge[PERF_BATCH];
};

/*
 * Gives the session its SRQ; its layout and memory exist. `home` points to the one that all
 * sessions share, created here if NULL; home == NULL: the session gets its own. False after
 * perf_session_fail().
 */
bool perf_srq_take(struct perf_session *s, struct perf_srq **home);
/* Call it when the queue pairs and their completions are gone; NULL does nothing. */
void perf_srq_put(struct perf_srq *q);

/* Posts all receives, once. This and what follows return 0 or why posting failed. */
int perf_srq_arm(struct perf_srq *q);
/* Returns a receive that was consumed: it is soon posted again. */
int perf_srq_give_back(struct perf_srq *q, uint32_t entry);
/* Serves a message for service_us, one after the other; then posts its receive. */
void perf_srq_serve_later(struct perf_srq *q, uint32_t entry);
int perf_srq_serve(struct perf_srq *q);

#endif
