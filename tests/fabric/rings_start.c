/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/shape.h"
#include "rings_priv.h"
#include "wire/opcode.h"
#include "wire/path.h"
#include "wire/roce.h"

/* The nodes of a row or of a shape, their links, and the flows of data. */

#define ROW_PORTS                                                                                  \
	4 /* port 0 included: 1 toward the manager, 2 away from it, 3 to a host that returns frames */
#define DATA_QPN   0x77
#define FAR	   UINT16_MAX
#define MANY	   512 /* of more nodes each has short queues, so that all fit in memory */
#define FEW_FRAMES 64

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* ---- nodes ---- */

static void *zeroed(size_t bytes)
{
	return rings_must(calloc(1, bytes));
}

static void *lines(size_t bytes)
{
	return rings_must(aligned_alloc(64, (bytes + 63) & ~(size_t)63));
}

static void make_nodes(unsigned cnt)
{
	rings_cnt = cnt;
	rings_node = zeroed(cnt * sizeof(*rings_node));
}

static void give_ports(struct rings_node *n, enum rings_kind kind, uint8_t ports)
{
	n->kind = kind;
	n->ports = ports;
	n->port = zeroed(ports * sizeof(*n->port));
}

static void join(unsigned a, uint8_t port_a, unsigned b, uint8_t port_b)
{
	rings_node[a].port[port_a].peer = &rings_node[b];
	rings_node[a].port[port_a].peer_port = port_b;
	rings_node[b].port[port_b].peer = &rings_node[a];
	rings_node[b].port[port_b].peer_port = port_a;
}

unsigned rings_links(unsigned n)
{
	unsigned links = 0;

	for (uint8_t p = 1; p < rings_node[n].ports; p++)
		links += rings_node[n].port[p].peer != NULL;
	return links;
}

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	*link = (struct ur_nma_link){.up = true, .mtu = 5};
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *counters)
{
	*counters = (struct ur_nma_counters){0};
}

static void start_end(unsigned i, uint64_t guid, const char *description)
{
	static const struct ur_nma_ops ops = {.get_link = get_link, .get_counters = get_counters};
	bool is_manager = i == rings_manager;
	uint16_t room = is_manager ? 64 : 8;
	struct ur_nma_attr attr = {
		.limits = {.ports = 1,
			   .requests = room,
			   .passing = room,
			   .remembered = 8,
			   .notices = 4},
		.type = UR_NODE_CA,
		.vendor_id = UR_VENDOR_OUI,
		.node_guid = guid,
		.port_guid = guid + 1,
		.ops = &ops,
	};
	struct rings_node *n = &rings_node[i];

	snprintf(attr.description, sizeof(attr.description), "%s", description);
	memcpy(n->mac,
	       (const uint8_t[]){2, 0, 0, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}, 6);
	n->nma = ur_nma_init(lines(ur_nma_size(&attr.limits)), &attr, rings_now());
	ur_nma_set_client(n->nma, is_manager, false);
	ur_nma_link_event(n->nma, 1, rings_now());
	rings_pump(n);
}

static void start_switch(unsigned i, uint64_t guid, const char *description)
{
	struct ur_switch_agent_attr a = {.config = {.open = true}, .guid = guid, .seed = i + 1};
	struct rings_node *n = &rings_node[i];
	struct ur_switch_attr attr;

	ur_switch_attr_default(&attr);
	attr.limits.ports = n->ports;
	if (rings_cnt > MANY) {
		attr.limits.frames = FEW_FRAMES;
		attr.limits.macs = UR_SWITCH_PORTS_MAX;
	} else {
		a.eeprom = memset(rings_must(malloc(UR_EEPROM_BYTES)), 0xff, UR_EEPROM_BYTES);
	}
	attr.seed = i + 1;
	n->sw = ur_switch_init(lines(ur_switch_size(&attr)), &attr);
	snprintf(a.description, sizeof(a.description), "%s", description);
	for (uint8_t p = 1; p < n->ports; p++) {
		struct ur_switch_port_attr pa;

		ur_switch_port_attr_default(&pa);
		pa.mgmt_per_s = 0; /* measured is what a request takes, not how many are allowed */
		ur_switch_set_port(n->sw, p, &pa, rings_now());
		ur_switch_set_link(n->sw, p, n->port[p].peer != NULL, rings_now());
		memcpy(a.mac[p],
		       (const uint8_t[]){6, p, 0, (uint8_t)(i >> 16), (uint8_t)(i >> 8),
					 (uint8_t)i},
		       6);
	}
	n->born_ns = rings_now();
	n->agent =
		ur_switch_agent_init(lines(ur_switch_agent_size(n->ports)), n->sw, &a, n->born_ns);
	rings_wake(i);
}

