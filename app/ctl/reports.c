/* SPDX-License-Identifier: BSD-3-Clause */
#include "reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/build.h"
#include "registers.h"

struct asked {
	struct ctl_session *s;
	uint32_t *node, refused;
};

void ctl_reports_make(struct ctl_session *s, uint32_t node, struct ur_mgr_mad *mad)
{
	uint16_t address[2] = {ur_register_address(UR_NODE_FAULT_HERE, 0),
			       ur_register_address(UR_NODE_FAULT_ENABLE, 0)};
	uint64_t value[2] = {1, UINT32_MAX};

	ctl_make_registers(s, mad, node, address, value, 2);
}

static void make_enable(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	const struct asked *a = ctx;

	ctl_reports_make(a->s, a->node[i], mad);
}

static void take_enable(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct asked *a = ctx;
	struct ur_registers r;

	if (!mad || ctl_registers_error(mad, &r))
		a->refused++;
}

uint32_t ctl_reports_ask(struct ctl_session *s)
{
	struct asked a = {.s = s, .node = calloc(s->topo.nodes_cnt, sizeof(*a.node))};
	struct ctl_batch batch = {.make = make_enable, .take = take_enable, .ctx = &a};

	if (!a.node)
		return s->topo.nodes_cnt;
	/* What has no path now is gone. */
	for (uint32_t i = 0; i < s->topo.nodes_cnt; i++)
		if (s->topo.node[i].hops != UR_TOPO_NO_PATH)
			a.node[batch.cnt++] = i;
	ctl_ask(s, &batch);
	free(a.node);
	return a.refused;
}

/* The report ends at its sender. */
static void repress(struct ctl_session *s, uint32_t node, const struct ur_mgr_mad *report)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops;
	struct ur_mgr_mad mad;

	/* A pass may have found no path to it; the report is repeated. */
	if (s->topo.node[node].hops == UR_TOPO_NO_PATH)
		return;
	hops = ur_topo_path(&s->topo, node, path);
	ur_mgr_directed(&mad, UR_MAD_METHOD_TRAP_REPRESS, UR_SMP_NOTICE, 0, path, hops);
	memcpy(mad.bytes + 8, report->bytes + 8, 8);
	memcpy(mad.bytes + UR_SMP_DATA, report->bytes + UR_SMP_DATA, UR_SMP_DATA_BYTES);
	ctl_send(s, &mad);
}

bool ctl_reports_take(struct ctl_session *s, const struct ur_mgr_mad *mad, struct ur_fault *report,
		      char name[CTL_NAME_BYTES])
{
	struct ur_notice head;
	uint32_t node;

	if (mad->bytes[3] != UR_MAD_METHOD_TRAP)
		return false;
	ur_get_notice(mad->bytes + UR_SMP_DATA, &head);
	if (head.is_generic || head.producer != UR_VENDOR_OUI || head.trap != UR_FAULT_NOTICE)
		return false;
	ur_get_fault(mad->bytes + UR_SMP_DATA + UR_NOTICE_DETAILS, report);
	snprintf(name, CTL_NAME_BYTES, "a node that was not found");
	node = ur_topo_find(&s->topo, report->node_guid);
	if (node != UR_TOPO_NONE) {
		repress(s, node, mad);
		ctl_node_name(&s->topo, node, name);
	}
	return true;
}

void ctl_reports_text(const struct ur_fault *report, char *text, size_t bytes)
{
	if (report->limit)
		snprintf(text, bytes, "%s (%llu, limit %llu)", ur_fault_text(report->cause),
			 (unsigned long long)report->value, (unsigned long long)report->limit);
	else
		snprintf(text, bytes, "%s", ur_fault_text(report->cause));
}
