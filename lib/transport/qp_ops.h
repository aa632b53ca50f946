/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_QP_OPS_H
#define UR_TRANSPORT_QP_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "transport/attr.h"
#include "transport/qp_state.h"
#include "wire/drop.h"
#include "wire/psn.h"

struct ur_packet;
struct ur_qp;
struct ur_spray_qp;
struct ur_tx;

/*
 * What the kinds of queue pairs differ in (docs/design/transport.md): the types of IBA, and the modes of RC.
 * There is one constant table, in qp_ops.c; a queue pair points to its row. The row is chosen when the queue
 * pair is created and by ur_qp_set_mode(). All other code asks the row and tests neither type nor mode.
 *
 * Every operation is there in every row, unless it is said to be optional (NULL).
 *
 * Thread class: the table is constant; the operations are the worker's.
 */
struct ur_qp_numbers {
	struct ur_psn una, nxt, max; /* requests: [una, max) are in flight, nxt is sent next */
	uint32_t qkey;
	uint8_t retries; /* left before the peer counts as dead */
};

struct ur_qp_ops {
	enum ibv_qp_type type;
	enum ur_mode mode;
	enum ur_service service; /* column of the table of states */

	/* ---- properties ---- */

	uint8_t transport; /* top bits of the opcodes that it sends and takes in (IBA 9.2.1) */
	/* Those of its other modes, whose packets are dropped for another reason; its own: there is none. */
	uint8_t other_transport;
	bool connected;	    /* has one peer and a path; else every WQE names an address handle */
	bool reliable;	    /* a request completes when it was answered; else when it has left */
	bool asks_delay;    /* its probes may ask switches for their delays (PACE-NET-01) */
	bool keeps_early;   /* requests beyond ePSN are kept whole (reorder.h) */
	uint32_t opcodes;   /* bit n: enum ibv_wr_opcode n may be posted */
	size_t sending_end; /* bytes of struct ur_qp up to the end of the requester's state */

	/* ---- life ---- */

	/* The state of this kind, which holds nothing, as create leaves it. */
	void (*init)(struct ur_qp *qp);
	/* Gives back what the state of this kind holds. */
	void (*release)(struct ur_qp *qp);
	/* The first PSN to send is known, the first to be expected (qp->rsp.epsn). */
	void (*set_first_psn)(struct ur_qp *qp, struct ur_psn first);
	void (*set_epsn)(struct ur_qp *qp);
	/* Retries and timeouts in qp->attr have changed. */
	void (*set_limits)(struct ur_qp *qp);
	/* READs and atomics that are remembered, now `cnt`; nothing is being answered. */
	void (*resize)(struct ur_qp *qp, uint8_t cnt);
	/* Optional. The queue pair went to RTR: roles that were agreed on begin. */
	void (*connect)(struct ur_qp *qp, uint64_t now_ns);
	/* Nothing is in flight any more, nothing will be sent again. */
	void (*stop_sending)(struct ur_qp *qp);
	/* Nothing is answered any more but what goes before a fatal NAK, and that. */
	void (*stop_responding)(struct ur_qp *qp);
	/* Completes the receive under way with `status`, if there is one, and flushes those bound beyond it. */
	void (*abort)(struct ur_qp *qp, enum ibv_wc_status status);
	/* Asserts what is stated of the state of this kind. */
	void (*validate)(const struct ur_qp *qp);

	/* ---- sending ---- */

	/* Whether next() could make a packet now, or take a WQE forward. */
	bool (*ready)(const struct ur_qp *qp);
	/* Optional. Makes the next packets of the send queue if they are the commonest, see ur_requester_burst(). */
	unsigned (*burst)(struct ur_qp *qp, struct ur_tx *tx, unsigned cap, uint32_t *bytes,
			  uint64_t now_ns);
	/* Makes the next packet of the send queue, see ur_requester_next(). */
	bool (*next)(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes);
	/* No other message is begun: asks for the ACK of what was sent, if no packet did. */
	void (*drain)(struct ur_qp *qp);
	/* No request is in flight. */
	bool (*is_idle)(const struct ur_qp *qp);
	/* Optional. The send queue goes on the lane of what it sends next. */
	void (*follow_sl)(struct ur_qp *qp);
	/* A message that takes a receive of the peer may begin, admission aside. */
	bool (*asks)(const struct ur_qp *qp);
	/*
	 * CC-WINDOW-02. Numbers that are on their way, or whose answers are: a READ counts as what it asks for.
	 * While the peer has no receive, nothing is: it dropped what followed.
	 */
	uint32_t (*in_flight)(const struct ur_qp *qp);
	/* Grows by one with each number that is acknowledged, whichever sequence it is of. */
	uint32_t (*acked)(const struct ur_qp *qp);

	/* ---- time ---- */

	/* When expire() has something to do; UR_NEVER. */
	uint64_t (*deadline)(const struct ur_qp *qp);
	void (*expire)(struct ur_qp *qp, uint64_t now_ns);
	/*
	 * Timers that are due start afresh: the peer could not answer. `held`: nothing was sent to it, what its
	 * answers are measured by included.
	 */
	void (*rearm)(struct ur_qp *qp, bool held, uint64_t now_ns);

	/* ---- packets taken in; the queue pair may fail, see ur_qp_fail() ---- */

	enum ur_drop (*request)(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
	/*
	 * A frame that passed ur_predict_path(), with `bytes` from BTH to ICRC. True: it is the request that was
	 * predicted, and was executed. False: nothing was done; the frame is to be decoded.
	 */
	bool (*predicted)(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes, uint64_t now_ns);
	/* The same for an answer: the ACK or READ response that was predicted. */
	bool (*predicted_answer)(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				 uint64_t now_ns);
	/* Responses, ACKs, NAKs and NOTIFYs. */
	enum ur_drop (*response)(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);

	/* ---- answers ---- */

	/* Makes the next packet of the responses queued; false: there is none (the QP may have failed). */
	bool (*response_next)(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns);
	/* Makes the ACK or NAK owed; false: none may leave. */
	bool (*ack_next)(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns);
	/* Answers are queued or READs and atomics are being executed. */
	bool (*is_answering)(const struct ur_qp *qp);
	/* The peer is going to be left alone: what an ACK kept back is acknowledged. */
	void (*ack_all)(struct ur_qp *qp);

	/* ---- queries ---- */

	struct ur_qp_numbers (*numbers)(const struct ur_qp *qp);
	/* The paths that it sprays over; NULL: it has only its own. */
	const struct ur_spray_qp *(*paths)(const struct ur_qp *qp);
};

/* The row for a type, with its mode (UR_MODE_GBN but for RC); NULL: there is none. */
const struct ur_qp_ops *ur_qp_ops_of(enum ibv_qp_type type, enum ur_mode mode);

#endif
