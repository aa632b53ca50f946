/* SPDX-License-Identifier: BSD-3-Clause */
#include "scout.h"

#include <stdlib.h>
#include <string.h>

bool ctl_scout_open(struct ctl_scout *scout, struct ctl_session *s)
{
	*scout = (struct ctl_scout){.s = s};
	return ctl_make_tables(s->o, &scout->topo, &scout->topo_memory, &scout->requests,
			       &scout->requests_memory);
}

void ctl_scout_close(struct ctl_scout *scout)
{
	free(scout->topo_memory);
	free(scout->requests_memory);
}

void ctl_scout_begin(struct ctl_scout *scout, uint64_t now_ns)
{
	struct ur_discover_attr attr = {(uint32_t)scout->s->o->per_node};

	ur_topo_init(&scout->topo, scout->topo_memory, &scout->s->topo.limits);
	ur_discover_init(&scout->discover, &attr, &scout->topo, &scout->requests);
	scout->running = true;
	scout->began_ns = now_ns;
}

bool ctl_scout_output(struct ctl_scout *scout, uint64_t now_ns, struct ur_mgr_mad *mad)
{
	return scout->running && ur_discover_output(&scout->discover, now_ns, mad);
}

void ctl_scout_input(struct ctl_scout *scout, const struct ur_mgr_mad *mad, uint64_t now_ns)
{
	if (scout->running)
		ur_discover_input(&scout->discover, mad, now_ns);
}

uint64_t ctl_scout_next_deadline(const struct ctl_scout *scout)
{
	return ur_discover_next_deadline(&scout->discover);
}

void ctl_scout_expire(struct ctl_scout *scout, uint64_t now_ns)
{
	if (scout->running)
		ur_discover_expire(&scout->discover, now_ns);
}

bool ctl_scout_is_done(const struct ctl_scout *scout)
{
	return scout->running && ur_discover_done(&scout->discover);
}

bool ctl_scout_finish(struct ctl_scout *scout)
{
	struct ctl_session *s = scout->s;
	struct ur_topo topo = scout->topo;
	void *memory = scout->topo_memory;

	scout->running = false;
	if (!topo.nodes_cnt)
		return false;
	scout->topo = s->topo;
	scout->topo_memory = s->topo_memory;
	s->topo = topo;
	s->topo_memory = memory;
	return true;
}

bool ctl_scout_run(struct ctl_scout *scout)
{
	struct ctl_session *s = scout->s;
	struct ctl_join *j = s->join;
	struct ur_mgr_mad mad;

	ctl_scout_begin(scout, j->ops->now_ns(j));
	while (!ctl_scout_is_done(scout)) {
		while (ctl_scout_output(scout, j->ops->now_ns(j), &mad))
			ctl_send(s, &mad);
		if (ctl_scout_is_done(scout))
			break;
		if (j->ops->receive(j, ctl_scout_next_deadline(scout), &mad)) {
			if (mad.bytes[3] & UR_MAD_METHOD_RESPONSE)
				ctl_scout_input(scout, &mad, j->ops->now_ns(j));
			else if (s->take_other)
				s->take_other(s->take_other_ctx, &mad);
		}
		ctl_scout_expire(scout, j->ops->now_ns(j));
	}
	return ctl_scout_finish(scout);
}

/* The node of the graph before in the new one; it is added if it is not there. */
static uint32_t find_or_add(struct ur_topo *now, const struct ur_topo_node *before)
{
	uint32_t node = ur_topo_find(now, before->guid);
	struct ur_topo_node *n;

	if (node != UR_TOPO_NONE)
		return now->node[node].ports == before->ports ? node : UR_TOPO_NONE;
	node = ur_topo_add(now, before->guid, before->type, before->ports);
	if (node == UR_TOPO_NONE)
		return node;
	n = &now->node[node];
	n->hops = UR_TOPO_NO_PATH;
	n->system_guid = before->system_guid;
	memcpy(n->description, before->description, sizeof(n->description));
	return node;
}

static void keep_link(struct ur_topo *now, uint32_t a, uint8_t port_a, uint32_t b, uint8_t port_b,
		      uint8_t link)
{
	struct ur_topo_port *x = &now->port[ur_topo_port_of(now, a, port_a)];
	struct ur_topo_port *y = &now->port[ur_topo_port_of(now, b, port_b)];

	if (x->peer_node != UR_TOPO_NONE || y->peer_node != UR_TOPO_NONE)
		return;
	x->peer_node = b;
	x->peer_port = port_b;
	x->link = link;
	y->peer_node = a;
	y->peer_port = port_a;
}

void ctl_scout_keep_gone(struct ctl_scout *scout)
{
	const struct ur_topo *before = &scout->topo;
	struct ur_topo *now = &scout->s->topo;

	for (uint32_t i = 0; i < before->nodes_cnt; i++) {
		const struct ur_topo_node *n = &before->node[i];
		uint32_t a = n->faults & UR_TOPO_DUPLICATE ? UR_TOPO_NONE : find_or_add(now, n);

		for (unsigned p = 1; a != UR_TOPO_NONE && p <= n->ports; p++) {
			const struct ur_topo_port *tp = &before->port[n->first_port + p];
			uint32_t b = tp->peer_node;

			if (b == UR_TOPO_NONE || before->node[b].faults & UR_TOPO_DUPLICATE)
				continue;
			b = find_or_add(now, &before->node[b]);
			if (b != UR_TOPO_NONE)
				keep_link(now, a, (uint8_t)p, b, tp->peer_port, tp->link);
		}
	}
}

static bool nodes_differ(const struct ur_topo *a, const struct ur_topo *b, uint32_t i)
{
	const struct ur_topo_node *x = &a->node[i], *y = &b->node[i];

	if (x->guid != y->guid || x->ports != y->ports || x->hops != y->hops ||
	    x->parent != y->parent || x->parent_port != y->parent_port)
		return true;
	for (unsigned p = 1; p <= x->ports; p++) {
		const struct ur_topo_port *k = &a->port[x->first_port + p];
		const struct ur_topo_port *l = &b->port[y->first_port + p];

		if (k->peer_node != l->peer_node || k->peer_port != l->peer_port)
			return true;
	}
	return false;
}

bool ctl_graphs_differ(const struct ur_topo *a, const struct ur_topo *b)
{
	if (a->nodes_cnt != b->nodes_cnt)
		return true;
	for (uint32_t i = 0; i < a->nodes_cnt; i++)
		if (nodes_differ(a, b, i))
			return true;
	return false;
}
