/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cc/cc_priv.h"
#include "wire/assert.h"
#include "wire/bits.h"

#define CATCH_UP 2 /* packets that may follow at once when the sender is late */

_Static_assert(sizeof(struct ur_cc_dest) <= 448, "a simulated network has a million of them");

/* ---- algorithms ---- */

/* CC-ADD-01 */
static const struct ur_cc_ops *const algorithms[] = {
#define X(NAME, name, summary) [UR_CC_##NAME] = &ur_cc_##name,
	UROCE_PACING_MODES(X)
#undef X
};

const struct ur_cc_ops *ur_cc_ops_of(enum ur_cc_mode mode)
{
	UR_ASSERT((size_t)mode < sizeof(algorithms) / sizeof(algorithms[0]));
	return algorithms[mode];
}

/* ---- table ---- */

size_t ur_cc_size(uint32_t dests)
{
	return ur_pow2_at_least(dests) * sizeof(struct ur_cc_list) +
	       dests * sizeof(struct ur_cc_dest);
}

static uint32_t rate_of(uint64_t bps)
{
	/* bps * 2^20 / (8 * 10^9), in lowest terms. */
	return (uint32_t)(bps * 256 / 1953125);
}

static void fill_defaults(struct ur_cc_attr *a)
{
#define DEFAULT(field, value) (a->field = a->field ? a->field : (value))
	DEFAULT(init0, 8);
	DEFAULT(init1, 16);
	DEFAULT(timer_ns, 55000);
	DEFAULT(byte_cnt, 10000000);
	DEFAULT(alpha_ns, 55000);
	DEFAULT(g_shift, 8);
	DEFAULT(f, 5);
	DEFAULT(rai_bps, 40000000);
	DEFAULT(rhai_bps, 400000000);
	DEFAULT(target_ns, 100000);
#undef DEFAULT
	UR_ASSERT(a->init0 < a->init1);
	UR_ASSERT(a->g_shift <= 16);
}

static void set_link(struct ur_cc *t, uint64_t link_bps)
{
	UR_ASSERT(link_bps >= UR_CC_LINK_BPS_MIN && link_bps <= UR_CC_LINK_BPS_MAX);
	t->attr.link_bps = link_bps;
	t->link = rate_of(link_bps);
}

/* An engine without destinations has a table that was never initialized. */
static bool has_link(const struct ur_cc *t)
{
	return t->ops && t->ops->link;
}

static struct ur_cc_dest *entries_of(const struct ur_cc *t)
{
	return (struct ur_cc_dest *)(void *)(t->buckets + t->mask + 1);
}

void ur_cc_init(struct ur_cc *t, void *memory, uint32_t dests, const struct ur_cc_attr *attr)
{
	uint32_t buckets = ur_pow2_at_least(dests);
	struct ur_cc_dest *d;

	UR_ASSERT(dests >= 1 && dests <= 1 << 20);
	memset(t, 0, sizeof(*t));
	t->attr = *attr;
	t->ops = ur_cc_ops_of(attr->mode);
	fill_defaults(&t->attr);
	if (has_link(t))
		set_link(t, t->attr.link_bps);
	t->rai = rate_of(t->attr.rai_bps);
	t->rhai = rate_of(t->attr.rhai_bps);
	t->dests = dests;
	t->mask = buckets - 1;
	t->buckets = memory;
	t->unpaced.least_ns = UINT32_MAX;
	t->unpaced.window = UR_CC_NO_WINDOW;
	for (uint32_t i = 0; i < buckets; i++)
		SLIST_INIT(&t->buckets[i]);
	SLIST_INIT(&t->free);
	d = entries_of(t);
	for (uint32_t i = dests; i-- > 0;) {
		d[i].users = 0;
		SLIST_INSERT_HEAD(&t->free, &d[i], link);
	}
}

/* PACE-LINK-01 */
void ur_cc_set_link(struct ur_cc *t, uint64_t link_bps)
{
	if (!has_link(t))
		return;
	set_link(t, link_bps);
	for (struct ur_cc_dest *d = entries_of(t); d < entries_of(t) + t->dests; d++)
		if (d->users && t->ops->on_link)
			t->ops->on_link(t, d);
}

