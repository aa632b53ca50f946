/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/mgmt_priv.h"
#include "engine/prefetch.h"
#include "transport/admission.h"
#include "transport/build.h"
#include "transport/cnp.h"
#include "transport/dest.h"
#include "wire/assert.h"
#include "wire/opcode.h"

/*
 * The order in which an engine sends (docs/design/sending.md): management, packets ahead of the lanes,
 * the lanes.
 */

void ur_engine_complete_sent(struct ur_engine *e)
{
	struct ur_sched_node *n;

	while ((n = ur_sched_peek(&e->core.settle))) {
		ur_sched_set(&e->core.settle, n, false);
		ur_qp_complete_sent(UR_QP_OF(n, settle_node));
	}
}

static unsigned output_cm(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns)
{
	unsigned n;

	if (!e->cm)
		return 0;
	n = (unsigned)ur_cm_output(e->cm, e->cm_out, cap < CM_BATCH ? cap : CM_BATCH, now_ns);
	for (unsigned i = 0; i < n; i++) {
		struct ur_build_bth bth = {
			.opcode = UR_UD_SEND_ONLY,
			.pkey = GSI_PKEY,
			.dqpn = e->cm_out[i].dest_qpn,
		};
		uint8_t *p;

		tx[i].frag[0] = (struct ur_frag){e->cm_out[i].mad, UR_MAD_BYTES};
		tx[i].frag_cnt = 1;
		tx[i].payload_len = UR_MAD_BYTES;
		p = ur_build_begin(&tx[i], e->cm_out[i].path, &bth, UR_DETH_BYTES);
		ur_build32(ur_build32(p, GSI_QKEY), GSI_QPN);
	}
	return n;
}

/* Makes one request packet; *wqes counts WQEs begun, and refusals. */
static inline bool make_request(struct ur_engine *e, struct ur_qp *qp, struct ur_tx *tx,
				uint64_t now_ns, unsigned *wqes)
{
	bool made = qp->ops->next(qp, tx, now_ns, wqes);

	if (__builtin_expect(!made, 0))
		ur_qp_act(qp);
	/* Unreliable WQEs complete when their payload has been sent: at the next call. */
	else if (!qp->ops->reliable)
		ur_sched_set(&e->core.settle, &qp->settle_node, true);
	return made;
}

static inline void count_sent(struct ur_core *core, unsigned packets, uint64_t bytes)
{
	core->cnt.tx_packets += packets;
	core->cnt.tx_bytes += bytes;
}

static inline void count_lane(struct ur_core *core, unsigned vl, unsigned packets, uint64_t bytes)
{
	core->lane[vl].packets += packets;
	core->lane[vl].bytes += bytes;
}

/* Re-evaluates whether the queue has more to send: once a turn, and at the end of each call. */
static void update_ready(struct ur_emux_queue *q)
{
	if (q->node.kind == NODE_SQ)
		ur_qp_update_ready(UR_QP_OF(q, sq_queue));
}

/* SCHED-PREFETCH-02. A turn begins: prefetch the next queue, and the pointers of the one after it. */
static void prefetch_next(const struct ur_emux *x, unsigned vl)
{
	struct ur_sched_node *next = (void *)ur_emux_peek_next(x, vl), *then;
	const struct ur_qp *qp;

	if (!next)
		return;
	then = TAILQ_NEXT(next, link);
	if (next->kind == NODE_SQ) {
		qp = UR_QP_OF(next, sq_queue);
		ur_prefetch_sender(qp, qp->req.cur);
	}
	if (!then)
		return;
	if (then->kind == NODE_SQ)
		ur_prefetch_identity(UR_QP_OF(then, sq_queue));
	else
		ur_prefetch_receiver(UR_QP_OF(then, rsp_queue));
}

/* Packets that a queue made, and what became of it. */
struct served {
	unsigned cnt;
	uint32_t bytes;
	unsigned wqes; /* begun, and refused */
	enum {
		SERVED_MORE, /* it may have another packet */
		SERVED_OVER, /* its turn is over */
		SERVED_ALL,  /* everything posted was sent, and nothing is to be sent again */
	} then;
};

/* The next packet of the answers that have the turn. */
static inline bool make_answer(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns,
			       struct served *s)
{
	if (__builtin_expect(!qp->ops->response_next(qp, tx, now_ns), 0)) {
		ur_qp_act(qp);
		/* No packet: the request is refused, or dropped if it is a duplicate. */
		s->wqes++;
		return false;
	}
	s->cnt++;
	s->bytes += ur_tx_frame_bytes(tx);
	/* The last packet of a response. */
	s->wqes += tx->payload_len < 1u << qp->mtu_shift;
	return true;
}

