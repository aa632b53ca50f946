/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/device.h"
#include "api/exposition.h"
#include "engine/query.h"

/*
 * Every counter of an endpoint with its name, unit and help. A row is one counter of a list. A group is a
 * list, with a function that reads its values. The values of a group are arrays in the order of the list,
 * one array for each worker, lane or other instance: a series.
 */

#define ROWS_MAX   96
#define LABELS_MAX 3
#define TEXT_MAX   32
#define POOLS_MAX  256 /* pools of a device that are shown */

struct row {
	const char *name, *unit, *help;
	enum uroce_metric_type type;
};

struct series {
	const struct ur_device *dev;
	int worker;	      /* -1: of the endpoint */
	const char *label;    /* the group's own, NULL: none */
	char value[TEXT_MAX]; /* of it */
	uint64_t v[ROWS_MAX];
};

/* All series of one group. */
struct table {
	struct series *series;
	size_t cnt, cap;
};

struct group {
	const char *prefix; /* of the names */
	const struct row *rows;
	unsigned row_cnt;
	/* NULL: each row is a metric. Else all rows are this one metric, told apart by `label`. */
	const struct row *family;
	const char *label;
	/* Appends the device's series; 0 or ENOMEM. */
	int (*read)(struct table *t, struct ur_device *dev);
};

/* ---- series ---- */

/* A new series, all zero; NULL: no memory. Valid until the next one. */
static struct series *add(struct table *t, const struct ur_device *dev, int worker)
{
	struct series *s = t->series;

	if (t->cnt == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 16;
		s = realloc(s, t->cap * sizeof(*s));
		if (!s)
			return NULL;
		t->series = s;
	}
	s = &t->series[t->cnt++];
	*s = (struct series){.dev = dev, .worker = worker};
	return s;
}

/* Adds a series whose values are the start of an owner's struct: uint64_t in the list's order. */
static int add_copy(struct table *t, const struct ur_device *dev, int worker, const void *values,
		    size_t bytes)
{
	struct series *s = add(t, dev, worker);

	if (!s)
		return ENOMEM;
	memcpy(s->v, values, bytes);
	return 0;
}

/* ---- the lists ---- */

#define ROW(name, unit, help)	      {#name, unit, help, UROCE_METRIC_COUNTER},
#define TYPED(name, type, unit, help) {#name, unit, help, UROCE_METRIC_##type},
#define CNT(rows)		      (sizeof(rows) / sizeof((rows)[0]))

static const struct row transport_rows[] = {UROCE_TRANSPORT_COUNTERS(ROW)};
static const struct row worker_rows[] = {UR_WORKER_COUNTERS(TYPED)};
static const struct row port_rows[] = {UR_PORT_COUNTERS(ROW)};
static const struct row cm_rows[] = {UR_CM_COUNTERS(ROW)};
static const struct row impair_rows[] = {UR_IMPAIR_COUNTERS(TYPED)};
static const struct row neigh_rows[] = {UR_NEIGH_COUNTERS(ROW)};
static const struct row shared_rows[] = {UR_SHARED_COUNTERS(ROW)};
static const struct row lane_rows[] = {UROCE_LANE(TYPED)};
static const struct row pacing_rows[] = {UROCE_PACING(TYPED)};
static const struct row pool_rows[] = {UROCE_POOL_COUNTERS(ROW)};

/* Lists of reasons: a row's name becomes the value of a label. */
#define REASON(NAME, help)	   {#NAME, NULL, help, UROCE_METRIC_COUNTER},
#define MODE(NAME, word, sentence) {word, NULL, sentence, UROCE_METRIC_COUNTER},

static const struct row drop_rows[] = {UR_DROP_REASONS(REASON)};
static const struct row verdict_rows[] = {UR_NEIGH_VERDICTS(REASON)};
static const struct row mode_rows[] = {UROCE_QP_MODE_REASONS(MODE)};
static const struct row object_rows[] = {UROCE_OBJECTS(ROW)};

static const struct row drop_family = {"dropped_packets", "packets",
				       "RoCEv2 packets received that had no effect, by reason",
				       UROCE_METRIC_COUNTER};
static const struct row verdict_family = {"neigh_frames", "frames",
					  "ARP, ND and ICMP frames received, by result",
					  UROCE_METRIC_COUNTER};
static const struct row mode_family = {
	"qp_modes", "queue pairs",
	"queue pairs that went to RTR, or could not, by the reason of their mode",
	UROCE_METRIC_COUNTER};
static const struct row object_family = {"objects", "objects", "live objects by type",
					 UROCE_METRIC_GAUGE};

_Static_assert(CNT(transport_rows) <= ROWS_MAX && CNT(drop_rows) <= ROWS_MAX, "ROWS_MAX");
_Static_assert(offsetof(struct ur_counters, drops) == CNT(transport_rows) * sizeof(uint64_t),
	       "the transport's list comes first");
_Static_assert(offsetof(struct ur_worker_counters, drops) == CNT(worker_rows) * sizeof(uint64_t),
	       "the worker's list comes first");

