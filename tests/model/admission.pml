/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiver admission (docs/design/admission.md): SENDERS senders, a pool of at most RECEIVES receives, a
 * network with losses, and peers that die. Pool and status table are the C code of lib/admission, called
 * through admission_model.h. run.sh sets SENDERS (2 or 3), RECEIVES, MODE and MISHAPS.
 *
 * An end state is valid unless sender 0 has an unfinished request.
 */
c_decl {
\#include "admission_model.h"
};

c_track "&world" "sizeof(struct world)" "UnMatched";
c_track "&view" "sizeof(struct view)" "Matched";

#define IDLE	0
#define HELD	1 /* kept back: the request would be refused; or released and not yet sent */
#define FLY	2 /* the request is in flight; a lost one is sent again, and so arrives late */
#define ANSWER	3 /* the answer is in flight */
#define REFUSED 4 /* has a queue class; waits for the grant or the timer */

byte posted = RECEIVES;
bool dead[SENDERS];
byte mishaps = MISHAPS;
/* Sender 0. */
byte state;
bool got;	/* its request has been accepted; it may not know */
bool ungranted; /* the grant to it was lost */
bool lost;	/* the last status to it was lost; the next one is not */
bool notified;	/* a NOTIFY to it is in flight */
byte sender, k; /* scratch, 0 between steps */

#define WAITS (state != IDLE && !got && !dead[0])

/*
 * The sender under observation. It has a status table, and a network that delays and loses the statuses
 * sent to it.
 */
proctype first()
{
	do
	:: atomic { dead[0] && state != FLY && state != ANSWER -> break }
	:: atomic { state == IDLE && !dead[0] ->
		c_code { now.k = may_send(); };
		state = (k -> FLY : HELD);
		k = 0 }
	/* It has been woken. */
	:: atomic { state == HELD && !dead[0] && c_expr { !view.waits } ->
		c_code { leave(); };
		state = FLY }
	/* Its entry expires, because no status arrives any more. */
	:: atomic { state == HELD && !dead[0] && !notified && c_expr { view.waits && !view.stale } ->
		c_code { expire_entry(); } }
	:: atomic { state == FLY ->
		if
		:: got -> skip /* again: the answer was lost */
		:: else ->
			c_code { now.k = arrive(0, now.posted); };
			if
			:: k == 1 -> got = true; posted--
			:: else -> skip
			fi;
			k = 0
		fi;
		ungranted = false;
		c_code { answer(); };
		state = ANSWER }
	:: atomic { state == ANSWER ->
		lost = false;
		c_code { deliver_answer(!now.dead[0]); };
		state = (got -> IDLE : REFUSED);
		got = false }
	:: atomic { state == ANSWER && !lost && !dead[0] ->
		lost = true;
		c_code { deliver_answer(0); };
		state = FLY }
	/* The grant, or the RNR timer. */
	:: atomic { state == REFUSED && !dead[0] ->
		c_code { now.k = may_repeat(); };
		state = (k -> FLY : HELD);
		k = 0 }
	od
}

/*
 * Any other sender. It always has a message, and its request, new or repeated, arrives at any time. This
 * covers the effects of a status table and of a network: sending too early or too late.
 */
proctype other(byte i)
{
end:	do
	:: atomic { !dead[i] ->
		sender = i;
		c_code { now.k = arrive(now.sender, now.posted); };
		if
		:: k == 1 -> posted--
		:: else -> skip
		fi;
		sender = 0;
		k = 0 }
	od
}

proctype refill()
{
end:	do
	:: posted < RECEIVES -> posted++
	od
}

proctype notifier()
{
end:	do
	:: atomic { c_expr { view.stale } -> c_code { notify(); }; notified = true };
		if
		:: atomic { lost = false; c_code { deliver_notify(!now.dead[0]); }; notified = false }
		:: atomic { !lost && !dead[0] -> lost = true; c_code { deliver_notify(0); };
			notified = false }
		fi
	od
}

proctype granter()
{
end:	do
	:: atomic { c_expr { view.grants && now.posted > view.granted_cnt } ->
		c_code { now.k = grant(now.posted); };
		if
		:: lost = lost && k > 0
		:: k == 0 && !dead[0] && !lost -> lost = true; ungranted = true
		fi;
		k = 0 }
	od
}

/* Sender i is dead and has no packet in flight. */
#define GONE(i)	  (dead[i] && (i > 0 || state != FLY))
#define HOLDER(i) (GONE(i) && c_expr { world.refusal[i].queue_class })

/* A grant is revoked because it was not used: it was lost, or the sender is dead. */
proctype regranter()
{
end:	do
	:: atomic { c_expr { view.granted[0] == 1 } && (GONE(0) || (ungranted && state == REFUSED)) ->
		c_code { expire_grant(); } }
	:: atomic { c_expr { view.granted[0] > 1 && now.dead[view.granted[0] - 1] } ->
		c_code { expire_grant(); } }
	od
}

/* The receiver learns of a death, or a refusal expires. */
proctype reaper()
{
	byte silent = 0;
end:	do
	:: atomic { HOLDER(0) -> c_code { forget(0); } }
	:: atomic { HOLDER(1) -> c_code { forget(1); } }
#if SENDERS > 2
	:: atomic { HOLDER(2) -> c_code { forget(2); } }
	:: atomic { HOLDER(0) || HOLDER(1) || HOLDER(2) ->
		silent = (GONE(0) -> 1 : 0) + (GONE(1) -> 2 : 0) + (GONE(2) -> 4 : 0);
#else
	:: atomic { HOLDER(0) || HOLDER(1) ->
		silent = (GONE(0) -> 1 : 0) + (GONE(1) -> 2 : 0);
#endif
		c_code { pass_life(Preaper->silent); };
		silent = 0 }
	od
}

/* At most MISHAPS mishaps: a sender dies, or the refusal of a live one expires. */
proctype mishap()
{
	byte i;
end:	do
	:: atomic { mishaps > 0 ->
		mishaps--;
		select(i : 0 .. SENDERS - 1);
		if
		:: !dead[i] ->
			dead[i] = true;
			if
			:: i == 0 -> c_code { die(); }
			:: else -> skip
			fi
		:: c_expr { world.refusal[Pmishap->i].queue_class } -> c_code { forget(Pmishap->i); }
		:: skip
		fi;
		i = 0 }
	od
}

init
{
	byte i;

	atomic {
		c_code { begin(); };
		run first();
		for (i : 1 .. SENDERS - 1) {
			run other(i)
		}
		i = 0;
		run refill();
#if MODE >= 2
		run notifier();
#endif
#if MODE == 2
		run granter();
		run regranter();
#endif
#if MISHAPS
		run reaper();
		run mishap();
#endif
	}
}

/* A live sender that waits is served eventually. By symmetry one sender stands for all. */
ltl served { [] <> !WAITS }
