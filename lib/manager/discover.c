/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/build.h"
#include "manager/discover.h"
#include "wire/assert.h"
#include "wire/smp.h"

#define DEAD_AFTER 2 /* requests in a row that time out */

/* What a request asks; kind and port of the cookie. */
enum ask {
	ASK_NODE_INFO, /* of what the port is linked to */
	ASK_NODE_DESC,
	ASK_SWITCH_INFO,
	ASK_PORT_INFO,
};

static uint64_t cookie_of(enum ask ask, uint32_t node, uint8_t port)
{
	return (uint64_t)ask << 40 | (uint64_t)port << 32 | node;
}

void ur_discover_init(struct ur_discover *d, const struct ur_discover_attr *attr,
		      struct ur_topo *topo, struct ur_requests *requests)
{
	UR_ASSERT(attr->per_node && attr->per_node <= UINT8_MAX);
	UR_ASSERT(!topo->nodes_cnt && !requests->open);
	*d = (struct ur_discover){
		.attr = *attr,
		.topo = topo,
		.requests = requests,
		.first_turn = UR_TOPO_NONE,
		.last_turn = UR_TOPO_NONE,
	};
}

/* ---- turns: nodes that have something to ask, in order ---- */

static void enter_turn(struct ur_discover *d, uint32_t node)
{
	struct ur_topo_node *n = &d->topo->node[node];

	if (n->in_turn)
		return;
	n->in_turn = true;
	n->next_turn = UR_TOPO_NONE;
	if (d->last_turn == UR_TOPO_NONE)
		d->first_turn = node;
	else
		d->topo->node[d->last_turn].next_turn = node;
	d->last_turn = node;
}

static uint32_t leave_turn(struct ur_discover *d)
{
	uint32_t node = d->first_turn;
	struct ur_topo_node *n = &d->topo->node[node];

	d->first_turn = n->next_turn;
	if (d->first_turn == UR_TOPO_NONE)
		d->last_turn = UR_TOPO_NONE;
	n->in_turn = false;
	return node;
}

/* ---- what a port is linked to ---- */

/* Directed routes pass through switches, and start at node 0. */
static bool can_ask_beyond(const struct ur_topo *t, uint32_t node, uint8_t port)
{
	return port && (t->node[node].type == UR_TOPO_SWITCH || !node);
}

static void join(struct ur_topo *t, uint32_t a, uint32_t b, uint8_t link)
{
	t->port[a].link = link;
	t->port[a].peer_node = t->port[b].node;
	t->port[a].peer_port = ur_topo_port_nr(t, b);
}

static uint8_t link_to(const struct ur_topo *t, uint32_t node, bool is_new)
{
	if (t->node[node].type != UR_TOPO_SWITCH)
		return UR_TOPO_LINK_ENDPOINT;
	return is_new ? UR_TOPO_LINK_NEW_SWITCH : UR_TOPO_LINK_KNOWN_SWITCH;
}

/* Two nodes that were known. The other end need not be asked any more. */
static void join_both(struct ur_topo *t, uint32_t a, uint32_t b)
{
	struct ur_topo_port *p = &t->port[a], *q = &t->port[b];

	join(t, a, b, link_to(t, q->node, false));
	join(t, b, a, link_to(t, p->node, false));
	if (!q->far_guid) {
		q->far_guid = t->node[p->node].guid;
		q->far_port = ur_topo_port_nr(t, a);
	}
	q->asked = true;
}

/* Port `a` has no other peer than `b`. */
static bool may_join(const struct ur_topo *t, uint32_t a, uint32_t b)
{
	const struct ur_topo_port *p = &t->port[a];

	return p->peer_node == UR_TOPO_NONE || ur_topo_port_of(t, p->peer_node, p->peer_port) == b;
}

/* Both ends name each other, or the other end cannot be asked. MGR-DISC-03 */
enum fit { FIT_NOT, FIT_ONE_WAY, FIT_UNASKED, FIT_YES };

static enum fit fit(const struct ur_topo *t, uint32_t a, uint32_t b)
{
	const struct ur_topo_port *p = &t->port[a], *q = &t->port[b];