/* Those that follow it in one call, until it has made `cap`; returns `s` with them. Most answers are one packet. */
static __attribute__((noinline)) struct served make_answers(struct ur_qp *qp, struct served s,
							    const struct ur_emux_turn *t,
							    struct ur_tx *tx, unsigned cap,
							    uint64_t now_ns)
{
	while (s.cnt < cap && s.bytes < t->bytes && s.wqes < t->wqes &&
	       ur_emux_is_active(&qp->rsp_queue) && make_answer(qp, &tx[s.cnt], now_ns, &s))
		;
	return s;
}

/*
 * SCHED-ALONE-01. The packets of one call, `cap` at most, of the queue that has the turn. More than one only where none
 * of them can close a gate.
 */
static inline struct served make_packets(struct ur_engine *e, struct ur_emux_queue *q,
					 const struct ur_emux_turn *t, struct ur_tx *tx,
					 unsigned cap, uint64_t now_ns)
{
	struct served s = {.then = SERVED_MORE};
	struct ur_qp *qp;

	if (q->node.kind == NODE_RSP) {
		qp = UR_QP_OF(q, rsp_queue);
		if (make_answer(qp, tx, now_ns, &s) && ur_emux_is_active(q))
			s = make_answers(qp, s, t, tx, cap, now_ns);
		return s;
	}
	qp = UR_QP_OF(q, sq_queue);
	if (!q->gate && qp->ops->burst) {
		struct ur_msn ssn = qp->req.ssn; /* each message that begins has the next */

		s.bytes = t->bytes;
		s.cnt = qp->ops->burst(qp, tx, cap < t->wqes ? cap : t->wqes, &s.bytes, now_ns);
		if (s.cnt) {
			if (ur_wq_tail(&qp->sq) == qp->req.cur)
				s.then = SERVED_ALL;
			else
				s.wqes = (uint32_t)ur_msn_diff(qp->req.ssn, ssn);
			return s;
		}
	}
	s.cnt = make_request(e, qp, tx, now_ns, &s.wqes);
	s.bytes = s.cnt ? ur_tx_frame_bytes(tx) : 0;
	return s;
}

/* Makes packets of the queue that has the turn in lane `vl`, `cap` at most, and charges the turn for them. */
static inline struct served serve_queue(struct ur_engine *e, struct ur_emux_queue *q, unsigned vl,
					struct ur_tx *tx, unsigned cap, uint64_t now_ns)
{
	struct ur_emux *x = &e->core.emux;
	struct served s = make_packets(e, q, &x->turn[vl], tx, cap, now_ns);

	/* Its turn ends, and no gate is there to be closed. */
	if (__builtin_expect(s.then == SERVED_ALL, 1))
		return s;
	if (__builtin_expect(!s.cnt, 0)) {
		/* Local operations have no packet. */
		if (s.wqes)
			ur_emux_charge(x, vl, 0, s.wqes);
		s.then = SERVED_OVER;
		return s;
	}
	if (!ur_emux_charge(x, vl, s.bytes, s.wqes))
		s.then = SERVED_OVER;
	/* PACE-READ-01: a READ is charged the bytes that it requests. */
	if (__builtin_expect(ur_dest_of(q) != NULL, 0) &&
	    ur_dest_on_send(UR_QP_OF(q, sq_queue), s.bytes + tx->asked, now_ns))
		s.then = SERVED_OVER;
	return s;
}

/* The turn of the queue in lane `vl` is over. One that has nothing more to send leaves its list, and needs no other place in it. */
static inline void end_turn(struct ur_emux *x, unsigned vl, struct ur_emux_queue *q,
			    const struct served *s)
{
	if (__builtin_expect(s->then == SERVED_ALL, 1)) {
		ur_emux_finish(x, vl, q, s->bytes);
		ur_qp_follow_deadline(UR_QP_OF(q, sq_queue));
		return;
	}
	update_ready(q);
	ur_emux_end_turn(x, vl);
}

