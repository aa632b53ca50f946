/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/routes.h"
#include "wire/assert.h"

#define FAR UINT32_MAX

/* ---- LIDs ---- */

uint32_t ur_routes_lid_port(const struct ur_topo *t, uint32_t node)
{
	const struct ur_topo_node *n = &t->node[node];

	if (n->type == UR_TOPO_SWITCH)
		return n->first_port;
	for (uint8_t p = 1; p <= n->ports; p++)
		if (t->port[n->first_port + p].peer_node != UR_TOPO_NONE)
			return n->first_port + p;
	return n->first_port + 1;
}

/* Each linked port of an endpoint has a LID, and each switch one. */
static bool needs_lid(const struct ur_topo *t, uint32_t port)
{
	const struct ur_topo_node *n = &t->node[t->port[port].node];

	if (n->type == UR_TOPO_SWITCH)
		return port == n->first_port;
	return t->port[port].peer_node != UR_TOPO_NONE ||
	       port == ur_routes_lid_port(t, t->port[port].node);
}

static uint32_t row_of(uint32_t lids)
{
	return (lids + 64) & ~63u;
}

/* Each port has a block of LIDs of its own that begins with a multiple of its size; a switch uses only the first. */
static uint32_t block_of(uint8_t lmc)
{
	return 1u << lmc;
}

static bool is_switch_port(const struct ur_topo *t, uint32_t port)
{
	return t->node[t->port[port].node].type == UR_TOPO_SWITCH;
}

/* How many LIDs a port has that needs one. */
static uint32_t lids_of(const struct ur_topo *t, uint32_t port, uint8_t lmc)
{
	return is_switch_port(t, port) ? 1 : block_of(lmc);
}

/* The last LID of `blocks` blocks: the first of them is not used, because it has LID 0. */
static uint32_t last_of(uint32_t blocks, uint8_t lmc)
{
	return (blocks + 1) * block_of(lmc) - 1;
}

/* The last LID of the highest block that a port has, of those up to `most`; at least `least`. */
static uint32_t highest(const struct ur_topo *t, uint32_t least, uint32_t most, uint8_t lmc)
{
	uint32_t lids = least;

	most = most < UR_ROUTES_LID_MAX ? most : UR_ROUTES_LID_MAX;
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		uint32_t last = t->port[i].lid | (block_of(lmc) - 1);

		if (t->port[i].lid >= block_of(lmc) && last > lids && last <= most &&
		    needs_lid(t, i))
			lids = last;
	}
	return lids;
}

/*
 * *lids: the highest LID. Those that ports have are kept, wherever they are; but one LID sizes the tables of all switches, and
 * a node says of itself which one it has. So tables of more than UR_ROUTES_TABLES_BYTES are no larger than the number of ports
 * needs, and an eighth (MGR-LID-02).
 */
static void count(const struct ur_topo *t, uint8_t lmc, uint32_t *switches, uint32_t *assigned,
		  uint32_t *lids)
{
	uint32_t ports = 0;

	*switches = *assigned = 0;
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		*switches += t->node[i].type == UR_TOPO_SWITCH;
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		ports += needs_lid(t, i);
		*assigned += needs_lid(t, i) ? lids_of(t, i, lmc) : 0;
	}
	*lids = highest(t, last_of(ports, lmc), UR_ROUTES_LID_MAX, lmc);
	if ((uint64_t)*switches * row_of(*lids) > UR_ROUTES_TABLES_BYTES)
		*lids = highest(t, last_of(ports, lmc), last_of(ports + ports / 8, lmc), lmc);
}

size_t ur_routes_size(const struct ur_topo *t, uint8_t lmc)
{
	uint32_t switches, assigned, lids;

	count(t, lmc, &switches, &assigned, &lids);
	if (lids > UR_ROUTES_LID_MAX)
		return 0;
	return sizeof(uint32_t) * (6 * (size_t)switches + t->nodes_cnt + lids + 1 + t->ports_cnt) +
	       sizeof(uint16_t) * t->ports_cnt + (size_t)switches * (row_of(lids) + 1);
}