	if (!may_join(t, a, b) || !may_join(t, b, a))
		return FIT_NOT;
	if (!q->asked)
		return can_ask_beyond(t, q->node, p->far_port) ? FIT_UNASKED : FIT_YES;
	if (q->far_guid)
		return q->far_guid == t->node[p->node].guid && q->far_port == ur_topo_port_nr(t, a)
			       ? FIT_YES
			       : FIT_NOT;
	if (q->link != UR_TOPO_LINK_DOWN || (t->node[q->node].faults & UR_TOPO_DEAD))
		return FIT_ONE_WAY;
	return q->verify ? FIT_NOT : FIT_UNASKED;
}

static void wait_for(struct ur_discover *d, uint32_t a, uint32_t b)
{
	struct ur_topo_port *q = &d->topo->port[b];
	struct ur_topo_node *n = &d->topo->node[q->node];

	d->topo->port[a].next_waits = q->first_waits;
	q->first_waits = a;
	if (!q->asked)
		return;
	/* It is said to be down: look. */
	q->asked = q->probed = false;
	q->verify = true;
	if (n->probe > d->topo->port[a].far_port)
		n->probe = d->topo->port[a].far_port;
	enter_turn(d, q->node);
}

/* The node beyond port `a` is not known. Returns it, or UR_TOPO_NONE. */
static uint32_t add_beyond(struct ur_discover *d, uint32_t a, uint8_t type, uint8_t ports)
{
	struct ur_topo *t = d->topo;
	struct ur_topo_port *p = &t->port[a];
	uint32_t node, b;

	node = ur_topo_add(t, p->far_guid, type, ports);
	if (node == UR_TOPO_NONE) {
		p->link = UR_TOPO_LINK_BEYOND;
		return node;
	}
	t->node[node].parent = p->node;
	t->node[node].parent_port = ur_topo_port_nr(t, a);
	t->node[node].entry_port = p->far_port;
	t->node[node].hops = t->node[p->node].hops + 1;
	t->node[node].probe = 1;
	b = ur_topo_port_of(t, node, p->far_port);
	join(t, a, b, link_to(t, node, true));
	join(t, b, a, link_to(t, p->node, false));
	t->port[b].asked = true;
	t->port[b].far_guid = t->node[p->node].guid;
	t->port[b].far_port = ur_topo_port_nr(t, a);
	enter_turn(d, node);
	return node;
}

/* A node with a known GUID that is none of the known ones. MGR-DISC-04 */
static uint32_t add_duplicate(struct ur_discover *d, uint32_t a, uint8_t type, uint8_t ports)
{
	struct ur_topo *t = d->topo;
	uint32_t node, same;

	if (d->duplicates == UR_DISCOVER_DUPLICATES_MAX) {
		t->port[a].link = UR_TOPO_LINK_REFUSED;
		return UR_TOPO_NONE;
	}
	node = add_beyond(d, a, type, ports);
	if (node == UR_TOPO_NONE)
		return node;
	d->duplicates++;
	for (same = ur_topo_find(t, t->port[a].far_guid); same != UR_TOPO_NONE;
	     same = ur_topo_find_next(t, same))
		t->node[same].faults |= UR_TOPO_DUPLICATE;
	return node;
}

/*
 * Port `a` was answered by a node with that GUID, type and number of ports. Finds out which node it is: one that is
 * known, if its port leads back to `a`; otherwise a new one. Returns the node if it is new. MGR-DISC-01
 */
static uint32_t reach(struct ur_discover *d, uint32_t a, uint8_t type, uint8_t ports)
{
	struct ur_topo *t = d->topo;
	struct ur_topo_port *p = &t->port[a];
	uint32_t first = ur_topo_find(t, p->far_guid), one_way = UR_TOPO_NONE, later = UR_TOPO_NONE;

	if (p->peer_node != UR_TOPO_NONE)
		return UR_TOPO_NONE; /* the other end was first */
	if (first == UR_TOPO_NONE)
		return add_beyond(d, a, type, ports);
	for (uint32_t n = first; n != UR_TOPO_NONE; n = ur_topo_find_next(t, n)) {
		uint32_t b = ur_topo_port_of(t, n, p->far_port);

		if (t->node[n].type != type || t->node[n].ports != ports)
			continue;
		switch (fit(t, a, b)) {
		case FIT_YES:
			join_both(t, a, b);
			return UR_TOPO_NONE;
		case FIT_UNASKED:
			later = later == UR_TOPO_NONE ? b : later;
			break;
		case FIT_ONE_WAY:
			one_way = one_way == UR_TOPO_NONE ? b : one_way;
			break;
		case FIT_NOT:
			break;
		}
	}
	if (later != UR_TOPO_NONE) {
		wait_for(d, a, later);
		return UR_TOPO_NONE;
	}
	if (one_way != UR_TOPO_NONE) {
		join_both(t, a, one_way);
		t->port[one_way].one_way = true;
		return UR_TOPO_NONE;
	}
	return add_duplicate(d, a, type, ports);
}

