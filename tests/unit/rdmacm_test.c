/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdmacm/cm.h"
#include "rdmacm_pair.h"

TestSuite(rdmacm, .init = setup, .timeout = 240);

/* ---- connections ---- */

Test(rdmacm, connects_with_private_data_in_fields_of_the_messages_sizes)
{
	struct pair p = {.listener = listen_at(IP_B, RDMA_PS_TCP, 0)};
	struct rdma_conn_param hello = param;
	struct rdma_cm_event *e;

	p.a = resolve(IP_B, RDMA_PS_TCP);
	make_qp(p.a);
	hello.private_data = "hello";
	hello.private_data_len = 6;
	cr_assert_eq(rdma_connect(p.a, &hello), 0);
	e = next_event(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	p.b = e->id;
	cr_expect_eq(e->listen_id, p.listener);
	cr_expect_eq(e->param.conn.private_data_len, 56);
	cr_expect_str_eq(e->param.conn.private_data, "hello");
	cr_expect_eq(rdma_get_src_port(p.b), htons(PORT));
	cr_expect_eq(rdma_get_dst_port(p.b), rdma_get_src_port(p.a), "the port that A is bound to");
	rdma_ack_cm_event(e);
	make_qp(p.b);
	hello.private_data = "welcome";
	hello.private_data_len = 8;
	cr_assert_eq(rdma_accept(p.b, &hello), 0);
	e = next_event(ch[A], RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(e->param.conn.private_data_len, 196);
	cr_expect_str_eq(e->param.conn.private_data, "welcome");
	rdma_ack_cm_event(e);
	expect(ch[B], RDMA_CM_EVENT_ESTABLISHED);
	drop(&p);
}

/* CM-RETRY-01 */
Test(rdmacm, more_retries_than_there_can_be_are_as_many_as_there_can_be)
{
	struct rdma_conn_param many = {.retry_count = 10, .rnr_retry_count = 200};
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_TCP, 0),
			  *a = resolve(IP_B, RDMA_PS_TCP), *b;
	struct rdma_cm_event *e;

	make_qp(a);
	cr_assert_eq(rdma_connect(a, &many), 0);
	e = next_event(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	b = e->id;
	cr_expect_eq(e->param.conn.retry_count, 7);
	cr_expect_eq(e->param.conn.rnr_retry_count, 7);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_reject(b, NULL, 0), 0);
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 28);
	free_id(a);
	free_id(b);
	free_id(listener);
}

/* The kernel waits for the program's call before it answers a DREQ; it never fails. */
Test(rdmacm, disconnect_succeeds_after_the_peers)
{
	struct pair p = {0};

	join(&p);
	cr_assert_eq(rdma_disconnect(p.a), 0);
	cr_expect_eq(expect(ch[B], RDMA_CM_EVENT_DISCONNECTED), p.b);
	cr_expect_eq(rdma_disconnect(p.b), 0);
	cr_expect_eq(expect(ch[A], RDMA_CM_EVENT_DISCONNECTED), p.a);
	cr_expect_eq(rdma_disconnect(p.a), 0);
	cr_expect_eq(rdma_disconnect(p.listener), -1);
	cr_expect_eq(errno, EINVAL, "it was never connected");
	drop(&p);
}

Test(rdmacm, a_refusal_has_its_reason_and_its_data)
{
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_TCP, 0), *a, *b;
	struct rdma_cm_event *e;

	a = connect_number(IP_B, 77);
	b = expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_assert_eq(rdma_reject(b, "no", 3), 0);
	e = next_event(ch[A], RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->status, 28);
	cr_expect_eq(e->param.conn.private_data_len, 148);
	cr_expect_str_eq(e->param.conn.private_data, "no");
	rdma_ack_cm_event(e);
	free_id(a);
	free_id(b);
	free_id(listener);
	a = connect_number(IP_B, 77);
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 8);
	free_id(a);
}

/* CM-PATIENCE-01: qperf and perftest tell their client to connect before they listen. */
Test(rdmacm, a_server_may_listen_a_little_late)
{
	struct rdma_cm_id *listener, *a = connect_number(IP_B, 77), *b;

	pause_ms(20);
	listener = listen_at(IP_B, RDMA_PS_TCP, 0);
	b = expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	free_id(b);
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 28);
	free_id(a);
	free_id(listener);
}

