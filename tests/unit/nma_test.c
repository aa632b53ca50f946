/* SPDX-License-Identifier: BSD-3-Clause */
#include "nma_fabric.h"

/*
 * The agent: directed routes in both directions, repeated requests, queues. The manager is on node 0, an
 * endpoint; nodes 1 to n are switches in a row: port 1 leads back, port 2 onward.
 */
static struct fabric *row(unsigned switches)
{
	struct fabric *f = fabric_new();
	int from = fabric_add(f, false, NULL);

	for (unsigned i = 0; i < switches; i++) {
		int to = fabric_add(f, true, NULL);

		fabric_join(f, from, i ? 2 : 1, to, 1);
		from = to;
	}
	return f;
}

static const uint8_t onward[UR_SMP_HOPS_MAX + 1] = {
	1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
};

/* MGMT-DR-01 */
Test(nma, a_directed_route_reaches_each_of_63_switches_and_comes_back)
{
	struct fabric *f = row(63);

	for (unsigned hops = 0; hops <= 63; hops++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, onward, hops), r;
		struct ur_node_info info;
		unsigned before = f->carried;

		cr_assert(ask(f, 0, &m, 0, &r), "no response over %u hops", hops);
		cr_assert(f->carried - before == 2 * hops);
		cr_assert(ur_load16(r.b + 4) == UR_SMP_DIRECTION);
		cr_assert(r.b[UR_SMP_HOP_POINTER] == 0 && r.b[UR_SMP_HOP_COUNT] == hops);
		for (unsigned i = 1; i <= hops; i++)
			cr_assert(r.b[UR_SMP_RETURN + i] == 1, "hop %u arrived at port %u", i,
				  r.b[UR_SMP_RETURN + i]);
		ur_get_node_info(r.b + UR_SMP_DATA, &info);
		cr_assert(info.node_guid == 0x1000 + hops);
		cr_assert(info.node_type == (hops ? UR_NODE_SWITCH : UR_NODE_CA));
		cr_assert(info.num_ports == (hops ? FABRIC_PORTS : 1));
		cr_assert(info.local_port == 1);
	}
	fabric_free(f);
}

Test(nma, a_directed_route_to_a_port_without_a_link_ends_there)
{
	struct fabric *f = row(3);
	const uint8_t nowhere[][3] = {{1, 3, 1}, {1, 0, 1}, {1, 200, 1}, {2, 1, 1}, {1, 2, 3}};
	struct mad r;

	for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, nowhere[i], 3);

		cr_assert(!ask(f, 0, &m, 0, &r), "route %u went through", i);
	}
	fabric_free(f);
}

/* An endpoint does not forward: the route ends at node 0 of another row. */
Test(nma, an_endpoint_forwards_nothing)
{
	struct fabric *f = fabric_new();
	struct mad m, r;

	fabric_add(f, false, NULL);
	fabric_add(f, false, NULL);
	fabric_join(f, 0, 1, 1, 1);
	m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, onward, 1);
	cr_assert(ask(f, 0, &m, 0, &r));
	m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, (const uint8_t[]){1, 1}, 2);
	cr_assert(!ask(f, 0, &m, 0, &r));
	cr_assert(ur_nma_stats(f->node[1].nma)->malformed == 1);
	fabric_free(f);
}

/* Whatever hop pointer and count say: nothing is written outside of the paths, and nothing is sent twice. */
Test(nma, impossible_hop_pointers_are_discarded)
{
	struct fabric *f = row(2);

	for (unsigned way = UR_MAD_HOP; way <= UR_MAD_LOCAL; way++)
		for (unsigned back = 0; back < 2; back++)
			for (unsigned pointer = 0; pointer < 256; pointer++)
				for (unsigned count = 0; count < 256; count++) {
					struct mad m = new_dr(f, UR_MAD_METHOD_GET,
							      UR_SMP_NODE_INFO, 0, NULL, 0);
					struct ur_nma_from from = {.way = way,
								   .port = way != UR_MAD_LOCAL};
					struct ur_nma_out out;

					m.b[4] = back ? 0x80 : 0;
					m.b[UR_SMP_HOP_POINTER] = (uint8_t)pointer;
					m.b[UR_SMP_HOP_COUNT] = (uint8_t)count;
					memset(m.b + UR_SMP_INITIAL, 2, 128);
					if (ur_nma_input(f->node[1].nma, m.b, &from, f->now) !=
					    UR_DROP_NONE)
						continue;
					cr_assert(count <= UR_SMP_HOPS_MAX &&
						  pointer <= count + 1u);
					while (ur_nma_output(f->node[1].nma, &out, f->now))
						cr_assert(out.mad[UR_SMP_HOP_POINTER] <=
							  count + 1u);
				}
	fabric_free(f);
}

