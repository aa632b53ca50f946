/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_cm_pair.h"

#include <criterion/parameterized.h>

/* ---- connect ---- */

Test(api_cm, a_connection_carries_data_both_ways)
{
	struct pair p = {0};

	join(&p, IBV_QPT_RC);
	cr_assert_eq(end_state(p.qa), IBV_QPS_RTS);
	cr_assert_eq(end_state(p.qb), IBV_QPS_RTS);
	talk(&p);
	drop(&p);
}

Test(api_cm, unreliable_connections_connect_too)
{
	struct pair p = {0};

	join(&p, IBV_QPT_UC);
	talk(&p);
	drop(&p);
}

static void init_queue(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	cr_assert_eq(uroce_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS),
		     0);
}

Test(api_cm, receives_posted_before_connect_are_used)
{
	struct pair p = {.listener = end_listen(B, PORT), .a = end_id(A)};
	struct ibv_qp_attr attr;

	p.qa = end_qp(A, IBV_QPT_RC);
	init_queue(p.qa);
	end_post_recv(A, p.qa, 9);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	accept_one(&p);
	end_post_send(B, p.qb, 4, "early");
	cr_assert_eq(end_wc(A).wr_id, 9);
	uroce_query_qp(p.qa, &attr, IBV_QP_ACCESS_FLAGS, NULL);
	cr_assert_eq(attr.qp_access_flags, 0, "the application's own choice stays");
	drop(&p);
}

Test(api_cm, both_sides_learn_addresses_parameters_and_private_data)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A);
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC), *qb = end_qp(B, IBV_QPT_RC);
	uint8_t req[56], rep[196];
	struct uroce_conn_param pa = {.private_data = req,
				      .private_data_len = sizeof(req),
				      .responder_resources = 3,
				      .initiator_depth = 5,
				      .retry_count = 6,
				      .rnr_retry_count = 4,
				      .timeout = 17,
				      .path_mtu = 1024};
	struct uroce_conn_param pb = {.private_data = rep,
				      .private_data_len = sizeof(rep),
				      .responder_resources = 2,
				      .initiator_depth = 9,
				      .rnr_retry_count = 1};
	struct ibv_qp_attr at;
	struct uroce_cm_event *ev;
	struct uroce_cm_id *b;

	memset(req, 0xa5, sizeof(req));
	memset(rep, 0x5a, sizeof(rep));
	listener->user = &pb;
	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, &pa), 0);
	expect_addr(&a->local, IP_A, 0);
	expect_addr(&a->peer, IP_B, PORT);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	b = ev->id;
	cr_expect_eq(ev->listen_id, listener);
	cr_expect_eq(b->user, &pb, "a child inherits its listener's");
	expect_addr(&b->local, IP_B, PORT);
	expect_addr(&b->peer, IP_A, ntohs(((struct sockaddr_in *)&a->local)->sin_port));
	cr_expect_eq(ev->param.responder_resources, 3);
	cr_expect_eq(ev->param.initiator_depth, 5);
	cr_expect_eq(ev->param.retry_count, 6);
	cr_expect_eq(ev->param.rnr_retry_count, 4);
	cr_expect_eq(ev->param.timeout, 17);
	cr_expect_eq(ev->param.path_mtu, 1024);
	cr_assert_eq(ev->param.private_data_len, 56);
	cr_expect_arr_eq(ev->param.private_data, req, 56);
	uroce_ack_cm_event(ev);
	cr_assert_eq(uroce_cm_accept(b, qb, &pb), 0);
	ev = end_event(A, UROCE_CM_ESTABLISHED);
	cr_assert_eq(ev->param.private_data_len, 196);
	cr_expect_arr_eq(ev->param.private_data, rep, 196);
	uroce_ack_cm_event(ev);
	end_expect(B, UROCE_CM_ESTABLISHED);
	uroce_query_qp(qa, &at, IBV_QP_STATE, NULL);
	cr_expect_eq(at.max_rd_atomic, 2, "B serves two");
	cr_expect_eq(at.max_dest_rd_atomic, 3);
	cr_expect_eq(at.path_mtu, IBV_MTU_1024);
	cr_expect_eq(at.retry_cnt, 6);
	cr_expect_eq(at.rnr_retry, 1, "as B asks for");
	cr_expect_eq(at.timeout, 17);
	cr_expect_eq(at.dest_qp_num, qb->qp_num);
	uroce_query_qp(qb, &at, IBV_QP_STATE, NULL);
	cr_expect_eq(at.max_rd_atomic, 3, "A serves three");
	cr_expect_eq(at.max_dest_rd_atomic, 2);
	cr_expect_eq(at.path_mtu, IBV_MTU_1024);
	cr_expect_eq(at.retry_cnt, 6);
	cr_expect_eq(at.rnr_retry, 4, "as A asks for");
	cr_expect_eq(at.timeout, 17);
	cr_expect_eq(at.dest_qp_num, qa->qp_num);
	drop(&(struct pair){listener, a, b, qa, qb});
}

