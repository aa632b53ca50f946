/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_tryjoin_np */
#endif
#include "rdmacm_pair.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "rdmacm/cm.h"

/* Channels, ids and events that go or move while they are in use. */

TestSuite(rdmacm_life, .init = setup, .timeout = 240);

/* ---- channels ---- */

static _Atomic int waiting;

static void *wait_for_one(void *arg)
{
	struct rdma_cm_event *e;

	atomic_fetch_add(&waiting, 1);
	return (void *)(intptr_t)rdma_get_cm_event(arg, &e);
}

static pthread_t start_waiter(struct rdma_event_channel *c)
{
	pthread_t thread;
	int before = waiting;

	cr_assert_eq(pthread_create(&thread, NULL, wait_for_one, c), 0);
	while (waiting == before)
		pause_ms(1);
	pause_ms(50);
	return thread;
}

/* Its descriptor must not become another file's while a thread reads from it. */
Test(rdmacm_life, a_channel_stays_while_a_thread_waits_on_it)
{
	struct rdma_event_channel *c = rdma_create_event_channel();
	int fd = c->fd, other;
	pthread_t thread = start_waiter(c);
	void *result;

	rdma_destroy_event_channel(c);
	other = eventfd(5, 0);
	cr_expect_neq(other, fd);
	cr_expect_neq(fcntl(fd, F_GETFD), -1);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	cr_expect_eq(result, PTHREAD_CANCELED);
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "the last waiter closes it");
	close(other);
}

static _Atomic bool stop;

static void *come_and_go(void *arg)
{
	while (!stop)
		rdma_destroy_event_channel(rdma_create_event_channel());
	return NULL;
}

/* EDGE-FORK-03: whatever another thread was doing, the child does not wait for it. */
Test(rdmacm_life, a_child_waits_for_no_lock_of_its_parent)
{
	pthread_t thread[2];
	int status;

	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, come_and_go, NULL), 0);
	for (int i = 0; i < 200; i++) {
		pid_t child = fork();

		cr_assert_geq(child, 0);
		if (!child) {
			alarm(20);
			errno = 0;
			if (rdma_create_event_channel() || errno != EIO)
				_exit(1);
			ur_cm_leave(ur_cm_enter());
			_exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "child %d: %#x", i,
			  (unsigned)status);
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

static void on_signal(int number)
{
	(void)number;
}

/* As in rping, whose thread would otherwise end the program with an error. */
Test(rdmacm_life, a_thread_that_comes_too_late_sleeps)
{
	struct rdma_event_channel *c = rdma_create_event_channel();
	struct sigaction act = {.sa_handler = on_signal};
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &act, NULL);
	rdma_destroy_event_channel(c);
	thread = start_waiter(c);
	cr_expect_eq(pthread_tryjoin_np(thread, &result), EBUSY);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, &result);
	cr_expect_eq((intptr_t)result, -1, "only a signal ends that");
	for (int i = 0; i < 200; i++)
		rdma_destroy_event_channel(rdma_create_event_channel());
}

Test(rdmacm_life, ids_of_a_channel_end_with_it)
{
	struct pair p = {0};
	struct rdma_cm_id *unfetched;

	join(&p);
	unfetched = connect_number(IP_B, 77);
	cr_assert(has_event(ch[B], PATIENCE_MS));
	rdma_destroy_event_channel(ch[B]);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *e;

		cr_assert(has_event(ch[A], PATIENCE_MS));
		cr_assert_eq(rdma_get_cm_event(ch[A], &e), 0);
		cr_expect_eq(e->event,
			     e->id == p.a ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED);
		rdma_ack_cm_event(e);
	}
	cr_expect_eq(rdma_disconnect(p.b), -1);
	free_id(unfetched);
	drop(&p);
}

static void *interrupted(void *arg)
{
	struct rdma_cm_event *e;
	int rc;

	atomic_fetch_add(&waiting, 1);
	rc = rdma_get_cm_event(arg, &e);
	return (void *)(intptr_t)(rc ? errno : 0);
}

Test(rdmacm_life, a_signal_interrupts_the_wait)
{
	struct sigaction act = {.sa_handler = on_signal};
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &act, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, interrupted, ch[A]), 0);
	while (!waiting)
		pause_ms(1);
	pause_ms(50);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, &result);
	cr_expect_eq((intptr_t)result, EINTR);
}

