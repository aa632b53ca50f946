/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_QP_H
#define UR_TRANSPORT_QP_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "sched/emux.h"
#include "timer/wheel.h"
#include "transport/core.h"
#include "transport/attr.h"
#include "transport/qp_ops.h"
#include "transport/rc/ext_state.h"
#include "transport/rc/pass.h"
#include "transport/loss/read_gap.h"
#include "transport/loss/recovery.h"
#include "transport/rc/reorder.h"
#include "transport/repeats.h"
#include "transport/srq.h"
#include "transport/wq.h"
#include "wire/packet.h"
#include "wire/path.h"
#include "wire/tx.h"

/*
 * A queue pair: identity, the requester's state, the responder's state. Files:
 *
 *   qp_ops.c      what the kinds of queue pairs differ in: one table
 *   qp.c          life: modify, error, flush, reset
 *   send_queue.c  what a send WQE is, and how it completes
 *   loss/         what is lost, and when; numbers and times only
 *   rc/           requester, completer, responder and responses of RC and UC (docs/design/rc.md)
 *   ud/           datagrams
 *
 * Thread class: the QP's worker, but for posted_state and pending, which posters share.
 */

/* A READ or atomic request that the responder remembers (IBA 9.7.4.1.3), to answer and to replay.
 */
struct ur_rd_res {
	struct ur_psn first; /* PSNs [first, first + psns) */
	uint32_t psns;
	bool atomic;
	bool queued; /* in the response queue */
	bool repeat; /* queued because of a duplicate */
	uint32_t rkey;
	uint64_t va;
	uint32_t length;   /* bytes */
	uint32_t start;	   /* byte at which this answer starts: 0, or more for a replay */
	uint32_t from, to; /* bytes still to be sent, [from, to) */
	uint64_t original; /* atomic: the value found */
};

/* What the responder owes, bits; the ACK goes first. */
enum ur_ack_owed {
	UR_ACK_NONE = 0,
	UR_ACK_OWED = 1, /* an ACK of what has been executed */
	UR_NAK_OWED = 2, /* the syndrome in nak_syndrome, for nak_psn */
};

/* RC-RESP-ACK-04. SEND and WRITE packets that a standard responder executes without an ACK at most.
 */
#define UR_ACK_EVERY 32

enum ur_msg_kind {
	UR_MSG_NONE, /* between messages */
	UR_MSG_SEND,
	UR_MSG_WRITE,
	UR_MSG_SKIP, /* UC: the rest of a broken message is dropped */
};

/* What sends has of its own, whatever the transport and the mode. */
struct ur_requester {
	/* Free-running WQE indices: [head, cur) wholly sent, not complete; cur: being sent. */
	uint32_t head, cur;
	uint32_t cur_off;  /* bytes of WQE `cur` that were sent or asked for */
	struct ur_msn ssn; /* SSN of the next request message; standard headers: from 1 */
	struct ur_msn lsn; /* SENDs up to this SSN have credit */
	bool flow_control; /* the last ACK carried a credit code */
	bool ack_seen;	   /* an ACK came: whether there is flow control is known */
	uint8_t local_err; /* enum ibv_wc_status WQE `cur` fails with once it is the oldest */
	uint8_t max_rd_atomic;
	uint16_t read_psns;	    /* PSNs a READ request asks for at most, a power of two */
	bool keeps_timer;	    /* it sends more often than its timer expires: TIMER-KEEP-01 */
	uint16_t since_ackreq;	    /* packets since AckReq was last set */
	uint16_t ackreq_every;	    /* the engine's; outlives RESET */
	struct ur_stamp last_stamp; /* extended mode: of the last packet made; outlives RESET */
};

/* UC and UD: nothing is answered, so nothing is awaited. */
struct ur_unreliable_requester {
	struct ur_psn nxt; /* PSN of the next packet */
};

