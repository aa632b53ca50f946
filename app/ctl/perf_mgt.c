/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf_mgt.h"

#include <string.h>

#include "manager/build.h"
#include "names.h"
#include "wire/perf.h"

#define QUESTIONS 2 /* of each port */

struct reading {
	struct ctl_session *s;
	uint16_t lid; /* 0: this program's own node */
	uint8_t first_port, ports;
	json_t *list;
};

static void make(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	const struct reading *r = ctx;
	uint16_t attr = i % QUESTIONS ? UR_PERF_PORT_COUNTERS_EXT : UR_PERF_PORT_COUNTERS;

	ur_mgr_gmp(mad, UR_MAD_CLASS_PERF, UR_PERF_VERSION, UR_MAD_METHOD_GET, attr, 0, r->lid);
	mad->bytes[UR_GMP_DATA + 1] = (uint8_t)(r->first_port + i / QUESTIONS);
}

#define SET(type, name, at, width, bit)                                                            \
	json_object_set_new(o, #name, json_integer((json_int_t)a.name));

static json_t *json_of(const uint8_t *data)
{
	struct ur_port_counters a;
	json_t *o = json_object();

	ur_get_port_counters(data, &a);
	UR_PORT_COUNTERS_LIST(SET)
	return o;
}

static json_t *json_of_ext(const uint8_t *data)
{
	struct ur_port_counters_ext a;
	json_t *o = json_object();

	ur_get_port_counters_ext(data, &a);
	UR_PORT_COUNTERS_EXT_LIST(SET)
	return o;
}
#undef SET

static void take(void *ctx, uint32_t i, const uint8_t *mad)
{
	const struct reading *r = ctx;
	json_t *port = json_array_get(r->list, i / QUESTIONS);

	if (!mad || ur_load16(mad + 4))
		return;
	if (i % QUESTIONS)
		json_object_set_new(port, "extended", json_of_ext(mad + UR_GMP_DATA));
	else
		json_object_set_new(port, "counters", json_of(mad + UR_GMP_DATA));
}

/* The LID of a node's port that has one; 0: none. */
static uint16_t lid_of(struct ctl_session *s, uint32_t node)
{
	const struct ur_topo_node *n = &s->topo.node[node];
	struct ur_port_info info;
	struct ur_mgr_mad mad;

	/* Of an endpoint the port at which the request arrives. */
	if (!ctl_get(s, node, UR_SMP_PORT_INFO,
		     n->type == UR_TOPO_SWITCH || !n->hops ? 0 : n->entry_port, &mad))
		return 0;
	ur_get_port_info(mad.bytes + UR_SMP_DATA, &info);
	return info.lid;
}

json_t *ctl_perf_mgt_read(struct ctl_session *s, uint32_t node, uint8_t port, char *why,
			  size_t why_bytes)
{
	struct reading r = {.s = s, .first_port = port ? port : 1, .list = json_array()};
	struct ctl_batch batch = {.make = make, .take = take, .ctx = &r};

	r.ports = port ? 1 : s->topo.node[node].ports;
	if (s->topo.node[node].hops) {
		r.lid = lid_of(s, node);
		if (!r.lid || !lid_of(s, 0)) {
			snprintf(
				why, why_bytes,
				"PerfMgt: no LIDs; --load-routes, or a subnet manager, assigns them");
			json_decref(r.list);
			return NULL;
		}
	}
	for (unsigned i = 0; i < r.ports; i++)
		json_array_append_new(r.list, json_pack("{s:i}", "port", (int)(r.first_port + i)));
	batch.cnt = r.ports * (uint32_t)QUESTIONS;
	ctl_ask(s, &batch);
	return r.list;
}

static void print_values(const char *head, json_t *values)
{
	const char *name;
	json_t *value;

	if (!values) {
		printf("  %s: no answer\n", head);
		return;
	}
	printf("  %s\n", head);
	json_object_foreach(values, name, value)
		printf("    %-24s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
}

void ctl_perf_mgt_print(json_t *ports)
{
	json_t *port;
	size_t i;

	json_array_foreach(ports, i, port)
	{
		printf("PerfMgt, port %" JSON_INTEGER_FORMAT "\n",
		       json_integer_value(json_object_get(port, "port")));
		print_values("PortCounters", json_object_get(port, "counters"));
		print_values("PortCountersExtended", json_object_get(port, "extended"));
	}
}
