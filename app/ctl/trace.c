/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "flow.h"
#include "names.h"
#include "output.h"
#include "wire/path.h"
#include "wire/smp.h"

/* Paths, hop by hop: the directed route to a node, or the way of a packet by the switches' forwarding tables. */

#define LFT_NONE 0xff
#define HOPS_MAX 64

struct trace {
	struct ctl_session *s;
	json_t *hops;
	unsigned cnt;
};

static void show_end(const struct ur_topo *t, uint32_t node, uint8_t nr)
{
	const struct ur_topo_port *p = &t->port[ur_topo_port_of(t, node, nr)];

	printf("port %u (%s, %ux)", nr, p->told ? ctl_state_name(p->state) : "?",
	       p->told ? ctl_width(p->width) : 0);
}

/* The node is left by that port. False: it leads nowhere that is known. */
static bool leave(struct trace *tr, uint32_t node, uint8_t nr)
{
	const struct ur_topo *t = &tr->s->topo;
	const struct ur_topo_port *p = &t->port[ur_topo_port_of(t, node, nr)];
	char from[CTL_NAME_BYTES], to[CTL_NAME_BYTES];
	json_t *o;

	ctl_node_name(t, node, from);
	if (p->peer_node == UR_TOPO_NONE)
		return ctl_complain("%s port %u leads nowhere: %s", from, nr,
				    ur_topo_link_name(p->link));
	ctl_node_name(t, p->peer_node, to);
	if (ctl_prints_text(tr->s->o)) {
		printf("%3u  #%u \"%s\" ", tr->cnt, node, from);
		show_end(t, node, nr);
		printf(" -> #%u \"%s\" ", p->peer_node, to);
		show_end(t, p->peer_node, p->peer_port);
		putchar('\n');
	}
	tr->cnt++;
	o = json_pack("{s:i,s:s,s:i,s:s,s:i,s:s,s:i}", "from", (int)node, "from_description", from,
		      "from_port", (int)nr, "state", p->told ? ctl_state_name(p->state) : "?", "to",
		      (int)p->peer_node, "to_description", to, "to_port", (int)p->peer_port);
	json_array_append_new(tr->hops, o);
	return true;
}

static bool trace_directed(struct trace *tr, uint32_t to)
{
	const struct ur_topo *t = &tr->s->topo;
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(t, to, path);
	uint32_t at = 0;

	for (uint8_t i = 1; i <= hops; i++) {
		if (!leave(tr, at, path[i]))
			return false;
		at = t->port[ur_topo_port_of(t, at, path[i])].peer_node;
	}
	return true;
}

/* ---- by forwarding tables ---- */

/* The port that has the node's LIDs; NULL: none has. */
static const struct ur_topo_port *lid_port(const struct ur_topo *t, uint32_t node)
{
	const struct ur_topo_node *n = &t->node[node];
	bool is_switch = n->type == UR_TOPO_SWITCH;

	for (uint8_t p = !is_switch; p <= (is_switch ? 0 : n->ports); p++) {
		const struct ur_topo_port *port = &t->port[n->first_port + p];

		if ((port->told || is_switch) && port->lid)
			return port;
	}
	return NULL;
}

/* The port by which packets to that LID leave a switch; LFT_NONE: it drops them. */
static bool look_up(struct ctl_session *s, uint32_t node, uint16_t lid, uint8_t *port)
{
	struct ur_mgr_mad mad;

	if (!ctl_get(s, node, UR_SMP_LFT, lid / 64, &mad))
		return false;
	*port = mad.bytes[UR_SMP_DATA + lid % 64];
	return true;
}

static uint8_t first_port(const struct ur_topo *t, uint32_t node)
{
	for (uint8_t p = 1; p <= t->node[node].ports; p++)
		if (t->port[ur_topo_port_of(t, node, p)].peer_node != UR_TOPO_NONE)
			return p;
	return 1;
}

