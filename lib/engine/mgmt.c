/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/mgmt_priv.h"

#include <errno.h>

#include "transport/build.h"
#include "wire/bits.h"
#include "wire/opcode.h"

#define PORT 1 /* an endpoint has one */

void ur_engine_mgmt_limits_default(struct ur_nma_limits *limits)
{
	*limits = (struct ur_nma_limits){
		.ports = PORT, .requests = 16, .passing = 16, .remembered = 16, .notices = 16};
}

/* ---- the node, as its agent sees it ---- */

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	const struct engine_mgmt *m = ctx;

	(void)port;
	*link = (struct ur_nma_link){.up = m->link_up, .mtu = m->mtu, .bps = m->attr.link_bps};
}

static uint64_t handshakes_of(const struct ur_engine *e)
{
	return e->cm ? ur_cm_counters(e->cm)->established : 0;
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *c)
{
	const struct engine_mgmt *m = ctx;
	const struct ur_core *core = &m->engine->core;
	const struct ur_counters *cnt = &core->cnt;

	(void)port;
	*c = (struct ur_nma_counters){
		.tx_bytes = cnt->tx_bytes,
		.rx_bytes = cnt->rx_bytes,
		.tx_packets = cnt->tx_packets,
		.rx_packets = cnt->rx_packets,
		.rx_errors = cnt->drops[UR_DROP_ICRC],
		.rx_constraint = cnt->drops[UR_DROP_PKEY],
		.vl15_dropped = ur_nma_stats(m->nma)->full,
		.retransmitted = cnt->retransmitted_packets,
		.timeouts = cnt->local_ack_timeout_err,
		.link_downed = m->link_downs,
		.handshakes = handshakes_of(m->engine),
	};
	if (m->attr.ops && m->attr.ops->add_counters)
		m->attr.ops->add_counters(m->attr.ctx, c);
}

static void get_gauges(void *ctx, struct ur_nma_gauges *gauges)
{
	const struct engine_mgmt *m = ctx;

	m->attr.ops->get_gauges(m->attr.ctx, gauges);
}

static void get_vl(void *ctx, uint8_t port, struct ur_vl_attr *vl)
{
	const struct engine_mgmt *m = ctx;

	(void)port;
	if (!m->attr.ops || !m->attr.ops->pending_vl || !m->attr.ops->pending_vl(m->attr.ctx, vl))
		*vl = m->qos.vl;
}

static int set_vl(void *ctx, uint8_t port, const struct ur_vl_attr *vl)
{
	struct engine_mgmt *m = ctx;
	struct ur_engine_qos qos = m->qos;

	(void)port;
	if (m->attr.ops && m->attr.ops->set_vl) {
		m->attr.ops->set_vl(m->attr.ctx, vl);
		return 0;
	}
	qos.vl = *vl;
	ur_engine_set_qos(m->engine, &qos);
	return 0;
}

static uint8_t eeprom_load(void *ctx, uint16_t address)
{
	const struct engine_mgmt *m = ctx;

	return m->attr.ops->eeprom_load(m->attr.ctx, address);
}

static void eeprom_store(void *ctx, uint16_t address, uint8_t value)
{
	const struct engine_mgmt *m = ctx;

	m->attr.ops->eeprom_store(m->attr.ctx, address, value);
}

static void set_lid(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc)
{
	const struct engine_mgmt *m = ctx;

	m->attr.ops->set_lid(m->attr.ctx, port, lid, lmc);
}

static struct ur_nma_ops ops_of(const struct ur_engine_mgmt_ops *edge, uint16_t workers)
{
	static const struct ur_engine_mgmt_ops none;

