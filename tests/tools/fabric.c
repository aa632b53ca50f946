/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric of management agents in one process, to run the field's own tools against: the agents are those of endpoints
 * and switches, their links are queues, and switches forward by the tables that a subnet manager loads.
 *
 *	fabric [--eth NAME]... LEAVES SPINES HOSTS [SOCKET]...
 *
 * LEAVES switches with HOSTS endpoints each, every one of them linked to every one of SPINES switches. A channel adapter
 * outside is linked by each --eth (a network interface) or SOCKET (where the fabric listens): the first to the first
 * leaf, the second to the second, and so on. There, frames are as on any Ethernet.
 *
 * Lines on standard input: "kill NAME" and "revive NAME" a node, "down NAME PORT" and "up NAME PORT" a link, "errors NAME
 * PORT" for ten symbol errors, "overruns NAME PORT" for two seconds of them, "silence NAME PORT" for a peer that says nothing
 * about credits, "quit". A node's name is its NodeDescription: leaf-1, spine-2, host-1-3. Each line is
 * answered by "ok" or "no". The first line of output is "ready".
 */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "link.h"
#include "mgmt/nma.h"
#include "wire/assert.h"
#include "wire/icrc.h"

#define LIDS	     16384
#define PORTS_MAX    64
#define OUTSIDE_MAX  8
#define QUEUE	     65536 /* packets on links; more are lost */
#define FRAME_ROOM   2048
#define BPS	     100000000000ull
#define HOPS_MAX     64
#define STEP_PACKETS 4096

struct node;

struct end {
	struct node *node; /* NULL: nothing, or the world outside */
	uint8_t port;
	int outside;	     /* number + 1 */
	bool down;	     /* a test pulled the cable */
	bool disabled, told; /* by management; whether both ends know */
};

struct node {
	struct ur_nma *nma;
	char name[32];
	bool dead;
	unsigned ports;
	bool is_switch;
	struct end peer[PORTS_MAX + 1];
	uint64_t packets[PORTS_MAX + 1][2]; /* sent, received */
	uint64_t errors[PORTS_MAX + 1];	    /* as a test asks for them */
	/* As a test asks for them: these go on until then. */
	uint64_t overruns[PORTS_MAX + 1], overruns_until_ns[PORTS_MAX + 1], silences[PORTS_MAX + 1];
	uint8_t *lft; /* of a switch */
};

struct packet {
	struct node *node; /* that receives it */
	struct ur_nma_from from;
	uint8_t mad[UR_MAD_BYTES];
};

struct outside {
	struct link link;
	int listener;
	struct node *node;
	uint8_t port;
	bool up;
};

struct fabric {
	struct node *nodes;
	unsigned nodes_cnt, outside_cnt;
	struct outside outside[OUTSIDE_MAX];
	struct packet *queue;
	unsigned head, cnt;
	uint64_t lost;
	bool quit;
};

static struct fabric fabric;

_Noreturn void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "fabric: %s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* ---- callbacks of the agents ---- */

static bool is_up(const struct node *n, unsigned port)
{
	const struct end *e = &n->peer[port];

	if (n->dead || e->down || e->disabled)
		return false;
	if (e->outside != 0)
		return fabric.outside[e->outside - 1].up;
	return e->node != NULL && !e->node->dead && !e->node->peer[e->port].down &&
	       !e->node->peer[e->port].disabled;
}

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	const struct node *n = ctx;
	const struct end *e = &n->peer[port];

	*link = (struct ur_nma_link){
		.up = port == 0 || is_up(n, port),
		.mtu = 5,
		.bps = e->outside != 0 && fabric.outside[e->outside - 1].link.bps != 0
			       ? fabric.outside[e->outside - 1].link.bps
			       : BPS,
	};
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *c)
{
	struct node *n = ctx;

	n->overruns[port] += now_ns() < n->overruns_until_ns[port];
	*c = (struct ur_nma_counters){.tx_packets = n->packets[port][0],
				      .rx_packets = n->packets[port][1],
				      .tx_bytes = n->packets[port][0] * UR_MAD_BYTES,
				      .rx_bytes = n->packets[port][1] * UR_MAD_BYTES,
				      .symbol_errors = n->errors[port],
				      .overruns = n->overruns[port],
				      .flow_control = n->silences[port]};
}

