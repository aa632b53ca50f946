/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * life CASE: what foreign programs do with a device in their lives, written against the system's libibverbs and run
 * by uroce-run. Prints "ok", or what went wrong.
 */

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,                  \
			       strerror(errno));                                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void check_wc(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return;
	printf("completion of queue pair %#x: %s\n", wc->qp_num, ibv_wc_status_str(wc->status));
	exit(1);
}

static struct ibv_device *first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *device;

	CHECK(list && list[0]);
	device = list[0];
	ibv_free_device_list(list);
	return device;
}

static struct ibv_context *open_device(void)
{
	struct ibv_context *ctx = ibv_open_device(first_device());

	CHECK(ctx);
	return ctx;
}

/* A number of a line of a status file of /proc. */
static unsigned long status_of(const char *path, const char *key, int base)
{
	char line[256];
	unsigned long n = 0;
	FILE *f = fopen(path, "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			n = strtoul(line + strlen(key) + 1, NULL, base);
	fclose(f);
	return n;
}

static unsigned long threads(void)
{
	return status_of("/proc/self/status", "Threads", 10);
}

/* Listing opens nothing. */
static void list_only(void)
{
	first_device();
	CHECK(threads() == 1);
}

/* VERBS-OPEN-01 */
static void open_twice(void)
{
	struct ibv_context *a = open_device(), *b = open_device();
	struct ibv_port_attr port;
	struct ibv_device_attr attr;
	struct ibv_pd *pd = ibv_alloc_pd(a);

	CHECK(pd && a != b && a->async_fd != b->async_fd);
	CHECK(a->device == b->device && a->device == first_device());
	CHECK(!ibv_query_device(b, &attr) && attr.node_guid == ibv_get_device_guid(b->device));
	/* In any order, and with an object that lives. */
	CHECK(!ibv_close_device(b) && !ibv_close_device(a));
	a = open_device();
	CHECK(!ibv_query_port(a, 1, &port) && port.state == IBV_PORT_ACTIVE);
	CHECK(!ibv_close_device(a));
}

/* A child that tries to open the device, in vain, and calls exit(). */
static void fork_child(void)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		alarm(20);
		CHECK(!ibv_open_device(first_device()) && errno == EIO);
		exit(7);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void *open_and_stay(void *arg)
{
	atomic_store((_Atomic(struct ibv_context *) *)arg, open_device());
	return NULL;
}

/*
 * EDGE-FORK-03: children that are forked while another thread opens the device, which takes some time. Its own threads show
 * that it has begun.
 */
static void fork_while_opening(void)
{
	_Atomic(struct ibv_context *) ctx = NULL;
	pthread_t thread;
	unsigned inside = 0;

	CHECK(!pthread_create(&thread, NULL, open_and_stay, &ctx));
	while (!atomic_load(&ctx)) {
		if (threads() < 3)
			continue;
		inside += !atomic_load(&ctx);
		fork_child();
	}
	CHECK(!pthread_join(thread, NULL));
	CHECK(inside);
	CHECK(!ibv_close_device(ctx));
}

/* Calls `each` with the directory in /proc of every other thread. */
static void for_threads(void (*each)(const char *dir))
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *entry;
	char path[512];

	CHECK(d);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s", entry->d_name);
		each(path);
	}
	closedir(d);
}

static void blocks_signals(const char *dir)
{
	static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,	 SIGALRM,
				      SIGCHLD, SIGUSR1, SIGUSR2, SIGIO};
	char path[600];
	unsigned long blocked;

	snprintf(path, sizeof(path), "%s/status", dir);
	blocked = status_of(path, "SigBlk", 16);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CHECK(blocked & 1ul << (numbers[i] - 1));
}

/* The program's signals reach its own threads, which keep their mask and their CPUs. */
static void signal_masks(void)
{
	unsigned long blocked = status_of("/proc/thread-self/status", "SigBlk", 16);
	cpu_set_t before, after;

	CHECK(!sched_getaffinity(0, sizeof(before), &before));
	open_device();
	CHECK(threads() > 1);
	for_threads(blocks_signals);
	CHECK(status_of("/proc/thread-self/status", "SigBlk", 16) == blocked);
	CHECK(!sched_getaffinity(0, sizeof(after), &after) && CPU_EQUAL(&before, &after));
}

static bool in_ppoll;

/* A thread that sleeps in ppoll() with at least one descriptor. */
static void look_for_ppoll(const char *dir)
{
	char path[600];
	unsigned long array, cnt;
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/syscall", dir);
	f = fopen(path, "r");
	if (f && fscanf(f, "%ld %lx %lx", &number, &array, &cnt) == 3 && number == SYS_ppoll && cnt)
		in_ppoll = true;
	if (f)
		fclose(f);
}

