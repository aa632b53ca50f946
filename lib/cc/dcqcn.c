/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc/cc_priv.h"
#include "cc/dcqcn.h"

/*
 * Reaction point of DCQCN (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM
 * 2015, section 3). A flow is all traffic to one destination. There is no timer: steps that have
 * become due are made up for when a packet is sent or a CNP arrives.
 */
#define ALPHA_ONE      65536
#define CATCH_UP_STEPS 64 /* increases made up for in one call; the rest in the next */
#define CNT_MAX	       255

UR_CC_STATE(ur_cc_dcqcn)

/* Returns alpha * (1 - g)^n. */
static uint32_t decay(uint32_t alpha, uint64_t n, uint8_t g_shift)
{
	uint64_t base = (UINT64_C(1) << 32) - (UINT64_C(1) << (32 - g_shift));
	uint64_t factor = UINT64_C(1) << 32;

	for (; n && factor; n >>= 1) {
		if (n & 1)
			factor = (factor * base) >> 32;
		base = (base * base) >> 32;
	}
	return (uint32_t)((alpha * factor) >> 32);
}

/* PACE-DCQCN-02 */
static void increase(const struct ur_cc *t, struct ur_cc_dcqcn *q)
{
	uint8_t f = t->attr.f;
	uint8_t more = q->by_time > q->by_bytes ? q->by_time : q->by_bytes;
	uint8_t less = q->by_time > q->by_bytes ? q->by_bytes : q->by_time;
	uint64_t target = q->target;

	if (less > f)
		target += (uint64_t)(less - f) * t->rhai;
	else if (more >= f)
		target += t->rai;
	q->target = ur_cc_clamp_rate(t, target);
	q->rate = ur_cc_clamp_rate(t, ((uint64_t)q->rate + q->target) / 2);
}

static void increase_by_time(const struct ur_cc *t, struct ur_cc_dcqcn *q)
{
	q->timer_ns += t->attr.timer_ns;
	q->by_time += q->by_time < CNT_MAX;
	increase(t, q);
}

/* PACE-DCQCN-04. RC approaches RT by halves and never reaches it. */
static bool is_open(const struct ur_cc *t, const struct ur_cc_dcqcn *q)
{
	return q->rate >= t->link - (t->link >> 8);
}

static void apply(struct ur_cc *t, struct ur_cc_dest *d, uint32_t before)
{
	const struct ur_cc_dcqcn *q = state_of(d);

	if (q->rate == before)
		return; /* as for most packets; saves a division */
	d->cost = ur_cc_cost(q->rate);
	if (is_open(t, q))
		ur_cc_open(t, d);
}

static void on_link(struct ur_cc *t, struct ur_cc_dest *d)
{
	struct ur_cc_dcqcn *q = state_of(d);

	if (!d->throttled)
		return;
	q->target = ur_cc_clamp_rate(t, q->target);
	q->rate = ur_cc_clamp_rate(t, q->rate);
	apply(t, d, 0);
}

/* Makes up for the time that has passed and counts bytes sent. The destination may be open afterwards. */
static void advance(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns)
{
	struct ur_cc_dcqcn *q = state_of(d);
	uint32_t before = q->rate;

	/* PACE-DCQCN-03 */
	for (unsigned i = 0; i < CATCH_UP_STEPS && now_ns - q->timer_ns >= t->attr.timer_ns; i++) {
		if (is_open(t, q))
			break;
		increase_by_time(t, q);
	}
	q->bytes += bytes;
	if (q->bytes >= t->attr.byte_cnt) {
		q->bytes -= t->attr.byte_cnt;
		q->by_bytes += q->by_bytes < CNT_MAX;
		increase(t, q);
	}
	apply(t, d, before);
}

/* The time that `bytes` take from now on, with the increases by time that become due meanwhile. */
static uint64_t gap_of(const struct ur_cc *t, const struct ur_cc_dest *d, uint32_t bytes,
		       uint64_t now_ns)
{
	const struct ur_cc_dcqcn *now = (const void *)d->state;
	struct ur_cc_dcqcn q = *now;
	uint64_t left = (uint64_t)bytes << UR_CC_RATE_SHIFT, at = now_ns;
	uint32_t cost;

	for (unsigned i = 0; i < CATCH_UP_STEPS; i++) {
		uint64_t due = q.timer_ns + t->attr.timer_ns;
		uint64_t part = due > at ? (due - at) * q.rate : 0;

		if (part >= left)
			break;
		left -= part;
		at = due > at ? due : at;
		increase_by_time(t, &q);
	}
	cost = q.rate == now->rate ? d->cost : ur_cc_cost(q.rate);
	return at - now_ns + ((left >> UR_CC_RATE_SHIFT) * cost >> UR_CC_COST_SHIFT);
}

/* PACE-DCQCN-01 */
static void on_cnp(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	struct ur_cc_dcqcn *q = state_of(d);
	uint32_t g = ALPHA_ONE >> t->attr.g_shift;

	if (d->throttled)
		advance(t, d, 0, now_ns);
	if (!d->throttled) {
		ur_cc_throttle(t, d, now_ns);
		q->rate = t->link;
		q->alpha = ALPHA_ONE;
		q->cnp_ns = now_ns;
	}
	q->alpha = decay(q->alpha, (now_ns - q->cnp_ns) / t->attr.alpha_ns, t->attr.g_shift);
	q->target = q->rate;
	q->rate = ur_cc_clamp_rate(t, q->rate - (((uint64_t)q->rate * q->alpha) >> 17));
	q->alpha += g - (q->alpha >> t->attr.g_shift);
	q->cnp_ns = q->timer_ns = now_ns;
	q->bytes = 0;
	q->by_time = q->by_bytes = 0;
	apply(t, d, 0);
}

static void on_send(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns)
{
	advance(t, d, bytes, now_ns);
	if (d->throttled)
		ur_cc_spend(d, gap_of(t, d, bytes, now_ns), now_ns);
}

const struct ur_cc_ops ur_cc_dcqcn = {
	.link = true,
	.ecn = true,
	.on_send = on_send,
	.on_cnp = on_cnp,
	.on_link = on_link,
};
