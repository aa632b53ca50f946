/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/admission_stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/device.h"
#include "transport/admission.h"

#define SHOWN_MAX 256 /* pools of a worker, and entries */

static const char *const statuses[] = {"NA", "A", "NB", "B"};

struct pool_view {
	uint32_t name, posted, room, qps, marked_a, marked_b, called;
	uint16_t generation;
	uint8_t status;
	struct ur_adm_counters cnt;
};

struct entry_view {
	uint8_t peer[16];
	uint32_t pool, qps, waiting;
	uint16_t generation;
	uint8_t status;
	bool known;
};

struct view {
	struct ur_engine *engine;
	uint32_t pool_cnt, entry_cnt;
	struct pool_view pools[SHOWN_MAX];
	struct entry_view entries[SHOWN_MAX];
};

static struct pool_view pool_view_of(const struct ur_srq *srq)
{
	const struct ur_adm_pool *p = &srq->adm;
	uint32_t posted = ur_wq_cnt(&srq->rq);

	return (struct pool_view){
		.name = srq->pool,
		.posted = posted,
		.room = ur_adm_pool_room(p, posted),
		.qps = srq->qp_cnt,
		.marked_a = p->marked[UR_ADM_LETTER_A],
		.marked_b = p->marked[UR_ADM_LETTER_B],
		.called = p->called_cnt,
		.generation = p->generation,
		.status = p->status,
		.cnt = p->cnt,
	};
}

static struct entry_view entry_view_of(const struct ur_sst_entry *e)
{
	struct entry_view v = {
		.pool = e->pool,
		.qps = e->refs,
		.generation = e->generation,
		.status = e->status,
		.known = e->known,
	};
	const struct ur_sst_waiter *w;

	memcpy(v.peer, e->peer, sizeof(v.peer));
	for (unsigned i = 0; i < 3; i++) {
		TAILQ_FOREACH(w, &e->waiters[i], link)
			v.waiting++;
	}
	return v;
}

static void look(void *arg, uint64_t now_ns)
{
	struct view *v = arg;
	const struct ur_admission *a = &ur_engine_core(v->engine)->adm;
	const struct ur_srq *srq;

	LIST_FOREACH(srq, &a->srqs, link)
	if (v->pool_cnt < SHOWN_MAX)
		v->pools[v->pool_cnt++] = pool_view_of(srq);
	for (uint32_t i = 0; i < a->cnt && v->entry_cnt < SHOWN_MAX; i++)
		if (a->entries[i].refs)
			v->entries[v->entry_cnt++] = entry_view_of(&a->entries[i]);
}

static void emit_pool(struct ur_emit *e, const struct pool_view *p)
{
	char name[16];

	snprintf(name, sizeof(name), "pool%u", p->name);
	ur_emit_begin(e, name);
	ur_emit_str(e, "status", statuses[p->status & 3]);
	ur_emit_u64(e, "generation", p->generation);
	ur_emit_u64(e, "qps", p->qps);
	ur_emit_u64(e, "posted", p->posted);
	ur_emit_u64(e, "room", p->room);
	ur_emit_u64(e, "marked_a", p->marked_a);
	ur_emit_u64(e, "marked_b", p->marked_b);
	ur_emit_u64(e, "called", p->called);
	ur_emit_u64(e, "accepted", p->cnt.accepted);
	ur_emit_u64(e, "refused", p->cnt.refused);
	ur_emit_u64(e, "changes", p->cnt.changes);
	ur_emit_u64(e, "calls", p->cnt.calls);
	ur_emit_u64(e, "void_calls", p->cnt.void_calls);
	ur_emit_u64(e, "notifies", p->cnt.notifies);
	ur_emit_u64(e, "expired", p->cnt.expired);
	ur_emit_end(e);
}

static void emit_entry(struct ur_emit *e, const struct entry_view *v, unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "peer%u", i);
	ur_emit_begin(e, name);
	ur_emit_address(e, "address", v->peer);
	ur_emit_u64(e, "pool", v->pool);
	ur_emit_str(e, "status", v->known ? statuses[v->status & 3] : "unknown");
	ur_emit_u64(e, "generation", v->generation);
	ur_emit_u64(e, "qps", v->qps);
	ur_emit_u64(e, "waiting", v->waiting);
	ur_emit_end(e);
}

int ur_admission_emit(struct ur_emit *e, const char *params, void *ctx)
{
	static const char *const modes[] = {
#define X(NAME, word) word,
		UR_ADMISSION_WORDS(X)
#undef X
	};
	struct ur_device *dev = ctx;
	struct view *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	ur_emit_str(e, "mode", modes[dev->cfg.admission.mode]);
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		char name[16];

		v->engine = ur_worker_engine(dev->workers[i]);
		v->pool_cnt = v->entry_cnt = 0;
		ur_worker_call(dev->workers[i], look, v);
		snprintf(name, sizeof(name), "worker%u", i);
		ur_emit_begin(e, name);
		for (uint32_t k = 0; k < v->pool_cnt; k++)
			emit_pool(e, &v->pools[k]);
		for (uint32_t k = 0; k < v->entry_cnt; k++)
			emit_entry(e, &v->entries[k], k);
		ur_emit_end(e);
	}
	free(v);
	return 0;
}
