/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>

#include "manager/discover.h"
#include "mgmt/registers.h"
#include "rings.h"

/*
 * What management takes in real time, on switches joined by rings (rings.h). Prints JSON. For benchmarks/management.py.
 *
 *   ring_bench read SWITCHES TURNS   a register, two, a write by directed route, a register by LID, and a frame that a host behind
 *                                    the same switch returns; medians, ns
 *   ring_bench e2prom TURNS          bytes of an E2PROM, and registers of the same node meanwhile
 *   ring_bench fault TURNS           link down, burst of errors, hot: from the node's notice to the report here, beside a round trip
 *   ring_bench discover SHAPE TURNS [MADS...]   a whole fabric (lib/fabric/shape.h): idle, and for each MADS with data on all links,
 *                                    of which a frame is moved for that many MADs
 */
#define MANAGER_LID 100
#define TIMEOUT_NS  UINT64_C(2000000000)
#define SCAN_NS	    UINT64_C(1000000)
#define ERRORS	    2000
#define WINDOW	    64
#define DATA_EACH   32 /* frames of data for each direction of a link */
#define SHARES_MAX  8
#define SWITCHES    40 /* of a row, at most: a directed route has 63 hops */

static struct ur_nma_out answer;
static bool answered;
static uint64_t tid, job; /* job: a request that is answered late */
static bool job_done;

static void take(const struct ur_nma_out *out)
{
	answer = *out;
	answered = true;
	job_done = job_done || ur_load64(out->mad + 8) == job;
}

/* ---- requests ---- */

static void make(struct ur_mgr_mad *m, unsigned n, uint8_t method, uint16_t attr)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1] = {0, 1};

	for (unsigned i = 0; i < n; i++)
		path[i + 2] = 2;
	ur_mgr_directed(m, method, attr, 0, path, (uint8_t)(n + 1));
	ur_store64(m->bytes + 8, ++tid);
}

static void make_registers(struct ur_mgr_mad *m, unsigned n, uint8_t method, uint8_t cnt)
{
	struct ur_registers r = {.count = cnt,
				 .address0 = ur_register_address(UR_NODE_SCRATCH, 0),
				 .address1 = ur_register_address(UR_NODE_LOAD, 0)};

	make(m, n, method, UR_SMP_REGISTERS);
	ur_put_registers(m->bytes + UR_SMP_DATA, &r);
}

/* Sends, and waits for the response; ns. */
static uint64_t ask(const struct ur_mgr_mad *m)
{
	uint64_t began = rings_now();

	answered = false;
	rings_send(m);
	rings_run();
	while (!answered || ur_load64(answer.mad + 8) != ur_load64(m->bytes + 8) ||
	       answer.mad[3] != UR_MAD_METHOD_GET_RESP) {
		answered = false;
		if (rings_now() - began > TIMEOUT_NS)
			rings_give_up("a request was not answered");
		rings_look_at_clocks();
	}
	if (ur_load16(answer.mad + 4) & (uint16_t)~UR_SMP_DIRECTION)
		rings_give_up("a request was refused");
	return rings_now() - began;
}

static uint64_t ask_echo(unsigned n)
{
	uint64_t began = rings_now();

	rings_echoed = false;
	rings_send_echo(n);
	rings_run();
	if (!rings_echoed)
		rings_give_up("a frame was not returned");
	return rings_now() - began;
}

/* Room for that many figures, until the end. */
static double *values(unsigned cnt)
{
	static double *all[SWITCHES * 8];
	static unsigned used;

	if (!cnt) {
		while (used)
			free(all[--used]);
		return NULL;
	}
	return all[used++] = rings_must(calloc(cnt, sizeof(double)));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, unsigned cnt)
{
	qsort(v, cnt, sizeof(*v), by_value);
	return v[cnt / 2];
}

/* ---- read ---- */

enum { ONE, TWO, WRITE, BY_LID, ECHO, KINDS };

