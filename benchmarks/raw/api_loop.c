/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a message with the edge around the engine: the public functions, the worker, the round, and DPDK's buffers and
 * ring. Two endpoints in one process, in one thread, joined by a ring; run it under callgrind (instructions of a round trip)
 * or lackey (cache lines that workers share).
 *
 *   api_loop CONFIG_A CONFIG_B pingpong COUNT [KEY=VALUE...]
 *   api_loop CONFIG_A CONFIG_B workers COUNT [KEY=VALUE...]
 *
 * pingpong: COUNT WRITEs of 8 B there, each answered by one back, which the other end finds in its memory, as
 * `uroce-perf --mode lat` does. workers: each worker of each endpoint has a queue pair, to the same worker of the other one, and COUNT
 * WRITEs of 64 B are posted to each in bursts. A store to `mark` says which worker, counted from 1 over both endpoints, works
 * from now on; 0: none. "td" in place of KEY=VALUE: with a thread domain.
 *
 * The part that is measured is measured(). Prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/device.h"

#define SETS_MAX 16
#define BURST	 32
#define DEPTH	 64
#define SMALL	 64
#define PING	 8
#define BUFFER	 4096
#define PATIENCE 1000000 /* polls */

static volatile uint64_t mark;

struct flow {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ur_worker *worker;
	uint64_t number; /* for `mark` */
	uint8_t *tx, *rx;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *domain;
	struct ibv_td *td;
	struct ibv_mr *mr;
	uint8_t *buffer; /* of each flow a BUFFER to send from, then one to receive into */
	struct flow flow[UR_WORKERS_MAX];
};

static struct end ends[2];
static unsigned flow_cnt;
static bool with_td;
static uint64_t polls;

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "api_loop: %s\n", what);
	exit(1);
}

/* ---- set-up ---- */

static void open_end(struct end *e, const char *config, const char **sets)
{
	struct uroce_open_attr attr = {.config = config, .set = sets};
	struct ibv_td_init_attr none = {0};
	char err[512] = "";

	e->ctx = uroce_open(&attr, err, sizeof(err));
	must(e->ctx, err);
	flow_cnt = ur_device(e->ctx)->worker_cnt;
	e->pd = e->domain = uroce_alloc_pd(e->ctx);
	must(e->pd, "no protection domain");
	if (with_td) {
		e->td = uroce_alloc_td(e->ctx, &none);
		e->domain = uroce_alloc_parent_domain(
			e->ctx, &(struct ibv_parent_domain_init_attr){.pd = e->pd, .td = e->td});
		must(e->domain, "no parent domain");
	}
	e->buffer = aligned_alloc(BUFFER, 2ul * BUFFER * flow_cnt);
	must(e->buffer, "no memory");
	memset(e->buffer, 0, 2ul * BUFFER * flow_cnt);
	e->mr = uroce_reg_mr(e->pd, e->buffer, 2ul * BUFFER * flow_cnt,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(e->mr, "no memory region");
}

static void make_flow(struct end *e, unsigned i)
{
	struct ibv_cq_init_attr_ex ca = {
		.cqe = 4 * DEPTH,
		.comp_vector = i,
		.comp_mask = with_td ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
		.parent_domain = e->domain,
	};
	struct ibv_qp_init_attr qa = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {DEPTH, 1, 1, 1, 0},
	};
	struct flow *f = &e->flow[i];
	struct ibv_cq_ex *ex = uroce_create_cq_ex(e->ctx, &ca);

	must(ex, "no CQ");
	f->cq = qa.send_cq = qa.recv_cq = ibv_cq_ex_to_cq(ex);
	f->qp = uroce_create_qp(e->domain, &qa);
	must(f->qp, "no queue pair");
	f->worker = ur_device(e->ctx)->workers[i];
	f->number = 1 + i + (e == &ends[0] ? 0 : flow_cnt);
	f->tx = e->buffer + 2ul * BUFFER * i;
	f->rx = f->tx + BUFFER;
}

static void connect_flow(struct end *e, struct end *peer, unsigned i)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->flow[i].qp->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1},
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
	};
	struct ibv_qp *qp = e->flow[i].qp;

	must(uroce_query_gid(peer->ctx, 1, 0, &attr.ah_attr.grh.dgid) == 0, "no address");
	attr.qp_state = IBV_QPS_INIT;
	must(uroce_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS) == 0,
	     "INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(uroce_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER) == 0,
	     "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(uroce_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	     "RTS");
}

static void set_up(const char *config_a, const char *config_b, const char **sets)
{
	open_end(&ends[0], config_a, sets);
	open_end(&ends[1], config_b, sets);
	for (unsigned i = 0; i < flow_cnt; i++)
		for (unsigned side = 0; side < 2; side++)
			make_flow(&ends[side], i);
	for (unsigned i = 0; i < flow_cnt; i++)
		for (unsigned side = 0; side < 2; side++)
			connect_flow(&ends[side], &ends[!side], i);
}

