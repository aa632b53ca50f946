/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_cm_pair.h"

/* Connections whose queue pairs the application moves itself. */

static void move(struct uroce_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to};
	int mask;

	cr_assert_eq(uroce_cm_init_qp_attr(id, &attr, &mask), 0);
	cr_assert_eq(uroce_modify_qp(qp, &attr, mask), 0, "to state %d", to);
}

static void move_all(struct uroce_cm_id *id, struct ibv_qp *qp)
{
	move(id, qp, IBV_QPS_INIT);
	move(id, qp, IBV_QPS_RTR);
	move(id, qp, IBV_QPS_RTS);
}

static struct uroce_cm_qp number(const struct ibv_qp *qp)
{
	return (struct uroce_cm_qp){qp->qp_num, qp->qp_type, false};
}

static int ask(struct pair *p, enum ibv_qp_type type, const struct uroce_conn_param *param)
{
	struct sockaddr_in in = end_addr(IP_B, PORT);
	struct uroce_cm_qp n;

	if (!p->listener)
		p->listener = end_listen(B, PORT);
	p->a = end_id(A);
	p->qa = end_qp(A, type);
	p->qb = end_qp(B, type);
	n = number(p->qa);
	return uroce_cm_connect_qpn(p->a, (struct sockaddr *)&in, &n, param);
}

static void take_request(struct pair *p)
{
	struct uroce_cm_event *ev = end_event(B, UROCE_CM_CONNECT_REQUEST);

	p->b = ev->id;
	cr_expect_eq(ev->qpn, p->qa->qp_num);
	uroce_ack_cm_event(ev);
}

static void take_response(struct pair *p)
{
	struct uroce_cm_event *ev = end_event(A, UROCE_CM_RESPONSE);

	cr_expect_eq(ev->id, p->a);
	cr_expect_eq(ev->qpn, p->qb->qp_num);
	cr_expect_eq(memcmp(ev->param.private_data, "yes", 4), 0);
	uroce_ack_cm_event(ev);
}

static void accept_it(struct pair *p)
{
	struct uroce_conn_param param = end_param;
	struct uroce_cm_qp n = number(p->qb);

	param.private_data = "yes";
	param.private_data_len = 4;
	cr_assert_eq(uroce_cm_accept_qpn(p->b, &n, &param), 0);
}

static void join_by_number(struct pair *p, enum ibv_qp_type type)
{
	cr_assert_eq(ask(p, type, &end_param), 0);
	take_request(p);
	move_all(p->b, p->qb);
	accept_it(p);
	take_response(p);
	cr_expect_eq(end_state(p->qa), IBV_QPS_RESET, "the library leaves it alone");
	move_all(p->a, p->qa);
	cr_assert_eq(uroce_cm_establish(p->a), 0);
	end_expect(B, UROCE_CM_ESTABLISHED);
}

Test(api_cm, numbers_of_queue_pairs_are_enough_to_connect)
{
	struct pair p = {0};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	join_by_number(&p, IBV_QPT_RC);
	talk(&p);
	cr_expect_eq(uroce_cm_init_qp_attr(p.listener, &attr, &mask), EINVAL, "no peer yet");
	attr.qp_state = IBV_QPS_ERR;
	cr_expect_eq(uroce_cm_init_qp_attr(p.a, &attr, &mask), EINVAL);
	cr_assert_eq(uroce_cm_disconnect(p.a), 0);
	end_expect(A, UROCE_CM_DISCONNECTED);
	end_expect(B, UROCE_CM_DISCONNECTED);
	cr_expect_eq(end_state(p.qa), IBV_QPS_RTS, "the library leaves it alone");
	drop(&p);
}

Test(api_cm, unreliable_connections_by_number)
{
	struct pair p = {0};

	join_by_number(&p, IBV_QPT_UC);
	talk(&p);
	drop(&p);
}

Test(api_cm, depths_of_both_ends_are_those_of_their_queue_pairs)
{
	struct uroce_conn_param param = end_param;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct pair p = {0};
	int mask;

	param.responder_resources = 2;
	param.initiator_depth = 3;
	cr_assert_eq(ask(&p, IBV_QPT_RC, &param), 0);
	take_request(&p);
	cr_assert_eq(uroce_cm_init_qp_attr(p.b, &attr, &mask), 0);
	cr_expect_eq(attr.max_dest_rd_atomic, 3);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(uroce_cm_init_qp_attr(p.b, &attr, &mask), 0);
	cr_expect_eq(attr.max_rd_atomic, 2);
	accept_it(&p);
	take_response(&p);
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(uroce_cm_init_qp_attr(p.a, &attr, &mask), 0);
	cr_expect_eq(attr.max_dest_rd_atomic, 2);
	cr_expect_eq(attr.dest_qp_num, p.qb->qp_num);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(uroce_cm_init_qp_attr(p.a, &attr, &mask), 0);
	cr_expect_eq(attr.max_rd_atomic, 3);
	drop(&p);
}

