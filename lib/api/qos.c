/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/qos.h"

#include <errno.h>
#include <string.h>

#include "api/device.h"

/* Configuration, API and engine have the same words in the same order. */
#define X(NAME, word) _Static_assert((int)UROCE_VL_##NAME == (int)UR_VL_##NAME, "order of modes");
UROCE_VL_MODES(X)
#undef X
#define X(NAME, word)                                                                              \
	_Static_assert((int)UROCE_POLICY_##NAME == (int)UR_EMUX_##NAME, "order of policies");
UROCE_POLICIES(X)
#undef X
_Static_assert(UROCE_VLS == UR_VL_CNT && UROCE_VL_ENTRIES == UR_VL_ENTRIES, "as many lanes");

#define ECN_MASK       3
#define TCI_PCP_SHIFT  13
#define TURN_WQES_MAX  65535
#define TURN_BYTES_MAX (1u << 24)

/* ---- attributes ---- */

void ur_qos_of_config(const struct ur_config *cfg, uint8_t mtu_shift, struct ur_engine_qos *qos)
{
	*qos = (struct ur_engine_qos){
		.vl = {.mode = (enum ur_vl_mode)cfg->qos.vl_mode,
		       .high_cnt = cfg->qos.vl_high.cnt,
		       .low_cnt = cfg->qos.vl_low.cnt,
		       .high_limit = (uint8_t)cfg->qos.vl_high_limit,
		       .mtu_shift = mtu_shift},
		.sched = {.policy = (enum ur_emux_policy)cfg->qos.policy,
			  .wqes = cfg->qos.turn_wqes,
			  .burst = cfg->qos.turn_bytes},
	};
	memcpy(qos->vl.high, cfg->qos.vl_high.entry, sizeof(qos->vl.high));
	memcpy(qos->vl.low, cfg->qos.vl_low.entry, sizeof(qos->vl.low));
	memcpy(qos->vl.sl2vl, cfg->qos.sl2vl, sizeof(qos->vl.sl2vl));
}

/* The other way round, for changes by key. */
static void to_config(const struct ur_engine_qos *qos, struct ur_config *cfg)
{
	cfg->qos.vl_mode = (int)qos->vl.mode;
	cfg->qos.vl_high.cnt = qos->vl.high_cnt;
	cfg->qos.vl_low.cnt = qos->vl.low_cnt;
	cfg->qos.vl_high_limit = qos->vl.high_limit;
	memcpy(cfg->qos.vl_high.entry, qos->vl.high, sizeof(qos->vl.high));
	memcpy(cfg->qos.vl_low.entry, qos->vl.low, sizeof(qos->vl.low));
	memcpy(cfg->qos.sl2vl, qos->vl.sl2vl, sizeof(qos->vl.sl2vl));
	cfg->qos.policy = (int)qos->sched.policy;
	cfg->qos.turn_wqes = qos->sched.wqes;
	cfg->qos.turn_bytes = qos->sched.burst;
}

uint16_t ur_qos_served_sls(const struct ur_engine_qos *qos)
{
	struct ur_vl vl;
	uint16_t sls = 0;

	ur_vl_init(&vl, &qos->vl);
	for (unsigned sl = 0; sl < 16; sl++)
		if (ur_vl_of_sl(&vl, sl) >= 0)
			sls |= (uint16_t)(1u << sl);
	return sls;
}

/* QOS-MARK-01 */
uint8_t ur_qos_tos(const struct ur_config *cfg, uint8_t sl)
{
	uint8_t tos = (uint8_t)cfg->qos.traffic_class;

	return cfg->qos.sl_dscp[sl] ? (uint8_t)(cfg->qos.sl_dscp[sl] << 2 | (tos & ECN_MASK)) : tos;
}

uint16_t ur_qos_tci(const struct ur_config *cfg, uint8_t sl)
{
	return (uint16_t)(cfg->qos.sl_pcp[sl] << TCI_PCP_SHIFT);
}

uint8_t ur_qos_sl_of_tos(const struct ur_config *cfg, uint8_t tos)
{
	for (uint8_t sl = 0; sl < 16; sl++)
		if (ur_qos_tos(cfg, sl) >> 2 == tos >> 2)
			return sl;
	return 0;
}

/* ---- change and query ---- */

static struct ur_engine_qos qos_of(struct ur_device *dev)
{
	struct ur_engine_qos qos;

	pthread_mutex_lock(&dev->lock);
	qos = dev->qos;
	pthread_mutex_unlock(&dev->lock);
	return qos;
}

struct set_call {
	struct ur_engine *engine;
	const struct ur_engine_qos *qos;
};

static void set_on_worker(void *arg, uint64_t now_ns)
{
	struct set_call *c = arg;

	ur_engine_set_qos(c->engine, c->qos);
}

/* QOS-LIVE-01: nobody posts to a lane that a worker does not serve yet, or not any more. */
static void apply(struct ur_device *dev, const struct ur_engine_qos *qos)
{
	uint16_t sls = ur_qos_served_sls(qos);

	pthread_mutex_lock(&dev->lock);
	atomic_fetch_and(&dev->served_sls, sls);
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct set_call c = {ur_worker_engine(dev->workers[i]), qos};

		ur_worker_call(dev->workers[i], set_on_worker, &c);
	}
	dev->qos = *qos;
	atomic_store(&dev->served_sls, sls);
	pthread_mutex_unlock(&dev->lock);
}