/* The loss engine of modes gbn and reorder, as far as it knows WQEs. */
struct ur_gbn_requester {
	struct ur_recovery
		rec;	   /* WQEs [head, cur) and bytes [0, cur_off) of cur are before rec.nxt */
	uint8_t rd_out;	   /* READ and atomic requests of [una, nxt) that are not answered */
	bool ackreq_again; /* the packet at nxt goes again for its AckReq */
	/* Mode reorder. */
	bool nak_owed; /* the peer misses `nak_psn`, beyond the missing response at una */
	bool has_reasked;
	struct ur_psn executed; /* the peer has executed every request before it; una or newer */
	struct ur_read_gap
		*gap; /* responses beyond una; NULL: none, and none is known to be lost */
	struct ur_reo_window reo_window; /* with missing responses */
	struct ur_psn nak_psn;
	struct ur_psn reasked; /* has_reasked: the first of the responses asked for again last */
};

/* What receives has of its own, whatever the transport and the mode. */
struct ur_responder {
	struct ur_psn epsn;
	struct ur_msn msn; /* messages executed */
	uint8_t kind;	   /* enum ur_msg_kind of the message under way */
	bool nak_sent;	   /* the gap at ePSN was reported; silence until it is filled */
	uint8_t ack;	   /* enum ur_ack_owed, bits */
	uint8_t nak_syndrome;
	struct ur_psn nak_psn; /* ePSN while the QP is not in ERR */
	uint32_t placed;       /* standard headers: bytes placed of the message under way */
	uint8_t min_rnr_timer;
	/* READ and atomic requests remembered, a ring of res_cnt; the newest is at res_next - 1. */
	uint8_t res_cnt, res_next;
	uint8_t q_head, q_cnt; /* standard headers */
	bool has_again;	       /* RC: `again` is set */
	uint16_t ans_cap;      /* mode extended */
	uint32_t again;	       /* the first request that the peer repeats, see repath.h */
	struct ur_rd_res *res;
	struct ur_rwqe *wqe;	 /* the receive bound to the message, in the RQ or in srq_wqe */
	struct ur_rwqe *srq_wqe; /* SRQ: where the taken element is kept */
	/* RC: what is to be answered. ans_cap answers of extended mode, or res_cnt indices into res. */
	union {
		struct ur_ext_answer *ans; /* see ext_state.h */
		uint8_t *q; /* a ring, [q_head, q_head + q_cnt), to be sent in this order */
	};
};

/* The responder of standard headers. */
struct ur_gbn_responder {
	struct ur_reorder_qp reorder; /* mode reorder: packets beyond ePSN */
	struct ur_pass pass;
	struct ur_psn data;   /* the newest SEND or WRITE packet executed */
	struct ur_psn beyond; /* nak_sent: the newest PSN dropped for the gap */
	uint16_t unacked;     /* SEND and WRITE packets executed since the last acknowledgement */
	uint8_t silenced;  /* RC-RESP-ACK-07: passes of the peer that were not answered, in a row */
	bool data_old : 1; /* `data` is too far back to name */
	bool several : 1;  /* the last message that ended had more than one packet */
	struct ur_repeats repeats;
	struct ur_reth write; /* of the WRITE under way */
};

enum ur_timer_kind {
	UR_TIMER_QP = 1,
	UR_TIMER_DEST,
	UR_TIMER_POOL, /* of a receive pool */
	UR_TIMER_SST,  /* of an entry of the service status table */
};

/* The responder of datagrams. */
struct ur_ud_responder {
	uint32_t qkey;
};

/* Attributes that only a query asks for, or a change of state. */
struct ur_qp_attr {
	struct ibv_ah_attr ah_attr;
	uint32_t rq_psn;
	uint16_t pkey_index;
	uint8_t path_mtu; /* enum ibv_mtu */
	uint8_t max_dest_rd_atomic;
	uint8_t port_num;
	uint8_t timeout, retry_cnt, rnr_retry;
	uint8_t en_sqd_async_notify;
};

/*
 * What packets in order touch comes first: of both sides, of receiving, of sending. What receives
 * is needed at any time, what sends only while the queue pair is scheduled or hears an answer.
 *
 * What only one kind of queue pair needs lies in a union: the state of its kind on either side, and what
 * tells the engine that something is owed, ACKs (RC) or completions (UC, UD). `ops` says which kind it is.
 */
