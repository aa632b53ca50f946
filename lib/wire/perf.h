/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_PERF_H
#define UR_WIRE_PERF_H

#include <stdint.h>

#include "wire/fields.h"
#include "wire/mad.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Performance management (IBA 16.1): the attributes, 192 bytes after 40 reserved bytes behind the MAD
 * header. ClassPortInfo (13.4.8.1) exists in every class.
 *
 * Thread class: pure functions.
 */
#define UR_PERF_VERSION	   1
#define UR_GMP_DATA	   64
#define UR_GMP_DATA_BYTES  192
#define UR_CLASS_PORT_INFO 0x0001

/* X(name, id, text) */
#define UR_PERF_ATTRS(X)                                                                           \
	X(CLASS_PORT_INFO, 0x0001, "ClassPortInfo")                                                \
	X(PORT_COUNTERS, 0x0012, "PortCounters")                                                   \
	X(PORT_COUNTERS_EXT, 0x001d, "PortCountersExtended")

enum ur_perf_attr {
#define X(name, id, text) UR_PERF_##name = (id),
	UR_PERF_ATTRS(X)
#undef X
};

/* Bits of ClassPortInfo's CapabilityMask in this class. */
#define UR_PERF_CAP_ALL_PORTS (1u << 8)	 /* PortSelect 0xff */
#define UR_PERF_CAP_EXT_WIDTH (1u << 9)	 /* PortCountersExtended */
#define UR_PERF_CAP_XMIT_WAIT (1u << 12) /* PortCounters:PortXmitWait */

#define UR_CLASS_PORT_INFO_FIELDS(X)                                                               \
	X(uint8_t, base_version, 0, 8)                                                             \
	X(uint8_t, class_version, 8, 8)                                                            \
	X(uint16_t, capability_mask, 16, 16)                                                       \
	X(uint32_t, capability_mask2, 32, 27)                                                      \
	X(uint8_t, resp_time, 59, 5)
UR_DECLARE_ATTRIBUTE(class_port_info, UR_CLASS_PORT_INFO_FIELDS)

/*
 * PortCounters (16.1.3.5). PortXmitData and PortRcvData count four bytes. Counters stop at their
 * largest value. X(type, name, offset, width, bit in CounterSelect; bits from 16 on are CounterSelect2's)
 */
#define UR_PORT_COUNTERS_LIST(X)                                                                   \
	X(uint16_t, symbol_errors, 32, 16, 0)                                                      \
	X(uint8_t, link_recovery, 48, 8, 1)                                                        \
	X(uint8_t, link_downed, 56, 8, 2)                                                          \
	X(uint16_t, rcv_errors, 64, 16, 3)                                                         \
	X(uint16_t, rcv_remote_phys_errors, 80, 16, 4)                                             \
	X(uint16_t, rcv_switch_relay_errors, 96, 16, 5)                                            \
	X(uint16_t, xmit_discards, 112, 16, 6)                                                     \
	X(uint8_t, xmit_constraint_errors, 128, 8, 7)                                              \
	X(uint8_t, rcv_constraint_errors, 136, 8, 8)                                               \
	X(uint8_t, local_link_integrity, 152, 4, 9)                                                \
	X(uint8_t, buffer_overruns, 156, 4, 10)                                                    \
	X(uint16_t, vl15_dropped, 176, 16, 11)                                                     \
	X(uint32_t, xmit_data, 192, 32, 12)                                                        \
	X(uint32_t, rcv_data, 224, 32, 13)                                                         \
	X(uint32_t, xmit_packets, 256, 32, 14)                                                     \
	X(uint32_t, rcv_packets, 288, 32, 15)                                                      \
	X(uint32_t, xmit_wait, 320, 32, 16)

#define UR_PORT_COUNTERS_SELECT(X)                                                                 \
	X(uint8_t, port_select, 8, 8)                                                              \
	X(uint16_t, counter_select, 16, 16)                                                        \
	X(uint8_t, counter_select2, 144, 8)

/* PortCountersExtended (16.1.4.11). X(type, name, offset, width, bit in CounterSelect) */
#define UR_PORT_COUNTERS_EXT_LIST(X)                                                               \
	X(uint64_t, xmit_data, 64, 64, 0)                                                          \
	X(uint64_t, rcv_data, 128, 64, 1)                                                          \
	X(uint64_t, xmit_packets, 192, 64, 2)                                                      \
	X(uint64_t, rcv_packets, 256, 64, 3)                                                       \
	X(uint64_t, unicast_xmit_packets, 320, 64, 4)                                              \
	X(uint64_t, unicast_rcv_packets, 384, 64, 5)                                               \
	X(uint64_t, multicast_xmit_packets, 448, 64, 6)                                            \
	X(uint64_t, multicast_rcv_packets, 512, 64, 7)

#define UR_PORT_COUNTERS_EXT_SELECT(X)                                                             \
	X(uint8_t, port_select, 8, 8)                                                              \
	X(uint16_t, counter_select, 16, 16)

#define UR_COUNTER_MEMBER(type, name, at, width, bit) type name;

struct ur_port_counters {
	UR_PORT_COUNTERS_SELECT(UR_FIELD_MEMBER)
	UR_PORT_COUNTERS_LIST(UR_COUNTER_MEMBER)
};
struct ur_port_counters_ext {
	UR_PORT_COUNTERS_EXT_SELECT(UR_FIELD_MEMBER)
	UR_PORT_COUNTERS_EXT_LIST(UR_COUNTER_MEMBER)
};

/* `data` has UR_GMP_DATA_BYTES. Put leaves reserved bits as they are. */
void ur_put_port_counters(uint8_t *data, const struct ur_port_counters *a);
void ur_get_port_counters(const uint8_t *data, struct ur_port_counters *a);
void ur_put_port_counters_ext(uint8_t *data, const struct ur_port_counters_ext *a);
void ur_get_port_counters_ext(const uint8_t *data, struct ur_port_counters_ext *a);

#ifdef __cplusplus
}
#endif

#endif
