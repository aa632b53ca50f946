/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "api/device.h"
#include "api/wait.h"

static struct ibv_comp_channel *channel;
static struct ibv_cq *armed; /* of A, on the channel */
static struct ibv_qp *qa, *qb;

/* A's receives complete on a separate CQ with a channel. */
static void open_with_channel(void)
{
	struct ibv_qp_init_attr attr;

	open_both();
	channel = uroce_create_comp_channel(A->ctx);
	cr_assert_not_null(channel);
	armed = uroce_create_cq(A->ctx, 8, (void *)0x77, channel, 0);
	cr_assert_not_null(armed);
	attr = qp_attr(A, IBV_QPT_RC);
	attr.recv_cq = armed;
	qa = uroce_create_qp(A->pd, &attr);
	cr_assert_not_null(qa);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
}

static void close_with_channel(void)
{
	if (qa)
		cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
	if (armed)
		cr_expect_eq(uroce_destroy_cq(armed), 0);
	cr_expect_eq(uroce_destroy_comp_channel(channel), 0);
	close_both();
}

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t until = now_ms() + (uint64_t)ms;

	do {
		progress();
		if (poll(&p, 1, 0) == 1)
			return true;
	} while (now_ms() < until);
	return false;
}

static void send_to_a(uint64_t id, bool solicited)
{
	struct ibv_send_wr wr = {.wr_id = id,
				 .opcode = IBV_WR_SEND,
				 .send_flags = solicited ? IBV_SEND_SOLICITED : 0};

	post_recv(A, qa, id, 0, 100);
	cr_assert_eq(try_post(B, qb, wr, 0, 100), 0);
	expect_wc(B, id, IBV_WC_SUCCESS);
}

static void take_event(void)
{
	struct ibv_cq *cq;
	void *context;

	cr_assert_eq(uroce_get_cq_event(channel, &cq, &context), 0);
	cr_assert_eq(cq, armed);
	cr_assert_eq(context, (void *)0x77);
	uroce_ack_cq_events(cq, 1);
}

static void take_wc(uint64_t id)
{
	struct ibv_wc wc = next_wc_of(armed);

	cr_assert_eq(wc.wr_id, id);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

PAIR_TEST(api_cq, is_quiet_until_it_is_armed_and_after_each_event, open_with_channel,
	  close_with_channel)
{
	send_to_a(1, true);
	cr_assert_not(readable(channel->fd, 20), "not armed");
	take_wc(1);
	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	cr_assert_not(readable(channel->fd, 20), "nothing came");
	send_to_a(2, false);
	cr_assert(readable(channel->fd, 2000));
	take_event();
	cr_assert_not(readable(channel->fd, 0), "one event");
	take_wc(2);
	send_to_a(3, true);
	cr_assert_not(readable(channel->fd, 20), "not armed again");
	take_wc(3);
}

PAIR_TEST(api_cq, armed_for_solicited_ones_sleeps_through_the_others, open_with_channel,
	  close_with_channel)
{
	cr_assert_eq(uroce_req_notify_cq(armed, 1), 0);
	send_to_a(1, false);
	cr_assert_not(readable(channel->fd, 20), "not solicited");
	take_wc(1);
	send_to_a(2, true);
	cr_assert(readable(channel->fd, 2000));
	take_event();
	take_wc(2);
	/* An error counts as solicited. */
	cr_assert_eq(uroce_req_notify_cq(armed, 1), 0);
	post_recv(A, qa, 3, 0, 10);
	cr_assert_eq(to_state(qa, IBV_QPS_ERR), 0);
	cr_assert(readable(channel->fd, 2000));
	take_event();
	cr_assert_eq(next_wc_of(armed).status, IBV_WC_WR_FLUSH_ERR);
}

PAIR_TEST(api_cq, arming_in_front_of_a_completion_is_not_slept_through, open_with_channel,
	  close_with_channel)
{
	send_to_a(1, false);
	progress_for(2);
	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	take_event();
	take_wc(1);
}

static void *send_later(void *arg)
{
	struct timespec nap = {.tv_nsec = 20000000};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};

	nanosleep(&nap, NULL);
	return try_post(B, qb, wr, 0, 10) ? arg : NULL;
}

PAIR_TEST(api_cq, waiting_for_an_event_does_the_work, open_with_channel, close_with_channel)
{
	pthread_t t;

	post_recv(A, qa, 1, 0, 100);
	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	cr_assert_eq(pthread_create(&t, NULL, send_later, NULL), 0);
	take_event();
	take_wc(1);
	cr_assert_eq(pthread_join(t, NULL), 0);
	expect_wc(B, 1, IBV_WC_SUCCESS);
}

