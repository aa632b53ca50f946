/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/events.h"
#include "fabric/fabric.h"
#include "mgmt/nma.h"
#include "wire/assert.h"

#define LFT_LIDS 0xc000 /* unicast LIDs */
#define LFT_NONE 0xff
#define ERASED	 0xff
#define NO_NODE	 UINT32_MAX

struct port {
	uint32_t peer; /* NO_NODE: not linked */
	uint8_t peer_port;
	bool up;
	uint32_t loss;
	uint64_t free_ns; /* when the link can carry the next MAD */
	uint64_t sent, received, errors, downed;
	struct ur_vl_attr *vl; /* NULL: the default */
};

struct node {
	struct ur_fabric *f;
	struct ur_fabric_node_attr attr;
	struct port *port; /* [0, ports] */
	struct ur_nma *nma;
	uint8_t *lft;	  /* NULL: no entry yet */
	uint8_t *eeprom;  /* NULL: erased */
	uint64_t free_ns; /* when the agent can take the next request */
	uint64_t delay_ns, timer_ns;
	bool dead, client;
	uint32_t first_in, last_in; /* arrived for the client: MADs of the pool */
};

struct ur_fabric {
	struct ur_fabric_attr attr;
	struct node *node;
	uint32_t nodes_cnt, nodes_max;
	bool started;
	struct events events;
	uint64_t now, rng;
	uint32_t waiting; /* MADs for clients */
	struct ur_fabric_load load;
	void (*tamper)(void *ctx, uint32_t node, uint8_t *mad);
	void *tamper_ctx;
};

static void *must(void *memory)
{
	if (!memory) {
		fputs("uroce: no memory for the model of a fabric\n", stderr);
		abort();
	}
	return memory;
}

/* ---- nodes and links ---- */

struct ur_fabric *ur_fabric_new(const struct ur_fabric_attr *attr)
{
	struct ur_fabric *f = must(calloc(1, sizeof(*f)));

	f->attr = *attr;
	f->rng = attr->seed;
	events_init(&f->events);
	return f;
}

void ur_fabric_free(struct ur_fabric *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->nodes_cnt; i++) {
		for (unsigned p = 0; p <= f->node[i].attr.ports; p++)
			free(f->node[i].port[p].vl);
		free(f->node[i].port);
		free(f->node[i].eeprom);
		free(f->node[i].nma);
		free(f->node[i].lft);
	}
	events_free(&f->events);
	free(f->node);
	free(f);
}

uint32_t ur_fabric_add(struct ur_fabric *f, const struct ur_fabric_node_attr *attr)
{
	struct node *n;

	UR_ASSERT(!f->started && attr->ports && attr->ports < UINT8_MAX && attr->guid);
	if (f->nodes_cnt == f->nodes_max) {
		f->nodes_max = f->nodes_max ? 2 * f->nodes_max : 64;
		f->node = must(reallocarray(f->node, f->nodes_max, sizeof(*f->node)));
	}
	n = &f->node[f->nodes_cnt];
	*n = (struct node){.f = f,
			   .attr = *attr,
			   .timer_ns = UINT64_MAX,
			   .first_in = EVENTS_NONE,
			   .last_in = EVENTS_NONE};
	n->port = must(calloc(attr->ports + 1u, sizeof(*n->port)));
	for (unsigned i = 0; i <= attr->ports; i++)
		n->port[i].peer = NO_NODE;
	return f->nodes_cnt++;
}

static bool is_free(const struct ur_fabric *f, uint32_t node, uint8_t port)
{
	return node < f->nodes_cnt && port && port <= f->node[node].attr.ports &&
	       f->node[node].port[port].peer == NO_NODE;
}

