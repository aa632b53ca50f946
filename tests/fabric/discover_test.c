/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "drive.h"
#include "wire/bytes.h"

/* Discovery of fabrics of real agents, compared with what the fabrics are. */

static struct drive d;

static void discover(const char *shape, const struct drive_attr *attr)
{
	drive_start(&d, shape, attr);
	drive_run(&d);
}

static uint64_t rnd_state;

static uint32_t rnd(uint32_t n)
{
	rnd_state = rnd_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((rnd_state >> 33) * n >> 31);
}

TestSuite(discover, .timeout = 120);

/* MGR-DISC-01 MGR-ROUTE-01 */
Test(discover, known_shapes_are_found_as_they_are)
{
	static const char *const shapes[] = {"line:1",	  "line:20",   "ring:2",   "ring:9",
					     "fattree:2", "fattree:4", "fattree:8"};
	static const uint32_t nodes[] = {3, 22, 4, 18, 7, 36, 208};

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		discover(shapes[i], &drive_usual);
		cr_assert_eq(d.topo.nodes_cnt, nodes[i]);
		drive_compare(&d, NULL);
		cr_assert_eq(d.requests.counters.resent, 0, "nothing is lost here");
		drive_end(&d);
	}
}

/* MGR-DISC-01 MGR-DISC-03 */
Test(discover, random_graphs_are_found_as_they_are)
{
	for (unsigned seed = 1; seed <= 150; seed++) {
		struct drive_attr attr = drive_usual;
		char shape[64];

		attr.window = 1 + seed % 70;
		attr.per_node = 1 + seed % 9;
		snprintf(shape, sizeof(shape), "random:%u,%u", 1 + seed % 40, seed);
		discover(shape, &attr);
		drive_compare(&d, NULL);
		drive_end(&d);
	}
}

Test(discover, links_that_are_down_are_seen_as_down)
{
	for (unsigned seed = 1; seed <= 40; seed++) {
		char shape[64];

		rnd_state = seed;
		snprintf(shape, sizeof(shape), "random:%u,%u", 2 + seed, seed);
		drive_start(&d, shape, &drive_usual);
		for (unsigned i = 0; i < seed; i++) {
			uint32_t n = rnd(ur_fabric_nodes(d.fabric)), peer;
			uint8_t p = (uint8_t)(1 + rnd(ur_fabric_node(d.fabric, n)->ports)), far;

			if (ur_fabric_peer(d.fabric, n, p, &peer, &far))
				ur_fabric_set_link(d.fabric, n, p, false);
		}
		drive_run(&d);
		drive_compare(&d, NULL);
		drive_end(&d);
	}
}

/* ---- defects ---- */

static uint8_t bad_port[4096]; /* of each node; 255: the node is dead */

static bool is_bad(struct drive *drive, uint32_t node, uint8_t port)
{
	(void)drive;
	return port ? bad_port[node] == port : bad_port[node] == 255;
}

static void spoil(unsigned seed, bool kill)
{
	char shape[64];

	rnd_state = seed;
	memset(bad_port, 0, sizeof(bad_port));
	snprintf(shape, sizeof(shape), "random:%u,%u", 3 + seed % 30, seed);
	drive_start(&d, shape, &drive_usual);
	for (unsigned i = 0; i < 1 + seed % 5; i++) {
		uint32_t n = 1 + rnd(ur_fabric_nodes(d.fabric) - 1);

		if (bad_port[n])
			continue;
		bad_port[n] = kill ? 255 : (uint8_t)(1 + rnd(ur_fabric_node(d.fabric, n)->ports));
		if (kill)
			ur_fabric_kill(d.fabric, n);
		else
			ur_fabric_set_loss(d.fabric, n, bad_port[n], 65536);
	}
	drive_run(&d);
	drive_compare(&d, is_bad);
	drive_end(&d);
}

/* A link that carries nothing in one direction; a round trip over it never ends. */
Test(discover, half_dead_links_are_silent_and_the_rest_is_found)
{
	for (unsigned seed = 1; seed <= 40; seed++)
		spoil(seed, false);
}

