/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"
#include "ring.h"
#include "state.h"
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "wire/mad_path.h"
#include "wire/siphash.h"

static bool has_clients(const struct switch_spec *s)
{
	return s->kind == SWITCH_SOCKET || s->kind == SWITCH_GROUP;
}

/* ---- receive ---- */

static unsigned receive(struct node *n, uint8_t port, uint64_t now_ns)
{
	struct device *dev = n->port[port].dev;
	struct rte_mbuf *m[DEVICE_BURST];
	unsigned got = dev->ops->rx(dev, m, DEVICE_BURST);

	for (unsigned i = 0; i < got; i++) {
		struct ur_switch_frame f = {rte_pktmbuf_mtod(m[i], uint8_t *), m[i],
					    m[i]->data_len};
		unsigned refs = ur_switch_input(n->sw, port, &f, now_ns);

		if (!refs)
			rte_pktmbuf_free(m[i]);
		else if (refs > 1)
			rte_mbuf_refcnt_update(m[i], (int16_t)(refs - 1));
	}
	return got;
}

/* ---- send ---- */

/* Writes the changed beginning of a frame that has no other reference. False: there is no room. */
static bool rewrite(struct rte_mbuf *m, const struct ur_switch_tx *tx)
{
	char *head;

	if (rte_mbuf_refcnt_read(m) != 1 || !RTE_MBUF_DIRECT(m) ||
	    rte_pktmbuf_headroom(m) + tx->skip < tx->head_len)
		return false;
	rte_pktmbuf_adj(m, tx->skip);
	head = rte_pktmbuf_prepend(m, tx->head_len);
	memcpy(head, tx->head, tx->head_len);
	return true;
}

/* The mbuf to send; NULL: there is no buffer for a copy. */
static struct rte_mbuf *edited(struct rte_mbuf *m, const struct ur_switch_tx *tx)
{
	struct rte_mbuf *copy;

	if (!tx->head_len || rewrite(m, tx))
		return m;
	copy = rte_pktmbuf_copy(m, m->pool, tx->skip, UINT32_MAX);
	rte_pktmbuf_free(m);
	if (!copy)
		return NULL;
	memcpy(rte_pktmbuf_prepend(copy, tx->head_len), tx->head, tx->head_len);
	return copy;
}

/* pending[cnt] is to be `m`. One that another port sends as well is not stamped: it has one delay stamp for both. */
static void begin_stamp(struct node_port *p, struct rte_mbuf *m, uint64_t in_ns)
{
	struct node_stamp *s = &p->stamp[p->cnt];

	if (rte_mbuf_refcnt_read(m) != 1 || !RTE_MBUF_DIRECT(m) ||
	    !ur_switch_stamp_begin(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, &s->stamp))
		return;
	s->in_ns = in_ns;
	p->stamped |= UINT64_C(1) << p->cnt;
}

static void write_stamps(struct node_port *p, uint64_t now_ns)
{
	for (uint64_t left = p->stamped >> p->at << p->at; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		const struct node_stamp *s = &p->stamp[i];

		ur_switch_stamp_set(rte_pktmbuf_mtod(p->pending[i], uint8_t *), &s->stamp,
				    now_ns - s->in_ns);
	}
}

/* Offers pending frames to the device. False: it does not take them all. */
static bool flush(const struct node *n, struct node_port *p)
{
	if (p->at == p->cnt)
		return true;
	if (p->stamped)
		write_stamps(p, ur_clock_ns(&n->clock));
	p->at += p->dev->ops->tx(p->dev, p->pending + p->at, p->cnt - p->at);
	return p->at == p->cnt;
}

/* SWITCH-CREDIT-01: a message about credits goes ahead of frames that it does not count as sent. */
static void put_message(struct node *n, uint8_t port, uint64_t now_ns)
{
	struct node_port *p = &n->port[port];
	struct rte_mbuf *m;

	if (!ur_switch_wants_message(n->sw, port, now_ns) || !(m = rte_pktmbuf_alloc(n->pool)))
		return;
	ur_switch_message(n->sw, port, (uint8_t *)rte_pktmbuf_append(m, UR_CREDIT_BYTES),
			  p->dev->mac, now_ns);
	p->pending[p->cnt++] = m;
}

typedef unsigned (*output_fn)(struct ur_switch *sw, uint8_t port, struct ur_switch_tx *tx,
			      unsigned cap, uint64_t now_ns);

