/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU sets */
#endif
#include "api_pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "api/device.h"
#include "engine/inside.h"

/* Inline with one worker each; inline with two workers each; A dedicated, two workers each. */
static const char *const two[] = {"worker.count=2", NULL};
/* Three lcores on any CPUs of the process, because the machine may have only one or two. */
static const char *const dedicated[] = {"worker.count=2", "worker.mode=dedicated",
					"eal.lcores=(0,1,2)@(0,1)", NULL};

static void open_two(void)
{
	open_side(A, two);
	open_side(B, two);
}

static void open_dedicated(void)
{
	open_side(A, dedicated);
	open_side(B, two);
}

/* The library's thread looks once in a millisecond. */
static void open_ticking(void)
{
	static const char *const tick[] = {"worker.progress=tick", NULL};

	open_side(A, tick);
	open_side(B, tick);
}

static struct ibv_qp *qa, *qb;

static void join_rc(void)
{
	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	/* A long timeout, because the machine may be busy. */
	join(qa, qb, (struct join){.timeout = 18});
}

static void part(void)
{
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

/* ---- many threads, one QP, one CQ: EDGE-REST-02 ---- */

#define THREADS 3
#define POSTS	400

static _Atomic unsigned char seen[THREADS * POSTS];
static _Atomic unsigned seen_cnt, wrong_cnt;

static void poll_some(void)
{
	struct ibv_wc wc[8];
	int n = uroce_poll_cq(A->cq, 8, wc);

	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id >= THREADS * POSTS ||
		    atomic_exchange(&seen[wc[i].wr_id], 1))
			atomic_fetch_add(&wrong_cnt, 1);
	atomic_fetch_add(&seen_cnt, (unsigned)n);
}

static void *post_many(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t until = now_ms() + 60000;

	for (unsigned i = 0; i < POSTS && now_ms() < until;) {
		struct ibv_send_wr wr = {.wr_id = me * POSTS + i, .opcode = IBV_WR_RDMA_WRITE};
		int rc = try_post(A, qa, wr, 4096 * me, 2000);

		if (rc == 0)
			i++;
		else if (rc != ENOMEM)
			atomic_fetch_add(&wrong_cnt, 1);
		if (rc || i % 16 == 0)
			poll_some();
	}
	while (atomic_load(&seen_cnt) < THREADS * POSTS && now_ms() < until) {
		poll_some();
		uroce_progress(B->ctx);
	}
	return NULL;
}

static void everyone_posts_and_polls(void)
{
	pthread_t t[THREADS];

	join_rc();
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, post_many, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	cr_assert_eq(atomic_load(&seen_cnt), THREADS * POSTS);
	cr_assert_eq(atomic_load(&wrong_cnt), 0u);
	part();
}

PAIR_TEST(api_threads, share_a_qp_and_a_cq, open_both, close_both)
{
	everyone_posts_and_polls();
}

PAIR_TEST(api_dedicated, threads_share_a_qp_and_a_cq, open_dedicated, close_both)
{
	everyone_posts_and_polls();
}

/* ---- a command behind a request, while another thread is in a round: EDGE-REST-02 ---- */

#define DRAINS 500

static _Atomic bool drained_all;

static void *make_rounds(void *arg)
{
	(void)arg;
	while (!atomic_load(&drained_all))
		uroce_progress(A->ctx);
	return NULL;
}

/* A drained send queue begins no request. One that was posted before has left, wherever the worker was. */
static void drain_behind_each_post(void)
{
	struct ibv_qp_attr drain = {.qp_state = IBV_QPS_SQD};

	join_rc();
	for (unsigned i = 0; i < DRAINS; i++) {
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 10);
		cr_assert_eq(uroce_modify_qp(qa, &drain, IBV_QP_STATE), 0);
		expect_wc(A, i, IBV_WC_SUCCESS);
		cr_assert_eq(to_state(qa, IBV_QPS_RTS), 0);
	}
	part();
}

PAIR_TEST(api_threads, what_is_posted_leaves_before_a_command, open_both, close_both)
{
	pthread_t other;

	cr_assert_eq(pthread_create(&other, NULL, make_rounds, NULL), 0);
	drain_behind_each_post();
	atomic_store(&drained_all, true);
	pthread_join(other, NULL);
}

