/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission_priv.h"

#include "transport/qp.h"

/* The sender: whether a request may be sent, or waits in its entry of the service status table. */

void ur_admission_set_entry_timer(struct ur_core *core, struct ur_sst_entry *e)
{
	struct ur_timer *t = ur_admission_timer_of(&core->adm, e);
	uint64_t at = ur_sst_deadline(e);

	if (at != UR_NEVER && (!t->armed || at < t->deadline_ns))
		ur_timer_set(&core->wheel, t, at);
}

/* It waits for nothing any more. A refused request that waits is none of ur_admission_update()'s. */
static void stop_waiting(struct ur_adm_qp *q)
{
	if (q->waiter.waits && !q->queue_class)
		ur_sst_cancel_wait(q->entry, &q->waiter);
}

static void release(struct ur_adm_qp *q)
{
	stop_waiting(q);
	q->may_send = true;
	if (q->entry->paper)
		ur_sst_release(q->entry, &q->waiter);
}

/* ADM-HOLD-01, ADM-HOLD-02. A release stays in force: a queue pair in a ready list can send. */
void ur_admission_update(struct ur_qp *qp, bool asks)
{
	struct ur_adm_qp *q = &qp->adm;

	if (!asks || q->queue_class || q->may_send) {
		stop_waiting(q);
		return;
	}
	/* ADM-HOLD-04. The entry's timer finds an expired status. */
	if (TAILQ_EMPTY(&q->entry->waiters[UR_ADM_NONE]) &&
	    ur_sst_may_send(q->entry, UR_ADM_NONE, q->entry->updated_ns)) {
		release(q);
		return;
	}
	qp->core->cnt.adm_waits += !q->waiter.waits;
	ur_sst_wait(q->entry, &q->waiter, UR_ADM_NONE);
	ur_admission_set_entry_timer(qp->core, q->entry);
}

/*
 * ADM-PAPER-02. A refused request whose class is not served waits for a change. It probes like one that
 * waits for a grant, so that its refusal lives on and a lost NOTIFY heals.
 */
static uint64_t wait_for_change(struct ur_qp *qp, bool *probe, uint64_t now_ns)
{
	struct ur_adm_qp *q = &qp->adm;

	if (q->may_repeat || ur_sst_may_send(q->entry, q->queue_class, now_ns)) {
		ur_sst_cancel_wait(q->entry, &q->waiter);
		q->may_repeat = false;
		return 0;
	}
	*probe = q->waiter.waits;
	qp->core->cnt.adm_waits += !q->waiter.waits;
	ur_sst_wait(q->entry, &q->waiter, q->queue_class);
	ur_admission_set_entry_timer(qp->core, q->entry);
	return qp->core->adm.attr.fallback_ns;
}

/* ADM-CLASS-02 */
uint64_t ur_admission_wait_on(struct ur_qp *qp, bool *probe, uint64_t now_ns)
{
	struct ur_adm_qp *q = &qp->adm;

	*probe = false;
	if (!q->queue_class)
		return 0;
	if (qp->admission & UR_ADM_UNGRANTED)
		return wait_for_change(qp, probe, now_ns);
	if (!q->status_seen)
		return 0;
	q->status_seen = false;
	*probe = true;
	return q->wait_ns;
}
