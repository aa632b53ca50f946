/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "manager/build.h"
#include "manager/routes.h"
#include "names.h"
#include "output.h"
#include "source.h"
#include "wire/smp.h"

/* Computes LIDs and forwarding tables, writes them to the agents, and makes the links active. */

/* One attribute of a node, to be read or written. */
struct item {
	uint32_t node, attr_mod;
	uint16_t attr_id;
	uint8_t data[UR_SMP_DATA_BYTES];
};

struct work {
	struct ctl_session *s;
	struct ur_routes r;
	void *memory;
	struct item *item;
	uint32_t cnt, max, failed;
	uint8_t method;
};

static bool add(struct work *w, uint32_t node, uint16_t attr_id, uint32_t attr_mod)
{
	if (w->cnt == w->max) {
		uint32_t max = w->max ? 2 * w->max : 1024;
		struct item *more = reallocarray(w->item, max, sizeof(*more));

		if (!more)
			return ctl_complain("there is no memory for %u requests", max);
		w->item = more;
		w->max = max;
	}
	w->item[w->cnt++] = (struct item){.node = node, .attr_id = attr_id, .attr_mod = attr_mod};
	return true;
}

/* ---- requests ---- */

static void make(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct work *w = ctx;
	const struct item *item = &w->item[i];
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&w->s->topo, item->node, path);

	ur_mgr_directed(mad, w->method, item->attr_id, item->attr_mod, path, hops);
	ur_store64(mad->bytes + UR_SMP_MKEY, w->s->o->m_key);
	if (w->method == UR_MAD_METHOD_SET)
		memcpy(mad->bytes + UR_SMP_DATA, item->data, UR_SMP_DATA_BYTES);
}

static void take(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct work *w = ctx;

	if (!mad || (ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION)) {
		w->failed++;
		return;
	}
	if (w->method == UR_MAD_METHOD_GET)
		memcpy(w->item[i].data, mad + UR_SMP_DATA, UR_SMP_DATA_BYTES);
}

/* Reads or writes all items. */
static bool run(struct work *w, uint8_t method, const char *what)
{
	struct ctl_batch batch = {w->cnt, make, take, w};

	w->method = method;
	w->failed = 0;
	ctl_ask(w->s, &batch);
	if (w->failed)
		return ctl_complain(
			"%u of %u requests to %s %s were not answered, or refused; a key is given with --m-key",
			w->failed, w->cnt, method == UR_MAD_METHOD_GET ? "read" : "write", what);
	return true;
}

/* ---- what is written ---- */

/* All that is not named here stays as it is, or 0 means no change. */
static void put_port(struct work *w, struct item *item, uint16_t lid, uint8_t state)
{
	struct ur_port_info i;

	ur_get_port_info(item->data, &i);
	if (lid) {
		i.lid = lid;
		i.lmc = w->s->topo.node[item->node].type == UR_TOPO_SWITCH ? 0 : w->r.lmc;
		i.sm_lid = w->r.lid[ur_routes_lid_port(&w->s->topo, 0)];
	}
	i.state = state;
	i.phys_state = i.down_default = 0;
	i.width_enabled = i.speed_enabled = i.speed_ext_enabled = 0;
	memset(item->data, 0, sizeof(item->data));
	ur_put_port_info(item->data, &i);
}

/* The ports of the graph that have a LID, or a link. */
static bool list_ports(struct work *w, bool with_lid)
{
	const struct ur_topo *t = &w->s->topo;

	w->cnt = 0;
	for (uint32_t i = 0; i < t->ports_cnt; i++)
		if (with_lid ? w->r.lid[i] != 0 : t->port[i].peer_node != UR_TOPO_NONE)
			if (!add(w, t->port[i].node, UR_SMP_PORT_INFO, ur_topo_port_nr(t, i)))
				return false;
	return run(w, UR_MAD_METHOD_GET, "PortInfo");
}

static bool load_lids(struct work *w)
{
	if (!list_ports(w, true))
		return false;
	for (uint32_t i = 0; i < w->cnt; i++)
		put_port(w, &w->item[i],
			 w->r.lid[ur_topo_port_of(&w->s->topo, w->item[i].node,
						  (uint8_t)w->item[i].attr_mod)],
			 UR_PORT_NOP);
	return run(w, UR_MAD_METHOD_SET, "LIDs");
}

