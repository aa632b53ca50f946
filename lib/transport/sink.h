/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SINK_H
#define UR_TRANSPORT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct ur_cq;

/* Callbacks from an engine to its owner. They run on the worker, inside a call on the engine, and must not
 * call the engine. NULL stands for a function that does nothing. */
struct ur_sink {
	void *ctx;
	/* An armed CQ of this worker has a completion (write its event file descriptor). */
	void (*completion)(void *ctx, struct ur_cq *cq);
	/* An asynchronous event of the object whose `user` this is (CQ, QP or SRQ by `type`). */
	void (*async)(void *ctx, enum ibv_event_type type, void *user);
	/* A completion for a CQ of another worker: hand it to that worker's ur_engine_complete(). */
	void (*cross_worker)(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited);
};

#endif
