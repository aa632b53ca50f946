/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/agent.h"

#include "mgmt/nma.h"
#include "switch/inside.h"
#include "wire/icrc.h"

#define VENDOR_ID 0x024c49 /* locally administered, as the LIDs' MAC addresses */
#define DEVICE_ID 0x5357
#define LFT_BLOCK 64

static const struct ur_nma_limits nma_limits = {
	.requests = 256, .passing = 256, .remembered = 256, .notices = 64};

struct ur_switch_agent {
	struct ur_switch *sw;
	struct ur_nma *nma;
	uint64_t up; /* links as the agent knows them */
	uint32_t load;
	uint32_t psn;
	uint64_t now_ns; /* of the call under way, for callbacks */
	uint64_t changes;
	uint8_t *eeprom;
	uint64_t m_key; /* as configured */
	uint64_t own_tid;
	struct ur_switch_agent_counters counters;
	uint8_t mac[UR_SWITCH_PORTS_MAX][6];
	struct ur_switch_device_counters device[UR_SWITCH_PORTS_MAX];
};

/* ---- what the agent reads and writes ---- */

/* Code of the largest MTU (256 to 4096) of which a packet fits in a frame. */
static uint8_t mtu_code(uint32_t max_frame)
{
	uint8_t code = 1;

	while (code < 5 && (256u << code) + UR_HDR_MAX <= max_frame)
		code++;
	return code;
}

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	struct ur_switch_agent *a = ctx;
	const struct ur_switch_port_attr *p = ur_switch_port(a->sw, port);

	*link = (struct ur_nma_link){
		.up = ur_switch_link(a->sw, port),
		.mtu = port ? mtu_code(p->max_frame) : 5,
		.bps = (uint64_t)(p->rate_gbps * 1e9),
	};
}

/* Drops of all data lanes for these reasons. */
static uint64_t drops_for(const struct ur_switch_counters *c, uint32_t reasons)
{
	uint64_t n = 0;

	for (unsigned vl = 0; vl < UR_VL_CNT; vl++)
		for (unsigned d = 0; d < UR_SWITCH_DROP_CNT; d++)
			n += reasons >> d & 1 ? c->lane[vl].drops[d] : 0;
	return n;
}

#define BIT(name) (1u << UR_SWITCH_DROP_##name)

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *out)
{
	static const uint32_t discards =
		BIT(LINK_DOWN) | BIT(NO_SERVICE) | BIT(TOO_LONG) | BIT(QUEUE_FULL) | BIT(NO_BUFFER);
	static const uint32_t relay = BIT(RESERVED) | BIT(VLAN) | BIT(SAME_PORT) | BIT(NO_MEMBER) |
				      BIT(NO_ROUTE) | BIT(FLOOD);
	struct ur_switch_agent *a = ctx;
	const struct ur_switch_device_counters *d = &a->device[port];
	struct ur_switch_counters c;

	ur_switch_counters(a->sw, port, &c);
	*out = (struct ur_nma_counters){
		.tx_bytes = c.tx_bytes,
		.rx_bytes = c.rx_bytes,
		.tx_packets = c.tx_packets,
		.rx_packets = c.rx_packets,
		.tx_multicast = c.tx_group_packets,
		.rx_multicast = c.rx_group_packets,
		.tx_discards = drops_for(&c, discards) + d->device_unsent,
		.tx_wait = c.wait_ns >> 10, /* ticks of 1.024 us */
		.rx_errors = drops_for(&c, BIT(TRUNCATED) | BIT(SOURCE)),
		.rx_relay_errors = drops_for(&c, relay),
		.symbol_errors = d->device_damaged,
		.overruns = d->device_overruns,
		.flow_control = c.credit_silences,
		.link_downed = c.link_downs,
	};
	for (unsigned i = 0; i < UR_SWITCH_DROP_CNT; i++)
		out->vl15_dropped += c.lane[UR_SWITCH_VL15].drops[i];
}

