/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/recovery.h"

#include "timer/wheel.h"
#include "wire/assert.h"
#include "wire/ext.h"

/* RC-RETRY-RTO-04. A timeout is doubled once, stays so as often as this, and is then doubled each time. */
#define DOUBLED_ONCE 4
#define BACKOFF_MAX  (DOUBLED_ONCE + 6)

#define ANSWER_MIN_NS UINT64_C(50000)

#define ALONE_UNKNOWN  2  /* probes that show a peer to go back N */
#define ALONE_BUFFERS  3  /* probes after which a peer that buffered is given up */
#define BEYOND_UNKNOWN 2  /* probes that show it to buffer */
#define GAPS_GBN       32 /* after so many rewinds it is looked at again, then after twice as many */
#define LOOKS_MAX      5

#define RUN_MAX (UINT32_C(1) << 20) /* packets: many more than any window */

void ur_recovery_init(struct ur_recovery *r, struct ur_psn first, uint32_t window)
{
	UR_ASSERT(window >= 1 && window < UR_PSN_WINDOW);
	*r = (struct ur_recovery){
		.una = first,
		.nxt = first,
		.max = first,
		.ackreq_end = first,
		.window = window,
		.flight = window < UR_FLIGHT_FIRST ? window : UR_FLIGHT_FIRST,
		.retry.ack_deadline_ns = UR_NEVER,
		.rto_deadline_ns = UR_NEVER,
	};
	ur_rtt_init(&r->rtt);
}

void ur_recovery_select(struct ur_recovery *r)
{
	r->selective = true;
}

void ur_recovery_limits(struct ur_recovery *r, uint8_t retry_cnt, uint8_t rnr_retry,
			uint8_t timeout)
{
	ur_retry_limits(&r->retry, retry_cnt, rnr_retry, timeout);
	if (timeout == 0)
		r->rto_deadline_ns = UR_NEVER;
}

static void restart_timer(struct ur_recovery *r, uint64_t now_ns)
{
	ur_retry_restart(&r->retry, !ur_psn_eq(r->una, r->max), now_ns);
}

static unsigned doublings(unsigned backoff)
{
	if (backoff <= DOUBLED_ONCE)
		return backoff ? 1 : 0;
	return backoff - (DOUBLED_ONCE - 1);
}

static uint64_t rto_ns(const struct ur_recovery *r)
{
	uint64_t first = r->first_rto_ns ? r->first_rto_ns : UR_RTO_INITIAL_NS;
	uint64_t rto = first << doublings(r->backoff), most = ur_retry_silence_ns(&r->retry, first);

	most = most < UR_RTO_MAX_NS ? most : UR_RTO_MAX_NS;
	return rto < most ? rto : most;
}

/*
 * RC-RETRY-RTO-01. It runs while an answer is awaited. With retry_cnt 0 nothing may be sent
 * again, and go-back-N without a sample waits for the local ACK timeout.
 */
static void restart_rto(struct ur_recovery *r, uint64_t now_ns)
{
	bool runs = ur_psn_lt(r->una, r->ackreq_end) && r->retry.timeout &&
		    (r->selective || (r->first_rto_ns && r->retry.retry_cnt));

	r->rto_deadline_ns = runs ? now_ns + rto_ns(r) : UR_NEVER;
}

void ur_recovery_on_response(struct ur_recovery *r, uint64_t now_ns)
{
	if (r->rto_deadline_ns != UR_NEVER)
		restart_rto(r, now_ns);
}

void ur_recovery_start_rto(struct ur_recovery *r, uint64_t now_ns)
{
	restart_rto(r, now_ns);
}

void ur_recovery_on_repeat(struct ur_recovery *r, uint32_t psns, uint64_t now_ns)
{
	UR_ASSERT(r->repeat && psns >= 1);
	r->repeat = false;
	r->repeated = r->una;
	r->repeated_ns = now_ns;
	r->probing = true;
	r->probe_end = ur_psn_add(r->una, psns);
	r->probe_max = r->max;
	if (ur_psn_lt(r->ackreq_end, r->probe_end))
		r->ackreq_end = r->probe_end;
	restart_rto(r, now_ns);
	/* REORDER-PEER-01: what else is sent to a peer that drops it would be lost. */
	r->hold = r->selective && r->peer == UR_PEER_UNKNOWN && r->by_nak &&
		  ur_psn_lt(r->probe_end, r->max) && r->rto_deadline_ns != UR_NEVER;
}

/*
 * una has passed the packet that was repeated, or reached its end. Something beyond that packet had
 * come before it, or there had been no NAK: a peer that goes back N has dropped it, and
 * acknowledges it never. But it does acknowledge what came between, if the packet was only late.
 */
static void probe_answered(struct ur_recovery *r)
{
	r->hold = false;
	if (ur_psn_lt(r->una, r->probe_max) && ur_psn_eq(r->una, r->probe_end))
		return; /* as much as either kind of peer would say */
	r->probing = false;
	if (ur_psn_eq(r->una, r->probe_end) || !r->selective || !r->by_nak)
		return;
	/* REORDER-PEER-02 */
	r->alone = 0;
	r->beyond++;
	if (ur_psn_le(r->probe_max, r->una) || r->beyond >= BEYOND_UNKNOWN) {
		r->peer = UR_PEER_BUFFERS;
		r->beyond = r->looks = 0;
	}
}