/* LIDs of all switches and of the manager, and tables that lead to them, as a subnet manager loads them. */
static void load_routes(unsigned cnt)
{
	struct ur_port_info info;
	struct ur_mgr_mad m;
	uint8_t path[UR_TOPO_PATH_MAX + 1] = {0};

	for (unsigned i = 0; i < cnt; i++) {
		if (!ur_switch_agent_set_lid(rings_node[i].agent, (uint16_t)(i + 1), rings_now()))
			rings_give_up("a switch refuses its LID");
		ur_switch_set_lft(rings_node[i].sw, MANAGER_LID, 1);
		for (unsigned k = 0; k < cnt; k++)
			if (k != i)
				ur_switch_set_lft(rings_node[i].sw, (uint16_t)(k + 1),
						  k < i ? 1 : 2);
	}
	ur_mgr_directed(&m, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, 1, path, 0);
	ur_store64(m.bytes + 8, ++tid);
	(void)ask(&m);
	ur_get_port_info(answer.mad + UR_SMP_DATA, &info);
	info.lid = MANAGER_LID;
	info.state = info.phys_state = info.down_default = 0;
	info.width_enabled = info.speed_enabled = info.speed_ext_enabled = 0;
	ur_mgr_directed(&m, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 1, path, 0);
	ur_store64(m.bytes + 8, ++tid);
	ur_put_port_info(m.bytes + UR_SMP_DATA, &info);
	(void)ask(&m);
}

static void make_by_lid(struct ur_mgr_mad *m, unsigned n)
{
	struct ur_registers r = {.count = 1, .address0 = ur_register_address(UR_NODE_SCRATCH, 0)};

	ur_mgr_smp(m, UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0, (uint16_t)(n + 1));
	ur_store64(m->bytes + 8, ++tid);
	ur_put_registers(m->bytes + UR_SMP_DATA, &r);
}

static double measure(unsigned n, unsigned kind)
{
	struct ur_mgr_mad m;

	if (kind == ECHO)
		return (double)ask_echo(n);
	if (kind == BY_LID) {
		make_by_lid(&m, n);
		return (double)ask(&m);
	}
	make_registers(&m, n, kind == WRITE ? UR_MAD_METHOD_SET : UR_MAD_METHOD_GET,
		       kind == TWO ? 2 : 1);
	return (double)ask(&m);
}

/* Another order each time: what follows a frame that only passed through finds nothing of the agents in the caches. */
static void shuffle(unsigned kinds[KINDS])
{
	for (unsigned i = 0; i < KINDS; i++) {
		unsigned k = (unsigned)rand() % (i + 1);

		kinds[i] = kinds[k];
		kinds[k] = i;
	}
}

static void bench_read(unsigned cnt, unsigned turns)
{
	double *v[SWITCHES][KINDS];
	unsigned kinds[KINDS];

	rings_start_row(cnt, take);
	load_routes(cnt);
	for (unsigned n = 0; n < cnt; n++)
		for (unsigned k = 0; k < KINDS; k++)
			v[n][k] = values(turns);
	/* All of them in turns, so that other load on the machine meets all of them. */
	for (unsigned t = 0; t < turns; t++)
		for (unsigned n = 0; n < cnt; n++) {
			shuffle(kinds);
			for (unsigned k = 0; k < KINDS; k++)
				v[n][kinds[k]][t] = measure(n, kinds[k]);
		}
	printf("{\"hops\": [");
	for (unsigned n = 0; n < cnt; n++)
		printf("%s{\"hops\": %u, \"read_ns\": %.0f, \"read_two_ns\": %.0f, \"write_ns\": %.0f, \"lid_ns\": %.0f, \"echo_ns\": %.0f}",
		       n ? ", " : "", n, median(v[n][ONE], turns), median(v[n][TWO], turns),
		       median(v[n][WRITE], turns), median(v[n][BY_LID], turns),
		       median(v[n][ECHO], turns));
	printf("]}\n");
}

/* ---- E2PROM ---- */

static void make_eeprom(struct ur_mgr_mad *m, uint8_t method, uint8_t bytes)
{
	struct ur_eeprom e = {.count = bytes};

	for (uint8_t i = 0; i < bytes; i++)
		e.address[i] = (uint16_t)(0x8000 + i);
	make(m, 0, method, UR_SMP_EEPROM);
	ur_put_eeprom(m->bytes + UR_SMP_DATA, &e);
}

/* Registers of the node while its E2PROM works: one after the other until it has answered. */
static double read_meanwhile(uint8_t method)
{
	static double v[100000];
	struct ur_mgr_mad e, r;
	unsigned cnt = 0;

	make_eeprom(&e, method, UR_EEPROM_MAX);
	job = ur_load64(e.bytes + 8);
	job_done = false;
	rings_send(&e);
	rings_run();
	for (uint64_t began = rings_now(); !job_done && cnt < 100000;) {
		make_registers(&r, 0, UR_MAD_METHOD_GET, 1);
		v[cnt] = (double)ask(&r);
		cnt += !job_done;
		if (rings_now() - began > TIMEOUT_NS)
			rings_give_up("the E2PROM does not answer");
		rings_look_at_clocks();
	}
	/* None was answered in time: this process waited. */
	return cnt ? median(v, cnt) : read_meanwhile(method);
}

