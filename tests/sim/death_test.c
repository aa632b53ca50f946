/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"
#include "modes.h"
#include "script.h"

/*
 * Queue pairs that end while there is a gap: one end goes to ERR or RESET, or is destroyed, at
 * every packet of a lossy exchange. Requests of a queue pair in ERR, and those of its peer,
 * complete exactly once and in order, and everything taken from a pool is returned (sim_free()
 * checks this).
 */
#define SENDS	  7
#define RECVS	  6
#define MASK_BITS 7
#define KILL_MAX  14		/* maximum number of packets before the end */
#define LIMIT_NS  SIM_MS(15000) /* more than a gap of extended mode may stay open */

enum death { ERR, RESET, DESTROY, DEATH_CNT };

#define NUMBERS ((1u << MASK_BITS) * KILL_MAX * DEATH_CNT * 2)

struct death_case {
	struct bench *b;
	unsigned kill_at, victim, frames;
	enum death death;
	bool srq;
	/* Completions so far: of sends, of receives. */
	unsigned sent, received, recv_errors;
	bool got[RECVS];
};

static void kill_it(struct sim *s, void *arg)
{
	struct death_case *d = arg;
	struct sim_qp *qp = &d->b->qp[d->victim];

	if (d->death == DESTROY)
		sim_qp_destroy(qp);
	else
		SIM_CHECK(s,
			  sim_qp_modify(qp, d->death == ERR ? IBV_QPS_ERR : IBV_QPS_RESET, 0,
					NULL) == 0,
			  "cannot modify");
}

static enum sim_verdict count(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			      const struct ur_packet *p)
{
	struct death_case *d = s->hook_arg;

	if (d->frames++ == d->kill_at)
		sim_call_at(s, s->now_ns, kill_it, d);
	return SIM_PASS;
}

static void poll(struct sim *s, void *arg)
{
	struct death_case *d = arg;
	struct ibv_wc wc;

	while (ur_cq_poll(&d->b->cq[0].cq, 1, &wc)) {
		SIM_CHECK(s, wc.wr_id == d->sent, "send %llu completes instead of %u",
			  (unsigned long long)wc.wr_id, d->sent);
		d->sent++;
	}
	while (ur_cq_poll(&d->b->cq[1].cq, 1, &wc)) {
		SIM_CHECK(s, wc.wr_id < RECVS && !d->got[wc.wr_id], "receive %llu completes twice",
			  (unsigned long long)wc.wr_id);
		SIM_CHECK(s, d->srq || wc.wr_id == d->received, "receive %llu completes before %u",
			  (unsigned long long)wc.wr_id, d->received);
		SIM_CHECK(s, wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR,
			  "receive %llu has status %d", (unsigned long long)wc.wr_id, wc.status);
		d->got[wc.wr_id] = true;
		d->received++;
		d->recv_errors += wc.status != IBV_WC_SUCCESS;
	}
}

static void post_all(struct bench *b)
{
	const struct ibv_send_wr wrs[SENDS] = {
		bench_send(b, 0, 700),
		bench_rdma(b, IBV_WR_RDMA_WRITE, 1000, 700),
		bench_rdma(b, IBV_WR_RDMA_READ, 2000, 700),
		bench_rdma(b, IBV_WR_RDMA_WRITE_WITH_IMM, 3000, 300),
		bench_atomic(b, 4000, 1),
		bench_send(b, 0, 500),
		bench_send(b, 0, 0),
	};

	for (unsigned i = 0; i < RECVS; i++)
		bench_recv(b, i, 800);
	for (unsigned i = 0; i < SENDS; i++) {
		struct ibv_send_wr wr = wrs[i];

		wr.wr_id = i;
		SIM_CHECK(b->s, sim_post_send(&b->qp[0], &wr) == 0, "cannot post");
	}
}

/* Moves the queue pairs to ERR, which flushes their queues. Then no completion may be missing. */
static void settle(struct death_case *d)
{
	struct bench *b = d->b;
	bool gone = d->death != ERR;

	for (unsigned i = 0; i < 2; i++)
		if (b->qp[i].qp && b->qp[i].qp->state != IBV_QPS_RESET)
			(void)sim_qp_modify(&b->qp[i], IBV_QPS_ERR, 0, NULL);
	SIM_CHECK(b->s, sim_run(b->s, NULL, NULL, LIMIT_NS), "no silence");
	SIM_CHECK(b->s, d->sent == SENDS || (gone && d->victim == 0), "%u of %u sends completed",
		  d->sent, SENDS);
	if (d->srq) {
		unsigned left = ur_wq_tail(&b->srq.srq.rq) - ur_wq_head(&b->srq.srq.rq);

		SIM_CHECK(b->s,
			  d->received + left == RECVS ||
				  (gone && d->victim == 1 && d->received + left <= RECVS),
			  "of %u receives %u completed and %u are left", RECVS, d->received, left);
	} else {
		SIM_CHECK(b->s, d->received == RECVS || (gone && d->victim == 1),
			  "%u of %u receives completed", d->received, RECVS);
	}
}

static void run(enum ur_mode mode, const char *name, bool srq, uint64_t number)
{
	struct bench_attr attr = {.mtu = IBV_MTU_256,
				  .srq = srq,
				  .set_retry = true,
				  .retry_cnt = 2,
				  .timeout = 8,
				  .number = number};
	struct death_case d = {.srq = srq};
	uint64_t n = number;

	d.b = bench_new(mode, name, &attr);
	d.b->s->drop_mask = n % (1u << MASK_BITS);
	n >>= MASK_BITS;
	d.kill_at = n % KILL_MAX;
	n /= KILL_MAX;
	d.death = (enum death)(n % DEATH_CNT);
	d.victim = (unsigned)(n / DEATH_CNT);
	d.b->s->hook = count;
	d.b->s->hook_arg = &d;
	d.b->s->after = poll;
	d.b->s->after_arg = &d;
	post_all(d.b);
	SIM_CHECK(d.b->s, sim_run(d.b->s, NULL, NULL, LIMIT_NS), "no silence");
	settle(&d);
	bench_free(d.b);
}

static void run_all(enum ur_mode mode, const char *name, bool srq)
{
	uint64_t only;

	if (sim_replay(sim_mode_case(mode, name), &only)) {
		run(mode, name, srq, only);
		return;
	}
	if (sim_replaying())
		cr_skip_test("another case is replayed");
	for (uint64_t number = 0; number < NUMBERS; number += sim_short_stride())
		run(mode, name, srq, number);
}

EACH_MODE(death, everything_posted_completes_once_and_every_resource_is_returned)
{
	run_all(mode, "death", false);
}

EACH_MODE(death, receives_of_an_srq_are_flushed_once_or_stay)
{
	run_all(mode, "death_srq", true);
}
