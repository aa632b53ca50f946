/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "node.h"
#include "writer.h"

static json_t *number(uint64_t v)
{
	return json_integer((json_int_t)v);
}

/* Reasons that have occurred. */
static json_t *drops(const struct ur_switch_lane_counters *lane)
{
	json_t *out = json_object();

	for (unsigned d = 0; d < UR_SWITCH_DROP_CNT; d++)
		if (lane->drops[d])
			json_object_set_new(out, ur_switch_drop_name(d), number(lane->drops[d]));
	return out;
}

/* Lanes that have sent, dropped or hold something. */
static json_t *lanes(const struct node *n, uint8_t port, const struct ur_switch_counters *c)
{
	json_t *out = json_array();

	for (unsigned vl = 0; vl < UR_SWITCH_LANES; vl++) {
		const struct ur_switch_lane_counters *l = &c->lane[vl];
		uint32_t queued = ur_switch_queued_bytes(n->sw, port, (uint8_t)vl);
		json_t *dropped = drops(l), *lane;

		if (!l->tx_packets && !queued && !json_object_size(dropped)) {
			json_decref(dropped);
			continue;
		}
		lane = json_object();
		json_object_set_new(lane, "vl", number(vl));
		json_object_set_new(lane, "tx_packets", number(l->tx_packets));
		json_object_set_new(lane, "tx_bytes", number(l->tx_bytes));
		json_object_set_new(lane, "queued_bytes", number(queued));
		json_object_set_new(lane, "drops", dropped);
		json_array_append_new(out, lane);
	}
	return out;
}

static json_t *port_stats(const struct node *n, uint8_t port)
{
	const struct node_port *p = &n->port[port];
	struct ur_switch_counters c;
	json_t *out = json_object();
	char mac[18];

	ur_switch_counters(n->sw, port, &c);
	json_object_set_new(out, "port", number(port));
	json_object_set_new(out, "name", json_string(port ? p->dev->name : "agent"));
	json_object_set_new(out, "link_up", json_boolean(ur_switch_link(n->sw, port)));
	if (port) {
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", p->dev->mac[0],
			 p->dev->mac[1], p->dev->mac[2], p->dev->mac[3], p->dev->mac[4],
			 p->dev->mac[5]);
		json_object_set_new(out, "mac", json_string(mac));
		json_object_set_new(out, "max_frame", number(p->dev->max_frame));
	}
#define X(name, help) json_object_set_new(out, #name, number(c.name));
	UR_SWITCH_PORT_COUNTERS(X)
#undef X
#define X(name, help) json_object_set_new(out, #name, number(p->device.name));
	UR_SWITCH_DEVICE_COUNTERS(X)
#undef X
	json_object_set_new(out, "no_copy", number(p->no_copy));
	if (port && p->dev->ops->stats)
		p->dev->ops->stats(p->dev, out);
	json_object_set_new(out, "lanes", lanes(n, port, &c));
	return out;
}

static json_t *agent_stats(const struct node *n)
{
	struct ur_switch_agent_counters c;
	struct ur_nma_stats s;
	json_t *out = json_object();
	char guid[20];

	ur_switch_agent_counters(n->agent, &c, &s);
	snprintf(guid, sizeof(guid), "0x%016llx", (unsigned long long)n->guid);
	json_object_set_new(out, "guid", json_string(guid));
	json_object_set_new(out, "lid", number(ur_switch_agent_lid(n->agent)));
#define X(name, help) json_object_set_new(out, #name, number(c.name));
	UR_SWITCH_AGENT_COUNTERS(X)
#undef X
#define X(name, unit, help) json_object_set_new(out, "nma_" #name, number(s.name));
	UR_NMA_STATS(X)
#undef X
	return out;
}

void node_write_stats(struct node *n, uint64_t now_ns)
{
	json_t *root = json_object(), *ports = json_array();
	char *text;

	for (unsigned i = 0; i <= n->port_cnt; i++)
		json_array_append_new(ports, port_stats(n, (uint8_t)i));
	json_object_set_new(root, "time_s", json_real((double)now_ns / 1e9));
	json_object_set_new(root, "macs", number(ur_switch_macs(n->sw, now_ns)));
	json_object_set_new(root, "queued", number(ur_switch_queued(n->sw)));
	json_object_set_new(root, "load", json_real(n->load / 1000.0));
	json_object_set_new(root, "ports", ports);
	json_object_set_new(root, "agent", agent_stats(n));
	text = json_dumps(root, JSON_INDENT(2));
	json_decref(root);
	if (text)
		writer_put(n->stats, text, strlen(text));
}