Test(nma, description_and_switch_info_are_the_nodes)
{
	struct fabric *f = row(2);
	struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_DESC, 0, onward, 2), r;
	struct ur_switch_info info;

	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	cr_assert_str_eq((const char *)r.b + UR_SMP_DATA, "node 2");
	m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_SWITCH_INFO, 0, onward, 2);
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	ur_get_switch_info(r.b + UR_SMP_DATA, &info);
	cr_assert(info.linear_fdb_cap == 1024 && info.port_state_change);
	m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_SWITCH_INFO, 0, NULL, 0);
	cr_assert(ask(f, 0, &m, 0, &r));
	cr_assert(status_of(&r) == UR_MAD_STATUS_ATTRIBUTE); /* an endpoint has none */
	fabric_free(f);
}

static struct ur_port_info port_info(struct fabric *f, unsigned hops, uint8_t port)
{
	struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, port, onward, hops), r;
	struct ur_port_info info;

	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	ur_get_port_info(r.b + UR_SMP_DATA, &info);
	return info;
}

/* Returns the status of a Set(PortInfo). */
static uint16_t set_port_info(struct fabric *f, unsigned hops, uint8_t port,
			      const struct ur_port_info *info, uint64_t key)
{
	struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, port, onward, hops), r;

	ur_store64(m.b + UR_SMP_MKEY, key);
	ur_put_port_info(m.b + UR_SMP_DATA, info);
	return ask(f, 0, &m, 0, &r) ? status_of(&r) : 0xffff;
}

Test(nma, port_info_shows_link_and_lanes)
{
	struct fabric *f = row(2);
	struct ur_port_info info = port_info(f, 1, 2);

	cr_assert(info.state == UR_PORT_INIT && info.phys_state == UR_PHYS_LINK_UP);
	cr_assert(info.width_active == 2 && info.speed_active == 1); /* 4x 2.5 Gb/s */
	cr_assert(info.mtu_cap == 5 && info.vl_cap == 5 && info.vl_arb_low_cap == 64);
	cr_assert(info.local_port == 1);
	info = port_info(f, 1, 3);
	cr_assert(info.state == UR_PORT_DOWN && info.phys_state == UR_PHYS_POLLING);
	info = port_info(f, 1, 0);
	cr_assert(info.state == UR_PORT_ACTIVE && info.lid == 0);
	cr_assert(info.capability_mask & UR_PORT_CAP_SL_MAP);
	fabric_free(f);
}

Test(nma, a_port_is_armed_before_it_is_active)
{
	struct fabric *f = row(2);
	struct ur_port_info info = port_info(f, 1, 2);

	info.phys_state = 0;
	info.state = UR_PORT_ACTIVE;
	cr_assert(set_port_info(f, 1, 2, &info, 0) == UR_MAD_STATUS_VALUE);
	info.state = UR_PORT_ARMED;
	cr_assert(set_port_info(f, 1, 2, &info, 0) == 0);
	info.state = UR_PORT_ACTIVE;
	cr_assert(set_port_info(f, 1, 2, &info, 0) == 0);
	cr_assert(port_info(f, 1, 2).state == UR_PORT_ACTIVE);
	f->node[1].down[2] = true;
	ur_nma_link_event(f->node[1].nma, 2, f->now);
	cr_assert(port_info(f, 1, 2).state == UR_PORT_DOWN);
	f->node[1].down[2] = false;
	ur_nma_link_event(f->node[1].nma, 2, f->now);
	cr_assert(port_info(f, 1, 2).state == UR_PORT_INIT);
	info.state = UR_PORT_DOWN;
	info.phys_state = UR_PHYS_DISABLED;
	cr_assert(set_port_info(f, 1, 2, &info, 0) == 0);
	cr_assert(f->node[1].down[2] && port_info(f, 1, 2).phys_state == UR_PHYS_DISABLED);
	info.phys_state = UR_PHYS_POLLING;
	cr_assert(set_port_info(f, 1, 2, &info, 0) == 0);
	cr_assert(!f->node[1].down[2] && port_info(f, 1, 2).state == UR_PORT_INIT);
	fabric_free(f);
}

