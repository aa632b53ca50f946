/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/dest.h"

#include <string.h>

#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/delay.h"
#include "wire/ext.h"

/* Where packets have a gap, the next queue is released after that gap, within these bounds. */
#define RETRY_NS     (UINT64_C(4) << UR_WHEEL_TICK_SHIFT)
#define RETRY_MAX_NS UINT64_C(1000000)

/* A full window without progress lets one packet go after four delays, within these bounds. */
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

/* ---- bytes in flight ---- */

/* Congestion control may have opened the gate, or changed the time at which it opens. */
static void update_timer(struct ur_core *core, struct ur_dest *d)
{
	uint64_t open_ns = ur_cc_open_ns(d->cc);

	if (d->timer.armed && open_ns < d->timer.deadline_ns && ur_cc_has_room(d->cc))
		ur_timer_set(&core->wheel, &d->timer, open_ns);
}

/* Stops counting what the queue pair has in flight. */
static void subtract_flight(struct ur_qp *qp, struct ur_dest *d)
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

static void add_flight(struct ur_qp *qp, struct ur_dest *d, uint32_t psns)
{
	struct ur_flight *f = ur_dest_flight(qp);
	uint64_t bytes = (uint64_t)psns << qp->mtu_shift;

	f->psns = psns;
	d->cc->in_flight += bytes;
	if (f->epoch != d->epoch)
		d->old_flight += bytes;
}

/* Each PSN counts as a full packet, so the count is never too low. */
static void count_flight(struct ur_qp *qp, struct ur_dest *d)
{
	struct ur_flight *f = ur_dest_flight(qp);
	uint32_t psns = qp->ops->in_flight(qp), now = qp->ops->acked(qp), had = f->psns;
	uint32_t acked = (now - f->acked) & UR_PSN_MASK;

	f->acked = now;
	if (acked > had + f->written_off)
		acked = had + f->written_off; /* the sequence was restarted */
	d->cc->acked += (uint64_t)acked << qp->mtu_shift;
	subtract_flight(qp, d);
	f->written_off -= acked < f->written_off ? acked : f->written_off;
	if (psns < f->written_off)
		f->written_off = psns;
	psns -= f->written_off;
	if (acked || !had || f->epoch + 1 < d->epoch)
		f->epoch = d->epoch;
	add_flight(qp, d, psns);
	d->progress |= psns < had;
}

void ur_dest_count_flight(struct ur_qp *qp)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	if (!d->cc->watched || !qp->core->cc.ops->window)
		return;
	count_flight(qp, d);
	update_timer(qp->core, d);
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
	to = ur_path_destination(qp->path);
	cc = ur_cc_get(&core->cc, to.b, 1u << qp->mtu_shift, now_ns);
	idx = ur_cc_index(&core->cc, cc);
	if (idx == UINT32_MAX)
		return;
	core->dests[idx].cc = cc;
	if (cc->users == 1) {
		core->dests[idx].packets = 0;
		core->dests[idx].net = (struct ur_net_delay){0};
	}
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
		subtract_flight(qp, d);
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
		update_timer(core, d);
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

static void record_full(struct ur_dest *d, uint64_t now_ns)
{
	d->full_ns = now_ns;
	d->progress = false;
}

/*
 * CC-WINDOW-03. Where the window of a destination leaves each queue pair few packets, each packet
 * requests an ACK; otherwise a full window might wait for an ACK that was never requested.
 */
static void set_ackreq_interval(struct ur_qp *qp, const struct ur_dest *d)
{
	uint16_t every = ur_dest_flight(qp)->ackreq_every;
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
		ur_cc_on_unmeasured_ack(&core->cc, d->cc, now_ns);
		set_ackreq_interval(qp, d);
	}
	room = ur_cc_has_room(d->cc);
	if (!room)
		record_full(d, now_ns);
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

	d->packets += bytes >> qp->mtu_shift > 1 ? bytes >> qp->mtu_shift : 1;
	if (__builtin_expect(d->cc->watched, 0))
		return send_watched(qp, d, bytes, now_ns);
	d->cc->bytes += bytes;
	return false;
}

/*
 * CC-WINDOW-04. The window has stayed full. Packets from before the last epoch that were not
 * acknowledged since are no longer counted, because a queue pair that has nothing more to send may
 * detect their loss much later. This is reported as a timeout, so that a silent peer does not get one
 * window after the other.
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

/* The number of queues to release at once where there is no gap between packets. */
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
 * PACE-GATE-02. One queue is released; its packet closes the gate again. But where many others are
 * ready it may have to wait long for its turn. So the next queue is released a gap later, and their
 * turns are as far apart.
 *
 * CC-WINDOW-04. A full window opens when an answer arrives. If none has arrived for a while, one packet
 * is sent nevertheless, because it may repair the loss.
 */
