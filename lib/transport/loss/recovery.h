/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RECOVERY_H
#define UR_TRANSPORT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/loss/retry.h"
#include "transport/loss/rtt.h"
#include "wire/psn.h"

/*
 * Retransmission in standard mode is decided here, and only here. The requester tells what happened
 * (sent, acked, NAK, RNR, timeout) and asks which PSN to send next; it maps PSNs to WQEs itself.
 *
 * Go-back-N (IBA 9.7.5.1): after a loss everything from `una` is sent again. Selective (mode reorder,
 * docs/design/loss.md): una alone is sent again, as long as the peer keeps what followed; whether
 * it does is found out by looking how far the answer to such a packet goes.
 *
 * Whatever the mode, una alone is sent again when the peer was silent for a time that follows from
 * measured round trips. That costs no retry; local ACK timeouts do.
 *
 * Thread class: the QP's worker.
 */
enum ur_recovery_peer {
	UR_PEER_UNKNOWN,
	UR_PEER_BUFFERS, /* keeps what comes beyond a gap */
	UR_PEER_GBN,	 /* drops it */
};

struct ur_recovery {
	struct ur_retry retry; /* first: every loss engine has it there */
	struct ur_psn una;     /* the oldest PSN that is not acknowledged */
	struct ur_psn nxt;     /* the PSN to send next: [una, nxt) sent in this pass */
	struct ur_psn max; /* [una, max) sent at least once; nxt lies in [una, max] or equals max */
	uint32_t window;   /* PSNs that may be unacknowledged, >= 1 */
	bool rewound;	   /* went back to `una` already; wait for progress or the timeout */

	/* una alone, again. */
	bool selective;		 /* mode reorder */
	uint8_t peer;		 /* enum ur_recovery_peer; meaningful if selective */
	bool repeat;		 /* una is to be sent again now, nxt stays */
	bool by_nak;		 /* the repeat pending or made last answers a sequence NAK */
	bool probing;		 /* [.., probe_end) was repeated; what it brings is not known yet */
	bool hold;		 /* nothing new is sent before the probe is answered */
	uint8_t alone;		 /* probes in a row that acknowledged nothing beyond themselves */
	uint8_t beyond;		 /* probes in a row after which some, not all, was acknowledged */
	uint8_t looks;		 /* how often the peer was found to be UR_PEER_GBN, [0, 5] */
	uint16_t gaps;		 /* rewinds since it was found so last */
	struct ur_psn repeated;	 /* una when it was repeated last, at repeated_ns */
	struct ur_psn probe_end; /* one past what was repeated last */
	struct ur_psn probe_max; /* max at that time */
	uint64_t repeated_ns;
	uint64_t rewound_ns; /* when it went back last; 0: never */

	/*
	 * RC-REQ-FLIGHT-01. What is in flight when something is lost goes again, if the peer goes back N:
	 * so there is less of it the more is lost. In packets of SENDs and WRITEs.
	 */
	uint32_t flight;    /* as many may be in flight, [UR_FLIGHT_MIN, window] */
	uint32_t reads_out; /* PSNs of READs and atomics in [una, nxt) */
	uint32_t run;	    /* acknowledged since the last rewind */
	uint32_t run_avg;   /* the same between rewinds, on average; 0: there was none */

	/* Round trips, and the timeout that follows from them. */
	struct ur_rtt rtt;
	struct ur_psn ackreq_end; /* one past the newest packet that asks for an answer */
	bool timing;	 /* a round trip is measured: from timed_ns until `timed` is acknowledged */
	uint8_t backoff; /* timeouts in a row, which make the next one longer; [0, 10] */
	uint32_t first_rto_ns; /* the timeout, not doubled, of the samples so far; 0: none */
	uint32_t sample;       /* the last round trip measured, until it is taken; 0: none */
	struct ur_psn timed;
	uint64_t timed_ns;
	uint64_t rto_deadline_ns; /* UR_NEVER: not running */
};

/* Forgets everything, limits included. window is in [1, UR_PSN_WINDOW). */
void ur_recovery_init(struct ur_recovery *r, struct ur_psn first, uint32_t window);
/* Mode reorder; nothing is in flight. */
void ur_recovery_select(struct ur_recovery *r);
/* As ur_retry_limits(). */
void ur_recovery_limits(struct ur_recovery *r, uint8_t retry_cnt, uint8_t rnr_retry,
			uint8_t timeout);

/* The peer drops what comes beyond a gap, as far as is known. */
static inline bool ur_recovery_goes_back(const struct ur_recovery *r)
{
	return !r->selective || r->peer == UR_PEER_GBN;
}

/* PSNs in flight, [una, max). */
static inline uint32_t ur_recovery_in_flight(const struct ur_recovery *r)
{
	return (uint32_t)ur_psn_diff(r->max, r->una);
}

#define UR_FLIGHT_MIN	3
#define UR_FLIGHT_FIRST 64 /* before anything was acknowledged */

/* SENDs and WRITEs that may be sent from nxt on before too many are in flight. */
static inline uint32_t ur_recovery_flight_left(const struct ur_recovery *r)
{
	uint32_t used = (uint32_t)ur_psn_diff(r->nxt, r->una) - r->reads_out;

	return used < r->flight ? r->flight - used : 0;
}

/* The READ or atomic request told to ur_recovery_on_send() just now took `psns` PSNs. */
static inline void ur_recovery_on_read(struct ur_recovery *r, uint32_t psns)
{
	r->reads_out += psns;
}

/* una is about to pass `psns` PSNs of READs and atomics. */
static inline void ur_recovery_pass_read(struct ur_recovery *r, uint32_t psns)
{
	r->reads_out -= psns < r->reads_out ? psns : r->reads_out;
	if (r->selective)
		r->run -= psns;
}

