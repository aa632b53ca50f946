/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "drive.h"
#include "manager/routes.h"

/* LIDs and forwarding tables of fabrics that were discovered: every path is walked. */

static struct drive d;
static struct ur_routes r;
static void *memory;

static void compute(const char *shape, enum ur_routes_mode mode)
{
	drive_start(&d, shape, &drive_usual);
	drive_run(&d);
	memory = malloc(ur_routes_size(&d.topo, 0));
	cr_assert(memory);
	ur_routes_init(&r, memory, &d.topo, mode, 0);
	ur_routes_compute(&r);
}

static void end(void)
{
	free(memory);
	drive_end(&d);
}

/* Hops from switch to switch on the way to a LID; -1: it does not arrive. Calls step() for each port taken. */
static int walk(uint32_t sw, uint32_t lid, void (*step)(uint32_t from, uint32_t port, uint32_t to))
{
	uint32_t dest = d.topo.port[r.lid_port[lid]].node;

	for (int hops = 0; hops < 64; hops++) {
		uint8_t out = r.lft[(size_t)sw * r.row + lid];
		uint32_t node = r.switch_node[sw], port;

		if (out == UR_ROUTES_NONE)
			return -1;
		if (!out)
			return node == dest ? hops : -1;
		port = ur_topo_port_of(&d.topo, node, out);
		if (d.topo.port[port].peer_node == dest &&
		    d.topo.node[dest].type != UR_TOPO_SWITCH) {
			const struct ur_topo_port *p = &d.topo.port[port];

			return ur_topo_port_of(&d.topo, dest, p->peer_port) == r.lid_port[lid]
				       ? hops
				       : -1;
		}
		if (d.topo.port[port].peer_node == UR_TOPO_NONE ||
		    r.number[d.topo.port[port].peer_node] == UR_TOPO_NONE)
			return -1;
		if (step)
			step(sw, port, r.number[d.topo.port[port].peer_node]);
		sw = r.number[d.topo.port[port].peer_node];
	}
	return -1;
}

/* MGR-LID-01: OpenSM, for one, does not begin with 1. */
Test(routes, a_lid_that_a_port_has_is_kept_wherever_it_is)
{
	uint32_t kept, both[2];

	drive_start(&d, "fattree:4", &drive_usual);
	drive_run(&d);
	kept = ur_routes_lid_port(&d.topo, 5);
	d.topo.port[kept].lid = 4711;
	both[0] = ur_routes_lid_port(&d.topo, 6);
	both[1] = ur_routes_lid_port(&d.topo, 7);
	d.topo.port[both[0]].lid = d.topo.port[both[1]].lid = 100;
	d.topo.port[ur_routes_lid_port(&d.topo, 8)].lid = 0xfff0; /* none of one port */
	memory = malloc(ur_routes_size(&d.topo, 0));
	ur_routes_init(&r, memory, &d.topo, UR_ROUTES_UPDOWN, 0);
	ur_routes_compute(&r);
	cr_assert(r.lid[kept] == 4711 && r.lid_port[4711] == kept);
	cr_assert((r.lid[both[0]] == 100) != (r.lid[both[1]] == 100));
	cr_assert(r.assigned == 36 && r.lids == 4711 && !r.unreachable);
	for (uint32_t lid = 1, cnt = 0; lid <= r.lids; lid++) {
		cnt += r.lid_port[lid] != UR_TOPO_NONE;
		cr_assert(lid < r.lids || cnt == 36);
		if (r.lid_port[lid] != UR_TOPO_NONE)
			for (uint32_t sw = 0; sw < r.switches; sw++)
				cr_assert(!r.edge[sw] || walk(sw, lid, NULL) >= 0);
	}
	end();
}

