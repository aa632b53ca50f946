/* SPDX-License-Identifier: BSD-3-Clause */
#include "rings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/icrc.h"
#include "wire/opcode.h"

#define PORTS                                                                                      \
	4 /* port 0 included: 1 toward the manager, 2 away from it, 3 to a host that returns frames */
#define RING	  128
#define POOL	  8192
#define BURST	  32 /* frames that a port sends in a round: less than a ring holds */
#define NODES	  (RINGS_MAX + 2)
#define MANAGER	  RINGS_MAX /* as nodes */
#define FAR	  (RINGS_MAX + 1)
#define ETHERTYPE 0x88b5 /* of what is not management: for experiments (IEEE 802) */

struct frame {
	unsigned refs;
	struct frame *next; /* while it is free */
	struct ur_switch_frame f;
	uint8_t bytes[RINGS_DATA_BYTES];
};

struct ring {
	struct frame *slot[RING];
	unsigned head, tail; /* [head, tail) */
};

/* An endpoint with an agent. */
struct end {
	struct ur_nma *nma;
	uint8_t mac[6], data_mac[6];
};

struct rings_node rings_node[NODES];
unsigned rings_cnt;
bool rings_echoed;

static struct ring in[NODES][PORTS];
static struct end end[2]; /* the manager, and the far end if it has an agent */
static rings_take_fn take_mad;
static struct frame pool[POOL], *unused;
static unsigned work[NODES], work_head, work_tail, work_cnt;

static const uint8_t echo_mac[6] = {2, 0, 0, 0, 1, 0x77};

void rings_give_up(const char *why)
{
	fprintf(stderr, "ring_bench: %s\n", why);
	exit(1);
}

void *rings_must(void *memory)
{
	if (!memory)
		rings_give_up("there is no memory");
	return memory;
}

uint64_t rings_now(void)
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
		rings_give_up("there are no frames left");
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

void rings_wake(unsigned n)
{
	if (rings_node[n].waits)
		return;
	rings_node[n].waits = true;
	work[work_tail++ % NODES] = n;
	work_cnt++;
}

/* The frame is on the link to that port. */
static void put(unsigned n, unsigned port, struct frame *f)
{
	struct ring *r = &in[n][port];

	if (r->tail - r->head == RING) {
		drop_frame(f);
		return;
	}
	r->slot[r->tail++ % RING] = f;
	rings_wake(n);
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
	else if (port == 2 && n + 1 < rings_cnt)
		put(n + 1, 1, f);
	else if (port == 2 && end[1].nma)
		put(FAR, 0, f);
	else if (port == 3 && f->f.len == RINGS_ECHO_BYTES && !(f->bytes[0] & 1))
		echo(n, f);
	else
		drop_frame(f);
}

/* ---- nodes ---- */

static void serve_agent(unsigned n, uint64_t at_ns)
{
	struct rings_node *o = &rings_node[n];
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
	struct rings_node *o = &rings_node[n];
	uint64_t at_ns = rings_now();
	struct ur_switch_tx tx;
	bool more = false;

	for (uint8_t p = 1; p < PORTS; p++)
		for (struct ring *r = &in[n][p]; r->head != r->tail;) {
			struct frame *f = r->slot[r->head++ % RING];
			unsigned refs = ur_switch_input(o->sw, p, &f->f, at_ns);

			if (refs)
				f->refs = refs;
			else
				drop_frame(f);
		}
	serve_agent(n, at_ns);
	for (uint8_t p = 1; p < PORTS; p++) {
		unsigned sent = 0;

		for (; sent < BURST && ur_switch_output(o->sw, p, &tx, 1, at_ns); sent++)
			deliver(n, p, &tx);
		more = more || sent == BURST;
	}
	while (ur_switch_reap(o->sw, &tx, 1))
		drop_frame(tx.frame.handle);
	if (more)
		rings_wake(n);
}

/* ---- ends ---- */

/* A frame from an end, onto its link. */
static void put_from(const struct end *e, struct frame *f)
{
	if (e == end)
		put(0, 1, f);
	else
		put(rings_cnt - 1, 2, f);
}