/* rdma_xclient sends inline without having asked for room. */
Test(rdmacm, inline_data_has_the_room_of_the_scatter_list)
{
	struct rdma_cm_id *a = resolve(IP_B, RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 2, .max_recv_sge = 1}};

	cr_assert_eq(rdma_create_qp(a, NULL, &attr), 0);
	cr_expect_geq(attr.cap.max_inline_data, 32);
	free_id(a);
}

/* ---- queue pairs that the program moves ---- */

static void move_qp(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to};
	int mask;

	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0, "%s", strerror(errno));
	cr_assert_eq(ibv_modify_qp(qp, &attr, mask), 0);
}

static struct ibv_qp *own_qp(struct rdma_cm_id *id, struct ibv_cq **cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp;

	*cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = *cq;
	qp = ibv_create_qp(id->pd, &attr);
	cr_assert_not_null(qp);
	return qp;
}

static void answer_by_number(struct rdma_cm_id *b, struct ibv_qp *qp)
{
	struct rdma_conn_param p = param;

	move_qp(b, qp, IBV_QPS_INIT);
	move_qp(b, qp, IBV_QPS_RTR);
	move_qp(b, qp, IBV_QPS_RTS);
	p.qp_num = qp->qp_num;
	cr_assert_eq(rdma_accept(b, &p), 0);
}

Test(rdmacm, a_number_is_enough_to_connect)
{
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_TCP, 0), *a, *b;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct rdma_conn_param p = param;
	struct rdma_cm_event *e;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	int mask;

	a = resolve(IP_B, RDMA_PS_TCP);
	qp[A] = own_qp(a, &cq[A]);
	move_qp(a, qp[A], IBV_QPS_INIT);
	cr_expect_eq(rdma_establish(a), -1);
	p.qp_num = qp[A]->qp_num;
	cr_assert_eq(rdma_connect(a, &p), 0);
	b = expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	qp[B] = own_qp(b, &cq[B]);
	answer_by_number(b, qp[B]);
	e = next_event(ch[A], RDMA_CM_EVENT_CONNECT_RESPONSE);
	cr_expect_eq(e->param.conn.qp_num, qp[B]->qp_num);
	rdma_ack_cm_event(e);
	move_qp(a, qp[A], IBV_QPS_INIT);
	move_qp(a, qp[A], IBV_QPS_RTR);
	move_qp(a, qp[A], IBV_QPS_RTS);
	cr_assert_eq(rdma_establish(a), 0);
	cr_expect_eq(expect(ch[B], RDMA_CM_EVENT_ESTABLISHED), b);
	cr_assert_eq(ibv_query_qp(qp[A], &attr, IBV_QP_DEST_QPN, &(struct ibv_qp_init_attr){0}), 0);
	cr_expect_eq(attr.dest_qp_num, qp[B]->qp_num);
	cr_assert_eq(rdma_disconnect(a), 0);
	expect(ch[A], RDMA_CM_EVENT_DISCONNECTED);
	expect(ch[B], RDMA_CM_EVENT_DISCONNECTED);
	attr.qp_state = IBV_QPS_RTR;
	cr_expect_eq(rdma_init_qp_attr(listener, &attr, &mask), -1);
	for (int s = A; s < SIDES; s++) {
		ibv_destroy_qp(qp[s]);
		ibv_destroy_cq(cq[s]);
	}
	free_id(a);
	free_id(b);
	free_id(listener);
}

/* ---- datagrams ---- */

