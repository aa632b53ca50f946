/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_NET_DELAY_H
#define UR_TRANSPORT_NET_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/stamp.h"

/*
 * The delay toward one destination as switches stamp it (docs/design/delay.md): when to ask, whether the path lets what
 * is stamped pass, and what an answer means. An ask is a packet with D; one is open at a time. The caller sends it, and
 * reports what comes back.
 *
 * Everything in an answer is what switches on the path, and the peer, have chosen to say. PACE-NET-02: no delay is
 * longer than the round trip of its packet, which is measured here.
 *
 * Thread class: the worker.
 */
enum ur_net_state {
	UR_NET_OFF,	/* not asked yet, or no switch on the path stamps */
	UR_NET_TRIAL,	/* does the path let stamped packets pass? */
	UR_NET_ON,	/* it does, and switches stamp */
	UR_NET_BLOCKED, /* it does not */
};

/* What remains of round trips without delays in switches: the least of this interval and the last. */
struct ur_net_base {
	uint32_t ns, next_ns;
	uint64_t end_ns; /* of the interval; 0: there was none */
};

/* All zeros at first: nothing was asked yet. */
struct ur_net_delay {
	uint8_t state;	       /* enum ur_net_state */
	uint8_t missed;	       /* asks in a row that were not answered */
	uint8_t hops;	       /* of the last sample */
	bool open;	       /* the answer to the last ask may still come */
	bool both;	       /* the last sample has the delay of the way back as well */
	bool asked_throttled;  /* the destination was throttled at the last ask */
	struct ur_stamp stamp; /* of the last ask, */
	uint64_t ask_ns;       /* when it left, */
	uint64_t ask_bytes;    /* and how many bytes had left by then */
	uint64_t paid; /* packets whose share of asks is used up, up to UR_NET_SAVED shares ahead */
	uint64_t next_ns;      /* nothing is asked before */
	uint64_t wary_ns;      /* since when congestion control is wary; 0: it is not */
	uint64_t throttled_ns; /* when it throttled last; 0: it has not */
	uint64_t sample_ns;    /* when the last delay came; 0: none */
	uint64_t read_ns;      /* when a response to a READ came last; 0: none */
	uint32_t rtt_ns;       /* of the last sample: the round trip, */
	uint32_t delay_ns;     /* the delay in switches, */
	uint32_t base_ns;      /* and the least that remains of round trips without it */
	/* Of round trips as they are; without the delay there; without that of both ways. */
	struct ur_net_base whole, there, round;
};

#define UR_NET_OFF_NS	  UINT64_C(10000000000) /* until switches are asked again */
#define UR_NET_BLOCKED_NS UINT64_C(60000000000)
#define UR_NET_TRIALS	  4 /* asks without an answer that show a path to be blocked, */
#define UR_NET_MISSES	  3 /* or to need another trial */
#define UR_NET_HOLD_NS	  UINT64_C(20000000) /* and eight round trips: how long a delay serves */
#define UR_NET_AFTER_NS                                                                            \
	UINT64_C(10000000) /* for so long a destination that was throttled may be so again soon */
#define UR_NET_EVERY 128   /* packets for each ask */
#define UR_NET_SAVED 8	   /* asks that may be saved up, as they are at first */
#define UR_NET_WARY  2 /* round trips in which congestion control stays wary before the first ask */
#define UR_NET_BYTES 16384 /* for each ask while throttled, whatever the packets */

/* What has been sent to the destination. */
struct ur_net_sent {
	uint64_t packets, bytes;
	bool throttled; /* congestion control limits it, */
	bool wary;	/* or delays have come near to that */
};

/*
 * A round trip of rtt_ns was measured by any packet, which left away_ns ago, and congestion control has heard of it;
 * `patience_ns` is how long an answer may take. Returns whether an ask should leave now. PACE-NET-03
 */
bool ur_net_delay_on_rtt(struct ur_net_delay *n, uint32_t rtt_ns, uint64_t away_ns,
			 uint64_t patience_ns, const struct ur_net_sent *sent, uint64_t now_ns);

/* An ask with this stamp leaves. Returns whether its answer is to ask for the way back. PACE-NET-06 */
bool ur_net_delay_on_ask(struct ur_net_delay *n, struct ur_stamp stamp,
			 const struct ur_net_sent *sent, uint64_t now_ns);

enum ur_net_answer {
	UR_NET_NONE,   /* it answers no open ask, or carries no delay */
	UR_NET_SAMPLE, /* *delay_ns is a delay */
	UR_NET_BAD,    /* it is impossible */
};

