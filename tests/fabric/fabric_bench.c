/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/shape.h"
#include "manager/build.h"
#include "manager/discover.h"
#include "mgmt/registers.h"
#include "wire/smp.h"
#include "wire/vendor.h"

/*
 * What management takes in a model of a fabric, under virtual time, as JSON. For benchmarks/management.py.
 *
 *   fabric_bench read HOPS            registers at 0 to HOPS hops: one, two, a write; ns each
 *   fabric_bench discover SHAPE WINDOW DATA_NS
 *   fabric_bench neighbours SHAPE     each switch asked for its neighbours by registers, one request after the other
 *   fabric_bench scan SHAPE WINDOW [PPM]   each port of each switch asked once; requests take that share of the manager's link
 *   fabric_bench fault                from a link that goes down to the report
 */

#define TIMEOUT_NS UINT64_C(100000000)
#define TURNS	   100
#define LINK_GBPS  112
#define MAD_BITS   (342 * 8)
#define MAD_NS	   24	    /* a MAD on a link */
#define SETTLE_NS  10000000 /* agents ask their neighbours */

static struct ur_fabric *fabric;
static struct ur_topo topo;
static struct ur_requests requests;

_Noreturn static void give_up(const char *why)
{
	fprintf(stderr, "fabric_bench: %s\n", why);
	exit(1);
}

static void *must(void *memory)
{
	if (!memory)
		give_up("there is no memory");
	return memory;
}

static uint64_t now(void)
{
	return ur_fabric_now(fabric);
}

static void start(const char *shape, uint32_t window, uint64_t data_ns)
{
	struct ur_fabric_attr attr = {.hop_ns = UR_FABRIC_PAPER_HOP_NS,
				      .mad_ns = MAD_NS,
				      .process_ns = UR_FABRIC_PAPER_PROCESS_NS,
				      .data_ns = data_ns,
				      .seed = 1};
	struct ur_requests_attr ra = {.window = window ? window : 1024,
				      .start = window ? 0 : 64,
				      .retries = 3,
				      .timeout_ns = TIMEOUT_NS,
				      .seed = 1};
	struct ur_topo_limits limits = {40000, 500000};
	char err[256];

	fabric = ur_fabric_of_shape(shape, &attr, err, sizeof(err));
	if (!fabric)
		give_up(err);
	ur_fabric_start(fabric);
	ur_fabric_attach(fabric, 0);
	(void)ur_fabric_run(fabric, SETTLE_NS);
	ur_topo_init(&topo, must(malloc(ur_topo_size(&limits))), &limits);
	ur_requests_init(&requests, must(malloc(ur_requests_size(ra.window))), &ra);
}

static void discover(void)
{
	struct ur_discover_attr attr = {.per_node = 4};
	struct ur_discover d;
	struct ur_mgr_mad m;

	ur_discover_init(&d, &attr, &topo, &requests);
	while (!ur_discover_done(&d)) {
		while (ur_discover_output(&d, now(), &m))
			ur_fabric_send(fabric, 0, m.lid, m.bytes);
		if (ur_fabric_run(fabric, ur_discover_next_deadline(&d)))
			while (ur_fabric_receive(fabric, 0, &m.lid, m.bytes))
				ur_discover_input(&d, &m, now());
		ur_discover_expire(&d, now());
	}
}

/* Posts a request and waits until less than `window` are open. */
static void ask(const struct ur_mgr_mad *mad, uint32_t window)
{
	struct ur_mgr_answer answer;
	struct ur_mgr_mad m;

	(void)ur_requests_post(&requests, mad, 0, now());
	while (ur_requests_output(&requests, now(), &m))
		ur_fabric_send(fabric, 0, m.lid, m.bytes);
	while (requests.open >= window) {
		if (ur_fabric_run(fabric, ur_requests_next_deadline(&requests)))
			while (ur_fabric_receive(fabric, 0, &m.lid, m.bytes))
				(void)ur_requests_input(&requests, &m, now(), &answer);
		if (ur_requests_expire(&requests, now(), &answer))
			give_up("a request was not answered");
	}
}

static void make(struct ur_mgr_mad *mad, uint32_t node, uint8_t method, uint16_t attr, uint32_t mod)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&topo, node, path);

	ur_mgr_directed(mad, method, attr, mod, path, hops);
}

