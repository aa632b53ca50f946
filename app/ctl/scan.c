/* SPDX-License-Identifier: BSD-3-Clause */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#define STATE_DOWN 1

bool ctl_scan_open(struct ctl_scan *scan, struct ctl_session *s, size_t max)
{
	const struct ur_topo *t = &s->topo;

	*scan = (struct ctl_scan){.s = s, .max = (uint32_t)max};
	scan->reg = calloc(max + 1, sizeof(*scan->reg));
	scan->value = calloc(max + 1, sizeof(*scan->value));
	scan->again = calloc(max + 1, sizeof(*scan->again));
	scan->again_at = calloc(max + 1, sizeof(*scan->again_at));
	scan->closed_ports = calloc(t->ports_cnt, sizeof(*scan->closed_ports));
	scan->closed_nodes = calloc(t->nodes_cnt, sizeof(*scan->closed_nodes));
	scan->queue = calloc(t->nodes_cnt, sizeof(*scan->queue));
	if (scan->reg && scan->value && scan->again && scan->again_at && scan->closed_ports &&
	    scan->closed_nodes && scan->queue)
		return true;
	return ctl_complain("there is no memory for the registers of %u ports", t->ports_cnt);
}

void ctl_scan_close(struct ctl_scan *scan)
{
	free(scan->reg);
	free(scan->value);
	free(scan->again);
	free(scan->again_at);
	free(scan->closed_ports);
	free(scan->closed_nodes);
	free(scan->queue);
}

uint32_t ctl_scan_add(struct ctl_scan *scan, uint32_t node, enum ur_register_id id, uint8_t port)
{
	scan->reg[scan->cnt] = (struct ctl_register){node, ur_register_address(id, port)};
	return scan->cnt++;
}

/* ---- a pass ---- */

static void take_again(void *ctx, uint32_t i, bool known, uint64_t value)
{
	struct ctl_scan *scan = ctx;
	struct ctl_value *v = &scan->value[scan->again_at[i]];

	v->known = known;
	if (known)
		v->now = value;
}

static void take_absent(void *ctx, uint32_t i)
{
	struct ctl_scan *scan = ctx;
	uint8_t port;

	/* Each port has a state: another node answers, or another agent. */
	if (ur_register_at(scan->again[i].address, &port) != UR_PORT_STATE)
		scan->value[scan->again_at[i]].absent = true;
}

/* MGR-READ-01. Of the last pass: what is asked for again, although the node had none. */
static void forget_absent(struct ctl_scan *scan)
{
	bool *answered = scan->closed_nodes; /* find_ways() writes it anew */

	memset(answered, 0, scan->s->topo.nodes_cnt);
	for (uint32_t i = 0; i < scan->cnt; i++)
		answered[scan->reg[i].node] |= scan->value[i].known;
	for (uint32_t i = 0; i < scan->cnt; i++)
		if (scan->passes % CTL_SCAN_ASK_AGAIN == 0 || !answered[scan->reg[i].node])
			scan->value[i].absent = false;
}

/* Lists what has no value yet and has a path. */
static void list_missing(struct ctl_scan *scan)
{
	scan->again_cnt = 0;
	for (uint32_t i = 0; i < scan->cnt; i++) {
		if (scan->value[i].known || scan->value[i].absent ||
		    scan->s->topo.node[scan->reg[i].node].hops == UR_TOPO_NO_PATH)
			continue;
		scan->again[scan->again_cnt] = scan->reg[i];
		scan->again_at[scan->again_cnt++] = i;
	}
}

/* Ports that are down, and nodes that do not answer, are no part of a path to others. */
static void find_ways(struct ctl_scan *scan, bool nodes_too)
{
	struct ur_topo *t = &scan->s->topo;
	uint8_t port;

	memset(scan->closed_ports, 0, t->ports_cnt);
	memset(scan->closed_nodes, 0, t->nodes_cnt);
	for (uint32_t i = 0; i < scan->cnt; i++) {
		const struct ctl_value *v = &scan->value[i];

		if (!v->known && !v->absent && nodes_too)
			scan->closed_nodes[scan->reg[i].node] = true;
		if (v->known && v->now == STATE_DOWN &&
		    ur_register_at(scan->reg[i].address, &port) == UR_PORT_STATE)
			scan->closed_ports[ur_topo_port_of(t, scan->reg[i].node, port)] = true;
	}
	(void)ur_topo_reroute(t, scan->closed_ports, scan->closed_nodes, scan->queue);
}

bool ctl_scan_pass(struct ctl_scan *scan)
{
	struct ctl_read read = {
		.reg = scan->again, .take = take_again, .absent = take_absent, .ctx = scan};
	struct ctl_join *j = scan->s->join;
	uint32_t missing = UINT32_MAX;

	for (uint32_t i = 0; i < scan->cnt; i++) {
		struct ctl_value *v = &scan->value[i];

		v->before = v->now;
		v->was_known = v->known;
	}
	forget_absent(scan);
	find_ways(scan, false);
	for (uint32_t i = 0; i < scan->cnt; i++)
		scan->value[i].known = false;
	scan->before_ns = scan->at_ns;
	scan->at_ns = j->ops->now_ns(j);
	scan->passes++;
	for (unsigned round = 0;; round++) {
		list_missing(scan);
		if (!scan->again_cnt || scan->again_cnt >= missing)
			return true;
		missing = scan->again_cnt;
		read.cnt = scan->again_cnt;
		if (!ctl_read_registers(scan->s, &read))
			return false;
		/* First around ports that are known to be down, then around silent nodes as well. */
		find_ways(scan, round > 0);
	}
}
