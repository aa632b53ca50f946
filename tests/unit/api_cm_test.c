/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_end.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define PORT 7471
#define IP_A "10.77.0.1"
#define IP_B "10.77.0.2"

static void open_both(const char *const *set_a, const char *const *set_b)
{
	end_open(A, "ring-a.conf", set_a);
	end_open(B, "ring-b.conf", set_b);
}

static void setup(void)
{
	open_both(NULL, NULL);
}

static void teardown(void)
{
	end_close(A);
	end_close(B);
}

TestSuite(api_cm, .init = setup, .fini = teardown, .timeout = 60);
TestSuite(api_cm_own, .fini = teardown, .timeout = 60); /* opens its endpoints itself */

/* One connection from A to B, with its listener. */
struct pair {
	struct uroce_cm_id *listener, *a, *b;
	struct ibv_qp *qa, *qb;
};

static void accept_one(struct pair *p)
{
	struct uroce_cm_event *ev = end_event(B, UROCE_CM_CONNECT_REQUEST);

	p->b = ev->id;
	p->qb = end_qp(B, p->qa->qp_type);
	uroce_ack_cm_event(ev);
	cr_assert_eq(uroce_cm_accept(p->b, p->qb, &end_param), 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(B, UROCE_CM_ESTABLISHED);
}

static void join(struct pair *p, enum ibv_qp_type type)
{
	if (!p->listener)
		p->listener = end_listen(B, PORT);
	p->a = end_id(A);
	p->qa = end_qp(A, type);
	cr_assert_eq(end_try_connect(p->a, IP_B, PORT, p->qa, NULL), 0);
	accept_one(p);
}

static void drop_ends(struct pair *p)
{
	cr_expect_eq(uroce_cm_destroy_id(p->a), 0);
	cr_expect_eq(uroce_cm_destroy_id(p->b), 0);
	cr_expect_eq(uroce_destroy_qp(p->qa), 0);
	cr_expect_eq(uroce_destroy_qp(p->qb), 0);
}

static void drop(struct pair *p)
{
	drop_ends(p);
	cr_expect_eq(uroce_cm_destroy_id(p->listener), 0);
}

static void talk(struct pair *p)
{
	end_post_recv(A, p->qa, 1);
	end_post_recv(B, p->qb, 2);
	end_post_send(A, p->qa, 3, "from a");
	cr_assert_eq(end_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(B).wr_id, 2);
	cr_assert_str_eq((char *)B->buf, "from a");
	end_post_send(B, p->qb, 4, "from b");
	cr_assert_eq(end_wc(B).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(A).wr_id, 1);
	cr_assert_str_eq((char *)A->buf, "from b");
}

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

static void expect_addr(const struct sockaddr_storage *ss, const char *ip, int port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	char text[INET_ADDRSTRLEN];

	cr_expect_eq(in->sin_family, AF_INET);
	cr_expect_str_eq(inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)), ip);
	if (port)
		cr_expect_eq(ntohs(in->sin_port), port);
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

static void expect_status(struct uroce_cm_id *id, enum uroce_cm_event_type type, int status)
{
	struct uroce_cm_event *ev = end_event(A, type);

	cr_expect_eq(ev->id, id);
	cr_expect_eq(ev->status, status, "%d", ev->status);
	uroce_ack_cm_event(ev);
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

Test(api_cm, an_address_that_nobody_has_is_unreachable_at_once)
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

static void end_from(struct pair *p, struct uroce_cm_id *id)
{
	end_post_recv(A, p->qa, 5);
	end_post_recv(B, p->qb, 6);
	cr_assert_eq(uroce_cm_disconnect(id), 0);
	end_expect(A, UROCE_CM_DISCONNECTED);
	end_expect(B, UROCE_CM_DISCONNECTED);
	cr_expect_eq(end_state(p->qa), IBV_QPS_ERR);
	cr_expect_eq(end_state(p->qb), IBV_QPS_ERR);
	cr_expect_eq(end_wc(A).status, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(end_wc(B).status, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(uroce_cm_disconnect(id), ENOTCONN);
	end_expect(A, UROCE_CM_TIMEWAIT_EXIT);
	end_expect(B, UROCE_CM_TIMEWAIT_EXIT);
	cr_expect_null(end_try_event(A, 20));
	cr_expect_null(end_try_event(B, 20));
}

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

Test(api_cm, a_qp_that_goes_while_its_connection_is_made_ends_that)
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

/* ---- requests that nobody answers ---- */

static void wait_readable(struct end *e)
{
	struct pollfd p = {.fd = uroce_event_channel_fd(e->ch), .events = POLLIN};
	uint64_t until = end_ms() + PATIENCE_MS;

	while (poll(&p, 1, 0) != 1) {
		end_progress();
		cr_assert_lt(end_ms(), until);
	}
}

Test(api_cm, the_channel_is_readable_while_it_holds_events)
{
	struct pollfd fd = {.fd = uroce_event_channel_fd(A->ch), .events = POLLIN};
	struct uroce_cm_id *a = end_id(A);
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);

	cr_expect_eq(poll(&fd, 1, 0), 0);
	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	wait_readable(A);
	end_expect(A, UROCE_CM_REJECTED);
	cr_expect_eq(poll(&fd, 1, 0), 0);
	uroce_destroy_qp(qa);
	uroce_cm_destroy_id(a);
}

Test(api_cm, a_listener_that_goes_refuses_what_waited)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A);
	struct pollfd fd = {.fd = uroce_event_channel_fd(B->ch), .events = POLLIN};
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);

	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	wait_readable(B);
	uroce_cm_destroy_id(listener);
	cr_expect_eq(poll(&fd, 1, 0), 0);
	expect_status(a, UROCE_CM_REJECTED, 28);
	uroce_cm_destroy_id(a);
	uroce_destroy_qp(qa);
}

