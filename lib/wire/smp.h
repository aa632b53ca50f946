/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_SMP_H
#define UR_WIRE_SMP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/bytes.h"
#include "wire/fields.h"
#include "wire/mad.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Subnet management packets (IBA 14.2.1) and their attributes (14.2.5). After the MAD header:
 *
 *   24 |                            M_Key (64)                         |
 *   32 |             DrSLID            |             DrDLID            |  directed route only
 *   36 |                        reserved (28 bytes)                    |
 *   64 |                          data (64 bytes)                      |
 *  128 |                   initial path (64 bytes), [1, hop count]     |  directed route only
 *  192 |                    return path (64 bytes), [1, hop count]     |  directed route only
 *
 * In a directed-route SMP the MAD header's status has the direction in its highest bit, and the two
 * bytes after it are hop pointer and hop count.
 *
 * Thread class: pure functions. `mad` has UR_MAD_BYTES.
 */
#define UR_SMP_MKEY	   24
#define UR_SMP_DR_SLID	   32
#define UR_SMP_DR_DLID	   34
#define UR_SMP_DATA	   64
#define UR_SMP_DATA_BYTES  64
#define UR_SMP_INITIAL	   128
#define UR_SMP_RETURN	   192
#define UR_SMP_HOP_POINTER 6
#define UR_SMP_HOP_COUNT   7
#define UR_SMP_DIRECTION   0x8000 /* in the status: on the way back */
#define UR_SMP_HOPS_MAX	   63
#define UR_SMP_VERSION	   1
#define UR_LID_PERMISSIVE  0xffff

/* IBA 4.1.3: 1 to 0xbfff are unicast LIDs. */
static inline bool ur_lid_is_unicast(uint16_t lid)
{
	return lid && lid < 0xc000;
}

static inline bool ur_smp_is_back(const uint8_t *mad)
{
	return mad[4] & 0x80;
}

/* Attributes of both SMP classes. X(name, id, text) */
#define UR_SMP_ATTRS(X)                                                                            \
	X(NOTICE, 0x0002, "Notice")                                                                \
	X(NODE_DESC, 0x0010, "NodeDescription")                                                    \
	X(NODE_INFO, 0x0011, "NodeInfo")                                                           \
	X(SWITCH_INFO, 0x0012, "SwitchInfo")                                                       \
	X(GUID_INFO, 0x0014, "GUIDInfo")                                                           \
	X(PORT_INFO, 0x0015, "PortInfo")                                                           \
	X(PKEY_TABLE, 0x0016, "P_KeyTable")                                                        \
	X(SL2VL, 0x0017, "SLtoVLMappingTable")                                                     \
	X(VL_ARB, 0x0018, "VLArbitrationTable")                                                    \
	X(LFT, 0x0019, "LinearForwardingTable")                                                    \
	X(MFT, 0x001b, "MulticastForwardingTable")                                                 \
	X(SM_INFO, 0x0020, "SMInfo")                                                               \
	X(LED_INFO, 0x0031, "LedInfo")                                                             \
	/* Vendor-defined: the attributes of vendor.h, for nodes without an address. */            \
	X(REGISTERS, 0xff10, "registers")                                                          \
	X(EEPROM, 0xff11, "E2PROM")                                                                \
	X(MANAGER, 0xff12, "the manager of a zone")                                                \
	X(ROUTE, 0xff13, "the route to an address")

enum ur_smp_attr {
#define X(name, id, text) UR_SMP_##name = (id),
	UR_SMP_ATTRS(X)
#undef X
};

const char *ur_smp_attr_text(uint16_t attr_id);

enum ur_node_type { UR_NODE_CA = 1, UR_NODE_SWITCH = 2, UR_NODE_ROUTER = 3 };

/* IBA 14.2.5.3 */
#define UR_NODE_INFO_FIELDS(X)                                                                     \
	X(uint8_t, base_version, 0, 8)                                                             \
	X(uint8_t, class_version, 8, 8)                                                            \
	X(uint8_t, node_type, 16, 8) /* enum ur_node_type */                                       \
	X(uint8_t, num_ports, 24, 8) /* physical ports */                                          \
	X(uint64_t, system_guid, 32, 64)                                                           \
	X(uint64_t, node_guid, 96, 64)                                                             \
	X(uint64_t, port_guid, 160, 64)                                                            \
	X(uint16_t, partition_cap, 224, 16)                                                        \
	X(uint16_t, device_id, 240, 16)                                                            \
	X(uint32_t, revision, 256, 32)                                                             \
	X(uint8_t, local_port, 288, 8) /* the port at which the request arrived */                 \
	X(uint32_t, vendor_id, 296, 24)
UR_DECLARE_ATTRIBUTE(node_info, UR_NODE_INFO_FIELDS)