Test(api_cm, a_response_may_be_refused)
{
	struct pair p = {0};

	cr_assert_eq(ask(&p, IBV_QPT_RC, &end_param), 0);
	take_request(&p);
	accept_it(&p);
	take_response(&p);
	cr_assert_eq(uroce_cm_reject(p.a, 28, NULL, 0), 0);
	end_expect(B, UROCE_CM_REJECTED);
	drop(&p);
}

Test(api_cm, the_first_packet_may_stand_for_the_rtu)
{
	struct pair p = {0};

	cr_assert_eq(ask(&p, IBV_QPT_RC, &end_param), 0);
	cr_expect_eq(uroce_cm_establish(p.a), EINVAL, "there is no response yet");
	take_request(&p);
	accept_it(&p);
	take_response(&p);
	cr_assert_eq(uroce_cm_establish(p.b), 0);
	end_expect(B, UROCE_CM_ESTABLISHED);
	cr_assert_eq(uroce_cm_establish(p.a), 0);
	cr_expect_null(end_try_event(B, 20), "it is reported once");
	drop(&p);
}

Test(api_cm, senseless_numbers_are_refused)
{
	struct sockaddr_in in = end_addr(IP_B, PORT);
	struct uroce_cm_qp bad[] = {
		{1, IBV_QPT_RC, false}, {1 << 24, IBV_QPT_RC, false}, {5, IBV_QPT_UD, false}};
	struct uroce_cm_id *a = end_id(A);

	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(uroce_cm_connect_qpn(a, (struct sockaddr *)&in, &bad[i], NULL),
			     EINVAL);
	uroce_cm_destroy_id(a);
}

/* CM-BACKLOG-01 */
Test(api_cm, an_ignored_request_comes_again)
{
	struct pair p = {0};

	cr_assert_eq(ask(&p, IBV_QPT_RC, &end_param), 0);
	take_request(&p);
	cr_assert_eq(uroce_cm_ignore(p.b), 0);
	take_request(&p);
	accept_it(&p);
	cr_expect_eq(uroce_cm_ignore(p.b), EINVAL);
	take_response(&p);
	cr_assert_eq(uroce_cm_establish(p.a), 0);
	end_expect(B, UROCE_CM_ESTABLISHED);
	drop(&p);
}

Test(api_cm, a_connection_comes_from_the_address_that_was_set)
{
	struct sockaddr_in own = end_addr(IP_A, 4711), foreign = end_addr(IP_B, 0);
	struct pair p = {.listener = end_listen(B, PORT), .a = end_id(A)};
	struct sockaddr nonsense = {.sa_family = AF_UNIX};

	cr_expect_eq(uroce_cm_set_source(p.a, &nonsense), EAFNOSUPPORT);
	cr_expect_eq(uroce_cm_set_source(p.a, (struct sockaddr *)&foreign), EADDRNOTAVAIL);
	cr_expect_eq(uroce_cm_set_source(p.listener, (struct sockaddr *)&foreign), EINVAL);
	cr_assert_eq(uroce_cm_set_source(p.a, (struct sockaddr *)&own), 0);
	p.qa = end_qp(A, IBV_QPT_RC);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	accept_one(&p);
	expect_addr(&p.a->local, IP_A, 4711);
	expect_addr(&p.b->peer, IP_A, 4711);
	drop(&p);
}

Test(api_cm, a_datagram_service_may_answer_by_number_and_with_data)
{
	struct sockaddr_in in = end_addr(IP_B, 0);
	struct uroce_cm_id *listener = end_id(B), *a = end_id(A);
	struct uroce_cm_event *ev;

	cr_assert_eq(uroce_cm_sidr_listen(listener, PORT), 0);
	cr_assert_eq(uroce_cm_sidr_resolve(a, (struct sockaddr *)&in, PORT, NULL, 0), 0);
	ev = end_event(B, UROCE_CM_SIDR_REQUEST);
	cr_expect_eq(uroce_cm_sidr_reply_qpn(ev->id, 1, 7, 0, NULL, 0), EINVAL);
	cr_expect_eq(uroce_cm_sidr_reply_qpn(ev->id, 99, 7, 0, "here", 137), EINVAL);
	cr_assert_eq(uroce_cm_sidr_reply_qpn(ev->id, 99, 7, 0, "here", 5), 0);
	uroce_cm_destroy_id(ev->id);
	uroce_ack_cm_event(ev);
	ev = end_event(A, UROCE_CM_SIDR_RESOLVED);
	cr_expect_eq(ev->qpn, 99);
	cr_expect_eq(memcmp(ev->param.private_data, "here", 5), 0);
	uroce_ack_cm_event(ev);
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(listener);
}
