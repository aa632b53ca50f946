/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "drive.h"

const struct drive_attr drive_usual = {
	.window = 64, .per_node = 4, .retries = 3, .nodes = 30000, .ports = 300000};

void drive_start_on(struct drive *d, struct ur_fabric *fabric, const struct drive_attr *attr)
{
	struct ur_topo_limits limits = {attr->nodes, attr->ports};
	struct ur_requests_attr requests = {.window = attr->window,
					    .retries = attr->retries,
					    .timeout_ns = TIMEOUT_NS,
					    .seed = 77};
	struct ur_discover_attr discover = {attr->per_node};

	*d = (struct drive){.fabric = fabric};
	ur_fabric_start(fabric);
	ur_fabric_attach(fabric, 0);
	d->topo_memory = malloc(ur_topo_size(&limits));
	d->requests_memory = malloc(ur_requests_size(attr->window));
	cr_assert(d->topo_memory && d->requests_memory);
	ur_topo_init(&d->topo, d->topo_memory, &limits);
	ur_requests_init(&d->requests, d->requests_memory, &requests);
	ur_discover_init(&d->discover, &discover, &d->topo, &d->requests);
}

void drive_start(struct drive *d, const char *shape, const struct drive_attr *attr)
{
	struct ur_fabric_attr fabric = {.hop_ns = UR_FABRIC_PAPER_HOP_NS,
					.process_ns = UR_FABRIC_PAPER_PROCESS_NS,
					.seed = 5};
	char err[256] = "";
	struct ur_fabric *f = ur_fabric_of_shape(shape, &fabric, err, sizeof(err));

	cr_assert(f, "%s", err);
	drive_start_on(d, f, attr);
}

static void take_all(struct drive *d)
{
	struct ur_mgr_mad m;

	while (ur_fabric_receive(d->fabric, 0, &m.lid, m.bytes)) {
		ur_discover_input(&d->discover, &m, ur_fabric_now(d->fabric));
		if (d->each_mad)
			d->each_mad(d);
		if (++d->arrived % 1024 == 0)
			ur_discover_validate(&d->discover);
	}
}

void drive_run(struct drive *d)
{
	struct ur_mgr_mad m;

	while (!ur_discover_done(&d->discover)) {
		while (ur_discover_output(&d->discover, ur_fabric_now(d->fabric), &m))
			ur_fabric_send(d->fabric, 0, m.lid, m.bytes);
		/* Without a deadline the model would run on, a program would hang. */
		cr_assert_neq(ur_discover_next_deadline(&d->discover), UINT64_MAX);
		if (ur_fabric_run(d->fabric, ur_discover_next_deadline(&d->discover)))
			take_all(d);
		ur_discover_expire(&d->discover, ur_fabric_now(d->fabric));
	}
	ur_discover_validate(&d->discover);
}

void drive_end(struct drive *d)
{
	ur_fabric_free(d->fabric);
	free(d->topo_memory);
	free(d->requests_memory);
}

/* ---- the truth ---- */

struct truth {
	bool *reached;
	uint32_t *queue, head, tail;
};

static bool is_through(struct drive *d, uint32_t node, uint8_t port, uint32_t *peer, uint8_t *far,
		       bool (*is_blocked)(struct drive *d, uint32_t node, uint8_t port))
{
	if (!ur_fabric_peer(d->fabric, node, port, peer, far))
		return false;
	return !is_blocked || (!is_blocked(d, node, port) && !is_blocked(d, *peer, *far) &&
			       !is_blocked(d, *peer, 0));
}

