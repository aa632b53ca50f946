/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_RXE_REQUESTER_H
#define UR_SIM_RXE_REQUESTER_H

#include "objects.h"

/*
 * A model of another implementation: the requester of the Linux software RoCE driver (rdma_rxe,
 * kernel 6.1), as a responder sees it. It shares only the encoders of wire/ with the engine. Its
 * behaviour, which a responder must cope with:
 *
 *  - Requests complete by PSN: an ACK of the last PSN of the oldest request completes it, whatever its
 *    type. A READ then completes with the bytes that were in memory before.
 *  - An ACK in the middle of READ responses ends the connection. The READ, whose status was never set,
 *    completes with success.
 *  - Responses of the oldest READ are accepted in order; those after a missing one are ignored. A
 *    packet beyond the last PSN of the READ makes the requester go back.
 *  - A sequence NAK makes it go back and costs a retry. Until an ACK or response brings progress, it
 *    ignores further NAKs and waits for the timeout.
 *  - After a partial response it requests the rest of a READ again. The new response may begin with
 *    First or Only at that PSN, or continue with Middle or Last.
 *  - While it is retransmitting a request and has sent only a part of it, an ACK of the last PSN of
 *    that request counts as the expected response, but completes nothing. If nothing else is expected,
 *    the timer no longer runs, and the connection hangs if the ACK of the last packet is lost. If it
 *    then goes back, it continues after the end of the request, with an empty message that takes a
 *    PSN.
 *  - It sets AckReq on the last packet of a message and on every 65th packet. At most 128 PSNs are
 *    unacknowledged.
 */
#define RXE_WQES 64

enum rxe_state { RXE_POSTED, RXE_SENDING, RXE_PENDING };

struct rxe_wqe {
	bool read;
	uint64_t va; /* address at the peer */
	uint32_t length;
	uint8_t *local;
	enum rxe_state state;
	struct ur_psn first, last; /* valid unless POSTED */
	uint32_t done;		   /* bytes of a WRITE sent, of a READ received */
};

struct rxe_requester {
	struct sim_ep *ep;
	struct sim_qp addr; /* the address that the other side connects to */
	struct ur_path path;
	struct ur_qpn dqpn;
	unsigned mtu_shift;
	uint32_t rkey;
	uint8_t retry_cnt;
	uint64_t timeout_ns;

	struct rxe_wqe wqe[RXE_WQES];
	unsigned head, tail, cur; /* [head, tail) are incomplete, `cur` is sent next */
	struct ur_psn psn;	  /* PSN of the next packet */
	struct ur_psn expected;	  /* PSN of the next response */
	bool in_read;		  /* the last response was First or Middle */
	uint8_t retries;
	bool started_retry, sending;
	unsigned unasked; /* packets since the last AckReq */
	uint64_t deadline_ns;
	bool failed;
	const char *why; /* reason of a failure; NULL: none */

	/* Called when a request completes with success, in order. */
	void (*completed)(struct rxe_requester *x, unsigned wqe);
	void *arg;
	uint64_t retried, timeouts;
};

void rxe_requester_init(struct rxe_requester *x, struct sim_ep *ep, uint32_t psn, uint8_t retry_cnt,
			uint64_t timeout_ns);
/* Connects an RC queue pair in RESET, whose memory has `rkey`, to the requester. */
void rxe_requester_connect(struct rxe_requester *x, struct sim_qp *qp, uint32_t rkey);
/* Posts a READ or WRITE of `length` bytes; returns its index. */
unsigned rxe_requester_post(struct rxe_requester *x, bool read, uint8_t *local, uint64_t va,
			    uint32_t length);

#endif