/* EDGE-REST-03: while nothing comes, the library's thread sleeps at the port. */
static void sleeps_at_port(void)
{
	open_device();
	/* A peer that comes later has as long. */
	for (int i = 0; i < 20000 && !in_ppoll; i++) {
		for_threads(look_for_ppoll);
		usleep(1000);
	}
	CHECK(in_ppoll);
}

/* The same with a peer, which looks as well: both stay for a while. */
static void sleep_with_peer(void)
{
	open_device();
	puts("open");
	fflush(stdout);
	sleeps_at_port();
	sleep(2);
}

static void is_not_telemetry(const char *dir)
{
	char path[600], name[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/comm", dir);
	f = fopen(path, "r");
	CHECK(f && fgets(name, sizeof(name), f));
	fclose(f);
	CHECK(!strstr(name, "telemetry"));
}

/* Nothing answers questions about the process, and it has no directory of DPDK's that would stay if it were killed. */
static void no_telemetry(void)
{
	char path[128];

	open_device();
	for_threads(is_not_telemetry);
	snprintf(path, sizeof(path), "/run/dpdk/uroce-%d", (int)getpid());
	CHECK(access(path, F_OK));
}

/*
 * What an open device with a queue pair takes, huge pages included, where they are free 64 MB. Without pages of files, of libraries above all: processes
 * share them, and how many a process has depends on what the page cache had before.
 */
#define MEMORY_MAX_KB (120ul << 10)

/* Two queue pairs that are connected with each other through the device. */
struct pair {
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	char buf[64];
};

static void to_ready(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}}};
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void make_pair(struct pair *p)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	union ibv_gid gid;

	p->ctx = open_device();
	CHECK((p->channel = ibv_create_comp_channel(p->ctx)) && (p->pd = ibv_alloc_pd(p->ctx)));
	CHECK((p->cq = ibv_create_cq(p->ctx, 16, NULL, p->channel, 0)));
	CHECK((p->mr = ibv_reg_mr(p->pd, p->buf, sizeof(p->buf), IBV_ACCESS_LOCAL_WRITE)));
	attr.send_cq = attr.recv_cq = p->cq;
	CHECK(!ibv_query_gid(p->ctx, 1, 0, &gid));
	for (int i = 0; i < 2; i++)
		CHECK((p->qp[i] = ibv_create_qp(p->pd, &attr)));
	for (int i = 0; i < 2; i++)
		to_ready(p->qp[i], &gid, p->qp[!i]->qp_num);
}

/* Queue pair 0 sends to queue pair 1. */
static void send_one(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)p->buf, 8, p->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	CHECK(!ibv_post_recv(p->qp[1], &recv, &bad_recv));
	CHECK(!ibv_post_send(p->qp[0], &send, &bad_send));
}

static void complete(struct pair *p)
{
	struct ibv_wc wc;

	for (int n = 0, got; n < 2; n += got) {
		got = ibv_poll_cq(p->cq, 1, &wc);
		CHECK(got >= 0);
		if (got)
			check_wc(&wc);
	}
}

/*
 * EDGE-FORK-01, EDGE-FORK-03: a child that calls exit() while queue pairs are connected, and before their messages have been
 * taken, does not wait for threads that it does not have; the parent and its connection go on.
 */
static void fork_exit(void)
{
	struct pair p;

	make_pair(&p);
	for (int i = 0; i < 3; i++) {
		send_one(&p);
		complete(&p);
		fork_child();
		send_one(&p);
		fork_child();
		complete(&p);
	}
}

static void memory(void)
{
	struct pair p;
	unsigned long kb;

	make_pair(&p);
	kb = status_of("/proc/self/status", "RssAnon", 10) +
	     status_of("/proc/self/status", "RssShmem", 10) +
	     status_of("/proc/self/status", "HugetlbPages", 10);
	printf("%lu KB\n", kb);
	CHECK(kb <= MEMORY_MAX_KB);
}

/*
 * The inline function of the header needs no operation of the context for a basic SRQ, and refuses what there is no operation
 * for.
 */
static void create_srq_ex(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 8, .max_sge = 1}, .comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = pd};
	struct ibv_srq_attr got;
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct ibv_srq *srq;

	CHECK(pd);
	for (int with_type = 0; with_type < 2; with_type++) {
		CHECK((srq = ibv_create_srq_ex(ctx, &attr)));
		CHECK(srq->context == ctx && srq->pd == pd && attr.attr.max_wr >= 8);
		CHECK(!ibv_query_srq(srq, &got) && got.max_wr == attr.attr.max_wr);
		CHECK(!ibv_post_srq_recv(srq, &wr, &bad) && !ibv_destroy_srq(srq));
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
		attr.srq_type = IBV_SRQT_BASIC;
	}
	for (int type = IBV_SRQT_XRC; type <= IBV_SRQT_TM; type++) {
		attr.srq_type = (enum ibv_srq_type)type;
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		errno = 0;
		CHECK(!ibv_create_srq_ex(ctx, &attr) && errno == EOPNOTSUPP);
	}
	errno = 0;
	CHECK(!ibv_open_xrcd(ctx, &(struct ibv_xrcd_init_attr){0}) && errno == EOPNOTSUPP);
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
}

