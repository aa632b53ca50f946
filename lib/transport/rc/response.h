/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_RESPONSE_H
#define UR_TRANSPORT_RC_RESPONSE_H

#include "mem/window.h"
#include "transport/build.h"
#include "transport/rc/responder_priv.h"
#include "wire/assert.h"
#include "wire/opcode.h"

/*
 * The interface between what every responder of RC sends (response_template.h) and a loss engine: in which order
 * answers are sent, what an ACK says, and the header codec. A C file that includes the template has filled it with
 * static functions, and has defined
 *
 *   RESPONSE(name)               the name under which a function is exported
 *   ANSWER                       tag of the struct of an answer that waits. Members: `atomic`, and then `original`, the
 *                                value found; else it is a READ: bytes [from, to) of those at `va` under `rkey` are
 *                                still to be sent; `repeat`: it was asked for once more
 *
 *   answers_wait(qp)             there is an answer to send
 *   answers_head(qp)             the one that is sent next
 *   answers_dequeue(qp, a)       that one is done with; update_ack
 *   answers_refuse(qp, a)        that one, and all that was to follow it, is not sent: a fatal NAK is
 *   answers_stop(qp, fatal)      nothing is answered any more but, if a fatal NAK is owed, the answers before it
 *   answer_begins(a)             no packet of it has left
 *   answer_psn(qp, a)            PSN of its next packet
 *   answer_leaves(qp, a)         its first or its last packet was made
 *   codec_begin_answer(qp, a, opcode, ends, more, tx, now)
 *                                writes the headers of its next packet, and returns where `more` bytes behind them go.
 *                                opcode: of RC; ends: it is the first or the last packet
 *
 *   RESPONSE(ack_due)(qp)        an ACK or NAK may leave now
 *   RESPONSE(next_ack)(qp, tx, now)  makes it; false: none may leave
 *
 * The files that do: response_gbn.c (modes gbn and reorder), response_selective.c (mode extended).
 *
 * Thread class: the QP's worker.
 */

static inline void clear_payload(struct ur_tx *tx)
{
	tx->frag_cnt = 0;
	tx->payload_len = 0;
}

/* Ethernet to BTH; returns where the `ext` bytes of extended headers go. */
static inline uint8_t *begin_response(const struct ur_qp *qp, uint8_t opcode, struct ur_psn psn,
				      unsigned ext, struct ur_tx *tx)
{
	struct ur_build_bth bth = {
		.opcode = opcode,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = psn,
	};

	return ur_build_from_qp(tx, qp, qp->answer_sport_be, &bth, ext);
}

static inline uint8_t *put_aeth(uint8_t *p, const struct ur_qp *qp, uint8_t syndrome)
{
	return ur_build32(p, (uint32_t)syndrome << 24 | qp->rsp.msn.v);
}

static inline uint8_t ack_syndrome(const struct ur_qp *qp)
{
	return UR_SYNDROME_ACK | ur_response_credits(qp);
}

#endif