/* MGR-LID-02: in a large fabric it is kept if that costs little, and otherwise not. */
Test(routes, a_lid_far_away_does_not_size_all_tables)
{
	uint32_t odd, near;

	drive_start(&d, "fattree:10", &drive_usual);
	drive_run(&d);
	odd = ur_routes_lid_port(&d.topo, 5);
	near = ur_routes_lid_port(&d.topo, 6);
	d.topo.port[odd].lid = 0xbfff;
	d.topo.port[near].lid = 400;
	cr_assert_lt(ur_routes_size(&d.topo, 0), 1u << 20);
	memory = malloc(ur_routes_size(&d.topo, 0));
	ur_routes_init(&r, memory, &d.topo, UR_ROUTES_UPDOWN, 0);
	ur_routes_compute(&r);
	cr_assert(r.assigned == 375 && r.lids == 400 && r.lid[near] == 400 && !r.unreachable);
	cr_assert(r.lid[odd] && r.lid[odd] <= 400 && r.lid_port[r.lid[odd]] == odd);
	end();
}

/* MGR-LID-01 */
Test(routes, each_switch_and_each_linked_port_of_an_endpoint_has_a_lid_of_its_own)
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		static bool used[UR_ROUTES_LID_MAX + 1];
		char shape[64];

		snprintf(shape, sizeof(shape), "random:20,%u", seed);
		compute(shape, UR_ROUTES_SHORTEST);
		memset(used, 0, sizeof(used));
		for (uint32_t i = 0; i < d.topo.ports_cnt; i++) {
			bool is_switch = d.topo.node[d.topo.port[i].node].type == UR_TOPO_SWITCH;
			bool wants = is_switch ? ur_topo_port_nr(&d.topo, i) == 0
					       : d.topo.port[i].peer_node != UR_TOPO_NONE;

			cr_assert_eq(r.lid[i] != 0, wants);
			if (!wants)
				continue;
			cr_assert_leq(r.lid[i], r.lids);
			cr_assert(!used[r.lid[i]]);
			used[r.lid[i]] = true;
		}
		end();
	}
}

/* Which port a switch takes to a LID. */
static uint8_t port_to(uint32_t sw, uint32_t lid)
{
	return r.lft[(size_t)sw * r.row + lid];
}

/* MGR-LID-03 */
Test(routes, with_an_lmc_each_port_of_an_endpoint_has_aligned_lids_that_all_arrive)
{
	for (uint8_t lmc = 1; lmc <= 3; lmc++) {
		uint32_t block = 1u << lmc, kept, moved, spread = 0;

		drive_start(&d, "fattree:4", &drive_usual);
		drive_run(&d);
		kept = ur_routes_lid_port(&d.topo, 5);
		moved = ur_routes_lid_port(&d.topo, 6);
		d.topo.port[kept].lid = (uint16_t)(9 * block);
		d.topo.port[moved].lid = (uint16_t)(10 * block + 1);
		memory = malloc(ur_routes_size(&d.topo, lmc));
		ur_routes_init(&r, memory, &d.topo, UR_ROUTES_UPDOWN, lmc);
		ur_routes_compute(&r);
		cr_assert(r.assigned == 20 + 16 * block && r.lids == 37 * block - 1);
		cr_assert(r.lid[kept] == 9 * block && r.lid[moved] % block == 0 && !r.unreachable);
		for (uint32_t i = 0; i < d.topo.ports_cnt; i++) {
			bool is_switch = d.topo.node[d.topo.port[i].node].type == UR_TOPO_SWITCH;

			if (!r.lid[i])
				continue;
			cr_assert_eq(r.lid[i] % block, 0);
			for (uint32_t k = 0; k < block; k++)
				cr_assert_eq(r.lid_port[r.lid[i] + k],
					     is_switch && k ? UR_TOPO_NONE : i);
		}
		for (uint32_t lid = block; lid <= r.lids; lid++)
			for (uint32_t sw = 0; r.lid_port[lid] != UR_TOPO_NONE && sw < r.switches;
			     sw++) {
				cr_assert(!r.edge[sw] || walk(sw, lid, NULL) >= 0);
				spread += lid % block && r.edge[sw] &&
					  r.lid_port[lid - 1] == r.lid_port[lid] &&
					  port_to(sw, lid) != port_to(sw, lid - 1);
			}
		/* 8 switches have two ports upward; toward 14 of 16 endpoints they have the choice. */
		cr_assert_eq(spread, 8 * 14 * (block - 1), "%u", spread);
		end();
	}
}

