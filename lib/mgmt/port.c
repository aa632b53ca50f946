/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"

#define LINK_LOCAL    UINT64_C(0xfe80000000000000)
#define UNICAST_LIDS  0xc000 /* LIDs from here on are groups */
#define WIDTH_NOP     0
#define WIDTH_ALL     0xff
#define SPEED_ALL     0xf
#define SPEED_EXT_ALL 0x1f
#define VL_CAP_ALL    5 /* VL 0 to 14 */
#define VL_CAP_ONE    1
#define ARB_CAP	      64
#define THRESHOLD     8	 /* LocalPhyErrors and OverrunErrors, as OpenSM sets them */
#define RESP_TIME     16 /* 4.096 us * 2^16: 268 ms */

/* The link's speed as width, and speed of a lane (IBA 14.2.5.6): the slowest that is not below. */
struct rate {
	uint64_t bps;
	uint8_t width, speed, ext;
};

static const struct rate *rate_of(uint64_t bps)
{
	static const struct rate rates[] = {
		{UINT64_C(2500000000), 1, 1, 0},   {UINT64_C(10000000000), 2, 1, 0},
		{UINT64_C(25781250000), 1, 4, 2},  {UINT64_C(40000000000), 2, 4, 0},
		{UINT64_C(53125000000), 1, 4, 4},  {UINT64_C(103125000000), 2, 4, 2},
		{UINT64_C(212500000000), 2, 4, 4}, {UINT64_C(425000000000), 2, 4, 8},
	};
	unsigned i = 0;

	while (i + 1 < sizeof(rates) / sizeof(rates[0]) && rates[i].bps < bps)
		i++;
	return &rates[i];
}

static uint8_t mtu_of(const struct ur_nma_link *link)
{
	return link->mtu >= 1 && link->mtu <= 5 ? link->mtu : 1;
}

static uint8_t state_by_link(const struct nma_port *p, uint8_t port, bool up)
{
	if (port == 0) /* the switch itself; its state is not the subnet manager's */
		return UR_PORT_ACTIVE;
	if (!up || p->disabled)
		return UR_PORT_DOWN;
	return p->state == UR_PORT_DOWN ? UR_PORT_INIT : p->state;
}

void nma_port_init(struct ur_nma *nma, uint8_t port)
{
	struct nma_port *p = &nma->port[port];
	struct ur_nma_link link = nma_link(nma, port);

	p->gid_prefix = link.gid_subnet ? link.gid_subnet : LINK_LOCAL;
	p->down_default = 2; /* polling */
	p->local_phy_errors = p->overrun_errors = THRESHOLD;
	p->width_enabled = rate_of(link.bps)->width;
	p->speed_enabled = rate_of(link.bps)->speed;
	p->speed_ext_enabled = rate_of(link.bps)->ext;
	p->neighbor_mtu = mtu_of(&link);
	p->operational_vls = nma->attr.ops->get_vl ? VL_CAP_ALL : VL_CAP_ONE;
	p->pkey[0] = 0xffff;
	p->state = UR_PORT_DOWN;
	p->state = state_by_link(p, port, link.up);
	nma->port_state_change |= p->state != UR_PORT_DOWN;
}

/* MGMT-TRAP-04 */
void nma_port_link(struct ur_nma *nma, uint8_t port, bool up)
{
	struct nma_port *p = &nma->port[port];
	uint8_t before = p->state;

	p->state = state_by_link(p, port, up);
	if (p->state == before)
		return;
	nma->port_state_change = true;
	if (nma_is_switch(nma))
		ur_nma_trap(nma, UR_TRAP_LINK_STATE, port);
}

uint32_t nma_capabilities(const struct ur_nma *nma)
{
	uint32_t mask = UR_PORT_CAP_TRAP | UR_PORT_CAP_SYSTEM_GUID | UR_PORT_CAP_EXT_SPEEDS |
			UR_PORT_CAP_VENDOR_CLASS | UR_PORT_CAP_CLIENT_REREG;

	if (nma->attr.ops->get_vl)
		mask |= UR_PORT_CAP_SL_MAP;
	if (nma->client_is_sm)
		mask |= UR_PORT_CAP_SM;
	if (!nma_is_switch(nma))
		mask |= UR_PORT_CAP_CM;
	return mask;
}

/* What only the port with the LID has: that of a CA, port 0 of a switch. */
static void fill_end(const struct ur_nma *nma, const struct nma_port *p, struct ur_port_info *info,
		     const struct nma_call *call)
{
	/* Not from a Set that has just changed it: the subnet manager reads back what it wrote. */
	bool hides =
		!call->set && nma->protect == 1 && ur_load64(call->mad + UR_SMP_MKEY) != nma->m_key;

	info->m_key = hides ? 0 : nma->m_key; /* MGMT-KEY-02 */
	info->gid_prefix = p->gid_prefix;
	info->lid = p->lid;
	info->sm_lid = p->sm_lid;
	info->sm_sl = p->sm_sl;
	info->lmc = p->lmc;
	info->capability_mask = nma_capabilities(nma);
	info->m_key_lease = nma->lease_s;
	info->m_key_protect = nma->protect;
	info->m_key_violations = nma->m_key_violations;
	info->p_key_violations = p->p_key_violations;
	info->q_key_violations = p->q_key_violations;
	info->guid_cap = 1;
	info->subnet_timeout = p->subnet_timeout;
	info->resp_time = RESP_TIME;
	info->init_type = p->init_type;
}

