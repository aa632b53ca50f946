/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/admission_stats.h"
#include "api/destinations.h"
#include "api/device.h"
#include "edge/counters.h"
#include "engine/query.h"
#include "engine/verbs.h"

/* ---- sums over workers ---- */

static uint64_t impaired(const struct ur_impair *imp)
{
	const uint64_t *c;

	if (!imp)
		return 0;
	c = ur_impair_counters(imp);
	return c[UR_IMPAIR_LOST] + c[UR_IMPAIR_DUPLICATED] + c[UR_IMPAIR_REORDERED] +
	       c[UR_IMPAIR_CORRUPTED] + c[UR_IMPAIR_LINK_DROPPED];
}

static uint64_t impaired_lost(const struct ur_impair *imp)
{
	const uint64_t *c = imp ? ur_impair_counters(imp) : NULL;

	return c ? c[UR_IMPAIR_LOST] + c[UR_IMPAIR_LINK_DROPPED] : 0;
}

int uroce_query_counters(struct ibv_context *ctx, struct uroce_counters *out)
{
	struct ur_device *dev = ur_device(ctx);
	struct rte_eth_stats st;

	*out = (struct uroce_counters){0};
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		const struct ur_counters *c = ur_engine_counters(ur_worker_engine(dev->workers[i]));
		const struct ur_worker_counters *w = ur_worker_counters(dev->workers[i]);

#define X(name, meaning) out->name += c->name;
		UROCE_TRANSPORT_COUNTERS(X)
#undef X
		out->rnr_nak_received += c->rnr_nak_retry_err;
		for (unsigned d = UR_DROP_NONE + 1; d < UR_DROP_CNT; d++)
			out->dropped_packets += c->drops[d] + w->drops[d];
		out->impaired_lost += impaired_lost(ur_worker_impair(dev->workers[i], false)) +
				      impaired_lost(ur_worker_impair(dev->workers[i], true));
		out->impaired_packets += impaired(ur_worker_impair(dev->workers[i], false)) +
					 impaired(ur_worker_impair(dev->workers[i], true));
	}
	if (rte_eth_stats_get(dev->port.id, &st) == 0)
		out->rx_missed = st.imissed + st.rx_nombuf;
	return 0;
}

/* ---- by name ---- */

static void emit_worker(struct ur_emit *e, const struct ur_worker *w, struct ur_engine *engine)
{
	const struct ur_counters *c = ur_engine_counters(engine);
	const struct ur_worker_counters *wc = ur_worker_counters(w);

#define X(name, text) ur_emit_u64(e, #name, c->name);
	UR_COUNTERS(X)
#undef X
#define X(name, text) ur_emit_u64(e, #name, wc->name);
	UR_WORKER_COUNTERS(X)
#undef X
}

static int emit_workers(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;

	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		char name[16];

		snprintf(name, sizeof(name), "worker%u", i);
		ur_emit_begin(e, name);
		emit_worker(e, dev->workers[i], ur_worker_engine(dev->workers[i]));
		ur_emit_end(e);
	}
	return 0;
}

static int emit_drops(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;

	for (unsigned d = UR_DROP_NONE + 1; d < UR_DROP_CNT; d++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < dev->worker_cnt; i++)
			sum += ur_engine_counters(ur_worker_engine(dev->workers[i]))->drops[d] +
			       ur_worker_counters(dev->workers[i])->drops[d];
		ur_emit_u64(e, ur_drop_name((enum ur_drop)d), sum);
	}
	return 0;
}

/* Read while worker 0 counts: each figure is right, of one moment or the next. */
static int emit_cm(struct ur_emit *e, const char *params, void *ctx)
{
	const struct ur_device *dev = ctx;
	const struct ur_cm_counters *c =
		ur_cm_counters(ur_engine_cm(ur_worker_engine(dev->workers[0])));

#define X(name, text) ur_emit_u64(e, #name, c->name);
	UR_CM_COUNTERS(X)
#undef X
	return 0;
}

