/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "cm_pair.h"

/* Connections that end, that are refused, and that somebody attacks. */

static struct pair *pair_up(uint32_t max_ids, struct ur_cm_id *a, struct ur_cm_id *b)
{
	struct pair *p = pair_new(max_ids);

	*a = pair_connect(p);
	pair_pass(p, 10 * MS);
	*b = p->s[B].last[UR_CM_EV_REQ_RCVD];
	cr_assert_eq(SAW(p, B, ESTABLISHED), 1);
	return p;
}

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

Test(cm_reject, a_service_that_nobody_offers)
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

	cr_expect_eq(ur_cm_listen(p->s[B].cm, SERVICE, NULL), -EEXIST);
	cr_expect_eq(ur_cm_unlisten(p->s[B].cm, SERVICE), 0);
	cr_expect_eq(ur_cm_unlisten(p->s[B].cm, SERVICE), -ENOENT);
	pair_connect(p);
	pair_settle(p);
	cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_INV_SERVICE_ID);
	for (uint64_t i = 0; i < 3; i++)
		cr_expect_eq(ur_cm_listen(p->s[B].cm, i, NULL), 0);
	cr_expect_eq(ur_cm_listen(p->s[B].cm, 3, NULL), -ENOSPC);
	pair_free(p);
}

Test(cm_timeout, a_silent_peer_is_asked_as_often_as_allowed)
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
	p->drop = 1 << 1; /* the MRA that would prolong the wait */
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

Test(cm_timeout, a_rep_that_nobody_answers_ends_in_time_wait)
{
	struct pair *p = pair_new(2);

	p->drop = ~1ull; /* only the REQ arrives */
	pair_connect(p);
	pair_settle(p);
	cr_expect_eq(SAW(p, B, UNREACHABLE), 1);
	cr_expect_eq(SAW(p, B, TIMEWAIT_EXIT), 1);
	cr_expect_eq(SENT(p, B, REP), 16);
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

Test(cm_disconnect, time_wait_lasts_as_long_as_it_was_told)
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

Test(cm_stale, a_peer_that_started_anew_replaces_its_old_connection)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(4, &a, &b);
	struct ur_cm_attr attr = {.ca_guid = 0x5054000000990001ull,
				  .seed = 999,
				  .timewait_ns = 1000 * MS,
				  .sink = side_sink,
				  .sink_ctx = &p->s[A]};
	struct ur_cm_limits limits = {.max_ids = 4, .max_pending = 4, .max_tx = 16};

	p->s[A].cm = ur_cm_init(p->s[A].mem, &limits, &attr);
	pair_connect(p); /* the same QPN */
	pair_pass(p, 10 * MS);
	cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_STALE_CONN);
	cr_expect_eq(SAW(p, B, DISCONNECTED), 1);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->stale, 1);
	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 2);
	pair_free(p);
}

Test(cm_stale, a_stranger_cannot_end_a_connection_by_claiming_its_qp)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(4, &a, &b);
	struct ur_cm_src src = pair_src(p, B);
	uint8_t mad[UR_MAD_BYTES];

	memcpy(mad, p->last_mad[A][UR_CM_REQ & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES] ^= 1; /* another comm id, the same GUID and QPN */
	src.sgid = ur_gid_from_ipv4(0x0a630063);
	memcpy(mad + UR_MAD_HDR_BYTES + 56, src.sgid.b, 16);
	cr_expect_eq(ur_cm_input(p->s[B].cm, mad, &src, p->now), UR_DROP_UNEXPECTED);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SENT(p, B, REJ), 1);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

Test(cm_stale, a_comm_id_used_for_something_else_is_refused)
{
	struct pair *p = pair_new(4);
	uint8_t mad[UR_MAD_BYTES];

	p->s[B].accepts = false;
	pair_connect(p);
	pair_pass(p, 10 * MS);
	memcpy(mad, p->last_mad[A][UR_CM_REQ & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES + 44] ^= 1; /* another PSN */
	pair_feed(p, B, mad);
	pair_fetch(p, B);
	cr_expect_eq(p->last_mad[B][UR_CM_REJ & 15][UR_MAD_HDR_BYTES + 11], UR_CM_REJ_DUP_COMM_ID);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 1);
	pair_free(p);
}