static void get_gauges(void *ctx, struct ur_nma_gauges *gauges)
{
	*gauges = (struct ur_nma_gauges){.load = 0};
}

static void get_lft(void *ctx, uint16_t block, uint8_t ports[64])
{
	memcpy(ports, ((const struct node *)ctx)->lft + block * 64u, 64);
}

static int set_lft(void *ctx, uint16_t block, const uint8_t ports[64])
{
	memcpy(((const struct node *)ctx)->lft + block * 64u, ports, 64);
	return 0;
}

static void set_enabled(void *ctx, uint8_t port, bool enabled)
{
	struct end *e = &((struct node *)ctx)->peer[port];

	e->disabled = !enabled;
	e->told = false;
}

static const struct ur_nma_ops ops = {
	.get_link = get_link,
	.get_counters = get_counters,
	.get_gauges = get_gauges,
	.get_lft = get_lft,
	.set_lft = set_lft,
	.set_enabled = set_enabled,
};

/* ---- packets ---- */

static void put(struct node *node, const struct ur_nma_from *from, const uint8_t *mad)
{
	struct packet *p;

	if (node->dead || fabric.cnt == QUEUE) {
		fabric.lost++;
		return;
	}
	p = &fabric.queue[(fabric.head + fabric.cnt++) % QUEUE];
	p->node = node;
	p->from = *from;
	memcpy(p->mad, mad, UR_MAD_BYTES);
}

static void send_outside(struct outside *o, const struct ur_nma_to *to, const uint8_t *mad)
{
	const uint8_t mac[6] = {0x02, 0, 0, 0, 0, (uint8_t)(o - fabric.outside)};
	uint8_t frame[FRAME_ROOM];
	struct ur_path path;

	if (to->way == UR_MAD_HOP)
		ur_mad_hop_path(&path, mac);
	else
		ur_mad_lid_path(&path, to->slid, to->dlid);
	link_send(&o->link, frame,
		  ur_mad_frame(frame, &path, ur_qpn(to->dqpn), ur_qpn(to->sqpn), ur_psn(0), mad));
}

/* Sends by a port: to the node at the other end, or outside. */
static void send_by(struct node *n, unsigned port, const struct ur_nma_to *to, const uint8_t *mad)
{
	const struct end *e = &n->peer[port];
	const struct ur_nma_from from = {.way = to->way,
					 .port = e->port,
					 .qpn = (uint8_t)to->dqpn,
					 .sqpn = to->sqpn,
					 .slid = to->way == UR_MAD_LID ? to->slid : 0xffff,
					 .dlid = to->way == UR_MAD_LID ? to->dlid : 0xffff};

	if (!is_up(n, port))
		return;
	n->packets[port][0]++;
	if (e->outside != 0)
		send_outside(&fabric.outside[e->outside - 1], to, mad);
	else
		put(e->node, &from, mad);
}

static bool is_mine(const struct node *n, uint16_t dlid)
{
	uint8_t lmc, port = n->is_switch ? 0 : 1;
	uint16_t lid = ur_nma_lid(n->nma, port, &lmc);

	return lid != 0 && dlid >> lmc == lid >> lmc;
}

static void forward_by_lid(struct node *n, const struct ur_nma_to *to, const uint8_t *mad)
{
	unsigned port = to->dlid < LIDS ? n->lft[to->dlid] : 0xff;

	if (port >= 1 && port <= n->ports)
		send_by(n, port, to, mad);
	else
		fabric.lost++;
}

static void run_agent(struct node *n, uint64_t now)
{
	struct ur_nma_out out;

	while (ur_nma_output(n->nma, &out, now)) {
		if (out.to.way == UR_MAD_LID && n->is_switch)
			forward_by_lid(n, &out.to, out.mad);
		else
			send_by(n, out.to.port, &out.to, out.mad);
	}
}

