/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RTT_H
#define UR_TRANSPORT_RTT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/stamp.h"

/*
 * Round-trip times of one queue pair and what follows from them (RFC 6298; the least round trip as
 * in RFC 8985). All times in stamps of 16 ns (wire/ext.h) unless a name says otherwise.
 *
 * Unlike RFC 6298 a sample comes with every ACK, hundreds a round trip. So the deviation grows at
 * once and shrinks slowly: else it would have forgotten a stall of the peer before the next one.
 *
 * Thread class: the QP's worker.
 */
struct ur_rtt {
	uint32_t srtt;		/* smoothed, [1, UR_RTT_MAX]; 0: no sample yet */
	uint32_t rttvar;	/* mean deviation, [0, UR_RTT_MAX] */
	uint32_t kept;		/* how long the peer may keep what it answers, [0, UR_RTT_MAX] */
	uint32_t min;		/* least of this interval and the one before; UINT32_MAX: none */
	uint32_t min_next;	/* least of this interval; UINT32_MAX: none */
	struct ur_stamp min_at; /* when the interval ends */
};

#define UR_RTT_MAX	    (UINT32_C(1) << 28) /* 4.3 s: longer round trips count as this */
#define UR_RTT_MIN_INTERVAL UINT32_C(62500000)	/* 1 s */

#define UR_RTO_MIN_NS	  UINT64_C(1000000)
#define UR_RTO_MAX_NS	  UINT64_C(200000000)
#define UR_RTO_INITIAL_NS UINT64_C(20000000) /* before the first sample */

void ur_rtt_init(struct ur_rtt *r);

static inline void ur_rtt_note_least(struct ur_rtt *r, uint32_t rtt, struct ur_stamp now)
{
	if (r->srtt == 0) {
		r->min_at = ur_stamp_add(now, UR_RTT_MIN_INTERVAL);
	} else if (ur_stamp_le(r->min_at, now)) {
		r->min = r->min_next;
		r->min_next = UINT32_MAX;
		r->min_at = ur_stamp_add(now, UR_RTT_MIN_INTERVAL);
	}
	if (rtt < r->min)
		r->min = rtt;
	if (rtt < r->min_next)
		r->min_next = rtt;
}

/*
 * A packet stamped `stamp` was answered at `now` after the peer had kept it for `residence`.
 * Samples that cannot be (older than half the stamps' range, residence longer than the round trip)
 * are ignored. Returns the sample, [1, UR_RTT_MAX], or 0: it was ignored.
 */
static inline uint32_t ur_rtt_sample(struct ur_rtt *r, struct ur_stamp stamp, uint32_t residence,
				     struct ur_stamp now)
{
	uint32_t away = ur_stamp_since(now, stamp), rtt, dev;
	int32_t err;

	/* EXT-SEL-RTT-01 */
	if (away > INT32_MAX || residence > away)
		return 0;
	rtt = away - residence;
	if (rtt == 0)
		rtt = 1;
	if (rtt > UR_RTT_MAX)
		rtt = UR_RTT_MAX;
	/* EXT-SEL-RTT-03: an answer takes as long, though that says nothing of the network. */
	if (residence > UR_RTT_MAX)
		residence = UR_RTT_MAX;
	r->kept = residence > r->kept ? residence : r->kept - (r->kept - residence) / 16;
	ur_rtt_note_least(r, rtt, now);
	if (r->srtt == 0) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
		return rtt;
	}
	err = (int32_t)(rtt - r->srtt);
	dev = err < 0 ? -(uint32_t)err : (uint32_t)err;
	r->srtt += (uint32_t)(err / 8);
	if (dev > r->rttvar)
		r->rttvar += (dev - r->rttvar) / 4;
	else
		r->rttvar -= (r->rttvar - dev) / 16;
	return rtt;
}

/*
 * EXT-SEL-RTT-04. The answer with that residence was the first of several to a request. The others give no sample, and
 * wait for later turns of the peer: allow for half as long again.
 */
static inline void ur_rtt_expect_more(struct ur_rtt *r, uint32_t residence)
{
	uint32_t kept = residence < UR_RTT_MAX / 2 ? residence + residence / 2 : UR_RTT_MAX;

	if (kept > r->kept)
		r->kept = kept;
}

/*
 * EXT-SEL-RTT-02. Of all that was stamped up to `last`, `stamp` is younger than `newest`: it lies
 * in (newest, last]. Nothing else may be a sample once `newest` was one, or a peer that repeats an old
 * answer makes round trips as long as it likes. Stamps wrap; what comes after a pause of any length
 * counts.
 */
static inline bool ur_rtt_is_fresh(struct ur_stamp stamp, struct ur_stamp newest,
				   struct ur_stamp last)
{
	return ur_stamp_since(last, stamp) < ur_stamp_since(last, newest);
}

/*
 * SRTT + 4 RTTVAR + what the peer takes, doubled `backoff` times, within [UR_RTO_MIN_NS,
 * UR_RTO_MAX_NS].
 */
static inline uint64_t ur_rtt_rto_ns(const struct ur_rtt *r, unsigned backoff)
{
	uint64_t rto = (uint64_t)r->srtt + 4 * (uint64_t)r->rttvar + r->kept;

	rto = r->srtt ? rto << UR_STAMP_SHIFT : UR_RTO_INITIAL_NS;

	if (rto < UR_RTO_MIN_NS)
		rto = UR_RTO_MIN_NS;
	/* 2^8 times the least is beyond the most. */
	rto <<= backoff < 8 ? backoff : 8;
	return rto < UR_RTO_MAX_NS ? rto : UR_RTO_MAX_NS;
}

#endif
