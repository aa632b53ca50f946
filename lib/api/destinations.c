/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/destinations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/device.h"
#include "api/word.h"
#include "engine/query.h"

struct look_call {
	struct ur_engine *engine;
	unsigned worker;
	struct uroce_pacing *sum;
	struct uroce_destination *dest; /* [n, cap) is free */
	size_t n, cap;
};

static struct uroce_destination destination_of(const struct ur_destination_view *d, unsigned worker)
{
	struct uroce_destination out = {.worker = worker};
	const struct ur_cc_view *v = &d->pacing;

	if (v->throttled)
		out.state = d->closed ? UROCE_DESTINATION_CLOSED : UROCE_DESTINATION_THROTTLED;
	memcpy(out.address.raw, v->key, sizeof(out.address.raw));
	out.qps = v->users;
	out.waiting_qps = d->waiting_qps;
	out.samples = v->samples;
	out.average_ns = v->average_ns;
	out.least_ns = v->least_ns;
	out.deflection_percent = v->deflection * UINT64_C(100) / 256;
	out.gap_ns = v->gap_ns;
	out.rate_bps = v->rate_bps;
	out.window_bytes = v->window_bytes;
	out.in_flight_bytes = v->in_flight;
	out.outliers = v->outliers;
	out.reseeds = v->reseeds;
	out.throttles = v->throttles;
	out.cnps = v->cnps;
	out.losses = v->losses;
	out.timeouts = v->timeouts;
	out.net_hops = d->net_hops;
	out.net_delay_ns = d->net_delay_ns;
	return out;
}

/* Copies between two rounds and formats later, so that the worker does not wait for the formatting. */
static void look_on_worker(void *arg, uint64_t now_ns)
{
	struct look_call *c = arg;
	struct ur_destinations_view all;
	struct ur_destination_view d;
	uint32_t cursor = 0;

	ur_engine_view_destinations(c->engine, &all);
	c->sum->destinations += all.destinations;
	c->sum->throttled += all.throttled;
	c->sum->link_bps += all.link_bps;
#define X(name, type, unit, help) c->sum->name += all.cnt.name;
	UROCE_PACING_COUNTERS(X)
#undef X
	while (c->n < c->cap && ur_engine_next_destination(c->engine, &cursor, &d))
		c->dest[c->n++] = destination_of(&d, c->worker);
}

/* Adds a worker's data to *sum and to dest[0, cap), of which `n` are in use; returns the new number. */
static size_t look(struct ur_device *dev, unsigned worker, struct uroce_pacing *sum,
		   struct uroce_destination *dest, size_t n, size_t cap)
{
	struct look_call c = {.engine = ur_worker_engine(dev->workers[worker]),
			      .worker = worker,
			      .sum = sum,
			      .dest = dest,
			      .n = n,
			      .cap = cap};

	ur_worker_call(dev->workers[worker], look_on_worker, &c);
	return c.n;
}

static enum uroce_pacing_mode mode_of(const struct ur_device *dev)
{
	return (enum uroce_pacing_mode)dev->cfg.pacing.mode;
}

int uroce_query_destinations(struct ibv_context *ctx, struct uroce_pacing *pacing,
			     struct uroce_destination *dest, size_t cap)
{
	struct ur_device *dev = ur_device(ctx);
	size_t n = 0;

	*pacing = (struct uroce_pacing){.mode = mode_of(dev)};
	for (unsigned i = 0; pacing->mode != UROCE_PACING_NONE && i < dev->worker_cnt; i++)
		n = look(dev, i, pacing, dest, n, cap);
	return 0;
}

const char *uroce_pacing_mode_str(enum uroce_pacing_mode mode)
{
#define X(NAME, name, summary) #name,
	static const char *const words[] = {UROCE_PACING_MODES(X)};
#undef X
	return UR_WORD(words, mode, "unknown");
}

const char *uroce_destination_state_str(enum uroce_destination_state state)
{
#define X(NAME, word) word,
	static const char *const words[] = {UROCE_DESTINATION_STATES(X)};
#undef X
	return UR_WORD(words, state, "unknown");
}

/* ---- telemetry ---- */

static void emit_one(struct ur_emit *e, const struct uroce_destination *d)
{
	ur_emit_address(e, "address", d->address.raw);
	ur_emit_str(e, "state", uroce_destination_state_str(d->state));
#define X(name, meaning) ur_emit_u64(e, #name, d->name);
	UROCE_DESTINATION(X)
#undef X
}

static int emit_worker(struct ur_emit *e, struct ur_device *dev, unsigned worker)
{
	size_t n, cap = dev->cfg.pacing.destinations;
	struct uroce_destination *dest = calloc(cap, sizeof(*dest));
	struct uroce_pacing sum = {0};

	if (!dest)
		return -ENOMEM;
	n = look(dev, worker, &sum, dest, 0, cap);
#define X(name, type, unit, help) ur_emit_u64(e, #name, sum.name);
	UROCE_PACING(X)
#undef X
	for (size_t i = 0; i < n; i++) {
		char name[24];

		snprintf(name, sizeof(name), "%zu", i);
		ur_emit_begin(e, name);
		emit_one(e, &dest[i]);
		ur_emit_end(e);
	}
	free(dest);
	return 0;
}

int ur_destinations_emit(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	int rc = 0;

	ur_emit_str(e, "mode", uroce_pacing_mode_str(mode_of(dev)));
	for (unsigned i = 0; !rc && mode_of(dev) && i < dev->worker_cnt; i++) {
		char name[16];

		snprintf(name, sizeof(name), "worker%u", i);
		ur_emit_begin(e, name);
		rc = emit_worker(e, dev, i);
		ur_emit_end(e);
	}
	return rc;
}
