/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/build.h"
#include "names.h"
#include "output.h"
#include "registers.h"

/*
 * Fault reports: every node is asked to send them here, along the route of that request. Each is printed once, and
 * acknowledged by TrapRepress, without which the node would repeat it.
 */

#define NS	 1000000000.0
#define SEEN_MAX 4096

struct faults {
	struct ctl_session *s;
	uint32_t refused;
	struct {
		uint64_t guid;
		uint32_t sequence;
	} seen[SEEN_MAX]; /* the last ones, to know a repeated report */
	uint32_t seen_cnt;
	json_t *list;
};

/* ---- to be reported here ---- */

static void make_enable(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct faults *f = ctx;
	uint16_t address[2] = {ur_register_address(UR_NODE_FAULT_HERE, 0),
			       ur_register_address(UR_NODE_FAULT_ENABLE, 0)};
	uint64_t value[2] = {1, UINT32_MAX};

	ctl_make_registers(f->s, mad, i, address, value, 2);
}

static void take_enable(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct faults *f = ctx;
	struct ur_registers r;

	if (!mad || ctl_registers_error(mad, &r))
		f->refused++;
}

/* ---- reports ---- */

static const char *cause_text(uint8_t cause)
{
	switch (cause) {
#define X(name, bit, severity, text)                                                               \
	case bit:                                                                                  \
		return text;
		UR_FAULTS(X)
#undef X
	default:
		return "unknown cause";
	}
}

static const char *severity_text(uint8_t severity)
{
	static const char *const names[] = {"info", "warning", "error", "critical"};

	return names[severity < 4 ? severity : 3];
}

static bool is_repeated(struct faults *f, const struct ur_fault *fault)
{
	uint32_t n = f->seen_cnt < SEEN_MAX ? f->seen_cnt : SEEN_MAX;

	for (uint32_t i = 0; i < n; i++)
		if (f->seen[i].guid == fault->node_guid && f->seen[i].sequence == fault->sequence)
			return true;
	f->seen[f->seen_cnt % SEEN_MAX].guid = fault->node_guid;
	f->seen[f->seen_cnt++ % SEEN_MAX].sequence = fault->sequence;
	return false;
}

/* The report ends at its sender. */
static void repress(struct faults *f, uint32_t node, const struct ur_mgr_mad *report)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&f->s->topo, node, path);
	struct ur_mgr_mad mad;

	ur_mgr_directed(&mad, UR_MAD_METHOD_TRAP_REPRESS, UR_SMP_NOTICE, 0, path, hops);
	memcpy(mad.bytes + 8, report->bytes + 8, 8);
	memcpy(mad.bytes + UR_SMP_DATA, report->bytes + UR_SMP_DATA, UR_SMP_DATA_BYTES);
	f->s->join->ops->send(f->s->join, &mad);
}

/* True: it is a report that was not shown before, and is now. */
static bool show(struct faults *f, const struct ur_mgr_mad *mad, double at_s)
{
	const struct ur_topo *t = &f->s->topo;
	char name[CTL_NAME_BYTES] = "a node that was not found";
	struct ur_notice head;
	struct ur_fault fault;
	uint32_t node;

	if (mad->bytes[3] != UR_MAD_METHOD_TRAP)
		return false;
	ur_get_notice(mad->bytes + UR_SMP_DATA, &head);
	if (head.is_generic || head.producer != UR_VENDOR_OUI || head.trap != UR_FAULT_NOTICE)
		return false;
	ur_get_fault(mad->bytes + UR_SMP_DATA + UR_NOTICE_DETAILS, &fault);
	node = ur_topo_find(t, fault.node_guid);
	if (node != UR_TOPO_NONE) {
		repress(f, node, mad);
		ctl_node_name(t, node, name);
	}
	if (is_repeated(f, &fault))
		return false;
	if (ctl_prints_text(f->s->o)) {
		printf("%.6f s  %s: #%d \"%s\" port %u: %s", at_s, severity_text(fault.severity),
		       (int)node, name, fault.port, cause_text(fault.cause));
		if (fault.limit)
			printf(" (%llu, limit %llu)", (unsigned long long)fault.value,
			       (unsigned long long)fault.limit);
		putchar('\n');
		fflush(stdout);
	}
	json_array_append_new(
		f->list, json_pack("{s:f,s:s,s:s,s:o,s:s,s:i,s:i}", "time_s", at_s, "severity",
				   severity_text(fault.severity), "cause", cause_text(fault.cause),
				   "guid", ctl_json_hex(fault.node_guid), "description", name,
				   "port", (int)fault.port, "sequence", (int)fault.sequence));
	return true;
}

bool ctl_cmd_faults(struct ctl_session *s)
{
	static struct faults faults;
	struct ctl_batch batch = {s->topo.nodes_cnt, make_enable, take_enable, &faults};
	struct ctl_join *j = s->join;
	struct ur_mgr_mad mad;
	uint64_t began, shown = 0, until;

	faults = (struct faults){.s = s, .list = json_array()};
	ctl_ask(s, &batch);
	if (faults.refused)
		ctl_complain("%u of %u nodes do not report here; give their key with --m-key",
			     faults.refused, s->topo.nodes_cnt);
	began = j->ops->now_ns(j);
	until = s->o->duration_s > 0 ? began + (uint64_t)(s->o->duration_s * NS) : UINT64_MAX;
	while ((!s->o->count || shown < s->o->count) && j->ops->now_ns(j) < until)
		if (j->ops->receive(j, until, &mad))
			shown += show(&faults, &mad, (double)(j->ops->now_ns(j) - began) / NS);
	return ctl_json_write(s->o, faults.list);
}