Test(api_cm, link_local_addresses_connect)
{
	struct pair p = {.listener = end_listen(B, PORT), .a = end_id(A)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};

	inet_pton(AF_INET6, "fe80::75:72ff:fe00:b", &in6.sin6_addr);
	p.qa = end_qp(A, IBV_QPT_RC);
	cr_assert_eq(uroce_cm_connect(p.a, (struct sockaddr *)&in6, p.qa, &end_param), 0);
	accept_one(&p);
	cr_assert_eq(p.b->peer.ss_family, AF_INET6);
	talk(&p);
	drop(&p);
}

Test(api_cm, an_endpoint_connects_to_itself)
{
	struct uroce_cm_id *listener = end_listen(A, PORT), *a = end_id(A), *b;
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC), *qb = end_qp(A, IBV_QPT_RC);
	struct uroce_cm_event *ev;

	cr_assert_eq(end_try_connect(a, IP_A, PORT, qa, NULL), 0);
	ev = end_event(A, UROCE_CM_CONNECT_REQUEST);
	b = ev->id;
	uroce_ack_cm_event(ev);
	cr_assert_eq(uroce_cm_accept(b, qb, &end_param), 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(A, UROCE_CM_ESTABLISHED);
	drop(&(struct pair){listener, a, b, qa, qb});
}

#define CROWD 8

Test(api_cm, connections_in_both_directions_at_once_do_not_mix)
{
	struct uroce_cm_id *la = end_listen(A, PORT), *lb = end_listen(B, PORT);
	struct uroce_cm_id *ids[4 * CROWD];
	struct ibv_qp *qps[4 * CROWD];
	unsigned n = 0, up = 0;

	for (; n < 2 * CROWD; n++) {
		struct end *e = n & 1 ? B : A;

		ids[n] = end_id(e);
		qps[n] = end_qp(e, IBV_QPT_RC);
		cr_assert_eq(end_try_connect(ids[n], n & 1 ? IP_A : IP_B, PORT, qps[n], NULL), 0);
	}
	while (up < 4 * CROWD) {
		for (unsigned i = 0; i < END_PEERS; i++) {
			struct uroce_cm_event *ev = end_try_event(&ends[i], 0);

			if (!ev)
				continue;
			if (ev->type == UROCE_CM_CONNECT_REQUEST) {
				ids[n] = ev->id;
				qps[n] = end_qp(&ends[i], IBV_QPT_RC);
				cr_assert_eq(uroce_cm_accept(ids[n], qps[n], &end_param), 0);
				n++;
			} else {
				cr_assert_eq(ev->type, UROCE_CM_ESTABLISHED);
				up++;
			}
			uroce_ack_cm_event(ev);
		}
	}
	cr_assert_eq(n, 4 * CROWD);
	for (unsigned i = 0; i < n; i++) {
		cr_expect_eq(end_state(qps[i]), IBV_QPS_RTS);
		uroce_cm_destroy_id(ids[i]);
		uroce_destroy_qp(qps[i]);
	}
	uroce_cm_destroy_id(la);
	uroce_cm_destroy_id(lb);
}

