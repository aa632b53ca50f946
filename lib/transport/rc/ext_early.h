/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_EARLY_H
#define UR_TRANSPORT_EXT_EARLY_H

#include "transport/qp.h"
#include "wire/packet.h"

struct turn; /* rc/arrival.h */

/*
 * Packets beyond ePSN in extended mode (docs/design/loss.md): they are checked and placed when they come, and what is
 * left to be done in their turn is deferred in a context (ooo.h). The context is taken from the worker's pool at the
 * first of them and given back when nothing is deferred any more; with it go the receives of an SRQ that are bound to
 * messages beyond the one under way.
 *
 * Thread class: the QP's worker.
 */

/*
 * The packet lies `ahead` > 0 PSNs beyond ePSN. Returns NONE when it is deferred. What fails a check is dropped: it is
 * judged in its turn, when it comes again.
 */
enum ur_drop ur_ext_early_input(struct ur_qp *qp, const struct ur_packet *p, uint32_t ahead,
				uint64_t now_ns);
/* Fills *turn with what is left of the packet at ePSN; false: it is not deferred. A context is held. */
bool ur_ext_early_next(struct ur_qp *qp, struct turn *turn);
/* The packet, which is deferred, has had its turn. */
void ur_ext_early_forget(struct ur_qp *qp, struct ur_psn psn);
/* Gives back the context, which is held, and all that it keeps. */
void ur_ext_early_give(struct ur_qp *qp);

#endif