struct ur_qp {
	/* Identity: one cache line. */
	struct ur_qpn qpn, dest_qpn;
	uint8_t state;	   /* enum ibv_qp_state: what the worker acts on */
	uint8_t mtu_shift; /* PMTU is 1 << mtu_shift bytes */
	uint8_t admission; /* enum ur_adm_role, bits; 0 but in mode extended from RTR on */
	bool strict;	   /* the last byte of a message is placed after all others */
	bool sig_all;
	bool comm_est;	   /* IBV_EVENT_COMM_EST was raised */
	uint8_t fail_send; /* enum ibv_wc_status: how it ends, see ur_qp_fail() */
	bool rearm;	   /* a request has set a deadline that the QP timer does not know yet */
	bool sqd_notify;   /* SQD: event wanted; see `drained` */
	bool has_srq;
	uint16_t pkey;
	uint32_t pd;
	const struct ur_qp_ops *ops; /* of its kind */
	struct ur_core *core;
	struct ur_cq *send_cq;
	const struct ur_path *path; /* RC and UC: of core->paths, or ur_path_none; */
	uint16_t sport_be;	    /* and its own UDP source port, in network order; */
	uint16_t answer_sport_be;   /* RC: that of ACKs and responses, see repath.h */

	/* Receiving. */
	uint32_t access; /* enum ibv_access_flags */
	struct ur_cq *recv_cq;
	struct ur_srq *srq; /* has_srq; else NULL */
	union {
		struct ur_sched_node ack_node;	  /* RC */
		struct ur_sched_node settle_node; /* UC and UD */
	};
	struct ur_wq rq;
	struct ur_responder rsp;
	union {
		struct ur_gbn_responder gbn_rsp; /* UR_MODE_GBN, UR_MODE_REORDER, UC */
		struct ur_ext_responder xrsp;	 /* UR_MODE_EXTENDED */
		struct ur_ud_responder ud_rsp;	 /* UD */
	};
	struct ur_emux_queue rsp_queue; /* its READ and atomic responses */

	/* Sending. */
	struct ur_emux_queue sq_queue;
	struct ur_wq sq;
	_Atomic uint8_t posted_state; /* enum ibv_qp_state, what posters check */
	uint8_t fail_recv;	      /* with fail_send */
	uint8_t spray_path;	      /* mode extended: of the packet being made */
	bool sprays;		      /* mode extended: xreq.spray is set, else xreq.plb */
	uint8_t res_max;	      /* responder resources allocated */
	uint8_t port_mtu_shift;	      /* the largest PMTU; a UD QP's */
	uint16_t next_doorbell;	      /* slot whose doorbell followed its own; the engine's */
	void *user;
	struct ur_timer timer;
	struct ur_requester req;
	bool has_bound; /* memory windows were bound by it */
	bool drained;	/* SQD: its event was raised */
	uint8_t paths;	/* mode extended: UDP source ports to spray over; 0 and 1: its own */
	union {
		struct ur_unreliable_requester unreliable; /* UC and UD */
		struct ur_retry retry;			   /* RC: the first member of both */
		struct ur_gbn_requester gbn;		   /* UR_MODE_GBN, UR_MODE_REORDER */
		struct {				   /* UR_MODE_EXTENDED */
			struct ur_ext_requester xreq;
			struct ur_adm_qp adm;
		};
	};

	/* Seldom needed. */
	struct ur_sched_node cnp_node; /* owes a CNP */
	uint64_t cnp_ns;	       /* when it sent the last, see ur_cnp_due() */

	/* A line that posters write as well. */
	_Alignas(64) _Atomic uint32_t pending; /* doorbell rung, not yet seen by the worker */
	uint32_t window;		       /* the engine's, for reset */
	struct ur_adm_agreed agreed; /* while connecting; what came of it is `admission` */
	struct ur_qp_attr attr;
};

/* A queue pair among 10 000 costs memory, not only cache: 16 lines. */
static_assert(sizeof(struct ur_qp) <= 1024, "a queue pair has grown; see docs/design/rc.md");