/* The queue that has the turn in lane `vl`, or begins one; NULL: the gates of all of them were closed. */
static inline struct ur_emux_queue *queue_to_serve(struct ur_emux *x, unsigned vl)
{
	struct ur_emux_queue *previous = x->turn[vl].queue, *q = ur_emux_turn(x, vl);

	/* A gate has closed during its turn. */
	if (__builtin_expect(previous && previous != q, 0))
		update_ready(previous);
	if (q && previous != q)
		prefetch_next(x, vl);
	return q;
}

/* Makes the next packet of the lane of `ready` that the arbiter names. False: a turn ended without one. */
static bool serve_lane(struct ur_engine *e, struct ur_tx *tx, uint16_t ready, uint64_t now_ns,
		       unsigned *touched)
{
	struct ur_core *core = &e->core;
	unsigned vl = ur_vl_pick(&core->vl, ready);
	struct ur_emux_queue *q = queue_to_serve(&core->emux, vl);
	struct served s;

	*touched |= 1u << vl;
	if (!q)
		return false;
	s = serve_queue(e, q, vl, tx, 1, now_ns);
	if (s.cnt) {
		count_sent(core, 1, s.bytes);
		count_lane(core, vl, 1, s.bytes);
		ur_vl_charge(&core->vl, vl, tx->payload_len);
	}
	if (s.then != SERVED_MORE)
		end_turn(&core->emux, vl, q, &s);
	return s.cnt;
}

/* SCHED-ALONE-01. Makes packets, turn after turn, while one lane alone is to be served: it is not arbitrated, and not charged. */
static unsigned serve_alone(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns,
			    unsigned *touched)
{
	struct ur_emux *x = &e->core.emux;
	uint16_t lane = x->ready_lanes;
	unsigned vl = (unsigned)__builtin_ctz(lane), n = 0;
	uint64_t bytes = 0;

	while (n < cap && x->ready_lanes == lane) {
		struct ur_emux_queue *q = queue_to_serve(x, vl);
		struct served s;

		if (__builtin_expect(!q, 0))
			break;
		s = serve_queue(e, q, vl, &tx[n], cap - n, now_ns);
		n += s.cnt;
		bytes += s.bytes;
		if (s.then != SERVED_MORE)
			end_turn(x, vl, q, &s);
	}
	count_sent(&e->core, n, bytes);
	count_lane(&e->core, vl, n, bytes);
	*touched |= lane;
	return n;
}

static void count_turns(struct ur_core *core)
{
	struct ur_emux *x = &core->emux;

	core->cnt.sched_turns += x->turns;
	core->cnt.sched_blind_visits += x->blind_visits;
	core->cnt.sched_sifted += x->sifted;
	core->cnt.sched_woken += x->woken;
	x->turns = x->blind_visits = x->sifted = x->woken = 0;
}

/* SCHED-PULL-01. The arbiter names the lane of each packet; a turn may stretch over several calls.
 */
static unsigned output_lanes(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns)
{
	struct ur_emux *x = &e->core.emux;
	unsigned made = 0, touched = 0;

	while (made < cap && x->ready_lanes) {
		if (__builtin_expect(x->ready_lanes & e->closed_lanes, 0)) {
			uint16_t ready = x->ready_lanes & (uint16_t)~e->closed_lanes;

			if (!ready)
				break;
			made += serve_lane(e, &tx[made], ready, now_ns, &touched);
		} else if (x->ready_lanes & (x->ready_lanes - 1))
			made += serve_lane(e, &tx[made], x->ready_lanes, now_ns, &touched);
		else
			made += serve_alone(e, &tx[made], cap - made, now_ns, &touched);
	}
	for (; touched; touched &= touched - 1) {
		struct ur_emux_queue *q = x->turn[__builtin_ctz(touched)].queue;

		if (q)
			update_ready(q);
	}
	count_turns(&e->core);
	return made;
}

/* SCHED-AHEAD-01: an ACK, NAK, CNP or NOTIFY of the queue pair leaves ahead of all lanes. */
static inline void charge_ahead(struct ur_core *core, const struct ur_qp *qp,
				const struct ur_tx *tx)
{
	unsigned vl = qp->rsp_queue.vl;
	uint32_t bytes = ur_tx_frame_bytes(tx);

	count_sent(core, 1, bytes);
	if (vl == UR_VL_CNT)
		return;
	ur_vl_charge_ahead(&core->vl, vl, tx->payload_len);
	count_lane(core, vl, 1, bytes);
}

/* The same of ACKs and NAKs of one lane that follow each other. */
struct ahead {
	unsigned vl, packets;
	uint32_t bytes, charged;
};

