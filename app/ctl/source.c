/* SPDX-License-Identifier: BSD-3-Clause */
#include "source.h"

#include "names.h"
#include "output.h"

/* The table of source routes: by which ports a request leaves each node on its way, and its response on the way back. */

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
	return ctl_json_write(s->o, list);
}