/* ---- refusals ---- */

Test(api_cm, a_rejection_carries_reason_and_private_data)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A), *b;
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);
	struct uroce_cm_event *ev;

	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	b = ev->id;
	uroce_ack_cm_event(ev);
	cr_assert_eq(uroce_cm_reject(b, 28, "not today", 10), 0);
	cr_assert_eq(uroce_cm_reject(b, 28, NULL, 0), EINVAL, "once is enough");
	ev = end_event(A, UROCE_CM_REJECTED);
	cr_expect_eq(ev->id, a);
	cr_expect_eq(ev->status, 28);
	cr_expect_eq(ev->param.private_data_len, 148);
	cr_expect_str_eq(ev->param.private_data, "not today");
	uroce_ack_cm_event(ev);
	cr_expect_eq(end_state(qa), IBV_QPS_ERR);
	cr_expect_null(end_try_event(B, 50));
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(b);
	uroce_cm_destroy_id(listener);
	uroce_destroy_qp(qa);
}

Test(api_cm, a_port_without_listener_rejects_with_reason_8)
{
	struct uroce_cm_id *a = end_id(A);
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);

	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	expect_status(a, UROCE_CM_REJECTED, 8);
	uroce_cm_destroy_id(a);
	uroce_destroy_qp(qa);
}

Test(api_cm, an_id_may_try_again_after_a_refusal)
{
	struct pair p = {.a = end_id(A), .qa = end_qp(A, IBV_QPT_RC)};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	expect_status(p.a, UROCE_CM_REJECTED, 8);
	p.listener = end_listen(B, PORT);
	cr_assert_eq(uroce_modify_qp(p.qa, &reset, IBV_QP_STATE), 0);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	accept_one(&p);
	talk(&p);
	drop(&p);
}

Test(api_cm, an_address_without_a_host_is_unreachable_at_once)
{
	struct uroce_cm_id *a = end_id(A);
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);

	cr_assert_eq(end_try_connect(a, "10.77.0.99", PORT, qa, NULL), EHOSTUNREACH);
	cr_expect_eq(end_state(qa), IBV_QPS_RESET);
	uroce_cm_destroy_id(a);
	uroce_destroy_qp(qa);
}

Test(api_cm_own, a_silent_peer_is_unreachable_within_seconds)
{
	const char *const set[] = {"address.neighbor=10.77.0.9=02:00:00:00:00:99", NULL};
	uint64_t start;
	struct uroce_cm_id *a;
	struct ibv_qp *qa;

	open_both(set, NULL);
	a = end_id(A);
	qa = end_qp(A, IBV_QPT_RC);
	start = end_ms();
	cr_assert_eq(end_try_connect(a, "10.77.0.9", PORT, qa, NULL), 0);
	expect_status(a, UROCE_CM_UNREACHABLE, ETIMEDOUT);
	cr_expect_gt(end_ms() - start, 2000);
	uroce_cm_destroy_id(a);
	uroce_destroy_qp(qa);
}

Test(api_cm_own, a_path_mtu_that_the_peer_has_not_is_refused_with_reason_26)
{
	const char *const set[] = {"transport.path_mtu=512", NULL};
	struct uroce_conn_param small = end_param;
	struct pair p = {0};

	open_both(NULL, set);
	p.listener = end_listen(B, PORT);
	p.a = end_id(A);
	p.qa = end_qp(A, IBV_QPT_RC);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	expect_status(p.a, UROCE_CM_REJECTED, 26);
	uroce_destroy_qp(p.qa);
	p.qa = end_qp(A, IBV_QPT_RC);
	small.path_mtu = 512;
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, &small), 0);
	accept_one(&p);
	drop(&p);
}

