/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/dest.h"

#include <string.h>

#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/ext.h"

/* Until the next queue goes on where packets have a gap: that gap, within these. */
#define RETRY_NS     (UINT64_C(4) << UR_WHEEL_TICK_SHIFT)
#define RETRY_MAX_NS UINT64_C(1000000)

/* Until one packet goes beyond a full window when nothing comes back: four delays, within these. */
#define PERSIST_MIN_NS UINT64_C(1000000)
#define PERSIST_MAX_NS UINT64_C(100000000)

size_t ur_dests_size(uint32_t cnt, uint32_t max_qp)
{
	return ur_align64(cnt * sizeof(struct ur_dest)) + ur_align64(ur_cc_size(cnt)) +
	       ur_align64(max_qp * sizeof(struct ur_flight));
}

void ur_dests_init(struct ur_core *core, void *memory, uint32_t cnt, const struct ur_cc_attr *attr,
		   const struct ur_qp *qps, uint32_t max_qp)
{
	char *m = memory;

	core->dests = memory;
	m += ur_align64(cnt * sizeof(struct ur_dest));
	ur_cc_init(&core->cc, m, cnt, attr);
	m += ur_align64(ur_cc_size(cnt));
	core->flights = (struct ur_flight *)(void *)m;
	memset(core->flights, 0, max_qp * sizeof(struct ur_flight));
	core->qps = qps;
	for (uint32_t i = 0; i < cnt; i++) {
		core->dests[i] = (struct ur_dest){.timer = {.kind = UR_TIMER_DEST}};
		ur_gate_init(&core->dests[i].gate);
	}
}

/* ---- what is in flight ---- */

/*
 * CC-WINDOW-02. Numbers that are on their way, or whose answers are: a READ counts as what it asks
 * for. While the peer has no receive, nothing is: it dropped what followed.
 */
static uint32_t psns_in_flight(const struct ur_qp *qp)
{
	if (qp->type != IBV_QPT_RC || qp->retry.rnr_until_ns)
		return 0;
	if (ur_qp_is_ext(qp))
		return ur_selective_in_flight(&qp->xreq.psn) +
		       ur_selective_in_flight(&qp->xreq.rsp);
	return (uint32_t)ur_psn_diff(qp->gbn.rec.nxt, qp->gbn.rec.una);
}

/* It grows by one with each number that is acknowledged, whichever sequence it is of. */
static uint32_t acked_numbers(const struct ur_qp *qp)
{
	if (ur_qp_is_ext(qp))
		return qp->xreq.psn.una.v + qp->xreq.rsp.una.v;
	return qp->gbn.rec.una.v;
}

/* What was learned may open the gate, or move the time at which it opens. */
static void look_again(struct ur_core *core, struct ur_dest *d)
{
	uint64_t open_ns = ur_cc_open_ns(d->cc);

	if (d->timer.armed && open_ns < d->timer.deadline_ns && ur_cc_has_room(d->cc))
		ur_timer_set(&core->wheel, &d->timer, open_ns);
}

/* What it has in flight counts no longer. */
static void take_out(struct ur_qp *qp, struct ur_dest *d)
{
	struct ur_flight *f = ur_dest_flight(qp);
	uint64_t bytes = (uint64_t)f->psns << qp->mtu_shift;

	if (f->epoch == d->epoch) {
		d->cc->in_flight -= bytes;
	} else if (f->epoch + 1 == d->epoch) {
		d->cc->in_flight -= bytes;
		d->old_flight -= bytes;
	} else {
		f->written_off += f->psns;
	}
	f->psns = 0;
}

static void put_in(struct ur_qp *qp, struct ur_dest *d, uint32_t psns)
{
	struct ur_flight *f = ur_dest_flight(qp);
	uint64_t bytes = (uint64_t)psns << qp->mtu_shift;

	f->psns = psns;
	d->cc->in_flight += bytes;
	if (f->epoch != d->epoch)
		d->old_flight += bytes;
}