/*
 * Requester, completer, responder and responses do not end a queue pair: they say how it ends, the first of
 * them is right, and return. ur_qp_act() acts: as ur_qp_error(), or with recv_status IBV_WC_SUCCESS as
 * ur_qp_send_error().
 */
static inline void ur_qp_fail(struct ur_qp *qp, enum ibv_wc_status send_status,
			      enum ibv_wc_status recv_status)
{
	if (qp->fail_send)
		return;
	qp->fail_send = (uint8_t)send_status;
	qp->fail_recv = (uint8_t)recv_status;
}

/* The queue pair is in ERR, or about to be: nothing more is taken in or sent. */
static inline bool ur_qp_has_failed(const struct ur_qp *qp)
{
	return qp->fail_send || qp->state == IBV_QPS_ERR;
}

/* Where the requester's state ends that packets in order touch; bytes. */
#define UR_EXT_SENDING_END offsetof(struct ur_qp, adm)
#define UR_UNRELIABLE_SENDING_END                                                                  \
	(offsetof(struct ur_qp, unreliable) + sizeof(struct ur_unreliable_requester))
#define UR_GBN_SENDING_END (offsetof(struct ur_qp, gbn) + sizeof(struct ur_gbn_requester))

#define UR_QP_OF(ptr, member) ((struct ur_qp *)((char *)(ptr)-offsetof(struct ur_qp, member)))

/* ---- life (qp.c) ---- */

/* Applies a modify that ur_qp_modify_check() accepted. */
int ur_qp_modify_check(const struct ur_qp *qp, const struct ibv_qp_attr *attr, int mask,
		       const struct ur_path_attr *path);
void ur_qp_modify(struct ur_qp *qp, const struct ibv_qp_attr *attr, int mask,
		  const struct ur_path_attr *path);
/* The attributes in force, and the limits of the work queues; 0 in what it has not. */
void ur_qp_query(const struct ur_qp *qp, struct ibv_qp_attr *out);
/* As create left it, but for its identity: queues empty, nothing in flight, state RESET. */
void ur_qp_reset(struct ur_qp *qp);

/*
 * How the QP survives loss, and whether it places strictly. 0, or -EINVAL when the QP is not RC or
 * not in RESET or INIT. A fresh QP is UR_MODE_GBN; what is set here stays through RESET, until it
 * is set again. (qp_ops.c)
 */
int ur_qp_set_mode(struct ur_qp *qp, enum ur_mode mode, bool strict);
/* Mode, paths and what was agreed on may be set: an RC QP in RESET or INIT. */
static inline bool ur_qp_may_choose_mode(const struct ur_qp *qp)
{
	return qp->ops->reliable && (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT);
}
/* Over how many UDP source ports an extended QP sprays, at most UR_SPRAY_MAX. As set_mode. */
int ur_qp_set_paths(struct ur_qp *qp, uint8_t paths);
/* What was agreed on with the peer as to receive pools. As set_mode. */
int ur_qp_set_agreed(struct ur_qp *qp, const struct ur_adm_agreed *agreed);

/* Service level of everything that the QP sends, [0, 15]; a UD QP's requests have that of their AH.
 */
void ur_qp_set_sl(struct ur_qp *qp, uint8_t sl);

/* The one setter of `state`; keeps posted_state and the ready lists in step. */
void ur_qp_set_state(struct ur_qp *qp, enum ibv_qp_state state);

/*
 * Moves the QP to ERR: completes the WQE at the send queue's head with `send_status` (unless it is
 * IBV_WC_SUCCESS) and the receive under way with `recv_status`, flushes the rest.
 */
void ur_qp_error(struct ur_qp *qp, enum ibv_wc_status send_status, enum ibv_wc_status recv_status);

/*
 * The oldest WQE fails with `status`: an RC QP goes to ERR, others to SQE (their receive queue
 * lives on; IBA 10.3.1.6).
 */
void ur_qp_send_error(struct ur_qp *qp, enum ibv_wc_status status);

