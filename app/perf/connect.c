/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <string.h>

/*
 * Set-ups and tear-downs: all queue pairs are connected, then all are disconnected and destroyed,
 * and again. With one queue pair that is one connection after the other.
 */
#define STUCK_NS   60000000000ull
#define SETTLE_NS  20000000000ull
#define REFUSED_NS 20000000ull /* between attempts at a server that had no free queue pair */

static void wait_below(struct perf_client *c, uint32_t in_transit)
{
	uint64_t until = perf_now_ns() + STUCK_NS;

	while (c->in_transit > in_transit && perf_client_alive(c)) {
		perf_link_events(c);
		if (perf_now_ns() > until)
			perf_session_fail(&c->session,
					  "%u connections are neither made nor refused",
					  c->in_transit);
	}
}

/*
 * Closed queue pairs hold their slots through time-wait, here and at the server. When there are no
 * free slots, the only remedy is to wait.
 */
static void wait_for_slots(struct perf_client *c)
{
	uint64_t pause = c->refused != 0 ? perf_now_ns() + REFUSED_NS : 0;
	uint64_t until = perf_now_ns() + STUCK_NS;
	struct perf_objects now;

	c->refused = 0;
	do {
		perf_link_events(c);
		perf_endpoint_objects(c->ep, &now);
		if (perf_now_ns() > until)
			perf_session_fail(&c->session, "no queue pair leaves time-wait");
	} while (perf_client_alive(c) && perf_interrupted == 0 &&
		 (perf_now_ns() < pause ||
		  (now.qps_time_wait > 0 &&
		   now.qps + now.qps_time_wait >= (uint64_t)c->ep->device.max_qp)));
}

static uint64_t up_and_down(struct perf_client *c, uint32_t cnt, uint32_t gen)
{
	uint64_t made = 0;

	for (uint32_t i = 0; i < cnt && perf_client_alive(c); i++) {
		wait_below(c, PERF_LINK_TRANSIT_MAX - 1);
		wait_for_slots(c);
		if (perf_client_alive(c))
			perf_link_connect(c, i, gen);
	}
	wait_below(c, 0);
	for (uint32_t i = 0; i < cnt && perf_client_alive(c); i++) {
		wait_below(c, PERF_LINK_TRANSIT_MAX - 1);
		if (c->links[i] != PERF_LINK_UP)
			continue;
		made++;
		perf_link_disconnect(c, i);
	}
	wait_below(c, 0);
	for (uint32_t i = 0; i < cnt && perf_client_alive(c); i++)
		perf_session_close_qp(&c->session, i);
	return made;
}

uint64_t perf_connect_run(struct perf_client *c)
{
	uint64_t start = perf_now_ns(), now = start, made = 0;
	uint64_t until = c->o->duration_s > 0 ? start + (uint64_t)(c->o->duration_s * 1e9) : 0;
	uint64_t total = c->o->iters != 0 ? c->o->iters : UINT64_MAX, qps = c->session.params.qps;

	for (uint32_t gen = 0; perf_client_alive(c) && perf_interrupted == 0; gen++) {
		if (made >= total || (until != 0 && now >= until))
			break;
		made += up_and_down(c, (uint32_t)(total - made < qps ? total - made : qps), gen);
		now = perf_now_ns();
		perf_progress_update(&c->progress, now, made, 0, c->session.errors, NULL);
	}
	return made;
}

void perf_connect_settle(struct perf_client *c, const struct perf_objects *before)
{
	uint64_t until = perf_now_ns() + SETTLE_NS;
	struct perf_objects now;

	do {
		perf_link_events(c);
		perf_endpoint_objects(c->ep, &now);
		if (now.qps_time_wait <= before->qps_time_wait &&
		    now.cm_connections <= before->cm_connections)
			break;
	} while (perf_client_alive(c) && perf_now_ns() < until);
}