/* A number counts as a full packet: what is in flight is never more than is counted. */
static void count_flight(struct ur_qp *qp, struct ur_dest *d)
{
	struct ur_flight *f = ur_dest_flight(qp);
	uint32_t psns = psns_in_flight(qp), now = acked_numbers(qp), had = f->psns;
	uint32_t acked = (now - f->acked) & UR_PSN_MASK;

	f->acked = now;
	if (acked > had + f->written_off)
		acked = had + f->written_off; /* the sequence began anew */
	d->cc->acked += (uint64_t)acked << qp->mtu_shift;
	take_out(qp, d);
	f->written_off -= acked < f->written_off ? acked : f->written_off;
	if (psns < f->written_off)
		f->written_off = psns;
	psns -= f->written_off;
	if (acked || !had || f->epoch + 1 < d->epoch)
		f->epoch = d->epoch;
	put_in(qp, d, psns);
	d->progress |= psns < had;
}

void ur_dest_count_flight(struct ur_qp *qp)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	if (!d->cc->watched || !qp->core->cc.ops->window)
		return;
	count_flight(qp, d);
	look_again(qp->core, d);
}

/* ---- life ---- */

/* PACE-DEST-01 */
void ur_dest_attach(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	struct ur_cc_dest *cc;
	struct ur_gid to;
	uint32_t idx;

	ur_dest_detach(qp);
	to = ur_path_destination(&qp->path);
	cc = ur_cc_get(&core->cc, to.b, 1u << qp->mtu_shift, now_ns);
	idx = ur_cc_index(&core->cc, cc);
	if (idx == UINT32_MAX)
		return;
	core->dests[idx].cc = cc;
	ur_dest_flight(qp)->ackreq_every = qp->req.ackreq_every;
	ur_emux_set_gate(&core->emux, &qp->sq_queue, &core->dests[idx].gate);
	ur_dest_count_flight(qp);
}

void ur_dest_detach(struct ur_qp *qp)
{
	struct ur_core *core = qp->core;
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	if (!d)
		return;
	if (d->cc->watched) {
		take_out(qp, d);
		qp->req.ackreq_every = ur_dest_flight(qp)->ackreq_every;
		*ur_dest_flight(qp) = (struct ur_flight){0};
	}
	ur_emux_set_gate(&core->emux, &qp->sq_queue, NULL);
	if (d->cc->users == 1) {
		UR_ASSERT(d->gate.waiting.ready_cnt == 0);
		UR_ASSERT(d->cc->in_flight == 0);
		ur_timer_cancel(&core->wheel, &d->timer);
		d->gate.closed = false;
	} else {
		look_again(core, d);
	}
	ur_cc_put(&core->cc, d->cc);
}

/* ---- the gate ---- */

static uint64_t retry_ns(const struct ur_dest *d)
{
	uint64_t gap = ur_cc_gap_ns(d->cc);

	return gap < RETRY_NS ? RETRY_NS : gap < RETRY_MAX_NS ? gap : RETRY_MAX_NS;
}

static uint64_t persist_ns(const struct ur_dest *d)
{
	uint64_t ns = d->cc->avg8_ns / 2;

	return ns < PERSIST_MIN_NS ? PERSIST_MIN_NS : ns < PERSIST_MAX_NS ? ns : PERSIST_MAX_NS;
}

static void note_full(struct ur_dest *d, uint64_t now_ns)
{
	d->full_ns = now_ns;
	d->progress = false;
}

/*
 * CC-WINDOW-03. Where the window of a destination leaves each queue pair few packets, each packet
 * asks for its ACK: else a full window might wait for one that nothing asked for.
 */
static void ask_often(struct ur_qp *qp, const struct ur_dest *d)
{
	uint32_t every = ur_dest_flight(qp)->ackreq_every;
	uint64_t enough = (uint64_t)d->cc->users * 2 * every << qp->mtu_shift;

	qp->req.ackreq_every = d->cc->window < enough ? 1 : every;
}

/* PACE-GATE-01, CC-WINDOW-01 */
__attribute__((noinline)) static bool send_watched(struct ur_qp *qp, struct ur_dest *d,
						   uint32_t bytes, uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	uint64_t open_ns;
	bool room;

	ur_cc_on_send(&core->cc, d->cc, bytes, now_ns);
	if (core->cc.ops->window) {
		count_flight(qp, d);
		ur_cc_on_acked(&core->cc, d->cc, now_ns);
		ask_often(qp, d);
	}
	room = ur_cc_has_room(d->cc);
	if (!room)
		note_full(d, now_ns);
	open_ns = ur_cc_open_ns(d->cc);
	if (open_ns <= now_ns && room)
		return false;
	d->gate.closed = true;
	ur_timer_set(&core->wheel, &d->timer, room ? open_ns : now_ns + persist_ns(d));
	return true;
}

