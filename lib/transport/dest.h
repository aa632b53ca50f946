/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_DEST_H
#define UR_TRANSPORT_DEST_H

#include "transport/qp.h"

/*
 * Where pacing meets scheduling (docs/design/pacing.md, sending.md): a destination is a gate that
 * is closed until its next packet may go, and a timer that opens it. The queue pairs of RC and UC
 * that send to one address share its destination; datagrams are not paced.
 *
 * Thread class: the worker.
 */
struct ur_dest {
	struct ur_gate gate;   /* of the send queues that go there; first, see ur_dest_of() */
	struct ur_timer timer; /* armed while the gate is closed or somebody waits */
	struct ur_pacing_dest *pace;
};

#define UR_DEST_OF(ptr) ((struct ur_dest *)(void *)((char *)(ptr)-offsetof(struct ur_dest, timer)))

/* Bytes, 64-byte aligned, for `cnt` destinations, in [1, 2^20]. */
size_t ur_dests_size(uint32_t cnt);
void ur_dests_init(struct ur_core *core, void *memory, uint32_t cnt,
		   const struct ur_pacing_attr *attr);

/* The queue pair's path leads somewhere, or nowhere any more. */
void ur_dest_attach(struct ur_qp *qp, uint64_t now_ns);
void ur_dest_detach(struct ur_qp *qp);

/* The destination that paces the queue, NULL: none. */
static inline struct ur_dest *ur_dest_of(const struct ur_emux_queue *q)
{
	return (struct ur_dest *)(void *)q->gate;
}

/*
 * Its send queue sent a packet of `bytes`, those that it asks for included. True: nothing more may
 * go there now.
 */
bool ur_dest_sent(struct ur_core *core, struct ur_dest *d, uint32_t bytes, uint64_t now_ns);

/* It wants to send, and a throttled destination makes it wait for its turn. */
static inline bool ur_dest_delays(const struct ur_qp *qp)
{
	const struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	return __builtin_expect(d != NULL, 0) && d->pace->throttled &&
	       ur_emux_is_active(&qp->sq_queue);
}

void ur_dest_sample(struct ur_core *core, struct ur_dest *d, uint32_t rtt, uint64_t now_ns);
/* A round trip to the queue pair's peer took rtt stamps, the time that it was kept left out. */
static inline void ur_dest_rtt(struct ur_qp *qp, uint32_t rtt, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	if (__builtin_expect(d != NULL, 0))
		ur_dest_sample(qp->core, d, rtt, now_ns);
}
/* A congestion notification packet came for the queue pair; whether that changes anything. */
bool ur_dest_cnp(struct ur_qp *qp, uint64_t now_ns);

/* The timer fired. */
void ur_dest_timer(struct ur_core *core, struct ur_dest *d, uint64_t now_ns);

#endif
