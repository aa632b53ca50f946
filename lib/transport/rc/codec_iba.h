/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_CODEC_IBA_H
#define UR_TRANSPORT_RC_CODEC_IBA_H

#include "transport/rc/request.h"

/*
 * Header codec of RC and UC as IBA has them (9.2): what requester_template.h asks for. Who includes this has
 * defined CODEC_TRANSPORT before, the top bits of its opcodes.
 */

/* The RETH is in the first packet of a WRITE only. */
enum { CODEC_RETH_IN_EACH = false };

/* Ethernet to BTH; returns where the `ext` bytes of extended headers go. */
static inline uint8_t *codec_begin(struct ur_qp *qp, const struct ur_wqe *wqe,
				   const struct request *r, unsigned ext, struct ur_tx *tx,
				   uint64_t now_ns)
{
	struct ur_build_bth bth = {
		.opcode = r->opcode | CODEC_TRANSPORT,
		.solicited = r->solicited,
		.ackreq = r->ackreq,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = r->psn,
	};

	(void)wqe;
	(void)now_ns;
	return ur_build_from_qp(tx, qp, qp->sport_be, &bth, ext);
}

/* READ and atomic requests ask for an ACK as well, as those of adapters do. */
static inline bool codec_answers_want_ack(void)
{
	return true;
}

/* What tells that a request is sent again. */
static inline uint8_t codec_retry_flags(const struct ur_qp *qp)
{
	(void)qp;
	return 0;
}

#endif
