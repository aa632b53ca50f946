/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_tryjoin_np */
#endif
#include "api_pair.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/device.h"

/* Threads that are cancelled, interrupted or left behind in calls that wait. */

static struct ibv_comp_channel *channel;

static void *wait_for_completion(void *arg)
{
	struct ibv_cq *cq;
	void *context;
	int rc = uroce_get_cq_event(channel, &cq, &context);

	return (void *)(intptr_t)(rc ? errno : 0);
}

static void *wait_for_async(void *arg)
{
	struct ibv_async_event event;

	return (void *)(intptr_t)(uroce_get_async_event(arg, &event) ? errno : 0);
}

static void until_waits(struct ur_waiters *w, pthread_mutex_t *lock, unsigned cnt)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	unsigned waiting;

	do {
		cr_assert_lt(now_ms(), until);
		pthread_mutex_lock(lock);
		waiting = w->cnt;
		pthread_mutex_unlock(lock);
	} while (waiting < cnt);
}

static void *join_thread(pthread_t t)
{
	void *result = NULL;

	cr_assert_eq(pthread_join(t, &result), 0);
	return result;
}

/* EDGE-CANCEL-01: rping cancels its thread for completions, and then destroys the channel. */
PAIR_TEST(api_waits, a_cancelled_waiter_keeps_nothing_from_being_destroyed, open_both, close_both)
{
	for (unsigned i = 0; i < 40; i++) {
		struct ibv_context *ctx = uroce_share(A->ctx);
		struct ibv_cq *cq;
		pthread_t t[2];

		channel = uroce_create_comp_channel(ctx);
		cq = uroce_create_cq(ctx, 4, NULL, channel, 0);
		cr_assert(channel && cq);
		cr_assert_eq(pthread_create(&t[0], NULL, wait_for_completion, NULL), 0);
		cr_assert_eq(pthread_create(&t[1], NULL, wait_for_async, ctx), 0);
		if (i & 1)
			until_waits(&UR_API(channel, channel)->waiters,
				    &UR_API(channel, channel)->lock, 1);
		if (i & 2)
			usleep(i * 100);
		for (unsigned n = 0; n < 2; n++) {
			cr_assert_eq(pthread_cancel(t[n]), 0);
			cr_assert_eq(join_thread(t[n]), PTHREAD_CANCELED);
		}
		cr_assert_eq(uroce_destroy_cq(cq), 0);
		cr_assert_eq(uroce_destroy_comp_channel(channel), 0);
		cr_assert_eq(uroce_close(ctx), 0);
	}
}

/* ---- a thread that works ---- */

static struct ibv_qp *qa, *qb;