/* ---- events that are not acknowledged ---- */

static _Atomic bool destroyed;

static void *destroy(void *arg)
{
	rdma_destroy_id(arg);
	destroyed = true;
	return NULL;
}

Test(rdmacm_life, an_id_stays_until_its_events_are_acknowledged)
{
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_TCP, 0), *a;
	struct rdma_cm_event *e;
	pthread_t thread;

	a = connect_number(IP_B, 77);
	e = next_event(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_assert_eq(pthread_create(&thread, NULL, destroy, listener), 0);
	pause_ms(50);
	cr_expect_not(destroyed);
	/* A cancelled thread must not take the library's lock along. */
	pthread_cancel(thread);
	pause_ms(20);
	cr_expect_eq(e->listen_id, listener);
	free_id(e->id);
	rdma_ack_cm_event(e);
	pthread_join(thread, NULL);
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 28);
	free_id(a);
	cr_expect_eq(has_event(ch[B], 0), false);
}

/* Flushing the queue pair raises an event of its CQ, which is a cancellation point with locks taken. */
static void *disconnect_cancelled(void *arg)
{
	struct pair *p = arg;

	pthread_cancel(pthread_self());
	rdma_disconnect(p->a);
	pthread_testcancel();
	return NULL;
}

Test(rdmacm_life, a_thread_is_not_cancelled_inside_of_liburoce)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct pair p = {0};
	pthread_t thread;
	void *result;

	join(&p);
	cr_assert_eq(ibv_post_recv(p.a->qp, &wr, &bad), 0);
	cr_assert_eq(ibv_req_notify_cq(p.a->recv_cq, 0), 0);
	cr_assert_eq(pthread_create(&thread, NULL, disconnect_cancelled, &p), 0);
	pthread_join(thread, &result);
	cr_expect_eq(result, PTHREAD_CANCELED);
	expect(ch[A], RDMA_CM_EVENT_DISCONNECTED);
	expect(ch[B], RDMA_CM_EVENT_DISCONNECTED);
	drop(&p);
}

/* ---- migration ---- */

Test(rdmacm_life, a_listener_moves_with_its_requests)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_TCP, 0), *a[2], *b;

	for (unsigned i = 0; i < 2; i++)
		a[i] = connect_number(IP_B, 77 + i);
	cr_assert(has_event(ch[B], PATIENCE_MS));
	rdma_destroy_id(a[0]); /* it withdraws: a second event, of the request itself */
	cr_assert_eq(rdma_migrate_id(listener, other), 0);
	cr_expect_eq(has_event(ch[B], 0), false);
	rdma_destroy_event_channel(ch[B]);
	for (unsigned i = 0; i < 2;) {
		struct rdma_cm_event *e;

		cr_assert(has_event(other, PATIENCE_MS));
		cr_assert_eq(rdma_get_cm_event(other, &e), 0);
		b = e->id;
		cr_expect_eq(b->channel, other);
		i += e->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		cr_expect(e->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
			  e->event == RDMA_CM_EVENT_REJECTED);
		rdma_ack_cm_event(e);
	}
	free_id(a[1]);
	free_id(listener);
	rdma_destroy_event_channel(other);
}

Test(rdmacm_life, an_id_moves_with_its_events)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair p = {0};

	join(&p);
	cr_assert_eq(rdma_disconnect(p.a), 0);
	cr_assert(has_event(ch[B], PATIENCE_MS));
	cr_assert_eq(rdma_migrate_id(p.b, other), 0);
	cr_expect_eq(has_event(ch[B], 0), false);
	cr_expect_eq(expect(other, RDMA_CM_EVENT_DISCONNECTED), p.b);
	drop(&p);
	rdma_destroy_event_channel(other);
}

/* ---- a flood ---- */

static unsigned ids_of(struct rdma_cm_id *id)
{
	struct uroce_objects objects;

	uroce_query_objects(id->verbs, &objects);
	return objects.cm_ids;
}