Test(api_cm, arguments_out_of_range_are_refused)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *other = end_id(B), *a = end_id(A);
	struct ibv_qp *rc = end_qp(A, IBV_QPT_RC), *ud = end_qp(A, IBV_QPT_UD);
	struct uroce_conn_param p = {.private_data = "", .private_data_len = 57};
	struct sockaddr odd = {.sa_family = AF_UNIX};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	cr_expect_eq(uroce_cm_listen(other, PORT), EADDRINUSE);
	cr_expect_eq(uroce_cm_listen(listener, PORT + 1), EINVAL);
	cr_expect_eq(uroce_cm_unlisten(other), EINVAL);
	cr_expect_eq(end_try_connect(a, IP_B, PORT, rc, &p), EINVAL);
	p = (struct uroce_conn_param){.path_mtu = 1000};
	cr_expect_eq(end_try_connect(a, IP_B, PORT, rc, &p), EINVAL);
	p = (struct uroce_conn_param){.retry_count = 8};
	cr_expect_eq(end_try_connect(a, IP_B, PORT, rc, &p), EINVAL);
	cr_expect_eq(end_try_connect(a, IP_B, PORT, ud, NULL), EINVAL);
	cr_expect_eq(end_try_connect(listener, IP_A, PORT, rc, NULL), EINVAL);
	cr_expect_eq(uroce_cm_connect(a, &odd, rc, NULL), EAFNOSUPPORT);
	cr_expect_eq(uroce_cm_connect(a, (struct sockaddr *)&in6, rc, NULL), EHOSTUNREACH);
	cr_expect_eq(uroce_cm_accept(a, rc, NULL), EINVAL);
	cr_expect_eq(uroce_cm_disconnect(a), ENOTCONN);
	cr_expect_eq(end_state(rc), IBV_QPS_RESET);
	cr_expect_eq(uroce_destroy_event_channel(B->ch), EBUSY);
	cr_expect_eq(uroce_close(B->ctx), EBUSY);
	uroce_destroy_qp(rc);
	uroce_destroy_qp(ud);
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(other);
	uroce_cm_destroy_id(listener);
}

/* ---- ends ---- */

Test(api_cm, the_active_side_disconnects)
{
	struct pair p = {0};

	join(&p, IBV_QPT_RC);
	end_from(&p, p.a);
	drop(&p);
}

Test(api_cm, the_passive_side_disconnects)
{
	struct pair p = {0};

	join(&p, IBV_QPT_RC);
	end_from(&p, p.b);
	drop(&p);
}

/* ESTABLISHED may come before it, if the RTU was faster. */
static void expect_end_of_b(void)
{
	struct uroce_cm_event *ev = end_try_event(B, PATIENCE_MS);

	cr_assert_not_null(ev);
	if (ev->type == UROCE_CM_ESTABLISHED) {
		uroce_ack_cm_event(ev);
		ev = end_event(B, UROCE_CM_DISCONNECTED);
	}
	cr_expect_eq(ev->type, UROCE_CM_DISCONNECTED);
	uroce_ack_cm_event(ev);
}

/* CM-EARLY-END-01. The active side has got the REP, or not yet. */
ParameterizedTestParameters(api_cm, a_passive_side_that_has_accepted_may_disconnect)
{
	static bool answered[] = {false, true};

	return cr_make_param_array(bool, answered, 2);
}

ParameterizedTest(bool *answered, api_cm, a_passive_side_that_has_accepted_may_disconnect)
{
	struct pair p = {.listener = end_listen(B, PORT)};
	struct uroce_cm_event *ev;

	p.a = end_id(A);
	p.qa = end_qp(A, IBV_QPT_RC);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	p.b = ev->id;
	p.qb = end_qp(B, IBV_QPT_RC);
	uroce_ack_cm_event(ev);
	cr_assert_eq(uroce_cm_disconnect(p.b), ENOTCONN, "it has not accepted");
	cr_assert_eq(uroce_cm_accept(p.b, p.qb, &end_param), 0);
	if (*answered)
		end_expect(A, UROCE_CM_ESTABLISHED);
	cr_assert_eq(uroce_cm_disconnect(p.b), 0);
	if (!*answered)
		end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(A, UROCE_CM_DISCONNECTED);
	expect_end_of_b();
	cr_expect_eq(end_state(p.qa), IBV_QPS_ERR);
	cr_expect_eq(end_state(p.qb), IBV_QPS_ERR);
	drop(&p);
}

