/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/switch.h"

#include "switch/inside.h"
#include "wire/assert.h"

#define BURST_FLOOD 1024 /* frames at once within the limit of a second */
#define BURST_MGMT  256
#define LANE_SHARE  2 /* a lane's queue may hold this part of a port's references */

const char *ur_switch_drop_name(enum ur_switch_drop reason)
{
	static const char *const name[] = {
#define X(NAME, name, text) #name,
		UR_SWITCH_DROPS(X)
#undef X
	};

	UR_ASSERT(reason < UR_SWITCH_DROP_CNT);
	return name[reason];
}

const char *ur_switch_drop_text(enum ur_switch_drop reason)
{
	static const char *const text[] = {
#define X(NAME, name, text) text,
		UR_SWITCH_DROPS(X)
#undef X
	};

	UR_ASSERT(reason < UR_SWITCH_DROP_CNT);
	return text[reason];
}

/* ---- memory ---- */

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static uint32_t refs_of(const struct ur_switch_limits *l)
{
	return l->ports * (l->frames + l->mgmt_frames);
}

size_t ur_switch_size(const struct ur_switch_attr *attr)
{
	const struct ur_switch_limits *l = &attr->limits;

	return aligned(sizeof(struct ur_switch)) +
	       aligned(l->ports * sizeof(struct ur_switch_port)) +
	       aligned(refs_of(l) * sizeof(struct ur_switch_ref)) +
	       aligned(ur_switch_macs_size(l->macs)) + aligned(ur_switch_routes_size(l->routes)) +
	       aligned(ur_switch_adm_size(attr));
}

static void *take(uint8_t **at, size_t bytes)
{
	void *p = *at;

	*at += aligned(bytes);
	return p;
}

/* SWITCH-LANE-01: as docs/design/virtual-lanes.md maps service levels to DSCP and priority. */
static void map_service_levels(struct ur_switch *sw)
{
	for (unsigned d = 0; d < 64; d++)
		sw->sl_of_dscp[d] = (uint8_t)(d / 8);
	for (unsigned sl = 16; sl-- > 0;) {
		sw->sl_of_dscp[sw->attr.sl_dscp[sl]] = (uint8_t)sl;
		sw->sl_of_pcp[sw->attr.sl_pcp[sl]] = (uint8_t)sl;
	}
}

struct ur_switch *ur_switch_init(void *mem, const struct ur_switch_attr *attr)
{
	const struct ur_switch_limits *l = &attr->limits;
	uint8_t *at = mem;
	struct ur_switch *sw = take(&at, sizeof(*sw));
	struct ur_switch_port_attr port;

	UR_ASSERT(!ur_switch_attr_check(attr));
	memset(sw, 0, sizeof(*sw));
	sw->attr = *attr;
	sw->port = take(&at, l->ports * sizeof(*sw->port));
	memset(sw->port, 0, l->ports * sizeof(*sw->port));
	sw->ref_cnt = refs_of(l);
	sw->ref = take(&at, sw->ref_cnt * sizeof(*sw->ref));
	ur_switch_list_init(&sw->free);
	ur_switch_list_init(&sw->dead);
	for (uint32_t i = 0; i < sw->ref_cnt; i++) {
		sw->ref[i] = (struct ur_switch_ref){0};
		ur_switch_list_push(sw->ref, &sw->free, i);
	}
	ur_switch_macs_init(&sw->macs, take(&at, ur_switch_macs_size(l->macs)), attr);
	ur_switch_routes_init(&sw->routes, take(&at, ur_switch_routes_size(l->routes)), attr);
	ur_switch_adm_init(&sw->adm, take(&at, ur_switch_adm_size(attr)), attr);
	map_service_levels(sw);
	ur_switch_port_attr_default(&port);
	for (unsigned i = 0; i < l->ports; i++) {
		for (unsigned vl = 0; vl < UR_SWITCH_LANES; vl++)
			ur_switch_list_init(&sw->port[i].out.lane[vl]);
		ur_switch_set_port(sw, (uint8_t)i, &port, 0);
	}
	sw->link = sw->up = 1;
	sw->enabled = UINT64_MAX;
	return sw;
}

