/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_VENDOR_H
#define UR_WIRE_VENDOR_H

#include <stdint.h>

#include "wire/fields.h"
#include "wire/mad.h"
#include "wire/smp.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What uroce's agents have beyond the IBA (docs/design/management.md): registers, the E2PROM, fault
 * reports and the link test. Registers and E2PROM are reached in two ways, with the same body:
 *
 * - in class UR_MAD_CLASS_VENDOR on QP1, one of the vendor classes with an OUI and an RMPP header
 *   (IBA 16.5; RMPP is not used):
 *
 *     24 |           RMPP header (12 bytes), zero                        |
 *     36 |    reserved    |                    OUI (24)                  |
 *     40 |                           key (64)                            |
 *     48 |                        body (208 bytes)                       |
 *
 *   The key is the port's M_Key; reads leave it 0.
 *
 * - as vendor-defined attributes UR_SMP_REGISTERS and UR_SMP_EEPROM of the subnet management classes.
 *   The body is in the 64 bytes of data, the key in M_Key. So a node without an address is reached by
 *   directed route.
 *
 * The OUI is locally administered: no registered vendor has it.
 *
 * Thread class: pure functions.
 */
#define UR_VENDOR_OUI	     0x027572u
#define UR_VENDOR_VERSION    1
#define UR_VENDOR_OUI_AT     37
#define UR_VENDOR_KEY	     40
#define UR_VENDOR_BODY	     48
#define UR_VENDOR_BODY_BYTES 208

/* X(name, id, text) */
#define UR_VENDOR_ATTRS(X)                                                                         \
	X(CLASS_PORT_INFO, 0x0001, "ClassPortInfo")                                                \
	X(REGISTERS, 0x0010, "registers")                                                          \
	X(EEPROM, 0x0011, "E2PROM")                                                                \
	X(BIST, 0x0012, "link test")

enum ur_vendor_attr {
#define X(name, id, text) UR_VENDOR_##name = (id),
	UR_VENDOR_ATTRS(X)
#undef X
};

/* Why a request for registers or E2PROM failed; the MAD's status is then VALUE. X(name, value, text) */
#define UR_VENDOR_ERRORS(X)                                                                        \
	X(NONE, 0, "no error")                                                                     \
	X(COUNT, 1, "too many or no entries")                                                      \
	X(ADDRESS, 2, "no such address")                                                           \
	X(ACCESS, 3, "read-only")                                                                  \
	X(VALUE, 4, "value out of range")                                                          \
	X(KEY, 5, "key refused")                                                                   \
	X(ABSENT, 6, "the node does not have this function")

enum ur_vendor_error {
#define X(name, value, text) UR_VENDOR_ERROR_##name = (value),
	UR_VENDOR_ERRORS(X)
#undef X
};

const char *ur_vendor_error_text(uint8_t error);

/*
 * Registers, 64 bits each, one or two a request. Get reads, Set writes; a Set is all or nothing. The
 * response has the values read or written, and in `entry` the first entry that failed.
 */
#define UR_REGISTERS_MAX 2
#define UR_REGISTERS_FIELDS(X)                                                                     \
	X(uint8_t, count, 0, 8)                                                                    \
	X(uint8_t, error, 8, 8) /* enum ur_vendor_error */                                         \
	X(uint8_t, entry, 16, 8)                                                                   \
	X(uint16_t, address0, 32, 16)                                                              \
	X(uint16_t, address1, 48, 16)                                                              \
	X(uint64_t, value0, 64, 64)                                                                \
	X(uint64_t, value1, 128, 64)
UR_DECLARE_ATTRIBUTE(registers, UR_REGISTERS_FIELDS)

/* E2PROM: one to six bytes a request; entry i has its address at byte 4 + 2 i, its value at 16 + i. */
#define UR_EEPROM_BYTES 65536
#define UR_EEPROM_MAX	6
struct ur_eeprom {
	uint8_t count, error, entry;
	uint16_t address[UR_EEPROM_MAX];
	uint8_t value[UR_EEPROM_MAX];
};
void ur_put_eeprom(uint8_t *body, const struct ur_eeprom *a);
void ur_get_eeprom(const uint8_t *body, struct ur_eeprom *a);

/*
 * By which port a switch would forward a RoCEv2 packet to an address, attribute UR_SMP_ROUTE. The request, a Get, has the
 * address (IPv4 as ::ffff:a.b.c.d) and the UDP source port; the rest is the response's.
 */
#define UR_ROUTE_FIELDS(X)                                                                         \
	X(uint64_t, addr_high, 0, 64)                                                              \
	X(uint64_t, addr_low, 64, 64)                                                              \
	X(uint16_t, sport, 128, 16)                                                                \
	X(uint8_t, known, 144, 1) /* 0: it has no LID for the address, and forwards by learning */ \
	X(uint8_t, port, 152, 8)  /* 255: none; such packets are dropped */                        \
	X(uint16_t, lid, 160, 16)                                                                  \
	X(uint8_t, lmc, 176, 8)                                                                    \
	X(uint64_t, ports, 192, 64) /* bit p: port p, up, is that of some source ports */          \
	X(uint64_t, all, 256, 64)   /* the same, of ports that are down as well */
UR_DECLARE_ATTRIBUTE(route, UR_ROUTE_FIELDS)