	edge = edge ? edge : &none;
	return (struct ur_nma_ops){
		.get_link = get_link,
		.get_counters = get_counters,
		.get_gauges = edge->get_gauges ? get_gauges : NULL,
		.get_vl = get_vl,
		.set_vl = edge->set_vl || workers == 1 ? set_vl : NULL,
		.eeprom_load = edge->eeprom_load ? eeprom_load : NULL,
		.eeprom_store = edge->eeprom_store ? eeprom_store : NULL,
		.set_lid = edge->set_lid ? set_lid : NULL,
	};
}

/* ---- start ---- */

size_t ur_mgmt_size(const struct ur_limits *l)
{
	if (l->worker || !l->mgmt.ports)
		return 0;
	return ur_align64(sizeof(struct engine_mgmt)) + ur_align64(ur_nma_size(&l->mgmt));
}

/* The agent may have something to send, or another deadline: looked at once a round (MGMT-COST-01). */
static void update(struct ur_engine *e)
{
	e->mgmt_busy = ur_nma_wants_output(e->mgmt->nma);
	e->mgmt_deadline_ns = ur_nma_next_deadline(e->mgmt->nma);
}

void ur_mgmt_init(struct ur_engine *e, void *memory, const struct ur_engine_attr *attr,
		  uint64_t now_ns)
{
	struct engine_mgmt *m = memory;
	struct ur_nma_attr nma = {
		.limits = attr->limits.mgmt,
		.config = attr->mgmt->config,
		.type = UR_NODE_CA,
		.node_guid = attr->mgmt->node_guid,
		.port_guid = ur_mac_guid(attr->mgmt->mac),
		.vendor_id = UR_VENDOR_OUI,
		.seed = attr->mgmt->seed,
		.ops = &m->ops,
		.ctx = m,
	};

	*m = (struct engine_mgmt){.engine = e,
				  .attr = *attr->mgmt,
				  .ops = ops_of(attr->mgmt->ops, attr->limits.workers),
				  .link_up = true,
				  .mtu = (uint8_t)(attr->mtu_shift - 7)};
	ur_engine_qos_default(&m->qos);
	m->qos.vl.mtu_shift = attr->mtu_shift;
	if (attr->qos)
		m->qos = *attr->qos;
	ur_mad_hop_path(&m->hop_path, m->attr.mac);
	memcpy(nma.description, m->attr.description, sizeof(nma.description));
	/* Known before: with faults that the E2PROM enables, the agent reads its counters while it begins. */
	m->nma = (struct ur_nma *)(void *)((uint8_t *)memory + ur_align64(sizeof(*m)));
	ur_nma_init(m->nma, &nma, now_ns);
	e->mgmt = m;
	update(e);
}

/* ---- packets ---- */

bool ur_mgmt_is_hop(const struct ur_packet *p)
{
	return p->bth.dqpn.v <= UR_GSI_QPN && p->ip.v6 && p->ip.ttl == UR_MAD_HOP_LIMIT &&
	       memcmp(p->dmac, ur_mad_hop_mac, 6) == 0 && !(p->smac[0] & 1);
}

/* MGMT-WAY-01 */
static bool is_own_lid(const struct engine_mgmt *m, uint16_t dlid)
{
	uint8_t lmc;
	uint16_t lid = ur_nma_lid(m->nma, PORT, &lmc);

	return lid && lid >> lmc == dlid >> lmc;
}

enum ur_drop ur_mgmt_packet(struct ur_engine *e, const struct ur_packet *p,
			    const struct ur_path *path, uint64_t now_ns)
{
	struct engine_mgmt *m = e->mgmt;
	struct ur_nma_from from = {
		.port = PORT, .qpn = (uint8_t)p->bth.dqpn.v, .sqpn = p->deth.sqpn.v, .path = *path};
	enum ur_drop drop;

	from.way = ur_mad_way_of(p, &from.slid, &from.dlid);
	if (from.way == UR_MAD_LID && !is_own_lid(m, from.dlid))
		return UR_DROP_DST_ADDR;
	/* A destination address that is not ours (round.c looks at the MAC address of these only). */
	if (from.way == UR_MAD_IP && ur_mad_is_mgmt_mac(p->dmac))
		return UR_DROP_DST_ADDR;
	/* SMPs stay on their link, or go from LID to LID: never from anywhere to an address. */
	if (from.way == UR_MAD_IP && from.qpn == UR_SMI_QPN)
		return UR_DROP_QPN;
	drop = ur_nma_input(m->nma, p->payload, &from, now_ns);
	update(e);
	return drop;
}

