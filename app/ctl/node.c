/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "names.h"
#include "output.h"
#include "wire/smp.h"

/* What one node, and one of its ports, say of themselves: the fields of the attributes by their names. */

struct field {
	const char *name;
	uint64_t value;
	bool hex;
};

/* GUIDs, keys and masks in hexadecimal. */
static bool is_hex(const char *name, unsigned width)
{
	return width >= 32 || strstr(name, "key") || strstr(name, "id") == name ||
	       strstr(name, "vendor");
}

static void show(const struct ctl_session *s, const char *what, const struct field *f, unsigned cnt,
		 json_t *root)
{
	json_t *o = json_object();

	if (ctl_prints_text(s->o))
		printf("%s\n", what);
	for (unsigned i = 0; i < cnt; i++) {
		if (f[i].hex)
			json_object_set_new(o, f[i].name, ctl_json_hex(f[i].value));
		else
			json_object_set_new(o, f[i].name, json_integer((json_int_t)f[i].value));
		if (!ctl_prints_text(s->o))
			continue;
		if (f[i].hex)
			printf("  %-28s %#" PRIx64 "\n", f[i].name, f[i].value);
		else
			printf("  %-28s %" PRIu64 "\n", f[i].name, f[i].value);
	}
	json_object_set_new(root, what, o);
}

#define FIELD(type, name, at, width) {#name, a.name, is_hex(#name, width)},
#define SHOW(what, FIELDS)                                                                         \
	do {                                                                                       \
		const struct field fields[] = {FIELDS(FIELD)};                                     \
                                                                                                   \
		show(s, what, fields, sizeof(fields) / sizeof(fields[0]), root);                   \
	} while (0)

static void show_node_info(const struct ctl_session *s, const uint8_t *data, json_t *root)
{
	struct ur_node_info a;

	ur_get_node_info(data, &a);
	SHOW("NodeInfo", UR_NODE_INFO_FIELDS);
}

static void show_switch_info(const struct ctl_session *s, const uint8_t *data, json_t *root)
{
	struct ur_switch_info a;

	ur_get_switch_info(data, &a);
	SHOW("SwitchInfo", UR_SWITCH_INFO_FIELDS);
}

static void show_port_info(const struct ctl_session *s, const uint8_t *data, json_t *root)
{
	struct ur_port_info a;

	ur_get_port_info(data, &a);
	SHOW("PortInfo", UR_PORT_INFO_FIELDS);
}

static void show_name(const struct ctl_session *s, uint32_t node, json_t *root)
{
	char name[CTL_NAME_BYTES];

	ctl_node_name(&s->topo, node, name);
	json_object_set_new(root, "node", json_integer(node));
	json_object_set_new(root, "description", json_string(name));
	if (ctl_prints_text(s->o))
		printf("#%u \"%s\", %u hops\n", node, name, s->topo.node[node].hops);
}

bool ctl_cmd_node(struct ctl_session *s)
{
	struct ur_mgr_mad mad;
	json_t *root;
	uint32_t node;
	char err[256];
	bool ok;

	if (!ctl_find_node(&s->topo, s->o->words[0], &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	root = json_object();
	show_name(s, node, root);
	ok = ctl_get(s, node, UR_SMP_NODE_INFO, 0, &mad);
	if (ok)
		show_node_info(s, mad.bytes + UR_SMP_DATA, root);
	if (ok && s->topo.node[node].type == UR_TOPO_SWITCH) {
		ok = ctl_get(s, node, UR_SMP_SWITCH_INFO, 0, &mad);
		if (ok)
			show_switch_info(s, mad.bytes + UR_SMP_DATA, root);
	}
	return ctl_json_write(s->o, root) && ok;
}

bool ctl_cmd_port(struct ctl_session *s)
{
	struct ur_mgr_mad mad;
	json_t *root;
	uint64_t port;
	uint32_t node;
	char err[256];
	bool ok;

	if (!ctl_find_node(&s->topo, s->o->words[0], &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	if (!ctl_parse_number(s->o->words[1], s->topo.node[node].ports, &port))
		return ctl_complain("'%s' is not a port of %s; it has ports 1 to %u",
				    s->o->words[1], s->o->words[0], s->topo.node[node].ports);
	root = json_object();
	show_name(s, node, root);
	ok = ctl_get(s, node, UR_SMP_PORT_INFO, (uint32_t)port, &mad);
	if (ok)
		show_port_info(s, mad.bytes + UR_SMP_DATA, root);
	return ctl_json_write(s->o, root) && ok;
}
