/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_CM_PEER_H
#define INTEROP_CM_PEER_H

#include <netinet/in.h>

#include "uroce/cm.h"

/*
 * The counterparts of rping, ucmatose and udaddy of rdmacm-utils, with uroce's API. An error ends
 * the program: `die` prints the reason.
 */
struct peer {
	struct ibv_context *ctx;
	struct uroce_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct uroce_cm_id *listener, *id;
	struct sockaddr_storage addr; /* of the other end, for clients */
	bool server;
	unsigned count, bytes; /* messages and their size */
};

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* `rc` must be 0. */
void must(int rc, const char *what);

/* Creates the queue pair and moves it to INIT, so that receives can be posted before it is connected. */
void peer_make_qp(struct peer *p, enum ibv_qp_type type, uint32_t qkey);
struct ibv_mr *peer_memory(struct peer *p, void *mem, size_t bytes);

/* The next event, which must have this type. The caller acknowledges it. */
struct uroce_cm_event *peer_event(struct peer *p, enum uroce_cm_event_type type);
void peer_await(struct peer *p, enum uroce_cm_event_type type);

/*
 * Establishes a connection: listens, or connects repeatedly until there is a listener. before_rts()
 * posts receives. The server prints "listening".
 */
void peer_connect(struct peer *p, uint16_t port, void (*before_rts)(struct peer *p));
/* Disconnects, or waits until the other side disconnects. */
void peer_end(struct peer *p, bool by_us);

/* The next completion, which must be a success. */
struct ibv_wc peer_completion(struct peer *p, struct ibv_cq *cq);
void peer_receive(struct peer *p, struct ibv_mr *mr, void *buf, unsigned bytes);
void peer_post(struct peer *p, struct ibv_send_wr *wr, struct ibv_mr *mr, void *buf,
	       unsigned bytes);

void run_rping(struct peer *p);
void run_ucmatose(struct peer *p);
void run_udaddy(struct peer *p);

#endif
