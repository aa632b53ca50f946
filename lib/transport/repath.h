/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_REPATH_H
#define UR_TRANSPORT_REPATH_H

#include "transport/core.h"
#include "transport/dest.h"
#include "transport/qp.h"

/*
 * When an RC queue pair takes another UDP source port, so that networks with ECMP send its packets another way
 * (docs/design/repath.md). Nothing here is on the way of a packet that arrives in order.
 *
 * Thread class: the queue pair's worker.
 */

/* REPATH-KEEP-01. *sport_be: one of the two ports of `qp`. */
static inline void ur_repath(struct ur_qp *qp, uint16_t *sport_be)
{
	if (qp->sprays || qp->core->keeps_ports)
		return;
	*sport_be = __builtin_bswap16(ur_path_next_sport(__builtin_bswap16(*sport_be)));
	qp->core->cnt.repaths++;
}

static inline void ur_repath_requests(struct ur_qp *qp)
{
	ur_repath(qp, &qp->sport_be);
}

/* PLB-MOVE-01. The path of the requests is congested. */
static inline void ur_repath_balance(struct ur_qp *qp)
{
	/* PLB-OFF-01 */
	if (qp->core->no_plb || qp->core->keeps_ports)
		return;
	ur_repath_requests(qp);
	qp->core->cnt.plb_repaths++;
}

static inline void ur_repath_answers(struct ur_qp *qp)
{
	ur_repath(qp, &qp->answer_sport_be);
}

/*
 * REPATH-RSP-01. The request at `psn`, which had been executed, has come again; `part`: where the part of a READ begins that
 * it asks for, in packets. A peer that goes back N repeats many, in passes; rsp.again is where the last one began. When the next one
 * begins there too, the path of the answers seems dead. A pass goes on while its packets get newer and nothing new is executed. The
 * same packet once more begins one, but tells nothing yet: the network may have made a copy. `r` is the engine's, of the same queue pair.
 */
static inline void ur_repath_on_duplicate(struct ur_qp *qp, struct ur_psn psn, uint32_t part,
					  struct ur_repeats *r)
{
	struct ur_responder *rsp = &qp->rsp;
	uint32_t again = psn.v | (part & 0xff) << 24;
	bool goes_on = rsp->has_again && ur_psn_eq(r->epsn, rsp->epsn) && again != r->newest &&
		       ur_psn_le(ur_psn(r->newest), psn);

	if (rsp->has_again && again == rsp->again)
		ur_repath_answers(qp);
	if (!goes_on)
		rsp->again = again;
	rsp->has_again = true;
	*r = (struct ur_repeats){.epsn = rsp->epsn, .newest = again};
}

#endif