static void pump(struct end *e)
{
	struct ur_path path = {0};
	struct ur_nma_out out;

	while (ur_nma_output(e->nma, &out, rings_now())) {
		struct frame *f;

		if (out.to.way == UR_MAD_LOCAL) {
			take_mad(&out);
			continue;
		}
		f = take_frame();
		if (out.to.way == UR_MAD_LID)
			ur_mad_lid_path(&path, out.to.slid, out.to.dlid);
		else
			ur_mad_hop_path(&path, e->mac);
		f->f.len = ur_mad_frame(f->bytes, &path, ur_qpn(out.to.dqpn), ur_qpn(out.to.sqpn),
					ur_psn(1), out.mad);
		put_from(e, f);
	}
}

/* Data goes back to the other end. */
static void return_data(const struct end *e, struct frame *f)
{
	struct frame *back = take_frame();

	memcpy(back->bytes, f->bytes, f->f.len);
	memcpy(back->bytes, end[e == end].data_mac, 6);
	memcpy(back->bytes + 6, e->data_mac, 6);
	back->f.len = f->f.len;
	put_from(e, back);
}

static void take_at_end(struct end *e, struct frame *f)
{
	struct ur_nma_from from = {.port = 1};
	struct ur_packet p;

	if (!memcmp(f->bytes, echo_mac, 6)) {
		rings_echoed = true;
		return;
	}
	if (!memcmp(f->bytes, e->data_mac, 6)) {
		return_data(e, f);
		return;
	}
	if (ur_packet_decode(f->bytes, f->f.len, &p) != UR_DROP_NONE || !ur_icrc_ok(f->bytes, &p) ||
	    p.bth.opcode != UR_UD_SEND_ONLY || p.payload_len != UR_MAD_BYTES)
		return;
	from.way = ur_mad_way_of(&p, &from.slid, &from.dlid);
	from.qpn = (uint8_t)p.bth.dqpn.v;
	from.sqpn = p.deth.sqpn.v;
	(void)ur_nma_input(e->nma, p.payload, &from, rings_now());
}

static void serve_end(struct end *e)
{
	struct ring *r = &in[MANAGER + (e - end)][0];

	while (r->head != r->tail) {
		struct frame *f = r->slot[r->head++ % RING];

		take_at_end(e, f);
		drop_frame(f);
	}
	pump(e);
}

/* ---- rounds ---- */

bool rings_round(void)
{
	unsigned cnt = work_cnt;

	for (unsigned i = 0; i < cnt; i++) {
		unsigned n = work[work_head++ % NODES];

		work_cnt--;
		rings_node[n].waits = false;
		if (n >= MANAGER)
			serve_end(&end[n - MANAGER]);
		else
			serve_switch(n);
	}
	return cnt;
}

void rings_run(void)
{
	while (rings_round())
		;
}