Test(api_cm, a_child_destroyed_unanswered_refuses)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A);
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);
	struct uroce_cm_event *ev;

	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	uroce_cm_destroy_id(ev->id);
	uroce_ack_cm_event(ev);
	expect_status(a, UROCE_CM_REJECTED, 28);
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(listener);
	uroce_destroy_qp(qa);
}

Test(api_cm, a_request_withdrawn_before_it_was_fetched_leaves_nothing)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A);
	struct pollfd fd = {.fd = uroce_event_channel_fd(B->ch), .events = POLLIN};
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);

	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	wait_readable(B);
	uroce_cm_destroy_id(a);
	for (uint64_t until = end_ms() + PATIENCE_MS; poll(&fd, 1, 0) == 1 && end_ms() < until;)
		end_progress();
	cr_expect_null(end_try_event(B, 50));
	cr_expect_eq(poll(&fd, 1, 0), 0);
	uroce_cm_destroy_id(listener);
	uroce_destroy_qp(qa);
}

Test(api_cm, a_request_withdrawn_while_it_is_thought_over_is_told)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A), *b;
	struct ibv_qp *qa = end_qp(A, IBV_QPT_RC), *qb = end_qp(B, IBV_QPT_RC);
	struct uroce_cm_event *ev;

	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	b = ev->id;
	uroce_ack_cm_event(ev);
	uroce_cm_destroy_id(a);
	wait_readable(B);
	cr_expect_eq(uroce_cm_accept(b, qb, NULL), ECONNABORTED);
	end_expect(B, UROCE_CM_REJECTED);
	cr_expect_null(end_try_event(B, 20));
	uroce_cm_destroy_id(b);
	uroce_cm_destroy_id(listener);
	uroce_destroy_qp(qa);
	uroce_destroy_qp(qb);
}

Test(api_cm, a_slow_application_does_not_lose_the_peer)
{
	struct pair p = {.listener = end_listen(B, PORT), .a = end_id(A)};

	p.qa = end_qp(A, IBV_QPT_RC);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	cr_expect_null(end_try_event(A, 3500), "longer than all repetitions");
	accept_one(&p);
	talk(&p);
	drop(&p);
}

/* ---- service id resolution ---- */

static int ask(struct uroce_cm_id *id, uint16_t port, const char *text)
{
	struct sockaddr_in in = end_addr(IP_B, 0);

	return uroce_cm_sidr_resolve(id, (struct sockaddr *)&in, port, text,
				     (uint8_t)(strlen(text) + 1));
}

static struct uroce_cm_id *listen_sidr(void)
{
	struct uroce_cm_id *id = end_id(B);

	cr_assert_eq(uroce_cm_sidr_listen(id, PORT), 0);
	return id;
}