/* Assigns LIDs 1 + node to all nodes of a row, and routes. */
static void assign_lids(struct fabric *f)
{
	for (unsigned i = 0; i < f->cnt; i++) {
		struct ur_port_info info = port_info(f, i, 0);

		info.lid = (uint16_t)(1 + i);
		info.sm_lid = 1;
		info.state = 0;
		info.phys_state = 0;
		cr_assert(set_port_info(f, i, 0, &info, 0) == 0);
		cr_assert(f->node[i].lid == 1 + i);
		if (i)
			for (unsigned lid = 1; lid <= f->cnt; lid++)
				f->node[i].lft[lid] = lid == 1 + i ? 0 : lid <= i ? 1 : 2;
	}
}

/* REQ: MGMT-TRAP-04: also of a port that management itself disables and enables. */
Test(nma, trap_128_tells_of_a_port_that_is_disabled_and_enabled)
{
	static const uint8_t wanted[] = {UR_PHYS_DISABLED, UR_PHYS_POLLING};
	struct fabric *f = row(2);

	assign_lids(f);
	for (unsigned i = 0; i < 2; i++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 2, onward, 1);
		struct ur_port_info info = port_info(f, 1, 2);
		struct fabric_node *sm = &f->node[0];
		struct ur_notice head;

		info.state = UR_PORT_DOWN;
		info.phys_state = wanted[i];
		ur_put_port_info(m.b + UR_SMP_DATA, &info);
		sm->inbox_cnt = 0;
		send_mad(f, 0, &m, 0);
		fabric_run(f);
		cr_assert(sm->inbox_cnt == 2, "%u instead of a response and a trap", sm->inbox_cnt);
		cr_assert(sm->inbox[0].mad[3] == UR_MAD_METHOD_GET_RESP);
		cr_assert(sm->inbox[1].mad[3] == UR_MAD_METHOD_TRAP);
		ur_get_notice(sm->inbox[1].mad + UR_SMP_DATA, &head);
		cr_assert(head.trap == UR_TRAP_LINK_STATE && head.issuer_lid == 2);
		memcpy(m.b, sm->inbox[1].mad, UR_MAD_BYTES);
		m.b[3] = UR_MAD_METHOD_TRAP_REPRESS;
		send_mad(f, 0, &m, 2);
		fabric_run(f);
	}
	fabric_free(f);
}

Test(nma, a_lid_routed_smp_is_answered_to_its_source)
{
	struct fabric *f = row(3);
	struct ur_node_info info;
	struct mad m, r;

	assign_lids(f);
	for (uint16_t lid = 1; lid <= 4; lid++) {
		m = new_mad(f, UR_MAD_CLASS_SMP_LID, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0);
		cr_assert(ask(f, 0, &m, lid, &r), "LID %u does not answer", lid);
		cr_assert(ur_load16(r.b + 4) == 0);
		ur_get_node_info(r.b + UR_SMP_DATA, &info);
		cr_assert(info.node_guid == 0x1000 + lid - 1u);
	}
	fabric_free(f);
}

/* MGMT-DR-01: LID-routed to node 2, by one hop to node 3, and the same with a last part by LID. */
Test(nma, parts_before_and_after_the_directed_route_are_lid_routed)
{
	struct fabric *f = row(4);
	struct ur_node_info info;
	struct mad m, r;

	assign_lids(f);
	m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, (const uint8_t[]){2}, 1);
	ur_store16(m.b + UR_SMP_DR_SLID, 1);
	cr_assert(ask(f, 0, &m, 3, &r));
	ur_get_node_info(r.b + UR_SMP_DATA, &info);
	cr_assert(info.node_guid == 0x1003);
	m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, onward, 2);
	ur_store16(m.b + UR_SMP_DR_DLID, 5);
	cr_assert(ask(f, 0, &m, 0, &r));
	ur_get_node_info(r.b + UR_SMP_DATA, &info);
	cr_assert(info.node_guid == 0x1004);
	fabric_free(f);
}

