/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A program that ends: two processes over memif. One of them, B, calls exit() right after its last
 * completion, with all objects open; A continues.
 */
static int to_a[2], to_b[2]; /* pipes */
static char device[64];	     /* port.device=... */

static void tell(int fd, uint32_t word)
{
	cr_assert_eq(write(fd, &word, sizeof(word)), (ssize_t)sizeof(word));
}

/* Receives the next number. Answers ARP while it waits. */
static uint32_t hear(struct side *s, int fd)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	uint32_t word;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (read(fd, &word, sizeof(word)) != (ssize_t)sizeof(word)) {
		if (now_ms() > until)
			exit(3);
		if (s->ctx)
			uroce_progress(s->ctx);
	}
	return word;
}

static void open_memif(struct side *s, const char *file)
{
	/* After fork(), both processes would draw the same random addresses. */
	const char *mac =
		s == A ? "address.mac=02:00:00:00:00:0a" : "address.mac=02:00:00:00:00:0b";
	const char *const set[] = {device, mac, NULL};
	char err[512] = "";

	s->ctx = open_end(file, set, err);
	if (!s->ctx) {
		fprintf(stderr, "%s\n", err);
		exit(4);
	}
	s->pd = uroce_alloc_pd(s->ctx);
	s->cq = uroce_create_cq(s->ctx, SIDE_CQE, NULL, NULL, 0);
	s->mr = uroce_reg_mr(s->pd, s->buf, SIDE_BUF, ALL_RIGHTS);
}

static void connect_to(struct ibv_qp *qp, const char *peer, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	int rc = to_init(qp, REMOTE);

	attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
	inet_pton(AF_INET, peer, attr.ah_attr.grh.dgid.raw + 12);
	if (rc == 0)
		rc = uroce_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER);
	if (rc == 0)
		rc = to_rts(qp, (struct join){.timeout = 16, .retry_cnt = 3});
	if (rc) {
		fprintf(stderr, "cannot connect to %s: %s\n", peer, strerror(rc));
		exit(5);
	}
}

static struct ibv_wc wc_of(struct side *s)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	while (uroce_poll_cq(s->cq, 1, &wc) == 0)
		if (now_ms() > until)
			exit(6);
	return wc;
}

static _Noreturn void receive_and_exit(void)
{
	struct ibv_qp *qp;

	open_memif(B, "memif-server.conf");
	qp = make_qp(B, IBV_QPT_RC);
	tell(to_a[1], qp->qp_num);
	connect_to(qp, "10.77.0.2", hear(B, to_b[0]));
	post_recv(B, qp, 2, 0, 100);
	tell(to_a[1], 0);
	exit(wc_of(B).status == IBV_WC_SUCCESS ? 0 : 7);
}

/* EDGE-OWED-01 */
Test(api_exit, ack_of_the_last_message_leaves_before_the_program_ends, .timeout = 100)
{
	struct ibv_qp *qp;
	struct ibv_wc wc;
	int status;
	pid_t child;

	snprintf(device, sizeof(device), "port.device=/tmp/uroce-exit-%u.sock", (unsigned)getpid());
	cr_assert_eq(pipe(to_a) | pipe(to_b), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child)
		receive_and_exit();
	wc.qp_num = hear(A, to_a[0]);
	open_memif(A, "memif-client.conf");
	qp = make_qp(A, IBV_QPT_RC);
	tell(to_b[1], qp->qp_num);
	connect_to(qp, "10.77.0.1", wc.qp_num);
	hear(A, to_a[0]);
	post(A, qp, 1, IBV_WR_SEND, 0, 10);
	wc = wc_of(A);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", uroce_wc_status_str(wc.status));
	cr_assert_eq(uroce_destroy_qp(qp), 0);
	close_side(A);
}