uint64_t ur_cc_link_bps(const struct ur_cc *t)
{
	return has_link(t) ? t->attr.link_bps : 0;
}

static struct ur_cc_list *bucket_of(const struct ur_cc *t, const uint8_t *key)
{
	return &t->buckets[ur_hash16(key, t->attr.seed) & t->mask];
}

struct ur_cc_dest *ur_cc_get(struct ur_cc *t, const uint8_t key[UR_CC_KEY], uint32_t packet,
			     uint64_t now_ns)
{
	struct ur_cc_list *bucket = bucket_of(t, key);
	struct ur_cc_dest *d;

	if (t->attr.mode == UR_CC_NONE)
		return &t->unpaced;
	SLIST_FOREACH(d, bucket, link)
	{
		if (memcmp(d->key, key, UR_CC_KEY) == 0) {
			d->users++;
			if (d->packet < packet)
				d->packet = packet;
			return d;
		}
	}
	d = SLIST_FIRST(&t->free);
	if (!d) {
		/* PACE-TABLE-02 */
		t->cnt.full++;
		return &t->unpaced;
	}
	SLIST_REMOVE_HEAD(&t->free, link);
	memset(d, 0, sizeof(*d));
	memcpy(d->key, key, UR_CC_KEY);
	d->users = 1;
	d->least_ns = UINT32_MAX;
	d->packet = packet;
	d->window = UR_CC_NO_WINDOW;
	d->watched = t->ops->window;
	if (t->ops->init)
		t->ops->init(t, d, now_ns);
	SLIST_INSERT_HEAD(bucket, d, link);
	t->used++;
	return d;
}

uint32_t ur_cc_index(const struct ur_cc *t, const struct ur_cc_dest *d)
{
	if (d == &t->unpaced)
		return UINT32_MAX;
	return (uint32_t)(d - entries_of(t));
}

void ur_cc_put(struct ur_cc *t, struct ur_cc_dest *d)
{
	if (d == &t->unpaced)
		return;
	UR_ASSERT(d->users > 0);
	if (--d->users > 0)
		return;
	/* PACE-TABLE-01 */
	ur_cc_open(t, d);
	SLIST_REMOVE(bucket_of(t, d->key), d, ur_cc_dest, link);
	SLIST_INSERT_HEAD(&t->free, d, link);
	t->used--;
}

/* ---- throttling ---- */

void ur_cc_throttle(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	if (d->throttled)
		return;
	d->throttled = d->watched = true;
	d->open_ns = now_ns;
	d->throttles++;
	t->cnt.throttles++;
	t->throttled++;
}

void ur_cc_open(struct ur_cc *t, struct ur_cc_dest *d)
{
	if (!d->throttled)
		return;
	d->throttled = false;
	d->watched = t->ops->window;
	d->open_ns = 0;
	d->gap_ns = 0;
	d->cost = 0;
	d->window = UR_CC_NO_WINDOW;
	t->throttled--;
}

/* PACE-RATE-01 */
void ur_cc_spend(struct ur_cc_dest *d, uint64_t gap_ns, uint64_t now_ns)
{
	uint64_t late = now_ns > CATCH_UP * gap_ns ? now_ns - CATCH_UP * gap_ns : 0;

	d->open_ns = (d->open_ns > late ? d->open_ns : late) + gap_ns;
}

/* ---- events ---- */

void ur_cc_on_send_throttled(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns)
{
	if (t->ops->on_send)
		t->ops->on_send(t, d, bytes, now_ns);
}

static void average_delay(struct ur_cc_dest *d, uint32_t rtt_ns)
{
	d->last_ns = rtt_ns;
	if (rtt_ns < d->least_ns)
		d->least_ns = rtt_ns;
	d->avg8_ns = d->avg8_ns ? d->avg8_ns - (d->avg8_ns >> 3) + rtt_ns : 8 * (uint64_t)rtt_ns;
}

/* Reports the bytes acknowledged to the algorithm. rtt_ns is 0 if no round trip was measured. */
static void report_ack(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint32_t delay_ns,
		       uint64_t now_ns)
{
	struct ur_cc_ack ack = {
		.rtt_ns = rtt_ns, .delay_ns = delay_ns, .bytes = d->acked, .ce = d->ce};

	d->acked = 0;
	d->ce = false;
	if (t->ops->on_ack)
		t->ops->on_ack(t, d, &ack, now_ns);
}

