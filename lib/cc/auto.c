/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc/auto.h"
#include "cc/cc_priv.h"

/*
 * A rate for each destination, chosen once per round trip so that a few packets of our own wait at
 * the bottleneck. docs/design/pacing.md says why, and which alternatives were measured.
 *
 * A round lasts from round_ns until the first sample of a packet that was sent at or after
 * round_ns. Queues are measured as delay beyond the least delay.
 */
#define QUEUE_BYTES    (4 * 4096) /* wanted at the bottleneck, or if that is more, */
#define QUEUE_NS       1280	  /* what the link sends in this time: four packets at 100 Gb/s */
#define PAUSE_NS       500000	  /* if a delay is too long by more, the peer may not have run, */
#define LATE_SHIFT     3	  /* unless delays stay too long for this part of it (a shift) */
#define JITTERS	       6	  /* a delay longer by this many times the jitter is a queue */
#define JITTER_MAX_NS  50000	  /* plus half the least delay: at most this counts as jitter */
#define INTERVAL_NS    1000000000 /* of the least delay */
#define CUT_MAX	       224	  /* largest cut, in 1/256 of the capacity */
#define GROW_MAX       64	  /* largest growth, in 1/256 of the rate */
#define STALE_NS       1000000000 /* without a sample, after which the state is obsolete */
#define IDLE	       16	  /* round trips without a sample after which there was a pause */
#define PROBE_EVERY    256	  /* rounds between probes */
#define PROBE_ROUNDS   4	  /* length of a probe */
#define PROBE_SHIFT    2	  /* a probe sends this part of the capacity (a shift) */
#define PROBE_AGAIN    4	  /* rounds until the second probe */
#define RECOVER_ROUNDS 2	  /* after a probe, until capacities are valid again */
#define PROOFS	       3	  /* rounds in a row that make a longer path probable */

#define READ_UNIT  8192		   /* packets that request more are READs; */
#define READ_BYTES (2 * 32 * 4096) /* each end may be processing a burst of their responses, */
#define READ_NS	   250000	   /* for at most this long */

UR_CC_STATE(ur_cc_auto)

/* ---- delays ---- */

static void init(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	struct ur_cc_auto *a = state_of(d);

	(void)t;
	a->least_ns = a->least_next_ns = UINT32_MAX;
	a->interval_ns = now_ns + INTERVAL_NS;
	a->sent[0] = (struct ur_cc_sent){.ns = now_ns};
	a->sent_cnt = 1;
}

