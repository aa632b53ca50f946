/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "cm_pair.h"

/* The traffic class of an id's messages after the map has changed. It is 0x11 in paths that are not marked. */

#define MARK(p, side, name) ((p)->last_mark[side][UR_CM_##name & 15])

static void renew(struct pair *p, int side, uint8_t sl, uint8_t mark)
{
	p->s[side].marks[sl] = mark;
	ur_cm_update_dscp(p->s[side].cm);
}

static struct ur_cm_id connect_with(struct pair *p, uint8_t sl, uint8_t tclass)
{
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	attr.path.hdr[0] = 0x11;
	attr.service = (struct ur_cm_service){sl, tclass};
	return pair_connect_attr(p, A, &attr);
}

static void expect_goodbye(struct pair *p, int side, struct ur_cm_id id, uint8_t mark)
{
	cr_assert_eq(ur_cm_disconnect(p->s[side].cm, id, NULL, 0, p->now), 0);
	pair_pass(p, 10 * MS);
	cr_expect_eq(MARK(p, side, DREQ), mark);
}

/* CM-DSCP-01 */
Test(cm_mark, of_a_connection_that_stands_follows)
{
	struct pair *p = pair_new(4);
	struct ur_cm_id a = connect_with(p, 3, 0);

	pair_pass(p, 10 * MS);
	cr_expect_eq(MARK(p, A, REQ), 0x11, "as the caller marked it");
	renew(p, A, 4, 0x44);
	renew(p, A, 3, 0x33);
	expect_goodbye(p, A, a, 0x33);
	pair_free(p);
}

/* CM-DSCP-01 */
Test(cm_mark, of_a_repeated_message_follows_after_the_id_was_released)
{
	struct pair *p = pair_new(4);
	struct ur_cm_id a = connect_with(p, 3, 0);

	pair_pass(p, 10 * MS);
	p->drop = ~UINT64_C(0);
	cr_assert_eq(ur_cm_destroy(p->s[A].cm, a, p->now), 0);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SENT(p, A, DREQ), 1);
	cr_expect_eq(MARK(p, A, DREQ), 0x11);
	renew(p, A, 3, 0x33);
	pair_pass(p, 100 * MS);
	cr_expect_eq(SENT(p, A, DREQ), 2);
	cr_expect_eq(MARK(p, A, DREQ), 0x33);
	pair_free(p);
}

Test(cm_mark, that_the_application_chose_stays)
{
	struct pair *p = pair_new(4);
	struct ur_cm_id a = connect_with(p, 3, 0x20);

	pair_pass(p, 10 * MS);
	renew(p, A, 3, 0x33);
	expect_goodbye(p, A, a, 0x20);
	pair_free(p);
}

/* CM-DSCP-01 */
Test(cm_mark, of_the_passive_side_is_the_peers_until_it_has_a_service)
{
	static const struct ur_cm_service service = {5, 0};
	struct pair *p = pair_new(4);
	struct ur_cm_id b;

	p->s[B].accepts = false;
	connect_with(p, 3, 0);
	pair_pass(p, 10 * MS);
	b = p->s[B].last[UR_CM_EV_REQ_RCVD];
	renew(p, B, 0, 0x77);
	cr_assert_eq(ur_cm_mra(p->s[B].cm, b, 20, p->now), 0);
	pair_pass(p, 10 * MS);
	cr_expect_eq(MARK(p, B, MRA), 0, "the path of the request");
	p->s[B].marks[5] = 0x55;
	cr_assert_eq(ur_cm_set_service(p->s[B].cm, b, &service), 0);
	side_accept(&p->s[B], b);
	pair_pass(p, 10 * MS);
	cr_expect_eq(MARK(p, B, REP), 0x55);
	renew(p, B, 5, 0x66);
	expect_goodbye(p, B, b, 0x66);
	pair_free(p);
}

Test(cm_mark, of_a_question_for_a_datagram_queue_pair_follows)
{
	struct pair *p = pair_new(4);
	struct ur_cm_sidr_attr attr = {.path = pair_path(PAIR_SPORT),
				       .dgid = p->s[B].gid,
				       .service = {3, 0},
				       .service_id = SERVICE,
				       .resp_timeout = 14,
				       .max_cm_retries = 3};
	struct ur_cm_id id;

	p->drop = ~UINT64_C(0);
	cr_assert_eq(ur_cm_sidr_req(p->s[A].cm, NULL, &attr, p->now, &id), 0);
	pair_pass(p, 10 * MS);
	renew(p, A, 3, 0x33);
	pair_pass(p, 100 * MS);
	cr_expect_eq(SENT(p, A, SIDR_REQ), 2);
	cr_expect_eq(MARK(p, A, SIDR_REQ), 0x33);
	pair_free(p);
}

Test(cm_mark, of_a_stale_id_cannot_be_chosen)
{
	static const struct ur_cm_service service = {5, 0};
	struct pair *p = pair_new(1);
	struct ur_cm_id a = connect_with(p, 3, 0);

	cr_assert_eq(ur_cm_destroy(p->s[A].cm, a, p->now), 0);
	cr_expect_eq(ur_cm_set_service(p->s[A].cm, a, &service), -EINVAL);
	ur_cm_update_dscp(p->s[A].cm);
	pair_free(p);
}
