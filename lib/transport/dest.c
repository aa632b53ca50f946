/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/dest.h"

#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/ext.h"

/* Until somebody else is let go on: a gap, within these. */
#define RETRY_NS     (UINT64_C(4) << UR_WHEEL_TICK_SHIFT)
#define RETRY_MAX_NS UINT64_C(1000000)

size_t ur_dests_size(uint32_t cnt)
{
	return ur_align64(cnt * sizeof(struct ur_dest)) + ur_align64(ur_pacing_size(cnt));
}

void ur_dests_init(struct ur_core *core, void *memory, uint32_t cnt,
		   const struct ur_pacing_attr *attr)
{
	core->dests = memory;
	ur_pacing_init(&core->pacing, (char *)memory + ur_align64(cnt * sizeof(struct ur_dest)),
		       cnt, attr);
	for (uint32_t i = 0; i < cnt; i++) {
		ur_gate_init(&core->dests[i].gate);
		core->dests[i].timer = (struct ur_timer){.kind = UR_TIMER_DEST};
	}
}

/* ---- life ---- */

/* PACE-DEST-01 */
void ur_dest_attach(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	struct ur_pacing_dest *pace;
	struct ur_gid to;
	uint32_t idx;

	ur_dest_detach(qp);
	to = ur_path_destination(&qp->path);
	pace = ur_pacing_get(&core->pacing, to.b, now_ns);
	idx = ur_pacing_index(&core->pacing, pace);
	if (idx == UINT32_MAX)
		return;
	core->dests[idx].pace = pace;
	ur_emux_set_gate(&core->emux, &qp->sq_queue, &core->dests[idx].gate);
}

void ur_dest_detach(struct ur_qp *qp)
{
	struct ur_core *core = qp->core;
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	if (!d)
		return;
	ur_emux_set_gate(&core->emux, &qp->sq_queue, NULL);
	if (d->pace->users == 1) {
		UR_ASSERT(d->gate.waiting.ready_cnt == 0);
		ur_timer_cancel(&core->wheel, &d->timer);
		d->gate.closed = false;
	}
	ur_pacing_put(&core->pacing, d->pace);
}

/* ---- the gate ---- */

/* PACE-GATE-01 */
bool ur_dest_sent(struct ur_core *core, struct ur_dest *d, uint32_t bytes, uint64_t now_ns)
{
	uint64_t open_ns;

	ur_pacing_sent(&core->pacing, d->pace, bytes, now_ns);
	open_ns = ur_pacing_open_ns(d->pace);
	if (open_ns <= now_ns)
		return false;
	d->gate.closed = true;
	ur_timer_set(&core->wheel, &d->timer, open_ns);
	return true;
}

static uint64_t retry_ns(const struct ur_dest *d)
{
	uint64_t gap = ur_pacing_gap_ns(d->pace);

	return gap < RETRY_NS ? RETRY_NS : gap < RETRY_MAX_NS ? gap : RETRY_MAX_NS;
}

/*
 * PACE-GATE-02. One queue goes on; what it sends closes the gate again. But its turn may be long in
 * coming where many others are ready, so the next one follows a gap later: they will have their
 * turns as far apart.
 */
void ur_dest_timer(struct ur_core *core, struct ur_dest *d, uint64_t now_ns)
{
	uint64_t open_ns = ur_pacing_open_ns(d->pace);

	if (open_ns > now_ns) {
		ur_timer_set(&core->wheel, &d->timer, open_ns);
		return;
	}
	/* Not throttled any more: all of them may go, a few at a time. */
	ur_emux_gate_open(&core->emux, &d->gate, open_ns ? 1 : UR_EMUX_WQES);
	if (d->gate.waiting.ready_cnt)
		ur_timer_set(&core->wheel, &d->timer, open_ns ? now_ns + retry_ns(d) : now_ns);
}

/* ---- what the network says ---- */

/* What was learned may open the gate, or move the time at which it opens. */
static void look_again(struct ur_core *core, struct ur_dest *d, uint64_t now_ns)
{
	uint64_t open_ns = ur_pacing_open_ns(d->pace);

	if (d->gate.closed && open_ns < d->timer.deadline_ns)
		ur_timer_set(&core->wheel, &d->timer, open_ns > now_ns ? open_ns : now_ns);
}

void ur_dest_sample(struct ur_core *core, struct ur_dest *d, uint32_t rtt, uint64_t now_ns)
{
	uint64_t ns = (uint64_t)rtt << UR_STAMP_SHIFT;

	ur_pacing_delay(&core->pacing, d->pace, ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX - 1,
			now_ns);
	look_again(core, d, now_ns);
}

bool ur_dest_cnp(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);
	struct ur_pacing *t = &qp->core->pacing;

	if (!d || t->attr.mode != UR_PACING_DCQCN)
		return false;
	ur_pacing_cnp(t, d->pace, now_ns);
	return true;
}
