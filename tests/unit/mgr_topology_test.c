/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "manager/topology.h"

/* The graph of a fabric: limits, look-up by GUID, directed routes. */

static struct ur_topo t;
static uint8_t memory[256 * 1024] __attribute__((aligned(8)));

static void start(uint32_t nodes, uint32_t ports)
{
	struct ur_topo_limits limits = {nodes, ports};

	cr_assert_leq(ur_topo_size(&limits), sizeof(memory));
	ur_topo_init(&t, memory, &limits);
}

/* MGR-TOPO-01 */
Test(mgr_topology, nodes_beyond_the_limit_are_refused)
{
	start(3, 100);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(ur_topo_add(&t, 100 + i, UR_TOPO_SWITCH, 4), i);
	cr_assert(!t.full);
	cr_assert_eq(ur_topo_add(&t, 200, UR_TOPO_SWITCH, 4), UR_TOPO_NONE);
	cr_assert(t.full);
	cr_assert_eq(ur_topo_find(&t, 200), UR_TOPO_NONE);
}

/* MGR-TOPO-01 */
Test(mgr_topology, ports_beyond_the_limit_are_refused_and_smaller_nodes_still_fit)
{
	start(10, 10);
	cr_assert_eq(ur_topo_add(&t, 1, UR_TOPO_SWITCH, 4), 0);
	cr_assert_eq(ur_topo_add(&t, 2, UR_TOPO_SWITCH, 5), UR_TOPO_NONE);
	cr_assert(t.full);
	cr_assert_eq(ur_topo_add(&t, 3, UR_TOPO_SWITCH, 4), 1);
	cr_assert_eq(t.ports_cnt, 10);
}

Test(mgr_topology, a_port_leads_to_its_node_and_back)
{
	start(10, 100);
	ur_topo_add(&t, 1, UR_TOPO_SWITCH, 4);
	ur_topo_add(&t, 2, UR_TOPO_ENDPOINT, 1);
	for (uint32_t n = 0; n < 2; n++)
		for (uint8_t p = 0; p <= t.node[n].ports; p++) {
			uint32_t port = ur_topo_port_of(&t, n, p);

			cr_assert_eq(t.port[port].node, n);
			cr_assert_eq(ur_topo_port_nr(&t, port), p);
		}
}

Test(mgr_topology, every_node_with_a_guid_is_found_the_oldest_first)
{
	start(400, 1000);
	for (uint32_t i = 0; i < 400; i++)
		ur_topo_add(&t, i % 100, UR_TOPO_ENDPOINT, 1);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t n = ur_topo_find(&t, i);

		for (uint32_t k = 0; k < 4; k++, n = ur_topo_find_next(&t, n))
			cr_assert_eq(n, i + k * 100);
		cr_assert_eq(n, UR_TOPO_NONE);
	}
}

Test(mgr_topology, a_path_is_the_ports_from_the_first_node)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1];

	start(100, 1000);
	for (uint32_t i = 0; i < 64; i++) {
		ur_topo_add(&t, i, UR_TOPO_SWITCH, 8);
		t.node[i].hops = (uint8_t)i;
		t.node[i].parent = i - 1;
		t.node[i].parent_port = (uint8_t)(1 + i % 8);
	}
	cr_assert_eq(ur_topo_path(&t, 0, path), 0);
	cr_assert_eq(ur_topo_path(&t, 63, path), 63);
	for (uint32_t i = 1; i <= 63; i++)
		cr_assert_eq(path[i], 1 + i % 8);
}

static void link_up(uint32_t a, uint8_t p, uint32_t b, uint8_t q)
{
	struct ur_topo_port *x = &t.port[ur_topo_port_of(&t, a, p)];
	struct ur_topo_port *y = &t.port[ur_topo_port_of(&t, b, q)];

	x->peer_node = b;
	x->peer_port = q;
	y->peer_node = a;
	y->peer_port = p;
}

/* MGR-TOPO-02 */
Test(mgr_topology, a_new_path_goes_around_what_is_closed_and_is_the_shortest_left)
{
	bool ports[200] = {0}, nodes[10] = {0};
	uint8_t path[UR_TOPO_PATH_MAX + 1];
	uint32_t queue[10];

	/* An endpoint, and a ring of five switches; the endpoint is at the first one. */
	start(10, 200);
	ur_topo_add(&t, 100, UR_TOPO_ENDPOINT, 1);
	for (uint32_t i = 1; i <= 5; i++)
		ur_topo_add(&t, 100 + i, UR_TOPO_SWITCH, 3);
	link_up(0, 1, 1, 3);
	for (uint32_t i = 1; i <= 5; i++)
		link_up(i, 2, i % 5 + 1, 1);
	cr_assert_eq(ur_topo_reroute(&t, ports, nodes, queue), 6);
	cr_assert_eq(t.node[3].hops, 3);
	cr_assert_eq(t.node[4].hops, 3);
	/* The link from 1 to 2, closed at either end. */
	for (unsigned end = 0; end < 2; end++) {
		uint32_t closed = end ? ur_topo_port_of(&t, 2, 1) : ur_topo_port_of(&t, 1, 2);

		ports[closed] = true;
		cr_assert_eq(ur_topo_reroute(&t, ports, nodes, queue), 6);
		cr_assert_eq(ur_topo_path(&t, 2, path), 5);
		cr_assert_eq(path[1], 1);
		for (uint32_t i = 2; i <= 5; i++)
			cr_assert_eq(path[i], 1);
		cr_assert_eq(t.node[2].entry_port, 2);
		ports[closed] = false;
	}
	/* A silent node is still asked, but nothing is asked through it. */
	nodes[2] = nodes[5] = true;
	cr_assert_eq(ur_topo_reroute(&t, ports, nodes, queue), 4);
	cr_assert_eq(t.node[2].hops, 2);
	cr_assert_eq(t.node[3].hops, UR_TOPO_NO_PATH);
	nodes[2] = false;
	cr_assert_eq(ur_topo_reroute(&t, ports, nodes, queue), 6);
	cr_assert_eq(t.node[4].hops, 4);
}
