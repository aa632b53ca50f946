/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_UC_H
#define UR_TRANSPORT_RC_UC_H

#include "transport/qp.h"

/*
 * UC (IBA 9.8.3): messages as in RC, without answers. Its responder is in responder.c.
 *
 * Thread class: the QP's worker.
 */

/* As the functions of RC in qp.h. */
bool ur_uc_requester_ready(const struct ur_qp *qp);
bool ur_uc_requester_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes);
void ur_uc_requester_fail(struct ur_qp *qp, uint32_t idx, enum ibv_wc_status status);

#endif
