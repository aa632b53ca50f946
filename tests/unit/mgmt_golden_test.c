/* SPDX-License-Identifier: BSD-3-Clause */
#include "nma_fabric.h"

#include <infiniband/mad.h>

#include "wire/perf.h"

/*
 * The layout of attributes, against libibmad of rdma-core: each field is read from random bytes by our
 * decoder and by theirs, and written by our encoder and read by theirs.
 */
/* Fields of more than 32 bits have a function of their own in libibmad. */
#define FIELD64(stem, member, theirs)                                                              \
	do {                                                                                       \
		cr_assert(mad_get_field64(wire, 0, theirs) == a.member, #stem "." #member);        \
		cr_assert(mad_get_field64(ours, 0, theirs) == a.member, #stem "." #member);        \
	} while (0)
#define FIELD32(stem, member, theirs)                                                              \
	do {                                                                                       \
		cr_assert(mad_get_field(wire, 0, theirs) == (uint64_t)a.member,                    \
			  #stem "." #member ": theirs %#x", mad_get_field(wire, 0, theirs));       \
		cr_assert(mad_get_field(ours, 0, theirs) == (uint64_t)a.member,                    \
			  #stem "." #member " encoded");                                           \
	} while (0)

#define GOLDEN(stem, LIST32, LIST64)                                                               \
	for (unsigned seed = 1; seed < 100; seed++) {                                              \
		uint8_t wire[256], ours[256] = {0};                                                \
		struct ur_##stem a;                                                                \
                                                                                                   \
		srandom(seed);                                                                     \
		for (unsigned i = 0; i < sizeof(wire); i++)                                        \
			wire[i] = (uint8_t)random();                                               \
		ur_get_##stem(wire, &a);                                                           \
		ur_put_##stem(ours, &a);                                                           \
		LIST32(FIELD32) LIST64(FIELD64)                                                    \
	}

/* clang-format off */
#define NONE(F)
#define NODE32(F)                                                                                  \
	F(node_info, base_version, IB_NODE_BASE_VERS_F);                                           \
	F(node_info, class_version, IB_NODE_CLASS_VERS_F);                                         \
	F(node_info, node_type, IB_NODE_TYPE_F);                                                   \
	F(node_info, num_ports, IB_NODE_NPORTS_F);                                                 \
	F(node_info, partition_cap, IB_NODE_PARTITION_CAP_F);                                      \
	F(node_info, device_id, IB_NODE_DEVID_F);                                                  \
	F(node_info, revision, IB_NODE_REVISION_F);                                                \
	F(node_info, local_port, IB_NODE_LOCAL_PORT_F);                                            \
	F(node_info, vendor_id, IB_NODE_VENDORID_F);
#define NODE64(F)                                                                                  \
	F(node_info, system_guid, IB_NODE_SYSTEM_GUID_F);                                          \
	F(node_info, node_guid, IB_NODE_GUID_F);                                                   \
	F(node_info, port_guid, IB_NODE_PORT_GUID_F);
Test(mgmt_golden, node_info_is_laid_out_as_in_libibmad)
{
	GOLDEN(node_info, NODE32, NODE64)
}

#define SWITCH32(F)                                                                                \
	F(switch_info, linear_fdb_cap, IB_SW_LINEAR_FDB_CAP_F);                                    \
	F(switch_info, random_fdb_cap, IB_SW_RANDOM_FDB_CAP_F);                                    \
	F(switch_info, mcast_fdb_cap, IB_SW_MCAST_FDB_CAP_F);                                      \
	F(switch_info, linear_fdb_top, IB_SW_LINEAR_FDB_TOP_F);                                    \
	F(switch_info, default_port, IB_SW_DEF_PORT_F);                                            \
	F(switch_info, default_mcast_primary, IB_SW_DEF_MCAST_PRIM_F);                             \
	F(switch_info, default_mcast_not_primary, IB_SW_DEF_MCAST_NOT_PRIM_F);                     \
	F(switch_info, life_time, IB_SW_LIFE_TIME_F);                                              \
	F(switch_info, port_state_change, IB_SW_STATE_CHANGE_F);                                   \
	F(switch_info, optimized_sl2vl, IB_SW_OPT_SLTOVL_MAPPING_F);                               \
	F(switch_info, lids_per_port, IB_SW_LIDS_PER_PORT_F);                                      \
	F(switch_info, partition_enforcement_cap, IB_SW_PARTITION_ENFORCE_CAP_F);                  \
	F(switch_info, inbound_enforcement, IB_SW_PARTITION_ENF_INB_F);                            \
	F(switch_info, outbound_enforcement, IB_SW_PARTITION_ENF_OUTB_F);                          \
	F(switch_info, filter_raw_inbound, IB_SW_FILTER_RAW_INB_F);                                \
	F(switch_info, filter_raw_outbound, IB_SW_FILTER_RAW_OUTB_F);                              \
	F(switch_info, enhanced_port0, IB_SW_ENHANCED_PORT0_F);                                    \
	F(switch_info, mcast_fdb_top, IB_SW_MCAST_FDB_TOP_F);
Test(mgmt_golden, switch_info_is_laid_out_as_in_libibmad)
{
	GOLDEN(switch_info, SWITCH32, NONE)
}

#define PORT32(F)                                                                                  \
	F(port_info, lid, IB_PORT_LID_F);                                                          \
	F(port_info, sm_lid, IB_PORT_SMLID_F);                                                     \
	F(port_info, capability_mask, IB_PORT_CAPMASK_F);                                          \
	F(port_info, diag_code, IB_PORT_DIAG_F);                                                   \
	F(port_info, m_key_lease, IB_PORT_MKEY_LEASE_F);                                           \
	F(port_info, local_port, IB_PORT_LOCAL_PORT_F);                                            \
	F(port_info, width_enabled, IB_PORT_LINK_WIDTH_ENABLED_F);                                 \
	F(port_info, width_supported, IB_PORT_LINK_WIDTH_SUPPORTED_F);                             \
	F(port_info, width_active, IB_PORT_LINK_WIDTH_ACTIVE_F);                                   \
	F(port_info, speed_supported, IB_PORT_LINK_SPEED_SUPPORTED_F);                             \
	F(port_info, state, IB_PORT_STATE_F);                                                      \
	F(port_info, phys_state, IB_PORT_PHYS_STATE_F);                                            \
	F(port_info, down_default, IB_PORT_LINK_DOWN_DEF_F);                                       \
	F(port_info, m_key_protect, IB_PORT_MKEY_PROT_BITS_F);                                     \
	F(port_info, lmc, IB_PORT_LMC_F);                                                          \
	F(port_info, speed_active, IB_PORT_LINK_SPEED_ACTIVE_F);                                   \
	F(port_info, speed_enabled, IB_PORT_LINK_SPEED_ENABLED_F);                                 \
	F(port_info, neighbor_mtu, IB_PORT_NEIGHBOR_MTU_F);                                        \
	F(port_info, sm_sl, IB_PORT_SMSL_F);                                                       \
	F(port_info, vl_cap, IB_PORT_VL_CAP_F);                                                    \
	F(port_info, init_type, IB_PORT_INIT_TYPE_F);                                              \
	F(port_info, vl_high_limit, IB_PORT_VL_HIGH_LIMIT_F);                                      \
	F(port_info, vl_arb_high_cap, IB_PORT_VL_ARBITRATION_HIGH_CAP_F);                          \
	F(port_info, vl_arb_low_cap, IB_PORT_VL_ARBITRATION_LOW_CAP_F);                            \
	F(port_info, init_type_reply, IB_PORT_INIT_TYPE_REPLY_F);                                  \
	F(port_info, mtu_cap, IB_PORT_MTU_CAP_F);                                                  \
	F(port_info, vl_stall_count, IB_PORT_VL_STALL_COUNT_F);                                    \
	F(port_info, hoq_life, IB_PORT_HOQ_LIFE_F);                                                \
	F(port_info, operational_vls, IB_PORT_OPER_VLS_F);                                         \
	F(port_info, partition_inbound, IB_PORT_PART_EN_INB_F);                                    \
	F(port_info, partition_outbound, IB_PORT_PART_EN_OUTB_F);                                  \
	F(port_info, filter_raw_inbound, IB_PORT_FILTER_RAW_INB_F);                                \
	F(port_info, filter_raw_outbound, IB_PORT_FILTER_RAW_OUTB_F);                              \
	F(port_info, m_key_violations, IB_PORT_MKEY_VIOL_F);                                       \
	F(port_info, p_key_violations, IB_PORT_PKEY_VIOL_F);                                       \
	F(port_info, q_key_violations, IB_PORT_QKEY_VIOL_F);                                       \
	F(port_info, guid_cap, IB_PORT_GUID_CAP_F);                                                \
	F(port_info, client_reregister, IB_PORT_CLIENT_REREG_F);                                   \
	F(port_info, subnet_timeout, IB_PORT_SUBN_TIMEOUT_F);                                      \
	F(port_info, resp_time, IB_PORT_RESP_TIME_VAL_F);                                          \
	F(port_info, local_phy_errors, IB_PORT_LOCAL_PHYS_ERR_F);                                  \
	F(port_info, overrun_errors, IB_PORT_OVERRUN_ERR_F);                                       \
	F(port_info, max_credit_hint, IB_PORT_MAX_CREDIT_HINT_F);                                  \
	F(port_info, round_trip, IB_PORT_LINK_ROUND_TRIP_F);                                       \
	F(port_info, capability_mask2, IB_PORT_CAPMASK2_F);                                        \
	F(port_info, speed_ext_active, IB_PORT_LINK_SPEED_EXT_ACTIVE_F);                           \
	F(port_info, speed_ext_supported, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F);                     \
	F(port_info, speed_ext_enabled, IB_PORT_LINK_SPEED_EXT_ENABLED_F);
#define PORT64(F)                                                                                  \
	F(port_info, m_key, IB_PORT_MKEY_F);                                                       \
	F(port_info, gid_prefix, IB_PORT_GID_PREFIX_F);
Test(mgmt_golden, port_info_is_laid_out_as_in_libibmad)
{
	GOLDEN(port_info, PORT32, PORT64)
}

#define SM32(F)                                                                                    \
	F(sm_info, act_count, IB_SMINFO_ACT_F);                                                    \
	F(sm_info, priority, IB_SMINFO_PRIO_F);                                                    \
	F(sm_info, state, IB_SMINFO_STATE_F);
#define SM64(F)                                                                                    \
	F(sm_info, guid, IB_SMINFO_GUID_F);                                                        \
	F(sm_info, sm_key, IB_SMINFO_KEY_F);
Test(mgmt_golden, sm_info_is_laid_out_as_in_libibmad)
{
	GOLDEN(sm_info, SM32, SM64)
}

#define NOTICE32(F)                                                                                \
	F(notice, is_generic, IB_NOTICE_IS_GENERIC_F);                                             \
	F(notice, type, IB_NOTICE_TYPE_F);                                                         \
	F(notice, producer, IB_NOTICE_PRODUCER_F);                                                 \
	F(notice, trap, IB_NOTICE_TRAP_NUMBER_F);                                                  \
	F(notice, issuer_lid, IB_NOTICE_ISSUER_LID_F);                                             \
	F(notice, toggle, IB_NOTICE_TOGGLE_F);                                                     \
	F(notice, count, IB_NOTICE_COUNT_F);
Test(mgmt_golden, notice_is_laid_out_as_in_libibmad)
{
	GOLDEN(notice, NOTICE32, NONE)
}

#define PC32(F)                                                                                    \
	F(port_counters, port_select, IB_PC_PORT_SELECT_F);                                        \
	F(port_counters, counter_select, IB_PC_COUNTER_SELECT_F);                                  \
	F(port_counters, counter_select2, IB_PC_COUNTER_SELECT2_F);                                \
	F(port_counters, symbol_errors, IB_PC_ERR_SYM_F);                                          \
	F(port_counters, link_recovery, IB_PC_LINK_RECOVERS_F);                                    \
	F(port_counters, link_downed, IB_PC_LINK_DOWNED_F);                                        \
	F(port_counters, rcv_errors, IB_PC_ERR_RCV_F);                                             \
	F(port_counters, rcv_remote_phys_errors, IB_PC_ERR_PHYSRCV_F);                             \
	F(port_counters, rcv_switch_relay_errors, IB_PC_ERR_SWITCH_REL_F);                         \
	F(port_counters, xmit_discards, IB_PC_XMT_DISCARDS_F);                                     \
	F(port_counters, xmit_constraint_errors, IB_PC_ERR_XMTCONSTR_F);                           \
	F(port_counters, rcv_constraint_errors, IB_PC_ERR_RCVCONSTR_F);                            \
	F(port_counters, local_link_integrity, IB_PC_ERR_LOCALINTEG_F);                            \
	F(port_counters, buffer_overruns, IB_PC_ERR_EXCESS_OVR_F);                                 \
	F(port_counters, vl15_dropped, IB_PC_VL15_DROPPED_F);                                      \
	F(port_counters, xmit_data, IB_PC_XMT_BYTES_F);                                            \
	F(port_counters, rcv_data, IB_PC_RCV_BYTES_F);                                             \
	F(port_counters, xmit_packets, IB_PC_XMT_PKTS_F);                                          \
	F(port_counters, rcv_packets, IB_PC_RCV_PKTS_F);                                           \
	F(port_counters, xmit_wait, IB_PC_XMT_WAIT_F);
Test(mgmt_golden, port_counters_is_laid_out_as_in_libibmad)
{
	GOLDEN(port_counters, PC32, NONE)
}

#define EXT32(F)                                                                                   \
	F(port_counters_ext, port_select, IB_PC_EXT_PORT_SELECT_F);                                \
	F(port_counters_ext, counter_select, IB_PC_EXT_COUNTER_SELECT_F);
#define EXT64(F)                                                                                   \
	F(port_counters_ext, xmit_data, IB_PC_EXT_XMT_BYTES_F);                                    \
	F(port_counters_ext, rcv_data, IB_PC_EXT_RCV_BYTES_F);                                     \
	F(port_counters_ext, xmit_packets, IB_PC_EXT_XMT_PKTS_F);                                  \
	F(port_counters_ext, rcv_packets, IB_PC_EXT_RCV_PKTS_F);                                   \
	F(port_counters_ext, unicast_xmit_packets, IB_PC_EXT_XMT_UPKTS_F);                         \
	F(port_counters_ext, unicast_rcv_packets, IB_PC_EXT_RCV_UPKTS_F);                          \
	F(port_counters_ext, multicast_xmit_packets, IB_PC_EXT_XMT_MPKTS_F);                       \
	F(port_counters_ext, multicast_rcv_packets, IB_PC_EXT_RCV_MPKTS_F);
Test(mgmt_golden, port_counters_ext_is_laid_out_as_in_libibmad)
{
	GOLDEN(port_counters_ext, EXT32, EXT64)
}

#define CPI32(F)                                                                                   \
	F(class_port_info, base_version, IB_CPI_BASEVER_F);                                        \
	F(class_port_info, class_version, IB_CPI_CLASSVER_F);                                      \
	F(class_port_info, capability_mask, IB_CPI_CAPMASK_F);                                     \
	F(class_port_info, capability_mask2, IB_CPI_CAPMASK2_F);                                   \
	F(class_port_info, resp_time, IB_CPI_RESP_TIME_VALUE_F);
Test(mgmt_golden, class_port_info_is_laid_out_as_in_libibmad)
{
	GOLDEN(class_port_info, CPI32, NONE)
} /* clang-format on */

/* A whole request by libibmad, for a node two hops away, and the response read by it. */
Test(mgmt_golden, the_agent_answers_a_request_that_libibmad_encoded)
{
	struct fabric *f = fabric_new();
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr = {IB_ATTR_NODE_INFO, 0},
			.trid = 0x1234,
			.datasz = IB_SMP_DATA_SIZE,
			.dataoffs = IB_SMP_DATA_OFFS};
	ib_dr_path_t route = {.cnt = 2, .p = {0, 1, 2}, .drslid = 0xffff, .drdlid = 0xffff};
	struct mad m = {{0}}, r;
	uint8_t none[IB_SMP_DATA_SIZE] = {0};

	fabric_add(f, false, NULL);
	fabric_add(f, true, NULL);
	fabric_add(f, true, NULL);
	fabric_join(f, 0, 1, 1, 1);
	fabric_join(f, 1, 2, 2, 4);
	cr_assert(mad_encode(m.b, &rpc, &route, none));
	cr_assert(ask(f, 0, &m, 0, &r));
	cr_assert(mad_get_field(r.b, 0, IB_DRSMP_STATUS_F) == 0);
	cr_assert(mad_get_field(r.b, 0, IB_DRSMP_DIRECTION_F) == 1);
	cr_assert((uint32_t)mad_get_field64(r.b, 0, IB_MAD_TRID_F) == 0x1234);
	cr_assert(mad_get_field64(r.b, IB_SMP_DATA_OFFS, IB_NODE_GUID_F) == 0x1002);
	cr_assert(mad_get_field(r.b, IB_SMP_DATA_OFFS, IB_NODE_TYPE_F) == IB_NODE_SWITCH);
	cr_assert(mad_get_field(r.b, IB_SMP_DATA_OFFS, IB_NODE_LOCAL_PORT_F) == 4);
	fabric_free(f);
}