static void make_registers(struct ur_mgr_mad *mad, uint32_t node, uint8_t method, uint8_t cnt,
			   uint16_t first, uint16_t second)
{
	struct ur_registers r = {.count = cnt, .address0 = first, .address1 = second};

	make(mad, node, method, UR_SMP_REGISTERS, 0);
	ur_put_registers(mad->bytes + UR_SMP_DATA, &r);
}

/* ---- read ---- */

static double read_ns(uint32_t node, uint8_t method, uint8_t cnt)
{
	uint16_t scratch = ur_register_address(UR_NODE_SCRATCH, 0);
	uint64_t began = now();
	struct ur_mgr_mad mad;

	for (unsigned i = 0; i < TURNS; i++) {
		make_registers(&mad, node, method, cnt, scratch,
			       ur_register_address(UR_NODE_LOAD, 0));
		ask(&mad, 1);
	}
	return (double)(now() - began) / TURNS;
}

static void bench_read(unsigned hops_max)
{
	char shape[32];

	snprintf(shape, sizeof(shape), "line:%u", hops_max + 1);
	start(shape, 16, 0);
	discover();
	printf("{\"hops\": [");
	for (uint32_t i = 0; i < topo.nodes_cnt; i++) {
		const struct ur_topo_node *n = &topo.node[i];

		if (n->type != UR_TOPO_SWITCH)
			continue;
		printf("%s{\"hops\": %u, \"read_ns\": %.1f, \"read_two_ns\": %.1f, \"write_ns\": %.1f}",
		       n->hops > 1 ? ", " : "", n->hops - 1u, read_ns(i, UR_MAD_METHOD_GET, 1),
		       read_ns(i, UR_MAD_METHOD_GET, 2), read_ns(i, UR_MAD_METHOD_SET, 1));
	}
	printf("]}\n");
}

/* ---- discover ---- */

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void bench_discover(const char *shape, uint32_t window, uint64_t data_ns)
{
	struct ur_fabric_load before, after;
	uint64_t began, links = 0, switches = 0;
	double cpu, wall;

	start(shape, window, data_ns);
	ur_fabric_load(fabric, &before);
	began = now();
	cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	wall = clock_s(CLOCK_MONOTONIC);
	discover();
	cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = clock_s(CLOCK_MONOTONIC) - wall;
	ur_fabric_load(fabric, &after);
	for (uint32_t i = 0; i < topo.nodes_cnt; i++)
		switches += topo.node[i].type == UR_TOPO_SWITCH;
	for (uint32_t i = 0; i < topo.ports_cnt; i++)
		links += topo.port[i].peer_node != UR_TOPO_NONE;
	printf("{\"nodes\": %u, \"switches\": %llu, \"link_ends\": %llu, \"requests\": %llu, "
	       "\"resent\": %llu, \"time_ms\": %.6f, \"cpu_s\": %.3f, \"wall_s\": %.3f, \"mads\": %llu, \"first_link_mads\": %llu}\n",
	       topo.nodes_cnt, (unsigned long long)switches, (unsigned long long)links,
	       (unsigned long long)requests.counters.sent,
	       (unsigned long long)requests.counters.resent, (double)(now() - began) / 1e6, cpu,
	       wall, (unsigned long long)(after.mads - before.mads),
	       (unsigned long long)(after.first - before.first));
}

/* ---- scans ---- */

/* Two registers for each port, its neighbour's GUID and port: one request. `two`: those of two ports' GUIDs together. */
static void bench_neighbours(const char *shape)
{
	uint64_t began, asked = 0, hops = 0, switches = 0;
	struct ur_mgr_mad mad;

	start(shape, 64, 0);
	discover();
	began = now();
	for (uint32_t i = 0; i < topo.nodes_cnt; i++) {
		const struct ur_topo_node *n = &topo.node[i];

		if (n->type != UR_TOPO_SWITCH)
			continue;
		switches++;
		/* The paper reads one register a port, 24 in 12 requests. */
		for (unsigned p = 1; p + 1u <= n->ports; p += 2, asked++) {
			make_registers(
				&mad, i, UR_MAD_METHOD_GET, 2,
				ur_register_address(UR_PORT_NEIGHBOUR_PORT, (uint8_t)p),
				ur_register_address(UR_PORT_NEIGHBOUR_PORT, (uint8_t)(p + 1)));
			ask(&mad, 1);
			hops += n->hops;
		}
	}
	printf("{\"switches\": %llu, \"requests\": %llu, \"time_ms\": %.6f, \"mean_hops\": %.4f}\n",
	       (unsigned long long)switches, (unsigned long long)asked,
	       (double)(now() - began) / 1e6, (double)hops / (double)asked);
}

