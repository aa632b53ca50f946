/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"
#include "vl/blocks.h"

#define NS_PER_S  UINT64_C(1000000000)
#define LFT_BLOCK 64

/* ---- key ---- */

void nma_check_lease(struct ur_nma *nma, uint64_t now_ns)
{
	if (now_ns >= nma->lease_end_ns) { /* MGMT-KEY-03 */
		nma->lease_end_ns = NMA_NEVER;
		nma->protect = 0;
	}
}

bool nma_check_key(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from,
		   uint64_t now_ns)
{
	uint64_t key = ur_load64(mad + UR_SMP_MKEY);

	if (!nma_is_smp(mad))
		return true;
	nma_check_lease(nma, now_ns);
	if (!nma->m_key || key == nma->m_key) {
		nma->lease_end_ns = NMA_NEVER;
		return true;
	}
	/* MGMT-KEY-01 */
	if (mad[3] == UR_MAD_METHOD_GET && nma->protect < 2)
		return true;
	nma->stats.bad_key++;
	if (nma->m_key_violations < UINT16_MAX)
		nma->m_key_violations++;
	if (nma->lease_s && nma->lease_end_ns == NMA_NEVER)
		nma->lease_end_ns = now_ns + nma->lease_s * NS_PER_S;
	nma_trap_bad_key(nma, mad, from);
	/* Without the key, which may be another node's: anybody can read the last fault. */
	ur_nma_fault(nma, UR_FAULT_BAD_KEY, from->port, 0, 0, now_ns);
	return false;
}

/* ---- attributes of the node ---- */

static enum ur_mad_status node_info(struct ur_nma *nma, struct nma_call *call)
{
	const struct ur_nma_attr *attr = &nma->attr;
	struct ur_node_info info = {
		.base_version = UR_MAD_BASE_VERSION,
		.class_version = UR_SMP_VERSION,
		.node_type = (uint8_t)attr->type,
		.num_ports = attr->limits.ports,
		.system_guid = attr->system_guid ? attr->system_guid : attr->node_guid,
		.node_guid = attr->node_guid,
		.port_guid = attr->port_guid,
		.partition_cap = NMA_PKEYS,
		.device_id = attr->device_id,
		.revision = attr->revision,
		.local_port = nma_arrival_port(nma, call->from),
		.vendor_id = attr->vendor_id & 0xffffff,
	};

	if (!nma_is_switch(nma))
		info.port_guid += info.local_port - 1u;
	memset(call->data, 0, UR_SMP_DATA_BYTES);
	ur_put_node_info(call->data, &info);
	return UR_MAD_STATUS_OK;
}

static enum ur_mad_status node_desc(struct ur_nma *nma, struct nma_call *call)
{
	memset(call->data, 0, UR_SMP_DATA_BYTES);
	for (unsigned i = 0; i < UR_SMP_DATA_BYTES && nma->attr.description[i]; i++)
		call->data[i] = (uint8_t)nma->attr.description[i];
	return UR_MAD_STATUS_OK;
}

static enum ur_mad_status guid_info(struct ur_nma *nma, struct nma_call *call)
{
	uint64_t guid = nma->attr.port_guid;

	if (call->attr_mod)
		return UR_MAD_STATUS_VALUE;
	if (!nma_is_switch(nma))
		guid += nma_arrival_port(nma, call->from) - 1u;
	/* The first entry is the port's own and cannot be set (IBA 14.2.5.5); there are no others. */
	memset(call->data, 0, UR_SMP_DATA_BYTES);
	ur_store64(call->data, guid);
	return UR_MAD_STATUS_OK;
}

/* Switches do not enforce partitions: only the port with the LID has a table. */
static enum ur_mad_status pkey_table(struct ur_nma *nma, struct nma_call *call)
{
	struct nma_port *p = nma_end_port(nma, nma_arrival_port(nma, call->from));

	if (call->attr_mod)
		return UR_MAD_STATUS_VALUE;
	for (unsigned i = 0; i < NMA_PKEYS; i++) {
		if (call->set)
			p->pkey[i] = ur_load16(call->data + 2 * i);
		ur_store16(call->data + 2 * i, p->pkey[i]);
	}
	return UR_MAD_STATUS_OK;
}

/* ---- virtual lanes ---- */

static enum ur_mad_status apply_vl(struct ur_nma *nma, uint8_t port, const struct ur_vl_attr *vl)
{
	const struct ur_nma_ops *ops = nma->attr.ops;

	if (!ops->set_vl)
		return UR_MAD_STATUS_ATTRIBUTE;
	if (ur_vl_attr_check(vl) || ops->set_vl(nma->attr.ctx, port, vl))
		return UR_MAD_STATUS_VALUE;
	return UR_MAD_STATUS_OK;
}

/* The modifier names the input and the output port of a switch; the table is the same for all inputs. */
static enum ur_mad_status sl2vl(struct ur_nma *nma, struct nma_call *call)
{
	uint8_t port = call->attr_mod & 0xff;
	enum ur_mad_status status = UR_MAD_STATUS_OK;
	struct ur_vl_attr vl;

	if (!nma->attr.ops->get_vl)
		return UR_MAD_STATUS_ATTRIBUTE;
	if (!nma_is_switch(nma))
		port = nma_arrival_port(nma, call->from);
	if (port > nma->attr.limits.ports || (call->attr_mod >> 8 & 0xff) > nma->attr.limits.ports)
		return UR_MAD_STATUS_VALUE;
	nma->attr.ops->get_vl(nma->attr.ctx, port, &vl);
	if (call->set) {
		ur_vl_get_sl2vl(call->data, &vl);
		status = apply_vl(nma, port, &vl);
		nma->attr.ops->get_vl(nma->attr.ctx, port, &vl);
	}
	ur_vl_put_sl2vl(call->data, &vl);
	return status;
}

