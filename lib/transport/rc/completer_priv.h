/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_COMPLETER_PRIV_H
#define UR_TRANSPORT_RC_COMPLETER_PRIV_H

#include "transport/qp.h"

/* What the completers of both header formats share; nothing else includes this. */

/* An ACK or a response came: takes in its credits. */
void ur_completer_credits(struct ur_requester *req, const struct ur_aeth *aeth);
/* The status with which a NAK of this code, not PSN_SEQ, ends its request; IBV_WC_SUCCESS: none. */
enum ibv_wc_status ur_completer_nak_status(uint8_t code);

#endif
