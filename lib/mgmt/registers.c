/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/registers.h"

#include "mgmt/nma_priv.h"

const struct ur_register ur_registers[UR_REGISTER_CNT] = {
#define REGISTER(scope, name, address, access, initial, max, meaning)                              \
	{#name, meaning, UR_REG_##scope, address, UR_REG_##access, initial, max},
#include "mgmt/registers.def"
#undef REGISTER
};

uint16_t ur_register_address(enum ur_register_id id, uint8_t port)
{
	const struct ur_register *r = &ur_registers[id];

	if (r->scope == UR_REG_NODE)
		return r->address;
	return (uint16_t)(UR_PORT_REGISTERS + port * UR_PORT_WINDOW + r->address);
}

enum ur_register_id ur_register_at(uint16_t address, uint8_t *port)
{
	enum ur_register_scope scope = UR_REG_NODE;

	*port = 0;
	if (address >= UR_PORT_REGISTERS) {
		unsigned window = (address - UR_PORT_REGISTERS) / UR_PORT_WINDOW;

		if (window > 254)
			return UR_REGISTER_CNT;
		*port = (uint8_t)window;
		scope = UR_REG_PORT;
		address = (uint16_t)((address - UR_PORT_REGISTERS) % UR_PORT_WINDOW);
	}
	for (unsigned i = 0; i < UR_REGISTER_CNT; i++)
		if (ur_registers[i].scope == scope && ur_registers[i].address == address)
			return (enum ur_register_id)i;
	return UR_REGISTER_CNT;
}

/* ---- values ---- */

static uint64_t gauge(const struct ur_nma *nma, enum ur_register_id id)
{
	struct ur_nma_gauges gauges = {0};

	if (nma->attr.ops->get_gauges)
		nma->attr.ops->get_gauges(nma->attr.ctx, &gauges);
	return id == UR_NODE_LOAD      ? gauges.load
	       : id == UR_NODE_MEMPOOL ? gauges.mempool
				       : gauges.ring;
}

static uint64_t read_node(const struct ur_nma *nma, enum ur_register_id id, uint64_t now_ns)
{
	switch (id) {
	case UR_NODE_NODE_GUID:
		return nma->attr.node_guid;
	case UR_NODE_NODE_TYPE:
		return nma->attr.type;
	case UR_NODE_PORTS:
		return nma->attr.limits.ports;
	case UR_NODE_UPTIME_NS:
		return now_ns - nma->born_ns;
	case UR_NODE_LOAD:
	case UR_NODE_MEMPOOL:
	case UR_NODE_RING:
		return gauge(nma, id);
	case UR_NODE_AGENT_RX:
		return nma->stats.rx;
	case UR_NODE_AGENT_TX:
		return nma->stats.tx;
	case UR_NODE_AGENT_EXECUTED:
		return nma->stats.executed;
	case UR_NODE_AGENT_REPEATED:
		return nma->stats.repeated;
	case UR_NODE_AGENT_FULL:
		return nma->stats.full;
	case UR_NODE_AGENT_BAD_KEY:
		return nma->stats.bad_key;
	case UR_NODE_AGENT_MALFORMED:
		return nma->stats.malformed;
	default:
		return nma->reg[id];
	}
}

static uint64_t read_port(const struct ur_nma *nma, enum ur_register_id id, uint8_t port)
{
	const struct nma_port *p = &nma->port[port];
	struct ur_nma_counters c = {0};

	if (nma->attr.ops->get_counters)
		nma->attr.ops->get_counters(nma->attr.ctx, port, &c);
	switch (id) {
	case UR_PORT_STATE:
		return p->state;
	case UR_PORT_BPS:
		return nma_link(nma, port).bps;
	case UR_PORT_NEIGHBOUR_GUID:
		return p->neighbour.guid;
	case UR_PORT_NEIGHBOUR_PORT:
		return p->neighbour.port | (uint64_t)p->neighbour.type << 8;
#define COUNTER(NAME, member)                                                                      \
	case UR_PORT_##NAME:                                                                       \
		return c.member;
		COUNTER(LINK_DOWNED, link_downed)
		COUNTER(RX_ERRORS, rx_errors)
		COUNTER(OVERRUNS, overruns)
		COUNTER(FLOW_CONTROL, flow_control)
		COUNTER(SYMBOL_ERRORS, symbol_errors)
		COUNTER(TX_DISCARDS, tx_discards)
		COUNTER(RETRANSMITTED, retransmitted)
		COUNTER(TIMEOUTS, timeouts)
		COUNTER(VL15_DROPPED, vl15_dropped)
		COUNTER(TX_WAIT, tx_wait)
		COUNTER(HANDSHAKES, handshakes)
		COUNTER(TX_PACKETS, tx_packets)
		COUNTER(RX_PACKETS, rx_packets)
		COUNTER(TX_BYTES, tx_bytes)
		COUNTER(RX_BYTES, rx_bytes)
#undef COUNTER
	case UR_PORT_LINK_RECOVERED:
		return p->link_recovered;
	case UR_PORT_INTEGRITY:
		return p->integrity_errors;
	case UR_PORT_EXCESSIVE_OVERRUNS:
		return p->excessive_overruns;
	case UR_PORT_BIST_CONTROL:
		return p->bist.running;
	case UR_PORT_BIST_DURATION_NS:
		return p->bist.duration_ns;
	case UR_PORT_BIST_RATE:
		return p->bist.rate;
	case UR_PORT_BIST_PATTERN:
		return p->bist.pattern;
	case UR_PORT_BIST_SENT:
		return p->bist.sent;
	case UR_PORT_BIST_RETURNED:
		return p->bist.returned;
	case UR_PORT_BIST_ERRORS:
		return p->bist.errors;
	default:
		return 0;
	}
}

static void write_port(struct ur_nma *nma, enum ur_register_id id, uint8_t port, uint64_t value,
		       uint64_t now_ns)
{
	struct nma_bist *b = &nma->port[port].bist;

	switch (id) {
	case UR_PORT_BIST_CONTROL:
		nma_bist_run(nma, port, value, now_ns);
		break;
	case UR_PORT_BIST_DURATION_NS:
		b->duration_ns = value;
		break;
	case UR_PORT_BIST_RATE:
		b->rate = (uint32_t)(value ? value : 1);
		break;
	case UR_PORT_BIST_PATTERN:
		b->pattern = (uint8_t)value;
		break;
	default:
		UR_ASSERT(!"a register of a port that is written has a case");
	}
}

static void write_node(struct ur_nma *nma, enum ur_register_id id, uint64_t value,
		       const struct ur_nma_from *from, const uint8_t *mad, uint64_t now_ns)
{
	if (ur_registers[id].access == UR_REG_W1C) {
		nma->reg[id] &= ~value;
		return;
	}
	nma->reg[id] = value;
	if (id == UR_NODE_FAULT_HERE && from)
		nma_report_to(nma, value ? from : NULL, mad);
	if (id >= UR_NODE_FAULT_ENABLE && id <= UR_NODE_SCAN_NS)
		nma_scan_start(nma, now_ns);
}

enum ur_vendor_error nma_reg_find(const struct ur_nma *nma, uint16_t address,
				  enum ur_register_id *id, uint8_t *port)
{
	uint32_t end = nma_is_switch(nma) ? UR_SWITCH_REGISTERS : UR_CA_REGISTERS;

	*id = address < end ? ur_register_at(address, port) : UR_REGISTER_CNT;
	if (*id == UR_REGISTER_CNT)
		return UR_VENDOR_ERROR_ADDRESS;
	if (ur_registers[*id].scope == UR_REG_PORT &&
	    (*port < nma->first_port || *port > nma->attr.limits.ports))
		return UR_VENDOR_ERROR_ADDRESS;
	return UR_VENDOR_ERROR_NONE;
}

enum ur_vendor_error nma_reg_check(const struct ur_nma *nma, uint16_t address, uint64_t value)
{
	enum ur_register_id id;
	uint8_t port;
	enum ur_vendor_error error = nma_reg_find(nma, address, &id, &port);

	if (error)
		return error;
	if (ur_registers[id].access == UR_REG_RO)
		return UR_VENDOR_ERROR_ACCESS;
	/* The switch's own port has no link to test. */
	if (ur_registers[id].scope == UR_REG_PORT && port == 0)
		return UR_VENDOR_ERROR_ACCESS;
	return value > ur_registers[id].max ? UR_VENDOR_ERROR_VALUE : UR_VENDOR_ERROR_NONE;
}

uint64_t nma_reg_read(const struct ur_nma *nma, uint16_t address, uint64_t now_ns)
{
	enum ur_register_id id;
	uint8_t port;

	if (nma_reg_find(nma, address, &id, &port))
		return 0;
	return ur_registers[id].scope == UR_REG_NODE ? read_node(nma, id, now_ns)
						     : read_port(nma, id, port);
}

void nma_reg_write(struct ur_nma *nma, uint16_t address, uint64_t value,
		   const struct ur_nma_from *from, const uint8_t *mad, uint64_t now_ns)
{
	enum ur_register_id id;
	uint8_t port;

	if (nma_reg_check(nma, address, value))
		return;
	nma_reg_find(nma, address, &id, &port);
	if (ur_registers[id].scope == UR_REG_NODE)
		write_node(nma, id, value, from, mad, now_ns);
	else
		write_port(nma, id, port, value, now_ns);
}

void nma_reg_init(struct ur_nma *nma)
{
	for (unsigned i = 0; i < UR_REGISTER_CNT; i++)
		if (ur_registers[i].scope == UR_REG_NODE)
			nma->reg[i] = ur_registers[i].initial;
	for (unsigned p = nma->first_port; p <= nma->attr.limits.ports; p++) {
		struct nma_bist *b = &nma->port[p].bist;

		b->duration_ns = ur_registers[UR_PORT_BIST_DURATION_NS].initial;
		b->rate = (uint32_t)ur_registers[UR_PORT_BIST_RATE].initial;
	}
}
