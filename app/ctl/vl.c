/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "lanes.h"
#include "manager/lanes.h"
#include "names.h"
#include "output.h"

/* ---- requests ---- */

bool ctl_lanes_port(struct ctl_session *s, uint32_t node, const char *text, uint8_t *port)
{
	const struct ur_topo_node *n = &s->topo.node[node];
	uint64_t number;
	char name[CTL_NAME_BYTES];

	ctl_node_name(&s->topo, node, name);
	if (!ctl_parse_number(text, n->ports, &number) || (!number && n->type != UR_TOPO_SWITCH))
		return ctl_complain("'%s' is not a port of %s; it has ports 1 to %u", text, name,
				    n->ports);
	/* An endpoint answers for the port at which the request arrives (IBA 14.2.5.8). */
	if (n->type != UR_TOPO_SWITCH && number != (node ? n->entry_port : 1))
		return ctl_complain("%s is reached by its port %u, and answers for no other", name,
				    node ? n->entry_port : 1);
	*port = (uint8_t)number;
	return true;
}

static uint32_t modifier(const struct ctl_session *s, uint32_t node, uint8_t port, int step)
{
	uint8_t of = s->topo.node[node].type == UR_TOPO_SWITCH ? port : 0;

	return step == UR_LANES_SL2VL ? of : (uint32_t)step << 16 | of;
}

static uint16_t attribute(int step)
{
	return step == UR_LANES_SL2VL ? UR_SMP_SL2VL : UR_SMP_VL_ARB;
}

bool ctl_lanes_read(struct ctl_session *s, uint32_t node, uint8_t port, struct ur_vl_attr *vl)
{
	struct ur_port_info info;
	struct ur_mgr_mad mad;

	*vl = (struct ur_vl_attr){.mode = UR_VL_IBA, .mtu_shift = 12};
	for (int step = UR_LANES_SL2VL; step <= UR_VL_BLOCKS; step++) {
		if (!ctl_get(s, node, attribute(step), modifier(s, node, port, step), &mad))
			return false;
		if (step == UR_LANES_SL2VL)
			ur_vl_get_sl2vl(mad.bytes + UR_SMP_DATA, vl);
		else
			ur_vl_get_block(mad.bytes + UR_SMP_DATA, vl, (unsigned)step);
	}
	if (!ctl_get(s, node, UR_SMP_PORT_INFO, port, &mad))
		return false;
	ur_get_port_info(mad.bytes + UR_SMP_DATA, &info);
	vl->high_limit = info.vl_high_limit;
	return true;
}

static void change_limit(void *ctx, struct ur_port_info *info)
{
	info->vl_high_limit = ((const struct ur_vl_attr *)ctx)->high_limit;
}

static bool same(const struct ur_vl_attr *a, const struct ur_vl_attr *b)
{
	struct ur_vl_attr next;

	return !ur_vl_attr_check(a) && ur_lanes_step(a, b, &next) == UR_LANES_DONE &&
	       a->high_limit == b->high_limit;
}

bool ctl_lanes_write(struct ctl_session *s, uint32_t node, uint8_t port,
		     const struct ur_vl_attr *want)
{
	struct ur_vl_attr now, next, limit = *want;
	struct ur_mgr_mad mad;
	uint16_t lost;
	int step;

	if (!ctl_lanes_read(s, node, port, &now))
		return false;
	if (ur_vl_attr_check(want) || ur_vl_attr_check(&now))
		return ctl_complain("this cannot be: %s", ur_vl_attr_check(want)
								  ? ur_vl_attr_check(want)
								  : ur_vl_attr_check(&now));
	lost = ur_vl_attr_served_sls(&now) & (uint16_t)~ur_vl_attr_served_sls(want);
	if (lost && !s->o->force)
		return ctl_complain(
			"service level %d would lose its lane, and its traffic stop; --force does it nevertheless",
			__builtin_ctz(lost));
	while ((step = ur_lanes_step(&now, want, &next)) != UR_LANES_DONE) {
		if (step == UR_LANES_SL2VL)
			ur_vl_put_sl2vl(mad.bytes + UR_SMP_DATA, &next);
		else
			ur_vl_put_block(mad.bytes + UR_SMP_DATA, &next, (unsigned)step);
		if (!ctl_set(s, node, attribute(step), modifier(s, node, port, step), &mad))
			return false;
		now = next;
	}
	/* Last: before, the limit would hold for tables that it was not made for. */
	if (now.high_limit != want->high_limit &&
	    !ctl_change_port(s, node, port, change_limit, &limit))
		return false;
	if (!ctl_lanes_read(s, node, port, &now))
		return false;
	return same(&now, want) || ctl_complain("what is read back is not what was written");
}

/* ---- text ---- */

static void put_table(char *text, const struct ur_vl_entry *entry, unsigned cnt)
{
	size_t len = 0;

	strcpy(text, "none");
	for (unsigned i = 0; i < cnt; i++)
		if (entry[i].weight)
			len += (size_t)snprintf(text + len, CTL_LANES_TABLE_BYTES - len, "%s%u:%u",
						len ? "," : "", entry[i].vl, entry[i].weight);
}

void ctl_lanes_texts(const struct ur_vl_attr *vl, char high[CTL_LANES_TABLE_BYTES],
		     char low[CTL_LANES_TABLE_BYTES], char sl2vl[CTL_LANES_SL2VL_BYTES])
{
	size_t len = 0;

	put_table(high, vl->high, vl->high_cnt);
	put_table(low, vl->low, vl->low_cnt);
	for (unsigned sl = 0; sl < 16; sl++)
		len += (size_t)snprintf(sl2vl + len, CTL_LANES_SL2VL_BYTES - len, "%s%u",
					sl ? "," : "", vl->sl2vl[sl]);
}