void ur_dest_timer(struct ur_core *core, struct ur_dest *d, uint64_t now_ns)
{
	uint64_t open_ns;
	bool room;

	ur_cc_on_unmeasured_ack(&core->cc, d->cc, now_ns);
	room = ur_cc_has_room(d->cc);
	if (!room && d->progress)
		record_full(d, now_ns);
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

/* ---- reports ---- */

static struct ur_net_sent sent_to(const struct ur_core *core, const struct ur_dest *d)
{
	return (struct ur_net_sent){d->packets, d->cc->bytes, d->cc->throttled,
				    ur_cc_is_wary(&core->cc, d->cc)};
}

/* Both ends understand delay stamps, and the algorithm has a use for delays. */
static bool may_ask(const struct ur_qp *qp)
{
	const struct ur_cc *cc = &qp->core->cc;

	return qp->agreed.delay && qp->ops->asks_delay && cc->ops->on_ack && !cc->attr.round_trip;
}

/* A probe that is to find out what is lost goes first, and alone. */
static bool may_be_told(const struct ur_qp *qp)
{
	return may_ask(qp) && !qp->xreq.probe && !(qp->xreq.probed & UR_PROBE_LOSS);
}

/* The queue pair that is the first to leave the gate. Others may wait there for many round trips. */
static struct ur_qp *first_to_send(struct ur_qp *qp, const struct ur_dest *d)
{
	struct ur_emux_queue *q = ur_gate_first(&d->gate);
	struct ur_qp *first = q ? UR_QP_OF(q, sq_queue) : qp;

	return may_be_told(first) ? first : qp;
}

static void ask_if_due(struct ur_qp *qp, struct ur_dest *d, uint32_t rtt_ns, uint64_t away_ns,
		       uint64_t now_ns)
{
	uint64_t patience_ns = ur_rtt_rto_ns(&qp->xreq.rtt, 0);
	struct ur_net_sent sent = sent_to(qp->core, d);
	uint8_t before = d->net.state;

	qp = first_to_send(qp, d);
	if (!may_be_told(qp))
		return;
	if (patience_ns < 4 * (uint64_t)rtt_ns)
		patience_ns = 4 * (uint64_t)rtt_ns;
	if (ur_net_delay_on_rtt(&d->net, rtt_ns, away_ns, patience_ns, &sent, now_ns))
		qp->xreq.probe = UR_PROBE_DELAY;
	if (d->net.state == UR_NET_BLOCKED && before != UR_NET_BLOCKED)
		qp->core->cc.cnt.net_blocked++;
}

/* PACE-RTT-01, PACE-NET-01, PACE-NET-05 */
void ur_dest_report_rtt(struct ur_qp *qp, uint32_t rtt, uint32_t residence, bool read,
			uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);
	uint64_t long_ns = (uint64_t)rtt << UR_STAMP_SHIFT, away_ns = ((uint64_t)rtt + residence)
								      << UR_STAMP_SHIFT;
	uint32_t ns = long_ns < UINT32_MAX ? (uint32_t)long_ns : UINT32_MAX - 1, delay_ns;

	if (read)
		ur_net_delay_on_read(&d->net, now_ns);
	delay_ns = ur_net_delay_of_rtt(&d->net, ns, d->cc->throttled, now_ns);
	if (delay_ns) {
		ur_cc_on_estimate(&core->cc, d->cc, ns, delay_ns, now_ns);
		update_timer(core, d);
	}
	if (may_ask(qp))
		ask_if_due(qp, d, ns, away_ns, now_ns);
}

bool ur_dest_on_ask(struct ur_qp *qp, struct ur_stamp stamp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);
	struct ur_net_sent sent;

	/* The queue pair may have lost its destination since it was told to ask. */
	if (!d)
		return false;
	sent = sent_to(qp->core, d);
	return ur_net_delay_on_ask(&d->net, stamp, &sent, now_ns);
}

/* What the answer says of its request, and what switches have stamped into the answer itself. */
static struct ur_net_echo echo_of(const struct ur_packet *p)
{
	struct ur_net_echo e = {
		.stamp = ur_stamp_of(p->xaeth.echo),
		.residence = p->xaeth.residence,
		.there = {p->ndth.hops, p->ndth.delay},
	};

	if (p->bth.resv6 & UR_DELAY_ASK)
		e.back = (struct ur_net_way){p->bth.resv6 & UR_DELAY_HOPS, p->udp_csum};
	return e;
}

/* PACE-NET-02 */
bool ur_dest_report_delay(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_core *core = qp->core;
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);
	struct ur_net_echo echo = echo_of(p);
	bool open = d->net.open;
	uint32_t rtt_ns, delay_ns;

	switch (ur_net_delay_on_answer(&d->net, &echo, now_ns, &rtt_ns, &delay_ns)) {
	case UR_NET_SAMPLE:
		core->cc.cnt.net_samples++;
		if (!ur_net_delay_serves(&d->net, now_ns))
			break;
		ur_cc_on_delay(&core->cc, d->cc, rtt_ns, delay_ns, now_ns);
		update_timer(core, d);
		break;
	case UR_NET_BAD:
		core->cc.cnt.net_bad++;
		break;
	case UR_NET_NONE:
		break;
	}
	return open && !d->net.open;
}

void ur_dest_report_loss(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	ur_cc_on_loss(&qp->core->cc, d->cc, now_ns);
	ur_dest_count_flight(qp);
}

/* CC-WINDOW-05. What was in flight is no longer counted; otherwise other queue pairs would wait. */
void ur_dest_report_timeout(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	ur_cc_on_timeout(&qp->core->cc, d->cc, now_ns);
	ur_dest_flight(qp)->written_off = qp->ops->in_flight(qp);
	ur_dest_count_flight(qp);
}

bool ur_dest_on_cnp(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	return d && ur_cc_on_cnp(&qp->core->cc, d->cc, now_ns);
}