/* What port `b` is linked to is known: ports that waited for it can be told. */
static void settle(struct ur_discover *d, uint32_t b)
{
	struct ur_topo *t = d->topo;
	const struct ur_topo_node *n = &t->node[t->port[b].node]; /* they were like it */
	uint32_t a = t->port[b].first_waits, next;

	t->port[b].asked = true;
	t->port[b].first_waits = UR_TOPO_NONE;
	for (; a != UR_TOPO_NONE; a = next) {
		next = t->port[a].next_waits;
		t->port[a].next_waits = UR_TOPO_NONE;
		reach(d, a, n->type, n->ports);
	}
}

/* ---- asking ---- */

static void post(struct ur_discover *d, enum ask ask, uint32_t node, uint8_t port, uint64_t now_ns)
{
	static const uint16_t attr[] = {
		[ASK_NODE_INFO] = UR_SMP_NODE_INFO,
		[ASK_NODE_DESC] = UR_SMP_NODE_DESC,
		[ASK_SWITCH_INFO] = UR_SMP_SWITCH_INFO,
		[ASK_PORT_INFO] = UR_SMP_PORT_INFO,
	};
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = 0;
	struct ur_mgr_mad mad;
	bool posted;

	if (node != UR_TOPO_NONE) {
		hops = ur_topo_path(d->topo, node, path);
		if (ask == ASK_NODE_INFO)
			path[++hops] = port;
		d->topo->node[node].open++;
	}
	ur_mgr_directed(&mad, UR_MAD_METHOD_GET, attr[ask], ask == ASK_PORT_INFO ? port : 0, path,
			hops);
	posted = ur_requests_post(d->requests, &mad, cookie_of(ask, node, port), now_ns);
	UR_ASSERT(posted);
}

/* Whether to ask what that port is linked to. If not, and this is certain, the port is settled. */
static bool is_to_probe(struct ur_discover *d, uint32_t node, uint32_t p)
{
	struct ur_topo_port *port = &d->topo->port[p];

	if (port->asked || port->probed)
		return false;
	if (port->told && port->state == UR_PORT_DOWN && !port->verify) {
		port->link = UR_TOPO_LINK_DOWN;
		settle(d, p);
		return false;
	}
	if (d->topo->node[node].hops == UR_TOPO_PATH_MAX) {
		port->link = UR_TOPO_LINK_BEYOND;
		settle(d, p);
		return false;
	}
	return true;
}

/* Posts the next request about a node. False: there is none, or none yet. */
static bool post_next(struct ur_discover *d, uint32_t node, uint64_t now_ns)
{
	struct ur_topo *t = d->topo;
	struct ur_topo_node *n = &t->node[node];
	bool is_switch = n->type == UR_TOPO_SWITCH;

	if (n->faults & UR_TOPO_DEAD)
		return false;
	if (!n->step) {
		n->step = is_switch ? 1 : 3;
		post(d, ASK_NODE_DESC, node, 0, now_ns);
		return true;
	}
	if (n->step == 1) {
		n->step = 2;
		post(d, ASK_SWITCH_INFO, node, 0, now_ns);
		return true;
	}
	if (n->step - 2 <= n->ports) {
		post(d, ASK_PORT_INFO, node, (uint8_t)(n->step++ - 2), now_ns);
		return true;
	}
	for (; n->probe <= n->ports && can_ask_beyond(t, node, (uint8_t)n->probe); n->probe++) {
		uint32_t p = ur_topo_port_of(t, node, (uint8_t)n->probe);

		if (!t->port[p].told && !t->port[p].untold)
			return false; /* its PortInfo is on its way */
		if (is_to_probe(d, node, p)) {
			t->port[p].probed = true;
			post(d, ASK_NODE_INFO, node, (uint8_t)n->probe++, now_ns);
			return true;
		}
	}
	return false;
}

