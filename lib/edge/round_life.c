/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/round.h"

#include <errno.h>
#include <string.h>

/* The making, changing and ending of a round (round.c). */

/* *ip stays NULL when there is nothing to do. */
static int make_impair(const struct ur_round_attr *a, const struct ur_impair_config *cfg,
		       unsigned stream, struct ur_impair_pkt **ip)
{
	if (!ur_impair_active(cfg))
		return 0;
	*ip = ur_impair_pkt_new(cfg, stream, a->ops, a->source, a->frame_bytes);
	return *ip ? 0 : -ENOMEM;
}

int ur_round_init(struct ur_round *r, const struct ur_round_attr *a, uint64_t now_ns)
{
	memset(r, 0, sizeof(*r));
	r->ops = a->ops;
	r->source = a->source;
	/* Frames that impairment holds back must not refer to a user's memory. */
	r->gather = ur_impair_active(&a->tx_impair) ? NULL : a->ops->gather;
	r->engine = a->engine;
	r->neigh = a->neigh;
	r->capture = a->capture;
	r->credit = a->credit;
	r->gids = a->gids;
	r->gid_cnt = a->gid_cnt;
	r->frame_bytes = a->frame_bytes;
	r->idx = a->idx;
	r->workers = a->cnt ? a->cnt : 1;
	r->vid = a->vid;
	memcpy(r->mac, a->mac, 6);
	r->evict_rx = a->evict_rx;
	r->no_loop = a->no_loop;
	r->ack_wait.for_ns = a->ack_wait_ns;
	r->stage_tx = a->stage_tx && !r->gather;
	r->now_ns = now_ns;
	r->spare_first = UR_BURST;
	ur_rate_init(&r->rate, a->rate_gbps);
	if (make_impair(a, &a->rx_impair, 2u * a->idx, &r->rx_impair))
		return -ENOMEM;
	return make_impair(a, &a->tx_impair, 2u * a->idx + 1, &r->tx_impair);
}

static void free_all(struct ur_round *r, struct ur_pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		r->ops->free(r->source, &pkts[i], 1);
}

void ur_round_fini(struct ur_round *r)
{
	if (!r->ops)
		return;
	ur_impair_pkt_free(r->rx_impair);
	ur_impair_pkt_free(r->tx_impair);
	while (r->loop_head != r->loop_tail)
		free_all(r, &r->loop[r->loop_head++ % UR_ROUND_LOOPBACK], 1);
	free_all(r, &r->tx_pending[r->tx_head], (unsigned)(r->tx_tail - r->tx_head));
	free_all(r, &r->spare[r->spare_first], (unsigned)(UR_BURST - r->spare_first));
	memset(r, 0, sizeof(*r));
}

/* ---- changes ---- */

void ur_round_set_rate(struct ur_round *r, double gbps)
{
	ur_rate_change(&r->rate, gbps);
}

void ur_round_set_gids(struct ur_round *r, const struct ur_gid *gids, unsigned cnt)
{
	r->gids = gids;
	r->gid_cnt = cnt;
}

const struct ur_impair *ur_round_impair(const struct ur_round *r, bool tx)
{
	const struct ur_impair_pkt *ip = tx ? r->tx_impair : r->rx_impair;

	return ip ? ur_impair_pkt_impair(ip) : NULL;
}