static void walk(struct drive *d, struct truth *t,
		 bool (*is_blocked)(struct drive *d, uint32_t node, uint8_t port))
{
	uint32_t nodes = ur_fabric_nodes(d->fabric), peer;
	uint8_t far;

	t->reached = calloc(nodes, sizeof(*t->reached));
	t->queue = calloc(nodes, sizeof(*t->queue));
	cr_assert(t->reached && t->queue);
	t->queue[t->tail++] = 0;
	t->reached[0] = true;
	while (t->head < t->tail) {
		uint32_t n = t->queue[t->head++];
		const struct ur_fabric_node_attr *a = ur_fabric_node(d->fabric, n);

		if (n && !a->is_switch)
			continue;
		for (uint8_t p = 1; p <= a->ports; p++)
			if (is_through(d, n, p, &peer, &far, is_blocked) && !t->reached[peer]) {
				t->reached[peer] = true;
				t->queue[t->tail++] = peer;
			}
	}
}

static void compare_port(struct drive *d, const struct truth *t, uint32_t truth, uint8_t nr,
			 uint32_t node,
			 bool (*is_blocked)(struct drive *d, uint32_t node, uint8_t port))
{
	const struct ur_topo_port *p = &d->topo.port[ur_topo_port_of(&d->topo, node, nr)];
	const struct ur_fabric_node_attr *a = ur_fabric_node(d->fabric, truth);
	uint32_t peer;
	uint8_t far;

	if (!ur_fabric_peer(d->fabric, truth, nr, &peer, &far)) {
		cr_assert_eq(p->peer_node, UR_TOPO_NONE);
		if (a->is_switch)
			cr_assert_eq(p->link, UR_TOPO_LINK_DOWN, "%s port %u is %s", a->name, nr,
				     ur_topo_link_name(p->link));
		return;
	}
	if (!is_through(d, truth, nr, &peer, &far, is_blocked)) {
		cr_assert_eq(p->peer_node, UR_TOPO_NONE, "%s port %u", a->name, nr);
		if (a->is_switch || !node)
			cr_assert_eq(p->link, UR_TOPO_LINK_SILENT, "%s port %u is %s", a->name, nr,
				     ur_topo_link_name(p->link));
		return;
	}
	if (!t->reached[peer])
		return; /* only from an endpoint to what nothing else leads to */
	cr_assert_neq(p->peer_node, UR_TOPO_NONE, "%s port %u: its link to %s port %u is missing",
		      a->name, nr, ur_fabric_node(d->fabric, peer)->name, far);
	cr_assert_eq(d->topo.node[p->peer_node].guid, ur_fabric_node(d->fabric, peer)->guid);
	cr_assert_eq(p->peer_port, far);
	cr_assert_leq(p->link, UR_TOPO_LINK_KNOWN_SWITCH);
	cr_assert_eq(p->link == UR_TOPO_LINK_ENDPOINT, !ur_fabric_node(d->fabric, peer)->is_switch);
}

void drive_compare(struct drive *d,
		   bool (*is_blocked)(struct drive *d, uint32_t node, uint8_t port))
{
	struct truth t = {0};

	walk(d, &t, is_blocked);
	cr_assert_eq(d->topo.nodes_cnt, t.tail, "%u nodes found of %u", d->topo.nodes_cnt, t.tail);
	for (uint32_t i = 0; i < t.tail; i++) {
		const struct ur_fabric_node_attr *a = ur_fabric_node(d->fabric, t.queue[i]);
		uint32_t node = ur_topo_find(&d->topo, a->guid);
		const struct ur_topo_node *n;

		cr_assert_neq(node, UR_TOPO_NONE, "%s was not found", a->name);
		n = &d->topo.node[node];
		cr_assert_eq(ur_topo_find_next(&d->topo, node), UR_TOPO_NONE);
		cr_assert_eq(n->type, a->is_switch ? UR_TOPO_SWITCH : UR_TOPO_ENDPOINT);
		cr_assert_eq(n->ports, a->ports);
		cr_assert_str_eq(n->description, a->name);
		cr_assert_eq(n->faults, 0, "%s has faults %#x", a->name, n->faults);
		for (uint8_t p = 1; p <= a->ports; p++)
			compare_port(d, &t, t.queue[i], p, node, is_blocked);
	}
	free(t.reached);
	free(t.queue);
}
