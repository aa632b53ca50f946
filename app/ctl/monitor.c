/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "output.h"
#include "registers.h"

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

struct value {
	uint64_t now, before;
	bool known, was_known;
};

struct monitor {
	struct ctl_session *s;
	struct ctl_register *reg;
	struct value *value;
	uint32_t cnt;
	bool compare;
	json_t *list;
	uint32_t shown_node; /* its name was printed in this pass */
	/* to find a way around what is down; by number */
	bool *closed_ports, *closed_nodes;
	uint32_t *queue;
	struct ctl_register *again; /* what was not answered, and which of `value` it is */
	uint32_t *again_at, again_cnt;
};

/* ---- what to read ---- */

static void add_port(struct monitor *m, uint32_t node, uint8_t port)
{
	for (unsigned i = 0; i < WATCHED_CNT; i++)
		if (watched[i].tier <= m->s->o->tiers)
			m->reg[m->cnt++] = (struct ctl_register){
				node, ur_register_address(watched[i].id, port)};
}

/* All ports of the node; of all nodes that answer if it is UR_TOPO_NONE. */
static bool choose(struct monitor *m, uint32_t node, uint64_t only_port)
{
	const struct ur_topo *t = &m->s->topo;

	size_t max = (size_t)t->ports_cnt * WATCHED_CNT;

	m->reg = calloc(max, sizeof(*m->reg));
	m->again = calloc(max, sizeof(*m->again));
	m->again_at = calloc(max, sizeof(*m->again_at));
	m->value = calloc(max, sizeof(*m->value));
	m->closed_ports = calloc(t->ports_cnt, sizeof(*m->closed_ports));
	m->closed_nodes = calloc(t->nodes_cnt, sizeof(*m->closed_nodes));
	m->queue = calloc(t->nodes_cnt, sizeof(*m->queue));
	if (!m->reg || !m->again || !m->again_at || !m->value || !m->closed_ports ||
	    !m->closed_nodes || !m->queue)
		return ctl_complain("there is no memory for the registers of %u ports",
				    t->ports_cnt);
	for (uint32_t n = 0; n < t->nodes_cnt; n++) {
		if ((node != UR_TOPO_NONE && n != node) || (t->node[n].faults & UR_TOPO_DEAD))
			continue;
		for (uint8_t p = 1; p <= t->node[n].ports; p++)
			if (!only_port || p == only_port)
				add_port(m, n, p);
	}
	return true;
}

/* ---- a pass ---- */

static void take_again(void *ctx, uint32_t i, bool known, uint64_t value)
{
	struct monitor *m = ctx;
	struct value *v = &m->value[m->again_at[i]];

	v->known = known;
	if (known)
		v->now = value;
}

/* Lists what has no value yet and has a path. */
static void list_missing(struct monitor *m)
{
	m->again_cnt = 0;
	for (uint32_t i = 0; i < m->cnt; i++)
		if (!m->value[i].known && m->s->topo.node[m->reg[i].node].hops != UR_TOPO_NO_PATH) {
			m->again[m->again_cnt] = m->reg[i];
			m->again_at[m->again_cnt++] = i;
		}
}

/* Ports that are down, and nodes that do not answer, are no part of a path to others. */
static void find_ways(struct monitor *m, bool nodes_too)
{
	struct ur_topo *t = &m->s->topo;
	uint8_t port;

	memset(m->closed_ports, 0, t->ports_cnt);
	memset(m->closed_nodes, 0, t->nodes_cnt);
	for (uint32_t i = 0; i < m->cnt; i++) {
		const struct value *v = &m->value[i];

		if (!v->known && nodes_too)
			m->closed_nodes[m->reg[i].node] = true;
		if (v->known && v->now == 1 &&
		    ur_register_at(m->reg[i].address, &port) == UR_PORT_STATE)
			m->closed_ports[ur_topo_port_of(t, m->reg[i].node, port)] = true;
	}
	(void)ur_topo_reroute(t, m->closed_ports, m->closed_nodes, m->queue);
}