PAIR_TEST(api_dedicated, what_is_posted_leaves_before_a_command, open_dedicated, close_both)
{
	drain_behind_each_post();
}

/* ---- a thread in the application's way: EDGE-REST-08 ---- */

#define WRITES 100

static void run_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

/*
 * B's application makes a round on `application`. Then something comes, which a thread receives on `thread`. Returns how often it was in the
 * application's way: not always, because the library's own thread may have been faster.
 */
static unsigned in_way_of(int application, int thread, bool may_be_answered)
{
	struct ur_worker *w = ur_device(B->ctx)->workers[0];
	unsigned cnt = 0;

	for (unsigned i = 0; i < WRITES; i++) {
		bool in_way;

		run_on(application);
		uroce_progress(B->ctx);
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 64);
		run_on(thread);
		ur_worker_serve(w, may_be_answered, &in_way);
		cnt += in_way;
		expect_wc(A, i, IBV_WC_SUCCESS);
	}
	return cnt;
}

PAIR_TEST(api_threads, one_that_took_the_applications_cpu_knows_it, open_ticking, close_both)
{
	cpu_set_t all;
	int cpus[2], n = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &all))
			cpus[n++] = i;
	join_rc();
	cr_expect_gt(in_way_of(cpus[0], cpus[0], true), 0u);
	cr_expect_eq(in_way_of(cpus[0], cpus[0], false), 0u, "the ACK does not wait");
	if (n == 2)
		cr_expect_eq(in_way_of(cpus[0], cpus[1], true), 0u);
	part();
}

/* ---- control calls during traffic ---- */

static _Atomic bool stop;
static _Atomic unsigned rounds;

static void *traffic(void *arg)
{
	while (!atomic_load(&stop)) {
		struct ibv_send_wr wr = {.wr_id = 0, .opcode = IBV_WR_RDMA_WRITE};
		struct ibv_wc wc[8];
		int rc = try_post(A, qa, wr, 0, 5000);

		if (rc && rc != ENOMEM)
			atomic_fetch_add(&wrong_cnt, 1);
		uroce_progress(B->ctx);
		for (int n = uroce_poll_cq(A->cq, 8, wc); n > 0; n--)
			if (wc[n - 1].status != IBV_WC_SUCCESS)
				atomic_fetch_add(&wrong_cnt, 1);
		atomic_fetch_add(&rounds, 1);
	}
	return arg;
}

static void *control(void *arg)
{
	struct side *s = arg;

	for (unsigned i = 0; i < 60; i++) {
		struct ibv_cq *cq =
			uroce_create_cq(s->ctx, 16, NULL, NULL, (int)i % s->ctx->num_comp_vectors);
		struct ibv_mr *mr = uroce_reg_mr(s->pd, s->buf, 100, ALL_RIGHTS);
		struct ibv_qp_init_attr attr = qp_attr(s, i & 1 ? IBV_QPT_UD : IBV_QPT_RC);
		struct ibv_ah_attr av = av_to(s, s == A ? B : A, 0);
		struct ibv_ah *ah = uroce_create_ah(s->pd, &av);
		struct uroce_objects objects;
		struct uroce_counters counters;
		struct ibv_qp *qp;
		char *json;

		attr.recv_cq = cq;
		qp = uroce_create_qp(s->pd, &attr);
		if (!cq || !mr || !ah || !qp) {
			atomic_fetch_add(&wrong_cnt, 1);
			return NULL;
		}
		if (to_init(qp, 0) || try_recv(s, qp, 1, 0, 10) || to_state(qp, IBV_QPS_ERR) ||
		    uroce_query_objects(s->ctx, &objects) ||
		    uroce_query_counters(s->ctx, &counters) ||
		    uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0))
			atomic_fetch_add(&wrong_cnt, 1);
		json = uroce_counters_json(s->ctx);
		if (!json || !strstr(json, "rx_packets"))
			atomic_fetch_add(&wrong_cnt, 1);
		free(json);
		if (uroce_destroy_qp(qp) || uroce_destroy_ah(ah) || uroce_dereg_mr(mr) ||
		    uroce_destroy_cq(cq))
			atomic_fetch_add(&wrong_cnt, 1);
	}
	return NULL;
}