/* ---- ports ---- */

void ur_switch_set_port(struct ur_switch *sw, uint8_t port, const struct ur_switch_port_attr *a,
			uint64_t now_ns)
{
	struct ur_switch_port *p = &sw->port[port];
	uint32_t range = a->ecn_max_bytes - a->ecn_min_bytes;

	UR_ASSERT(port < sw->attr.limits.ports && !ur_switch_port_attr_check(a));
	ur_switch_adm_release_all(sw);
	p->attr = *a;
	ur_vl_init(&p->out.vl, &a->vl);
	ur_switch_credit_set(sw, p);
	ur_rate_change(&p->out.rate, a->rate_gbps);
	p->out.ecn_slope = range ? ((uint64_t)a->ecn_chance << 16) / range : 0;
	p->out.lane_frames = sw->attr.limits.frames / LANE_SHARE;
	ur_switch_limit_init(&p->in.flood, a->flood_per_s, BURST_FLOOD);
	ur_switch_limit_init(&p->in.mgmt, a->mgmt_per_s, BURST_MGMT);
	for (unsigned vl = 0; vl < UR_VL_CNT; vl++)
		if (!(ur_vl_served(&p->out.vl) >> vl & 1))
			ur_switch_drop_lane(sw, port, vl, UR_SWITCH_DROP_NO_SERVICE);
	ur_switch_adm_move(sw, port);
}

const struct ur_switch_port_attr *ur_switch_port(const struct ur_switch *sw, uint8_t port)
{
	return &sw->port[port].attr;
}

/* SWITCH-LINK-01 */
static void update_link(struct ur_switch *sw, uint8_t port)
{
	uint64_t bit = UINT64_C(1) << port, up = sw->link & sw->enabled & bit;

	if (up == (sw->up & bit))
		return;
	sw->up ^= bit;
	if (sw->port[port].attr.credit_frames)
		ur_credit_restart(&sw->port[port].credit, NULL);
	if (up)
		return;
	sw->port[port].counters.link_downs++;
	ur_switch_adm_release_all(sw);
	ur_switch_adm_move(sw, port);
	ur_switch_macs_forget(&sw->macs, port);
	for (unsigned vl = 0; vl < UR_SWITCH_LANES; vl++)
		ur_switch_drop_lane(sw, port, vl, UR_SWITCH_DROP_LINK_DOWN);
}

static void set_bit(uint64_t *bits, uint8_t at, bool on)
{
	*bits = (*bits & ~(UINT64_C(1) << at)) | (uint64_t)on << at;
}

void ur_switch_set_link(struct ur_switch *sw, uint8_t port, bool up, uint64_t now_ns)
{
	UR_ASSERT(port < sw->attr.limits.ports);
	set_bit(&sw->link, port, up);
	update_link(sw, port);
}

void ur_switch_set_enabled(struct ur_switch *sw, uint8_t port, bool enabled)
{
	UR_ASSERT(port && port < sw->attr.limits.ports);
	set_bit(&sw->enabled, port, enabled);
	update_link(sw, port);
}

bool ur_switch_enabled(const struct ur_switch *sw, uint8_t port)
{
	return sw->enabled >> port & 1;
}

void ur_switch_set_lid(struct ur_switch *sw, uint16_t lid)
{
	sw->lid = lid;
}

void ur_switch_set_steer(struct ur_switch *sw, const struct ur_switch_steer *steer)
{
	sw->steer = *steer;
}

bool ur_switch_link(const struct ur_switch *sw, uint8_t port)
{
	return sw->up >> port & 1;
}

uint16_t ur_switch_ports(const struct ur_switch *sw)
{
	return sw->attr.limits.ports;
}

/* ---- forwarding ---- */