/* Its calls contain cancellation points of drivers; here those of the wait for completions. */
static void *write_for_ever(void *arg)
{
	struct ibv_sge sge = {(uintptr_t)A->buf, 64, A->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	wr.wr.rdma.remote_addr = (uintptr_t)B->buf;
	wr.wr.rdma.rkey = B->mr->rkey;
	for (;;) {
		uroce_req_notify_cq(arg, 0);
		if (uroce_post_send(qa, &wr, &bad) == 0 &&
		    uroce_get_cq_event(channel, &cq, &context) == 0)
			uroce_ack_cq_events(cq, 1);
		while (uroce_poll_cq(arg, 1, &wc) > 0)
			;
	}
	return NULL;
}

/* EDGE-CANCEL-01 */
PAIR_TEST(api_waits, a_cancelled_worker_leaves_no_lock_held, open_both, close_both)
{
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_cq *cq;

	channel = uroce_create_comp_channel(A->ctx);
	cq = uroce_create_cq(A->ctx, SIDE_CQE, NULL, channel, 0);
	attr.send_cq = cq;
	for (unsigned i = 0; i < 30; i++) {
		struct ibv_wc wc;
		pthread_t t;

		qa = uroce_create_qp(A->pd, &attr);
		qb = make_qp(B, IBV_QPT_RC);
		join(qa, qb, (struct join){0});
		cr_assert_eq(pthread_create(&t, NULL, write_for_ever, cq), 0);
		progress_for(1 + i % 5);
		pthread_cancel(t);
		cr_assert_eq(join_thread(t), PTHREAD_CANCELED);
		/* Every lock is free. */
		progress_for(1);
		cr_assert_eq(to_state(qa, IBV_QPS_ERR), 0);
		while (uroce_poll_cq(cq, 1, &wc) > 0)
			;
		cr_assert_eq(uroce_destroy_qp(qa), 0);
		cr_assert_eq(uroce_destroy_qp(qb), 0);
	}
	/* An event that was taken by a thread that did not live to acknowledge it. */
	cq->comp_events_completed = UR_API(cq, cq)->events_got;
	cr_assert_eq(uroce_destroy_cq(cq), 0);
	cr_assert_eq(uroce_destroy_comp_channel(channel), 0);
}

/* ASYNC-END-01 */
PAIR_TEST(api_waits, closing_a_context_wakes_who_waits_for_its_events, open_both, close_both)
{
	for (unsigned i = 0; i < 20; i++) {
		struct ibv_context *ctx = uroce_share(A->ctx);
		struct ibv_pd *pd = uroce_alloc_pd(ctx);
		pthread_t t[2];

		for (unsigned n = 0; n < 2; n++)
			cr_assert_eq(pthread_create(&t[n], NULL, wait_for_async, ctx), 0);
		until_waits(&ur_context(ctx)->waiters, &ur_device(ctx)->async_lock, 2);
		cr_assert_eq(uroce_close(ctx), EBUSY, "and no thread is woken");
		cr_assert_eq(uroce_dealloc_pd(pd), 0);
		cr_assert_eq(uroce_close(ctx), 0);
		for (unsigned n = 0; n < 2; n++)
			cr_assert_eq((intptr_t)join_thread(t[n]), ECANCELED);
	}
}

/* ---- signals ---- */

static atomic_uint signals;

static void on_signal(int sig)
{
	atomic_fetch_add(&signals, 1);
}

/* WAIT-SIGNAL-01 */
PAIR_TEST(api_waits, a_signal_that_restarts_calls_ends_no_wait, open_both, close_both)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t t;

	channel = uroce_create_comp_channel(A->ctx);
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&signals, 0);
		sa.sa_flags = SA_RESTART;
		sigaction(SIGUSR1, &sa, NULL);
		cr_assert_eq(
			pthread_create(&t, NULL, i ? wait_for_async : wait_for_completion, A->ctx),
			0);
		while (atomic_load(&signals) < 30) {
			usleep(1000);
			cr_assert_eq(pthread_kill(t, SIGUSR1), 0);
		}
		cr_assert_eq(pthread_tryjoin_np(t, NULL), EBUSY);
		sa.sa_flags = 0;
		sigaction(SIGUSR1, &sa, NULL);
		for (uint64_t until = now_ms() + PATIENCE_MS; now_ms() < until; usleep(1000)) {
			void *why;

			pthread_kill(t, SIGUSR1);
			if (pthread_tryjoin_np(t, &why) == 0) {
				cr_assert_eq((intptr_t)why, EINTR);
				break;
			}
		}
	}
	cr_assert_eq(uroce_destroy_comp_channel(channel), 0);
}

/* WAIT-SIGNAL-01: with handlers of both kinds, which one has run decides. */
PAIR_TEST(api_waits, a_signal_ends_the_wait_if_its_own_handler_says_so, open_both, close_both)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t t;

	channel = uroce_create_comp_channel(A->ctx);
	sigaction(SIGUSR1, &sa, NULL);
	sa.sa_flags = 0;
	sigaction(SIGUSR2, &sa, NULL);
	atomic_store(&signals, 0);
	cr_assert_eq(pthread_create(&t, NULL, wait_for_completion, NULL), 0);
	while (atomic_load(&signals) < 30) {
		usleep(1000);
		cr_assert_eq(pthread_kill(t, SIGUSR1), 0);
	}
	cr_assert_eq(pthread_tryjoin_np(t, NULL), EBUSY);
	for (uint64_t until = now_ms() + PATIENCE_MS; now_ms() < until; usleep(1000)) {
		void *why;

		pthread_kill(t, SIGUSR2);
		if (pthread_tryjoin_np(t, &why) == 0) {
			cr_assert_eq((intptr_t)why, EINTR);
			t = 0;
			break;
		}
	}
	cr_assert_eq(t, 0, "no signal ends it");
	cr_assert_eq(uroce_destroy_comp_channel(channel), 0);
}