/* MGMT-TID-01 */
/* A subnet manager is a client: what it answers goes back along the directed route by which it was asked. */
Test(nma, a_client_answers_along_the_route_of_the_request)
{
	static const uint8_t path[] = {1, 2};
	struct fabric *f = fabric_new();
	int asker = fabric_add(f, false, NULL), middle = fabric_add(f, true, NULL);
	int manager = fabric_add(f, false, NULL);
	struct mad request, answer;
	struct ur_nma_from from = {.way = UR_MAD_LOCAL, .dlid = UR_LID_PERMISSIVE};

	fabric_join(f, asker, 1, middle, 1);
	fabric_join(f, manager, 1, middle, 2);
	fabric_run(f);
	f->node[asker].inbox_cnt = f->node[manager].inbox_cnt = 0;
	ur_nma_set_client(f->node[manager].nma, true, true);
	for (unsigned hops = 0; hops <= 2; hops += 2) {
		int from_node = hops ? asker : manager;

		f->node[manager].inbox_cnt = f->node[asker].inbox_cnt = 0;
		request = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_SM_INFO, 0, path, hops);
		ur_nma_set_client(f->node[asker].nma, true, false);
		ur_nma_input(f->node[from_node].nma, request.b, &from, f->now);
		fabric_run(f);
		cr_assert_eq(f->node[manager].inbox_cnt, 1);
		memcpy(answer.b, f->node[manager].inbox[0].mad, UR_MAD_BYTES);
		answer.b[3] = UR_MAD_METHOD_GET_RESP;
		ur_store16(answer.b + 4, UR_SMP_DIRECTION);
		answer.b[UR_SMP_DATA] = 77;
		cr_assert_eq(ur_nma_input(f->node[manager].nma, answer.b, &from, f->now),
			     UR_DROP_NONE);
		fabric_run(f);
		cr_assert_eq(f->node[from_node].inbox_cnt, hops ? 1 : 2);
		cr_assert_eq(f->node[from_node].inbox[hops ? 0 : 1].mad[UR_SMP_DATA], 77);
	}
	fabric_free(f);
}

Test(nma, a_repeated_request_is_executed_once)
{
	struct fabric *f = row(1);
	uint8_t lft[64];
	struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_LFT, 0, onward, 1), r, again;

	memset(lft, 1, sizeof(lft));
	memcpy(m.b + UR_SMP_DATA, lft, sizeof(lft));
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	cr_assert(f->node[1].writes == 1);
	cr_assert(ask(f, 0, &m, 0, &again));
	cr_assert_arr_eq(r.b, again.b, UR_MAD_BYTES);
	cr_assert(f->node[1].writes == 1, "a repeated request was executed again");
	/* Two copies in the queue at the same time. */
	m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_LFT, 1, onward, 1);
	f->node[0].inbox_cnt = 0;
	send_mad(f, 0, &m, 0);
	send_mad(f, 0, &m, 0);
	fabric_run(f);
	cr_assert(f->node[1].writes == 2);
	cr_assert(ur_nma_stats(f->node[1].nma)->repeated == 2);
	/* The same TransactionID with another content is another request. */
	m.b[UR_SMP_DATA] = 2;
	cr_assert(ask(f, 0, &m, 0, &r));
	cr_assert(f->node[1].writes == 3);
	/* Much later it is a new one. */
	f->now += UINT64_C(60000000000);
	cr_assert(ask(f, 0, &m, 0, &r));
	cr_assert(f->node[1].writes == 4);
	fabric_free(f);
}