/* VLAN of a frame; 0: the port is not a member of it. SWITCH-VLAN-01 */
static uint16_t vlan_of(const struct ur_switch_port_attr *a, const struct ur_switch_headers *h)
{
	uint16_t vid = h->tagged ? h->tci & 0xfff : 0;

	if (!vid)
		vid = a->vid;
	return vid < UR_SWITCH_VIDS - 1 && ur_switch_is_member(a, vid) ? vid : 0;
}

static uint8_t sl_of(const struct ur_switch *sw, const struct ur_switch_headers *h)
{
	if (h->version)
		return sw->sl_of_dscp[h->tos >> 2];
	return sw->sl_of_pcp[h->tagged ? h->tci >> 13 : 0];
}

static unsigned forward(struct ur_switch *sw, uint8_t out, const struct ur_switch_frame *frame,
			const struct ur_switch_headers *h, const struct ur_switch_way *way,
			uint64_t now_ns)
{
	if (out == way->in) {
		ur_switch_drop(sw, way->in, 0, UR_SWITCH_DROP_SAME_PORT);
		return 0;
	}
	if (!(sw->up >> out & 1)) {
		ur_switch_drop(sw, out, 0, UR_SWITCH_DROP_LINK_DOWN);
		return 0;
	}
	if (!way->mgmt && !ur_switch_is_member(&sw->port[out].attr, way->vid)) {
		ur_switch_drop(sw, out, 0, UR_SWITCH_DROP_VLAN);
		return 0;
	}
	return ur_switch_enqueue(sw, out, frame, h, way, now_ns);
}

/* SWITCH-MGMT-01 */
static unsigned forward_mgmt(struct ur_switch *sw, const struct ur_switch_frame *frame,
			     const struct ur_switch_headers *h, struct ur_switch_way *way,
			     uint64_t now_ns)
{
	bool own = h->neighbor || h->lid == sw->lid;
	uint8_t out = own ? 0 : ur_switch_lft(sw, h->lid);

	way->mgmt = true;
	if (way->in && !ur_switch_limit_lets(&sw->port[way->in].in.mgmt, now_ns)) {
		ur_switch_drop(sw, way->in, UR_SWITCH_VL15, UR_SWITCH_DROP_MGMT);
		return 0;
	}
	if (out >= sw->attr.limits.ports) {
		ur_switch_drop(sw, way->in, UR_SWITCH_VL15, UR_SWITCH_DROP_NO_ROUTE);
		return 0;
	}
	return forward(sw, out, frame, h, way, now_ns);
}

static uint64_t all_but(const struct ur_switch *sw, uint8_t in)
{
	return sw->up & ~(UINT64_C(1) << in | 1);
}

/* SWITCH-FLOOD-01: to `others`. */
static unsigned flood(struct ur_switch *sw, uint64_t others, const struct ur_switch_frame *frame,
		      const struct ur_switch_headers *h, const struct ur_switch_way *way,
		      uint64_t now_ns)
{
	struct ur_switch_port *in = &sw->port[way->in];
	struct ur_switch_way each = *way;
	unsigned tried = 0, taken = 0;

	each.credit = 0; /* given back at once: copies have no guarantee */
	if (!ur_switch_limit_lets(&in->in.flood, now_ns)) {
		ur_switch_drop(sw, way->in, 0, UR_SWITCH_DROP_FLOOD);
		return 0;
	}
	for (; others; others &= others - 1) {
		uint8_t out = (uint8_t)__builtin_ctzll(others);

		if (!ur_switch_is_member(&sw->port[out].attr, way->vid))
			continue;
		tried++;
		each.flooded = true;
		taken += ur_switch_enqueue(sw, out, frame, h, &each, now_ns);
	}
	if (!tried) {
		ur_switch_drop(sw, way->in, 0, UR_SWITCH_DROP_NO_MEMBER);
		return 0;
	}
	in->counters.flooded++;
	in->counters.copies += tried - 1;
	return taken;
}

static bool is_steered_mac(const struct ur_switch *sw, const uint8_t *mac)
{
	return sw->steer.ports && memcmp(mac, sw->steer.mac, 6) == 0;
}

