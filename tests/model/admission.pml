/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiver admission (docs/design/admission.md): SENDERS senders, a pool of at most RECEIVES
 * receives, a network that loses, peers that die. Pool and table are the C code of lib/admission,
 * called through admission_model.h. SENDERS (2 or 3), RECEIVES, MODE and MISHAPS come from run.sh.
 *
 * An end state is valid unless sender 0 is in the middle of something.
 */
c_decl {
\#include "admission_model.h"
};

c_track "&world" "sizeof(struct world)" "UnMatched";
c_track "&view" "sizeof(struct view)" "Matched";

#define IDLE	0
#define HELD	1 /* kept back: the request would be refused */
#define FLY	2 /* the request is on its way; when it is lost it is sent again, and so arrives late */
#define ANSWER	3 /* the answer is on its way */
#define REFUSED 4 /* has a letter; waits for the call or the timer */

byte posted = RECEIVES;
bool dead[SENDERS];
byte mishaps = MISHAPS;
/* Sender 0. */
byte state;
bool got;      /* its request was accepted; it may not know */
bool uncalled; /* the call to it was lost */
bool lost;     /* the last word to it was lost: the next is not */
bool notified; /* a NOTIFY to it is on its way */
byte who, k;   /* scratch, 0 between steps */

#define WAITS (state != IDLE && !got && !dead[0])

/*
 * The sender that is looked at: it has a status table, and a network that delays and loses what it
 * is told.
 */
proctype first()
{
	do
	:: atomic { dead[0] && state != FLY && state != ANSWER -> break }
	:: atomic { state == IDLE && !dead[0] ->
		c_code { now.k = may_send(); };
		state = (k -> FLY : HELD);
		k = 0 }
	/* It was woken. */
	:: atomic { state == HELD && !dead[0] && c_expr { !view.waits } -> state = FLY }
	/* Its entry expires: nothing comes any more. */
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
		uncalled = false;
		c_code { answer(); };
		state = ANSWER }
	:: atomic { state == ANSWER ->
		lost = false;
		c_code { hear_answer(!now.dead[0]); };
		state = (got -> IDLE : REFUSED);
		got = false }
	:: atomic { state == ANSWER && !lost && !dead[0] ->
		lost = true;
		c_code { hear_answer(0); };
		state = FLY }
	/* The call, or the RNR timer. */
	:: atomic { state == REFUSED && !dead[0] -> state = FLY }
	od
}

/*
 * Any other: wants always, and its request, new or again, arrives at any time. That covers a table
 * and a network as well: who knows too little sends too early, who learns too late sends too late.
 */
proctype other(byte i)
{
end:	do
	:: atomic { !dead[i] ->
		who = i;
		c_code { now.k = arrive(now.who, now.posted); };
		if
		:: k == 1 -> posted--
		:: else -> skip
		fi;
		who = 0;
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
		:: atomic { lost = false; c_code { hear_notify(!now.dead[0]); }; notified = false }
		:: atomic { !lost && !dead[0] -> lost = true; c_code { hear_notify(0); };
			notified = false }
		fi
	od
}

proctype caller()
{
end:	do
	:: atomic { c_expr { view.calls && now.posted > view.granted_cnt } ->
		c_code { now.k = call(now.posted); };
		if
		:: lost = lost && k > 0
		:: k == 0 && !dead[0] && !lost -> lost = true; uncalled = true
		fi;
		k = 0 }
	od
}

/* Sender i is dead and nothing of it is on its way. */
#define GONE(i)	  (dead[i] && (i > 0 || state != FLY))
#define HOLDER(i) (GONE(i) && c_expr { world.mark[i].letter })

/* A call was not followed: it was lost, or there is nobody. */
proctype recaller()
{
end:	do
	:: atomic { c_expr { view.called[0] == 1 } && (GONE(0) || (uncalled && state == REFUSED)) ->
		c_code { recall(); } }
	:: atomic { c_expr { view.called[0] > 1 && now.dead[view.called[0] - 1] } ->
		c_code { recall(); } }
	od
}

/* The receiver learns of a death, or a mark's life passes. */
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

/* What goes wrong, at most MISHAPS times: a sender dies, a living one's mark expires. */
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
		:: c_expr { world.mark[Pmishap->i].letter } -> c_code { forget(Pmishap->i); }
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
#if MODE == 2
		run notifier();
		run caller();
		run recaller();
#endif
#if MISHAPS
		run reaper();
		run mishap();
#endif
	}
}

/* Whoever lives and waits is served in the end. By symmetry one sender stands for all. */
ltl served { [] <> !WAITS }
