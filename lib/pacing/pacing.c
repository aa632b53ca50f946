/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "pacing/pacing_priv.h"
#include "wire/assert.h"
#include "wire/bits.h"

#define CATCH_UP 2 /* packets that may follow at once when the sender came late */

_Static_assert(sizeof(struct ur_pacing_dest) <= 384, "a simulated network has a million of them");

/* ---- table ---- */

size_t ur_pacing_size(uint32_t dests)
{
	return ur_pow2_at_least(dests) * sizeof(struct ur_pacing_list) +
	       dests * sizeof(struct ur_pacing_dest);
}

static uint32_t rate_of(uint64_t bps)
{
	/* bps * 2^20 / (8 * 10^9), in lowest terms. */
	return (uint32_t)(bps * 256 / 1953125);
}

static void fill_defaults(struct ur_pacing_attr *a)
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
#undef DEFAULT
	UR_ASSERT(a->init0 < a->init1);
	UR_ASSERT(a->g_shift <= 16);
}

static void set_link(struct ur_pacing *t, uint64_t link_bps)
{
	UR_ASSERT(link_bps >= UR_PACING_LINK_BPS_MIN && link_bps <= UR_PACING_LINK_BPS_MAX);
	t->attr.link_bps = link_bps;
	t->link = rate_of(link_bps);
}

static bool has_link(const struct ur_pacing *t)
{
	return t->attr.mode == UR_PACING_AUTO || t->attr.mode == UR_PACING_DCQCN;
}

static struct ur_pacing_dest *entries_of(const struct ur_pacing *t)
{
	return (struct ur_pacing_dest *)(void *)(t->buckets + t->mask + 1);
}

