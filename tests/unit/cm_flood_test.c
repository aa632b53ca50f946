/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "cm_pair.h"

/* An attacker that can send any packet from any address, but sees none (docs/security.md). */

#define FLOOD_IDS 64

/* Feeds B A's last REQ or SIDR_REQ, changed to another message from another address. */
static enum ur_drop forge(struct pair *p, unsigned attr, uint32_t from, uint32_t id)
{
	struct ur_cm_src src = pair_src(p, B);
	uint8_t mad[UR_MAD_BYTES];
	enum ur_drop drop;

	memcpy(mad, p->last_mad[A][attr & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES] = (uint8_t)(id >> 24);
	mad[UR_MAD_HDR_BYTES + 1] = (uint8_t)(id >> 16);
	mad[UR_MAD_HDR_BYTES + 2] = (uint8_t)(id >> 8);
	mad[UR_MAD_HDR_BYTES + 3] = (uint8_t)id;
	src.sgid = ur_gid_from_ipv4(from);
	if (attr == UR_CM_REQ)
		memcpy(mad + UR_MAD_HDR_BYTES + 56, src.sgid.b, 16);
	drop = ur_cm_input(p->s[B].cm, mad, &src, p->now);
	ur_cm_validate(p->s[B].cm);
	return drop;
}

static void ask_sidr(struct pair *p)
{
	struct ur_cm_sidr_attr attr = {.path = pair_path(PAIR_SPORT),
				       .dgid = p->s[B].gid,
				       .service_id = SERVICE,
				       .pkey = 0xffff,
				       .resp_timeout = 14,
				       .max_cm_retries = 0};
	struct ur_cm_id id;

	cr_assert_eq(ur_cm_sidr_req(p->s[A].cm, NULL, &attr, p->now, &id), 0);
}

/* Records both kinds of A's requests. B answers neither and has dropped them. */
static struct pair *flood_new(void)
{
	struct pair *p = pair_new(FLOOD_IDS);

	p->s[B].rejects = true;
	p->s[B].accepts = false;
	pair_connect(p);
	pair_settle(p);
	p->s[B].rejects = false;
	p->drop = ~0ull;
	ask_sidr(p);
	pair_settle(p);
	p->drop = 0;
	cr_assert_eq(pair_in_use(p), 0);
	return p;
}

/* CM-LIFE-01 */
Test(cm_flood, unanswered_connection_requests_are_given_up)
{
	struct pair *p = flood_new();

	for (uint32_t i = 0; i < FLOOD_IDS; i++)
		forge(p, UR_CM_REQ, 0x0a640000 + i, i);
	pair_pass(p, 61000 * MS);
	cr_expect_eq(ur_cm_ids_in_use(p->s[B].cm), 0, "%u left", ur_cm_ids_in_use(p->s[B].cm));
	cr_expect_eq(SAW(p, B, UNREACHABLE), SAW(p, B, REQ_RCVD) - 1);
	p->s[B].accepts = true;
	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 1);
	pair_free(p);
}

/* CM-LIFE-01 */
Test(cm_flood, unanswered_sidr_requests_are_given_up)
{
	struct pair *p = flood_new();

	for (uint32_t i = 0; i < FLOOD_IDS; i++)
		forge(p, UR_CM_SIDR_REQ, 0x0a640000 + i, i);
	pair_pass(p, 61000 * MS);
	cr_expect_eq(ur_cm_ids_in_use(p->s[B].cm), 0, "%u left", ur_cm_ids_in_use(p->s[B].cm));
	cr_expect_eq(SAW(p, B, UNREACHABLE), SAW(p, B, SIDR_REQ_RCVD));
	pair_free(p);
}

/* B has room for 8 connections and 4 SIDR exchanges; one address may have 3 of them. */
static void make_small(struct pair *p)
{
	struct ur_cm_limits limits = {.max_ids = 16,
				      .max_listeners = 2,
				      .max_pending = 8,
				      .max_sidr = 4,
				      .max_per_peer = 3,
				      .max_tx = 64};

	side_init(p, B, &limits);
	memset(p->s[B].n, 0, sizeof(p->s[B].n));
	p->s[B].accepts = false;
	for (enum ur_cm_kind kind = 0; kind < UR_CM_KIND_CNT; kind++)
		cr_assert_eq(ur_cm_listen(p->s[B].cm, kind, SERVICE, p), 0);
}

