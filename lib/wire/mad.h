/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_MAD_H
#define UR_WIRE_MAD_H

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

#define UR_GSI_QPN  1
#define UR_GSI_QKEY 0x80010000u

/* If fewer than UR_MAD_HDR_BYTES are left, the cursor's `bad` is set (see cursor.h). */
void ur_put_mad(struct ur_cursor *c, const struct ur_mad *mad);
void ur_get_mad(struct ur_cursor *c, struct ur_mad *mad);

#ifdef __cplusplus
}
#endif

#endif
