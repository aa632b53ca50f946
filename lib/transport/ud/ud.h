/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_UD_H
#define UR_TRANSPORT_UD_H

#include "transport/qp.h"

/*
 * Datagrams (IBA 9.8.4): each is a message, goes to the address handle that its WQE names, and takes a
 * receive or is lost.
 *
 * Thread class: the QP's worker.
 */

/* Takes in a datagram. */
enum ur_drop ur_ud_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* Whether ur_ud_next() has a WQE to send. */
bool ur_ud_ready(const struct ur_qp *qp);
/* Makes the next datagram; false: there is none, or its WQE fails. */
bool ur_ud_next(struct ur_qp *qp, struct ur_tx *tx);
/* The send queue goes on the lane of what it sends next. */
void ur_ud_follow_sl(struct ur_qp *qp);

#endif
