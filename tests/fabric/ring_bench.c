/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "manager/build.h"
#include "mgmt/nma.h"
#include "mgmt/registers.h"
#include "switch/agent.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

/*
 * What management takes in real time: a row of real switches with agents, joined by rings in memory, in one thread. A node is
 * served when something waits for it, so that a figure is the work of the nodes on the way and nothing else. Prints JSON.
 * For benchmarks/management.py.
 *
 *   ring_bench read SWITCHES TURNS   a register, two, a write by directed route, a register by LID, and a frame that a host behind
 *                                    the same switch returns; medians, ns
 *   ring_bench e2prom TURNS          bytes of an E2PROM, and registers of the same node meanwhile
 *   ring_bench fault TURNS           link down, burst of errors, hot: from the node's notice to the report here, beside a round trip
 */
#define SWITCHES_MAX 32
#define PORTS                                                                                      \
	4 /* port 0 included: 1 toward the manager, 2 away from it, 3 to a host that returns frames */
#define RING	    64
#define POOL	    4096
#define MANAGER	    SWITCHES_MAX /* as a node */
#define MANAGER_LID 100
#define TIMEOUT_NS  UINT64_C(2000000000)
#define ECHO_BYTES  UR_SWITCH_MAD_FRAME
#define SCAN_NS	    UINT64_C(1000000)
#define ERRORS	    2000

struct frame {
	unsigned refs;
	struct frame *next; /* while it is free */
	struct ur_switch_frame f;
	uint8_t bytes[512];
};

struct ring {
	struct frame *slot[RING];
	unsigned head, tail; /* [head, tail) */
};

static struct node {
	struct ur_switch *sw;
	struct ur_switch_agent *agent;
	struct ring in[PORTS];
	uint64_t born_ns;
	bool waits; /* in `work` */
} node[SWITCHES_MAX + 1];
static unsigned switches;

static struct frame pool[POOL], *unused;
static unsigned work[SWITCHES_MAX + 1], work_head, work_tail, work_cnt;

/* The manager: an endpoint with an agent whose client it is. */
static struct ur_nma *nma;
static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x77}, echo_mac[6] = {2, 0, 0, 0, 1, 0x77};
static struct ur_nma_out answer;
static bool answered, echoed;
static uint64_t tid, job; /* job: a request that is answered late */
static bool job_done;

