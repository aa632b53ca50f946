/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "edge/mtu.h"
#include "edge/neigh.h"
#include "edge/neigh_frame.h"
#include "edge/round.h"
#include "edge/slab.h"

#define VID_MASK 0xfff

struct ur_endpoint {
	struct ur_round round;
	struct ur_neigh neigh;
	struct ur_credit credit;
	struct ur_gid gids[UR_NEIGH_ADDRS_MAX];
	void *engine_mem;
	struct ur_engine *engine;
};

/* Returns NULL, or a message about an attribute that does not fit. */
static const char *find_fault(const struct ur_endpoint_attr *a)
{
	uint32_t payload = 1u << (a->engine.mtu_shift & 31);

	if (!a->ops || !a->ops->rx || !a->ops->tx || !a->ops->alloc || !a->ops->free)
		return "the packet source lacks an operation: rx, tx, alloc and free are needed";
	if (payload + UR_ROCE_OVERHEAD_BYTES + UR_FRAME_OVERHEAD_BYTES > a->frame_bytes)
		return "frame_bytes is too small for the path MTU of mtu_shift; lower that";
	if (a->engine.limits.workers != 1 || a->engine.limits.worker != 0)
		return "an endpoint has one worker; set engine.limits.workers to 1";
	if (a->neigh.addr_cnt > UR_NEIGH_ADDRS_MAX)
		return "too many addresses; UR_NEIGH_ADDRS_MAX is the most";
	if (a->credit.buffers && ur_credit_attr_check(&a->credit))
		return ur_credit_attr_check(&a->credit);
	return ur_engine_attr_check(&a->engine);
}

static int init_round(struct ur_endpoint *ep, const struct ur_endpoint_attr *a, uint64_t now_ns)
{
	struct ur_round_attr round = {
		.ops = a->ops,
		.source = a->source,
		.engine = ep->engine,
		.frame_bytes = a->frame_bytes,
		.cnt = 1,
		.rx_impair = a->rx_impair,
		.tx_impair = a->tx_impair,
		.neigh = &ep->neigh,
		.capture = a->capture,
		.gids = ep->gids,
		.gid_cnt = a->neigh.addr_cnt,
		.vid = a->neigh.has_vlan ? a->neigh.vlan_tci & VID_MASK : 0,
		.rate_gbps = a->rate_gbps,
		.stage_tx = a->stage_tx,
	};

	memcpy(round.mac, a->neigh.mac, 6);
	if (a->credit.buffers) {
		struct ur_credit_attr credit = a->credit;

		credit.spare = UR_ROUND_CREDIT_SPARE;
		ur_credit_init(&ep->credit, &credit);
		round.credit = &ep->credit;
	}
	for (unsigned i = 0; i < a->neigh.addr_cnt; i++)
		ep->gids[i] = a->neigh.addr[i].gid;
	return ur_round_init(&ep->round, &round, now_ns);
}

struct ur_endpoint *ur_endpoint_new(const struct ur_endpoint_attr *attr, uint64_t now_ns, char *err,
				    size_t cap)
{
	const char *fault = find_fault(attr);
	struct ur_endpoint *ep = fault ? NULL : ur_huge_alloc(sizeof(*ep));

	if (!ep) {
		snprintf(err, cap, "%s", fault ? fault : "out of memory");
		return NULL;
	}
	ep->engine_mem = ur_huge_alloc(ur_engine_size(&attr->engine.limits));
	if (ep->engine_mem)
		ep->engine = ur_engine_init(ep->engine_mem, &attr->engine, now_ns);
	if (!ep->engine || init_round(ep, attr, now_ns)) {
		snprintf(err, cap, "no memory for %u queue pairs and impairment",
			 attr->engine.limits.max_qp);
		ur_endpoint_free(ep);
		return NULL;
	}
	ur_neigh_init(&ep->neigh, &attr->neigh);
	ur_mld_join(&ep->neigh, now_ns);
	ur_neigh_announce(&ep->neigh);
	return ep;
}

void ur_endpoint_free(struct ur_endpoint *ep)
{
	if (!ep)
		return;
	ur_round_fini(&ep->round);
	ur_huge_free(ep->engine_mem);
	ur_huge_free(ep);
}

unsigned ur_endpoint_run(struct ur_endpoint *ep, uint64_t now_ns)
{
	return ur_round_run(&ep->round, now_ns);
}

uint64_t ur_endpoint_next_deadline(const struct ur_endpoint *ep)
{
	return ur_round_next_deadline(&ep->round);
}

int ur_endpoint_resolve(struct ur_endpoint *ep, const struct ur_gid *dst, uint64_t now_ns,
			struct ur_path_attr *path)
{
	const struct ur_neigh_addr *src = ur_neigh_source(&ep->neigh, dst);
	uint8_t mac[6];
	int rc = src ? ur_neigh_resolve(&ep->neigh, dst, mac, now_ns) : -ENETUNREACH;

	if (rc)
		return rc;
	*path = (struct ur_path_attr){.src = src->gid,
				      .dst = *dst,
				      .has_vlan = ep->neigh.attr.has_vlan,
				      .vlan_tci = ep->neigh.attr.vlan_tci};
	memcpy(path->smac, ep->neigh.attr.mac, 6);
	memcpy(path->dmac, mac, 6);
	return 0;
}

struct ur_engine *ur_endpoint_engine(struct ur_endpoint *ep)
{
	return ep->engine;
}

struct ur_neigh *ur_endpoint_neigh(struct ur_endpoint *ep)
{
	return &ep->neigh;
}

const struct ur_worker_counters *ur_endpoint_counters(const struct ur_endpoint *ep)
{
	return &ep->round.cnt;
}

const struct ur_impair *ur_endpoint_impair(const struct ur_endpoint *ep, bool tx)
{
	return ur_round_impair(&ep->round, tx);
}
