/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission_priv.h"

#include "transport/rc/ext.h"

#define WAKE_BATCH 16u

#define QP_OF_WAITER(ptr) UR_QP_OF(ptr, adm.waiter)

/* The sender: statuses, queue classes and grants that arrive, and what they release. */

/* It waited for nothing else. A refused request is sent again by the timer that would end its RNR wait. */
static void wake_one(struct ur_core *core, struct ur_qp *qp, uint64_t now_ns)
{
	if (qp->adm.queue_class) {
		qp->adm.may_repeat = true;
		if (qp->retry.is_waiting)
			qp->retry.rnr_until_ns = now_ns;
		ur_timer_set(&core->wheel, &qp->timer, now_ns);
		return;
	}
	qp->adm.may_send = true;
	ur_emux_set(&core->emux, &qp->sq_queue, true);
}

/* ADM-SST-04: releases up to n waiters of the entry. */
static void wake(struct ur_core *core, struct ur_sst_entry *e, uint32_t n, uint64_t now_ns)
{
	struct ur_sst_waiter *out[WAKE_BATCH];

	while (n) {
		uint32_t want = n < WAKE_BATCH ? n : WAKE_BATCH;
		uint32_t got = ur_sst_wake(e, out, want, now_ns);

		for (uint32_t i = 0; i < got; i++) {
			core->cnt.adm_woken++;
			wake_one(core, QP_OF_WAITER(out[i]), now_ns);
		}
		if (got < want)
			return;
		n -= got;
	}
}

/*
 * ADM-PAPER-03: what was released and has not been sent by now would be refused. It is taken out of the
 * ready list here, unless the queue pair has something else to send.
 */
static void recall(struct ur_core *core, struct ur_sst_entry *e)
{
	struct ur_sst_waiter *w;

	while ((w = ur_sst_next_refused(e))) {
		struct ur_qp *qp = QP_OF_WAITER(w);

		if (!qp->adm.may_send || !ur_sst_recall(e, w))
			continue;
		qp->adm.may_send = false;
		core->cnt.adm_waits++;
		ur_emux_set(&core->emux, &qp->sq_queue, ur_ext_requester_ready(qp));
	}
	ur_admission_set_entry_timer(core, e);
}

static void update_entry(struct ur_qp *qp, const struct ur_asth *x, uint64_t now_ns)
{
	struct ur_sst_entry *e = qp->adm.entry;

	if (!e)
		return;
	if (e->paper) {
		/* All that may send does; the room is none of the document's. */
		if (ur_sst_update(e, x->status, x->generation, now_ns)) {
			recall(qp->core, e);
			wake(qp->core, e, UINT32_MAX, now_ns);
		}
		return;
	}
	if (ur_sst_update(e, x->status, x->generation, now_ns))
		wake(qp->core, e, x->room ? x->room : 1, now_ns);
	else if (!(x->status & 1) && x->generation == e->generation && x->room)
		wake(qp->core, e, 1, now_ns);
}

/* The request is refused no longer, or with another class: it waits no longer with this one. */
static void end_refusal(struct ur_adm_qp *q)
{
	q->may_repeat = false;
	if (q->waiter.waits && q->waiter.queue_class)
		ur_sst_cancel_wait(q->entry, &q->waiter);
}

/* ADM-CLASS-01 */
static void take_class(struct ur_qp *qp, uint8_t queue_class)
{
	const struct ur_selective *psn = &qp->xreq.psn;
	struct ur_adm_qp *q = &qp->adm;

	if (queue_class > UR_ADM_CLASS_B || ur_psn_eq(psn->una, psn->max))
		queue_class = UR_ADM_NONE;
	if (q->queue_class && queue_class != q->queue_class)
		end_refusal(q);
	q->queue_class = queue_class;
	if (!queue_class)
		return;
	q->may_send = false;
	if (q->waiter.waits && !q->waiter.queue_class)
		ur_sst_cancel_wait(q->entry, &q->waiter);
}

void ur_admission_on_status(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	qp->adm.status_seen = true;
	if (!ur_psn_lt(p->xaeth.epsn, qp->xreq.psn.una))
		take_class(qp, p->asth.queue_class);
	update_entry(qp, &p->asth, now_ns);
}

void ur_admission_on_complete(struct ur_qp *qp, uint32_t messages, uint64_t now_ns)
{
	struct ur_sst_entry *e = qp->adm.entry;

	end_refusal(&qp->adm);
	qp->adm.queue_class = UR_ADM_NONE;
	if (e && messages && !(e->status & 1))
		wake(qp->core, e, messages, now_ns);
}

/* ADM-NOTIFY-04 */
enum ur_drop ur_admission_on_notify(struct ur_qp *qp, const struct ur_packet *p, bool *granted,
				    uint64_t now_ns)
{
	const struct ur_selective *psn = &qp->xreq.psn;
	struct ur_counters *cnt = &qp->core->cnt;

	*granted = false;
	if (!(qp->admission & UR_ADM_HOLDER) || p->pool != qp->agreed.pool ||
	    ur_psn_lt(p->bth.psn, psn->una) || ur_psn_lt(psn->max, p->bth.psn))
		return UR_DROP_POOL;
	cnt->adm_notifies_received++;
	if (p->asth.granted && ur_psn_eq(p->bth.psn, psn->una)) {
		cnt->adm_grants_received++;
		qp->adm.status_seen = true;
		take_class(qp, p->asth.queue_class);
		*granted = true;
	}
	update_entry(qp, &p->asth, now_ns);
	return UR_DROP_NONE;
}

void ur_admission_entry_timer(struct ur_core *core, struct ur_timer *t, uint64_t now_ns)
{
	struct ur_sst_entry *e = &core->adm.entries[t - core->adm.timers];

	/* After expiry all may send; the rest of them follow when the timer expires again. */
	if (ur_sst_deadline(e) <= now_ns)
		wake(core, e, WAKE_BATCH, now_ns);
	ur_admission_set_entry_timer(core, e);
}
