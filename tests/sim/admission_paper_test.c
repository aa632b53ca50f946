/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <criterion/criterion.h>

#include "pool_world.h"

/*
 * Mode paper, what its sender may send: after a NOTIFY has arrived, no request leaves that the receiver
 * would refuse because of its status. Messages still arrive once, in order, whatever is lost.
 */
#define MASK_BITS 12

static enum sim_verdict check(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			      const struct ur_packet *p)
{
	(void)frame, (void)len;
	pool_check_request(s->hook_arg, from, p, true);
	return SIM_PASS;
}

/* ADM-PAPER-01, ADM-PAPER-02, ADM-PAPER-03 */
Test(admission_paper, no_request_leaves_that_the_status_refuses)
{
	uint64_t waits = 0, requests = 0, overdue = 0;

	for (uint64_t seed = 0; seed < 40; seed++) {
		struct pool_world *w =
			pool_world_new("paper.check", seed, UR_ADM_PAPER, POOL_SENDERS, 0);
		const struct ur_counters *cnt = sim_counters(&w->s->ep[POOL_HOST]);

		w->s->hook = check;
		pool_world_run(w);
		cr_assert_gt(w->requests, POOL_SENDERS * POOL_MESSAGES);
		cr_assert_gt(w->srq.srq.adm.cnt.changes, POOL_MESSAGES);
		waits += sim_counters(&w->s->ep[0])->adm_waits;
		requests += w->requests;
		overdue += w->overdue;
		sim_sleep(w->s, SIM_MS(1));
		cr_assert_eq(cnt->adm_notifies_sent, POOL_PEERS * w->srq.srq.adm.cnt.changes);
		cr_assert_eq(cnt->adm_grants_sent, 0);
		cr_assert_eq(cnt->adm_expired, 0);
		pool_world_free(w);
	}
	cr_assert_gt(waits, 1000);
	printf("%llu requests, %llu of them held back for a whole cycle\n",
	       (unsigned long long)requests, (unsigned long long)overdue);
	cr_assert_lt(overdue, requests / 100);
}

/* ---- losses ---- */

static enum sim_verdict mask(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			     const struct ur_packet *p)
{
	struct pool_world *w = s->hook_arg;
	unsigned n = w->lies;

	(void)frame, (void)len;
	pool_check_request(w, from, p, false);
	w->lies++;
	return n < MASK_BITS && (w->mask >> n & 1) ? SIM_DROP : SIM_PASS;
}

/* All 4096 ways to lose some of twelve packets, from packet `first` on: requests, answers, NOTIFYs. */
static void lose_all(unsigned first)
{
	uint64_t worst_ns = 0;

	for (uint64_t m = 0; m < 1u << MASK_BITS; m++) {
		struct pool_world *w = pool_world_new("paper.mask", m, UR_ADM_PAPER, 3, 0);

		w->s->hook = mask;
		w->mask = m;
		w->lies = 0u - first;
		pool_world_run_few(w, 4);
		cr_assert_gt(w->requests, 0);
		worst_ns = w->worst_ns > worst_ns ? w->worst_ns : worst_ns;
		pool_world_free(w);
	}
	printf("worst time to service %.3f ms\n", (double)worst_ns / 1e6);
	/* A few local ACK timeouts, or a status that expires. */
	cr_assert_lt(worst_ns, SIM_MS(100));
}

/* ADM-PAPER-02, ADM-PAPER-04, ADM-CLASS-03: no rnr_retry is left to spend */
Test(admission_paper, every_message_arrives_whichever_of_the_first_packets_are_lost)
{
	lose_all(0);
}

Test(admission_paper, every_message_arrives_whichever_packets_of_a_full_cycle_are_lost)
{
	lose_all(30);
}