static void receive(struct packet *p, uint64_t now)
{
	struct node *n = p->node;
	const struct ur_nma_to to = {.way = UR_MAD_LID,
				     .sqpn = p->from.sqpn,
				     .dqpn = p->from.qpn,
				     .slid = p->from.slid,
				     .dlid = p->from.dlid};

	if (!is_up(n, p->from.port))
		return;
	n->packets[p->from.port][1]++;
	if (p->from.way == UR_MAD_HOP || is_mine(n, p->from.dlid)) {
		ur_nma_input(n->nma, p->mad, &p->from, now);
		run_agent(n, now);
	} else if (n->is_switch) {
		forward_by_lid(n, &to, p->mad);
	}
}

static void run_queue(uint64_t now)
{
	for (unsigned i = 0; i < STEP_PACKETS && fabric.cnt > 0; i++) {
		struct packet p = fabric.queue[fabric.head];

		fabric.head = (fabric.head + 1) % QUEUE;
		fabric.cnt--;
		receive(&p, now);
	}
}

static void receive_outside(struct outside *o)
{
	uint8_t frame[FRAME_ROOM];
	struct ur_packet p;
	size_t len;

	while ((len = link_receive(&o->link, frame, sizeof(frame))) > 0) {
		struct ur_nma_from from = {.port = o->port};

		if (ur_packet_decode(frame, len, &p) != UR_DROP_NONE || !ur_icrc_ok(frame, &p) ||
		    p.payload_len != UR_MAD_BYTES)
			continue;
		from.way = ur_mad_way_of(&p, &from.slid, &from.dlid);
		if (from.way != UR_MAD_HOP && from.way != UR_MAD_LID)
			continue;
		from.qpn = (uint8_t)p.bth.dqpn.v;
		from.sqpn = p.deth.sqpn.v;
		put(o->node, &from, p.payload);
	}
}

/* ---- links and nodes that come and go ---- */

/* Tells both ends of a link that it may have changed. */
static void tell_ends(struct node *n, unsigned port, uint64_t now)
{
	const struct end *e = &n->peer[port];

	if (!n->dead) {
		ur_nma_link_event(n->nma, (uint8_t)port, now);
		run_agent(n, now);
	}
	if (e->node != NULL && !e->node->dead) {
		ur_nma_link_event(e->node->nma, e->port, now);
		run_agent(e->node, now);
	}
}

/* What management has enabled or disabled. */
static void tell_of_ports(struct node *n, uint64_t now)
{
	for (unsigned p = 1; p <= n->ports; p++)
		if (!n->peer[p].told) {
			n->peer[p].told = true;
			tell_ends(n, p, now);
		}
}

static void start_agent(struct node *n, uint64_t now)
{
	const struct ur_nma_limits limits = {.ports = (uint8_t)n->ports,
					     .requests = 256,
					     .passing = 512,
					     .remembered = 16,
					     .notices = 64};
	const uint64_t guid = 0x0200000000000100ull + ((uint64_t)(n - fabric.nodes) << 8);
	struct ur_nma_attr attr = {
		.limits = limits,
		.type = n->is_switch ? UR_NODE_SWITCH : UR_NODE_CA,
		.node_guid = guid,
		.port_guid = n->is_switch ? guid : guid + 1,
		.lft_lids = n->is_switch ? LIDS : 0,
		.seed = guid,
		.ops = &ops,
		.ctx = n,
	};
	size_t bytes = (ur_nma_size(&limits) + 63) / 64 * 64;
	void *memory = n->nma != NULL ? (void *)n->nma : aligned_alloc(64, bytes);

	snprintf(attr.description, sizeof(attr.description), "%s", n->name);
	if (n->is_switch) {
		n->lft = n->lft != NULL ? n->lft : malloc(LIDS);
		memset(n->lft, 0xff, LIDS);
	}
	n->nma = ur_nma_init(memory, &attr, now);
}

static struct node *find_node(const char *name)
{
	for (unsigned i = 0; i < fabric.nodes_cnt; i++)
		if (strcmp(fabric.nodes[i].name, name) == 0)
			return &fabric.nodes[i];
	return NULL;
}

