/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "cm_pair.h"

/* Connections that end or are refused, and the further life of their ids. */

Test(cm_reject, carries_reason_and_private_data)
{
	struct pair *p = pair_new(2);

	p->s[B].accepts = false;
	p->s[B].rejects = true;
	pair_connect(p);
	pair_settle(p);
	cr_expect_eq(SAW(p, A, REJ_RCVD), 1);
	cr_expect(p->s[A].rej_reason == UR_CM_REJ_CONSUMER && p->s[A].finals == 1);
	cr_expect_arr_eq(p->s[A].private_data, "no\0", 3);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_reject, a_lost_rej_is_sent_again_without_a_second_child)
{
	for (uint64_t mask = 0; mask < 1 << 8; mask++) {
		struct pair *p = pair_new(2);

		p->drop = mask;
		p->s[B].accepts = false;
		p->s[B].rejects = true;
		pair_connect(p);
		pair_settle(p);
		cr_assert_eq(SAW(p, B, REQ_RCVD), 1, "drop %#lx", mask);
		cr_assert_eq(SAW(p, A, REJ_RCVD), 1, "drop %#lx", mask);
		cr_assert_eq(p->s[A].rej_reason, UR_CM_REJ_CONSUMER);
		cr_assert_eq(pair_in_use(p), 0);
		pair_free(p);
	}
}

Test(cm_reject, a_rep_may_be_rejected)
{
	for (uint64_t mask = 0; mask < 1 << 8; mask++) {
		struct pair *p = pair_new(2);

		p->drop = mask;
		p->s[A].readies = false;
		p->s[A].frees = true;
		pair_connect(p);
		pair_settle(p);
		cr_assert_eq(SAW(p, A, REP_RCVD), 1, "drop %#lx", mask);
		cr_assert_eq(SAW(p, B, REJ_RCVD), 1, "drop %#lx", mask);
		cr_assert_eq(p->s[B].rej_about, UR_CM_ABOUT_REP);
		cr_assert_eq(SAW(p, B, TIMEWAIT_EXIT), 1);
		cr_assert_eq(pair_in_use(p), 0);
		pair_free(p);
	}
}

/* CM-PATIENCE-01 */
Test(cm_reject, a_patient_peer_waits_for_a_listener)
{
	for (uint8_t patience = 0; patience < 3; patience++) {
		struct pair *p = pair_new(2);
		struct ur_cm_connect_attr attr = connect_attr(p, A);

		attr.service_id = SERVICE + 1;
		attr.patience = patience;
		pair_connect_attr(p, A, &attr);
		pair_settle(p);
		cr_expect_eq(ur_cm_counters(p->s[B].cm)->no_service, patience + 1u);
		cr_expect_eq(SAW(p, A, REJ_RCVD), 1, "then it is told");
		cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_INV_SERVICE_ID);
		cr_expect_eq(pair_in_use(p), 0);
		pair_free(p);
	}
}

/* CM-PATIENCE-01 */
Test(cm_reject, a_listener_may_come_a_little_late)
{
	struct pair *p = pair_new(2);
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	attr.service_id = SERVICE + 1;
	attr.patience = 1;
	pair_connect_attr(p, A, &attr);
	pair_pass(p, 5 * MS);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->no_service, 1);
	cr_assert_eq(ur_cm_listen(p->s[B].cm, UR_CM_KIND_CONN, SERVICE + 1, p), 0);
	pair_settle(p);
	cr_expect_eq(SAW(p, A, REJ_RCVD), 0);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 1);
	pair_free(p);
}

Test(cm_reject, a_service_without_a_listener)
{
	struct pair *p = pair_new(2);
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	attr.service_id++;
	pair_connect_attr(p, A, &attr);
	pair_settle(p);
	cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_INV_SERVICE_ID);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->no_service, 1);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_reject, a_lingering_rejection_makes_room_for_the_next_request)
{
	struct pair *p = pair_new(1);

	p->s[B].accepts = false;
	p->s[B].rejects = true;
	for (unsigned i = 1; i <= 10; i++) {
		pair_connect(p);
		pair_pass(p, 5 * MS);
		cr_assert_eq(SAW(p, A, REJ_RCVD), i);
		cr_assert_eq(p->s[A].rej_reason, UR_CM_REJ_CONSUMER);
	}
	pair_free(p);
}