static void bench_e2prom(unsigned turns)
{
	double *idle = values(turns), *v = values(turns);
	double *busy = values(turns);
	struct ur_mgr_mad m;

	rings_start_row(1, take);
	printf("{\"bytes\": [");
	for (uint8_t bytes = 1; bytes <= UR_EEPROM_MAX; bytes++) {
		double took[2];

		for (unsigned k = 0; k < 2; k++) {
			for (unsigned t = 0; t < turns; t++) {
				make_eeprom(&m, k ? UR_MAD_METHOD_SET : UR_MAD_METHOD_GET, bytes);
				v[t] = (double)ask(&m);
			}
			(void)median(v, turns);
			took[k] = v
				[0]; /* the least: a process that waits is late at times, never early */
		}
		printf("%s{\"bytes\": %u, \"read_ns\": %.0f, \"write_ns\": %.0f}",
		       bytes > 1 ? ", " : "", bytes, took[0], took[1]);
	}
	for (unsigned t = 0; t < turns; t++) {
		for (unsigned i = 0; i < turns; i++) {
			make_registers(&m, 0, UR_MAD_METHOD_GET, 1);
			v[i] = (double)ask(&m);
		}
		idle[t] = median(v, turns);
		busy[t] = read_meanwhile(UR_MAD_METHOD_GET);
	}
	printf("], \"idle_ns\": %.0f, \"meanwhile_ns\": %.0f}\n", median(idle, turns),
	       median(busy, turns));
}

/* ---- faults ---- */

/* Writes two registers of a node. */
static void set_two(unsigned n, enum ur_register_id a, uint64_t x, enum ur_register_id b,
		    uint64_t y)
{
	struct ur_registers r = {.count = 2,
				 .address0 = ur_register_address(a, 0),
				 .address1 = ur_register_address(b, 0),
				 .value0 = x,
				 .value1 = y};
	struct ur_mgr_mad m;

	make(&m, n, UR_MAD_METHOD_SET, UR_SMP_REGISTERS);
	ur_put_registers(m.bytes + UR_SMP_DATA, &r);
	(void)ask(&m);
}

static bool is_report(struct ur_fault *fault)
{
	if (!answered || answer.mad[3] != UR_MAD_METHOD_TRAP ||
	    ur_load16(answer.mad + 16) != UR_SMP_NOTICE)
		return false;
	ur_get_fault(answer.mad + UR_SMP_DATA + UR_NOTICE_DETAILS, fault);
	return true;
}

/* A report ends at its node by TrapRepress. */
static void repress(unsigned n)
{
	struct ur_mgr_mad m;

	make(&m, n, UR_MAD_METHOD_TRAP_REPRESS, UR_SMP_NOTICE);
	memcpy(m.bytes + 8, answer.mad + 8, 8);
	memcpy(m.bytes + UR_SMP_DATA, answer.mad + UR_SMP_DATA, UR_SMP_DATA_BYTES);
	rings_send(&m);
	rings_run();
}

static void begin_fault(unsigned n, enum ur_fault_cause cause)
{
	static const uint8_t cut[10];

	switch (cause) {
	case UR_FAULT_LINK_DOWN:
		ur_switch_set_link(rings_node[n].sw, 3, false, rings_now());
		ur_switch_agent_expire(rings_node[n].agent, rings_now());
		rings_wake(n);
		break;
	case UR_FAULT_ERROR_BURST: /* frames that are cut off */
		for (unsigned i = 0; i < ERRORS; i++) {
			struct ur_switch_frame f = {.data = (uint8_t *)(uintptr_t)cut,
						    .len = sizeof(cut)};

			(void)ur_switch_input(rings_node[n].sw, 3, &f, rings_now());
		}
		break;
	default:
		ur_switch_agent_set_load(rings_node[n].agent, 990);
	}
}

static void end_fault(unsigned n, enum ur_fault_cause cause)
{
	struct ur_fault up;
	uint64_t began = rings_now();

	if (cause == UR_FAULT_HOT)
		ur_switch_agent_set_load(rings_node[n].agent, 0);
	while (cause == UR_FAULT_HOT && rings_now() - began < 3 * SCAN_NS)
		rings_look_at_clocks();
	if (cause != UR_FAULT_LINK_DOWN)
		return;
	answered = false;
	ur_switch_set_link(rings_node[n].sw, 3, true, rings_now());
	ur_switch_agent_expire(rings_node[n].agent, rings_now());
	rings_wake(n);
	rings_run();
	if (is_report(&up))
		repress(n);
}