static unsigned send_to(struct node *n, uint8_t port, output_fn output, uint64_t now_ns)
{
	struct node_port *p = &n->port[port];
	struct ur_switch_tx tx[NODE_PENDING];
	unsigned cnt;

	if (!flush(n, p))
		return 0;
	p->at = p->cnt = 0;
	p->stamped = 0;
	if (__builtin_expect(p->credits, 0))
		put_message(n, port, now_ns);
	cnt = output(n->sw, port, tx, NODE_PENDING - p->cnt, now_ns);
	for (unsigned i = 0; i < cnt; i++) {
		struct rte_mbuf *m = edited(tx[i].frame.handle, &tx[i]);

		if (!m) {
			p->no_copy++;
			continue;
		}
		if (tx[i].held && rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m))
			ur_switch_stamp_void(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
		begin_stamp(p, m, tx[i].in_ns);
		p->pending[p->cnt++] = m;
	}
	flush(n, p);
	return cnt;
}

void node_reap(struct node *n)
{
	struct ur_switch_tx tx[NODE_PENDING];
	unsigned cnt;

	while ((cnt = ur_switch_reap(n->sw, tx, NODE_PENDING)) > 0)
		for (unsigned i = 0; i < cnt; i++)
			rte_pktmbuf_free(tx[i].frame.handle);
}

void node_drop_pending(struct node_port *p)
{
	while (p->at < p->cnt)
		rte_pktmbuf_free(p->pending[p->at++]);
}

/* ---- management ---- */

static unsigned serve_agent(struct node *n, uint64_t now_ns)
{
	struct ur_switch_tx tx[DEVICE_BURST];
	unsigned cnt = ur_switch_output(n->sw, 0, tx, DEVICE_BURST, now_ns);

	for (unsigned i = 0; i < cnt; i++) {
		ur_switch_agent_input(n->agent, &tx[i].frame, tx[i].in_port, now_ns);
		rte_pktmbuf_free(tx[i].frame.handle);
	}
	if (ur_switch_agent_next_deadline(n->agent) <= now_ns)
		ur_switch_agent_expire(n->agent, now_ns);
	for (unsigned i = 0; i < DEVICE_BURST && ur_switch_agent_wants_output(n->agent); i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(n->pool);
		struct ur_switch_frame f = {.handle = m};

		if (!m)
			break;
		f.data = (uint8_t *)rte_pktmbuf_append(m, UR_SWITCH_MAD_FRAME);
		if (!ur_switch_agent_output(n->agent, &f, now_ns)) {
			rte_pktmbuf_free(m);
			continue;
		}
		m->data_len = (uint16_t)f.len;
		m->pkt_len = f.len;
	}
	return cnt;
}

/* SWITCH-VL15-02 */
static unsigned send_mgmt(struct node *n, uint64_t now_ns)
{
	unsigned moved = ur_switch_mgmt_ports(n->sw) & 1 ? serve_agent(n, now_ns) : 0;
	uint64_t ports = ur_switch_mgmt_ports(n->sw) & ~UINT64_C(1);

	for (; ports; ports &= ports - 1) {
		uint8_t i = (uint8_t)__builtin_ctzll(ports);

		/* A device that took nothing is tried again with its data, once in a round, and not after each port's frames. */
		if (n->port[i].at == n->port[i].cnt)
			moved += send_to(n, i, ur_switch_output_mgmt, now_ns);
	}
	return moved;
}

#define FOR_EACH_PRESENT(n, i)                                                                     \
	for (uint64_t left_ = (n)->present; left_ && (i = (uint8_t)__builtin_ctzll(left_), true);  \
	     left_ &= left_ - 1)

unsigned node_round(struct node *n, uint64_t now_ns)
{
	unsigned moved = 0;
	uint8_t i;

	FOR_EACH_PRESENT(n, i)
	{
		moved += receive(n, i, now_ns);
		if (__builtin_expect(ur_switch_mgmt_ports(n->sw) != 0, 0))
			moved += send_mgmt(n, now_ns);
	}
	moved += serve_agent(n, now_ns);
	FOR_EACH_PRESENT(n, i)
	moved += send_to(n, i, ur_switch_output, now_ns);
	node_reap(n);
	return moved;
}