bool ur_fabric_link(struct ur_fabric *f, uint32_t a, uint8_t port_a, uint32_t b, uint8_t port_b)
{
	struct port *p, *q;

	UR_ASSERT(!f->started);
	if (!is_free(f, a, port_a) || !is_free(f, b, port_b))
		return false;
	p = &f->node[a].port[port_a];
	q = &f->node[b].port[port_b];
	p->peer = b;
	p->peer_port = port_b;
	q->peer = a;
	q->peer_port = port_a;
	p->up = q->up = true;
	return true;
}

uint32_t ur_fabric_nodes(const struct ur_fabric *f)
{
	return f->nodes_cnt;
}

const struct ur_fabric_node_attr *ur_fabric_node(const struct ur_fabric *f, uint32_t node)
{
	return &f->node[node].attr;
}

bool ur_fabric_peer(const struct ur_fabric *f, uint32_t node, uint8_t port, uint32_t *peer,
		    uint8_t *peer_port)
{
	const struct port *p = &f->node[node].port[port];

	if (p->peer == NO_NODE || !p->up)
		return false;
	*peer = p->peer;
	*peer_port = p->peer_port;
	return true;
}

/* ---- what the agent asks its node ---- */

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	const struct node *n = ctx;

	*link = (struct ur_nma_link){
		.up = !port || n->port[port].up,
		.mtu = 5,
		.bps = UINT64_C(112000000000), /* 8 lanes of 14 Gb/s, as the paper's */
	};
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *counters)
{
	const struct node *n = ctx;
	const struct port *p = &n->port[port];

	*counters = (struct ur_nma_counters){
		.tx_packets = p->sent,
		.tx_bytes = p->sent * UR_MAD_BYTES,
		.rx_packets = p->received,
		.rx_bytes = p->received * UR_MAD_BYTES,
		.rx_errors = p->errors,
		.link_downed = p->downed,
	};
}

static void get_lft(void *ctx, uint16_t block, uint8_t ports[64])
{
	const struct node *n = ctx;

	if (n->lft)
		memcpy(ports, n->lft + 64u * block, 64);
	else
		memset(ports, LFT_NONE, 64);
}

static int set_lft(void *ctx, uint16_t block, const uint8_t ports[64])
{
	struct node *n = ctx;

	if (!n->lft)
		n->lft = memset(must(malloc(LFT_LIDS)), LFT_NONE, LFT_LIDS);
	memcpy(n->lft + 64u * block, ports, 64);
	return 0;
}

static void get_vl(void *ctx, uint8_t port, struct ur_vl_attr *vl)
{
	const struct node *n = ctx;

	if (n->port[port].vl)
		*vl = *n->port[port].vl;
	else
		ur_vl_attr_default(vl);
}

static int set_vl(void *ctx, uint8_t port, const struct ur_vl_attr *vl)
{
	struct port *p = &((struct node *)ctx)->port[port];

	if (!p->vl)
		p->vl = must(malloc(sizeof(*p->vl)));
	*p->vl = *vl;
	return 0;
}

static uint8_t eeprom_load(void *ctx, uint16_t address)
{
	const struct node *n = ctx;

	return n->eeprom ? n->eeprom[address] : ERASED;
}

static void eeprom_store(void *ctx, uint16_t address, uint8_t value)
{
	struct node *n = ctx;

	if (!n->eeprom)
		n->eeprom = memset(must(malloc(UR_EEPROM_BYTES)), ERASED, UR_EEPROM_BYTES);
	n->eeprom[address] = value;
}

#define OPS                                                                                        \
	.get_link = get_link, .get_counters = get_counters, .get_vl = get_vl, .set_vl = set_vl,    \
	.eeprom_load = eeprom_load, .eeprom_store = eeprom_store

static const struct ur_nma_ops switch_ops = {OPS, .get_lft = get_lft, .set_lft = set_lft};
static const struct ur_nma_ops endpoint_ops = {OPS};

/* ---- links ---- */

