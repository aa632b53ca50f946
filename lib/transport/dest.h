/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_DEST_H
#define UR_TRANSPORT_DEST_H

#include "transport/net_delay.h"
#include "transport/qp.h"

/*
 * Connects congestion control and scheduling (docs/design/pacing.md, sending.md): a destination is a
 * gate that is closed while its next packet must wait for its time or for room in the window, and a
 * timer that opens it. The queue pairs of RC and UC that send to one address share its destination;
 * datagrams have none.
 *
 * The transport reports to congestion control by the functions ur_dest_on_*() only. For a queue pair
 * without a destination they do nothing.
 *
 * Thread class: the worker.
 */
struct ur_dest {
	struct ur_gate gate;   /* of the send queues to the destination; first, see ur_dest_of() */
	struct ur_timer timer; /* armed while the gate is closed or a queue waits at it */
	struct ur_cc_dest *cc;
	/* A new epoch begins when the window stays full. */
	uint64_t old_flight; /* bytes in flight from the last epoch; older ones are not counted */
	uint32_t epoch;
	bool progress;	  /* fewer bytes are in flight than at full_ns */
	uint64_t full_ns; /* when the window was found full; valid while it is */
	uint64_t packets; /* sent, and requested by READs */
	struct ur_net_delay net;
};

#define UR_DEST_OF(ptr) ((struct ur_dest *)(void *)((char *)(ptr)-offsetof(struct ur_dest, timer)))

/* What an RC queue pair has in flight toward a destination that has a window. */
struct ur_flight {
	uint32_t psns;	      /* counted by the destination */
	uint32_t written_off; /* others before them, considered lost after a timeout */
	uint32_t epoch;	      /* of the destination, when the first of psns left or one was acked */
	uint32_t acked;	      /* numbers acknowledged so far, as of the last count */
	uint16_t ackreq_every; /* the engine's setting, to be restored */
};

static inline struct ur_flight *ur_dest_flight(const struct ur_qp *qp)
{
	return &qp->core->flights[qp - qp->core->qps];
}

/* Bytes, 64-byte aligned, for `cnt` destinations, in [1, 2^20], and the worker's queue pairs. */
size_t ur_dests_size(uint32_t cnt, uint32_t max_qp);
/* qps[0, max_qp) are the worker's queue pairs. */
void ur_dests_init(struct ur_core *core, void *memory, uint32_t cnt, const struct ur_cc_attr *attr,
		   const struct ur_qp *qps, uint32_t max_qp);

/* Attaches the queue pair to the destination of its path; detaches it when it has no path any more. */
void ur_dest_attach(struct ur_qp *qp, uint64_t now_ns);
void ur_dest_detach(struct ur_qp *qp);

/* The destination of the queue; NULL: none. */
static inline struct ur_dest *ur_dest_of(const struct ur_emux_queue *q)
{
	return (struct ur_dest *)(void *)q->gate;
}

/* What it has in flight is counted. */
static inline bool ur_dest_is_watched(const struct ur_qp *qp)
{
	return __builtin_expect(qp->sq_queue.gate != NULL, 0) &&
	       ur_dest_of(&qp->sq_queue)->cc->watched;
}

/*
 * The queue pair, which has a destination, has sent a packet. `bytes` includes those that a READ
 * requests. Returns whether the gate is closed now.
 */
bool ur_dest_on_send(struct ur_qp *qp, uint32_t bytes, uint64_t now_ns);

/*
 * PACE-TIMER-01. Whether the queue pair wants to send, its destination makes it wait, and it has
 * nothing in flight there: then the peer's silence means nothing.
 */
static inline bool ur_dest_delays(const struct ur_qp *qp)
{
	const struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	return __builtin_expect(d != NULL, 0) && d->cc->throttled && !ur_dest_flight(qp)->psns &&
	       ur_emux_is_active(&qp->sq_queue);
}

void ur_dest_report_rtt(struct ur_qp *qp, uint32_t rtt, uint32_t residence, bool read,
			uint64_t now_ns);
bool ur_dest_report_delay(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
void ur_dest_report_loss(struct ur_qp *qp, uint64_t now_ns);
void ur_dest_report_timeout(struct ur_qp *qp, uint64_t now_ns);

/*
 * A round trip to the queue pair's peer took rtt stamps, without the residence there, which is that of the same packet.
 * `read`: of a READ's response.
 */
static inline void ur_dest_on_rtt(struct ur_qp *qp, uint32_t rtt, uint32_t residence, bool read,
				  uint64_t now_ns)
{
	if (__builtin_expect(qp->sq_queue.gate != NULL, 0))
		ur_dest_report_rtt(qp, rtt, residence, read, now_ns);
}

/*
 * The queue pair asks switches for the delay (transport/net_delay.h), by a packet with this stamp. Returns whether the
 * answer is to be stamped as well.
 */
bool ur_dest_on_ask(struct ur_qp *qp, struct ur_stamp stamp, uint64_t now_ns);

/* An answer with a delay, which has an NDTH. Returns whether it answers the open ask of the destination. */
static inline bool ur_dest_on_delay(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	return qp->sq_queue.gate && ur_dest_report_delay(qp, p, now_ns);
}

/* An answer that has a part of a bitmap in the place of the delay. Returns the same. */
static inline bool ur_dest_on_no_delay(struct ur_qp *qp, struct ur_stamp echo)
{
	return qp->sq_queue.gate && ur_net_delay_on_no_room(&ur_dest_of(&qp->sq_queue)->net, echo);
}

/* CC-LOSS-01. Packets of the queue pair were found lost, by what arrived after them. */
static inline void ur_dest_on_loss(struct ur_qp *qp, uint64_t now_ns)
{
	if (__builtin_expect(qp->sq_queue.gate != NULL, 0))
		ur_dest_report_loss(qp, now_ns);
}

/* CC-LOSS-02. A timeout of the queue pair has expired. */
static inline void ur_dest_on_timeout(struct ur_qp *qp, uint64_t now_ns)
{
	if (__builtin_expect(qp->sq_queue.gate != NULL, 0))
		ur_dest_report_timeout(qp, now_ns);
}

/* CC-WINDOW-02. The queue pair has a destination; what it has in flight there may have changed. */
void ur_dest_count_flight(struct ur_qp *qp);

/* A CNP has arrived for the queue pair. Returns whether the algorithm uses CNPs. */
bool ur_dest_on_cnp(struct ur_qp *qp, uint64_t now_ns);

/* The timer of the destination has fired. */
void ur_dest_timer(struct ur_core *core, struct ur_dest *d, uint64_t now_ns);

#endif
