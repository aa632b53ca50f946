/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_pair.h"

/* Peers that have lost the connection's state, make errors, or are malicious. */

Test(cm_stale, a_peer_that_started_anew_replaces_its_old_connection)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(4, &a, &b);
	struct ur_cm_attr attr = {.ca_guid = 0x5054000000990001ull,
				  .seed = 999,
				  .id_key = 999,
				  .timewait_ns = 1000 * MS,
				  .sink = side_sink,
				  .sink_ctx = &p->s[A]};
	struct ur_cm_limits limits = {.max_ids = 4, .max_pending = 4, .max_tx = 16};

	p->s[A].cm = ur_cm_init(p->s[A].mem, &limits, &attr);
	pair_connect(p); /* the same QPN */
	pair_pass(p, 10 * MS);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 2);
	cr_expect_eq(SAW(p, B, DISCONNECTED), 1);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->stale, 1);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_TIMEWAIT, "the old one");
	cr_expect_eq(ur_cm_state(p->s[B].cm, p->s[B].last[UR_CM_EV_ESTABLISHED]),
		     UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

/* A's REQ, sent by an attacker that claims to be A but has another address. */
static enum ur_drop feed_stranger(struct pair *p, uint8_t comm_id_xor)
{
	struct ur_cm_src src = pair_src(p, B);
	uint8_t mad[UR_MAD_BYTES];
	enum ur_drop drop;

	memcpy(mad, p->last_mad[A][UR_CM_REQ & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES] ^= comm_id_xor;
	src.sgid = ur_gid_from_ipv4(0x0a630063);
	memcpy(mad + UR_MAD_HDR_BYTES + 56, src.sgid.b, 16);
	drop = ur_cm_input(p->s[B].cm, mad, &src, p->now);
	ur_cm_validate(p->s[B].cm);
	return drop;
}

/* CM-STALE-01 */
Test(cm_stale, a_peer_that_waits_for_its_application_has_begun_anew_too)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(4, &a, &b);
	struct ur_cm_attr attr = {.ca_guid = 0x5054000000990001ull,
				  .id_key = 999,
				  .timewait_ns = 1000 * MS,
				  .sink = side_sink,
				  .sink_ctx = &p->s[A]};
	struct ur_cm_limits limits = {.max_ids = 4, .max_pending = 4, .max_tx = 16};

	p->s[A].cm = ur_cm_init(p->s[A].mem, &limits, &attr);
	p->s[A].readies = false;
	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED, "a REQ proves nothing");
	cr_assert_eq(ur_cm_mra(p->s[A].cm, p->s[A].last[UR_CM_EV_REP_RCVD], 18, p->now), 0);
	pair_pass(p, 10 * MS);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_TIMEWAIT);
	pair_free(p);
}

/* CM-PEER-01 */
Test(cm_stale, a_stranger_cannot_end_a_connection_by_claiming_its_qp)
{
	/* With the same communication id, and with another. */
	for (uint8_t comm_id_xor = 0; comm_id_xor < 2; comm_id_xor++) {
		struct ur_cm_id a, b;
		struct pair *p = pair_up(4, &a, &b);

		cr_expect_eq(feed_stranger(p, comm_id_xor), UR_DROP_NONE);
		cr_expect_eq(SAW(p, B, REQ_RCVD), 2, "a connection of its own");
		cr_expect_eq(ur_cm_counters(p->s[B].cm)->stale, 0);
		cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
		cr_expect_eq(feed_stranger(p, 2), UR_DROP_NONE, "its own QP, once more");
		cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
		pair_free(p);
	}
}

