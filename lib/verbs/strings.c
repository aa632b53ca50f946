/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroce/uroce.h"
#include "verbs/names.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return uroce_wc_status_str(status);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	return uroce_event_type_str(event);
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	static const char *const name[] = {
		[IBV_NODE_CA] = "InfiniBand channel adapter",
		[IBV_NODE_SWITCH] = "InfiniBand switch",
		[IBV_NODE_ROUTER] = "InfiniBand router",
		[IBV_NODE_RNIC] = "iWARP NIC",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return type > 0 && (size_t)type < COUNT(name) ? name[type] : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	/* ibv_devinfo(1) prints them, and scripts look for these words. */
	static const char *const name[] = {
		[IBV_PORT_NOP] = "no state change (NOP)",
		[IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "init",
		[IBV_PORT_ARMED] = "armed",
		[IBV_PORT_ACTIVE] = "active",
		[IBV_PORT_ACTIVE_DEFER] = "active defer",
	};

	return (size_t)state < COUNT(name) ? name[state] : "unknown";
}

const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/* ---- rates ---- */

/* The static rates of IBTA chapter 9.11: Mb/s of the link, and multiples of 2.5 Gb/s in its nominal rate. */
static const struct {
	enum ibv_rate rate;
	int mbps, mult;
} rates[] = {
	{IBV_RATE_2_5_GBPS, 2500, 1},	    {IBV_RATE_5_GBPS, 5000, 2},
	{IBV_RATE_10_GBPS, 10000, 4},	    {IBV_RATE_14_GBPS, 14062, 6},
	{IBV_RATE_20_GBPS, 20000, 8},	    {IBV_RATE_25_GBPS, 25781, 10},
	{IBV_RATE_28_GBPS, 28125, 11},	    {IBV_RATE_30_GBPS, 30000, 12},
	{IBV_RATE_40_GBPS, 40000, 16},	    {IBV_RATE_50_GBPS, 53125, 20},
	{IBV_RATE_56_GBPS, 56250, 22},	    {IBV_RATE_60_GBPS, 60000, 24},
	{IBV_RATE_80_GBPS, 80000, 32},	    {IBV_RATE_100_GBPS, 103125, 40},
	{IBV_RATE_112_GBPS, 112500, 45},    {IBV_RATE_120_GBPS, 120000, 48},
	{IBV_RATE_168_GBPS, 168750, 67},    {IBV_RATE_200_GBPS, 206250, 80},
	{IBV_RATE_300_GBPS, 309375, 120},   {IBV_RATE_400_GBPS, 425000, 160},
	{IBV_RATE_600_GBPS, 637500, 240},   {IBV_RATE_800_GBPS, 850000, 320},
	{IBV_RATE_1200_GBPS, 1275000, 480},
};

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

int ibv_rate_to_mult(enum ibv_rate rate)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (rates[i].rate == rate)
			return rates[i].mult;
	return -1;
}

enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (rates[i].mult == mult)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "IBV_WR_RDMA_WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "IBV_WR_RDMA_WRITE_WITH_IMM",
		[IBV_WR_SEND] = "IBV_WR_SEND",
		[IBV_WR_SEND_WITH_IMM] = "IBV_WR_SEND_WITH_IMM",
		[IBV_WR_RDMA_READ] = "IBV_WR_RDMA_READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "IBV_WR_ATOMIC_CMP_AND_SWP",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "IBV_WR_ATOMIC_FETCH_AND_ADD",
		[IBV_WR_LOCAL_INV] = "IBV_WR_LOCAL_INV",
		[IBV_WR_BIND_MW] = "IBV_WR_BIND_MW",
		[IBV_WR_SEND_WITH_INV] = "IBV_WR_SEND_WITH_INV",
	};

	return (unsigned)opcode < sizeof(names) / sizeof(names[0]) ? names[opcode] : "unknown";
}

#define ALSO(node)                                                                                 \
	const char *ibv_wr_opcode_str_##node(enum ibv_wr_opcode opcode);                           \
	const char *ibv_wr_opcode_str_##node(enum ibv_wr_opcode opcode)                            \
	{                                                                                          \
		return ibv_wr_opcode_str(opcode);                                                  \
	}                                                                                          \
	UR_ALSO(ibv_wr_opcode_str, node)

ALSO(57);
ALSO(59);
ALSO(64);
