/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_CNP_H
#define UR_TRANSPORT_CNP_H

#include "transport/qp.h"

/*
 * Congestion notification (IBA annex A17, DCQCN): the notification point. Thread class: the worker.
 */

/* The QP has accepted a packet marked CE: a CNP is owed, at most one in 50 us. RC and UC. */
void ur_cnp_on_ce(struct ur_qp *qp, uint64_t now_ns);
/* Makes the CNP that is owed. */
void ur_cnp_next(struct ur_qp *qp, struct ur_tx *tx);

#endif