/* RC-REQ-FLIGHT-01: a twentieth of what gets through between two losses, more where they are rare.
 */
static uint32_t flight_of(const struct ur_recovery *r, uint32_t run)
{
	uint32_t flight = run * 3 >> 6;

	if (run >= UINT32_C(1) << 12)
		return r->window;
	if (!r->run_avg)
		flight = UR_FLIGHT_FIRST + run;
	if (flight < run * run >> 12)
		flight = run * run >> 12;
	if (flight < UR_FLIGHT_MIN)
		flight = UR_FLIGHT_MIN;
	return flight < r->window ? flight : r->window;
}

/* The peer dropped what was in flight. */
static void narrow_flight(struct ur_recovery *r)
{
	if (r->run_avg)
		r->run_avg += (uint32_t)((int32_t)(r->run - r->run_avg) / 4);
	else
		r->run_avg = r->run ? r->run : 1;
	r->run = 0;
	r->flight = flight_of(r, r->run_avg);
}

bool ur_recovery_on_ack(struct ur_recovery *r, struct ur_psn una, uint64_t now_ns)
{
	UR_ASSERT(ur_psn_lt(r->una, una) && ur_psn_le(una, r->max));
	r->run += (uint32_t)ur_psn_diff(una, r->una);
	if (__builtin_expect(r->run > RUN_MAX, 0))
		r->run = RUN_MAX;
	if (__builtin_expect(r->flight < r->window, 0) && (int32_t)(r->run - r->run_avg) > 0)
		r->flight = flight_of(r, r->run);
	r->una = una;
	r->rewound = false;
	r->repeat = false;
	r->backoff = 0;
	if (r->timing && ur_psn_le(r->timed, una)) {
		r->timing = false;
		r->sample = ur_rtt_sample(&r->rtt, ur_stamp(r->timed_ns), 0, ur_stamp(now_ns));
		r->first_rto_ns = (uint32_t)ur_rtt_rto_ns(&r->rtt, 0);
	}
	if (__builtin_expect(r->probing, 0) && ur_psn_le(r->probe_end, una))
		probe_answered(r);
	/* RC-RETRY-PROGRESS-01 */
	ur_retry_progress(&r->retry, !ur_psn_eq(una, r->max), true, now_ns);
	restart_rto(r, now_ns);
	if (ur_psn_le(una, r->nxt))
		return false;
	r->nxt = una;
	r->reads_out = 0;
	return true;
}

static void rewind_to_una(struct ur_recovery *r, uint64_t now_ns)
{
	r->nxt = r->una;
	r->reads_out = 0;
	r->rewound_ns = now_ns;
	r->repeat = r->probing = r->hold = r->timing = false;
	restart_timer(r, now_ns);
	restart_rto(r, now_ns);
}

static enum ur_recovery_verdict repeat_una(struct ur_recovery *r, bool by_nak)
{
	r->timing = false;
	/* It is what is sent next anyway. */
	if (ur_psn_eq(r->nxt, r->una))
		return UR_RECOVERY_IGNORE;
	r->repeat = true;
	r->by_nak = by_nak;
	return UR_RECOVERY_REPEAT;
}

/* Whether what comes now can have been caused by what was sent at that time. */
static bool is_answer(const struct ur_recovery *r, uint64_t sent_ns, uint64_t now_ns)
{
	uint64_t trip = r->rtt.srtt ? (uint64_t)r->rtt.min << UR_STAMP_SHIFT : 0;

	return now_ns - sent_ns >= trip;
}

/*
 * RC-RETRY-GAP-02. In this pass nothing was sent yet that could show the packet at una to be
 * missing, or too short ago: what came speaks of an earlier pass.
 */
static bool is_stale(const struct ur_recovery *r, uint64_t now_ns)
{
	if (!r->rewound_ns)
		return false;
	if (!is_answer(r, r->rewound_ns, now_ns))
		return true;
	return ur_psn_diff(r->nxt, r->una) == 1 && ur_psn_lt(r->nxt, r->max);
}

static bool stopped_at_probe(const struct ur_recovery *r)
{
	return r->probing && ur_psn_eq(r->una, r->probe_end) && ur_psn_lt(r->una, r->probe_max);
}

bool ur_recovery_is_alone(const struct ur_recovery *r, uint64_t now_ns)
{
	return __builtin_expect(stopped_at_probe(r), 0) && is_answer(r, r->repeated_ns, now_ns);
}