static inline void charge_run(struct ur_core *core, const struct ahead *run)
{
	count_sent(core, run->packets, run->bytes);
	if (run->vl == UR_VL_CNT || !run->packets)
		return;
	ur_vl_charge_ahead(&core->vl, run->vl, run->charged);
	count_lane(core, run->vl, run->packets, run->bytes);
}

static unsigned output_cnps(struct ur_engine *e, struct ur_tx *tx, unsigned cap)
{
	struct ur_sched_node *n;
	unsigned made = 0;

	while (made < cap && (n = ur_sched_peek(&e->core.cnps))) {
		struct ur_qp *qp = UR_QP_OF(n, cnp_node);

		ur_cnp_next(qp, &tx[made]);
		charge_ahead(&e->core, qp, &tx[made++]);
	}
	return made;
}

static unsigned output_notifies(struct ur_engine *e, struct ur_tx *tx, unsigned cap,
				uint64_t now_ns)
{
	unsigned made = 0;
	struct ur_qp *qp;

	while (made < cap && (qp = ur_admission_make_next(&e->core, &tx[made], now_ns)))
		charge_ahead(&e->core, qp, &tx[made++]);
	return made;
}

#define ACKS_PASSED 64 /* that wait for credit, in one call */

/*
 * CREDIT-GATE-02: the first queue pair that owes an ACK and whose lane has credit; NULL: there is none. Those without go to
 * the end of the list, *pass of them.
 */
static struct ur_qp *peek_ack(struct ur_engine *e, unsigned *pass)
{
	struct ur_sched_node *n;

	while ((n = ur_sched_peek(&e->core.acks))) {
		struct ur_qp *qp = UR_QP_OF(n, ack_node);

		if (!(e->closed_acks >> qp->rsp_queue.vl & 1))
			return qp;
		if (!(*pass)--)
			return NULL;
		ur_sched_rotate(&e->core.acks, n);
	}
	return NULL;
}

/* The same as output_acks(), while some lane has no credit. */
static __attribute__((noinline)) unsigned output_open_acks(struct ur_engine *e, struct ur_tx *tx,
							   unsigned cap, uint64_t now_ns)
{
	unsigned made = 0, pass = ACKS_PASSED;
	struct ur_qp *qp;

	while (made < cap && (qp = peek_ack(e, &pass))) {
		bool ok = qp->ops->ack_next(qp, &tx[made], now_ns);

		UR_ASSERT(ok);
		charge_ahead(&e->core, qp, &tx[made]);
		made++;
	}
	return made;
}

/* There are some. */
static __attribute__((noinline)) unsigned output_acks(struct ur_engine *e, struct ur_tx *tx,
						      unsigned cap, uint64_t now_ns)
{
	struct ahead run = {.vl = UR_VL_CNT};
	struct ur_sched_node *n;
	unsigned made = 0;

	if (__builtin_expect(e->closed_acks, 0))
		return output_open_acks(e, tx, cap, now_ns);
	while (made < cap && (n = ur_sched_peek(&e->core.acks))) {
		struct ur_qp *qp = UR_QP_OF(n, ack_node);
		bool ok = qp->ops->ack_next(qp, &tx[made], now_ns);

		UR_ASSERT(ok);
		if (__builtin_expect(qp->rsp_queue.vl != run.vl, 0)) {
			charge_run(&e->core, &run);
			run = (struct ahead){.vl = qp->rsp_queue.vl};
		}
		run.packets++;
		run.bytes += ur_tx_frame_bytes(&tx[made]);
		run.charged += ur_vl_counted(tx[made].payload_len);
		made++;
	}
	charge_run(&e->core, &run);
	return made;
}

