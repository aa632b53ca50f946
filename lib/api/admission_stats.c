/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/admission_stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/device.h"
#include "api/word.h"
#include "engine/query.h"

#define SHOWN_MAX 256 /* maximum for telemetry, of pools of a worker and of pools of peers */

/* Configuration, API and pool list the same names in the same order. */
#define X(NAME, word)                                                                              \
	_Static_assert((int)UROCE_ADMISSION_##NAME == (int)UR_ADM_##NAME, "order of modes");
UROCE_ADMISSION_MODES(X)
#undef X
_Static_assert((int)UROCE_POOL_NA == (int)UR_ADM_NA && (int)UROCE_POOL_A == (int)UR_ADM_A &&
		       (int)UROCE_POOL_NB == (int)UR_ADM_NB && (int)UROCE_POOL_B == (int)UR_ADM_B,
	       "order of statuses");

/* Results of the calls to workers: [n, cap) of both arrays is free. */
struct look_call {
	struct ur_engine *engine;
	unsigned worker;
	struct uroce_admission *sum;
	struct uroce_pool *pools;
	size_t pool_n, pool_cap;
	struct uroce_peer_pool *peers;
	size_t peer_n, peer_cap;
};

static struct uroce_pool pool_of(const struct ur_pool_view *v, unsigned worker)
{
	struct uroce_pool out = {
		.name = v->name,
		.worker = worker,
		.status = (enum uroce_pool_status)v->status,
		.generation = v->generation,
		.qps = v->qps,
		.posted = v->posted,
		.room = v->room,
		.refused_a = v->refused_a,
		.refused_b = v->refused_b,
		.granted = v->granted,
	};

#define X(name, unit, help) out.name = v->cnt.name;
	UROCE_POOL_COUNTERS(X)
#undef X
	return out;
}

static struct uroce_peer_pool peer_pool_of(const struct ur_peer_pool_view *v, unsigned worker)
{
	struct uroce_peer_pool out = {
		.pool = v->name,
		.worker = worker,
		.status = v->known ? (enum uroce_pool_status)v->status : UROCE_POOL_UNKNOWN,
		.generation = v->generation,
		.qps = v->qps,
		.waiting = v->waiting,
	};

	memcpy(out.address.raw, v->address, sizeof(out.address.raw));
	return out;
}

static void look_on_worker(void *arg, uint64_t now_ns)
{
	struct look_call *c = arg;
	struct ur_pool_cursor pools = {0};
	struct ur_peer_pool_view peer;
	struct ur_pool_view pool;
	uint32_t peers = 0;

	while (ur_engine_next_pool(c->engine, &pools, &pool)) {
		c->sum->pools++;
		if (c->pool_n < c->pool_cap)
			c->pools[c->pool_n++] = pool_of(&pool, c->worker);
	}
	while (ur_engine_next_peer_pool(c->engine, &peers, &peer)) {
		c->sum->peer_pools++;
		if (c->peer_n < c->peer_cap)
			c->peers[c->peer_n++] = peer_pool_of(&peer, c->worker);
	}
}

static void look(struct ur_device *dev, unsigned worker, struct look_call *c)
{
	c->worker = worker;
	c->engine = ur_worker_engine(dev->workers[worker]);
	ur_worker_call(dev->workers[worker], look_on_worker, c);
}

int uroce_query_admission(struct ibv_context *ctx, struct uroce_admission *admission,
			  struct uroce_pool *pools, size_t pool_cap, struct uroce_peer_pool *peers,
			  size_t peer_cap)
{
	struct ur_device *dev = ur_device(ctx);
	struct look_call c = {.sum = admission,
			      .pools = pools,
			      .pool_cap = pool_cap,
			      .peers = peers,
			      .peer_cap = peer_cap};

	*admission = (struct uroce_admission){
		.mode = (enum uroce_admission_mode)dev->cfg.admission.mode};
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		look(dev, i, &c);
	return 0;
}

const char *uroce_admission_mode_str(enum uroce_admission_mode mode)
{
#define X(NAME, word) word,
	static const char *const words[] = {UROCE_ADMISSION_MODES(X)};
#undef X
	return UR_WORD(words, mode, "unknown");
}

const char *uroce_pool_status_str(enum uroce_pool_status status)
{
#define X(NAME, word) word,
	static const char *const words[] = {UROCE_POOL_STATUSES(X)};
#undef X
	return UR_WORD(words, status, "unknown");
}

/* ---- telemetry ---- */

static void emit_pool(struct ur_emit *e, const struct uroce_pool *p)
{
	char name[16];

	snprintf(name, sizeof(name), "pool%u", p->name);
	ur_emit_begin(e, name);
	ur_emit_str(e, "status", uroce_pool_status_str(p->status));
#define X(name, unit, help) ur_emit_u64(e, #name, p->name);
	UROCE_POOL(X)
	UROCE_POOL_COUNTERS(X)
#undef X
	ur_emit_end(e);
}

static void emit_peer_pool(struct ur_emit *e, const struct uroce_peer_pool *p, size_t i)
{
	char name[32];

	snprintf(name, sizeof(name), "peer%zu", i);
	ur_emit_begin(e, name);
	ur_emit_address(e, "address", p->address.raw);
	ur_emit_u64(e, "pool", p->pool);
	ur_emit_str(e, "status", uroce_pool_status_str(p->status));
#define X(name, meaning) ur_emit_u64(e, #name, p->name);
	UROCE_PEER_POOL(X)
#undef X
	ur_emit_end(e);
}

struct shown {
	struct uroce_pool pools[SHOWN_MAX];
	struct uroce_peer_pool peers[SHOWN_MAX];
};

int ur_admission_emit(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct shown *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	ur_emit_str(e, "mode",
		    uroce_admission_mode_str((enum uroce_admission_mode)dev->cfg.admission.mode));
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct uroce_admission sum = {0};
		struct look_call c = {.sum = &sum,
				      .pools = s->pools,
				      .pool_cap = SHOWN_MAX,
				      .peers = s->peers,
				      .peer_cap = SHOWN_MAX};
		char name[16];

		look(dev, i, &c);
		snprintf(name, sizeof(name), "worker%u", i);
		ur_emit_begin(e, name);
		for (size_t k = 0; k < c.pool_n; k++)
			emit_pool(e, &s->pools[k]);
		for (size_t k = 0; k < c.peer_n; k++)
			emit_peer_pool(e, &s->peers[k], k);
		ur_emit_end(e);
	}
	free(s);
	return 0;
}