/* CM-LIFE-02 */
Test(cm_flood, requests_of_one_kind_leave_room_for_the_other)
{
	struct pair *p = flood_new();

	make_small(p);
	for (uint32_t i = 0; i < FLOOD_IDS; i++)
		forge(p, UR_CM_SIDR_REQ, 0x0a640000 + i, i);
	cr_expect_leq(SAW(p, B, SIDR_REQ_RCVD), 4);
	for (uint32_t i = 0; i < FLOOD_IDS; i++)
		forge(p, UR_CM_REQ, 0x0a640000 + i, i);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 8);
	pair_free(p);
}

/* CM-LIFE-02 */
Test(cm_flood, requests_of_one_peer_leave_room_for_others)
{
	struct pair *p = flood_new();
	const struct ur_cm_counters *cnt;

	make_small(p);
	cnt = ur_cm_counters(p->s[B].cm);
	for (uint32_t i = 0; i < FLOOD_IDS; i++)
		forge(p, UR_CM_REQ, 0x0a640001, i);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 3);
	cr_expect_eq(cnt->over_share, FLOOD_IDS - 3);
	cr_expect_eq(cnt->no_resources, FLOOD_IDS - 3);
	for (uint32_t i = 0; i < FLOOD_IDS; i++)
		forge(p, UR_CM_REQ, 0x0a650000 + i, i);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 8);
	pair_free(p);
}

/* CM-AMPLIFY-01 */
Test(cm_flood, an_accepted_forgery_is_answered_a_few_times_and_gone_in_ten_seconds)
{
	struct pair *p = flood_new();
	unsigned before = p->sent;

	p->s[B].accepts = true;
	p->drop = ~0ull; /* the real owner of the address does not answer */
	p->last_mad[A][UR_CM_REQ & 15][UR_MAD_HDR_BYTES + 47] = 31
								<< 3; /* local response timeout */
	p->last_mad[A][UR_CM_REQ & 15][UR_MAD_HDR_BYTES + 51] = 15 << 4; /* CM retries */
	cr_assert_eq(forge(p, UR_CM_REQ, 0x0a640001, 1), UR_DROP_NONE);
	pair_pass(p, 10000 * MS);
	cr_expect_leq(p->sent - before, 9, "%u messages", p->sent - before);
	cr_expect_eq(ur_cm_ids_in_use(p->s[B].cm), 0);
	cr_expect_eq(SAW(p, B, UNREACHABLE), 1);
	pair_free(p);
}

static uint32_t id_in_req(const struct pair *p)
{
	struct ur_cursor c = ur_cursor_ro(p->last_mad[A][UR_CM_REQ & 15] + UR_MAD_HDR_BYTES, 4);

	return ur_get32(&c);
}

/* CM-COMMID-01: successive ids, and ids of the same slot, reveal nothing about each other. */
Test(cm_flood, communication_ids_reveal_nothing_about_others)
{
	struct pair *p = pair_new(8);
	uint32_t ids[256], same_high = 0, handles[256];

	p->drop = ~0ull;
	for (unsigned i = 0; i < 256; i++) {
		struct ur_cm_id id = pair_connect(p);

		handles[i] = id.v;
		pair_fetch(p, A);
		ids[i] = id_in_req(p);
		cr_assert_eq(ur_cm_destroy(p->s[A].cm, id, p->now), 0);
		pair_fetch(p, A);
	}
	for (unsigned i = 1; i < 256; i++) {
		cr_expect_neq(ids[i] ^ ids[i - 1], handles[i] ^ handles[i - 1]);
		same_high += ids[i] >> 16 == ids[i - 1] >> 16;
	}
	cr_expect_leq(same_high, 2);
	pair_free(p);
}