/* MGR-LID-03 */
Test(routes, more_lids_than_there_are_are_refused)
{
	drive_start(&d, "fattree:12", &drive_usual);
	drive_run(&d);
	cr_assert(ur_routes_size(&d.topo, 6) && !ur_routes_size(&d.topo, 7));
	drive_end(&d);
}

/* MGR-LID-01 */
Test(routes, a_lid_is_kept_unless_two_have_it)
{
	uint32_t a, b, c;

	drive_start(&d, "fattree:4", &drive_usual);
	drive_run(&d);
	a = ur_routes_lid_port(&d.topo, 5);
	b = ur_routes_lid_port(&d.topo, 6);
	c = ur_routes_lid_port(&d.topo, 7);
	d.topo.port[a].lid = 30;
	d.topo.port[b].lid = 30;
	d.topo.port[c].lid = 31;
	memory = malloc(ur_routes_size(&d.topo, 0));
	ur_routes_init(&r, memory, &d.topo, UR_ROUTES_SHORTEST, 0);
	cr_assert_eq(r.lid[a], 30);
	cr_assert_neq(r.lid[b], 30);
	cr_assert_eq(r.lid[c], 31);
	end();
}

/* Hops from a switch to all others, by a search of its own. */
static void search(uint32_t from, uint32_t *dist)
{
	static uint32_t queue[4096];
	uint32_t head = 0, tail = 0;

	for (uint32_t i = 0; i < r.switches; i++)
		dist[i] = UINT32_MAX;
	dist[from] = 0;
	queue[tail++] = from;
	while (head < tail) {
		uint32_t at = queue[head++], node = r.switch_node[at];

		for (uint8_t p = 1; p <= d.topo.node[node].ports; p++) {
			uint32_t peer = d.topo.port[ur_topo_port_of(&d.topo, node, p)].peer_node;

			if (peer == UR_TOPO_NONE || r.number[peer] == UR_TOPO_NONE ||
			    dist[r.number[peer]] != UINT32_MAX)
				continue;
			dist[r.number[peer]] = dist[at] + 1;
			queue[tail++] = r.number[peer];
		}
	}
}

/* The switch at which a LID is, or to which its endpoint is linked. */
static uint32_t switch_of(uint32_t lid)
{
	const struct ur_topo_port *p = &d.topo.port[r.lid_port[lid]];
	uint32_t node = d.topo.node[p->node].type == UR_TOPO_SWITCH ? p->node : p->peer_node;

	return r.number[node];
}

/* MGR-ROUTE-02 */
Test(routes, shortest_paths_are_the_shortest_and_arrive)
{
	for (unsigned seed = 1; seed <= 40; seed++) {
		uint32_t dist[512];
		char shape[64];

		snprintf(shape, sizeof(shape), "random:%u,%u", 1 + seed, seed);
		compute(shape, UR_ROUTES_SHORTEST);
		for (uint32_t sw = 0; sw < r.switches; sw++) {
			search(sw, dist);
			for (uint32_t lid = 1; lid <= r.lids; lid++) {
				int hops = walk(sw, lid, NULL);

				if (dist[switch_of(lid)] == UINT32_MAX)
					cr_assert_eq(hops, -1);
				else
					cr_assert_eq(hops, (int)dist[switch_of(lid)]);
			}
		}
		end();
	}
}

/* ---- up and down ---- */

static bool went_down;

static void expect_no_turn(uint32_t from, uint32_t port, uint32_t to)
{
	bool up = ur_routes_is_up(&r, from, to);

	cr_assert(!(up && went_down), "up after down");
	went_down = went_down || !up;
}

