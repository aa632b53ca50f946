/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"

/*
 * PerfMgt (IBA 16.1). The node's counters are never reset. A Set remembers what is to be subtracted from now on, apart
 * for PortCounters and PortCountersExtended (MGMT-PERF-02).
 */
#define ALL_PORTS  0xff
#define RESP_TIME  16
#define DATA_SHIFT 2 /* PortXmitData and PortRcvData count four bytes */

static void read_pc(const struct ur_nma *nma, uint8_t port, uint64_t v[NMA_PC])
{
	const struct nma_port *p = &nma->port[port];
	struct ur_nma_counters c = {0};

	nma->attr.ops->get_counters(nma->attr.ctx, port, &c);
	v[0] = c.symbol_errors;
	v[1] = p->link_recovered;
	v[2] = c.link_downed;
	v[3] = c.rx_errors + c.symbol_errors;
	v[4] = 0; /* PortRcvRemotePhysicalErrors: Ethernet has no such mark */
	v[5] = c.rx_relay_errors;
	v[6] = c.tx_discards;
	v[7] = 0; /* PortXmitConstraintErrors: nothing is refused on the way out */
	v[8] = c.rx_constraint;
	v[9] = p->integrity_errors;
	v[10] = p->excessive_overruns;
	v[11] = c.vl15_dropped;
	v[12] = c.tx_bytes >> DATA_SHIFT;
	v[13] = c.rx_bytes >> DATA_SHIFT;
	v[14] = c.tx_packets;
	v[15] = c.rx_packets;
	v[16] = c.tx_wait;
}

static void read_ext(const struct ur_nma *nma, uint8_t port, uint64_t v[NMA_PC_EXT])
{
	struct ur_nma_counters c = {0};

	nma->attr.ops->get_counters(nma->attr.ctx, port, &c);
	v[0] = c.tx_bytes >> DATA_SHIFT;
	v[1] = c.rx_bytes >> DATA_SHIFT;
	v[2] = c.tx_packets;
	v[3] = c.rx_packets;
	v[4] = c.tx_packets - c.tx_multicast;
	v[5] = c.rx_packets - c.rx_multicast;
	v[6] = c.tx_multicast;
	v[7] = c.rx_multicast;
}

static uint64_t limited(uint64_t v, unsigned width)
{
	uint64_t max = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;

	return v < max ? v : max;
}

/* Sets the selected counters to the values in `a`. */
static void set_pc(struct ur_nma *nma, uint8_t port, const struct ur_port_counters *a)
{
	uint32_t select = a->counter_select | (uint32_t)a->counter_select2 << 16;
	uint64_t *base = nma->port[port].pc_base, now[NMA_PC];

	read_pc(nma, port, now);
#define SET(type, name, at, width, bit)                                                            \
	if (select >> (bit)&1)                                                                     \
		base[bit] = now[bit] - a->name;
	UR_PORT_COUNTERS_LIST(SET)
#undef SET
}

static void set_ext(struct ur_nma *nma, uint8_t port, const struct ur_port_counters_ext *a)
{
	uint64_t *base = nma->port[port].pc_ext_base, now[NMA_PC_EXT];

	read_ext(nma, port, now);
#define SET(type, name, at, width, bit)                                                            \
	if (a->counter_select >> (bit)&1)                                                          \
		base[bit] = now[bit] - a->name;
	UR_PORT_COUNTERS_EXT_LIST(SET)
#undef SET
}

/* The ports that PortSelect names: [*from, *to]; false: there is none. */
static bool ports_of(const struct ur_nma *nma, uint8_t select, uint8_t *from, uint8_t *to)
{
	*from = *to = select;
	if (select == ALL_PORTS) {
		*from = 1;
		*to = nma->attr.limits.ports;
	}
	return *from >= nma->first_port && *to <= nma->attr.limits.ports;
}

static enum ur_mad_status port_counters(struct ur_nma *nma, struct nma_call *call)
{
	struct ur_port_counters a;
	uint64_t sum[NMA_PC] = {0};
	uint8_t from, to;

	ur_get_port_counters(call->data, &a);
	if (!ports_of(nma, a.port_select, &from, &to))
		return UR_MAD_STATUS_VALUE;
	for (unsigned p = from; p <= to; p++) {
		uint64_t v[NMA_PC];

		if (call->set)
			set_pc(nma, (uint8_t)p, &a);
		read_pc(nma, (uint8_t)p, v);
		for (unsigned i = 0; i < NMA_PC; i++)
			sum[i] += v[i] - nma->port[p].pc_base[i];
	}
#define FILL(type, name, at, width, bit) a.name = (type)limited(sum[bit], width);
	UR_PORT_COUNTERS_LIST(FILL)
#undef FILL
	ur_put_port_counters(call->data, &a);
	return UR_MAD_STATUS_OK;
}

static enum ur_mad_status port_counters_ext(struct ur_nma *nma, struct nma_call *call)
{
	struct ur_port_counters_ext a;
	uint64_t sum[NMA_PC_EXT] = {0};
	uint8_t from, to;

	ur_get_port_counters_ext(call->data, &a);
	if (!ports_of(nma, a.port_select, &from, &to))
		return UR_MAD_STATUS_VALUE;
	for (unsigned p = from; p <= to; p++) {
		uint64_t v[NMA_PC_EXT];

		if (call->set)
			set_ext(nma, (uint8_t)p, &a);
		read_ext(nma, (uint8_t)p, v);
		for (unsigned i = 0; i < NMA_PC_EXT; i++)
			sum[i] += v[i] - nma->port[p].pc_ext_base[i];
	}
#define FILL(type, name, at, width, bit) a.name = sum[bit];
	UR_PORT_COUNTERS_EXT_LIST(FILL)
#undef FILL
	ur_put_port_counters_ext(call->data, &a);
	return UR_MAD_STATUS_OK;
}

/* MGMT-PERF-01 */
enum ur_mad_status nma_perf(struct ur_nma *nma, struct nma_call *call)
{
	struct ur_class_port_info info = {
		.base_version = UR_MAD_BASE_VERSION,
		.class_version = UR_PERF_VERSION,
		.capability_mask =
			UR_PERF_CAP_ALL_PORTS | UR_PERF_CAP_EXT_WIDTH | UR_PERF_CAP_XMIT_WAIT,
		.resp_time = RESP_TIME,
	};

	if (call->attr_id == UR_PERF_CLASS_PORT_INFO && !call->set) {
		memset(call->data, 0, UR_GMP_DATA_BYTES);
		ur_put_class_port_info(call->data, &info);
		return UR_MAD_STATUS_OK;
	}
	if (!nma->attr.ops->get_counters)
		return UR_MAD_STATUS_ATTRIBUTE;
	if (call->attr_id == UR_PERF_PORT_COUNTERS)
		return port_counters(nma, call);
	if (call->attr_id == UR_PERF_PORT_COUNTERS_EXT)
		return port_counters_ext(nma, call);
	return UR_MAD_STATUS_ATTRIBUTE;
}
