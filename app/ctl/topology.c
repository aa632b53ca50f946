/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "names.h"
#include "output.h"

/* The graph as text, JSON, and for Graphviz; and a summary of it. */

struct sums {
	uint32_t switches, endpoints, links, ports_down, silent, refused, beyond, one_way, faulty;
};

static struct sums sums_of(const struct ur_topo *t)
{
	struct sums s = {0};

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		s.switches += t->node[i].type == UR_TOPO_SWITCH;
		s.endpoints += t->node[i].type != UR_TOPO_SWITCH;
		s.faulty += t->node[i].faults != 0;
	}
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		const struct ur_topo_port *p = &t->port[i];

		/* A link has two ends, unless a port is linked to itself. */
		if (p->peer_node != UR_TOPO_NONE)
			s.links += i <= ur_topo_port_of(t, p->peer_node, p->peer_port);
		s.ports_down += p->link == UR_TOPO_LINK_DOWN;
		s.silent += p->link == UR_TOPO_LINK_SILENT;
		s.refused += p->link == UR_TOPO_LINK_REFUSED;
		s.beyond += p->link == UR_TOPO_LINK_BEYOND;
		s.one_way += p->one_way;
	}
	return s;
}

/* ---- discover ---- */

static json_t *json_counters(const struct ctl_session *s)
{
	json_t *o = json_object();

#define X(name, meaning)                                                                           \
	json_object_set_new(o, #name, json_integer((json_int_t)s->requests.counters.name));
	UR_REQUESTS_COUNTERS(X)
#undef X
	return o;
}

static json_t *json_faulty(const struct ur_topo *t)
{
	json_t *list = json_array();
	char name[CTL_NAME_BYTES], faults[64];

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		if (!t->node[i].faults)
			continue;
		ctl_node_name(t, i, name);
		ctl_faults(t->node[i].faults, faults, sizeof(faults));
		json_array_append_new(list, json_pack("{s:i,s:o,s:s,s:s}", "node", (int)i, "guid",
						      ctl_json_hex(t->node[i].guid), "description",
						      name, "faults", faults));
	}
	return list;
}

static json_t *json_sums(const struct ctl_session *s, const struct sums *n)
{
	return json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:f,s:o,s:o}", "nodes",
			 (int)s->topo.nodes_cnt, "switches", (int)n->switches, "endpoints",
			 (int)n->endpoints, "links", (int)n->links, "ports_down",
			 (int)n->ports_down, "ports_silent", (int)n->silent, "ports_refused",
			 (int)n->refused, "ports_beyond", (int)n->beyond, "limits_reached",
			 s->topo.full, "took_us", (double)s->took_ns / 1e3, "requests",
			 json_counters(s), "faulty_nodes", json_faulty(&s->topo));
}

static void print_faulty(const struct ur_topo *t)
{
	char name[CTL_NAME_BYTES], faults[64];

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		if (!t->node[i].faults)
			continue;
		ctl_node_name(t, i, name);
		ctl_faults(t->node[i].faults, faults, sizeof(faults));
		printf("  #%u %#" PRIx64 " \"%s\": %s\n", i, t->node[i].guid, name, faults);
	}
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		const struct ur_topo_port *p = &t->port[i];

		if (p->link != UR_TOPO_LINK_SILENT && p->link != UR_TOPO_LINK_REFUSED &&
		    p->link != UR_TOPO_LINK_BEYOND && !p->one_way)
			continue;
		ctl_node_name(t, p->node, name);
		printf("  #%u %#" PRIx64 " \"%s\" port %u: %s\n", p->node, t->node[p->node].guid,
		       name, ur_topo_port_nr(t, i),
		       p->one_way ? "answers requests from the other end only"
				  : ur_topo_link_name(p->link));
	}
}

bool ctl_cmd_discover(struct ctl_session *s)
{
	const struct ur_requests_counters *c = &s->requests.counters;
	struct sums n = sums_of(&s->topo);

	if (ctl_prints_text(s->o)) {
		printf("%u nodes: %u switches, %u endpoints; %u links\n", s->topo.nodes_cnt,
		       n.switches, n.endpoints, n.links);
		printf("%" PRIu64 " requests in %.3f ms; %" PRIu64 " sent again, %" PRIu64
		       " without a response\n",
		       c->sent, (double)s->took_ns / 1e6, c->resent, c->timed_out);
		if (n.faulty || n.silent || n.refused || n.beyond || n.one_way)
			puts("wrong:");
		print_faulty(&s->topo);
	}
	return ctl_json_write(s->o, json_sums(s, &n));
}

/* ---- topology ---- */

static void print_port(const struct ur_topo *t, uint32_t port)
{
	const struct ur_topo_port *p = &t->port[port];
	char name[CTL_NAME_BYTES];

	printf("  %3u  %-8s", ur_topo_port_nr(t, port), p->told ? ctl_state_name(p->state) : "?");
	if (p->peer_node == UR_TOPO_NONE) {
		printf("  %s\n", ur_topo_link_name(p->link));
		return;
	}
	ctl_node_name(t, p->peer_node, name);
	printf("  %2ux  %s #%u \"%s\" port %u%s\n", p->told ? ctl_width(p->width) : 0,
	       ctl_type_name(t->node[p->peer_node].type), p->peer_node, name, p->peer_port,
	       p->one_way ? ", one way" : "");
}