uint64_t node_ready(const struct node *n)
{
	uint64_t ready = 1;

	for (unsigned i = 1; i <= n->port_cnt; i++)
		ready |= (uint64_t)(n->port[i].at == n->port[i].cnt) << i;
	return ready;
}

void node_set_present(struct node *n, unsigned port, bool link)
{
	uint64_t bit = UINT64_C(1) << port;

	n->present =
		link || !has_clients(n->port[port].spec) ? n->present | bit : n->present & ~bit;
}

bool node_ask_interrupts(struct node *n, bool on)
{
	bool all = true;
	uint8_t i;

	n->unasked = false;
	FOR_EACH_PRESENT(n, i)
	{
		struct device *d = n->port[i].dev;

		if (n->port[i].link)
			all = d->ops->interrupts && d->ops->interrupts(d, on) && all;
		all = all && n->port[i].at == n->port[i].cnt;
	}
	return all;
}

/* ---- open and close ---- */

#define CREDIT_QUARTERS                                                                            \
	3 /* of a port's references, and of its receive ring, are for frames with credit */

static struct ur_switch_port_attr attr_of(const struct node *n, const struct node_port *p)
{
	const struct ur_config *cfg = &n->cfg;
	const struct switch_spec *s = p->spec;
	struct ur_switch_port_attr a;

	ur_switch_port_attr_default(&a);
	a.vl.mode = (enum ur_vl_mode)cfg->qos.vl_mode;
	a.vl.high_cnt = cfg->qos.vl_high.cnt;
	a.vl.low_cnt = cfg->qos.vl_low.cnt;
	memcpy(a.vl.high, cfg->qos.vl_high.entry, sizeof(a.vl.high));
	memcpy(a.vl.low, cfg->qos.vl_low.entry, sizeof(a.vl.low));
	a.vl.high_limit = (uint8_t)cfg->qos.vl_high_limit;
	memcpy(a.vl.sl2vl, cfg->qos.sl2vl, sizeof(a.vl.sl2vl));
	a.trunk = !s->access;
	a.vid = s->vid;
	if (s->has_trunk)
		memcpy(a.vids, s->vids, sizeof(a.vids));
	a.rate_gbps = s->rate_gbps > 0 ? s->rate_gbps : cfg->port.rate_gbps;
	a.max_frame = p->dev->max_frame;
	a.lane_bytes = cfg->forwarding.lane_kb << 10;
	if (cfg->forwarding.ecn_max_kb) {
		a.ecn_min_bytes = cfg->forwarding.ecn_min_kb << 10;
		a.ecn_max_bytes = cfg->forwarding.ecn_max_kb << 10;
		a.ecn_chance = (uint32_t)(cfg->forwarding.ecn_percent * UINT32_MAX);
	}
	a.flood_per_s = cfg->forwarding.flood_pps;
	a.mgmt_per_s = cfg->forwarding.mgmt_pps;
	if (p->credits) {
		a.credit_frames =
			RTE_MIN(n->attr.limits.frames, p->dev->rx_slots) / 4 * CREDIT_QUARTERS;
		a.credit_life_ns = cfg->port.credit_life_ms * UINT64_C(1000000);
		a.credit_session = 1 + arc4random_uniform(UINT32_MAX / 2);
	}
	return a;
}

static bool make_switch(struct node *n, char *err, size_t cap)
{
	uint64_t now_ns = ur_clock_ns(&n->clock);
	const char *wrong;

	n->attr.limits.ports = (uint16_t)(n->port_cnt + 1);
	wrong = ur_switch_attr_check(&n->attr);
	n->memory = wrong ? NULL : aligned_alloc(64, ur_switch_size(&n->attr));
	if (!n->memory) {
		snprintf(err, cap, "%s", wrong ? wrong : "out of memory");
		return false;
	}
	n->sw = ur_switch_init(n->memory, &n->attr);
	for (unsigned i = 1; i <= n->port_cnt; i++) {
		struct ur_switch_port_attr a = attr_of(n, &n->port[i]);

		wrong = ur_switch_port_attr_check(&a);
		if (wrong) {
			snprintf(err, cap, "port %u (%s): %s", i, n->port[i].dev->name, wrong);
			return false;
		}
		ur_switch_set_port(n->sw, (uint8_t)i, &a, now_ns);
		n->port[i].configured = ur_switch_port(n->sw, (uint8_t)i)->vl;
	}
	return true;
}