/* CM-SIDR-01: an application that does not know of SIDR has no requests to answer. */
Test(api_cm, a_listener_hears_requests_of_its_kind_only)
{
	struct uroce_cm_id *listener = end_listen(B, PORT), *a = end_id(A), *sidr;

	cr_assert_eq(ask(a, PORT, ""), 0);
	expect_status(a, UROCE_CM_SIDR_RESOLVED, 1);
	sidr = listen_sidr();
	cr_expect_eq(uroce_cm_sidr_listen(sidr, PORT + 1), EINVAL, "it listens already");
	cr_expect_null(end_try_event(B, 0));
	cr_expect_eq(uroce_cm_unlisten(listener), 0);
	cr_expect_eq(uroce_cm_sidr_listen(listener, PORT), EADDRINUSE);
	cr_expect_eq(uroce_cm_listen(listener, PORT), 0, "the kinds have ports of their own");
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(listener);
	uroce_cm_destroy_id(sidr);
}

Test(api_cm, a_datagram_service_tells_its_queue_pair)
{
	struct uroce_cm_id *listener = listen_sidr(), *a = end_id(A);
	struct ibv_qp *ud = end_qp(B, IBV_QPT_UD), *rc = end_qp(B, IBV_QPT_RC);
	struct uroce_cm_event *ev;

	cr_assert_eq(ask(a, PORT, "who is there"), 0);
	ev = end_event(B, UROCE_CM_SIDR_REQUEST);
	cr_expect_eq(ev->listen_id, listener);
	cr_expect_str_eq(ev->param.private_data, "who is there");
	expect_addr(&ev->id->peer, IP_A, 0);
	cr_expect_eq(uroce_cm_sidr_reply(ev->id, rc, 0, 0), EINVAL);
	cr_expect_eq(uroce_cm_sidr_reply(ev->id, ud, 0x12345, 0), 0);
	cr_expect_eq(uroce_cm_sidr_reply(ev->id, ud, 0x12345, 0), EINVAL);
	uroce_cm_destroy_id(ev->id);
	uroce_ack_cm_event(ev);
	ev = end_event(A, UROCE_CM_SIDR_RESOLVED);
	cr_expect_eq(ev->status, 0);
	cr_expect_eq(ev->qpn, ud->qp_num);
	cr_expect_eq(ev->qkey, 0x12345);
	uroce_ack_cm_event(ev);
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(listener);
	uroce_destroy_qp(ud);
	uroce_destroy_qp(rc);
}

Test(api_cm, a_datagram_service_may_refuse_or_not_exist)
{
	struct uroce_cm_id *listener = listen_sidr(), *a = end_id(A);
	struct uroce_cm_event *ev;

	cr_assert_eq(ask(a, PORT + 1, ""), 0);
	expect_status(a, UROCE_CM_SIDR_RESOLVED, 1);
	cr_assert_eq(ask(a, PORT, ""), 0);
	ev = end_event(B, UROCE_CM_SIDR_REQUEST);
	cr_expect_eq(uroce_cm_sidr_reply(ev->id, NULL, 0, 2), 0);
	uroce_cm_destroy_id(ev->id);
	uroce_ack_cm_event(ev);
	expect_status(a, UROCE_CM_SIDR_RESOLVED, 2);
	cr_assert_eq(ask(a, PORT, ""), 0);
	ev = end_event(B, UROCE_CM_SIDR_REQUEST);
	uroce_cm_destroy_id(ev->id);
	uroce_ack_cm_event(ev);
	expect_status(a, UROCE_CM_SIDR_RESOLVED, 2);
	uroce_cm_destroy_id(a);
	uroce_cm_destroy_id(listener);
}

/* ---- many ---- */

static void expect_same_objects(struct end *e, const struct uroce_objects *before)
{
	uint64_t until = end_ms() + PATIENCE_MS;
	struct uroce_objects now;

	do {
		end_progress();
		uroce_query_objects(e->ctx, &now);
	} while (memcmp(&now, before, sizeof(now)) && end_ms() < until);
	cr_expect_eq(now.qps, before->qps);
	cr_expect_eq(now.cm_ids, before->cm_ids);
	cr_expect_eq(now.cm_connections, before->cm_connections);
	cr_expect_eq(now.qps_time_wait, before->qps_time_wait);
	cr_expect_arr_eq(&now, before, sizeof(now));
}