Test(api_cm, both_sides_may_disconnect_at_once)
{
	struct pair p = {0};

	join(&p, IBV_QPT_RC);
	cr_assert_eq(uroce_cm_disconnect(p.a), 0);
	cr_assert_eq(uroce_cm_disconnect(p.b), 0);
	cr_assert_eq(uroce_cm_disconnect(p.a), 0);
	end_expect(A, UROCE_CM_DISCONNECTED);
	end_expect(B, UROCE_CM_DISCONNECTED);
	end_expect(A, UROCE_CM_TIMEWAIT_EXIT);
	end_expect(B, UROCE_CM_TIMEWAIT_EXIT);
	drop(&p);
}

Test(api_cm, an_id_connects_again_after_time_wait_and_not_before)
{
	struct pair p = {0};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	join(&p, IBV_QPT_RC);
	cr_assert_eq(uroce_cm_disconnect(p.a), 0);
	end_expect(A, UROCE_CM_DISCONNECTED);
	end_expect(B, UROCE_CM_DISCONNECTED);
	cr_assert_eq(uroce_modify_qp(p.qa, &reset, IBV_QP_STATE), 0);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), EINVAL);
	end_expect(A, UROCE_CM_TIMEWAIT_EXIT);
	uroce_cm_destroy_id(p.b);
	uroce_destroy_qp(p.qb);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	accept_one(&p);
	talk(&p);
	drop(&p);
}

Test(api_cm, destroying_an_id_disconnects_the_peer)
{
	struct pair p = {0};

	join(&p, IBV_QPT_RC);
	uroce_cm_destroy_id(p.a);
	cr_expect_eq(end_state(p.qa), IBV_QPS_ERR);
	end_expect(B, UROCE_CM_DISCONNECTED);
	cr_expect_null(end_try_event(A, 1200), "nothing is told about an id that is gone");
	end_expect(B, UROCE_CM_TIMEWAIT_EXIT);
	uroce_cm_destroy_id(p.b);
	uroce_cm_destroy_id(p.listener);
	uroce_destroy_qp(p.qa);
	uroce_destroy_qp(p.qb);
}

Test(api_cm, a_qp_may_go_before_its_id)
{
	struct pair p = {0};

	join(&p, IBV_QPT_RC);
	uroce_destroy_qp(p.qb);
	cr_expect_null(p.b->qp);
	cr_assert_eq(uroce_cm_disconnect(p.a), 0);
	end_expect(A, UROCE_CM_DISCONNECTED);
	end_expect(B, UROCE_CM_DISCONNECTED);
	uroce_cm_destroy_id(p.a);
	uroce_cm_destroy_id(p.b);
	uroce_cm_destroy_id(p.listener);
	uroce_destroy_qp(p.qa);
}

Test(api_cm, destroying_a_qp_during_set_up_ends_the_connection)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A), *b;
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC), *qb = end_qp(B, IBV_QPT_RC);
	struct uroce_cm_event *ev;

	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	b = ev->id;
	uroce_ack_cm_event(ev);
	uroce_destroy_qp(qa);
	cr_assert_eq(uroce_cm_accept(b, qb, NULL), 0);
	expect_status(a, UROCE_CM_UNREACHABLE, ENOENT);
	end_expect(B, UROCE_CM_REJECTED);
	cr_expect_eq(end_state(qb), IBV_QPS_ERR);
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(b);
	uroce_cm_destroy_id(listener);
	uroce_destroy_qp(qb);
}