/* REORDER-PEER-03: packet after packet is missing. True when everything is to be sent again. */
static bool judge_peer(struct ur_recovery *r)
{
	if (stopped_at_probe(r) && r->by_nak) {
		r->alone++;
		r->beyond = 0;
	}
	r->probing = r->hold = false;
	if (r->peer == UR_PEER_UNKNOWN && r->alone >= ALONE_UNKNOWN) {
		r->peer = UR_PEER_GBN;
		r->gaps = 0;
		r->looks += r->looks < LOOKS_MAX;
	} else if (r->peer == UR_PEER_BUFFERS && r->alone >= ALONE_BUFFERS) {
		r->peer = UR_PEER_UNKNOWN;
		r->alone = 0;
		return true;
	}
	if (r->peer == UR_PEER_GBN && r->gaps++ == GAPS_GBN << (r->looks - 1)) {
		r->peer = UR_PEER_UNKNOWN;
		r->alone = 0;
	}
	return r->peer == UR_PEER_GBN;
}

enum ur_recovery_verdict ur_recovery_gap(struct ur_recovery *r, uint64_t now_ns)
{
	if (ur_psn_eq(r->una, r->max) || r->retry.is_waiting || ur_psn_eq(r->nxt, r->una) ||
	    is_stale(r, now_ns))
		return UR_RECOVERY_IGNORE;
	if (r->selective) {
		/* A NAK that was sent before una was repeated says nothing new. */
		if (r->repeat || r->rewound ||
		    (r->probing && ur_psn_eq(r->una, r->repeated) &&
		     !is_answer(r, r->repeated_ns, now_ns)))
			return UR_RECOVERY_IGNORE;
		if (!judge_peer(r))
			return repeat_una(r, true);
	} else {
		/* RC-RETRY-GAP-01: a burst of responses to one loss causes one rewind. */
		if (r->rewound)
			return UR_RECOVERY_IGNORE;
		if (r->retry.retry_cnt == 0)
			return UR_RECOVERY_FAILED;
	}
	r->rewound = true;
	narrow_flight(r);
	rewind_to_una(r, now_ns);
	return UR_RECOVERY_REWIND;
}

enum ur_recovery_verdict ur_recovery_reask(struct ur_recovery *r)
{
	if (ur_psn_eq(r->una, r->max) || r->retry.is_waiting || r->repeat)
		return UR_RECOVERY_IGNORE;
	return repeat_una(r, false);
}

uint64_t ur_recovery_answer_ns(const struct ur_recovery *r)
{
	uint64_t ns = ((uint64_t)r->rtt.srtt + 4 * (uint64_t)r->rtt.rttvar) << UR_STAMP_SHIFT;

	if (!r->rtt.srtt)
		return UR_RTO_MIN_NS;
	return ns > ANSWER_MIN_NS ? ns : ANSWER_MIN_NS;
}

enum ur_recovery_verdict ur_recovery_rnr(struct ur_recovery *r, uint64_t delay_ns, uint64_t now_ns)
{
	if (ur_psn_eq(r->una, r->max) || r->retry.is_waiting)
		return UR_RECOVERY_IGNORE;
	r->rto_deadline_ns = UR_NEVER;
	if (!ur_retry_spend_rnr(&r->retry))
		return UR_RECOVERY_FAILED;
	ur_retry_wait(&r->retry, delay_ns, now_ns);
	r->rewound = false;
	r->repeat = r->probing = r->hold = r->timing = false;
	/* REORDER-RNR-01: what followed is kept; una will do. */
	if (r->selective && r->peer == UR_PEER_BUFFERS)
		return UR_RECOVERY_IGNORE;
	r->nxt = r->una;
	r->reads_out = 0;
	return UR_RECOVERY_REWIND;
}

static enum ur_recovery_verdict rnr_wait_over(struct ur_recovery *r, uint64_t now_ns)
{
	r->retry.is_waiting = false;
	restart_timer(r, now_ns);
	restart_rto(r, now_ns);
	if (r->selective && r->peer == UR_PEER_BUFFERS)
		return repeat_una(r, true);
	return UR_RECOVERY_REWIND;
}

enum ur_recovery_verdict ur_recovery_on_timer(struct ur_recovery *r, uint64_t now_ns, bool *timeout)
{
	*timeout = false;
	if (now_ns < ur_recovery_deadline(r))
		return UR_RECOVERY_IGNORE;
	if (r->retry.is_waiting)
		return rnr_wait_over(r, now_ns);
	if (now_ns >= r->rto_deadline_ns) {
		r->backoff += r->backoff < BACKOFF_MAX;
		restart_rto(r, now_ns);
		if (now_ns < r->retry.ack_deadline_ns) {
			r->rewound = false;
			/* The answer to what was repeated is over: nothing else had come. */
			if (stopped_at_probe(r))
				return ur_recovery_gap(r, now_ns);
			return repeat_una(r, false);
		}
	}
	*timeout = true;
	r->rewound = false;
	if (!ur_retry_spend(&r->retry))
		return UR_RECOVERY_FAILED;
	if (!ur_recovery_goes_back(r)) {
		restart_timer(r, now_ns);
		return repeat_una(r, false);
	}
	/* It may be dead, or stand still: a few packets ask as well as many. */
	narrow_flight(r);
	rewind_to_una(r, now_ns);
	return UR_RECOVERY_REWIND;
}

enum ur_recovery_verdict ur_recovery_go_back(struct ur_recovery *r, uint64_t now_ns)
{
	rewind_to_una(r, now_ns);
	return UR_RECOVERY_REWIND;
}
