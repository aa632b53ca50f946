/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/qos.h"

#include <errno.h>
#include <string.h>

#include "api/device.h"
#include "edge/config_attr.h"
#include "edge/pacing_attr.h"
#include "engine/query.h"

/* Configuration, API and engine list the same names in the same order. */
#define X(NAME, word) _Static_assert((int)UROCE_VL_##NAME == (int)UR_VL_##NAME, "order of modes");
UROCE_VL_MODES(X)
#undef X
#define X(NAME, word)                                                                              \
	_Static_assert((int)UROCE_POLICY_##NAME == (int)UR_EMUX_##NAME, "order of policies");
UROCE_POLICIES(X)
#undef X
_Static_assert(UROCE_VLS == UR_VL_CNT && UROCE_VL_ENTRIES == UR_VL_ENTRIES, "as many lanes");

#define TURN_WQES_MAX  65535
#define TURN_BYTES_MAX (1u << 24)
#define RATE_GBPS_MAX  1000
#define DSCP_MAX       63
#define PCP_MAX	       7

/* ---- attributes ---- */

void ur_qos_of_config(const struct ur_config *cfg, uint8_t mtu_shift, struct ur_qos *qos)
{
	struct ur_vl_attr *vl = &qos->engine.vl;

	*qos = (struct ur_qos){
		.engine = {.vl = {.mode = (enum ur_vl_mode)cfg->qos.vl_mode,
				  .high_cnt = cfg->qos.vl_high.cnt,
				  .low_cnt = cfg->qos.vl_low.cnt,
				  .high_limit = (uint8_t)cfg->qos.vl_high_limit,
				  .mtu_shift = mtu_shift},
			   .sched = {.policy = (enum ur_emux_policy)cfg->qos.policy,
				     .wqes = cfg->qos.turn_wqes,
				     .burst = cfg->qos.turn_bytes,
				     .in_turn = !cfg->qos.sparse_first}},
		.rate_gbps = cfg->port.rate_gbps,
	};
	memcpy(vl->high, cfg->qos.vl_high.entry, sizeof(vl->high));
	memcpy(vl->low, cfg->qos.vl_low.entry, sizeof(vl->low));
	memcpy(vl->sl2vl, cfg->qos.sl2vl, sizeof(vl->sl2vl));
	ur_dscp_map_of_config(cfg, &qos->dscp_map);
}

/* The reverse conversion, for changes by key. */
static void to_config(const struct ur_qos *qos, struct ur_config *cfg)
{
	const struct ur_vl_attr *vl = &qos->engine.vl;

	cfg->qos.vl_mode = (int)vl->mode;
	cfg->qos.vl_high.cnt = vl->high_cnt;
	cfg->qos.vl_low.cnt = vl->low_cnt;
	cfg->qos.vl_high_limit = vl->high_limit;
	memcpy(cfg->qos.vl_high.entry, vl->high, sizeof(vl->high));
	memcpy(cfg->qos.vl_low.entry, vl->low, sizeof(vl->low));
	memcpy(cfg->qos.sl2vl, vl->sl2vl, sizeof(vl->sl2vl));
	cfg->qos.policy = (int)qos->engine.sched.policy;
	cfg->qos.turn_wqes = qos->engine.sched.wqes;
	cfg->qos.turn_bytes = qos->engine.sched.burst;
	cfg->qos.sparse_first = !qos->engine.sched.in_turn;
	ur_dscp_map_to_config(&qos->dscp_map, cfg);
	cfg->port.rate_gbps = qos->rate_gbps;
}

uint16_t ur_qos_served_sls(const struct ur_engine_qos *qos)
{
	return ur_vl_attr_served_sls(&qos->vl);
}

/* ---- change and query ---- */

static struct ur_qos qos_of(struct ur_device *dev)
{
	struct ur_qos qos;

	pthread_mutex_lock(&dev->lock);
	qos = dev->qos;
	pthread_mutex_unlock(&dev->lock);
	return qos;
}

struct set_call {
	struct ur_worker *worker;
	struct ur_credit_map credit;
	const struct ur_engine_qos *qos;
	double rate_gbps;  /* limit of the worker */
	uint64_t link_bps; /* of the worker, for pacing */
};

static void set_on_worker(void *arg, uint64_t now_ns)
{
	struct set_call *c = arg;

	ur_engine_set_qos(ur_worker_engine(c->worker), c->qos);
	ur_worker_set_rate(c->worker, c->rate_gbps);
	ur_worker_set_credit_map(c->worker, &c->credit);
	ur_engine_set_link(ur_worker_engine(c->worker), c->link_bps);
}

/* QOS-LIVE-02: new paths use the new map from now on; existing paths are updated. */
static void apply_dscp_map(struct ur_device *dev, const struct ur_dscp_map *map)
{
	ur_dscp_map_publish(&dev->dscp_map, map);
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_dscp_map_update_qps(dev, i);
	ur_dscp_map_update_ahs(dev);
	ur_dscp_map_update_cm(dev);
}

/* QOS-LIVE-01: at no time can a request be posted to a lane that some worker does not serve. Under dev->lock. */
static void apply_locked(struct ur_device *dev, const struct ur_qos *qos)
{
	uint16_t sls = ur_qos_served_sls(&qos->engine);
	struct set_call c = {
		.qos = &qos->engine,
		.rate_gbps = qos->rate_gbps / dev->worker_cnt,
		.link_bps = ur_cc_link_of(&dev->cfg, qos->rate_gbps, dev->worker_cnt),
	};

	ur_credit_map_of(&qos->engine.vl, qos->dscp_map.dscp, qos->dscp_map.pcp,
			 qos->dscp_map.traffic_class, &c.credit);
	atomic_fetch_and(&dev->served_sls, sls);
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		c.worker = dev->workers[i];
		ur_worker_call(c.worker, set_on_worker, &c);
	}
	if (memcmp(&dev->qos.dscp_map, &qos->dscp_map, sizeof(qos->dscp_map)))
		apply_dscp_map(dev, &qos->dscp_map);
	dev->qos = *qos;
	atomic_store(&dev->served_sls, sls);
}

