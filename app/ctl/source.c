/* SPDX-License-Identifier: BSD-3-Clause */
#include "source.h"

#include <string.h>

#include "manager/build.h"
#include "names.h"
#include "output.h"
#include "wire/smp.h"

/* ---- a table that is given ---- */

/* The ports of a route. False: it is no list of ports. */
static bool read_ports(const json_t *list, uint8_t path[UR_TOPO_PATH_MAX + 1], uint8_t *hops)
{
	const json_t *port;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > UR_TOPO_PATH_MAX)
		return false;
	*hops = (uint8_t)json_array_size(list);
	path[0] = 0;
	json_array_foreach(list, i, port)
	{
		if (!json_is_integer(port) || json_integer_value(port) < 1 ||
		    json_integer_value(port) > 254)
			return false;
		path[i + 1] = (uint8_t)json_integer_value(port);
	}
	return true;
}

/* Where a route leads, and the node before that. False: nowhere that is known. */
static bool follow(const struct ur_topo *t, const uint8_t *path, uint8_t hops, uint32_t *end,
		   uint32_t *before)
{
	*end = *before = 0;
	for (uint8_t i = 1; i <= hops; i++) {
		*before = *end;
		if (path[i] > t->node[*end].ports || (*end && t->node[*end].type != UR_TOPO_SWITCH))
			return false;
		*end = t->port[ur_topo_port_of(t, *end, path[i])].peer_node;
		if (*end == UR_TOPO_NONE)
			return false;
	}
	return true;
}

/* The route of the node is that of the node before it, and one port. */
static bool take_route(struct ur_topo *t, const json_t *entry, size_t i)
{
	const char *guid = json_string_value(json_object_get(entry, "guid"));
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops;
	uint64_t wanted;
	uint32_t end, before;
	struct ur_topo_node *n;

	if (!guid || !ctl_parse_number(guid, UINT64_MAX, &wanted) ||
	    !read_ports(json_object_get(entry, "there"), path, &hops))
		return ctl_complain(
			"--source-routes: route %zu has no \"guid\", or \"there\" is no list of up to %d ports",
			i, UR_TOPO_PATH_MAX);
	if (!follow(t, path, hops, &end, &before) || t->node[end].guid != wanted)
		return ctl_complain("--source-routes: the route to %s does not lead there", guid);
	if (!end)
		return !hops ||
		       ctl_complain(
			       "--source-routes: the route to %s comes back to where it begins",
			       guid);
	n = &t->node[end];
	n->parent = before;
	n->parent_port = path[hops];
	n->entry_port = t->port[ur_topo_port_of(t, before, path[hops])].peer_port;
	return true;
}

/* Hops of all nodes by their new routes. */
static bool count_hops(struct ur_topo *t)
{
	char name[CTL_NAME_BYTES];

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		unsigned hops = 0;

		for (uint32_t at = i; t->node[at].parent != UR_TOPO_NONE; at = t->node[at].parent)
			if (++hops > UR_TOPO_PATH_MAX) {
				ctl_node_name(t, i, name);
				return ctl_complain(
					"--source-routes: the route to %s has more than %d hops, or is a loop",
					name, UR_TOPO_PATH_MAX);
			}
		t->node[i].hops = (uint8_t)hops;
	}
	return true;
}

/* Requests travel as the table says, not only to the node that a route names, but also through the nodes before it. */
static bool is_as_given(const struct ur_topo *t, const json_t *entry)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1], got[UR_TOPO_PATH_MAX + 1], hops = 0;
	uint32_t end, before;

	(void)read_ports(json_object_get(entry, "there"), path, &hops);
	(void)follow(t, path, hops, &end, &before);
	if (ur_topo_path(t, end, got) == hops && !memcmp(got, path, hops + 1u))
		return true;
	return ctl_complain(
		"--source-routes: the route to %s leads through a node in another way than that node's own route",
		json_string_value(json_object_get(entry, "guid")));
}