Test(cm_listen, ends_with_unlisten)
{
	struct pair *p = pair_new(2);

	cr_expect_eq(ur_cm_listen(p->s[B].cm, UR_CM_KIND_CONN, SERVICE, NULL), -EEXIST);
	cr_expect_eq(ur_cm_unlisten(p->s[B].cm, UR_CM_KIND_CONN, SERVICE), 0);
	cr_expect_eq(ur_cm_unlisten(p->s[B].cm, UR_CM_KIND_CONN, SERVICE), -ENOENT);
	pair_connect(p);
	pair_settle(p);
	cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_INV_SERVICE_ID);
	for (uint64_t i = 0; i < 5; i++)
		cr_expect_eq(ur_cm_listen(p->s[B].cm, UR_CM_KIND_CONN, i, NULL), 0);
	cr_expect_eq(ur_cm_listen(p->s[B].cm, UR_CM_KIND_CONN, 5, NULL), -ENOSPC);
	pair_free(p);
}

Test(cm_timeout, a_request_is_repeated_to_a_silent_peer_as_often_as_allowed)
{
	struct pair *p = pair_new(2);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	uint64_t start = p->now;

	p->drop = ~0ull;
	attr.max_cm_retries = 3;
	pair_connect_attr(p, A, &attr);
	pair_settle(p);
	cr_expect_eq(SENT(p, A, REQ), 4);
	cr_expect_eq(p->now - start, 4 * (4096ull << 14));
	cr_expect(SAW(p, A, UNREACHABLE) == 1 && p->s[A].finals == 1);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_timeout, giving_up_frees_the_peers_id_too)
{
	struct pair *p = pair_new(2);
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	p->s[B].accepts = false;
	p->drop = 1 << 1; /* the MRA that would extend the timeout */
	attr.max_cm_retries = 1;
	pair_connect_attr(p, A, &attr);
	pair_pass(p, 66 * MS);
	cr_assert_eq(SAW(p, B, REQ_RCVD), 1);
	p->drop = 1 << 2; /* the MRA to the repeated REQ */
	pair_settle(p);
	cr_expect_eq(SAW(p, A, UNREACHABLE), 1);
	cr_expect_eq(SAW(p, B, REJ_RCVD), 1);
	cr_expect_eq(p->s[B].rej_reason, UR_CM_REJ_TIMEOUT);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_timeout, an_unanswered_rep_ends_in_time_wait)
{
	struct pair *p = pair_new(2);

	p->drop = ~1ull; /* only the REQ arrives */
	pair_connect(p);
	pair_settle(p);
	cr_expect_eq(SAW(p, B, UNREACHABLE), 1);
	cr_expect_eq(SAW(p, B, TIMEWAIT_EXIT), 1);
	cr_expect_eq(SENT(p, B, REP), 8, "the peer has not shown that it is there");
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_timeout, a_dead_peer_cannot_prevent_a_disconnect)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(2, &a, &b);

	p->drop = ~0ull;
	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, NULL, 0, p->now), 0);
	pair_settle(p);
	cr_expect_eq(SENT(p, A, DREQ), 16);
	cr_expect_eq(SAW(p, A, DISCONNECTED), 1);
	cr_expect(p->s[A].timed_out);
	cr_expect_eq(SAW(p, A, TIMEWAIT_EXIT), 1);
	cr_expect_eq(ur_cm_ids_in_use(p->s[A].cm), 0);
	pair_free(p);
}