Test(rdmacm, datagram_services_answer_with_their_queue_pair)
{
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_UDP, 0), *a, *b;
	struct rdma_conn_param p = {.private_data = "who", .private_data_len = 4};
	struct rdma_cm_event *e;

	a = resolve(IP_B, RDMA_PS_UDP);
	make_qp(a);
	cr_assert_eq(rdma_connect(a, &p), 0);
	e = next_event(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	b = e->id;
	cr_expect_eq(e->param.ud.private_data_len, 180);
	cr_expect_str_eq(e->param.ud.private_data, "who");
	rdma_ack_cm_event(e);
	p.private_data = "me";
	p.private_data_len = 3;
	p.qp_num = 4321;
	cr_assert_eq(rdma_accept(b, &p), 0, "without a queue pair of the id's");
	e = next_event(ch[A], RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(e->param.ud.qp_num, 4321);
	cr_expect_eq(e->param.ud.qkey, RDMA_UDP_QKEY);
	cr_expect_eq(e->param.ud.private_data_len, 136);
	cr_expect_str_eq(e->param.ud.private_data, "me");
	rdma_ack_cm_event(e);
	free_id(a);
	free_id(b);
	free_id(listener);
}

Test(rdmacm, datagram_services_refuse_or_are_not_there)
{
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_UDP, 0), *a, *b;

	a = resolve(IP_B, RDMA_PS_UDP);
	cr_assert_eq(rdma_connect(a, NULL), 0);
	b = expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_assert_eq(rdma_reject(b, NULL, 0), 0);
	expect_status(ch[A], RDMA_CM_EVENT_UNREACHABLE, 2);
	free_id(a);
	free_id(b);
	free_id(listener);
	a = resolve(IP_B, RDMA_PS_UDP);
	cr_assert_eq(rdma_connect(a, NULL), 0);
	expect_status(ch[A], RDMA_CM_EVENT_UNREACHABLE, 1);
	free_id(a);
}

/* ---- addresses and ports ---- */

Test(rdmacm, a_listener_gets_requests_to_its_address_only)
{
	struct rdma_cm_id *v6 = listen_at(IP6_B, RDMA_PS_TCP, 0), *v4, *a, *b;
	struct rdma_cm_event *e;

	a = connect_number(IP_B, 77);
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 8);
	free_id(a);
	v4 = listen_at(IP_B, RDMA_PS_TCP, 0);
	for (int i = 0; i < 2; i++) {
		a = connect_number(i ? IP6_B : IP_B, 77);
		e = next_event(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
		b = e->id;
		cr_expect_eq(e->listen_id, i ? v6 : v4);
		rdma_ack_cm_event(e);
		free_id(b);
		expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 28);
		free_id(a);
	}
	free_id(v4);
	free_id(v6);
}

Test(rdmacm, a_wildcard_of_ipv6_stands_for_both_families_unless_the_program_objects)
{
	struct rdma_cm_id *all = listen_at("::", RDMA_PS_TCP, 0), *a, *only;
	int one = 1;

	a = connect_number(IP_B, 77);
	free_id(expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST));
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 28);
	free_id(a);
	free_id(all);
	only = new_id(B, RDMA_PS_TCP);
	cr_assert_eq(
		rdma_set_option(only, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), 0);
	cr_assert_eq(try_bind(only, "::", PORT), 0);
	cr_assert_eq(rdma_listen(only, 0), 0);
	a = connect_number(IP_B, 77);
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 8);
	free_id(a);
	free_id(only);
}

Test(rdmacm, a_port_is_one_ids_unless_both_share_it)
{
	struct rdma_cm_id *a = new_id(A, RDMA_PS_TCP), *b = new_id(A, RDMA_PS_TCP),
			  *udp = new_id(A, RDMA_PS_UDP), *any = new_id(A, RDMA_PS_TCP);
	int one = 1;

	cr_expect_eq(try_bind(a, IP_A, PORT), 0);
	cr_expect_eq(try_bind(b, IP_A, PORT), EADDRINUSE);
	cr_expect_eq(try_bind(any, "0.0.0.0", PORT), EADDRINUSE);
	cr_expect_eq(try_bind(udp, IP_A, PORT), 0, "a space of its own");
	cr_expect_eq(try_bind(b, "10.77.0.99", PORT), ENODEV);
	cr_expect_eq(try_bind(b, IP_B, PORT), 0, "another address");
	cr_expect_eq(try_bind(b, IP_B, 0), EINVAL, "it is bound");
	free_id(b);
	free_id(a);
	a = new_id(A, RDMA_PS_TCP);
	b = new_id(A, RDMA_PS_TCP);
	rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one));
	rdma_set_option(b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one));
	cr_expect_eq(try_bind(a, IP_A, PORT), 0);
	cr_expect_eq(try_bind(b, IP_A, PORT), 0);
	cr_expect_eq(rdma_listen(a, 0), -1);
	cr_expect_eq(errno, EADDRINUSE, "two cannot listen");
	free_id(b);
	cr_expect_eq(rdma_listen(a, 0), 0);
	free_id(a);
	free_id(udp);
	cr_expect_eq(try_bind(any, "0.0.0.0", 0), 0);
	cr_expect_geq(ntohs(rdma_get_src_port(any)), 32768);
	free_id(any);
}