static void print_nodes(const struct ur_topo *t)
{
	char name[CTL_NAME_BYTES], faults[64];

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		const struct ur_topo_node *n = &t->node[i];

		ctl_node_name(t, i, name);
		ctl_faults(n->faults, faults, sizeof(faults));
		printf("#%u %s %#" PRIx64 " \"%s\", %u ports, %u hops%s%s\n", i,
		       ctl_type_name(n->type), n->guid, name, n->ports, n->hops,
		       faults[0] ? "; " : "", faults);
		for (uint8_t p = 1; p <= n->ports; p++)
			print_port(t, ur_topo_port_of(t, i, p));
	}
}

static json_t *json_port(const struct ur_topo *t, uint32_t port)
{
	const struct ur_topo_port *p = &t->port[port];
	json_t *o = json_pack("{s:i,s:s,s:s}", "port", (int)ur_topo_port_nr(t, port), "state",
			      p->told ? ctl_state_name(p->state) : "?", "link",
			      ur_topo_link_name(p->link));

	if (p->peer_node != UR_TOPO_NONE) {
		json_object_set_new(o, "peer", json_integer(p->peer_node));
		json_object_set_new(o, "peer_guid", ctl_json_hex(t->node[p->peer_node].guid));
		json_object_set_new(o, "peer_port", json_integer(p->peer_port));
	}
	if (p->told) {
		json_object_set_new(o, "physical_state", json_string(ctl_phys_name(p->phys_state)));
		json_object_set_new(o, "width", json_integer(ctl_width(p->width)));
		json_object_set_new(o, "lid", json_integer(p->lid));
	}
	if (p->one_way)
		json_object_set_new(o, "one_way", json_true());
	return o;
}

static json_t *json_node(const struct ur_topo *t, uint32_t node)
{
	const struct ur_topo_node *n = &t->node[node];
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(t, node, path);
	json_t *ports = json_array(), *route = json_array();
	char name[CTL_NAME_BYTES], faults[64];

	for (uint8_t i = 1; i <= hops; i++)
		json_array_append_new(route, json_integer(path[i]));
	for (uint8_t p = 1; p <= n->ports; p++)
		json_array_append_new(ports, json_port(t, ur_topo_port_of(t, node, p)));
	ctl_node_name(t, node, name);
	ctl_faults(n->faults, faults, sizeof(faults));
	return json_pack("{s:i,s:s,s:o,s:o,s:s,s:s,s:o,s:o}", "node", (int)node, "type",
			 ctl_type_name(n->type), "guid", ctl_json_hex(n->guid), "system_guid",
			 ctl_json_hex(n->system_guid), "description", name, "faults", faults,
			 "directed_route", route, "ports", ports);
}

static bool write_json(const struct ctl_session *s)
{
	json_t *nodes;

	if (!s->o->json)
		return true;
	nodes = json_array();
	for (uint32_t i = 0; i < s->topo.nodes_cnt; i++)
		json_array_append_new(nodes, json_node(&s->topo, i));
	return ctl_json_write(s->o, json_pack("{s:o}", "nodes", nodes));
}

/* A name as a string of the dot language. */
static void print_quoted(FILE *out, const char *name)
{
	fputc('"', out);
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			fputc('\\', out);
		fputc(*name, out);
	}
	fputc('"', out);
}

static bool write_dot(const struct ctl_session *s)
{
	const struct ur_topo *t = &s->topo;
	char name[CTL_NAME_BYTES];
	FILE *out;

	if (!s->o->dot)
		return true;
	out = ctl_output_open(s->o->dot);
	if (!out)
		return false;
	fputs("graph fabric {\n\tnode [fontsize=10];\n\tedge [fontsize=8];\n", out);
	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		ctl_node_name(t, i, name);
		fprintf(out, "\tn%u [label=", i);
		print_quoted(out, name);
		fprintf(out, ", shape=%s%s];\n",
			t->node[i].type == UR_TOPO_SWITCH ? "box" : "ellipse",
			t->node[i].faults ? ", color=red" : "");
	}
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		const struct ur_topo_port *p = &t->port[i];

		if (p->peer_node == UR_TOPO_NONE ||
		    i > ur_topo_port_of(t, p->peer_node, p->peer_port))
			continue;
		fprintf(out, "\tn%u -- n%u [taillabel=\"%u\", headlabel=\"%u\"%s];\n", p->node,
			p->peer_node, ur_topo_port_nr(t, i), p->peer_port,
			p->one_way ? ", style=dashed" : "");
	}
	fputs("}\n", out);
	return ctl_output_close(out, s->o->dot);
}

bool ctl_cmd_topology(struct ctl_session *s)
{
	if (ctl_prints_text(s->o))
		print_nodes(&s->topo);
	return write_json(s) && write_dot(s);
}
