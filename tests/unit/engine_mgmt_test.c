/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "engine/mgmt.h"
#include "wire/mad_path.h"
#include "wire/path.h"
#include "wire/perf.h"
#include "wire/vendor.h"

/* The agent in an engine: frames of every way in and out (MGMT-WAY-01), and what it costs (MGMT-COST-01). */
static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x0b}, peer_mac[6] = {2, 0, 0, 0, 0, 0x0a};

struct node {
	struct ur_engine *e;
	void *memory, *mem_memory;
	uint16_t lid; /* set_lid */
	struct ur_nma_out client[8];
	unsigned client_cnt;
};

static void set_lid(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc)
{
	(void)port, (void)lmc;
	((struct node *)ctx)->lid = lid;
}

static void to_client(void *ctx, const struct ur_nma_out *out)
{
	struct node *n = ctx;

	cr_assert(n->client_cnt < 8);
	n->client[n->client_cnt++] = *out;
}

/* An E2PROM that enables all faults. */
static uint8_t load_defaults(void *ctx, uint16_t address)
{
	static const uint8_t mask[8] = {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
	uint16_t reg = ur_register_address(UR_NODE_FAULT_ENABLE, 0);

	(void)ctx;
	if (address < 4)
		return (uint8_t) "URN1"[address];
	if (address < 6)
		return (uint8_t)(address == 4 ? reg >> 8 : reg);
	return address < 14 ? mask[address - 6] : 0xff;
}

static void node_open(struct node *n, bool agent)
{
	static const struct ur_engine_mgmt_ops ops = {
		.set_lid = set_lid, .to_client = to_client, .eeprom_load = load_defaults};
	struct ur_engine_attr attr;
	struct ur_engine_mgmt_attr mgmt = {.node_guid = 0x77,
					   .link_bps = UINT64_C(25000000000),
					   .description = "a node",
					   .ops = &ops,
					   .ctx = n};

	*n = (struct node){0};
	memcpy(mgmt.mac, mac, 6);
	ur_engine_attr_default(&attr);
	n->mem_memory = aligned_alloc(64, (ur_mem_size(4) + 63) / 64 * 64);
	attr.mem = ur_mem_init(n->mem_memory, 4);
	if (agent) {
		ur_engine_mgmt_limits_default(&attr.limits.mgmt);
		attr.mgmt = &mgmt;
	}
	cr_assert_null(ur_engine_attr_check(&attr));
	n->memory = aligned_alloc(64, (ur_engine_size(&attr.limits) + 63) / 64 * 64);
	n->e = ur_engine_init(n->memory, &attr, 1);
}

static void node_close(struct node *n)
{
	free(n->memory);
	free(n->mem_memory);
}

static void get(uint8_t *mad, uint8_t mgmt_class, uint16_t attr_id)
{
	static uint64_t tid;

	memset(mad, 0, UR_MAD_BYTES);
	mad[0] = 1;
	mad[1] = mgmt_class;
	mad[2] = 1;
	mad[3] = UR_MAD_METHOD_GET;
	ur_store64(mad + 8, ++tid);
	ur_store16(mad + 16, attr_id);
	if (mgmt_class == UR_MAD_CLASS_SMP_DR) {
		mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = 1;
		memset(mad + UR_SMP_DR_SLID, 0xff, 4);
	}
}

static enum ur_drop input(struct node *n, const struct ur_path *path, unsigned qpn,
			  const uint8_t *mad)
{
	uint8_t frame[512];
	unsigned len = ur_mad_frame(frame, path, ur_qpn(qpn), ur_qpn(qpn), ur_psn(0), mad);

	return ur_engine_input_frame(n->e, frame, len, 2);
}

/* The only frame that the engine sends, decoded; false: it sends none. */
static bool output(struct node *n, struct ur_packet *p)
{
	static uint8_t hdr[UR_HDR_MAX], frame[1024];
	struct ur_tx tx[2] = {{.hdr = hdr}, {.hdr = hdr}};
	bool wants = ur_engine_wants_output(n->e);
	unsigned cnt = ur_engine_output(n->e, tx, 2, 3);
	uint32_t len;

	if (!cnt)
		return false;
	cr_assert(wants && cnt == 1);
	len = ur_tx_write(&tx[0], frame);
	cr_assert(ur_packet_decode(frame, len, p) == UR_DROP_NONE && ur_icrc_ok(frame, p));
	cr_assert(!ur_engine_wants_output(n->e));
	return true;
}

Test(engine_mgmt, a_neighbour_gets_node_info_by_hop)
{
	struct node n;
	struct ur_path path;
	struct ur_packet p;
	struct ur_node_info info;
	uint8_t mad[UR_MAD_BYTES];
	uint16_t slid, dlid;

	node_open(&n, true);
	output(&n, &p);
	ur_mad_hop_path(&path, peer_mac);
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_NODE_INFO);
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_NONE);
	cr_assert(output(&n, &p));
	cr_assert(ur_mad_way_of(&p, &slid, &dlid) == UR_MAD_HOP && p.bth.dqpn.v == 0);
	cr_assert_arr_eq(p.smac, mac, 6);
	ur_get_node_info(p.payload + UR_SMP_DATA, &info);
	cr_assert(info.node_guid == 0x77 && info.port_guid == ur_mac_guid(mac));
	cr_assert(info.node_type == UR_NODE_CA && info.num_ports == 1 && info.local_port == 1);
	/* One link, no further: another hop limit is not from a neighbour. */
	path.hdr[path.l3_off + 7] = 254;
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_NODE_INFO);
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_GROUP);
	/* Only QP0 and QP1 take packets to the group. */
	ur_mad_hop_path(&path, peer_mac);
	cr_assert(input(&n, &path, 2, mad) == UR_DROP_GROUP);
	node_close(&n);
}

