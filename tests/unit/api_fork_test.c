/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

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

PAIR_TEST(api_fork, a_child_exits_beside_inline_workers, open_both, close_both)
{
	fork_and_exit();
}

PAIR_TEST(api_fork, a_child_exits_beside_dedicated_workers, open_dedicated, close_both)
{
	fork_and_exit();
}
