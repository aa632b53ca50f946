/* SPDX-License-Identifier: BSD-3-Clause */
#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "names.h"

#define STATE_DOWN 1
#define LOOKS	   3 /* discoveries after a port came up, one a pass */

/* In this order, two a request. */
enum {
	STATE,
	BPS,
	TX_BYTES,
	RX_BYTES,
	TX_DISCARDS,
	RX_ERRORS,
	OVERRUNS,
	SYMBOL_ERRORS,
	TX_WAIT,
	LINK_DOWNED,
	PORT_REGISTERS
};
static const enum ur_register_id port_registers[PORT_REGISTERS] = {
	[STATE] = UR_PORT_STATE,
	[BPS] = UR_PORT_BPS,
	[TX_BYTES] = UR_PORT_TX_BYTES,
	[RX_BYTES] = UR_PORT_RX_BYTES,
	[TX_DISCARDS] = UR_PORT_TX_DISCARDS,
	[RX_ERRORS] = UR_PORT_RX_ERRORS,
	[OVERRUNS] = UR_PORT_OVERRUNS,
	[SYMBOL_ERRORS] = UR_PORT_SYMBOL_ERRORS,
	[TX_WAIT] = UR_PORT_TX_WAIT,
	[LINK_DOWNED] = UR_PORT_LINK_DOWNED,
};

enum { LOAD, MEMPOOL, RING, NODE_REGISTERS };

static void add_port(struct ctl_view *v, uint32_t node, uint8_t port)
{
	struct ctl_view_port *p = &v->port[v->ports_cnt++];

	*p = (struct ctl_view_port){.node = node, .port = port, .first = v->scan.cnt};
	for (unsigned i = 0; i < PORT_REGISTERS; i++)
		(void)ctl_scan_add(&v->scan, node, port_registers[i], port);
}

static void add_node(struct ctl_view *v, uint32_t node)
{
	const struct ur_topo_node *n = &v->scan.s->topo.node[node];

	v->node[node].first = UINT32_MAX;
	if (n->faults & UR_TOPO_DEAD)
		return;
	v->node[node].first_port = v->ports_cnt;
	v->node[node].first = ctl_scan_add(&v->scan, node, UR_NODE_LOAD, 0);
	(void)ctl_scan_add(&v->scan, node, UR_NODE_MEMPOOL, 0);
	(void)ctl_scan_add(&v->scan, node, UR_NODE_RING, 0);
	for (uint8_t p = 1; p <= n->ports; p++)
		add_port(v, node, p);
}

static bool open_tables(struct ctl_view *v, struct ctl_session *s)
{
	const struct ur_topo *t = &s->topo;

	if (!ctl_scan_open(&v->scan, s,
			   (size_t)t->ports_cnt * PORT_REGISTERS +
				   (size_t)t->nodes_cnt * NODE_REGISTERS))
		return false;
	v->port = calloc(t->ports_cnt, sizeof(*v->port));
	v->node = calloc(t->nodes_cnt, sizeof(*v->node));
	if (!v->port || !v->node)
		return ctl_complain("there is no memory for %u ports", t->ports_cnt);
	for (uint32_t n = 0; n < t->nodes_cnt; n++)
		add_node(v, n);
	return true;
}

static void close_tables(struct ctl_view *v)
{
	ctl_scan_close(&v->scan);
	free(v->port);
	free(v->node);
}

bool ctl_view_open(struct ctl_view *v, struct ctl_session *s)
{
	*v = (struct ctl_view){0};
	return ctl_scout_open(&v->scout, s) && open_tables(v, s);
}

void ctl_view_close(struct ctl_view *v)
{
	ctl_scout_close(&v->scout);
	close_tables(v);
}

/* ---- a pass ---- */

static uint64_t grown(const struct ctl_view *v, const struct ctl_view_port *p, unsigned which)
{
	return ctl_scan_delta(&v->scan, p->first + which);
}

