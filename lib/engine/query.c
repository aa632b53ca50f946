/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/query.h"

#include "engine/engine_priv.h"
#include "transport/dest.h"
#include "wire/bytes.h"
#include "wire/ext.h"

const struct ur_counters *ur_engine_counters(const struct ur_engine *e)
{
	return &e->core.cnt;
}

/* ---- queue pairs ---- */

static void view_paths(const struct ur_qp *qp, struct ur_qp_view *out)
{
	const struct ur_spray_qp *s = qp->ops->paths(qp);
	unsigned weights = 0;

	out->path_cnt = 1;
	out->sport = __builtin_bswap16(qp->sport_be);
	if (!s)
		return;
	out->path_cnt = s->paths.n;
	for (unsigned i = 0; i < s->paths.n; i++)
		weights += s->paths.path[i].weight;
	for (unsigned i = 0; i < s->paths.n; i++) {
		const struct ur_spray_path *path = &s->paths.path[i];
		uint32_t lost = path->lost < path->sent ? path->lost : path->sent;

		out->path[i] = (struct ur_qp_path_view){
			.sport = ur_spray_port(out->sport, (uint8_t)i),
			.share_permille = (uint16_t)(weights ? path->weight * 1000u / weights : 0),
			.loss_permille = (uint16_t)(path->sent ? lost * 1000u / path->sent : 0),
			.rtt_ns = (uint64_t)path->rtt << UR_STAMP_SHIFT,
		};
	}
}

void ur_engine_view_qp(const struct ur_qp *qp, struct ur_qp_view *out)
{
	struct ur_qp_numbers n = qp->ops->numbers(qp);

	*out = (struct ur_qp_view){
		.qpn = qp->qpn,
		.dest_qpn = qp->dest_qpn,
		.type = qp->ops->type,
		.state = (enum ibv_qp_state)qp->state,
		.mode = qp->ops->mode,
		.strict = qp->strict,
		.pmtu = 1u << qp->mtu_shift,
		.sq_head = qp->req.head,
		.sq_cur = qp->req.cur,
		.sq_tail = ur_wq_tail(&qp->sq),
		.epsn = qp->rsp.epsn,
		.msn = qp->rsp.msn.v,
		.una = n.una,
		.nxt = n.nxt,
		.max = n.max,
		.retries_left = n.retries,
	};
	view_paths(qp, out);
}

void ur_engine_query_qp(const struct ur_qp *qp, struct ibv_qp_attr *out)
{
	ur_qp_query(qp, out);
}

/* ---- lanes ---- */

void ur_engine_view_lanes(const struct ur_engine *e, struct ur_lanes_view *out)
{
	const struct ur_core *core = &e->core;
	const struct ur_emux *x = &core->emux;

	*out = (struct ur_lanes_view){
		.ready = x->ready_cnt,
		.held = x->held_cnt,
		.turns = core->cnt.sched_turns,
		.blind_visits = core->cnt.sched_blind_visits,
		.sifted = core->cnt.sched_sifted,
		.woken = core->cnt.sched_woken,
	};
	for (unsigned v = 0; v < UR_VL_CNT; v++) {
		out->lane[v].packets = core->lane[v].packets;
		out->lane[v].bytes = core->lane[v].bytes;
		for (unsigned p = 0; p < UR_EMUX_PRIORITIES; p++)
			out->lane[v].ready += x->ready[v][p].ready_cnt;
	}
}

/* ---- destinations ---- */

void ur_engine_view_destinations(const struct ur_engine *e, struct ur_destinations_view *out)
{
	const struct ur_cc *p = &e->core.cc;

	*out = (struct ur_destinations_view){
		.destinations = p->used,
		.throttled = p->throttled,
		.link_bps = ur_cc_link_bps(p),
		.cnt = p->cnt,
	};
}

bool ur_engine_next_destination(const struct ur_engine *e, uint32_t *cursor,
				struct ur_destination_view *out)
{
	const struct ur_cc *p = &e->core.cc;
	const struct ur_cc_dest *d = ur_cc_next(p, cursor);
	const struct ur_dest *dest;

	if (!d)
		return false;
	dest = &e->core.dests[ur_cc_index(p, d)];
	ur_cc_view(p, d, &out->pacing);
	out->closed = dest->gate.closed;
	out->waiting_qps = dest->gate.waiting.ready_cnt;
	out->net_hops = ur_net_delay_served(&dest->net) ? dest->net.hops : 0;
	out->net_delay_ns = out->net_hops ? dest->net.delay_ns : 0;
	return true;
}

/* ---- receive pools ---- */

bool ur_engine_next_pool(const struct ur_engine *e, struct ur_pool_cursor *cursor,
			 struct ur_pool_view *out)
{
	const struct ur_srq *srq = cursor->begun ? cursor->next : LIST_FIRST(&e->core.adm.srqs);
	const struct ur_adm_pool *p;

	if (!srq)
		return false;
	*cursor = (struct ur_pool_cursor){.next = LIST_NEXT(srq, link), .begun = true};
	p = &srq->adm;
	*out = (struct ur_pool_view){
		.name = srq->pool,
		.status = (enum ur_adm_status)p->status,
		.generation = p->generation,
		.qps = srq->qp_cnt,
		.posted = ur_wq_cnt(&srq->rq),
		.refused_a = p->refused[UR_ADM_CLASS_A],
		.refused_b = p->refused[UR_ADM_CLASS_B],
		.granted = p->granted_cnt,
		.cnt = p->cnt,
	};
	out->room = ur_adm_pool_room(p, out->posted);
	return true;
}

bool ur_engine_next_peer_pool(const struct ur_engine *e, uint32_t *cursor,
			      struct ur_peer_pool_view *out)
{
	const struct ur_admission *adm = &e->core.adm;
	const struct ur_sst_entry *entry;
	const struct ur_sst_waiter *w;

	while (*cursor < adm->cnt && !adm->entries[*cursor].refs)
		++*cursor;
	if (*cursor >= adm->cnt)
		return false;
	entry = &adm->entries[(*cursor)++];
	*out = (struct ur_peer_pool_view){
		.name = entry->pool,
		.known = entry->known,
		.status = (enum ur_adm_status)entry->status,
		.generation = entry->generation,
		.qps = entry->refs,
	};
	memcpy(out->address, entry->peer, sizeof(out->address));
	for (unsigned i = 0; i < 3; i++) {
		TAILQ_FOREACH(w, &entry->waiters[i], link)
		out->waiting++;
	}
	return true;
}
