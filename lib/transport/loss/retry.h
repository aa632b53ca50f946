/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RETRY_H
#define UR_TRANSPORT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "timer/wheel.h"

/*
 * How long a silent peer, or one without receives, is waited for: the local ACK timeout and its retries
 * (IBA 9.7.6.1.3), the RNR wait and its retries (IBA 9.7.5.2.8). The same in every mode; what is sent again
 * when one of them ends is the loss engine's business.
 *
 * Times are absolute, in ns; UR_NEVER: not running. Thread class: the QP's worker.
 */
struct ur_retry {
	uint64_t ack_deadline_ns;		  /* when the local ACK timeout expires */
	uint64_t rnr_until_ns;			  /* is_waiting: nothing is sent before this time */
	uint8_t retries_spent, rnr_retries_spent; /* since there was progress */
	uint8_t retry_cnt;			  /* configured, */
	uint8_t rnr_retry;			  /* 7: for ever */
	uint8_t timeout; /* local ACK timeout, 4.096 us * 2^timeout; 0: never */
	bool is_waiting; /* an RNR wait runs */
	/* Extended mode: low bits of the scheduler's turns when the local ACK timeout last started afresh. */
	uint16_t turns;
};

enum ur_recovery_verdict {
	UR_RECOVERY_IGNORE, /* nothing to do */
	UR_RECOVERY_REWIND, /* what is oldest is sent again, go-back-N: and what follows; nxt is una */
	UR_RECOVERY_FAILED, /* retries are exhausted: the QP goes to error */
	UR_RECOVERY_REPEAT, /* `repeat` is set: una is to be sent again, alone */
};

/* Nothing runs; what is configured is 0. */
static inline void ur_retry_init(struct ur_retry *t)
{
	*t = (struct ur_retry){.ack_deadline_ns = UR_NEVER};
}

/*
 * retry_cnt and rnr_retry are in [0, 7], timeout in [0, 31]. Both counters start afresh; a timer that
 * runs keeps its deadline unless timeout is 0.
 */
void ur_retry_limits(struct ur_retry *t, uint8_t retry_cnt, uint8_t rnr_retry, uint8_t timeout);

/* RC-TIMER-ACK-01: the local ACK timeout runs only while something is outstanding. */
static inline uint64_t ur_retry_deadline_of(const struct ur_retry *t, bool outstanding,
					    uint64_t now_ns)
{
	return t->timeout && outstanding ? now_ns + (UINT64_C(4096) << t->timeout) : UR_NEVER;
}

/* It starts afresh, or stops. */
static inline void ur_retry_restart(struct ur_retry *t, bool outstanding, uint64_t now_ns)
{
	t->ack_deadline_ns = ur_retry_deadline_of(t, outstanding, now_ns);
}

/* It runs if something is outstanding, and keeps its deadline if it runs already. */
static inline void ur_retry_follow(struct ur_retry *t, bool outstanding, uint64_t now_ns)
{
	if (!outstanding || t->ack_deadline_ns == UR_NEVER)
		ur_retry_restart(t, outstanding, now_ns);
}

/* Local ACK timeouts before the peer counts as dead. */
static inline uint8_t ur_retry_left(const struct ur_retry *t)
{
	return (uint8_t)(t->retry_cnt - t->retries_spent);
}

#define UR_ASKED                                                                                   \
	8 /* RC-RETRY-RTO-03: times in a local ACK timeout that a silent peer is asked at least */

/* RC-RETRY-RTO-03. How long the doubling of a timeout that is rto_ns at first may make it. */
static inline uint64_t ur_retry_silence_ns(const struct ur_retry *t, uint64_t rto_ns)
{
	uint64_t share = (UINT64_C(4096) << t->timeout) / UR_ASKED;

	return !t->timeout ? UR_NEVER : share > rto_ns ? share : rto_ns;
}

/* Whether ur_retry_on_timer() has something to do. */
static inline bool ur_retry_is_due(const struct ur_retry *t, uint64_t now_ns)
{
	return now_ns >= (t->is_waiting ? t->rnr_until_ns : t->ack_deadline_ns);
}

/* The peer lives: retries and, if `outstanding`, the timer start afresh. `una_moved`: it also executed
 * what it was not ready for. */
static inline void ur_retry_progress(struct ur_retry *t, bool outstanding, bool una_moved,
				     uint64_t now_ns)
{
	t->retries_spent = 0;
	if (una_moved) {
		t->rnr_retries_spent = 0;
		t->is_waiting = false;
	}
	ur_retry_restart(t, outstanding, now_ns);
}

/*
 * An RNR NAK of something that is outstanding, outside an RNR wait: one of rnr_retry is spent (7: none).
 * False: none is left (RC-RNR-LIMIT-01). Then ur_retry_wait().
 */
bool ur_retry_spend_rnr(struct ur_retry *t);

/*
 * Nothing is sent for delay_ns. As proof that the peer answers, it refills retry_cnt: otherwise a long wait
 * for a slow receiver on a lossy link would end as a dead peer.
 */
void ur_retry_wait(struct ur_retry *t, uint64_t delay_ns, uint64_t now_ns);

/* RC-TIMER-ACK-02, RC-RETRY-LIMIT-01. The local ACK timeout is over: one of retry_cnt is spent. False: none
 * is left. The timer stands. */
bool ur_retry_spend(struct ur_retry *t);

/*
 * Extended mode. The RNR wait or the local ACK timeout may be over: IGNORE when neither is, REWIND when the
 * oldest is to be sent again, FAILED. *timeout says whether it was the local ACK timeout.
 */
enum ur_recovery_verdict ur_retry_on_timer(struct ur_retry *t, bool outstanding, uint64_t now_ns,
					   bool *timeout);

#endif