static bool load_tops(struct work *w)
{
	w->cnt = 0;
	for (uint32_t i = 0; i < w->r.switches; i++)
		if (!add(w, w->r.switch_node[i], UR_SMP_SWITCH_INFO, 0))
			return false;
	if (!run(w, UR_MAD_METHOD_GET, "SwitchInfo"))
		return false;
	for (uint32_t i = 0; i < w->cnt; i++) {
		struct ur_switch_info si;

		ur_get_switch_info(w->item[i].data, &si);
		if (si.linear_fdb_cap <= w->r.lids)
			return ctl_complain(
				"a switch has a forwarding table of %u LIDs; this fabric needs %u",
				si.linear_fdb_cap, w->r.lids);
		si.linear_fdb_top = (uint16_t)w->r.lids;
		memset(w->item[i].data, 0, sizeof(w->item[i].data));
		ur_put_switch_info(w->item[i].data, &si);
	}
	return run(w, UR_MAD_METHOD_SET, "SwitchInfo");
}

static bool load_tables(struct work *w)
{
	w->cnt = 0;
	for (uint32_t i = 0; i < w->r.switches; i++)
		for (uint32_t block = 0; block < w->r.row / 64; block++) {
			if (!add(w, w->r.switch_node[i], UR_SMP_LFT, block))
				return false;
			memcpy(w->item[w->cnt - 1].data,
			       w->r.lft + (size_t)i * w->r.row + 64 * block, 64);
		}
	return run(w, UR_MAD_METHOD_SET, "forwarding tables");
}

/* Init, then Armed, then Active (IBA 7.2); ports that are further on stay there. */
static bool load_states(struct work *w, uint8_t from, uint8_t to, const char *what)
{
	uint32_t left = 0;

	if (!list_ports(w, false))
		return false;
	for (uint32_t i = 0; i < w->cnt; i++) {
		struct ur_port_info info;

		ur_get_port_info(w->item[i].data, &info);
		if (info.state != from)
			continue;
		put_port(w, &w->item[i], 0, to);
		w->item[left++] = w->item[i];
	}
	w->cnt = left;
	return run(w, UR_MAD_METHOD_SET, what);
}

/* ---- computing ---- */

static bool compute(struct work *w, enum ur_routes_mode mode)
{
	const struct ur_topo *t = &w->s->topo;
	uint8_t lmc = (uint8_t)w->s->o->lmc;
	size_t bytes = ur_routes_size(t, lmc);

	if (!bytes)
		return ctl_complain("the fabric needs more than %u LIDs", UR_ROUTES_LID_MAX);
	w->memory = malloc(bytes);
	if (!w->memory)
		return ctl_complain("there is no memory for the tables, %zu bytes", bytes);
	ur_routes_init(&w->r, w->memory, t, mode, lmc);
	ur_routes_compute(&w->r);
	return true;
}

static bool load(struct work *w)
{
	/* Tables of a part of a fabric break the rest of it; ctl_open() has said what to do. */
	if (w->s->topo.full)
		return false;
	return load_lids(w) && load_tops(w) && load_tables(w) &&
	       load_states(w, UR_PORT_INIT, UR_PORT_ARMED, "port states") &&
	       load_states(w, UR_PORT_ARMED, UR_PORT_ACTIVE, "port states");
}

/* ---- a check: a request to every LID, by the tables that were loaded ---- */

static void make_check(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	const struct work *w = ctx;

	ur_mgr_smp(mad, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, (uint16_t)w->item[i].attr_mod);
}

static void take_check(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct work *w = ctx;
	const struct ur_topo *t = &w->s->topo;
	struct ur_node_info info = {0};

	if (mad && !ur_load16(mad + 4))
		ur_get_node_info(mad + UR_SMP_DATA, &info);
	w->failed += info.node_guid != t->node[w->item[i].node].guid;
}

static bool check(struct work *w)
{
	struct ctl_batch batch = {w->r.assigned, make_check, take_check, w};

	w->cnt = 0;
	for (uint32_t lid = 1; lid <= w->r.lids; lid++)
		if (w->r.lid_port[lid] != UR_TOPO_NONE &&
		    !add(w, w->s->topo.port[w->r.lid_port[lid]].node, UR_SMP_NODE_INFO, lid))
			return false;
	w->failed = 0;
	ctl_ask(w->s, &batch);
	if (w->failed)
		return ctl_complain(
			"the tables are loaded, but %u of %u LIDs do not answer by them", w->failed,
			w->r.assigned);
	return true;
}

