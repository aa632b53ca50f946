/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "names.h"
#include "output.h"
#include "perf_mgt.h"
#include "scan.h"

/*
 * The paper's three modes of monitoring. single: all values once. loop: again and again. compare: only what has changed
 * since the last pass.
 */

#define NS 1000000000.0

/* What is watched, by the tiers of severity of the port counters. X(register, tier); 0: always. */
#define WATCHED(X)                                                                                 \
	X(UR_PORT_STATE, 0)                                                                        \
	X(UR_PORT_LINK_DOWNED, 1)                                                                  \
	X(UR_PORT_RX_ERRORS, 1)                                                                    \
	X(UR_PORT_OVERRUNS, 1)                                                                     \
	X(UR_PORT_SYMBOL_ERRORS, 1)                                                                \
	X(UR_PORT_INTEGRITY, 1)                                                                    \
	X(UR_PORT_EXCESSIVE_OVERRUNS, 1)                                                           \
	X(UR_PORT_FLOW_CONTROL, 1)                                                                 \
	X(UR_PORT_TX_DISCARDS, 2)                                                                  \
	X(UR_PORT_RETRANSMITTED, 2)                                                                \
	X(UR_PORT_TIMEOUTS, 2)                                                                     \
	X(UR_PORT_VL15_DROPPED, 2)                                                                 \
	X(UR_PORT_LINK_RECOVERED, 2)                                                               \
	X(UR_PORT_TX_WAIT, 3)                                                                      \
	X(UR_PORT_HANDSHAKES, 3)                                                                   \
	X(UR_PORT_TX_PACKETS, 3)                                                                   \
	X(UR_PORT_RX_PACKETS, 3)                                                                   \
	X(UR_PORT_TX_BYTES, 3)                                                                     \
	X(UR_PORT_RX_BYTES, 3)

static const struct {
	enum ur_register_id id;
	unsigned tier;
} watched[] = {
#define X(id, tier) {id, tier},
	WATCHED(X)
#undef X
};
#define WATCHED_CNT (sizeof(watched) / sizeof(watched[0]))

struct monitor {
	struct ctl_session *s;
	struct ctl_scan scan;
	bool compare;
	json_t *list;
	uint32_t shown_node; /* its name was printed in this pass */
	json_t *perf_mgt;    /* of counters, or NULL */
};

/* ---- what to read ---- */

/* All ports of the node; of all nodes that answer if it is UR_TOPO_NONE. */
static bool choose(struct monitor *m, uint32_t node, uint64_t only_port)
{
	const struct ur_topo *t = &m->s->topo;

	if (!ctl_scan_open(&m->scan, m->s, (size_t)t->ports_cnt * WATCHED_CNT))
		return false;
	for (uint32_t n = 0; n < t->nodes_cnt; n++) {
		if ((node != UR_TOPO_NONE && n != node) || (t->node[n].faults & UR_TOPO_DEAD))
			continue;
		for (uint8_t p = 1; p <= t->node[n].ports; p++)
			for (unsigned i = 0; i < WATCHED_CNT; i++)
				if ((!only_port || p == only_port) &&
				    watched[i].tier <= m->s->o->tiers)
					(void)ctl_scan_add(&m->scan, n, watched[i].id, p);
	}
	return true;
}

/* ---- what to show ---- */

static void show_node(struct monitor *m, uint32_t node)
{
	char name[CTL_NAME_BYTES];

	if (m->shown_node == node)
		return;
	m->shown_node = node;
	ctl_node_name(&m->s->topo, node, name);
	printf("#%u \"%s\"\n", node, name);
}

static void show_value(struct monitor *m, uint32_t i)
{
	const struct ctl_register *r = &m->scan.reg[i];
	const struct ctl_value *v = &m->scan.value[i];
	char name[48];
	json_t *o;

	ctl_register_name(r->address, name, sizeof(name));
	o = json_pack("{s:i,s:o,s:s}", "node", (int)r->node, "guid",
		      ctl_json_hex(m->s->topo.node[r->node].guid), "register", name);
	if (v->known)
		json_object_set_new(o, "value", json_integer((json_int_t)v->now));
	if (m->compare && v->was_known)
		json_object_set_new(o, "before", json_integer((json_int_t)v->before));
	json_array_append_new(m->list, o);
	if (!ctl_prints_text(m->s->o))
		return;
	show_node(m, r->node);
	if (!v->known)
		puts("  does not answer");
	else if (!m->compare)
		printf("  %-24s %llu\n", name, (unsigned long long)v->now);
	else if (!v->was_known)
		puts("  answers again");
	else
		printf("  %-24s %llu -> %llu\n", name, (unsigned long long)v->before,
		       (unsigned long long)v->now);
}