Test(discover, dead_nodes_are_silent_and_the_rest_is_found)
{
	for (unsigned seed = 1; seed <= 40; seed++)
		spoil(seed, true);
}

Test(discover, loss_on_every_link_changes_nothing_but_the_time)
{
	struct drive_attr attr = drive_usual;

	attr.retries = 30;
	for (unsigned seed = 1; seed <= 10; seed++) {
		char shape[64];

		snprintf(shape, sizeof(shape), "random:12,%u", seed);
		drive_start(&d, shape, &attr);
		for (uint32_t n = 0; n < ur_fabric_nodes(d.fabric); n++)
			for (uint8_t p = 1; p <= ur_fabric_node(d.fabric, n)->ports; p++)
				ur_fabric_set_loss(d.fabric, n, p, 3000);
		drive_run(&d);
		drive_compare(&d, NULL);
		cr_assert(d.requests.counters.resent);
		drive_end(&d);
	}
}

Test(discover, agents_that_answer_late_are_found_and_their_second_answers_ignored)
{
	drive_start(&d, "fattree:4", &drive_usual);
	for (uint32_t n = 1; n < ur_fabric_nodes(d.fabric); n += 3)
		ur_fabric_delay(d.fabric, n, TIMEOUT_NS + TIMEOUT_NS / 2);
	drive_run(&d);
	drive_compare(&d, NULL);
	cr_assert(d.requests.counters.resent);
	cr_assert(d.requests.counters.repeated);
	drive_end(&d);
}

static uint32_t victim;
static uint64_t victim_at;

static void kill_in_the_middle(struct drive *drive)
{
	if (drive->arrived == victim_at)
		ur_fabric_kill(drive->fabric, victim);
}

/* MGR-DISC-05 */
Test(discover, nodes_that_die_in_the_middle_end_no_discovery)
{
	for (unsigned i = 0; i < 60; i++) {
		drive_start(&d, "fattree:4", &drive_usual);
		victim = 1 + i % (ur_fabric_nodes(d.fabric) - 1);
		victim_at = 3 + i * 7;
		d.each_mad = kill_in_the_middle;
		drive_run(&d);
		cr_assert_leq(d.topo.nodes_cnt, 36);
		/* Nothing but what is behind the dead one, by the path that was found, is affected. */
		for (uint32_t n = 0; n < d.topo.nodes_cnt; n++)
			cr_assert(!(d.topo.node[n].faults & (UR_TOPO_DUPLICATE | UR_TOPO_WRONG)));
		drive_end(&d);
	}
}

Test(discover, a_manager_whose_own_agent_is_dead_finds_nothing)
{
	drive_start(&d, "fattree:4", &drive_usual);
	ur_fabric_kill(d.fabric, 0);
	drive_run(&d);
	cr_assert_eq(d.topo.nodes_cnt, 0);
	drive_end(&d);
}

/* ---- two of the same GUID ---- */

/* A square of switches, of which two opposite ones have the same GUID; all four are found, and all links. */
static struct ur_fabric *make_square(uint8_t extra)
{
	struct ur_fabric_attr attr = {.hop_ns = 400, .process_ns = 5000, .seed = 1};
	struct ur_fabric *f = ur_fabric_new(&attr);
	struct ur_fabric_node_attr n = {.ports = 1, .guid = 100, .name = "manager"};

	ur_fabric_add(f, &n);
	for (uint32_t i = 1; i <= 4; i++) {
		n = (struct ur_fabric_node_attr){true, 6, i == 4 ? 202 : 200 + i, ""};
		snprintf(n.name, sizeof(n.name), "switch %u", i);
		ur_fabric_add(f, &n);
	}
	ur_fabric_link(f, 0, 1, 1, 1);
	ur_fabric_link(f, 1, 2, 2, 1);
	ur_fabric_link(f, 2, 2, 3, 1);
	ur_fabric_link(f, 3, 2, 4, extra);
	ur_fabric_link(f, 4, extra == 1 ? 2 : 1, 1, 3);
	return f;
}