static void get_gauges(void *ctx, struct ur_nma_gauges *out)
{
	struct ur_switch_agent *a = ctx;
	const struct ur_switch *sw = a->sw;
	uint64_t fullest = 0;

	for (uint8_t p = 1; p < sw->attr.limits.ports; p++)
		for (uint8_t vl = 0; vl < UR_VL_CNT; vl++) {
			uint64_t fill = UINT64_C(1000) * ur_switch_queued_bytes(sw, p, vl) /
					sw->port[p].attr.lane_bytes;

			fullest = fill > fullest ? fill : fullest;
		}
	*out = (struct ur_nma_gauges){
		.load = a->load,
		.mempool = UINT64_C(1000) * ur_switch_queued(sw) / sw->ref_cnt,
		.ring = fullest,
	};
}

static void get_vl(void *ctx, uint8_t port, struct ur_vl_attr *vl)
{
	*vl = ur_switch_port(((struct ur_switch_agent *)ctx)->sw, port)->vl;
}

static int set_vl(void *ctx, uint8_t port, const struct ur_vl_attr *vl)
{
	struct ur_switch_agent *a = ctx;
	struct ur_switch_port_attr attr = *ur_switch_port(a->sw, port);

	a->changes++;
	attr.vl = *vl;
	ur_switch_set_port(a->sw, port, &attr, a->now_ns);
	return 0;
}

static void get_lft(void *ctx, uint16_t block, uint8_t ports[LFT_BLOCK])
{
	const struct ur_switch *sw = ((struct ur_switch_agent *)ctx)->sw;

	memcpy(ports, sw->routes.port_of + block * LFT_BLOCK, LFT_BLOCK);
}

static int set_lft(void *ctx, uint16_t block, const uint8_t ports[LFT_BLOCK])
{
	struct ur_switch_agent *a = ctx;

	a->changes++;
	for (unsigned i = 0; i < LFT_BLOCK; i++)
		if (block + i) /* LID 0 is no LID */
			ur_switch_set_lft(a->sw, (uint16_t)(block * LFT_BLOCK + i), ports[i]);
	return 0;
}

static uint64_t port_bit(uint8_t port)
{
	return port < UR_SWITCH_PORTS_MAX ? UINT64_C(1) << port : 0;
}

/* SWITCH-ROUTE-01: by the same function as packets. */
static void get_route(void *ctx, struct ur_route *route)
{
	const struct ur_switch *sw = ((struct ur_switch_agent *)ctx)->sw;
	uint64_t up = sw->up & ~UINT64_C(1);
	const struct ur_switch_route *r;
	struct ur_gid addr;

	ur_store64(addr.b, route->addr_high);
	ur_store64(addr.b + 8, route->addr_low);
	route->port = UR_SWITCH_NO_PORT;
	r = ur_switch_routes_find(&sw->routes, &addr);
	if (!r)
		return;
	route->known = 1;
	route->lid = r->lid;
	route->lmc = r->lmc;
	route->port = ur_switch_routes_port(&sw->routes, r, route->sport, up);
	for (uint32_t i = 0; i < 1u << r->lmc; i++)
		route->all |= port_bit(sw->routes.port_of[r->lid + i]) & ~UINT64_C(1);
	route->ports = route->all & up;
}

static void set_lid(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc)
{
	struct ur_switch_agent *a = ctx;

	(void)port, (void)lmc; /* port 0 has no LMC */
	a->changes++;
	ur_switch_set_lid(a->sw, lid);
}

static void set_enabled(void *ctx, uint8_t port, bool enabled)
{
	struct ur_switch_agent *a = ctx;

	a->changes++;
	ur_switch_set_enabled(a->sw, port, enabled);
}

static uint8_t eeprom_load(void *ctx, uint16_t address)
{
	return ((const struct ur_switch_agent *)ctx)->eeprom[address];
}

static void eeprom_store(void *ctx, uint16_t address, uint8_t value)
{
	struct ur_switch_agent *a = ctx;

	a->changes++;
	a->eeprom[address] = value;
}

#define OPS                                                                                        \
	.get_link = get_link, .get_counters = get_counters, .get_gauges = get_gauges,              \
	.get_vl = get_vl, .set_vl = set_vl, .get_lft = get_lft, .set_lft = set_lft,                \
	.get_route = get_route, .set_lid = set_lid, .set_enabled = set_enabled

static const struct ur_nma_ops plain = {OPS};
static const struct ur_nma_ops with_eeprom = {OPS, .eeprom_load = eeprom_load,
					      .eeprom_store = eeprom_store};

/* ---- memory ---- */