static void control_beside_traffic(void)
{
	pthread_t t[3];

	join_rc();
	cr_assert_eq(pthread_create(&t[0], NULL, traffic, NULL), 0);
	cr_assert_eq(pthread_create(&t[1], NULL, control, A), 0);
	cr_assert_eq(pthread_create(&t[2], NULL, control, B), 0);
	pthread_join(t[1], NULL);
	pthread_join(t[2], NULL);
	atomic_store(&stop, true);
	pthread_join(t[0], NULL);
	cr_assert_eq(atomic_load(&wrong_cnt), 0u);
	cr_assert_gt(atomic_load(&rounds), 0u);
	part();
}

PAIR_TEST(api_threads, control_calls_go_on_beside_traffic, open_both, close_both)
{
	control_beside_traffic();
}

PAIR_TEST(api_workers, control_calls_go_on_beside_traffic, open_two, close_both)
{
	control_beside_traffic();
}

PAIR_TEST(api_dedicated, control_calls_go_on_beside_traffic, open_dedicated, close_both)
{
	control_beside_traffic();
}

PAIR_TEST(api_threads, a_call_is_not_kept_out_by_a_thread_that_polls_without_a_pause, open_both,
	  close_both)
{
	pthread_t t;
	struct ibv_qp_attr attr;

	join_rc();
	cr_assert_eq(pthread_create(&t, NULL, traffic, NULL), 0);
	for (unsigned i = 0; i < 300; i++)
		cr_assert_eq(uroce_query_qp(qa, &attr, IBV_QP_STATE, NULL), 0);
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	part();
}

/* ---- several workers ---- */

/* A's QP is on worker `recv`, its sends complete on worker `send`. */
static void across(unsigned recv, unsigned send)
{
	struct ibv_cq *rcq = uroce_create_cq(A->ctx, 64, NULL, NULL, (int)recv);
	struct ibv_comp_channel *ch = uroce_create_comp_channel(A->ctx);
	struct ibv_cq *scq = uroce_create_cq(A->ctx, 64, NULL, ch, (int)send);
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_cq *cq;
	void *context;

	attr.send_cq = scq;
	attr.recv_cq = rcq;
	qa = uroce_create_qp(A->pd, &attr);
	cr_assert(rcq && ch && scq && qa);
	cr_assert_eq(qa->qp_num & 1, recv, "the QPN names the worker");
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){.timeout = 18});
	for (unsigned i = 0; i < 30; i++) {
		fill(A, 0, 20000, (uint8_t)i);
		cr_assert_eq(uroce_req_notify_cq(scq, 0), 0);
		post_recv(A, qa, 7, 30000, 100);
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 20000);
		post(B, qb, 8, IBV_WR_SEND, 0, 100);
		cr_assert_eq(uroce_get_cq_event(ch, &cq, &context), 0);
		cr_assert_eq(cq, scq);
		uroce_ack_cq_events(cq, 1);
		cr_assert_eq(next_wc_of(scq).wr_id, i);
		cr_assert_eq(next_wc_of(rcq).wr_id, 7);
		expect_wc(B, 8, IBV_WC_SUCCESS);
		cr_assert_eq(memcmp(A->buf, B->buf, 20000), 0);
	}
	/* The last completions are in transit between the workers when their CQ is destroyed. */
	for (unsigned i = 0; i < 16; i++)
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 100);
	cr_assert_eq(to_state(qa, IBV_QPS_ERR), 0);
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_cq(scq), 0);
	cr_assert_eq(uroce_destroy_cq(rcq), 0);
	cr_assert_eq(uroce_destroy_comp_channel(ch), 0);
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	progress_for(5);
}

PAIR_TEST(api_workers, completions_find_the_worker_of_their_queue, open_two, close_both)
{
	cr_assert_eq(A->ctx->num_comp_vectors, 2);
	across(0, 1);
	across(1, 0);
	across(1, 1);
}

PAIR_TEST(api_dedicated, completions_find_the_worker_of_their_queue, open_dedicated, close_both)
{
	across(0, 1);
	across(1, 0);
	across(1, 1);
}

