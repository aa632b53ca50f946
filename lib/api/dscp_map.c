/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/dscp_map.h"

#include <string.h>

#include "api/device.h"
#include "edge/pacing_attr.h"

#define ECN_MASK      3
#define TCI_PCP_SHIFT 13

void ur_dscp_map_of_config(const struct ur_config *cfg, struct ur_dscp_map *m)
{
	m->traffic_class = (uint8_t)cfg->qos.traffic_class;
	memcpy(m->dscp, cfg->qos.sl_dscp, sizeof(m->dscp));
	memcpy(m->pcp, cfg->qos.sl_pcp, sizeof(m->pcp));
}

void ur_dscp_map_to_config(const struct ur_dscp_map *m, struct ur_config *cfg)
{
	cfg->qos.traffic_class = m->traffic_class;
	memcpy(cfg->qos.sl_dscp, m->dscp, sizeof(m->dscp));
	memcpy(cfg->qos.sl_pcp, m->pcp, sizeof(m->pcp));
}

/* QOS-DSCP-01 */
void ur_dscp_map_publish(struct ur_dscp_map_shared *now, const struct ur_dscp_map *m)
{
	uint8_t ecn = m->traffic_class & ECN_MASK;

	atomic_store_explicit(&now->ecn, ecn, memory_order_relaxed);
	for (unsigned sl = 0; sl < 16; sl++) {
		unsigned tos = m->dscp[sl] ? m->dscp[sl] << 2 | ecn : m->traffic_class;

		atomic_store_explicit(&now->of_sl[sl], (uint16_t)(tos | m->pcp[sl] << 8),
				      memory_order_relaxed);
	}
}

static uint16_t map_sl(const struct ur_device *dev, uint8_t sl)
{
	return atomic_load_explicit(&dev->dscp_map.of_sl[sl & 15], memory_order_relaxed);
}

void ur_dscp_map_set_attr(const struct ur_device *dev, const struct ibv_ah_attr *av,
			  struct ur_path_attr *path)
{
	uint16_t mark = map_sl(dev, av->sl);

	path->tos = av->grh.traffic_class ? av->grh.traffic_class : (uint8_t)mark;
	path->tos |= ur_cc_ecn_of(&dev->cfg);
	path->has_vlan = dev->cfg.address.vlan != 0;
	path->vlan_tci = (uint16_t)(dev->cfg.address.vlan | (mark >> 8) << TCI_PCP_SHIFT);
}

uint8_t ur_dscp_map_sl_of_tos(const struct ur_device *dev, uint8_t tos)
{
	for (uint8_t sl = 0; sl < 16; sl++)
		if ((map_sl(dev, sl) & 0xff) >> 2 == tos >> 2)
			return sl;
	return 0;
}

uint8_t ur_dscp_map_ecn(const struct ur_device *dev)
{
	return atomic_load_explicit(&dev->dscp_map.ecn, memory_order_relaxed);
}

/* ---- existing paths ---- */

uint8_t ur_dscp_map_update_path(const struct ur_device *dev, const struct ibv_ah_attr *av,
				struct ur_path *path)
{
	struct ur_path_attr attr = {0};

	ur_dscp_map_set_attr(dev, av, &attr);
	ur_path_set_tos(path, attr.tos, attr.vlan_tci);
	return attr.tos;
}

struct update_call {
	struct ur_device *dev;
	unsigned worker;
};

static void update_path(struct ur_path *path, const struct ibv_ah_attr *av, void *ctx)
{
	ur_dscp_map_update_path(ctx, av, path);
}

static void update_qps_on_worker(void *arg, uint64_t now_ns)
{
	struct update_call *c = arg;

	ur_engine_for_each_path(ur_worker_engine(c->dev->workers[c->worker]), update_path, c->dev);
}

void ur_dscp_map_update_qps(struct ur_device *dev, unsigned worker)
{
	struct update_call c = {dev, worker};

	ur_worker_call(dev->workers[worker], update_qps_on_worker, &c);
}

/* Pauses one worker after the other, by a call from each to the next; the last one does the work. */
static void update_ahs_on_workers(void *arg, uint64_t now_ns)
{
	struct update_call *c = arg;
	struct ur_api_ah *ah;

	if (++c->worker < c->dev->worker_cnt) {
		ur_worker_call(c->dev->workers[c->worker], update_ahs_on_workers, c);
		return;
	}
	LIST_FOREACH(ah, &c->dev->ahs, link)
	ur_dscp_map_update_path(c->dev, &ah->attr, &ah->ah.path);
}

void ur_dscp_map_update_ahs(struct ur_device *dev)
{
	struct update_call c = {dev, 0};

	if (!LIST_EMPTY(&dev->ahs))
		ur_worker_call(dev->workers[0], update_ahs_on_workers, &c);
}

static void update_cm_on_worker(void *arg, uint64_t now_ns)
{
	ur_cm_update_dscp(arg);
}

void ur_dscp_map_update_cm(struct ur_device *dev)
{
	ur_worker_call(dev->workers[0], update_cm_on_worker,
		       ur_engine_cm(ur_worker_engine(dev->workers[0])));
}
