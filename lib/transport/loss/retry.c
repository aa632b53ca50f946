/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/retry.h"

#include "wire/assert.h"

#define RNR_RETRY_FOR_EVER 7

void ur_retry_limits(struct ur_retry *t, uint8_t retry_cnt, uint8_t rnr_retry, uint8_t timeout)
{
	UR_ASSERT(retry_cnt <= 7 && rnr_retry <= 7 && timeout <= 31);
	t->retry_cnt = retry_cnt;
	t->rnr_retry = rnr_retry;
	t->retries_spent = t->rnr_retries_spent = 0;
	t->timeout = timeout;
	if (timeout == 0)
		t->ack_deadline_ns = UR_NEVER;
}

bool ur_retry_spend_rnr(struct ur_retry *t)
{
	t->ack_deadline_ns = UR_NEVER;
	/* RC-RNR-LIMIT-01 */
	if (t->rnr_retry == RNR_RETRY_FOR_EVER)
		return true;
	if (t->rnr_retries_spent == t->rnr_retry)
		return false;
	t->rnr_retries_spent++;
	return true;
}

void ur_retry_wait(struct ur_retry *t, uint64_t delay_ns, uint64_t now_ns)
{
	t->ack_deadline_ns = UR_NEVER;
	t->retries_spent = 0;
	t->is_waiting = true;
	t->rnr_until_ns = now_ns + delay_ns;
}

bool ur_retry_spend(struct ur_retry *t)
{
	/* RC-TIMER-ACK-02 */
	t->ack_deadline_ns = UR_NEVER;
	/* RC-RETRY-LIMIT-01 */
	if (t->retries_spent == t->retry_cnt)
		return false;
	t->retries_spent++;
	return true;
}

enum ur_recovery_verdict ur_retry_on_timer(struct ur_retry *t, bool outstanding, uint64_t now_ns,
					   bool *timeout)
{
	*timeout = false;
	if (!ur_retry_is_due(t, now_ns))
		return UR_RECOVERY_IGNORE;
	if (t->is_waiting) {
		t->is_waiting = false;
	} else {
		*timeout = true;
		if (!ur_retry_spend(t))
			return UR_RECOVERY_FAILED;
	}
	ur_retry_restart(t, outstanding, now_ns);
	return UR_RECOVERY_REWIND;
}