bool ur_dest_on_send(struct ur_qp *qp, uint32_t bytes, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	if (__builtin_expect(d->cc->watched, 0))
		return send_watched(qp, d, bytes, now_ns);
	d->cc->bytes += bytes;
	return false;
}

/*
 * CC-WINDOW-04. The window has been full for a while. What was in flight before the while before,
 * and was not acknowledged since, counts no longer: a queue pair that has nothing more to send may
 * know of its loss much later. That is a timeout; so a peer that stands still does not get a window
 * after the other.
 */
static void begin_epoch(struct ur_core *core, struct ur_dest *d, uint64_t now_ns)
{
	uint64_t lost = d->old_flight;

	d->cc->in_flight -= lost;
	d->old_flight = d->cc->in_flight;
	d->epoch++;
	if (lost)
		ur_cc_on_timeout(&core->cc, d->cc, now_ns);
}

/* How many queues go on at once where no gap is between packets. */
static uint32_t queues_for(const struct ur_dest *d)
{
	uint64_t room;

	if (d->cc->window == UR_CC_NO_WINDOW)
		return UR_EMUX_WQES;
	room = d->cc->window > d->cc->in_flight ? d->cc->window - d->cc->in_flight : 0;
	room >>= __builtin_ctz(d->cc->packet);
	return room < 1 ? 1 : room < UR_EMUX_WQES ? (uint32_t)room : UR_EMUX_WQES;
}

/*
 * PACE-GATE-02. One queue goes on; what it sends closes the gate again. But its turn may be long in
 * coming where many others are ready, so the next one follows a gap later: they will have their
 * turns as far apart.
 *
 * CC-WINDOW-04. A window that stays full opens by what comes back. If nothing has for a while, one
 * packet goes nevertheless: it may be what repairs the loss.
 */
void ur_dest_timer(struct ur_core *core, struct ur_dest *d, uint64_t now_ns)
{
	uint64_t open_ns;
	bool room;

	ur_cc_on_acked(&core->cc, d->cc, now_ns);
	room = ur_cc_has_room(d->cc);
	if (!room && d->progress)
		note_full(d, now_ns);
	if (!room && now_ns - d->full_ns < persist_ns(d)) {
		ur_timer_set(&core->wheel, &d->timer, d->full_ns + persist_ns(d));
		return;
	}
	if (!room)
		begin_epoch(core, d, now_ns);
	open_ns = ur_cc_open_ns(d->cc);
	if (open_ns > now_ns) {
		ur_timer_set(&core->wheel, &d->timer, open_ns);
		return;
	}
	ur_emux_gate_open(&core->emux, &d->gate, room && !open_ns ? queues_for(d) : 1);
	if (!d->gate.waiting.ready_cnt)
		return;
	if (!d->cc->throttled)
		ur_timer_set(&core->wheel, &d->timer, now_ns);
	else
		ur_timer_set(&core->wheel, &d->timer,
			     now_ns + (room ? retry_ns(d) : persist_ns(d)));
}

/* ---- what the network says ---- */

/* PACE-RTT-01 */
void ur_dest_report_rtt(struct ur_qp *qp, uint32_t rtt, uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);
	uint64_t ns = (uint64_t)rtt << UR_STAMP_SHIFT;

	ur_cc_on_ack(&core->cc, d->cc, ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX - 1, now_ns);
	look_again(core, d);
}

void ur_dest_report_loss(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	ur_cc_on_loss(&qp->core->cc, d->cc, now_ns);
	ur_dest_count_flight(qp);
}

/* CC-WINDOW-05: what was in flight counts no longer, or those who share the window wait for it. */
void ur_dest_report_timeout(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	ur_cc_on_timeout(&qp->core->cc, d->cc, now_ns);
	ur_dest_flight(qp)->written_off = psns_in_flight(qp);
	ur_dest_count_flight(qp);
}

bool ur_dest_on_cnp(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	return d && ur_cc_on_cnp(&qp->core->cc, d->cc, now_ns);
}