static void fill_link(const struct ur_nma *nma, uint8_t port, const struct nma_port *p,
		      struct ur_port_info *info)
{
	struct ur_nma_link link = nma_link(nma, port);
	const struct rate *rate = rate_of(link.bps);

	info->width_enabled = p->width_enabled;
	info->width_supported = info->width_active = rate->width;
	info->speed_enabled = p->speed_enabled;
	info->speed_supported = info->speed_active = rate->speed;
	info->speed_ext_enabled = p->speed_ext_enabled;
	info->speed_ext_supported = info->speed_ext_active = rate->ext;
	info->state = p->state;
	if (port == 0 || link.up)
		info->phys_state = UR_PHYS_LINK_UP;
	else
		info->phys_state = p->disabled ? UR_PHYS_DISABLED : UR_PHYS_POLLING;
	info->down_default = p->down_default;
	info->neighbor_mtu = p->neighbor_mtu;
	info->mtu_cap = mtu_of(&link);
	info->vl_stall_count = p->vl_stall_count;
	info->hoq_life = p->hoq_life;
	info->operational_vls = p->operational_vls;
	info->partition_inbound = p->partition_inbound;
	info->partition_outbound = p->partition_outbound;
	info->local_phy_errors = p->local_phy_errors;
	info->overrun_errors = p->overrun_errors;
	info->vl_cap = VL_CAP_ONE;
	if (nma->attr.ops->get_vl) {
		struct ur_vl_attr vl;

		nma->attr.ops->get_vl(nma->attr.ctx, port, &vl);
		info->vl_cap = VL_CAP_ALL;
		info->vl_arb_high_cap = info->vl_arb_low_cap = ARB_CAP;
		info->vl_high_limit = vl.high_limit;
	}
}

/* The state after a Set, or 0: the change is not allowed (IBA 14.2.5.6). */
static uint8_t next_state(uint8_t state, uint8_t wanted)
{
	switch (wanted) {
	case UR_PORT_NOP:
		return state;
	case UR_PORT_DOWN:
		return UR_PORT_DOWN;
	case UR_PORT_ARMED:
		return state == UR_PORT_INIT || state == UR_PORT_ARMED ? UR_PORT_ARMED : 0;
	case UR_PORT_ACTIVE:
		return state == UR_PORT_ARMED || state == UR_PORT_ACTIVE ? UR_PORT_ACTIVE : 0;
	default:
		return 0;
	}
}

/* A value that a Set may choose among those supported. */
static bool is_choice(uint8_t value, uint8_t supported, uint8_t all)
{
	return value == WIDTH_NOP || value == all || !(value & ~supported);
}

static void choose(uint8_t *enabled, uint8_t value, uint8_t supported, uint8_t all)
{
	if (value != WIDTH_NOP)
		*enabled = value == all ? supported : value;
}

/* MGMT-STATUS-02: whether every field of a Set may be what it is. Nothing was changed yet. */
static bool is_settable(const struct ur_nma *nma, uint8_t port, const struct ur_port_info *set,
			const struct ur_port_info *now)
{
	const struct ur_nma_ops *ops = nma->attr.ops;
	bool is_end = port == nma->first_port || !nma_is_switch(nma);

	if (is_end && (set->lid >= UNICAST_LIDS || set->sm_lid >= UNICAST_LIDS))
		return false;
	if (is_end && set->lmc && (nma_is_switch(nma) || set->lid & ((1u << set->lmc) - 1)))
		return false;
	if (port == 0)
		return true;
	if (!next_state(now->state, set->state))
		return false;
	if (set->phys_state != UR_PHYS_NOP && set->phys_state != UR_PHYS_POLLING &&
	    (set->phys_state != UR_PHYS_DISABLED || !ops->set_enabled))
		return false;
	if (set->down_default > UR_PHYS_POLLING)
		return false;
	return is_choice(set->width_enabled, now->width_supported, WIDTH_ALL) &&
	       is_choice(set->speed_enabled, now->speed_supported, SPEED_ALL) &&
	       is_choice(set->speed_ext_enabled, now->speed_ext_supported, SPEED_EXT_ALL) &&
	       set->neighbor_mtu <= now->mtu_cap && set->operational_vls <= now->vl_cap;
}

