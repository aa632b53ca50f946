/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

static int timer_cmp(const struct cm_id *a, const struct cm_id *b)
{
	if (a->deadline_ns != b->deadline_ns)
		return a->deadline_ns < b->deadline_ns ? -1 : 1;
	return a == b ? 0 : a < b ? -1 : 1;
}

RB_GENERATE_INTERNAL(cm_timers, cm_id, timer, timer_cmp, __attribute__((unused)) static)

uint64_t cm_exp_ns(unsigned n, unsigned min, unsigned max)
{
	n = n < min ? min : n > max ? max : n;
	return 4096ull << n;
}

/* CM-AMPLIFY-01 */
static bool is_unproven(const struct cm_id *id)
{
	return !id->active && !id->proven;
}

uint64_t cm_repeat_ns(const struct cm_id *id)
{
	uint64_t most = cm_exp_ns(CM_UNPROVEN_EXP, CM_EXP_MIN, CM_EXP_MAX);

	return is_unproven(id) && id->timeout_ns > most ? most : id->timeout_ns;
}

uint8_t cm_retries(const struct cm_id *id)
{
	return is_unproven(id) && id->max_retries > CM_UNPROVEN_RETRIES ? CM_UNPROVEN_RETRIES
									: id->max_retries;
}

void cm_timer_stop(struct ur_cm *cm, struct cm_id *id)
{
	if (!id->timed)
		return;
	cm_timers_RB_REMOVE(&cm->timers, id);
	id->timed = false;
}

void cm_timer_set(struct ur_cm *cm, struct cm_id *id, uint64_t deadline_ns)
{
	cm_timer_stop(cm, id);
	id->deadline_ns = deadline_ns;
	id->timed = true;
	cm_timers_RB_INSERT(&cm->timers, id);
}

uint64_t ur_cm_next_deadline(const struct ur_cm *cm)
{
	const struct cm_id *at = RB_ROOT(&cm->timers);

	if (!at)
		return UINT64_MAX;
	while (RB_LEFT(at, timer))
		at = RB_LEFT(at, timer);
	return at->deadline_ns;
}

/* CM-LIFE-01: the caller has not answered a peer's request. */
static void give_up_request(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	struct ur_cm_event ev = cm_event(id, UR_CM_EV_UNREACHABLE);
	struct ur_cm_id handle = {id->handle};

	cm->counters.expired++;
	ev.final = true;
	if (id->sidr)
		ur_cm_sidr_rep(cm, handle, UR_CM_SIDR_REJECT, ur_qpn(0), 0, NULL, 0, now);
	else
		ur_cm_reject(cm, handle, UR_CM_REJ_TIMEOUT, NULL, 0, now);
	cm_emit(cm, &ev);
}

/* All retries of id->last stayed unanswered. */
static void give_up(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	struct ur_cm_event ev = cm_event(id, UR_CM_EV_UNREACHABLE);

	cm->counters.timeouts++;
	switch (id->state) {
	case UR_CM_ST_REQ_SENT:
		cm_tx_id_rej(cm, id, UR_CM_ABOUT_OTHER, UR_CM_REJ_TIMEOUT, NULL, 0);
		ev.final = true;
		cm_set_state(cm, id, UR_CM_ST_FREE);
		break;
	case UR_CM_ST_SIDR_REQ_SENT:
		ev.final = true;
		cm_set_state(cm, id, UR_CM_ST_FREE);
		break;
	case UR_CM_ST_REP_SENT:
		cm_tx_id_rej(cm, id, UR_CM_ABOUT_OTHER, UR_CM_REJ_TIMEOUT, NULL, 0);
		cm_enter_timewait(cm, id, now);
		break;
	default:
		UR_ASSERT(id->state == UR_CM_ST_DREQ_SENT);
		ev.type = UR_CM_EV_DISCONNECTED;
		ev.timed_out = true;
		cm_enter_timewait(cm, id, now);
		break;
	}
	cm_emit(cm, &ev);
}

static void expire_one(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	struct ur_cm_event ev;

	cm_timer_stop(cm, id);
	switch (id->state) {
	case UR_CM_ST_TIMEWAIT:
		ev = cm_event(id, UR_CM_EV_TIMEWAIT_EXIT);
		ev.final = true;
		cm_set_state(cm, id, UR_CM_ST_FREE);
		cm_emit(cm, &ev);
		break;
	case UR_CM_ST_LINGER:
		cm_set_state(cm, id, UR_CM_ST_FREE);
		break;
	case UR_CM_ST_REQ_RCVD:
	case UR_CM_ST_SIDR_REQ_RCVD:
		give_up_request(cm, id, now);
		break;
	default:
		if (!id->retries) {
			give_up(cm, id, now);
			break;
		}
		id->retries--;
		cm->counters.retries++;
		cm_tx_again(cm, id);
		cm_timer_set(cm, id, now + cm_repeat_ns(id));
		break;
	}
}

void ur_cm_expire(struct ur_cm *cm, uint64_t now)
{
	struct cm_id *id;

	/* The loop ends: expire_one() sets only deadlines later than now. */
	while ((id = cm_timers_RB_MINMAX(&cm->timers, RB_NEGINF)) && id->deadline_ns <= now)
		expire_one(cm, id, now);
}