Test(cm_disconnect, both_sides_at_once_end_cleanly)
{
	for (uint64_t mask = 0; mask < 1 << 10; mask++) {
		struct ur_cm_id a, b;
		struct pair *p = pair_up(2, &a, &b);

		p->drop = mask << 3;
		cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, NULL, 0, p->now), 0);
		cr_assert_eq(ur_cm_disconnect(p->s[B].cm, b, NULL, 0, p->now), 0);
		pair_settle(p);
		cr_assert_eq(SAW(p, A, DISCONNECTED), 1, "drop %#lx", mask);
		cr_assert_eq(SAW(p, B, DISCONNECTED), 1, "drop %#lx", mask);
		cr_assert(SAW(p, A, TIMEWAIT_EXIT) == 1 && SAW(p, B, TIMEWAIT_EXIT) == 1);
		cr_assert_eq(pair_in_use(p), 0);
		pair_free(p);
	}
}

Test(cm_disconnect, time_wait_lasts_as_long_as_configured)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(2, &a, &b);

	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, NULL, 0, p->now), 0);
	pair_pass(p, 10 * MS); /* DREQ after 1 ms, DREP after 2 */
	cr_expect_eq(SAW(p, A, DISCONNECTED), 1);
	pair_pass(p, 991 * MS);
	cr_expect_eq(SAW(p, A, TIMEWAIT_EXIT), 0);
	cr_expect_eq(ur_cm_state(p->s[A].cm, a), UR_CM_ST_TIMEWAIT);
	pair_pass(p, 1 * MS);
	cr_expect_eq(SAW(p, A, TIMEWAIT_EXIT), 1);
	pair_free(p);
}

Test(cm_disconnect, a_repeated_dreq_is_answered_in_time_wait_and_after)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(2, &a, &b);

	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, "bye", 3, p->now), 0);
	pair_pass(p, 10 * MS);
	cr_expect_arr_eq(p->s[B].private_data, "bye\0", 4);
	cr_expect_eq(pair_feed(p, B, p->last_mad[A][UR_CM_DREQ & 15]), UR_DROP_NONE);
	pair_fetch(p, B);
	cr_expect_eq(SENT(p, B, DREP), 2);
	pair_settle(p);
	cr_expect_eq(pair_in_use(p), 0);
	cr_expect_eq(pair_feed(p, B, p->last_mad[A][UR_CM_DREQ & 15]), UR_DROP_UNEXPECTED);
	pair_fetch(p, B);
	cr_expect_eq(SENT(p, B, DREP), 3);
	cr_expect_eq(SAW(p, B, DREQ_RCVD), 1);
	pair_free(p);
}

Test(cm_disconnect, works_before_the_rtu_arrived)
{
	struct pair *p = pair_new(2);

	p->drop = 1 << 2; /* the RTU */
	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, p->s[A].last[UR_CM_EV_REP_RCVD], NULL, 0, p->now),
		     0);
	pair_settle(p);
	cr_expect_eq(SAW(p, B, DREQ_RCVD), 1);
	cr_expect_eq(SAW(p, A, DISCONNECTED), 1);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_reject, a_reply_to_an_unknown_id_frees_the_peers_id)
{
	struct pair *p = pair_new(2);
	struct ur_cm_id id = pair_connect(p);

	pair_pass(p, MS); /* the REP is in flight */
	p->drop = 1 << 2; /* the REJ is lost */
	ur_cm_destroy(p->s[A].cm, id, p->now);
	pair_settle(p);
	cr_expect_eq(SAW(p, B, REJ_RCVD), 1);
	cr_expect_eq(p->s[B].rej_reason, UR_CM_REJ_INV_COMM_ID);
	cr_expect_eq(SENT(p, B, REP), 1);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_ids, stale_handles_are_refused_by_every_command)
{
	struct pair *p = pair_new(1);
	struct ur_cm_accept_attr accept = {.qpn = {5}};
	struct ur_cm_id old = pair_connect(p);
	struct ur_cm *cm = p->s[A].cm;

	cr_assert_eq(ur_cm_destroy(cm, old, p->now), 0);
	pair_connect(p); /* the same slot */
	cr_expect_eq(ur_cm_rtu(cm, old, NULL, 0, p->now), -EINVAL);
	cr_expect_eq(ur_cm_accept(cm, old, &accept, p->now), -EINVAL);
	cr_expect_eq(ur_cm_reject(cm, old, UR_CM_REJ_CONSUMER, NULL, 0, p->now), -EINVAL);
	cr_expect_eq(ur_cm_mra(cm, old, 20, p->now), -EINVAL);
	cr_expect_eq(ur_cm_establish(cm, old), -EINVAL);
	cr_expect_eq(ur_cm_disconnect(cm, old, NULL, 0, p->now), -EINVAL);
	cr_expect_eq(ur_cm_set_ctx(cm, old, NULL), -EINVAL);
	cr_expect_eq(ur_cm_destroy(cm, old, p->now), -EINVAL);
	cr_expect_eq(ur_cm_destroy(cm, (struct ur_cm_id){0}, p->now), -EINVAL);
	cr_expect_eq(ur_cm_state(cm, old), UR_CM_ST_FREE);
	pair_free(p);
}