/* REQ: MGMT-TID-01 */
Test(nma, gets_take_no_memory_from_sets_and_show_what_is)
{
	struct fabric *f = row(1);
	struct mad set = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_LFT, 0, onward, 1), get, r;

	memset(set.b + UR_SMP_DATA, 1, 64);
	cr_assert(ask(f, 0, &set, 0, &r) && !status_of(&r));
	get = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_LFT, 0, onward, 1);
	for (int i = 0; i < 1000; i++) {
		struct mad other = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_LFT, 1, onward, 1);

		cr_assert(ask(f, 0, &other, 0, &r));
	}
	cr_assert(ask(f, 0, &get, 0, &r) && r.b[UR_SMP_DATA] == 1);
	f->node[1].lft[0] = 2;
	cr_assert(ask(f, 0, &get, 0, &r) && r.b[UR_SMP_DATA] == 2, "what was is shown");
	cr_assert(ask(f, 0, &set, 0, &r));
	cr_assert(f->node[1].writes == 1, "a repeated Set was executed again");
	fabric_free(f);
}

/* REQ: MGMT-TID-01 */
Test(nma, a_node_reads_its_own_attributes_whatever_its_key_is)
{
	struct ur_nma_config config = {.m_key = 5, .protect = 3};
	struct ur_nma_attr attr = fabric_attr(false, 0);
	struct fabric *f = fabric_new();
	uint8_t data[UR_SMP_DATA_BYTES];
	struct ur_node_info info;

	attr.config = config;
	fabric_add(f, false, &attr);
	cr_assert(ur_nma_query(f->node[0].nma, UR_SMP_NODE_INFO, 0, data));
	ur_get_node_info(data, &info);
	cr_assert(info.node_guid == attr.node_guid);
	cr_assert(ur_nma_query(f->node[0].nma, UR_SMP_PORT_INFO, 1, data));
	cr_assert(!ur_nma_query(f->node[0].nma, UR_SMP_SWITCH_INFO, 0, data));
	fabric_free(f);
}

Test(nma, a_full_queue_drops_and_counts)
{
	struct fabric *f = row(1);
	struct ur_nma *nma = f->node[1].nma;
	struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1};
	struct ur_nma_out out;
	unsigned responses = 0;

	for (unsigned i = 0; i < 20; i++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, onward, 1);

		m.b[UR_SMP_HOP_POINTER] = 1;
		cr_assert(ur_nma_input(nma, m.b, &from, f->now) ==
			  (i < 8 ? UR_DROP_NONE : UR_DROP_RESOURCES));
	}
	cr_assert(ur_nma_stats(nma)->full == 12);
	while (ur_nma_output(nma, &out, f->now))
		responses++;
	cr_assert(responses == 8);
	fabric_free(f);
}

/* MGMT-QUEUE-01: a flood of GMPs fills its own queue, and SMPs are served before it. */
Test(nma, smps_do_not_wait_behind_gmps)
{
	struct fabric *f = row(1);
	struct ur_nma *nma = f->node[1].nma;
	struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1, .qpn = 1, .sqpn = 1};
	struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, onward, 1);
	struct ur_nma_out out;
	uint8_t gmp[UR_MAD_BYTES] = {1, UR_MAD_CLASS_PERF, 1, UR_MAD_METHOD_GET};

	ur_store16(gmp + 16, 0x0012);
	for (unsigned i = 0; i < 20; i++) {
		ur_store64(gmp + 8, i + 1);
		cr_assert(ur_nma_input(nma, gmp, &from, f->now) ==
			  (i < 8 ? UR_DROP_NONE : UR_DROP_RESOURCES));
	}
	from.qpn = 0;
	m.b[UR_SMP_HOP_POINTER] = 1;
	cr_assert(ur_nma_input(nma, m.b, &from, f->now) == UR_DROP_NONE);
	cr_assert(ur_nma_output(nma, &out, f->now) && out.mad[1] == UR_MAD_CLASS_SMP_DR);
	for (unsigned i = 0; i < 8; i++)
		cr_assert(ur_nma_output(nma, &out, f->now) && out.mad[1] == UR_MAD_CLASS_PERF &&
			  ur_load64(out.mad + 8) == i + 1);
	cr_assert(!ur_nma_output(nma, &out, f->now));
	ur_nma_validate(nma);
	fabric_free(f);
}