/* The list in the file; NULL: a sentence was printed. */
static json_t *read_table(const char *file)
{
	json_error_t error;
	json_t *list = json_load_file(file, 0, &error);

	if (list && json_is_array(list))
		return list;
	ctl_complain("--source-routes: %s is no list of routes: %s", file,
		     list ? "it is no list" : error.text);
	json_decref(list);
	return NULL;
}

bool ctl_load_source_routes(struct ctl_session *s)
{
	json_t *list = read_table(s->o->source_routes), *entry;
	bool ok = list;
	size_t i;

	json_array_foreach(list, i, entry) ok = ok && take_route(&s->topo, entry, i);
	ok = ok && count_hops(&s->topo);
	json_array_foreach(list, i, entry) ok = ok && is_as_given(&s->topo, entry);
	json_decref(list);
	return ok;
}

/* ---- each node of the table is asked ---- */

struct check {
	struct ctl_session *s;
	uint32_t answered;
};

static void make(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct check *c = ctx;
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&c->s->topo, i, path);

	ur_mgr_directed(mad, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, path, hops);
}

static void take(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct check *c = ctx;
	struct ur_node_info info;

	if (!mad || (ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION))
		return;
	ur_get_node_info(mad + UR_SMP_DATA, &info);
	c->answered += info.node_guid == c->s->topo.node[i].guid;
}

static bool check_routes(struct ctl_session *s)
{
	struct check c = {s, 0};
	struct ctl_batch batch = {s->topo.nodes_cnt, make, take, &c};

	ctl_ask(s, &batch);
	if (c.answered < batch.cnt)
		return ctl_complain("%u of %u nodes do not answer by these routes",
				    batch.cnt - c.answered, batch.cnt);
	if (ctl_prints_text(s->o))
		printf("all %u nodes answer by these routes\n", batch.cnt);
	return true;
}

/* ---- the table in use ---- */

/* Back from the node: the ports at which the request arrived, the last one first. Returns how many. */
static uint8_t path_back(const struct ur_topo *t, uint32_t node, uint8_t path[UR_TOPO_PATH_MAX + 1])
{
	uint8_t hops = 0;

	for (; t->node[node].parent != UR_TOPO_NONE; node = t->node[node].parent)
		path[++hops] = t->node[node].entry_port;
	return hops;
}

static json_t *ports_of(const uint8_t *path, uint8_t hops)
{
	json_t *ports = json_array();

	for (uint8_t i = 1; i <= hops; i++)
		json_array_append_new(ports, json_integer(path[i]));
	return ports;
}

static void print_ports(const char *what, const uint8_t *path, uint8_t hops)
{
	printf("  %s ", what);
	for (uint8_t i = 1; i <= hops; i++)
		printf("%s%u", i > 1 ? "," : "", path[i]);
	if (!hops)
		putchar('-');
}

bool ctl_source_routes(struct ctl_session *s)
{
	const struct ur_topo *t = &s->topo;
	json_t *list = json_array();
	char name[CTL_NAME_BYTES];

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		uint8_t path[UR_TOPO_PATH_MAX + 1], back[UR_TOPO_PATH_MAX + 1];
		uint8_t hops = ur_topo_path(t, i, path);

		(void)path_back(t, i, back);
		ctl_node_name(t, i, name);
		if (ctl_prints_text(s->o)) {
			printf("#%u \"%s\"", i, name);
			print_ports("there", path, hops);
			print_ports("back", back, hops);
			putchar('\n');
		}
		json_array_append_new(
			list, json_pack("{s:i,s:o,s:s,s:o,s:o}", "node", (int)i, "guid",
					ctl_json_hex(t->node[i].guid), "description", name, "there",
					ports_of(path, hops), "back", ports_of(back, hops)));
	}
	return ctl_json_write(s->o, list) && (!s->o->source_routes || check_routes(s));
}