Test(cm_ids, bad_attributes_are_refused_and_cost_nothing)
{
	struct pair *p = pair_new(1);
	struct ur_cm_connect_attr good = connect_attr(p, A), bad;
	struct ur_cm_id id = {77};

#define REFUSED(field, value)                                                                      \
	bad = good;                                                                                \
	bad.field = (value);                                                                       \
	cr_expect_eq(ur_cm_connect(p->s[A].cm, NULL, &bad, p->now, &id), -EINVAL, #field)

	REFUSED(transport, UR_CM_TRANSPORT_RD);
	REFUSED(qpn.v, 1);
	REFUSED(pmtu, 0);
	REFUSED(pmtu, 6);
	REFUSED(retry_cnt, 8);
	REFUSED(rnr_retry, 8);
	REFUSED(ack_timeout, 32);
	REFUSED(max_cm_retries, 16);
	REFUSED(flow_label, 1 << 20);
	REFUSED(private_len, 93);
	cr_expect_eq(id.v, 77);
	cr_expect_eq(ur_cm_ids_in_use(p->s[A].cm), 0);
	pair_free(p);
}

Test(cm_ids, impossible_limits_have_no_size)
{
	struct ur_cm_limits good = {.max_ids = 2, .max_pending = 2, .max_tx = 1}, bad;

	cr_expect_gt(ur_cm_size(&good), 0);
	bad = good, bad.max_ids = 0;
	cr_expect_eq(ur_cm_size(&bad), 0);
	bad = good, bad.max_pending = 3;
	cr_expect_eq(ur_cm_size(&bad), 0);
	bad = good, bad.max_tx = 0;
	cr_expect_eq(ur_cm_size(&bad), 0);
}

/* Destroys one side's id after `steps` messages. All slots must become free on both sides. */
Test(cm_ids, an_id_may_be_destroyed_at_any_moment)
{
	for (int side = A; side <= B; side++) {
		for (unsigned step = 0; step < 4; step++) {
			for (uint64_t mask = 0; mask < 1 << 6; mask++) {
				struct pair *p = pair_new(2);
				struct ur_cm_id a = pair_connect(p);
				unsigned events, i;

				for (i = 0; i < step; i++)
					pair_pass(p, MS);
				p->drop = mask << p->sent;
				events = p->s[side].n[UR_CM_EV_REJ_RCVD];
				ur_cm_destroy(p->s[side].cm,
					      side == A ? a : p->s[B].last[UR_CM_EV_REQ_RCVD],
					      p->now);
				pair_pass(p, 5000 * MS);
				if (side == A)
					cr_expect_eq(p->s[side].n[UR_CM_EV_REJ_RCVD], events);
				/* A child that was not destroyed may be established: end it. */
				for (int s = A; s <= B; s++) {
					struct ur_cm_id id =
						s == A ? a : p->s[B].last[UR_CM_EV_REQ_RCVD];

					ur_cm_destroy(p->s[s].cm, id, p->now);
				}
				pair_settle(p);
				cr_assert_eq(pair_in_use(p), 0, "side %d step %u drop %#lx", side,
					     step, mask);
				pair_free(p);
			}
		}
	}
}

Test(cm_ids, a_callback_may_destroy_its_own_id)
{
	struct pair *p = pair_new(2);

	p->s[B].frees = true;
	pair_connect(p);
	pair_settle(p);
	cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_CONSUMER);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}