static int emit_impair(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;

	for (unsigned i = 0; i < dev->worker_cnt; i++)
		for (int tx = 0; tx < 2; tx++) {
			const struct ur_impair *imp = ur_worker_impair(dev->workers[i], tx);
			char name[16];

			if (!imp)
				continue;
			snprintf(name, sizeof(name), "%s%u", tx ? "tx" : "rx", i);
			ur_emit_begin(e, name);
			ur_emit_array(e, ur_impair_counter_name, ur_impair_counters(imp),
				      UR_IMPAIR_CNT);
			ur_emit_end(e);
		}
	return 0;
}

static int emit_neigh(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;

	ur_emit_array(e, ur_neigh_verdict_name, dev->neigh->cnt, UR_NEIGH_VERDICT_CNT);
	if (dev->shared)
		ur_shared_emit(dev->shared, e);
	else
		ur_emit_u64(e, "moved", dev->neigh->moved_cnt);
	return 0;
}

static int emit_objects(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct uroce_objects o;

	uroce_query_objects(&dev->ctx, &o);
	ur_emit_u64(e, "pds", o.pds);
	ur_emit_u64(e, "mrs", o.mrs);
	ur_emit_u64(e, "cqs", o.cqs);
	ur_emit_u64(e, "srqs", o.srqs);
	ur_emit_u64(e, "qps", o.qps);
	ur_emit_u64(e, "ahs", o.ahs);
	ur_emit_u64(e, "channels", o.channels);
	ur_emit_u64(e, "cm_ids", o.cm_ids);
	ur_emit_u64(e, "cm_connections", o.cm_connections);
	ur_emit_u64(e, "qps_time_wait", o.qps_time_wait);
	return 0;
}