PAIR_TEST(api_workers, an_srq_stays_with_the_worker_of_its_first_qp, open_two, close_both)
{
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = uroce_create_srq(A->pd, &sa);
	struct ibv_cq *there = uroce_create_cq(A->ctx, 8, NULL, NULL, 1);
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_qp *first, *second;

	attr.srq = srq;
	first = uroce_create_qp(A->pd, &attr);
	cr_assert_not_null(first);
	attr.recv_cq = there;
	errno = 0;
	cr_assert_null(uroce_create_qp(A->pd, &attr));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(uroce_destroy_qp(first), 0);
	second = uroce_create_qp(A->pd, &attr);
	cr_assert_not_null(second, "it is no longer in use");
	cr_assert_eq(uroce_destroy_qp(second), 0);
	cr_assert_eq(uroce_destroy_cq(there), 0);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
}

static _Atomic bool busy;

static void be_busy(void *arg, uint64_t now_ns)
{
	atomic_store(&busy, true);
	while (atomic_load(&busy))
		usleep(100);
}

static void *keep_busy(void *arg)
{
	ur_worker_call(arg, be_busy, NULL);
	return NULL;
}

PAIR_TEST(api_workers, completions_lost_between_workers_raise_an_event, open_two, close_both)
{
	pthread_t t;
	enum { MANY = 20000 };
	struct ibv_cq *scq = uroce_create_cq(A->ctx, MANY, NULL, NULL, 1);
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_send_wr *wr = calloc(MANY, sizeof(*wr)), *bad;
	struct ibv_sge sge = sge_of(A, 0, 1);

	attr.send_cq = scq;
	attr.cap.max_send_wr = MANY;
	qa = uroce_create_qp(A->pd, &attr);
	cr_assert(scq && wr && qa);
	cr_assert_eq(to_init(qa, 0), 0);
	cr_assert_eq(to_state(qa, IBV_QPS_ERR), 0);
	for (unsigned i = 0; i < MANY; i++)
		wr[i] = (struct ibv_send_wr){.next = i + 1 < MANY ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND};
	cr_assert_eq(pthread_create(&t, NULL, keep_busy, ur_device(A->ctx)->workers[1]), 0);
	while (!atomic_load(&busy))
		usleep(100);
	/* All are flushed, which is more than the queue to the other worker can hold. */
	cr_assert_eq(uroce_post_send(qa, wr, &bad), 0);
	expect_event(A, IBV_EVENT_CQ_ERR, scq);
	atomic_store(&busy, false);
	pthread_join(t, NULL);
	free(wr);
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_cq(scq), 0);
}

PAIR_TEST(api_dedicated, a_cq_event_is_slept_for, open_dedicated, close_both)
{
	struct ibv_comp_channel *ch = uroce_create_comp_channel(A->ctx);
	struct ibv_cq *scq = uroce_create_cq(A->ctx, 64, NULL, ch, 1), *cq;
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_async_event ev;
	void *context;
	struct ibv_wc wc;

	cr_assert_not(uroce_is_inline(A->ctx));
	cr_assert(uroce_is_inline(B->ctx));
	attr.send_cq = attr.recv_cq = scq;
	qa = uroce_create_qp(A->pd, &attr);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){.timeout = 18});
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(uroce_req_notify_cq(scq, 0), 0);
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 3000);
		/* B's progress thread answers. */
		cr_assert_eq(uroce_get_cq_event(ch, &cq, &context), 0);
		uroce_ack_cq_events(cq, 1);
		cr_assert_eq(uroce_poll_cq(scq, 1, &wc), 1);
	}
	cr_assert_eq(uroce_close(A->ctx), EBUSY);
	{
		struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

		cr_assert_eq(uroce_modify_qp(qa, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
			     0);
		cr_assert_eq(uroce_get_async_event(A->ctx, &ev), 0);
		cr_assert_eq(ev.event_type, IBV_EVENT_SQ_DRAINED);
		uroce_ack_async_event(&ev);
	}
	part();
	cr_assert_eq(uroce_destroy_cq(scq), 0);
	cr_assert_eq(uroce_destroy_comp_channel(ch), 0);
}

/* ---- capture ---- */

