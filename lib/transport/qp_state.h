/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_QP_STATE_H
#define UR_TRANSPORT_QP_STATE_H

#include <infiniband/verbs.h>

/*
 * QP states (IBA 10.3.1): which transitions are legal, and which attributes each one requires and
 * permits (IBA 11.2.5.2, table "QP state transition properties"). Pure tables.
 */

/* What the tables distinguish: the transport services of IBA (9.7, 9.8.3, 9.8.4). */
enum ur_service { UR_SERVICE_RC, UR_SERVICE_UC, UR_SERVICE_UD, UR_SERVICE_CNT };

/*
 * Checks a modify of a QP of `service` from `cur` to `next` with attribute mask `mask` (enum
 * ibv_qp_attr_mask; IBV_QP_STATE and IBV_QP_CUR_STATE are ignored). 0, or -EINVAL when the
 * transition is illegal, a required attribute is missing or one is not permitted.
 */
int ur_qp_state_check(enum ur_service service, enum ibv_qp_state cur, enum ibv_qp_state next,
		      int mask);

/* The attributes that a legal transition requires, enum ibv_qp_attr_mask. */
int ur_qp_state_required(enum ur_service service, enum ibv_qp_state cur, enum ibv_qp_state next);

/* "RTS"; never NULL. */
const char *ur_qp_state_name(enum ibv_qp_state state);

#endif
