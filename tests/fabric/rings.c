/* SPDX-License-Identifier: BSD-3-Clause */
#include "rings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rings_priv.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

#define RING_VL15 256 /* MADs that a port's ring holds; that of data holds all there are */
#define QUEUED                                                                                     \
	32 /* frames of data in the queues of a switch, above which it takes no more: it drops none */
#define CHUNK	1024
#define DATA_VL 0 /* of frames with no priority */

struct waiting {
	struct rings_node *first, *last;
};

struct rings_node *rings_node;
unsigned rings_cnt, rings_manager;
bool rings_echoed;
struct rings_moved rings_moved;
rings_take_fn rings_take_mad;

const uint8_t rings_echo_mac[6] = {2, 0, 0, 0, 1, 0x77};

static struct rings_frame *unused;
static struct waiting waiting[RINGS_CLASSES];
static unsigned mads_per_data;
static uint64_t mads_paid; /* of rings_moved.mads: for these, data has had its share */

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

struct rings_frame *rings_take_frame(void)
{
	struct rings_frame *f = unused;

	if (!f) {
		struct rings_frame *chunk = rings_must(calloc(CHUNK, sizeof(*chunk)));

		for (unsigned i = 0; i < CHUNK; i++) {
			chunk[i].next = unused;
			unused = &chunk[i];
		}
		f = unused;
	}
	unused = f->next;
	f->refs = 1;
	f->next = NULL;
	f->f = (struct ur_switch_frame){.data = f->bytes, .handle = f};
	return f;
}

static void drop_frame(struct rings_frame *f)
{
	if (--f->refs)
		return;
	f->next = unused;
	unused = f;
}

static void lose_frame(struct rings_frame *f)
{
	rings_moved.lost++;
	drop_frame(f);
}

static void wait_for(struct rings_node *n, enum rings_class c)
{
	struct waiting *w = &waiting[c];

	if (n->waits[c])
		return;
	n->waits[c] = true;
	n->next[c] = NULL;
	if (w->last)
		w->last->next[c] = n;
	else
		w->first = n;
	w->last = n;
}

static struct rings_node *next_waiting(enum rings_class c)
{
	struct waiting *w = &waiting[c];
	struct rings_node *n = w->first;

	if (!n)
		return NULL;
	w->first = n->next[c];
	if (!w->first)
		w->last = NULL;
	n->waits[c] = false;
	return n;
}

void rings_wake(unsigned n)
{
	wait_for(&rings_node[n], RINGS_VL15);
}

/* A host returns what it receives. */
static void echo(struct rings_node *host, struct rings_frame *f)
{
	uint8_t own[6];

	if (f->f.len != RINGS_ECHO_BYTES || f->bytes[0] & 1) {
		drop_frame(f);
		return;
	}
	memcpy(own, f->bytes, 6);
	memcpy(f->bytes, f->bytes + 6, 6);
	memcpy(f->bytes + 6, own, 6);
	rings_put(host, 1, RINGS_DATA, f);
}

void rings_put(struct rings_node *n, uint8_t port, enum rings_class c, struct rings_frame *f)
{
	struct rings_node *peer = n->port[port].peer;
	uint8_t at = n->port[port].peer_port;
	struct rings_ring *r;

	if (!peer) {
		drop_frame(f);
		return;
	}
	if (peer->kind == RINGS_HOST) {
		echo(peer, f);
		return;
	}
	r = &peer->port[at].in[c];
	if (c == RINGS_VL15 && r->cnt == RING_VL15) {
		lose_frame(f);
		return;
	}
	f->next = NULL;
	if (r->cnt++)
		r->last->next = f;
	else
		r->first = f;
	r->last = f;
	peer->has[c] |= UINT64_C(1) << at;
	wait_for(peer, c);
}

static struct rings_frame *take_from(struct rings_node *n, uint8_t port, enum rings_class c)
{
	struct rings_ring *r = &n->port[port].in[c];
	struct rings_frame *f = r->first;

	r->first = f->next;
	if (!--r->cnt)
		n->has[c] &= ~(UINT64_C(1) << port);
	return f;
}