void rings_send(const struct ur_mgr_mad *m)
{
	struct ur_nma_from from = {.way = UR_MAD_LOCAL, .dlid = m->lid};

	(void)ur_nma_input(rings_node[rings_manager].nma, m->bytes, &from, rings_now());
	rings_pump(&rings_node[rings_manager]);
}

/* ---- a row ---- */

static void host_mac(unsigned n, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[]){2, 0, 0, 2, 0, (uint8_t)n}, 6);
}

/* A frame that is no management packet. */
static void put_frame(unsigned node, const uint8_t dst[6], const uint8_t src[6])
{
	struct rings_frame *f = rings_take_frame();

	memset(f->bytes, 0, RINGS_ECHO_BYTES);
	memcpy(f->bytes, dst, 6);
	memcpy(f->bytes + 6, src, 6);
	ur_store16(f->bytes + 12, RINGS_ETHERTYPE);
	f->f.len = RINGS_ECHO_BYTES;
	rings_put(&rings_node[node], 1, RINGS_DATA, f);
}

void rings_send_echo(unsigned n)
{
	uint8_t mac[6];

	host_mac(n, mac);
	put_frame(rings_manager, mac, rings_echo_mac);
}

/* Each host sends a frame to all, so that its address is learned, and so does the manager. */
static void introduce_hosts(unsigned switches)
{
	uint8_t mac[6];

	for (unsigned i = 0; i < switches; i++) {
		host_mac(i, mac);
		put_frame(rings_manager + 1 + i, everybody, mac);
		rings_run();
	}
	for (unsigned i = 0; i < switches; i++) {
		rings_send_echo(i);
		rings_run();
	}
}

void rings_start_row(unsigned cnt, rings_take_fn take)
{
	char name[32];

	make_nodes(2 * cnt + 1);
	rings_manager = cnt;
	rings_take_mad = take;
	for (unsigned i = 0; i < rings_cnt; i++)
		give_ports(&rings_node[i],
			   i < cnt    ? RINGS_SWITCH
			   : i == cnt ? RINGS_END
				      : RINGS_HOST,
			   i < cnt ? ROW_PORTS : 2);
	join(rings_manager, 1, 0, 1);
	for (unsigned i = 0; i < cnt; i++) {
		join(i, 3, rings_manager + 1 + i, 1);
		if (i + 1 < cnt)
			join(i, 2, i + 1, 1);
	}
	for (unsigned i = 0; i < cnt; i++) {
		snprintf(name, sizeof(name), "switch %u", i);
		start_switch(i, 0x100 + i, name);
	}
	start_end(rings_manager, 0x77, "manager");
	rings_run();
	introduce_hosts(cnt);
}

/* ---- a shape ---- */

