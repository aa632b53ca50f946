/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <string.h>

#include "edge/config_attr.h"

static const uint8_t mac[6] = {0x92, 0x52, 0x3c, 0x2a, 0x8b, 0xb1};
static struct ur_config cfg;
static char err[512];

static void load(const char *const *set)
{
	cr_assert_eq(ur_config_load(NULL, &cfg, err, sizeof(err)), 0, "%s", err);
	for (; *set; set++)
		cr_assert_eq(ur_config_set_arg(&cfg, *set, err, sizeof(err)), 0, "%s", err);
}

Test(config_attr, addresses_become_neighbour_attributes)
{
	static const char *const set[] = {"address.ipv4=10.9.0.2/24",
					  "address.ipv6=fd09::2/64",
					  "address.vlan=5",
					  "address.gateway4=10.9.0.1",
					  "address.link_local=yes",
					  "address.neighbor=10.9.0.7=02:00:00:00:00:07",
					  NULL};
	struct ur_gid ll = ur_neigh_link_local(mac), pinned = ur_gid_from_ipv4(0x0a090007);
	struct ur_gid own = ur_gid_from_ipv4(0x0a090002);
	static struct ur_neigh n;
	struct ur_neigh_attr a;
	uint8_t found[6];

	load(set);
	a = ur_neigh_attr_of(&cfg, mac);
	cr_assert_eq(a.addr_cnt, 3);
	cr_assert(ur_gid_eq(&a.addr[0].gid, &own));
	cr_assert_eq(a.addr[0].prefix_len, 24);
	cr_assert_eq(a.addr[1].gid.b[0], 0xfd);
	cr_assert_eq(a.addr[1].prefix_len, 64);
	cr_assert(ur_gid_eq(&a.addr[2].gid, &ll));
	cr_assert(a.has_vlan);
	cr_assert_eq(a.vlan_tci, 5);
	cr_assert(a.has_gateway4);
	cr_assert_not(a.has_gateway6);
	cr_assert_arr_eq(a.mac, mac, 6);
	ur_neigh_open(&n, &a, &cfg, 0);
	cr_assert_eq(ur_neigh_resolve(&n, &pinned, found, 0), 0);
	cr_assert_arr_eq(found, "\x02\0\0\0\0\x07", 6);
	cr_assert_neq(n.out.head, n.out.tail, "it announces its addresses");
}

Test(config_attr, without_addresses_there_are_none)
{
	static const char *const set[] = {"address.link_local=no", NULL};
	struct ur_neigh_attr a;

	load(set);
	a = ur_neigh_attr_of(&cfg, mac);
	cr_assert_eq(a.addr_cnt, 0);
	cr_assert_not(a.has_vlan);
}

Test(config_attr, each_direction_has_its_impairment_and_each_worker_its_part_of_the_link)
{
	static const char *const set[] = {"impair.seed=9",	   "impair.rx_loss=25",
					  "impair.tx_delay_us=3",  "impair.tx_rate_gbps=10",
					  "impair.tx_queue_kb=64", NULL};
	struct ur_impair_config rx, tx;

	load(set);
	rx = ur_impair_config_of(&cfg, false, 4);
	tx = ur_impair_config_of(&cfg, true, 4);
	cr_assert_eq(rx.seed, 9u);
	cr_assert_eq(rx.loss, ur_impair_chance(0.25));
	cr_assert_eq(rx.delay_ns, 0u);
	cr_assert_eq(tx.loss, 0u);
	cr_assert_eq(tx.delay_ns, 3000u);
	cr_assert_float_eq(tx.link_gbps, 2.5, 1e-9);
	cr_assert_eq(tx.link_queue_bytes, 65536u);
	cr_assert_gt(tx.hold_max, rx.hold_max, "a queue of a link holds more");
}

Test(config_attr, limits_of_an_engine)
{
	static const char *const set[] = {"transport.max_qp=100", "transport.window=300",
					  "pacing.mode=none", "admission.mode=plain", NULL};
	static const char *const more[] = {"transport.window=2", "pacing.mode=auto",
					   "pacing.destinations=77", NULL};
	struct ur_engine_attr e;

	load(set);
	e = ur_engine_attr_of(&cfg, 2, 10);
	cr_assert_eq(e.limits.max_qp, 100u);
	cr_assert_eq(e.limits.workers, 2);
	cr_assert_eq(e.limits.reorder_slot_bytes, 1024);
	cr_assert_geq(e.limits.cm.max_ids, 200u, "a connection for each queue pair");
	cr_assert_eq(e.window, 256u, "a power of two, no more than was asked for");
	cr_assert_eq(e.mtu_shift, 10);
	cr_assert_eq(e.limits.destinations, 0u);
	cr_assert_eq(e.limits.admission, 0u);
	load(more);
	e = ur_engine_attr_of(&cfg, 1, 12);
	cr_assert_eq(e.window, 4u);
	cr_assert_eq(e.limits.destinations, 77u);
}