static void give_lid(struct ur_routes *r, uint32_t port, uint32_t lid)
{
	r->lid[port] = (uint16_t)lid;
	for (uint32_t i = 0; i < lids_of(r->topo, port, r->lmc); i++)
		r->lid_port[lid + i] = port;
}

/* MGR-LID-01, MGR-LID-03 */
static void assign_lids(struct ur_routes *r)
{
	const struct ur_topo *t = r->topo;
	uint32_t block = block_of(r->lmc), next = block;

	for (uint32_t i = 0; i <= r->lids; i++)
		r->lid_port[i] = UR_TOPO_NONE;
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		uint16_t lid = t->port[i].lid;

		r->lid[i] = 0;
		if (needs_lid(t, i) && lid && lid % block == 0 && lid + block - 1 <= r->lids &&
		    r->lid_port[lid] == UR_TOPO_NONE)
			give_lid(r, i, lid);
	}
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		if (!needs_lid(t, i) || r->lid[i])
			continue;
		while (r->lid_port[next] != UR_TOPO_NONE)
			next += block;
		give_lid(r, i, next);
	}
}

static bool has_endpoint(const struct ur_routes *r, uint32_t sw)
{
	const struct ur_topo *t = r->topo;
	uint32_t node = r->switch_node[sw];

	for (uint8_t p = 1; p <= t->node[node].ports; p++) {
		uint32_t peer = t->port[ur_topo_port_of(t, node, p)].peer_node;

		if (peer != UR_TOPO_NONE && t->node[peer].type != UR_TOPO_SWITCH)
			return true;
	}
	return false;
}

void ur_routes_init(struct ur_routes *r, void *memory, const struct ur_topo *t,
		    enum ur_routes_mode mode, uint8_t lmc)
{
	uint32_t *at = memory, number = 0;

	UR_ASSERT(lmc <= UR_ROUTES_LMC_MAX);
	*r = (struct ur_routes){.topo = t, .mode = mode, .lmc = lmc};
	count(t, lmc, &r->switches, &r->assigned, &r->lids);
	UR_ASSERT(r->lids <= UR_ROUTES_LID_MAX);
	r->row = row_of(r->lids);
	r->switch_node = at;
	r->rank = r->switch_node + r->switches;
	r->dist = r->rank + r->switches;
	r->down = r->dist + r->switches;
	r->queue = r->down + r->switches;
	r->order = r->queue + r->switches;
	r->number = r->order + r->switches;
	r->lid_port = r->number + t->nodes_cnt;
	r->load = r->lid_port + r->lids + 1;
	r->lid = (uint16_t *)(void *)(r->load + t->ports_cnt);
	r->lft = (uint8_t *)(void *)(r->lid + t->ports_cnt);
	r->edge = r->lft + (size_t)r->switches * r->row;
	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		r->number[i] = UR_TOPO_NONE;
		if (t->node[i].type == UR_TOPO_SWITCH) {
			r->number[i] = number;
			r->switch_node[number++] = i;
		}
	}
	memset(r->load, 0, sizeof(*r->load) * t->ports_cnt);
	memset(r->lft, UR_ROUTES_NONE, (size_t)r->switches * r->row);
	for (uint32_t i = 0; i < r->switches; i++)
		r->edge[i] = has_endpoint(r, i);
	assign_lids(r);
}

/* ---- up and down ---- */

/* The switch beyond a port; UR_TOPO_NONE: there is none. */
static uint32_t beyond(const struct ur_routes *r, uint32_t sw, uint8_t port)
{
	const struct ur_topo *t = r->topo;
	const struct ur_topo_port *p = &t->port[ur_topo_port_of(t, r->switch_node[sw], port)];

	if (p->peer_node == UR_TOPO_NONE || p->one_way || r->number[p->peer_node] == sw ||
	    t->port[ur_topo_port_of(t, p->peer_node, p->peer_port)].one_way)
		return UR_TOPO_NONE;
	return r->number[p->peer_node];
}

static uint8_t ports_of(const struct ur_routes *r, uint32_t sw)
{
	return r->topo->node[r->switch_node[sw]].ports;
}