static void capture_beside_traffic(void)
{
	char file[64], err[256];
	struct uroce_capture_stats st = {0};
	uint64_t written = 0, until = now_ms() + PATIENCE_MS;
	pthread_t t;

	snprintf(file, sizeof(file), "/tmp/uroce_api_test_%d.pcap", (int)getpid());
	join_rc();
	cr_assert_eq(uroce_capture_stop(A->ctx, NULL), ENOENT);
	cr_assert_eq(uroce_capture_start(A->ctx, file, "no such filter", 0, err, sizeof(err)),
		     EINVAL);
	cr_assert_eq(pthread_create(&t, NULL, traffic, NULL), 0);
	for (unsigned i = 0; i < 10 || (!written && now_ms() < until); i++) {
		cr_assert_eq(uroce_capture_start(A->ctx, file, i & 1 ? "udp port 4791" : NULL, 0,
						 err, sizeof(err)),
			     0, "%s", err);
		cr_assert_eq(uroce_capture_start(A->ctx, file, NULL, 0, err, sizeof(err)), EBUSY);
		usleep(5000);
		cr_assert_eq(uroce_capture_stop(A->ctx, &st), 0);
		written += st.written;
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	unlink(file);
	cr_assert_gt(written, 0);
	cr_assert_eq(atomic_load(&wrong_cnt), 0u);
	part();
}

PAIR_TEST(api_threads, capture_starts_and_stops_beside_traffic, open_both, close_both)
{
	capture_beside_traffic();
}

PAIR_TEST(api_dedicated, capture_starts_and_stops_beside_traffic, open_dedicated, close_both)
{
	capture_beside_traffic();
}

/* ---- memory for gaps ---- */

/* Takes two thirds of the slabs that the worker has. */
static void take_slabs(void *arg, uint64_t now_ns)
{
	struct ur_slabs *s = &ur_engine_core(ur_worker_engine(arg))->loss;

	while (s->free_cnt > s->cnt / 3)
		cr_assert_not_null(ur_slabs_take(s, s->slab_bytes / 2 + 1, 0));
}

struct look {
	struct ur_worker *worker;
	uint32_t cnt, wanted;
	uint64_t bytes;
};

static void look_at_slabs(void *arg, uint64_t now_ns)
{
	struct look *l = arg;

	l->cnt = ur_engine_core(ur_worker_engine(l->worker))->loss.cnt;
	l->wanted = ur_engine_wanted_slabs(ur_worker_engine(l->worker));
	l->bytes = ur_worker_counters(l->worker)->loss_memory_bytes;
}

/* EDGE-LOSS-01 */
static void memory_grows(void)
{
	struct look l = {.worker = ur_device(A->ctx)->workers[0]};
	uint32_t first;

	ur_worker_call(l.worker, look_at_slabs, &l);
	first = l.cnt;
	cr_assert_gt(first, 4);
	cr_assert_eq(l.wanted, 0);
	cr_assert_eq(l.bytes, (uint64_t)first * UR_LOSS_SLAB_BYTES);
	ur_worker_call(l.worker, take_slabs, l.worker);
	for (unsigned i = 0; l.cnt == first && i < PATIENCE_MS / 5; i++) {
		progress_for(5);
		ur_worker_call(l.worker, look_at_slabs, &l);
	}
	cr_assert_gt(l.cnt, first);
	cr_assert_eq(l.wanted, 0);
	cr_assert_eq(l.bytes, (uint64_t)l.cnt * UR_LOSS_SLAB_BYTES);
}

PAIR_TEST(api_threads, memory_for_gaps_grows_on_command, open_both, close_both)
{
	memory_grows();
}

PAIR_TEST(api_dedicated, memory_for_gaps_grows_on_command, open_dedicated, close_both)
{
	memory_grows();
}

/* ---- ends ---- */

static void *poll_for_ever(void *arg)
{
	struct ibv_wc wc;

	for (;;)
		uroce_poll_cq(((struct side *)arg)->cq, 1, &wc);
	return NULL;
}

static void exit_beside_traffic(void)
{
	pthread_t t;

	join_rc();
	cr_assert_eq(pthread_create(&t, NULL, poll_for_ever, A), 0);
	cr_assert_eq(pthread_create(&t, NULL, poll_for_ever, B), 0);
	post(A, qa, 1, IBV_WR_RDMA_WRITE, 0, 60000);
	exit(23);
}

PAIR_TEST(api_threads, exit_is_clean_while_others_poll, open_both, close_both, .exit_code = 23)
{
	exit_beside_traffic();
}

PAIR_TEST(api_dedicated, exit_is_clean_while_others_poll, open_dedicated, close_both,
	  .exit_code = 23)
{
	exit_beside_traffic();
}