/* The first port of a set from `turn` on. */
static uint8_t next_port(uint64_t ports, uint8_t turn)
{
	uint64_t later = ports & ~((UINT64_C(1) << turn) - 1);

	return (uint8_t)__builtin_ctzll(later ? later : ports);
}

/* What a port of a switch sends arrives at the other end. */
static void deliver(struct rings_node *n, uint8_t port, const struct ur_switch_tx *tx)
{
	struct rings_frame *f = tx->frame.handle;

	if (f->refs > 1) { /* it was flooded, and is not changed */
		struct rings_frame *copy = rings_take_frame();

		memcpy(copy->bytes, f->bytes, f->f.len);
		copy->f.len = f->f.len;
		drop_frame(f);
		f = copy;
	}
	rings_put(n, port, tx->vl == UR_SWITCH_VL15 ? RINGS_VL15 : RINGS_DATA, f);
}

/* ---- switches ---- */

static void take_in(struct rings_node *n, enum rings_class c, uint8_t port, uint64_t at_ns)
{
	struct rings_frame *f = take_from(n, port, c);
	unsigned refs = ur_switch_input(n->sw, port, &f->f, at_ns);

	if (refs)
		f->refs = refs;
	else
		lose_frame(f);
}

static void serve_agent(struct rings_node *n, uint64_t at_ns)
{
	struct ur_switch_tx tx;

	while (ur_switch_output(n->sw, 0, &tx, 1, at_ns)) {
		(void)ur_switch_agent_input(n->agent, &tx.frame, tx.in_port, at_ns);
		drop_frame(tx.frame.handle);
	}
	if (ur_switch_agent_next_deadline(n->agent) <= at_ns)
		ur_switch_agent_expire(n->agent, at_ns);
	while (ur_switch_agent_wants_output(n->agent)) {
		struct rings_frame *f = rings_take_frame();

		if (!ur_switch_agent_output(n->agent, &f->f, at_ns))
			drop_frame(f);
	}
}

/* What a port has to send of a class. */
static bool has_to_send(const struct rings_node *n, uint8_t port, enum rings_class c)
{
	return ur_switch_queued_bytes(n->sw, port, c == RINGS_VL15 ? UR_SWITCH_VL15 : DATA_VL);
}

/* The next port after the one that had its turn, if it has something to send. False: none has. */
static bool send_one(struct rings_node *n, enum rings_class c, uint64_t at_ns)
{
	struct ur_switch_tx tx;

	for (uint8_t i = 0; i + 1u < n->ports; i++) {
		uint8_t p = (uint8_t)(1 + (n->out_turn + i) % (n->ports - 1));

		if (!has_to_send(n, p, c))
			continue;
		(void)ur_switch_output(n->sw, p, &tx, 1, at_ns);
		deliver(n, p, &tx);
		n->out_turn = p;
		return true;
	}
	return false;
}

static bool take_one(struct rings_node *n, enum rings_class c, uint64_t at_ns)
{
	uint8_t port;

	if (!n->has[c] || (c == RINGS_DATA && ur_switch_queued(n->sw) >= QUEUED))
		return false;
	port = next_port(n->has[c], n->in_turn);
	n->in_turn = (uint8_t)(port + 1);
	take_in(n, c, port, at_ns);
	return true;
}

/*
 * One frame in, and what the agent and the ports then have to send: all of VL15, a frame of data. Returns the frames moved by a
 * hop.
 */
static unsigned serve_switch(struct rings_node *n, enum rings_class c)
{
	uint64_t at_ns = rings_now();
	bool taken = take_one(n, c, at_ns), sent;
	struct ur_switch_tx tx;

	serve_agent(n, at_ns);
	sent = send_one(n, c, at_ns);
	while (c == RINGS_VL15 && send_one(n, c, at_ns))
		;
	while (ur_switch_reap(n->sw, &tx, 1))
		drop_frame(tx.frame.handle);
	if (n->has[c] || (c == RINGS_DATA && ur_switch_queued(n->sw)))
		wait_for(n, c);
	return taken || sent;
}