static bool trace_lid(struct trace *tr, uint32_t from, uint32_t to, uint16_t lid)
{
	const struct ur_topo *t = &tr->s->topo;
	char name[CTL_NAME_BYTES];
	uint32_t at = from;
	uint8_t port;

	for (unsigned hop = 0; at != to; hop++) {
		ctl_node_name(t, at, name);
		port = first_port(t, at);
		if (hop && t->node[at].type != UR_TOPO_SWITCH)
			return ctl_complain("the path ends at %s, which is another endpoint", name);
		if (t->node[at].type == UR_TOPO_SWITCH && !look_up(tr->s, at, lid, &port))
			return false;
		if (port > t->node[at].ports || !port)
			return ctl_complain("%s has no entry for LID %u", name, lid);
		if (hop == HOPS_MAX)
			return ctl_complain("the path has more than %d hops: it is a loop",
					    HOPS_MAX);
		if (!leave(tr, at, port))
			return false;
		at = t->port[ur_topo_port_of(t, at, port)].peer_node;
	}
	return true;
}

/* By the tables, to each LID of the node: with an LMC it has several. `root` gets them. */
static bool trace_tables(struct trace *tr, uint32_t from, uint32_t to, json_t *root)
{
	const struct ur_topo_port *port = lid_port(&tr->s->topo, to);
	bool text = ctl_prints_text(tr->s->o);
	json_t *lids = json_array(), *first = tr->hops;
	char name[CTL_NAME_BYTES];
	bool ok = true;

	json_object_set_new(root, "lids", lids);
	ctl_node_name(&tr->s->topo, to, name);
	if (!port)
		return ctl_complain("%s has no LID: no subnet manager has set up this fabric",
				    name);
	for (uint16_t i = 0; ok && i < 1u << port->lmc; i++) {
		tr->hops = i ? json_array() : json_incref(first);
		tr->cnt = 0;
		if (text && port->lmc)
			printf("LID %u\n", port->lid + i);
		json_array_append_new(
			lids, json_pack("{s:i,s:O}", "lid", port->lid + i, "hops", tr->hops));
		ok = trace_lid(tr, from, to, (uint16_t)(port->lid + i));
		json_decref(tr->hops);
		if (ok && text)
			printf("%u hops\n", tr->cnt);
	}
	return ok;
}

static bool trace_nodes(struct ctl_session *s)
{
	struct trace tr = {.s = s, .hops = json_array()};
	json_t *root = json_pack("{s:o}", "hops", tr.hops);
	uint32_t node[2];
	char err[256];
	bool ok;

	for (unsigned i = 0; i < s->o->words_cnt; i++)
		if (!ctl_find_node(&s->topo, s->o->words[i], &node[i], err, sizeof(err))) {
			json_decref(root);
			return ctl_complain("%s", err);
		}
	ok = s->o->words_cnt == 1 ? trace_directed(&tr, node[0])
				  : trace_tables(&tr, node[0], node[1], root);
	if (ok && s->o->words_cnt == 1 && ctl_prints_text(s->o))
		printf("%u hops\n", tr.cnt);
	json_object_set_new(root, "complete", json_boolean(ok));
	return ctl_json_write(s->o, root) && ok;
}

/* ---- by address ---- */

static bool leave_flow(void *ctx, uint32_t node, uint8_t port)
{
	return leave(ctx, node, port);
}

/* "N" or "N-M" */
static bool read_sports(const char *text, uint64_t *first, uint64_t *last)
{
	char copy[32], *dash;

	snprintf(copy, sizeof(copy), "%s", text);
	dash = strchr(copy, '-');
	if (dash)
		*dash++ = '\0';
	return ctl_parse_number(copy, UINT16_MAX, first) &&
	       ctl_parse_number(dash ? dash : copy, UINT16_MAX, last) && *first <= *last;
}