/* CM-PEER-01 */
Test(cm_stale, a_stranger_cannot_take_the_qp_of_another_first)
{
	struct pair *p = pair_new(4);
	struct ur_cm_id a;

	p->drop = 1; /* A's first REQ, which will be repeated */
	a = pair_connect(p);
	pair_fetch(p, A);
	cr_assert_eq(feed_stranger(p, 1), UR_DROP_NONE);
	pair_pass(p, 200 * MS);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 2);
	cr_expect_eq(SENT(p, B, REJ), 0);
	cr_expect_eq(ur_cm_state(p->s[A].cm, a), UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

/* CM-PEER-01 */
Test(cm_stale, a_stranger_cannot_take_the_communication_id_of_another_first)
{
	struct pair *p = pair_new(4);
	struct ur_cm_id a;

	p->drop = 1;
	a = pair_connect(p);
	pair_fetch(p, A);
	p->s[B].accepts = false;
	cr_assert_eq(feed_stranger(p, 0), UR_DROP_NONE);
	p->s[B].accepts = true;
	pair_pass(p, 200 * MS);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 2);
	cr_expect_eq(ur_cm_state(p->s[A].cm, a), UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

Test(cm_stale, a_request_repeated_in_time_wait_is_stale)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(2, &a, &b);

	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, NULL, 0, p->now), 0);
	pair_pass(p, 10 * MS);
	pair_feed(p, B, p->last_mad[A][UR_CM_REQ & 15]);
	pair_fetch(p, B);
	cr_assert_eq(SENT(p, B, REJ), 1);
	cr_expect_eq(p->last_mad[B][UR_CM_REJ & 15][UR_MAD_HDR_BYTES + 11], UR_CM_REJ_STALE_CONN);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 1);
	pair_free(p);
}

Test(cm_stale, a_reply_with_the_qp_of_a_live_connection_ends_that_one)
{
	struct ur_cm_id a, b, second;
	struct pair *p = pair_up(4, &a, &b);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	uint8_t mad[UR_MAD_BYTES];

	attr.qpn.v++;
	p->drop = ~0ull; /* B's own REP is lost */
	second = pair_connect_attr(p, A, &attr);
	pair_fetch(p, A);
	memcpy(mad, p->last_mad[B][UR_CM_REP & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES] ^= 1; /* a new comm id of B's, for the new REQ, with the old QPN */
	memcpy(mad + UR_MAD_HDR_BYTES + 4, p->last_mad[A][UR_CM_REQ & 15] + UR_MAD_HDR_BYTES, 4);
	cr_expect_eq(pair_feed(p, A, mad), UR_DROP_NONE);
	cr_expect_eq(ur_cm_state(p->s[A].cm, second), UR_CM_ST_ESTABLISHED);
	cr_expect_eq(ur_cm_state(p->s[A].cm, a), UR_CM_ST_DREQ_SENT);
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

Test(cm_hostile, a_reply_cannot_raise_the_resources_we_asked_for)
{
	struct pair *p = pair_new(2);
	uint8_t mad[UR_MAD_BYTES];

	p->drop = 1 << 1; /* the honest REP */
	pair_connect(p);
	pair_pass(p, 5 * MS);
	memcpy(mad, p->last_mad[B][UR_CM_REP & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES + 24] = mad[UR_MAD_HDR_BYTES + 25] = 200;
	cr_expect_eq(pair_feed(p, A, mad), UR_DROP_NONE);
	cr_expect_eq(p->s[A].rep.responder_resources, 2);
	cr_expect_eq(p->s[A].rep.initiator_depth, 4);
	pair_free(p);
}

Test(cm_hostile, a_reply_with_an_impossible_qp_is_malformed)
{
	struct pair *p = pair_new(2);
	struct ur_cm_id id = pair_connect(p);
	uint8_t mad[UR_MAD_BYTES];

	p->drop = 1 << 1;
	pair_pass(p, 5 * MS);
	memcpy(mad, p->last_mad[B][UR_CM_REP & 15], sizeof(mad));
	memset(mad + UR_MAD_HDR_BYTES + 12, 0xff, 3);
	cr_expect_eq(pair_feed(p, A, mad), UR_DROP_MAD);
	cr_expect_eq(ur_cm_state(p->s[A].cm, id), UR_CM_ST_REQ_SENT);
	pair_free(p);
}

Test(cm_hostile, messages_from_another_address_have_no_effect)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(4, &a, &b);
	struct ur_cm_src src = pair_src(p, B);
	static const unsigned attrs[] = {UR_CM_RTU, UR_CM_DREQ};

	/* Creates the DREQ without delivering it. */
	p->drop = ~0ull;
	cr_assert_eq(ur_cm_disconnect(p->s[A].cm, a, NULL, 0, p->now), 0);
	pair_fetch(p, A);
	src.sgid = ur_gid_from_ipv4(0x0a630063);
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(ur_cm_input(p->s[B].cm, p->last_mad[A][attrs[i] & 15], &src, p->now),
			     UR_DROP_PEER);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->wrong_peer, 2);
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

Test(cm_hostile, mads_with_another_header_are_malformed)
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