/* Adds up what contexts counted since the last call. */
static void count_contexts(struct ur_core *core)
{
	struct ur_rtx_pool *pool = &core->rtx;

	if (__builtin_expect(!(core->ooo.grown_cnt | core->ooo.short_cnt | pool->grown_cnt |
			       pool->short_cnt | pool->taken_cnt | pool->exhausted_cnt |
			       pool->lost_cnt | pool->late_cnt | pool->reordered_cnt |
			       pool->spurious_cnt),
			     1))
		return;
	core->cnt.ooo_grown += core->ooo.grown_cnt;
	core->cnt.ooo_short += core->ooo.short_cnt;
	core->ooo.grown_cnt = core->ooo.short_cnt = 0;
	core->cnt.rtx_grown += pool->grown_cnt;
	core->cnt.rtx_short += pool->short_cnt;
	core->cnt.rtx_contexts += pool->taken_cnt;
	core->cnt.rtx_exhausted += pool->exhausted_cnt;
	core->cnt.packets_deemed_lost += pool->lost_cnt;
	core->cnt.lost_but_arrived += pool->late_cnt;
	core->cnt.reordered += pool->reordered_cnt;
	core->cnt.spurious_retransmits += pool->spurious_cnt;
	pool->grown_cnt = pool->short_cnt = 0;
	pool->taken_cnt = pool->exhausted_cnt = pool->reordered_cnt = pool->spurious_cnt = 0;
	pool->lost_cnt = pool->late_cnt = 0;
}

static inline bool has_seldom(const struct ur_engine *e)
{
	const struct ur_core *core = &e->core;

	return e->mgmt_busy || core->settle.ready_cnt || core->cnps.ready_cnt ||
	       core->adm.busy.ready_cnt || (e->cm && ur_cm_wants_output(e->cm));
}

/* What goes before ACKs, and completions of what has left. */
static __attribute__((noinline)) unsigned output_seldom(struct ur_engine *e, struct ur_tx *tx,
							unsigned cap, uint64_t now_ns)
{
	unsigned n;

	ur_engine_complete_sent(e);
	n = e->mgmt_busy ? ur_mgmt_output(e, tx, cap, now_ns) : 0;
	n += output_cm(e, tx + n, cap - n, now_ns);
	for (unsigned i = 0; i < n; i++)
		count_sent(&e->core, 1, ur_tx_frame_bytes(&tx[i]));
	if (e->core.adm.busy.ready_cnt)
		n += output_notifies(e, tx + n, cap - n, now_ns);
	return n + output_cnps(e, tx + n, cap - n);
}

static inline __attribute__((always_inline)) unsigned
output_all(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns, bool acks_last)
{
	struct ur_core *core = &e->core;
	unsigned n = 0;

	count_contexts(core);
	if (__builtin_expect(has_seldom(e), 0))
		n = output_seldom(e, tx, cap, now_ns);
	if (!acks_last && core->acks.ready_cnt)
		n += output_acks(e, tx + n, cap - n, now_ns);
	if (core->emux.ready_lanes)
		n += output_lanes(e, tx + n, cap - n, now_ns);
	/* ACKs that had to wait for the responses just made. */
	if (core->acks.ready_cnt)
		n += output_acks(e, tx + n, cap - n, now_ns);
	return n;
}

unsigned ur_engine_output(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns)
{
	return output_all(e, tx, cap, now_ns, false);
}

__attribute__((noinline)) unsigned ur_engine_output_acks_last(struct ur_engine *e, struct ur_tx *tx,
							      unsigned cap, uint64_t now_ns)
{
	return output_all(e, tx, cap, now_ns, true);
}

unsigned ur_engine_output_posted(struct ur_engine *e, struct ur_tx *tx, unsigned cap,
				 uint64_t now_ns)
{
	ur_engine_complete_sent(e);
	return output_lanes(e, tx, cap, now_ns);
}

bool ur_engine_owes_one_ack(const struct ur_engine *e)
{
	const struct ur_core *core = &e->core;

	return core->acks.ready_cnt == 1 && !core->emux.ready_cnt && !has_seldom(e) &&
	       !(UR_QP_OF(ur_sched_peek(&core->acks), ack_node)->rsp.ack & UR_NAK_OWED);
}

void ur_engine_open_lanes(struct ur_engine *e, uint16_t data, uint16_t acks)
{
	e->closed_lanes = (uint16_t)~data;
	e->closed_acks =
		(uint16_t)~acks & ((1u << UR_VL_CNT) - 1); /* some queue pairs have no lane */
}

uint16_t ur_engine_ready_lanes(const struct ur_engine *e)
{
	return e->core.emux.ready_lanes;
}

bool ur_engine_wants_output(const struct ur_engine *e)
{
	return e->core.acks.ready_cnt || e->core.cnps.ready_cnt || e->core.emux.ready_cnt ||
	       e->core.settle.ready_cnt ||
	       (e->core.adm.busy.ready_cnt && ur_admission_wants_output(&e->core)) ||
	       (e->cm && ur_cm_wants_output(e->cm)) || e->mgmt_busy;
}