static bool has_changed(const struct ctl_value *v)
{
	return v->known != v->was_known || (v->known && v->now != v->before);
}

static bool write_pass(struct monitor *m, FILE *out, double at_s)
{
	json_t *root = json_pack("{s:f,s:o}", "time_s", at_s, "values", m->list);
	bool ok = true;

	if (m->perf_mgt)
		json_object_set(root, "perf_mgt", m->perf_mgt);

	/* One line for each pass, so that a reader need not wait for the end. */
	if (out)
		ok = !json_dumpf(root, out, JSON_COMPACT) && fputc('\n', out) != EOF &&
		     !fflush(out);
	json_decref(root);
	m->list = NULL;
	return ok;
}

static bool pass(struct monitor *m, bool first, FILE *out, double at_s)
{
	const struct ctl_scan *scan = &m->scan;

	if (!ctl_scan_pass(&m->scan))
		return false;
	m->list = json_array();
	m->shown_node = UR_TOPO_NONE;
	if (!m->compare && !first && ctl_prints_text(m->s->o))
		printf("\n%.3f s\n", at_s);
	for (uint32_t i = 0, last = UINT32_MAX; i < scan->cnt; i++) {
		const struct ctl_value *v = &scan->value[i],
				       *u = last == UINT32_MAX ? v : &scan->value[last];
		bool same_node = u != v && scan->reg[last].node == scan->reg[i].node;

		if (v->absent)
			continue;
		last = i;
		if (m->compare && (first || !has_changed(v)))
			continue;
		/* That a node is silent, or answers again, is one line. */
		if (same_node && v->known == u->known && v->was_known == u->was_known &&
		    (!v->known || (m->compare && !v->was_known)))
			continue;
		show_value(m, i);
	}
	fflush(stdout);
	return write_pass(m, out, at_s);
}

static bool watch(struct monitor *m, uint64_t passes)
{
	struct ctl_join *j = m->s->join;
	FILE *out = m->s->o->json ? ctl_output_open(m->s->o->json) : NULL;
	uint64_t began = j->ops->now_ns(j), due = began;
	bool ok = !m->s->o->json || out;

	for (uint64_t i = 0; ok && (!passes || i < passes); i++) {
		ctl_wait(m->s, due);
		ok = pass(m, !i, out, (double)(j->ops->now_ns(j) - began) / NS);
		due += (uint64_t)(m->s->o->interval_s * NS);
	}
	return (!out || ctl_output_close(out, m->s->o->json)) && ok;
}

static bool run(struct monitor *m, uint32_t node, uint64_t port, uint64_t passes)
{
	bool ok = choose(m, node, port) && watch(m, passes);

	ctl_scan_close(&m->scan);
	return ok;
}

bool ctl_cmd_monitor(struct ctl_session *s)
{
	const char *mode = s->o->words[0], *text = s->o->words_cnt > 1 ? s->o->words[1] : NULL;
	struct monitor m = {.s = s, .compare = !strcmp(mode, "compare")};
	uint32_t node = UR_TOPO_NONE;
	char err[256];

	if (text && !ctl_find_node(&s->topo, text, &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	if (s->o->share > 0)
		ctl_set_share(s, s->o->share, s->o->rate_gbps);
	return run(&m, node, 0, strcmp(mode, "single") ? s->o->count : 1);
}

bool ctl_cmd_counters(struct ctl_session *s)
{
	struct monitor m = {.s = s};
	uint64_t port = 0;
	uint32_t node;
	char err[256];
	bool ok;

	if (!ctl_find_node(&s->topo, s->o->words[0], &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	if (s->o->words_cnt > 1 &&
	    (!ctl_parse_number(s->o->words[1], s->topo.node[node].ports, &port) || !port))
		return ctl_complain("'%s' is not a port of %s; it has ports 1 to %u",
				    s->o->words[1], s->o->words[0], s->topo.node[node].ports);
	m.perf_mgt = ctl_perf_mgt_read(s, node, (uint8_t)port, err, sizeof(err));
	ok = run(&m, node, port, 1);
	if (ctl_prints_text(s->o)) {
		if (m.perf_mgt)
			ctl_perf_mgt_print(m.perf_mgt);
		else
			puts(err);
	}
	json_decref(m.perf_mgt);
	return ok;
}