/* A port that went down is on the path of other nodes: they are read again by another way, if there is one. */
static bool read_all(struct monitor *m)
{
	struct ctl_read read = {.reg = m->again, .take = take_again, .ctx = m};
	uint32_t missing = UINT32_MAX;

	for (uint32_t i = 0; i < m->cnt; i++) {
		struct value *v = &m->value[i];

		v->before = v->now;
		v->was_known = v->known;
	}
	find_ways(m, false);
	for (uint32_t i = 0; i < m->cnt; i++)
		m->value[i].known = false;
	for (unsigned round = 0;; round++) {
		list_missing(m);
		if (!m->again_cnt || m->again_cnt >= missing)
			return true;
		missing = m->again_cnt;
		read.cnt = m->again_cnt;
		if (!ctl_read_registers(m->s, &read))
			return false;
		/* First around ports that are known to be down, then around silent nodes as well. */
		find_ways(m, round > 0);
	}
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
	const struct value *v = &m->value[i];
	char name[48];
	json_t *o;

	ctl_register_name(m->reg[i].address, name, sizeof(name));
	o = json_pack("{s:i,s:o,s:s}", "node", (int)m->reg[i].node, "guid",
		      ctl_json_hex(m->s->topo.node[m->reg[i].node].guid), "register", name);
	if (v->known)
		json_object_set_new(o, "value", json_integer((json_int_t)v->now));
	if (m->compare && v->was_known)
		json_object_set_new(o, "before", json_integer((json_int_t)v->before));
	json_array_append_new(m->list, o);
	if (!ctl_prints_text(m->s->o))
		return;
	show_node(m, m->reg[i].node);
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

static bool has_changed(const struct value *v)
{
	return v->known != v->was_known || (v->known && v->now != v->before);
}

static bool write_pass(struct monitor *m, FILE *out, double at_s)
{
	json_t *root = json_pack("{s:f,s:o}", "time_s", at_s, "values", m->list);
	bool ok = true;

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
	if (!read_all(m))
		return false;
	m->list = json_array();
	m->shown_node = UR_TOPO_NONE;
	if (!m->compare && !first && ctl_prints_text(m->s->o))
		printf("\n%.3f s\n", at_s);
	for (uint32_t i = 0; i < m->cnt; i++) {
		bool same_node = i && m->reg[i - 1].node == m->reg[i].node;

		if (m->compare && (first || !has_changed(&m->value[i])))
			continue;
		/* That a node is silent, or answers again, is one line. */
		if (same_node && m->value[i].known == m->value[i - 1].known &&
		    m->value[i].was_known == m->value[i - 1].was_known &&
		    (!m->value[i].known || (m->compare && !m->value[i].was_known)))
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

static bool run(struct ctl_session *s, const char *node_text, uint64_t port, uint64_t passes,
		bool compare)
{
	struct monitor m = {.s = s, .compare = compare};
	uint32_t node = UR_TOPO_NONE;
	char err[256];
	bool ok;

	if (node_text && !ctl_find_node(&s->topo, node_text, &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	ok = choose(&m, node, port) && watch(&m, passes);
	free(m.reg);
	free(m.again);
	free(m.again_at);
	free(m.value);
	free(m.closed_ports);
	free(m.closed_nodes);
	free(m.queue);
	return ok;
}

bool ctl_cmd_monitor(struct ctl_session *s)
{
	const char *mode = s->o->words[0], *node = s->o->words_cnt > 1 ? s->o->words[1] : NULL;

	return run(s, node, 0, strcmp(mode, "single") ? s->o->count : 1, !strcmp(mode, "compare"));
}

bool ctl_cmd_counters(struct ctl_session *s)
{
	uint64_t port = 0;
	uint32_t node;
	char err[256];

	if (!ctl_find_node(&s->topo, s->o->words[0], &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	if (s->o->words_cnt > 1 &&
	    (!ctl_parse_number(s->o->words[1], s->topo.node[node].ports, &port) || !port))
		return ctl_complain("'%s' is not a port of %s; it has ports 1 to %u",
				    s->o->words[1], s->o->words[0], s->topo.node[node].ports);
	return run(s, s->o->words[0], port, 1, false);
}