_Noreturn static void give_up(const char *why)
{
	fprintf(stderr, "ring_bench: %s\n", why);
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
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- frames and rings ---- */

static struct frame *take_frame(void)
{
	struct frame *f = unused;

	if (!f)
		give_up("there are no frames left");
	unused = f->next;
	f->refs = 1;
	f->f = (struct ur_switch_frame){.data = f->bytes, .handle = f};
	return f;
}

static void drop_frame(struct frame *f)
{
	if (--f->refs)
		return;
	f->next = unused;
	unused = f;
}

static void wake(unsigned n)
{
	if (node[n].waits)
		return;
	node[n].waits = true;
	work[work_tail++ % (SWITCHES_MAX + 1)] = n;
	work_cnt++;
}

/* The frame is on the link to that port. */
static void put(unsigned n, unsigned port, struct frame *f)
{
	struct ring *r = &node[n].in[port];

	if (r->tail - r->head == RING) {
		drop_frame(f);
		return;
	}
	r->slot[r->tail++ % RING] = f;
	wake(n);
}

/* A host returns what it receives. */
static void echo(unsigned n, struct frame *f)
{
	memcpy(f->bytes, f->bytes + 6, 6);
	memcpy(f->bytes + 6, (const uint8_t[]){2, 0, 0, 2, 0, (uint8_t)n}, 6);
	put(n, 3, f);
}

/* What port `port` of switch `n` sends arrives at the other end; the reference is passed on. */
static void deliver(unsigned n, unsigned port, const struct ur_switch_tx *tx)
{
	struct frame *f = tx->frame.handle;

	if (f->refs > 1) { /* it was flooded, and is not changed */
		struct frame *copy = take_frame();

		memcpy(copy->bytes, f->bytes, f->f.len);
		copy->f.len = f->f.len;
		drop_frame(f);
		f = copy;
	}
	if (port == 1)
		put(n ? n - 1 : MANAGER, n ? 2 : 0, f);
	else if (port == 2 && n + 1 < switches)
		put(n + 1, 1, f);
	else if (port == 3 && f->f.len == ECHO_BYTES && !(f->bytes[0] & 1))
		echo(n, f);
	else
		drop_frame(f);
}

/* ---- nodes ---- */

static void serve_agent(unsigned n, uint64_t at_ns)
{
	struct node *o = &node[n];
	struct ur_switch_tx tx;

	while (ur_switch_output(o->sw, 0, &tx, 1, at_ns)) {
		(void)ur_switch_agent_input(o->agent, &tx.frame, tx.in_port, at_ns);
		drop_frame(tx.frame.handle);
	}
	if (ur_switch_agent_next_deadline(o->agent) <= at_ns)
		ur_switch_agent_expire(o->agent, at_ns);
	while (ur_switch_agent_wants_output(o->agent)) {
		struct frame *f = take_frame();

		if (!ur_switch_agent_output(o->agent, &f->f, at_ns))
			drop_frame(f);
	}
}

static void serve_switch(unsigned n)
{
	struct node *o = &node[n];
	uint64_t at_ns = now();
	struct ur_switch_tx tx;

	for (uint8_t p = 1; p < PORTS; p++)
		for (struct ring *r = &o->in[p]; r->head != r->tail;) {
			struct frame *f = r->slot[r->head++ % RING];
			unsigned refs = ur_switch_input(o->sw, p, &f->f, at_ns);

			if (refs)
				f->refs = refs;
			else
				drop_frame(f);
		}
	serve_agent(n, at_ns);
	for (uint8_t p = 1; p < PORTS; p++)
		while (ur_switch_output(o->sw, p, &tx, 1, at_ns))
			deliver(n, p, &tx);
	while (ur_switch_reap(o->sw, &tx, 1))
		drop_frame(tx.frame.handle);
}

static void pump_manager(void)
{
	struct ur_path path = {0};
	struct ur_nma_out out;

	while (ur_nma_output(nma, &out, now())) {
		struct frame *f;

		if (out.to.way == UR_MAD_LOCAL) {
			answer = out;
			answered = true;
			job_done = job_done || ur_load64(out.mad + 8) == job;
			continue;
		}
		f = take_frame();
		if (out.to.way == UR_MAD_LID)
			ur_mad_lid_path(&path, out.to.slid, out.to.dlid);
		else
			ur_mad_hop_path(&path, mac);
		f->f.len = ur_mad_frame(f->bytes, &path, ur_qpn(out.to.dqpn), ur_qpn(out.to.sqpn),
					ur_psn(1), out.mad);
		put(0, 1, f);
	}
}

static void take_at_manager(struct frame *f)
{
	struct ur_nma_from from = {.port = 1};
	struct ur_packet p;

	if (!memcmp(f->bytes, echo_mac, 6)) {
		echoed = true;
		return;
	}
	if (ur_packet_decode(f->bytes, f->f.len, &p) != UR_DROP_NONE || !ur_icrc_ok(f->bytes, &p) ||
	    p.bth.opcode != UR_UD_SEND_ONLY || p.payload_len != UR_MAD_BYTES)
		return;
	from.way = ur_mad_way_of(&p, &from.slid, &from.dlid);
	from.qpn = (uint8_t)p.bth.dqpn.v;
	from.sqpn = p.deth.sqpn.v;
	(void)ur_nma_input(nma, p.payload, &from, now());
}

static void serve_manager(void)
{
	struct ring *r = &node[MANAGER].in[0];

	while (r->head != r->tail) {
		struct frame *f = r->slot[r->head++ % RING];

		take_at_manager(f);
		drop_frame(f);
	}
	pump_manager();
}

/* Everything that can move, moves. Agents whose time has come are served when nothing else is to be done. */
static void run(void)
{
	while (work_cnt) {
		unsigned n = work[work_head++ % (SWITCHES_MAX + 1)];

		work_cnt--;
		node[n].waits = false;
		if (n == MANAGER)
			serve_manager();
		else
			serve_switch(n);
	}
}

static void look_at_clocks(void)
{
	uint64_t at_ns = now();

	for (unsigned i = 0; i < switches; i++)
		if (ur_switch_agent_next_deadline(node[i].agent) <= at_ns)
			wake(i);
	run();
}

/* ---- start ---- */

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	*link = (struct ur_nma_link){.up = true, .mtu = 5};
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *counters)
{
	*counters = (struct ur_nma_counters){0};
}

static void start_manager(void)
{
	static const struct ur_nma_ops ops = {.get_link = get_link, .get_counters = get_counters};
	struct ur_nma_attr attr = {
		.limits =
			{.ports = 1, .requests = 64, .passing = 64, .remembered = 16, .notices = 4},
		.type = UR_NODE_CA,
		.vendor_id = UR_VENDOR_OUI,
		.node_guid = 0x77,
		.port_guid = 0x78,
		.description = "manager",
		.ops = &ops,
	};
	size_t bytes = (ur_nma_size(&attr.limits) + 63) & ~(size_t)63;

	nma = ur_nma_init(must(aligned_alloc(64, bytes)), &attr, now());
	ur_nma_set_client(nma, true, false);
	ur_nma_link_event(nma, 1, now());
}

