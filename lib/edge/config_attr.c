/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/config_attr.h"

#include <string.h>

#include "edge/round_credit.h"

#define TIME_WAIT_NS	 UINT64_C(1000000000)
#define IMPAIR_HOLD	 1024	    /* packets that [impair] keeps, of a direction */
#define LINK_HOLD	 4096	    /* the same with a slow link */
#define STATUS_LIFE	 4	    /* life of a peer's status, in multiples of fallback_ms */
#define CM_IDS		 16384	    /* in addition to one for each queue pair */
#define CREDIT_QUARTERS	 3	    /* of a receive ring are for frames with credit */
#define LOSS_BYTES_FIRST (4u << 20) /* memory for gaps that need not be waited for */

static bool is_set(const struct ur_gid *g)
{
	static const struct ur_gid none;

	return !ur_gid_eq(g, &none);
}

static void add_addr(struct ur_neigh_attr *a, const struct ur_gid *gid, uint8_t len)
{
	a->addr[a->addr_cnt].gid = *gid;
	a->addr[a->addr_cnt++].prefix_len = len;
}

struct ur_neigh_attr ur_neigh_attr_of(const struct ur_config *cfg, const uint8_t mac[6])
{
	struct ur_gid ll = ur_neigh_link_local(mac);
	struct ur_neigh_attr a = {
		.has_vlan = cfg->address.vlan != 0,
		.vlan_tci = (uint16_t)cfg->address.vlan,
		.gateway4 = cfg->address.gateway4,
		.has_gateway4 = is_set(&cfg->address.gateway4),
		.gateway6 = cfg->address.gateway6,
		.has_gateway6 = is_set(&cfg->address.gateway6),
	};

	memcpy(a.mac, mac, 6);
	if (cfg->address.ipv4.len)
		add_addr(&a, &cfg->address.ipv4.addr, cfg->address.ipv4.len);
	if (cfg->address.ipv6.len)
		add_addr(&a, &cfg->address.ipv6.addr, cfg->address.ipv6.len);
	if (cfg->address.link_local)
		add_addr(&a, &ll, 64);
	return a;
}

void ur_neigh_open(struct ur_neigh *n, const struct ur_neigh_attr *attr,
		   const struct ur_config *cfg, uint64_t now_ns)
{
	ur_neigh_init(n, attr);
	for (uint32_t i = 0; i < cfg->address.neighbors.cnt; i++)
		ur_neigh_add_static(n, &cfg->address.neighbors.entry[i].addr,
				    cfg->address.neighbors.entry[i].mac, 0);
	ur_mld_join(n, now_ns);
	ur_neigh_announce(n);
}

struct ur_impair_config ur_impair_config_of(const struct ur_config *cfg, bool tx, unsigned workers)
{
	const struct ur_config_impair_dir *d = tx ? &cfg->impair.tx : &cfg->impair.rx;

	return (struct ur_impair_config){
		.seed = cfg->impair.seed,
		.loss = ur_impair_chance(d->loss),
		.burst = ur_impair_chance(d->burst),
		.burst_packets = d->burst_packets,
		.burst_loss = ur_impair_chance(d->burst_loss),
		.duplicate = ur_impair_chance(d->duplicate),
		.reorder = ur_impair_chance(d->reorder),
		.corrupt = ur_impair_chance(d->corrupt),
		.ecn = ur_impair_chance(d->ecn),
		.reorder_gap = d->reorder_packets,
		.reorder_hold_ns = d->reorder_us * UINT64_C(1000),
		.delay_ns = d->delay_us * UINT64_C(1000),
		.jitter_ns = d->jitter_us * UINT64_C(1000),
		.link_gbps = d->rate_gbps / workers,
		.link_queue_bytes = d->queue_kb << 10,
		.link_ecn_bytes = d->ecn_kb << 10,
		.hold_max = d->rate_gbps > 0 ? LINK_HOLD : IMPAIR_HOLD,
	};
}