static void obey(char *line, uint64_t now)
{
	char verb[16] = "", name[32] = "";
	unsigned port = 0;
	int words = sscanf(line, "%15s %31s %u", verb, name, &port);
	struct node *n = find_node(name);

	if (strcmp(verb, "quit") == 0) {
		fabric.quit = true;
	} else if (n != NULL && words == 2 && (!strcmp(verb, "kill") || !strcmp(verb, "revive"))) {
		n->dead = verb[0] == 'k';
		if (!n->dead)
			start_agent(n, now);
		for (unsigned p = 1; p <= n->ports; p++)
			tell_ends(n, p, now);
	} else if (n != NULL && words == 3 && port >= 1 && port <= n->ports &&
		   (!strcmp(verb, "down") || !strcmp(verb, "up"))) {
		n->peer[port].down = verb[0] == 'd';
		tell_ends(n, port, now);
	} else if (n != NULL && words == 3 && port >= 1 && port <= n->ports &&
		   !strcmp(verb, "errors")) {
		n->errors[port] += 10;
	} else if (n != NULL && words == 3 && port >= 1 && port <= n->ports &&
		   !strcmp(verb, "overruns")) {
		n->overruns_until_ns[port] = now + 2000000000ull;
	} else if (n != NULL && words == 3 && port >= 1 && port <= n->ports &&
		   !strcmp(verb, "silence")) {
		n->silences[port]++;
	} else {
		puts("no");
		fflush(stdout);
		return;
	}
	puts("ok");
	fflush(stdout);
}

static void read_commands(uint64_t now)
{
	static char text[512];
	static size_t len;
	ssize_t n = read(STDIN_FILENO, text + len, sizeof(text) - len - 1);
	char *end;

	if (n <= 0) {
		fabric.quit = true;
		return;
	}
	len += (size_t)n;
	text[len] = '\0';
	while ((end = strchr(text, '\n')) != NULL) {
		*end = '\0';
		obey(text, now);
		len -= (size_t)(end + 1 - text);
		memmove(text, end + 1, len + 1);
	}
	if (len == sizeof(text) - 1)
		len = 0;
}

/* ---- building ---- */

static void join(struct node *a, unsigned pa, struct node *b, unsigned pb)
{
	a->peer[pa] = (struct end){.node = b, .port = (uint8_t)pb};
	b->peer[pb] = (struct end){.node = a, .port = (uint8_t)pa};
}

static struct node *add_node(const char *name, bool is_switch, unsigned ports)
{
	struct node *n = &fabric.nodes[fabric.nodes_cnt++];

	snprintf(n->name, sizeof(n->name), "%s", name);
	n->is_switch = is_switch;
	n->ports = ports;
	return n;
}

/* Ports of a leaf: 1 for the world outside, endpoints, spines. */
static void build(unsigned leaves, unsigned spines, unsigned hosts, uint64_t now)
{
	struct node *leaf[PORTS_MAX], *spine[PORTS_MAX], *host;
	char name[32];

	fabric.nodes = calloc(leaves * (hosts + 1) + spines, sizeof(*fabric.nodes));
	fabric.queue = calloc(QUEUE, sizeof(*fabric.queue));
	for (unsigned l = 0; l < leaves; l++) {
		snprintf(name, sizeof(name), "leaf-%u", l + 1);
		leaf[l] = add_node(name, true, 1 + hosts + spines);
	}
	for (unsigned s = 0; s < spines; s++) {
		snprintf(name, sizeof(name), "spine-%u", s + 1);
		spine[s] = add_node(name, true, leaves);
		for (unsigned l = 0; l < leaves; l++)
			join(spine[s], l + 1, leaf[l], 2 + hosts + s);
	}
	for (unsigned l = 0; l < leaves; l++)
		for (unsigned h = 0; h < hosts; h++) {
			snprintf(name, sizeof(name), "host-%u-%u", l + 1, h + 1);
			host = add_node(name, false, 1);
			join(host, 1, leaf[l], 2 + h);
		}
	for (unsigned i = 0; i < fabric.outside_cnt; i++) {
		leaf[i]->peer[1] = (struct end){.outside = (int)i + 1};
		fabric.outside[i].node = leaf[i];
		fabric.outside[i].port = 1;
	}
	for (unsigned i = 0; i < fabric.nodes_cnt; i++)
		start_agent(&fabric.nodes[i], now);
	for (unsigned i = 0; i < fabric.nodes_cnt; i++)
		for (unsigned p = 1; p <= fabric.nodes[i].ports; p++)
			ur_nma_link_event(fabric.nodes[i].nma, (uint8_t)p, now);
}