static uint64_t random64(struct ur_fabric *f)
{
	uint64_t x = f->rng += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The MAD leaves the node by that port, at `at_ns` or as soon as the link is free. */
static void transmit(struct node *n, uint8_t port, uint64_t at_ns, const struct flight *mad)
{
	struct ur_fabric *f = n->f;
	struct port *p;
	struct flight *m;

	if (!port || port > n->attr.ports || !n->port[port].up)
		return;
	p = &n->port[port];
	if (p->loss && (random64(f) & 0xffff) < p->loss) {
		f->load.lost++;
		return;
	}
	/* VL15 is first, but does not interrupt the packet that is being sent. */
	if (f->attr.data_ns)
		at_ns += random64(f) % f->attr.data_ns;
	if (at_ns < p->free_ns)
		at_ns = p->free_ns;
	p->free_ns = at_ns + f->attr.mad_ns;
	p->sent++;
	f->load.mads++;
	if (n->client)
		f->load.first++;
	m = events_add(&f->events, at_ns + f->attr.hop_ns);
	m->kind = FLIGHT_ARRIVES;
	m->node = p->peer;
	m->port = p->peer_port;
	m->way = mad->way;
	m->qpn = mad->qpn;
	m->sqpn = mad->sqpn;
	m->slid = mad->slid;
	m->dlid = mad->dlid;
	memcpy(m->mad, mad->mad, UR_MAD_BYTES);
}

static uint8_t route(const struct node *n, uint16_t lid)
{
	return n->lft && lid < LFT_LIDS ? n->lft[lid] : LFT_NONE;
}

/* ---- agents ---- */

static void to_client(struct node *n, uint64_t at_ns, const struct ur_nma_out *out)
{
	struct flight *m = events_add(&n->f->events, at_ns);

	m->kind = FLIGHT_FOR_CLIENT;
	m->node = (uint32_t)(n - n->f->node);
	m->slid = out->to.way == UR_MAD_LOCAL ? out->to.slid : 0;
	memcpy(m->mad, out->mad, UR_MAD_BYTES);
}

static void leave(struct node *n, uint64_t at_ns, const struct ur_nma_out *out)
{
	struct flight m = {
		.way = (uint8_t)out->to.way,
		.qpn = (uint8_t)out->to.dqpn,
		.sqpn = out->to.sqpn,
		.slid = out->to.slid,
		.dlid = out->to.dlid,
	};
	uint8_t port = out->to.port;

	memcpy(m.mad, out->mad, UR_MAD_BYTES);
	switch (out->to.way) {
	case UR_MAD_LOCAL:
		to_client(n, at_ns, out);
		break;
	case UR_MAD_LID:
		if (n->attr.is_switch)
			port = route(n, m.dlid);
		transmit(n, port, at_ns, &m);
		break;
	case UR_MAD_HOP:
		transmit(n, port, at_ns, &m);
		break;
	case UR_MAD_IP: /* there is no IP here */
		break;
	}
}

static void arm(struct node *n)
{
	uint64_t deadline = ur_nma_next_deadline(n->nma);
	struct flight *m;

	if (deadline >= n->timer_ns)
		return;
	n->timer_ns = deadline;
	m = events_add(&n->f->events, deadline > n->f->now ? deadline : n->f->now);
	m->kind = FLIGHT_TIMER;
	m->node = (uint32_t)(n - n->f->node);
}

/*
 * Sends what the agent has. `request` is the MAD that it was given, or NULL. If it answers that one, it was busy with it:
 * one request after the other.
 */
static void pump(struct node *n, const uint8_t *request)
{
	struct ur_fabric *f = n->f;
	struct ur_nma_out out;

	while (ur_nma_output(n->nma, &out, f->now)) {
		uint64_t at_ns = f->now;

		if (request && !(request[3] & UR_MAD_METHOD_RESPONSE) &&
		    (out.mad[3] & UR_MAD_METHOD_RESPONSE)) {
			at_ns = n->free_ns > f->now ? n->free_ns : f->now;
			n->free_ns = at_ns += f->attr.process_ns;
			at_ns += n->delay_ns;
			if (f->tamper)
				f->tamper(f->tamper_ctx, (uint32_t)(n - f->node), out.mad);
		}
		leave(n, at_ns, &out);
	}
	arm(n);
}

static bool is_own(const struct node *n, uint16_t lid, uint8_t port)
{
	uint8_t lmc = 0;
	uint16_t own = ur_nma_lid(n->nma, n->attr.is_switch ? 0 : port, &lmc);

	return own && own >> lmc == lid >> lmc;
}

static void arrive(struct node *n, const struct flight *m)
{
	struct ur_nma_from from = {
		.way = (enum ur_mad_way)m->way,
		.port = m->port,
		.qpn = m->qpn,
		.slid = m->slid,
		.dlid = m->dlid,
		.sqpn = m->sqpn,
	};

	if (n->dead)
		return;
	if (m->way != UR_MAD_LOCAL) {
		n->port[m->port].received++;
		if (n->client)
			n->f->load.first++;
	}
	if (m->way == UR_MAD_LID && !is_own(n, m->dlid, m->port)) {
		if (n->attr.is_switch)
			transmit(n, route(n, m->dlid), n->f->now, m);
		return;
	}
	(void)ur_nma_input(n->nma, m->mad, &from, n->f->now);
	pump(n, m->mad);
}

static void start_agent(struct ur_fabric *f, uint32_t node)
{
	struct node *n = &f->node[node];
	struct ur_nma_attr attr = {
		.limits = {.ports = n->attr.ports,
			   .requests = 32,
			   .passing = 32,
			   .remembered = 16,
			   .notices = 8},
		.config = {.open = true, .ask_neighbours = true},
		.type = n->attr.is_switch ? UR_NODE_SWITCH : UR_NODE_CA,
		.node_guid = n->attr.guid,
		.port_guid = n->attr.is_switch ? n->attr.guid : n->attr.guid + 1,
		.lft_lids = n->attr.is_switch ? LFT_LIDS : 0,
		.vendor_id = UR_VENDOR_OUI,
		.device_id = 1,
		.revision = 1,
		.seed = random64(f),
		.ops = n->attr.is_switch ? &switch_ops : &endpoint_ops,
		.ctx = n,
	};
	size_t bytes = ur_nma_size(&attr.limits);

	UR_ASSERT(bytes);
	snprintf(attr.description, sizeof(attr.description), "%s", n->attr.name);
	n->nma = ur_nma_init(must(aligned_alloc(64, (bytes + 63) & ~(size_t)63)), &attr, f->now);
}

void ur_fabric_start(struct ur_fabric *f)
{
	UR_ASSERT(!f->started);
	f->started = true;
	for (uint32_t i = 0; i < f->nodes_cnt; i++)
		start_agent(f, i);
	for (uint32_t i = 0; i < f->nodes_cnt; i++) {
		struct node *n = &f->node[i];

		for (uint8_t p = 1; p <= n->attr.ports; p++)
			if (n->port[p].up)
				ur_nma_link_event(n->nma, p, f->now);
		pump(n, NULL);
	}
}

/* ---- defects ---- */

static void notice_link(struct ur_fabric *f, uint32_t node, uint8_t port, bool up)
{
	struct node *n = &f->node[node];

	if (n->port[port].up == up)
		return;
	n->port[port].up = up;
	n->port[port].downed += !up;
	if (n->dead)
		return;
	ur_nma_link_event(n->nma, port, f->now);
	pump(n, NULL);
}

void ur_fabric_set_link(struct ur_fabric *f, uint32_t node, uint8_t port, bool up)
{
	const struct port *p = &f->node[node].port[port];

	UR_ASSERT(f->started && p->peer != NO_NODE);
	notice_link(f, node, port, up);
	notice_link(f, p->peer, p->peer_port, up);
}

void ur_fabric_set_loss(struct ur_fabric *f, uint32_t node, uint8_t port, uint32_t in_65536)
{
	f->node[node].port[port].loss = in_65536;
}

void ur_fabric_kill(struct ur_fabric *f, uint32_t node)
{
	f->node[node].dead = true;
}

void ur_fabric_delay(struct ur_fabric *f, uint32_t node, uint64_t ns)
{
	f->node[node].delay_ns = ns;
}

void ur_fabric_set_tamper(struct ur_fabric *f,
			  void (*tamper)(void *ctx, uint32_t node, uint8_t mad[UR_MAD_BYTES]),
			  void *ctx)
{
	f->tamper = tamper;
	f->tamper_ctx = ctx;
}

void ur_fabric_count_errors(struct ur_fabric *f, uint32_t node, uint8_t port, uint64_t errors)
{
	f->node[node].port[port].errors += errors;
}

/* ---- clients ---- */

void ur_fabric_attach(struct ur_fabric *f, uint32_t node)
{
	f->node[node].client = true;
	ur_nma_set_client(f->node[node].nma, true, false);
}

void ur_fabric_send(struct ur_fabric *f, uint32_t node, uint16_t lid,
		    const uint8_t mad[UR_MAD_BYTES])
{
	struct flight m = {.way = UR_MAD_LOCAL, .dlid = lid, .sqpn = 1};

	m.qpn = mad[1] == UR_MAD_CLASS_SMP_DR || mad[1] == UR_MAD_CLASS_SMP_LID ? 0 : 1;
	m.sqpn = m.qpn;
	memcpy(m.mad, mad, UR_MAD_BYTES);
	arrive(&f->node[node], &m);
}

bool ur_fabric_receive(struct ur_fabric *f, uint32_t node, uint16_t *lid, uint8_t mad[UR_MAD_BYTES])
{
	struct node *n = &f->node[node];
	uint32_t at = n->first_in;
	struct flight *m;

	if (at == EVENTS_NONE)
		return false;
	m = events_at(&f->events, at);
	*lid = m->slid;
	memcpy(mad, m->mad, UR_MAD_BYTES);
	n->first_in = m->next;
	if (n->first_in == EVENTS_NONE)
		n->last_in = EVENTS_NONE;
	events_drop(&f->events, at);
	f->waiting--;
	return true;
}

static void enter_inbox(struct node *n, uint32_t at)
{
	events_at(&n->f->events, at)->next = EVENTS_NONE;
	if (n->last_in == EVENTS_NONE)
		n->first_in = at;
	else
		events_at(&n->f->events, n->last_in)->next = at;
	n->last_in = at;
	n->f->waiting++;
}

/* ---- time ---- */

uint64_t ur_fabric_now(const struct ur_fabric *f)
{
	return f->now;
}

static void happen(struct ur_fabric *f, uint32_t at)
{
	struct flight m = *events_at(&f->events, at);
	struct node *n = &f->node[m.node];

	if (m.kind == FLIGHT_FOR_CLIENT) {
		enter_inbox(n, at);
		return;
	}
	events_drop(&f->events, at);
	if (m.kind == FLIGHT_ARRIVES) {
		arrive(n, &m);
		return;
	}
	if (n->timer_ns > f->now)
		return; /* it was set anew since */
	n->timer_ns = UINT64_MAX;
	if (n->dead)
		return;
	ur_nma_expire(n->nma, f->now);
	pump(n, NULL);
}

bool ur_fabric_run(struct ur_fabric *f, uint64_t until_ns)
{
	uint64_t at_ns;

	while (!f->waiting && (at_ns = events_next(&f->events)) <= until_ns &&
	       at_ns != UINT64_MAX) {
		f->now = at_ns;
		happen(f, events_take(&f->events));
	}
	if (!f->waiting && until_ns != UINT64_MAX && until_ns > f->now)
		f->now = until_ns;
	return f->waiting;
}

void ur_fabric_load(const struct ur_fabric *f, struct ur_fabric_load *load)
{
	*load = f->load;
}