/* What switches have stamped on one way. */
struct ur_net_way {
	uint8_t hops;  /* 0: none has; UR_DELAY_VOID: the delay is not to be used */
	uint16_t code; /* of the delay, wire/delay.h */
};

struct ur_net_echo {
	struct ur_stamp stamp;	       /* of the packet that is answered */
	uint32_t residence;	       /* how long the peer had it, in stamps */
	struct ur_net_way there, back; /* as the answer says, and as it came itself */
};

/*
 * An answer has come. *rtt_ns: the round trip without residence, *delay_ns: the base and the delays of the ways that
 * were asked for, of (0, *rtt_ns]. PACE-NET-02
 */
enum ur_net_answer ur_net_delay_on_answer(struct ur_net_delay *n, const struct ur_net_echo *echo,
					  uint64_t now_ns, uint32_t *rtt_ns, uint32_t *delay_ns);

/*
 * PACE-NET-07. The ask with this stamp is answered, by an answer that has no room for the delay: it is neither a sample nor missed.
 * Whether it was the open one.
 */
static inline bool ur_net_delay_on_no_room(struct ur_net_delay *n, struct ur_stamp stamp)
{
	if (!n->open || !ur_stamp_eq(stamp, n->stamp))
		return false;
	n->open = false;
	return true;
}

/* A response to a READ gave a round trip: what is congested may be the way back. */
static inline void ur_net_delay_on_read(struct ur_net_delay *n, uint64_t now_ns)
{
	n->read_ns = now_ns;
}

/* A round trip is longer, by a quarter, than that of the last ask. */
static inline bool ur_net_delay_is_longer(const struct ur_net_delay *n, uint32_t rtt_ns)
{
	return rtt_ns > (uint64_t)n->rtt_ns + n->rtt_ns / 4;
}

static inline bool ur_net_delay_is_recent(const struct ur_net_delay *n, uint64_t ns,
					  uint64_t now_ns)
{
	return ns && now_ns - ns < UR_NET_HOLD_NS + 8 * (uint64_t)n->rtt_ns;
}

/* Data is read from the destination: it comes the way back. */
static inline bool ur_net_delay_reads(const struct ur_net_delay *n, uint64_t now_ns)
{
	return ur_net_delay_is_recent(n, n->read_ns, now_ns);
}

/* PACE-NET-01, PACE-NET-06. Whether delays of switches are what congestion control hears, and not round trips. */
static inline bool ur_net_delay_serves(const struct ur_net_delay *n, uint64_t now_ns)
{
	return n->state == UR_NET_ON && ur_net_delay_is_recent(n, n->sample_ns, now_ns) &&
	       (n->both || !ur_net_delay_reads(n, now_ns));
}

/*
 * PACE-NET-05. What congestion control hears of a round trip that another packet than an ask has measured: rtt_ns without
 * what the last ask has shown to be no delay in switches that counts; or 0, nothing. A destination that is open, and was not
 * throttled lately, is not throttled by what may be the way back: its asks tell. But if the open ask takes more than twice as
 * long as the last one, there is a queue, on whichever way, that cannot be waited for.
 */
static inline uint32_t ur_net_delay_of_rtt(const struct ur_net_delay *n, uint32_t rtt_ns,
					   bool throttled, uint64_t now_ns)
{
	uint32_t back_ns = n->rtt_ns - n->delay_ns - n->base_ns;
	/* As all delays that congestion control hears: not longer than the round trip. */
	uint32_t least_ns = n->base_ns < rtt_ns ? n->base_ns : rtt_ns, rest_ns;
	bool overdue = n->open && now_ns - n->ask_ns > 2 * (uint64_t)n->rtt_ns;
	bool lately = n->throttled_ns && now_ns - n->throttled_ns < UR_NET_AFTER_NS;

	if (!ur_net_delay_serves(n, now_ns))
		return rtt_ns;
	if (!throttled && !overdue && !lately)
		return 0;
	rest_ns = rtt_ns > back_ns ? rtt_ns - back_ns : 1;
	return rest_ns > least_ns ? rest_ns : least_ns;
}

/* Whether they were when the last one came, and no READ since that it says nothing of: what a view shows. */
static inline bool ur_net_delay_served(const struct ur_net_delay *n)
{
	return (n->both || n->read_ns <= n->sample_ns) && ur_net_delay_serves(n, n->sample_ns);
}

#endif
