/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_H
#define UR_TRANSPORT_EXT_H

#include "transport/build.h"
#include "transport/loss/ooo.h"
#include "transport/loss/selective.h"
#include "transport/qp.h"
#include "transport/rc/spray.h"
#include "wire/bytes.h"
#include "wire/ext.h"

/*
 * Extended mode of an RC queue pair (docs/design/loss.md): its requester, completer, responder and responses, and what
 * the table of operations (qp_ops.h) calls in a queue pair's life. It shares the templates with the other modes (rc.md).
 *
 * Thread class: the QP's worker.
 */

/* ---- rc/ext.c: operations, see qp_ops.h ---- */

void ur_ext_init(struct ur_qp *qp);
void ur_ext_release(struct ur_qp *qp);
void ur_ext_set_limits(struct ur_qp *qp);
void ur_ext_stop_sending(struct ur_qp *qp);
void ur_ext_validate(const struct ur_qp *qp);
bool ur_ext_is_idle(const struct ur_qp *qp);
uint32_t ur_ext_in_flight(const struct ur_qp *qp);
uint32_t ur_ext_acked(const struct ur_qp *qp);
uint64_t ur_ext_deadline(const struct ur_qp *qp);
void ur_ext_expire(struct ur_qp *qp, uint64_t now_ns);
void ur_ext_rearm(struct ur_qp *qp, bool held, uint64_t now_ns);
bool ur_ext_is_answering(const struct ur_qp *qp);
struct ur_qp_numbers ur_ext_numbers(const struct ur_qp *qp);
const struct ur_spray_qp *ur_ext_paths(const struct ur_qp *qp);

/* SPRAY-PORT-02. A packet, of which Ethernet to BTH are written, goes by the UDP source port of `path`, not by the queue pair's own. */
static inline void ur_ext_write_port(const struct ur_qp *qp, uint8_t path, struct ur_tx *tx)
{
	uint8_t *at = tx->hdr + qp->path->len - UR_UDP_BYTES;

	ur_store16(at, ur_spray_port(ur_load16(at), path));
}

/* EXT-WINDOW-02. Of the W of this end, what the peer has as well. */
static inline uint32_t ur_ext_agreed_window(const struct ur_qp *qp, uint32_t own)
{
	uint32_t peer = (uint32_t)UR_EXT_WINDOW << qp->agreed.wide;

	return own < peer ? own : peer;
}

/* ---- rc/requester_selective.c ---- */

bool ur_ext_requester_ready(const struct ur_qp *qp);
/* As ur_requester_next(): a packet sent again, a probe, or the next new one, in this order. */
bool ur_ext_requester_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes);
unsigned ur_ext_requester_burst(struct ur_qp *qp, struct ur_tx *tx, unsigned cap, uint32_t *bytes,
				uint64_t now_ns);
void ur_ext_requester_drain(struct ur_qp *qp);
/* RTR/RTS: first PSN set, or back to RESET (gives contexts back). */
void ur_ext_requester_init(struct ur_qp *qp, struct ur_psn first);
/* Nothing is in flight any more and nothing will be sent again. */
void ur_ext_requester_stop(struct ur_qp *qp);

/* It can begin a message that takes a receive of the peer, if admission lets it. */
bool ur_ext_requester_asks(const struct ur_qp *qp);

/* ---- rc/completer_selective.c ---- */

enum ur_drop ur_ext_completer_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
bool ur_ext_completer_predicted(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				uint64_t now_ns);
/* When ur_ext_completer_timer() has something to do; UR_NEVER. */
static inline uint64_t ur_ext_requester_deadline(const struct ur_qp *qp)
{
	const struct ur_ext_requester *x = &qp->xreq;
	uint64_t at = qp->retry.ack_deadline_ns;

	/* An RNR wait stops everything else. */
	if (__builtin_expect(qp->retry.is_waiting, 0))
		return qp->retry.rnr_until_ns;
	if (x->psn.deadline_ns < at)
		at = x->psn.deadline_ns;
	return x->rsp.deadline_ns < at ? x->rsp.deadline_ns : at;
}
void ur_ext_completer_timer(struct ur_qp *qp, uint64_t now_ns);

/* ---- rc/responder_selective.c ---- */

enum ur_drop ur_ext_responder_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
bool ur_ext_responder_predicted(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes,
				uint64_t now_ns);
/* RTR: ePSN is set. */
void ur_ext_responder_begin(struct ur_qp *qp);
/* RESET: the context goes back, nothing completes. */
void ur_ext_responder_release(struct ur_qp *qp);

/*
 * EXT-RESP-STALE-01. How long a gap may stay open while nothing comes for ePSN: twice as long as the
 * retries of a peer take whose timeout is ours, if its timer is as slow as it may be (four times the
 * timeout, IBA 9.7.6.1.3); but 10 s at least, and 10 minutes at most or without a timeout. What is
 * noted was acknowledged and cannot be forgotten, so the connection ends with it.
 */
#define UR_EXT_GAP_NS_MIN UINT64_C(10000000000)
#define UR_EXT_GAP_NS_MAX UINT64_C(600000000000)