static uint32_t apart(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

/* One late answer is no queue. PACE-AUTO-02 */
static uint32_t delay_of(const struct ur_cc_auto *a)
{
	return a->delay_ns < a->before_ns ? a->delay_ns : a->before_ns;
}

static uint32_t queue_of(const struct ur_cc_auto *a)
{
	return delay_of(a) - a->least_ns;
}

/*
 * When delays reverse, up then down or down then up, the smaller of the two steps is jitter; a queue
 * moves in one direction.
 */
static void record_delay(struct ur_cc_auto *a, uint32_t delay_ns, uint64_t now_ns)
{
	uint32_t turn = 0;

	if (delay_ns < a->least_ns)
		a->least_ns = delay_ns;
	if (delay_ns < a->least_next_ns)
		a->least_next_ns = delay_ns;
	if ((a->delay_ns > a->before_ns) == (a->delay_ns > delay_ns)) {
		uint32_t here = apart(a->delay_ns, a->before_ns),
			 there = apart(a->delay_ns, delay_ns);

		turn = here < there ? here : there;
	}
	a->jitter16 += turn - a->jitter16 / 16;
	if (delay_ns <= a->enter_ns)
		a->late_ns = 0;
	else if (!a->late_ns)
		a->late_ns = now_ns;
	a->before_ns = a->delay_ns;
	a->delay_ns = delay_ns;
}

/*
 * When the peer did not run, everything that waited for it is answered at once; from a queue packets
 * leave one after the other. PACE-AUTO-02
 */
static bool is_lasting(const struct ur_cc_auto *a, uint64_t now_ns)
{
	uint32_t queue = queue_of(a);

	return queue <= PAUSE_NS || (a->late_ns && now_ns - a->late_ns >= queue >> LATE_SHIFT);
}

/* While throttled there is a standing queue, which must not become the least delay. PACE-AUTO-06 */
static void age_least(struct ur_cc_dest *d, uint64_t now_ns)
{
	struct ur_cc_auto *a = state_of(d);

	if (d->throttled || now_ns < a->interval_ns)
		return;
	a->least_ns = a->least_next_ns;
	a->least_next_ns = delay_of(a);
	a->interval_ns = now_ns + INTERVAL_NS;
}

/* ---- delivery samples ---- */

static void take_sample(struct ur_cc_auto *a, uint64_t bytes, uint64_t now_ns)
{
	if (now_ns - a->sent[a->sent_cnt - 1].ns < a->delay_ns / 4 + 1)
		return;
	if (a->sent_cnt == UR_CC_SENTS) {
		/* Every other sample reaches back as far. */
		for (unsigned i = 1; i < UR_CC_SENTS / 2; i++)
			a->sent[i] = a->sent[2 * i];
		a->sent_cnt = UR_CC_SENTS / 2;
	}
	a->sent[a->sent_cnt++] = (struct ur_cc_sent){now_ns, bytes};
}

/* Of the samples up to sent_ns only the last is needed. */
static void drop_samples(struct ur_cc_auto *a, uint64_t sent_ns)
{
	unsigned old = 0;

	while (old + 1u < a->sent_cnt && a->sent[old + 1].ns <= sent_ns)
		old++;
	if (!old)
		return;
	a->sent_cnt = (uint8_t)(a->sent_cnt - old);
	for (unsigned i = 0; i < a->sent_cnt; i++)
		a->sent[i] = a->sent[i + old];
}

/*
 * Bytes that were sent before sent_ns, and so have been delivered when a packet of that time is
 * answered. Between samples it interpolates, unless there may have been a pause in between.
 */
static uint64_t delivered_at(struct ur_cc_dest *d, uint64_t sent_ns, uint64_t now_ns)
{
	const struct ur_cc_auto *a = state_of(d);
	const struct ur_cc_sent *from = &a->sent[0];
	struct ur_cc_sent to = a->sent_cnt > 1 ? from[1] : (struct ur_cc_sent){now_ns, d->bytes};
	uint64_t span = to.ns - from->ns;

	if (sent_ns <= from->ns || span > 4 * (now_ns - sent_ns))
		return from->bytes;
	return from->bytes +
	       ((((to.bytes - from->bytes) << 16) / span * (sent_ns - from->ns)) >> 16);
}

/* ---- rates ---- */

static uint64_t ns_of(uint64_t bytes, uint32_t rate)
{
	return (bytes * ur_cc_cost(rate)) >> UR_CC_COST_SHIFT;
}

static void set_rate(const struct ur_cc *t, struct ur_cc_dest *d, uint64_t rate)
{
	struct ur_cc_auto *a = state_of(d);

	a->rate = ur_cc_clamp_rate(t, rate);
	d->cost = ur_cc_cost(a->rate);
}

static void on_link(struct ur_cc *t, struct ur_cc_dest *d)
{
	struct ur_cc_auto *a = state_of(d);

	a->capacity = ur_cc_clamp_rate(t, a->capacity);
	a->held = ur_cc_clamp_rate(t, a->held);
	if (d->throttled)
		set_rate(t, d, a->rate);
}

/* PACE-AUTO-03. A fast link sends bursts of more than four packets, and the switches of its network have room for them. */
static uint64_t wanted_bytes(const struct ur_cc *t, const struct ur_cc_auto *a)
{
	uint64_t packets = 4 * (uint64_t)a->unit;
	uint64_t burst = ((uint64_t)t->link * QUEUE_NS) >> UR_CC_RATE_SHIFT;

	burst = burst > QUEUE_BYTES ? burst : QUEUE_BYTES;
	return packets > burst ? packets : burst;
}

/*
 * PACE-AUTO-08. READs are charged as a whole. And the ends process more of them at a time than of
 * other packets: what the peer sends as one burst, and what is being copied here, is not a queue.
 */
static uint64_t unit_ns(const struct ur_cc *t, const struct ur_cc_auto *a)
{
	uint64_t processed;

	if (a->unit <= READ_UNIT)
		return ns_of(wanted_bytes(t, a), a->capacity);
	processed = ns_of(READ_BYTES, a->capacity);
	return ns_of(wanted_bytes(t, a), a->capacity) + (processed < READ_NS ? processed : READ_NS);
}

/*
 * PACE-AUTO-03. The queue that is wanted. The same number of packets is a longer delay for a sender
 * that sends less, so it sends more, and shares become equal.
 */
static uint64_t goal_of(const struct ur_cc *t, const struct ur_cc_auto *a)
{
	uint64_t jitter = JITTERS * (uint64_t)a->jitter16 / 16;
	uint64_t jitter_max = a->least_ns / 2 + JITTER_MAX_NS;

	return unit_ns(t, a) + a->least_ns / 8 + (jitter < jitter_max ? jitter : jitter_max);
}

static void open(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	ur_cc_open(t, d);
	state_of(d)->interval_ns = now_ns + INTERVAL_NS;
}

/*
 * Sets the rate so that within a round the queue becomes goal_ns. The queue in a sample is a round
 * trip old; the bytes in flight, over the capacity, are the delay to come.
 */
static void steer(struct ur_cc *t, struct ur_cc_dest *d, uint64_t goal_ns, uint64_t round_ns)
{
	struct ur_cc_auto *a = state_of(d);
	uint64_t flight = ns_of(d->bytes - a->round_bytes, a->capacity);
	uint64_t rest = (uint64_t)a->least_ns + a->back_ns;
	uint64_t queue = flight > rest ? flight - rest : 0;
	uint64_t horizon = flight > round_ns ? flight : round_ns;

	if (queue > goal_ns) {
		uint64_t cut = 256 * (queue - goal_ns) / horizon;

		cut = cut < CUT_MAX ? cut : CUT_MAX;
		set_rate(t, d, (a->capacity * (256 - cut)) >> 8);
	} else {
		uint64_t grow = 256 * (goal_ns - queue) / horizon;
		uint64_t from = a->rate > a->capacity ? a->rate : a->capacity;

		grow = grow < GROW_MAX && queue >= goal_ns / 2 ? grow : GROW_MAX;
		set_rate(t, d, (from * (256 + grow)) >> 8);
		if (a->rate == t->link)
			open(t, d, a->round_ns); /* PACE-AUTO-04 */
	}
}

/* ---- a longer path ---- */

static bool is_beyond_least(const struct ur_cc_auto *a, uint32_t delay_ns)
{
	return delay_ns > a->least_ns + a->least_ns / 8 + a->jitter16 / 2;
}

/*
 * A round delivers the bytes that were in flight before its last packet. If half as many bytes take
 * just as long, packets do not wait for one another.
 */
static bool is_longer_path(struct ur_cc_auto *a, uint32_t queue_ns, uint64_t round_bytes)
{
	if (round_bytes > a->ref_bytes || apart(queue_ns, a->ref_queue_ns) > a->ref_queue_ns / 16) {
		a->ref_bytes = round_bytes;
		a->ref_queue_ns = queue_ns;
		a->proofs = 0;
	} else if (round_bytes <= a->ref_bytes / 2 && is_beyond_least(a, delay_of(a))) {
		a->proofs++;
	} else {
		a->proofs = 0;
	}
	return a->proofs == PROOFS;
}

static bool is_same(const struct ur_cc_auto *a, uint32_t delay_ns, uint32_t other_ns)
{
	return apart(delay_ns, other_ns) <= other_ns / 64 + a->jitter16 / 8;
}

/* Two probes in a row must agree, because queues of other senders may stay constant by chance. */
static void end_probe(struct ur_cc *t, struct ur_cc_dest *d)
{
	struct ur_cc_auto *a = state_of(d);

	if (!is_beyond_least(a, a->probe_ns)) {
		a->path_ns = 0;
	} else if (!is_same(a, a->probe_ns, a->path_ns)) {
		a->path_ns = a->probe_ns;
	} else {
		a->least_ns = a->least_next_ns = delay_of(a);
		a->ref_bytes = 0;
		a->path_ns = 0;
		ur_cc_count_reseed(t, d);
	}
}

/*
 * PACE-AUTO-05. A probe drains the queue and so shows the least delay; if the delay does not even
 * become shorter, there is no queue. Returns whether the probe sets the rate.
 */
static bool probe(struct ur_cc *t, struct ur_cc_dest *d)
{
	struct ur_cc_auto *a = state_of(d);

	a->rounds++;
	if (a->rounds < PROBE_EVERY)
		return false;
	if (a->rounds == PROBE_EVERY) {
		a->probe_ns = delay_of(a);
		a->held = a->capacity;
		set_rate(t, d, a->held >> PROBE_SHIFT);
		return true;
	}
	if (!is_same(a, delay_of(a), a->probe_ns))
		a->probe_ns = 0;
	if (a->rounds == PROBE_EVERY + PROBE_ROUNDS) {
		end_probe(t, d);
		set_rate(t, d, a->held);
	}
	if (a->rounds < PROBE_EVERY + PROBE_ROUNDS + RECOVER_ROUNDS)
		return true;
	a->rounds = a->path_ns ? PROBE_EVERY - PROBE_AGAIN : 0;
	return false;
}

/* ---- rounds ---- */

static void begin(const struct ur_cc *t, struct ur_cc_dest *d, uint64_t delivered, uint64_t now_ns)
{
	struct ur_cc_auto *a = state_of(d);

	a->round_ns = a->last_ns = now_ns;
	a->round_bytes = a->last_bytes = delivered;
	if (!d->throttled)
		a->capacity = t->link;
	a->enter_ns = a->least_ns + goal_of(t, a);
}

static void throttle(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	struct ur_cc_auto *a = state_of(d);

	ur_cc_throttle(t, d, now_ns);
	a->rate = a->capacity;
	a->ref_bytes = 0;
	a->rounds = 0;
	a->path_ns = 0;
	a->draining = false;
}

static void end_round(struct ur_cc *t, struct ur_cc_dest *d, uint64_t delivered, uint64_t now_ns)
{
	struct ur_cc_auto *a = state_of(d);
	uint64_t round_ns = now_ns - a->round_ns, bytes = delivered - a->last_bytes, goal;
	uint32_t before = a->capacity, queue;

	/* Over two rounds, because over one it oscillates with the rate. */
	a->capacity = ur_cc_clamp_rate(t, (bytes << UR_CC_RATE_SHIFT) / (now_ns - a->last_ns));
	a->last_ns = a->round_ns;
	a->last_bytes = a->round_bytes;
	a->round_ns = now_ns;
	a->round_bytes = delivered;
	age_least(d, now_ns);
	queue = queue_of(a);
	/* Few bytes may be delivered because there were few to send. */
	if (d->throttled && a->capacity < a->rate / 2 && queue <= a->least_ns / 8)
		a->capacity = before;
	goal = goal_of(t, a);
	a->enter_ns = a->least_ns + goal;
	if (!d->throttled) {
		if (queue <= goal || !is_lasting(a, now_ns))
			return; /* PACE-AUTO-01 */
		throttle(t, d, now_ns);
	}
	if (queue > goal)
		ur_cc_count_outlier(t, d);
	if (is_longer_path(a, queue, delivered - a->last_bytes) && a->rounds < PROBE_EVERY)
		a->rounds = PROBE_EVERY - 1;
	/* A long queue is drained completely: then senders that started last see the least delay. */
	if (queue > 2 * goal)
		a->draining = true;
	else if (queue <= goal / 4)
		a->draining = false;
	if (!probe(t, d))
		steer(t, d, a->draining ? 0 : goal, round_ns);
}

/* Whether to throttle at once, without waiting for the end of the round. */
static bool is_sudden(struct ur_cc_dest *d, uint64_t now_ns)
{
	const struct ur_cc_auto *a = state_of(d);

	return !d->throttled && delay_of(a) > a->enter_ns && is_lasting(a, now_ns);
}

/* PACE-NET-03. Delays are halfway from the least one to those that throttle. */
static bool is_wary(const struct ur_cc_dest *d)
{
	const struct ur_cc_auto *a = (const struct ur_cc_auto *)(const void *)d->state;

	return a->delay_ns && 2 * (uint64_t)delay_of(a) > a->least_ns + a->enter_ns;
}

static void on_ack(struct ur_cc *t, struct ur_cc_dest *d, const struct ur_cc_ack *ack,
		   uint64_t now_ns)
{
	struct ur_cc_auto *a = state_of(d);
	uint32_t delay_ns = ack->delay_ns;
	/* When the packet left, whatever of the time since then counts as delay. */
	uint64_t sent_ns = now_ns > ack->rtt_ns ? now_ns - ack->rtt_ns : 0, delivered;
	bool first = !a->delay_ns;

	a->back_ns = ack->rtt_ns - delay_ns;
	if (first)
		a->delay_ns = a->before_ns = delay_ns;
	record_delay(a, delay_ns, now_ns);
	take_sample(a, d->bytes, now_ns);
	drop_samples(a, sent_ns);
	if (!first && (now_ns == a->round_ns || (sent_ns < a->round_ns && !is_sudden(d, now_ns))))
		return;
	delivered = delivered_at(d, sent_ns, now_ns);
	if (delivered < a->round_bytes)
		delivered = a->round_bytes;
	if (first || (!d->throttled && (now_ns - a->round_ns) / IDLE > ack->rtt_ns))
		begin(t, d, delivered, now_ns);
	else
		end_round(t, d, delivered, now_ns);
}

static void on_send(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns)
{
	struct ur_cc_auto *a = state_of(d);

	/* PACE-AUTO-07 */
	if (now_ns - a->round_ns >= STALE_NS) {
		open(t, d, now_ns);
		return;
	}
	a->unit -= a->unit / 16;
	if (a->unit < bytes)
		a->unit = bytes;
	take_sample(a, d->bytes - bytes, now_ns);
	ur_cc_spend(d, ((uint64_t)bytes * d->cost) >> UR_CC_COST_SHIFT, now_ns);
}

const struct ur_cc_ops ur_cc_auto = {
	.link = true,
	.init = init,
	.on_send = on_send,
	.on_ack = on_ack,
	.on_link = on_link,
	.is_wary = is_wary,
};