/* ---- ends ---- */

void rings_pump(struct rings_node *n)
{
	struct ur_path path = {0};
	struct ur_nma_out out;

	while (ur_nma_output(n->nma, &out, rings_now())) {
		struct rings_frame *f;

		if (out.to.way == UR_MAD_LOCAL) {
			if (n == &rings_node[rings_manager])
				rings_take_mad(&out);
			continue;
		}
		f = rings_take_frame();
		if (out.to.way == UR_MAD_LID)
			ur_mad_lid_path(&path, out.to.slid, out.to.dlid);
		else
			ur_mad_hop_path(&path, n->mac);
		f->f.len = ur_mad_frame(f->bytes, &path, ur_qpn(out.to.dqpn), ur_qpn(out.to.sqpn),
					ur_psn(1), out.mad);
		rings_put(n, 1, RINGS_VL15, f);
	}
}

static void take_mad_at_end(struct rings_node *n, struct rings_frame *f)
{
	struct ur_nma_from from = {.port = 1};
	struct ur_packet p;

	if (ur_packet_decode(f->bytes, f->f.len, &p) != UR_DROP_NONE || !ur_icrc_ok(f->bytes, &p) ||
	    p.bth.opcode != UR_UD_SEND_ONLY || p.payload_len != UR_MAD_BYTES)
		return;
	from.way = ur_mad_way_of(&p, &from.slid, &from.dlid);
	from.qpn = (uint8_t)p.bth.dqpn.v;
	from.sqpn = p.deth.sqpn.v;
	(void)ur_nma_input(n->nma, p.payload, &from, rings_now());
}

static unsigned serve_end(struct rings_node *n)
{
	unsigned taken = 0;

	for (; n->has[RINGS_VL15]; taken++) {
		struct rings_frame *f = take_from(n, 1, RINGS_VL15);

		take_mad_at_end(n, f);
		drop_frame(f);
		rings_pump(n);
	}
	rings_pump(n);
	return taken;
}

/* An end sends data back to where it came from. Returns the frames taken. */
static unsigned return_data(struct rings_node *n)
{
	struct rings_frame *f;

	if (!n->has[RINGS_DATA])
		return 0;
	f = take_from(n, 1, RINGS_DATA);
	if (!memcmp(f->bytes, rings_echo_mac, 6))
		rings_echoed = true;
	if (n->header_len) {
		memcpy(f->bytes, n->header, n->header_len);
		rings_put(n, 1, RINGS_DATA, f);
	} else {
		drop_frame(f);
	}
	if (n->has[RINGS_DATA])
		wait_for(n, RINGS_DATA);
	return 1;
}

/* ---- rounds ---- */

/* Serves the next node for which data waits. False: there is none. */
static bool move_data(void)
{
	struct rings_node *n = next_waiting(RINGS_DATA);

	if (!n)
		return false;
	rings_moved.data += n->kind == RINGS_SWITCH ? serve_switch(n, RINGS_DATA) : return_data(n);
	return true;
}

void rings_set_share(unsigned mads)
{
	mads_per_data = mads;
	mads_paid = rings_moved.mads;
}

static void give_data_its_share(void)
{
	while (rings_moved.mads - mads_paid >= mads_per_data) {
		mads_paid += mads_per_data;
		if (!move_data())
			return;
	}
}

bool rings_round(void)
{
	struct rings_node *n;
	bool any = false;

	for (; (n = next_waiting(RINGS_VL15)); any = true) {
		if (n->kind == RINGS_SWITCH)
			rings_moved.mads += serve_switch(n, RINGS_VL15);
		else
			rings_moved.mads += serve_end(n);
		if (mads_per_data)
			give_data_its_share();
	}
	if (!mads_per_data)
		while (move_data())
			any = true;
	return any;
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
		if (rings_node[i].kind == RINGS_SWITCH &&
		    ur_switch_agent_next_deadline(rings_node[i].agent) <= at_ns)
			rings_wake(i);
	rings_run();
}