bool ur_discover_output(struct ur_discover *d, uint64_t now_ns, struct ur_mgr_mad *out)
{
	if (!d->root_asked) {
		d->root_asked = true;
		post(d, ASK_NODE_INFO, UR_TOPO_NONE, 0, now_ns);
	}
	while (d->first_turn != UR_TOPO_NONE && ur_requests_have_room(d->requests)) {
		uint32_t node = leave_turn(d);

		if (d->topo->node[node].open < d->attr.per_node && post_next(d, node, now_ns))
			enter_turn(d, node);
	}
	return ur_requests_output(d->requests, now_ns, out);
}

/* ---- answers ---- */

/* MGR-DISC-02 */
static bool is_possible(const struct ur_node_info *i, bool is_root)
{
	if (!i->node_guid || !i->num_ports || i->num_ports == UINT8_MAX ||
	    i->local_port > i->num_ports)
		return false;
	if (i->node_type != UR_NODE_CA && i->node_type != UR_NODE_SWITCH &&
	    i->node_type != UR_NODE_ROUTER)
		return false;
	return i->local_port || (is_root && i->node_type == UR_NODE_SWITCH);
}

static void describe(struct ur_topo *t, uint32_t node, const struct ur_node_info *i)
{
	struct ur_topo_node *n = &t->node[node];

	n->system_guid = i->system_guid;
	n->device_id = i->device_id;
	n->vendor_id = i->vendor_id;
	n->revision = i->revision;
	t->port[ur_topo_port_of(t, node, n->type == UR_TOPO_SWITCH ? 0 : i->local_port)].guid =
		i->port_guid;
}

static void take_root(struct ur_discover *d, const struct ur_node_info *i)
{
	uint32_t node;

	if (!is_possible(i, true))
		return;
	node = ur_topo_add(d->topo, i->node_guid, i->node_type, i->num_ports);
	if (node == UR_TOPO_NONE)
		return;
	d->topo->node[node].probe = 1;
	describe(d->topo, node, i);
	enter_turn(d, node);
}

static void take_node_info(struct ur_discover *d, uint32_t node, uint8_t port, const uint8_t *data)
{
	struct ur_topo *t = d->topo;
	struct ur_node_info i;
	uint32_t a, reached;

	ur_get_node_info(data, &i);
	if (node == UR_TOPO_NONE) {
		take_root(d, &i);
		return;
	}
	a = ur_topo_port_of(t, node, port);
	if (t->port[a].asked)
		return; /* its node was given up since */
	if (!is_possible(&i, false)) {
		t->port[a].link = UR_TOPO_LINK_REFUSED;
		settle(d, a);
		return;
	}
	t->port[a].far_guid = i.node_guid;
	t->port[a].far_port = i.local_port;
	t->port[a].asked = true;
	reached = reach(d, a, i.node_type, i.num_ports);
	if (reached != UR_TOPO_NONE)
		describe(t, reached, &i);
	settle(d, a);
}

static void take_port_info(struct ur_topo *t, uint32_t node, uint8_t port, const uint8_t *data)
{
	struct ur_topo_port *p = &t->port[ur_topo_port_of(t, node, port)];
	struct ur_port_info i;

	ur_get_port_info(data, &i);
	p->told = true;
	p->state = i.state;
	p->phys_state = i.phys_state;
	p->width = i.width_active;
	p->speed = i.speed_active;
	p->mtu = i.neighbor_mtu;
	p->lid = i.lid;
	p->lmc = i.lmc;
	/* A state that is none, or a port that is down and through which the node answers. */
	if (!i.state || i.state > UR_PORT_ACTIVE + 1 ||
	    (i.state == UR_PORT_DOWN && node && port == t->node[node].entry_port))
		t->node[node].faults |= UR_TOPO_WRONG;
}

static void take(struct ur_discover *d, enum ask ask, uint32_t node, uint8_t port,
		 const uint8_t *data)
{
	struct ur_topo_node *n;
	struct ur_switch_info si;

	if (ask == ASK_NODE_INFO) {
		take_node_info(d, node, port, data);
		return;
	}
	n = &d->topo->node[node];
	switch (ask) {
	case ASK_NODE_INFO:
	case ASK_NODE_DESC:
		memcpy(n->description, data, sizeof(n->description) - 1);
		break;
	case ASK_SWITCH_INFO:
		ur_get_switch_info(data, &si);
		n->lft_cap = si.linear_fdb_cap;
		n->lft_top = si.linear_fdb_top;
		break;
	case ASK_PORT_INFO:
		take_port_info(d->topo, node, port, data);
		break;
	}
}