static void apply(struct ur_device *dev, const struct ur_qos *qos)
{
	pthread_mutex_lock(&dev->lock);
	apply_locked(dev, qos);
	pthread_mutex_unlock(&dev->lock);
}

/* QOS-MAD-01 */
bool ur_qos_try_vl(struct ur_device *dev, const struct ur_vl_attr *vl)
{
	struct ur_qos qos;

	if (pthread_mutex_trylock(&dev->lock))
		return false;
	qos = dev->qos;
	qos.engine.vl = *vl;
	apply_locked(dev, &qos);
	pthread_mutex_unlock(&dev->lock);
	return true;
}

static const char *check_dscp_map(const struct ur_dscp_map *m)
{
	for (unsigned sl = 0; sl < 16; sl++) {
		if (m->dscp[sl] > DSCP_MAX)
			return "a DSCP is not in 0 to 63";
		if (m->pcp[sl] > PCP_MAX)
			return "an 802.1Q priority is not in 0 to 7";
	}
	return NULL;
}

static const char *flaw(const struct ur_qos *qos)
{
	const struct ur_emux_attr *sched = &qos->engine.sched;
	const char *why = check_dscp_map(&qos->dscp_map);

	if (why)
		return why;
	if ((unsigned)sched->policy > UR_EMUX_STRICT)
		return "the policy is unknown";
	if (sched->wqes < 1 || sched->wqes > TURN_WQES_MAX)
		return "a turn is not of 1 to 65535 work requests";
	if (sched->burst < 1 || sched->burst > TURN_BYTES_MAX)
		return "a turn is not of 1 to 16777216 bytes";
	if (qos->rate_gbps != 0 &&
	    !(qos->rate_gbps >= UR_RATE_GBPS_MIN && qos->rate_gbps <= RATE_GBPS_MAX))
		return "the rate is neither 0 nor 0.001 to 1000 Gb/s";
	return ur_vl_attr_check(&qos->engine.vl);
}

