/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/recovery.h"

#include "timer/wheel.h"
#include "wire/assert.h"

#define ACK_TIMEOUT_UNIT_NS UINT64_C(4096) /* IBA 9.7.6.1.3 */
#define RNR_RETRY_FOR_EVER  7

void ur_recovery_init(struct ur_recovery *r, struct ur_psn first, uint32_t window)
{
	UR_ASSERT(window >= 1 && window < UR_PSN_WINDOW);
	*r = (struct ur_recovery){
		.una = first,
		.nxt = first,
		.max = first,
		.window = window,
		.ack_deadline_ns = UR_NEVER,
	};
}

void ur_recovery_limits(struct ur_recovery *r, uint8_t retry_cnt, uint8_t rnr_retry,
			uint8_t timeout)
{
	UR_ASSERT(retry_cnt <= 7 && rnr_retry <= 7 && timeout <= 31);
	r->retry_cnt = r->retries = retry_cnt;
	r->rnr_retry = r->rnr_retries = rnr_retry;
	r->timeout = timeout;
	if (timeout == 0)
		r->ack_deadline_ns = UR_NEVER;
}

/* RC-TIMER-ACK-01: it runs only while something is unacknowledged. */
static void restart_timer(struct ur_recovery *r, uint64_t now_ns)
{
	r->ack_deadline_ns = r->timeout && !ur_psn_eq(r->una, r->max)
				     ? now_ns + (ACK_TIMEOUT_UNIT_NS << r->timeout)
				     : UR_NEVER;
}

void ur_recovery_sent(struct ur_recovery *r, uint32_t psns, uint64_t now_ns)
{
	UR_ASSERT(psns >= 1 && psns < UR_PSN_WINDOW);
	r->nxt = ur_psn_add(r->nxt, psns);
	if (ur_psn_lt(r->max, r->nxt))
		r->max = r->nxt;
	UR_ASSERT(ur_psn_le(r->una, r->nxt));
	if (r->ack_deadline_ns == UR_NEVER)
		restart_timer(r, now_ns);
}

bool ur_recovery_acked(struct ur_recovery *r, struct ur_psn una, uint64_t now_ns)
{
	UR_ASSERT(ur_psn_lt(r->una, una) && ur_psn_le(una, r->max));
	r->una = una;
	/* RC-RETRY-PROGRESS-01 */
	r->retries = r->retry_cnt;
	r->rnr_retries = r->rnr_retry;
	r->rewound = false;
	/* What the peer was not ready for is acknowledged after all. */
	r->rnr_until_ns = 0;
	restart_timer(r, now_ns);
	if (ur_psn_le(una, r->nxt))
		return false;
	r->nxt = una;
	return true;
}

static void rewind_to_una(struct ur_recovery *r, uint64_t now_ns)
{
	r->nxt = r->una;
	restart_timer(r, now_ns);
}

enum ur_recovery_verdict ur_recovery_gap(struct ur_recovery *r, uint64_t now_ns)
{
	/* RC-RETRY-GAP-01: a burst of responses to one loss causes one rewind. */
	if (ur_psn_eq(r->una, r->max) || r->rnr_until_ns || r->rewound || ur_psn_eq(r->nxt, r->una))
		return UR_RECOVERY_IGNORE;
	if (r->retry_cnt == 0)
		return UR_RECOVERY_FAILED;
	r->rewound = true;
	rewind_to_una(r, now_ns);
	return UR_RECOVERY_REWIND;
}

enum ur_recovery_verdict ur_recovery_rnr(struct ur_recovery *r, uint64_t delay_ns, uint64_t now_ns)
{
	if (ur_psn_eq(r->una, r->max) || r->rnr_until_ns)
		return UR_RECOVERY_IGNORE;
	r->ack_deadline_ns = UR_NEVER;
	/* RC-RNR-LIMIT-01 */
	if (r->rnr_retry != RNR_RETRY_FOR_EVER) {
		if (r->rnr_retries == 0)
			return UR_RECOVERY_FAILED;
		r->rnr_retries--;
	}
	r->retries = r->retry_cnt;
	r->nxt = r->una;
	r->rewound = false;
	/* 0 would mean "not waiting". */
	r->rnr_until_ns = now_ns + delay_ns ? now_ns + delay_ns : 1;
	return UR_RECOVERY_REWIND;
}

uint64_t ur_recovery_deadline(const struct ur_recovery *r)
{
	return r->rnr_until_ns ? r->rnr_until_ns : r->ack_deadline_ns;
}

enum ur_recovery_verdict ur_recovery_expired(struct ur_recovery *r, uint64_t now_ns, bool *timeout)
{
	*timeout = false;
	if (now_ns < ur_recovery_deadline(r))
		return UR_RECOVERY_IGNORE;
	if (r->rnr_until_ns) {
		r->rnr_until_ns = 0;
		restart_timer(r, now_ns);
		return UR_RECOVERY_REWIND;
	}
	/* RC-TIMER-ACK-02 */
	*timeout = true;
	r->rewound = false;
	r->ack_deadline_ns = UR_NEVER;
	/* RC-RETRY-LIMIT-01 */
	if (r->retries == 0)
		return UR_RECOVERY_FAILED;
	r->retries--;
	rewind_to_una(r, now_ns);
	return UR_RECOVERY_REWIND;
}

/* ---- extended mode ---- */

void ur_recovery_follow(struct ur_recovery *r, struct ur_psn una, struct ur_psn max,
			uint64_t now_ns)
{
	r->una = una;
	r->nxt = r->max = max;
	if (ur_psn_eq(una, max) || r->ack_deadline_ns == UR_NEVER)
		restart_timer(r, now_ns);
}

void ur_recovery_progress(struct ur_recovery *r, bool una_moved, uint64_t now_ns)
{
	r->retries = r->retry_cnt;
	if (una_moved) {
		r->rnr_retries = r->rnr_retry;
		r->rnr_until_ns = 0;
	}
	restart_timer(r, now_ns);
}