/* ---- uroce_wait(): EDGE-WAIT-01 ---- */

#define MANY 100

static void make_readable(int fd)
{
	uint64_t one = 1;

	cr_assert_eq(write(fd, &one, sizeof(one)), sizeof(one));
}

PAIR_TEST(api_waits, descriptors_are_waited_for_as_by_poll, open_both, close_both)
{
	struct pollfd fds[MANY];
	uint64_t start, count;

	for (unsigned i = 0; i < MANY; i++)
		fds[i] = (struct pollfd){.fd = eventfd(0, 0), .events = POLLIN, .revents = -1};
	for (unsigned cnt = 1; cnt <= MANY; cnt += MANY - 1) {
		cr_assert_eq(uroce_wait(A->ctx, fds, cnt, 0), 0);
		cr_assert_eq(fds[cnt - 1].revents, 0);
		start = now_ms();
		cr_assert_eq(uroce_wait(A->ctx, fds, cnt, 20), 0);
		cr_assert_geq(now_ms() - start, 19);
		make_readable(fds[cnt - 1].fd);
		cr_assert_eq(uroce_wait(A->ctx, fds, cnt, -1), 1);
		cr_assert_eq(fds[cnt - 1].revents, POLLIN);
		cr_assert_eq(uroce_wait(A->ctx, fds, cnt, 0), 1);
		cr_assert_eq(read(fds[cnt - 1].fd, &count, sizeof(count)), sizeof(count));
	}
	make_readable(fds[3].fd);
	make_readable(fds[70].fd);
	cr_assert_eq(uroce_wait(A->ctx, fds, MANY, -1), 2);
	for (unsigned i = 0; i < MANY; i++)
		close(fds[i].fd);
	cr_assert_eq(uroce_wait(A->ctx, fds, MANY, -1), MANY);
	cr_assert_eq(fds[0].revents, POLLNVAL);
	fds[0].fd = -1;
	cr_assert_eq(uroce_wait(A->ctx, fds, 1, 1), 0, "none at all");
	cr_assert_eq(uroce_wait(A->ctx, NULL, 0, 1), 0);
	cr_assert_eq(uroce_wait(A->ctx, fds, (nfds_t)INT_MAX + 1, 1), -1);
	cr_assert_eq(errno, EINVAL);
}

struct waiting {
	int fd;
	int rc, why;
	short got;
};

static void *wait_on(void *arg)
{
	struct waiting *w = arg;
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	w->rc = uroce_wait(A->ctx, &p, 1, -1);
	w->why = errno;
	w->got = p.revents;
	return w;
}

static void start_waiting(pthread_t *t, struct waiting *w)
{
	cr_assert_eq(pthread_create(t, NULL, wait_on, w), 0);
}

static void until_it_is(bool led, unsigned followers)
{
	struct ur_device *dev = ur_device(A->ctx);

	for (uint64_t until = now_ms() + PATIENCE_MS;
	     dev->led != led || dev->followers != followers;)
		cr_assert_lt(now_ms(), until, "led: %d, followers: %u", dev->led, dev->followers);
}

/* The progress thread only ticks, so that it is the waiter that receives. */
static void open_ticking(void)
{
	static const char *const ticks[] = {"worker.progress=tick", NULL};

	open_side(A, ticks);
	open_side(B, NULL);
}

