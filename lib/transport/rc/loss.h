/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_LOSS_H
#define UR_TRANSPORT_RC_LOSS_H

#include "transport/rc/request.h"

/*
 * The interface between what every RC requester does (requester_template.h) and a loss engine: what is
 * lost, what is sent next, and how much may be in flight. Each loss engine fills it with static inline
 * functions in a header of its own, and the requester is compiled once for each:
 *
 *   loss_gbn.h        go-back-N and mode reorder, over recovery.h
 *   loss_selective.h  extended mode, over selective.h
 *   loss_uc.h         UC, which loses nothing it knows of
 *
 * What the completer needs of a loss engine is in rc/loss_answers.h. State of the send queue that both share
 * lies in qp->req. WQE `cur` is the one that is sent from next.
 *
 *   loss_is_reliable(qp)         answers are expected at all (not UC)
 *   loss_next_psn(qp)            PSN of the next packet of WQE `cur`
 *   loss_is_idle(qp)             no request waits for an acknowledgement
 *   loss_is_done(qp)             neither that, nor is anything to be sent again; all the credit is there
 *   loss_is_begun(qp)            WQE `cur` has sent packets, now or in an earlier pass
 *   loss_holds(qp)               nothing new may be sent, for now
 *   loss_has_answers_due(qp)     READs or atomics are unanswered
 *   loss_has_credit(qp, class)   another packet of this class may be in flight
 *   loss_data_credit(qp)         how many more packets of data may be; only where requests are made in bursts
 *   loss_may_read(qp, wqe)       another READ or atomic request may be: its answer, and its place at the peer
 *   loss_is_held(qp)             admission may hold back a message that begins
 *   loss_before_new(qp, may_go_on)  then: WQE `cur` is looked at next, and may be worked on
 *   loss_may_begin(qp)           admission lets it
 *   LOSS_PROBES                  whether it probes at all
 *   loss_may_probe(qp)           a probe may go although nothing else may
 *   loss_is_alone(qp, now)       no other packet has the stamp of now
 *   loss_sent_probe(qp, tx, alone, now)  the probe was made
 *
 *   LOSS_TWICE                   whether READ requests leave twice while packets are being lost
 *   loss_sent_twice(qp)          the second one was made
 *
 *   loss_wants_ack(qp)           the next packet is to ask for an ACK, or too few would
 *   loss_stalls_before(qp, wqe)  the WQE behind `cur` will wait for an ACK, for reasons of the loss engine
 *
 *   loss_number(qp, wqe, class)  the WQE begins: numbers of its own; returns how many messages it counts for
 *   loss_sent(qp, ackreq, joins, now)  a packet of payload was made; `joins`: in a burst, and not the first of it
 *   loss_sent_read(qp, n, now)   a READ request for n responses was made
 *   loss_sent_atomic(qp, now)    an atomic request was made
 *   loss_after_send(qp, now)     any packet was made
 *
 *   loss_is_troubled(qp)         cheap: loss_next_again() may have something
 *   loss_is_quiet(qp)            it has nothing, and will have nothing after packets of one message each (bursts)
 *   loss_next_again(qp, again)   what is sent before anything new; false: nothing
 *   LOSS_RSP                     type of response numbers: ur_psn where a response has a PSN of its own, ur_rspn
 *   loss_find(qp, psn)           WQE that has this PSN
 *   loss_find_rsp(qp, nr)        WQE that has this response number
 *   loss_first_response(wqe)     its first response number
 *   loss_request_psn(qp, wqe, i) PSN of the request for its response i
 *   loss_reask(qp, wqe, nr, most, now)  responses [nr, nr + returned) are asked for again, at most `most`
 *   loss_resent(qp, psn, nr, n, now)    the request `psn` was made again; it asks for responses [nr, nr + n)
 *   loss_ask_for_ack(qp)         what is in flight must be acknowledged; true: a packet has to be sent for that
 *
 * Thread class: the QP's worker.
 */

/* The arithmetic of response numbers (wire/number.h). */
#define LOSS_RSP_PASTE(type, name) type##name
#define LOSS_RSP_FN(type, name)	   LOSS_RSP_PASTE(type, name)

static inline struct LOSS_RSP loss_rsp_add(struct LOSS_RSP a, uint32_t n)
{
	return LOSS_RSP_FN(LOSS_RSP, _add)(a, n);
}

static inline int32_t loss_rsp_diff(struct LOSS_RSP a, struct LOSS_RSP b)
{
	return LOSS_RSP_FN(LOSS_RSP, _diff)(a, b);
}

struct again {
	enum {
		AGAIN_REQUEST, /* the packet with that PSN */
		AGAIN_RESPONSES, /* a request for that response and those behind it that are missing */
		AGAIN_TWICE,	 /* the READ request that has just left */
		AGAIN_PROBE,	 /* an empty packet that asks what has arrived */
	} what;
	struct ur_psn psn;   /* AGAIN_REQUEST */
	struct LOSS_RSP rsp; /* AGAIN_RESPONSES, AGAIN_TWICE */
	uint32_t cnt;	     /* AGAIN_TWICE: responses */
	bool is_new;	     /* AGAIN_TWICE: it was no repeat */
};

/* Part of a READ, one request: responses [first, first + n) of the message. */
struct read_part {
	uint32_t first, n;
	uint32_t bytes;
	bool last; /* of the message */
};

/* RC-REQ-PART-01. From response `first` on, to the next multiple of read_psns or the end. */
static inline struct read_part read_part(const struct ur_qp *qp, const struct ur_wqe *wqe,
					 uint32_t first)
{
	uint32_t each = qp->req.read_psns, left = wqe->length - (first << qp->mtu_shift);
	struct read_part part = {.first = first, .n = each - (first & (each - 1))};

	part.bytes = part.n << qp->mtu_shift;
	if (left <= part.bytes) {
		part.last = true;
		part.bytes = left;
		part.n = left ? (left + (1u << qp->mtu_shift) - 1) >> qp->mtu_shift : 1;
	}
	return part;
}

/* The SSN that the WQE has, or that it gets when it begins. */
static inline struct ur_msn ssn_of(const struct ur_requester *req, const struct ur_wqe *wqe)
{
	return wqe->flags & UR_WQE_BEGUN ? wqe->ssn : req->ssn;
}

/* RC-REQ-CREDIT-01, EXT-REQ-CREDIT-01. The peer has a receive for the message. */
static inline bool has_receive(const struct ur_requester *req, struct ur_msn ssn)
{
	return !req->flow_control || !ur_msn_lt(req->lsn, ssn);
}

#endif