bool ctl_lanes_parse_table(const char *text, struct ur_vl_entry *entry, uint8_t *cnt)
{
	*cnt = 0;
	if (!strcmp(text, "none"))
		return true;
	for (const char *at = text;; at++) {
		unsigned vl, weight;
		int len = 0;

		if (sscanf(at, "%2u:%3u%n", &vl, &weight, &len) != 2 || vl >= UR_VL_CNT ||
		    weight > UINT8_MAX || (at[len] && at[len] != ','))
			return ctl_complain(
				"'%s' is not a table: VL:WEIGHT,... with lanes 0 to 14 and weights up to 255, or none",
				text);
		if (*cnt == UR_VL_ENTRIES)
			return ctl_complain("'%s' has more than %d entries", text, UR_VL_ENTRIES);
		entry[(*cnt)++] = (struct ur_vl_entry){(uint8_t)vl, (uint8_t)weight};
		at += len;
		if (!*at)
			return true;
	}
}

bool ctl_lanes_parse_sl2vl(const char *text, uint8_t sl2vl[16])
{
	const char *at = text;

	for (unsigned sl = 0; sl < 16; sl++) {
		unsigned vl;
		int len = 0;

		if (sscanf(at, "%2u%n", &vl, &len) != 1 || vl > 15 ||
		    at[len] != (sl == 15 ? '\0' : ','))
			return ctl_complain(
				"'%s' is not a mapping: 16 lanes, one for each service level, 15 for none",
				text);
		sl2vl[sl] = (uint8_t)vl;
		at += len + 1;
	}
	return true;
}

static bool parse_change(const char *text, struct ur_vl_attr *vl)
{
	uint64_t limit;

	if (!strncmp(text, "high=", 5))
		return ctl_lanes_parse_table(text + 5, vl->high, &vl->high_cnt);
	if (!strncmp(text, "low=", 4))
		return ctl_lanes_parse_table(text + 4, vl->low, &vl->low_cnt);
	if (!strncmp(text, "sl2vl=", 6))
		return ctl_lanes_parse_sl2vl(text + 6, vl->sl2vl);
	if (strncmp(text, "limit=", 6) != 0)
		return ctl_complain("'%s' is none of high=, low=, limit=, sl2vl=", text);
	if (!ctl_parse_number(text + 6, UINT8_MAX, &limit))
		return ctl_complain("'%s' is not a limit from 0 to 255", text + 6);
	vl->high_limit = (uint8_t)limit;
	return true;
}

/* ---- commands ---- */

static bool show_port(struct ctl_session *s, uint32_t node, uint8_t port, json_t *list)
{
	char high[CTL_LANES_TABLE_BYTES], low[CTL_LANES_TABLE_BYTES];
	char sl2vl[CTL_LANES_SL2VL_BYTES], name[CTL_NAME_BYTES];
	struct ur_vl_attr vl;

	if (!ctl_lanes_read(s, node, port, &vl))
		return false;
	ctl_lanes_texts(&vl, high, low, sl2vl);
	ctl_node_name(&s->topo, node, name);
	if (ctl_prints_text(s->o))
		printf("#%u \"%s\" port %u\n  high=%s\n  low=%s\n  limit=%u\n  sl2vl=%s\n", node,
		       name, port, high, low, vl.high_limit, sl2vl);
	json_array_append_new(list,
			      json_pack("{s:i,s:s,s:i,s:s,s:s,s:i,s:s}", "node", (int)node,
					"description", name, "port", (int)port, "high", high, "low",
					low, "limit", (int)vl.high_limit, "sl2vl", sl2vl));
	return true;
}

static bool show(struct ctl_session *s)
{
	const struct ur_topo *t = &s->topo;
	bool ok = true;
	json_t *list;
	uint32_t node;
	uint8_t port;
	char err[256];

	if (!ctl_find_node(t, s->o->words[1], &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	list = json_array();
	if (s->o->words_cnt > 2) {
		ok = ctl_lanes_port(s, node, s->o->words[2], &port) &&
		     show_port(s, node, port, list);
	} else if (t->node[node].type != UR_TOPO_SWITCH) {
		ok = show_port(s, node, node ? t->node[node].entry_port : 1, list);
	} else {
		for (uint8_t p = 1; p <= t->node[node].ports && ok; p++)
			if (t->port[ur_topo_port_of(t, node, p)].peer_node != UR_TOPO_NONE)
				ok = show_port(s, node, p, list);
	}
	return ctl_json_write(s->o, list) && ok;
}

bool ctl_lanes_of_words(struct ctl_session *s, uint32_t *node, uint8_t *port, struct ur_vl_attr *vl)
{
	const struct ctl_options *o = s->o;
	char err[256];

	if (!ctl_find_node(&s->topo, o->words[1], node, err, sizeof(err)))
		return ctl_complain("%s", err);
	return ctl_lanes_port(s, *node, o->words[2], port) && ctl_lanes_read(s, *node, *port, vl);
}

bool ctl_cmd_vl(struct ctl_session *s)
{
	const struct ctl_options *o = s->o;
	json_t *list;
	struct ur_vl_attr want;
	uint32_t node;
	uint8_t port;
	bool ok;

	if (!strcmp(o->words[0], "show"))
		return show(s);
	if (!ctl_lanes_of_words(s, &node, &port, &want))
		return false;
	for (unsigned i = 3; i < o->words_cnt; i++)
		if (!parse_change(o->words[i], &want))
			return false;
	list = json_array();
	ok = ctl_lanes_write(s, node, port, &want) && show_port(s, node, port, list);
	return ctl_json_write(o, list) && ok;
}