struct ur_adm_attr ur_adm_attr_of(const struct ur_config *cfg)
{
	return (struct ur_adm_attr){
		.mode = (enum ur_adm_mode)cfg->admission.mode,
		.fallback_ns = cfg->admission.fallback_ms * UINT64_C(1000000),
		.grant_life_ns = cfg->admission.recall_us * UINT64_C(1000),
		.refusal_life_ns = cfg->admission.mark_ms * UINT64_C(1000000),
		.status_ns = cfg->admission.fallback_ms * STATUS_LIFE * UINT64_C(1000000),
	};
}

static uint32_t pow2_at_most(uint32_t n)
{
	return 1u << (31 - __builtin_clz(n));
}

uint32_t ur_config_window(const struct ur_config *cfg)
{
	return pow2_at_most(cfg->transport.window < 4 ? 4 : cfg->transport.window);
}

static struct ur_limits limits_of(const struct ur_config *cfg, uint16_t workers, uint8_t mtu_shift)
{
	bool paces = cfg->pacing.mode != UR_CC_NONE;
	bool admits = cfg->admission.mode != UR_ADM_PLAIN;
	uint32_t slab_bytes = ur_engine_loss_slab_bytes(ur_config_window(cfg));
	uint32_t slabs = (uint32_t)(((uint64_t)cfg->transport.loss_memory_mb << 20) / slab_bytes);
	uint32_t slabs_first = LOSS_BYTES_FIRST / slab_bytes;

	return (struct ur_limits){
		.max_qp = cfg->transport.max_qp,
		.workers = workers,
		.cm = {.max_ids = cfg->transport.max_qp * workers + CM_IDS},
		.reorder_slots = cfg->transport.reorder_slots,
		.reorder_slot_bytes = (uint16_t)(1u << mtu_shift),
		.reorder_contexts = cfg->transport.reorder_contexts,
		.read_gaps = cfg->transport.read_gaps,
		.loss_slabs = slabs < slabs_first ? slabs : slabs_first,
		.loss_slabs_max = slabs,
		.loss_slab_bytes = slab_bytes,
		.spray_contexts = cfg->transport.spray_contexts,
		.destinations = paces ? cfg->pacing.destinations : 0,
		.admission = admits ? cfg->admission.peers : 0,
		.max_sge = (uint16_t)cfg->transport.max_sge,
	};
}

struct ur_engine_attr ur_engine_attr_of(const struct ur_config *cfg, uint16_t workers,
					uint8_t mtu_shift)
{
	return (struct ur_engine_attr){
		.limits = limits_of(cfg, workers, mtu_shift),
		.time_wait_ns = TIME_WAIT_NS,
		.window = ur_config_window(cfg),
		.ackreq_every = cfg->transport.ack_coalesce,
		.mtu_shift = mtu_shift,
		.keeps_ports = !cfg->transport.repath,
		.no_plb = !cfg->transport.plb,
	};
}

void ur_credit_map_of(const struct ur_vl_attr *vl, const uint8_t sl_dscp[16],
		      const uint8_t sl_pcp[16], uint8_t traffic_class, struct ur_credit_map *map)
{
	uint16_t served = ur_vl_attr_served_sls(vl);
	uint8_t lane[16], dscp[16];

	for (unsigned sl = 0; sl < 16; sl++) {
		lane[sl] = served >> sl & 1 ? vl->sl2vl[sl] : UR_CREDIT_NONE;
		dscp[sl] = sl_dscp[sl] ? sl_dscp[sl] : traffic_class >> 2;
	}
	ur_credit_map_make(map, lane, dscp, sl_pcp);
}

struct ur_credit_attr ur_credit_attr_of(const struct ur_config *cfg, uint32_t slots,
					uint32_t session)
{
	return (struct ur_credit_attr){
		.buffers = slots / 4 * CREDIT_QUARTERS,
		.session = session ? session : 1,
		.life_ns = cfg->port.credit_life_ms * UINT64_C(1000000),
		.spare = UR_ROUND_CREDIT_SPARE,
	};
}