int uroce_set_qos(struct ibv_context *ctx, const struct uroce_qos_attr *a, char *err, size_t cap)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_qos qos = {
		.engine = {.vl = {.mode = (enum ur_vl_mode)a->vl_mode,
				  .high_cnt = a->high_cnt,
				  .low_cnt = a->low_cnt,
				  .high_limit = a->high_limit,
				  .mtu_shift = dev->mtu_shift},
			   .sched = {(enum ur_emux_policy)a->policy, a->turn_wqes, a->turn_bytes,
				     !a->sparse_first}},
		.dscp_map = {.traffic_class = a->traffic_class},
		.rate_gbps = a->rate_gbps,
	};
	struct ur_vl_attr *vl = &qos.engine.vl;
	const char *why;

	for (unsigned i = 0; i < UR_VL_ENTRIES; i++) {
		vl->high[i] = (struct ur_vl_entry){a->high[i].vl, a->high[i].weight};
		vl->low[i] = (struct ur_vl_entry){a->low[i].vl, a->low[i].weight};
	}
	memcpy(vl->sl2vl, a->sl2vl, sizeof(vl->sl2vl));
	memcpy(qos.dscp_map.dscp, a->sl_dscp, sizeof(qos.dscp_map.dscp));
	memcpy(qos.dscp_map.pcp, a->sl_pcp, sizeof(qos.dscp_map.pcp));
	why = flaw(&qos);
	if (why) {
		snprintf(err, cap, "%s", why);
		return EINVAL;
	}
	apply(dev, &qos);
	return 0;
}

int uroce_query_qos(struct ibv_context *ctx, struct uroce_qos_attr *a)
{
	struct ur_qos qos = qos_of(ur_device(ctx));
	const struct ur_vl_attr *vl = &qos.engine.vl;

	*a = (struct uroce_qos_attr){
		.vl_mode = (enum uroce_vl_mode)vl->mode,
		.high_cnt = vl->high_cnt,
		.low_cnt = vl->low_cnt,
		.high_limit = vl->high_limit,
		.policy = (enum uroce_policy)qos.engine.sched.policy,
		.turn_wqes = qos.engine.sched.wqes,
		.turn_bytes = qos.engine.sched.burst,
		.sparse_first = !qos.engine.sched.in_turn,
		.traffic_class = qos.dscp_map.traffic_class,
		.rate_gbps = qos.rate_gbps,
	};
	for (unsigned i = 0; i < UR_VL_ENTRIES; i++) {
		a->high[i] = (struct uroce_vl_weight){vl->high[i].vl, vl->high[i].weight};
		a->low[i] = (struct uroce_vl_weight){vl->low[i].vl, vl->low[i].weight};
	}
	memcpy(a->sl2vl, vl->sl2vl, sizeof(a->sl2vl));
	memcpy(a->sl_dscp, qos.dscp_map.dscp, sizeof(a->sl_dscp));
	memcpy(a->sl_pcp, qos.dscp_map.pcp, sizeof(a->sl_pcp));
	return 0;
}

struct share_call {
	struct ur_qp *qp;
	uint8_t priority, weight;
};

static void share_on_worker(void *arg, uint64_t now_ns)
{
	struct share_call *c = arg;

	ur_engine_set_share(c->qp, c->priority, c->weight);
}

int uroce_set_qp_share(struct ibv_qp *base, uint8_t priority, uint8_t weight)
{
	struct ur_api_qp *qp = UR_API(qp, base);
	struct share_call c = {qp->qp, priority, weight};

	if (priority >= UR_EMUX_PRIORITIES || weight < 1)
		return EINVAL;
	ur_worker_call(qp->worker, share_on_worker, &c);
	return 0;
}

/* ---- lane statistics ---- */

struct lanes_call {
	struct ur_engine *engine;
	struct ur_lanes_view view;
};

static void lanes_on_worker(void *arg, uint64_t now_ns)
{
	struct lanes_call *c = arg;

	ur_engine_view_lanes(c->engine, &c->view);
}

static void add_lanes(struct uroce_lanes *out, const struct ur_lanes_view *v)
{
	for (unsigned i = 0; i < UR_VL_CNT; i++) {
#define X(name, type, unit, help) out->lane[i].name += v->lane[i].name;
		UROCE_LANE(X)
#undef X
	}
#define X(name, type, unit, help) out->name += v->name;
	UROCE_SCHEDULER(X)
#undef X
}

int uroce_query_lanes(struct ibv_context *ctx, struct uroce_lanes *out)
{
	struct ur_device *dev = ur_device(ctx);

	*out = (struct uroce_lanes){0};
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct lanes_call c = {.engine = ur_worker_engine(dev->workers[i])};

		ur_worker_call(dev->workers[i], lanes_on_worker, &c);
		add_lanes(out, &c.view);
	}
	return 0;
}

/* ---- telemetry ---- */