static void make_packet(struct engine_mgmt *m, struct ur_nma_out *out, struct ur_tx *tx)
{
	struct ur_path lid_path;
	const struct ur_path *path = &m->hop_path;
	struct ur_build_bth bth = {
		.opcode = UR_UD_SEND_ONLY, .pkey = GSI_PKEY, .dqpn = ur_qpn(out->to.dqpn)};
	uint8_t *p;

	if (out->to.way == UR_MAD_LID) {
		ur_mad_lid_path(&lid_path, out->to.slid, out->to.dlid);
		path = &lid_path;
	} else if (out->to.way == UR_MAD_IP) {
		path = &out->to.path;
	}
	tx->frag[0] = (struct ur_frag){out->mad, UR_MAD_BYTES};
	tx->frag_cnt = 1;
	tx->payload_len = UR_MAD_BYTES;
	p = ur_build_begin(tx, path, &bth, UR_DETH_BYTES);
	ur_build32(ur_build32(p, bth.dqpn.v == UR_SMI_QPN ? 0 : GSI_QKEY), out->to.sqpn);
}

unsigned ur_mgmt_output(struct ur_engine *e, struct ur_tx *tx, unsigned cap, uint64_t now_ns)
{
	struct engine_mgmt *m = e->mgmt;
	unsigned n = 0;

	cap = cap < MGMT_BATCH ? cap : MGMT_BATCH;
	while (n < cap && ur_nma_output(m->nma, &m->out[n], now_ns)) {
		if (m->out[n].to.way == UR_MAD_LOCAL) {
			if (m->attr.ops && m->attr.ops->to_client)
				m->attr.ops->to_client(m->attr.ctx, &m->out[n]);
			continue;
		}
		make_packet(m, &m->out[n], &tx[n]);
		n++;
	}
	update(e);
	return n;
}

void ur_mgmt_expire(struct ur_engine *e, uint64_t now_ns)
{
	ur_nma_expire(e->mgmt->nma, now_ns);
	update(e);
}

/* ---- the owner of the port ---- */

const struct ur_nma_stats *ur_engine_mgmt_stats(const struct ur_engine *e)
{
	return e->mgmt ? ur_nma_stats(e->mgmt->nma) : NULL;
}

void ur_engine_mgmt_link(struct ur_engine *e, bool up, uint64_t bps, uint64_t now_ns)
{
	if (!e->mgmt)
		return;
	e->mgmt->link_downs += e->mgmt->link_up && !up;
	e->mgmt->link_up = up;
	e->mgmt->attr.link_bps = bps;
	ur_nma_link_event(e->mgmt->nma, PORT, now_ns);
	update(e);
}

void ur_engine_mgmt_client(struct ur_engine *e, bool present, bool is_sm)
{
	if (!e->mgmt)
		return;
	UR_ASSERT(!present || (e->mgmt->attr.ops && e->mgmt->attr.ops->to_client));
	ur_nma_set_client(e->mgmt->nma, present, is_sm);
	update(e);
}

enum ur_drop ur_engine_mgmt_input(struct ur_engine *e, const uint8_t mad[UR_MAD_BYTES],
				  const struct ur_nma_from *from, uint64_t now_ns)
{
	enum ur_drop drop;

	if (!e->mgmt)
		return UR_DROP_QPN;
	UR_ASSERT(from->way == UR_MAD_LOCAL);
	drop = ur_nma_input(e->mgmt->nma, mad, from, now_ns);
	update(e);
	return drop;
}