static void start_switch(unsigned n)
{
	struct ur_switch_agent_attr a = {
		.config = {.open = true}, .guid = 0x100 + n, .seed = n + 1};
	struct node *o = &node[n];
	struct ur_switch_attr attr;

	ur_switch_attr_default(&attr);
	attr.limits.ports = PORTS;
	attr.seed = n + 1;
	o->sw = ur_switch_init(must(aligned_alloc(64, (ur_switch_size(&attr) + 63) & ~(size_t)63)),
			       &attr);
	snprintf(a.description, sizeof(a.description), "switch %u", n);
	a.eeprom = memset(must(malloc(UR_EEPROM_BYTES)), 0xff, UR_EEPROM_BYTES);
	for (uint8_t p = 1; p < PORTS; p++) {
		struct ur_switch_port_attr pa;

		ur_switch_port_attr_default(&pa);
		pa.mgmt_per_s = 0; /* measured is what a request takes, not how many are allowed */
		ur_switch_set_port(o->sw, p, &pa, now());
		ur_switch_set_link(o->sw, p, p != 2 || n + 1 < switches, now());
		memcpy(a.mac[p], (const uint8_t[]){2, 0, 0, 1, (uint8_t)n, p}, 6);
	}
	o->born_ns = now();
	o->agent = ur_switch_agent_init(
		must(aligned_alloc(64, (ur_switch_agent_size(PORTS) + 63) & ~(size_t)63)), o->sw,
		&a, o->born_ns);
	wake(n);
}

static void send_echo(unsigned n)
{
	struct frame *f = take_frame();

	memset(f->bytes, 0, ECHO_BYTES);
	memcpy(f->bytes, (const uint8_t[]){2, 0, 0, 2, 0, (uint8_t)n}, 6);
	memcpy(f->bytes + 6, echo_mac, 6);
	f->bytes[12] = 0x88;
	f->bytes[13] = 0xb5;
	f->f.len = ECHO_BYTES;
	put(0, 1, f);
}