/* What the graph says of LIDs and states is true again. */
static bool refresh(struct work *w)
{
	struct ur_topo *t = &w->s->topo;

	if (!list_ports(w, false))
		return false;
	for (uint32_t i = 0; i < w->cnt; i++) {
		struct ur_port_info info;

		ur_get_port_info(w->item[i].data, &info);
		t->port[ur_topo_port_of(t, w->item[i].node, (uint8_t)w->item[i].attr_mod)].state =
			info.state;
	}
	for (uint32_t i = 0; i < t->ports_cnt; i++)
		if (w->r.lid[i]) {
			t->port[i].lid = w->r.lid[i];
			t->port[i].lmc =
				t->node[t->port[i].node].type == UR_TOPO_SWITCH ? 0 : w->r.lmc;
		}
	return true;
}

static void print(const struct work *w, const char *mode, bool loaded)
{
	const struct ur_topo *t = &w->s->topo;
	uint32_t most = 0, at = 0;
	char name[CTL_NAME_BYTES];

	for (uint32_t i = 0; i < t->ports_cnt; i++)
		if (t->port[i].peer_node != UR_TOPO_NONE &&
		    t->node[t->port[i].peer_node].type == UR_TOPO_SWITCH && w->r.load[i] > most)
			most = w->r.load[at = i];
	printf("%s: %u LIDs, tables of %u switches%s\n", mode, w->r.assigned, w->r.switches,
	       loaded ? ", loaded; every LID answers" : "");
	if (w->r.lmc)
		printf("%u LIDs for each port of an endpoint\n", 1u << w->r.lmc);
	if (w->r.unreachable)
		printf("%u entries have no port\n", w->r.unreachable);
	if (!most)
		return;
	ctl_node_name(t, t->port[at].node, name);
	printf("most destinations by one port to a switch: %u, \"%s\" port %u\n", most, name,
	       ur_topo_port_nr(t, at));
}

static json_t *to_json(const struct work *w, const char *mode, bool loaded)
{
	const struct ur_topo *t = &w->s->topo;
	json_t *lids = json_array(), *switches = json_array();

	for (uint32_t lid = 1; lid <= w->r.lids; lid++)
		json_array_append_new(
			lids,
			w->r.lid_port[lid] == UR_TOPO_NONE
				? json_null()
				: ctl_json_hex(t->node[t->port[w->r.lid_port[lid]].node].guid));
	for (uint32_t i = 0; i < w->r.switches; i++) {
		json_t *ports = json_array();

		for (uint32_t lid = 1; lid <= w->r.lids; lid++)
			json_array_append_new(ports,
					      json_integer(w->r.lft[(size_t)i * w->r.row + lid]));
		json_array_append_new(switches,
				      json_pack("{s:o,s:o}", "guid",
						ctl_json_hex(t->node[w->r.switch_node[i]].guid),
						"ports", ports));
	}
	return json_pack("{s:s,s:i,s:b,s:i,s:o,s:o}", "mode", mode, "lmc", (int)w->r.lmc, "loaded",
			 loaded, "unreachable", (int)w->r.unreachable, "lids", lids, "switches",
			 switches);
}

static enum ur_routes_mode mode_of(const char *mode)
{
	return strcmp(mode, "shortest") ? UR_ROUTES_UPDOWN : UR_ROUTES_SHORTEST;
}

static void end(struct work *w)
{
	free(w->memory);
	free(w->item);
}

bool ctl_load_routes(struct ctl_session *s)
{
	struct work w = {.s = s};
	bool ok = compute(&w, mode_of(s->o->load_routes)) && load(&w) && refresh(&w);

	end(&w);
	return ok;
}

bool ctl_cmd_routes(struct ctl_session *s)
{
	const char *mode = s->o->words_cnt > 1 ? s->o->words[1] : "updown";
	struct work w = {.s = s};
	bool loads = !strcmp(s->o->words[0], "load"), ok;

	if (!strcmp(s->o->words[0], "source"))
		return ctl_source_routes(s);
	ok = compute(&w, mode_of(mode)) && (!loads || (load(&w) && refresh(&w) && check(&w)));

	if (ok && ctl_prints_text(s->o))
		print(&w, mode, loads);
	if (ok && s->o->json)
		ok = ctl_json_write(s->o, to_json(&w, mode, loads));
	end(&w);
	return ok;
}
