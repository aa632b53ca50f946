/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_GBN_H
#define UR_TRANSPORT_RC_GBN_H

#include "transport/qp.h"

/*
 * Operations (qp_ops.h) of RC queue pairs in modes gbn and reorder: their life and their timers. What they
 * send and take in is in the files of requester, completer, responder and response. Where the modes differ,
 * the name says which one it is.
 *
 * Thread class: the QP's worker.
 */
void ur_gbn_init(struct ur_qp *qp);
void ur_gbn_release(struct ur_qp *qp);
void ur_gbn_set_first_psn(struct ur_qp *qp, struct ur_psn first);
void ur_reorder_set_first_psn(struct ur_qp *qp, struct ur_psn first);
void ur_gbn_set_epsn(struct ur_qp *qp);
void ur_gbn_set_limits(struct ur_qp *qp);
void ur_gbn_resize(struct ur_qp *qp, uint8_t cnt);
void ur_gbn_stop_sending(struct ur_qp *qp);
void ur_gbn_stop_responding(struct ur_qp *qp);
void ur_gbn_validate(const struct ur_qp *qp);

bool ur_gbn_is_idle(const struct ur_qp *qp);
uint32_t ur_gbn_in_flight(const struct ur_qp *qp);
uint32_t ur_gbn_acked(const struct ur_qp *qp);

uint64_t ur_gbn_deadline(const struct ur_qp *qp);
uint64_t ur_gbn_reorder_deadline(const struct ur_qp *qp);
void ur_gbn_expire(struct ur_qp *qp, uint64_t now_ns);
void ur_gbn_rearm(struct ur_qp *qp, bool held, uint64_t now_ns);

bool ur_gbn_is_answering(const struct ur_qp *qp);
struct ur_qp_numbers ur_gbn_numbers(const struct ur_qp *qp);

#endif
