/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_QP_STATE_H
#define UR_TRANSPORT_QP_STATE_H

#include <infiniband/verbs.h>

/*
 * QP states (IBA 10.3.1): which transitions are legal, and which attributes each one requires and
 * permits (IBA 11.2.5.2, table "QP state transition properties"). Pure tables.
 */

/*
 * Checks a modify of a QP of `type` from `cur` to `next` with attribute mask `mask` (enum
 * ibv_qp_attr_mask; IBV_QP_STATE and IBV_QP_CUR_STATE are ignored). 0, or -EINVAL when the
 * transition is illegal, a required attribute is missing or one is not permitted.
 */
int ur_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state cur, enum ibv_qp_state next,
		      int mask);

/* "RTS"; never NULL. */
const char *ur_qp_state_name(enum ibv_qp_state state);

#endif
