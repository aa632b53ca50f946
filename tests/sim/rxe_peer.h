/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_RXE_PEER_H
#define UR_SIM_RXE_PEER_H

#include "objects.h"

/*
 * A model of another implementation: the responder of the Linux software RoCE driver (rdma_rxe,
 * kernel 6.1), as a requester sees it. It runs on an endpoint whose engine is not used, and shares
 * only the encoders of wire/ with the engine. Its behaviour:
 *
 *  - It serves requests one after the other. Each takes `service_ns`, and so does each packet of a
 *    READ response, which nothing interrupts.
 *  - It drops packets beyond the expected PSN. The first one causes a sequence NAK; after that there
 *    is no answer until the expected packet arrives.
 *  - It acknowledges each SEND or WRITE that has AckReq, without coalescing, and no others. A
 *    duplicate is acknowledged at once, with the PSN of the newest SEND, WRITE or atomic.
 *  - It answers a duplicate READ if its first PSN is in one of the `dest_rd_atomic` READs and atomics
 *    that it remembers, and its addresses are in the remaining range of that READ: a request for a
 *    part removes everything before the part for good. Otherwise the duplicate is dropped. The
 *    response to a part begins with a Middle.
 *  - A READ beyond those that it can record is no error; the oldest record is dropped.
 *  - Without a posted receive it sends an RNR NAK, and a sequence NAK for the rest of the message.
 *  - It does not send credits.
 *
 * A request that would end the connection fails the case, because no test sends one.
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
	uint32_t psn; /* first PSN of its own requests, of which it sends none */
	uint8_t dest_rd_atomic, min_rnr_timer;
	uint64_t service_ns;
	uint32_t
		stall; /* chance, in 1/65536, that it pauses after a packet, for at most stall_ns */
	uint64_t stall_ns;
};

struct rxe_recv {
	uint8_t *p;
	uint32_t len;
};

struct rxe_peer {
	struct rxe_peer_attr attr;
	struct sim_ep *ep;
	struct sim_qp addr; /* the address that the other side connects to */
	struct ur_path path;
	struct ur_qpn dqpn;
	unsigned mtu_shift;
	struct sim_mr mr; /* all of its memory, accessible to the other side */

	uint32_t psn, ack_psn, msn;
	int opcode; /* opcode of the last request in order; -1: between messages */
	bool nak_sent;
	uint64_t va;
	uint32_t resid;
	struct rxe_res res[RXE_RES_MAX], *replying;
	unsigned res_head;
	struct ur_reth replying_reth;

	/* Receives [head, tail) are posted. A message being received fills the one at head. */
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

/* Creates the peer on endpoint `ep`, with `bytes` of memory, unconnected. */
void rxe_peer_init(struct rxe_peer *x, struct sim_ep *ep, const struct rxe_peer_attr *attr,
		   size_t bytes);
/* Connects an RC queue pair in RESET to the peer. */
void rxe_peer_connect(struct rxe_peer *x, struct sim_qp *qp);
void rxe_peer_post_recv(struct rxe_peer *x, uint8_t *p, uint32_t len);
void rxe_peer_free(struct rxe_peer *x);

#endif
