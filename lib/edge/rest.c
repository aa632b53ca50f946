/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/rest.h"

void ur_rest_init(struct ur_rest *r, bool single_cpu)
{
	*r = (struct ur_rest){
		.spin_ns = single_cpu ? 0 : UR_REST_SPIN_NS,
	};
	ur_rest_again(r);
}

bool ur_rest_is_left_alone(struct ur_rest_worker *w, uint64_t due_ns, uint64_t last_ns,
			   bool contended)
{
	bool moved = last_ns != w->own_ns, absent;

	if (moved)
		w->application_ns = w->own_ns = last_ns;
	if (contended)
		w->application_ns = due_ns;
	absent = ur_rest_may_work(due_ns, w->application_ns);
	if (moved)
		w->doubt_ns = due_ns;
	w->in_doubt = absent && (moved || (w->in_doubt && !ur_rest_may_work(due_ns, w->doubt_ns)));
	return absent && !w->in_doubt;
}

/* Returns the sleep and doubles it for the next time. */
static uint64_t grow(uint64_t *sleep_ns)
{
	uint64_t now = *sleep_ns;

	*sleep_ns = now * 2 < UR_REST_MAX_NS ? now * 2 : UR_REST_MAX_NS;
	return now;
}

uint64_t ur_rest_stand_back(struct ur_rest *r)
{
	return grow(&r->stand_ns);
}

/*
 * Only a packet shortens the sleeps again: otherwise a program that computes between two polls would be disturbed
 * each time.
 */
uint64_t ur_rest_after(struct ur_rest *r, uint64_t now_ns, unsigned packets)
{
	uint64_t gap_ns = now_ns - r->packet_ns;

	if (packets) {
		/* The answer to a packet is not another one. */
		if (gap_ns >= UR_REST_ANSWER_NS)
			r->spins = r->packet_ns && gap_ns < UR_REST_DENSE_NS;
		r->packet_ns = now_ns;
		ur_rest_again(r);
		return 0;
	}
	if (r->spins && now_ns < r->packet_ns + r->spin_ns)
		return 0;
	return grow(&r->step_ns);
}