void ur_pacing_init(struct ur_pacing *t, void *memory, uint32_t dests,
		    const struct ur_pacing_attr *attr)
{
	uint32_t buckets = ur_pow2_at_least(dests);
	struct ur_pacing_dest *d;

	UR_ASSERT(dests >= 1 && dests <= 1 << 20);
	memset(t, 0, sizeof(*t));
	t->attr = *attr;
	fill_defaults(&t->attr);
	if (has_link(t))
		set_link(t, t->attr.link_bps);
	t->rai = rate_of(t->attr.rai_bps);
	t->rhai = rate_of(t->attr.rhai_bps);
	t->dests = dests;
	t->mask = buckets - 1;
	t->buckets = memory;
	t->unpaced.least_ns = UINT32_MAX;
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
void ur_pacing_set_link(struct ur_pacing *t, uint64_t link_bps)
{
	if (!has_link(t))
		return;
	set_link(t, link_bps);
	for (struct ur_pacing_dest *d = entries_of(t); d < entries_of(t) + t->dests; d++) {
		if (!d->users)
			continue;
		if (t->attr.mode == UR_PACING_AUTO)
			ur_pacing_auto_bound(t, d);
		else
			ur_pacing_dcqcn_bound(t, d);
	}
}

uint64_t ur_pacing_link_bps(const struct ur_pacing *t)
{
	return has_link(t) ? t->attr.link_bps : 0;
}

static struct ur_pacing_list *bucket_of(const struct ur_pacing *t, const uint8_t *key)
{
	return &t->buckets[ur_hash16(key, t->attr.seed) & t->mask];
}

struct ur_pacing_dest *ur_pacing_get(struct ur_pacing *t, const uint8_t key[UR_PACING_KEY],
				     uint64_t now_ns)
{
	struct ur_pacing_list *bucket = bucket_of(t, key);
	struct ur_pacing_dest *d;

	if (t->attr.mode == UR_PACING_NONE)
		return &t->unpaced;
	SLIST_FOREACH(d, bucket, link)
	{
		if (memcmp(d->key, key, UR_PACING_KEY) == 0) {
			d->users++;
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
	memcpy(d->key, key, UR_PACING_KEY);
	d->users = 1;
	d->least_ns = UINT32_MAX;
	if (t->attr.mode == UR_PACING_AUTO)
		ur_pacing_auto_init(d, now_ns);
	SLIST_INSERT_HEAD(bucket, d, link);
	t->used++;
	return d;
}

uint32_t ur_pacing_index(const struct ur_pacing *t, const struct ur_pacing_dest *d)
{
	if (d == &t->unpaced)
		return UINT32_MAX;
	return (uint32_t)(d - entries_of(t));
}

void ur_pacing_put(struct ur_pacing *t, struct ur_pacing_dest *d)
{
	if (d == &t->unpaced)
		return;
	UR_ASSERT(d->users > 0);
	if (--d->users > 0)
		return;
	/* PACE-TABLE-01 */
	ur_pacing_open(t, d);
	SLIST_REMOVE(bucket_of(t, d->key), d, ur_pacing_dest, link);
	SLIST_INSERT_HEAD(&t->free, d, link);
	t->used--;
}

/* ---- throttling ---- */

void ur_pacing_throttle(struct ur_pacing *t, struct ur_pacing_dest *d, uint64_t now_ns)
{
	if (d->throttled)
		return;
	d->throttled = true;
	d->open_ns = now_ns;
	d->throttles++;
	t->cnt.throttles++;
	t->throttled++;
}

void ur_pacing_open(struct ur_pacing *t, struct ur_pacing_dest *d)
{
	if (!d->throttled)
		return;
	d->throttled = false;
	d->open_ns = 0;
	d->gap_ns = 0;
	d->cost = 0;
	t->throttled--;
}

/* ---- events ---- */

void ur_pacing_delay(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t delay_ns,
		     uint64_t now_ns)
{
	if (d == &t->unpaced)
		return;
	/* PACE-DELAY-01 */
	if (t->dry_ns && now_ns - t->dry_ns > delay_ns / 2) {
		t->cnt.unsure++;
		return;
	}
	d->samples++;
	t->cnt.samples++;
	delay_ns = delay_ns ? delay_ns : 1;
	d->last_ns = delay_ns;
	if (delay_ns < d->least_ns)
		d->least_ns = delay_ns;
	d->avg8_ns =
		d->avg8_ns ? d->avg8_ns - (d->avg8_ns >> 3) + delay_ns : 8 * (uint64_t)delay_ns;
	if (t->attr.mode == UR_PACING_CMDPD)
		ur_pacing_cmdpd_delay(t, d, delay_ns, now_ns);
	else if (t->attr.mode == UR_PACING_AUTO)
		ur_pacing_auto_delay(t, d, delay_ns, now_ns);
}

void ur_pacing_cnp(struct ur_pacing *t, struct ur_pacing_dest *d, uint64_t now_ns)
{
	t->cnt.cnps++;
	if (d == &t->unpaced)
		return;
	d->cnps++;
	if (t->attr.mode == UR_PACING_DCQCN)
		ur_pacing_dcqcn_cnp(t, d, now_ns);
}

/* PACE-RATE-01 */
static void spend(struct ur_pacing_dest *d, uint64_t gap_ns, uint64_t now_ns)
{
	uint64_t late = now_ns > CATCH_UP * gap_ns ? now_ns - CATCH_UP * gap_ns : 0;

	d->open_ns = (d->open_ns > late ? d->open_ns : late) + gap_ns;
}

void ur_pacing_sent_throttled(struct ur_pacing *t, struct ur_pacing_dest *d, uint32_t bytes,
			      uint64_t now_ns)
{
	switch (t->attr.mode) {
	case UR_PACING_CMDPD:
		d->open_ns = now_ns + d->gap_ns; /* PACE-CMDPD-04 */
		break;
	case UR_PACING_AUTO:
		if (ur_pacing_auto_sent(t, d, bytes, now_ns))
			spend(d, ((uint64_t)bytes * d->cost) >> UR_PACING_COST_SHIFT, now_ns);
		break;
	case UR_PACING_DCQCN:
		ur_pacing_dcqcn_advance(t, d, bytes, now_ns);
		if (d->throttled)
			spend(d, ur_pacing_dcqcn_gap_ns(t, d, bytes, now_ns), now_ns);
		break;
	case UR_PACING_NONE:
		UR_ASSERT(!"throttled without a mode");
	}
}

/* ---- view ---- */

void ur_pacing_view(const struct ur_pacing *t, const struct ur_pacing_dest *d,
		    struct ur_pacing_view *v)
{
	uint64_t average = d->avg8_ns / 8;

	if (t->attr.mode == UR_PACING_CMDPD && d->cmdpd.cnt)
		average = d->cmdpd.sum_ns / d->cmdpd.cnt;
	*v = (struct ur_pacing_view){
		.samples = d->samples,
		.outliers = d->outliers,
		.reseeds = d->reseeds,
		.throttles = d->throttles,
		.cnps = d->cnps,
		.throttled = d->throttled,
		.average_ns = (uint32_t)average,
		.least_ns = d->samples ? d->least_ns : 0,
		.deflection = average ? (uint32_t)(256 * (uint64_t)d->last_ns / average) : 0,
		.users = d->users,
	};
	memcpy(v->key, d->key, UR_PACING_KEY);
	v->gap_ns = d->gap_ns;
	if (d->cost) {
		uint64_t gap = ((uint64_t)4096 * d->cost) >> UR_PACING_COST_SHIFT;

		v->gap_ns = (uint32_t)gap;
		v->rate_bps = (UINT64_C(8000000000) << UR_PACING_COST_SHIFT) / d->cost;
	}
}

const struct ur_pacing_dest *ur_pacing_next(const struct ur_pacing *t, uint32_t *at)
{
	const struct ur_pacing_dest *d = entries_of(t);

	while (*at < t->dests) {
		const struct ur_pacing_dest *here = &d[(*at)++];

		if (here->users)
			return here;
	}
	return NULL;
}
