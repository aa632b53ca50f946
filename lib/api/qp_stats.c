/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/device.h"
#include "api/stats.h"
#include "engine/query.h"

static const char *const mode_name[] = {
#define X(NAME, name) [UR_MODE_##NAME] = #name,
	UR_MODES(X)
#undef X
};

static void emit_paths(struct ur_emit *e, const struct ur_qp_view *qp)
{
	ur_emit_u64(e, "sport", qp->sport);
	if (qp->path_cnt == 1)
		return;
	ur_emit_begin(e, "paths");
	for (unsigned i = 0; i < qp->path_cnt; i++) {
		const struct ur_qp_path_view *path = &qp->path[i];
		char name[4];

		snprintf(name, sizeof(name), "%u", i);
		ur_emit_begin(e, name);
		ur_emit_u64(e, "sport", path->sport);
		ur_emit_u64(e, "share_permille", path->share_permille);
		ur_emit_u64(e, "loss_permille", path->loss_permille);
		ur_emit_u64(e, "rtt_ns", path->rtt_ns);
		ur_emit_end(e);
	}
	ur_emit_end(e);
}

static void emit_one_qp(struct ur_emit *e, const struct ur_qp_view *qp)
{
	ur_emit_u64(e, "qpn", qp->qpn.v);
	ur_emit_u64(e, "dest_qpn", qp->dest_qpn.v);
	ur_emit_u64(e, "type", qp->type);
	ur_emit_u64(e, "state", qp->state);
	ur_emit_u64(e, "pmtu", qp->pmtu);
	ur_emit_u64(e, "sq_head", qp->sq_head);
	ur_emit_u64(e, "sq_cur", qp->sq_cur);
	ur_emit_u64(e, "sq_tail", qp->sq_tail);
	ur_emit_u64(e, "una", qp->una.v);
	ur_emit_u64(e, "nxt", qp->nxt.v);
	ur_emit_u64(e, "max", qp->max.v);
	ur_emit_u64(e, "epsn", qp->epsn.v);
	ur_emit_u64(e, "msn", qp->msn);
	ur_emit_u64(e, "retries_left", qp->retries_left);
	ur_emit_str(e, "mode", mode_name[qp->mode]);
	ur_emit_u64(e, "strict", qp->strict);
	emit_paths(e, qp);
}

struct find_qp {
	struct ur_engine *engine;
	uint32_t qpn;
	bool found;
	struct ur_qp_view qp;
};

static void copy_qp(void *arg, uint64_t now_ns)
{
	struct find_qp *f = arg;
	const struct ur_qp *qp = ur_engine_find_qp(f->engine, ur_qpn(f->qpn));

	f->found = qp != NULL;
	if (qp)
		ur_engine_view_qp(qp, &f->qp);
}

int ur_stats_emit_qp(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	char *end;
	struct find_qp f = {.qpn = (uint32_t)strtoul(params, &end, 0)};
	struct ur_worker *w = dev->workers[ur_qpn_worker(ur_qpn(f.qpn), dev->worker_cnt)];

	if (!*params || *end)
		return -EINVAL;
	f.engine = ur_worker_engine(w);
	ur_worker_call(w, copy_qp, &f);
	if (!f.found)
		return -ENOENT;
	emit_one_qp(e, &f.qp);
	return 0;
}

struct all_qps {
	struct ur_engine *engine;
	struct ur_qp_view *qps; /* [0, cnt), room for cap */
	uint32_t cnt, cap;
};

static void copy_one(struct ur_qp *qp, void *ctx)
{
	struct all_qps *all = ctx;

	if (all->cnt < all->cap)
		ur_engine_view_qp(qp, &all->qps[all->cnt++]);
}

static void copy_all(void *arg, uint64_t now_ns)
{
	struct all_qps *all = arg;

	ur_engine_for_each_qp(all->engine, copy_one, all);
}

/* Copies between two rounds and formats later, so that the worker does not wait for the formatting. */
static int emit_qps_of(struct ur_emit *e, struct ur_worker *w, uint64_t now_ns)
{
	struct all_qps all = {.engine = ur_worker_engine(w)};

	all.cap = ur_engine_objects(all.engine, now_ns).qps;
	all.qps = malloc((all.cap + 1) * sizeof(*all.qps));
	if (!all.qps)
		return -ENOMEM;
	ur_worker_call(w, copy_all, &all);
	for (uint32_t i = 0; i < all.cnt; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", all.qps[i].qpn.v);
		ur_emit_begin(e, name);
		emit_one_qp(e, &all.qps[i]);
		ur_emit_end(e);
	}
	free(all.qps);
	return 0;
}

int ur_stats_emit_qps(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	int rc = 0;

	for (unsigned i = 0; !rc && i < dev->worker_cnt; i++)
		rc = emit_qps_of(e, dev->workers[i], ur_clock_ns(&dev->clock));
	return rc;
}
