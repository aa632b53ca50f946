/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/sl_marks.h"

#include <string.h>

#include "api/device.h"
#include "edge/pacing_attr.h"

#define ECN_MASK      3
#define TCI_PCP_SHIFT 13

void ur_sl_marks_of_config(const struct ur_config *cfg, struct ur_sl_marks *m)
{
	m->traffic_class = (uint8_t)cfg->qos.traffic_class;
	memcpy(m->dscp, cfg->qos.sl_dscp, sizeof(m->dscp));
	memcpy(m->pcp, cfg->qos.sl_pcp, sizeof(m->pcp));
}

void ur_sl_marks_to_config(const struct ur_sl_marks *m, struct ur_config *cfg)
{
	cfg->qos.traffic_class = m->traffic_class;
	memcpy(cfg->qos.sl_dscp, m->dscp, sizeof(m->dscp));
	memcpy(cfg->qos.sl_pcp, m->pcp, sizeof(m->pcp));
}

/* QOS-MARK-01 */
void ur_sl_marks_publish(struct ur_sl_marks_now *now, const struct ur_sl_marks *m)
{
	uint8_t ecn = m->traffic_class & ECN_MASK;

	atomic_store_explicit(&now->ecn, ecn, memory_order_relaxed);
	for (unsigned sl = 0; sl < 16; sl++) {
		unsigned tos = m->dscp[sl] ? m->dscp[sl] << 2 | ecn : m->traffic_class;

		atomic_store_explicit(&now->of_sl[sl], (uint16_t)(tos | m->pcp[sl] << 8),
				      memory_order_relaxed);
	}
}

static uint16_t mark_of(const struct ur_device *dev, uint8_t sl)
{
	return atomic_load_explicit(&dev->marks.of_sl[sl & 15], memory_order_relaxed);
}

void ur_sl_marks_put(const struct ur_device *dev, const struct ibv_ah_attr *av,
		     struct ur_path_attr *path)
{
	uint16_t mark = mark_of(dev, av->sl);

	path->tos = av->grh.traffic_class ? av->grh.traffic_class : (uint8_t)mark;
	path->tos |= ur_pacing_ecn_of(&dev->cfg);
	path->has_vlan = dev->cfg.address.vlan != 0;
	path->vlan_tci = (uint16_t)(dev->cfg.address.vlan | (mark >> 8) << TCI_PCP_SHIFT);
}

uint8_t ur_sl_marks_sl_of_tos(const struct ur_device *dev, uint8_t tos)
{
	for (uint8_t sl = 0; sl < 16; sl++)
		if ((mark_of(dev, sl) & 0xff) >> 2 == tos >> 2)
			return sl;
	return 0;
}

uint8_t ur_sl_marks_ecn(const struct ur_device *dev)
{
	return atomic_load_explicit(&dev->marks.ecn, memory_order_relaxed);
}

/* ---- existing paths ---- */

uint8_t ur_sl_marks_renew(const struct ur_device *dev, const struct ibv_ah_attr *av,
			  struct ur_path *path)
{
	struct ur_path_attr attr = {0};

	ur_sl_marks_put(dev, av, &attr);
	ur_path_mark(path, attr.tos, attr.vlan_tci);
	return attr.tos;
}

struct renew_call {
	struct ur_device *dev;
	unsigned worker;
};

static void renew_path(struct ur_path *path, const struct ibv_ah_attr *av, void *ctx)
{
	ur_sl_marks_renew(ctx, av, path);
}

static void renew_qps_on_worker(void *arg, uint64_t now_ns)
{
	struct renew_call *c = arg;

	ur_engine_for_each_path(ur_worker_engine(c->dev->workers[c->worker]), renew_path, c->dev);
}

void ur_sl_marks_renew_qps(struct ur_device *dev, unsigned worker)
{
	struct renew_call c = {dev, worker};

	ur_worker_call(dev->workers[worker], renew_qps_on_worker, &c);
}

/* Pauses one worker after the other, by a call from each to the next; the last one does the work. */
static void renew_ahs_on_workers(void *arg, uint64_t now_ns)
{
	struct renew_call *c = arg;
	struct ur_api_ah *ah;

	if (++c->worker < c->dev->worker_cnt) {
		ur_worker_call(c->dev->workers[c->worker], renew_ahs_on_workers, c);
		return;
	}
	LIST_FOREACH(ah, &c->dev->ahs, link)
	ur_sl_marks_renew(c->dev, &ah->attr, &ah->ah.path);
}

void ur_sl_marks_renew_ahs(struct ur_device *dev)
{
	struct renew_call c = {dev, 0};

	if (!LIST_EMPTY(&dev->ahs))
		ur_worker_call(dev->workers[0], renew_ahs_on_workers, &c);
}

static void renew_cm_on_worker(void *arg, uint64_t now_ns)
{
	ur_cm_renew_marks(arg);
}

void ur_sl_marks_renew_cm(struct ur_device *dev)
{
	ur_worker_call(dev->workers[0], renew_cm_on_worker,
		       ur_engine_cm(ur_worker_engine(dev->workers[0])));
}