static int emit_modes(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;

#define X(NAME, word, sentence)                                                                    \
	if (UROCE_MODE_REASON_##NAME != UROCE_MODE_REASON_OPEN)                                    \
		ur_emit_u64(e, word, atomic_load(&dev->mode_cnt[UROCE_MODE_REASON_##NAME]));
	UROCE_QP_MODE_REASONS(X)
#undef X
	return 0;
}

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

static int emit_qp(struct ur_emit *e, const char *params, void *ctx)
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

/* Copied between two rounds, told afterwards: a worker does not wait for names and numbers. */
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

static int emit_qps(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	int rc = 0;

	for (unsigned i = 0; !rc && i < dev->worker_cnt; i++)
		rc = emit_qps_of(e, dev->workers[i], ur_clock_ns(&dev->clock));
	return rc;
}

/*
 * "/uroce/capture,start,FILE" or ",start,FILE,FILTER", ",stop", or nothing: what the capture under
 * way has seen. The one entry that does something: whoever may open the telemetry socket may
 * capture.
 */
static int emit_capture(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct uroce_capture_stats st;
	char text[512], err[256], *file, *filter;

	if (!*params) {
		ur_emit_str(e, "state",
			    atomic_load(&dev->capture_hook.current) ? "running" : "stopped");
		return 0;
	}
	if (strcmp(params, "stop") == 0) {
		if (uroce_capture_stop(&dev->ctx, &st))
			return -ENOENT;
		ur_emit_u64(e, "written", st.written);
		ur_emit_u64(e, "dropped", st.dropped);
		ur_emit_u64(e, "filtered", st.filtered);
		ur_emit_u64(e, "overflow", st.overflow);
		return 0;
	}
	if (strncmp(params, "start,", 6) || strlen(params) >= sizeof(text))
		return -EINVAL;
	strcpy(text, params + 6);
	filter = text;
	file = strsep(&filter, ",");
	if (uroce_capture_start(&dev->ctx, file, filter, 0, err, sizeof(err)))
		ur_emit_str(e, "error", err);
	else
		ur_emit_str(e, "state", "running");
	return 0;
}

/* What an endpoint shows, "/uroce/NAME" for the first of the process, "/uroceN/NAME" for others. */
static const struct {
	const char *name, *help;
	ur_counters_fn fn;
	bool port; /* the context is the port */
} shown[] = {
	{"port", "the device's counters and properties", ur_port_counters, true},
	{"workers", "counters of each worker", emit_workers, false},
	{"drops", "packets without effect, by reason", emit_drops, false},
	{"cm", "the connection manager's messages, and those that it did not believe", emit_cm,
	 false},
	{"impair", "what [impair] did", emit_impair, false},
	{"neigh", "ARP, ND and ping", emit_neigh, false},
	{"objects", "live objects", emit_objects, false},
	{"modes", "QPs that went to RTR, or could not, by the reason of their mode", emit_modes,
	 false},
	{"lanes", "virtual lanes: sent, and ready now; the scheduler's counters", ur_qos_emit_lanes,
	 false},
	{"qos", "[qos] as it is; /uroce/qos,KEY=VALUE;KEY=VALUE changes it, and port.rate_gbps",
	 ur_qos_emit, false},
	{"qp", "one QP: /uroce/qp,QPN", emit_qp, false},
	{"qps", "every QP, by number", emit_qps, false},
	{"admission", "SRQs that are overrun, and what is known of those of peers",
	 ur_admission_emit, false},
	{"destinations", "where packets go and how they are paced", ur_destinations_emit, false},
	{"capture", "/uroce/capture,start,FILE[,FILTER] or ,stop", emit_capture, false},
};

#define SHOWN_CNT (sizeof(shown) / sizeof(shown[0]))

static void path_of(const struct ur_device *dev, unsigned i, char buf[48])
{
	if (dev->number)
		snprintf(buf, 48, "/uroce%u/%s", dev->number, shown[i].name);
	else
		snprintf(buf, 48, "/uroce/%s", shown[i].name);
}

void ur_stats_register(struct ur_device *dev)
{
	char path[48];

	for (unsigned i = 0; i < SHOWN_CNT; i++) {
		path_of(dev, i, path);
		ur_counters_register(path, shown[i].fn,
				     shown[i].port ? (void *)&dev->port : (void *)dev,
				     shown[i].help);
	}
}

void ur_stats_unregister(struct ur_device *dev)
{
	char path[48];

	for (unsigned i = 0; i < SHOWN_CNT; i++) {
		path_of(dev, i, path);
		ur_counters_unregister(path);
	}
}

char *uroce_counters_json(struct ibv_context *ctx)
{
	struct ur_device *dev = ur_device(ctx);
	json_t *all = json_object();
	char path[48], *text;

	for (unsigned i = 0; i < SHOWN_CNT; i++) {
		json_t *one;

		path_of(dev, i, path);
		one = ur_counters_json(path);
		if (one)
			json_object_set_new(all, shown[i].name, one);
	}
	text = json_dumps(all, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(all);
	return text;
}

/* ---- capture ---- */

int uroce_capture_start(struct ibv_context *ctx, const char *file, const char *filter,
			uint64_t max_bytes, char *err, size_t err_bytes)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_capture_attr a = {
		.path = file,
		.filter = filter,
		.worker_cnt = dev->worker_cnt,
		.snaplen = dev->cfg.capture.snaplen,
		.max_bytes = max_bytes,
		.ring_bytes = dev->cfg.capture.ring * 2048,
		.epoch_ns = dev->clock.epoch_ns,
	};
	struct ur_capture *c;
	cpu_set_t cpus;
	int rc;

	ur_eal_cpus(&cpus);
	if (dev->dedicated)
		a.cpus = &cpus;
	if (atomic_load(&dev->capture_hook.current)) {
		snprintf(err, err_bytes, "a capture is under way already; stop it first");
		return EBUSY;
	}
	c = ur_capture_start(&a, err, err_bytes);
	if (!c)
		return EINVAL;
	rc = ur_capture_attach(&dev->capture_hook, c);
	if (rc)
		ur_capture_stop(c, NULL);
	return -rc;
}

int uroce_capture_stop(struct ibv_context *ctx, struct uroce_capture_stats *out)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_capture *c = ur_capture_detach(&dev->capture_hook);
	uint64_t st[UR_CAPTURE_STAT_CNT];
	int rc;

	if (!c)
		return ENOENT;
	rc = ur_capture_stop(c, st);
	if (out)
		*out = (struct uroce_capture_stats){.written = st[UR_CAPTURE_WRITTEN],
						    .dropped = st[UR_CAPTURE_DROPPED] +
							       st[UR_CAPTURE_WRITE_ERRORS],
						    .filtered = st[UR_CAPTURE_FILTERED],
						    .overflow = st[UR_CAPTURE_PAST_LIMIT]};
	return -rc;
}
