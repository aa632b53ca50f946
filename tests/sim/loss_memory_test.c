/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "objects.h"

/*
 * Many queue pairs have gaps at the same time, and the memory for them is limited (docs/design/loss.md, Tiers).
 * 64 queue pairs write 8 messages of 64 KB each, 2 % of all packets are lost, and every byte must arrive. Where
 * memory is short, contexts track less, and the time that this takes may grow only so far.
 */
#define QPS	   64
#define MESSAGES   8
#define MSG_BYTES  (64u << 10)
#define SLAB_BYTES (16u << 10)
#define LIMIT_NS   SIM_MS(2000)

struct world {
	struct sim *s;
	struct sim_cq cq[2];
	struct sim_mr mr[2];
	struct sim_qp qp[2][QPS];
	unsigned done;
};

struct result {
	uint64_t ns, lost, again;
	struct ur_counters cnt[2]; /* of the requesting end, of the other */
	uint64_t peak_bytes;	   /* of contexts at both ends */
};

static void poll(struct sim *s, void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;

	while (ur_cq_poll(&w->cq[0].cq, 1, &wc)) {
		SIM_CHECK(s, wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
		w->done++;
	}
}

static bool is_done(void *arg)
{
	struct world *w = arg;

	poll(w->s, w);
	return w->done == QPS * MESSAGES;
}

static void post(struct world *w, struct sim_qp *qp, size_t at, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = sim_sge(&w->mr[0], at, MSG_BYTES);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = (uintptr_t)w->mr[1].p + at;
	wr.wr.rdma.rkey = w->mr[1].key;
	cr_assert_eq(sim_post_send(qp, &wr), 0);
}

static void start(struct world *w, enum ibv_wr_opcode opcode)
{
	struct sim_qp_attr qa = sim_qp_defaults(&w->cq[0], &w->cq[0]);
	struct sim_qp_attr qb = sim_qp_defaults(&w->cq[1], &w->cq[1]);

	qa.mode = qb.mode = UR_MODE_EXTENDED;
	for (unsigned i = 0; i < QPS; i++) {
		sim_qp_pair(&w->qp[0][i], &w->s->ep[0], &qa, &w->qp[1][i], &w->s->ep[1], &qb);
		for (unsigned m = 0; m < MESSAGES; m++)
			post(w, &w->qp[0][i], ((size_t)i * MESSAGES + m) * MSG_BYTES, opcode);
	}
}

static void check_bytes(const struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		sim_mr_check_guards(w->s, &w->mr[i]);
	cr_assert_eq(memcmp(w->mr[0].p, w->mr[1].p, w->mr[0].len), 0, "bytes differ");
}

static void stop(struct world *w)
{
	for (unsigned i = 0; i < QPS; i++) {
		sim_qp_destroy(&w->qp[0][i]);
		sim_qp_destroy(&w->qp[1][i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		sim_mr_free(&w->mr[i]);
		sim_cq_free(&w->cq[i]);
	}
	sim_free(w->s);
}

static struct result run(uint32_t slabs, uint32_t max, uint32_t bytes, enum ibv_wr_opcode opcode)
{
	struct sim_attr sa = sim_defaults("loss_memory", 1);
	size_t len = (size_t)QPS * MESSAGES * MSG_BYTES;
	struct result r = {0};
	struct world w = {0};
	uint64_t began_ns;

	sa.max_qp = QPS;
	sa.fast = true;
	sa.loss.slabs = slabs;
	sa.loss.max = max;
	sa.loss.bytes = bytes;
	sa.tx_cap = 32;
	sa.link = (struct sim_link_attr){
		.bits_per_s = 100000000000ull, .delay_ns = 10000, .loss = 65536 * 2 / 100};
	w.s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&w.cq[i], QPS * MESSAGES + 1);
		sim_mr_init(&w.mr[i], &w.s->ep[i], len, SIM_ACCESS_ALL);
	}
	/* The data is at the requesting end of a WRITE, and at the other of a READ. */
	for (size_t i = 0; i < len; i++)
		w.mr[opcode == IBV_WR_RDMA_READ].p[i] = (uint8_t)(i * 31 + i / 1024);
	began_ns = w.s->now_ns;
	start(&w, opcode);
	cr_assert(sim_run(w.s, is_done, &w, LIMIT_NS), "it does not end");
	check_bytes(&w);
	r.ns = w.s->now_ns - began_ns;
	for (unsigned i = 0; i < 2; i++) {
		const struct ur_core *core = ur_engine_core(w.s->ep[i].engine);

		r.cnt[i] = core->cnt;
		r.peak_bytes += core->loss.peak_bytes;
		ur_slabs_validate(&core->loss);
		r.again += core->cnt.retransmitted_packets + core->cnt.retransmitted_responses;
		r.lost += w.s->ep[i].lost_frames;
	}
	stop(&w);
	return r;
}

static struct result run_with(uint32_t slabs, enum ibv_wr_opcode opcode)
{
	return run(slabs, slabs, SLAB_BYTES, opcode);
}

/* LOSS-SLAB-03, LOSS-TIER-01 */
Test(loss_memory, enough_for_all_gaps_loses_no_time_and_sends_only_what_is_lost)
{
	struct result r = run(4, 256, SLAB_BYTES, IBV_WR_RDMA_WRITE),
		      all = run_with(256, IBV_WR_RDMA_WRITE);

	cr_assert_eq(all.cnt[1].ooo_short + all.cnt[1].ooo_exhausted + all.cnt[0].rtx_short +
			     all.cnt[0].rtx_exhausted,
		     0);
	cr_assert_gt(all.cnt[1].ooo_grown, 0, "the window is larger than the first tier");
	cr_assert_leq(all.again, all.lost * 110 / 100, "%lu sent again, %lu lost",
		      (unsigned long)all.again, (unsigned long)all.lost);
	/* The rest comes a millisecond after it is wanted. */
	cr_assert_gt(r.cnt[1].ooo_short, 0);
	cr_assert_gt(r.peak_bytes, 2 * 4 * SLAB_BYTES);
	cr_assert_leq(r.ns, all.ns * 3 / 2);
}

/* LOSS-TIER-04 */
Test(loss_memory, a_part_of_it_costs_repeats_and_little_time)
{
	static const struct {
		uint32_t slabs;
		unsigned percent; /* of the time with enough */
	} some[] = {{16, 140}, {8, 160}, {4, 170}, {2, 220}};
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	for (unsigned o = 0; o < 2; o++) {
		struct result all = run_with(256, ops[o]);

		for (unsigned i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
			struct result r = run_with(some[i].slabs, ops[o]);

			cr_assert_leq(r.peak_bytes, 2ull * some[i].slabs * SLAB_BYTES);
			cr_assert_leq(r.ns * 100, all.ns * some[i].percent,
				      "%u slabs: %lu ns instead of %lu", some[i].slabs,
				      (unsigned long)r.ns, (unsigned long)all.ns);
		}
	}
}

/* LOSS-OWN-01, LOSS-OWN-02: each queue pair has memory of its own, and sends no more than that tracks. */
Test(loss_memory, none_at_all_costs_no_repeats_and_little_time)
{
	struct result all = run_with(256, IBV_WR_RDMA_WRITE), r = run_with(0, IBV_WR_RDMA_WRITE);

	cr_assert_eq(r.peak_bytes, 0);
	cr_assert_gt(r.cnt[1].ooo_contexts, 0);
	cr_assert_gt(r.cnt[0].rtx_contexts, 0);
	cr_assert_eq(r.cnt[1].ooo_exhausted + r.cnt[0].rtx_exhausted, 0);
	cr_assert_leq(r.again * 100, r.lost * 110, "%lu sent again, %lu lost",
		      (unsigned long)r.again, (unsigned long)r.lost);
	cr_assert_leq(r.ns * 100, all.ns * 110);

	all = run_with(256, IBV_WR_RDMA_READ);
	r = run_with(0, IBV_WR_RDMA_READ);
	cr_assert_eq(r.peak_bytes, 0);
	cr_assert_eq(r.cnt[0].rtx_exhausted, 0);
	cr_assert_leq(r.cnt[1].retransmitted_responses * 100, r.lost * 110);
	cr_assert_leq(r.ns * 100, all.ns * 140);
}