/* Feeds B a REQ of A's with byte `at` of the message replaced. */
static unsigned refusal_of(size_t at, uint8_t value)
{
	struct pair *p = pair_new(2);
	uint8_t mad[UR_MAD_BYTES];
	unsigned reason;

	pair_connect(p);
	pair_fetch(p, A);
	memcpy(mad, p->last_mad[A][UR_CM_REQ & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES + at] = value;
	cr_expect_eq(pair_feed(p, B, mad), UR_DROP_MAD);
	pair_fetch(p, B);
	cr_assert_eq(SAW(p, B, REQ_RCVD), 0);
	cr_assert_eq(ur_cm_ids_in_use(p->s[B].cm), 0);
	reason = p->last_mad[B][UR_CM_REJ & 15][UR_MAD_HDR_BYTES + 11];
	pair_free(p);
	return reason;
}

Test(cm_hostile, impossible_requests_are_refused_before_an_id_exists)
{
	cr_expect_eq(refusal_of(43, 14 << 3 | UR_CM_TRANSPORT_RD << 1), UR_CM_REJ_INV_TRANSPORT);
	cr_expect_eq(refusal_of(43, 14 << 3 | UR_CM_TRANSPORT_EXT << 1), UR_CM_REJ_INV_TRANSPORT);
	cr_expect_eq(refusal_of(33, 0), UR_CM_REJ_NO_QP); /* QPN 0x000100 to 0 */
	cr_expect_eq(refusal_of(50, 0x07), UR_CM_REJ_INV_MTU);
	cr_expect_eq(refusal_of(50, 0x67), UR_CM_REJ_INV_MTU);
	cr_expect_eq(refusal_of(71, 0x63), UR_CM_REJ_INV_GID);
}

Test(cm_hostile, messages_from_another_address_have_no_effect)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(4, &a, &b);
	struct ur_cm_src src = pair_src(p, B);
	static const unsigned attrs[] = {UR_CM_REQ, UR_CM_RTU, UR_CM_DREQ};

	/* Make the DREQ without letting it arrive. */
	p->drop = ~0ull;
	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, NULL, 0, p->now), 0);
	pair_fetch(p, A);
	src.sgid = ur_gid_from_ipv4(0x0a630063);
	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(ur_cm_input(p->s[B].cm, p->last_mad[A][attrs[i] & 15], &src, p->now),
			     UR_DROP_PEER);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->wrong_peer, 3);
	pair_free(p);
}

Test(cm_hostile, a_dreq_for_another_qp_is_dropped)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(4, &a, &b);
	uint8_t mad[UR_MAD_BYTES];

	p->drop = ~0ull;
	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, NULL, 0, p->now), 0);
	pair_fetch(p, A);
	memcpy(mad, p->last_mad[A][UR_CM_DREQ & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES + 10] ^= 1;
	cr_expect_eq(pair_feed(p, B, mad), UR_DROP_QPN);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

Test(cm_hostile, foreign_mads_are_malformed)
{
	struct pair *p = pair_new(2);
	static const size_t at[] = {0, 1, 2, 3, 17};

	pair_connect(p);
	pair_fetch(p, A);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		uint8_t mad[UR_MAD_BYTES];

		memcpy(mad, p->last_mad[A][UR_CM_REQ & 15], sizeof(mad));
		mad[at[i]] ^= 0x80;
		cr_expect_eq(pair_feed(p, B, mad), UR_DROP_MAD, "byte %zu", at[i]);
	}
	cr_expect_eq(SAW(p, B, REQ_RCVD), 0);
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
	cr_expect_eq(ur_cm_established(cm, old), -EINVAL);
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

/* Destroys one side's id after `steps` messages; everything must come back on both sides. */
Test(cm_ids, an_id_may_be_destroyed_at_any_moment)
{
	for (int who = A; who <= B; who++) {
		for (unsigned step = 0; step < 4; step++) {
			for (uint64_t mask = 0; mask < 1 << 6; mask++) {
				struct pair *p = pair_new(2);
				struct ur_cm_id a = pair_connect(p);
				unsigned events, i;

				for (i = 0; i < step; i++)
					pair_pass(p, MS);
				p->drop = mask << p->sent;
				events = p->s[who].n[UR_CM_EV_REJ_RCVD];
				ur_cm_destroy(p->s[who].cm,
					      who == A ? a : p->s[B].last[UR_CM_EV_REQ_RCVD],
					      p->now);
				pair_pass(p, 5000 * MS);
				if (who == A)
					cr_expect_eq(p->s[who].n[UR_CM_EV_REJ_RCVD], events);
				/* A child that was never destroyed may be up: end it. */
				for (int s = A; s <= B; s++) {
					struct ur_cm_id id =
						s == A ? a : p->s[B].last[UR_CM_EV_REQ_RCVD];

					ur_cm_destroy(p->s[s].cm, id, p->now);
				}
				pair_settle(p);
				cr_assert_eq(pair_in_use(p), 0, "who %d step %u drop %#lx", who,
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