/* MGR-DISC-04 */
Test(discover, two_switches_with_one_guid_are_two_and_named_as_duplicates)
{
	for (uint8_t extra = 1; extra <= 6; extra++) {
		uint32_t first, second, links = 0;

		drive_start_on(&d, make_square(extra), &drive_usual);
		drive_run(&d);
		cr_assert_eq(d.topo.nodes_cnt, 5);
		first = ur_topo_find(&d.topo, 202);
		second = ur_topo_find_next(&d.topo, first);
		cr_assert_neq(second, UR_TOPO_NONE);
		cr_assert_eq(ur_topo_find_next(&d.topo, second), UR_TOPO_NONE);
		cr_assert(d.topo.node[first].faults & UR_TOPO_DUPLICATE);
		cr_assert(d.topo.node[second].faults & UR_TOPO_DUPLICATE);
		cr_assert_str_neq(d.topo.node[first].description, d.topo.node[second].description);
		for (uint32_t p = 0; p < d.topo.ports_cnt; p++)
			links += d.topo.port[p].peer_node != UR_TOPO_NONE;
		cr_assert_eq(links, 10, "%u ends of links with %u", links, extra);
		drive_end(&d);
	}
}

/* MGR-DISC-04 */
Test(discover, two_endpoints_with_one_guid_are_two)
{
	struct ur_fabric_attr attr = {.hop_ns = 400, .process_ns = 5000, .seed = 1};
	struct ur_fabric *f = ur_fabric_new(&attr);
	struct ur_fabric_node_attr n = {.ports = 1, .guid = 100, .name = "a"};

	ur_fabric_add(f, &n);
	n = (struct ur_fabric_node_attr){true, 6, 200, "s"};
	ur_fabric_add(f, &n);
	for (uint8_t i = 0; i < 3; i++) {
		n = (struct ur_fabric_node_attr){false, 1, 300, "b"};
		ur_fabric_link(f, ur_fabric_add(f, &n), 1, 1, 2 + i);
	}
	ur_fabric_link(f, 0, 1, 1, 1);
	drive_start_on(&d, f, &drive_usual);
	drive_run(&d);
	cr_assert_eq(d.topo.nodes_cnt, 5);
	for (uint32_t i = ur_topo_find(&d.topo, 300); i != UR_TOPO_NONE;
	     i = ur_topo_find_next(&d.topo, i))
		cr_assert(d.topo.node[i].faults & UR_TOPO_DUPLICATE);
	drive_end(&d);
}

/* ---- liars ---- */

enum lie { LIE_GUID, LIE_PORT, LIE_TYPE, LIE_PORTS, LIE_ANYTHING, LIES };
static enum lie lie;
static uint32_t liar;

static void tell_lies(void *ctx, uint32_t node, uint8_t mad[UR_MAD_BYTES])
{
	uint8_t *data = mad + 64;

	(void)ctx;
	if (node != liar)
		return;
	if (lie == LIE_ANYTHING) {
		for (unsigned i = 0; i < 8; i++)
			data[rnd(64)] = (uint8_t)rnd(256);
		return;
	}
	if (ur_load16(mad + 16) != 0x11)
		return;
	if (lie == LIE_GUID)
		ur_store64(data + 12, UINT64_C(0xbad00000) + rnd(1000000));
	if (lie == LIE_PORT)
		data[36] = (uint8_t)(1 + rnd(data[3]));
	if (lie == LIE_TYPE)
		data[2] = (uint8_t)rnd(5);
	if (lie == LIE_PORTS)
		data[3] = (uint8_t)rnd(256);
}

