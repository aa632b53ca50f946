/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/net_delay.h"

#include "wire/delay.h"

#define BASE_NS	   UINT64_C(1000000000) /* interval of the base */
#define TRIAL_RTTS 4

static void set_state(struct ur_net_delay *n, enum ur_net_state state, uint64_t next_ns)
{
	n->state = (uint8_t)state;
	n->missed = 0;
	n->next_ns = next_ns;
	if (state != UR_NET_ON) {
		n->sample_ns = 0;
		n->there = n->round = (struct ur_net_base){0};
	}
}

/* ---- bases ---- */

static uint32_t record_base(struct ur_net_base *b, uint32_t ns, uint64_t now_ns)
{
	if (now_ns >= b->end_ns) {
		bool begins = !b->end_ns || now_ns - b->end_ns >= BASE_NS;

		b->ns = begins ? ns : b->next_ns;
		b->next_ns = ns;
		b->end_ns = now_ns + BASE_NS;
	}
	if (ns < b->ns)
		b->ns = ns;
	if (ns < b->next_ns)
		b->next_ns = ns;
	return b->ns;
}

/* ---- asking ---- */

/* An ask counts as unanswered only when a packet that left later was answered. */
static void check_open(struct ur_net_delay *n, uint64_t away_ns, uint64_t patience_ns,
		       uint64_t now_ns)
{
	if (!n->open || now_ns - n->ask_ns < patience_ns || now_ns - n->ask_ns <= away_ns)
		return;
	n->open = false;
	n->missed++;
	if (n->state == UR_NET_TRIAL && n->missed >= UR_NET_TRIALS)
		set_state(n, UR_NET_BLOCKED, now_ns + UR_NET_BLOCKED_NS);
	else if (n->state == UR_NET_ON && n->missed >= UR_NET_MISSES)
		set_state(n, UR_NET_TRIAL, now_ns);
}

/* The destination was open at the last ask, and is throttled now: what throttles it is to be known at once. */
static bool is_throttled_anew(const struct ur_net_delay *n, const struct ur_net_sent *sent)
{
	return sent->throttled && !n->asked_throttled;
}

/*
 * PACE-NET-03. Nothing asks where delays do not matter. So a destination is asked first when it is throttled, or when congestion control
 * has been wary for a while.
 */
static bool is_first_due(const struct ur_net_delay *n, uint32_t rtt_ns,
			 const struct ur_net_sent *sent, uint64_t now_ns)
{
	return sent->throttled ||
	       (n->wary_ns && now_ns - n->wary_ns >= UR_NET_WARY * (uint64_t)rtt_ns);
}

/*
 * PACE-NET-03. A destination that is throttled needs a delay in each round trip; it gets few packets, so bytes count. One that is
 * open is asked when round trips have become longer, and while congestion control is wary: by one packet in UR_NET_EVERY,
 * and from what was saved.
 */
static bool is_due(const struct ur_net_delay *n, uint32_t rtt_ns, const struct ur_net_sent *sent,
		   uint64_t now_ns)
{
	if (is_throttled_anew(n, sent) || now_ns - n->ask_ns >= UR_NET_HOLD_NS / 2)
		return true;
	if (sent->throttled && sent->bytes - n->ask_bytes >= UR_NET_BYTES)
		return true;
	if (n->paid + UR_NET_EVERY > sent->packets + UR_NET_SAVED * UR_NET_EVERY)
		return false;
	return (sent->wary && !sent->throttled) || ur_net_delay_is_longer(n, rtt_ns);
}

static void record_rtt(struct ur_net_delay *n, uint32_t rtt_ns, const struct ur_net_sent *sent,
		       uint64_t now_ns)
{
	record_base(&n->whole, rtt_ns, now_ns);
	if (sent->throttled)
		n->throttled_ns = now_ns;
	if (!sent->wary)
		n->wary_ns = 0;
	else if (!n->wary_ns)
		n->wary_ns = now_ns;
}

bool ur_net_delay_on_rtt(struct ur_net_delay *n, uint32_t rtt_ns, uint64_t away_ns,
			 uint64_t patience_ns, const struct ur_net_sent *sent, uint64_t now_ns)
{
	record_rtt(n, rtt_ns, sent, now_ns);
	check_open(n, away_ns, patience_ns, now_ns);
	if (n->open || now_ns < n->next_ns)
		return false;
	if (n->state == UR_NET_ON && !is_due(n, rtt_ns, sent, now_ns))
		return false;
	if (n->state == UR_NET_OFF || n->state == UR_NET_BLOCKED) {
		if (!is_first_due(n, rtt_ns, sent, now_ns))
			return false;
		set_state(n, UR_NET_TRIAL, now_ns);
	}
	/* The queue pair that is told may have nothing more to send, and another is told then. */
	n->next_ns = now_ns + TRIAL_RTTS * (uint64_t)rtt_ns;
	return true;
}