static bool add_outside(const char *name, bool is_eth)
{
	struct outside *o = &fabric.outside[fabric.outside_cnt++];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const uint8_t mac[6] = {0x02, 0, 0, 0, 1, (uint8_t)fabric.outside_cnt};
	char link[128];

	o->listener = -1;
	if (is_eth) {
		snprintf(link, sizeof(link), "eth:%s", name);
		return link_open(&o->link, link, mac) == 0;
	}
	o->link = (struct link){.fd = -1, .is_unix = true};
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", name);
	unlink(name);
	o->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return o->listener >= 0 &&
	       bind(o->listener, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
	       listen(o->listener, 1) == 0;
}

/* ---- the loop ---- */

static void serve_outside(struct outside *o, bool readable, uint64_t now)
{
	bool up;

	if (o->link.fd < 0 && o->listener >= 0 && readable)
		o->link.fd = accept4(o->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (o->listener < 0 && !o->up)
		link_reopen(&o->link);
	receive_outside(o);
	up = link_is_up(&o->link);
	if (up != o->up) {
		o->up = up;
		tell_ends(o->node, o->port, now);
	}
}

static void serve(void)
{
	struct pollfd fds[1 + OUTSIDE_MAX];

	while (!fabric.quit) {
		uint64_t now;

		fds[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
		for (unsigned i = 0; i < fabric.outside_cnt; i++) {
			const struct outside *o = &fabric.outside[i];

			fds[1 + i] = (struct pollfd){
				.fd = o->link.fd >= 0 ? o->link.fd : o->listener, .events = POLLIN};
		}
		poll(fds, 1 + fabric.outside_cnt, fabric.cnt > 0 ? 0 : 50);
		now = now_ns();
		if (fds[0].revents != 0)
			read_commands(now);
		for (unsigned i = 0; i < fabric.outside_cnt; i++)
			serve_outside(&fabric.outside[i], fds[1 + i].revents != 0, now);
		run_queue(now);
		for (unsigned i = 0; i < fabric.nodes_cnt; i++) {
			struct node *n = &fabric.nodes[i];

			if (n->dead)
				continue;
			if (ur_nma_next_deadline(n->nma) <= now)
				ur_nma_expire(n->nma, now);
			if (ur_nma_wants_output(n->nma))
				run_agent(n, now);
			tell_of_ports(n, now);
		}
	}
}

int main(int argc, char **argv)
{
	unsigned size[3], sizes = 0;

	for (int i = 1; i < argc; i++) {
		bool is_eth = strcmp(argv[i], "--eth") == 0 && i + 1 < argc;

		if (sizes < 3 && !is_eth)
			size[sizes++] = (unsigned)strtoul(argv[i], NULL, 10);
		else if (fabric.outside_cnt == OUTSIDE_MAX ||
			 !add_outside(argv[i + is_eth], is_eth))
			sizes = 4;
		i += is_eth;
	}
	if (sizes != 3 || size[0] < fabric.outside_cnt || size[0] > PORTS_MAX ||
	    size[1] > PORTS_MAX || 1 + size[1] + size[2] > PORTS_MAX) {
		fprintf(stderr, "fabric: bad arguments; the top of fabric.c explains them\n");
		return 2;
	}
	build(size[0], size[1], size[2], now_ns());
	puts("ready");
	fflush(stdout);
	serve();
	return 0;
}