static bool trace_sport(struct trace *tr, uint32_t from, struct ur_route *question, json_t *flows,
			const char *what)
{
	tr->hops = json_array();
	tr->cnt = 0;
	if (ctl_prints_text(tr->s->o))
		printf("%ssource port %u\n", what, question->sport);
	json_array_append_new(
		flows, json_pack("{s:i,s:o}", "sport", (int)question->sport, "hops", tr->hops));
	return ctl_flow_trace(tr->s, from, question, leave_flow, tr);
}

/* How many of the flows take a path that none before them takes. */
static unsigned different(const json_t *flows)
{
	unsigned cnt = 0;

	for (size_t i = 0; i < json_array_size(flows); i++) {
		const json_t *hops = json_object_get(json_array_get(flows, i), "hops");
		size_t k = 0;

		while (k < i &&
		       !json_equal(hops, json_object_get(json_array_get(flows, k), "hops")))
			k++;
		cnt += k == i;
	}
	return cnt;
}

/* The paths over which a queue pair sprays: packets of one flow, unlike those of ECMP, of which a flow takes one. */
static bool trace_spray(struct trace *tr, uint32_t from, struct ur_route *question, json_t *root)
{
	json_t *flows = json_object_get(root, "flows");
	uint16_t own = question->sport;
	char what[16];

	for (uint8_t i = 0; i < tr->s->o->spray; i++) {
		question->sport = ur_spray_port(own, i);
		snprintf(what, sizeof(what), "path %u, ", i);
		if (!trace_sport(tr, from, question, flows, what))
			return false;
		json_object_set_new(json_array_get(flows, i), "path", json_integer(i));
	}
	json_object_set_new(root, "sprayed_over", json_integer(different(flows)));
	if (ctl_prints_text(tr->s->o))
		printf("sprayed over %u different paths by %u source ports\n", different(flows),
		       (unsigned)tr->s->o->spray);
	return true;
}

/* A path for each source port. */
static bool trace_sports(struct trace *tr, uint32_t from, struct ur_route *question, json_t *root)
{
	json_t *flows = json_object_get(root, "flows");
	uint64_t first, last;

	if (!read_sports(tr->s->o->sport, &first, &last))
		return ctl_complain(
			"--sport: '%s' is neither a UDP port nor a range, such as 49152-49167",
			tr->s->o->sport);
	if (tr->s->o->spray && (first != last || first < 0xc000))
		return ctl_complain(
			"--spray: --sport is the queue pair's own port, one from 49152 on");
	question->sport = (uint16_t)first;
	if (tr->s->o->spray)
		return trace_spray(tr, from, question, root);
	for (uint64_t sport = first; sport <= last; sport++) {
		question->sport = (uint16_t)sport;
		if (!trace_sport(tr, from, question, flows, ""))
			return false;
	}
	return true;
}

static bool trace_flow(struct ctl_session *s)
{
	struct trace tr = {.s = s};
	json_t *flows = json_array(), *root;
	struct ur_route question;
	uint32_t from, paths;
	char err[256];
	bool ok = true;

	if (!ctl_find_node(&s->topo, s->o->words[0], &from, err, sizeof(err)))
		ok = ctl_complain("%s", err);
	else if (!ctl_flow_address(s->o->words[1], &question))
		ok = ctl_complain("'%s' is no IP address", s->o->words[1]);
	root = json_pack("{s:o}", "flows", flows);
	if (ok && s->o->sport)
		ok = trace_sports(&tr, from, &question, root);
	if (ok && s->o->ecmp) {
		tr.hops = json_array();
		tr.cnt = 0;
		paths = ctl_flow_all(s, from, &question, leave_flow, &tr);
		ok = paths > 0;
		if (ok && ctl_prints_text(s->o))
			printf("%u links, %u paths\n", tr.cnt, paths);
		json_object_set_new(root, "links", tr.hops);
		json_object_set_new(root, "paths", json_integer(paths));
	}
	return ctl_json_write(s->o, root) && ok;
}

bool ctl_cmd_trace(struct ctl_session *s)
{
	if (s->o->sport || s->o->ecmp)
		return trace_flow(s);
	return trace_nodes(s);
}