static void bench_fault(unsigned turns)
{
	static const struct {
		enum ur_fault_cause cause;
		const char *name;
	} faults[] = {{UR_FAULT_LINK_DOWN, "link down"},
		      {UR_FAULT_ERROR_BURST, "error burst"},
		      {UR_FAULT_HOT, "hot"}};
	double *notice = values(turns), *arrives = values(turns);
	double *trip = values(turns);
	const unsigned n = 4; /* hops away */
	struct ur_fault fault;
	struct ur_mgr_mad m;

	rings_start_row(n + 1, take);
	set_two(n, UR_NODE_SCAN_NS, SCAN_NS, UR_NODE_FAULT_MASK, 0);
	set_two(n, UR_NODE_FAULT_HERE, 1, UR_NODE_FAULT_ENABLE, UINT32_MAX);
	printf("{\"scan_ns\": %llu, \"faults\": [", (unsigned long long)SCAN_NS);
	for (unsigned k = 0; k < 3; k++) {
		bool named = true;

		for (unsigned t = 0; t < turns; t++) {
			uint64_t began = rings_now(), here;

			/* The report comes after a wait until the node looks: so does what it is compared with. */
			while (faults[k].cause != UR_FAULT_LINK_DOWN &&
			       rings_now() - began < SCAN_NS)
				rings_look_at_clocks();
			make_registers(&m, n, UR_MAD_METHOD_GET, 1);
			trip[t] = (double)ask(&m);
			answered = false;
			began = rings_now();
			begin_fault(n, faults[k].cause);
			rings_run();
			while (!is_report(&fault)) {
				answered = false;
				if (rings_now() - began > TIMEOUT_NS)
					rings_give_up("no report came");
				rings_look_at_clocks();
			}
			here = rings_now();
			notice[t] = (double)(rings_node[n].born_ns + fault.time_ns - began);
			arrives[t] = (double)(here - rings_node[n].born_ns - fault.time_ns);
			named = named && fault.cause == faults[k].cause &&
				fault.node_guid == 0x100 + n &&
				fault.port == (faults[k].cause == UR_FAULT_HOT ? 0 : 3);
			repress(n);
			end_fault(n, faults[k].cause);
		}
		printf("%s{\"fault\": \"%s\", \"notice_ns\": %.0f, \"arrives_ns\": %.0f, \"round_trip_ns\": %.0f, \"named\": %s}",
		       k ? ", " : "", faults[k].name, median(notice, turns), median(arrives, turns),
		       median(trip, turns), named ? "true" : "false");
	}
	printf("]}\n");
}

/* ---- discovery ---- */

static struct ur_discover discovery;

static void take_for_discovery(const struct ur_nma_out *out)
{
	struct ur_mgr_mad m = {.lid = out->to.slid == UR_LID_PERMISSIVE ? 0 : out->to.slid};

	memcpy(m.bytes, out->mad, UR_MAD_BYTES);
	ur_discover_input(&discovery, &m, rings_now());
}

struct discovered {
	double ns, nodes, links, resent, requests,
		waits; /* waits: of the directions of links, those with data */
	struct rings_moved moved;
};

/* What is there, as discovery has to find it. */
struct truth {
	struct ur_topo_limits limits;
	unsigned links;
};

static struct truth count_all(void)
{
	struct truth t = {.limits = {.nodes = rings_cnt}};
	unsigned ends = 0;

	for (unsigned i = 0; i < rings_cnt; i++) {
		t.limits.ports += rings_node[i].ports;
		ends += rings_links(i);
	}
	t.links = ends / 2;
	return t;
}