static const char *flaw(const struct ur_engine_qos *qos)
{
	if ((unsigned)qos->sched.policy > UR_EMUX_STRICT)
		return "the policy is unknown";
	if (qos->sched.wqes < 1 || qos->sched.wqes > TURN_WQES_MAX)
		return "a turn is not of 1 to 65535 work requests";
	if (qos->sched.burst < 1 || qos->sched.burst > TURN_BYTES_MAX)
		return "a turn is not of 1 to 16777216 bytes";
	return ur_vl_attr_check(&qos->vl);
}

int uroce_set_qos(struct ibv_context *ctx, const struct uroce_qos_attr *a, char *err, size_t cap)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_engine_qos qos = {
		.vl = {.mode = (enum ur_vl_mode)a->vl_mode,
		       .high_cnt = a->high_cnt,
		       .low_cnt = a->low_cnt,
		       .high_limit = a->high_limit,
		       .mtu_shift = dev->mtu_shift},
		.sched = {(enum ur_emux_policy)a->policy, a->turn_wqes, a->turn_bytes},
	};
	const char *why;

	for (unsigned i = 0; i < UR_VL_ENTRIES; i++) {
		qos.vl.high[i] = (struct ur_vl_entry){a->high[i].vl, a->high[i].weight};
		qos.vl.low[i] = (struct ur_vl_entry){a->low[i].vl, a->low[i].weight};
	}
	memcpy(qos.vl.sl2vl, a->sl2vl, sizeof(qos.vl.sl2vl));
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
	struct ur_engine_qos qos = qos_of(ur_device(ctx));

	*a = (struct uroce_qos_attr){
		.vl_mode = (enum uroce_vl_mode)qos.vl.mode,
		.high_cnt = qos.vl.high_cnt,
		.low_cnt = qos.vl.low_cnt,
		.high_limit = qos.vl.high_limit,
		.policy = (enum uroce_policy)qos.sched.policy,
		.turn_wqes = qos.sched.wqes,
		.turn_bytes = qos.sched.burst,
	};
	for (unsigned i = 0; i < UR_VL_ENTRIES; i++) {
		a->high[i] = (struct uroce_vl_weight){qos.vl.high[i].vl, qos.vl.high[i].weight};
		a->low[i] = (struct uroce_vl_weight){qos.vl.low[i].vl, qos.vl.low[i].weight};
	}
	memcpy(a->sl2vl, qos.vl.sl2vl, sizeof(a->sl2vl));
	return 0;
}

struct share_call {
	struct ur_qp *qp;
	uint8_t priority, weight;
};