/* SWITCH-STEER-01 */
static unsigned forward_steered(struct ur_switch *sw, uint64_t ports,
				const struct ur_switch_frame *frame,
				const struct ur_switch_headers *h, const struct ur_switch_way *way,
				uint64_t now_ns)
{
	ports &= sw->up & ~UINT64_C(1);
	if (!ports) {
		ur_switch_drop(sw, way->in, 0, UR_SWITCH_DROP_NO_ENDPOINT);
		return 0;
	}
	if (!(ports & (ports - 1)))
		return ur_switch_enqueue(sw, (uint8_t)__builtin_ctzll(ports), frame, h, way,
					 now_ns);
	return flood(sw, ports, frame, h, way, now_ns);
}

/* RoCEv2 whose address has a LID goes by table, everything else by what was learned. */
static unsigned forward_data(struct ur_switch *sw, const struct ur_switch_frame *frame,
			     const struct ur_switch_headers *h, const struct ur_switch_way *way,
			     uint64_t now_ns)
{
	const struct ur_switch_route *route = NULL;
	uint8_t out;

	if (h->group_dst)
		return flood(sw, all_but(sw, way->in), frame, h, way, now_ns);
	if (h->op & UR_OP_NOTIFY && sw->adm.pool)
		ur_switch_adm_notify(sw, way->in, frame, now_ns);
	if (h->roce)
		route = ur_switch_routes_find(&sw->routes, &h->dst);
	if (route) {
		out = ur_switch_routes_port(&sw->routes, route, h->sport, sw->up & ~UINT64_C(1));
		if (out == UR_SWITCH_NO_PORT) {
			ur_switch_drop(sw, way->in, 0, UR_SWITCH_DROP_NO_ROUTE);
			return 0;
		}
		sw->port[way->in].counters.routed++;
		return forward(sw, out, frame, h, way, now_ns);
	}
	out = ur_switch_macs_find(&sw->macs, way->vid, frame->data, now_ns);
	if (out == UR_SWITCH_NO_PORT)
		return flood(sw, all_but(sw, way->in), frame, h, way, now_ns);
	return forward(sw, out, frame, h, way, now_ns);
}

static void learn(struct ur_switch *sw, uint8_t port, uint16_t vid, const uint8_t *mac,
		  uint64_t now_ns)
{
	struct ur_switch_counters *c = &sw->port[port].counters;

	switch (ur_switch_macs_learn(&sw->macs, vid, mac, port, now_ns)) {
	case UR_SWITCH_KNOWN:
		break;
	case UR_SWITCH_LEARNED:
		c->learned++;
		break;
	case UR_SWITCH_MOVED:
		c->moved++;
		break;
	case UR_SWITCH_FULL:
		c->not_learned++;
		break;
	}
}

/* Why a frame is not looked at; UR_SWITCH_DROP_CNT: it is. */
static enum ur_switch_drop refuse(const struct ur_switch *sw, uint8_t port,
				  const struct ur_switch_frame *frame, struct ur_switch_headers *h)
{
	if (!(sw->up >> port & 1))
		return UR_SWITCH_DROP_LINK_DOWN;
	if (!ur_switch_headers_read(frame->data, frame->len, h))
		return UR_SWITCH_DROP_TRUNCATED;
	if (h->group_src)
		return UR_SWITCH_DROP_SOURCE;
	if (h->reserved && !(h->neighbor && h->mad))
		return UR_SWITCH_DROP_RESERVED;
	return UR_SWITCH_DROP_CNT;
}