/* The fabric, from nothing. */
static struct discovered discover_once(void *topo_memory, void *requests_memory,
				       const struct ur_topo_limits *limits)
{
	const struct ur_discover_attr attr = {.per_node = 4};
	const struct ur_requests_attr ra = {
		.window = WINDOW, .retries = 3, .timeout_ns = TIMEOUT_NS, .seed = ++tid};
	struct rings_moved before = rings_moved;
	struct discovered d = {.waits = rings_data_waits()};
	struct ur_requests requests;
	struct ur_topo topo;
	struct ur_mgr_mad m;
	uint64_t began;

	ur_topo_init(&topo, topo_memory, limits);
	ur_requests_init(&requests, requests_memory, &ra);
	ur_discover_init(&discovery, &attr, &topo, &requests);
	began = rings_now();
	while (!ur_discover_done(&discovery)) {
		while (ur_discover_output(&discovery, rings_now(), &m))
			rings_send(&m);
		if (!rings_round())
			rings_look_at_clocks();
		ur_discover_expire(&discovery, rings_now());
	}
	d.ns = (double)(rings_now() - began);
	d.moved =
		(struct rings_moved){rings_moved.mads - before.mads, rings_moved.data - before.data,
				     rings_moved.lost - before.lost};
	for (uint32_t i = 0; i < topo.ports_cnt; i++)
		d.links += topo.port[i].peer_node != UR_TOPO_NONE;
	d.links /= 2;
	d.nodes = topo.nodes_cnt;
	d.resent = (double)requests.counters.resent;
	d.requests = (double)requests.counters.sent;
	return d;
}

static void print_discovered(unsigned mads, double *ns, unsigned turns, const struct discovered *d)
{
	printf("{\"mads_per_data\": %u, \"time_ms\": %.6f, \"nodes\": %.0f, \"links\": %.0f, \"requests\": %.0f, "
	       "\"resent\": %.0f, \"mads\": %llu, \"data\": %llu, \"lost\": %llu, \"waits\": %.4f}",
	       mads, median(ns, turns) / 1e6, d->nodes, d->links, d->requests, d->resent,
	       (unsigned long long)d->moved.mads, (unsigned long long)d->moved.data,
	       (unsigned long long)d->moved.lost, d->waits);
}

static long peak_kb(void)
{
	struct rusage used;

	return getrusage(RUSAGE_SELF, &used) ? 0 : used.ru_maxrss;
}

/* `mads`: what MADs leave to data, each in its turn. */
static void bench_discover(const char *shape, unsigned turns, const unsigned *mads, unsigned cnt)
{
	struct discovered d[SHARES_MAX] = {0};
	double *ns[SHARES_MAX], *idle = values(turns);
	struct truth t;
	void *topo, *requests = rings_must(malloc(ur_requests_size(WINDOW)));

	rings_start_shape(shape, take_for_discovery);
	t = count_all();
	topo = rings_must(malloc(ur_topo_size(&t.limits)));
	for (unsigned i = 0; i < turns; i++) {
		d[0] = discover_once(topo, requests, &t.limits);
		idle[i] = d[0].ns;
	}
	printf("{\"there\": {\"nodes\": %u, \"links\": %u}, \"idle\": ", rings_cnt, t.links);
	print_discovered(0, idle, turns, &d[0]);
	for (unsigned k = 0; k < cnt; k++)
		ns[k] = values(turns);
	if (cnt)
		rings_start_data(DATA_EACH);
	for (unsigned i = 0; i < turns; i++)
		for (unsigned k = 0; k < cnt; k++) {
			rings_set_share(mads[k]);
			d[k] = discover_once(topo, requests, &t.limits);
			ns[k][i] = d[k].ns;
		}
	printf(", \"busy\": [");
	for (unsigned k = 0; k < cnt; k++) {
		printf(k ? ", " : "");
		print_discovered(mads[k], ns[k], turns, &d[k]);
	}
	printf("], \"peak_mb\": %ld}\n", peak_kb() / 1024);
	free(topo);
	free(requests);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned a = argc > 2 ? (unsigned)atoi(argv[2]) : 0,
		 b = argc > 3 ? (unsigned)atoi(argv[3]) : 0, mads[SHARES_MAX] = {0};

	for (int i = 4; i < argc && i < 4 + SHARES_MAX; i++)
		if (!(mads[i - 4] = (unsigned)atoi(argv[i])))
			rings_give_up("MADS is a number from 1 on");
	if (!strcmp(what, "read") && argc == 4 && a && a <= SWITCHES && b)
		bench_read(a, b);
	else if (!strcmp(what, "e2prom") && argc == 3 && a)
		bench_e2prom(a);
	else if (!strcmp(what, "fault") && argc == 3 && a)
		bench_fault(a);
	else if (!strcmp(what, "discover") && argc >= 4 && argc <= 4 + SHARES_MAX && b)
		bench_discover(argv[2], b, mads, (unsigned)argc - 4);
	else
		rings_give_up(
			"read SWITCHES TURNS | e2prom TURNS | fault TURNS | discover SHAPE TURNS [MADS...]");
	(void)values(0);
	return 0;
}
