/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_cm_pair.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- unanswered requests ---- */

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

Test(api_cm, a_destroyed_listener_refuses_pending_requests)
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

Test(api_cm, a_request_withdrawn_before_it_is_answered_is_reported)
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

/* CM-SIDR-01: an application that does not use SIDR gets no such requests. */
Test(api_cm, a_listener_gets_requests_of_its_kind_only)
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

Test(api_cm, a_datagram_service_returns_its_queue_pair)
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
		/* Without a disconnect: B gets a DREQ. */
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

/* Fetches A's events without using them, because their ids may be destroyed. */
static void *fetch(void *arg)
{
	struct uroce_cm_event *ev;

	while (!enough)
		if (uroce_get_cm_event(A->ch, 1, &ev) == 0)
			uroce_ack_cm_event(ev);
	return NULL;
}

/* B accepts all requests and destroys the ids of connections that end. */
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