/* Links between two honest nodes, both of which are known by a path of honest ones. */
static void expect_honest_links(void)
{
	for (uint32_t n = 0; n < d.topo.nodes_cnt; n++) {
		const struct ur_topo_node *node = &d.topo.node[n];
		uint32_t truth = 0, peer;
		uint8_t far;

		while (truth < ur_fabric_nodes(d.fabric) &&
		       ur_fabric_node(d.fabric, truth)->guid != node->guid)
			truth++;
		if (truth == ur_fabric_nodes(d.fabric) || truth == liar || node->faults)
			continue;
		for (uint8_t p = 1; p <= node->ports; p++) {
			const struct ur_topo_port *port =
				&d.topo.port[ur_topo_port_of(&d.topo, n, p)];

			if (!ur_fabric_peer(d.fabric, truth, p, &peer, &far) || peer == liar ||
			    !ur_fabric_node(d.fabric, truth)->is_switch)
				continue;
			cr_assert_neq(port->peer_node, UR_TOPO_NONE);
			cr_assert_eq(d.topo.node[port->peer_node].guid,
				     ur_fabric_node(d.fabric, peer)->guid);
			cr_assert_eq(port->peer_port, far);
		}
	}
}

/* MGR-DISC-02 MGR-DISC-04 */
Test(discover, a_liar_costs_a_bounded_number_of_requests_and_the_honest_are_found)
{
	for (lie = 0; lie < LIES; lie++)
		for (unsigned i = 1; i < 36; i += 2) {
			rnd_state = i;
			liar = i;
			drive_start(&d, "fattree:4", &drive_usual);
			ur_fabric_set_tamper(d.fabric, tell_lies, NULL);
			drive_run(&d);
			cr_assert_lt(d.requests.counters.sent, 20000, "lie %d of %u", lie, i);
			expect_honest_links();
			/*
			 * In this tree there is a way around any one switch, except the manager's own: if that
			 * says it is an endpoint, nothing is beyond.
			 */
			for (uint32_t n = 1; liar != 1 && n < ur_fabric_nodes(d.fabric); n++)
				if (n != liar && ur_fabric_node(d.fabric, n)->is_switch)
					cr_assert_neq(
						ur_topo_find(&d.topo,
							     ur_fabric_node(d.fabric, n)->guid),
						UR_TOPO_NONE, "lie %d of %u hides %u", lie, i, n);
			drive_end(&d);
		}
}

/* MGR-TOPO-01 */
Test(discover, a_fabric_beyond_the_limits_ends_and_says_so)
{
	for (uint32_t nodes = 1; nodes < 40; nodes++) {
		struct drive_attr attr = drive_usual;

		attr.nodes = nodes;
		discover("fattree:4", &attr);
		cr_assert_eq(d.topo.nodes_cnt, nodes < 36 ? nodes : 36);
		cr_assert_eq(d.topo.full, nodes < 36);
		drive_end(&d);
	}
}

static void add_garbage(struct drive *drive)
{
	struct ur_mgr_mad m = {0};

	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < UR_MAD_BYTES; k++)
			m.bytes[k] = (uint8_t)rnd(256);
		if (rnd(2)) {
			m.bytes[3] = 0x81;
			ur_store16(m.bytes + 14, (uint16_t)rnd(64));
		}
		ur_discover_input(&drive->discover, &m, ur_fabric_now(drive->fabric));
	}
}

/* MGR-TID-02 */
Test(discover, forged_responses_change_nothing)
{
	drive_start(&d, "fattree:4", &drive_usual);
	d.each_mad = add_garbage;
	drive_run(&d);
	drive_compare(&d, NULL);
	cr_assert_gt(d.requests.counters.unknown, 1000);
	drive_end(&d);
}

Test(discover, overlapping_requests_save_time)
{
	struct drive_attr attr = drive_usual;
	uint64_t alone, began;

	attr.window = 1;
	drive_start(&d, "fattree:8", &attr);
	began = ur_fabric_now(d.fabric);
	drive_run(&d);
	alone = ur_fabric_now(d.fabric) - began;
	drive_end(&d);
	drive_start(&d, "fattree:8", &drive_usual);
	began = ur_fabric_now(d.fabric);
	drive_run(&d);
	cr_assert_lt(ur_fabric_now(d.fabric) - began, alone / 8);
	drive_end(&d);
}