static struct ur_nma_limits limits_for(uint16_t ports)
{
	struct ur_nma_limits l = nma_limits;

	l.ports = (uint8_t)(ports - 1);
	return l;
}

static size_t own_size(void)
{
	return (sizeof(struct ur_switch_agent) + 63) & ~(size_t)63;
}

size_t ur_switch_agent_size(uint16_t ports)
{
	struct ur_nma_limits l = limits_for(ports);

	return own_size() + ((ur_nma_size(&l) + 63) & ~(size_t)63);
}

struct ur_switch_agent *ur_switch_agent_init(void *memory, struct ur_switch *sw,
					     const struct ur_switch_agent_attr *attr,
					     uint64_t now_ns)
{
	struct ur_switch_agent *a = memory;
	struct ur_nma_attr nma = {
		.limits = limits_for(ur_switch_ports(sw)),
		.config = attr->config,
		.type = UR_NODE_SWITCH,
		.node_guid = attr->guid,
		.port_guid = attr->guid,
		.lft_lids = UR_SWITCH_LIDS,
		.vendor_id = VENDOR_ID,
		.device_id = DEVICE_ID,
		.seed = attr->seed,
		.ops = attr->eeprom ? &with_eeprom : &plain,
		.ctx = a,
	};

	*a = (struct ur_switch_agent){.sw = sw,
				      .up = sw->up,
				      .now_ns = now_ns,
				      .eeprom = attr->eeprom,
				      .m_key = attr->config.m_key};
	memcpy(a->mac, attr->mac, sizeof(a->mac));
	memcpy(nma.description, attr->description, UR_SMP_DATA_BYTES);
	a->nma = ur_nma_init((uint8_t *)memory + own_size(), &nma, now_ns);
	return a;
}

/* ---- frames ---- */

bool ur_switch_agent_input(struct ur_switch_agent *a, const struct ur_switch_frame *frame,
			   uint8_t port, uint64_t now_ns)
{
	struct ur_nma_from from = {.port = port};
	struct ur_packet p;

	a->now_ns = now_ns;
	a->counters.received++;
	/* SWITCH-AGENT-01 */
	if (ur_packet_decode(frame->data, frame->len, &p) == UR_DROP_NONE &&
	    ur_icrc_ok(frame->data, &p) && ur_mad_is_valid(&p)) {
		from.way = ur_mad_way_of(&p, &from.slid, &from.dlid);
		from.qpn = (uint8_t)p.bth.dqpn.v;
		from.sqpn = p.deth.sqpn.v;
		if (from.way == UR_MAD_HOP || from.way == UR_MAD_LID) {
			/* What the agent drops, it counts itself. */
			(void)ur_nma_input(a->nma, p.payload, &from, now_ns);
			return true;
		}
	}
	a->counters.rejected++;
	return false;
}

bool ur_switch_agent_wants_output(const struct ur_switch_agent *a)
{
	return ur_nma_wants_output(a->nma);
}

/* Writes the frame of a MAD. False: it cannot leave a switch. */
static bool write_frame(struct ur_switch_agent *a, const struct ur_nma_out *out,
			struct ur_switch_frame *frame)
{
	struct ur_path path;

	if (out->to.way == UR_MAD_HOP && out->to.port && out->to.port < ur_switch_ports(a->sw))
		ur_mad_hop_path(&path, a->mac[out->to.port]);
	else if (out->to.way == UR_MAD_LID)
		ur_mad_lid_path(&path, out->to.slid, out->to.dlid);
	else
		return false;
	UR_ASSERT(UR_MAD_FRAME_BYTES(&path) <= UR_SWITCH_MAD_FRAME);
	frame->len = ur_mad_frame(frame->data, &path, ur_qpn(out->to.dqpn), ur_qpn(out->to.sqpn),
				  ur_psn(a->psn++ & 0xffffff), out->mad);
	return true;
}

bool ur_switch_agent_output(struct ur_switch_agent *a, struct ur_switch_frame *frame,
			    uint64_t now_ns)
{
	struct ur_nma_out out;
	bool queued = false;

	a->now_ns = now_ns;
	if (!ur_nma_output(a->nma, &out, now_ns))
		return false;
	if (write_frame(a, &out, frame))
		queued = out.to.way == UR_MAD_HOP
				 ? ur_switch_send_mgmt(a->sw, out.to.port, frame, now_ns)
				 : ur_switch_route_mgmt(a->sw, out.to.dlid, frame, now_ns);
	++*(queued ? &a->counters.sent : &a->counters.dropped);
	return queued;
}