void rings_look_at_clocks(void)
{
	uint64_t at_ns = rings_now();

	for (unsigned i = 0; i < rings_cnt; i++)
		if (ur_switch_agent_next_deadline(rings_node[i].agent) <= at_ns)
			rings_wake(i);
	rings_run();
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

static void start_end(struct end *e, uint64_t guid, bool is_client)
{
	static const struct ur_nma_ops ops = {.get_link = get_link, .get_counters = get_counters};
	struct ur_nma_attr attr = {
		.limits =
			{.ports = 1, .requests = 64, .passing = 64, .remembered = 16, .notices = 4},
		.type = UR_NODE_CA,
		.vendor_id = UR_VENDOR_OUI,
		.node_guid = guid,
		.port_guid = guid + 1,
		.description = "end",
		.ops = &ops,
	};
	size_t bytes = (ur_nma_size(&attr.limits) + 63) & ~(size_t)63;

	memcpy(e->mac, (const uint8_t[]){2, 0, 0, 0, 0, (uint8_t)guid}, 6);
	memcpy(e->data_mac, (const uint8_t[]){2, 0, 0, 0, 2, (uint8_t)guid}, 6);
	e->nma = ur_nma_init(rings_must(aligned_alloc(64, bytes)), &attr, rings_now());
	ur_nma_set_client(e->nma, is_client, false);
	ur_nma_link_event(e->nma, 1, rings_now());
	pump(e);
}

static void start_switch(unsigned n, bool far)
{
	struct ur_switch_agent_attr a = {
		.config = {.open = true}, .guid = 0x100 + n, .seed = n + 1};
	struct rings_node *o = &rings_node[n];
	struct ur_switch_attr attr;

	ur_switch_attr_default(&attr);
	attr.limits.ports = PORTS;
	attr.seed = n + 1;
	o->sw = ur_switch_init(
		rings_must(aligned_alloc(64, (ur_switch_size(&attr) + 63) & ~(size_t)63)), &attr);
	snprintf(a.description, sizeof(a.description), "switch %u", n);
	a.eeprom = memset(rings_must(malloc(UR_EEPROM_BYTES)), 0xff, UR_EEPROM_BYTES);
	for (uint8_t p = 1; p < PORTS; p++) {
		struct ur_switch_port_attr pa;

		ur_switch_port_attr_default(&pa);
		pa.mgmt_per_s = 0; /* measured is what a request takes, not how many are allowed */
		ur_switch_set_port(o->sw, p, &pa, rings_now());
		ur_switch_set_link(o->sw, p, p == 2 ? far || n + 1 < rings_cnt : p == 1 || !far,
				   rings_now());
		memcpy(a.mac[p], (const uint8_t[]){2, 0, 0, 1, (uint8_t)n, p}, 6);
	}
	o->born_ns = rings_now();
	o->agent = ur_switch_agent_init(
		rings_must(aligned_alloc(64, (ur_switch_agent_size(PORTS) + 63) & ~(size_t)63)),
		o->sw, &a, o->born_ns);
	rings_wake(n);
}

void rings_send(const struct ur_mgr_mad *m)
{
	struct ur_nma_from from = {.way = UR_MAD_LOCAL, .dlid = m->lid};

	(void)ur_nma_input(end->nma, m->bytes, &from, rings_now());
	pump(end);
}

/* A frame that is no management packet. */
static struct frame *make_frame(const uint8_t dst[6], const uint8_t src[6], uint32_t bytes)
{
	struct frame *f = take_frame();

	memset(f->bytes, 0, bytes);
	memcpy(f->bytes, dst, 6);
	memcpy(f->bytes + 6, src, 6);
	ur_store16(f->bytes + 12, ETHERTYPE);
	f->f.len = bytes;
	return f;
}

void rings_send_echo(unsigned n)
{
	put(0, 1,
	    make_frame((const uint8_t[]){2, 0, 0, 2, 0, (uint8_t)n}, echo_mac, RINGS_ECHO_BYTES));
}

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* Each host sends a frame to all, so that its address is learned, and so does the manager. */
static void introduce_hosts(void)
{
	for (unsigned i = 0; i < rings_cnt; i++) {
		put(i, 3,
		    make_frame(everybody, (const uint8_t[]){2, 0, 0, 2, 0, (uint8_t)i},
			       RINGS_ECHO_BYTES));
		rings_run();
	}
	for (unsigned i = 0; i < rings_cnt; i++) {
		rings_send_echo(i);
		rings_run();
	}
}

void rings_start(unsigned cnt, bool far, rings_take_fn take)
{
	rings_cnt = cnt;
	take_mad = take;
	for (unsigned i = 0; i < POOL; i++) {
		pool[i].refs = 1;
		drop_frame(&pool[i]);
	}
	for (unsigned i = 0; i < cnt; i++)
		start_switch(i, far);
	start_end(&end[0], 0x77, true);
	if (far)
		start_end(&end[1], 0x87, false);
	rings_run();
	if (!far)
		introduce_hosts();
}

void rings_start_data(unsigned frames)
{
	for (unsigned e = 0; e < 2; e++) {
		put_from(&end[e], make_frame(everybody, end[e].data_mac, RINGS_DATA_BYTES));
		rings_run();
	}
	for (unsigned i = 0; i < frames; i++) {
		put_from(&end[i & 1],
			 make_frame(end[!(i & 1)].data_mac, end[i & 1].data_mac, RINGS_DATA_BYTES));
		(void)rings_round();
	}
}
