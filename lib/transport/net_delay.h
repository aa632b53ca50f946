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

/* All zeros at first: nothing was asked yet. */
struct ur_net_delay {
	uint8_t state;	       /* enum ur_net_state */
	uint8_t missed;	       /* asks in a row that were not answered */
	uint8_t hops;	       /* of the last sample */
	bool open;	       /* the answer to the last ask may still come */
	struct ur_stamp stamp; /* of the last ask, */
	uint64_t ask_ns;       /* when it left, */
	uint64_t ask_packets;  /* and how many packets had left by then */
	uint64_t ask_bytes;
	uint64_t paid;	    /* packets whose share of asks is used up */
	uint64_t next_ns;   /* nothing is asked before */
	uint64_t on_ns;	    /* since when it is UR_NET_ON */
	uint64_t sample_ns; /* when the last delay came; 0: none */
	uint64_t read_ns;   /* when a response to a READ came last; 0: none */
	uint32_t rtt_ns;    /* of the last sample: the round trip, */
	uint32_t delay_ns;  /* and the delay in switches */
	/* Round trips without the delay in switches: the least of this interval and the last. */
	uint32_t base_ns, base_next_ns;
	uint64_t base_end_ns;
};

#define UR_NET_OFF_NS	  UINT64_C(10000000000) /* until switches are asked again */
#define UR_NET_BLOCKED_NS UINT64_C(60000000000)
#define UR_NET_TRIALS	  4 /* asks without an answer that show a path to be blocked, */
#define UR_NET_MISSES	  3 /* or to need another trial */
#define UR_NET_HOLD_NS	  UINT64_C(20000000) /* and eight round trips: how long a delay serves */
#define UR_NET_NEW_NS	  UINT64_C(10000000) /* for so long it is new */
#define UR_NET_EVERY	  128		     /* packets for each ask */
#define UR_NET_SAVED	  8		     /* asks that may be saved up */
#define UR_NET_BYTES	  16384 /* for each ask while throttled, whatever the packets */

/* What has been sent to the destination. */
struct ur_net_sent {
	uint64_t packets, bytes;
	bool throttled; /* congestion control limits it */
};

/*
 * A round trip of rtt_ns was measured by any packet; `patience_ns` is how long an answer may take. Returns whether an
 * ask should leave now. PACE-NET-03
 */
bool ur_net_delay_on_rtt(struct ur_net_delay *n, uint32_t rtt_ns, uint64_t patience_ns,
			 const struct ur_net_sent *sent, uint64_t now_ns);

/* An ask with this stamp has left. */
void ur_net_delay_on_ask(struct ur_net_delay *n, struct ur_stamp stamp,
			 const struct ur_net_sent *sent, uint64_t now_ns);

enum ur_net_answer {
	UR_NET_NONE,   /* it answers no open ask, or carries no delay */
	UR_NET_SAMPLE, /* *delay_ns is a delay */
	UR_NET_BAD,    /* it is impossible */
};

/*
 * A packet has come that answers the one with stamp `echo`, after `residence` at the peer (stamps). `hops`, `code`: as in
 * the answer. *rtt_ns: the round trip without residence, *delay_ns: that without queues on the way back, of
 * (0, *rtt_ns]. PACE-NET-02
 */
enum ur_net_answer ur_net_delay_on_answer(struct ur_net_delay *n, struct ur_stamp echo,
					  uint32_t residence, uint8_t hops, uint16_t code,
					  uint64_t now_ns, uint32_t *rtt_ns, uint32_t *delay_ns);

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

/* PACE-NET-01. Whether delays of switches are what congestion control hears, and not round trips. */
static inline bool ur_net_delay_serves(const struct ur_net_delay *n, uint64_t now_ns)
{
	uint64_t hold_ns = UR_NET_HOLD_NS + 8 * (uint64_t)n->rtt_ns;

	return n->state == UR_NET_ON && n->sample_ns && now_ns - n->sample_ns < hold_ns &&
	       (!n->read_ns || now_ns - n->read_ns >= hold_ns);
}

/*
 * PACE-NET-05. What congestion control hears of a round trip that another packet than an ask has measured: rtt_ns without
 * what the last ask has shown to be queues on the way back; or 0, nothing. A destination that is open, and has been asked
 * for a while, is not throttled by what may be the way back: its asks tell. But if the open ask takes more than twice as
 * long as the last one, there is a queue, on whichever way, that cannot be waited for.
 */
static inline uint32_t ur_net_delay_of_rtt(const struct ur_net_delay *n, uint32_t rtt_ns,
					   bool throttled, uint64_t now_ns)
{
	uint32_t back_ns = n->rtt_ns - n->delay_ns - n->base_ns;
	/* As all delays that congestion control hears: not longer than the round trip. */
	uint32_t least_ns = n->base_ns < rtt_ns ? n->base_ns : rtt_ns, rest_ns;
	bool overdue = n->open && now_ns - n->ask_ns > 2 * (uint64_t)n->rtt_ns;

	if (!ur_net_delay_serves(n, now_ns))
		return rtt_ns;
	if (!throttled && !overdue && now_ns - n->on_ns >= UR_NET_NEW_NS)
		return 0;
	rest_ns = rtt_ns > back_ns ? rtt_ns - back_ns : 1;
	return rest_ns > least_ns ? rest_ns : least_ns;
}

/* Whether they were when the last one came, and no READ since: what a view shows. */
static inline bool ur_net_delay_served(const struct ur_net_delay *n)
{
	return n->read_ns <= n->sample_ns && ur_net_delay_serves(n, n->sample_ns);
}

#endif