/* Flushes what was posted since (QP in ERR; the send queue only in SQE). */
void ur_qp_flush(struct ur_qp *qp);

/* Ends the queue pair if ur_qp_fail() said so; tells that it has drained (SQD). */
void ur_qp_act(struct ur_qp *qp);
/* Something that ur_qp_act() looks at may have changed. */
static inline bool ur_qp_must_act(const struct ur_qp *qp)
{
	return __builtin_expect(qp->fail_send || qp->state == IBV_QPS_SQD, 0);
}
/* Re-evaluates whether the send queue can send. After posting, which sets no deadline. */
void ur_qp_posted(struct ur_qp *qp);
/* And the timer. After sending. */
void ur_qp_update_ready(struct ur_qp *qp);
/* The timer alone: whether the send queue can send is known. */
void ur_qp_follow_deadline(struct ur_qp *qp);
/* The same after everything that was posted has been sent. */
void ur_qp_sent_all(struct ur_qp *qp);
/*
 * TIMER-IDLE-01, TIMER-KEEP-01. The queue pair waits for nothing. Of thousands of idle queue pairs each would be fetched
 * for nothing when its timer fires; but one that is used all the time costs less if its timer stays where it is.
 */
static inline void ur_qp_rest_timer(struct ur_qp *qp)
{
	if (qp->timer.armed && !qp->req.keeps_timer)
		ur_timer_cancel(&qp->core->wheel, &qp->timer);
}
/* And what it has in flight toward its destination: after anything else. */
void ur_qp_update(struct ur_qp *qp);

/* Unreliable QPs: completes the WQEs whose packets have left, [head, cur). */
void ur_qp_complete_sent(struct ur_qp *qp);

/* The QP timer fired. */
void ur_qp_timer(struct ur_qp *qp, uint64_t now_ns);

/* A request tells the sending side nothing: what it keeps need not be looked at, but for these. */
static inline void ur_qp_after_request(struct ur_qp *qp)
{
	if (__builtin_expect(qp->fail_send | qp->rearm, 0)) {
		qp->rearm = false;
		ur_qp_act(qp);
		ur_qp_update(qp);
	}
}

/* Takes in a packet of the queue pair's transport and re-evaluates what can be sent. */
static inline enum ur_drop ur_qp_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	enum ur_drop drop;

	if (p->op & (UR_OP_RESPONSE | UR_OP_NOTIFY)) {
		drop = qp->ops->response(qp, p, now_ns);
		if (ur_qp_must_act(qp))
			ur_qp_act(qp);
		ur_qp_update(qp);
		return drop;
	}
	drop = qp->ops->request(qp, p, now_ns);
	ur_qp_after_request(qp);
	return drop;
}

/* Asserts every interval stated above; tests call it after each event. */
void ur_qp_validate(const struct ur_qp *qp);

/* ---- rc/requester_gbn.c ---- */

/* Whether the requester could make a packet now. */
bool ur_requester_ready(const struct ur_qp *qp);
/*
 * Makes the next request packet: what is sent again first. False when none can be made (the QP may have gone
 * to error, or only WQEs without a packet were consumed). *wqes counts WQEs begun, sent again, and failed.
 */
bool ur_requester_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes);
/*
 * Makes the next request packets, at most `cap`, while each is all of a SEND or WRITE and nothing stands in its way. The
 * last one begins before *bytes bytes of frames were made; *bytes are then those that were. Returns how many packets; 0:
 * ur_requester_next() decides.
 */
unsigned ur_requester_burst(struct ur_qp *qp, struct ur_tx *tx, unsigned cap, uint32_t *bytes,
			    uint64_t now_ns);
/* WQE `idx` fails with `status` when those before it are complete; nothing of it or behind it is sent. */
void ur_requester_fail(struct ur_qp *qp, uint32_t idx, enum ibv_wc_status status);
/* Points cur, cur_off and rd_out at recovery.nxt again. */
void ur_requester_reposition(struct ur_qp *qp);
/* No other message is begun: asks for the ACK of what was sent, if no packet did. */
void ur_requester_drain(struct ur_qp *qp);

