/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/admission_stats.h"
#include "api/destinations.h"
#include "api/device.h"
#include "api/stats.h"
#include "dpdk/counters.h"
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

static uint64_t dropped(const struct ur_counters *c, const struct ur_worker_counters *w)
{
	uint64_t sum = 0;

	for (unsigned d = UR_DROP_NONE + 1; d < UR_DROP_CNT; d++)
		sum += c->drops[d] + w->drops[d];
	return sum;
}

static void add_worker(struct uroce_counters *out, struct ur_worker *worker)
{
	const struct ur_counters *c = ur_engine_counters(ur_worker_engine(worker));

#define X(name, unit, help) out->name += c->name;
	UROCE_TRANSPORT_COUNTERS(X)
#undef X
	out->rnr_nak_received += c->rnr_nak_retry_err;
	out->dropped_packets += dropped(c, ur_worker_counters(worker));
	for (int tx = 0; tx < 2; tx++) {
		out->impaired_lost += impaired_lost(ur_worker_impair(worker, tx));
		out->impaired_packets += impaired(ur_worker_impair(worker, tx));
	}
}

int uroce_query_counters_sized(struct ibv_context *ctx, struct uroce_counters *counters,
			       size_t bytes)
{
	struct ur_device *dev = ur_device(ctx);
	struct uroce_counters out = {0};
	struct ur_port_counters port;

	if (bytes % sizeof(uint64_t))
		return EINVAL;
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		add_worker(&out, dev->workers[i]);
	ur_port_read_counters(&dev->port, &port);
	out.rx_missed = port.imissed + port.rx_nombuf;
	memset(counters, 0, bytes);
	memcpy(counters, &out, bytes < sizeof(out) ? bytes : sizeof(out));
	return 0;
}

/* ---- by name ---- */

static void emit_worker(struct ur_emit *e, const struct ur_worker *w, struct ur_engine *engine)
{
	const struct ur_counters *c = ur_engine_counters(engine);
	const struct ur_worker_counters *wc = ur_worker_counters(w);

#define X(name, unit, help) ur_emit_u64(e, #name, c->name);
	UROCE_TRANSPORT_COUNTERS(X)
#undef X
#define X(name, type, unit, help) ur_emit_u64(e, #name, wc->name);
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

/* Read while worker 0 counts, so figures may be of slightly different times. */
static int emit_cm(struct ur_emit *e, const char *params, void *ctx)
{
	const struct ur_device *dev = ctx;
	const struct ur_cm_counters *c =
		ur_cm_counters(ur_engine_cm(ur_worker_engine(dev->workers[0])));

#define X(name, unit, help) ur_emit_u64(e, #name, c->name);
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
	if (dev->shared) {
		ur_shared_emit(dev->shared, e);
		return 0;
	}
#define X(name, unit, help) ur_emit_u64(e, #name, dev->neigh->name##_cnt);
	UR_NEIGH_COUNTERS(X)
#undef X
	return 0;
}

static int emit_objects(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct uroce_objects o;

	uroce_query_objects(&dev->own.v.context, &o);
#define X(name, unit, help) ur_emit_u64(e, #name, o.name);
	UROCE_OBJECTS(X)
#undef X
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

/* Telemetry commands: "/uroce/NAME" for the first endpoint of the process, "/uroceN/NAME" for others. */
static const struct {
	const char *name, *help;
	ur_counters_fn fn;
	bool port; /* the context is the port */
} shown[] = {
	{"port", "the device's counters and properties", ur_port_counters, true},
	{"workers", "counters of each worker", emit_workers, false},
	{"drops", "packets without effect, by reason", emit_drops, false},
	{"cm", "the connection manager's messages: sent, received, refused", emit_cm, false},
	{"impair", "counters of [impair]", emit_impair, false},
	{"neigh", "ARP, ND and ping", emit_neigh, false},
	{"objects", "live objects", emit_objects, false},
	{"modes", "QPs that went to RTR, or could not, by the reason of their mode", emit_modes,
	 false},
	{"lanes", "virtual lanes: sent, and ready now; the scheduler's counters", ur_qos_emit_lanes,
	 false},
	{"qos",
	 "the settings of [qos]; /uroce/qos,KEY=VALUE;KEY=VALUE changes them, and port.rate_gbps",
	 ur_qos_emit, false},
	{"qp", "one QP: /uroce/qp,QPN", ur_stats_emit_qp, false},
	{"qps", "every QP, by number", ur_stats_emit_qps, false},
	{"admission", "pools of receives (SRQs), and the known status of peers' pools",
	 ur_admission_emit, false},
	{"destinations", "destinations of packets and their pacing", ur_destinations_emit, false},
	{"capture", "/uroce/capture,start,FILE[,FILTER] or ,stop", ur_stats_emit_capture, false},
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