static unsigned input(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
		      uint8_t credit, uint64_t now_ns)
{
	struct ur_switch_counters *c = &sw->port[port].counters;
	struct ur_switch_way way = {.in = port, .credit = credit};
	uint64_t steered = UR_SWITCH_NOT_STEERED;
	struct ur_switch_headers h;
	enum ur_switch_drop why;

	c->rx_packets++;
	c->rx_bytes += frame->len;
	why = refuse(sw, port, frame, &h);
	if (why != UR_SWITCH_DROP_CNT) {
		ur_switch_drop(sw, port, 0, why);
		return 0;
	}
	c->rx_group_packets += h.group_dst;
	if (h.mad && (h.neighbor || h.lid))
		return forward_mgmt(sw, frame, &h, &way, now_ns);
	way.vid = vlan_of(&sw->port[port].attr, &h);
	if (!way.vid) {
		ur_switch_drop(sw, port, 0, UR_SWITCH_DROP_VLAN);
		return 0;
	}
	way.sl = sl_of(sw, &h);
	if (sw->steer.ports)
		steered = sw->steer.ports(sw->steer.arg, port, frame, &h);
	if (port && !is_steered_mac(sw, frame->data + 6))
		learn(sw, port, way.vid, frame->data + 6, now_ns);
	if (steered != UR_SWITCH_NOT_STEERED)
		return forward_steered(sw, steered, frame, &h, &way, now_ns);
	return forward_data(sw, frame, &h, &way, now_ns);
}

/* SWITCH-CREDIT-01: on a port with credits. */
static unsigned input_credited(struct ur_switch *sw, uint8_t port,
			       const struct ur_switch_frame *frame, uint64_t now_ns)
{
	struct ur_switch_port *p = &sw->port[port];
	uint8_t credit, lane;
	unsigned n;

	if (!(sw->up >> port & 1))
		return input(sw, port, frame, 0, now_ns);
	if (ur_credit_is_message(frame->data, frame->len)) {
		ur_credit_input(&p->credit, frame->data, frame->len, now_ns);
		return 0;
	}
	credit = ur_switch_credit_take(p, frame, &lane);
	n = input(sw, port, frame, credit, now_ns);
	if (lane != UR_CREDIT_NONE)
		ur_credit_settle(&p->credit, lane);
	return n;
}

unsigned ur_switch_input(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
			 uint64_t now_ns)
{
	UR_ASSERT(port < sw->attr.limits.ports);
	if (__builtin_expect(sw->port[port].attr.credit_frames != 0, 0))
		return input_credited(sw, port, frame, now_ns);
	return input(sw, port, frame, 0, now_ns);
}

/* The agent's frames are management packets whatever they look like: one reference each. */
static bool send_agents(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
			uint64_t now_ns)
{
	const struct ur_switch_way way = {.in = 0, .mgmt = true};
	struct ur_switch_headers h;

	UR_ASSERT(ur_switch_headers_read(frame->data, frame->len, &h));
	sw->port[0].counters.rx_packets++;
	sw->port[0].counters.rx_bytes += frame->len;
	if (port >= sw->attr.limits.ports) {
		ur_switch_drop(sw, 0, UR_SWITCH_VL15, UR_SWITCH_DROP_NO_ROUTE);
		return false;
	}
	return forward(sw, port, frame, &h, &way, now_ns);
}

bool ur_switch_send_mgmt(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
			 uint64_t now_ns)
{
	UR_ASSERT(port && port < sw->attr.limits.ports);
	return send_agents(sw, port, frame, now_ns);
}

bool ur_switch_route_mgmt(struct ur_switch *sw, uint16_t lid, const struct ur_switch_frame *frame,
			  uint64_t now_ns)
{
	return send_agents(sw, ur_switch_lft(sw, lid), frame, now_ns);
}

/* ---- tables and counters ---- */

uint8_t ur_switch_lft(const struct ur_switch *sw, uint16_t lid)
{
	return lid && lid < UR_SWITCH_LIDS ? sw->routes.port_of[lid] : UR_SWITCH_NO_PORT;
}

void ur_switch_set_lft(struct ur_switch *sw, uint16_t lid, uint8_t port)
{
	UR_ASSERT(lid && lid < UR_SWITCH_LIDS);
	sw->routes.port_of[lid] = port < sw->attr.limits.ports ? port : UR_SWITCH_NO_PORT;
}

bool ur_switch_set_route(struct ur_switch *sw, const struct ur_gid *addr, uint16_t lid, uint8_t lmc)
{
	return ur_switch_routes_set(&sw->routes, addr, lid, lmc);
}