/* ---- where their values are ---- */

static int read_transport(struct table *t, struct ur_device *dev)
{
	int rc = 0;

	for (int i = 0; !rc && i < dev->worker_cnt; i++)
		rc = add_copy(t, dev, i, ur_engine_counters(ur_worker_engine(dev->workers[i])),
			      offsetof(struct ur_counters, drops));
	return rc;
}

static int read_worker(struct table *t, struct ur_device *dev)
{
	int rc = 0;

	for (int i = 0; !rc && i < dev->worker_cnt; i++)
		rc = add_copy(t, dev, i, ur_worker_counters(dev->workers[i]),
			      offsetof(struct ur_worker_counters, drops));
	return rc;
}

static int read_drops(struct table *t, struct ur_device *dev)
{
	for (int i = 0; i < dev->worker_cnt; i++) {
		const struct ur_counters *c = ur_engine_counters(ur_worker_engine(dev->workers[i]));
		const struct ur_worker_counters *w = ur_worker_counters(dev->workers[i]);
		struct series *s = add(t, dev, i);

		if (!s)
			return ENOMEM;
		for (unsigned d = UR_DROP_NONE + 1; d < UR_DROP_CNT; d++)
			s->v[d] = c->drops[d] + w->drops[d];
	}
	return 0;
}

static int read_port(struct table *t, struct ur_device *dev)
{
	struct ur_port_counters c;

	ur_port_read_counters(&dev->port, &c);
	return add_copy(t, dev, -1, &c, sizeof(c));
}

static int read_cm(struct table *t, struct ur_device *dev)
{
	return add_copy(t, dev, -1, ur_cm_counters(ur_engine_cm(ur_worker_engine(dev->workers[0]))),
			sizeof(struct ur_cm_counters));
}

static int read_impair(struct table *t, struct ur_device *dev)
{
	for (int i = 0; i < 2 * dev->worker_cnt; i++) {
		const struct ur_impair *imp = ur_worker_impair(dev->workers[i / 2], i & 1);
		struct series *s;

		if (!imp)
			continue;
		s = add(t, dev, i / 2);
		if (!s)
			return ENOMEM;
		s->label = "direction";
		strcpy(s->value, i & 1 ? "tx" : "rx");
		memcpy(s->v, ur_impair_counters(imp), UR_IMPAIR_CNT * sizeof(uint64_t));
	}
	return 0;
}

static int read_verdicts(struct table *t, struct ur_device *dev)
{
	return add_copy(t, dev, -1, dev->neigh->cnt, sizeof(dev->neigh->cnt));
}

static int read_neigh(struct table *t, struct ur_device *dev)
{
#define X(name, unit, help) dev->neigh->name##_cnt,
	const uint64_t v[] = {UR_NEIGH_COUNTERS(X)};
#undef X
	return add_copy(t, dev, -1, v, sizeof(v));
}

static int read_shared(struct table *t, struct ur_device *dev)
{
	struct ur_shared_counters c;

	if (!dev->shared)
		return 0;
	ur_shared_read_counters(dev->shared, &c);
	return add_copy(t, dev, -1, &c, sizeof(c));
}

static int read_modes(struct table *t, struct ur_device *dev)
{
	uint64_t v[UR_MODE_REASON_CNT];

	for (unsigned i = 0; i < UR_MODE_REASON_CNT; i++)
		v[i] = atomic_load(&dev->mode_cnt[i]);
	return add_copy(t, dev, -1, v, sizeof(v));
}

static int read_objects(struct table *t, struct ur_device *dev)
{
	struct uroce_objects o;

	uroce_query_objects(&dev->own.v.context, &o);
#define X(name, unit, help) o.name,
	const uint64_t v[] = {UROCE_OBJECTS(X)};
#undef X
	return add_copy(t, dev, -1, v, sizeof(v));
}

static int read_lanes(struct table *t, struct ur_device *dev)
{
	struct uroce_lanes lanes;

	uroce_query_lanes(&dev->own.v.context, &lanes);
	for (unsigned i = 0; i < UROCE_VLS; i++) {
#define X(name, type, unit, help) lanes.lane[i].name,
		const uint64_t v[] = {UROCE_LANE(X)};
#undef X
		if (add_copy(t, dev, -1, v, sizeof(v)))
			return ENOMEM;
		t->series[t->cnt - 1].label = "lane";
		snprintf(t->series[t->cnt - 1].value, TEXT_MAX, "%u", i);
	}
	return 0;
}

static int read_pacing(struct table *t, struct ur_device *dev)
{
	struct uroce_pacing p;

	uroce_query_destinations(&dev->own.v.context, &p, NULL, 0);
#define X(name, type, unit, help) p.name,
	const uint64_t v[] = {UROCE_PACING(X)};
#undef X
	return add_copy(t, dev, -1, v, sizeof(v));
}