/* The same at each start: of the host's name, where the first socket is, and the switch's name. */
static uint64_t guid_of_place(const struct node *n)
{
	const struct switch_spec *s = &n->options.spec[0];
	char where[4096 + UR_CONFIG_TEXT + SWITCH_NAME_MAX] = "", dir[4096];
	uint8_t mac[6];
	uint64_t hash;

	gethostname(where, 64);
	where[64] = '\0';
	if (s->name[0] != '/' && getcwd(dir, sizeof(dir)))
		strlcat(where, dir, sizeof(where));
	strlcat(where, "/", sizeof(where));
	strlcat(where, s->name, sizeof(where));
	strlcat(where, n->options.name, sizeof(where));
	hash = ur_siphash(0, 0, where, (uint32_t)strlen(where));
	memcpy(mac, &hash, sizeof(mac));
	mac[0] = 2;
	return ur_mac_guid(mac);
}

/*
 * The GUID must outlive a restart: that of the first device with an address of its own; if there is none, the one in
 * the file of --state, or that of the switch's place.
 */
static uint64_t choose_guid(const struct node *n)
{
	static const uint8_t none[6];

	for (unsigned i = 1; i <= n->port_cnt; i++)
		if (memcmp(n->port[i].dev->mac, none, 6) != 0)
			return ur_mac_guid(n->port[i].dev->mac);
	return n->saved_guid ? n->saved_guid : guid_of_place(n);
}

/* A device without an address of its own gets a local one. */
static void address_of(struct node *n, unsigned i)
{
	static const uint8_t none[6];
	uint8_t *mac = n->port[i].dev->mac;
	uint64_t random;

	if (memcmp(mac, none, 6) != 0)
		return;
	random = ur_siphash(n->attr.seed, 0, "mac", 3);
	memcpy(mac, &random, 5);
	mac[0] = 2;
	mac[5] = (uint8_t)i;
}

static bool make_agent(struct node *n, char *err, size_t cap)
{
	const struct ur_config *cfg = &n->cfg;
	struct ur_switch_agent_attr a = {0};
	uint16_t ports = ur_switch_ports(n->sw);
	void *memory = aligned_alloc(64, ur_switch_agent_size(ports));

	if (!memory) {
		snprintf(err, cap, "out of memory");
		return false;
	}
	/* Not the switch's: from its choice of ports something of that may be learned. */
	arc4random_buf(&a.seed, sizeof(a.seed));
	n->guid = a.guid = choose_guid(n);
	for (unsigned i = 1; i <= n->port_cnt; i++) {
		address_of(n, i);
		memcpy(a.mac[i], n->port[i].dev->mac, 6);
	}
	a.config = (struct ur_nma_config){
		.m_key = cfg->management.m_key,
		.protect = (uint8_t)cfg->management.protect,
		.lease_s = (uint16_t)cfg->management.lease_s,
		.open = cfg->management.open,
		.ask_neighbours = cfg->management.ask_neighbours,
	};
	snprintf(a.description, sizeof(a.description), "%.64s",
		 cfg->management.description[0] ? cfg->management.description
		 : n->options.name[0]		? n->options.name
						: "uroce-switch");
	a.eeprom = n->eeprom;
	n->agent = ur_switch_agent_init(memory, n->sw, &a, ur_clock_ns(&n->clock));
	if (n->saved_lid &&
	    !ur_switch_agent_set_lid(n->agent, n->saved_lid, ur_clock_ns(&n->clock)))
		printf("%sthe LID %u of --state is refused\n", node_prefix(n), n->saved_lid);
	n->saved_changes = ur_switch_agent_changes(n->agent);
	if (n->guid != n->saved_guid)
		n->saved_changes--; /* the file is to have it */
	node_report_links(n);
	return true;
}

