/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_PASS_H
#define UR_TRANSPORT_PASS_H

#include <stdbool.h>

#include "wire/psn.h"

/*
 * RC-RESP-ACK-08. What an ACK names while the peer may be repeating what was executed. It does that
 * after a NAK, when it goes back N although what followed the hole had been kept, and after a
 * timeout, when an ACK was lost. Linux' rxe does not stand an ACK of the last packet of a message
 * of which it has repeated only a part: it takes the packet for acknowledged and does not complete
 * the message. When the next ACK is lost it waits for ever; when it goes back once more, all that
 * follows is one PSN off. So the ACK names the packet before, until the peer has repeated the last
 * one as well or has sent something new. A peer that repeats just one packet has to ask twice for a
 * lost ACK, a few times; then that is known.
 *
 * Thread class: the QP's worker.
 */
struct ur_pass {
	bool on;	     /* the peer may be repeating what was executed */
	bool after_nak;	     /* a NAK made it go back; what it had sent before may still come */
	bool repeats;	     /* it has repeated more than `first` */
	bool held;	     /* the last ACK named less than was executed */
	uint8_t alone;	     /* times in a row that it repeated one packet, [0, UR_PASS_ALONE] */
	struct ur_psn first; /* on: what it repeats from, */
	struct ur_psn at;    /* how far it has come, as far as is known, */
	struct ur_psn last;  /* and the newest SEND or WRITE executed */
};

#define UR_PASS_ALONE  3   /* after so many times the peer is known to repeat just one packet */
#define UR_PASS_MIN    2   /* PSNs; a peer is hardly ever seen between a packet and the next */
#define UR_PASS_WINDOW 128 /* PSNs that rxe has under way */

/* Everything up to `data` is executed, and the peer has just sent `first` again, as far as is
 * known. */
static inline void ur_pass_begin(struct ur_pass *p, struct ur_psn first, struct ur_psn data,
				 bool after_nak)
{
	*p = (struct ur_pass){
		.on = true,
		.after_nak = after_nak,
		.alone = p->alone,
		.first = first,
		.at = first,
		.last = data,
	};
}

/*
 * The hole was filled, and what was kept behind it was executed. `after_nak`: it had been reported;
 * else it was late, or filled by a peer that repeats.
 */
static inline void ur_pass_filled(struct ur_pass *p, struct ur_psn hole, struct ur_psn data,
				  bool after_nak)
{
	if (after_nak) {
		ur_pass_begin(p, hole, data, true);
	} else if (p->on && ur_psn_diff(hole, p->last) == 1) {
		p->at = hole;
		p->last = data;
	}
}

/* What was executed ends with `data` now: something new, unless it was sent before the NAK came. */
static inline void ur_pass_follow(struct ur_pass *p, struct ur_psn data)
{
	if (ur_psn_eq(p->last, data))
		return;
	p->on = p->after_nak && !p->repeats && ur_psn_diff(data, p->first) < UR_PASS_WINDOW;
	p->last = data;
}

/*
 * Whether the SEND or WRITE packet at psn, which came once more, begins another pass of the peer: it is not
 * beyond the first packet of the pass under way, or is its newest packet again, or is `data`, the newest executed,
 * alone, which does not count as a part of a pass. Before ur_pass_repeated().
 */
static inline bool ur_pass_is_another(const struct ur_pass *p, struct ur_psn psn,
				      struct ur_psn data)
{
	return !p->on || ur_psn_le(psn, p->first) || ur_psn_eq(psn, p->at) ||
	       (ur_psn_eq(psn, data) && !p->repeats);
}

/*
 * The SEND or WRITE packet at psn came once more; what was executed ends with `data`. `acked`: an
 * ACK of that has left, or the peer cannot miss it.
 */
static inline void ur_pass_repeated(struct ur_pass *p, struct ur_psn psn, struct ur_psn data,
				    bool acked)
{
	if (p->on)
		ur_pass_follow(p, data);
	if (!p->on || ur_psn_lt(psn, p->at)) {
		if (acked)
			ur_pass_begin(p, psn, data, false);
	} else if (ur_psn_eq(psn, data) && !p->repeats) {
		/* Before the peer has heard an ACK it is the network's duplicate. */
		if (p->held)
			p->at = psn;
		p->alone += p->held && p->alone < UR_PASS_ALONE;
	} else if (ur_psn_lt(p->at, psn)) {
		p->at = psn;
		p->repeats = true;
		p->alone = 0;
	}
}

/* What an ACK names when `data` is the newest executed; `end`: of a message of several packets. */
static inline struct ur_psn ur_pass_named(struct ur_pass *p, struct ur_psn data, bool end)
{
	if (__builtin_expect(!p->on, 1))
		return data;
	ur_pass_follow(p, data);
	p->held =
		p->on && end && p->alone < UR_PASS_ALONE && ur_psn_diff(data, p->at) >= UR_PASS_MIN;
	return p->held ? ur_psn_add(data, UR_PSN_MASK) : data;
}

#endif