/* The program sleeps on the channel's descriptor, and calls nothing meanwhile. */
static void sleep_on_fd(void)
{
	struct ibv_wc wc[2];
	struct pair p;
	struct ibv_cq *cq;
	void *user;

	make_pair(&p);
	for (int i = 0; i < 20; i++) {
		struct pollfd wait = {.fd = p.channel->fd, .events = POLLIN};
		int done = 0;

		CHECK(!ibv_req_notify_cq(p.cq, 0));
		send_one(&p);
		for (int events = 0; done < 2; events++) {
			CHECK(poll(&wait, 1, 5000) == 1);
			CHECK(!ibv_get_cq_event(p.channel, &cq, &user) && cq == p.cq);
			ibv_ack_cq_events(cq, 1);
			CHECK(!ibv_req_notify_cq(p.cq, 0));
			for (int n; (n = ibv_poll_cq(p.cq, 2 - done, wc)) != 0; done += n)
				for (int k = 0; k < n; k++)
					check_wc(&wc[k]);
		}
		/* Nothing is left of an event for the next time. */
		CHECK(poll(&wait, 1, 0) == 0 || !ibv_get_cq_event(p.channel, &cq, &user));
	}
}

static void *wait_for_event(void *arg)
{
	struct pair *p = arg;
	struct ibv_cq *cq;
	void *user;

	ibv_get_cq_event(p->channel, &cq, &user);
	return NULL;
}

static void *poll_for_ever(void *arg)
{
	struct pair *p = arg;
	struct ibv_wc wc;

	for (;;) {
		ibv_poll_cq(p->cq, 1, &wc);
		pthread_testcancel();
	}
	return NULL;
}

static void end_thread(pthread_t thread)
{
	struct timespec until;
	void *result;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	CHECK(!pthread_cancel(thread));
	CHECK(!pthread_timedjoin_np(thread, &result, &until) && result == PTHREAD_CANCELED);
}

/* Threads that wait or poll may be cancelled at any time; no lock stays taken. */
static void cancel(void)
{
	struct pair p;
	pthread_t thread;

	make_pair(&p);
	for (int i = 0; i < 40; i++) {
		CHECK(!pthread_create(&thread, NULL, i % 2 ? poll_for_ever : wait_for_event, &p));
		usleep((useconds_t)(i * 137));
		end_thread(thread);
	}
	for (int i = 0; i < 10; i++) {
		send_one(&p);
		complete(&p);
	}
}

/* exit() with everything open, while another thread waits and a third one polls. */
static void exit_open(void)
{
	static struct pair p;
	pthread_t thread;

	make_pair(&p);
	CHECK(!pthread_create(&thread, NULL, wait_for_event, &p));
	CHECK(!pthread_create(&thread, NULL, poll_for_ever, &p));
	send_one(&p);
	usleep(20000);
}

static atomic_bool answered;

static void *wait_for_async(void *arg)
{
	struct ibv_async_event event;

	ibv_get_async_event(arg, &event);
	atomic_store(&answered, true);
	return NULL;
}

/* A device that is closed while a thread waits for its events; the process goes on. */
static void close_while_waiting(void)
{
	struct ibv_context *a = open_device(), *b = open_device();
	pthread_t thread;
	struct ibv_pd *pd;

	CHECK(!pthread_create(&thread, NULL, wait_for_async, a));
	usleep(50000);
	CHECK(!ibv_close_device(a));
	pd = ibv_alloc_pd(b);
	CHECK(pd && !ibv_dealloc_pd(pd) && !ibv_close_device(b));
}

/* It never sleeps: what it costs to serve it, benchmarks/programs.py counts. */
static void poll_always(void)
{
	struct ibv_wc wc;
	struct pair p;

	make_pair(&p);
	for (int i = 0; i < 100000; i++) {
		send_one(&p);
		for (int n = 0; n < 2;) {
			int got = ibv_poll_cq(p.cq, 1, &wc);

			CHECK(got >= 0);
			if (got)
				check_wc(&wc);
			n += got;
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"list_only", list_only},	    {"open_twice", open_twice},
		{"fork_exit", fork_exit},	    {"fork_while_opening", fork_while_opening},
		{"create_srq_ex", create_srq_ex},   {"signal_masks", signal_masks},
		{"no_telemetry", no_telemetry},	    {"memory", memory},
		{"sleep_on_fd", sleep_on_fd},	    {"cancel", cancel},
		{"exit_open", exit_open},	    {"close_while_waiting", close_while_waiting},
		{"sleeps_at_port", sleeps_at_port}, {"sleep_with_peer", sleep_with_peer},
		{"poll_always", poll_always}};

	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			puts("ok");
			return 0;
		}
	fprintf(stderr, "usage: life CASE\n");
	return 2;
}
