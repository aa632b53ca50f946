/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/destinations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/device.h"
#include "transport/dest.h"

struct seen {
	struct ur_pacing_view view;
	uint32_t waiting; /* send queues at the gate */
	bool closed;
};

struct table {
	struct ur_engine *engine;
	struct ur_pacing_counters cnt;
	uint32_t used, throttled;
	struct seen *dest; /* [0, n), room for cap */
	uint32_t n, cap;
};

static void copy_table(void *arg, uint64_t now_ns)
{
	struct table *t = arg;
	const struct ur_core *core = ur_engine_core(t->engine);
	const struct ur_pacing *p = &core->pacing;
	const struct ur_pacing_dest *d;
	uint32_t at = 0;

	t->cnt = p->cnt;
	t->used = p->used;
	t->throttled = p->throttled;
	while (t->n < t->cap && (d = ur_pacing_next(p, &at))) {
		const struct ur_dest *dest = &core->dests[ur_pacing_index(p, d)];
		struct seen *s = &t->dest[t->n++];

		ur_pacing_view(p, d, &s->view);
		s->waiting = dest->gate.waiting.ready_cnt;
		s->closed = dest->gate.closed;
	}
}

static void emit_one(struct ur_emit *e, const struct seen *s)
{
	const struct ur_pacing_view *v = &s->view;

	ur_emit_address(e, "address", v->key);
	ur_emit_u64(e, "qps", v->users);
	ur_emit_str(e, "state", v->throttled ? s->closed ? "closed" : "throttled" : "open");
	ur_emit_u64(e, "waiting_qps", s->waiting);
	ur_emit_u64(e, "samples", v->samples);
	ur_emit_u64(e, "average_ns", v->average_ns);
	ur_emit_u64(e, "least_ns", v->least_ns);
	ur_emit_u64(e, "deflection_percent", v->deflection * UINT64_C(100) / 256);
	ur_emit_u64(e, "gap_ns", v->gap_ns);
	ur_emit_u64(e, "rate_bps", v->rate_bps);
	ur_emit_u64(e, "outliers", v->outliers);
	ur_emit_u64(e, "reseeds", v->reseeds);
	ur_emit_u64(e, "throttles", v->throttles);
	ur_emit_u64(e, "cnps", v->cnps);
}

/* Copied between two rounds, told afterwards, as queue pairs are. */
static int emit_worker(struct ur_emit *e, struct ur_worker *w, uint32_t cap)
{
	struct table t = {.engine = ur_worker_engine(w), .cap = cap};

	t.dest = calloc(cap, sizeof(*t.dest));
	if (!t.dest)
		return -ENOMEM;
	ur_worker_call(w, copy_table, &t);
	ur_emit_u64(e, "destinations", t.used);
	ur_emit_u64(e, "throttled", t.throttled);
#define X(name, text) ur_emit_u64(e, #name, t.cnt.name);
	UR_PACING_COUNTERS(X)
#undef X
	for (uint32_t i = 0; i < t.n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		ur_emit_begin(e, name);
		emit_one(e, &t.dest[i]);
		ur_emit_end(e);
	}
	free(t.dest);
	return 0;
}

int ur_destinations_emit(struct ur_emit *e, const char *params, void *ctx)
{
	static const char *const modes[] = {
#define X(NAME, word) [UR_PACING_##NAME] = word,
		UR_PACING_WORDS(X)
#undef X
	};
	struct ur_device *dev = ctx;
	int rc = 0;

	ur_emit_str(e, "mode", modes[dev->cfg.pacing.mode]);
	for (unsigned i = 0; !rc && dev->cfg.pacing.mode && i < dev->worker_cnt; i++) {
		char name[16];

		snprintf(name, sizeof(name), "worker%u", i);
		ur_emit_begin(e, name);
		rc = emit_worker(e, dev->workers[i], dev->cfg.pacing.destinations);
		ur_emit_end(e);
	}
	return rc;
}
