/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_ARRIVAL_H
#define UR_TRANSPORT_RC_ARRIVAL_H

#include "transport/rc/responder_priv.h"

/*
 * The interface between what every responder does with a request (responder_template.h, place.h) and a loss engine:
 * whose turn it is, what becomes of packets that come early or once more, and when an ACK is owed. A C file that
 * includes the template has filled it with static functions, and has defined
 *
 *   RESPONDER(name), RESPONSE(name)   the names under which functions of responder and responses are exported
 *   ANSWER                            as in rc/response.h
 *
 * The packet itself (place.h asks for no more):
 *
 *   ARRIVAL_READ_PSNS                 response packets that one READ request may ask for
 *   arrival_check_form(qp, p)         verdict: the engine's own headers do not contradict each other
 *   arrival_offset(qp, p)             bytes of its message before it
 *   arrival_reth(qp, p)               RETH of the WRITE that it belongs to
 *   arrival_clip(qp, psn, dst, src, len)  copies what no younger packet has written; false: none has written there, and
 *                                     nothing is copied
 *
 * Any request:
 *
 *   arrival_is_foreign(p)             it is not of this mode
 *   arrival_is_consumed(qp, p, now)   it takes no PSN, and is dealt with
 *
 * A request at ePSN, in this order:
 *
 *   arrival_check_sequence(qp, p)     verdict: it continues the message under way, or begins one
 *   arrival_has_room(qp)              another READ or atomic can be remembered and answered
 *   arrival_bind(qp, p, now)          binds a receive to its message; false: there is none
 *   arrival_new_answer(qp, p, false, ns)  READ or atomic: the answer to it, which came at `ns`. All members that ANSWER
 *                                     must have are zero
 *   arrival_pass_request(qp, p, a)    and *a is filled: ePSN and MSN move past it
 *   arrival_pass_data(qp, p)          SEND or WRITE: it was executed, and ePSN is about to move past it
 *   arrival_acknowledge(qp, p, now)   owes an ACK if it is time
 *   arrival_close_hole(qp)            a NAK was sent for it before
 *   arrival_record_echo(qp, p, now)   what a NAK, which is about to be owed, echoes
 *   arrival_rnr_timer(qp)             timer code of an RNR NAK, which is about to be owed
 *
 * Beyond ePSN:
 *
 *   arrival_take_early(qp, p, ahead, now)  the packet is `ahead` > 0 PSNs beyond ePSN; returns why it is dropped, or NONE
 *   arrival_is_waiting(qp)            cheap: a packet waits there
 *   arrival_next(qp, turn)            fills *turn with the packet that waits at ePSN by now; false: none does
 *   arrival_release(qp, turn, drop)   it was executed, or dropped; nothing that *turn points to is used any more
 *   arrival_finish_turns(qp, p, now)  all that p, which came at ePSN, gave a turn has had it
 *
 * Before ePSN:
 *
 *   arrival_part(p)                   index of the first packet of the message that it asks for; 0 if its PSN says so
 *   arrival_repeats(qp)               where the engine keeps them, for ur_repath_on_duplicate()
 *   arrival_is_twin(qp, p)            it left together with the last one that came once more
 *   arrival_acknowledge_again(qp, p, now)  SEND or WRITE
 *   arrival_answer_again(qp, p, now)  READ or atomic; false: no such request is remembered, or it may not be answered
 *
 * Thread class: the QP's worker.
 */

/* A packet that came early and has its turn. */
struct turn {
	struct ur_packet p;
	struct ur_reorder_slot *slot; /* mode reorder: what p points into */
	uint64_t arrival_ns;
	bool placed; /* rights and form were checked and the payload was placed on arrival */
};

/* A packet of a SEND or WRITE, or a READ, that may be the one expected (predicted.h). Of messages of one packet, the compiler knows what the opcode says. */
struct candidate {
	bool send, first, last;
	uint32_t off, n; /* bytes of the message before it, bytes that it has */
	struct ur_reth reth;
};

static inline bool is_read(uint32_t op)
{
	return op & UR_OP_READ_REQ;
}

/* READ or atomic: it is answered with more than an ACK. */
static inline bool is_answered(uint32_t op)
{
	return op & (UR_OP_READ_REQ | UR_OP_ATOMIC);
}

/* Takes a receive when it ends; all SENDs do. */
static inline bool needs_receive(uint32_t op)
{
	return op & (UR_OP_SEND | UR_OP_IMM);
}

#endif
