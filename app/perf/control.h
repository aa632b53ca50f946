/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_CONTROL_H
#define PERF_CONTROL_H

#include "endpoint.h"
#include "proto.h"

/*
 * The control connection: an RC queue pair that carries the messages of proto.h. It also
 * detects a dead peer: a PING every second then fails.
 */
#define PERF_CONTROL_SLOTS 16

struct perf_control {
	struct perf_endpoint *ep;
	struct uroce_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;	    /* PERF_CONTROL_SLOTS to receive into, as many to send from */
	unsigned tx_busy;   /* bit i: slot i is being sent */
	uint64_t pinged_ns; /* when the last PING was sent */
	bool up;	    /* connected */
	bool dead;	    /* a work request failed: the peer is gone */
	enum ibv_wc_status why;
};

struct perf_received {
	struct perf_header header;
	uint8_t payload[PERF_MSG_BYTES];
};

/* Makes the objects; false and errno on failure (then perf_control_destroy() is still to be
 * called). */
bool perf_control_create(struct perf_control *c, struct perf_endpoint *ep);
/* Posts the receives: after connect or accept, which leave the state RESET. */
bool perf_control_arm(struct perf_control *c);
/* Destroys the objects; `id` as well. */
void perf_control_destroy(struct perf_control *c);

/* False when the connection is dead or no slot is free. */
bool perf_control_send(struct perf_control *c, enum perf_message kind, uint32_t seq,
		       const void *payload, size_t bytes);

/* True if a message has arrived; PINGs are consumed. Also sends the PING that is due. */
bool perf_control_poll(struct perf_control *c, struct perf_received *r);

/* Reasons of a rejection, as in the IBA. */
#define PERF_REJECT_NO_QP      1 /* none is free right now */
#define PERF_REJECT_NO_SERVICE 8 /* by CM itself: no listener there */
#define PERF_REJECT_CONSUMER   28

/* The parameters of every connection of this program. */
struct uroce_conn_param perf_conn_param(const struct perf_hello *hello, uint8_t *private_data,
					const struct perf_params *p);

#endif