/* CM-BACKLOG-01 */
Test(rdmacm_life, requests_beyond_the_backlog_take_no_memory)
{
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_TCP, 2), *a[10];
	uint64_t until;
	unsigned before = ids_of(listener), most = 0;

	for (unsigned i = 0; i < 10; i++)
		a[i] = connect_number(IP_B, 100 + i);
	until = now_ms() + 700;
	while (now_ms() < until) {
		unsigned now = ids_of(listener) - before;

		most = now > most ? now : most;
		pause_ms(1);
	}
	/* One more for the moment in which a request is looked at. */
	cr_expect_leq(most, 3, "%u", most);
	cr_expect_geq(most, 2);
	/* The others ask again, and every one gets its answer. */
	for (unsigned i = 0; i < 10; i++)
		free_id(expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST));
	for (unsigned i = 0; i < 10; i++)
		expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 28);
	for (unsigned i = 0; i < 10; i++)
		free_id(a[i]);
	free_id(listener);
}

/* ---- synchronous ids ---- */

static struct rdma_cm_id *endpoint(int flags, const char *ip)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP},
			     *res;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	union addr src = addr(IP_A, 0);
	struct rdma_cm_id *id;

	if (!(flags & RAI_PASSIVE)) {
		hints.ai_src_addr = &src.sa;
		hints.ai_src_len = sizeof(src.in);
	}
	cr_assert_eq(rdma_getaddrinfo(ip, "7471", &hints, &res), 0);
	cr_assert_eq(rdma_create_ep(&id, res, NULL, &attr), 0, "%s", strerror(errno));
	rdma_freeaddrinfo(res);
	return id;
}

static void *serve(void *listener)
{
	struct rdma_cm_id *id;
	intptr_t ok =
		!rdma_get_request(listener, &id) && !rdma_accept(id, NULL) && !rdma_disconnect(id);

	rdma_destroy_ep(id);
	return (void *)ok;
}

Test(rdmacm_life, endpoints_without_an_address_are_refused)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct rdma_cm_id *id;

	for (int passive = 0; passive < 2; passive++) {
		struct rdma_addrinfo hints = {.ai_flags = passive ? RAI_PASSIVE : 0,
					      .ai_port_space = RDMA_PS_TCP},
				     *res;

		cr_assert_eq(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
		cr_assert(!res->ai_src_addr && !res->ai_dst_addr);
		cr_expect_eq(rdma_create_ep(&id, res, NULL, &attr), -1);
		cr_expect_eq(errno, EINVAL);
		rdma_freeaddrinfo(res);
	}
}

Test(rdmacm_life, endpoints_wait_in_their_calls)
{
	struct rdma_cm_id *listener = endpoint(RAI_PASSIVE, IP_B), *a = endpoint(0, IP_B);
	pthread_t thread;
	void *ok;

	cr_expect_eq(rdma_connect(a, NULL), -1);
	cr_expect_eq(errno, ECONNREFUSED, "no listener");
	rdma_destroy_ep(a);
	cr_assert_eq(rdma_listen(listener, 1), 0);
	cr_assert_eq(pthread_create(&thread, NULL, serve, listener), 0);
	a = endpoint(0, IP_B);
	cr_assert_eq(rdma_connect(a, NULL), 0, "%s", strerror(errno));
	cr_expect_eq(rdma_disconnect(a), 0);
	pthread_join(thread, &ok);
	cr_expect(ok);
	rdma_destroy_ep(a);
	rdma_destroy_ep(listener);
}

/* ---- fork ---- */

static int in_child(struct pair *p)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	if (rdma_create_event_channel() || errno != EIO)
		return 1;
	if (!rdma_create_id(ch[A], &id, NULL, RDMA_PS_TCP) || errno != EIO)
		return 2;
	if (!rdma_get_cm_event(ch[A], &e) || errno != EIO)
		return 3;
	if (!rdma_disconnect(p->a) || errno != EIO)
		return 4;
	rdma_destroy_id(p->a);
	rdma_destroy_event_channel(ch[A]);
	return 0;
}

Test(rdmacm_life, a_child_leaves_the_parents_connections_alone)
{
	struct pair p = {0};
	int status = -1;
	pid_t child;

	join(&p);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child)
		_exit(in_child(&p));
	waitpid(child, &status, 0);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
	cr_expect_not(has_event(ch[A], 50));
	cr_expect_eq(rdma_disconnect(p.a), 0);
	expect(ch[A], RDMA_CM_EVENT_DISCONNECTED);
	drop(&p);
}