/*
 * The modifier's upper half names a half of a table: 1 and 2 of the low, 3 and 4 of the high one. Its lower
 * half is the port of a switch.
 */
static enum ur_mad_status vl_arb(struct ur_nma *nma, struct nma_call *call)
{
	unsigned block = call->attr_mod >> 16;
	uint8_t port = call->attr_mod & 0xff;
	enum ur_mad_status status = UR_MAD_STATUS_OK;
	struct ur_vl_attr vl;

	if (!nma->attr.ops->get_vl)
		return UR_MAD_STATUS_ATTRIBUTE;
	if (!nma_is_switch(nma) && !port)
		port = nma_arrival_port(nma, call->from);
	if (block < 1 || block > UR_VL_BLOCKS || port > nma->attr.limits.ports)
		return UR_MAD_STATUS_VALUE;
	nma->attr.ops->get_vl(nma->attr.ctx, port, &vl);
	if (call->set) {
		ur_vl_get_block(call->data, &vl, block);
		status = apply_vl(nma, port, &vl);
		nma->attr.ops->get_vl(nma->attr.ctx, port, &vl);
	}
	ur_vl_put_block(call->data, &vl, block);
	return status;
}

/* ---- switches ---- */

static enum ur_mad_status switch_info(struct ur_nma *nma, struct nma_call *call)
{
	struct ur_switch_info info;
	enum ur_mad_status status = UR_MAD_STATUS_OK;

	if (!nma_is_switch(nma))
		return UR_MAD_STATUS_ATTRIBUTE;
	if (call->set) {
		ur_get_switch_info(call->data, &info);
		if (info.linear_fdb_top && info.linear_fdb_top >= nma->attr.lft_lids) {
			status = UR_MAD_STATUS_VALUE;
		} else {
			nma->lft_top = info.linear_fdb_top;
			nma->default_port = info.default_port;
			nma->default_mcast_primary = info.default_mcast_primary;
			nma->default_mcast_not_primary = info.default_mcast_not_primary;
			nma->life_time = info.life_time;
			nma->mcast_top = info.mcast_fdb_top;
			if (info.port_state_change) /* 1 clears it */
				nma->port_state_change = false;
		}
	}
	info = (struct ur_switch_info){
		.linear_fdb_cap = nma->attr.lft_lids,
		.linear_fdb_top = nma->lft_top,
		.default_port = nma->default_port,
		.default_mcast_primary = nma->default_mcast_primary,
		.default_mcast_not_primary = nma->default_mcast_not_primary,
		.life_time = nma->life_time,
		.port_state_change = nma->port_state_change,
		.mcast_fdb_top = nma->mcast_top,
	};
	memset(call->data, 0, UR_SMP_DATA_BYTES);
	ur_put_switch_info(call->data, &info);
	return status;
}

static enum ur_mad_status lft(struct ur_nma *nma, struct nma_call *call)
{
	const struct ur_nma_ops *ops = nma->attr.ops;
	uint16_t block = (uint16_t)call->attr_mod;
	enum ur_mad_status status = UR_MAD_STATUS_OK;

	if (!nma_is_switch(nma) || !ops->get_lft)
		return UR_MAD_STATUS_ATTRIBUTE;
	if (call->attr_mod >= nma->attr.lft_lids / LFT_BLOCK)
		return UR_MAD_STATUS_VALUE;
	if (call->set) {
		for (unsigned i = 0; i < LFT_BLOCK; i++)
			if (call->data[i] > nma->attr.limits.ports && call->data[i] != 0xff)
				return UR_MAD_STATUS_VALUE;
		if (!ops->set_lft)
			return UR_MAD_STATUS_ATTRIBUTE;
		if (ops->set_lft(nma->attr.ctx, block, call->data))
			status = UR_MAD_STATUS_VALUE;
	}
	ops->get_lft(nma->attr.ctx, block, call->data);
	return status;
}

static enum ur_mad_status route(struct ur_nma *nma, struct nma_call *call)
{
	struct ur_route r;

	if (!nma->attr.ops->get_route)
		return UR_MAD_STATUS_ATTRIBUTE;
	ur_get_route(call->data, &r);
	r = (struct ur_route){.addr_high = r.addr_high, .addr_low = r.addr_low, .sport = r.sport};
	nma->attr.ops->get_route(nma->attr.ctx, &r);
	memset(call->data, 0, UR_SMP_DATA_BYTES);
	ur_put_route(call->data, &r);
	return UR_MAD_STATUS_OK;
}

enum ur_mad_status nma_smp(struct ur_nma *nma, struct nma_call *call)
{
	static const struct {
		uint16_t id;
		bool set;
		enum ur_mad_status (*run)(struct ur_nma *nma, struct nma_call *call);
	} attrs[] = {
		{UR_SMP_NODE_INFO, false, node_info},
		{UR_SMP_NODE_DESC, false, node_desc},
		{UR_SMP_PORT_INFO, true, nma_port_info},
		{UR_SMP_SWITCH_INFO, true, switch_info},
		{UR_SMP_GUID_INFO, true, guid_info},
		{UR_SMP_PKEY_TABLE, true, pkey_table},
		{UR_SMP_SL2VL, true, sl2vl},
		{UR_SMP_VL_ARB, true, vl_arb},
		{UR_SMP_LFT, true, lft},
		{UR_SMP_REGISTERS, true, nma_registers},
		{UR_SMP_ROUTE, false, route},
	};

	for (unsigned i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
		if (attrs[i].id == call->attr_id && (attrs[i].set || !call->set))
			return attrs[i].run(nma, call);
	return UR_MAD_STATUS_ATTRIBUTE;
}