void rings_start_shape(const char *shape, rings_take_fn take)
{
	struct ur_fabric_attr attr = {.seed = 1};
	const struct ur_fabric_node_attr *a;
	struct ur_fabric *f;
	uint8_t peer_port;
	uint32_t peer;
	char err[256];

	f = ur_fabric_of_shape(shape, &attr, err, sizeof(err));
	if (!f)
		rings_give_up(err);
	rings_take_mad = take;
	make_nodes(ur_fabric_nodes(f));
	for (unsigned i = 0; i < rings_cnt; i++) {
		a = ur_fabric_node(f, i);
		if (a->ports >= UR_SWITCH_PORTS_MAX || (!a->is_switch && a->ports > 1))
			rings_give_up("a switch has 63 ports at most, an endpoint one");
		give_ports(&rings_node[i], a->is_switch ? RINGS_SWITCH : RINGS_END,
			   (uint8_t)(a->ports + 1));
	}
	for (unsigned i = 0; i < rings_cnt; i++)
		for (uint8_t p = 1; p < rings_node[i].ports; p++)
			if (ur_fabric_peer(f, i, p, &peer, &peer_port))
				join(i, p, peer, peer_port);
	for (unsigned i = 0; i < rings_cnt; i++) {
		a = ur_fabric_node(f, i);
		if (a->is_switch)
			start_switch(i, a->guid, a->name);
		else
			start_end(i, a->guid, a->name);
	}
	ur_fabric_free(f);
	rings_run();
}

/* ---- data ---- */

static uint16_t lid_of(unsigned flow)
{
	return (uint16_t)(flow + 1);
}

static struct ur_gid addr_of(unsigned flow)
{
	return ur_gid_from_ipv4(0x0a000000 + lid_of(flow));
}

/* Links from each node to `end`. */
static void measure_distances(const struct rings_node *end, uint16_t *distance, unsigned *queue)
{
	unsigned head = 0, tail = 0;

	memset(distance, 0xff, rings_cnt * sizeof(*distance));
	queue[tail++] = (unsigned)(end - rings_node);
	distance[queue[0]] = 0;
	while (head < tail) {
		unsigned at = queue[head++];
		const struct rings_node *n = &rings_node[at];

		for (uint8_t p = 1; p < n->ports; p++) {
			unsigned peer =
				n->port[p].peer ? (unsigned)(n->port[p].peer - rings_node) : at;

			if (distance[peer] != FAR || rings_node[peer].kind != RINGS_SWITCH)
				continue;
			distance[peer] = (uint16_t)(distance[at] + 1);
			queue[tail++] = peer;
		}
	}
}

/* The way to `end` in the tables of all switches: one of the shortest, another one for each LID. */
static void load_route(const struct rings_node *end, uint16_t lid, const struct ur_gid *addr,
		       const uint16_t *distance)
{
	for (unsigned i = 0; i < rings_cnt; i++) {
		struct rings_node *n = &rings_node[i];
		uint8_t way[UR_SWITCH_PORTS_MAX];
		unsigned ways = 0;

		if (n->kind != RINGS_SWITCH || distance[i] == FAR)
			continue;
		for (uint8_t p = 1; p < n->ports; p++) {
			const struct rings_node *peer = n->port[p].peer;

			if (peer == end || (peer && peer->kind == RINGS_SWITCH &&
					    distance[peer - rings_node] < distance[i]))
				way[ways++] = p;
		}
		/* Two levels of a tree use two parts of the LID: the same one would leave half of the links idle. */
		ur_switch_set_lft(n->sw, lid, way[(distance[i] % 2 ? lid : lid / ways) % ways]);
		if (!ur_switch_set_route(n->sw, addr, lid, 0))
			rings_give_up("a switch has no room for a route");
	}
}

/* Chooses ends that send data, evenly spread if there are too many. Returns how many: an even number. */
static unsigned choose_ends(struct rings_node **end)
{
	uint64_t all = 0, most, seen = 0;
	unsigned cnt = 0;

	for (unsigned i = 0; i < rings_cnt; i++)
		all += rings_node[i].kind == RINGS_END;
	most = (all < RINGS_FLOWS_MAX ? all : RINGS_FLOWS_MAX) & ~UINT64_C(1);
	for (unsigned i = 0; i < rings_cnt; i++)
		if (rings_node[i].kind == RINGS_END) {
			if ((seen + 1) * most / all > seen * most / all)
				end[cnt++] = &rings_node[i];
			seen++;
		}
	return cnt;
}

