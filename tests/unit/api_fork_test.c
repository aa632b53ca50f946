/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>

/* A program that forks while it has an open endpoint. */

static const char *const dedicated[] = {"worker.count=2", "worker.mode=dedicated",
					"eal.lcores=(0,1,2)@(0,1)", NULL};
static const char *const two[] = {"worker.count=2", NULL};

static void open_dedicated(void)
{
	open_side(A, dedicated);
	open_side(B, two);
}

static void write_once(void)
{
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = make_qp(B, IBV_QPT_RC);

	join(a, b, (struct join){.timeout = 18});
	post(A, a, 1, IBV_WR_RDMA_WRITE, 0, 30000);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
}

/* The status of a child, or -1 if it had to be killed. */
static int status_of(pid_t child)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	int status;

	while (waitpid(child, &status, WNOHANG) == 0) {
		progress();
		if (now_ms() > until) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -1;
		}
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_telemetry(void)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/dpdk_telemetry.v2", rte_eal_get_runtime_dir());
	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void leave(bool close_first)
{
	if (close_first && (uroce_close(A->ctx) || uroce_close(B->ctx)))
		_exit(2);
	exit(23);
}

/* EDGE-FORK-01 */
static void fork_and_exit(void)
{
	write_once();
	cr_assert(has_telemetry());
	for (int close_first = 0; close_first < 2; close_first++) {
		pid_t child = fork();

		cr_assert_geq(child, 0);
		if (!child)
			leave(close_first);
		cr_assert_eq(status_of(child), 23, "the child does not end");
		cr_assert(has_telemetry(), "the child has removed the parent's socket");
		write_once();
	}
}

/* What a child should not do. */
static void meddle(struct ibv_qp *qp, struct ibv_comp_channel *channel)
{
	struct ibv_qp_init_attr init = qp_attr(A, IBV_QPT_RC);
	struct ibv_sge sge = {(uintptr_t)A->buf, 64, A->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	wr.wr.rdma.remote_addr = (uintptr_t)B->buf;
	wr.wr.rdma.rkey = B->mr->rkey;
	uroce_post_send(qp, &wr, &bad);
	if (uroce_poll_cq(A->cq, 1, &wc))
		_exit(1);
	uroce_progress(A->ctx);
	if (uroce_create_qp(A->pd, &init) || errno != EIO)
		_exit(2);
	if (uroce_query_qp(qp, &attr, IBV_QP_STATE, NULL) != EIO ||
	    to_state(qp, IBV_QPS_ERR) != EIO)
		_exit(3);
	if (!uroce_get_cq_event(channel, &cq, &context) || errno != EIO)
		_exit(4);
	if (uroce_dereg_mr(A->mr))
		_exit(5);
	exit(23);
}

/* EDGE-FORK-02 */
static void fork_and_meddle(void)
{
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = make_qp(B, IBV_QPT_RC);
	struct ibv_comp_channel *channel = uroce_create_comp_channel(A->ctx);
	pid_t child;

	join(a, b, (struct join){.timeout = 18});
	memset(B->buf, 0xee, 100);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child)
		meddle(a, channel);
	cr_assert_eq(status_of(child), 23);
	progress_for(10);
	cr_assert_eq(B->buf[0], 0xee, "the child has sent");
	/* The queue pair goes on as if nothing had been posted. */
	post(A, a, 1, IBV_WR_RDMA_WRITE, 0, 30000);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
	cr_assert_eq(uroce_destroy_comp_channel(channel), 0);
}

static atomic_bool stop;

/* It is in the middle of something most of the time. */
static void *create_and_destroy(void *arg)
{
	struct ibv_qp_init_attr init = qp_attr(A, IBV_QPT_RC);

	while (!atomic_load(&stop)) {
		struct ibv_qp *qp = uroce_create_qp(A->pd, &init);

		/* Numbers of queue pairs rest for a while. */
		if (qp)
			uroce_destroy_qp(qp);
		uroce_dealloc_pd(uroce_alloc_pd(A->ctx));
	}
	return NULL;
}

/* EDGE-FORK-03 */
PAIR_TEST(api_fork, a_child_waits_for_no_thread_of_its_parent, open_both, close_both)
{
	struct ibv_qp_init_attr init = qp_attr(A, IBV_QPT_RC);
	pthread_t thread;

	atomic_store(&stop, false);
	cr_assert_eq(pthread_create(&thread, NULL, create_and_destroy, NULL), 0);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();

		cr_assert_geq(child, 0);
		if (!child) {
			alarm(PATIENCE_MS / 1000);
			_exit(!uroce_create_qp(A->pd, &init) && errno == EIO ? 23 : 1);
		}
		cr_assert_eq(status_of(child), 23, "child %d", i);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

PAIR_TEST(api_fork, a_child_reaches_nothing_of_inline_workers, open_both, close_both)
{
	fork_and_meddle();
}

PAIR_TEST(api_fork, a_child_reaches_nothing_of_dedicated_workers, open_dedicated, close_both)
{
	fork_and_meddle();
}

PAIR_TEST(api_fork, a_child_exits_beside_inline_workers, open_both, close_both)
{
	fork_and_exit();
}

PAIR_TEST(api_fork, a_child_exits_beside_dedicated_workers, open_dedicated, close_both)
{
	fork_and_exit();
}