/* ---- rc/completer_gbn.c ---- */

enum ur_drop ur_completer_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* See qp_ops.h. */
bool ur_completer_predicted(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
			    uint64_t now_ns);
/* A deadline of the requester may have passed. */
void ur_completer_timer(struct ur_qp *qp, uint64_t now_ns);
/* Mode reorder: gives the context of missing responses back, if there is one. */
void ur_completer_give_gap(struct ur_qp *qp);

/* ---- rc/responder_gbn.c ---- */

/* A request of RC, of UC. NONE, or why it was dropped. */
enum ur_drop ur_responder_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* See qp_ops.h. */
bool ur_responder_predicted(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
			    uint64_t now_ns);
enum ur_drop ur_uc_responder_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);

/* ---- rc/responder.c ---- */

/* Completes the receive bound to the message under way with an error, if there is one. */
void ur_responder_abort(struct ur_qp *qp, enum ibv_wc_status status);
/* Binds the next posted receive to the message; false when none is posted. */
bool ur_responder_bind(struct ur_qp *qp);
/* Remembers `cnt` READs and atomics from now on, the newest of those it knows. None is queued. */
void ur_responder_resize(struct ur_qp *qp, uint8_t cnt);
/* The receive of the message is about to complete: its place is free. */
static inline void ur_responder_release_wqe(struct ur_qp *qp)
{
	qp->rsp.wqe = NULL;
	if (!qp->has_srq)
		ur_wq_release(&qp->rq, ur_wq_head(&qp->rq) + 1);
}
/* Completes the bound receive. */
void ur_responder_complete(struct ur_qp *qp, struct ibv_wc *wc, bool solicited);

/* ---- rc/response_gbn.c ---- */

/*
 * RC-RESP-CREDIT-01, EXT-RESP-CREDIT-01. Credit code for the receives that are posted, whichever of
 * them are bound early; an SRQ's belong to no queue pair in particular.
 */
static inline uint8_t ur_response_credits(const struct ur_qp *qp)
{
	if (qp->has_srq)
		return UR_CREDITS_NONE;
	return ur_credits_encode(ur_wq_cnt(&qp->rq));
}

/* The NAK owed, if any, is one that ended the connection. */
static inline bool ur_response_owes_fatal_nak(const struct ur_responder *rsp)
{
	return (rsp->ack & UR_NAK_OWED) &&
	       (rsp->nak_syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_NAK &&
	       rsp->nak_syndrome != (UR_SYNDROME_NAK | UR_NAK_PSN_SEQ);
}

/* Owes an ACK of the newest SEND or WRITE packet executed. */
void ur_response_ack(struct ur_qp *qp);
/* The peer is going to be left alone: an ACK of everything is owed, if the last one kept something back. */
void ur_response_ack_all(struct ur_qp *qp);
/* Owes a NAK, and nothing else: it acknowledges what comes before it. */
void ur_response_nak(struct ur_qp *qp, uint8_t syndrome, struct ur_psn psn);
/* Owes a sequence NAK for ePSN, after an ACK of what was executed since the last. */
void ur_response_seq_nak(struct ur_qp *qp);
/* What is owed, `data` or the responses queued have changed: may the ACK or NAK leave? */
void ur_response_update_ack(struct ur_qp *qp);
/* Whether it may. */
bool ur_response_ack_due(const struct ur_qp *qp);
/* Queues the answer to one of `res`, which is not queued already. */
void ur_response_queue(struct ur_qp *qp, struct ur_rd_res *res);
/* The answer to `res`, a repeat, gives way to another, which is queued next. */
void ur_response_unqueue(struct ur_qp *qp, const struct ur_rd_res *res);
/* Nothing is answered any more but what comes before a fatal NAK, and that. */
void ur_response_stop(struct ur_qp *qp);
/* Makes the next packet of an answer. False when there is none; the QP may be about to fail. */
bool ur_response_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns);
/* Makes the ACK or NAK owed, in this order; false when none is owed or it must wait for responses.
 */
bool ur_response_next_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns);

#endif
