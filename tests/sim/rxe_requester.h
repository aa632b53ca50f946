/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_RXE_REQUESTER_H
#define UR_SIM_RXE_REQUESTER_H

#include "objects.h"

/*
 * The other half of a foreign peer: the requester of the Linux software RoCE driver (rdma_rxe,
 * kernel 6.1) as far as a responder can tell. It shares nothing with the engine but the encoders of
 * wire/. What a responder has to live with:
 *
 *  - requests complete by PSN: an ACK at the last PSN of the oldest request completes it, whatever
 * it is. A READ is done then, with the bytes that were there before;
 *  - an ACK in the midst of a READ's responses ends the connection, and the READ, whose status was
 * never set, completes with success;
 *  - responses of the oldest READ are taken in order, those beyond a missing one are ignored.
 * Something beyond the READ's last PSN makes it go back;
 *  - a sequence NAK makes it go back and costs a retry. Until an ACK or response brings progress,
 * further NAKs do nothing, and the timeout is awaited;
 *  - a READ that was answered in part is asked for again from there on; the answer may begin with
 * First or Only at that PSN, or go on with Middle or Last;
 *  - an ACK at the last PSN of a request of which it has sent only a part again counts as the response that it
 *    expects, but completes nothing. With nothing else expected its timer does not run any more: it is
 *    lost if the ACK after the last packet is lost. When it goes back then it takes up the request behind its end,
 *    with a message of no bytes that takes a PSN;
 *  - AckReq is set on the last packet of a message and on every 65th, 128 PSNs are under way at
 * most.
 */
#define RXE_WQES 64

enum rxe_state { RXE_POSTED, RXE_SENDING, RXE_PENDING };

struct rxe_wqe {
	bool read;
	uint64_t va; /* at the peer */
	uint32_t length;
	uint8_t *local;
	enum rxe_state state;
	struct ur_psn first, last; /* not POSTED */
	uint32_t done;		   /* bytes sent of a WRITE, received of a READ */
};

struct rxe_requester {
	struct sim_ep *ep;
	struct sim_qp addr; /* what the other side connects to */
	struct ur_path path;
	struct ur_qpn dqpn;
	unsigned mtu_shift;
	uint32_t rkey;
	uint8_t retry_cnt;
	uint64_t timeout_ns;

	struct rxe_wqe wqe[RXE_WQES];
	unsigned head, tail, cur; /* [head, tail) not complete, `cur` is sent next */
	struct ur_psn psn;	  /* of the next packet */
	struct ur_psn expected;	  /* of the next response */
	bool in_read;		  /* First or Middle came last */
	uint8_t retries;
	bool started_retry, sending;
	unsigned unasked; /* packets since AckReq */
	uint64_t deadline_ns;
	bool failed;
	const char *why; /* failed: how */

	/* A request is complete, in order, with success. */
	void (*completed)(struct rxe_requester *x, unsigned wqe);
	void *arg;
	uint64_t retried, timeouts;
};

void rxe_requester_init(struct rxe_requester *x, struct sim_ep *ep, uint32_t psn, uint8_t retry_cnt,
			uint64_t timeout_ns);
/* Connects an RC queue pair in RESET to it, whose memory has `rkey`. */
void rxe_requester_connect(struct rxe_requester *x, struct sim_qp *qp, uint32_t rkey);
/* Posts a READ or WRITE of `length` bytes; returns its index. */
unsigned rxe_requester_post(struct rxe_requester *x, bool read, uint8_t *local, uint64_t va,
			    uint32_t length);

#endif