bool ur_routes_is_up(const struct ur_routes *r, uint32_t a, uint32_t b)
{
	return r->rank[b] != r->rank[a] ? r->rank[b] < r->rank[a] : b < a;
}

/* Distances from the switches that have one of 0 already, which are in queue[0, tail). Returns how many have one. */
static uint32_t spread(struct ur_routes *r, uint32_t *dist, uint32_t tail)
{
	for (uint32_t head = 0; head < tail; head++) {
		uint32_t at = r->queue[head];

		for (uint8_t p = 1; p <= ports_of(r, at); p++) {
			uint32_t to = beyond(r, at, p);

			if (to == UR_TOPO_NONE || dist[to] != FAR)
				continue;
			dist[to] = dist[at] + 1;
			r->queue[tail++] = to;
		}
	}
	return tail;
}

/* The roots are the switches that are the farthest from all endpoints; with `single`, one of them. */
static void rank_switches(struct ur_routes *r, bool single)
{
	uint32_t tail = 0, level = 0;

	for (uint32_t i = 0; i < r->switches; i++) {
		r->dist[i] = FAR;
		if (r->edge[i]) {
			r->dist[i] = 0;
			r->queue[tail++] = i;
		}
	}
	tail = spread(r, r->dist, tail);
	for (uint32_t i = 0; i < r->switches; i++)
		if (r->dist[i] != FAR && r->dist[i] > level)
			level = r->dist[i];
	tail = 0;
	for (uint32_t i = 0; i < r->switches; i++) {
		r->rank[i] = FAR;
		if (r->dist[i] != level || (single && tail))
			continue;
		r->rank[i] = 0;
		r->queue[tail++] = i;
	}
	(void)spread(r, r->rank, tail);
}

/* order[]: from the roots downward, so that what is above a switch comes before it. */
static void sort_switches(struct ur_routes *r)
{
	uint32_t cnt = 0, next;

	for (uint32_t rank = 0; cnt < r->switches; rank = next) {
		next = FAR; /* the rank of those that no root leads to */
		for (uint32_t i = 0; i < r->switches; i++) {
			if (r->rank[i] == rank)
				r->order[cnt++] = i;
			else if (r->rank[i] > rank && r->rank[i] < next)
				next = r->rank[i];
		}
	}
}

/* ---- tables ---- */

/* down[]: hops to `to` by going down alone. */
static void spread_down(struct ur_routes *r, uint32_t to)
{
	uint32_t tail = 0;

	for (uint32_t i = 0; i < r->switches; i++)
		r->down[i] = FAR;
	r->down[to] = 0;
	r->queue[tail++] = to;
	for (uint32_t head = 0; head < tail; head++) {
		uint32_t at = r->queue[head];

		for (uint8_t p = 1; p <= ports_of(r, at); p++) {
			uint32_t up = beyond(r, at, p);

			if (up == UR_TOPO_NONE || r->down[up] != FAR || !ur_routes_is_up(r, at, up))
				continue;
			r->down[up] = r->down[at] + 1;
			r->queue[tail++] = up;
		}
	}
}

/* dist[]: hops to `to` by the paths that the mode allows. */
static void measure(struct ur_routes *r, uint32_t to)
{
	if (r->mode == UR_ROUTES_SHORTEST) {
		for (uint32_t i = 0; i < r->switches; i++)
			r->dist[i] = FAR;
		r->dist[to] = 0;
		r->queue[0] = to;
		(void)spread(r, r->dist, 1);
		return;
	}
	spread_down(r, to);
	/* A switch from which a way leads down takes that, so that nothing that came down to it goes up again. */
	for (uint32_t k = 0; k < r->switches; k++) {
		uint32_t at = r->order[k];

		r->dist[at] = r->down[at];
		for (uint8_t p = 1; r->down[at] == FAR && p <= ports_of(r, at); p++) {
			uint32_t up = beyond(r, at, p);

			if (up != UR_TOPO_NONE && ur_routes_is_up(r, at, up) &&
			    r->dist[up] != FAR && r->dist[up] + 1 < r->dist[at])
				r->dist[at] = r->dist[up] + 1;
		}
	}
}