void ur_cc_on_unmeasured_ack(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	if (d->acked)
		report_ack(t, d, 0, 0, now_ns);
}

void ur_cc_on_delay(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint32_t delay_ns,
		    uint64_t now_ns)
{
	if (d == &t->unpaced)
		return;
	d->samples++;
	t->cnt.samples++;
	average_delay(d, delay_ns);
	report_ack(t, d, rtt_ns, delay_ns, now_ns);
}

void ur_cc_on_ack(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint64_t now_ns)
{
	rtt_ns = rtt_ns ? rtt_ns : 1;
	ur_cc_on_estimate(t, d, rtt_ns, rtt_ns, now_ns);
}

void ur_cc_on_estimate(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint32_t delay_ns,
		       uint64_t now_ns)
{
	if (d == &t->unpaced)
		return;
	/* PACE-DELAY-01 */
	if (t->dry_ns && now_ns - t->dry_ns > rtt_ns / 2) {
		t->cnt.unsure++;
		return;
	}
	ur_cc_on_delay(t, d, rtt_ns, delay_ns, now_ns);
}

/* CC-LOSS-01 */
void ur_cc_on_loss(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	t->cnt.losses++;
	if (d == &t->unpaced)
		return;
	d->losses++;
	if (t->ops->on_loss)
		t->ops->on_loss(t, d, now_ns);
}

/* CC-LOSS-02 */
void ur_cc_on_timeout(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	t->cnt.timeouts++;
	if (d == &t->unpaced)
		return;
	d->timeouts++;
	if (t->ops->on_timeout)
		t->ops->on_timeout(t, d, now_ns);
}

bool ur_cc_on_cnp(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	t->cnt.cnps++;
	if (d == &t->unpaced)
		return false;
	d->cnps++;
	d->ce = true;
	if (!t->ops->on_cnp)
		return false;
	t->ops->on_cnp(t, d, now_ns);
	return true;
}

/* ---- view ---- */

/* Derives the gap after a packet of 4096 bytes, and the rate, from gap, cost or window. */
static void view_rate(const struct ur_cc_dest *d, uint64_t average, struct ur_cc_view *v)
{
	v->gap_ns = (uint32_t)ur_cc_gap_ns(d);
	if (d->cost)
		v->rate_bps = (UINT64_C(8000000000) << UR_CC_COST_SHIFT) / d->cost;
	if (d->window == UR_CC_NO_WINDOW)
		return;
	v->window_bytes = d->window;
	v->in_flight = d->in_flight;
	if (d->gap_ns)
		v->rate_bps = d->packet * UINT64_C(8000000000) / d->gap_ns;
	else if (average)
		v->rate_bps = d->window * UINT64_C(8000000000) / average;
	if (v->rate_bps)
		v->gap_ns = (uint32_t)(4096 * UINT64_C(8000000000) / v->rate_bps);
}

void ur_cc_view(const struct ur_cc *t, const struct ur_cc_dest *d, struct ur_cc_view *v)
{
	uint64_t average = d->avg8_ns / 8;

	if (t->ops->average_ns && d->samples)
		average = t->ops->average_ns(d);
	*v = (struct ur_cc_view){
		.samples = d->samples,
		.outliers = d->outliers,
		.reseeds = d->reseeds,
		.throttles = d->throttles,
		.cnps = d->cnps,
		.losses = d->losses,
		.timeouts = d->timeouts,
		.throttled = d->throttled,
		.average_ns = (uint32_t)average,
		.least_ns = d->samples ? d->least_ns : 0,
		.deflection = average ? (uint32_t)(256 * (uint64_t)d->last_ns / average) : 0,
		.users = d->users,
	};
	memcpy(v->key, d->key, UR_CC_KEY);
	view_rate(d, average, v);
}

const struct ur_cc_dest *ur_cc_next(const struct ur_cc *t, uint32_t *at)
{
	const struct ur_cc_dest *d = entries_of(t);

	while (*at < t->dests) {
		const struct ur_cc_dest *here = &d[(*at)++];

		if (here->users)
			return here;
	}
	return NULL;
}
