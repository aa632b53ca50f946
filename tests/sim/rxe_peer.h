/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_RXE_PEER_H
#define UR_SIM_RXE_PEER_H

#include "objects.h"

/*
 * A foreign peer: the responder of the Linux software RoCE driver (rdma_rxe, kernel 6.1) as far as
 * a requester can tell, on an endpoint whose engine is not used. It shares nothing with the engine
 * but the encoders of wire/. What it does, and what a requester has to live with:
 *
 *  - requests are served one after the other, each takes `service_ns`, and so does each packet of a
 *    READ's answer, which nothing interrupts;
 *  - a packet beyond the expected PSN is dropped. The first one draws a sequence NAK, and then
 * there is silence until the expected packet comes, whatever else comes;
 *  - a SEND or WRITE is acknowledged if it asks for that, each one, nothing is coalesced; without
 *    AckReq never. A duplicate is acknowledged at once, with the newest SEND, WRITE or atomic;
 *  - a duplicate READ is answered if its first PSN lies in one of the `dest_rd_atomic` READs and
 *    atomics remembered, and its addresses in what is left of it: a part asked for again cuts off
 *    what is before it, for ever. Else it is dropped. The answer to a part begins with a MIDDLE;
 *  - a READ more than are remembered is no error: the oldest is forgotten;
 *  - without a receive an RNR NAK, and the rest of the message draws a sequence NAK;
 *  - no credits.
 *
 * What would end the connection fails the case: nothing here sends such a request.
 */
#define RXE_RES_MAX   128
#define RXE_QUEUE_MAX 4096

struct rxe_res {
	bool used, atomic, replay, begun;
	uint32_t first, last, cur; /* PSNs; [first, last] */
	uint64_t va_org, va;
	uint32_t length, resid;
	uint64_t original;
};

struct rxe_peer_attr {
	struct ur_qpn qpn;
	uint32_t psn; /* of its own requests; it makes none */
	uint8_t dest_rd_atomic, min_rnr_timer;
	uint64_t service_ns;
	uint32_t stall; /* 65536ths: a packet after which it stands still for stall_ns at most */
	uint64_t stall_ns;
};

struct rxe_recv {
	uint8_t *p;
	uint32_t len;
};

struct rxe_peer {
	struct rxe_peer_attr attr;
	struct sim_ep *ep;
	struct sim_qp addr; /* what the other side connects to */
	struct ur_path path;
	struct ur_qpn dqpn;
	unsigned mtu_shift;
	struct sim_mr mr; /* all of its memory, open to the other side */

	uint32_t psn, ack_psn, msn;
	int opcode; /* of the last request in order; -1: between messages */
	bool nak_sent;
	uint64_t va;
	uint32_t resid;
	struct rxe_res res[RXE_RES_MAX], *replying;
	unsigned res_head;
	struct ur_reth replying_reth;

	/* Receives [head, tail) are posted; a message under way fills the one at head. */
	struct rxe_recv recv[1024];
	unsigned recv_head, recv_tail, placed;
	void (*received)(void *arg, struct rxe_recv r, uint32_t len);
	void *arg;

	/* Frames [head, tail) wait to be served. */
	struct {
		uint8_t *frame;
		uint32_t len;
	} queue[RXE_QUEUE_MAX];
	unsigned q_head, q_tail;
	bool serving;

	uint64_t out_of_sequence, duplicates, ignored_reads, sequence_naks;
};

/* On endpoint `ep`, with memory of `bytes`. Nothing is connected yet. */
void rxe_peer_init(struct rxe_peer *x, struct sim_ep *ep, const struct rxe_peer_attr *attr,
		   size_t bytes);
/* Connects an RC queue pair in RESET to it. */
void rxe_peer_connect(struct rxe_peer *x, struct sim_qp *qp);
void rxe_peer_post_recv(struct rxe_peer *x, uint8_t *p, uint32_t len);
void rxe_peer_free(struct rxe_peer *x);

#endif