/* IBA 14.2.5.4 */
#define UR_SWITCH_INFO_FIELDS(X)                                                                   \
	X(uint16_t, linear_fdb_cap, 0, 16)                                                         \
	X(uint16_t, random_fdb_cap, 16, 16)                                                        \
	X(uint16_t, mcast_fdb_cap, 32, 16)                                                         \
	X(uint16_t, linear_fdb_top, 48, 16)                                                        \
	X(uint8_t, default_port, 64, 8)                                                            \
	X(uint8_t, default_mcast_primary, 72, 8)                                                   \
	X(uint8_t, default_mcast_not_primary, 80, 8)                                               \
	X(uint8_t, life_time, 88, 5)                                                               \
	X(uint8_t, port_state_change, 93, 1)                                                       \
	X(uint8_t, optimized_sl2vl, 94, 2)                                                         \
	X(uint16_t, lids_per_port, 96, 16)                                                         \
	X(uint16_t, partition_enforcement_cap, 112, 16)                                            \
	X(uint8_t, inbound_enforcement, 128, 1)                                                    \
	X(uint8_t, outbound_enforcement, 129, 1)                                                   \
	X(uint8_t, filter_raw_inbound, 130, 1)                                                     \
	X(uint8_t, filter_raw_outbound, 131, 1)                                                    \
	X(uint8_t, enhanced_port0, 132, 1)                                                         \
	X(uint16_t, mcast_fdb_top, 144, 16)
UR_DECLARE_ATTRIBUTE(switch_info, UR_SWITCH_INFO_FIELDS)

/* PortState and PortPhysicalState; 0 in a Set: no change. */
enum ur_port_state {
	UR_PORT_NOP = 0,
	UR_PORT_DOWN = 1,
	UR_PORT_INIT = 2,
	UR_PORT_ARMED = 3,
	UR_PORT_ACTIVE = 4,
};
enum ur_port_phys {
	UR_PHYS_NOP = 0,
	UR_PHYS_SLEEP = 1,
	UR_PHYS_POLLING = 2,
	UR_PHYS_DISABLED = 3,
	UR_PHYS_LINK_UP = 5,
};

/* Bits of CapabilityMask that uroce sets or tests; bit 0 is the lowest (IBA 14.2.5.6). */
#define UR_PORT_CAP_SM		 (1u << 1)
#define UR_PORT_CAP_NOTICE	 (1u << 2)
#define UR_PORT_CAP_TRAP	 (1u << 3)
#define UR_PORT_CAP_SL_MAP	 (1u << 6)
#define UR_PORT_CAP_MKEY_NVRAM	 (1u << 7)
#define UR_PORT_CAP_SYSTEM_GUID	 (1u << 11)
#define UR_PORT_CAP_EXT_SPEEDS	 (1u << 14)
#define UR_PORT_CAP_CM		 (1u << 16)
#define UR_PORT_CAP_VENDOR_CLASS (1u << 20)
#define UR_PORT_CAP_DR_NOTICE	 (1u << 21)
#define UR_PORT_CAP_CLIENT_REREG (1u << 25)