/* CM-STALE-01: the address, the CA GUID and the QPN of a peer are not secret. */
Test(cm_flood, a_forged_request_with_a_peers_qp_does_not_end_its_connection)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(8, &a, &b);

	forge(p, UR_CM_REQ, 0x0a630001, 0x100);
	pair_pass(p, 20 * MS);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	pair_pass(p, 30000 * MS);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	cr_expect_eq(ur_cm_state(p->s[A].cm, a), UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

/* CM-STALE-01: a peer whose communication ids can be guessed. */
Test(cm_flood, a_forged_request_with_a_peers_communication_id_does_not_end_its_connection)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(8, &a, &b);

	p->last_mad[A][UR_CM_REQ & 15][UR_MAD_HDR_BYTES + 44] ^= 1; /* PSN */
	forge(p, UR_CM_REQ, 0x0a630001, id_in_req(p));
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

/* Feeds B a REJ (timeout) that names A's request only by GUID and communication id. */
static enum ur_drop give_up_forged(struct pair *p, uint64_t tid_xor)
{
	const uint8_t *req = p->last_mad[A][UR_CM_REQ & 15];
	struct ur_cm_rej rej = {
		.local_comm_id = id_in_req(p),
		.about = UR_CM_ABOUT_OTHER,
		.reason = UR_CM_REJ_TIMEOUT,
		.info_len = 8,
	};
	struct ur_mad hdr;
	uint8_t mad[UR_MAD_BYTES];
	struct ur_cursor in = ur_cursor_ro(req, UR_MAD_BYTES), out = ur_cursor(mad, UR_MAD_BYTES);

	ur_get_mad(&in, &hdr);
	hdr.attr_id = UR_CM_REJ;
	hdr.tid ^= tid_xor;
	memcpy(rej.info, req + UR_MAD_HDR_BYTES + 16, 8);
	ur_put_mad(&out, &hdr);
	ur_put_cm_rej(&out, &rej);
	return pair_feed(p, B, mad);
}

/* CM-COMMID-02 */
Test(cm_flood, a_request_is_withdrawn_by_its_transaction_only)
{
	struct pair *p = pair_new(4);

	p->s[B].accepts = false;
	pair_connect(p);
	pair_pass(p, 3 * MS);
	cr_expect_eq(give_up_forged(p, 1ull << 40), UR_DROP_UNEXPECTED);
	cr_expect_eq(SAW(p, B, REJ_RCVD), 0);
	cr_expect_eq(give_up_forged(p, 0), UR_DROP_NONE);
	cr_expect_eq(SAW(p, B, REJ_RCVD), 1);
	pair_free(p);
}

/* CM-COMMID-02: a peer that has our answer has our id. */
Test(cm_flood, an_established_connection_ends_by_both_ids_only)
{
	struct ur_cm_id a, b;
	struct pair *p = pair_up(8, &a, &b);

	cr_expect_eq(give_up_forged(p, 0), UR_DROP_UNEXPECTED);
	cr_expect_eq(ur_cm_state(p->s[B].cm, b), UR_CM_ST_ESTABLISHED);
	pair_free(p);
}

/* CM-BACKLOG-01 */
Test(cm_flood, an_ignored_request_leaves_nothing_and_may_be_repeated)
{
	struct pair *p = pair_new(4);

	p->s[B].accepts = false;
	pair_connect(p);
	pair_pass(p, 5 * MS);
	cr_assert_eq(SAW(p, B, REQ_RCVD), 1);
	cr_assert_eq(ur_cm_ignore(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD]), 0);
	cr_expect_eq(ur_cm_ignore(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD]), -EINVAL,
		     "it is stale");
	ur_cm_validate(p->s[B].cm);
	cr_expect_eq(ur_cm_ids_in_use(p->s[B].cm), 0);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->ignored, 1);
	cr_expect_eq(SAW(p, A, REJ_RCVD), 0);
	p->s[B].accepts = true;
	pair_settle(p);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 2);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 1, "the repeated request connects");
	cr_expect_eq(ur_cm_ignore(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD]), -EINVAL,
		     "it is accepted");
	pair_free(p);
}

/* CM-BACKLOG-01 */
Test(cm_flood, an_ignored_sidr_request_leaves_nothing)
{
	struct pair *p = pair_new(4);

	ask_sidr(p);
	pair_pass(p, 5 * MS);
	cr_assert_eq(SAW(p, B, SIDR_REQ_RCVD), 1);
	cr_assert_eq(ur_cm_ignore(p->s[B].cm, p->s[B].last[UR_CM_EV_SIDR_REQ_RCVD]), 0);
	ur_cm_validate(p->s[B].cm);
	cr_expect_eq(ur_cm_ids_in_use(p->s[B].cm), 0);
	pair_settle(p);
	cr_expect_eq(SAW(p, A, SIDR_REP_RCVD), 0);
	pair_free(p);
}