/* PSNs that may be sent from nxt on before the window is full. */
static inline uint32_t ur_recovery_credit(const struct ur_recovery *r)
{
	uint32_t used = (uint32_t)ur_psn_diff(r->nxt, r->una);

	return used < r->window ? r->window - used : 0;
}

/* Whether the PSN to send next was sent before. */
static inline bool ur_recovery_is_resend(const struct ur_recovery *r)
{
	return !ur_psn_eq(r->nxt, r->max);
}

/* The requester sent a packet that takes `psns` PSNs from nxt on (READ requests take several). */
static inline void ur_recovery_on_send(struct ur_recovery *r, uint32_t psns, uint64_t now_ns)
{
	r->nxt = ur_psn_add(r->nxt, psns);
	if (ur_psn_lt(r->max, r->nxt))
		r->max = r->nxt;
	if (r->retry.ack_deadline_ns == UR_NEVER)
		ur_retry_restart(&r->retry, true, now_ns);
}

/* An answer is awaited: starts the timeout that follows from measured round trips. */
void ur_recovery_start_rto(struct ur_recovery *r, uint64_t now_ns);

/* The packet told to ur_recovery_on_send() just now asks for an answer; `again`: it went before. */
static inline void ur_recovery_on_ackreq(struct ur_recovery *r, bool again, uint64_t now_ns)
{
	if (ur_psn_lt(r->ackreq_end, r->nxt))
		r->ackreq_end = r->nxt;
	/* REORDER-RTT-01: what was sent twice does not tell which was answered. */
	if (!again && !r->timing) {
		r->timing = true;
		r->timed = r->nxt;
		r->timed_ns = now_ns;
	}
	if (r->rto_deadline_ns == UR_NEVER)
		ur_recovery_start_rto(r, now_ns);
}

/* The packet at una was sent again as `repeat` demands, asking for an answer; it takes `psns` PSNs. */
void ur_recovery_on_repeat(struct ur_recovery *r, uint32_t psns, uint64_t now_ns);

/* The newest packet is sent again, because nothing asked for its ACK. It has one PSN, [nxt - 1, nxt). */
static inline void ur_recovery_step_back(struct ur_recovery *r)
{
	r->nxt = ur_psn_add(r->nxt, UR_PSN_MASK);
}

/*
 * Everything before `una` is acknowledged; una is newer than before and at most max. Retries start
 * afresh. True when nxt had to move because what it pointed to is acknowledged.
 */
bool ur_recovery_on_ack(struct ur_recovery *r, struct ur_psn una, uint64_t now_ns);

/*
 * RC-RETRY-RTO-02. The peer sends responses, though not the one at una: it is not silent, and the answer to
 * what was sent again waits behind them. The local ACK timeout goes on.
 */
void ur_recovery_on_response(struct ur_recovery *r, uint64_t now_ns);

/*
 * A sequence NAK or an implied one (a response beyond una): the packet at una is missing. It shows
 * that the peer lives, so it costs no retry (unless retry_cnt is 0 in go-back-N: then nothing is tried
 * again and the verdict is FAILED). REWIND, or REPEAT to a peer that may buffer. IGNORE when nothing
 * is unacknowledged, an RNR wait runs, una is what is sent next anyway, a rewind was made since the
 * last progress or timeout, or it can only speak of what was sent before the last rewind or repeat.
 */
enum ur_recovery_verdict ur_recovery_gap(struct ur_recovery *r, uint64_t now_ns);

/*
 * An ACK came, or a response to a peer that goes back N. Whether it acknowledges just what was repeated,
 * though more had been sent before: what follows is missing as well, and that is a gap.
 */
bool ur_recovery_is_alone(const struct ur_recovery *r, uint64_t now_ns);

/* The response at una is missing, while its request was executed: REPEAT, or IGNORE as above. */
enum ur_recovery_verdict ur_recovery_reask(struct ur_recovery *r);

/* How long the answer to a packet may take. */
uint64_t ur_recovery_answer_ns(const struct ur_recovery *r);

/*
 * An RNR NAK for una: wait delay_ns, then send again. IGNORE during such a wait and when nothing is
 * unacknowledged. It costs one of rnr_retry (7: nothing) and, as proof that the peer answers, refills
 * retry_cnt: otherwise a long wait for a slow receiver on a lossy link would end as a dead peer.
 */
enum ur_recovery_verdict ur_recovery_rnr(struct ur_recovery *r, uint64_t delay_ns, uint64_t now_ns);

/* The RNR wait, else the sooner of the two timeouts; UR_NEVER when none runs. */
static inline uint64_t ur_recovery_deadline(const struct ur_recovery *r)
{
	if (r->retry.is_waiting)
		return r->retry.rnr_until_ns;
	return r->rto_deadline_ns < r->retry.ack_deadline_ns ? r->rto_deadline_ns
							     : r->retry.ack_deadline_ns;
}
/*
 * The deadline passed (IGNORE when it did not). REWIND or REPEAT also at the end of an RNR wait.
 * *timeout says whether it was the local ACK timeout. A dead peer costs retry_cnt + 1 of those
 * (IBA 9.7.6.1.3).
 */
enum ur_recovery_verdict ur_recovery_on_timer(struct ur_recovery *r, uint64_t now_ns,
					      bool *timeout);

/* The packet at una was sent again alone since una got there. */
static inline bool ur_recovery_has_repeated(const struct ur_recovery *r)
{
	return r->probing && ur_psn_eq(r->repeated, r->una);
}

/* Mode reorder, after silence: everything from una on is to be sent again. Always REWIND. */
enum ur_recovery_verdict ur_recovery_go_back(struct ur_recovery *r, uint64_t now_ns);

#endif
