/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "output.h"

/* M_Keys of nodes: PortInfo of port 0 of a switch, of a port of an endpoint. */

struct keys {
	struct ctl_session *s;
	struct ur_port_info set;
	uint32_t *failed; /* nodes */
	uint32_t failed_cnt;
};

/* The port whose PortInfo has the node's key. */
static uint8_t key_port(const struct ur_topo *t, uint32_t node)
{
	if (t->node[node].type == UR_TOPO_SWITCH)
		return 0;
	return t->node[node].parent == UR_TOPO_NONE ? 1 : t->node[node].entry_port;
}

/* ---- show ---- */

static bool show_one(struct ctl_session *s, uint32_t node, json_t *list)
{
	const char *key_is = "";
	struct ur_mgr_mad mad;
	struct ur_port_info i;
	char name[CTL_NAME_BYTES];

	if (!ctl_get(s, node, UR_SMP_PORT_INFO, key_port(&s->topo, node), &mad))
		return false;
	ur_get_port_info(mad.bytes + UR_SMP_DATA, &i);
	ctl_node_name(&s->topo, node, name);
	if (!i.m_key)
		key_is = i.m_key_protect == 1 ? " (none, or not shown without it)" : " (none)";
	if (ctl_prints_text(s->o))
		printf("#%u \"%s\"  key %#llx%s, protect %u, lease %u s, violations %u\n", node,
		       name, (unsigned long long)i.m_key, key_is, i.m_key_protect, i.m_key_lease,
		       i.m_key_violations);
	json_array_append_new(list,
			      json_pack("{s:i,s:s,s:o,s:i,s:i,s:i}", "node", (int)node,
					"description", name, "key", ctl_json_hex(i.m_key),
					"protect", (int)i.m_key_protect, "lease_s",
					(int)i.m_key_lease, "violations", (int)i.m_key_violations));
	return true;
}

static bool show(struct keys *k, uint32_t only)
{
	const struct ur_topo *t = &k->s->topo;
	json_t *list = json_array();
	bool ok = true;

	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		if (only == UR_TOPO_NONE || i == only)
			ok = show_one(k->s, i, list) && ok;
	return ctl_json_write(k->s->o, list) && ok;
}

/* ---- set ---- */

static void change(void *ctx, struct ur_port_info *info)
{
	const struct keys *k = ctx;

	info->m_key = k->set.m_key;
	info->m_key_protect = k->set.m_key_protect;
	info->m_key_lease = k->set.m_key_lease;
}

static void set_one(struct keys *k, uint32_t node)
{
	if (!ctl_change_port(k->s, node, key_port(&k->s->topo, node), change, k))
		k->failed[k->failed_cnt++] = node;
}

static bool print_set(const struct keys *k, uint32_t cnt)
{
	json_t *failed = json_array();
	char name[CTL_NAME_BYTES];

	if (ctl_prints_text(k->s->o))
		printf("%u of %u nodes have the key%s\n", cnt - k->failed_cnt, cnt,
		       k->set.m_key ? "" : " 0: none");
	for (uint32_t i = 0; i < k->failed_cnt; i++) {
		ctl_node_name(&k->s->topo, k->failed[i], name);
		json_array_append_new(failed, json_string(name));
		if (ctl_prints_text(k->s->o))
			printf("  not #%u \"%s\"\n", k->failed[i], name);
	}
	return ctl_json_write(k->s->o, json_pack("{s:i,s:o}", "changed", (int)(cnt - k->failed_cnt),
						 "failed", failed)) &&
	       !k->failed_cnt;
}

/*
 * The farthest nodes first, this program's own last: directed routes pass through nodes whatever their keys are, and after
 * an interruption what has no key yet is near.
 */
static bool set(struct keys *k, uint32_t only)
{
	const struct ur_topo *t = &k->s->topo;
	uint32_t cnt = 0;
	bool ok;

	k->failed = calloc(t->nodes_cnt, sizeof(*k->failed));
	if (!k->failed)
		return ctl_complain("there is no memory for a list of nodes");
	for (int hops = UR_TOPO_PATH_MAX; hops >= 0; hops--)
		for (uint32_t i = 0; i < t->nodes_cnt; i++) {
			if (t->node[i].hops != hops || (only != UR_TOPO_NONE && i != only))
				continue;
			set_one(k, i);
			cnt++;
			if (cnt % 100 == 0)
				ctl_progress("keys", cnt, t->nodes_cnt, "nodes", 0);
		}
	ctl_progress_end();
	ok = print_set(k, cnt);
	free(k->failed);
	return ok;
}

static bool read_new_key(const char *text, uint64_t *key)
{
	char err[256];

	if (text[0] == '@') {
		if (!ctl_read_key(text + 1, key, err, sizeof(err)))
			return ctl_complain("%s", err);
	} else if (!ctl_parse_number(text, UINT64_MAX, key)) {
		return ctl_complain("'%s' is neither a key, which is a number, nor @FILE", text);
	}
	return *key || ctl_complain("0 is no key; 'uroce-ctl keys clear' takes the key away");
}

bool ctl_cmd_keys(struct ctl_session *s)
{
	const struct ctl_options *o = s->o;
	struct keys k = {.s = s};
	uint32_t only = UR_TOPO_NONE;
	char err[256];

	if (o->words_cnt > 1 && (o->words[0][1] == 'h' || strcmp(o->words[1], "all") != 0) &&
	    !ctl_find_node(&s->topo, o->words[1], &only, err, sizeof(err)))
		return ctl_complain("%s", err);
	if (!strcmp(o->words[0], "show"))
		return show(&k, only);
	if (!strcmp(o->words[0], "clear"))
		return set(&k, only);
	k.set.m_key_protect = (uint8_t)o->protect;
	k.set.m_key_lease = (uint16_t)o->lease;
	if (o->protect >= 2 && !o->lease && !o->force)
		return ctl_complain(
			"with --protect %llu and no --lease, a lost key cannot be replaced but at the node itself; give --lease, or --force",
			(unsigned long long)o->protect);
	return read_new_key(o->words[2], &k.set.m_key) && set(&k, only);
}
