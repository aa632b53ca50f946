/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_EARLY_H
#define UR_TRANSPORT_EXT_EARLY_H

#include "transport/qp.h"
#include "wire/packet.h"

/*
 * Packets beyond ePSN in extended mode (docs/design/loss.md): they are checked and placed when they
 * come, and noted in a context (ooo.h) with what is left to be done in their turn. The context is
 * taken from the worker's pool at the first of them and given back when none is noted any more;
 * with it go the receives of an SRQ that are bound to messages beyond the one under way.
 *
 * Thread class: the QP's worker.
 */

/* The packet lies `ahead` > 0 PSNs beyond ePSN. What fails here is not noted: it is judged in its
 * turn, when it is sent again. */
enum ur_drop ur_ext_early_input(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
				uint64_t now_ns);
/* What element `held` of the context keeps is not needed any more. */
void ur_ext_early_release(struct ur_qp *qp, uint16_t held);
/* Gives back the context, which is held, and all that it keeps. */
void ur_ext_early_give(struct ur_qp *qp);

#endif