bool ur_net_delay_on_ask(struct ur_net_delay *n, struct ur_stamp stamp,
			 const struct ur_net_sent *sent, uint64_t now_ns)
{
	uint64_t most = sent->packets + UR_NET_SAVED * UR_NET_EVERY;

	n->open = true;
	n->stamp = stamp;
	n->ask_ns = now_ns;
	n->ask_bytes = sent->bytes;
	n->asked_throttled = sent->throttled;
	n->paid = (n->paid > sent->packets ? n->paid : sent->packets) + UR_NET_EVERY;
	if (n->paid > most)
		n->paid = most;
	return ur_net_delay_reads(n, now_ns);
}

/* ---- answers ---- */

/* 0: it cannot be, or is too long to be a delay. */
static uint32_t rtt_of(struct ur_stamp echo, uint32_t residence, uint64_t now_ns)
{
	uint32_t away = ur_stamp_since(ur_stamp(now_ns), echo), rtt;

	if (away > INT32_MAX >> UR_STAMP_SHIFT || residence > away)
		return 0;
	rtt = away - residence;
	return rtt ? rtt << UR_STAMP_SHIFT : 1;
}

/* The path lets stamped packets pass. False: no switch stamps, or the value is not to be used. */
static bool take_hops(struct ur_net_delay *n, uint8_t hops, uint64_t now_ns)
{
	n->missed = 0;
	if (hops) {
		if (n->state != UR_NET_ON)
			set_state(n, UR_NET_ON, now_ns);
		return hops != UR_DELAY_VOID;
	}
	if (n->state == UR_NET_ON)
		set_state(n, UR_NET_TRIAL, now_ns);
	else
		set_state(n, UR_NET_OFF, now_ns + UR_NET_OFF_NS);
	return false;
}

static bool is_stamped(const struct ur_net_way *way)
{
	return way->hops && way->hops != UR_DELAY_VOID;
}

/*
 * PACE-NET-06. Of the way there, and of both if the answer was stamped as well. The base is what remains of round trips: wires, the
 * ways that were not asked for, the ends. It is in every round trip, so the shortest one bounds it: when the first ask leaves, a
 * queue may be on the way back already (PACE-NET-08).
 */
static void take_sample(struct ur_net_delay *n, uint32_t rtt, uint64_t there, uint64_t back,
			uint64_t now_ns)
{
	uint64_t sum = there + back;
	uint32_t whole;

	if (there > rtt)
		there = rtt;
	if (sum > rtt)
		sum = rtt;
	whole = record_base(&n->whole, rtt, now_ns);
	n->base_ns = record_base(&n->there, rtt - (uint32_t)there, now_ns);
	if (n->both)
		n->base_ns = record_base(&n->round, rtt - (uint32_t)sum, now_ns);
	if (n->base_ns > whole)
		n->base_ns = whole;
	n->next_ns = now_ns;
	n->sample_ns = now_ns;
	n->rtt_ns = rtt;
	n->delay_ns = (uint32_t)sum;
}

enum ur_net_answer ur_net_delay_on_answer(struct ur_net_delay *n, const struct ur_net_echo *echo,
					  uint64_t now_ns, uint32_t *rtt_ns, uint32_t *delay_ns)
{
	bool both = is_stamped(&echo->back);
	uint64_t there = ur_delay_ns(echo->there.code),
		 back = both ? ur_delay_ns(echo->back.code) : 0;
	uint32_t rtt;

	if (!n->open || !ur_stamp_eq(echo->stamp, n->stamp))
		return UR_NET_NONE;
	n->open = false;
	if (!take_hops(n, echo->there.hops, now_ns))
		return UR_NET_NONE;
	rtt = rtt_of(echo->stamp, echo->residence, now_ns);
	/* PACE-NET-02. Clocks differ a little, and stamps are rounded. */
	if (!rtt || there + back > rtt + (rtt >> 8) + 1000)
		return UR_NET_BAD;
	n->both = both;
	n->hops = (uint8_t)(echo->there.hops + (both ? echo->back.hops : 0));
	take_sample(n, rtt, there, back, now_ns);
	*rtt_ns = rtt;
	*delay_ns = n->base_ns + n->delay_ns;
	if (!*delay_ns)
		*delay_ns = 1;
	return UR_NET_SAMPLE;
}
