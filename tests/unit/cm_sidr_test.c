/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "cm_pair.h"

static struct ur_cm_sidr_attr sidr_attr(const struct pair *p)
{
	return (struct ur_cm_sidr_attr){.path = pair_path(PAIR_SPORT),
					.dgid = p->s[B].gid,
					.service_id = SERVICE,
					.pkey = 0xffff,
					.resp_timeout = 14,
					.max_cm_retries = 15,
					.private_data = "who",
					.private_len = 3};
}

static struct ur_cm_id ask(struct pair *p, const struct ur_cm_sidr_attr *attr)
{
	struct ur_cm_id id;

	cr_assert_eq(ur_cm_sidr_req(p->s[A].cm, NULL, attr, p->now, &id), 0);
	return id;
}

static void answer(struct pair *p)
{
	cr_assert_eq(ur_cm_sidr_rep(p->s[B].cm, p->s[B].last[UR_CM_EV_SIDR_REQ_RCVD], UR_CM_SIDR_OK,
				    ur_qpn(0x55), 0x11223344, "me", 2, p->now),
		     0);
}

Test(cm_sidr, returns_the_qp_of_a_service)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);

	ask(p, &attr);
	pair_pass(p, 5 * MS);
	cr_assert_eq(SAW(p, B, SIDR_REQ_RCVD), 1);
	cr_expect_eq(p->s[B].private_len, 216);
	cr_expect_arr_eq(p->s[B].private_data, "who\0", 4);
	answer(p);
	pair_settle(p);
	cr_assert_eq(SAW(p, A, SIDR_REP_RCVD), 1);
	cr_expect(p->s[A].sidr_rep.status == UR_CM_SIDR_OK && p->s[A].sidr_rep.qpn.v == 0x55);
	cr_expect_eq(p->s[A].sidr_rep.qkey, 0x11223344);
	cr_expect_arr_eq(p->s[A].private_data, "me\0", 3);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_sidr, a_lost_answer_is_given_again_without_asking_the_service_twice)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);

	p->drop = 1 << 1 | 1 << 3;
	ask(p, &attr);
	pair_pass(p, 5 * MS);
	answer(p);
	pair_settle(p);
	cr_expect_eq(SAW(p, B, SIDR_REQ_RCVD), 1);
	cr_expect_eq(SAW(p, A, SIDR_REP_RCVD), 1);
	cr_expect_eq(SENT(p, A, SIDR_REQ), 3);
	pair_free(p);
}

Test(cm_sidr, unknown_services_are_unsupported)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);

	attr.service_id++;
	ask(p, &attr);
	pair_settle(p);
	cr_expect_eq(p->s[A].sidr_rep.status, UR_CM_SIDR_UNSUPPORTED);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_sidr, a_full_table_rejects)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);

	ask(p, &attr);
	ask(p, &attr);
	pair_pass(p, 5 * MS);
	side_init(p, A, &(struct ur_cm_limits){.max_ids = 1, .max_pending = 1, .max_tx = 8});
	ask(p, &attr);
	pair_pass(p, 5 * MS);
	cr_expect_eq(SAW(p, B, SIDR_REQ_RCVD), 2);
	cr_expect_eq(SAW(p, A, SIDR_REP_RCVD), 1);
	cr_expect_eq(p->s[A].sidr_rep.status, UR_CM_SIDR_REJECT);
	pair_free(p);
}

Test(cm_sidr, silence_ends_the_question)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);

	p->drop = ~0ull;
	attr.max_cm_retries = 2;
	ask(p, &attr);
	pair_settle(p);
	cr_expect(SAW(p, A, UNREACHABLE) == 1 && SENT(p, A, SIDR_REQ) == 3);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}

Test(cm_sidr, ids_of_sidr_take_no_connection_messages)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);
	struct ur_cm_id id = ask(p, &attr);
	uint8_t mad[UR_MAD_BYTES];

	pair_fetch(p, A);
	/* Any CM message whose remote comm id names the request. */
	memcpy(mad, p->last_mad[A][UR_CM_SIDR_REQ & 15], sizeof(mad));
	memcpy(mad + UR_MAD_HDR_BYTES + 4, mad + UR_MAD_HDR_BYTES, 4);
	for (unsigned a = UR_CM_MRA; a <= UR_CM_DREP; a++) {
		mad[17] = (uint8_t)a;
		cr_expect_eq(pair_feed(p, A, mad), UR_DROP_UNEXPECTED, "attribute %#x", a);
	}
	cr_expect_eq(ur_cm_state(p->s[A].cm, id), UR_CM_ST_SIDR_REQ_SENT);
	pair_free(p);
}

Test(cm_sidr, an_answer_about_another_service_is_ignored)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);
	struct ur_cm_id id = ask(p, &attr);
	uint8_t mad[UR_MAD_BYTES];

	p->drop = 1 << 1;
	pair_pass(p, 5 * MS);
	answer(p);
	pair_fetch(p, B);
	memcpy(mad, p->last_mad[B][UR_CM_SIDR_REP & 15], sizeof(mad));
	mad[UR_MAD_HDR_BYTES + 19] ^= 1;
	cr_expect_eq(pair_feed(p, A, mad), UR_DROP_UNEXPECTED);
	cr_expect_eq(ur_cm_state(p->s[A].cm, id), UR_CM_ST_SIDR_REQ_SENT);
	pair_free(p);
}

/* CM-PATIENCE-01 */
Test(cm_sidr, a_patient_peer_asks_again_for_a_service_that_is_not_there)
{
	struct pair *p = pair_new(2);
	struct ur_cm_sidr_attr attr = sidr_attr(p);

	attr.service_id = SERVICE + 1;
	attr.patience = 2;
	ask(p, &attr);
	pair_settle(p);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->no_service, 3);
	cr_assert_eq(SAW(p, A, SIDR_REP_RCVD), 1);
	cr_expect_eq(p->s[A].sidr_rep.status, UR_CM_SIDR_UNSUPPORTED);
	cr_expect_eq(pair_in_use(p), 0);
	pair_free(p);
}