/* EDGE-REST-09 */
PAIR_TEST(api_cq, arming_calls_the_thread_unless_the_program_waits_in_the_library,
	  open_with_channel, close_with_channel)
{
	struct ur_device *dev = ur_device(A->ctx);
	uint32_t calls = dev->progress_nap.calls, one = dev->dedicated ? 0 : 1;
	pthread_t t;

	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	cr_assert_eq(dev->progress_nap.calls, calls + one);
	send_to_a(1, false);
	cr_assert(readable(channel->fd, 2000));
	take_event();
	take_wc(1);
	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	cr_assert_eq(dev->progress_nap.calls, calls + 2 * one, "it did not wait for that event");
	/* The event may come before the wait begins. */
	do {
		post_recv(A, qa, 1, 0, 100);
		cr_assert_eq(pthread_create(&t, NULL, send_later, NULL), 0);
		take_event();
		take_wc(1);
		cr_assert_eq(pthread_join(t, NULL), 0);
		expect_wc(B, 1, IBV_WC_SUCCESS);
		calls = dev->progress_nap.calls;
		cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	} while (!ur_wait_has_been_for(dev, channel->fd));
	cr_assert_eq(dev->progress_nap.calls, calls);
}

PAIR_TEST(api_cq, a_descriptor_that_must_not_block_does_not, open_with_channel, close_with_channel)
{
	struct ibv_async_event ev;
	struct ibv_cq *cq;
	void *context;

	cr_assert_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(uroce_get_cq_event(channel, &cq, &context), -1);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	send_to_a(1, false);
	cr_assert(readable(channel->fd, 2000));
	take_event();
	take_wc(1);
	cr_assert_eq(fcntl(A->ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(uroce_get_async_event(A->ctx, &ev), -1);
	cr_assert_eq(errno, EAGAIN);
}

static void on_alarm(int sig)
{
}

PAIR_TEST(api_cq, a_signal_ends_the_wait, open_with_channel, close_with_channel)
{
	struct sigaction sa = {.sa_handler = on_alarm}; /* no SA_RESTART */
	struct ibv_cq *cq;
	void *context;

	sigaction(SIGUSR1, &sa, NULL);
	for (int i = 0; i < 2; i++) {
		timer_t timer;
		struct sigevent se = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
		/* Periodic, because the first signal may come before the wait begins. */
		struct itimerspec at = {{0, 10000000}, {0, 10000000}};
		struct ibv_async_event ev;

		cr_assert_eq(timer_create(CLOCK_MONOTONIC, &se, &timer), 0);
		cr_assert_eq(timer_settime(timer, 0, &at, NULL), 0);
		errno = 0;
		cr_assert_eq(i ? uroce_get_async_event(A->ctx, &ev)
			       : uroce_get_cq_event(channel, &cq, &context),
			     -1);
		cr_assert_eq(errno, EINTR);
		timer_delete(timer);
	}
}

PAIR_TEST(api_cq, a_destroyed_cq_leaves_no_event_behind, open_with_channel, close_with_channel)
{
	struct ibv_cq *other = uroce_create_cq(A->ctx, 8, (void *)0x77, channel, 0);

	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	send_to_a(1, false);
	cr_assert(readable(channel->fd, 2000));
	cr_assert_eq(uroce_destroy_comp_channel(channel), EBUSY);
	cr_assert_eq(uroce_destroy_cq(armed), EBUSY, "its QP is there");
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	qa = NULL;
	cr_assert_eq(uroce_destroy_cq(armed), 0);
	armed = NULL;
	cr_assert_not(readable(channel->fd, 10));
	cr_assert_eq(uroce_destroy_cq(other), 0);
}

struct late_ack {
	struct ibv_cq *cq;
	_Atomic bool acked;
};

static void *ack_later(void *arg)
{
	struct timespec nap = {.tv_nsec = 50000000};
	struct late_ack *l = arg;

	nanosleep(&nap, NULL);
	atomic_store(&l->acked, true);
	uroce_ack_cq_events(l->cq, 1);
	return NULL;
}

PAIR_TEST(api_cq, destruction_waits_for_the_events_that_were_given_out, open_with_channel,
	  close_with_channel)
{
	struct late_ack l;
	struct ibv_cq *cq;
	void *context;
	pthread_t t;

	cr_assert_eq(uroce_req_notify_cq(armed, 0), 0);
	send_to_a(1, false);
	cr_assert_eq(uroce_get_cq_event(channel, &cq, &context), 0);
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	qa = NULL;
	l = (struct late_ack){.cq = cq};
	cr_assert_eq(pthread_create(&t, NULL, ack_later, &l), 0);
	cr_assert_eq(uroce_destroy_cq(armed), 0);
	armed = NULL;
	cr_assert(atomic_load(&l.acked));
	pthread_join(t, NULL);
}

PAIR_TEST(api_cq, a_full_queue_raises_an_event_and_its_contents_can_be_polled, open_with_channel,
	  close_with_channel)
{
	struct ibv_wc wc[16];

	for (unsigned i = 0; i < 9; i++)
		send_to_a(i, false);
	progress_for(2);
	expect_event(A, IBV_EVENT_CQ_ERR, armed);
	cr_assert_eq(uroce_poll_cq(armed, 16, wc), 8);
	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(wc[i].wr_id, i);
	send_to_a(10, false);
	progress_for(5);
	cr_assert_eq(uroce_poll_cq(armed, 16, wc), 0, "it is dead");
}

PAIR_TEST(api_cq_plain, the_inline_functions_of_verbs_h_work, open_both, close_both)
{
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = make_qp(B, IBV_QPT_RC);
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = uroce_create_srq(A->pd, &sa);
	struct ibv_sge sge = sge_of(A, 0, 100), to = sge_of(B, 0, 100);
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_wc wc;
	uint64_t until = now_ms() + PATIENCE_MS;

	join(a, b, (struct join){0});
	cr_assert_eq(ibv_req_notify_cq(A->cq, 0), 0, "without a channel it does nothing");
	cr_assert_eq(ibv_post_recv(b, &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(a, &wr, &bad), 0);
	while (ibv_poll_cq(B->cq, 1, &wc) == 0)
		cr_assert_lt(now_ms(), until);
	cr_assert_eq(wc.wr_id, 2);
	while (ibv_poll_cq(A->cq, 1, &wc) == 0)
		cr_assert_lt(now_ms(), until);
	cr_assert_eq(wc.wr_id, 1);
	recv.sg_list = &sge;
	cr_assert_eq(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
}

/* Runs no workers but those of the queue's endpoint. */
static struct ibv_wc next_wc_alone(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (uint64_t until = now_ms() + PATIENCE_MS; uroce_poll_cq(cq, 1, &wc) != 1;)
		cr_assert_lt(now_ms(), until);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	return wc;
}

/* EDGE-ACK-04: what A has sent. Whichever comes first at B, the request for events or the queue pair. */
PAIR_TEST(api_cq_plain, what_was_sent_completes_before_it_is_answered, open_both, close_both)
{
	for (unsigned armed_first = 0; armed_first < 2; armed_first++) {
		struct ibv_comp_channel *ch = uroce_create_comp_channel(B->ctx);
		struct ibv_cq *cq = uroce_create_cq(B->ctx, SIDE_CQE, NULL, ch, 0);
		struct ibv_qp_init_attr attr = qp_attr(B, IBV_QPT_RC);

		attr.send_cq = attr.recv_cq = cq;
		qa = make_qp(A, IBV_QPT_RC);
		if (armed_first)
			cr_assert_eq(uroce_req_notify_cq(cq, 0), 0);
		qb = uroce_create_qp(B->pd, &attr);
		cr_assert_not_null(qb);
		if (!armed_first)
			cr_assert_eq(uroce_req_notify_cq(cq, 0), 0);
		join(qa, qb, (struct join){0});
		for (unsigned i = 0; i < 20; i++) {
			post_recv(A, qa, i, 0, 64);
			post_recv(B, qb, i, 0, 64);
			post(A, qa, i, IBV_WR_SEND, 0, 64);
			cr_assert_eq(next_wc_alone(cq).opcode, IBV_WC_RECV);
			post(B, qb, i, IBV_WR_SEND, 0, 64);
			cr_assert_eq(next_wc_alone(A->cq).opcode, IBV_WC_SEND);
			cr_assert_eq(next_wc_alone(A->cq).opcode, IBV_WC_RECV);
			cr_assert_eq(next_wc_alone(cq).opcode, IBV_WC_SEND);
		}
		cr_assert_eq(uroce_destroy_qp(qa), 0);
		cr_assert_eq(uroce_destroy_qp(qb), 0);
		cr_assert_eq(uroce_destroy_cq(cq), 0);
		cr_assert_eq(uroce_destroy_comp_channel(ch), 0);
		/* A new endpoint knows nothing of this. */
		close_side(B);
		open_side(B, NULL);
	}
}

PAIR_TEST(api_cq_plain, wrong_arguments_make_no_cq, open_both, close_both)
{
	struct ibv_comp_channel *ch = uroce_create_comp_channel(B->ctx);
	struct ibv_wc wc;

	cr_assert_null(uroce_create_cq(A->ctx, 0, NULL, NULL, 0));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(uroce_create_cq(A->ctx, -1, NULL, NULL, 0));
	cr_assert_null(uroce_create_cq(A->ctx, 8, NULL, NULL, 1));
	cr_assert_null(uroce_create_cq(A->ctx, 8, NULL, NULL, -1));
	errno = 0;
	cr_assert_null(uroce_create_cq(A->ctx, 8, NULL, ch, 0), "a channel of another endpoint");
	cr_assert_eq(errno, EINVAL);
	cr_assert_lt(uroce_poll_cq(A->cq, -1, &wc), 0);
	cr_assert_eq(uroce_poll_cq(A->cq, 0, &wc), 0);
	cr_assert_eq(uroce_destroy_comp_channel(ch), 0);
}

PAIR_TEST(api_cq_plain, is_destroyed_with_completions_in_transit_hundreds_of_times, open_both,
	  close_both)
{
	for (unsigned i = 0; i < 300; i++) {
		struct ibv_comp_channel *ch = uroce_create_comp_channel(A->ctx);
		struct ibv_cq *cq = uroce_create_cq(A->ctx, 4, NULL, ch, 0);
		struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
		struct ibv_qp *a, *b = make_qp(B, IBV_QPT_RC);

		attr.send_cq = attr.recv_cq = cq;
		a = uroce_create_qp(A->pd, &attr);
		cr_assert(ch && cq && a);
		join(a, b, (struct join){.timeout = 8, .retry_cnt = 1});
		cr_assert_eq(uroce_req_notify_cq(cq, 0), 0);
		for (unsigned n = 0; n < 8; n++) /* overflows sometimes */
			post(A, a, n, IBV_WR_RDMA_WRITE, 0, 3000);
		for (unsigned n = i % 9; n; n--)
			uroce_progress(n & 1 ? B->ctx : A->ctx);
		cr_assert_eq(uroce_destroy_qp(i & 1 ? a : b), 0);
		cr_assert_eq(uroce_destroy_qp(i & 1 ? b : a), 0);
		cr_assert_eq(uroce_destroy_cq(cq), 0);
		cr_assert_eq(uroce_destroy_comp_channel(ch), 0);
	}
	cr_assert_not(readable(A->ctx->async_fd, 0), "events of dead queues are forgotten");
}

/* ---- asynchronous events ---- */

#define MANY 300

static struct ibv_cq *many_cqs[MANY];
static struct ibv_qp *many_qps[MANY];

/* Overflows a CQ of one entry by flushing two receives. */
static void overflow(unsigned i)
{
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_UD);

	many_cqs[i] = uroce_create_cq(A->ctx, 1, NULL, NULL, 0);
	cr_assert_not_null(many_cqs[i]);
	attr.send_cq = attr.recv_cq = many_cqs[i];
	many_qps[i] = uroce_create_qp(A->pd, &attr);
	cr_assert_not_null(many_qps[i]);
	cr_assert_eq(to_init(many_qps[i], 0), 0);
	for (unsigned n = 0; n < 8; n++)
		post_recv(A, many_qps[i], n, 0, 10);
	cr_assert_eq(to_state(many_qps[i], IBV_QPS_ERR), 0);
}

static unsigned index_of(const struct ibv_cq *cq)
{
	unsigned i = 0;

	while (i < MANY && many_cqs[i] != cq)
		i++;
	cr_assert_lt(i, (unsigned)MANY);
	return i;
}

/* ASYNC-KEEP-01 */
PAIR_TEST(api_cq, no_asynchronous_event_is_lost, open_both, close_both)
{
	static bool told[MANY];
	struct ibv_async_event ev;

	for (unsigned i = 0; i < MANY; i++)
		overflow(i);
	cr_assert_eq(fcntl(A->ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned n = 0; n < MANY; n++) {
		unsigned i;

		cr_assert_eq(uroce_get_async_event(A->ctx, &ev), 0, "%u events were told", n);
		cr_assert_eq(ev.event_type, IBV_EVENT_CQ_ERR);
		i = index_of(ev.element.cq);
		cr_assert_not(told[i], "told once");
		told[i] = true;
		uroce_ack_async_event(&ev);
	}
	cr_assert_not(readable(A->ctx->async_fd, 0));
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_eq(uroce_destroy_qp(many_qps[i]), 0);
		cr_assert_eq(uroce_destroy_cq(many_cqs[i]), 0);
	}
}

/* ASYNC-KEEP-01 */
PAIR_TEST(api_cq, an_event_repeated_before_it_is_fetched_is_reported_once, open_both, close_both)
{
	struct ibv_qp *qp = make_qp(A, IBV_QPT_RC);
	static const enum ibv_event_type types[] = {IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED,
						    IBV_EVENT_COMM_EST};
	struct ibv_async_event ev;

	cr_assert_eq(fcntl(A->ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 0; i < 3; i++)
		ur_async_raise(ur_device(A->ctx), types[i], qp);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(uroce_get_async_event(A->ctx, &ev), 0);
		cr_assert_eq(ev.event_type, types[i]);
		cr_assert_eq(ev.element.qp, qp);
		uroce_ack_async_event(&ev);
	}
	cr_assert_eq(uroce_get_async_event(A->ctx, &ev), -1);
	ur_async_raise(ur_device(A->ctx), IBV_EVENT_COMM_EST, qp);
	cr_assert_eq(uroce_get_async_event(A->ctx, &ev), 0, "and again when it was fetched");
	uroce_ack_async_event(&ev);
	ur_async_raise(ur_device(A->ctx), IBV_EVENT_COMM_EST, qp);
	cr_assert_eq(uroce_destroy_qp(qp), 0);
	cr_assert_not(readable(A->ctx->async_fd, 0));
}

/* CQ-RESIZE-01 */
PAIR_TEST(api_cq, resizing_keeps_completions_and_a_small_queue_overflows_no_more, open_both,
	  close_both)
{
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_cq *cq = uroce_create_cq(A->ctx, 2, NULL, NULL, 0);
	struct ibv_wc wc[16];
	unsigned n = 0;

	attr.send_cq = cq;
	qa = uroce_create_qp(A->pd, &attr);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
	cr_assert_eq(uroce_resize_cq(cq, 0), EINVAL);
	cr_assert_eq(uroce_resize_cq(cq, -1), EINVAL);
	cr_assert_eq(uroce_resize_cq(cq, (1 << 20) + 1), EINVAL);
	for (unsigned i = 0; i < 2; i++)
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 8);
	progress_for(50);
	cr_assert_eq(uroce_resize_cq(cq, 16), 0);
	cr_assert_eq(cq->cqe, 16);
	for (unsigned i = 2; i < 10; i++)
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 8);
	for (uint64_t until = now_ms() + PATIENCE_MS; n < 8 && now_ms() < until;) {
		progress_for(1);
		n += (unsigned)uroce_poll_cq(cq, (int)(8 - n), wc + n);
	}
	progress_for(20);
	cr_assert_eq(uroce_resize_cq(cq, 1), EINVAL, "two wait");
	cr_assert_eq(cq->cqe, 16);
	while (n < 10 && uroce_poll_cq(cq, 1, wc + n) == 1)
		n++;
	cr_assert_eq(n, 10u);
	for (unsigned i = 0; i < n; i++)
		cr_assert(wc[i].wr_id == i && wc[i].status == IBV_WC_SUCCESS);
	cr_assert_eq(uroce_resize_cq(cq, 1), 0);
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
	cr_expect_eq(uroce_destroy_cq(cq), 0);
}

/* CQ-RESET-01 */
PAIR_TEST(api_cq, reset_removes_the_completions_of_its_queue_pair_only, open_both, close_both)
{
	struct ibv_qp *other_a = make_qp(A, IBV_QPT_RC), *other_b = make_qp(B, IBV_QPT_RC);
	struct ibv_wc wc;

	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
	join(other_a, other_b, (struct join){0});
	for (unsigned i = 0; i < 4; i++)
		post(A, i & 1 ? other_a : qa, i, IBV_WR_RDMA_WRITE, 0, 8);
	post_recv(A, qa, 9, 0, 8);
	progress_for(50);
	cr_assert_eq(to_state(qa, IBV_QPS_ERR), 0);
	progress_for(5);
	cr_assert_eq(to_state(qa, IBV_QPS_RESET), 0);
	for (unsigned i = 1; i < 4; i += 2)
		expect_wc(A, i, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_poll_cq(A->cq, 1, &wc), 0);
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
	cr_expect_eq(uroce_destroy_qp(other_a), 0);
	cr_expect_eq(uroce_destroy_qp(other_b), 0);
}