/*
 * What the managers of zones tell each other, attribute UR_SMP_MANAGER (docs/design/managers.md). The first fields are those
 * of SMInfo (IBA 14.2.5.13), with the states and orders of subnet managers (14.4.1). Subnet managers take no notice: they
 * ask for SMInfo.
 */
#define UR_MANAGER_INFO_FIELDS(X)                                                                  \
	X(uint64_t, guid, 0, 64)   /* of the manager's node */                                     \
	X(uint64_t, proof, 64, 64) /* that it knows the zone's key (manager/proof.h) */            \
	X(uint32_t, act_count, 128, 32)                                                            \
	X(uint8_t, priority, 160, 4)                                                               \
	X(uint8_t, state, 164, 4) /* enum ur_manager_state */                                      \
	X(uint8_t, seats, 168, 8)                                                                  \
	X(uint8_t, held, 176, 8)    /* seats that have its key */                                  \
	X(uint64_t, zone, 192, 64)  /* stands for the zone's name */                               \
	X(uint64_t, rules, 256, 64) /* and for the definition of all zones */                      \
	X(uint64_t, m_key, 320, 64) /* HANDOVER and ACKNOWLEDGE: of the former master, hidden */   \
	X(uint64_t, to, 384, 64)    /* RESIGN: the manager to take over; 0: the first standby */   \
	X(uint64_t, number, 448,                                                                   \
	  64) /* a new one of each question and order, which the answer's   \
					proof covers; in an answer: for the next order's proof */
UR_DECLARE_ATTRIBUTE(manager_info, UR_MANAGER_INFO_FIELDS)

enum ur_manager_state {
	UR_MANAGER_NOT_ACTIVE,
	UR_MANAGER_DISCOVERING,
	UR_MANAGER_STANDBY,
	UR_MANAGER_MASTER,
};

/* The attribute modifier of a Set: those of SMInfo, and one of uroce. */
enum ur_manager_order {
	UR_MANAGER_HANDOVER = 1,
	UR_MANAGER_ACKNOWLEDGE = 2,
	UR_MANAGER_DISABLE = 3,
	UR_MANAGER_STANDBY_ORDER = 4,
	UR_MANAGER_DISCOVER = 5,
	UR_MANAGER_RESIGN = 16, /* to a master: hand over */
};

/*
 * Link test: the neighbour returns the body as it is (Get, GetResp), by hop only. After the sequence
 * number and the pattern's number follow UR_BIST_BYTES bytes of the pattern.
 */
#define UR_BIST_FIELDS(X)                                                                          \
	X(uint64_t, sequence, 0, 64)                                                               \
	X(uint8_t, pattern, 64, 8)
UR_DECLARE_ATTRIBUTE(bist, UR_BIST_FIELDS)
#define UR_BIST_AT    16
#define UR_BIST_BYTES (UR_VENDOR_BODY_BYTES - UR_BIST_AT)

/*
 * A fault report is a Notice that is not generic, with vendor id UR_VENDOR_OUI and device id
 * UR_FAULT_NOTICE. These are its details.
 */
#define UR_FAULT_NOTICE 0x0001
#define UR_FAULT_FIELDS(X)                                                                         \
	X(uint8_t, severity, 0, 8)    /* enum ur_fault_severity */                                 \
	X(uint8_t, cause, 8, 8)	      /* enum ur_fault_cause */                                    \
	X(uint8_t, port, 16, 8)	      /* 0: the node */                                            \
	X(uint32_t, sequence, 32, 32) /* counts the node's reports */                              \
	X(uint64_t, time_ns, 64, 64)  /* on the node's clock */                                    \
	X(uint64_t, value, 128, 64)                                                                \
	X(uint64_t, limit, 192, 64) /* which the value passed; 0: there is none */                 \
	X(uint64_t, node_guid, 256, 64)
UR_DECLARE_ATTRIBUTE(fault, UR_FAULT_FIELDS)

enum ur_fault_severity {
	UR_SEVERITY_INFO,
	UR_SEVERITY_WARNING,
	UR_SEVERITY_ERROR,
	UR_SEVERITY_CRITICAL,
};

/* Causes; the value is the bit in the fault registers. X(name, bit, severity, text) */
#define UR_FAULTS(X)                                                                               \
	X(LINK_DOWN, 0, CRITICAL, "link down")                                                     \
	X(LINK_UP, 1, INFO, "link up")                                                             \
	X(ERROR_BURST, 2, ERROR, "burst of receive errors")                                        \
	X(RETRANSMITS, 3, WARNING, "burst of retransmissions")                                     \
	X(HOT, 4, ERROR, "load above its limit")                                                   \
	X(MEMPOOL, 5, ERROR, "packet buffers used above their limit")                              \
	X(RING, 6, WARNING, "ring filled above its limit")                                         \
	X(BAD_KEY, 7, WARNING, "request with a bad key")                                           \
	X(BIST, 8, ERROR, "link test found errors")                                                \
	X(FIFO, 9, WARNING, "management requests dropped")

enum ur_fault_cause {
#define X(name, bit, severity, text) UR_FAULT_##name = (bit),
	UR_FAULTS(X)
#undef X
		UR_FAULT_CNT
};

const char *ur_fault_text(uint8_t cause);
const char *ur_severity_text(uint8_t severity);
enum ur_fault_severity ur_fault_severity(enum ur_fault_cause cause);

#ifdef __cplusplus
}
#endif

#endif