/* MGR-ROUTE-02 MGR-ROUTE-03 */
Test(routes, up_and_down_paths_arrive_and_never_go_up_again)
{
	for (unsigned seed = 1; seed <= 60; seed++) {
		uint32_t dist[512];
		char shape[64];

		snprintf(shape, sizeof(shape), "random:%u,%u", 1 + seed % 40, seed);
		compute(shape, UR_ROUTES_UPDOWN);
		for (uint32_t sw = 0; sw < r.switches; sw++) {
			search(sw, dist);
			for (uint32_t lid = 1; lid <= r.lids; lid++) {
				int hops;

				went_down = false;
				hops = walk(sw, lid, expect_no_turn);
				if (dist[switch_of(lid)] != UINT32_MAX &&
				    (r.edge[sw] ||
				     d.topo.node[d.topo.port[r.lid_port[lid]].node].type !=
					     UR_TOPO_SWITCH))
					cr_assert_geq(hops, (int)dist[switch_of(lid)],
						      "seed %u: from switch %u to LID %u", seed, sw,
						      lid);
			}
		}
		end();
	}
}

/* Which port waits for which, of all paths: a cycle would be a deadlock of links with credits. */
static bool *waits;
static uint32_t last_port;

static void note_wait(uint32_t from, uint32_t port, uint32_t to)
{
	if (last_port != UR_TOPO_NONE)
		waits[(size_t)last_port * d.topo.ports_cnt + port] = true;
	last_port = port;
}

static bool has_cycle(uint32_t at, uint8_t *state)
{
	if (state[at])
		return state[at] == 1;
	state[at] = 1;
	for (uint32_t i = 0; i < d.topo.ports_cnt; i++)
		if (waits[(size_t)at * d.topo.ports_cnt + i] && has_cycle(i, state))
			return true;
	state[at] = 2;
	return false;
}

static bool can_deadlock(const char *shape, enum ur_routes_mode mode)
{
	uint8_t *state;
	bool found = false;

	compute(shape, mode);
	waits = calloc((size_t)d.topo.ports_cnt * d.topo.ports_cnt, sizeof(*waits));
	state = calloc(d.topo.ports_cnt, 1);
	for (uint32_t sw = 0; sw < r.switches; sw++)
		for (uint32_t lid = 1; lid <= r.lids; lid++) {
			last_port = UR_TOPO_NONE;
			(void)walk(sw, lid, note_wait);
		}
	for (uint32_t i = 0; i < d.topo.ports_cnt && !found; i++)
		found = has_cycle(i, state);
	free(waits);
	free(state);
	end();
	return found;
}

/* MGR-ROUTE-03 */
Test(routes, up_and_down_has_no_cycle_of_waiting_links_where_shortest_has)
{
	cr_assert(can_deadlock("ring:6", UR_ROUTES_SHORTEST), "the check finds a cycle");
	cr_assert(!can_deadlock("ring:6", UR_ROUTES_UPDOWN));
	cr_assert(!can_deadlock("fattree:4", UR_ROUTES_UPDOWN));
	for (unsigned seed = 1; seed <= 10; seed++) {
		char shape[64];

		snprintf(shape, sizeof(shape), "random:15,%u", seed);
		cr_assert(!can_deadlock(shape, UR_ROUTES_UPDOWN));
	}
}

/* MGR-ROUTE-02 */
Test(routes, in_a_fat_tree_both_modes_are_the_shortest_and_share_the_ports)
{
	for (enum ur_routes_mode mode = UR_ROUTES_SHORTEST; mode <= UR_ROUTES_UPDOWN; mode++) {
		uint32_t dist[512];

		compute("fattree:8", mode);
		for (uint32_t sw = 0; sw < r.switches; sw++) {
			search(sw, dist);
			for (uint32_t lid = 1; r.edge[sw] && lid <= r.lids; lid++)
				cr_assert_eq(walk(sw, lid, NULL), (int)dist[switch_of(lid)]);
			/* 208 LIDs, of which 4 are behind ports of its own; 4 ports lead up. */
			for (uint8_t p = 5; r.edge[sw] && p <= 8; p++) {
				uint32_t load =
					r.load[ur_topo_port_of(&d.topo, r.switch_node[sw], p)];

				cr_assert(load >= 45 && load <= 57, "%u of 203 by one of 4 ports",
					  load);
			}
		}
		end();
	}
}