/* IBA 14.2.5.6 */
#define UR_PORT_INFO_FIELDS(X)                                                                     \
	X(uint64_t, m_key, 0, 64)                                                                  \
	X(uint64_t, gid_prefix, 64, 64)                                                            \
	X(uint16_t, lid, 128, 16)                                                                  \
	X(uint16_t, sm_lid, 144, 16)                                                               \
	X(uint32_t, capability_mask, 160, 32)                                                      \
	X(uint16_t, diag_code, 192, 16)                                                            \
	X(uint16_t, m_key_lease, 208, 16) /* seconds */                                            \
	X(uint8_t, local_port, 224, 8)                                                             \
	X(uint8_t, width_enabled, 232, 8)                                                          \
	X(uint8_t, width_supported, 240, 8)                                                        \
	X(uint8_t, width_active, 248, 8) /* 1: 1x, 2: 4x, 4: 8x, 8: 12x */                         \
	X(uint8_t, speed_supported, 256, 4)                                                        \
	X(uint8_t, state, 260, 4)      /* enum ur_port_state */                                    \
	X(uint8_t, phys_state, 264, 4) /* enum ur_port_phys */                                     \
	X(uint8_t, down_default, 268, 4)                                                           \
	X(uint8_t, m_key_protect, 272, 2)                                                          \
	X(uint8_t, lmc, 277, 3)                                                                    \
	X(uint8_t, speed_active, 280, 4) /* of a lane, 1: 2.5, 2: 5, 4: 10 Gb/s */                 \
	X(uint8_t, speed_enabled, 284, 4)                                                          \
	X(uint8_t, neighbor_mtu, 288, 4) /* 1 to 5: 256 to 4096 bytes */                           \
	X(uint8_t, sm_sl, 292, 4)                                                                  \
	X(uint8_t, vl_cap, 296, 4) /* 1, 2, 3, 4, 5: VL 0, 0-1, 0-3, 0-7, 0-14 */                  \
	X(uint8_t, init_type, 300, 4)                                                              \
	X(uint8_t, vl_high_limit, 304, 8)                                                          \
	X(uint8_t, vl_arb_high_cap, 312, 8)                                                        \
	X(uint8_t, vl_arb_low_cap, 320, 8)                                                         \
	X(uint8_t, init_type_reply, 328, 4)                                                        \
	X(uint8_t, mtu_cap, 332, 4)                                                                \
	X(uint8_t, vl_stall_count, 336, 3)                                                         \
	X(uint8_t, hoq_life, 339, 5)                                                               \
	X(uint8_t, operational_vls, 344, 4)                                                        \
	X(uint8_t, partition_inbound, 348, 1)                                                      \
	X(uint8_t, partition_outbound, 349, 1)                                                     \
	X(uint8_t, filter_raw_inbound, 350, 1)                                                     \
	X(uint8_t, filter_raw_outbound, 351, 1)                                                    \
	X(uint16_t, m_key_violations, 352, 16)                                                     \
	X(uint16_t, p_key_violations, 368, 16)                                                     \
	X(uint16_t, q_key_violations, 384, 16)                                                     \
	X(uint8_t, guid_cap, 400, 8)                                                               \
	X(uint8_t, client_reregister, 408, 1)                                                      \
	X(uint8_t, subnet_timeout, 411, 5)                                                         \
	X(uint8_t, resp_time, 419, 5)                                                              \
	X(uint8_t, local_phy_errors, 424, 4)                                                       \
	X(uint8_t, overrun_errors, 428, 4)                                                         \
	X(uint16_t, max_credit_hint, 432, 16)                                                      \
	X(uint32_t, round_trip, 456, 24)                                                           \
	X(uint16_t, capability_mask2, 480, 16)                                                     \
	X(uint8_t, speed_ext_active, 496, 4) /* 1: 14.0625, 2: 25.78125, 4: 53.125 Gb/s, ... */    \
	X(uint8_t, speed_ext_supported, 500, 4)                                                    \
	X(uint8_t, speed_ext_enabled, 507, 5)
UR_DECLARE_ATTRIBUTE(port_info, UR_PORT_INFO_FIELDS)

/* IBA 14.2.5.13 */
#define UR_SM_INFO_FIELDS(X)                                                                       \
	X(uint64_t, guid, 0, 64)                                                                   \
	X(uint64_t, sm_key, 64, 64)                                                                \
	X(uint32_t, act_count, 128, 32)                                                            \
	X(uint8_t, priority, 160, 4)                                                               \
	X(uint8_t, state, 164, 4)
UR_DECLARE_ATTRIBUTE(sm_info, UR_SM_INFO_FIELDS)

/*
 * Notice (IBA 13.4.8.2), the data of a Trap and of a TrapRepress. A generic notice has a trap number
 * (14.2.5.1), a vendor's has a device id there, and the vendor id in producer. Its details are 54 bytes
 * from UR_NOTICE_DETAILS of the data on.
 */
#define UR_NOTICE_FIELDS(X)                                                                        \
	X(uint8_t, is_generic, 0, 1)                                                               \
	X(uint8_t, type, 1, 7) /* 0 fatal, 1 urgent, 2 security, 3 subnet management, 4 info */    \
	X(uint32_t, producer, 8, 24) /* generic: enum ur_node_type */                              \
	X(uint16_t, trap, 32, 16)                                                                  \
	X(uint16_t, issuer_lid, 48, 16)                                                            \
	X(uint8_t, toggle, 64, 1)                                                                  \
	X(uint16_t, count, 65, 15)
UR_DECLARE_ATTRIBUTE(notice, UR_NOTICE_FIELDS)
#define UR_NOTICE_DETAILS	10
#define UR_NOTICE_DETAILS_BYTES 54

/* Traps of the subnet management class. X(name, number, notice type, text) */
#define UR_TRAPS(X)                                                                                \
	X(LINK_STATE, 128, 1, "a port of the switch changed its link state")                       \
	X(LINK_INTEGRITY, 129, 1, "local link integrity errors")                                   \
	X(BUFFER_OVERRUN, 130, 1, "buffer overruns")                                               \
	X(FLOW_CONTROL, 131, 1, "flow control update watchdog")                                    \
	X(CAPABILITY, 144, 4, "capability mask or description changed")                            \
	X(BAD_M_KEY, 256, 2, "bad M_Key")

enum ur_trap {
#define X(name, number, type, text) UR_TRAP_##name = (number),
	UR_TRAPS(X)
#undef X
};

#ifdef __cplusplus
}
#endif

#endif