/* A port toward what measure() measured may be taken by that mode. MGR-ROUTE-03 */
static bool may_take(const struct ur_routes *r, uint32_t at, uint32_t to)
{
	if (to == UR_TOPO_NONE || r->dist[to] == FAR || r->dist[to] + 1 != r->dist[at])
		return false;
	if (r->mode == UR_ROUTES_SHORTEST)
		return true;
	return r->down[at] == FAR ? ur_routes_is_up(r, at, to)
				  : !ur_routes_is_up(r, at, to) && r->down[to] != FAR;
}

/* The ports that lead to the destination, those with the fewest others first. Returns how many. MGR-ROUTE-02 */
static unsigned list_ports(const struct ur_routes *r, uint32_t at, uint8_t ports[UR_ROUTES_NONE])
{
	uint32_t first = r->topo->node[r->switch_node[at]].first_port;
	unsigned cnt = 0;

	for (uint8_t p = 1; p <= ports_of(r, at); p++) {
		unsigned i = cnt;

		if (!may_take(r, at, beyond(r, at, p)))
			continue;
		for (; i && r->load[first + ports[i - 1]] > r->load[first + p]; i--)
			ports[i] = ports[i - 1];
		ports[i] = p;
		cnt++;
	}
	return cnt;
}

/*
 * Which of `cnt` equally good ports LID `k` of a block takes. On the way from switch to switch the two rules follow each
 * other, so that LIDs which part at one switch do not meet again because the next divides them in the same way. MGR-LID-03
 */
static unsigned which_port(uint32_t k, unsigned cnt, bool odd)
{
	return (k + (odd ? k / cnt : 0)) % cnt;
}

/* The LIDs [lid, lid + cnt) of one port, which is at switch `to`: its port `last`. */
static void route_block(struct ur_routes *r, uint32_t lid, uint32_t cnt, uint32_t to, uint8_t last)
{
	for (uint32_t i = 0; i < r->switches; i++) {
		uint8_t ports[UR_ROUTES_NONE] = {last};
		unsigned good = i == to ? 1 : list_ports(r, i, ports);

		/* Nothing is sent from one switch without endpoints to another one: roots need no way down and up. */
		if (!good)
			r->unreachable += last || r->edge[i] ? cnt : 0;
		for (uint32_t k = 0; k < cnt; k++) {
			uint8_t port =
				good ? ports[which_port(k, good, r->dist[i] & 1)] : UR_ROUTES_NONE;

			r->lft[(size_t)i * r->row + lid + k] = port;
			if (good)
				r->load[ur_topo_port_of(r->topo, r->switch_node[i], port)]++;
		}
	}
}

static void fill(struct ur_routes *r)
{
	const struct ur_topo *t = r->topo;

	r->unreachable = 0;
	for (uint32_t to = 0; to < r->switches; to++) {
		uint32_t node = r->switch_node[to];

		measure(r, to);
		route_block(r, r->lid[t->node[node].first_port], 1, to, 0);
		for (uint8_t p = 1; p <= t->node[node].ports; p++) {
			const struct ur_topo_port *q = &t->port[ur_topo_port_of(t, node, p)];
			uint32_t far;

			if (q->peer_node == UR_TOPO_NONE ||
			    t->node[q->peer_node].type == UR_TOPO_SWITCH)
				continue;
			far = ur_topo_port_of(t, q->peer_node, q->peer_port);
			if (r->lid[far])
				route_block(r, r->lid[far], lids_of(t, far, r->lmc), to, p);
		}
	}
}

void ur_routes_compute(struct ur_routes *r)
{
	if (r->mode == UR_ROUTES_UPDOWN) {
		rank_switches(r, false);
		sort_switches(r);
	}
	fill(r);
	if (r->mode == UR_ROUTES_SHORTEST || !r->unreachable)
		return;
	/* From one root alone every switch that is linked to it can be reached. */
	rank_switches(r, true);
	sort_switches(r);
	memset(r->load, 0, sizeof(*r->load) * r->topo->ports_cnt);
	memset(r->lft, UR_ROUTES_NONE, (size_t)r->switches * r->row);
	fill(r);
}