/* RoCEv2 from one flow's end to its partner. */
static void make_header(struct rings_node *n, unsigned from, unsigned to)
{
	struct ur_path_attr a = {.smac = {2, 0, 1},
				 .dmac = {2, 0, 1},
				 .src = addr_of(from),
				 .dst = addr_of(to),
				 .sport = UR_ROCE_UDP_PORT};
	struct ur_bth bth = {.opcode = UR_RC_SEND_ONLY, .dqpn = ur_qpn(DATA_QPN)};
	struct ur_path path;
	struct ur_cursor c;

	ur_store16(a.smac + 4, lid_of(from));
	ur_store16(a.dmac + 4, lid_of(to));
	ur_path_init(&path, &a);
	n->header_len = ur_path_write(&path, n->header, RINGS_DATA_BYTES - path.len);
	c = ur_cursor(n->header + n->header_len, UR_BTH_BYTES);
	ur_put_bth(&c, &bth);
	n->header_len += UR_BTH_BYTES;
}

/* Puts frames of a flow into each ring on its way, until there are that many. */
static void fill_way(struct rings_node *from, unsigned to, unsigned frames)
{
	struct rings_node *n = from;
	uint8_t out = 1;

	do {
		const struct rings_port *at = &n->port[out];

		while (at->peer->port[at->peer_port].in[RINGS_DATA].cnt < frames) {
			struct rings_frame *f = rings_take_frame();

			memset(f->bytes, 0, RINGS_DATA_BYTES);
			memcpy(f->bytes, from->header, from->header_len);
			f->f.len = RINGS_DATA_BYTES;
			rings_put(n, out, RINGS_DATA, f);
		}
		n = at->peer;
		if (n->kind == RINGS_SWITCH)
			out = ur_switch_lft(n->sw, lid_of(to));
	} while (n->kind == RINGS_SWITCH);
}

/* Calls for the port at the end of each direction of a link; those of ends without data are left out. */
static void for_each_direction(void (*call)(void *ctx, const struct rings_port *port), void *ctx)
{
	for (unsigned i = 0; i < rings_cnt; i++)
		for (uint8_t p = 1; p < rings_node[i].ports; p++) {
			const struct rings_node *n = &rings_node[i], *from = n->port[p].peer;

			if (from && (from->kind == RINGS_SWITCH || from->header_len) &&
			    (n->kind == RINGS_SWITCH || n->header_len))
				call(ctx, &n->port[p]);
		}
}

struct directions {
	unsigned all, waits;
};

static void count(void *ctx, const struct rings_port *port)
{
	struct directions *d = ctx;

	d->all++;
	d->waits += port->in[RINGS_DATA].cnt ||
		    (port->peer->kind == RINGS_SWITCH &&
		     ur_switch_queued_bytes(port->peer->sw, port->peer_port, 0));
}

void rings_start_data(unsigned frames)
{
	struct rings_node **end = rings_must(calloc(RINGS_FLOWS_MAX, sizeof(*end)));
	uint16_t *distance = rings_must(calloc(rings_cnt, sizeof(*distance)));
	unsigned *queue = rings_must(calloc(rings_cnt, sizeof(*queue)));
	unsigned cnt = choose_ends(end);

	for (unsigned i = 0; i < cnt; i++) {
		struct ur_gid addr = addr_of(i);

		measure_distances(end[i], distance, queue);
		load_route(end[i], lid_of(i), &addr, distance);
		make_header(end[i], i, (i + cnt / 2) % cnt);
	}
	for (unsigned i = 0; i < cnt; i++)
		fill_way(end[i], (i + cnt / 2) % cnt, frames);
	free(end);
	free(distance);
	free(queue);
}

double rings_data_waits(void)
{
	struct directions d = {0};

	for_each_direction(count, &d);
	return d.all ? (double)d.waits / d.all : 0;
}
