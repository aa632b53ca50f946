/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_MAD_H
#define UR_WIRE_MAD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The common header of a management datagram (IBA 13.4.3). A MAD always has 256 bytes and is the
 * payload of one UD packet to QP0 or QP1.
 *
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * |  base version |     class     | class version |R|   method    |
 * |            status             |        class specific         |
 * |                       transaction id (64)                     |
 * |                                                               |
 * |         attribute id          |           reserved            |
 * |                      attribute modifier                       |
 */
struct ur_mad {
	uint8_t base_version; /* 1 */
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method; /* with the response bit, 0x80 */
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;
	uint16_t attr_id;
	uint16_t resv;
	uint32_t attr_mod;
};

#define UR_MAD_BYTES	    256
#define UR_MAD_HDR_BYTES    24
#define UR_MAD_BASE_VERSION 1

#define UR_MAD_CLASS_CM	   0x07
#define UR_MAD_CM_VERSION  2
#define UR_MAD_METHOD_SEND 0x03

/* Management classes (IBA 13.4.4). X(name, value, text) */
#define UR_MAD_CLASSES(X)                                                                          \
	X(SMP_LID, 0x01, "subnet management, LID-routed")                                          \
	X(SA, 0x03, "subnet administration")                                                       \
	X(PERF, 0x04, "performance management")                                                    \
	X(VENDOR, 0x4a, "uroce's registers")                                                       \
	X(SMP_DR, 0x81, "subnet management, directed route")

enum ur_mad_class {
#define X(name, value, text) UR_MAD_CLASS_##name = (value),
	UR_MAD_CLASSES(X)
#undef X
};

/* Methods (IBA 13.4.5). X(name, value, text) */
#define UR_MAD_METHODS(X)                                                                          \
	X(GET, 0x01, "Get")                                                                        \
	X(SET, 0x02, "Set")                                                                        \
	X(TRAP, 0x05, "Trap")                                                                      \
	X(REPORT, 0x06, "Report")                                                                  \
	X(TRAP_REPRESS, 0x07, "TrapRepress")                                                       \
	X(GET_TABLE, 0x12, "GetTable")                                                             \
	X(GET_TRACE_TABLE, 0x13, "GetTraceTable")                                                  \
	X(GET_MULTI, 0x14, "GetMulti")                                                             \
	X(DELETE, 0x15, "Delete")                                                                  \
	X(GET_RESP, 0x81, "GetResp")                                                               \
	X(REPORT_RESP, 0x86, "ReportResp")                                                         \
	X(GET_TABLE_RESP, 0x92, "GetTableResp")                                                    \
	X(GET_MULTI_RESP, 0x94, "GetMultiResp")                                                    \
	X(DELETE_RESP, 0x95, "DeleteResp")

enum ur_mad_method {
#define X(name, value, text) UR_MAD_METHOD_##name = (value),
	UR_MAD_METHODS(X)
#undef X
};
#define UR_MAD_METHOD_RESPONSE 0x80 /* the bit of all responses */

/* Whether whatever receives a request of this method answers it, if only with a status (IBA 13.4.5, 15.2.2). */
static inline bool ur_mad_wants_response(uint8_t method)
{
	return method == UR_MAD_METHOD_GET || method == UR_MAD_METHOD_SET ||
	       (method >= UR_MAD_METHOD_GET_TABLE && method <= UR_MAD_METHOD_DELETE);
}

/* The method of the response to such a request: Get and Set have the same. */
static inline uint8_t ur_mad_response_method(uint8_t method)
{
	return (uint8_t)(method == UR_MAD_METHOD_SET ? (unsigned)UR_MAD_METHOD_GET_RESP
						     : method | UR_MAD_METHOD_RESPONSE);
}

/* The status field of a response (IBA 13.4.7). X(name, value, text) */
#define UR_MAD_STATUSES(X)                                                                         \
	X(OK, 0x0000, "no error")                                                                  \
	X(BUSY, 0x0001, "busy")                                                                    \
	X(REDIRECT, 0x0002, "redirection required")                                                \
	X(BAD_VERSION, 0x0004, "unsupported base or class version")                                \
	X(METHOD, 0x0008, "unsupported method")                                                    \
	X(ATTRIBUTE, 0x000c, "unsupported method and attribute")                                   \
	X(VALUE, 0x001c, "invalid value in the attribute or its modifier")

enum ur_mad_status {
#define X(name, value, text) UR_MAD_STATUS_##name = (value),
	UR_MAD_STATUSES(X)
#undef X
};

/* Texts; "unknown" for a value that is not in the list. */
const char *ur_mad_class_text(uint8_t mgmt_class);
const char *ur_mad_method_text(uint8_t method);
const char *ur_mad_status_text(uint16_t status);

#define UR_SMI_QPN 0

#define UR_GSI_QPN  1
#define UR_GSI_QKEY 0x80010000u

/* If fewer than UR_MAD_HDR_BYTES are left, the cursor's `bad` is set (see cursor.h). */
void ur_put_mad(struct ur_cursor *c, const struct ur_mad *mad);
void ur_get_mad(struct ur_cursor *c, struct ur_mad *mad);

#ifdef __cplusplus
}
#endif

#endif