static inline uint64_t ur_ext_gap_limit_ns(const struct ur_qp *qp)
{
	uint64_t ns = (8 * (uint64_t)(qp->attr.retry_cnt + 1) * 4096) << qp->attr.timeout;

	if (!qp->attr.timeout || ns > UR_EXT_GAP_NS_MAX)
		return UR_EXT_GAP_NS_MAX;
	return ns < UR_EXT_GAP_NS_MIN ? UR_EXT_GAP_NS_MIN : ns;
}

/* When the gap has been open for too long; UR_NEVER. */
static inline uint64_t ur_ext_gap_deadline(const struct ur_qp *qp)
{
	return qp->xrsp.has_gap ? qp->xrsp.gap_ns + ur_ext_gap_limit_ns(qp) : UR_NEVER;
}
void ur_ext_responder_timer(struct ur_qp *qp, uint64_t now_ns);
/*
 * Completes the receive of the message under way with `status`, flushes those bound beyond it,
 * gives the context back. ur_qp_error() calls it in the place of ur_responder_abort().
 */
void ur_ext_responder_stop(struct ur_qp *qp, enum ibv_wc_status status);
/* Asserts what is stated of responder and responses; ur_qp_validate() calls it. */
void ur_ext_responder_validate(const struct ur_qp *qp);

/* ---- rc/response_selective.c ---- */

/* Owes an ACK, which echoes the packet. */
void ur_ext_response_ack(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* Owes an ACK that answers the probe, after the answers queued by now. */
void ur_ext_response_probe(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* Owes a NAK, in place of an ACK, which echoes what that would. */
void ur_ext_response_nak(struct ur_qp *qp, uint8_t syndrome, struct ur_psn psn);
bool ur_ext_response_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns);
bool ur_ext_response_next_ack(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns);
/* Whether answers wait to be sent. */
static inline bool ur_ext_response_queued(const struct ur_qp *qp)
{
	return qp->xrsp.first.cnt || qp->xrsp.again.cnt;
}
/* Whether another answer may be queued: a first one, or a repeat. */
static inline bool ur_ext_response_room(const struct ur_qp *qp, bool repeat)
{
	const struct ur_ext_responder *x = &qp->xrsp;

	return repeat ? x->again.cnt < qp->rsp.ans_cap / 2 : x->first.cnt < qp->rsp.res_cnt;
}
/*
 * Whether a packet before PSN_OFFSET `end` of the answer to the executed request `psn` has not left
 * for the first time yet.
 */
bool ur_ext_response_pending(const struct ur_qp *qp, struct ur_psn psn, uint32_t end);
/* Whether all of what the repeat `a` answers waits in a repeat that is queued already. */
bool ur_ext_response_repeats(const struct ur_qp *qp, const struct ur_ext_answer *a);
/* Where the next answer goes, if there is room: a first one, or a repeat. */
static inline struct ur_ext_answer *ur_ext_response_next_free(const struct ur_qp *qp, bool repeat)
{
	const struct ur_ext_answers *q = repeat ? &qp->xrsp.again : &qp->xrsp.first;
	unsigned cap = qp->rsp.ans_cap / 2u, at = (unsigned)q->head + q->cnt;

	return qp->rsp.ans + (repeat ? cap : 0) + (at < cap ? at : at - cap);
}
/* Behind the answers, see rings_of() in engine/verbs.c. */
static inline struct ur_ext_own *ur_ext_own(const struct ur_qp *qp)
{
	return (struct ur_ext_own *)(void *)(qp->rsp.ans + qp->rsp.ans_cap);
}
/* Queues it, which is there. */
void ur_ext_response_queue(struct ur_qp *qp, const struct ur_ext_answer *a);
/* Nothing is answered any more but what comes before a fatal NAK, and that (RC-RESP-NAK-02). */
void ur_ext_response_stop(struct ur_qp *qp);
/* Whether ur_ext_response_next_ack() makes a packet. */
bool ur_ext_response_ack_due(const struct ur_qp *qp);
/* What is owed has changed: may an ACK or NAK leave? */
void ur_ext_response_update_ack(struct ur_qp *qp);
/* Owes an ACK of a packet with this stamp and the path index at `path`, which is seldom read. */
static inline __attribute__((always_inline)) void ur_ext_response_ack_stamp(struct ur_qp *qp,
									    struct ur_stamp stamp,
									    const uint8_t *path,
									    uint64_t now_ns)
{
	bool owed = qp->rsp.ack != UR_ACK_NONE;

	/* EXT-RESP-ECHO-01: of the packets since the last ACK, the newest by stamp. */
	if (owed && ur_stamp_diff(stamp, qp->xrsp.echo.stamp) <= 0)
		return;
	qp->xrsp.echo = (struct ur_echo){now_ns, stamp, *path};
	/* A NAK acknowledges what comes before it; an ACK waits for nothing. */
	if (owed)
		return;
	qp->rsp.ack = UR_ACK_OWED;
	ur_sched_set(&qp->core->acks, &qp->ack_node, true);
}

#endif