static void share_on_worker(void *arg, uint64_t now_ns)
{
	struct share_call *c = arg;
	struct ur_emux *x = &c->qp->core->emux;

	ur_emux_set_share(x, &c->qp->sq_queue, c->priority, c->weight);
	ur_emux_set_share(x, &c->qp->rsp_queue, c->priority, c->weight);
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

/* ---- what it comes to ---- */

struct lanes_call {
	struct ur_core *core;
	struct uroce_lanes *out;
};

static void lanes_on_worker(void *arg, uint64_t now_ns)
{
	struct lanes_call *c = arg;
	const struct ur_core *core = c->core;
	const struct ur_emux *x = &core->emux;

	for (unsigned v = 0; v < UR_VL_CNT; v++) {
		c->out->lane[v].packets += core->lane[v].packets;
		c->out->lane[v].bytes += core->lane[v].bytes;
		for (unsigned p = 0; p < UR_EMUX_PRIORITIES; p++)
			c->out->lane[v].ready += x->ready[v][p].ready_cnt;
	}
	c->out->ready += x->ready_cnt;
	c->out->held += x->held_cnt;
	c->out->turns += core->cnt.sched_turns;
	c->out->blind_visits += core->cnt.sched_blind_visits;
	c->out->sifted += core->cnt.sched_sifted;
	c->out->woken += core->cnt.sched_woken;
}

int uroce_query_lanes(struct ibv_context *ctx, struct uroce_lanes *out)
{
	struct ur_device *dev = ur_device(ctx);

	*out = (struct uroce_lanes){0};
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct lanes_call c = {ur_engine_core(ur_worker_engine(dev->workers[i])), out};

		ur_worker_call(dev->workers[i], lanes_on_worker, &c);
	}
	return 0;
}

/* ---- telemetry ---- */

int ur_qos_emit_lanes(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct uroce_lanes l;

	uroce_query_lanes(&dev->ctx, &l);
	for (unsigned v = 0; v < UR_VL_CNT; v++) {
		char name[16];

		snprintf(name, sizeof(name), "vl%u", v);
		ur_emit_begin(e, name);
		ur_emit_u64(e, "packets", l.lane[v].packets);
		ur_emit_u64(e, "bytes", l.lane[v].bytes);
		ur_emit_u64(e, "ready", l.lane[v].ready);
		ur_emit_end(e);
	}
	ur_emit_u64(e, "ready", l.ready);
	ur_emit_u64(e, "held", l.held);
	ur_emit_u64(e, "turns", l.turns);
	ur_emit_u64(e, "blind_visits", l.blind_visits);
	ur_emit_u64(e, "sifted", l.sifted);
	ur_emit_u64(e, "woken", l.woken);
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

static void emit_qos(struct ur_emit *e, const struct ur_engine_qos *qos)
{
#define X(NAME, word) word,
	static const char *const modes[] = {UROCE_VL_MODES(X)};
	static const char *const policies[] = {UROCE_POLICIES(X)};
#undef X
	char text[64];
	size_t len = 0;

	ur_emit_str(e, "vl_mode", modes[qos->vl.mode]);
	emit_table(e, "vl_high", qos->vl.high, qos->vl.high_cnt);
	emit_table(e, "vl_low", qos->vl.low, qos->vl.low_cnt);
	ur_emit_u64(e, "vl_high_limit", qos->vl.high_limit);
	for (unsigned sl = 0; sl < 16; sl++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", sl ? "," : "",
					qos->vl.sl2vl[sl]);
	ur_emit_str(e, "sl2vl", text);
	ur_emit_str(e, "policy", policies[qos->sched.policy]);
	ur_emit_u64(e, "turn_wqes", qos->sched.wqes);
	ur_emit_u64(e, "turn_bytes", qos->sched.burst);
}

/* What is baked into the headers of paths that stand. */
static bool fixed(const char *key)
{
	return strncmp(key, "sl_", 3) == 0 || strncmp(key, "traffic_class", 13) == 0;
}

static int change(struct ur_device *dev, struct ur_config *cfg, char *text, char *err, size_t cap)
{
	struct ur_engine_qos qos = qos_of(dev);
	char key[UR_CONFIG_TEXT + 32], *item;
	int rc = 0;

	*cfg = dev->cfg;
	to_config(&qos, cfg);
	while (!rc && (item = strsep(&text, ";"))) {
		if (fixed(item)) {
			snprintf(err, cap, "%.*s cannot change while running",
				 (int)strcspn(item, "="), item);
			return -EINVAL;
		}
		snprintf(key, sizeof(key), "qos.%s", item);
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
 * "/uroce/qos" tells, "/uroce/qos,KEY=VALUE;KEY=VALUE" changes keys of [qos], all of them or none:
 * whoever may open the telemetry socket may do that.
 */
int ur_qos_emit(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct ur_engine_qos qos;
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