Test(nma, unsolicited_responses_and_unknown_classes_are_counted_without_a_client)
{
	struct fabric *f = row(1);
	struct ur_nma_from from = {.way = UR_MAD_IP, .port = 1, .qpn = 1};
	struct mad m;

	fabric_run(f);
	m = new_mad(f, 0x03, 0x06, 0x35, 0); /* Report: the agent answers none */
	cr_assert(ur_nma_input(f->node[1].nma, m.b, &from, f->now) == UR_DROP_UNEXPECTED);
	from.qpn = 0;
	cr_assert(ur_nma_input(f->node[1].nma, m.b, &from, f->now) == UR_DROP_MAD);
	m = new_mad(f, UR_MAD_CLASS_SMP_LID, UR_MAD_METHOD_GET_RESP, UR_SMP_NODE_INFO, 0);
	cr_assert(ur_nma_input(f->node[1].nma, m.b, &from, f->now) == UR_DROP_UNEXPECTED);
	m.b[0] = 2;
	cr_assert(ur_nma_input(f->node[1].nma, m.b, &from, f->now) == UR_DROP_MAD);
	cr_assert(!ur_nma_wants_output(f->node[1].nma));
	fabric_free(f);
}

/* REQ: MGMT-STATUS-01 */
Test(nma, a_class_or_method_that_nothing_serves_has_its_status)
{
	static const uint8_t methods[] = {
		UR_MAD_METHOD_GET, UR_MAD_METHOD_SET, 0x12, 0x13, 0x14, 0x15};
	struct fabric *f = row(1);
	struct mad m, r;

	for (unsigned i = 0; i < sizeof(methods); i++) {
		/* Of the subnet's administration, by LID. */
		struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1, .qpn = 1, .sqpn = 1};
		struct ur_nma_out out;

		m = new_mad(f, 0x03, methods[i], 0x35, 0);
		cr_assert(ur_nma_input(f->node[1].nma, m.b, &from, f->now) == UR_DROP_NONE);
		cr_assert(ur_nma_output(f->node[1].nma, &out, f->now));
		cr_assert(ur_load16(out.mad + 4) == UR_MAD_STATUS_BAD_VERSION);
		cr_assert(out.mad[3] ==
			  (methods[i] == UR_MAD_METHOD_SET ? 0x81 : methods[i] | 0x80));
		m = new_mad(f, UR_MAD_CLASS_PERF, methods[i], 0x7777, 0);
		cr_assert(ur_nma_input(f->node[1].nma, m.b, &from, f->now) == UR_DROP_NONE);
		cr_assert(ur_nma_output(f->node[1].nma, &out, f->now));
		cr_assert(ur_load16(out.mad + 4) ==
			  (i < 2 ? UR_MAD_STATUS_ATTRIBUTE : UR_MAD_STATUS_METHOD));
	}
	/* A client may serve it. */
	ur_nma_set_client(f->node[1].nma, true, false);
	m = new_dr(f, 0x12, UR_SMP_NODE_INFO, 0, onward, 1);
	cr_assert(!ask(f, 0, &m, 0, &r));
	fabric_free(f);
}

Test(nma, an_unknown_attribute_or_version_has_its_status)
{
	struct fabric *f = row(1);
	struct mad m = new_dr(f, UR_MAD_METHOD_GET, 0x7777, 0, onward, 1), r;

	cr_assert(ask(f, 0, &m, 0, &r));
	cr_assert(status_of(&r) == UR_MAD_STATUS_ATTRIBUTE);
	m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_NODE_INFO, 0, onward, 1);
	cr_assert(ask(f, 0, &m, 0, &r));
	cr_assert(status_of(&r) == UR_MAD_STATUS_ATTRIBUTE);
	m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, onward, 1);
	m.b[2] = 9;
	cr_assert(ask(f, 0, &m, 0, &r));
	cr_assert(status_of(&r) == UR_MAD_STATUS_BAD_VERSION);
	fabric_free(f);
}

/* ---- keys: MGMT-KEY-01, MGMT-KEY-02, MGMT-KEY-03 ---- */

#define KEY UINT64_C(0x1122334455667788)

static void set_key(struct fabric *f, uint8_t protect, uint16_t lease)
{
	struct ur_port_info info = port_info(f, 1, 0);

	info.m_key = KEY;
	info.m_key_protect = protect;
	info.m_key_lease = lease;
	info.state = 0;
	cr_assert(set_port_info(f, 1, 0, &info, 0) == 0);
}