/* Takes what arrives until then. */
static void wait_until(uint64_t at_ns)
{
	struct ur_mgr_answer answer;
	struct ur_mgr_mad m;

	while (now() < at_ns)
		if (ur_fabric_run(fabric, at_ns))
			while (ur_fabric_receive(fabric, 0, &m.lid, m.bytes))
				(void)ur_requests_input(&requests, &m, now(), &answer);
}

/* `ppm`: 0: no limit. */
static void bench_scan(const char *shape, uint32_t window, uint32_t ppm)
{
	uint64_t next_ns, pace_ns = ppm ? UINT64_C(1000000) * MAD_BITS / LINK_GBPS / ppm + 1 : 0;
	struct ur_fabric_load before, after;
	uint64_t began, asked = 0;
	struct ur_mgr_mad mad;

	start(shape, window < 64 ? 64 : window, 0);
	discover();
	ur_fabric_load(fabric, &before);
	began = next_ns = now();
	for (uint32_t i = 0; i < topo.nodes_cnt; i++)
		for (uint8_t p = 1; topo.node[i].type == UR_TOPO_SWITCH && p <= topo.node[i].ports;
		     p++, asked++, next_ns += pace_ns) {
			wait_until(next_ns);
			make(&mad, i, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, p);
			ask(&mad, window);
		}
	ur_fabric_load(fabric, &after);
	printf("{\"requests\": %llu, \"time_ms\": %.6f, \"first_link_mads\": %llu}\n",
	       (unsigned long long)asked, (double)(now() - began) / 1e6,
	       (unsigned long long)(after.first - before.first));
}

/* ---- faults ---- */

static bool is_report(const struct ur_mgr_mad *m)
{
	return m->bytes[3] == UR_MAD_METHOD_TRAP && ur_load16(m->bytes + 16) == UR_SMP_NOTICE;
}

static void bench_fault(void)
{
	struct ur_registers r = {.count = 2, .value0 = 1, .value1 = UINT32_MAX};
	uint32_t node = 0, truth = 0;
	uint64_t began, trip;
	struct ur_mgr_mad m;
	struct ur_fault fault;

	start("fattree:4", 16, 0);
	discover();
	while (strcmp(topo.node[node].description, "edge 3.1") != 0)
		node++;
	while (strcmp(ur_fabric_node(fabric, truth)->name, "edge 3.1") != 0)
		truth++;
	r.address0 = ur_register_address(UR_NODE_FAULT_HERE, 0);
	r.address1 = ur_register_address(UR_NODE_FAULT_ENABLE, 0);
	make(&m, node, UR_MAD_METHOD_SET, UR_SMP_REGISTERS, 0);
	ur_put_registers(m.bytes + UR_SMP_DATA, &r);
	began = now();
	ask(&m, 1);
	trip = now() - began;
	began = now();
	ur_fabric_set_link(fabric, truth, 2, false); /* a host's */
	do {
		if (!ur_fabric_run(fabric, began + TIMEOUT_NS))
			give_up("no report came");
		(void)ur_fabric_receive(fabric, 0, &m.lid, m.bytes);
	} while (!is_report(&m));
	ur_get_fault(m.bytes + UR_SMP_DATA + UR_NOTICE_DETAILS, &fault);
	printf("{\"report_ns\": %llu, \"round_trip_ns\": %llu, \"cause\": %u, \"port\": %u, \"right_node\": %s}\n",
	       (unsigned long long)(now() - began), (unsigned long long)trip, fault.cause,
	       fault.port, fault.node_guid == topo.node[node].guid ? "true" : "false");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "read") && argc == 3)
		bench_read((unsigned)atoi(argv[2]));
	else if (!strcmp(what, "discover") && argc == 5)
		bench_discover(argv[2], (uint32_t)atoi(argv[3]), (uint64_t)atoi(argv[4]));
	else if (!strcmp(what, "neighbours") && argc == 3)
		bench_neighbours(argv[2]);
	else if (!strcmp(what, "scan") && (argc == 4 || argc == 5))
		bench_scan(argv[2], (uint32_t)atoi(argv[3]),
			   argc == 5 ? (uint32_t)atoi(argv[4]) : 0);
	else if (!strcmp(what, "fault") && argc == 2)
		bench_fault();
	else
		give_up("read HOPS | discover SHAPE WINDOW DATA_NS | neighbours SHAPE | scan SHAPE WINDOW [PPM] | fault");
	return 0;
}