static void start(unsigned cnt)
{
	switches = cnt;
	for (unsigned i = 0; i < POOL; i++) {
		pool[i].refs = 1;
		drop_frame(&pool[i]);
	}
	for (unsigned i = 0; i < cnt; i++)
		start_switch(i);
	start_manager();
	pump_manager();
	run();
	/* Each host sends a frame to all, so that its address is learned. */
	for (unsigned i = 0; i < cnt; i++) {
		struct frame *f = take_frame();

		memset(f->bytes, 0, ECHO_BYTES);
		memset(f->bytes, 0xff, 6);
		memcpy(f->bytes + 6, (const uint8_t[]){2, 0, 0, 2, 0, (uint8_t)i}, 6);
		f->bytes[12] = 0x88;
		f->bytes[13] = 0xb5;
		f->f.len = ECHO_BYTES;
		put(i, 3, f);
		run();
	}
	for (unsigned i = 0; i < cnt; i++) {
		send_echo(i);
		run();
	}
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

static void send(const struct ur_mgr_mad *m)
{
	struct ur_nma_from from = {.way = UR_MAD_LOCAL, .dlid = m->lid};

	(void)ur_nma_input(nma, m->bytes, &from, now());
	pump_manager();
}

/* Sends, and waits for the response; ns. */
static uint64_t ask(const struct ur_mgr_mad *m)
{
	uint64_t began = now();

	answered = false;
	send(m);
	run();
	while (!answered || ur_load64(answer.mad + 8) != ur_load64(m->bytes + 8) ||
	       answer.mad[3] != UR_MAD_METHOD_GET_RESP) {
		answered = false;
		if (now() - began > TIMEOUT_NS)
			give_up("a request was not answered");
		look_at_clocks();
	}
	if (ur_load16(answer.mad + 4) & (uint16_t)~UR_SMP_DIRECTION)
		give_up("a request was refused");
	return now() - began;
}

static uint64_t ask_echo(unsigned n)
{
	uint64_t began = now();

	echoed = false;
	send_echo(n);
	run();
	if (!echoed)
		give_up("a frame was not returned");
	return now() - began;
}

/* Room for that many figures, until the end. */
static double *values(unsigned cnt)
{
	static double *all[SWITCHES_MAX * 8];
	static unsigned used;

	if (!cnt) {
		while (used)
			free(all[--used]);
		return NULL;
	}
	return all[used++] = must(calloc(cnt, sizeof(double)));
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
static void load_routes(void)
{
	struct ur_port_info info;
	struct ur_mgr_mad m;
	uint8_t path[UR_TOPO_PATH_MAX + 1] = {0};

	for (unsigned i = 0; i < switches; i++) {
		if (!ur_switch_agent_set_lid(node[i].agent, (uint16_t)(i + 1), now()))
			give_up("a switch refuses its LID");
		ur_switch_set_lft(node[i].sw, MANAGER_LID, 1);
		for (unsigned k = 0; k < switches; k++)
			if (k != i)
				ur_switch_set_lft(node[i].sw, (uint16_t)(k + 1), k < i ? 1 : 2);
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
	double *v[SWITCHES_MAX][KINDS];
	unsigned kinds[KINDS];

	start(cnt);
	load_routes();
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
	send(&e);
	run();
	for (uint64_t began = now(); !job_done && cnt < 100000;) {
		make_registers(&r, 0, UR_MAD_METHOD_GET, 1);
		v[cnt] = (double)ask(&r);
		cnt += !job_done;
		if (now() - began > TIMEOUT_NS)
			give_up("the E2PROM does not answer");
		look_at_clocks();
	}
	/* None was answered in time: this process waited. */
	return cnt ? median(v, cnt) : read_meanwhile(method);
}

static void bench_e2prom(unsigned turns)
{
	double *idle = values(turns), *v = values(turns);
	double *busy = values(turns);
	struct ur_mgr_mad m;

	start(1);
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
	send(&m);
	run();
}

static void begin_fault(unsigned n, enum ur_fault_cause cause)
{
	static const uint8_t cut[10];

	switch (cause) {
	case UR_FAULT_LINK_DOWN:
		ur_switch_set_link(node[n].sw, 3, false, now());
		ur_switch_agent_expire(node[n].agent, now());
		wake(n);
		break;
	case UR_FAULT_ERROR_BURST: /* frames that are cut off */
		for (unsigned i = 0; i < ERRORS; i++) {
			struct ur_switch_frame f = {.data = (uint8_t *)(uintptr_t)cut,
						    .len = sizeof(cut)};

			(void)ur_switch_input(node[n].sw, 3, &f, now());
		}
		break;
	default:
		ur_switch_agent_set_load(node[n].agent, 990);
	}
}

static void end_fault(unsigned n, enum ur_fault_cause cause)
{
	struct ur_fault up;
	uint64_t began = now();

	if (cause == UR_FAULT_HOT)
		ur_switch_agent_set_load(node[n].agent, 0);
	while (cause == UR_FAULT_HOT && now() - began < 3 * SCAN_NS)
		look_at_clocks();
	if (cause != UR_FAULT_LINK_DOWN)
		return;
	answered = false;
	ur_switch_set_link(node[n].sw, 3, true, now());
	ur_switch_agent_expire(node[n].agent, now());
	wake(n);
	run();
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

	start(n + 1);
	set_two(n, UR_NODE_SCAN_NS, SCAN_NS, UR_NODE_FAULT_MASK, 0);
	set_two(n, UR_NODE_FAULT_HERE, 1, UR_NODE_FAULT_ENABLE, UINT32_MAX);
	printf("{\"scan_ns\": %llu, \"faults\": [", (unsigned long long)SCAN_NS);
	for (unsigned k = 0; k < 3; k++) {
		bool named = true;

		for (unsigned t = 0; t < turns; t++) {
			uint64_t began, here;

			make_registers(&m, n, UR_MAD_METHOD_GET, 1);
			trip[t] = (double)ask(&m);
			answered = false;
			began = now();
			begin_fault(n, faults[k].cause);
			run();
			while (!is_report(&fault)) {
				answered = false;
				if (now() - began > TIMEOUT_NS)
					give_up("no report came");
				look_at_clocks();
			}
			here = now();
			notice[t] = (double)(node[n].born_ns + fault.time_ns - began);
			arrives[t] = (double)(here - node[n].born_ns - fault.time_ns);
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

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned a = argc > 2 ? (unsigned)atoi(argv[2]) : 0,
		 b = argc > 3 ? (unsigned)atoi(argv[3]) : 0;

	if (!strcmp(what, "read") && argc == 4 && a && a <= SWITCHES_MAX && b)
		bench_read(a, b);
	else if (!strcmp(what, "e2prom") && argc == 3 && a)
		bench_e2prom(a);
	else if (!strcmp(what, "fault") && argc == 3 && a)
		bench_fault(a);
	else
		give_up("read SWITCHES TURNS | e2prom TURNS | fault TURNS");
	(void)values(0);
	return 0;
}