int ur_qos_emit_lanes(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct uroce_lanes l;

	uroce_query_lanes(&dev->own.v.context, &l);
	for (unsigned v = 0; v < UR_VL_CNT; v++) {
		char name[16];

		snprintf(name, sizeof(name), "vl%u", v);
		ur_emit_begin(e, name);
#define X(name, type, unit, help) ur_emit_u64(e, #name, l.lane[v].name);
		UROCE_LANE(X)
#undef X
		ur_emit_end(e);
	}
#define X(name, type, unit, help) ur_emit_u64(e, #name, l.name);
	UROCE_SCHEDULER(X)
#undef X
	return 0;
}

static void emit_table(struct ur_emit *e, const char *name, const struct ur_vl_entry *entry,
		       unsigned cnt)
{
	char text[UR_CONFIG_TEXT * 2] = "none";
	size_t len = 0;

	for (unsigned i = 0; i < cnt; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u:%u", i ? "," : "",
					entry[i].vl, entry[i].weight);
	ur_emit_str(e, name, text);
}

static void emit_by_sl(struct ur_emit *e, const char *name, const uint8_t v[16])
{
	char text[64];
	size_t len = 0;

	for (unsigned sl = 0; sl < 16; sl++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", sl ? "," : "",
					v[sl]);
	ur_emit_str(e, name, text);
}

static void emit_qos(struct ur_emit *e, const struct ur_qos *qos)
{
#define X(NAME, word) word,
	static const char *const modes[] = {UROCE_VL_MODES(X)};
	static const char *const policies[] = {UROCE_POLICIES(X)};
#undef X
	const struct ur_vl_attr *vl = &qos->engine.vl;

	ur_emit_str(e, "vl_mode", modes[vl->mode]);
	emit_table(e, "vl_high", vl->high, vl->high_cnt);
	emit_table(e, "vl_low", vl->low, vl->low_cnt);
	ur_emit_u64(e, "vl_high_limit", vl->high_limit);
	emit_by_sl(e, "sl2vl", vl->sl2vl);
	ur_emit_str(e, "policy", policies[qos->engine.sched.policy]);
	ur_emit_u64(e, "turn_wqes", qos->engine.sched.wqes);
	ur_emit_u64(e, "turn_bytes", qos->engine.sched.burst);
	ur_emit_u64(e, "sparse_first", !qos->engine.sched.in_turn);
	ur_emit_u64(e, "traffic_class", qos->dscp_map.traffic_class);
	emit_by_sl(e, "sl_dscp", qos->dscp_map.dscp);
	emit_by_sl(e, "sl_pcp", qos->dscp_map.pcp);
	ur_emit_u64(e, "rate_bps", (uint64_t)(qos->rate_gbps * 1e9 + 0.5));
}

static int change(struct ur_device *dev, struct ur_config *cfg, char *text, char *err, size_t cap)
{
	static const char rate[] = "port.rate_gbps=";
	struct ur_qos qos = qos_of(dev);
	char key[UR_CONFIG_TEXT + 32], *item;
	int rc = 0;

	*cfg = dev->cfg;
	to_config(&qos, cfg);
	while (!rc && (item = strsep(&text, ";"))) {
		bool port = strncmp(item, rate, sizeof(rate) - 1) == 0;

		snprintf(key, sizeof(key), "%s%s", port ? "" : "qos.", item);
		rc = ur_config_set_arg(cfg, key, err, cap);
	}
	if (!rc)
		rc = ur_config_check(cfg, err, cap);
	if (rc)
		return rc;
	ur_qos_of_config(cfg, dev->mtu_shift, &qos);
	apply(dev, &qos);
	return 0;
}

/*
 * "/uroce/qos" returns the settings. "/uroce/qos,KEY=VALUE;KEY=VALUE" changes keys of [qos] and
 * port.rate_gbps, either all of them or none. Any process that may open the telemetry socket may do
 * this.
 */
int ur_qos_emit(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct ur_qos qos;
	struct ur_config *cfg;
	char text[1024], err[512] = "";

	if (strlen(params) >= sizeof(text))
		return -EINVAL;
	if (*params) {
		strcpy(text, params);
		cfg = malloc(sizeof(*cfg));
		if (!cfg)
			return -ENOMEM;
		if (change(dev, cfg, text, err, sizeof(err)))
			ur_emit_str(e, "error", err);
		free(cfg);
	}
	qos = qos_of(dev);
	emit_qos(e, &qos);
	return 0;
}