static void update_port(const struct ctl_view *v, struct ctl_view_port *p)
{
	const struct ctl_value *value = &v->scan.value[p->first];
	double seconds = ctl_scan_seconds(&v->scan);

	p->came_up = value[STATE].known && value[STATE].now > STATE_DOWN &&
		     ((value[STATE].was_known && value[STATE].before <= STATE_DOWN &&
		       v->scan.passes > 1) ||
		      grown(v, p, LINK_DOWNED));
	p->known = value[STATE].known;
	p->tx = p->rx = p->share = p->wait = 0;
	if (!p->known)
		return;
	p->state = (uint8_t)value[STATE].now;
	p->was_up |= p->state > STATE_DOWN;
	p->bps = value[BPS].now;
	if (seconds > 0) {
		p->tx = (double)grown(v, p, TX_BYTES) * 8 / seconds;
		p->rx = (double)grown(v, p, RX_BYTES) * 8 / seconds;
		p->wait = (double)grown(v, p, TX_WAIT) / seconds;
	}
	if (p->bps)
		p->share = (p->tx > p->rx ? p->tx : p->rx) / (double)p->bps;
	p->discards += grown(v, p, TX_DISCARDS);
	p->errors += grown(v, p, RX_ERRORS) + grown(v, p, OVERRUNS) + grown(v, p, SYMBOL_ERRORS);
	p->downs += grown(v, p, LINK_DOWNED);
}

bool ctl_view_pass(struct ctl_view *v)
{
	if (!ctl_scan_pass(&v->scan))
		return false;
	for (uint32_t i = 0; i < v->scan.s->topo.nodes_cnt; i++) {
		struct ctl_view_node *n = &v->node[i];
		const struct ctl_value *value = &v->scan.value[n->first];

		n->known = n->first != UINT32_MAX && value[LOAD].known;
		if (!n->known)
			continue;
		n->load = (unsigned)value[LOAD].now;
		n->mempool = (unsigned)value[MEMPOOL].now;
		n->ring = (unsigned)value[RING].now;
	}
	for (uint32_t i = 0; i < v->ports_cnt; i++)
		update_port(v, &v->port[i]);
	return true;
}

/* ---- another graph ---- */

/* What was counted of the node's ports goes on. What it lacked is asked for again. */
static void follow_node(struct ctl_view *v, uint32_t node, const struct ctl_view *before,
			uint32_t was, uint8_t ports)
{
	const struct ctl_view_node *n = &v->node[node], *o = &before->node[was];
	const struct ctl_value *from = before->scan.value;
	struct ctl_value *to = v->scan.value;

	if (n->first == UINT32_MAX || o->first == UINT32_MAX)
		return;
	memcpy(&to[n->first], &from[o->first], NODE_REGISTERS * sizeof(*to));
	for (unsigned i = 0; i < NODE_REGISTERS; i++)
		to[n->first + i].absent = false;
	for (uint8_t i = 0; i < ports; i++) {
		struct ctl_view_port *p = &v->port[n->first_port + i];
		const struct ctl_view_port *q = &before->port[o->first_port + i];
		uint32_t first = p->first;

		memcpy(&to[first], &from[q->first], PORT_REGISTERS * sizeof(*to));
		for (unsigned k = 0; k < PORT_REGISTERS; k++)
			to[first + k].absent = false;
		*p = *q;
		p->node = node;
		p->first = first;
	}
}

/* The session's graph is another one than `before`, which the view is of. */
static bool follow(struct ctl_view *v, const struct ur_topo *before)
{
	struct ctl_session *s = v->scan.s;
	struct ctl_view old = *v;
	bool ok;

	v->ports_cnt = 0;
	ok = open_tables(v, s);
	v->scan.passes = old.scan.passes;
	v->scan.at_ns = old.scan.at_ns;
	v->scan.before_ns = old.scan.before_ns;
	for (uint32_t i = 0; ok && i < before->nodes_cnt; i++) {
		uint32_t node = ur_topo_find(&s->topo, before->node[i].guid);

		if (node != UR_TOPO_NONE && s->topo.node[node].ports == before->node[i].ports &&
		    !(before->node[i].faults & UR_TOPO_DUPLICATE)) {
			v->node[node].known = old.node[i].known;
			v->node[node].load = old.node[i].load;
			v->node[node].mempool = old.node[i].mempool;
			v->node[node].ring = old.node[i].ring;
			follow_node(v, node, &old, i, before->node[i].ports);
		}
	}
	close_tables(&old);
	return ok;
}

bool ctl_view_renew(struct ctl_view *v, bool *changed)
{
	*changed = false;
	for (uint32_t i = 0; i < v->ports_cnt; i++)
		v->looks = v->port[i].came_up ? LOOKS : v->looks;
	if (!v->looks)
		return true;
	v->looks--;
	if (!ctl_scout_run(&v->scout))
		return true;
	ctl_scout_keep_gone(&v->scout);
	*changed = ctl_graphs_differ(&v->scan.s->topo, &v->scout.topo);
	return !*changed || follow(v, &v->scout.topo);
}

const char *ctl_view_state(const struct ctl_view_port *p)
{
	return p->known ? ctl_state_name(p->state) : "silent";
}