void ur_switch_counters(const struct ur_switch *sw, uint8_t port, struct ur_switch_counters *out)
{
	const struct ur_credit_counters *c = &sw->port[port].credit.cnt;

	*out = sw->port[port].counters;
#define X(name, help) out->name = c->name;
	UR_CREDIT_COUNTERS(X)
#undef X
}

uint32_t ur_switch_queued_bytes(const struct ur_switch *sw, uint8_t port, uint8_t vl)
{
	return sw->port[port].out.lane[vl].bytes;
}

uint64_t ur_switch_mgmt_ports(const struct ur_switch *sw)
{
	return sw->urgent;
}

uint32_t ur_switch_queued(const struct ur_switch *sw)
{
	return sw->ref_cnt - sw->free.cnt - sw->dead.cnt;
}

uint32_t ur_switch_macs(const struct ur_switch *sw, uint64_t now_ns)
{
	return ur_switch_macs_cnt(&sw->macs, now_ns);
}

/* ---- invariants ---- */

static uint32_t walk(const struct ur_switch *sw, const struct ur_switch_list *l)
{
	uint32_t cnt = 0, bytes = 0, last = UR_SWITCH_END;

	for (uint32_t i = l->head; i != UR_SWITCH_END; i = sw->ref[i].next) {
		UR_ASSERT(i < sw->ref_cnt && cnt < sw->ref_cnt);
		cnt++;
		bytes += sw->ref[i].frame.len;
		last = i;
	}
	UR_ASSERT(cnt == l->cnt && bytes == l->bytes && last == l->tail);
	return cnt;
}

static void validate_port(const struct ur_switch *sw, const struct ur_switch_port *p,
			  uint32_t *queued)
{
	const struct ur_switch_out *o = &p->out;

	for (unsigned vl = 0; vl < UR_SWITCH_LANES; vl++) {
		*queued += walk(sw, &o->lane[vl]);
		if (vl < UR_VL_CNT)
			UR_ASSERT(o->ready >> vl & 1 ? o->lane[vl].cnt : !o->lane[vl].cnt);
	}
	UR_ASSERT(!(o->ready & ~ur_vl_served(&o->vl)));
	UR_ASSERT(o->lane[UR_SWITCH_VL15].bytes <= sw->attr.vl15_bytes);
	UR_ASSERT((sw->urgent >> (p - sw->port) & 1) == (o->lane[UR_SWITCH_VL15].cnt != 0));
	UR_ASSERT(p->in.held <= sw->attr.limits.frames);
	UR_ASSERT(p->credit.held <= p->in.held && p->credit.held <= p->attr.credit_frames);
	UR_ASSERT(p->in.held_mgmt <= sw->attr.limits.mgmt_frames || p == sw->port);
}

void ur_switch_validate(const struct ur_switch *sw)
{
	uint64_t in = 0, out = 0;
	uint32_t queued = 0, dead = walk(sw, &sw->dead), held = 0;

	for (unsigned i = 0; i < sw->attr.limits.ports; i++) {
		const struct ur_switch_port *p = &sw->port[i];

		validate_port(sw, p, &queued);
		held += p->in.held + p->in.held_mgmt;
		in += p->counters.rx_packets + p->counters.copies;
		out += p->counters.tx_packets;
		for (unsigned vl = 0; vl < UR_SWITCH_LANES; vl++)
			for (unsigned d = 0; d < UR_SWITCH_DROP_CNT; d++)
				out += p->counters.lane[vl].drops[d];
	}
	queued += ur_switch_adm_validate(sw);
	UR_ASSERT(sw->port->in.held + sw->port->in.held_mgmt <=
		  sw->attr.limits.frames + sw->attr.limits.mgmt_frames);
	UR_ASSERT(held == queued + dead && held + walk(sw, &sw->free) == sw->ref_cnt);
	UR_ASSERT(in == out + queued); /* SWITCH-COUNT-01 */
}