PAIR_TEST(api_waits, a_thread_that_waits_makes_the_rounds, open_ticking, close_both)
{
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct waiting w;
	pthread_t t;

	channel = uroce_create_comp_channel(A->ctx);
	attr.recv_cq = uroce_create_cq(A->ctx, SIDE_CQE, NULL, channel, 0);
	qa = uroce_create_qp(A->pd, &attr);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
	w.fd = channel->fd;
	for (unsigned i = 0; i < 30; i++) {
		struct ibv_cq *cq;
		void *context;

		post_recv(A, qa, i, 0, 64);
		cr_assert_eq(uroce_req_notify_cq(attr.recv_cq, 0), 0);
		start_waiting(&t, &w);
		until_it_is(true, 0);
		post(B, qb, i, IBV_WR_SEND, 0, 64);
		join_thread(t);
		cr_assert_eq(w.rc, 1);
		cr_assert_eq(w.got, POLLIN);
		until_it_is(false, 0);
		cr_assert_eq(uroce_get_cq_event(channel, &cq, &context), 0);
		uroce_ack_cq_events(cq, 1);
		cr_assert_eq(next_wc_of(attr.recv_cq).wr_id, i);
		expect_wc(B, i, IBV_WC_SUCCESS);
	}
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	cr_assert_eq(uroce_destroy_cq(attr.recv_cq), 0);
	cr_assert_eq(uroce_destroy_comp_channel(channel), 0);
}

/* EDGE-WAIT-02. Which of two followers takes the lead is not said. */
PAIR_TEST(api_waits, one_that_waits_follows_another, open_both, close_both)
{
	struct waiting w[3];
	pthread_t t[3];

	for (unsigned i = 0; i < 3; i++) {
		w[i].fd = eventfd(0, 0);
		start_waiting(&t[i], &w[i]);
		until_it_is(true, i);
	}
	for (unsigned i = 0; i < 3; i++) {
		make_readable(w[i].fd);
		join_thread(t[i]);
		cr_assert_eq(w[i].rc, 1);
		if (i < 2)
			until_it_is(true, 1 - i);
		else
			until_it_is(false, 0);
	}
	for (unsigned i = 0; i < 3; i++)
		close(w[i].fd);
}

/* EDGE-WAIT-02. A real follower may be about to take the lead, and needs no call then; here it is asleep for as long as this test wants. */
PAIR_TEST(api_waits, one_that_led_calls_the_progress_thread_for_its_followers, open_both,
	  close_both)
{
	struct ur_device *dev = ur_device(A->ctx);
	struct waiting w = {.fd = eventfd(0, 0)};
	uint64_t count;
	pthread_t t;

	for (unsigned asleep = 0; asleep < 3; asleep++) {
		uint32_t calls = dev->progress_nap.calls;

		start_waiting(&t, &w);
		until_it_is(true, 0);
		dev->followers = asleep;
		make_readable(w.fd);
		join_thread(t);
		cr_assert_eq(w.rc, 1);
		cr_assert_eq(dev->progress_nap.calls - calls, asleep > 0);
		dev->followers = 0;
		cr_assert_eq(read(w.fd, &count, sizeof(count)), sizeof(count));
	}
	close(w.fd);
}

/* EDGE-CANCEL-01 */
PAIR_TEST(api_waits, a_waiter_that_is_cancelled_leads_no_more, open_both, close_both)
{
	struct waiting w[2] = {{.fd = eventfd(0, 0)}, {.fd = eventfd(0, 0)}};
	pthread_t t[2];

	for (unsigned i = 0; i < 20; i++) {
		for (unsigned n = 0; n < 2; n++) {
			start_waiting(&t[n], &w[n]);
			until_it_is(true, n);
		}
		/* One that leads and one that follows, in either order. */
		for (unsigned n = 0; n < 2; n++) {
			cr_assert_eq(pthread_cancel(t[(n + i) & 1]), 0);
			cr_assert_eq(join_thread(t[(n + i) & 1]), PTHREAD_CANCELED);
			until_it_is(!n, 0);
		}
	}
	for (unsigned n = 0; n < 2; n++)
		close(w[n].fd);
}