static void up_and_down(unsigned cnt)
{
	struct uroce_objects before[END_PEERS];
	struct pair p = {.listener = end_listen(B, PORT)};

	for (unsigned i = 0; i < END_PEERS; i++)
		uroce_query_objects(ends[i].ctx, &before[i]);
	for (unsigned i = 0; i < cnt; i++) {
		join(&p, IBV_QPT_RC);
		if (i % 3 == 0)
			talk(&p);
		if (i % 2 == 0) {
			cr_assert_eq(uroce_cm_disconnect(i & 2 ? p.a : p.b), 0);
			end_expect(A, UROCE_CM_DISCONNECTED);
			end_expect(B, UROCE_CM_DISCONNECTED);
			drop_ends(&p);
			continue;
		}
		/* Without a word: B hears of it by DREQ. */
		uroce_cm_destroy_id(p.a);
		end_expect(B, UROCE_CM_DISCONNECTED);
		uroce_cm_destroy_id(p.b);
		uroce_destroy_qp(p.qa);
		uroce_destroy_qp(p.qb);
	}
	for (unsigned i = 0; i < END_PEERS; i++)
		expect_same_objects(&ends[i], &before[i]);
	uroce_cm_destroy_id(p.listener);
}

Test(api_cm_own, a_thousand_connections_in_a_row_leave_nothing)
{
	const char *const set[] = {"transport.max_qp=2048", NULL};

	open_both(set, set);
	up_and_down(1000);
}

Test(api_cm_own, losing_packets_does_not_keep_connections_from_being_made)
{
	const char *const a[] = {"impair.tx_loss=2", "impair.seed=5", NULL};
	const char *const b[] = {"impair.tx_loss=2", "impair.seed=6", NULL};

	open_both(a, b);
	up_and_down(100);
}

/* ---- threads ---- */

static _Atomic bool enough;

/* Fetches A's events and looks at none: their ids may be gone. */
static void *fetch(void *arg)
{
	struct uroce_cm_event *ev;

	while (!enough)
		if (uroce_get_cm_event(A->ch, 1, &ev) == 0)
			uroce_ack_cm_event(ev);
	return NULL;
}

/* B accepts whatever comes and forgets it when it ends. */
static void *serve(void *arg)
{
	struct uroce_cm_event *ev;
	struct ibv_qp *qp;

	while (!enough) {
		if (uroce_get_cm_event(B->ch, 1, &ev))
			continue;
		qp = ev->id->qp;
		if (ev->type == UROCE_CM_CONNECT_REQUEST) {
			qp = end_qp(B, IBV_QPT_RC);
			if (uroce_cm_accept(ev->id, qp, NULL))
				uroce_destroy_qp(qp);
		} else if (ev->type == UROCE_CM_DISCONNECTED || ev->type == UROCE_CM_REJECTED ||
			   ev->type == UROCE_CM_UNREACHABLE) {
			uroce_cm_destroy_id(ev->id);
			if (qp)
				uroce_destroy_qp(qp);
		}
		uroce_ack_cm_event(ev);
	}
	return NULL;
}

Test(api_cm, ids_may_go_while_another_thread_fetches_their_events)
{
	struct uroce_objects before[END_PEERS];
	struct uroce_cm_id *listener;
	pthread_t threads[2];

	listener = end_listen(B, PORT);
	for (unsigned i = 0; i < END_PEERS; i++)
		uroce_query_objects(ends[i].ctx, &before[i]);
	pthread_create(&threads[0], NULL, fetch, NULL);
	pthread_create(&threads[1], NULL, serve, NULL);
	for (unsigned i = 0; i < 300; i++) {
		struct uroce_cm_id *a = end_id(A);
		struct ibv_qp *qa = end_qp(A, IBV_QPT_RC);
		uint64_t until = end_ms() + (i % 4);

		cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
		while (end_ms() < until)
			uroce_progress(A->ctx);
		if (i % 3 == 0)
			uroce_cm_disconnect(a);
		if (i & 1)
			uroce_destroy_qp(qa);
		uroce_cm_destroy_id(a);
		if (!(i & 1))
			uroce_destroy_qp(qa);
	}
	for (unsigned i = 0; i < END_PEERS; i++)
		expect_same_objects(&ends[i], &before[i]);
	enough = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	uroce_cm_destroy_id(listener);
}

Test(api_cm_own, dedicated_workers_connect_as_well)
{
	const char *const set[] = {"worker.mode=dedicated", "worker.lcores=1", "eal.lcores=0-1",
				   NULL};
	struct pair p = {0};

	open_both(set, NULL);
	cr_assert_not(uroce_is_inline(A->ctx));
	join(&p, IBV_QPT_RC);
	talk(&p);
	end_from(&p, p.a);
	drop(&p);
}