/* ---- time and links ---- */

void ur_switch_agent_expire(struct ur_switch_agent *a, uint64_t now_ns)
{
	uint64_t changed = a->up ^ a->sw->up;

	a->now_ns = now_ns;
	a->up = a->sw->up;
	for (; changed; changed &= changed - 1)
		ur_nma_link_event(a->nma, (uint8_t)__builtin_ctzll(changed), now_ns);
	if (ur_nma_next_deadline(a->nma) <= now_ns)
		ur_nma_expire(a->nma, now_ns);
}

uint64_t ur_switch_agent_next_deadline(const struct ur_switch_agent *a)
{
	return a->up != a->sw->up ? 0 : ur_nma_next_deadline(a->nma);
}

void ur_switch_agent_set_device(struct ur_switch_agent *a, uint8_t port,
				const struct ur_switch_device_counters *c)
{
	a->device[port] = *c;
}

void ur_switch_agent_set_load(struct ur_switch_agent *a, uint32_t load)
{
	a->load = load;
}

void ur_switch_agent_counters(const struct ur_switch_agent *a, struct ur_switch_agent_counters *out,
			      struct ur_nma_stats *stats)
{
	*out = a->counters;
	*stats = *ur_nma_stats(a->nma);
}

uint16_t ur_switch_agent_lid(const struct ur_switch_agent *a)
{
	uint8_t lmc;

	return ur_nma_lid(a->nma, 0, &lmc);
}

uint64_t ur_switch_agent_changes(const struct ur_switch_agent *a)
{
	return a->changes;
}

/* ---- requests of the switch to itself ---- */

/* PortInfo of port 0, by a directed route without hops. False: refused; otherwise `mad` is the response. */
static bool own_port_info(struct ur_switch_agent *a, uint8_t *mad, uint8_t method, uint64_t now_ns)
{
	const struct ur_nma_from from = {.way = UR_MAD_LOCAL, .slid = UR_LID_PERMISSIVE};
	struct ur_mad head = {.base_version = UR_MAD_BASE_VERSION,
			      .mgmt_class = UR_MAD_CLASS_SMP_DR,
			      .class_version = UR_SMP_VERSION,
			      .method = method,
			      .tid = ++a->own_tid,
			      .attr_id = UR_SMP_PORT_INFO};
	struct ur_cursor c = ur_cursor(mad, UR_MAD_HDR_BYTES);
	struct ur_nma_out out;

	ur_put_mad(&c, &head);
	ur_store64(mad + UR_SMP_MKEY, a->m_key);
	ur_store16(mad + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
	ur_store16(mad + UR_SMP_DR_DLID, UR_LID_PERMISSIVE);
	ur_nma_set_client(a->nma, true, false);
	memset(&out, 0, sizeof(out));
	if (ur_nma_input(a->nma, mad, &from, now_ns) == UR_DROP_NONE)
		while (ur_nma_output(a->nma, &out, now_ns) && out.to.way != UR_MAD_LOCAL)
			a->counters.dropped++; /* the neighbours are not there yet */
	ur_nma_set_client(a->nma, false, false);
	memcpy(mad, out.mad, UR_MAD_BYTES);
	return ur_load64(mad + 8) == head.tid && !(ur_load16(mad + 4) & ~UR_SMP_DIRECTION);
}

bool ur_switch_agent_set_lid(struct ur_switch_agent *a, uint16_t lid, uint64_t now_ns)
{
	uint8_t mad[UR_MAD_BYTES] = {0};
	struct ur_port_info info;

	a->now_ns = now_ns;
	if (!own_port_info(a, mad, UR_MAD_METHOD_GET, now_ns))
		return false;
	ur_get_port_info(mad + UR_SMP_DATA, &info);
	info.lid = lid;
	info.state = UR_PORT_NOP;
	info.phys_state = UR_PHYS_NOP;
	ur_put_port_info(mad + UR_SMP_DATA, &info);
	return own_port_info(a, mad, UR_MAD_METHOD_SET, now_ns);
}
