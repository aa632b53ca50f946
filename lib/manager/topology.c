/* SPDX-License-Identifier: BSD-3-Clause */
#include "manager/topology.h"
#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/siphash.h"

#define NODES_MAX (UINT32_C(1) << 24)
#define PORTS_MAX (UINT32_C(1) << 28)

size_t ur_topo_size(const struct ur_topo_limits *limits)
{
	return limits->nodes * sizeof(struct ur_topo_node) +
	       limits->ports * sizeof(struct ur_topo_port) +
	       ur_pow2_at_least(limits->nodes) * sizeof(uint32_t);
}

void ur_topo_init(struct ur_topo *t, void *memory, const struct ur_topo_limits *limits)
{
	UR_ASSERT(limits->nodes && limits->nodes <= NODES_MAX && limits->ports >= 2 &&
		  limits->ports <= PORTS_MAX);
	*t = (struct ur_topo){
		.limits = *limits,
		.node = memory,
		.buckets = ur_pow2_at_least(limits->nodes),
	};
	t->port = (struct ur_topo_port *)(void *)(t->node + limits->nodes);
	t->bucket = (uint32_t *)(void *)(t->port + limits->ports);
	for (uint32_t i = 0; i < t->buckets; i++)
		t->bucket[i] = UR_TOPO_NONE;
}

static uint32_t *bucket_of(const struct ur_topo *t, uint64_t guid)
{
	uint64_t hash = ur_siphash(t->limits.seed, 0, &guid, sizeof(guid));

	return &t->bucket[hash & (t->buckets - 1)];
}

static void clear_port(struct ur_topo_port *p, uint32_t node)
{
	*p = (struct ur_topo_port){
		.link = UR_TOPO_LINK_UNKNOWN,
		.peer_node = UR_TOPO_NONE,
		.node = node,
		.first_waits = UR_TOPO_NONE,
		.next_waits = UR_TOPO_NONE,
	};
}

/* MGR-TOPO-01 */
uint32_t ur_topo_add(struct ur_topo *t, uint64_t guid, uint8_t type, uint8_t ports)
{
	uint32_t node = t->nodes_cnt, *at;

	if (node == t->limits.nodes || t->limits.ports - t->ports_cnt < (uint32_t)ports + 1) {
		t->full = true;
		return UR_TOPO_NONE;
	}
	t->nodes_cnt++;
	t->node[node] = (struct ur_topo_node){
		.guid = guid,
		.first_port = t->ports_cnt,
		.ports = ports,
		.type = type,
		.parent = UR_TOPO_NONE,
		.next_same = UR_TOPO_NONE,
		.next_turn = UR_TOPO_NONE,
	};
	for (uint32_t i = 0; i <= ports; i++)
		clear_port(&t->port[t->ports_cnt++], node);
	/* At the end: of nodes with the same GUID the oldest is found first. */
	for (at = bucket_of(t, guid); *at != UR_TOPO_NONE; at = &t->node[*at].next_same)
		;
	*at = node;
	return node;
}

static uint32_t match(const struct ur_topo *t, uint32_t node, uint64_t guid)
{
	while (node != UR_TOPO_NONE && t->node[node].guid != guid)
		node = t->node[node].next_same;
	return node;
}

uint32_t ur_topo_find(const struct ur_topo *t, uint64_t guid)
{
	return match(t, *bucket_of(t, guid), guid);
}

uint32_t ur_topo_find_next(const struct ur_topo *t, uint32_t node)
{
	return match(t, t->node[node].next_same, t->node[node].guid);
}

uint8_t ur_topo_path(const struct ur_topo *t, uint32_t node, uint8_t path[UR_TOPO_PATH_MAX + 1])
{
	uint8_t hops = t->node[node].hops;

	UR_ASSERT(hops <= UR_TOPO_PATH_MAX);
	path[0] = 0;
	for (uint8_t i = hops; i > 0; i--) {
		path[i] = t->node[node].parent_port;
		node = t->node[node].parent;
	}
	return hops;
}

/* The node beyond that port, if it can be entered there and has no path yet. */
static uint32_t next_beyond(struct ur_topo *t, uint32_t port, const bool *closed_ports)
{
	const struct ur_topo_port *p = &t->port[port];

	if (closed_ports[port] || p->peer_node == UR_TOPO_NONE || t->node[p->peer_node].in_turn ||
	    closed_ports[ur_topo_port_of(t, p->peer_node, p->peer_port)])
		return UR_TOPO_NONE;
	return p->peer_node;
}

static void lead(struct ur_topo *t, uint32_t from, uint8_t port, uint32_t to)
{
	struct ur_topo_node *n = &t->node[to];

	n->parent = from;
	n->parent_port = port;
	n->entry_port = t->port[ur_topo_port_of(t, from, port)].peer_port;
	n->hops = t->node[from].hops + 1;
	n->in_turn = true;
}

uint32_t ur_topo_reroute(struct ur_topo *t, const bool *closed_ports, const bool *closed_nodes,
			 uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	UR_ASSERT(t->nodes_cnt);
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		t->node[i].in_turn = i == 0;
	queue[tail++] = 0;
	while (head < tail) {
		uint32_t at = queue[head++];

		if ((at && t->node[at].type != UR_TOPO_SWITCH) || closed_nodes[at] ||
		    t->node[at].hops == UR_TOPO_PATH_MAX)
			continue;
		for (uint8_t p = 1; p <= t->node[at].ports; p++) {
			uint32_t to = next_beyond(t, ur_topo_port_of(t, at, p), closed_ports);

			if (to == UR_TOPO_NONE)
				continue;
			lead(t, at, p, to);
			queue[tail++] = to;
		}
	}
	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		if (!t->node[i].in_turn)
			t->node[i].hops = UR_TOPO_NO_PATH;
		t->node[i].in_turn = false;
	}
	return tail;
}

const char *ur_topo_link_name(uint8_t link)
{
	static const char *const names[] = {
#define X(NAME, name, meaning) [UR_TOPO_LINK_##NAME] = #name,
		UR_TOPO_LINKS(X)
#undef X
	};

	return link < sizeof(names) / sizeof(names[0]) ? names[link] : "?";
}