static void tear_down(void)
{
	for (unsigned side = 0; side < 2; side++) {
		struct end *e = &ends[side];

		for (unsigned i = 0; i < flow_cnt; i++) {
			uroce_destroy_qp(e->flow[i].qp);
			uroce_destroy_cq(e->flow[i].cq);
		}
		uroce_dereg_mr(e->mr);
		if (e->td) {
			uroce_dealloc_pd(e->domain);
			uroce_dealloc_td(e->td);
		}
		uroce_dealloc_pd(e->pd);
		must(uroce_close(e->ctx) == 0, "an object is left");
		free(e->buffer);
	}
}

/* ---- work ---- */

static void post_write(unsigned side, unsigned i, uint32_t bytes)
{
	struct flow *f = &ends[side].flow[i];
	struct ibv_sge sge = {(uintptr_t)f->tx, bytes, ends[side].mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)ends[!side].flow[i].rx;
	wr.wr.rdma.rkey = ends[!side].mr->rkey;
	must(uroce_post_send(f->qp, &wr, &bad) == 0, "a request is not posted");
}

static unsigned poll_one(struct flow *f)
{
	struct ibv_wc wc[4];
	int n = uroce_poll_cq(f->cq, 4, wc);

	polls++;
	for (int i = 0; i < n; i++)
		must(wc[i].status == IBV_WC_SUCCESS, "a request failed");
	return (unsigned)n;
}

static void ping(unsigned side, uint8_t value)
{
	volatile uint8_t *last = ends[!side].flow[0].rx + PING - 1;
	unsigned tries = 0;

	ends[side].flow[0].tx[PING - 1] = value;
	post_write(side, 0, PING);
	while (*last != value) {
		poll_one(&ends[!side].flow[0]);
		must(++tries < PATIENCE, "a WRITE does not arrive");
	}
}

static void pingpong(unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		ping(0, (uint8_t)(i + 1));
		ping(1, (uint8_t)(i + 1));
	}
}

/* A round of a worker of its own: no other is touched, as in a thread that runs it alone. */
static void run_worker(struct flow *f)
{
	mark = f->number;
	ur_worker_poll(f->worker);
	mark = 0;
}

static unsigned take_completions(struct flow *f)
{
	struct ibv_wc wc[BURST];
	unsigned n;

	mark = f->number;
	n = ur_engine_poll_cq(UR_API(cq, f->cq)->cq, BURST, wc);
	mark = 0;
	return n;
}

static void burst_of_each(void)
{
	unsigned done = 0;

	for (unsigned i = 0; i < flow_cnt; i++) {
		mark = ends[0].flow[i].number;
		for (unsigned n = 0; n < BURST; n++)
			post_write(0, i, SMALL);
		mark = 0;
	}
	for (unsigned tries = 0; done < flow_cnt * BURST; tries++) {
		must(tries < PATIENCE, "requests do not complete");
		for (unsigned i = 0; i < flow_cnt; i++) {
			run_worker(&ends[0].flow[i]);
			run_worker(&ends[1].flow[i]);
			done += take_completions(&ends[0].flow[i]);
		}
	}
}

static void run(bool workers, unsigned cnt)
{
	if (!workers)
		pingpong(cnt);
	for (unsigned i = 0; workers && i < cnt; i += BURST)
		burst_of_each();
}

__attribute__((noinline)) static void measured(bool workers, unsigned cnt)
{
	mark = 1000;
	run(workers, cnt);
	mark = 2000;
}

int main(int argc, char **argv)
{
	const char *sets[SETS_MAX] = {"eal.hugepages=no", "worker.mode=inline"};
	unsigned cnt, set_cnt = 2;
	bool workers;

	if (argc < 5) {
		fprintf(stderr, "usage: api_loop CONFIG_A CONFIG_B pingpong|workers COUNT "
				"[KEY=VALUE|td...]\n");
		return 2;
	}
	workers = strcmp(argv[3], "workers") == 0;
	cnt = (unsigned)atoi(argv[4]);
	for (int i = 5; i < argc && set_cnt < SETS_MAX - 1; i++) {
		if (strcmp(argv[i], "td") == 0)
			with_td = true;
		else
			sets[set_cnt++] = argv[i];
	}
	set_up(argv[1], argv[2], sets);
	run(workers, cnt);
	polls = 0;
	measured(workers, cnt);
	printf("{\"mark\": %llu, \"polls\": %llu, \"workers\": %u}\n",
	       (unsigned long long)(uintptr_t)&mark, (unsigned long long)polls, flow_cnt);
	tear_down();
	return 0;
}