PAIR_TEST(api_waits, any_signal_ends_it, open_both, close_both)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct waiting w[2] = {{.fd = eventfd(0, 0)}, {.fd = eventfd(0, 0)}};
	pthread_t t[2];

	sigaction(SIGUSR1, &sa, NULL);
	for (unsigned n = 0; n < 2; n++) {
		start_waiting(&t[n], &w[n]);
		until_it_is(true, n);
	}
	/* One signal, whatever the thread is doing. */
	for (unsigned n = 0; n < 2; n++) {
		pthread_kill(t[n], SIGUSR1);
		join_thread(t[n]);
		cr_assert_eq(w[n].rc, -1);
		cr_assert_eq(w[n].why, EINTR);
	}
	until_it_is(false, 0);
	for (unsigned i = 0; i < 2000; i++) {
		start_waiting(&t[0], &w[0]);
		until_it_is(true, 0);
		pthread_kill(t[0], SIGUSR1);
		join_thread(t[0]);
		cr_assert_eq(w[0].why, EINTR);
	}
	for (unsigned n = 0; n < 2; n++)
		close(w[n].fd);
}

/* EDGE-WAIT-03. The thread that leads is asleep in a handler of its own, and makes no rounds. */
static atomic_bool in_handler, may_leave;

static void stay(int sig)
{
	atomic_store(&in_handler, true);
	while (!atomic_load(&may_leave))
		usleep(1000);
}

PAIR_TEST(api_waits, an_endpoint_whose_leader_is_gone_lives, open_both, close_both)
{
	struct sigaction sa = {.sa_handler = stay};
	struct waiting w = {.fd = eventfd(0, 0)};
	pthread_t t;

	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
	sigaction(SIGUSR1, &sa, NULL);
	start_waiting(&t, &w);
	until_it_is(true, 0);
	pthread_kill(t, SIGUSR1);
	while (!atomic_load(&in_handler))
		usleep(1000);
	/* A's application makes no round. */
	for (unsigned i = 0; i < 5; i++) {
		post(B, qb, i, IBV_WR_RDMA_READ, 0, 64);
		for (struct ibv_wc wc; uroce_poll_cq(B->cq, 1, &wc) == 0;)
			usleep(100);
	}
	atomic_store(&may_leave, true);
	join_thread(t);
	cr_assert_eq(w.why, EINTR);
	close(w.fd);
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_qp(qb), 0);
}

/* CONTEXT-ABANDON-01 */
PAIR_TEST(api_waits, what_an_abandoned_context_leaves_behind_lets_nobody_in, open_both, close_both)
{
	struct ibv_context *ctx = uroce_share(B->ctx);
	struct ibv_pd *pd = uroce_alloc_pd(ctx);
	struct ibv_cq *cq = uroce_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_mr *mr = uroce_reg_mr(pd, B->buf, 4096, ALL_RIGHTS);
	struct ibv_mw *mw = uroce_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_qp_init_attr init = qp_attr(B, IBV_QPT_RC);
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_qp_attr attr;

	init.send_cq = init.recv_cq = cq;
	qa = make_qp(A, IBV_QPT_RC);
	qb = uroce_create_qp(pd, &init);
	join(qa, qb, (struct join){.timeout = 14, .retry_cnt = 3});
	wr.wr.rdma.remote_addr = (uintptr_t)B->buf;
	wr.wr.rdma.rkey = mr->rkey;
	cr_assert_eq(try_post(A, qa, wr, 0, 100), 0);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_close(ctx), EBUSY);
	uroce_abandon(ctx);
	memset(B->buf, 0xee, 100);
	cr_assert_eq(try_post(A, qa, wr, 0, 100), 0);
	cr_assert_neq(next_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(B->buf[0], 0xee);
	cr_assert_eq(uroce_query_qp(qb, &attr, IBV_QP_STATE, NULL), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_ERR);
	/* They can still be destroyed. */
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	cr_assert_eq(uroce_dealloc_mw(mw), 0);
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	cr_assert_eq(uroce_destroy_cq(cq), 0);
	cr_assert_eq(uroce_dealloc_pd(pd), 0);
	cr_assert_eq(uroce_close(ctx), 0);
}