Test(nma, a_set_without_the_key_gets_no_response_and_does_nothing)
{
	struct fabric *f = row(1);
	struct mad m, r;

	set_key(f, 1, 0);
	m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_LFT, 0, onward, 1);
	cr_assert(!ask(f, 0, &m, 0, &r));
	cr_assert(f->node[1].writes == 0);
	cr_assert(port_info(f, 1, 0).m_key_violations == 1);
	cr_assert(ur_nma_stats(f->node[1].nma)->bad_key == 1);
	ur_store64(m.b + UR_SMP_MKEY, KEY);
	cr_assert(ask(f, 0, &m, 0, &r) && f->node[1].writes == 1);
	fabric_free(f);
}

Test(nma, protect_bits_decide_what_is_read_without_the_key)
{
	static const struct {
		uint8_t protect;
		bool reads, shows;
	} is[] = {{0, true, true}, {1, true, false}, {2, false, false}, {3, false, false}};

	for (unsigned i = 0; i < 4; i++) {
		struct fabric *f = row(1);
		struct mad m, r;
		struct ur_port_info info;

		set_key(f, is[i].protect, 0);
		m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, 0, onward, 1);
		cr_assert(ask(f, 0, &m, 0, &r) == is[i].reads, "protect %u", i);
		ur_get_port_info(r.b + UR_SMP_DATA, &info);
		if (is[i].reads)
			cr_assert((info.m_key == KEY) == is[i].shows, "protect %u", i);
		ur_store64(m.b + UR_SMP_MKEY, KEY);
		cr_assert(ask(f, 0, &m, 0, &r));
		ur_get_port_info(r.b + UR_SMP_DATA, &info);
		cr_assert(info.m_key == KEY);
		fabric_free(f);
	}
}

/* MGMT-KEY-02: the subnet manager takes the key from the response to its Set. */
Test(nma, a_set_of_the_key_shows_the_key)
{
	struct fabric *f = row(1);
	struct ur_port_info info = port_info(f, 1, 0);
	struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 0, onward, 1), r;

	info.m_key = KEY;
	info.m_key_protect = 1;
	info.lid = 5;
	info.sm_lid = 1;
	info.state = UR_PORT_NOP;
	info.phys_state = UR_PHYS_NOP;
	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	cr_assert(ask(f, 0, &m, 0, &r) && status_of(&r) == 0);
	ur_get_port_info(r.b + UR_SMP_DATA, &info);
	cr_assert(info.m_key == KEY);
	fabric_free(f);
}
Test(nma, a_lease_that_runs_out_takes_the_protection_and_a_valid_key_stops_it)
{
	struct fabric *f = row(1);
	struct mad bad, good, r;

	set_key(f, 2, 10);
	bad = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, onward, 1);
	cr_assert(!ask(f, 0, &bad, 0, &r)); /* starts the lease */
	f->now += UINT64_C(9000000000);
	good = bad;
	ur_store64(good.b + UR_SMP_MKEY, KEY);
	cr_assert(ask(f, 0, &good, 0, &r)); /* stops it */
	cr_assert(ur_nma_next_deadline(f->node[1].nma) == UINT64_MAX);
	f->now += UINT64_C(20000000000);
	cr_assert(!ask(f, 0, &bad, 0, &r)); /* starts it again */
	fabric_sleep(f, UINT64_C(9999999999));
	cr_assert(!ask(f, 0, &bad, 0, &r));
	fabric_sleep(f, 1);
	cr_assert(ask(f, 0, &bad, 0, &r));
	cr_assert(port_info(f, 1, 0).m_key_protect == 0);
	fabric_free(f);
}

/* A notice that is due waits for output; expire could do nothing about it. */
Test(nma, a_deadline_is_never_what_waits_for_output)
{
	struct fabric *f = row(1);
	struct ur_nma *nma = f->node[1].nma;

	f->node[1].down[1] = true;
	ur_nma_link_event(nma, 1, f->now);
	cr_assert(ur_nma_wants_output(nma));
	cr_assert(ur_nma_next_deadline(nma) == UINT64_MAX);
	fabric_run(f);
	cr_assert(!ur_nma_wants_output(nma));
	fabric_free(f);
}