static bool load_routes(struct node *n, char *err, size_t cap)
{
	char copy[UR_CONFIG_TEXT], *rest = copy, *word;

	strcpy(copy, n->cfg.forwarding.routes);
	while ((word = strsep(&rest, " \t")) != NULL) {
		struct switch_route r;

		if (!*word)
			continue;
		if (!switch_route_parse(word, &r, err, cap))
			return false;
		if (!ur_switch_set_route(n->sw, &r.addr, r.lid, r.lmc)) {
			snprintf(err, cap, "route \"%s\": there are too many", word);
			return false;
		}
	}
	strcpy(copy, n->cfg.forwarding.lids);
	rest = copy;
	while ((word = strsep(&rest, " \t")) != NULL) {
		uint16_t lid;
		uint8_t port;

		if (!*word)
			continue;
		if (!switch_lid_parse(word, &lid, &port, err, cap))
			return false;
		if (port > n->port_cnt) {
			snprintf(err, cap, "LID \"%s\": there are %u ports", word, n->port_cnt);
			return false;
		}
		ur_switch_set_lft(n->sw, lid, port);
	}
	return true;
}

/* Its frames are in mbufs of the node's own pool. */
static bool uses_pool(const struct switch_spec *s)
{
	return has_clients(s) || s->kind == SWITCH_RING;
}

static unsigned port_cnt(const struct switch_spec *s)
{
	return has_clients(s) ? s->clients : 1;
}

/* ports[k]: number of the first port of specification k. Returns how many ports there are. */
static unsigned number_ports(const struct switch_options *o, unsigned *ports)
{
	unsigned cnt = 0;

	for (unsigned k = 0; k < o->spec_cnt; k++) {
		ports[k] = cnt + 1;
		cnt += port_cnt(&o->spec[k]);
	}
	return cnt;
}

#define ETH_BYTES   18
#define SOCKET_MTU  4200
#define SPARE_MBUFS 512

static uint32_t socket_frame(const struct switch_spec *s)
{
	return (s->mtu ? s->mtu : SOCKET_MTU) + ETH_BYTES;
}

/* Buffers for the agent, the clients of all sockets, and rings: what queues may hold of each, and some on their way. */
static bool make_pool(struct node *n, char *err, size_t cap)
{
	uint32_t each = n->attr.limits.frames + n->attr.limits.mgmt_frames,
		 cnt = SPARE_MBUFS + each;
	uint32_t room = UR_SWITCH_MAD_FRAME;
	static unsigned pools;
	char name[32];

	for (unsigned k = 0; k < n->options.spec_cnt; k++) {
		const struct switch_spec *s = &n->options.spec[k];

		if (!uses_pool(s))
			continue;
		cnt += port_cnt(s) * each;
		room = RTE_MAX(room, socket_frame(s));
	}
	snprintf(name, sizeof(name), "uroce-switch-%u", pools++);
	n->pool = rte_pktmbuf_pool_create(name, cnt, 0, 0, (uint16_t)(room + RTE_PKTMBUF_HEADROOM),
					  (int)SOCKET_ID_ANY);
	if (!n->pool)
		snprintf(
			err, cap,
			"no memory for %u buffers of %u bytes for sockets and rings; fewer clients, "
			"a smaller [forwarding] frames or a larger [eal] memory_mb help",
			cnt, room);
	return n->pool;
}

static bool open_spec(struct node *n, unsigned k, unsigned first, char *err, size_t cap)
{
	const struct switch_spec *s = &n->options.spec[k];
	struct device *devs[UR_SWITCH_PORTS_MAX];
	unsigned cnt = 1;

	if (has_clients(s)) {
		device_group_open open = s->kind == SWITCH_GROUP ? n->open_group : socket_open;
		struct device_group *g = open(s, socket_frame(s), n->pool, devs, err, cap);

		if (!g)
			return false;
		n->group[n->group_cnt++] = g;
		cnt = s->clients;
	} else if (s->kind == SWITCH_RING) {
		devs[0] = ring_open(s, socket_frame(s), n->pool, err, cap);
		if (!devs[0])
			return false;
	} else {
		devs[0] = device_open_port(s, &n->cfg,
					   n->attr.limits.frames + n->attr.limits.mgmt_frames,
					   &n->clock, err, cap);
		if (!devs[0])
			return false;
	}
	for (unsigned i = 0; i < cnt; i++)
		n->port[first + i] = (struct node_port){
			.dev = devs[i],
			.spec = s,
			.credits = devs[i]->rx_slots && switch_spec_credits(s, n->cfg.port.credits),
		};
	for (unsigned i = 0; i < cnt; i++)
		node_set_present(n, first + i, false);
	return true;
}

#define RANKS 4

