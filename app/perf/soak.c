/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

/*
 * While the traffic runs on all others, one queue pair at a time is drained, its last
 * messages are checked at the server, it is disconnected and destroyed, and a new one of the next
 * generation replaces it.
 */
#define PAUSE_NS 20000000ull	/* between two of them */
#define LONG_NS	 30000000000ull /* a step that takes this long has failed */

static void next_state(struct perf_soak *soak, enum perf_soak_state state)
{
	soak->state = state;
	soak->since_ns = perf_now_ns();
}

static void pick(struct perf_client *c, struct perf_soak *soak)
{
	soak->random = perf_mix64(soak->random + PERF_PATTERN_STEP);
	soak->idx = (uint32_t)((soak->random >> 32) * c->session.params.qps >> 32);
	c->session.qps[soak->idx].paused = true;
	next_state(soak, PERF_SOAK_DRAINING);
}

static void reopen(struct perf_client *c, struct perf_soak *soak)
{
	uint32_t gen = c->session.qps[soak->idx].gen + 1;
	bool queued = c->session.qps[soak->idx].queued;

	perf_session_close_qp(&c->session, soak->idx);
	if (perf_link_connect(c, soak->idx, gen))
		next_state(soak, PERF_SOAK_OPENING);
	c->session.qps[soak->idx].queued = queued;
}

void perf_soak_step(struct perf_client *c, struct perf_soak *soak)
{
	struct perf_session *s = &c->session;
	struct perf_qp *q = &s->qps[soak->idx];
	uint64_t waited = s->now_ns > soak->since_ns ? s->now_ns - soak->since_ns : 0;

	switch (soak->state) {
	case PERF_SOAK_IDLE:
		if (waited > PAUSE_NS)
			pick(c, soak);
		return;
	case PERF_SOAK_DRAINING:
		if (!perf_traffic_qp_drained(s, q))
			break;
		if (perf_client_ends(c, soak->idx, 1)) {
			perf_link_disconnect(c, soak->idx);
			next_state(soak, PERF_SOAK_CLOSING);
		}
		return;
	case PERF_SOAK_CLOSING:
		if (c->links[soak->idx] != PERF_LINK_DOWN)
			break;
		reopen(c, soak);
		return;
	case PERF_SOAK_OPENING:
		if (c->links[soak->idx] != PERF_LINK_UP)
			break;
		c->churns++;
		perf_traffic_kick(s, q);
		next_state(soak, PERF_SOAK_IDLE);
		return;
	}
	if (waited > LONG_NS)
		perf_session_fail(s, "queue pair %u could not be closed and opened again in time",
				  soak->idx);
}