Test(engine_mgmt, lids_are_served_once_they_are_assigned)
{
	struct node n;
	struct ur_path hop, lid;
	struct ur_packet p;
	struct ur_port_info info = {.lid = 9, .sm_lid = 3};
	struct ur_port_counters counters;
	uint8_t mad[UR_MAD_BYTES];
	uint16_t slid, dlid;

	node_open(&n, true);
	output(&n, &p);
	ur_mad_lid_path(&lid, 3, 9);
	get(mad, UR_MAD_CLASS_SMP_LID, UR_SMP_NODE_INFO);
	cr_assert(input(&n, &lid, 0, mad) == UR_DROP_DST_ADDR);
	ur_mad_hop_path(&hop, peer_mac);
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_PORT_INFO);
	mad[3] = UR_MAD_METHOD_SET;
	ur_put_port_info(mad + UR_SMP_DATA, &info);
	cr_assert(input(&n, &hop, 0, mad) == UR_DROP_NONE);
	cr_assert(output(&n, &p) && n.lid == 9);
	ur_get_port_info(p.payload + UR_SMP_DATA, &info);
	cr_assert(info.lid == 9 && info.mtu_cap == 5 && info.speed_ext_active == 2);
	get(mad, UR_MAD_CLASS_PERF, UR_PERF_PORT_COUNTERS);
	mad[UR_GMP_DATA + 1] = 1;
	cr_assert(input(&n, &lid, 1, mad) == UR_DROP_NONE);
	cr_assert(output(&n, &p));
	cr_assert(ur_mad_way_of(&p, &slid, &dlid) == UR_MAD_LID && slid == 9 && dlid == 3);
	cr_assert(p.deth.qkey == UR_GSI_QKEY && p.bth.dqpn.v == 1 && p.deth.sqpn.v == 1);
	ur_get_port_counters(p.payload + UR_GMP_DATA, &counters);
	cr_assert(counters.rcv_packets == 2 && counters.xmit_packets == 1, "its own packets count");
	node_close(&n);
}

Test(engine_mgmt, gmps_reach_an_ordinary_address_and_smps_do_not)
{
	struct node n;
	struct ur_path path;
	struct ur_path_attr attr = {.src = ur_gid_from_ipv4(0x0a000001),
				    .dst = ur_gid_from_ipv4(0x0a000002),
				    .has_vlan = true,
				    .vlan_tci = 5};
	struct ur_packet p;
	uint8_t mad[UR_MAD_BYTES];

	node_open(&n, true);
	output(&n, &p);
	memcpy(attr.smac, peer_mac, 6);
	memcpy(attr.dmac, mac, 6);
	ur_path_init(&path, &attr);
	get(mad, UR_MAD_CLASS_SMP_LID, UR_SMP_NODE_INFO);
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_QPN);
	cr_assert(!output(&n, &p));
	get(mad, UR_MAD_CLASS_PERF, UR_CLASS_PORT_INFO);
	cr_assert(input(&n, &path, 1, mad) == UR_DROP_NONE);
	cr_assert(output(&n, &p));
	cr_assert_arr_eq(p.dmac, peer_mac, 6);
	cr_assert(p.vlan_tci == (5 | 7 << 13) && p.ip.tos == UR_MAD_TOS);
	node_close(&n);
}

/* MGMT-WAY-01: a management MAC address opens no way to addresses that are not ours. */
Test(engine_mgmt, a_lid_in_the_mac_address_alone_is_not_enough)
{
	static const uint8_t lid_mac[6] = {2, 0x4c, 0x49, 0x44, 0, 9};
	struct ur_path_attr attr = {.src = ur_gid_from_ipv4(0x0a000001),
				    .dst = ur_gid_from_ipv4(0x0a090909)};
	uint8_t mad[UR_MAD_BYTES];
	struct ur_path path;
	struct ur_packet p;
	struct node n;

	node_open(&n, true);
	output(&n, &p);
	memcpy(attr.smac, peer_mac, 6);
	memcpy(attr.dmac, lid_mac, 6);
	ur_path_init(&path, &attr);
	get(mad, UR_MAD_CLASS_PERF, UR_CLASS_PORT_INFO);
	cr_assert(input(&n, &path, 1, mad) == UR_DROP_DST_ADDR);
	cr_assert(!output(&n, &p));
	node_close(&n);
}