static void set_end(struct ur_nma *nma, uint8_t port, const struct ur_port_info *set)
{
	struct nma_port *p = &nma->port[port];
	bool moved = p->lid != set->lid || p->lmc != set->lmc;

	nma->m_key = set->m_key;
	nma->protect = set->m_key_protect;
	nma->lease_s = set->m_key_lease;
	nma->lease_end_ns = NMA_NEVER;
	/* Writing 0 clears a counter, other values do nothing. */
	nma->m_key_violations = set->m_key_violations ? nma->m_key_violations : 0;
	p->p_key_violations = set->p_key_violations ? p->p_key_violations : 0;
	p->q_key_violations = set->q_key_violations ? p->q_key_violations : 0;
	p->gid_prefix = set->gid_prefix;
	p->lid = set->lid;
	p->lmc = set->lmc;
	if (p->sm_lid != set->sm_lid) {
		p->sm_lid = set->sm_lid;
		nma_scan_start(nma, nma->now_ns);
	}
	p->sm_sl = set->sm_sl;
	p->subnet_timeout = set->subnet_timeout;
	p->init_type = set->init_type;
	if (moved && nma->attr.ops->set_lid)
		nma->attr.ops->set_lid(nma->attr.ctx, port, p->lid, p->lmc);
}

static enum ur_mad_status set_high_limit(struct ur_nma *nma, uint8_t port, uint8_t limit)
{
	const struct ur_nma_ops *ops = nma->attr.ops;
	struct ur_vl_attr vl;

	if (!ops->get_vl || !ops->set_vl)
		return UR_MAD_STATUS_OK;
	ops->get_vl(nma->attr.ctx, port, &vl);
	if (vl.high_limit == limit)
		return UR_MAD_STATUS_OK;
	vl.high_limit = limit;
	return ops->set_vl(nma->attr.ctx, port, &vl) ? UR_MAD_STATUS_VALUE : UR_MAD_STATUS_OK;
}

/* The port goes down; it comes up again unless it is disabled. */
static void set_down(struct ur_nma *nma, uint8_t port, uint8_t phys)
{
	struct nma_port *p = &nma->port[port];
	bool disable = phys == UR_PHYS_DISABLED;

	if (nma->attr.ops->set_enabled && disable != p->disabled)
		nma->attr.ops->set_enabled(nma->attr.ctx, port, !disable);
	p->disabled = disable;
	nma_port_link(nma, port, false);
	nma_port_link(nma, port, nma_link(nma, port).up);
}

static enum ur_mad_status set_link(struct ur_nma *nma, uint8_t port, const struct ur_port_info *set,
				   const struct ur_port_info *now)
{
	struct nma_port *p = &nma->port[port];
	uint8_t state = next_state(p->state, set->state);

	choose(&p->width_enabled, set->width_enabled, now->width_supported, WIDTH_ALL);
	choose(&p->speed_enabled, set->speed_enabled, now->speed_supported, SPEED_ALL);
	choose(&p->speed_ext_enabled, set->speed_ext_enabled, now->speed_ext_supported,
	       SPEED_EXT_ALL);
	if (set->neighbor_mtu)
		p->neighbor_mtu = set->neighbor_mtu;
	if (set->operational_vls)
		p->operational_vls = set->operational_vls;
	if (set->down_default)
		p->down_default = set->down_default;
	p->vl_stall_count = set->vl_stall_count;
	p->hoq_life = set->hoq_life;
	p->partition_inbound = set->partition_inbound;
	p->partition_outbound = set->partition_outbound;
	p->local_phy_errors = set->local_phy_errors;
	p->overrun_errors = set->overrun_errors;
	if (state == UR_PORT_DOWN && set->state == UR_PORT_DOWN)
		set_down(nma, port, set->phys_state);
	else if (set->phys_state == UR_PHYS_DISABLED || (p->disabled && set->phys_state))
		set_down(nma, port, set->phys_state);
	else
		p->state = state;
	return set_high_limit(nma, port, set->vl_high_limit);
}

enum ur_mad_status nma_port_info(struct ur_nma *nma, struct nma_call *call)
{
	uint8_t port = call->attr_mod & 0xff;
	struct ur_port_info info = {0}, set;
	enum ur_mad_status status = UR_MAD_STATUS_OK;
	bool is_end;

	if (!port)
		port = nma_is_switch(nma) ? 0 : nma_arrival_port(nma, call->from);
	if (port > nma->attr.limits.ports)
		return UR_MAD_STATUS_VALUE;
	is_end = port == 0 || !nma_is_switch(nma);
	if (is_end)
		fill_end(nma, &nma->port[port], &info, call);
	fill_link(nma, port, &nma->port[port], &info);
	if (call->set) {
		ur_get_port_info(call->data, &set);
		if (!is_settable(nma, port, &set, &info)) {
			status = UR_MAD_STATUS_VALUE;
		} else {
			if (is_end)
				set_end(nma, port, &set);
			if (port)
				status = set_link(nma, port, &set, &info);
			else
				status = set_high_limit(nma, port, set.vl_high_limit);
			info = (struct ur_port_info){0};
			if (is_end)
				fill_end(nma, &nma->port[port], &info, call);
			fill_link(nma, port, &nma->port[port], &info);
		}
		info.client_reregister = set.client_reregister;
	}
	info.local_port = nma_arrival_port(nma, call->from);
	memset(call->data, 0, UR_SMP_DATA_BYTES);
	ur_put_port_info(call->data, &info);
	return status;
}