static int add_pool(struct table *t, const struct ur_device *dev, const struct uroce_pool *p)
{
#define X(name, unit, help) p->name,
	const uint64_t v[] = {UROCE_POOL_COUNTERS(X)};
#undef X
	if (add_copy(t, dev, (int)p->worker, v, sizeof(v)))
		return ENOMEM;
	t->series[t->cnt - 1].label = "pool";
	snprintf(t->series[t->cnt - 1].value, TEXT_MAX, "%u", p->name);
	return 0;
}

static int read_pools(struct table *t, struct ur_device *dev)
{
	struct uroce_pool *pools = calloc(POOLS_MAX, sizeof(*pools));
	struct uroce_admission sum;
	int rc = pools ? 0 : ENOMEM;

	if (pools)
		uroce_query_admission(&dev->own.v.context, &sum, pools, POOLS_MAX, NULL, 0);
	for (size_t i = 0; !rc && i < sum.pools && i < POOLS_MAX; i++)
		rc = add_pool(t, dev, &pools[i]);
	free(pools);
	return rc;
}

#define PLAIN(prefix, rows, read)                                                                  \
	{                                                                                          \
		prefix, rows, CNT(rows), NULL, NULL, read                                          \
	}
#define FAMILY(family, label, rows, read)                                                          \
	{                                                                                          \
		"", rows, CNT(rows), &family, label, read                                          \
	}

static const struct group groups[] = {
	PLAIN("", transport_rows, read_transport),
	PLAIN("", worker_rows, read_worker),
	FAMILY(drop_family, "reason", drop_rows, read_drops),
	PLAIN("port_", port_rows, read_port),
	PLAIN("cm_", cm_rows, read_cm),
	PLAIN("impair_", impair_rows, read_impair),
	FAMILY(verdict_family, "verdict", verdict_rows, read_verdicts),
	PLAIN("neigh_", neigh_rows, read_neigh),
	PLAIN("shared_", shared_rows, read_shared),
	FAMILY(mode_family, "reason", mode_rows, read_modes),
	FAMILY(object_family, "type", object_rows, read_objects),
	PLAIN("lane_", lane_rows, read_lanes),
	PLAIN("pacing_", pacing_rows, read_pacing),
	PLAIN("pool_", pool_rows, read_pools),
};

/* ---- the walk ---- */

typedef int (*visit_fn)(void *arg, const struct uroce_metric *metric);

/* prefix and name, in lower case. */
static void name_of(char out[TEXT_MAX * 2], const char *prefix, const char *name)
{
	snprintf(out, TEXT_MAX * 2, "%s%s", prefix, name);
	for (char *c = out; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

static int visit_one(const struct group *g, unsigned row, const struct series *s, visit_fn visit,
		     void *arg)
{
	const struct row *r = &g->rows[row], *as = g->family ? g->family : r;
	struct uroce_metric_label labels[LABELS_MAX] = {{"port", s->dev->port.name}};
	char name[TEXT_MAX * 2], worker[TEXT_MAX], reason[TEXT_MAX * 2];
	struct uroce_metric m = {.name = name,
				 .unit = as->unit,
				 .help = as->help,
				 .type = as->type,
				 .labels = labels,
				 .label_cnt = 1,
				 .value = s->v[row]};

	name_of(name, g->prefix, as->name);
	if (s->worker >= 0) {
		snprintf(worker, sizeof(worker), "%d", s->worker);
		labels[m.label_cnt++] = (struct uroce_metric_label){"worker", worker};
	}
	if (s->label)
		labels[m.label_cnt++] = (struct uroce_metric_label){s->label, s->value};
	if (g->label) {
		name_of(reason, "", r->name);
		labels[m.label_cnt++] = (struct uroce_metric_label){g->label, reason};
	}
	return visit(arg, &m);
}

static int visit_group(const struct group *g, const struct table *t, visit_fn visit, void *arg)
{
	int rc = 0;

	for (unsigned row = 0; !rc && row < g->row_cnt; row++) {
		/* Not a reason: the packet was accepted, or the mode is not decided yet. */
		if (g->rows == drop_rows && row == UR_DROP_NONE)
			continue;
		if (g->rows == mode_rows && row == UROCE_MODE_REASON_OPEN)
			continue;
		for (size_t i = 0; !rc && i < t->cnt; i++)
			rc = visit_one(g, row, &t->series[i], visit, arg);
	}
	return rc;
}

static int walk(struct ibv_context *const *ctx, size_t cnt, visit_fn visit, void *arg)
{
	struct table t = {0};
	int rc = 0;

	for (size_t k = 0; !rc && k < CNT(groups); k++) {
		t.cnt = 0;
		for (size_t i = 0; !rc && i < cnt; i++)
			rc = groups[k].read(&t, ur_device(ctx[i]));
		if (!rc)
			rc = visit_group(&groups[k], &t, visit, arg);
	}
	free(t.series);
	return rc;
}

int uroce_visit_metrics(struct ibv_context *ctx, visit_fn visit, void *arg)
{
	return walk(&ctx, 1, visit, arg);
}

int uroce_write_metrics(struct ibv_context *const *ctx, size_t cnt, FILE *out)
{
	struct ur_exposition x = {.out = out};

	return walk(ctx, cnt, ur_exposition_write, &x);
}