Test(engine_mgmt, bad_keys_lengths_and_opcodes_are_dropped)
{
	struct node n;
	struct ur_path path;
	struct ur_packet p;
	uint8_t mad[UR_MAD_BYTES], frame[512];
	unsigned len;

	node_open(&n, true);
	output(&n, &p);
	ur_mad_hop_path(&path, peer_mac);
	get(mad, UR_MAD_CLASS_PERF, UR_CLASS_PORT_INFO);
	len = ur_mad_frame(frame, &path, ur_qpn(1), ur_qpn(1), ur_psn(0), mad);
	cr_assert(ur_packet_decode(frame, len, &p) == UR_DROP_NONE);
	p.deth.qkey++;
	cr_assert(ur_engine_input(n.e, &p, 2) == UR_DROP_QKEY);
	p.deth.qkey--;
	p.bth.pkey = 0x1234;
	cr_assert(ur_engine_input(n.e, &p, 2) == UR_DROP_PKEY);
	p.bth.pkey = 0xffff;
	p.payload_len = 255;
	cr_assert(ur_engine_input(n.e, &p, 2) == UR_DROP_MAD);
	p.payload_len = 256;
	p.bth.opcode = UR_RC_SEND_ONLY;
	cr_assert(ur_engine_input(n.e, &p, 2) == UR_DROP_QP_TYPE);
	p.bth.opcode = UR_UD_SEND_ONLY;
	p.ip.src.b[0] = 0xfd; /* any source will do on a link */
	cr_assert(ur_engine_input(n.e, &p, 2) == UR_DROP_NONE);
	node_close(&n);
}

Test(engine_mgmt, without_an_agent_nothing_is_answered)
{
	struct node n;
	struct ur_path path;
	struct ur_packet p;
	uint8_t mad[UR_MAD_BYTES];

	node_open(&n, false);
	ur_mad_hop_path(&path, peer_mac);
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_NODE_INFO);
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_GROUP);
	ur_mad_lid_path(&path, 1, 2);
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_QPN);
	cr_assert(input(&n, &path, 1, mad) == UR_DROP_QPN);
	cr_assert(!output(&n, &p) && !ur_engine_mgmt_stats(n.e));
	cr_assert(ur_engine_next_deadline(n.e) == UINT64_MAX);
	node_close(&n);
}

Test(engine_mgmt, a_client_talks_to_its_own_agent_and_to_the_network)
{
	struct node n;
	struct ur_packet p;
	struct ur_nma_from from = {.way = UR_MAD_LOCAL};
	uint8_t mad[UR_MAD_BYTES];

	node_open(&n, true);
	output(&n, &p);
	ur_engine_mgmt_client(n.e, true, false);
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_NODE_DESC);
	mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = 0;
	cr_assert(ur_engine_mgmt_input(n.e, mad, &from, 2) == UR_DROP_NONE);
	cr_assert(!output(&n, &p) && n.client_cnt == 1);
	cr_assert_str_eq((const char *)n.client[0].mad + UR_SMP_DATA, "a node");
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_NODE_INFO);
	mad[UR_SMP_HOP_POINTER] = 0;
	mad[UR_SMP_INITIAL + 1] = 1;
	cr_assert(ur_engine_mgmt_input(n.e, mad, &from, 2) == UR_DROP_NONE);
	cr_assert(output(&n, &p) && p.payload[UR_SMP_HOP_POINTER] == 1);
	cr_assert(ur_mad_is_mgmt_mac(p.dmac));
	node_close(&n);
}

Test(engine_mgmt, lanes_are_read_and_set_through_the_agent)
{
	struct node n;
	struct ur_path path;
	struct ur_packet p;
	uint8_t mad[UR_MAD_BYTES];

	node_open(&n, true);
	output(&n, &p);
	ur_mad_hop_path(&path, peer_mac);
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_SL2VL);
	mad[3] = UR_MAD_METHOD_SET;
	for (unsigned i = 0; i < 8; i++)
		mad[UR_SMP_DATA + i] = 0x12;
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_NONE && output(&n, &p));
	cr_assert(ur_load16(p.payload + 4) == UR_SMP_DIRECTION);
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_SL2VL);
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_NONE && output(&n, &p));
	cr_assert(p.payload[UR_SMP_DATA] == 0x12 && p.payload[UR_SMP_DATA + 7] == 0x12);
	/* SL 0 on VL 3, which has no weight, and so for all SLs: nothing could be sent. */
	get(mad, UR_MAD_CLASS_SMP_DR, UR_SMP_SL2VL);
	mad[3] = UR_MAD_METHOD_SET;
	memset(mad + UR_SMP_DATA, 0xff, 8);
	cr_assert(input(&n, &path, 0, mad) == UR_DROP_NONE && output(&n, &p));
	cr_assert((ur_load16(p.payload + 4) & 0x7fff) == UR_MAD_STATUS_VALUE);
	cr_assert(p.payload[UR_SMP_DATA] == 0x12);
	node_close(&n);
}