/* Nothing more is asked of it, and no port waits for its ports. MGR-DISC-05 */
static void give_up(struct ur_discover *d, uint32_t node)
{
	d->topo->node[node].faults |= UR_TOPO_DEAD;
	for (uint8_t i = 1; i <= d->topo->node[node].ports; i++) {
		uint32_t p = ur_topo_port_of(d->topo, node, i);

		if (!d->topo->port[p].asked)
			settle(d, p);
	}
}

/* No answer, or one that says no. */
static void miss(struct ur_discover *d, enum ask ask, uint32_t node, uint8_t port, bool timed_out)
{
	struct ur_topo *t = d->topo;
	struct ur_topo_port *p;

	if (node == UR_TOPO_NONE)
		return;
	p = &t->port[ur_topo_port_of(t, node, port)];
	if (ask == ASK_NODE_INFO) {
		if (p->asked)
			return;
		p->link = timed_out ? UR_TOPO_LINK_SILENT : UR_TOPO_LINK_REFUSED;
		if (p->verify)
			p->link = UR_TOPO_LINK_DOWN;
		settle(d, ur_topo_port_of(t, node, port));
		return;
	}
	t->node[node].faults |= UR_TOPO_MUTE;
	if (ask == ASK_PORT_INFO)
		p->untold = true;
	if (timed_out && ++t->node[node].timeouts == DEAD_AFTER)
		give_up(d, node);
}

static void finish(struct ur_discover *d, const struct ur_mgr_answer *answer)
{
	uint32_t node = (uint32_t)answer->cookie;
	uint8_t port = (uint8_t)(answer->cookie >> 32);
	enum ask ask = (enum ask)(answer->cookie >> 40);
	const uint8_t *mad = answer->mad ? answer->mad->bytes : NULL;

	if (node != UR_TOPO_NONE) {
		d->topo->node[node].open--;
		if (mad && ask != ASK_NODE_INFO)
			d->topo->node[node].timeouts = 0;
	}
	if (mad && !(ur_load16(mad + 4) & ~UR_SMP_DIRECTION))
		take(d, ask, node, port, mad + UR_SMP_DATA);
	else
		miss(d, ask, node, port, !mad);
	if (node != UR_TOPO_NONE)
		enter_turn(d, node);
}

void ur_discover_input(struct ur_discover *d, const struct ur_mgr_mad *mad, uint64_t now_ns)
{
	struct ur_mgr_answer answer;

	if (ur_requests_input(d->requests, mad, now_ns, &answer))
		finish(d, &answer);
}

uint64_t ur_discover_next_deadline(const struct ur_discover *d)
{
	return ur_discover_done(d) ? 0 : ur_requests_next_deadline(d->requests);
}

void ur_discover_expire(struct ur_discover *d, uint64_t now_ns)
{
	struct ur_mgr_answer answer;

	while (ur_requests_expire(d->requests, now_ns, &answer))
		finish(d, &answer);
}

bool ur_discover_done(const struct ur_discover *d)
{
	return d->root_asked && d->first_turn == UR_TOPO_NONE && !d->requests->open;
}

/* ---- for tests ---- */

void ur_discover_validate(const struct ur_discover *d)
{
	const struct ur_topo *t = d->topo;
	bool done = ur_discover_done(d);

	ur_requests_validate(d->requests);
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		UR_ASSERT(t->node[i].hops <= UR_TOPO_PATH_MAX &&
			  t->node[i].open <= d->attr.per_node);
	for (uint32_t i = 0; i < t->ports_cnt; i++) {
		const struct ur_topo_port *p = &t->port[i], *q;

		UR_ASSERT(!done || p->first_waits == UR_TOPO_NONE);
		if (p->peer_node == UR_TOPO_NONE)
			continue;
		q = &t->port[ur_topo_port_of(t, p->peer_node, p->peer_port)];
		/* Once both ends were asked, a link has two ends. */
		UR_ASSERT(q->peer_node == UR_TOPO_NONE ||
			  (q->peer_node == p->node && q->peer_port == ur_topo_port_nr(t, i)));
	}
}
