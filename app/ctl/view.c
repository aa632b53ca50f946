/* SPDX-License-Identifier: BSD-3-Clause */
#include "view.h"

#include <stdlib.h>

#include "names.h"

#define STATE_DOWN 1

/* In this order, two a request. */
enum {
	STATE,
	BPS,
	TX_BYTES,
	RX_BYTES,
	TX_DISCARDS,
	RX_ERRORS,
	OVERRUNS,
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
	v->node[node].first = ctl_scan_add(&v->scan, node, UR_NODE_LOAD, 0);
	(void)ctl_scan_add(&v->scan, node, UR_NODE_MEMPOOL, 0);
	(void)ctl_scan_add(&v->scan, node, UR_NODE_RING, 0);
	for (uint8_t p = 1; p <= n->ports; p++)
		add_port(v, node, p);
}

bool ctl_view_open(struct ctl_view *v, struct ctl_session *s)
{
	const struct ur_topo *t = &s->topo;

	*v = (struct ctl_view){0};
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

void ctl_view_close(struct ctl_view *v)
{
	ctl_scan_close(&v->scan);
	free(v->port);
	free(v->node);
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
	p->errors += grown(v, p, RX_ERRORS) + grown(v, p, OVERRUNS);
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

const char *ctl_view_state(const struct ctl_view_port *p)
{
	return p->known ? ctl_state_name(p->state) : "silent";
}