/* ---- resolution ---- */

Test(rdmacm, a_peer_that_is_not_there_is_an_event)
{
	struct rdma_cm_id *a = new_id(A, RDMA_PS_TCP), *gone = new_id(A, RDMA_PS_TCP);
	union addr dst = addr("10.77.0.99", PORT), good = addr(IP_B, PORT), src = addr(IP_A, 0);

	cr_assert_eq(rdma_resolve_addr(gone, &src.sa, &dst.sa, 1000), 0);
	cr_assert_eq(rdma_resolve_addr(a, &src.sa, &dst.sa, 1), 0, "the call does not wait");
	cr_expect_eq(rdma_resolve_addr(a, &src.sa, &dst.sa, 1), -1);
	cr_expect_eq(errno, EINVAL, "it is under way");
	free_id(gone);
	cr_expect_eq(expect_status(ch[A], RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT), a);
	cr_assert_eq(rdma_resolve_addr(a, &src.sa, &good.sa, 5000), 0, "it may try again");
	expect(ch[A], RDMA_CM_EVENT_ADDR_RESOLVED);
	free_id(a);
}

Test(rdmacm, a_peer_that_answers_does_not_wait_for_one_that_does_not)
{
	struct rdma_cm_id *silent[4], *a;
	union addr dst = addr("10.77.0.99", PORT), src = addr(IP_A, 0);

	for (unsigned i = 0; i < 4; i++) {
		silent[i] = new_id(A, RDMA_PS_TCP);
		cr_assert_eq(rdma_resolve_addr(silent[i], &src.sa, &dst.sa, 60000), 0);
	}
	a = resolve(IP_B, RDMA_PS_TCP);
	free_id(a);
	for (unsigned i = 0; i < 4; i++)
		free_id(silent[i]);
}

Test(rdmacm, names_and_hints)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_UDP},
			     *res;
	union addr src = addr(IP_A, 0);

	cr_assert_eq(rdma_getaddrinfo(IP_B, "7471", &hints, &res), 0);
	cr_expect_eq(res->ai_qp_type, IBV_QPT_UD);
	cr_expect_eq(res->ai_family, AF_INET);
	cr_expect_eq(((struct sockaddr_in *)res->ai_src_addr)->sin_port, htons(PORT));
	cr_expect_null(res->ai_dst_addr);
	rdma_freeaddrinfo(res);
	hints = (struct rdma_addrinfo){
		.ai_port_space = RDMA_PS_TCP, .ai_src_addr = &src.sa, .ai_src_len = sizeof(src.in)};
	cr_assert_eq(rdma_getaddrinfo(IP_B, "7471", &hints, &res), 0);
	cr_expect_eq(res->ai_qp_type, IBV_QPT_RC);
	cr_expect_eq(memcmp(res->ai_src_addr, &src.in, sizeof(src.in)), 0);
	cr_expect_eq(((struct sockaddr_in *)res->ai_dst_addr)->sin_port, htons(PORT));
	rdma_freeaddrinfo(res);
	hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
				       .ai_family = AF_INET6};
	cr_expect_neq(rdma_getaddrinfo(IP_B, "7471", &hints, &res), 0);
}

/* ---- what is not of rdma-core 44 ---- */

Test(rdmacm, a_program_wakes_a_thread_by_an_event_of_its_own)
{
	const enum rdma_cm_event_type user = UR_CM_EVENT_USER;
	struct rdma_cm_id *a = new_id(A, RDMA_PS_TCP);
	struct rdma_cm_event *e;
	uint64_t arg;

	cr_assert_eq(rdma_write_cm_event(a, user, -7, 0x0123456789abcdef), 0);
	e = next_event(ch[A], user);
	cr_expect_eq(e->id, a);
	cr_expect_eq(e->status, -7);
	memcpy(&arg, &e->param, sizeof(arg));
	cr_expect_eq(arg, 0x0123456789abcdef);
	cr_expect_str_eq(rdma_event_str(e->event), "RDMA_CM_EVENT_USER");
	rdma_ack_cm_event(e);
	cr_expect_eq(rdma_write_cm_event(a, RDMA_CM_EVENT_ESTABLISHED, 0, 0), -1);
	cr_expect_eq(errno, EINVAL, "only an event of the program's");
	free_id(a);
}