/* The first port decides how DPDK starts: PCI access, and memory that memif can share. */
static unsigned rank(enum switch_kind kind)
{
	switch (kind) {
	case SWITCH_PCI:
		return 0;
	case SWITCH_MEMIF:
		return 1;
	case SWITCH_SOCKET:
	case SWITCH_GROUP:
	case SWITCH_RING:
		return RANKS - 1;
	default:
		return 2;
	}
}

unsigned node_rank(const struct node *n)
{
	unsigned lowest = RANKS;

	for (unsigned k = 0; k < n->options.spec_cnt; k++)
		lowest = RTE_MIN(lowest, rank(n->options.spec[k].kind));
	return lowest;
}

const char *node_prefix(const struct node *n)
{
	static char prefix[SWITCH_NAME_MAX + 2];

	snprintf(prefix, sizeof(prefix), "%s%s", n->options.name, n->options.name[0] ? ": " : "");
	return prefix;
}

static bool open_devices(struct node *n, char *err, size_t cap)
{
	unsigned first[SWITCH_SPECS_MAX];

	n->port_cnt = number_ports(&n->options, first);
	if (n->port_cnt >= UR_SWITCH_PORTS_MAX) {
		snprintf(err, cap,
			 "%u ports are too many; at most %d, the clients of sockets included",
			 n->port_cnt, UR_SWITCH_PORTS_MAX - 1);
		n->port_cnt = 0;
		return false;
	}
	if (node_rank(n) == RANKS - 1 && !device_start_dpdk(&n->cfg, err, cap))
		return false;
	for (unsigned r = 0; r < RANKS; r++) {
		if (r == RANKS - 1 && !make_pool(n, err, cap))
			return false;
		for (unsigned k = 0; k < n->options.spec_cnt; k++)
			if (rank(n->options.spec[k].kind) == r &&
			    !open_spec(n, k, first[k], err, cap))
				return false;
	}
	return true;
}

static bool start_stats(struct node *n, char *err, size_t cap)
{
	if (!n->options.common.json)
		return true;
	n->stats = writer_start(n->options.common.json, 0666);
	if (!n->stats)
		snprintf(err, cap, "--json: no thread could be started");
	return n->stats;
}

bool node_open(struct node *n, char *err, size_t cap)
{
	ur_switch_attr_default(&n->attr);
	n->attr.limits.macs = n->cfg.forwarding.macs;
	n->attr.limits.frames = n->cfg.forwarding.frames;
	n->attr.age_ns = n->cfg.forwarding.age_s * UINT64_C(1000000000);
	n->attr.hold = n->cfg.forwarding.admission == UR_FORWARDING_ADMISSION_HOLD;
	n->attr.vl15_bytes = n->cfg.forwarding.vl15_kb << 10;
	memcpy(n->attr.sl_dscp, n->cfg.qos.sl_dscp, sizeof(n->attr.sl_dscp));
	memcpy(n->attr.sl_pcp, n->cfg.qos.sl_pcp, sizeof(n->attr.sl_pcp));
	arc4random_buf(&n->attr.seed, sizeof(n->attr.seed));
	if (!open_devices(n, err, cap))
		return false;
	ur_clock_start(&n->clock); /* 0 until here */
	return make_switch(n, err, cap) && load_routes(n, err, cap) && state_load(n, err, cap) &&
	       make_agent(n, err, cap) && state_start(n, err, cap) && start_stats(n, err, cap);
}

/* Port 0 has no link that could go down. */
static void drop_agents_queue(struct node *n)
{
	struct ur_switch_tx tx;

	while (ur_switch_output(n->sw, 0, &tx, 1, 0))
		rte_pktmbuf_free(tx.frame.handle);
}

void node_close(struct node *n)
{
	state_end(n);
	for (unsigned i = 1; n->sw && i <= n->port_cnt; i++) {
		ur_switch_set_link(n->sw, (uint8_t)i, false, 0);
		node_drop_pending(&n->port[i]);
	}
	if (n->agent)
		drop_agents_queue(n);
	if (n->sw)
		node_reap(n);
	for (unsigned i = 1; i <= n->port_cnt; i++)
		if (n->port[i].dev)
			n->port[i].dev->ops->close(n->port[i].dev);
	if (n->reported)
		close(n->reports);
	while (n->group_cnt) {
		struct device_group *g = n->group[--n->group_cnt];

		g->ops->close(g);
	}
	free(n->agent);
	free(n->memory);
}
