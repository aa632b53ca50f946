/* SPDX-License-Identifier: BSD-3-Clause */
#include "nma_fabric.h"

#include "wire/perf.h"

/* PerfMgt: MGMT-PERF-01, MGMT-PERF-02. The manager is on node 0 (LID 1), the switch is node 1 (LID 2). */
static struct fabric *pair(void)
{
	struct fabric *f = fabric_new();

	fabric_add(f, false, NULL);
	fabric_add(f, true, NULL);
	fabric_join(f, 0, 1, 1, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 0,
				      (const uint8_t[]){1}, i),
			   r;
		struct ur_port_info info = {.lid = (uint16_t)(1 + i), .sm_lid = 1};

		ur_put_port_info(m.b + UR_SMP_DATA, &info);
		cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	}
	f->node[1].lft[1] = 1;
	return f;
}

static struct ur_port_counters counters(struct fabric *f, uint8_t port)
{
	struct mad m = new_mad(f, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, UR_PERF_PORT_COUNTERS, 0);
	struct ur_port_counters a = {.port_select = port};
	struct mad r;

	ur_put_port_counters(m.b + UR_GMP_DATA, &a);
	cr_assert(ask(f, 0, &m, 2, &r) && !status_of(&r));
	ur_get_port_counters(r.b + UR_GMP_DATA, &a);
	return a;
}

static struct ur_port_counters_ext counters_ext(struct fabric *f, uint8_t port)
{
	struct mad m =
		new_mad(f, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, UR_PERF_PORT_COUNTERS_EXT, 0);
	struct ur_port_counters_ext a = {.port_select = port};
	struct mad r;

	ur_put_port_counters_ext(m.b + UR_GMP_DATA, &a);
	cr_assert(ask(f, 0, &m, 2, &r) && !status_of(&r));
	ur_get_port_counters_ext(r.b + UR_GMP_DATA, &a);
	return a;
}

static void reset(struct fabric *f, uint16_t attr, uint8_t port, uint16_t select, uint8_t select2)
{
	struct mad m = new_mad(f, UR_MAD_CLASS_PERF, UR_MAD_METHOD_SET, attr, 0), r;
	struct ur_port_counters a = {
		.port_select = port, .counter_select = select, .counter_select2 = select2};

	ur_put_port_counters(m.b + UR_GMP_DATA, &a);
	if (attr == UR_PERF_PORT_COUNTERS_EXT)
		m.b[UR_GMP_DATA + 18] = 0; /* reserved there */
	cr_assert(ask(f, 0, &m, 2, &r) && !status_of(&r));
}

Test(nma_perf, class_port_info_names_what_the_agent_has)
{
	struct fabric *f = pair();
	struct mad m = new_mad(f, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, UR_CLASS_PORT_INFO, 0), r;
	struct ur_class_port_info info;

	cr_assert(ask(f, 0, &m, 2, &r) && !status_of(&r));
	ur_get_class_port_info(r.b + UR_GMP_DATA, &info);
	cr_assert(info.base_version == 1 && info.class_version == 1);
	cr_assert(info.capability_mask ==
		  (UR_PERF_CAP_ALL_PORTS | UR_PERF_CAP_EXT_WIDTH | UR_PERF_CAP_XMIT_WAIT));
	fabric_free(f);
}

Test(nma_perf, counters_stop_at_their_largest_value_and_data_counts_four_bytes)
{
	struct fabric *f = pair();
	struct ur_nma_counters *c = &f->node[1].counters[2];
	struct ur_port_counters a;
	struct ur_port_counters_ext e;

	*c = (struct ur_nma_counters){.tx_bytes = 4003,
				      .rx_bytes = UINT64_C(1) << 40,
				      .tx_packets = 9,
				      .tx_multicast = 2,
				      .rx_errors = 70000,
				      .link_downed = 255,
				      .symbol_errors = 16,
				      .tx_wait = 5};
	a = counters(f, 2);
	cr_assert(a.xmit_data == 1000 && a.rcv_data == UINT32_MAX && a.xmit_packets == 9);
	cr_assert(a.rcv_errors == 65535 && a.link_downed == 255 && a.symbol_errors == 16);
	cr_assert(a.xmit_wait == 5 && a.port_select == 2);
	e = counters_ext(f, 2);
	cr_assert(e.xmit_data == 1000 && e.rcv_data == UINT64_C(1) << 38);
	cr_assert(e.unicast_xmit_packets == 7 && e.multicast_xmit_packets == 2);
	cr_assert(counters(f, 1).xmit_data == 0);
	fabric_free(f);
}

Test(nma_perf, a_set_resets_the_selected_counters_only)
{
	struct fabric *f = pair();
	struct ur_nma_counters *c = &f->node[1].counters[2];
	struct ur_port_counters a;

	*c = (struct ur_nma_counters){
		.rx_errors = 10, .tx_packets = 20, .tx_wait = 30, .tx_bytes = 40};
	reset(f, UR_PERF_PORT_COUNTERS, 2, 1u << 3, 1);
	c->rx_errors += 2;
	a = counters(f, 2);
	cr_assert(a.rcv_errors == 2 && a.xmit_packets == 20 && a.xmit_wait == 0);
	cr_assert(counters_ext(f, 2).xmit_packets == 20);
	reset(f, UR_PERF_PORT_COUNTERS_EXT, 2, 0xff, 0);
	cr_assert(counters_ext(f, 2).xmit_packets == 0);
	cr_assert(counters(f, 2).xmit_packets == 20, "the two attributes are reset apart");
	cr_assert(c->rx_errors == 12, "the node's own counters stay");
	fabric_free(f);
}

Test(nma_perf, all_ports_are_summed_and_reset_together)
{
	struct fabric *f = pair();

	for (unsigned p = 1; p <= FABRIC_PORTS; p++)
		f->node[1].counters[p].rx_packets = p;
	cr_assert(counters(f, 0xff).rcv_packets == 10);
	reset(f, UR_PERF_PORT_COUNTERS, 0xff, 0xffff, 0xff);
	f->node[1].counters[3].rx_packets += 5;
	cr_assert(counters(f, 0xff).rcv_packets == 5 && counters(f, 3).rcv_packets == 5);
	fabric_free(f);
}

Test(nma_perf, an_unknown_port_or_attribute_is_refused)
{
	struct fabric *f = pair();
	struct mad m = new_mad(f, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, UR_PERF_PORT_COUNTERS, 0),
		   r;

	m.b[UR_GMP_DATA + 1] = FABRIC_PORTS + 1;
	cr_assert(ask(f, 0, &m, 2, &r) && status_of(&r) == UR_MAD_STATUS_VALUE);
	m = new_mad(f, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, 0x0036, 0);
	cr_assert(ask(f, 0, &m, 2, &r) && status_of(&r) == UR_MAD_STATUS_ATTRIBUTE);
	fabric_free(f);
}
